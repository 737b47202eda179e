/* Functions whose variables need no dict: nobody but their own nodes reads them, so that a call has
 * them in a row on the stack of the host. */

#include "node.h"

/* What a kind of nodes hands the variables on to, by its parts from the first on: `x` a node, or None
 * for nothing; `t` that or a text; `0` None alone; `.` something else. What stands behind `*` is
 * repeated up to the last part, and without it no other part is given them. A kind that is not here
 * may do more with variables than hand them on. */
static const struct {
    Evaluate run;
    Bind bind;
    const char *parts;
} KINDS[] = {
    {run_constant, NULL, ""},
    {run_program, NULL, ""},
    {run_binary, NULL, "..xx"},
    {run_contained, NULL, "..xx"},
    {run_same, NULL, "xx"},
    {run_negation, NULL, "..x"},
    {run_signed_number, NULL, "..x"},
    {run_deciding, NULL, ".*x."},
    {run_conditional, NULL, "..xxx"},
    {run_attribute, NULL, "..x"},
    {run_item, NULL, "..xx"},
    {run_slice, NULL, "xxx"},
    {run_list, NULL, "*x"},
    {run_tuple, NULL, "*x"},
    {run_dict, NULL, "..*xx."},
    {run_field, NULL, "..x"},
    {run_formatted, NULL, "...*t"},
    {run_call, NULL, "..x.......*x"},
    {run_method, NULL, "..x................*x"},
    {run_call_with, NULL, "..x...........*.x."},
    {run_tried, NULL, "..xx..0*x.xxx...."},
    {run_finished, NULL, "..xx"},
    {run_raised, NULL, "..xx"},
    {run_asserted, NULL, "..xx.."},
    {run_within, NULL, "..xxx"},
    {run_block, NULL, "*x"},
    {run_effect, NULL, "x"},
    {run_returned, NULL, "x"},
    {run_branches, NULL, ".*x.x"},
    {run_assigned, NULL, "*x"},
    {run_augmented_name, NULL, "..xxx"},
    {run_augmented_part, NULL, "...xxx"},
    {run_for_loop, NULL, "...xxxx"},
    {run_while_loop, NULL, "...xxx"},
    {NULL, bind_to_attribute, "..x"},
    {NULL, bind_to_item, "..xx"},
    {NULL, bind_to_elements, "....*x"},
};

/* The same of those that have variables of their own inside: the instructions of a block that waits,
 * and what comprehensions do with each value. */
static const char INSTRUCTIONS[] = "..........*.x...", ELEMENTS[] = "....x...*x", ITEMS[] = "....x...xx.*x";

/* Where the node of a generator has its block. */
enum { BLOCK = FIRST + 3 };

/* --- nodes of such functions ------------------------------------------------------------------- */

enum { NAME, SPAN, OTHERWISE, VALUES = 1 };

static PyObject *run_local(const Node *self, PyObject *variables)
{
    PyObject *value = ((PyObject **)variables)[self->at];
    if (value) return Py_NewRef(value);
    return PyObject_CallFunctionObjArgs(self->part[OTHERWISE], self->part[NAME], Py_False,
                                        self->part[SPAN], NULL);
}

static PyObject *run_unnamed_local(const Node *self, PyObject *variables)
{
    replace(&((PyObject **)variables)[self->at], NULL);
    Py_RETURN_NONE;
}

/* A name of a function around this one. */
static PyObject *run_outer(const Node *self, PyObject *variables)
{
    return read_outward(self, *(PyObject **)variables, self->number - 1);
}

/* Bind a name where there are variables in a dict. */
static int bind_in_dict(const Node *self, PyObject *variables, PyObject *value)
{
    PyObject *inside = variables_inside(*(PyObject **)variables);
    int failed = inside ? bind_to_name(self, inside, value) : -1;
    Py_XDECREF(inside);
    return failed;
}

static int bind_local(const Node *self, PyObject *variables, PyObject *value)
{
    /* A tensor learns its name. */
    if (Py_IS_TYPE(value, known_class[TENSOR]) && bind_in_dict(self, variables, value) < 0) return -1;
    replace(&((PyObject **)variables)[self->at], Py_NewRef(value));
    return 0;
}

