/* Operators, comparisons, and what decides by being true or not. */

#include "node.h"

/* --- binary operators ------------------------------------------------------------------------- */

/* As `compiler/expressions/operations.py` numbers them, the comparisons first, in the host's order. */
enum {
    ADD = ADDITION, SUBTRACT, MULTIPLY, DIVIDE, FLOOR, REMAINDER, POWER, AND, OR, XOR, RIGHT_SHIFT
};

enum { SMALL_EXPONENT = 1000, FEW_ELEMENTS = 256, FEW_CHARACTERS = 4096 };

/* Whether an integer is one of the host's machine. */
static int is_small(PyObject *value)
{
    int overflow;
    if (!Py_IS_TYPE(value, &PyLong_Type)) return 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* The value of an operator on two floats, NULL where it is for others to say. */
static PyObject *of_floats(long operator, double left, double right)
{
    switch (operator) {
    case ADD: return PyFloat_FromDouble(left + right);
    case SUBTRACT: return PyFloat_FromDouble(left - right);
    case MULTIPLY: return PyFloat_FromDouble(left * right);
    case DIVIDE: return right == 0 ? NULL : PyFloat_FromDouble(left / right);
    default: return NULL;
    }
}

/* The value of an operator on two numbers. NULL, perhaps with an exception set, where the function
 * in Python is to be called: it has the limits of integers, and the errors. */
static PyObject *of_numbers(long operator, PyObject *left, PyObject *right)
{
    int is_int = Py_IS_TYPE(left, &PyLong_Type) && Py_IS_TYPE(right, &PyLong_Type);
    switch (operator) {
    case ADD: return PyNumber_Add(left, right);
    case SUBTRACT: return PyNumber_Subtract(left, right);
    case DIVIDE: return PyNumber_TrueDivide(left, right);
    case FLOOR: return PyNumber_FloorDivide(left, right);
    case REMAINDER: return PyNumber_Remainder(left, right);
    case MULTIPLY:
        if (is_int ? !(is_small(left) && is_small(right)) : !Py_IS_TYPE(left, &PyFloat_Type))
            return NULL;
        return PyNumber_Multiply(left, right);
    case POWER:
        if (is_int) {
            int overflow;
            long long power = PyLong_AsLongLongAndOverflow(right, &overflow);
            if (overflow || power > SMALL_EXPONENT || !is_small(left)) return NULL;
        } else if (!Py_IS_TYPE(left, &PyFloat_Type)) {
            return NULL;
        }
        return PyNumber_Power(left, right, Py_None);
    case AND: return is_int ? PyNumber_And(left, right) : NULL;
    case OR: return is_int ? PyNumber_Or(left, right) : NULL;
    case XOR: return is_int ? PyNumber_Xor(left, right) : NULL;
    case RIGHT_SHIFT: return is_int ? PyNumber_Rshift(left, right) : NULL;
    default: return NULL;
    }
}

/* The sum of two texts, lists or tuples that are so short that copying them does not count. */
static PyObject *joined(PyObject *state, PyObject *left, PyObject *right)
{
    PyTypeObject *type = Py_TYPE(left);
    int is_text = type == &PyUnicode_Type;
    if (Py_TYPE(right) != type || !(is_text || type == &PyList_Type || type == &PyTuple_Type))
        return NULL;
    Py_ssize_t length = PyObject_Size(left) + PyObject_Size(right);
    if (length >= (is_text ? FEW_CHARACTERS : FEW_ELEMENTS)) return NULL;
    Py_ssize_t most = most_elements(state);
    if (length > most) return NULL;
    return is_text ? PyUnicode_Concat(left, right) : PySequence_Concat(left, right);
}

PyObject *operated(long operator, PyObject *state, PyObject *left, PyObject *right)
{
    PyObject *value = NULL;
    if (Py_IS_TYPE(left, &PyFloat_Type) && Py_IS_TYPE(right, &PyFloat_Type))
        value = of_floats(operator, PyFloat_AsDouble(left), PyFloat_AsDouble(right));
    if (value) return value;
    if (operator >= ADD && is_number(left)) {
        if (is_number(right)) value = of_numbers(operator, left, right);
    } else if (operator == ADD) {
        value = joined(state, left, right);
    }
    if (!value) PyErr_Clear(); /* the function in Python finds the same, and says it better */
    return value;
}

enum { LEFT = FIRST, RIGHT, LEFT_NODE, RIGHT_NODE, OTHERWISE, METHODS, LEARNT, REFLECTED = LEARNT + 3 };
enum { FIND, DECLINED, FAILED, FIND_REFLECTED, ON_TENSORS, SYMBOL };

/* The value of an operator by a method, which is given up, with its object first. */
static PyObject *entered_for(const Node *self, PyObject *method, PyObject *left, PyObject *right,
                             int reflected)
{
    PyObject *by = self->part[METHODS], *given[] = {reflected ? right : left, reflected ? left : right};
    PyObject *nodes[] = {left, right, self->part[LEFT_NODE], self->part[RIGHT_NODE]};
    PyObject *value = entered(method, given, 2);
    if (!value) value = after_error(PyTuple_GetItem(by, FAILED), nodes, 4);
    Py_DECREF(method);
    if (value != Py_NotImplemented) return value;
    Py_DECREF(value);
    return PyObject_CallFunctionObjArgs(PyTuple_GetItem(by, DECLINED), left, right, nodes[2], nodes[3],
                                        reflected ? Py_True : Py_False, NULL);
}

/* The value of an operator by the method that the object on the left has for it, where that comes
 * first in Python too: no class derives from the object's, and a comparison is with another of the
 * class or with what is no container. NULL with no exception where that is not so. */
static PyObject *by_method(const Node *self, PyObject *left, PyObject *right)
{
    PyTypeObject *kind = Py_TYPE(left), *other = Py_TYPE(right);
    if (other == known_class[TENSOR] || !(PyType_GetFlags(kind) & Py_TPFLAGS_HEAPTYPE)) return NULL;
    if (other != kind &&
        (PyType_IsSubtype(other, kind) || (self->number < ADD && !is_plain(right))))
        return NULL;
    PyObject *find = PyTuple_GetItem(self->part[METHODS], FIND);
    PyObject *method = special_method(self, LEARNT, kind, find);
    return method ? entered_for(self, method, left, right, 0) : NULL;
}

/* The same of a number and an object on the right of it. */
static PyObject *by_reflected(const Node *self, PyObject *left, PyObject *right)
{
    PyTypeObject *kind = Py_TYPE(right);
    if (self->number < ADD || !(PyType_GetFlags(kind) & Py_TPFLAGS_HEAPTYPE)) return NULL;
    PyObject *find = PyTuple_GetItem(self->part[METHODS], FIND_REFLECTED);
    PyObject *method = special_method(self, REFLECTED, kind, find);
    return method ? entered_for(self, method, left, right, 1) : NULL;
}

/* The value of an operator of which one operand is a tensor, by its table; NULL with no exception
 * where the function in Python is to look. */
static PyObject *of_tensors(const Node *self, PyObject *left, PyObject *right)
{
    PyObject *by = self->part[METHODS], *table = PyTuple_GetItem(by, ON_TENSORS);
    PyObject *nodes[] = {left, right, self->part[LEFT_NODE], self->part[RIGHT_NODE]};
    if (self->number == REMAINDER || !all_are_own()) return NULL;
    PyObject *op = PyDict_GetItemWithError(table, PyTuple_GetItem(by, SYMBOL));
    if (!op) return NULL;
    Py_INCREF(op);
    PyObject *value = PyObject_CallFunctionObjArgs(op, left, right, NULL);
    Py_DECREF(op);
    return value ? value : after_error(PyTuple_GetItem(by, FAILED), nodes, 4);
}

/* The value of the operator of a node on two values. */
static PyObject *applied(const Node *self, PyObject *left, PyObject *right)
{
    long operator = self->number;
    PyObject *value = NULL;
    if (Py_IS_TYPE(left, &PyFloat_Type) && Py_IS_TYPE(right, &PyFloat_Type))
        value = of_floats(operator, PyFloat_AsDouble(left), PyFloat_AsDouble(right));
    if (value) return value;
    if (Py_IS_TYPE(left, known_class[TENSOR]) || Py_IS_TYPE(right, known_class[TENSOR])) {
        value = of_tensors(self, left, right);
        if (!value && PyErr_Occurred()) return NULL;
    } else if (is_number(left)) {
        if (operator < ADD) {
            if (is_plain(right)) value = PyObject_RichCompare(left, right, operator);
        } else if (is_number(right)) {
            value = of_numbers(operator, left, right);
        } else if (!(value = by_reflected(self, left, right)) && PyErr_Occurred()) {
            return NULL;
        }
    } else if (is_plain(left)) {
        if (operator < ADD && is_plain(right)) value = PyObject_RichCompare(left, right, operator);
        if (operator == ADD) value = joined(self->part[STATE], left, right);
    } else {
        if (operator == ADD) value = joined(self->part[STATE], left, right);
        if (!value) {
            PyErr_Clear(); /* of a concatenation, as below */
            value = by_method(self, left, right);
            if (!value && PyErr_Occurred()) return NULL;
        }
    }
    if (value) return value;
    PyErr_Clear(); /* the function in Python finds the same, and says it in the program's words */
    return PyObject_CallFunctionObjArgs(self->part[OTHERWISE], left, right, self->part[LEFT_NODE],
                                        self->part[RIGHT_NODE], NULL);
}

/* `left op right`: `number` is the operator; parts are what the function in Python is called with
 * behind the operands, the two nodes of the tree, and the function; then what finds a method of the
 * program's, what goes on where that declines, what says what its failure is, and what is learnt of
 * one. */
PyObject *run_binary(const Node *self, PyObject *variables)
{
    PyObject *left = value_of(self->part[LEFT], variables), *value = NULL;
    PyObject *right = left ? value_of(self->part[RIGHT], variables) : NULL;
    if (right && stand_at(self->part[STATE], self->part[PLACE]) == 0)
        value = applied(self, left, right);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return value;
}

/* Add what the host has added up of numbers, which are taken away. */
static PyObject *added_up(PyObject *host, PyObject *numbers, PyObject *total)
{
    PyObject *more = PyObject_CallFunctionObjArgs(host, numbers, total, NULL);
    Py_DECREF(total);
    if (more && PyList_SetSlice(numbers, 0, PyList_Size(numbers), NULL) < 0) Py_CLEAR(more);
    return more;
}

/* sum(node, host, values, start): the node of a `+` adds all but numbers in a row, which are left to
 * the host in one go: its sum of floats may be more exact than adding them one by one. */
PyObject *make_sum(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    enum { SUMMED_AT_ONCE = 1 << 16 };
    (void)module;
    if (count != 4 || !Py_IS_TYPE(given[0], node_type) || ((Node *)given[0])->run != run_binary ||
        !PyIter_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "sum(node, host, values, start)");
        return NULL;
    }
    PyObject *numbers = PyList_New(0), *total = numbers ? Py_NewRef(given[3]) : NULL, *value;
    while (total && (value = PyIter_Next(given[2]))) {
        int is_row = is_number(value) && is_number(total);
        if (is_row && PyList_Append(numbers, value) < 0) Py_CLEAR(total);
        Py_ssize_t length = PyList_Size(numbers);
        if (total && length && (!is_row || length == SUMMED_AT_ONCE))
            total = added_up(given[1], numbers, total);
        if (total && !is_row) {
            PyObject *before = total;
            total = applied((const Node *)given[0], before, value);
            Py_DECREF(before);
        }
        Py_DECREF(value);
    }
    if (PyErr_Occurred()) Py_CLEAR(total);
    if (total && PyList_Size(numbers)) total = added_up(given[1], numbers, total);
    Py_XDECREF(numbers);
    return total;
}

