/* A node: an expression, a statement or a target of a program, compiled, as an object that is called
 * with the variables; a target with a value besides.
 *
 * It has the contract of the closures in Python, which call it like any other, and it calls what
 * stands below it by a pointer, if that is a node too. In C stands the fast case alone: what the
 * types of its operands say to be neither a failure nor anything of the program's. For all else a
 * node calls the function in Python that does the operation, with the operands as they have been
 * evaluated. */

#ifndef GRADCLI_NODE
#define GRADCLI_NODE

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../arrays/native/core.h"

typedef struct Node Node;
typedef PyObject *(*Evaluate)(const Node *self, PyObject *variables);
typedef int (*Bind)(const Node *self, PyObject *variables, PyObject *value);

struct Node {
    PyObject_VAR_HEAD /* its size is the number of its parts */
    PyObject *(*called)(PyObject *self, PyObject *const *given, size_t count, PyObject *names);
    Evaluate evaluate; /* what is called: `run`, or what counts the depth and calls it */
    Evaluate run;
    Bind bind;   /* of a target: what is called with the variables and a value */
    long number; /* what its kind makes of it; of loops, the iterations that are left */
    long depth;  /* how many nodes stand below one another in it */
    long calls;  /* of a function's body: calls to come that are in the host's count of them already */
    void *codes; /* of a block that waits: the numbers of its instructions, once it ran */
    int at;      /* of a name: where it stood in the variables when it was last looked for, or -1 */
    int misses;  /* and how often it stood elsewhere */
    enum { UNKNOWN, OF_BODY, INSIDE } has; /* whose variables were looked for, a function's or its own */
    PyObject *locals; /* their names where they need no dict, those of parameters first, or NULL */
    PyObject *part[];
};

/* The parts of every kind that stands at a place begin with these. */
enum { STATE, PLACE, FIRST };

extern HIDDEN PyTypeObject *node_type;

/* The keys of the variables around others and of a method's class, as `tree/scopes.py` has them, the
 * name under which an instance has its own values, and those under which its class has what is known
 * of its attributes and methods. */
extern HIDDEN PyObject *parent_key, *class_key, *values_key, *reads_key, *writes_key, *methods_key;

/* The attributes of errors that nodes read and set, and that by which a class tells its name. */
extern HIDDEN PyObject *name_key, *span_key, *stack_key, *raises_key, *context_key, *cause_key,
    *code_key, *message_key, *text_key, *arguments_key, *context_class_key, *enter_key, *exit_key,
    *exception_class_key, *make_key;

/* What errors that nodes make have for their codes, and the class of a missing key. */
extern HIDDEN PyObject *assertion_code, *raised_code, *missing_code, *key_error_name;

/* The classes that nodes tell apart, and what Python has to say, in the order in which `know` is given
 * them. */
enum { TENSOR, INSTANCE, ITERATOR, LANGUAGE_TYPE, USER_CLASS, EXCEPTION_TYPE, FUNCTION, SIGNATURE, HOT,
       SESSION, LIMITS, COUNTS, CHANGES, BOUND, METHOD, MODULE, PER_SESSION, SCOPE, CLASSES };
enum { INVOKE, ENDED, WRITE, ENTER_BY, FIND_LENGTH, LENGTH_OF, TOO_MANY_STEPS, TOO_MANY_CALLS,
       INIT_RETURNED, GENERATOR_ENDED, GENERATOR_EXIT, MAY_CLOSE, WITHIN, TOO_DEEP, CAUGHT, REFUSED, ERROR,
       WHEN_CHANGED, FOREIGN, DEEPEST_CALL, DEEPEST_HOST_CALL, FEWEST, TOO_MANY_ELEMENTS,
       CLASS_OF_HOST, FIND_INIT, RAISED, HOST_METHOD, READS_PLAINLY, WRITES_PLAINLY, BUILTINS, HELPERS };
extern HIDDEN PyTypeObject *known_class[CLASSES];
extern HIDDEN Py_ssize_t known_size[CLASSES];
extern HIDDEN PyObject *helper[HELPERS];

/* The most calls that are open, and those of them through the host. */
extern HIDDEN Py_ssize_t deepest_call;
extern HIDDEN long deepest_host_call;

/* -1, which stands for none in a slot that has a number. */
extern HIDDEN PyObject *minus_one;

