/* `for` and `while`, and the bodies of loops. */

#include "node.h"

/* What runs the iterations of a loop, what is called when it has ended, and what may run several. */
typedef struct {
    PyObject *run, *leave, *alike;
    int counts; /* whether nothing has begun, and each iteration is counted until it is hot */
} Iterations;

/* Above this number a loop is settled: no iteration of it begins anything. */
#define SETTLED (LONG_MAX / 2)

/* Parts of a `for` loop. What watches it where there are modules, and what begins it, is made of what
 * the loop was made of when it first is called; TOLD is the loop of the compiler's that it tells how
 * many iterations it interprets, once all are. */
enum {
    STEPS = FIRST, ITERABLE, TARGET, BODY, OTHER, ITERATE, CONVERT, BROKE, GOES_ON, MAKE_WATCH,
    INTERPRETER, COMPILER, TREE, AROUND, LOOP, IN_TRY, MAKE, BEGIN, TOLD, WATCH
}; /* and behind them the twin, as of a `while` loop */

/* A loop as it runs: its node and the variables; where these are in a dict in place of locals, as of the
 * node's twin, the node and the locals that it began with. */
typedef struct {
    const Node *self, *began;
    PyObject *variables, **slots;
} Running;

/* Let something of the host's have the variables, as of the twin of the loop's node; and the loop go on
 * with locals. -1 with an exception set. */
static int use_dict(Running *loop)
{
    if (!loop->self->locals) return 0;
    PyObject **slots = (PyObject **)loop->variables, *dict;
    Node *twin = twin_of(loop->self);
    if (!twin || !(dict = dict_of_locals(loop->self, slots))) return -1;
    if (twin->number > loop->self->number && twin->number <= SETTLED) twin->number = loop->self->number;
    *loop = (Running){twin, loop->self, dict, slots};
    return 0;
}

static int use_locals(Running *loop)
{
    if (!loop->slots) return 0;
    int failed = take_back(loop->began, loop->slots, loop->variables);
    Py_DECREF(loop->variables);
    *loop = (Running){loop->began, NULL, (PyObject *)loop->slots, NULL};
    return failed;
}

/* What `begin` returned: None where nothing begins yet, or how many more iterations do not; where
 * nothing ever will, what runs the iterations, the part of that number, and behind it for a `for` loop
 * what is told. */
static int take(Node *self, int body, Iterations *these, PyObject *begun)
{
    if (!begun) return -1;
    Py_ssize_t count = PyTuple_Check(begun) ? PyTuple_Size(begun) : 0;
    these->counts = begun == Py_None || Py_IS_TYPE(begun, &PyLong_Type);
    if (these->counts && begun != Py_None) self->number = PyLong_AsLong(begun);
    if (count) replace(&these->run, Py_NewRef(PyTuple_GetItem(begun, 0)));
    if (count == 3) {
        these->leave = Py_NewRef(PyTuple_GetItem(begun, 1));
        these->alike = Py_NewRef(PyTuple_GetItem(begun, 2));
    } else if (count) {
        put(self, body, these->run);
        if (count == 2) put(self, TOLD, PyTuple_GetItem(begun, 1));
        self->number = LONG_MAX;
    }
    Py_DECREF(begun);
    return 0;
}

/* The loop has ended, in whichever way; -1 with an exception set. */
static int leave(Iterations *these, PyObject *variables)
{
    PyObject *kind, *error, *trace, *nothing = NULL;
    int failed;
    if (!these->leave) {
        Py_CLEAR(these->run);
        Py_CLEAR(these->alike);
        return PyErr_Occurred() ? -1 : 0;
    }
    PyErr_Fetch(&kind, &error, &trace);
    nothing = PyObject_CallFunctionObjArgs(these->leave, variables, NULL);
    failed = nothing ? 0 : -1;
    if (failed && kind) {
        PyErr_NormalizeException(&kind, &error, &trace);
        if (trace) PyException_SetTraceback(error, trace);
        raise_in_place_of(error);
        Py_DECREF(kind);
        Py_XDECREF(trace);
    } else if (kind) {
        PyErr_Restore(kind, error, trace);
        failed = -1;
    }
    Py_XDECREF(nothing);
    Py_CLEAR(these->run);
    Py_CLEAR(these->leave);
    Py_CLEAR(these->alike);
    return failed;
}

