/* Makes the nodes of a syntax tree, by recipes that the compiler's handlers write down beside what
 * they do without nodes (`compiler/recipes.py`). What no recipe fits, its handler makes. */

#include "node.h"

/* What a part is made from, and what a recipe asks of a tree, as `recipes.py` numbers them. */
enum { OBJECT, NOTHING, PLACE_OF, OF_STATE, OF_COMPILER, BY, GIVEN, CHILD, INNER_CHILD, OPTIONAL, ITEM,
       GET, OWN_NAME, STORE, INNER_STORE, LOOP_STORE, BLOCK, LOOP_BLOCK, THE_COMPILER, THE_SCOPE,
       CHILDREN, INNER_CHILDREN, ARGUMENTS, DECIDING, STORES, KEYWORDS, BRANCHES };
enum { IS, IS_NO, HAS, NONE_IS, LENGTH, PLAIN, NAMED, NO_CALL_OF, LOOPLESS, HOLDS };

typedef struct {
    PyObject *name;     /* of an attribute, or NULL */
    PyTypeObject *kind; /* the class of which the attribute was last asked */
    Py_ssize_t at;      /* where its objects have it; or the index */
} Key;

enum { DEEPEST_PATH = 4 };

typedef struct {
    int kind, length;
    Key path[DEEPEST_PATH]; /* where it stands in the tree */
    PyObject *with;         /* what its kind makes of that */
} Step;

typedef struct {
    Evaluate run;
    Bind bind;
    Step number; /* of the node, by a table; without a table the number itself */
    Step *asks, *parts;
    Py_ssize_t asked, parted;
    int is_last; /* of those for its class */
} Recipe;

/* The recipes of expressions and statements, and those of targets: by the class of the tree where the
 * first of it stands; and the handlers in Python of each. */
enum { VALUES_OF, TARGETS_OF, TABLES };
enum { MOST_RECIPES = 64, MOST_STEPS = 32 };
static Recipe recipes[MOST_RECIPES];
static PyObject *first_recipe[TABLES], *handlers[TABLES];

/* What else is told: the classes of names and of calls; what raises for a name without a value, and finds the table
 * of one that is predefined; what binds a name to a tensor, or to what overrides its value; what makes the
 * scope inside a tree. */
enum { NAME_CLASS, CALL_CLASS, UNBOUND, TABLE_OF, BIND_OWN, BIND_PROGRAM, BIND_TOP, SCOPE_INSIDE, TOLD };
static PyObject *told[TOLD];

/* What is being made: for this compiler, in this scope. */
typedef struct {
    PyObject *compiler, *scope, *state, *values;
    int assigned; /* of targets: by an assignment, and not by a loop */
} Making;

static PyObject *made_of(const Making *making, int table, PyObject *tree);

static PyObject *name_text, *span_text, *value_text, *kind_text, *function_text, *loop_text, *arguments_text,
    *state_text, *values_text, *predefined_text, *interpreter_text, *overrides_text, *file_name;

/* Where the objects of a class have an attribute, -1 for in no slot: it is found out once. */
static Py_ssize_t place_in(PyTypeObject *kind, PyObject *name)
{
    enum { KEPT = 1024, TRIED = 4 };
    static struct {
        PyTypeObject *kind;
        PyObject *name;
        Py_ssize_t offset;
    } kept[KEPT + TRIED], *at;
    at = &kept[(((size_t)kind >> 4) * 0x9E3779B1u + ((size_t)name >> 4)) % KEPT];
    for (int k = 1; k < TRIED && at->kind && (at->kind != kind || at->name != name); k++) at++;
    if (at->kind != kind || at->name != name) {
        PyObject *before = (PyObject *)at->kind;
        at->kind = (PyTypeObject *)Py_NewRef((PyObject *)kind);
        at->name = name; /* which is kept with the recipes */
        at->offset = offset_of(kind, name);
        if (at->offset < 0) PyErr_Clear();
        Py_XDECREF(before);
    }
    return at->offset;
}

/* An attribute of a tree, a scope or a compiler, all of them records of slots. */
static PyObject *attribute_at(PyObject *object, PyObject *name, Py_ssize_t offset)
{
    PyObject *value = offset > 0 ? *(PyObject **)((char *)object + offset) : NULL;
    return value ? Py_NewRef(value) : PyObject_GetAttr(object, name);
}

