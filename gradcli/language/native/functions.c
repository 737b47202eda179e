/* What `def` and `lambda` make. */

#include "node.h"

/* A function like the first part, a record of slots alone, with these variables around it, unless
 * `number` is 0 and it keeps those of the first; behind that there are the names of parameters with
 * the expressions of their defaults. */
PyObject *run_function(const Node *self, PyObject *variables)
{
    PyObject *like = self->part[0], *function = NULL, *hot, *defaults;
    find_locals(like);
    int shares = parts_of(self) == 1; /* the dict of no defaults, to which nothing is added */
    defaults = shares ? Py_NewRef(AT(like, FUNCTION_defaults)) : PyDict_New();
    for (Py_ssize_t k = 1; k < parts_of(self) && defaults; k += 2) {
        PyObject *value = value_of(self->part[k + 1], variables);
        if (!value || PyDict_SetItem(defaults, self->part[k], value) < 0) Py_CLEAR(defaults);
        Py_XDECREF(value);
    }
    if (!defaults || !(function = copy_of(FUNCTION, like))) {
        Py_XDECREF(defaults);
        return NULL;
    }
    replace(&AT(function, FUNCTION_defaults), defaults);
    if (self->number) replace(&AT(function, FUNCTION_parent), Py_NewRef(variables));
    hot = AT(like, FUNCTION_hot);
    if (hot != Py_None && AT(hot, HOT_run) != Py_None) {
        PyObject *done = PyObject_CallFunctionObjArgs(helper[ENTER_BY], function,
                                                      AT(like, FUNCTION_body), NULL);
        if (!done) Py_CLEAR(function);
        Py_XDECREF(done);
    }
    return function;
}
