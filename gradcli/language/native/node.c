/* The type of all nodes, what makes them, and what several kinds do. */

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
PyObject *parent_key, *class_key, *values_key, *reads_key, *writes_key, *methods_key;
PyObject *name_key, *span_key, *stack_key, *raises_key, *context_key, *cause_key;
PyObject *code_key, *message_key, *text_key, *arguments_key, *context_class_key, *enter_key, *exit_key,
    *exception_class_key, *make_key;
PyObject *assertion_code, *raised_code, *missing_code, *key_error_name;

/* --- limits ----------------------------------------------------------------------------------- */

Py_ssize_t counted_length;

int know_integers(void)
{
    enum { SOME = 1 << 20 | 5 };
    PyObject *some = PyLong_FromLong(SOME);
    const Counted *counted = (const Counted *)some;
    if (some && counted->digit == SOME) counted_length = counted->head.ob_size;
    Py_XDECREF(some);
    return some ? 0 : -1;
}

int knows_lists;

int know_lists(void)
{
    enum { SOME = 3, MUCH = 64 };
    PyObject *some = PyList_New(0);
    const List *list = (const List *)some;
    int failed = !some;
    for (int k = 0; !failed && k < SOME; k++) failed = PyList_Append(some, k % 2 ? Py_None : Py_True) < 0;
    knows_lists = !failed && Py_SIZE(some) == SOME && list->room >= SOME && list->room < MUCH;
    for (int k = 0; knows_lists && k < SOME; k++) knows_lists = list->item[k] == PyList_GetItem(some, k);
    Py_XDECREF(some);
    return failed ? -1 : 0;
}

int charge_slowly(PyObject *steps)
{
    int overflow;
    long left = PyLong_AsLongAndOverflow(AT(steps, COUNTS_left), &overflow);
    PyObject *after;
    if (!overflow) {
        after = PyLong_FromLong(left - 1);
    } else { /* of limits that a person set far away */
        PyObject *one = PyLong_FromLong(1);
        after = one ? PyNumber_Subtract(AT(steps, COUNTS_left), one) : NULL;
        Py_XDECREF(one);
    }
    if (!after) return -1;
    replace(&AT(steps, COUNTS_left), after);
    if (overflow ? overflow > 0 : left > 0) return 0;
    raise_of(TOO_MANY_STEPS, NULL);
    return -1;
}

Py_ssize_t most_elements(PyObject *state)
{
    Py_ssize_t count = PyLong_AsSsize_t(AT(AT(state, SESSION_limits), LIMITS_elements));
    if (count == -1 && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        return PY_SSIZE_T_MAX;
    }
    return count;
}

void raise_of(int by, PyObject *value)
{
    PyObject *error = PyObject_CallFunctionObjArgs(helper[by], value, NULL);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
}

/* --- variables and parts ----------------------------------------------------------------------- */

PyObject *variables_inside(PyObject *variables)
{
    PyObject *inside = PyDict_New();
    if (inside && PyDict_SetItem(inside, parent_key, variables) < 0) Py_CLEAR(inside);
    return inside;
}

void put(Node *self, int part, PyObject *value)
{
    replace(&self->part[part], Py_NewRef(value));
}

/* Where a name may stand, and how often it may stand elsewhere, to be looked for by its place. */
enum { FARTHEST = 64, MOST_MISSES = 16 };

PyObject *search(Node *self, PyObject *dict, int part)
{
    PyObject *name = self->part[part], *found = PyDict_GetItemWithError(dict, name), *key, *value;
    if (!found || self->at < 0) return found;
    self->at = ++self->misses > MOST_MISSES ? -1 : 0;
    for (Py_ssize_t at = 0; self->at >= 0 && at < FARTHEST && PyDict_Next(dict, &at, &key, &value);)
        if (value == found && PyUnicode_Compare(key, name) == 0) {
            put(self, part, key); /* the same text, and the same object from now on */
            self->at = (int)at - 1;
            return found;
        }
    self->at = -1;
    return found;
}

/* --- the host's own business ------------------------------------------------------------------- */

/* Iterations and calls after which signals are heard, which functions in Python do too, and after
 * which other threads may run. */
enum { HEARD = 4, TURN = 1024 };

