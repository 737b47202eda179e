/* Lists, tuples and dicts as they are written, f-strings, and comprehensions of lists and dicts. */

#include "node.h"

/* `[a, b]`. */
PyObject *run_list(const Node *self, PyObject *variables)
{
    Py_ssize_t count = parts_of(self);
    PyObject *list = PyList_New(count);
    for (Py_ssize_t k = 0; k < count && list; k++) {
        PyObject *value = value_of(self->part[k], variables);
        if (!value) Py_CLEAR(list);
        else PyList_SetItem(list, k, value);
    }
    return list;
}

/* `a, b`. */
PyObject *run_tuple(const Node *self, PyObject *variables)
{
    Py_ssize_t count = parts_of(self);
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t k = 0; k < count && tuple; k++) {
        PyObject *value = value_of(self->part[k], variables);
        if (!value) Py_CLEAR(tuple);
        else PyTuple_SetItem(tuple, k, value);
    }
    return tuple;
}

/* Enter a key and its value into a dict. */
static int entered_item(const Node *self, PyObject *enter, PyObject *place, PyObject *dict, PyObject *key,
                        PyObject *value)
{
    if (stand_at(self->part[STATE], place) < 0) return -1;
    if (is_plain_key(key)) return PyDict_SetItem(dict, key, value);
    PyObject *done = PyObject_CallFunctionObjArgs(enter, dict, key, value, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* `{key: value}`: behind the state, and what enters an item whose key is to be looked at, there are
 * a key, a value and the place of the value, in turn. */
PyObject *run_dict(const Node *self, PyObject *variables)
{
    enum { ENTER = 1, ITEMS };
    PyObject *dict = PyDict_New();
    for (Py_ssize_t k = ITEMS; k < parts_of(self) && dict; k += 3) {
        PyObject *key = value_of(self->part[k], variables);
        PyObject *value = key ? value_of(self->part[k + 1], variables) : NULL;
        int failed = !value ||
                     entered_item(self, self->part[ENTER], self->part[k + 2], dict, key, value) < 0;
        Py_XDECREF(key);
        Py_XDECREF(value);
        if (failed) Py_CLEAR(dict);
    }
    return dict;
}

/* --- f-strings -------------------------------------------------------------------------------- */

/* `{value:spec}` with a spec that is written: `number` says whether its numbers are within the
 * limits. */
PyObject *run_field(const Node *self, PyObject *variables)
{
    enum { VALUE = FIRST, SPEC, OTHERWISE };
    PyObject *value = value_of(self->part[VALUE], variables), *text = NULL, *spec = self->part[SPEC];
    if (!value) return NULL;
    if (stand_at(self->part[STATE], self->part[PLACE]) < 0) goto end;
    int is_text = Py_IS_TYPE(value, &PyUnicode_Type);
    if (PyUnicode_GetLength(spec) == 0) {
        if (is_text) text = Py_NewRef(value);
        else if (is_number(value)) text = PyObject_Repr(value);
    } else if (self->number && (is_text || is_number(value))) {
        text = PyObject_Format(value, spec);
    }
    if (!text) {
        PyErr_Clear();
        text = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], value, spec, NULL);
    }
end:
    Py_DECREF(value);
    return text;
}

/* An f-string: texts and fields, behind what joins those that are too long. */
PyObject *run_formatted(const Node *self, PyObject *variables)
{
    enum { JOIN = FIRST, PIECES };
    static PyObject *nothing;
    Py_ssize_t count = parts_of(self) - PIECES, length = 0;
    PyObject *pieces = PyList_New(count), *text = NULL;
    if (!pieces || (!nothing && !(nothing = PyUnicode_InternFromString("")))) goto end;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *part = self->part[PIECES + k];
        part = Py_IS_TYPE(part, &PyUnicode_Type) ? Py_NewRef(part) : value_of(part, variables);
        if (!part) goto end;
        Py_ssize_t more = PyUnicode_Check(part) ? PyUnicode_GetLength(part) : -1;
        length = more < 0 || length < 0 ? -1 : length + more;
        PyList_SetItem(pieces, k, part);
    }
    if (stand_at(self->part[STATE], self->part[PLACE]) < 0) goto end;
    Py_ssize_t most = most_elements(self->part[STATE]);
    if (most < 0) goto end;
    text = length < 0 || length > most
               ? PyObject_CallFunctionObjArgs(self->part[JOIN], self->part[STATE], pieces, NULL)
               : PyUnicode_Join(nothing, pieces);
end:
    Py_XDECREF(pieces);
    return text;
}

/* --- comprehensions --------------------------------------------------------------------------- */

enum {
    ITERABLE = FIRST, /* what gives the values */
    TARGET,           /* the name that they are bound to, or None */
    STORE,            /* what binds them where that is None, and tensors */
    STEPS,
    ITERATE,          /* what makes an iterator of any value */
    OF_KIND,          /* where those begin that a list has, or a dict */
    WHOLE = OF_KIND,  /* what makes the list of many values */
    ELEMENT,
    LIST_CONDITIONS,
    ENTER_ITEM = OF_KIND, /* what enters an item whose key is to be looked at */
    KEY,
    ITEM,
    AT_ITEM,              /* the place of both */
    DICT_CONDITIONS
};

