/* `try`, `raise`, `assert` and `with`. */

#include "node.h"

/* --- exceptions ------------------------------------------------------------------------------- */

/* Take the exception that is set, as one object. */
static PyObject *taken(void)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return error;
}

/* Raise an exception, whose reference is given, as it is. */
static void raise_again(PyObject *error)
{
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), error, PyException_GetTraceback(error));
}

static int is_own(PyObject *error)
{
    return PyType_IsSubtype(Py_TYPE(error), (PyTypeObject *)helper[ERROR]);
}

/* Note that an exception was raised while another was handled, which is what it has for its context
 * unless it has one; what came ahead of that ends where it would come to the exception itself. */
static int note_context(PyObject *error, PyObject *handled)
{
    PyObject *context, *before = Py_NewRef(handled);
    if (error == handled || !is_own(error) || !is_own(handled)) goto end;
    if (!(context = PyObject_GetAttr(error, context_key))) goto failed;
    Py_DECREF(context);
    if (context != Py_None) goto end;
    for (;;) {
        if (!(context = PyObject_GetAttr(before, context_key))) goto failed;
        if (context == Py_None || context == error) break;
        replace(&before, context);
    }
    Py_DECREF(context);
    if (context == error && PyObject_SetAttr(before, context_key, Py_None) < 0) goto failed;
    if (PyObject_SetAttr(error, context_key, handled) < 0) goto failed;
end:
    Py_DECREF(before);
    return 0;
failed:
    Py_DECREF(before);
    return -1;
}

void raise_in_place_of(PyObject *before)
{
    PyObject *error = taken();
    if (note_context(error, before) < 0) PyErr_Clear();
    if (error != before) PyException_SetContext(error, before);
    else Py_DECREF(before);
    raise_again(error);
}

int locate(PyObject *error, PyObject *state)
{
    PyObject *span = PyObject_GetAttr(error, span_key);
    PyObject *stack = span ? PyObject_GetAttr(error, stack_key) : NULL, *open;
    int known = stack ? PyObject_IsTrue(stack) : -1;
    if (span == Py_None && PyObject_SetAttr(error, span_key, AT(state, SESSION_place)) < 0) known = -1;
    if (!known && PyList_Size(AT(state, SESSION_stack))) {
        open = PyList_AsTuple(AT(state, SESSION_stack));
        known = open ? PyObject_SetAttr(error, stack_key, open) : -1;
        Py_XDECREF(open);
    }
    Py_XDECREF(span);
    Py_XDECREF(stack);
    return known < 0 ? -1 : 0;
}

/* Note where an exception was raised: give it up, and get it, or what is raised in its place as one of
 * the language's; NULL with an exception set for one that is not to be caught. */
static PyObject *located(PyObject *error, PyObject *state)
{
    if (is_own(error)) {
        if (locate(error, state) < 0) Py_CLEAR(error);
        return error;
    }
    PyObject *told = PyObject_CallFunctionObjArgs(helper[CAUGHT], error, state, NULL);
    Py_DECREF(error);
    return told;
}

/* Let go of the host's frames that an exception holds which was handled. */
static void forget_frames(PyObject *error)
{
    PyObject *traceback, *next;
    Py_INCREF(error);
    while (error) {
        traceback = PyException_GetTraceback(error);
        Py_XDECREF(traceback);
        if (!traceback || traceback == Py_None) break;
        PyException_SetTraceback(error, Py_None);
        if (!(next = PyException_GetCause(error))) next = PyException_GetContext(error);
        Py_DECREF(error);
        error = next;
    }
    Py_XDECREF(error);
}

/* --- new ones --------------------------------------------------------------------------------- */

/* A dict of the attributes that a new exception has, and of those that it gets where it is raised: one
 * that is copied does not grow name by name. */
static PyObject *attributes(void)
{
    static PyObject *like;
    if (!like) {
        PyObject *none = PyTuple_New(0), *made = none ? PyDict_New() : NULL;
        PyObject *keys[] = {code_key, message_key, text_key, raises_key, arguments_key, span_key};
        for (size_t k = 0; made && k < sizeof keys / sizeof *keys; k++)
            if (PyDict_SetItem(made, keys[k], Py_None) < 0) Py_CLEAR(made);
        if (made && PyDict_SetItem(made, stack_key, none) < 0) Py_CLEAR(made);
        Py_XDECREF(none);
        like = made;
    }
    return like ? PyDict_Copy(like) : NULL;
}