static int bind_outer(const Node *self, PyObject *variables, PyObject *value)
{
    if (Py_IS_TYPE(value, known_class[TENSOR])) return bind_in_dict(self, variables, value);
    PyObject *around = outward(*(PyObject **)variables, self->number - 1);
    return around ? PyDict_SetItem(around, self->part[NAME], value) : -1;
}

/* --- which functions are such ------------------------------------------------------------------ */

/* The names of a function, as they are found; and all of them once its nodes are told. */
typedef struct {
    PyObject *name[MOST_LOCALS];
    int count;
    PyObject *all;
} Names;

/* Where a name stands, which is noted if it is new; 0 where there are too many. */
static int place_of(Names *names, PyObject *name)
{
    for (int k = 0; k < names->count; k++)
        if (names->name[k] == name || PyUnicode_Compare(names->name[k], name) == 0) return k + 1;
    if (names->count == MOST_LOCALS) return 0;
    names->name[names->count++] = name;
    return names->count;
}

/* Note the names of parameters; 0 where there are too many. */
static int place_all(Names *names, PyObject *parameters)
{
    for (Py_ssize_t k = 0; k < PyTuple_Size(parameters); k++)
        if (!place_of(names, PyTuple_GetItem(parameters, k))) return 0;
    return 1;
}

/* Whether a name that is read or bound is one that such a function may have. */
static int fits_name(Node *self, Names *names)
{
    if (self->number) {
        if (names->all && self->run == run_own) self->run = self->evaluate = run_outer;
        else if (names->all) self->bind = bind_outer;
        return 1;
    }
    int at = place_of(names, self->part[NAME]);
    if (!names->all) return at;
    self->at = at;
    if (self->run == run_own) self->run = self->evaluate = run_local;
    else if (self->run == run_unnamed) self->run = self->evaluate = run_unnamed_local;
    else self->bind = bind_local;
    return 1;
}

static int fits(Node *self, Names *names);

/* Whether a part is as its letter says. */
static int fits_part(PyObject *part, char letter, Names *names)
{
    if (letter == '.' || part == Py_None) return 1;
    if (letter == 't' && Py_IS_TYPE(part, &PyUnicode_Type)) return 1;
    return letter != '0' && Py_IS_TYPE(part, node_type) && fits((Node *)part, names);
}

/* Whether the parts of a node are as these letters say. */
static int fit(const Node *self, const char *parts, Names *names)
{
    const char *again = NULL;
    for (Py_ssize_t k = 0; k < parts_of(self); k++) {
        if (*parts == '*') again = ++parts;
        else if (!*parts && again) parts = again;
        if (!*parts) break;
        if (!fits_part(self->part[k], *parts++, names)) return 0;
    }
    return 1;
}

static int is_loop(const Node *self)
{
    return self->run == run_for_loop || self->run == run_while_loop;
}

/* Whether a node and all below it are such as do no more with variables than their kinds say. */
static int fits(Node *self, Names *names)
{
    const char *parts = NULL;
    if (self->run == run_local || self->run == run_outer) return 1; /* which stands in two places */
    if (self->bind == bind_local || self->bind == bind_outer) return 1;
    int is_target = self->bind == bind_to_name;
    if (self->run == run_unnamed_local) return 1;
    if (self->run == run_unnamed)
        return self->part[VALUES] != Py_None || (!self->number && fits_name(self, names));
    if (self->run == run_own || (is_target && self->part[VALUES] == Py_None))
        return fits_name(self, names);
    if (is_target) return 1;
    if (self->run == run_function) parts = self->number ? NULL : ".*.x";
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++)
        if (KINDS[k].run ? KINDS[k].run == self->run : KINDS[k].bind == self->bind)
            parts = KINDS[k].parts;
    if (is_loop(self) && names->all && !self->locals) self->locals = Py_NewRef(names->all);
    return parts && fit(self, parts, names);
}

/* Whether a body is such, of a generator its block; or what is inside of a comprehension. */
static int body_fits(Node *self, Names *names)
{
    if (self->run == run_drawn) return fit(self, INSTRUCTIONS, names);
    if (self->run == run_comprehension) return fit(self, ELEMENTS, names);
    if (self->run == run_items) return fit(self, ITEMS, names);
    if (self->run != run_generator) return fits(self, names);
    PyObject *block = self->part[BLOCK];
    return Py_IS_TYPE(block, node_type) && ((Node *)block)->run == run_frame &&
           fit((Node *)block, INSTRUCTIONS, names);
}