HIDDEN PyObject *know(PyObject *module, PyObject *const *given, Py_ssize_t count);

/* Where the objects of a class have the slot of a name; -1 with an exception set for no such. */
HIDDEN Py_ssize_t offset_of(PyTypeObject *kind, PyObject *name);

/* Where the objects of these classes have their slots: `slots.def` has them all. */
#define SLOT(owner, name) owner##_##name,
enum {
#include "slots.def"
    SLOTS
};
#undef SLOT
extern HIDDEN Py_ssize_t slot_offset[SLOTS];

/* The slot of an object, empty only in one that is being made. */
#define AT(object, slot) (*(PyObject **)((char *)(object) + slot_offset[slot]))

/* The most arguments of a call that a node makes by itself. */
enum { MOST_ARGUMENTS = 8 };

INLINE Py_ssize_t parts_of(const Node *self)
{
    return self->ob_base.ob_size;
}

/* What a dict of names has under a part of a node, as a borrowed reference; NULL, perhaps with an
 * exception set, for nothing. Variables are bound in one order call after call, so that where a name
 * stood once it is looked for first: that takes a third of the time of a search by its hash. */
HIDDEN PyObject *search(Node *self, PyObject *dict, int part);

INLINE PyObject *named(Node *self, PyObject *dict, int part)
{
    PyObject *key, *value;
    Py_ssize_t at = self->at;
    if (at >= 0 && PyDict_Next(dict, &at, &key, &value) && key == self->part[part]) return value;
    return search(self, dict, part);
}

/* Begin a node whose parts are to be put into it, and finish it with them; NULL for NULL. What runs a
 * target, and binds what is none. The kind of a name in `nodes.def`: how many parts it has, -2 with an
 * exception set for no such. */
HIDDEN Node *begun_node(Evaluate run, Bind bind, long number, Py_ssize_t parts);
HIDDEN PyObject *finished_node(Node *self);
HIDDEN PyObject *no_value(const Node *self, PyObject *variables);
HIDDEN int no_target(const Node *self, PyObject *variables, PyObject *value);
HIDDEN Py_ssize_t kind_named(const char *name, Evaluate *run, Bind *bind);

/* make(compiler, tree, scope), make_target(compiler, tree, scope, assigned): the node of a tree, or
 * what its handler makes; make_statements(compiler, trees, scope): that of statements in a row; know_recipes(…): how they do it. */
HIDDEN PyObject *make(PyObject *module, PyObject *const *given, Py_ssize_t count);
HIDDEN PyObject *make_statements(PyObject *module, PyObject *const *given, Py_ssize_t count);
HIDDEN PyObject *make_target(PyObject *module, PyObject *const *given, Py_ssize_t count);
HIDDEN PyObject *know_recipes(PyObject *module, PyObject *const *given, Py_ssize_t count);

/* The value of an expression; NULL with an exception set. */
INLINE PyObject *value_of(PyObject *child, PyObject *variables)
{
    if (Py_IS_TYPE(child, node_type))
        return ((const Node *)child)->evaluate((const Node *)child, variables);
    return PyObject_CallFunctionObjArgs(child, variables, NULL);
}

/* Bind a target to a value; -1 with an exception set. */
INLINE int store_in(PyObject *target, PyObject *variables, PyObject *value)
{
    if (Py_IS_TYPE(target, node_type))
        return ((const Node *)target)->bind((const Node *)target, variables, value);
    PyObject *nothing = PyObject_CallFunctionObjArgs(target, variables, value, NULL);
    Py_XDECREF(nothing);
    return nothing ? 0 : -1;
}

/* Whether the truth of a value decides so, as the program stands at a place, None for where it stands
 * already; -1 with an exception set. The reference to the value is given. */
HIDDEN int decides(PyObject *value, PyObject *state, PyObject *place);

/* Let a slot or a part hold a value, whose reference is given, and give up the one before. */
INLINE void replace(PyObject **slot, PyObject *value)
{
    PyObject *before = *slot;
    *slot = value;
    Py_XDECREF(before);
}

/* Note where the program stands; 0. */
INLINE int stand_at(PyObject *state, PyObject *place)
{
    if (AT(state, SESSION_place) != place) replace(&AT(state, SESSION_place), Py_NewRef(place));
    return 0;
}

/* A tuple of a value, unless that is NULL, and of others. */
HIDDEN PyObject *tuple_of(PyObject *first, PyObject *const *given, Py_ssize_t count);

