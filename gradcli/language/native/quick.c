/* Calls of what programs have of Python's own: built-in functions, classes, methods of text, lists,
 * dicts and sets.
 *
 * The functions in Python that stand for them check limits first, and do the same as the host's for
 * values that are no more than small and plain. A value that is anything else is theirs. */

#include "node.h"

enum { PIECE = 16, COPIED = 256, MOST_QUICK = 256, MOST_COMPARED = 16, SUMMED_AT_ONCE = 1 << 16 };

/* What a call does, in the order of `DOES` in calls.py. */
enum {
    LENGTH, IS_INSTANCE, ABSOLUTE, LEAST, LARGEST, SUM, TO_TEXT, TO_INTEGER, TO_FLOAT, TO_BOOL,
    TO_LIST, TO_TUPLE, TO_SET, NUMBERS, APPEND, JOIN, OF_TEXT, OF_LIST, GET, BY_KEY, ADD, BESIDE, EXCEPTION
};

/* A function of the library's, what a call of it does, and the host's function that does it. */
typedef struct {
    PyObject *called, *host;
    long does;
} Quick;

/* By the address, with room for as many again. */
static Quick table[2 * MOST_QUICK];
static long entries;

static Quick *place_of(PyObject *called)
{
    size_t at = ((size_t)called >> 4) * 0x9E3779B1u % (2 * MOST_QUICK);
    while (table[at].called && table[at].called != called) at = (at + 1) % (2 * MOST_QUICK);
    return &table[at];
}

int asks_length(PyObject *called)
{
    const Quick *quick = place_of(called);
    return quick->called && quick->does == LENGTH;
}

/* know_quick(does, called, host): a call of `called` may be made here. */
PyObject *know_quick(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    long does = count == 3 ? PyLong_AsLong(given[0]) : -1;
    if (does < 0 || does > EXCEPTION) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "know_quick(does, called, host)");
        return NULL;
    }
    Quick *quick = place_of(given[1]);
    if (!quick->called && entries < MOST_QUICK) {
        entries++;
        *quick = (Quick){Py_NewRef(given[1]), Py_NewRef(given[2]), does};
    }
    Py_RETURN_NONE;
}

/* --- limits ----------------------------------------------------------------------------------- */

/* Count what the host goes through in one go; 0 where the function in Python is to do it. */
static int charge_values(PyObject *state, Py_ssize_t values)
{
    Py_ssize_t count = values / PIECE;
    if (!count) return 1;
    PyObject *steps = AT(state, SESSION_steps);
    int many, more;
    long long left = PyLong_AsLongLongAndOverflow(AT(steps, COUNTS_left), &many);
    long long charged = PyLong_AsLongLongAndOverflow(AT(steps, COUNTS_charged), &more);
    if (many || more || left < count) return 0;
    PyObject *now = PyLong_FromLongLong(left - count), *by_host = PyLong_FromLongLong(charged + count);
    int done = now && by_host;
    if (done) {
        replace(&AT(steps, COUNTS_left), Py_NewRef(now));
        replace(&AT(steps, COUNTS_charged), Py_NewRef(by_host));
    }
    Py_XDECREF(now);
    Py_XDECREF(by_host);
    PyErr_Clear();
    return done;
}

/* Whether so many elements are within the limit. */
static int fit(PyObject *state, Py_ssize_t elements)
{
    Py_ssize_t most = most_elements(state);
    PyErr_Clear();
    return elements <= most;
}

/* --- values ----------------------------------------------------------------------------------- */

static int is_sequence(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyList_Type || type == &PyTuple_Type || type == &PyUnicode_Type;
}

static int is_sized(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return is_sequence(value) || type == &PyDict_Type || type == &PySet_Type ||
           type == &PyFrozenSet_Type || type == &PyRange_Type;
}

/* Whether a value is an instance of a class, or of one of several: -1 where the function in Python
 * is to say. */
static int is_instance(PyObject *value, PyObject *cls)
{
    if (Py_IS_TYPE(cls, &PyTuple_Type)) {
        int found = 0;
        for (Py_ssize_t k = 0; k < PyTuple_Size(cls) && !found; k++) {
            PyObject *each = PyTuple_GetItem(cls, k);
            found = Py_IS_TYPE(each, &PyTuple_Type) ? -1 : is_instance(value, each);
        }
        return found;
    }
    if (!Py_IS_TYPE(cls, known_class[LANGUAGE_TYPE]) && !Py_IS_TYPE(cls, known_class[USER_CLASS]))
        return -1;
    PyObject *hosts = Py_NewRef(AT(cls, LANGUAGE_TYPE_hosts));
    int found = Py_IS_TYPE(hosts, &PyTuple_Type) ? 0 : -1;
    for (Py_ssize_t k = 0; found == 0 && k < PyTuple_Size(hosts); k++) {
        PyObject *host = PyTuple_GetItem(hosts, k);
        if (!PyType_Check(host) || PyType_Check(value)) found = -1;
        else found = PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)host);
    }
    Py_DECREF(hosts);
    /* What a class of ours answers may be more. */
    return found || is_plain(value) || is_sized(value) ? found : -1;
}