/* Look for the locals of a body, behind those of its parameters. */
static void look(Node *body, Names *names)
{
    if (!body_fits(body, names)) return;
    PyObject *found = PyTuple_New(names->count);
    if (!found) {
        PyErr_Clear();
        return;
    }
    for (int k = 0; k < names->count; k++) PyTuple_SetItem(found, k, Py_NewRef(names->name[k]));
    names->all = found;
    body_fits(body, names);
    body->locals = found;
    if (body->run == run_generator) ((Node *)body->part[BLOCK])->locals = Py_NewRef(found);
}

void find_locals(PyObject *function)
{
    PyObject *object = AT(function, FUNCTION_body), *signature = AT(function, FUNCTION_signature);
    PyObject *rest = AT(signature, SIGNATURE_rest), *keywords = AT(signature, SIGNATURE_keywords);
    Node *body = (Node *)object;
    Names names = {{NULL}, 0, NULL};
    if (!Py_IS_TYPE(object, node_type) || body->has) return;
    body->has = OF_BODY;
    if (place_all(&names, AT(signature, SIGNATURE_positional)) &&
        (!PyUnicode_GetLength(rest) || place_of(&names, rest)) &&
        place_all(&names, AT(signature, SIGNATURE_keyword_only)) &&
        (!PyUnicode_GetLength(keywords) || place_of(&names, keywords)))
        look(body, &names);
}

void find_locals_inside(Node *self)
{
    Names names = {{NULL}, 0, NULL};
    if (!self->has) look(self, &names);
    self->has = INSIDE;
}

/* --- their variables --------------------------------------------------------------------------- */

/* How the parameters of a function stand among its locals: so many by position, perhaps the others by
 * position, those by keyword alone up to the end, and perhaps the others by keyword. */
typedef struct {
    PyObject *names; /* of all locals */
    Py_ssize_t positional, end;
    int has_rest, has_keywords;
} Parameters;

static Parameters parameters_of(PyObject *function)
{
    PyObject *signature = AT(function, FUNCTION_signature);
    Parameters these = {((Node *)AT(function, FUNCTION_body))->locals,
                        Py_SIZE(AT(signature, SIGNATURE_positional)), 0, 0, 0};
    these.end = these.positional;
    if (AT(signature, SIGNATURE_simple) != minus_one) return these;
    these.has_rest = PyUnicode_GetLength(AT(signature, SIGNATURE_rest)) > 0;
    these.has_keywords = PyUnicode_GetLength(AT(signature, SIGNATURE_keywords)) > 0;
    these.end += these.has_rest + PyTuple_Size(AT(signature, SIGNATURE_keyword_only));
    return these;
}

/* Take arguments by keyword; 0, perhaps with an exception set, where one is no parameter, or given twice. */
static int take_named(const Parameters *these, PyObject *by_position, PyObject *named, PyObject **slots)
{
    PyObject *name, *value;
    Py_ssize_t at = 0, k;
    while (PyDict_Next(named, &at, &name, &value)) {
        for (k = 0; k < these->end; k++)
            if (PyTuple_GetItem(these->names, k) == name ||
                PyUnicode_Compare(PyTuple_GetItem(these->names, k), name) == 0)
                break;
        int is_parameter = k < these->end && !(these->has_rest && k == these->positional);
        if (is_parameter && k < these->positional && PySet_Contains(by_position, name)) is_parameter = 0;
        if (!is_parameter) {
            if (!these->has_keywords || PyDict_SetItem(slots[these->end + 1], name, value) < 0) return 0;
        } else if (slots[k + 1]) {
            return 0;
        } else {
            slots[k + 1] = Py_NewRef(value);
        }
    }
    return 1;
}

