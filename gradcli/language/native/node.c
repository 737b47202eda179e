/* The type of all nodes, what makes them, and where the session's objects have their slots. */

#include "node.h"

#include <structmember.h>

/* The flag is in the limited API from 3.12 on, with the value that it has in 3.11. */
enum { HAS_VECTORCALL = 1 << 11 };

/* Nodes below one another from which on each looks at how deep the stack is: with fewer, the calls of
 * a program bound that. */
enum { DEEP = 8 };

/* Bytes of a thread's stack that nodes use, of 8 MB as a rule, and of what the host links with. */
#ifdef _WIN32
enum { MOST_STACK = 512 * 1024 };
#else
enum { MOST_STACK = 5 * 1024 * 1024 };
#endif

PyTypeObject *node_type;
PyObject *parent_key, *values_key;

/* --- slots ------------------------------------------------------------------------------------ */

Py_ssize_t slot_offset[SLOTS] = {-1, -1, -1, -1, -1, -1, -1, -1};
static const char *const SLOT_NAMES[SLOTS] = {"place", "limits", "elements", "left", "charged",
                                              "hosts",   "outermost", "modules"};

int set_by_name(PyObject *owner, int slot, PyObject *value)
{
    return PyObject_SetAttrString(owner, SLOT_NAMES[slot], value);
}

PyObject *get_by_name(PyObject *owner, int slot)
{
    return PyObject_GetAttrString(owner, SLOT_NAMES[slot]);
}

/* No function of the limited API tells: a value is stored by its name, and looked for. */
Py_ssize_t offset_of(PyObject *owner, const char *name)
{
    PyObject *size = PyObject_GetAttrString((PyObject *)Py_TYPE(owner), "__basicsize__");
    Py_ssize_t end = size ? PyLong_AsSsize_t(size) : -1, offset = -1;
    Py_XDECREF(size);
    PyObject *mark = end < 0 ? NULL : PyList_New(0), *found = NULL;
    if (mark && PyObject_SetAttrString(owner, name, mark) == 0)
        for (Py_ssize_t at = sizeof(PyObject); at + (Py_ssize_t)sizeof mark <= end;
             at += sizeof mark) {
            memcpy(&found, (char *)owner + at, sizeof found);
            if (found == mark) offset = at;
        }
    Py_XDECREF(mark);
    return offset;
}

/* find_slots(owner): find where an object that nothing else holds has those of the slots that its
 * class has. */
static PyObject *find_slots(PyObject *module, PyObject *owner)
{
    (void)module;
    for (int slot = 0; slot < SLOTS; slot++) {
        if (!PyObject_HasAttrString((PyObject *)Py_TYPE(owner), SLOT_NAMES[slot])) continue;
        Py_ssize_t found = offset_of(owner, SLOT_NAMES[slot]);
        if (PyErr_Occurred()) return NULL;
        slot_offset[slot] = found;
    }
    Py_RETURN_NONE;
}

int charge_by_name(PyObject *steps, PyObject *too_many)
{
    PyObject *before = slot_of(steps, SLOT_LEFT), *zero = PyLong_FromLong(0), *after = NULL;
    PyObject *one = PyLong_FromLong(1), *error;
    int failed = -1;
    if (before && zero && one && (after = PyNumber_Subtract(before, one)) &&
        set_by_name(steps, SLOT_LEFT, after) == 0) {
        failed = -PyObject_RichCompareBool(after, zero, Py_LT);
        if (failed && !PyErr_Occurred() && (error = PyObject_CallNoArgs(too_many))) {
            PyErr_SetObject((PyObject *)Py_TYPE(error), error);
            Py_DECREF(error);
        }
    }
    Py_XDECREF(before);
    Py_XDECREF(after);
    Py_XDECREF(zero);
    Py_XDECREF(one);
    return failed ? -1 : 0;
}

Py_ssize_t most_elements(PyObject *state)
{
    PyObject *limits = slot_of(state, SLOT_LIMITS);
    if (!limits) return -1;
    PyObject *most = slot_of(limits, SLOT_ELEMENTS);
    Py_DECREF(limits);
    if (!most) return -1;
    Py_ssize_t count = PyLong_AsSsize_t(most);
    Py_DECREF(most);
    if (count == -1 && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        return PY_SSIZE_T_MAX;
    }
    return count;
}

/* --- classes and variables -------------------------------------------------------------------- */

PyTypeObject *known_class[CLASSES];