static PyObject *attribute(PyObject *object, PyObject *name)
{
    return attribute_at(object, name, place_in(Py_TYPE(object), name));
}

/* What stands in a tree at the end of a path of attributes and indices. */
static PyObject *found_at(PyObject *tree, Step *step)
{
    PyObject *value = Py_NewRef(tree);
    for (int k = 0; value && k < step->length; k++) {
        Key *key = step->path + k;
        PyObject *outer = value;
        if (key->name && key->kind != Py_TYPE(outer)) {
            Py_XDECREF((PyObject *)key->kind);
            key->kind = (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(outer));
            key->at = place_in(key->kind, key->name);
        }
        value = key->name ? attribute_at(outer, key->name, key->at) : PySequence_GetItem(outer, key->at);
        Py_DECREF(outer);
    }
    return value;
}

/* --- names ------------------------------------------------------------------------------------ */

/* How many scopes outward a name lives, -1 for a name of the program: as `Scope.distance` says. */
static long distance_of(PyObject *scope, PyObject *name)
{
    for (long steps = 0; AT(scope, SCOPE_parent) != Py_None; steps++) {
        if (PySet_Contains(AT(scope, SCOPE_bound), name) > 0 &&
            (!steps || AT(scope, SCOPE_is_class) != Py_True))
            return steps;
        if (PySet_Contains(AT(scope, SCOPE_global_names), name) > 0) return -1;
        scope = AT(scope, SCOPE_parent);
    }
    return -1;
}

static PyObject *node_of(Evaluate run, Bind bind, long number, PyObject *const *parts,
                         Py_ssize_t count)
{
    Node *self = begun_node(run, bind, number, count);
    for (Py_ssize_t k = 0; self && k < count; k++) self->part[k] = Py_NewRef(parts[k]);
    return finished_node(self);
}

/* A name that is read; NULL with no exception set where its handler is to make it. */
static PyObject *name_read(const Making *making, PyObject *name, PyObject *span)
{
    long distance = distance_of(making->scope, name);
    if (distance >= 0) {
        PyObject *parts[] = {name, span, told[UNBOUND]};
        if (!distance && AT(making->scope, SCOPE_is_class) == Py_True) return NULL;
        return node_of(run_own, no_target, distance, parts, 3);
    }
    if (PyUnicode_Compare(name, file_name) == 0) return NULL;
    PyObject *predefined = attribute(making->compiler, predefined_text);
    if (!predefined) return NULL;
    PyObject *parts[] = {name, making->values, Py_None, span, predefined, told[TABLE_OF]};
    PyObject *node = node_of(run_program, no_target, 0, parts, 6);
    Py_DECREF(predefined);
    return node;
}

/* A name that is bound. An assignment at top level is what something may override. */
static PyObject *name_bound(const Making *making, PyObject *name)
{
    long distance = distance_of(making->scope, name);
    PyObject *interpreter = NULL, *own = NULL, *overrides = NULL, *node = NULL;
    if (distance >= 0) {
        PyObject *parts[] = {name, Py_None, Py_None, told[BIND_OWN], Py_None};
        return node_of(no_value, bind_to_name, distance, parts, 5);
    }
    int is_top = making->assigned && AT(making->scope, SCOPE_parent) == Py_None;
    if (is_top) {
        if (!(interpreter = attribute(making->compiler, interpreter_text))) goto end;
        if (!(own = attribute(interpreter, values_text))) goto end;
        is_top = own == making->values;
        if (is_top && !(overrides = attribute(interpreter, overrides_text))) goto end;
    }
    PyObject *parts[] = {name, making->values, is_top ? overrides : Py_None,
                         told[is_top ? BIND_TOP : BIND_PROGRAM], is_top ? interpreter : Py_None};
    node = node_of(no_value, bind_to_name, 0, parts, 5);
end:
    Py_XDECREF(interpreter);
    Py_XDECREF(own);
    Py_XDECREF(overrides);
    return node;
}