int take_locals(PyObject *function, PyObject *const *given, Py_ssize_t count, PyObject *named,
                PyObject **slots)
{
    Parameters these = parameters_of(function);
    Py_ssize_t all = Py_SIZE(these.names), placed = count < these.positional ? count : these.positional, k;
    PyObject *value;
    if (count > placed && !these.has_rest) return 0;
    slots[0] = Py_NewRef(AT(function, FUNCTION_parent));
    for (k = 0; k < placed; k++) slots[k + 1] = Py_NewRef(given[k]);
    for (; k < all; k++) slots[k + 1] = NULL;
    if (these.has_rest && !(slots[these.positional + 1] = tuple_of(NULL, given + placed, count - placed)))
        goto misfit;
    if (these.has_keywords && !(slots[these.end + 1] = PyDict_New())) goto misfit;
    if (named && !take_named(&these, AT(AT(function, FUNCTION_signature), SIGNATURE_by_position), named, slots))
        goto misfit;
    for (k = placed; k < these.end; k++) {
        if (slots[k + 1]) continue;
        value = PyDict_GetItemWithError(AT(function, FUNCTION_defaults), PyTuple_GetItem(these.names, k));
        if (!value) goto misfit;
        slots[k + 1] = Py_NewRef(value);
    }
    return 1;
misfit:
    drop_locals((Node *)AT(function, FUNCTION_body), slots);
    return 0;
}

void drop_locals(const Node *body, PyObject **slots)
{
    for (Py_ssize_t k = Py_SIZE(body->locals); k >= 0; k--) Py_XDECREF(slots[k]);
}

PyObject *dict_of_locals(const Node *self, PyObject **slots)
{
    PyObject *dict = variables_inside(slots[0]);
    for (Py_ssize_t k = 0; dict && k < Py_SIZE(self->locals); k++)
        if (slots[k + 1] && PyDict_SetItem(dict, PyTuple_GetItem(self->locals, k), slots[k + 1]) < 0)
            Py_CLEAR(dict);
    return dict;
}

int take_back(const Node *self, PyObject **slots, PyObject *dict)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    for (Py_ssize_t k = 0; k < Py_SIZE(self->locals); k++) {
        PyObject *value = PyDict_GetItemWithError(dict, PyTuple_GetItem(self->locals, k));
        replace(&slots[k + 1], Py_XNewRef(value));
    }
    if (type) PyErr_Restore(type, error, traceback);
    return PyErr_Occurred() ? -1 : 0;
}

/* A part for variables in a dict, of one for locals. */
static PyObject *for_dict(PyObject *part)
{
    Node *self = (Node *)part;
    if (!Py_IS_TYPE(part, node_type)) return Py_NewRef(part);
    if (is_loop(self) && self->locals) return Py_XNewRef((PyObject *)twin_of(self));
    Evaluate run = self->run;
    Bind bind = self->bind;
    if (run == run_local || run == run_outer) run = run_own;
    if (run == run_unnamed_local) run = run_unnamed;
    if (bind == bind_local || bind == bind_outer) bind = bind_to_name;
    Node *like = begun_node(run, bind, self->number, parts_of(self));
    for (Py_ssize_t k = 0; like && k < parts_of(self); k++)
        if (!(like->part[k] = for_dict(self->part[k]))) Py_CLEAR(like);
    return finished_node(like);
}

Node *twin_of(const Node *loop)
{
    Py_ssize_t last = parts_of(loop) - 1;
    if (loop->part[last] == Py_None) {
        Node *twin = begun_node(loop->run, loop->bind, loop->number, last + 1);
        for (Py_ssize_t k = 0; twin && k <= last; k++)
            if (!(twin->part[k] = for_dict(loop->part[k]))) Py_CLEAR(twin);
        PyObject *made = finished_node(twin);
        if (!made) return NULL;
        replace((PyObject **)&loop->part[last], made);
    }
    return (Node *)loop->part[last];
}

PyObject *run_with_dict(const Node *body, PyObject *variables)
{
    PyObject *slots[1 + MOST_LOCALS], *value, *type, *error, *traceback;
    for (Py_ssize_t k = 0; k <= PyTuple_Size(body->locals); k++) {
        PyObject *name = k ? PyTuple_GetItem(body->locals, k - 1) : parent_key;
        slots[k] = Py_XNewRef(PyDict_GetItemWithError(variables, name));
    }
    value = body->evaluate(body, (PyObject *)slots);
    PyErr_Fetch(&type, &error, &traceback);
    for (Py_ssize_t k = 0; k < PyTuple_Size(body->locals); k++) /* who made the dict may look at it */
        if (slots[k + 1] &&
            PyDict_SetItem(variables, PyTuple_GetItem(body->locals, k), slots[k + 1]) < 0)
            Py_CLEAR(value);
    if (type) PyErr_Restore(type, error, traceback);
    drop_locals(body, slots);
    return value;
}