/* An exception of a class of ours with a message, as `Raised.__init__` makes it. */
static PyObject *new_of(PyObject *kind, PyObject *raises, PyObject *code, PyObject *message,
                        PyObject *arguments)
{
    newfunc make = (newfunc)PyType_GetSlot((PyTypeObject *)PyExc_Exception, Py_tp_new);
    PyObject *args = PyTuple_Pack(1, message), *held = args ? attributes() : NULL;
    PyObject *error = held ? make((PyTypeObject *)kind, args, NULL) : NULL;
    if (error && (PyDict_SetItem(held, code_key, code) < 0 ||
                  PyDict_SetItem(held, message_key, message) < 0 ||
                  PyDict_SetItem(held, text_key, message) < 0 ||
                  PyDict_SetItem(held, raises_key, raises) < 0 ||
                  PyDict_SetItem(held, arguments_key, arguments) < 0 ||
                  PyObject_GenericSetDict(error, held, NULL) < 0))
        Py_CLEAR(error);
    Py_XDECREF(args);
    Py_XDECREF(held);
    return error;
}

/* The tuple of an exception's arguments, and its message: one text, or nothing; NULL for others. */
static PyObject *arguments_of(PyObject *const *given, Py_ssize_t count, PyObject **message)
{
    if (count > 1 || (count && !Py_IS_TYPE(given[0], &PyUnicode_Type))) return NULL;
    PyObject *arguments = count ? PyTuple_Pack(1, given[0]) : PyTuple_New(0);
    *message = count ? Py_NewRef(given[0]) : PyUnicode_FromString("");
    if (!*message) Py_CLEAR(arguments);
    return arguments;
}

PyObject *new_raised(PyObject *name, PyObject *const *given, Py_ssize_t count)
{
    PyObject *message = NULL, *arguments = arguments_of(given, count, &message), *error = NULL;
    int failed = PyUnicode_CompareWithASCIIString(name, "AssertionError") == 0;
    int is_key = PyUnicode_CompareWithASCIIString(name, "KeyError") == 0;
    if (arguments && is_key && count) replace(&message, PyObject_Repr(given[0]));
    if (arguments && message)
        error = new_of(helper[RAISED], name, failed ? assertion_code : raised_code, message, arguments);
    Py_XDECREF(message);
    Py_XDECREF(arguments);
    return error;
}

void raise_missing(PyObject *key)
{
    PyObject *message = is_plain(key) ? PyObject_Repr(key) : NULL, *error = NULL;
    PyObject *arguments = message ? PyTuple_Pack(1, key) : NULL;
    if (arguments) error = new_of(helper[RAISED], key_error_name, missing_code, message, arguments);
    if (error) raise_again(error);
    else PyErr_Clear(); /* an integer of more digits than the host converts, which is for others to say */
    Py_XDECREF(message);
    Py_XDECREF(arguments);
}

PyObject *new_own_exception(PyObject *cls, PyObject *const *given, Py_ssize_t count)
{
    PyObject *host = AT(cls, USER_CLASS_host), *message = NULL, *arguments, *values, *error = NULL, *says;
    if (!PyType_IsSubtype((PyTypeObject *)host, (PyTypeObject *)helper[ERROR])) return NULL;
    if (!(says = PyObject_GetAttr(host, exception_class_key))) PyErr_Clear();
    Py_XDECREF(says);
    if (says != Py_True) return NULL;
    if (!(arguments = arguments_of(given, count, &message))) return NULL;
    if ((values = PyDict_New()))
        error = new_of(host, AT(cls, LANGUAGE_TYPE_name), raised_code, message, arguments);
    if (error && PyObject_SetAttr(error, values_key, values) < 0) Py_CLEAR(error);
    Py_XDECREF(values);
    Py_DECREF(message);
    Py_DECREF(arguments);
    return error;
}

/* --- try -------------------------------------------------------------------------------------- */

/* Parts of a `try`: the body, and what comes behind its end, None for nothing; the errors whose
 * `except` is running; what says whether classes take an error, and what handles it where `except*`
 * does, or None. Then for each `except`: its classes or None, their place, what binds the name and
 * takes it away again, or None, and its block; and what it learns: classes, the class of an error,
 * the class that it raises, and whether the first take it. */
enum { TRIED = FIRST, OTHER, HANDLED, TAKES, IN_GROUPS, CLAUSES };
enum { OF_CLASSES, AT, STORE, UNBIND, HANDLER, LEARNT_CLASSES, LEARNT_KIND, LEARNT_NAME, ANSWER,
       CLAUSE_PARTS };