static PyObject *name_made(const Making *making, int table, PyObject *tree)
{
    PyObject *name = attribute(tree, name_text), *node = NULL;
    PyObject *span = name ? attribute(tree, span_text) : NULL;
    if (span) node = table == TARGETS_OF ? name_bound(making, name) : name_read(making, name, span);
    Py_XDECREF(name);
    Py_XDECREF(span);
    return node;
}

/* --- what a recipe asks ----------------------------------------------------------------------- */

/* Whether an argument has neither a name nor stars; -1 with an exception set. */
static int is_plain_argument(PyObject *argument)
{
    PyObject *name = attribute(argument, name_text);
    PyObject *kind = name ? attribute(argument, kind_text) : NULL;
    int plain = kind ? name == Py_None && PyUnicode_GetLength(kind) == 0 : -1;
    Py_XDECREF(name);
    Py_XDECREF(kind);
    return plain;
}

/* Whether a tree is a call of one of some names without arguments; -1 with an exception set. */
static int calls(PyObject *tree, PyObject *names)
{
    if ((PyObject *)Py_TYPE(tree) != told[CALL_CLASS]) return 0;
    PyObject *function = attribute(tree, function_text), *name = NULL;
    int found = function ? 0 : -1;
    if (function && (PyObject *)Py_TYPE(function) == told[NAME_CLASS]) {
        name = attribute(function, name_text);
        found = name ? PySet_Contains(names, name) : -1;
    }
    PyObject *arguments = found > 0 ? attribute(tree, arguments_text) : NULL;
    if (found > 0) found = arguments ? !PySequence_Size(arguments) : -1;
    Py_XDECREF(arguments);
    Py_XDECREF(function);
    Py_XDECREF(name);
    return found;
}

static int fits(const Making *making, Step *asked, PyObject *tree)
{
    if (asked->kind == LOOPLESS) {
        PyObject *loop = attribute(making->compiler, loop_text);
        Py_XDECREF(loop);
        return loop ? loop == Py_None : -1;
    }
    if (asked->kind == HOLDS) {
        PyObject *answer = PyObject_CallFunctionObjArgs(asked->with, making->compiler, tree, NULL);
        Py_XDECREF(answer);
        return answer ? answer == Py_True : -1;
    }
    PyObject *found = found_at(tree, asked);
    int fit = found ? 1 : -1;
    if (found && asked->kind == IS) fit = (PyObject *)Py_TYPE(found) == asked->with;
    if (found && asked->kind == IS_NO) fit = (PyObject *)Py_TYPE(found) != asked->with;
    if (found && asked->kind == HAS) fit = found != Py_None;
    if (found && asked->kind == LENGTH) fit = PySequence_Size(found) == PyLong_AsSsize_t(asked->with);
    if (found && asked->kind == PLAIN) fit = PySequence_Size(found) <= MOST_ARGUMENTS;
    if (found && asked->kind == NO_CALL_OF) fit = (fit = calls(found, asked->with)) < 0 ? -1 : !fit;
    if (found && (asked->kind == NONE_IS || asked->kind == PLAIN || asked->kind == NAMED))
        for (Py_ssize_t k = 0; fit > 0 && k < PySequence_Size(found); k++) {
            PyObject *each = PySequence_GetItem(found, k);
            fit = !each                      ? -1
                  : asked->kind == NONE_IS ? (PyObject *)Py_TYPE(each) != asked->with
                                           : is_plain_argument(each);
            Py_XDECREF(each);
        }
    if (asked->kind == NAMED && fit >= 0) fit = !fit;
    Py_XDECREF(found);
    return fit;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* How many parts a step makes; -1 with an exception set. */
static Py_ssize_t parts_by(Step *step, PyObject *tree)
{
    if (step->kind == NOTHING) return PyLong_AsSsize_t(step->with);
    if (step->kind == PLACE_OF) return 2;
    if (step->kind < CHILDREN) return 1;
    PyObject *list = found_at(tree, step);
    Py_ssize_t length = list ? PySequence_Size(list) : -1;
    Py_XDECREF(list);
    if ((step->kind == KEYWORDS || step->kind == BRANCHES) && length > 0) return 3 * length;
    return step->kind == DECIDING && length > 0 ? 2 * length - 1 : length;
}

/* The name of an argument, or its stars; None for one by position. */
static PyObject *word_of(PyObject *argument)
{
    PyObject *word = attribute(argument, name_text);
    if (word == Py_None) replace(&word, attribute(argument, kind_text));
    if (word && word != Py_None && PyUnicode_GetLength(word) == 0) replace(&word, Py_NewRef(Py_None));
    return word;
}

/* The node of statements in a row, one of which may end them. */
static PyObject *block_made(const Making *making, PyObject *list)
{
    Py_ssize_t count = PySequence_Size(list);
    Node *self = count == 1 ? NULL : begun_node(run_block, no_target, 1, count);
    PyObject *single = NULL;
    for (Py_ssize_t k = 0; k < count && (self || count == 1); k++) {
        PyObject *each = PySequence_GetItem(list, k);
        PyObject *node = each ? made_of(making, VALUES_OF, each) : NULL;
        Py_XDECREF(each);
        if (self && !(self->part[k] = node)) Py_CLEAR(self);
        else if (!self) single = node;
    }
    return count == 1 ? single : finished_node(self);
}

/* The same of the body of a loop: the compiler knows the outermost one that it is in. */
static PyObject *loop_block_made(const Making *making, PyObject *tree, PyObject *list)
{
    PyObject *outer = attribute(making->compiler, loop_text), *node;
    if (!outer) return NULL;
    if (outer == Py_None && PyObject_SetAttr(making->compiler, loop_text, tree) < 0) {
        Py_DECREF(outer);
        return NULL;
    }
    node = block_made(making, list);
    if (outer == Py_None) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        if (PyObject_SetAttr(making->compiler, loop_text, outer) < 0) Py_CLEAR(node);
        else PyErr_Restore(type, error, traceback);
    }
    Py_DECREF(outer);
    return node;
}

