/* Attributes of instances of a program's classes, where no code of the program's and nothing else of
 * the host's has a say: their class lists the names of those. */

#include "node.h"

/* Whether two parts know of a class that it lists what they were asked for, as classes are now. */
static int knows(const Node *self, int part, PyTypeObject *kind)
{
    return self->part[part] == (PyObject *)kind &&
           self->part[part + 1] == AT(helper[WHEN_CHANGED], CHANGES_mark);
}

/* Whether the class of an instance lists a name under a key, which two parts learn; -1 with an
 * exception set. */
static int lists(const Node *self, int part, PyTypeObject *kind, PyObject *name, PyObject *key)
{
    if (knows(self, part, kind)) return 1;
    if (!PyType_IsSubtype(kind, known_class[INSTANCE])) return 0;
    PyObject *listed = PyObject_GetAttr((PyObject *)kind, key);
    int found = !listed                 ? -1
                : listed == Py_None     ? 0
                : PyDict_Check(listed) ? PyDict_Contains(listed, name)
                                        : PySequence_Contains(listed, name);
    if (!found && listed != Py_None) { /* it is asked once for each class and name that it lists */
        PyObject *by = helper[key == reads_key ? READS_PLAINLY : WRITES_PLAINLY];
        PyObject *truth = PyObject_CallFunctionObjArgs(by, (PyObject *)kind, name, NULL);
        found = truth ? truth == Py_True : -1;
        Py_XDECREF(truth);
    }
    Py_XDECREF(listed);
    if (found > 0) {
        put((Node *)self, part, (PyObject *)kind);
        put((Node *)self, part + 1, AT(helper[WHEN_CHANGED], CHANGES_mark));
    }
    return found;
}

/* What the class of an instance binds to a name that it lists; NULL, perhaps with an exception set,
 * for nothing. */
static PyObject *bound_to(PyTypeObject *kind, PyObject *name)
{
    PyObject *reads = PyObject_GetAttr((PyObject *)kind, reads_key), *bound = NULL;
    if (reads && PyDict_Check(reads)) bound = PyDict_GetItemWithError(reads, name);
    Py_XINCREF(bound);
    Py_XDECREF(reads);
    return bound;
}

/* The dict of an instance's own values; NULL, perhaps with an exception set, where that is none. */
static PyObject *values_of(PyObject *instance)
{
    PyObject *held = PyObject_GetAttr(instance, values_key);
    if (held && !PyDict_CheckExact(held)) Py_CLEAR(held);
    return held;
}

/* Where nodes that read an attribute have its name, but for one that changes it too. */
enum { NAME_PART = FIRST + 1 };

PyObject *attribute_of(const Node *self, int part, PyObject *owner, PyObject *name)
{
    if (lists(self, part, Py_TYPE(owner), name, reads_key) <= 0) return NULL;
    PyObject *held = values_of(owner), *value = NULL;
    if (held && self->part[NAME_PART] == name) value = named((Node *)self, held, NAME_PART);
    else if (held) value = PyDict_GetItemWithError(held, name);
    Py_XINCREF(value);
    Py_XDECREF(held);
    if (!value && !PyErr_Occurred()) {
        value = bound_to(Py_TYPE(owner), name);
        if (value && !is_plain(value)) Py_CLEAR(value);
    }
    return value;
}

int put_attribute(const Node *self, int part, PyObject *owner, PyObject *name, PyObject *value)
{
    int listed = lists(self, part, Py_TYPE(owner), name, writes_key);
    PyObject *held = listed > 0 ? values_of(owner) : NULL;
    if (!held) return PyErr_Occurred() ? -1 : 1;
    int failed = PyDict_SetItem(held, name, value);
    Py_DECREF(held);
    return failed;
}

PyObject *method_by_class(const Node *self, int part, PyObject **owner, PyObject *name)
{
    PyTypeObject *kind = Py_TYPE(*owner);
    if (!knows(self, part, kind)) {
        if (lists(self, part, kind, name, reads_key) <= 0) return NULL;
        PyObject *bound = bound_to(kind, name);
        if (!bound) {
            put((Node *)self, part, Py_None); /* nothing is known of it */
            return NULL;
        }
        put((Node *)self, part + 2, bound);
        Py_DECREF(bound);
    }
    PyObject *found = self->part[part + 2], *held = values_of(*owner), *own = NULL;
    if (held) own = PyDict_GetItemWithError(held, name);
    if (own) found = own;
    if (!held || PyErr_Occurred() || !Py_IS_TYPE(found, known_class[FUNCTION])) found = NULL;
    Py_XINCREF(found);
    Py_XDECREF(held);
    if (found && own) Py_CLEAR(*owner);
    return found;
}
