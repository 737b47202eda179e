/* Runs the tables of the grammar over tokens: `Parser.run` of `parser/parser.py`, which does the same
 * where there is no core. */

#include "node.h"

/* How the value of a rule is made, as `parser/tables.py` numbers it. */
enum { BUILD, PASS, LIST };

/* The most parts of a rule, kinds of tokens, and entries of the stack. */
enum { MOST_PARTS = 16, MOST_KINDS = 160, HIGHEST = 4000 };

typedef struct {
    int length, mode, count; /* its parts, and those that are kept */
    int place[MOST_PARTS], is_list[MOST_PARTS];
    PyObject *builder;  /* what is called with a span and the parts, or None */
    PyTypeObject *node; /* what is made in place of a call, or NULL */
    Py_ssize_t *slot;   /* where it has its fields, the span first */
    PyObject **last;    /* the values of its last fields, where there are fewer parts */
    int fields;
} Rule;

/* What is known of a state that a rule leads to, of a kind of token behind it and a state below. */
typedef struct {
    uint32_t key; /* 0 for nothing */
    int state;
} Follow;

/* The tables, read as they are met: by state and kind of token a state that follows, or a rule as a
 * negative number; and what the parser says of the states that follow rules. */
typedef struct {
    PyObject *rows, *kinds, *span;
    int16_t **row;
    Rule *rule;
    Follow *known;
    Py_ssize_t states, rules, follows, room, span_slot[3];
} Automaton;

static const char AUTOMATON[] = "gradcli.automaton";

/* --- the tables ------------------------------------------------------------------------------- */

/* The number of a kind of token, which it is given where it has none; -1 with an exception set. */
static long number_of(Automaton *self, PyObject *kind)
{
    PyObject *known = PyDict_GetItemWithError(self->kinds, kind);
    if (known) return PyLong_AsLong(known);
    if (PyErr_Occurred()) return -1;
    Py_ssize_t count = PyDict_Size(self->kinds);
    PyObject *number = PyLong_FromSsize_t(count);
    int failed = !number || PyDict_SetItem(self->kinds, kind, number) < 0;
    Py_XDECREF(number);
    if (!failed && count < MOST_KINDS) return (long)count;
    if (!failed) PyErr_SetString(PyExc_SystemError, "too many kinds of tokens");
    return -1;
}

/* What a state does with each kind of token, 0 for nothing; NULL with an exception set. */
static const int16_t *row_of(Automaton *self, long state)
{
    if (self->row[state]) return self->row[state];
    PyObject *table = PyList_GetItem(self->rows, state), *kind, *action;
    int16_t *row = table ? PyMem_Calloc(MOST_KINDS, sizeof *row) : NULL;
    Py_ssize_t at = 0;
    while (row && PyDict_Next(table, &at, &kind, &action)) {
        long number = number_of(self, kind);
        if (number >= 0) row[number] = (int16_t)PyLong_AsLong(action);
        if (PyErr_Occurred()) {
            PyMem_Free(row);
            row = NULL;
        }
    }
    if (table && !row && !PyErr_Occurred()) PyErr_NoMemory();
    return self->row[state] = row;
}

/* Keep what was found out once more; 0, or -1 with an exception set. */
static int widen(Automaton *self)
{
    Py_ssize_t room = 2 * self->room;
    Follow *wider = PyMem_Calloc((size_t)room, sizeof *wider);
    if (!wider) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < self->room; k++) {
        if (!self->known[k].key) continue;
        uint32_t at = self->known[k].key * 0x9E3779B1u & (uint32_t)(room - 1);
        while (wider[at].key) at = (at + 1) & (uint32_t)(room - 1);
        wider[at] = self->known[k];
    }
    PyMem_Free(self->known);
    self->known = wider;
    self->room = room;
    return 0;
}

/* The state behind a rule, as the parser's `follow` finds it; -1 with an exception set. */
static long after(Automaton *self, PyObject *follow, long action, PyObject *kind, long number, long below)
{
    uint32_t key = (uint32_t)(((-action) * MOST_KINDS + number) * self->states + below), mask, at;
    if (4 * self->follows > 3 * self->room && widen(self) < 0) return -1;
    mask = (uint32_t)(self->room - 1);
    at = key * 0x9E3779B1u & mask;
    while (self->known[at].key && self->known[at].key != key) at = (at + 1) & mask;
    if (self->known[at].key) return self->known[at].state;
    PyObject *found = PyObject_CallFunction(follow, "lOl", action, kind, below);
    long state = found ? PyLong_AsLong(found) : -1;
    Py_XDECREF(found);
    if (state >= 0) {
        self->known[at] = (Follow){key, (int)state};
        self->follows++;
    }
    return state;
}