/* The parts that a test makes with the block behind it; -1 with an exception set. */
static int put_branch(const Making *making, PyObject *branch, PyObject **part)
{
    PyObject *test = PyTuple_GetItem(branch, 0), *body = PyTuple_GetItem(branch, 1);
    if (!body) return -1;
    if (!(part[0] = made_of(making, VALUES_OF, test))) return -1;
    if (!(part[1] = attribute(test, span_text))) return -1;
    return (part[2] = block_made(making, body)) ? 0 : -1;
}

/* The parts that the elements of a list make; -1 with an exception set. */
static int put_each(const Making *making, Step *step, PyObject *tree, PyObject **part)
{
    PyObject *list = found_at(tree, step);
    Py_ssize_t length = list ? PySequence_Size(list) : -1, k = 0;
    for (; k < length; k++) {
        PyObject *each = PySequence_GetItem(list, k);
        if (each && step->kind == BRANCHES) {
            int misses = put_branch(making, each, part) < 0;
            Py_DECREF(each);
            part += 3;
            if (misses) break;
            continue;
        }
        if (each && step->kind == KEYWORDS && !(*part++ = word_of(each))) Py_CLEAR(each);
        PyObject *span = each && step->kind == KEYWORDS ? attribute(each, span_text) : NULL;
        if (each && (step->kind == ARGUMENTS || step->kind == KEYWORDS))
            replace(&each, attribute(each, value_text));
        if (!each) break;
        *part = Py_IS_TYPE(each, &PyUnicode_Type)
                    ? Py_NewRef(each)
                    : made_of(making, step->kind == STORES ? TARGETS_OF : VALUES_OF, each);
        int failed = !*part++;
        if (step->kind == KEYWORDS) failed |= !(*part++ = span);
        if (!failed && step->kind == DECIDING && k < length - 1)
            failed = !(*part++ = attribute(each, span_text));
        Py_DECREF(each);
        if (failed) break;
    }
    Py_XDECREF(list);
    return k < length || length < 0 ? -1 : 0;
}