/* Count a step with a new integer; -1 with an exception set where they are used up. Find out how the host
 * keeps integers, which that is faster with. */
HIDDEN int charge_slowly(PyObject *steps);
HIDDEN int know_integers(void);

/* How the host keeps the items of a list, and whether it does: one that has room takes another at its end,
 * and gives up its last, in a sixth of the time of a call. */
typedef struct {
    PyVarObject head;
    PyObject **item;
    Py_ssize_t room;
} List;
extern HIDDEN int knows_lists;
HIDDEN int know_lists(void);

/* Raise the error that a function in Python gives for a value, NULL for none. */
HIDDEN void raise_of(int by, PyObject *value);

/* Another object of a class of slots alone, with what one of it has in these. */
HIDDEN PyObject *copy_of(int kind, PyObject *like);

/* New variables of what stands inside others; NULL with an exception set. */
HIDDEN PyObject *variables_inside(PyObject *variables);

/* Variables so many functions outward, a borrowed reference; NULL with an exception set. The value of
 * a name, as its node reads it there. */
HIDDEN PyObject *outward(PyObject *variables, long distance);
HIDDEN PyObject *read_outward(const Node *self, PyObject *variables, long distance);

/* The most variables of a function that need no dict. Find out whether those of a function are such,
 * or those inside of a comprehension or generator expression, before it first runs. Take them from
 * arguments, of which `named` are those by keyword or NULL, 0, perhaps with an exception set, where these
 * do not fit, with those of the function around it before them; and give them up. Run a body for variables in a dict. */
enum { MOST_LOCALS = 16 };
HIDDEN void find_locals(PyObject *function);
HIDDEN void find_locals_inside(Node *self);
HIDDEN int take_locals(PyObject *function, PyObject *const *given, Py_ssize_t count, PyObject *named,
                       PyObject **slots);
HIDDEN void drop_locals(const Node *body, PyObject **slots);
HIDDEN PyObject *run_with_dict(const Node *body, PyObject *variables);

/* A loop among such variables has others in a dict once something compiles or writes its iterations:
 * these, and the node like it that reads them there, which stands in its last part, both as they are made;
 * and what the dict has, taken back. -1 with an exception set. */
HIDDEN PyObject *dict_of_locals(const Node *self, PyObject **slots);
HIDDEN int take_back(const Node *self, PyObject **slots, PyObject *dict);
HIDDEN Node *twin_of(const Node *loop);

/* Replace a part that a node learns. */
HIDDEN void put(Node *self, int part, PyObject *value);

/* Whether a value is a number of the host's, and of no class derived from one. */
INLINE int is_number(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type ||
           type == &PyComplex_Type;
}

/* Whether nothing lies in a value: a number, a text or None. */
INLINE int is_plain(PyObject *value)
{
    return is_number(value) || Py_IS_TYPE(value, &PyUnicode_Type) || value == Py_None;
}

/* Whether a value is a key that needs no look at what lies in it. */
HIDDEN int is_plain_key(PyObject *value);

/* Whether it is one, or an object that may have a hash of its own. */
HIDDEN int is_easy_key(PyObject *value);

enum { ADDITION = 6 };

/* The value of an operator on two values, as `compiler/expressions/operations.py` numbers them, where
 * it is of the host's numbers or short: else NULL, with no exception set. */
HIDDEN PyObject *operated(long operator, PyObject *state, PyObject *left, PyObject *right);

/* An attribute of an instance, of whose class two parts learn that this is all; NULL where it is for
 * others to say, perhaps with an exception set. Set one; 1 where it is for others to do, -1 with an
 * exception set. */
HIDDEN PyObject *attribute_of(const Node *self, int part, PyObject *owner, PyObject *name);
HIDDEN int put_attribute(const Node *self, int part, PyObject *owner, PyObject *name, PyObject *value);

/* The function of the program's that is a method of an instance, or its own value, which has no
 * receiver, so that the owner is given up; NULL, perhaps with an exception set, where it has no such.
 * Three parts learn of its class. */
HIDDEN PyObject *method_by_class(const Node *self, int part, PyObject **owner, PyObject *name);

/* The same of an item of a list or dict as of an attribute. */
HIDDEN PyObject *item_of(PyObject *owner, PyObject *key);
HIDDEN int put_item(PyObject *owner, PyObject *key, PyObject *value);

