/* Blocks that wait in their middle, those of generators, and generator expressions. */

#include "node.h"

#include <stddef.h>

/* What an instruction does, as `compiler/statements/generators.py` numbers it. */
enum { RUN, WAIT, YIELD, TEST, WAITING_TEST, STEP, BEGIN, WAITING_BEGIN, NEXT, LEAVE, JUMP, DELEGATE,
       STAND };

/* Parts of a block: what a loop needs, and the instructions, each with its kind, its node, its place
 * and where it may go on; of a generator expression, what gives the values of its first loop, what
 * the iterator is like that it makes, and what makes one that draws from another. */
enum { STEPS = FIRST, ITERATE, CONVERT, BROKE, GOES_ON, ITERABLE, LIKE, DRAWING, INSTRUCTIONS };
enum { KIND, PART, WHERE, TO, OTHERWISE, PARTS_OF_EACH };

/* The numbers of an instruction: what it does, and where it may go on. */
typedef struct {
    int kind, to, otherwise;
} Code;

/* A block that was begun: its variables, or those around it, NULL once it is over; what its nodes are
 * given, which are these or locals; what it waits for, NULL for one that draws from it; where it goes
 * on; and the iterators of its loops, with the locals behind them. */
typedef struct {
    Resumable head;
    const Node *code;
    PyObject *variables, *given, *waiting;
    Py_ssize_t at;
    int has_begun, is_running, is_call;
    PyObject *iterator[];
} Frame;

static PyTypeObject *frame_type;

/* --- instructions ----------------------------------------------------------------------------- */

/* Bind the next value of a loop; 0 where there is none, -1 with an exception set. */
static int draw(Frame *self, PyObject *const *now, const Code *code)
{
    PyObject *const *part = self->code->part;
    PyObject *value = PyIter_Next(self->iterator[code->otherwise]);
    if (!value) {
        if (!PyErr_Occurred()) return 0;
        Py_XDECREF(after_error(part[CONVERT], NULL, 0)); /* which raises */
        return -1;
    }
    int failed = charge_step(part[STEPS]);
    if (!failed) failed = store_in(now[PART], self->given, value);
    Py_DECREF(value);
    return failed < 0 || breathe() < 0 ? -1 : 1;
}

/* Wait for the values of `yield from`, until they are over; -1 with an exception set. */
static int delegate(Frame *self, PyObject *values)
{
    self->waiting = generator_of(values);
    if (!self->waiting)
        self->waiting = PyObject_CallFunctionObjArgs(self->code->part[ITERATE], values, NULL);
    return self->waiting ? 0 : -1;
}

/* How a statement ended goes on: where, or -1 for outside of the block. */
static long after_end(const Frame *self, const Code *code, PyObject *ended)
{
    PyObject *const *part = self->code->part;
    if (ended == Py_None) return (long)self->at + 1;
    if (ended == part[BROKE]) return code->to;
    return ended == part[GOES_ON] ? code->otherwise : -1;
}

/* Do what an instruction does, with the value of its node, which is given, or NULL: where the block
 * goes on; -1 where it returns what is in `value`, or an exception is set, for which that is NULL. */
static long done(Frame *self, PyObject *const *now, const Code *code, PyObject **value)
{
    PyObject *const *part = self->code->part, *given = *value;
    long next = (long)self->at + 1;
    int decision = 0;
    *value = NULL;
    switch (code->kind) {
    case RUN:
    case WAIT:
        next = after_end(self, code, given);
        if (next < 0) *value = given;
        else Py_DECREF(given);
        return next;
    case WAITING_TEST:
        decision = decides(given, part[STATE], now[WHERE]);
        if (!decision) next = code->to;
        break;
    case BEGIN:
    case WAITING_BEGIN:
        decision = stand_at(part[STATE], now[WHERE]);
        PyObject **iterator = self->iterator + code->otherwise;
        Py_CLEAR(*iterator);
        if (!decision && !(*iterator = iterator_of(given, part[ITERATE]))) decision = -1;
        Py_DECREF(given);
        break;
    case LEAVE:
        Py_CLEAR(self->iterator[code->otherwise]);
        break;
    case STAND:
        decision = stand_at(part[STATE], now[WHERE]);
        next = code->to;
        break;
    case DELEGATE: /* whose values are over: an expression returns the result */
        if (code->to < 0) {
            *value = given;
            return -1;
        }
        Py_DECREF(given);
    }
    return decision < 0 ? -1 : next;
}

/* Whether an instruction has a node with a value. */
static int has_value(long kind)
{
    return kind <= YIELD || kind == BEGIN || kind == WAITING_TEST || kind == WAITING_BEGIN ||
           kind == DELEGATE;
}