/* --- comparisons that are no binary operators ------------------------------------------------- */

enum { UNSURE = -2 };

/* Whether a container holds a value: -1 with an exception set, UNSURE where the function in Python is
 * to be called. */
static int holds(PyObject *container, PyObject *element)
{
    PyTypeObject *type = Py_TYPE(container);
    if (type == &PyUnicode_Type)
        return Py_IS_TYPE(element, &PyUnicode_Type) ? PyUnicode_Contains(container, element) : UNSURE;
    if (!is_easy_key(element)) return UNSURE;
    if (type == &PyDict_Type) return PyDict_Contains(container, element);
    if (type == &PySet_Type || type == &PyFrozenSet_Type) return PySet_Contains(container, element);
    return UNSURE;
}

/* Whether elements lie in an object of a class that derives from a container's. */
static int has_elements(PyObject *value)
{
    return PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value) || PyAnySet_Check(value);
}

/* `left in right`, and `not in` where `number` is 1; parts are the operands and the function, what
 * finds a method of the program's, and what is learnt of one. */
PyObject *run_contained(const Node *self, PyObject *variables)
{
    PyObject *left = value_of(self->part[LEFT], variables), *right = NULL, *value = NULL;
    if (!left) return NULL;
    if (!(right = value_of(self->part[RIGHT], variables))) goto end;
    if (stand_at(self->part[STATE], self->part[PLACE]) < 0) goto end;
    enum { HOLDS = RIGHT + 1, FIND_HOLDS, LEARNT_HOLDS };
    int found = holds(right, left);
    if (found == UNSURE && is_easy_key(left) && !has_elements(right)) {
        PyObject *given[] = {right, left};
        value = by_special_method(self, LEARNT_HOLDS, self->part[FIND_HOLDS], given, 2, NULL, 0);
        if (value) {
            found = PyObject_IsTrue(value);
            Py_CLEAR(value);
        } else if (PyErr_Occurred()) {
            found = -1;
        }
    }
    if (found == UNSURE)
        value = PyObject_CallFunctionObjArgs(self->part[HOLDS], left, right, NULL);
    else if (found >= 0)
        value = PyBool_FromLong(found != self->number);
end:
    Py_DECREF(left);
    Py_XDECREF(right);
    return value;
}