/* Whether classes take an error; -1 with an exception set. */
static int takes(Node *self, Py_ssize_t at, PyObject *classes, PyObject *error)
{
    PyObject *const *clause = self->part + at;
    PyObject *name = PyObject_GetAttr(error, raises_key);
    if (!name) return -1;
    if (clause[LEARNT_CLASSES] != classes || clause[LEARNT_KIND] != (PyObject *)Py_TYPE(error) ||
        clause[LEARNT_NAME] != name) {
        PyObject *answer = PyObject_CallFunctionObjArgs(self->part[TAKES], classes, error, NULL);
        int truth = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        if (truth < 0 || PyTuple_Check(classes)) {
            Py_DECREF(name);
            return truth;
        }
        put(self, (int)at + LEARNT_CLASSES, classes);
        put(self, (int)at + LEARNT_KIND, (PyObject *)Py_TYPE(error));
        put(self, (int)at + LEARNT_NAME, name);
        put(self, (int)at + ANSWER, truth ? Py_True : Py_False);
    }
    Py_DECREF(name);
    return clause[ANSWER] == Py_True;
}

/* The first `except` that takes an error; 0 for none, -1 with an exception set. */
static Py_ssize_t matching(const Node *self, PyObject *error, PyObject *variables)
{
    for (Py_ssize_t at = CLAUSES; at < parts_of(self); at += CLAUSE_PARTS) {
        if (self->part[at + OF_CLASSES] == Py_None) return at;
        PyObject *classes = value_of(self->part[at + OF_CLASSES], variables);
        if (!classes || stand_at(self->part[STATE], self->part[at + AT]) < 0) return -1;
        int truth = takes((Node *)self, at, classes, error);
        Py_DECREF(classes);
        if (truth) return truth < 0 ? -1 : at;
    }
    return 0;
}

/* Run the block of an `except`. */
static PyObject *handled_by(const Node *self, Py_ssize_t at, PyObject *error, PyObject *variables)
{
    PyObject *const *clause = self->part + at, *handled = self->part[HANDLED];
    PyObject *type, *another, *traceback, *ended = NULL;
    Py_ssize_t outer = PyList_Size(handled);
    if (outer && note_context(error, PyList_GetItem(handled, outer - 1)) < 0) return NULL;
    if (PyList_Append(handled, error) < 0) return NULL;
    if (clause[STORE] == Py_None || store_in(clause[STORE], variables, error) == 0)
        ended = value_of(clause[HANDLER], variables);
    if (ended) {
        forget_frames(error);
    } else if (PyErr_ExceptionMatches(helper[ERROR])) {
        another = taken();
        if (note_context(another, error) < 0) PyErr_Clear();
        raise_again(another);
    }
    PyErr_Fetch(&type, &another, &traceback);
    Py_ssize_t count = PyList_Size(handled);
    int failed = count && PyList_SetSlice(handled, count - 1, count, NULL) < 0;
    if (!failed && clause[UNBIND] != Py_None) {
        PyObject *nothing = value_of(clause[UNBIND], variables);
        failed = !nothing;
        Py_XDECREF(nothing);
    }
    if (failed) {
        Py_CLEAR(ended);
        Py_XDECREF(type);
        Py_XDECREF(another);
        Py_XDECREF(traceback);
    } else if (type) {
        PyErr_Restore(type, another, traceback);
    }
    return ended;
}

/* `try` with its `except`s and its `else`. */
PyObject *run_tried(const Node *self, PyObject *variables)
{
    PyObject *const *part = self->part, *ended = value_of(part[TRIED], variables), *error;
    if (ended && (ended != Py_None || part[OTHER] == Py_None)) return ended;
    if (ended) {
        Py_DECREF(ended);
        return value_of(part[OTHER], variables);
    }
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    if (!(error = located(taken(), part[STATE]))) return NULL;
    if (part[IN_GROUPS] != Py_None) {
        ended = PyObject_CallFunctionObjArgs(part[IN_GROUPS], error, variables, NULL);
    } else {
        Py_ssize_t at = matching(self, error, variables);
        if (at > 0) ended = handled_by(self, at, error, variables);
        else if (!at) raise_again(Py_NewRef(error));
    }
    Py_DECREF(error);
    return ended;
}