/* An integer of the host's that is positive and has one digit: what stands behind its length, which
 * the limited API does not tell. */
typedef struct {
    PyVarObject head;
    uint32_t digit;
} Counted;

/* The length of such ones, 0 where they are not as they are known to be. */
extern HIDDEN Py_ssize_t counted_length;

/* Steps are counted down in place in what they alone hold, as long as it is none of the numbers of which
 * there is one object: most steps make no new integer. */
INLINE int charge_step(PyObject *steps)
{
    enum { SHARED = 1024 };
    PyObject *left = AT(steps, COUNTS_left);
    Counted *counted = (Counted *)left;
    if (Py_REFCNT(left) != 1 || !Py_IS_TYPE(left, &PyLong_Type) ||
        counted->head.ob_size != counted_length || counted->digit <= SHARED)
        return charge_slowly(steps);
    counted->digit--;
    return 0;
}

/* The most elements that a value may have; -1 with an exception set. */
HIDDEN Py_ssize_t most_elements(PyObject *state);

/* -1 with a RecursionError, where the stack of the thread is used up as far as nodes may use it. The
 * host's own count is not for what lies as flat as a node: from 3.12 on it ends at 1,500. */
HIDDEN int check_stack(void);

/* Let other threads run now and then, and signals be heard, as the host's own code does. */
HIDDEN int breathe(void);

/* Call a function of the program's, which the caller owns, with arguments by position. */
HIDDEN PyObject *entered(PyObject *function, PyObject *const *given, Py_ssize_t count);

/* Let the host call functions of the program's here; -1 with an exception set. */
HIDDEN int called_by_host(void);

/* The function of the program's that a class has for a special method, a new reference: three parts
 * learn it, and `find` gives it for a class, or is its name. NULL, perhaps with an exception set, for
 * none. */
HIDDEN PyObject *special_method(const Node *self, int part, PyTypeObject *kind, PyObject *find);

/* What the special method that the class of the first value has gives for so many of the values, as
 * above; `failed`, NULL for none, is called with its error and with `told` of them. */
HIDDEN PyObject *by_special_method(const Node *self, int part, PyObject *find, PyObject *const *given,
                                   Py_ssize_t count, PyObject *failed, Py_ssize_t told);

/* What a module of the language holds under a name, a new reference; NULL, perhaps with an exception
 * set, where its method in Python is to say. */
HIDDEN PyObject *module_value(PyObject *module, PyObject *name);

/* Whether no values of other libraries' are among those of programs, for which operators and calls
 * have to look. */
HIDDEN int all_are_own(void);

/* Call a function in Python with the exception that is set, and with values, unless it is one that
 * ends the program. */
HIDDEN PyObject *after_error(PyObject *failed, PyObject *const *given, Py_ssize_t count);

/* A new exception of a class of Python's by its name, or of one of the program's, with one text for its
 * argument or none; NULL, perhaps with an exception set, where Python is to make it. */
HIDDEN PyObject *new_raised(PyObject *name, PyObject *const *given, Py_ssize_t count);

/* Raise the KeyError of a key that a dict does not have; no exception is set where it is for others to
 * say. */
HIDDEN void raise_missing(PyObject *key);
HIDDEN PyObject *new_own_exception(PyObject *cls, PyObject *const *given, Py_ssize_t count);

/* Note where an error of the language's was raised, and in which calls, unless that is known; -1 with an
 * exception set. */
HIDDEN int locate(PyObject *error, PyObject *state);

/* Raise what is raised in place of an exception, whose reference is given, which is its context. */
HIDDEN void raise_in_place_of(PyObject *before);

/* --- calls and loops -------------------------------------------------------------------------- */

/* Run a statement of a function's body: 1 where it returned the value, 0 where the next one is to run,
 * -1 with an exception set. No tuple is made of what it returns, as for a loop. */
HIDDEN int returns(PyObject *statement, PyObject *variables, PyObject **value);

/* Count a call of a function of a name, and put it on the stack: where the program stood, which is
 * handed back at its end; NULL, and -1, with an exception set. */
HIDDEN PyObject *open_call(PyObject *state, PyObject *steps, PyObject *name);
HIDDEN void close_call(PyObject *state, PyObject *place);

