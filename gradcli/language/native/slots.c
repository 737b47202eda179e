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

/* The size of the objects of a class; -1 with an exception set. */
static Py_ssize_t size_of(PyTypeObject *kind)
{
    PyObject *size = PyObject_GetAttrString((PyObject *)kind, "__basicsize__");
    Py_ssize_t known = size ? PyLong_AsSsize_t(size) : -1;
    Py_XDECREF(size);
    return known;
}

/* No function of the limited API tells where a slot is: a value is stored by its name, and looked for. */
Py_ssize_t offset_of(PyTypeObject *kind, PyObject *name)
{
    PyObject *object = PyType_GenericAlloc(kind, 0), *found;
    PyObject *mark = object ? PyList_New(0) : NULL;
    Py_ssize_t last = size_of(kind) - (Py_ssize_t)sizeof mark, offset = -1;
    if (mark && PyObject_SetAttr(object, name, mark) == 0)
        for (Py_ssize_t at = sizeof(PyObject); at <= last; at += sizeof mark) {
            memcpy(&found, (char *)object + at, sizeof found);
            if (found == mark) offset = at;
        }
    if (offset < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "no slot %U", name);
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
        if ((known_size[k] = size_of(known_class[k])) < 0) return NULL;
    }
    for (int k = 0; k < HELPERS; k++) helper[k] = Py_NewRef(given[CLASSES + k]);
    for (int k = 0; k < SLOTS; k++) {
        PyObject *name = PyUnicode_FromString(SLOTS_OF[k].name);
        slot_offset[k] = name ? offset_of(known_class[SLOTS_OF[k].owner], name) : -1;
        Py_XDECREF(name);
        if (slot_offset[k] < 0) return NULL;
    }
    deepest_call = PyLong_AsSsize_t(helper[DEEPEST_CALL]);
    deepest_host_call = PyLong_AsLong(helper[DEEPEST_HOST_CALL]);
    minus_one = PyLong_FromLong(-1); /* of which there is one object alone */
    if (PyErr_Occurred() || know_integers() < 0 || know_lists() < 0 || called_by_host() < 0) return NULL;
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
