/* Generators of the program's: a body that goes on as a call of its function. */

#include "node.h"

#include <structmember.h>

/* Parts of what makes one: the errors whose `except` is running, the function's name, the body, and
 * what the iterator is like that has it for its source. */
enum { STEPS = FIRST, HANDLED, NAME, BODY, SIMILAR };

/* A generator: its body, what made it and its name; what it is in while it runs, a tuple, the
 * innermost first; and those of the errors whose `except` is running that are its own, as long as it
 * waits, NULL for none. */
typedef struct {
    Resumable head;
    const Node *made_by;
    PyObject *frame, *name, *contexts, *kept;
    int is_running, is_finalized;
} Generator;

static PyTypeObject *generator_type;

/* --- iterators -------------------------------------------------------------------------------- */

PyObject *iterator_like(PyObject *like, PyObject *source, PyObject *values)
{
    PyObject *iterator = copy_of(ITERATOR, like);
    if (!iterator) return NULL;
    replace(&AT(iterator, ITERATOR_source), Py_NewRef(source));
    if (values) {
        PyObject *drawn = PyTuple_Pack(1, values);
        if (!drawn) Py_CLEAR(iterator);
        else replace(&AT(iterator, ITERATOR_values), drawn);
    }
    return iterator;
}

PyObject *generator_of(PyObject *values)
{
    if (!Py_IS_TYPE(values, known_class[ITERATOR])) return NULL;
    PyObject *source = AT(values, ITERATOR_source);
    return is_generator(source) ? Py_NewRef(source) : NULL;
}

/* --- calls through the host ------------------------------------------------------------------- */

PyObject *enter_host_call(PyObject *steps)
{
    PyObject *before = AT(steps, COUNTS_nested), *after;
    long nested = PyLong_AsLong(before);
    if (check_stack() < 0) return NULL;
    if (nested >= deepest_host_call) {
        Py_XDECREF(PyObject_CallFunctionObjArgs(helper[TOO_DEEP], steps, NULL)); /* which raises */
        return NULL;
    }
    if (!(after = PyLong_FromLong(nested + 1))) return NULL;
    AT(steps, COUNTS_nested) = after;
    return before;
}

/* --- generators ------------------------------------------------------------------------------- */

/* Go on within contexts. */
static PySendResult within(Generator *self, PyObject *sent, PyObject **result)
{
    PyObject *type, *error = sent, *traceback, *enter, *value = NULL;
    if (!sent) {
        PyErr_Fetch(&type, &error, &traceback);
        PyErr_NormalizeException(&type, &error, &traceback);
        Py_XDECREF(type);
        Py_XDECREF(traceback);
    }
    if ((enter = PyObject_GetAttrString(self->frame, sent ? "send" : "throw")))
        value = PyObject_CallFunctionObjArgs(helper[WITHIN], self->contexts, enter, error, NULL);
    Py_XDECREF(enter);
    if (!sent) Py_DECREF(error);
    return status_of(value, result);
}

/* Take away from the errors that are handled those of the generator. */
static int keep_handled(Generator *self, PyObject *handled, Py_ssize_t before)
{
    Py_ssize_t count = PyList_Size(handled);
    Py_CLEAR(self->kept);
    if (count <= before) return 0;
    self->kept = PyList_GetSlice(handled, before, count);
    return self->kept ? PyList_SetSlice(handled, before, count, NULL) : -1;
}

/* Run the body up to its next `yield`, with those of its errors that are handled. */
static PySendResult ran(Generator *self, PyObject *sent, PyObject **result)
{
    PyObject *const *part = self->made_by->part, *handled = part[HANDLED], *ended;
    Py_ssize_t before = PyList_Size(handled);
    PySendResult status = PYGEN_ERROR;
    if (self->kept && PyList_SetSlice(handled, before, before, self->kept) < 0) return status;
    self->is_running = 1;
    status = PyTuple_Size(self->contexts)
                 ? within(self, sent, result)
                 : ((Resumable *)self->frame)->resume(self->frame, sent, result);
    self->is_running = 0;
    if (status == PYGEN_ERROR) Py_XDECREF(after_error(helper[GENERATOR_ENDED], &part[STATE], 1)); /* which raises */
    if (keep_handled(self, handled, before) < 0) {
        if (status != PYGEN_ERROR) Py_CLEAR(*result);
        return PYGEN_ERROR;
    }
    if (status == PYGEN_RETURN && (ended = *result) != Py_None) {
        *result = Py_NewRef(PyTuple_GetItem(ended, 0));
        Py_DECREF(ended);
    }
    return status;
}