/* The least or the largest of numbers, a new reference; NULL where there is something else. */
static PyObject *extreme(PyObject *const *given, Py_ssize_t count, int wanted)
{
    PyObject *best = NULL;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyTypeObject *type = Py_TYPE(given[k]);
        if (type != &PyLong_Type && type != &PyFloat_Type) return NULL;
        if (!best || PyObject_RichCompareBool(given[k], best, wanted) > 0) best = given[k];
    }
    Py_XINCREF(best);
    return best;
}

static PyObject *extreme_of(PyObject *const *given, Py_ssize_t count, int wanted)
{
    PyObject *items[MOST_COMPARED];
    if (count != 1) return extreme(given, count, wanted);
    if (!Py_IS_TYPE(given[0], &PyList_Type) && !Py_IS_TYPE(given[0], &PyTuple_Type)) return NULL;
    Py_ssize_t length = PyObject_Size(given[0]);
    if (!length || length >= MOST_COMPARED) return NULL;
    for (Py_ssize_t k = 0; k < length; k++)
        items[k] = Py_IS_TYPE(given[0], &PyList_Type) ? PyList_GetItem(given[0], k)
                                                      : PyTuple_GetItem(given[0], k);
    return extreme(items, length, wanted);
}

/* The sum of a list or tuple of numbers. */
static PyObject *sum(PyObject *state, PyObject *host, PyObject *values)
{
    if (!Py_IS_TYPE(values, &PyList_Type) && !Py_IS_TYPE(values, &PyTuple_Type)) return NULL;
    Py_ssize_t length = PyObject_Size(values);
    if (length >= SUMMED_AT_ONCE) return NULL;
    for (Py_ssize_t k = 0; k < length; k++)
        if (!is_number(Py_IS_TYPE(values, &PyList_Type) ? PyList_GetItem(values, k)
                                                        : PyTuple_GetItem(values, k)))
            return NULL;
    if (!fit(state, length) || !charge_values(state, length)) return NULL;
    return PyObject_CallFunctionObjArgs(host, values, NULL);
}

/* The sum of what an iterator of programs' has and of a number or an object of the program's: `by` has
 * the host's function, what adds up before the node is known that does it, and what raises for an error
 * of the host's. */
static PyObject *sum_drawn(PyObject *state, PyObject *by, PyObject *const *given, Py_ssize_t count)
{
    enum { HOST, ADDED_UP, CONVERT };
    if (count > 2 || !Py_IS_TYPE(given[0], known_class[ITERATOR]) || !all_are_own()) return NULL;
    if (count == 2 && !is_number(given[1]) && !PyType_IsSubtype(Py_TYPE(given[1]), known_class[INSTANCE]))
        return NULL;
    PyObject *draws[] = {AT(given[0], ITERATOR_source), state, PyTuple_GetItem(by, CONVERT)};
    PyObject *start = count == 2 ? Py_NewRef(given[1]) : PyLong_FromLong(0), *total = NULL;
    PyObject *values = start ? make_drawing(NULL, draws, 3) : NULL, *node = AT(state, SESSION_addition);
    PyObject *added[] = {node, PyTuple_GetItem(by, HOST), values, start};
    if (values && node == Py_None)
        total = PyObject_CallFunctionObjArgs(PyTuple_GetItem(by, ADDED_UP), values, start, NULL);
    else if (values)
        total = make_sum(NULL, added, 4);
    Py_XDECREF(values);
    Py_XDECREF(start);
    return total;
}

/* `str(value)`, `int(value)`, `float(value)` or `bool(value)` of a number or a text, or `str(error)`; the
 * exception is left set that says of a text that it is no number. */
static PyObject *converted(long does, PyObject *value)
{
    int is_text = Py_IS_TYPE(value, &PyUnicode_Type);
    PyObject *result = NULL;
    if (does == TO_TEXT && Py_IS_TYPE(value, (PyTypeObject *)helper[RAISED]))
        return PyObject_GetAttr(value, text_key);
    if (!is_text && !is_number(value)) return NULL;
    switch (does) {
    case TO_TEXT: result = is_text ? Py_NewRef(value) : PyObject_Repr(value); break;
    case TO_INTEGER: result = PyNumber_Long(value); break;
    case TO_FLOAT: result = PyNumber_Float(value); break;
    default: result = PyBool_FromLong(PyObject_IsTrue(value));
    }
    if (!result && !(is_text && PyErr_ExceptionMatches(PyExc_ValueError))) PyErr_Clear();
    return result;
}