/* --- values ----------------------------------------------------------------------------------- */

/* A token that was read, or what rules made of several: its value, where it begins, and the state. */
typedef struct {
    PyObject *value, *begin;
    long state;
} Entry;

typedef struct {
    Entry *entry;
    Py_ssize_t count, room;
} Stack;

/* A part of a rule, a borrowed reference; an absent one is None. */
static PyObject *part_of(const Stack *stack, int place)
{
    return place ? stack->entry[stack->count + place].value : Py_None;
}

static PyObject *list_of(const Rule *rule, const Stack *stack)
{
    PyObject *first = part_of(stack, rule->place[0]), *list;
    if (rule->is_list[0]) list = Py_NewRef(first); /* which has no other use, so that it grows in place */
    else if ((list = PyList_New(1))) PyList_SetItem(list, 0, Py_NewRef(first));
    for (int k = 1; list && k < rule->count; k++) {
        PyObject *each = part_of(stack, rule->place[k]);
        Py_ssize_t end = PyList_Size(list);
        int failed = rule->is_list[k] ? PyList_SetSlice(list, end, end, each) : PyList_Append(list, each);
        if (failed < 0) Py_CLEAR(list);
    }
    return list;
}

/* A span, of a source from the start of a rule's first part to the end of its last. */
static PyObject *span_of(const Automaton *self, PyObject *source, PyObject *begin, PyObject *end)
{
    PyObject *span = PyType_GenericAlloc((PyTypeObject *)self->span, 0);
    PyObject *part[] = {source, begin, end};
    for (int k = 0; span && k < 3; k++) *(PyObject **)((char *)span + self->span_slot[k]) = Py_NewRef(part[k]);
    return span;
}

/* What a rule makes of its parts, with their span, whose reference is given. */
static PyObject *built(const Rule *rule, const Stack *stack, PyObject *span)
{
    PyObject *value;
    if (!span) return NULL;
    if (rule->node) {
        value = PyType_GenericAlloc(rule->node, 0);
        for (int k = 0; value && k < rule->fields; k++) {
            PyObject *part = k <= rule->count ? (k ? part_of(stack, rule->place[k - 1]) : span)
                                              : rule->last[k - rule->count - 1];
            *(PyObject **)((char *)value + rule->slot[k]) = Py_NewRef(part);
        }
        Py_DECREF(span);
        return value;
    }
    PyObject *given = PyTuple_New(rule->count + 1);
    if (given) PyTuple_SetItem(given, 0, span);
    else Py_DECREF(span);
    for (int k = 0; given && k < rule->count; k++)
        PyTuple_SetItem(given, k + 1, Py_NewRef(part_of(stack, rule->place[k])));
    value = given ? PyObject_Call(rule->builder, given, NULL) : NULL;
    Py_XDECREF(given);
    return value;
}

/* Put a value on the stack, whose reference is given; -1 with an exception set. */
static int push(Stack *stack, PyObject *value, PyObject *begin, long state)
{
    if (value && stack->count == stack->room) {
        Py_ssize_t room = stack->room ? 2 * stack->room : 64;
        Entry *wider = PyMem_Realloc(stack->entry, (size_t)room * sizeof *wider);
        if (wider) {
            stack->entry = wider;
            stack->room = room;
        } else {
            PyErr_NoMemory();
            Py_CLEAR(value);
        }
    }
    if (!value) return -1;
    stack->entry[stack->count++] = (Entry){value, begin, state};
    return 0;
}

/* Take a rule's parts from the stack. */
static void pop(Stack *stack, Py_ssize_t count)
{
    while (count--) Py_DECREF(stack->entry[--stack->count].value);
}

/* --- the run ---------------------------------------------------------------------------------- */

/* The tokens of a statement: `Lexer` says what the lists are. */
typedef struct {
    PyObject *source, *kinds, *texts, *starts, *ends, *follow;
} Tokens;