/* The one part, or the several, that a step makes; -1 with an exception set. */
static int put_parts(const Making *making, Step *step, PyObject *tree, PyObject **part)
{
    if (step->kind == OBJECT) *part = Py_NewRef(step->with);
    if (step->kind == NOTHING)
        for (Py_ssize_t left = PyLong_AsSsize_t(step->with); left; left--) *part++ = Py_NewRef(Py_None);
    if (step->kind == OF_STATE) *part = Py_NewRef(making->state);
    if (step->kind == THE_COMPILER) *part = Py_NewRef(making->compiler);
    if (step->kind == THE_SCOPE) *part = Py_NewRef(making->scope);
    if (step->kind <= NOTHING || step->kind == OF_STATE || *part) return 0;
    if (step->kind == OF_COMPILER) return (*part = attribute(making->compiler, step->with)) ? 0 : -1;
    if (step->kind == BY) {
        *part = PyObject_CallFunctionObjArgs(step->with, making->compiler, tree, making->scope, NULL);
        return *part ? 0 : -1;
    }
    if (step->kind >= CHILDREN) return put_each(making, step, tree, part);
    if (step->kind == PLACE_OF) *part++ = Py_NewRef(making->state);
    PyObject *found = found_at(tree, step), *value;
    if (!found) return -1;
    if (step->kind <= GIVEN || (step->kind == OPTIONAL && found == Py_None)) {
        value = Py_NewRef(found);
    } else if (step->kind == BLOCK) {
        value = PySequence_Size(found) ? block_made(making, found) : Py_NewRef(Py_None);
    } else if (step->kind == LOOP_BLOCK) {
        value = loop_block_made(making, tree, found);
    } else if (step->kind == OWN_NAME) {
        int is_name = (PyObject *)Py_TYPE(found) == told[NAME_CLASS];
        value = is_name ? attribute(found, name_text) : Py_NewRef(Py_None);
    } else if (step->kind == ITEM) {
        value = PyObject_GetItem(step->with, found);
    } else if (step->kind == GET) {
        value = PyDict_GetItemWithError(step->with, found);
        value = value ? Py_NewRef(value) : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    } else {
        int is_target = step->kind == STORE || step->kind == INNER_STORE || step->kind == LOOP_STORE;
        Making own = *making;
        if (step->kind == LOOP_STORE) own.assigned = 0;
        value = made_of(&own, is_target ? TARGETS_OF : VALUES_OF, found);
    }
    Py_DECREF(found);
    *part = value;
    return value ? 0 : -1;
}