static PySendResult resume(PyObject *object, PyObject *sent, PyObject **result)
{
    Generator *self = (Generator *)object;
    PyObject *const *part = self->made_by->part;
    PyObject *type = NULL, *error = NULL, *traceback = NULL, *place = NULL, *nested;
    PySendResult status = PYGEN_ERROR;
    *result = NULL;
    if (!sent) PyErr_Fetch(&type, &error, &traceback);
    if (self->is_running)
        PyErr_SetString(PyExc_ValueError, "generator already executing");
    else
        place = open_call(part[STATE], part[STEPS], self->name);
    if (place && (nested = enter_host_call(part[STEPS]))) {
        if (!sent) PyErr_Restore(type, error, traceback);
        type = error = traceback = NULL;
        status = ran(self, sent, result);
        leave_host_call(part[STEPS], nested);
    }
    if (place) close_call(part[STATE], place);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return *result ? status : PYGEN_ERROR;
}

/* The generator that a call of its function makes, as the value of its block. */
PyObject *run_generator(const Node *self, PyObject *variables)
{
    PyObject *frame = value_of(self->part[BODY], variables), *iterator, *ended = NULL;
    Generator *made = frame ? (Generator *)PyType_GenericAlloc(generator_type, 0) : NULL;
    if (!made) {
        Py_XDECREF(frame);
        return NULL;
    }
    made->head.resume = resume;
    made->made_by = (const Node *)Py_NewRef((PyObject *)self);
    made->frame = frame;
    made->name = Py_NewRef(self->part[NAME]);
    made->contexts = PyTuple_New(0);
    iterator = made->contexts ? iterator_like(self->part[SIMILAR], (PyObject *)made, NULL) : NULL;
    if (iterator) ended = PyTuple_Pack(1, iterator);
    Py_XDECREF(iterator);
    Py_DECREF((PyObject *)made);
    return ended;
}

/* --- their type ------------------------------------------------------------------------------- */

int is_generator(PyObject *object)
{
    return Py_IS_TYPE(object, generator_type);
}

int is_generator_exit(void)
{
    PyObject *type, *error, *traceback, *raises;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return 0;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    raises = PyObject_GetAttr(error, raises_key);
    if (!raises) PyErr_Clear();
    int exits = raises && PyUnicode_Check(raises) &&
               PyUnicode_CompareWithASCIIString(raises, "GeneratorExit") == 0;
    Py_XDECREF(raises);
    PyErr_Restore(type, error, traceback);
    return exits;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Generator *self = (Generator *)object;
    Py_VISIT((PyObject *)self->made_by);
    Py_VISIT(self->frame);
    Py_VISIT(self->contexts);
    Py_VISIT(self->kept);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

/* One that waits in a `try` or a `with` is closed, where its session runs: nobody is left to hear what
 * that raises. The collector asks for it before it clears anything of a cycle, the session's among
 * them. */
static void finalize(PyObject *object)
{
    Generator *self = (Generator *)object;
    PyObject *kind, *error, *traceback, *closes;
    if (self->is_finalized || !self->frame || !waits(self->frame)) return;
    self->is_finalized = 1;
    PyErr_Fetch(&kind, &error, &traceback);
    closes = PyObject_CallFunctionObjArgs(helper[MAY_CLOSE], self->made_by->part[STATE], NULL);
    if (closes == Py_True) Py_XDECREF(ended_by_exit(object, PyObject_CallNoArgs(helper[GENERATOR_EXIT])));
    Py_XDECREF(closes);
    PyErr_Clear();
    PyErr_Restore(kind, error, traceback);
}

static void dealloc(PyObject *object)
{
    Generator *self = (Generator *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    finalize(object); /* which takes no reference to it */
    Py_XDECREF(self->frame);
    Py_XDECREF(self->name);
    Py_XDECREF(self->contexts);
    Py_XDECREF(self->kept);
    Py_XDECREF((PyObject *)self->made_by);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"name", T_OBJECT, offsetof(Generator, name), READONLY, "The name of its function."},
    {"contexts", T_OBJECT, offsetof(Generator, contexts), 0, "What it is in while it runs."},
    {NULL, 0, 0, 0, NULL},
};

/* Nothing of it is cleared in a cycle, which has a dict in it, or an iterator of programs'. */
static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_finalize, finalize},
    {Py_tp_traverse, traverse},
    {Py_tp_members, members},
    {Py_tp_doc, "A generator of a program's."},
    {0, NULL},
};

int add_generators(PyObject *module)
{
    const char *name = "gradcli.arrays.native._core.Generator";
    generator_type = waiting_type(name, sizeof(Generator), 0, slots);
    return generator_type ? PyModule_AddObjectRef(module, "Generator", (PyObject *)generator_type) : -1;
}
