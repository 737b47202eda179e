/* What nodes know of the session's objects: their classes, where these have their slots, and the
 * functions in Python that nodes call. */

#include "node.h"

PyTypeObject *known_class[CLASSES];
PyObject *helper[HELPERS];
Py_ssize_t known_size[CLASSES], slot_offset[SLOTS], deepest_call;
long deepest_host_call;
PyObject *minus_one;

static const struct {
    int owner;
    const char *name;
} SLOTS_OF[SLOTS] = {
#define SLOT(owner, name) {owner, #name},
#include "slots.def"
#undef SLOT
};

/* Where the objects of a class have the slot of a name; -1 with an exception set. No function of the
 * limited API tells: a value is stored by its name, and looked for. */
static Py_ssize_t offset_of(int owner, const char *name)
{
    PyObject *object = PyType_GenericAlloc(known_class[owner], 0), *found;
    PyObject *mark = object ? PyList_New(0) : NULL;
    Py_ssize_t last = known_size[owner] - (Py_ssize_t)sizeof mark, offset = -1;
    if (mark && PyObject_SetAttrString(object, name, mark) == 0)
        for (Py_ssize_t at = sizeof(PyObject); at <= last; at += sizeof mark) {
            memcpy(&found, (char *)object + at, sizeof found);
            if (found == mark) offset = at;
        }
    if (offset < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "no slot %s", name);
    Py_XDECREF(object);
    Py_XDECREF(mark);
    return offset;
}

/* know(*classes, *helpers): each in the order of its numbers. */
PyObject *know(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count != CLASSES + HELPERS) {
        PyErr_Format(PyExc_TypeError, "%d classes and %d helpers", CLASSES, HELPERS);
        return NULL;
    }
    for (int k = 0; k < CLASSES; k++) {
        known_class[k] = (PyTypeObject *)Py_NewRef(given[k]);
        PyObject *size = PyObject_GetAttrString(given[k], "__basicsize__");
        known_size[k] = size ? PyLong_AsSsize_t(size) : -1;
        Py_XDECREF(size);
        if (known_size[k] < 0) return NULL;
    }
    for (int k = 0; k < HELPERS; k++) helper[k] = Py_NewRef(given[CLASSES + k]);
    for (int k = 0; k < SLOTS; k++)
        if ((slot_offset[k] = offset_of(SLOTS_OF[k].owner, SLOTS_OF[k].name)) < 0) return NULL;
    deepest_call = PyLong_AsSsize_t(helper[DEEPEST_CALL]);
    deepest_host_call = PyLong_AsLong(helper[DEEPEST_HOST_CALL]);
    minus_one = PyLong_FromLong(-1); /* of which there is one object alone */
    if (PyErr_Occurred() || called_by_host() < 0) return NULL;
    Py_RETURN_NONE;
}

PyObject *copy_of(int kind, PyObject *like)
{
    PyObject *copy = PyType_GenericAlloc(known_class[kind], 0);
    PyObject **from = (PyObject **)like, **to = (PyObject **)copy;
    Py_ssize_t first = sizeof(PyObject) / sizeof(PyObject *);
    Py_ssize_t end = known_size[kind] / (Py_ssize_t)sizeof(PyObject *);
    for (Py_ssize_t k = first; copy && k < end; k++) to[k] = Py_XNewRef(from[k]);
    return copy;
}