/* Run an iteration; 1 where it ended the loop, with how the loop ends the block in `result`, NULL
 * for an exception: else 0. `*broke` says that `else` is left out. */
static int ends(PyObject *ended, PyObject *broke, PyObject *goes_on, PyObject **result)
{
    if (ended == Py_None || ended == goes_on) {
        Py_DECREF(ended);
        return 0;
    }
    *result = ended;
    if (ended == broke) {
        Py_DECREF(ended);
        *result = Py_NewRef(Py_None);
    }
    return 1;
}

/* --- for -------------------------------------------------------------------------------------- */

static int is_counted(PyTypeObject *kind)
{
    return kind == &PyList_Type || kind == &PyTuple_Type || kind == &PyRange_Type;
}

/* Tell of a settled loop how many iterations it will interpret, where that is known. */
static int tell(Node *self, PyObject *values)
{
    if (self->part[TOLD] == Py_None || !is_counted(Py_TYPE(values))) return 0;
    PyObject *told = PyObject_CallFunctionObjArgs(self->part[TOLD], values, NULL);
    Py_XDECREF(told);
    return told ? 0 : -1;
}

/* Begin what may compile or write iterations. Where nothing begins yet, the loop goes on with locals. */
static int call_begin(Running *loop, PyObject *values, long left, Iterations *these)
{
    if (use_dict(loop) < 0) return -1;
    Node *self = (Node *)loop->self;
    PyObject *const *part = self->part, *number;
    replace(&these->run, Py_NewRef(part[BODY]));
    if (self->number > SETTLED) return tell(self, values);
    if (!(number = PyLong_FromLong(left))) return -1;
    if (part[BEGIN] == Py_None) {
        PyObject *made = PyObject_CallFunctionObjArgs(part[MAKE], part[COMPILER], part[TREE], part[AROUND],
                                                      part[BODY], part[LOOP], part[IN_TRY], NULL);
        if (made) replace(&self->part[BEGIN], made);
        else Py_CLEAR(number);
        if (!made) return -1;
    }
    int failed = take(self, BODY, these,
                      PyObject_CallFunctionObjArgs(self->part[BEGIN], loop->variables, values, number, NULL));
    Py_DECREF(number);
    if (failed || !loop->slots) return failed;
    ((Node *)loop->began)->number = self->number > SETTLED ? -1 : self->number;
    if (!these->counts) return 0;
    replace(&these->run, Py_NewRef(loop->began->part[BODY]));
    return use_locals(loop);
}

/* Whether iterations may be compiled in the session, which says so where it makes what does it. */
static int may_be_compiled(const Node *self)
{
    PyObject *make = PyObject_GetAttr(self->part[INTERPRETER], make_key);
    if (!make) PyErr_Clear();
    Py_XDECREF(make);
    return make != Py_None;
}

/* Begin a loop over values: one of few iterations is counted here, as long as it is not hot, and so is
 * any that nothing compiles. */
static int begin(Running *loop, PyObject *values, Iterations *these)
{
    Node *self = (Node *)loop->self;
    PyTypeObject *kind = Py_TYPE(values);
    long left = self->number;
    these->run = Py_NewRef(self->part[BODY]);
    if (left > SETTLED) return tell(self, values);
    if (left >= 0 && is_counted(kind)) {
        Py_ssize_t length = PyObject_Size(values);
        if (length < 0) PyErr_Clear(); /* a range that is longer than the host can say */
        self->number = length < 0 || length > left ? -1 : left - (long)length;
        if (self->number >= 0 && (length < PyLong_AsSsize_t(helper[FEWEST]) || !may_be_compiled(self)))
            return 0;
    } else if (left >= 0 && (kind != known_class[ITERATOR] || !may_be_compiled(self))) {
        these->counts = 1;
        return 0;
    }
    return call_begin(loop, values, left, these);
}