/* The number of the node: 1 where the table has it, else 0; -1 with an exception set. */
static int numbered(Recipe *recipe, PyObject *tree, long *number)
{
    PyObject *table = recipe->number.with;
    if (Py_IS_TYPE(table, &PyLong_Type)) {
        *number = PyLong_AsLong(table);
        return 1;
    }
    PyObject *key = found_at(tree, &recipe->number);
    PyObject *found = key ? PyObject_GetItem(table, key) : NULL;
    Py_XDECREF(key);
    if (found) *number = PyLong_AsLong(found);
    if (!found && key && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
    Py_XDECREF(found);
    return found ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Whether a step makes its parts in the scope that the tree has inside. */
static int is_inner(Step *step)
{
    return step->kind == INNER_CHILD || step->kind == INNER_STORE || step->kind == INNER_CHILDREN;
}

/* Go into the scope inside a tree, where a recipe makes anything there; it is to be given up then. */
static int open_scope(Recipe *recipe, Making *inner, PyObject *tree)
{
    Py_ssize_t k = 0;
    while (k < recipe->parted && !is_inner(recipe->parts + k)) k++;
    if (k == recipe->parted) return 0;
    PyObject *scope = PyObject_CallFunctionObjArgs(told[SCOPE_INSIDE], inner->scope, tree, NULL);
    if (scope) inner->scope = scope;
    inner->assigned = 0;
    return scope ? 0 : -1;
}

/* The node that a recipe makes; NULL, perhaps with an exception set, where it does not fit. The
 * arguments of a call are made before what is called. */
static PyObject *made_by(Recipe *recipe, const Making *making, PyObject *tree)
{
    long number = 0;
    int fit = 1;
    for (Py_ssize_t k = 0; fit > 0 && k < recipe->asked; k++) fit = fits(making, recipe->asks + k, tree);
    if (fit > 0) fit = numbered(recipe, tree, &number);
    if (fit <= 0) return NULL;
    Py_ssize_t count = 0, parts[MOST_STEPS];
    for (Py_ssize_t k = 0; k < recipe->parted; k++, count += parts[k - 1])
        if ((parts[k] = parts_by(recipe->parts + k, tree)) < 0) return NULL;
    Node *self = begun_node(recipe->run, recipe->bind, number, count);
    Making inner = *making;
    int failed = !self || open_scope(recipe, &inner, tree) < 0;
    for (int arguments = 1; arguments >= 0; arguments--) {
        Py_ssize_t at = 0;
        for (Py_ssize_t k = 0; !failed && k < recipe->parted; k++) {
            Step *step = recipe->parts + k;
            if ((step->kind == ARGUMENTS) == arguments)
                failed = put_parts(is_inner(step) ? &inner : making, step, tree, self->part + at) < 0;
            at += parts[k];
        }
    }
    if (inner.scope != making->scope) Py_DECREF(inner.scope);
    if (failed) Py_CLEAR(self);
    return finished_node(self);
}

/* The first recipe of a class, NULL for none: those of classes that were asked for stay at hand. */
static Recipe *recipe_of(int table, PyObject *kind)
{
    enum { KEPT = 128 };
    static struct {
        PyObject *kind; /* which the table keeps */
        Recipe *first;
    } kept[TABLES][KEPT], *at;
    at = &kept[table][((size_t)kind >> 4) * 0x9E3779B1u % KEPT];
    if (at->kind != kind) {
        PyObject *first = PyDict_GetItemWithError(first_recipe[table], kind);
        if (!first) return NULL;
        at->kind = kind;
        at->first = recipes + PyLong_AsLong(first);
    }
    return at->first;
}

static PyObject *made_of(const Making *making, int table, PyObject *tree)
{
    PyObject *kind = (PyObject *)Py_TYPE(tree), *node = NULL;
    if (kind == told[NAME_CLASS]) node = name_made(making, table, tree);
    Recipe *recipe = node || PyErr_Occurred() ? NULL : recipe_of(table, kind);
    if (recipe) {
        while (!(node = made_by(recipe, making, tree)) && !PyErr_Occurred() && !recipe->is_last) recipe++;
    }
    if (node || PyErr_Occurred()) return node;
    PyObject *handler = PyObject_GetItem(handlers[table], kind);
    if (!handler) return NULL;
    node = PyObject_CallFunctionObjArgs(handler, making->compiler, tree, making->scope,
                                        table == TARGETS_OF ? making->assigned ? Py_True : Py_False : NULL,
                                        NULL);
    Py_DECREF(handler);
    return node;
}

/* --- what the host calls ---------------------------------------------------------------------- */

/* `table` is TABLES for statements in a row. */
static PyObject *made_for(int table, PyObject *const *given, int assigned)
{
    Making making = {given[0], given[2], attribute(given[0], state_text), NULL, assigned};
    PyObject *node = NULL;
    if (making.state) making.values = attribute(given[0], values_text);
    if (making.values)
        node = table == TABLES ? block_made(&making, given[1]) : made_of(&making, table, given[1]);
    Py_XDECREF(making.state);
    Py_XDECREF(making.values);
    return node;
}

/* make(compiler, tree, scope) */
PyObject *make(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count == 3) return made_for(VALUES_OF, given, 1);
    PyErr_SetString(PyExc_TypeError, "a compiler, a tree and a scope");
    return NULL;
}

/* make_statements(compiler, trees, scope) */
PyObject *make_statements(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count == 3) return made_for(TABLES, given, 1);
    PyErr_SetString(PyExc_TypeError, "a compiler, trees and a scope");
    return NULL;
}

/* make_target(compiler, tree, scope, assigned) */
PyObject *make_target(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    if (count == 4) return made_for(TARGETS_OF, given, given[3] == Py_True);
    PyErr_SetString(PyExc_TypeError, "a compiler, a tree, a scope, and whether it is assigned");
    return NULL;
}

