/* What can wait and be gone on with, a block or a generator, as an iterator of the host's. */

#include "node.h"

PySendResult status_of(PyObject *value, PyObject **result)
{
    PyObject *type, *error, *traceback;
    *result = value;
    if (value) return PYGEN_NEXT;
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return PYGEN_ERROR;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    *result = PyObject_GetAttrString(error, "value");
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return *result ? PYGEN_RETURN : PYGEN_ERROR;
}

PySendResult thrown_into(PyObject *waiting, int delegates, PyObject **result)
{
    PyObject *type, *error, *traceback, *value = NULL;
    int closes = PyErr_ExceptionMatches(PyExc_GeneratorExit) || (delegates && is_generator_exit());
    *result = NULL;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    PyObject *method = PyObject_GetAttrString(waiting, closes ? "close" : "throw");
    if (method) {
        value = PyObject_CallFunctionObjArgs(method, closes ? NULL : error, NULL);
        Py_DECREF(method);
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        closes = 1;
        value = Py_NewRef(Py_None);
    }
    if (value && closes) {
        PyErr_Restore(type, error, traceback);
        Py_DECREF(value);
        return PYGEN_ERROR;
    }
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return method && !closes ? status_of(value, result) : PYGEN_ERROR;
}

/* --- its methods ------------------------------------------------------------------------------ */

static PySendResult resumed(PyObject *self, PyObject *sent, PyObject **result)
{
    return ((Resumable *)self)->resume(self, sent, result);
}

/* What `__next__`, `send` and `throw` return; a value at the end is that of a StopIteration. */
static PyObject *drawn(PySendResult status, PyObject *result)
{
    if (status == PYGEN_NEXT) return result;
    if (status == PYGEN_ERROR) return NULL;
    PyObject *value = result == Py_None ? NULL : result;
    PyObject *error = PyObject_CallFunctionObjArgs(PyExc_StopIteration, value, NULL);
    if (error) PyErr_SetObject(PyExc_StopIteration, error);
    Py_XDECREF(error);
    Py_DECREF(result);
    return NULL;
}

static PyObject *send(PyObject *self, PyObject *value)
{
    PyObject *result;
    PySendResult status = resumed(self, value, &result);
    return drawn(status, result);
}

static PyObject *next(PyObject *self)
{
    PyObject *result;
    PySendResult status = resumed(self, Py_None, &result);
    if (status != PYGEN_RETURN || result != Py_None) return drawn(status, result);
    Py_DECREF(result);
    return NULL;
}

static PyObject *throw(PyObject *self, PyObject *error)
{
    PyObject *result;
    if (PyExceptionInstance_Check(error)) {
        PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), Py_NewRef(error),
                      PyException_GetTraceback(error));
    } else if (PyExceptionClass_Check(error)) {
        PyErr_SetNone(error);
    } else {
        PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(error), "__name__");
        if (name)
            PyErr_Format(PyExc_TypeError,
                         "exceptions must be classes or instances deriving from BaseException, not %U",
                         name);
        Py_XDECREF(name);
        return NULL;
    }
    PySendResult status = resumed(self, NULL, &result);
    return drawn(status, result);
}

PyObject *ended_by_exit(PyObject *self, PyObject *error)
{
    PyObject *result;
    if (!error) return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    PySendResult status = resumed(self, NULL, &result);
    if (status == PYGEN_ERROR) {
        if (!PyErr_ExceptionMatches(PyExc_GeneratorExit) && !is_generator_exit()) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    Py_DECREF(result);
    if (status == PYGEN_RETURN) Py_RETURN_NONE;
    PyErr_SetString(PyExc_RuntimeError, "generator ignored GeneratorExit");
    return NULL;
}

static PyObject *closed(PyObject *self, PyObject *nothing)
{
    PyObject *exit = is_generator(self) ? helper[GENERATOR_EXIT] : PyExc_GeneratorExit;
    (void)nothing;
    return ended_by_exit(self, PyObject_CallNoArgs(exit));
}

static PyMethodDef methods[] = {
    {"send", send, METH_O, "Go on with a value for the `yield` that it waits at."},
    {"throw", throw, METH_O, "Go on with an error raised at that `yield`."},
    {"close", closed, METH_NOARGS, "End it: its `finally` blocks run."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *waiting_type(const char *name, int size, int item, PyType_Slot *own)
{
    PyType_Slot slots[12] = {
        {Py_tp_methods, methods},
        {Py_tp_iter, PyObject_SelfIter},
        {Py_tp_iternext, next},
        {Py_am_send, resumed},
    };
    int count = 4;
    while (own->slot) slots[count++] = *own++;
    slots[count] = (PyType_Slot){0, NULL};
    PyType_Spec spec = {
        name, size, item,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
    };
    return (PyTypeObject *)PyType_FromSpec(&spec);
}