/* Count an iteration of a loop that has not begun, and begin it where it is hot. */
static int count(Running *loop, PyObject *values, Iterations *these)
{
    Node *self = (Node *)loop->self;
    if (--self->number >= 0) return 0;
    these->counts = 0;
    if (call_begin(loop, values, self->number, these) < 0) return -1;
    Py_CLEAR(these->alike); /* the iterator is in use */
    return 0;
}

PyObject *iterator_of(PyObject *values, PyObject *iterate)
{
    PyTypeObject *kind = Py_TYPE(values);
    if (is_counted(kind) || kind == &PyUnicode_Type || kind == &PyDict_Type ||
        kind == &PySet_Type || kind == &PyDictKeys_Type || kind == &PyDictValues_Type ||
        kind == &PyDictItems_Type)
        return PyObject_GetIter(values);
    if (kind == known_class[ITERATOR]) return PyObject_GetIter(AT(values, ITERATOR_source));
    return PyObject_CallFunctionObjArgs(iterate, values, NULL);
}

/* The outermost loop that tells its length: this one, or the one around it. */
static int note_outermost(PyObject *state, PyObject *outer, PyObject *iterator, PyObject *values)
{
    if (outer != Py_None || !is_counted(Py_TYPE(values))) return 0;
    Py_ssize_t length = PyObject_Size(values);
    if (length < 0) {
        PyErr_Clear();
        length = PY_SSIZE_T_MAX;
    }
    PyObject *here = Py_BuildValue("(On)", iterator, length);
    if (!here) return -1;
    replace(&AT(state, SESSION_outermost), here);
    return 0;
}

/* One iteration, as `ends` says it. */
static int iteration(Running *loop, PyObject *values, PyObject *iterator, Iterations *these, PyObject **result)
{
    PyObject *ended;
    if (these->counts && count(loop, values, these) < 0) return 1;
    ended = value_of(these->run, loop->variables);
    if (ended == Py_None && these->alike && these->alike != Py_None) {
        Py_DECREF(ended);
        ended = PyObject_CallFunctionObjArgs(these->alike, loop->variables, iterator, loop->self->part[TARGET],
                                             NULL);
    }
    return !ended || ends(ended, loop->self->part[BROKE], loop->self->part[GOES_ON], result);
}

/* Where there are modules, and gradients are recorded, a function watches the loop as it begins. */
static int watch(const Node *self, PyObject *variables)
{
    PyObject *const *part = self->part, *modules = AT(part[STATE], SESSION_modules), *nothing;
    int watches = modules == Py_None ? 0 : PyObject_IsTrue(modules);
    if (watches <= 0) return watches;
    if (part[WATCH] == Py_None) {
        PyObject *made = PyObject_CallFunctionObjArgs(part[MAKE_WATCH], part[COMPILER], part[TREE], NULL);
        if (!made) return -1;
        put((Node *)self, WATCH, made);
        Py_DECREF(made);
    }
    variables = self->locals ? dict_of_locals(self, (PyObject **)variables) : Py_NewRef(variables);
    nothing = variables ? PyObject_CallFunctionObjArgs(part[WATCH], variables, NULL) : NULL;
    Py_XDECREF(variables);
    Py_XDECREF(nothing);
    return nothing ? 0 : -1;
}