/* A step of (kind, path, with). */
static int read_step(Step *step, PyObject *from)
{
    PyObject *kind = PyTuple_GetItem(from, 0), *path = PyTuple_GetItem(from, 1);
    PyObject *with = PyTuple_GetItem(from, 2);
    Py_ssize_t length = path ? PyTuple_Size(path) : -1;
    if (!kind || length < 0 || !with) return -1;
    if (length > DEEPEST_PATH) {
        PyErr_SetString(PyExc_TypeError, "a path of a recipe is too long");
        return -1;
    }
    *step = (Step){.kind = (int)PyLong_AsLong(kind), .length = (int)length, .with = Py_NewRef(with)};
    for (Py_ssize_t k = 0; k < length; k++) {
        PyObject *key = PyTuple_GetItem(path, k);
        if (Py_IS_TYPE(key, &PyLong_Type)) step->path[k].at = PyLong_AsSsize_t(key);
        else step->path[k].name = Py_NewRef(key);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static Step *read_steps(PyObject *from, Py_ssize_t *count)
{
    *count = PyTuple_Size(from);
    Step *steps = *count < 0 ? NULL : PyMem_Calloc(*count + 1, sizeof *steps);
    for (Py_ssize_t k = 0; steps && k < *count; k++)
        if (read_step(steps + k, PyTuple_GetItem(from, k)) < 0) return NULL;
    return steps;
}

/* A recipe of (class, name of the maker, number, what it asks, parts). */
static int read_recipe(Recipe *recipe, PyObject *from)
{
    const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(from, 1), NULL);
    Py_ssize_t parts = name ? kind_named(name, &recipe->run, &recipe->bind) : -2, each;
    if (parts < -1) return -1;
    if (read_step(&recipe->number, PyTuple_GetItem(from, 2)) < 0) return -1;
    recipe->asks = read_steps(PyTuple_GetItem(from, 3), &recipe->asked);
    recipe->parts = read_steps(PyTuple_GetItem(from, 4), &recipe->parted);
    recipe->is_last = 1;
    if (!recipe->asks || !recipe->parts) return -1;
    if (recipe->parted > MOST_STEPS) {
        PyErr_Format(PyExc_TypeError, "the recipe of %s has too many parts", name);
        return -1;
    }
    for (Py_ssize_t k = 0; parts >= 0 && k < recipe->parted; k++, parts -= each)
        each = recipe->parts[k].kind < CHILDREN ? parts_by(recipe->parts + k, NULL) : parts + 1;
    if (parts >= -1 && parts <= 0) return 0;
    PyErr_Format(PyExc_TypeError, "the recipe of %s has other parts", name);
    return -1;
}

static int add_recipe(int table, int at, PyObject *from)
{
    PyObject *kind = PyTuple_GetItem(from, 0), *number = PyLong_FromLong(at);
    int has = number && kind ? PyDict_Contains(first_recipe[table], kind) : -1, failed = has < 0;
    if (has > 0) recipes[at - 1].is_last = 0; /* those of a class stand side by side */
    if (!has) failed = PyDict_SetItem(first_recipe[table], kind, number) < 0;
    Py_XDECREF(number);
    return failed || read_recipe(recipes + at, from) < 0 ? -1 : 0;
}

/* know_recipes(handlers, recipes, handlers of targets, recipes of targets, *told) */
PyObject *know_recipes(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    (void)module;
    int at = 0;
    if (told[0]) Py_RETURN_NONE; /* they are the same for all sessions */
    if (count != 2 * TABLES + TOLD) {
        PyErr_SetString(PyExc_TypeError, "handlers, recipes, and what else is told");
        return NULL;
    }
    for (int table = 0; table < TABLES; table++) {
        PyObject *list = given[2 * table + 1];
        handlers[table] = Py_NewRef(given[2 * table]);
        if (!(first_recipe[table] = PyDict_New())) return NULL;
        for (Py_ssize_t k = 0; k < PyList_Size(list); k++, at++)
            if (at == MOST_RECIPES || add_recipe(table, at, PyList_GetItem(list, k)) < 0) return NULL;
    }
    for (int k = 0; k < TOLD; k++) told[k] = Py_NewRef(given[2 * TABLES + k]);
    struct {
        PyObject **key;
        const char *text;
    } keys[] = {{&name_text, "name"}, {&span_text, "span"}, {&value_text, "value"}, {&kind_text, "kind"},
                {&function_text, "function"}, {&arguments_text, "arguments"}, {&loop_text, "loop"}, {&state_text, "state"},
                {&values_text, "values"}, {&predefined_text, "predefined"},
                {&interpreter_text, "interpreter"}, {&overrides_text, "overrides"},
                {&file_name, "__file__"}};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (!(*keys[k].key = PyUnicode_InternFromString(keys[k].text))) return NULL;
    Py_RETURN_NONE;
}