static int are_easy_keys(PyObject *values)
{
    if (Py_IS_TYPE(values, &PyUnicode_Type)) return 1;
    for (Py_ssize_t k = 0; k < PyObject_Size(values); k++)
        if (!is_easy_key(Py_IS_TYPE(values, &PyList_Type) ? PyList_GetItem(values, k)
                                                          : PyTuple_GetItem(values, k)))
            return 0;
    return 1;
}

/* A list or tuple of what an iterator of programs' has; `convert` raises for an error of the host's. */
static PyObject *drawn(PyObject *state, long does, PyObject *iterator, PyObject *convert)
{
    PyObject *draws[] = {AT(iterator, ITERATOR_source), state, convert}, *made = NULL;
    PyObject *values = make_drawing(NULL, draws, 3);
    if (values) made = does == TO_LIST ? PySequence_List(values) : PySequence_Tuple(values);
    Py_XDECREF(values);
    return made;
}

/* `list(values)`, `tuple(values)` or `set(values)`. */
static PyObject *collected(PyObject *state, const Quick *quick, PyObject *values)
{
    long does = quick->does;
    if (does != TO_SET && Py_IS_TYPE(values, known_class[ITERATOR]))
        return drawn(state, does, values, quick->host);
    if (!is_sized(values)) return NULL;
    if (does == TO_TUPLE && Py_IS_TYPE(values, &PyTuple_Type)) return Py_NewRef(values);
    if (does == TO_SET && (Py_IS_TYPE(values, &PySet_Type) || Py_IS_TYPE(values, &PyFrozenSet_Type)))
        return PySet_New(values);
    if (does == TO_SET && !(is_sequence(values) && are_easy_keys(values))) return NULL;
    Py_ssize_t length = PyObject_Size(values);
    if (length < 0) PyErr_Clear();
    if (length < 0 || !fit(state, length) || !charge_values(state, length)) return NULL;
    if (does == TO_SET) return PySet_New(values);
    return does == TO_LIST ? PySequence_List(values) : PySequence_Tuple(values);
}

/* `separator.join(values)` of texts. */
static PyObject *joined(PyObject *state, PyObject *separator, PyObject *values)
{
    int is_list = Py_IS_TYPE(values, &PyList_Type);
    if (!Py_IS_TYPE(separator, &PyUnicode_Type) || !(is_list || Py_IS_TYPE(values, &PyTuple_Type)))
        return NULL;
    Py_ssize_t count = PyObject_Size(values), length = PyUnicode_GetLength(separator) * count;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *piece = is_list ? PyList_GetItem(values, k) : PyTuple_GetItem(values, k);
        if (!Py_IS_TYPE(piece, &PyUnicode_Type)) return NULL;
        length += PyUnicode_GetLength(piece);
    }
    if (!fit(state, length) || !fit(state, count) || !charge_values(state, count)) return NULL;
    return PyUnicode_Join(separator, values);
}

/* --- calls ------------------------------------------------------------------------------------ */

/* The host's function, called with the arguments, of which there are three at most. */
static PyObject *by_host(PyObject *host, PyObject *const *given, Py_ssize_t count)
{
    return PyObject_CallFunctionObjArgs(host, count > 0 ? given[0] : NULL,
                                        count > 1 ? given[1] : NULL, count > 2 ? given[2] : NULL,
                                        NULL);
}

/* Whether a method of a short text or list does what the host's does, and nothing else counts. */
static int is_short(PyObject *value, PyTypeObject *type)
{
    return Py_IS_TYPE(value, type) && PyObject_Size(value) < COPIED;
}

/* keys(state, key, items): what a function gives for each item of a list. */
PyObject *make_keys(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !PyList_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "keys(state, key, items)");
        return NULL;
    }
    PyObject *key = given[1], *keys = PyList_New(0);
    for (Py_ssize_t k = 0; keys && k < PyList_Size(given[2]); k++) {
        PyObject *item = Py_NewRef(PyList_GetItem(given[2], k)), *value = NULL;
        if (Py_IS_TYPE(key, known_class[METHOD])) {
            PyObject *both[] = {AT(key, METHOD_receiver), item};
            value = quick_call(given[0], AT(key, METHOD_function), both, 2);
            if (!value && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); /* said below */
        }
        if (!value && !PyErr_Occurred()) value = PyObject_CallFunctionObjArgs(key, item, NULL);
        if (!value || PyList_Append(keys, value) < 0 || breathe() < 0) Py_CLEAR(keys);
        Py_XDECREF(value);
        Py_DECREF(item);
    }
    return keys;
}