/* Bind a value; whether all conditions, from that part on, are true, -1 with an exception set. */
static int takes(const Node *self, Py_ssize_t conditions, PyObject *inside, PyObject *value)
{
    if (charge_step(self->part[STEPS]) < 0) return -1;
    int by_store = self->part[TARGET] == Py_None || self->locals;
    int failed = by_store || Py_IS_TYPE(value, known_class[TENSOR])
                     ? store_in(self->part[STORE], inside, value)
                     : PyDict_SetItem(inside, self->part[TARGET], value);
    if (failed < 0) return -1;
    int holds = 1;
    for (Py_ssize_t k = conditions; k < parts_of(self) && holds > 0; k++) {
        PyObject *condition = value_of(self->part[k], inside);
        holds = condition ? PyObject_IsTrue(condition) : -1;
        Py_XDECREF(condition);
    }
    return holds;
}

/* Bind a value, and append the element to the list unless a condition is false. */
static int iterate(const Node *self, PyObject *inside, PyObject *value, PyObject *list)
{
    int holds = takes(self, LIST_CONDITIONS, inside, value);
    if (holds < 0) return -1;
    if (holds) {
        PyObject *element = value_of(self->part[ELEMENT], inside);
        int failed = !element || PyList_Append(list, element) < 0;
        Py_XDECREF(element);
        if (failed) return -1;
    }
    return stand_at(self->part[STATE], self->part[PLACE]);
}

/* Bind a value, and enter the item into the dict unless a condition is false. */
static int iterate_items(const Node *self, PyObject *inside, PyObject *value, PyObject *dict)
{
    PyObject *const *part = self->part;
    int holds = takes(self, DICT_CONDITIONS, inside, value);
    if (holds < 0) return -1;
    if (holds) {
        PyObject *key = value_of(part[KEY], inside), *item = key ? value_of(part[ITEM], inside) : NULL;
        int failed = !item || entered_item(self, part[ENTER_ITEM], part[AT_ITEM], dict, key, item) < 0;
        Py_XDECREF(key);
        Py_XDECREF(item);
        if (failed) return -1;
    }
    return stand_at(part[STATE], part[PLACE]);
}

/* Run all iterations over values; 0, or -1 with an exception set. */
static int iterate_all(const Node *self, PyObject *variables, PyObject *values, PyObject *result,
                       int (*each)(const Node *, PyObject *, PyObject *, PyObject *))
{
    PyTypeObject *kind = Py_TYPE(values);
    int is_sized = kind == &PyList_Type || kind == &PyTuple_Type || kind == &PyUnicode_Type ||
                   kind == &PyRange_Type;
    PyObject *slots[1 + MOST_LOCALS] = {NULL}, *inside = NULL, *value;
    PyObject *iterator = is_sized
                             ? PyObject_GetIter(values)
                             : PyObject_CallFunctionObjArgs(self->part[ITERATE], values, NULL);
    find_locals_inside((Node *)self);
    if (self->locals) {
        slots[0] = Py_NewRef(variables);
        inside = (PyObject *)slots;
    } else if (iterator) {
        inside = variables_inside(variables);
    }
    int failed = !iterator || !inside;
    while (!failed && (value = PyIter_Next(iterator))) {
        failed = each(self, inside, value, result) < 0 || PyErr_CheckSignals() < 0;
        Py_DECREF(value);
    }
    failed = failed || PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(iterator);
    if (self->locals) drop_locals(self, slots);
    else Py_XDECREF(inside);
    return failed;
}

/* `{key: value for target in iterable if condition}`. */
PyObject *run_items(const Node *self, PyObject *variables)
{
    PyObject *values = value_of(self->part[ITERABLE], variables), *dict = NULL;
    if (!values) return NULL;
    if (stand_at(self->part[STATE], self->part[PLACE]) == 0) dict = PyDict_New();
    if (dict && iterate_all(self, variables, values, dict, iterate_items) < 0) Py_CLEAR(dict);
    Py_DECREF(values);
    return dict;
}

/* `[element for target in iterable if condition]`: `number` elements more, and it is hot. */
PyObject *run_comprehension(const Node *self, PyObject *variables)
{
    PyObject *values = value_of(self->part[ITERABLE], variables), *list = NULL;
    if (!values) return NULL;
    if (stand_at(self->part[STATE], self->part[PLACE]) < 0) goto end;
    PyTypeObject *kind = Py_TYPE(values);
    int is_sized = kind == &PyList_Type || kind == &PyTuple_Type || kind == &PyUnicode_Type ||
                   kind == &PyRange_Type;
    Py_ssize_t length = is_sized ? PyObject_Size(values) : 0;
    if (length < 0) PyErr_Clear(); /* a range that is longer than the host says */
    if (length < 0 || length >= self->number) {
        list = PyObject_CallFunctionObjArgs(self->part[WHOLE], variables, values, NULL);
        goto end;
    }
    list = PyList_New(0);
    if (list && iterate_all(self, variables, values, list, iterate) < 0) Py_CLEAR(list);
    if (list) ((Node *)self)->number -= (long)PyList_Size(list);
end:
    Py_DECREF(values);
    return list;
}