/* End a rule: its value stands for its parts. Where the next token is of this kind; -1 with an
 * exception set. */
static int reduce(Automaton *self, Stack *stack, const Tokens *tokens, long action, Py_ssize_t at,
                  PyObject *kind, long number)
{
    const Rule *rule = self->rule + self->rules + action;
    PyObject *begin = stack->entry[stack->count - rule->length].begin, *value;
    long below = stack->entry[stack->count - rule->length - 1].state;
    if (rule->mode == PASS) value = Py_NewRef(part_of(stack, rule->place[0]));
    else if (rule->mode == LIST) value = list_of(rule, stack);
    else value = built(rule, stack, span_of(self, tokens->source, begin, PyList_GetItem(tokens->ends, at - 1)));
    if (!value) return -1;
    pop(stack, rule->length);
    long state = after(self, tokens->follow, action, kind, number, below);
    if (push(stack, value, begin, state) < 0) return -1;
    return state < 0 ? -1 : 0;
}

/* Read all tokens, up to one that no rule accepts, or the stack is too high for: which one, or how many
 * there are; -1 with an exception set. */
static Py_ssize_t read_all(Automaton *self, Stack *stack, const Tokens *tokens, Py_ssize_t *height)
{
    Py_ssize_t count = PyList_Size(tokens->kinds), at = 0;
    for (; at < count && *height <= HIGHEST; at++) {
        PyObject *kind = PyList_GetItem(tokens->kinds, at);
        const int16_t *row = row_of(self, stack->entry[stack->count - 1].state);
        long number = row ? number_of(self, kind) : -1, action;
        while (number >= 0 && (action = row[number]) < 0) {
            if (reduce(self, stack, tokens, action, at, kind, number) < 0) return -1;
            if (!(row = row_of(self, stack->entry[stack->count - 1].state))) return -1;
        }
        if (number < 0) return -1;
        if (!action) return at;
        PyObject *text = Py_NewRef(PyList_GetItem(tokens->texts, at));
        if (push(stack, text, PyList_GetItem(tokens->starts, at), action) < 0) return -1;
        if (stack->count > *height) *height = stack->count;
    }
    return *height > HIGHEST ? at - 1 : count;
}

/* The states of a stack. */
static PyObject *states_of(const Stack *stack)
{
    PyObject *states = PyList_New(stack->count);
    for (Py_ssize_t k = 0; states && k < stack->count; k++)
        PyList_SetItem(states, k, PyLong_FromLong(stack->entry[k].state));
    return states;
}

/* parse(automaton, follow, source, kinds, texts, starts, ends, state): (value, height, None); or where
 * the tokens cannot be read on, with the height, and the states there. */
PyObject *parse(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    Automaton *self = count == 8 ? PyCapsule_GetPointer(given[0], AUTOMATON) : NULL;
    if (!self) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an automaton, and tokens");
        return NULL;
    }
    Tokens tokens = {given[2], given[3], given[4], given[5], given[6], given[1]};
    Stack stack = {NULL, 0, 0};
    PyObject *result = NULL;
    Py_ssize_t height = 0, at = -1;
    if (push(&stack, Py_NewRef(Py_None), Py_None, PyLong_AsLong(given[7])) == 0)
        at = read_all(self, &stack, &tokens, &height);
    if (at == PyList_Size(tokens.kinds))
        result = Py_BuildValue("OnO", stack.entry[1].value, height, Py_None);
    else if (at >= 0)
        result = Py_BuildValue("nnN", at, height, states_of(&stack));
    pop(&stack, stack.count);
    PyMem_Free(stack.entry);
    return result;
}

/* --- making one ------------------------------------------------------------------------------- */

static void drop(PyObject *capsule)
{
    Automaton *self = PyCapsule_GetPointer(capsule, AUTOMATON);
    for (Py_ssize_t k = 0; self->row && k < self->states; k++) PyMem_Free(self->row[k]);
    for (Py_ssize_t k = 0; self->rule && k < self->rules; k++) {
        Rule *rule = self->rule + k;
        for (int each = 0; rule->last && each < rule->fields - rule->count - 1; each++)
            Py_XDECREF(rule->last[each]);
        PyMem_Free(rule->slot);
        PyMem_Free(rule->last);
        Py_XDECREF(rule->builder);
    }
    PyMem_Free(self->row);
    PyMem_Free(self->rule);
    PyMem_Free(self->known);
    Py_XDECREF(self->rows);
    Py_XDECREF(self->kinds);
    Py_XDECREF(self->span);
    PyMem_Free(self);
}