/* `left is right`, and `is not` where `number` is 1. */
PyObject *run_same(const Node *self, PyObject *variables)
{
    PyObject *left = value_of(self->part[0], variables);
    PyObject *right = left ? value_of(self->part[1], variables) : NULL;
    PyObject *value = right ? PyBool_FromLong((left == right) != self->number) : NULL;
    Py_XDECREF(left);
    Py_XDECREF(right);
    return value;
}

/* --- signs and truth -------------------------------------------------------------------------- */

/* `not value`. */
PyObject *run_negation(const Node *self, PyObject *variables)
{
    PyObject *value = value_of(self->part[FIRST], variables);
    if (!value) return NULL;
    int truth = stand_at(self->part[STATE], self->part[PLACE]) < 0 ? -1 : PyObject_Not(value);
    Py_DECREF(value);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

/* `-value`, `+value` where `number` is 1, `~value` where it is 2. */
PyObject *run_signed_number(const Node *self, PyObject *variables)
{
    enum { VALUE = FIRST, OTHERWISE };
    PyObject *value = value_of(self->part[VALUE], variables), *result = NULL;
    if (!value) return NULL;
    if (stand_at(self->part[STATE], self->part[PLACE]) == 0) {
        if (self->number == 0 && is_number(value)) result = PyNumber_Negative(value);
        if (!result) {
            PyErr_Clear();
            result = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], value, NULL);
        }
    }
    Py_DECREF(value);
    return result;
}

