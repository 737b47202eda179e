/* Constants, and names that are read, or lose their value. */

#include "node.h"

PyObject *run_constant(const Node *self, PyObject *variables)
{
    (void)variables;
    return Py_NewRef(self->part[0]);
}

PyObject *outward(PyObject *variables, long distance)
{
    PyObject *key, *first;
    while (distance-- > 0 && variables) {
        Py_ssize_t at = 0; /* where `variables_inside` puts them */
        if (PyDict_Next(variables, &at, &key, &first) && key == parent_key) variables = first;
        else variables = PyDict_GetItemWithError(variables, parent_key);
    }
    if (!variables && !PyErr_Occurred())
        PyErr_SetString(PyExc_SystemError, "no variables around it");
    return variables;
}

PyObject *read_outward(const Node *self, PyObject *variables, long distance)
{
    enum { NAME, SPAN, OTHERWISE };
    variables = outward(variables, distance);
    PyObject *value = variables ? named((Node *)self, variables, NAME) : NULL;
    if (value) return Py_NewRef(value);
    if (PyErr_Occurred()) return NULL;
    return PyObject_CallFunctionObjArgs(self->part[OTHERWISE], self->part[NAME],
                                        self->number ? Py_True : Py_False, self->part[SPAN], NULL);
}

/* A name of a function, `number` functions outward. */
PyObject *run_own(const Node *self, PyObject *variables)
{
    PyObject *value = self->number ? NULL : named((Node *)self, variables, 0);
    if (value) return Py_NewRef(value);
    return read_outward(self, variables, self->number);
}

/* A name of the program, or else of the table that predefines it: a part learns that. */
PyObject *run_program(const Node *self, PyObject *variables)
{
    enum { NAME, VALUES, TABLE, SPAN, PREDEFINED, OTHERWISE };
    (void)variables;
    PyObject *value = NULL, *table;
    if (self->part[TABLE] == Py_None) {
        value = named((Node *)self, self->part[VALUES], NAME);
    } else if (!(value = PyDict_GetItemWithError(self->part[VALUES], self->part[NAME])) &&
               !PyErr_Occurred()) {
        value = named((Node *)self, self->part[TABLE], NAME);
    }
    if (value) return Py_NewRef(value);
    if (PyErr_Occurred()) return NULL;
    if (PyDict_GetItemWithError(helper[BUILTINS], self->part[NAME])) /* which is looked into first */
        table = Py_NewRef(helper[BUILTINS]);
    else
        table = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], self->part[PREDEFINED],
                                             self->part[NAME], self->part[VALUES], self->part[SPAN], NULL);
    if (!table) return NULL;
    put((Node *)self, TABLE, table);
    value = PyObject_GetItem(table, self->part[NAME]);
    Py_DECREF(table);
    return value;
}

/* Take the value of a name away, if it has one: a name of the program where there are its values, else of
 * the function so far outward. */
PyObject *run_unnamed(const Node *self, PyObject *variables)
{
    enum { NAME, VALUES };
    PyObject *holder = self->part[VALUES];
    if (holder == Py_None && !(holder = outward(variables, self->number))) return NULL;
    if (PyDict_GetItemWithError(holder, self->part[NAME]) &&
        PyDict_DelItem(holder, self->part[NAME]) < 0)
        return NULL;
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}