/* Evaluate the node of an instruction, or begin to wait for its value, which is NULL then. */
static int evaluated(Frame *self, PyObject *const *now, long kind, PyObject **value)
{
    *value = value_of(now[PART], self->given);
    if (!*value) return -1;
    if (kind == WAIT || kind == WAITING_TEST || kind == WAITING_BEGIN) {
        self->waiting = *value;
        *value = NULL;
    } else if (kind == DELEGATE) {
        int failed = stand_at(self->code->part[STATE], now[WHERE]) < 0 || delegate(self, *value) < 0;
        Py_CLEAR(*value);
        return -failed;
    }
    return 0;
}

/* Do an instruction that most blocks are made of: 1 where it was done, 0 for any other, and where it ends
 * the block, with how in `value`; -1 with an exception set. */
static int done_at_once(Frame *self, PyObject *const *now, const Code *code, PyObject **value)
{
    PyObject *const *part = self->code->part;
    int decision = 1;
    switch (code->kind) {
    case RUN:
        if (!(*value = value_of(now[PART], self->given))) return -1;
        if (*value != Py_None) return 0;
        Py_CLEAR(*value);
        break;
    case TEST: decision = decides(value_of(now[PART], self->given), part[STATE], now[WHERE]); break;
    case STEP:
        if (charge_step(part[STEPS]) < 0 || breathe() < 0) return -1;
        break;
    case NEXT:
        if (now[WHERE] != Py_None) stand_at(part[STATE], now[WHERE]);
        decision = draw(self, now, code);
        break;
    case JUMP: decision = 0; break;
    default: return 0;
    }
    if (decision < 0) return -1;
    self->at = decision ? self->at + 1 : code->to;
    return 1;
}

/* Run instructions up to the next `yield`; with a value for what waits, or the exception that is set. */
static PySendResult ran(Frame *self, PyObject *sent, PyObject **result)
{
    PyObject *const *instructions = self->code->part + INSTRUCTIONS, *value;
    const Code *codes = self->code->codes;
    Py_ssize_t end = (parts_of(self->code) - INSTRUCTIONS) / PARTS_OF_EACH;
    while (self->at != end) {
        PyObject *const *now = instructions + PARTS_OF_EACH * self->at;
        const Code *code = codes + self->at;
        long kind = code->kind, next;
        value = NULL;
        if (!self->waiting) {
            int is_done = done_at_once(self, now, code, &value);
            if (is_done < 0) return PYGEN_ERROR;
            if (is_done) continue;
        }
        if (!self->waiting && !value && has_value(kind) && evaluated(self, now, kind, &value) < 0)
            return PYGEN_ERROR;
        if (self->waiting) {
            PySendResult status = sent ? PyIter_Send(self->waiting, sent, &value)
                                       : thrown_into(self->waiting, kind == DELEGATE, &value);
            sent = Py_None;
            *result = value;
            if (status == PYGEN_NEXT) return status;
            Py_CLEAR(self->waiting);
            if (status == PYGEN_ERROR) return status;
        }
        if (kind == YIELD) {
            self->at++;
            *result = value;
            return PYGEN_NEXT;
        }
        next = done(self, now, code, &value);
        if (next < 0) {
            *result = value;
            return value ? PYGEN_RETURN : PYGEN_ERROR;
        }
        self->at = next;
    }
    *result = Py_NewRef(Py_None);
    return PYGEN_RETURN;
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* The block is over. */
static void finish(Frame *self)
{
    Py_CLEAR(self->variables);
    Py_CLEAR(self->waiting);
    for (Py_ssize_t k = 0; k < self->head.ob_base.ob_size; k++) Py_CLEAR(self->iterator[k]);
}

/* Run a generator expression, which the host draws from. */
static PySendResult ran_as_call(Frame *self, PyObject *sent, PyObject **result)
{
    PyObject *steps = self->code->part[STEPS], *nested = enter_host_call(steps);
    if (!nested) return PYGEN_ERROR;
    PySendResult status = ran(self, sent, result);
    leave_host_call(steps, nested);
    if (status != PYGEN_ERROR || !PyErr_ExceptionMatches(PyExc_StopIteration)) return status;
    PyErr_Clear();
    *result = Py_NewRef(Py_None);
    return PYGEN_RETURN;
}

static PySendResult resume(PyObject *object, PyObject *sent, PyObject **result)
{
    Frame *self = (Frame *)object;
    PySendResult status = PYGEN_ERROR;
    *result = NULL;
    if (self->is_running) {
        PyErr_SetString(PyExc_ValueError, "generator already executing");
        return status;
    }
    if (!self->variables) {
        if (!sent) return status;
        *result = Py_NewRef(Py_None);
        return PYGEN_RETURN;
    }
    if (sent && sent != Py_None && !self->has_begun) {
        PyErr_SetString(PyExc_TypeError, "can't send non-None value to a just-started generator");
        return status;
    }
    self->has_begun = self->is_running = 1;
    if (sent || self->waiting) status = (self->is_call ? ran_as_call : ran)(self, sent, result);
    self->is_running = 0;
    if (status != PYGEN_NEXT) finish(self);
    return status;
}

/* The number of an instruction, 0 for None. */
static int number_of(PyObject *value)
{
    return value == Py_None ? 0 : (int)PyLong_AsLong(value);
}

/* The numbers of a node's instructions, read once; -1 with an exception set. */
static int read_codes(Node *self)
{
    Py_ssize_t count = (parts_of(self) - INSTRUCTIONS) / PARTS_OF_EACH;
    Code *codes = PyMem_Malloc((size_t)(count + 1) * sizeof *codes);
    if (!codes) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *const *now = self->part + INSTRUCTIONS + PARTS_OF_EACH * k;
        codes[k] = (Code){number_of(now[KIND]), number_of(now[TO]), number_of(now[OTHERWISE])};
    }
    self->codes = codes;
    return PyErr_Occurred() ? -1 : 0;
}