/* know(tensor, instance, language_type, user_class, iterator): the classes that nodes tell apart, in
 * the order of their numbers. */
static PyObject *know(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    for (Py_ssize_t k = 0; k < count && k < CLASSES; k++) {
        PyObject *before = (PyObject *)known_class[k];
        known_class[k] = (PyTypeObject *)Py_NewRef(given[k]);
        Py_XDECREF(before);
    }
    Py_RETURN_NONE;
}

PyObject *variables_inside(PyObject *variables)
{
    PyObject *inside = PyDict_New();
    if (inside && PyDict_SetItem(inside, parent_key, variables) < 0) Py_CLEAR(inside);
    return inside;
}

void put(Node *self, int part, PyObject *value)
{
    PyObject *before = self->part[part];
    self->part[part] = Py_NewRef(value);
    Py_DECREF(before);
}

int learn_class(Node *self, int part, PyTypeObject *kind)
{
    PyObject *reads = PyObject_GetAttrString((PyObject *)kind, "language_reads");
    if (!reads) return -1;
    if (PyDict_CheckExact(reads)) {
        put(self, part + 1, reads);
        put(self, part, (PyObject *)kind);
    }
    Py_DECREF(reads);
    return 0;
}

/* --- the host's own business ------------------------------------------------------------------- */

/* Iterations and calls after which other threads may run. */
enum { TURN = 1024 };

int breathe(void)
{
    static unsigned count;
    if (!(++count % TURN)) PyEval_RestoreThread(PyEval_SaveThread());
    return PyErr_CheckSignals();
}

/* --- values ----------------------------------------------------------------------------------- */

enum { SHORT = 16 };

int is_plain_key(PyObject *value)
{
    if (is_plain(value)) return 1;
    if (!Py_IS_TYPE(value, &PyTuple_Type)) return 0;
    Py_ssize_t length = PyTuple_Size(value);
    if (length >= SHORT) return 0;
    for (Py_ssize_t k = 0; k < length; k++)
        if (!is_plain(PyTuple_GetItem(value, k))) return 0;
    return 1;
}

int is_easy_key(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyTuple_Type) return is_plain_key(value);
    return type != &PyList_Type && type != &PyDict_Type && type != &PySet_Type;
}

/* --- the type --------------------------------------------------------------------------------- */