/* `a and b`, and `or` where `number` is 1: behind the state there are an operand and its place, in
 * turn, and the last operand. */
PyObject *run_deciding(const Node *self, PyObject *variables)
{
    Py_ssize_t last = parts_of(self) - 1;
    for (Py_ssize_t k = 1; k < last; k += 2) {
        PyObject *value = value_of(self->part[k], variables);
        if (!value) return NULL;
        int truth = stand_at(self->part[STATE], self->part[k + 1]) < 0 ? -1 : PyObject_IsTrue(value);
        if (truth == self->number) return value;
        Py_DECREF(value);
        if (truth < 0) return NULL;
    }
    return value_of(self->part[last], variables);
}

int decides(PyObject *value, PyObject *state, PyObject *place)
{
    if (!value) return -1;
    int truth = place != Py_None && stand_at(state, place) < 0 ? -1
                : Py_IS_TYPE(value, &PyBool_Type)              ? value == Py_True
                                                               : PyObject_IsTrue(value);
    Py_DECREF(value);
    return truth;
}

/* `body if test else orelse`. */
PyObject *run_conditional(const Node *self, PyObject *variables)
{
    enum { TEST = FIRST, BODY, OTHER };
    int truth = decides(value_of(self->part[TEST], variables), self->part[STATE], self->part[PLACE]);
    if (truth < 0) return NULL;
    return value_of(self->part[truth ? BODY : OTHER], variables);
}
