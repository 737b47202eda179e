/* What draws from an iterator of the host's for a call or a loop, within limits. */

#include "node.h"

#include <stddef.h>

/* What is drawn from, NULL once it is over; the state where values are counted, each a step, or NULL;
 * how many more there may be; and what raises the host's errors as the language's own. */
typedef struct {
    PyObject_HEAD
    PyObject *values, *state, *convert;
    Py_ssize_t left;
} Drawing;

static PyTypeObject *drawing_type;

/* Count a value; -1 with an exception set. */
static int counted(Drawing *self)
{
    if (!self->state) return 0;
    if (self->left-- > 0) return charge_step(AT(self->state, SESSION_steps));
    raise_of(TOO_MANY_ELEMENTS, self->state);
    return -1;
}

static PyObject *next(PyObject *object)
{
    Drawing *self = (Drawing *)object;
    PyObject *values = self->values, *value;
    if (!values) return NULL;
    Py_INCREF(values);
    if ((value = PyIter_Next(values))) {
        if (counted(self) < 0 || breathe() < 0) Py_CLEAR(value);
    } else if (PyErr_Occurred()) {
        Py_XDECREF(after_error(self->convert, NULL, 0)); /* which raises */
    }
    if (!value) Py_CLEAR(self->values);
    Py_DECREF(values);
    return value;
}

/* drawing(values, state, convert): `state` is None where the values are not counted. */
PyObject *make_drawing(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !PyIter_Check(given[0])) {
        PyErr_SetString(PyExc_TypeError, "drawing(iterator, state, convert)");
        return NULL;
    }
    Py_ssize_t left = given[1] == Py_None ? 0 : most_elements(given[1]);
    if (left < 0) return NULL;
    Drawing *self = (Drawing *)PyType_GenericAlloc(drawing_type, 0);
    if (!self) return NULL;
    self->values = Py_NewRef(given[0]);
    self->state = given[1] == Py_None ? NULL : Py_NewRef(given[1]);
    self->convert = Py_NewRef(given[2]);
    self->left = left;
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Drawing *self = (Drawing *)object;
    Py_VISIT(self->values);
    Py_VISIT(self->state);
    Py_VISIT(self->convert);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int clear(PyObject *object)
{
    Py_CLEAR(((Drawing *)object)->values);
    return 0;
}

static void dealloc(PyObject *object)
{
    Drawing *self = (Drawing *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->values);
    Py_XDECREF(self->state);
    Py_XDECREF(self->convert);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

int add_drawings(void)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, dealloc},
        {Py_tp_traverse, traverse},
        {Py_tp_clear, clear},
        {Py_tp_iter, PyObject_SelfIter},
        {Py_tp_iternext, next},
        {Py_tp_doc, "Draws from an iterator for a call or a loop, within limits."},
        {0, NULL},
    };
    static PyType_Spec spec = {
        "gradcli.arrays.native._core.Drawing",
        sizeof(Drawing),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    drawing_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return drawing_type ? 0 : -1;
}