int breathe(void)
{
    static unsigned count;
    if (++count % HEARD) return 0;
    if (!(count % TURN)) PyEval_RestoreThread(PyEval_SaveThread());
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
    if (self->locals && self->has == OF_BODY) return run_with_dict(self, variables);
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

int no_target(const Node *self, PyObject *variables, PyObject *value)
{
    (void)self, (void)variables, (void)value;
    PyErr_SetString(PyExc_TypeError, "the node is no target");
    return -1;
}

PyObject *no_value(const Node *self, PyObject *variables)
{
    (void)self, (void)variables;
    PyErr_SetString(PyExc_TypeError, "the node is a target");
    return NULL;
}

#ifdef __GNUC__
#define HERE ((char *)__builtin_frame_address(0))
/* Where the host's C library has room for it, found without a call. */
#ifdef __GLIBC__
#define PER_THREAD __thread __attribute__((tls_model("initial-exec")))
#else
#define PER_THREAD __thread
#endif
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

Node *begun_node(Evaluate run, Bind bind, long number, Py_ssize_t parts)
{
    Node *self = (Node *)PyType_GenericAlloc(node_type, parts);
    if (!self) return NULL;
    self->called = called_fast;
    self->run = run;
    self->bind = bind;
    self->number = number;
    return self;
}

PyObject *finished_node(Node *self)
{
    for (Py_ssize_t k = 0; self && k < parts_of(self); k++) {
        const Node *part = (const Node *)self->part[k];
        if (Py_IS_TYPE((PyObject *)part, node_type) && part->depth > self->depth)
            self->depth = part->depth;
    }
    if (!self) return NULL;
    self->depth++;
    self->evaluate = self->depth > DEEP ? counted : self->run;
    return (PyObject *)self;
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
    Node *self = begun_node(run, bind, number, count - 1);
    for (Py_ssize_t k = 1; self && k < count; k++) self->part[k - 1] = Py_NewRef(given[k]);
    return finished_node(self);
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
    PyMem_Free(self->codes);
    Py_CLEAR(self->locals);
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

Py_ssize_t kind_named(const char *name, Evaluate *run, Bind *bind)
{
    static const struct {
        const char *name;
        Evaluate run;
        Bind bind;
        Py_ssize_t parts;
    } kinds[] = {
#define NODE(name, parts) {#name, run_##name, no_target, parts},
#define TARGET(name, parts) {#name, no_value, bind_##name, parts},
#include "nodes.def"
#undef NODE
#undef TARGET
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(kinds[k].name, name)) {
            *run = kinds[k].run;
            *bind = kinds[k].bind;
            return kinds[k].parts;
        }
    PyErr_Format(PyExc_TypeError, "no kind of nodes is %s", name);
    return -2;
}

static PyMethodDef makers[] = {
#define NODE(name, parts)                                                                       \
    {#name, (PyCFunction)(void (*)(void))make_##name, METH_FASTCALL, #name "(number, *parts)"},
#define TARGET NODE
#include "nodes.def"
#undef NODE
#undef TARGET
    {"drawing", (PyCFunction)(void (*)(void))make_drawing, METH_FASTCALL,
     "drawing(values, state, convert): draws within limits"},
    {"sum", (PyCFunction)(void (*)(void))make_sum, METH_FASTCALL,
     "sum(node, host, values, start): adds up by the node of a `+`"},
    {"keys", (PyCFunction)(void (*)(void))make_keys, METH_FASTCALL,
     "keys(state, key, items): what a function gives for each"},
    {"know", (PyCFunction)(void (*)(void))know, METH_FASTCALL,
     "know(*classes, *helpers): what nodes tell apart, and call"},
    {"know_quick", (PyCFunction)(void (*)(void))know_quick, METH_FASTCALL,
     "know_quick(does, called, host): a call of `called` may be made in C"},
    {"automaton", (PyCFunction)(void (*)(void))make_automaton, METH_FASTCALL,
     "automaton(rows, rules, span): the tables of the grammar"},
    {"parse", (PyCFunction)(void (*)(void))parse, METH_FASTCALL,
     "parse(automaton, follow, source, kinds, texts, starts, ends, state): runs them"},
    {"scan", (PyCFunction)(void (*)(void))scan, METH_FASTCALL,
     "scan(text, position, kinds, texts, starts, ends, brackets, keywords): cuts tokens"},
    {"know_recipes", (PyCFunction)(void (*)(void))know_recipes, METH_FASTCALL,
     "know_recipes(handlers, recipes, binders, recipes, *told): how trees are made into nodes"},
    {"make", (PyCFunction)(void (*)(void))make, METH_FASTCALL, "make(compiler, tree, scope)"},
    {"make_statements", (PyCFunction)(void (*)(void))make_statements, METH_FASTCALL,
     "make_statements(compiler, trees, scope)"},
    {"make_target", (PyCFunction)(void (*)(void))make_target, METH_FASTCALL,
     "make_target(compiler, tree, scope, assigned)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "nodes", "Nodes of programs.", 0, makers, NULL, NULL, NULL, NULL,
};

int add_nodes(PyObject *module)
{
    PyObject *nodes = PyModule_Create(&definition);
    node_type = (PyTypeObject *)PyType_FromSpec(&spec);
    int failed = !nodes || !node_type || add_frames() < 0 || add_drawings() < 0 || add_generators(nodes) < 0 ||
                 PyModule_AddIntMacro(nodes, MOST_ARGUMENTS) < 0 ||
                 PyModule_AddIntMacro(nodes, ADDITION) < 0 ||
                 PyModule_AddObjectRef(module, "nodes", nodes) < 0;
    struct {
        PyObject **key;
        const char *text;
    } keys[] = {{&parent_key, ""},
                {&class_key, "class"},
                {&values_key, "values"},
                {&reads_key, "language_reads"},
                {&make_key, "make_hot_loop"},
                {&writes_key, "language_writes"},
                {&methods_key, "language_methods"},
                {&span_key, "span"},
                {&stack_key, "stack"},
                {&raises_key, "raises"},
                {&context_key, "context"},
                {&cause_key, "cause"},
                {&code_key, "code"},
                {&message_key, "message"},
                {&text_key, "text"},
                {&arguments_key, "arguments"},
                {&context_class_key, "language_context"},
                {&exception_class_key, "language_raised"},
                {&assertion_code, "E701"},
                {&raised_code, "E702"},
                {&missing_code, "E207"},
                {&key_error_name, "KeyError"},
                {&enter_key, "__enter__"},
                {&exit_key, "__exit__"},
                {&name_key, "__name__"}};
    for (size_t k = 0; k < sizeof keys / sizeof *keys && !failed; k++)
        failed = !(*keys[k].key = PyUnicode_InternFromString(keys[k].text));
    Py_XDECREF(nodes);
    return failed ? -1 : 0;
}