/* `for target in iterable`, with its `else`, None for none; `number` more iterations are not hot. */
PyObject *run_for_loop(const Node *self, PyObject *variables)
{
    if (watch(self, variables) < 0) return NULL;
    PyObject *const *part = self->part, *state = part[STATE];
    PyObject *result = NULL, *iterator = NULL, *outer = NULL, *value;
    PyObject *values = value_of(part[ITERABLE], variables);
    Iterations these = {NULL, NULL, NULL, 0};
    Running loop = {self, NULL, variables, NULL};
    int has_ended = 1;
    if (!values) return NULL;
    if (stand_at(state, part[PLACE]) < 0 || begin(&loop, values, &these) < 0) goto end;
    outer = Py_NewRef(AT(state, SESSION_outermost));
    if (!(iterator = iterator_of(values, part[ITERATE]))) goto end;
    if (note_outermost(state, outer, iterator, values) < 0) goto end;
    for (;;) {
        if (!(value = PyIter_Next(iterator))) {
            has_ended = PyErr_Occurred() != NULL;
            if (has_ended) Py_XDECREF(after_error(part[CONVERT], NULL, 0)); /* which raises */
            break;
        }
        int failed = charge_step(part[STEPS]);
        if (!failed) failed = store_in(loop.self->part[TARGET], loop.variables, value);
        Py_DECREF(value);
        if (failed || iteration(&loop, values, iterator, &these, &result)) break;
        if (stand_at(state, part[PLACE]) < 0 || breathe() < 0) break;
    }
end:
    if (outer) replace(&AT(state, SESSION_outermost), outer);
    int failed = leave(&these, loop.variables);
    if (use_locals(&loop) < 0 || failed) Py_CLEAR(result);
    else if (!has_ended)
        result = part[OTHER] == Py_None ? Py_NewRef(Py_None) : value_of(part[OTHER], variables);
    Py_DECREF(values);
    Py_XDECREF(iterator);
    return result;
}

/* --- while ------------------------------------------------------------------------------------ */

/* `while test`, with its `else`, None for none; `number` more iterations are not hot. */
PyObject *run_while_loop(const Node *self, PyObject *variables)
{
    enum { TEST = STEPS + 1, WHILE_BODY, ORELSE, START, STOPS, CONTINUES };
    PyObject *const *part = self->part, *result = NULL;
    Running loop = {self, NULL, variables, NULL};
    Iterations these = {Py_NewRef(part[WHILE_BODY]), NULL, NULL, self->number <= SETTLED};
    int decision = -1;
    for (;;) {
        decision = decides(value_of(loop.self->part[TEST], loop.variables), part[STATE], part[PLACE]);
        if (decision <= 0) break;
        decision = -1;
        if (charge_step(part[STEPS]) < 0) break;
        if (these.counts && --((Node *)self)->number < 0) {
            if (use_dict(&loop) < 0) break;
            replace(&these.run, Py_NewRef(loop.self->part[WHILE_BODY]));
            these.counts = loop.self->number <= SETTLED;
            PyObject *begun = these.counts ? PyObject_CallFunctionObjArgs(part[START], loop.variables,
                                                                          these.run, NULL)
                                           : NULL;
            if (these.counts && take((Node *)loop.self, WHILE_BODY, &these, begun) < 0) break;
        }
        PyObject *ended = value_of(these.run, loop.variables);
        if (!ended || ends(ended, part[STOPS], part[CONTINUES], &result)) break;
        if (breathe() < 0) break;
    }
    int failed = leave(&these, loop.variables);
    if (use_locals(&loop) < 0 || failed) Py_CLEAR(result);
    else if (decision == 0)
        result = part[ORELSE] == Py_None ? Py_NewRef(Py_None) : value_of(part[ORELSE], variables);
    return result;
}

/* --- bodies ----------------------------------------------------------------------------------- */

/* The body of a loop that is hot: after so many runs, `number` of which are left, a function tells
 * what is to run in its place; None for nothing yet. */
PyObject *run_hot_block(const Node *self, PyObject *variables)
{
    enum { RUN, PERIOD, LOOK };
    Node *own = (Node *)self;
    if (own->number > 0 && --own->number == 0) {
        PyObject *found = PyObject_CallNoArgs(own->part[LOOK]);
        if (!found) return NULL;
        if (found == Py_None) {
            own->number = PyLong_AsLong(own->part[PERIOD]);
            Py_DECREF(found);
        } else {
            PyObject *before = own->part[RUN];
            own->part[RUN] = found;
            Py_DECREF(before);
        }
    }
    PyObject *run = Py_NewRef(own->part[RUN]);
    PyObject *ended = value_of(run, variables);
    Py_DECREF(run);
    return ended;
}
