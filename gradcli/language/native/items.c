/* Attributes, items and slices. */

#include "node.h"

/* --- attributes ------------------------------------------------------------------------------- */

enum { VALUE = FIRST, NAME, GETTER, OTHERWISE, FIND_PROPERTY, LEARNT_CLASS, LEARNT_PROPERTY = LEARNT_CLASS + 2 };

/* `value.name`; parts are the function that reads it from a tensor (or None), that which reads it
 * from anything, what finds the function of a property, and what is learnt of a class, and of a
 * property. */
PyObject *run_attribute(const Node *self, PyObject *variables)
{
    PyObject *value = value_of(self->part[VALUE], variables), *found = NULL;
    if (!value) return NULL;
    if (stand_at(self->part[STATE], self->part[PLACE]) < 0) goto end;
    PyTypeObject *kind = Py_TYPE(value);
    if (kind == known_class[TENSOR]) {
        if (self->part[GETTER] != Py_None) {
            found = PyObject_CallFunctionObjArgs(self->part[GETTER], value, NULL);
            goto end;
        }
    } else if ((kind == known_class[LANGUAGE_TYPE] || kind == known_class[EXCEPTION_TYPE]) &&
               self->part[NAME] == name_key) {
        found = Py_NewRef(AT(value, LANGUAGE_TYPE_name));
    } else if (PyType_IsSubtype(kind, known_class[INSTANCE])) {
        PyObject *const *learnt = self->part + LEARNT_PROPERTY;
        int is_property = learnt[0] == (PyObject *)kind && learnt[2] != Py_None &&
                          learnt[1] == AT(helper[WHEN_CHANGED], CHANGES_mark);
        if (!is_property) found = attribute_of(self, LEARNT_CLASS, value, self->part[NAME]);
        if (!found && !PyErr_Occurred())
            found = by_special_method(self, LEARNT_PROPERTY, self->part[FIND_PROPERTY], &value, 1,
                                      NULL, 0);
        if (!found && PyErr_Occurred()) goto end;
    }
    if (!found && !(found = module_value(value, self->part[NAME])) && !PyErr_Occurred())
        found = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], value, self->part[NAME], NULL);
end:
    Py_DECREF(value);
    return found;
}

/* --- items ------------------------------------------------------------------------------------ */

/* The item of a list, a tuple or a text at an index; NULL where there is none. */
static PyObject *at_index(PyObject *value, PyTypeObject *kind, PyObject *index)
{
    int overflow;
    long long at = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_ssize_t length = kind == &PyList_Type    ? PyList_Size(value)
                        : kind == &PyTuple_Type ? PyTuple_Size(value)
                                                : PyUnicode_GetLength(value);
    if (at < 0) at += length;
    if (overflow || at < 0 || at >= length) return NULL;
    if (kind == &PyList_Type) return Py_NewRef(PyList_GetItem(value, (Py_ssize_t)at));
    if (kind == &PyTuple_Type) return Py_NewRef(PyTuple_GetItem(value, (Py_ssize_t)at));
    return PyUnicode_Substring(value, (Py_ssize_t)at, (Py_ssize_t)at + 1);
}

/* What a value has at an index; NULL with no exception where the function in Python is to be
 * called, or with that of a missing key. */
static PyObject *picked(PyObject *value, PyObject *index)
{
    PyTypeObject *kind = Py_TYPE(value);
    if (kind == &PyDict_Type) {
        if (!is_plain_key(index)) return NULL;
        PyObject *found = PyDict_GetItemWithError(value, index);
        Py_XINCREF(found);
        if (!found && !PyErr_Occurred()) raise_missing(index);
        return found;
    }
    if (kind != &PyList_Type && kind != &PyTuple_Type && kind != &PyUnicode_Type) return NULL;
    if (Py_IS_TYPE(index, &PyLong_Type)) return at_index(value, kind, index);
    if (!Py_IS_TYPE(index, &PySlice_Type)) return NULL;
    PyObject *found = PyObject_GetItem(value, index);
    if (!found && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        PyErr_Clear();
    return found;
}

/* `value[index]`; parts are the two nodes of the tree, and the function that picks from anything and
 * labels them; then what says what the failure of a method is, what finds one of the program's, and
 * what is learnt of one. */
PyObject *run_item(const Node *self, PyObject *variables)
{
    enum { OF = FIRST, INDEX, OF_NODE, INDEX_NODE, PICK, FAILED, FIND, LEARNT };
    PyObject *value = value_of(self->part[OF], variables), *index = NULL, *found = NULL;
    if (!value) return NULL;
    if (!(index = value_of(self->part[INDEX], variables))) goto end;
    if (stand_at(self->part[STATE], self->part[PLACE]) < 0) goto end;
    found = picked(value, index);
    if (found || PyErr_Occurred()) goto end;
    PyObject *given[] = {value, index, self->part[OF_NODE], self->part[INDEX_NODE]};
    found = by_special_method(self, LEARNT, self->part[FIND], given, 2, self->part[FAILED], 4);
    if (!found && !PyErr_Occurred())
        found = PyObject_CallFunctionObjArgs(self->part[PICK], value, index, self->part[OF_NODE],
                                             self->part[INDEX_NODE], NULL);
end:
    Py_DECREF(value);
    Py_XDECREF(index);
    return found;
}

/* `lower:upper:step`; parts are the three, None for what is not written. */
PyObject *run_slice(const Node *self, PyObject *variables)
{
    PyObject *part[3] = {NULL, NULL, NULL}, *slice = NULL;
    int k = 0;
    for (; k < 3; k++) {
        if (self->part[k] == Py_None) continue;
        if (!(part[k] = value_of(self->part[k], variables))) break;
    }
    if (k == 3) slice = PySlice_New(part[0], part[1], part[2]);
    for (k = 0; k < 3; k++) Py_XDECREF(part[k]);
    return slice;
}