/* `try` with a `finally`, of which a `return`, `break` or `continue` takes the place of an error of the
 * body, or of its own; but Ctrl-C and the end of time are no errors that it could take back. */
PyObject *run_finished(const Node *self, PyObject *variables)
{
    enum { BODY = FIRST, FINAL };
    PyObject *ended = value_of(self->part[BODY], variables), *error = ended ? NULL : taken();
    if (error && is_own(error) && !(error = located(error, self->part[STATE]))) return NULL;
    PyObject *override = value_of(self->part[FINAL], variables);
    if (error && !override) {
        raise_in_place_of(error);
    } else if (error && (override == Py_None || !PyErr_GivenExceptionMatches(error, PyExc_Exception))) {
        raise_again(error);
        Py_CLEAR(override);
    } else if (override == Py_None) {
        Py_DECREF(override);
        return ended;
    } else {
        Py_XDECREF(error);
    }
    Py_XDECREF(ended);
    return override;
}

/* --- raise and assert ------------------------------------------------------------------------- */

/* `raise exception from cause`, each None for none; the last part makes an exception of any value, or of
 * none what is raised again. */
PyObject *run_raised(const Node *self, PyObject *variables)
{
    enum { EXCEPTION = FIRST, CAUSE, MAKE };
    PyObject *const *part = self->part, *value = value_of(part[EXCEPTION], variables);
    PyObject *cause = value ? value_of(part[CAUSE], variables) : NULL, *error = NULL, *origin = NULL;
    if (!cause || stand_at(part[STATE], part[PLACE]) < 0) goto end;
    error = is_own(value) ? Py_NewRef(value) : PyObject_CallFunctionObjArgs(part[MAKE], value, NULL);
    if (error && cause != Py_None) {
        origin = is_own(cause) ? Py_NewRef(cause)
                               : PyObject_CallFunctionObjArgs(part[MAKE], cause, NULL);
        if (!origin || PyObject_SetAttr(error, cause_key, origin) < 0) Py_CLEAR(error);
    }
    if (error) raise_again(error);
end:
    Py_XDECREF(value);
    Py_XDECREF(cause);
    Py_XDECREF(origin);
    return NULL;
}

/* `assert test, message`, None for no message; the last parts are what raises an exception with one, if
 * any, and the name of its class. */
PyObject *run_asserted(const Node *self, PyObject *variables)
{
    enum { TEST = FIRST, MESSAGE, FAIL, FAILURE };
    PyObject *const *part = self->part, *message, *failed;
    int holds = decides(value_of(part[TEST], variables), part[STATE], part[PLACE]);
    if (holds < 0) return NULL;
    if (holds) Py_RETURN_NONE;
    message = part[MESSAGE] == Py_None ? NULL : value_of(part[MESSAGE], variables);
    if (!message && part[MESSAGE] != Py_None) return NULL;
    if (stand_at(part[STATE], part[PLACE]) < 0) failed = NULL;
    else if ((failed = new_raised(part[FAILURE], &message, message != NULL))) raise_again(failed);
    else if (!PyErr_Occurred()) Py_XDECREF(PyObject_CallFunctionObjArgs(part[FAIL], message, NULL));
    Py_XDECREF(message);
    return NULL;
}

/* --- with ------------------------------------------------------------------------------------- */

/* Parts of a `with`: the context, what binds its value or None, the body; what enters any value, and gives
 * what leaves it with it, leaves it, and leaves it after an error; the class of an exception and its
 * traceback, and what says what a program sees of the failure of a method; what finds `__enter__` and
 * `__exit__` of a class, and what is learnt of both. */
enum { CONTEXT = FIRST, BIND, WITHIN_BODY, ENTER, LEAVE, LEAVE_AFTER, KIND_OF, TRACEBACK_OF, LEAVING_FAILED,
       FIND_ENTER, FIND_EXIT, LEARNT_ENTER, LEARNT_EXIT = LEARNT_ENTER + 3 };

/* Whether a value is a method of the host's with its object. */
static int is_host_method(PyObject *value)
{
    return Py_IS_TYPE(value, (PyTypeObject *)helper[HOST_METHOD]);
}

/* Enter a context of ours, which needs no look at what it is: its value, and what leaves it in the place
 * of the context; NULL, perhaps with an exception set, for any other. */