/* Read where a rule's parts stand; -1 with an exception set. */
static int read_places(Rule *rule, PyObject *places)
{
    rule->count = (int)PyTuple_Size(places);
    if (rule->count > MOST_PARTS) {
        PyErr_SetString(PyExc_SystemError, "too many parts of a rule");
        return -1;
    }
    for (int k = 0; k < rule->count; k++) {
        PyObject *place = PyTuple_GetItem(places, k);
        if (rule->mode == LIST) {
            rule->is_list[k] = PyTuple_GetItem(place, 1) == Py_True;
            place = PyTuple_GetItem(place, 0);
        }
        rule->place[k] = (int)PyLong_AsLong(place);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Read what fields the node of a rule has, and their values behind those of its parts. */
static int read_fields(Rule *rule, PyObject *fields, PyObject *last)
{
    rule->fields = (int)PyTuple_Size(fields);
    rule->slot = PyMem_Calloc((size_t)rule->fields + 1, sizeof *rule->slot);
    rule->last = PyMem_Calloc((size_t)rule->fields + 1, sizeof *rule->last);
    if (!rule->slot || !rule->last) {
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < rule->fields; k++) {
        PyTypeObject *kind = (PyTypeObject *)rule->builder;
        if ((rule->slot[k] = offset_of(kind, PyTuple_GetItem(fields, k))) < 0) return -1;
        if (k > rule->count) rule->last[k - rule->count - 1] = Py_NewRef(PyTuple_GetItem(last, k - rule->count - 1));
    }
    rule->node = (PyTypeObject *)rule->builder;
    return 0;
}

/* A rule of (length, mode, places, builder, fields of the node that it makes or None, its last values). */
static int read_rule(Rule *rule, PyObject *from)
{
    PyObject *places, *builder, *fields, *last;
    if (!PyArg_ParseTuple(from, "iiOOOO", &rule->length, &rule->mode, &places, &builder, &fields, &last))
        return -1;
    rule->builder = Py_NewRef(builder);
    if (read_places(rule, places) < 0) return -1;
    return fields == Py_None ? 0 : read_fields(rule, fields, last);
}

/* automaton(rows, rules, span): what `parse` runs; the last is the class of spans. */
PyObject *make_automaton(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    static const char *const parts[] = {"source", "start", "end"};
    enum { ROOM = 4096 };
    (void)module;
    if (count != 3 || !PyList_Check(given[0]) || !PyList_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "rows, rules, and the class of spans");
        return NULL;
    }
    Automaton *self = PyMem_Calloc(1, sizeof *self);
    PyObject *capsule = self ? PyCapsule_New(self, AUTOMATON, drop) : PyErr_NoMemory();
    if (!capsule) {
        PyMem_Free(self);
        return NULL;
    }
    self->rows = Py_NewRef(given[0]);
    self->span = Py_NewRef(given[2]);
    self->kinds = PyDict_New();
    self->states = PyList_Size(given[0]);
    self->rules = PyList_Size(given[1]);
    self->room = ROOM;
    self->row = PyMem_Calloc((size_t)self->states, sizeof *self->row);
    self->rule = PyMem_Calloc((size_t)self->rules, sizeof *self->rule);
    self->known = PyMem_Calloc(ROOM, sizeof *self->known);
    int failed = !self->kinds || !self->row || !self->rule || !self->known;
    if (failed && !PyErr_Occurred()) PyErr_NoMemory();
    for (Py_ssize_t k = 0; !failed && k < self->rules; k++)
        failed = read_rule(self->rule + k, PyList_GetItem(given[1], k)) < 0;
    for (int k = 0; !failed && k < 3; k++) {
        PyObject *name = PyUnicode_FromString(parts[k]);
        self->span_slot[k] = name ? offset_of((PyTypeObject *)self->span, name) : -1;
        Py_XDECREF(name);
        failed = self->span_slot[k] < 0;
    }
    if (failed) Py_CLEAR(capsule);
    return capsule;
}
