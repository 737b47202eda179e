/* Targets: what binds a name, an attribute, an item, or several of them, to a value. */

#include "node.h"

/* A name: of the program where there are its values, else of the function `number` outward. A
 * tensor, which learns its name, and a name that something overrides, are for the function, which is
 * given the last part, the name, the variables and the value. */
int bind_to_name(const Node *self, PyObject *variables, PyObject *value)
{
    enum { NAME, VALUES, OVERRIDES, OTHERWISE, KEEPER };
    PyObject *overrides = self->part[OVERRIDES];
    if (self->part[VALUES] != Py_None) variables = self->part[VALUES];
    else if (self->number && !(variables = outward(variables, self->number))) return -1;
    if (!Py_IS_TYPE(value, known_class[TENSOR]) && (overrides == Py_None || !PyDict_Size(overrides)))
        return PyDict_SetItem(variables, self->part[NAME], value);
    PyObject *done = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], self->part[KEEPER],
                                                  self->part[NAME], variables, value, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* --- attributes and items --------------------------------------------------------------------- */

PyObject *item_of(PyObject *owner, PyObject *key)
{
    PyObject *value = NULL;
    if (Py_IS_TYPE(owner, &PyDict_Type) && is_plain_key(key)) {
        value = PyDict_GetItemWithError(owner, key);
        Py_XINCREF(value);
        if (!value && !PyErr_Occurred()) raise_missing(key);
    } else if (Py_IS_TYPE(owner, &PyList_Type) && Py_IS_TYPE(key, &PyLong_Type)) {
        if (!(value = PyObject_GetItem(owner, key))) PyErr_Clear();
    }
    return value;
}

int put_item(PyObject *owner, PyObject *key, PyObject *value)
{
    if (Py_IS_TYPE(owner, &PyDict_Type) && is_plain_key(key))
        return PyDict_SetItem(owner, key, value);
    if (Py_IS_TYPE(owner, &PyList_Type) && Py_IS_TYPE(key, &PyLong_Type)) {
        if (PyObject_SetItem(owner, key, value) == 0) return 0;
        PyErr_Clear(); /* the function in Python finds the same, and says it better */
    }
    return 1;
}

/* `owner.name = value`; parts are what sets it of a tensor, None for nothing, the function that takes
 * any owner, name and value, and what is learnt of an instance's class. */
int bind_to_attribute(const Node *self, PyObject *variables, PyObject *value)
{
    enum { OWNER = FIRST, NAME, SETTER, OTHERWISE, LEARNT };
    PyObject *owner = value_of(self->part[OWNER], variables), *setter = self->part[SETTER];
    if (!owner) return -1;
    int failed = stand_at(self->part[STATE], self->part[PLACE]);
    if (!failed) failed = put_attribute(self, LEARNT, owner, self->part[NAME], value);
    if (failed > 0) {
        int sets = setter != Py_None && Py_IS_TYPE(owner, known_class[TENSOR]);
        PyObject *done = sets ? PyObject_CallFunctionObjArgs(setter, owner, value, NULL)
                              : PyObject_CallFunctionObjArgs(self->part[OTHERWISE], owner,
                                                             self->part[NAME], value, NULL);
        Py_XDECREF(done);
        failed = done ? 0 : -1;
    }
    Py_DECREF(owner);
    return failed;
}

/* `container[index] = value`; the function takes container, index and value, and then the nodes of
 * the tree for the first two, and so does what says what the failure of a method is; behind it there
 * are what finds one of the program's, and what is learnt of one. */
int bind_to_item(const Node *self, PyObject *variables, PyObject *value)
{
    enum { CONTAINER = FIRST, INDEX, CONTAINER_NODE, INDEX_NODE, OTHERWISE, FAILED, FIND, LEARNT };
    PyObject *container = value_of(self->part[CONTAINER], variables), *done = NULL;
    PyObject *index = container ? value_of(self->part[INDEX], variables) : NULL;
    int failed = index ? stand_at(self->part[STATE], self->part[PLACE]) : -1;
    if (!failed) failed = put_item(container, index, value);
    if (failed > 0) {
        PyObject *given[] = {container, index, value, self->part[CONTAINER_NODE],
                             self->part[INDEX_NODE]};
        done = by_special_method(self, LEARNT, self->part[FIND], given, 3, self->part[FAILED], 5);
        if (!done && !PyErr_Occurred())
            done = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], given[0], given[1], given[2],
                                                given[3], given[4], NULL);
        failed = done ? 0 : -1;
        Py_XDECREF(done);
    }
    Py_XDECREF(container);
    Py_XDECREF(index);
    return failed;
}

/* --- several ---------------------------------------------------------------------------------- */

/* `a, b = values`: parts are the node of the tree, the function that makes a list of the parts of
 * any other value, with the state and that node, and the targets. */
int bind_to_elements(const Node *self, PyObject *variables, PyObject *value)
{
    enum { TARGET_NODE = FIRST, OTHERWISE, TARGETS };
    Py_ssize_t count = parts_of(self) - TARGETS, k = 0;
    PyObject *parts = NULL;
    if (Py_IS_TYPE(value, &PyTuple_Type) && PyTuple_Size(value) == count) {
        if (stand_at(self->part[STATE], self->part[PLACE]) < 0) return -1;
        parts = Py_NewRef(value);
    } else {
        PyObject *list = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], self->part[STATE],
                                                      self->part[TARGET_NODE], value, NULL);
        parts = list ? PySequence_Tuple(list) : NULL;
        Py_XDECREF(list);
        if (!parts) return -1;
    }
    while (k < count && store_in(self->part[TARGETS + k], variables, PyTuple_GetItem(parts, k)) == 0)
        k++;
    Py_DECREF(parts);
    return k < count ? -1 : 0;
}