/* A block that begins with its own variables; or with those around it, in the first place of the room for
 * its locals. */
static Frame *begun(const Node *self, PyObject *variables, Py_ssize_t room)
{
    if (!self->codes && read_codes((Node *)self) < 0) return NULL;
    Frame *frame = (Frame *)PyType_GenericAlloc(frame_type, self->number + room);
    if (!frame) return NULL;
    frame->head.resume = resume;
    frame->code = (const Node *)Py_NewRef((PyObject *)self);
    frame->variables = frame->given = Py_NewRef(variables);
    if (room) {
        frame->iterator[self->number] = Py_NewRef(variables);
        frame->given = (PyObject *)(frame->iterator + self->number);
    }
    return frame;
}

/* Statements in a row that can wait, as many loops among them as `number` says: what goes on. */
PyObject *run_frame(const Node *self, PyObject *variables)
{
    if (!self->locals) return (PyObject *)begun(self, variables, 0);
    PyObject **given = (PyObject **)variables;
    Py_ssize_t locals = PyTuple_Size(self->locals);
    Frame *frame = begun(self, given[0], 1 + locals);
    for (Py_ssize_t k = 1; frame && k <= locals; k++)
        frame->iterator[self->number + k] = Py_XNewRef(given[k]);
    return (PyObject *)frame;
}

/* How many iterators one draws from in a row, which are few; whether one more would be many. */
static long depth_of(PyObject *values)
{
    return PyLong_AsLong(AT(values, ITERATOR_depth));
}

static int is_deep(PyObject *values)
{
    enum { FEW = 4 };
    return Py_IS_TYPE(values, known_class[ITERATOR]) && depth_of(values) >= FEW;
}

/* `(element for target in iterable …)`. */
PyObject *run_drawn(const Node *self, PyObject *variables)
{
    PyObject *const *part = self->part, *iterator = NULL, *inside = NULL, *drawn = NULL;
    PyObject *values = value_of(part[ITERABLE], variables);
    Frame *frame = NULL;
    if (!values) return NULL;
    find_locals_inside((Node *)self);
    Py_ssize_t room = self->locals ? 1 + PyTuple_Size(self->locals) : 0;
    if (stand_at(part[STATE], part[PLACE]) < 0) goto end;
    if (!(iterator = iterator_of(values, part[ITERATE]))) goto end;
    if (!(inside = room ? Py_NewRef(variables) : variables_inside(variables))) goto end;
    if (!(frame = begun(self, inside, room))) goto end;
    frame->iterator[0] = Py_NewRef(iterator);
    frame->is_call = 1;
    drawn = is_deep(values) ? PyObject_CallFunctionObjArgs(part[DRAWING], (PyObject *)frame, values, NULL)
                            : iterator_like(part[LIKE], (PyObject *)frame, values);
    if (drawn && Py_IS_TYPE(values, known_class[ITERATOR]))
        replace(&AT(drawn, ITERATOR_depth), PyLong_FromLong(depth_of(values) + 1));
end:
    Py_DECREF(values);
    Py_XDECREF(iterator);
    Py_XDECREF(inside);
    Py_XDECREF((PyObject *)frame);
    return drawn;
}

int waits(PyObject *frame)
{
    return ((Frame *)frame)->waiting != NULL;
}

/* --- their type ------------------------------------------------------------------------------- */

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    Frame *self = (Frame *)object;
    for (Py_ssize_t k = 0; k < Py_SIZE(object); k++) Py_VISIT(self->iterator[k]);
    Py_VISIT((PyObject *)self->code);
    Py_VISIT(self->variables);
    Py_VISIT(self->waiting);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int clear(PyObject *object)
{
    finish((Frame *)object);
    return 0;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    finish((Frame *)object);
    Py_XDECREF((PyObject *)((Frame *)object)->code);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

int add_frames(void)
{
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, dealloc},
        {Py_tp_traverse, traverse},
        {Py_tp_clear, clear},
        {Py_tp_doc, "A block of a generator, or a generator expression, that was begun."},
        {0, NULL},
    };
    frame_type = waiting_type("gradcli.arrays.native._core.Frame", offsetof(Frame, iterator),
                              sizeof(PyObject *), slots);
    return frame_type ? 0 : -1;
}