/* Count a call through the host that is not over: how many there were before, NULL with an exception
 * set. That is handed back at its end, when all calls that were made in it are over. */
HIDDEN PyObject *enter_host_call(PyObject *steps);
INLINE void leave_host_call(PyObject *steps, PyObject *before)
{
    replace(&AT(steps, COUNTS_nested), before);
}

/* What a loop over values draws from; `iterate` makes it for what is not the host's. */
HIDDEN PyObject *iterator_of(PyObject *values, PyObject *iterate);

/* --- what waits ------------------------------------------------------------------------------- */

/* Go on with a value, or NULL for the exception that is set, which is raised where it waits. */
typedef PySendResult (*Resume)(PyObject *self, PyObject *sent, PyObject **result);

/* What the objects begin with that can wait: a block of statements, or a generator. */
typedef struct {
    PyObject_VAR_HEAD
    Resume resume;
} Resumable;

/* The class of such objects, with these slots and those that all have. */
HIDDEN PyTypeObject *waiting_type(const char *name, int size, int item, PyType_Slot *own);

/* End what waits by a GeneratorExit, which is taken, as `close` does: the program's own in the body of
 * a generator, the host's elsewhere. NULL for an error, that of its making among them. */
HIDDEN PyObject *ended_by_exit(PyObject *self, PyObject *error);

/* Whether an object is a generator of a program's, and whether the exception that is set is its
 * GeneratorExit. */
HIDDEN int is_generator(PyObject *object);
HIDDEN int is_generator_exit(void);

/* What a call of `__next__`, `send` or `throw` says that returned a value, or NULL. */
HIDDEN PySendResult status_of(PyObject *value, PyObject **result);

/* Raise the exception that is set in any iterator, as a generator of the host's does it with what it
 * draws from: GeneratorExit closes one, the program's one that the program draws from. */
HIDDEN PySendResult thrown_into(PyObject *waiting, int delegates, PyObject **result);

/* Whether a block waits for a statement of its own. */
HIDDEN int waits(PyObject *frame);

/* An iterator of programs' like another, with this source; and with what it draws from, or NULL. */
HIDDEN PyObject *iterator_like(PyObject *like, PyObject *source, PyObject *values);

/* The source of a generator, a new reference; NULL for any other value. */
HIDDEN PyObject *generator_of(PyObject *values);

/* drawing(values, state, convert): an iterator over what another has, each a step of the state's if that
 * is not None, and no more than a value may have; `convert` raises for an error of the host's. */
HIDDEN PyObject *make_drawing(PyObject *module, PyObject *const *given, Py_ssize_t count);

/* sum(node, host, values, start): adds up what an iterator has, by the node of a `+`. */
HIDDEN PyObject *make_sum(PyObject *module, PyObject *const *given, Py_ssize_t count);

/* keys(state, key, items): what a function gives for each item of a list. */
HIDDEN PyObject *make_keys(PyObject *module, PyObject *const *given, Py_ssize_t count);

/* What reads programs: the tables of the grammar, a run of them over tokens, and what cuts these. */
HIDDEN PyObject *make_automaton(PyObject *module, PyObject *const *given, Py_ssize_t count);
HIDDEN PyObject *parse(PyObject *module, PyObject *const *given, Py_ssize_t count);
HIDDEN PyObject *scan(PyObject *module, PyObject *const *given, Py_ssize_t count);

HIDDEN int add_drawings(void);
HIDDEN int add_frames(void);
HIDDEN int add_generators(PyObject *module);

/* --- kinds: `nodes.def` has them all ---------------------------------------------------------- */

#define NODE(name, parts) HIDDEN PyObject *run_##name(const Node *self, PyObject *variables);
#define TARGET(name, parts)                                                                     \
    HIDDEN int bind_##name(const Node *self, PyObject *variables, PyObject *value);
#include "nodes.def"
#undef NODE
#undef TARGET

HIDDEN int add_nodes(PyObject *module);

/* What a call of a function of the library's gives for small and plain values; NULL with no exception
 * set where it is to be called. The session's state has the limits. */
HIDDEN PyObject *quick_call(PyObject *state, PyObject *called, PyObject *const *given,
                            Py_ssize_t count);

/* Whether a call of it is `len(…)`. */
HIDDEN int asks_length(PyObject *called);

HIDDEN PyObject *know_quick(PyObject *module, PyObject *const *given, Py_ssize_t count);

#endif
