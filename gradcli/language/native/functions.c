/* What `def` and `lambda` make. */

#include "node.h"

/* Where a function has its slots, and one that is counted its body. */
static Py_ssize_t size, defaults_at, parent_at, hot_at, body_at, run_at;
static PyObject *enter_by;

#define AT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* know_functions(function, hot, enter_by): new objects of both classes, and what lets a function run
 * what is written of its body. */
PyObject *know_functions(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "know_functions(function, hot, enter_by)");
        return NULL;
    }
    defaults_at = offset_of(given[0], "defaults");
    parent_at = offset_of(given[0], "parent");
    hot_at = offset_of(given[0], "hot");
    body_at = offset_of(given[0], "body");
    run_at = offset_of(given[1], "run");
    PyObject *basic = PyObject_GetAttrString((PyObject *)Py_TYPE(given[0]), "__basicsize__");
    size = basic ? PyLong_AsSsize_t(basic) : -1;
    Py_XDECREF(basic);
    enter_by = Py_NewRef(given[2]);
    if (defaults_at < 0 || parent_at < 0 || hot_at < 0 || body_at < 0 || run_at < 0)
        PyErr_SetString(PyExc_TypeError, "no slot");
    if (size < 0 || PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* Let a slot hold something else, which is given up. */
static void replace(PyObject **slot, PyObject *value)
{
    PyObject *before = *slot;
    *slot = value;
    Py_XDECREF(before);
}

/* A function like the first part, a record of slots alone, with these variables around it; behind it
 * there are the names of parameters with the expressions of their defaults. */
PyObject *run_function(const Node *self, PyObject *variables)
{
    PyObject *like = self->part[0], *defaults = PyDict_New(), *function = NULL, *hot;
    for (Py_ssize_t k = 1; k < parts_of(self) && defaults; k += 2) {
        PyObject *value = value_of(self->part[k + 1], variables);
        if (!value || PyDict_SetItem(defaults, self->part[k], value) < 0) Py_CLEAR(defaults);
        Py_XDECREF(value);
    }
    if (!defaults || !(function = PyType_GenericAlloc(Py_TYPE(like), 0))) {
        Py_XDECREF(defaults);
        return NULL;
    }
    for (Py_ssize_t at = sizeof(PyObject); at < size; at += sizeof(PyObject *))
        AT(function, at) = Py_XNewRef(AT(like, at));
    replace(&AT(function, defaults_at), defaults);
    replace(&AT(function, parent_at), Py_NewRef(variables));
    hot = AT(like, hot_at);
    if (hot != Py_None && AT(hot, run_at) != Py_None) {
        PyObject *done = PyObject_CallFunctionObjArgs(enter_by, function, AT(like, body_at), NULL);
        if (!done) Py_CLEAR(function);
        Py_XDECREF(done);
    }
    return function;
}