static PyObject *entered_plainly(PyObject **context)
{
    PyObject *says = PyObject_GetAttr((PyObject *)Py_TYPE(*context), context_class_key), *value = NULL;
    PyObject *leave = says == Py_True ? PyObject_GetAttr(*context, exit_key) : NULL;
    PyObject *enter = leave ? PyObject_GetAttr(*context, enter_key) : NULL;
    if (enter && is_host_method(enter) && is_host_method(leave)) {
        value = PyObject_CallNoArgs(enter);
        if (value) replace(context, Py_NewRef(leave));
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear(); /* the function in Python says it in the program's words */
    }
    Py_XDECREF(says);
    Py_XDECREF(leave);
    Py_XDECREF(enter);
    return value;
}

/* Call what leaves a context; `method` is the program's, or NULL. */
static PyObject *leave(const Node *self, PyObject *context, PyObject *method, PyObject *error)
{
    PyObject *const *part = self->part;
    if (!method && !error && is_host_method(context)) {
        if (stand_at(part[STATE], part[PLACE]) < 0) return NULL;
        return PyObject_CallFunctionObjArgs(context, Py_None, Py_None, Py_None, NULL);
    }
    if (!method)
        return error ? PyObject_CallFunctionObjArgs(part[LEAVE_AFTER], context, error, NULL)
                     : PyObject_CallFunctionObjArgs(part[LEAVE], context, NULL);
    PyObject *kind = error ? PyObject_CallFunctionObjArgs(part[KIND_OF], error, NULL)
                           : Py_NewRef(Py_None);
    PyObject *traceback = kind && error ? PyObject_CallFunctionObjArgs(part[TRACEBACK_OF], error, NULL)
                                        : Py_NewRef(Py_None);
    PyObject *given[] = {context, kind, error ? error : Py_None, traceback}, *value = NULL;
    if (kind && traceback && stand_at(part[STATE], part[PLACE]) == 0) {
        value = entered(method, given, 4);
        if (!value && error) value = after_error(part[LEAVING_FAILED], given, 3);
    }
    Py_XDECREF(kind);
    Py_XDECREF(traceback);
    return value;
}

/* The body has raised an exception, which is set; whether the context takes it on itself, -1 with an
 * exception set. */
static int takes_on(const Node *self, PyObject *context, PyObject *method)
{
    PyObject *error = taken(), *answer = NULL;
    int truth = -1;
    if (!is_own(error)) { /* Ctrl-C, or a failure of ours */
        PyObject *left = leave(self, context, method, NULL);
        truth = left ? 0 : -1;
        Py_XDECREF(left);
    } else {
        if (!(error = located(error, self->part[STATE]))) return -1;
        answer = leave(self, context, method, error);
        truth = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
    }
    if (truth < 0) raise_in_place_of(error);
    else if (truth) Py_DECREF(error);
    else raise_again(error);
    return truth > 0 ? 1 : -1;
}

/* `with context as target`. */
PyObject *run_within(const Node *self, PyObject *variables)
{
    PyObject *const *part = self->part;
    PyObject *context = value_of(part[CONTEXT], variables), *value = NULL, *ended = NULL;
    PyObject *enter, *method = NULL, *left;
    if (!context || stand_at(part[STATE], part[PLACE]) < 0) goto end;
    if ((enter = special_method(self, LEARNT_ENTER, Py_TYPE(context), part[FIND_ENTER])))
        method = special_method(self, LEARNT_EXIT, Py_TYPE(context), part[FIND_EXIT]);
    if (!PyErr_Occurred() && method) {
        value = entered(enter, &context, 1);
    } else if (!PyErr_Occurred() && !(value = entered_plainly(&context)) && !PyErr_Occurred()) {
        PyObject *both = PyObject_CallFunctionObjArgs(part[ENTER], context, NULL);
        if (both) {
            value = Py_XNewRef(PyTuple_GetItem(both, 0));
            replace(&context, Py_XNewRef(PyTuple_GetItem(both, 1)));
            Py_DECREF(both);
        }
    }
    Py_XDECREF(enter);
    if (!value) goto end;
    if (part[BIND] == Py_None || store_in(part[BIND], variables, value) == 0)
        ended = value_of(part[WITHIN_BODY], variables);
    if (!ended) {
        if (takes_on(self, context, method) > 0) ended = Py_NewRef(Py_None);
    } else {
        if (!(left = leave(self, context, method, NULL))) Py_CLEAR(ended);
        Py_XDECREF(left);
    }
end:
    Py_XDECREF(context);
    Py_XDECREF(method);
    Py_XDECREF(value);
    return ended;
}