static PyObject *evaluated(const Node *self, PyObject *variables, PyObject *value)
{
    if (!PyDict_Check(variables)) {
        PyErr_SetString(PyExc_TypeError, "a node is called with the variables");
        return NULL;
    }
    if (!value) return self->evaluate(self, variables);
    return self->bind(self, variables, value) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *called_fast(PyObject *self, PyObject *const *given, size_t count, PyObject *names)
{
    count = count << 1 >> 1; /* the highest bit says that the caller lends the place before */
    if ((count == 1 || count == 2) && !names)
        return evaluated((const Node *)self, given[0], count == 2 ? given[1] : NULL);
    PyErr_SetString(PyExc_TypeError, "a node takes the variables, a target a value besides");
    return NULL;
}

static PyObject *called(PyObject *self, PyObject *given, PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(given);
    if ((count == 1 || count == 2) && (!names || !PyDict_Size(names)))
        return evaluated((const Node *)self, PyTuple_GetItem(given, 0),
                         count == 2 ? PyTuple_GetItem(given, 1) : NULL);
    PyErr_SetString(PyExc_TypeError, "a node takes the variables, a target a value besides");
    return NULL;
}

static int no_target(const Node *self, PyObject *variables, PyObject *value)
{
    (void)self, (void)variables, (void)value;
    PyErr_SetString(PyExc_TypeError, "the node is no target");
    return -1;
}

static PyObject *no_value(const Node *self, PyObject *variables)
{
    (void)self, (void)variables;
    PyErr_SetString(PyExc_TypeError, "the node is a target");
    return NULL;
}

#ifdef __GNUC__
#define HERE ((char *)__builtin_frame_address(0))
#define PER_THREAD __thread
#else
#include <intrin.h>
#define HERE ((char *)_AddressOfReturnAddress())
#define PER_THREAD __declspec(thread)
#endif

int check_stack(void)
{
    static PER_THREAD char *outermost; /* where a node was seen that lay highest */
    char *here = HERE;
    if (here > outermost) outermost = here;
    if (outermost - here < MOST_STACK) return 0;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
    return -1;
}

/* What runs a node that stands deep. */
static PyObject *counted(const Node *self, PyObject *variables)
{
    return check_stack() < 0 ? NULL : self->run(self, variables);
}

static PyObject *made(Evaluate run, Bind bind, Py_ssize_t parts, PyObject *const *given,
                      Py_ssize_t count)
{
    if (count < 1 || (parts >= 0 && count != parts + 1)) {
        PyErr_Format(PyExc_TypeError, "a number and %zd parts, not %zd", parts, count - 1);
        return NULL;
    }
    long number = PyLong_AsLong(given[0]);
    if (number == -1 && PyErr_Occurred()) return NULL;
    Node *self = (Node *)PyType_GenericAlloc(node_type, count - 1);
    if (!self) return NULL;
    self->called = called_fast;
    self->bind = bind;
    self->number = number;
    for (Py_ssize_t k = 1; k < count; k++) {
        PyObject *part = self->part[k - 1] = Py_NewRef(given[k]);
        if (Py_IS_TYPE(part, node_type) && ((Node *)part)->depth > self->depth)
            self->depth = ((Node *)part)->depth;
    }
    self->depth++;
    self->run = run;
    self->evaluate = self->depth > DEEP ? counted : run;
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Node *self = (Node *)object;
    for (Py_ssize_t k = 0; k < Py_SIZE(object); k++) Py_VISIT(self->part[k]);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static void dealloc(PyObject *object)
{
    Node *self = (Node *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    for (Py_ssize_t k = 0; k < Py_SIZE(object); k++) Py_CLEAR(self->part[k]);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Node, called), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* No node is cleared in a cycle: what its parts are is fixed, and every cycle of nodes has a dict or
 * a function of the host's in it, which are. */
static PyType_Slot slots[] = {
    {Py_tp_call, called},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_members, members},
    {Py_tp_doc, "An expression of a program, compiled: it is called with the variables."},
    {0, NULL},
};

static PyType_Spec spec = {
    "gradcli.arrays.native._core.Node",
    offsetof(Node, part),
    sizeof(PyObject *),
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | HAS_VECTORCALL,
    slots,
};

/* --- what makes them -------------------------------------------------------------------------- */

#define NODE(name, parts)                                                                       \
    static PyObject *make_##name(PyObject *module, PyObject *const *given, Py_ssize_t count)    \
    {                                                                                           \
        (void)module;                                                                           \
        return made(run_##name, no_target, parts, given, count);                                \
    }
#define TARGET(name, parts)                                                                     \
    static PyObject *make_##name(PyObject *module, PyObject *const *given, Py_ssize_t count)    \
    {                                                                                           \
        (void)module;                                                                           \
        return made(no_value, bind_##name, parts, given, count);                                \
    }
#include "nodes.def"
#undef NODE
#undef TARGET

static PyMethodDef makers[] = {
#define NODE(name, parts)                                                                       \
    {#name, (PyCFunction)(void (*)(void))make_##name, METH_FASTCALL, #name "(number, *parts)"},
#define TARGET NODE
#include "nodes.def"
#undef NODE
#undef TARGET
    {"know", (PyCFunction)(void (*)(void))know, METH_FASTCALL, "know(*classes): tell them apart"},
    {"know_calls", (PyCFunction)(void (*)(void))know_calls, METH_FASTCALL,
     "know_calls(*objects, *helpers): what calls are made of"},
    {"know_functions", (PyCFunction)(void (*)(void))know_functions, METH_FASTCALL,
     "know_functions(function, hot, enter_by): what functions are made of"},
    {"know_quick", (PyCFunction)(void (*)(void))know_quick, METH_FASTCALL,
     "know_quick(does, called, host): a call of `called` may be made in C"},
    {"find_slots", find_slots, METH_O, "find_slots(owner): where an object has its slots"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "nodes", "Nodes of programs.", 0, makers, NULL, NULL, NULL, NULL,
};

int add_nodes(PyObject *module)
{
    PyObject *nodes = PyModule_Create(&definition);
    node_type = (PyTypeObject *)PyType_FromSpec(&spec);
    parent_key = PyUnicode_InternFromString("");
    values_key = PyUnicode_InternFromString("values");
    int failed = !nodes || !node_type || !parent_key || !values_key || PyModule_AddObjectRef(module, "nodes", nodes) < 0;
    Py_XDECREF(nodes);
    return failed ? -1 : 0;
}