static PyObject *got(PyObject *const *given, Py_ssize_t count)
{
    if ((count != 2 && count != 3) || !Py_IS_TYPE(given[0], &PyDict_Type) || !is_easy_key(given[1]))
        return NULL;
    PyObject *found = PyDict_GetItemWithError(given[0], given[1]);
    if (!found && !PyErr_Occurred()) found = count == 3 ? given[2] : Py_None;
    Py_XINCREF(found);
    return found;
}

/* `zip(values, …)` or `enumerate(values)` of sequences, which never fail: `by` has the host's function,
 * and an iterator that is like the one to be made. */
static PyObject *beside(PyObject *by, PyObject *const *given, Py_ssize_t count)
{
    PyObject *host = PyTuple_GetItem(by, 0), *source, *values, *made;
    if (count > 1 && host == (PyObject *)&PyEnum_Type) return NULL;
    for (Py_ssize_t k = 0; k < count; k++)
        if (!is_sequence(given[k]) && !Py_IS_TYPE(given[k], &PyRange_Type)) return NULL;
    if (!(source = by_host(host, given, count))) return NULL;
    values = PyTuple_New(count);
    for (Py_ssize_t k = 0; values && k < count; k++) PyTuple_SetItem(values, k, Py_NewRef(given[k]));
    made = values ? iterator_like(PyTuple_GetItem(by, 1), source, NULL) : NULL;
    if (made) replace(&AT(made, ITERATOR_values), Py_NewRef(values));
    Py_DECREF(source);
    Py_XDECREF(values);
    return made;
}

PyObject *quick_call(PyObject *state, PyObject *called, PyObject *const *given, Py_ssize_t count)
{
    const Quick *quick = place_of(called);
    if (quick->called != called || count > 3) return NULL;
    if (quick->does == EXCEPTION) return new_raised(quick->host, given, count);
    if (!count) return NULL;
    PyObject *first = given[0];
    switch (quick->does) {
    case LENGTH: return count == 1 && is_sized(first) ? PyLong_FromSsize_t(PyObject_Size(first)) : NULL;
    case IS_INSTANCE: {
        int found = count == 2 ? is_instance(first, given[1]) : -1;
        return found < 0 ? NULL : PyBool_FromLong(found);
    }
    case ABSOLUTE: return count == 1 && is_number(first) ? PyNumber_Absolute(first) : NULL;
    case LEAST: return extreme_of(given, count, Py_LT);
    case LARGEST: return extreme_of(given, count, Py_GT);
    case SUM: {
        PyObject *total = sum_drawn(state, quick->host, given, count);
        if (total || PyErr_Occurred() || count != 1) return total;
        return sum(state, PyTuple_GetItem(quick->host, 0), first);
    }
    case TO_TEXT:
    case TO_INTEGER:
    case TO_FLOAT:
    case TO_BOOL: return count == 1 ? converted(quick->does, first) : NULL;
    case TO_LIST:
    case TO_TUPLE:
    case TO_SET: return count == 1 ? collected(state, quick, first) : NULL;
    case NUMBERS:
        for (Py_ssize_t k = 0; k < count; k++)
            if (!Py_IS_TYPE(given[k], &PyLong_Type)) return NULL;
        return by_host(quick->host, given, count);
    case APPEND:
        if (count != 2 || !Py_IS_TYPE(first, &PyList_Type) || !fit(state, PyList_Size(first) + 1))
            return NULL;
        return PyList_Append(first, given[1]) < 0 ? NULL : Py_NewRef(Py_None);
    case JOIN: return count == 2 ? joined(state, first, given[1]) : NULL;
    case OF_TEXT: return is_short(first, &PyUnicode_Type) ? by_host(quick->host, given, count) : NULL;
    case OF_LIST: return is_short(first, &PyList_Type) ? by_host(quick->host, given, count) : NULL;
    case GET: return got(given, count);
    case BY_KEY:
        if (count < 2 || !(Py_IS_TYPE(first, &PyDict_Type) || Py_IS_TYPE(first, &PySet_Type)) ||
            !is_easy_key(given[1]))
            return NULL;
        return by_host(quick->host, given, count);
    case ADD:
        if (count != 2 || !Py_IS_TYPE(first, &PySet_Type) || !is_easy_key(given[1])) return NULL;
        return PySet_Add(first, given[1]) < 0 ? NULL : Py_NewRef(Py_None);
    case BESIDE: return beside(quick->host, given, count);
    default: return NULL;
    }
}
