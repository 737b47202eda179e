/* Calls: of the program's functions and methods, which are entered here, and of all else. */

#include "node.h"

PyObject *tuple_of(PyObject *first, PyObject *const *given, Py_ssize_t count)
{
    Py_ssize_t before = first != NULL;
    PyObject *tuple = PyTuple_New(before + count);
    if (!tuple) return NULL;
    if (first) PyTuple_SetItem(tuple, 0, Py_NewRef(first));
    for (Py_ssize_t k = 0; k < count; k++) PyTuple_SetItem(tuple, before + k, Py_NewRef(given[k]));
    return tuple;
}

/* Call a function in Python with a value and others. */
static PyObject *called_with(PyObject *function, PyObject *first, PyObject *const *given,
                             Py_ssize_t count)
{
    PyObject *tuple = tuple_of(first, given, count);
    PyObject *value = tuple ? PyObject_Call(function, tuple, NULL) : NULL;
    Py_XDECREF(tuple);
    return value;
}

/* --- functions of the program ----------------------------------------------------------------- */

/* Give variables the defaults of the parameters that they lack; 0 where one has none, perhaps with an
 * exception. */
static int add_defaults(PyObject *function, PyObject *variables, PyObject *names, Py_ssize_t from)
{
    Py_ssize_t count = PyTuple_Size(names);
    for (Py_ssize_t k = from; k < count; k++) {
        PyObject *name = PyTuple_GetItem(names, k);
        if (PyDict_GetItemWithError(variables, name)) continue;
        PyObject *value = PyDict_GetItemWithError(AT(function, FUNCTION_defaults), name);
        if (!value || PyDict_SetItem(variables, name, value) < 0) return 0;
    }
    return 1;
}

/* Give variables the arguments by keyword, and `more` those that are no parameters; 0 as before. */
static int add_named(PyObject *signature, PyObject *variables, PyObject *named, PyObject *more)
{
    PyObject *name, *value, *names = AT(signature, SIGNATURE_positional);
    PyObject *only = AT(signature, SIGNATURE_keyword_only);
    Py_ssize_t at = 0;
    while (PyDict_Next(named, &at, &name, &value)) {
        int is_parameter = PySequence_Contains(names, name);
        if (is_parameter > 0 && PySet_Contains(AT(signature, SIGNATURE_by_position), name))
            is_parameter = 0;
        if (is_parameter == 0) is_parameter = PySequence_Contains(only, name);
        if (is_parameter < 0 || (is_parameter && PyDict_GetItemWithError(variables, name))) return 0;
        PyObject *into = is_parameter ? variables : more;
        if (!into || PyDict_SetItem(into, name, value) < 0) return 0;
    }
    return 1;
}

/* The variables of a call; NULL, perhaps with an exception, where the arguments do not fit.
 * `named` are those by keyword, or NULL. */
static PyObject *bound(PyObject *function, PyObject *const *given, Py_ssize_t count, PyObject *named)
{
    PyObject *signature = AT(function, FUNCTION_signature), *more = NULL, *left = NULL;
    PyObject *names = AT(signature, SIGNATURE_positional), *rest = AT(signature, SIGNATURE_rest);
    Py_ssize_t positional = PyTuple_Size(names), placed = count < positional ? count : positional;
    int is_simple = AT(signature, SIGNATURE_simple) != minus_one, fits = 0;
    if (count > positional && (is_simple || !PyUnicode_GetLength(rest))) return NULL;
    PyObject *variables = variables_inside(AT(function, FUNCTION_parent));
    if (!variables) return NULL;
    for (Py_ssize_t k = 0; k < placed; k++)
        if (PyDict_SetItem(variables, PyTuple_GetItem(names, k), given[k]) < 0) goto end;
    if (!is_simple) {
        if (PyUnicode_GetLength(rest) &&
            (!(left = tuple_of(NULL, given + placed, count - placed)) ||
             PyDict_SetItem(variables, rest, left) < 0))
            goto end;
        if (PyUnicode_GetLength(AT(signature, SIGNATURE_keywords)) && !(more = PyDict_New()))
            goto end;
    }
    if (named && !add_named(signature, variables, named, more)) goto end;
    if (more && PyDict_SetItem(variables, AT(signature, SIGNATURE_keywords), more) < 0) goto end;
    fits = (placed == positional || add_defaults(function, variables, names, placed)) &&
           (is_simple || add_defaults(function, variables, AT(signature, SIGNATURE_keyword_only), 0));
end:
    Py_XDECREF(left);
    Py_XDECREF(more);
    if (!fits) Py_CLEAR(variables);
    return variables;
}

/* Count a call of a body that may be written as a function of the host's; -1 with an exception. As
 * long as it is far from being hot, the body counts so many calls that the host has counted already. */
static int count_call(PyObject *function, PyObject *hot)
{
    enum { AT_ONCE = 64 };
    Node *body = (Node *)AT(function, FUNCTION_body);
    int counts = AT(hot, HOT_run) == Py_None && Py_IS_TYPE((PyObject *)body, node_type);
    if (counts && body->calls) {
        body->calls--;
        return 0;
    }
    long calls = PyLong_AsLong(AT(hot, HOT_calls));
    if (counts && calls < -AT_ONCE) calls += body->calls = AT_ONCE - 1;
    if (calls >= 0 || AT(hot, HOT_run) != Py_None) {
        PyObject *done = PyObject_CallFunctionObjArgs(helper[WRITE], hot, function, NULL);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    PyObject *after = PyLong_FromLong(calls + 1);
    if (!after) return -1;
    replace(&AT(hot, HOT_calls), after);
    return 0;
}

/* Note at an error that ends a function where it was raised, or raise another for it. */
static void ended_by_error(PyObject *function)
{
    if (!PyErr_ExceptionMatches(helper[ERROR]) && !PyErr_ExceptionMatches(PyExc_RecursionError))
        return;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    PyObject *told = NULL;
    if (!PyType_IsSubtype(Py_TYPE(error), (PyTypeObject *)helper[ERROR]))
        told = PyObject_CallFunctionObjArgs(helper[ENDED], error, function, NULL);
    else if (locate(error, AT(function, FUNCTION_state)) == 0)
        told = Py_NewRef(error);
    if (told == error) {
        PyErr_Restore(type, error, traceback);
    } else {
        if (told) PyErr_SetObject((PyObject *)Py_TYPE(told), told);
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    Py_XDECREF(told);
}

/* The entry of the stack for a call of a function of a name from a place. One that was made stays for
 * the next call like it: most calls are. */
static PyObject *entry_of(PyObject *name, PyObject *place)
{
    enum { KEPT = 64 };
    static struct {
        PyObject *name, *place, *entry; /* which holds them */
    } kept[KEPT], *at;
    at = &kept[(((size_t)name ^ (size_t)place * 3) >> 4) % KEPT];
    if (at->name != name || at->place != place) {
        PyObject *made = PyTuple_Pack(2, name, place);
        if (!made) return NULL;
        at->name = name;
        at->place = place;
        replace(&at->entry, made);
    }
    return Py_NewRef(at->entry);
}

/* Append an entry, whose reference is given, to the stack; -1 with an exception set. */
static int push(PyObject *stack, PyObject *entry)
{
    List *list = (List *)stack;
    Py_ssize_t open = Py_SIZE(stack);
    if (knows_lists && open < list->room) {
        list->item[open] = entry;
        Py_SET_SIZE((PyVarObject *)stack, open + 1);
        return 0;
    }
    int failed = PyList_Append(stack, entry);
    Py_DECREF(entry);
    return failed;
}

PyObject *open_call(PyObject *state, PyObject *steps, PyObject *name)
{
    PyObject *stack = AT(state, SESSION_stack), *place = Py_NewRef(AT(state, SESSION_place));
    if (charge_step(steps) < 0 || breathe() < 0) {
        Py_DECREF(place);
        return NULL;
    }
    int fits = Py_SIZE(stack) < deepest_call;
    PyObject *entry = fits ? entry_of(name, place) : NULL;
    if (!entry || push(stack, entry) < 0) {
        if (!PyErr_Occurred()) raise_of(TOO_MANY_CALLS, name);
        Py_CLEAR(place);
    }
    return place;
}

void close_call(PyObject *state, PyObject *place)
{
    PyObject *stack = AT(state, SESSION_stack);
    Py_ssize_t open = Py_SIZE(stack);
    if (open) { /* what a slice is deleted for, in a fifth of the time: its last item leaves the list */
        PyObject *entry = knows_lists ? ((List *)stack)->item[open - 1] : PyList_GetItem(stack, open - 1);
        Py_SET_SIZE((PyVarObject *)stack, open - 1);
        Py_DECREF(entry);
    }
    stand_at(state, place);
    Py_DECREF(place);
}

/* Run a body with its variables, as a call of the function. */
static PyObject *run_body(PyObject *function, PyObject *body, PyObject *variables)
{
    PyObject *state = AT(function, FUNCTION_state), *value = NULL;
    PyObject *place = open_call(state, AT(function, FUNCTION_steps), AT(function, FUNCTION_name));
    if (!place) return NULL;
    int ended = check_stack() < 0 ? -1 : returns(body, variables, &value);
    if (ended < 0) ended_by_error(function);
    else if (!ended) value = Py_NewRef(Py_None);
    close_call(state, place);
    return value;
}

/* Run a body with arguments, of which `named` are those by keyword or NULL; NULL, perhaps with no
 * exception set, where they do not fit. */
static PyObject *run_bound(PyObject *function, PyObject *const *given, Py_ssize_t count,
                           PyObject *named)
{
    PyObject *body = Py_NewRef(AT(function, FUNCTION_body)), *slots[1 + MOST_LOCALS], *value = NULL;
    if (!Py_IS_TYPE(body, node_type) || !((Node *)body)->locals) {
        PyObject *variables = bound(function, given, count, named);
        if (variables) value = run_body(function, body, variables);
        Py_XDECREF(variables);
    } else if (take_locals(function, given, count, named, slots)) {
        value = run_body(function, body, (PyObject *)slots);
        drop_locals((Node *)body, slots);
    }
    Py_DECREF(body);
    return value;
}

/* Call a function of the program's, which the caller owns; `named` are arguments by keyword or NULL. */
static PyObject *entered_with(PyObject *function, PyObject *const *given, Py_ssize_t count,
                              PyObject *named)
{
    PyObject *hot = AT(function, FUNCTION_hot), *value, *tuple;
    int is_written = AT(function, FUNCTION_most) != minus_one;
    if (!is_written && hot != Py_None) {
        if (count_call(function, hot) < 0) return NULL;
        is_written = AT(function, FUNCTION_most) != minus_one;
    }
    if (is_written && !named && count <= PyLong_AsLong(AT(function, FUNCTION_most)) &&
        count >= PyLong_AsLong(AT(function, FUNCTION_least)))
        return called_with(AT(function, FUNCTION_run), function, given, count);
    value = !is_written ? run_bound(function, given, count, named) : NULL;
    if (value || PyErr_Occurred() || !(tuple = tuple_of(function, given, count))) return value;
    value = PyObject_Call(helper[INVOKE], tuple, named);
    Py_DECREF(tuple);
    return value;
}

PyObject *entered(PyObject *function, PyObject *const *given, Py_ssize_t count)
{
    return entered_with(function, given, count, NULL);
}

/* Arguments by keyword of a call by the host as a dict, NULL for none. */
static PyObject *keywords(PyObject *const *given, PyObject *names)
{
    PyObject *named = PyDict_New();
    for (Py_ssize_t k = 0; named && k < PyTuple_Size(names); k++)
        if (PyDict_SetItem(named, PyTuple_GetItem(names, k), given[k]) < 0) Py_CLEAR(named);
    return named;
}

/* What `Function.__call__` does: the host sorts by a function of the program's, or maps it. */
static PyObject *entered_by_host(PyObject *function, PyObject *const *given, Py_ssize_t count,
                                 PyObject *names)
{
    PyObject *steps = AT(function, FUNCTION_steps), *named = NULL, *value, *nested;
    if (names && PyTuple_Size(names) && !(named = keywords(given + count, names))) return NULL;
    if (!(nested = enter_host_call(steps))) {
        Py_XDECREF(named);
        return NULL;
    }
    Py_INCREF(function);
    value = entered_with(function, given, count, named);
    leave_host_call(steps, nested);
    Py_DECREF(function);
    Py_XDECREF(named);
    return value;
}

int called_by_host(void)
{
    static PyMethodDef call = {"__call__", (PyCFunction)(void (*)(void))entered_by_host,
                               METH_FASTCALL | METH_KEYWORDS, "Call it, as the host does."};
    PyObject *method = PyDescr_NewMethod(known_class[FUNCTION], &call);
    int failed = method ? PyObject_SetAttrString((PyObject *)known_class[FUNCTION], "__call__", method)
                        : -1;
    Py_XDECREF(method);
    return failed;
}

/* --- special methods -------------------------------------------------------------------------- */

/* The function of the program's that a class has for a special method of a name, None for nothing. */
static PyObject *written_method(PyTypeObject *kind, PyObject *name)
{
    PyObject *method = PyObject_GetAttr((PyObject *)kind, name);
    PyObject *function = method ? PyObject_GetAttrString(method, "function") : NULL;
    Py_XDECREF(method);
    if (!function && !PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
    PyErr_Clear();
    if (function && Py_IS_TYPE(function, known_class[FUNCTION])) return function;
    Py_XDECREF(function);
    Py_RETURN_NONE;
}

/* What `find` gives for a class, the method itself where it is a name: the class keeps it until it
 * changes. */
static PyObject *method_of(PyTypeObject *kind, PyObject *find)
{
    PyObject *kept = PyObject_GetAttr((PyObject *)kind, methods_key), *method;
    if (!kept) return NULL;
    method = PyDict_GetItemWithError(kept, find);
    Py_XINCREF(method);
    if (!method && !PyErr_Occurred()) {
        method = PyUnicode_Check(find) ? written_method(kind, find)
                                       : PyObject_CallFunctionObjArgs(find, (PyObject *)kind, NULL);
        if (method && PyDict_SetItem(kept, find, method) < 0) Py_CLEAR(method);
    }
    Py_DECREF(kept);
    return method;
}

PyObject *special_method(const Node *self, int part, PyTypeObject *kind, PyObject *find)
{
    PyObject *mark = AT(helper[WHEN_CHANGED], CHANGES_mark), *method;
    if (self->part[part] != (PyObject *)kind || self->part[part + 1] != mark) {
        if (!PyType_IsSubtype(kind, known_class[INSTANCE])) return NULL;
        Py_INCREF(mark);
        method = method_of(kind, find);
        if (method) {
            put((Node *)self, part, (PyObject *)kind);
            put((Node *)self, part + 1, mark);
            put((Node *)self, part + 2, method);
        }
        Py_DECREF(mark);
    } else {
        method = Py_NewRef(self->part[part + 2]);
    }
    if (method && !Py_IS_TYPE(method, known_class[FUNCTION])) Py_CLEAR(method);
    return method;
}

PyObject *after_error(PyObject *failed, PyObject *const *given, Py_ssize_t count)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    PyObject *value = called_with(failed, error, given, count);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return value;
}

PyObject *by_special_method(const Node *self, int part, PyObject *find, PyObject *const *given,
                            Py_ssize_t count, PyObject *failed, Py_ssize_t told)
{
    PyTypeObject *kind = Py_TYPE(given[0]);
    if (!(PyType_GetFlags(kind) & Py_TPFLAGS_HEAPTYPE)) return NULL;
    PyObject *method = special_method(self, part, kind, find);
    if (!method) return NULL;
    PyObject *value = entered(method, given, count);
    if (!value && failed) value = after_error(failed, given, told);
    Py_DECREF(method);
    return value;
}

/* --- modules and what the library has ---------------------------------------------------------- */

PyObject *module_value(PyObject *module, PyObject *name)
{
    if (!Py_IS_TYPE(module, known_class[MODULE]) || AT(module, MODULE_is_file) != Py_False ||
        AT(module, MODULE_load) != Py_None || PyDict_Size(AT(module, MODULE_assigned)))
        return NULL;
    PyObject *held = PyDict_GetItemWithError(AT(module, MODULE_modules), name);
    if (!held && !PyErr_Occurred()) held = PyDict_GetItemWithError(AT(module, MODULE__names), name);
    if (!held || Py_IS_TYPE(held, known_class[PER_SESSION])) return NULL;
    if (PyType_Check(held)) return PyObject_CallFunctionObjArgs(helper[CLASS_OF_HOST], held, NULL);
    return Py_NewRef(held);
}

int all_are_own(void)
{
    return PySet_Size(helper[FOREIGN]) == 0;
}

/* --- instances -------------------------------------------------------------------------------- */

/* Find out what makes the instances of a class of the program's, where that is not known yet. */
static int know_init(PyObject *cls)
{
    if (AT(cls, USER_CLASS__initialise) != Py_None) return 0;
    PyObject *found = PyObject_CallFunctionObjArgs(helper[FIND_INIT], cls, NULL);
    Py_XDECREF(found);
    return found ? 0 : -1;
}

/* A new instance of a class of the program's, with no values. */
static PyObject *instance_of(PyObject *cls)
{
    PyTypeObject *host = (PyTypeObject *)AT(cls, USER_CLASS_host);
    PyObject *values = PyDict_New(), *instance = values ? PyType_GenericAlloc(host, 0) : NULL;
    if (instance && PyObject_SetAttr(instance, values_key, values) < 0) Py_CLEAR(instance);
    Py_XDECREF(values);
    return instance;
}

/* A new instance whose `__init__` is entered; `given` has room for it before its first, `named` are
 * arguments by keyword or NULL. */
static PyObject *made_by(PyObject *cls, PyObject **given, Py_ssize_t count, PyObject *named)
{
    PyObject *init = Py_NewRef(AT(cls, USER_CLASS_enters)), *returned = NULL;
    PyObject *instance = instance_of(cls);
    if (instance) {
        given[-1] = instance;
        returned = entered_with(init, given - 1, count + 1, named);
        if (returned && returned != Py_None) {
            raise_of(INIT_RETURNED, returned);
            Py_CLEAR(returned);
        }
    }
    if (!returned) Py_CLEAR(instance);
    Py_XDECREF(returned);
    Py_DECREF(init);
    return instance;
}

/* Parts of a call: the node of the tree, what calls any value, what says what a program sees of a
 * failure; what finds the `__call__` of a class, and what is learnt of one. */
enum { TREE, OTHERWISE, FAILED, FIND_CALL, LEARNT_CALL, CALL_PARTS = LEARNT_CALL + 3 };

/* What a program sees of a call that failed. */
static PyObject *failed(PyObject *const *call, PyObject *called, PyObject *const *given,
                        Py_ssize_t count)
{
    PyObject *type, *error, *traceback, *value = NULL;
    PyErr_Fetch(&type, &error, &traceback);
    PyObject *values = tuple_of(NULL, given, count);
    PyErr_Restore(type, error, traceback);
    PyObject *more[] = {call[TREE], called, values};
    if (values) value = after_error(call[FAILED], more, 3);
    Py_XDECREF(values);
    return value;
}

/* What a program sees of a call of the library's own functions of Python that failed, where such an error
 * has nothing to do with what else the values are. */
static PyObject *refused(PyObject *const *call, PyObject *called, PyObject *const *given,
                         Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k++)
        if (!Py_IS_TYPE(given[k], &PyUnicode_Type)) return failed(call, called, given, count);
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return failed(call, called, given, count);
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    PyObject *told = PyObject_CallNoArgs(helper[REFUSED]);
    if (told) {
        PyException_SetCause(told, error);
        PyErr_SetObject(helper[REFUSED], told);
        Py_DECREF(told);
    } else {
        Py_XDECREF(error);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return NULL;
}

/* `len(value)` of an object that has a method for it; NULL, perhaps with an exception set, for others. */
static PyObject *length(const Node *self, int learnt, PyObject *value)
{
    PyObject *found = by_special_method(self, learnt, helper[FIND_LENGTH], &value, 1, NULL, 0);
    if (!found) return NULL;
    if (Py_IS_TYPE(found, &PyLong_Type) && PyLong_AsSsize_t(found) >= 0) return found;
    PyErr_Clear();
    PyObject *checked = PyObject_CallFunctionObjArgs(helper[LENGTH_OF], found, NULL);
    Py_DECREF(found);
    return checked;
}

/* What makes an instance of a class of the library's, or of one of the program's where `__new__` does all
 * of it; NULL for any other value. */
static PyObject *maker_of(PyObject *called)
{
    PyObject *maker;
    if (Py_IS_TYPE(called, known_class[USER_CLASS])) maker = AT(called, USER_CLASS_makes);
    else if (Py_IS_TYPE(called, known_class[LANGUAGE_TYPE]) ||
             Py_IS_TYPE(called, known_class[EXCEPTION_TYPE]))
        maker = AT(called, LANGUAGE_TYPE_construct);
    else maker = Py_IS_TYPE(called, Py_TYPE(helper[INVOKE])) ? called : Py_None;
    return maker == Py_None ? NULL : maker;
}

/* Call what a call's function gave with its arguments, before the first of which is room for one;
 * `at` is the first part of the call. */
static PyObject *finished_call(const Node *self, int at, PyObject *called, PyObject **given,
                               Py_ssize_t count)
{
    if (Py_IS_TYPE(called, known_class[FUNCTION])) return entered(called, given, count);
    PyObject *const *call = self->part + at;
    if (Py_IS_TYPE(called, known_class[USER_CLASS])) {
        if (know_init(called) < 0) return failed(call, called, given, count);
        if (!count && AT(called, USER_CLASS_is_bare) == Py_True) return instance_of(called);
        if (Py_IS_TYPE(AT(called, USER_CLASS_enters), known_class[FUNCTION])) {
            PyObject *instance = made_by(called, given, count, NULL);
            return instance ? instance : failed(call, called, given, count);
        }
        if (AT(called, USER_CLASS_makes) != Py_None) {
            PyObject *error = new_own_exception(called, given, count);
            if (error) return error;
            if (PyErr_Occurred()) return failed(call, called, given, count);
        }
    }
    PyObject *value = quick_call(self->part[STATE], called, given, count), *method;
    if (!value && !PyErr_Occurred() && count == 1 && asks_length(called))
        value = length(self, at + LEARNT_CALL, given[0]);
    if (value) return value;
    if (PyErr_Occurred()) return refused(call, called, given, count);
    method = special_method(self, at + LEARNT_CALL, Py_TYPE(called), call[FIND_CALL]);
    if (method) {
        given[-1] = called;
        value = entered(method, given - 1, count + 1);
        Py_DECREF(method);
        return value ? value : failed(call, called, given, count);
    }
    if (PyErr_Occurred()) return NULL;
    /* A function of the library's: `helper` has one of the host's type. */
    PyObject *maker = all_are_own() ? maker_of(called) : NULL;
    if (maker) {
        Py_INCREF(maker);
        value = called_with(maker, NULL, given, count);
        Py_DECREF(maker);
        return value ? value : failed(call, called, given, count);
    }
    PyObject *values = tuple_of(NULL, given, count);
    if (values) value = PyObject_CallFunctionObjArgs(call[OTHERWISE], call[TREE], called, values, NULL);
    Py_XDECREF(values);
    return value;
}

/* Evaluate the parts from `first` on; how many, or -1 with an exception. */
static Py_ssize_t evaluate_all(const Node *self, Py_ssize_t first, PyObject **given,
                               PyObject *variables)
{
    Py_ssize_t count = parts_of(self) - first;
    if (count > MOST_ARGUMENTS) {
        PyErr_SetString(PyExc_SystemError, "too many arguments for a node");
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        if ((given[k] = value_of(self->part[first + k], variables))) continue;
        while (k--) Py_DECREF(given[k]);
        return -1;
    }
    return count;
}

/* `function(arguments)`; parts are the function, those of a call, and the arguments. */
PyObject *run_call(const Node *self, PyObject *variables)
{
    enum { CALLED = FIRST, CALL, ARGUMENTS = CALL + CALL_PARTS };
    PyObject *room[MOST_ARGUMENTS + 1], **given = room + 1, *value = NULL;
    PyObject *called = value_of(self->part[CALLED], variables);
    if (!called) return NULL;
    Py_ssize_t count = evaluate_all(self, ARGUMENTS, given, variables);
    if (count >= 0 && stand_at(self->part[STATE], self->part[PLACE]) == 0)
        value = finished_call(self, CALL, called, given, count);
    while (count-- > 0) Py_DECREF(given[count]);
    Py_DECREF(called);
    return value;
}

/* --- methods ---------------------------------------------------------------------------------- */

/* Parts of `receiver.name(arguments)`: the receiver, the name, those of a call, the node of
 * `receiver.name`, what finds the method of any value, and in place of its receiver where it has
 * none; the methods of tensors, or None where the name is another attribute of them, and of the
 * host's classes; what is learnt of an instance's class; the arguments. */
enum { RECEIVER = FIRST, NAME, METHOD_CALL, ATTRIBUTE = METHOD_CALL + CALL_PARTS, FIND, NO_RECEIVER,
       OF_TENSORS, OF_CLASSES, LEARNT_CLASS, METHOD_ARGUMENTS = LEARNT_CLASS + 3 };

/* The method that a value has by a table; NULL, perhaps with an exception set, for none. */
static PyObject *method_of_table(const Node *self, PyTypeObject *kind)
{
    PyObject *table = self->part[OF_TENSORS], *of_classes = self->part[OF_CLASSES], *found;
    if (kind == known_class[TENSOR]) {
        found = table == Py_None ? NULL : PyDict_GetItemWithError(table, self->part[NAME]);
        return Py_XNewRef(found);
    }
    /* No class of the host's changes: in place of when it was looked at stands where. */
    if (self->part[LEARNT_CLASS] == (PyObject *)kind && self->part[LEARNT_CLASS + 1] == of_classes)
        return Py_NewRef(self->part[LEARNT_CLASS + 2]);
    table = PyDict_GetItemWithError(of_classes, (PyObject *)kind);
    found = table ? PyDict_GetItemWithError(table, self->part[NAME]) : NULL;
    if (found) {
        put((Node *)self, LEARNT_CLASS, (PyObject *)kind);
        put((Node *)self, LEARNT_CLASS + 1, of_classes);
        put((Node *)self, LEARNT_CLASS + 2, found);
    }
    return Py_XNewRef(found);
}

/* Find what `value.name(…)` calls, and put its receiver, if it has one, in the place of the value. */
static PyObject *found_method(const Node *self, PyObject **value)
{
    PyTypeObject *kind = Py_TYPE(*value);
    PyObject *found = NULL, *name = self->part[NAME];
    if (PyType_GetFlags(kind) & Py_TPFLAGS_HEAPTYPE)
        found = method_by_class(self, LEARNT_CLASS, value, name);
    if (!found && !PyErr_Occurred()) found = method_of_table(self, kind);
    if (found || PyErr_Occurred()) return found;
    if ((found = module_value(*value, name))) Py_CLEAR(*value);
    if (found || PyErr_Occurred()) return found;
    PyObject *both = PyObject_CallFunctionObjArgs(self->part[FIND], self->part[STATE],
                                                  self->part[ATTRIBUTE], *value, NULL);
    if (!both) return NULL;
    found = Py_XNewRef(PyTuple_GetItem(both, 0));
    PyObject *receiver = PyTuple_GetItem(both, 1);
    if (receiver == self->part[NO_RECEIVER]) receiver = NULL;
    Py_XINCREF(receiver);
    Py_DECREF(both);
    Py_DECREF(*value);
    *value = receiver;
    return found;
}

/* Evaluate the arguments from a part on, and call what was found with them; both are given up. */
static PyObject *called_method(const Node *self, PyObject *called, PyObject *receiver, int first,
                               PyObject *variables)
{
    PyObject *room[MOST_ARGUMENTS + 2], **given = room + 2, *value = NULL;
    Py_ssize_t count = called ? evaluate_all(self, first, given, variables) : -1;
    if (count >= 0 && stand_at(self->part[STATE], self->part[PLACE]) == 0) {
        room[1] = receiver;
        value = finished_call(self, METHOD_CALL, called, given - (receiver != NULL),
                              count + (receiver != NULL));
    }
    while (count-- > 0) Py_DECREF(given[count]);
    Py_XDECREF(called);
    Py_XDECREF(receiver);
    return value;
}

PyObject *run_method(const Node *self, PyObject *variables)
{
    PyObject *receiver = value_of(self->part[RECEIVER], variables);
    PyObject *called = receiver ? found_method(self, &receiver) : NULL;
    return called_method(self, called, receiver, METHOD_ARGUMENTS, variables);
}

/* Parts of `super().name(arguments)`: what makes the object of `super()`, and the rest as for a method
 * up to what stands for no receiver; the name of the method's first parameter; what the node learns:
 * the class whose method it is, the class of the object, when, and the function. The method is
 * `number` functions outward. */
enum { FIRST_NAME = NO_RECEIVER + 1, METHOD_OF, OF_OBJECT, LEARNT_AT, LEARNT_METHOD, SUPER_ARGUMENTS };

/* Find what `super().name(…)` calls, and its receiver. */
static PyObject *found_above(const Node *self, PyObject *variables, PyObject **receiver)
{
    PyObject *around = variables, *first, *cls, *both, *mark = AT(helper[WHEN_CHANGED], CHANGES_mark);
    for (long k = 0; k < self->number && around; k++)
        around = PyDict_GetItemWithError(around, parent_key);
    first = around ? PyDict_GetItemWithError(around, self->part[FIRST_NAME]) : NULL;
    around = around ? PyDict_GetItemWithError(around, parent_key) : NULL;
    cls = around ? PyDict_GetItemWithError(around, class_key) : NULL;
    if (PyErr_Occurred()) return NULL;
    if (first && cls == self->part[METHOD_OF] && mark == self->part[LEARNT_AT] &&
        (PyObject *)Py_TYPE(first) == self->part[OF_OBJECT]) {
        *receiver = Py_NewRef(first);
        return Py_NewRef(self->part[LEARNT_METHOD]);
    }
    PyObject *above = value_of(self->part[RECEIVER], variables);
    if (!above) return NULL;
    Py_INCREF(mark);
    both = PyObject_CallFunctionObjArgs(self->part[FIND], self->part[STATE], self->part[ATTRIBUTE],
                                        above, NULL);
    Py_DECREF(above);
    PyObject *found = both ? Py_XNewRef(PyTuple_GetItem(both, 0)) : NULL;
    PyObject *owner = found ? PyTuple_GetItem(both, 1) : NULL;
    if (owner && owner != self->part[NO_RECEIVER]) *receiver = Py_NewRef(owner);
    if (owner && owner == first && Py_IS_TYPE(found, known_class[FUNCTION]) &&
        PyType_IsSubtype(Py_TYPE(first), known_class[INSTANCE])) {
        put((Node *)self, METHOD_OF, cls);
        put((Node *)self, OF_OBJECT, (PyObject *)Py_TYPE(first));
        put((Node *)self, LEARNT_AT, mark);
        put((Node *)self, LEARNT_METHOD, found);
    }
    Py_DECREF(mark);
    Py_XDECREF(both);
    return found;
}

PyObject *run_super_method(const Node *self, PyObject *variables)
{
    PyObject *receiver = NULL, *called = found_above(self, variables, &receiver);
    return called_method(self, called, receiver, SUPER_ARGUMENTS, variables);
}

/* --- calls with keywords ---------------------------------------------------------------------- */

/* Parts of a call with keywords, `*values` or `**named`: the function, and None; or the receiver of a
 * method, and its name. The node of the tree, what calls any value with a list and a dict, and what
 * says what a program sees of a failure; the place of `receiver.name`, what reads that, and what is
 * learnt of the receiver's class; what adds to a list and to a dict what is no plain list, tuple or
 * dict; and for each argument its name, None for one by position, or stars; its node, and its place. */
enum { OWNER = FIRST, WORD, WITH_TREE, WITH_OTHERWISE, WITH_FAILED, AT_NAME, GET, WITH_LEARNT,
       SPREAD = WITH_LEARNT + 3, MERGE, PARTS_OF_EACH };

/* The method of a receiver, put in its place if it is none; or any function. */
static PyObject *called_of(const Node *self, PyObject **receiver, PyObject *variables)
{
    PyObject *value = value_of(self->part[OWNER], variables), *called;
    if (!value || self->part[WORD] == Py_None) return value;
    PyObject *owner = value;
    if ((called = method_by_class(self, WITH_LEARNT, &owner, self->part[WORD]))) *receiver = owner;
    if (called) return called;
    if (!PyErr_Occurred() && stand_at(self->part[STATE], self->part[AT_NAME]) == 0)
        called = PyObject_CallFunctionObjArgs(self->part[GET], value, self->part[WORD], NULL);
    Py_DECREF(value);
    return called;
}

/* Whether a value is a dict of texts none of which is among the arguments by keyword; -1 with an
 * exception set. */
static int names_more(PyObject *value, PyObject *named)
{
    PyObject *name, *each;
    Py_ssize_t at = 0;
    if (!Py_IS_TYPE(value, &PyDict_Type)) return 0;
    while (PyDict_Next(value, &at, &name, &each)) {
        int has = Py_IS_TYPE(name, &PyUnicode_Type) ? PyDict_Contains(named, name) : 1;
        if (has) return has < 0 ? -1 : 0;
    }
    return 1;
}

/* The arguments of a call as they are evaluated, behind room for a receiver: those by position, in a list
 * once they are more, or that is asked for; and those by keyword, NULL as long as there are none. */
typedef struct {
    PyObject *room[MOST_ARGUMENTS + 1], *values, *named;
    Py_ssize_t count;
} Arguments;

/* Have those by position in a list, and a dict of those by keyword; -1 with an exception set. */
static int collect(Arguments *these)
{
    if (!these->named && !(these->named = PyDict_New())) return -1;
    if (these->values) return 0;
    if (!(these->values = PyList_New(these->count))) return -1;
    for (Py_ssize_t k = 0; k < these->count; k++) PyList_SetItem(these->values, k, these->room[k + 1]);
    these->count = 0;
    return 0;
}

static void drop(Arguments *these)
{
    while (these->count) Py_DECREF(these->room[these->count--]);
    Py_XDECREF(these->values);
    Py_XDECREF(these->named);
}

/* Put a value, whose reference is kept, or those of a short tuple, behind the others, as long as there is
 * room; whether there was. */
static int has_room(Arguments *these, PyObject *value, int is_list)
{
    if (these->values) return 0;
    if (!is_list && these->count < MOST_ARGUMENTS) {
        these->room[++these->count] = Py_NewRef(value);
        return 1;
    }
    if (!is_list || !Py_IS_TYPE(value, &PyTuple_Type) ||
        PyTuple_Size(value) > MOST_ARGUMENTS - these->count)
        return 0;
    for (Py_ssize_t k = 0; k < PyTuple_Size(value); k++)
        these->room[++these->count] = Py_NewRef(PyTuple_GetItem(value, k));
    return 1;
}

/* Add an argument that is not alone by position or has no room there. */
static int add_other(const Node *self, Py_ssize_t at, Arguments *these, PyObject *value, int is_list)
{
    PyObject *word = self->part[at], *done;
    int has_stars = word != Py_None && PyUnicode_ReadChar(word, 0) == '*', failed;
    if (collect(these) < 0) return -1;
    PyObject *values = these->values, *named = these->named;
    Py_ssize_t end = PyList_Size(values);
    if (word == Py_None) return PyList_Append(values, value);
    if (!has_stars && !PyDict_GetItemWithError(named, word))
        return PyErr_Occurred() ? -1 : PyDict_SetItem(named, word, value);
    if (is_list && Py_IS_TYPE(value, &PyTuple_Type) && PyTuple_Size(value) <= MOST_ARGUMENTS)
        return PyList_SetSlice(values, end, end, value);
    if (!is_list && has_stars && (failed = names_more(value, named)))
        return failed < 0 ? -1 : PyDict_Update(named, value);
    done = is_list ? PyObject_CallFunctionObjArgs(self->part[SPREAD], values, value, NULL)
                   : PyObject_CallFunctionObjArgs(self->part[MERGE], named, word, value, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Evaluate an argument, and add it to the others. */
static int add_argument(const Node *self, Py_ssize_t at, PyObject *variables, Arguments *these)
{
    PyObject *word = self->part[at], *value = value_of(self->part[at + 1], variables);
    if (!value) return -1;
    int has_stars = word != Py_None && PyUnicode_ReadChar(word, 0) == '*', failed = 0;
    int is_list = has_stars && PyUnicode_GetLength(word) == 1;
    int adds_nothing = has_stars && !is_list && Py_IS_TYPE(value, &PyDict_Type) && !PyDict_Size(value);
    if (has_stars) failed = stand_at(self->part[STATE], self->part[at + 2]);
    if (!failed && !adds_nothing && !((word == Py_None || is_list) && has_room(these, value, is_list)))
        failed = add_other(self, at, these, value, is_list);
    Py_DECREF(value);
    return failed;
}

/* What a program sees of such a call that failed. */
static PyObject *failed_with(const Node *self, PyObject *called, Arguments *these)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (collect(these) < 0) PyErr_Clear();
    PyErr_Restore(type, error, traceback);
    if (!these->named || !these->values) return NULL;
    PyObject *more[] = {self->part[WITH_TREE], called, these->values, these->named};
    return after_error(self->part[WITH_FAILED], more, 4);
}

/* Call what was found with what was evaluated. */
static PyObject *finished_with(const Node *self, PyObject *called, PyObject *receiver, Arguments *these)
{
    PyObject *room[MOST_ARGUMENTS + 2], **given = room + 2, *value = NULL, *function = called;
    Py_ssize_t count = these->values ? PyList_Size(these->values) : these->count;
    if (Py_IS_TYPE(called, known_class[BOUND])) {
        function = AT(called, BOUND_function);
        receiver = AT(called, BOUND_receiver);
    }
    int is_function = Py_IS_TYPE(function, known_class[FUNCTION]);
    int is_class = Py_IS_TYPE(called, known_class[USER_CLASS]) &&
                   Py_IS_TYPE(AT(called, USER_CLASS_enters), known_class[FUNCTION]);
    if (count > MOST_ARGUMENTS || !(is_function || is_class))
        return collect(these) < 0 ? NULL
                                  : PyObject_CallFunctionObjArgs(self->part[WITH_OTHERWISE],
                                                                 self->part[WITH_TREE], called,
                                                                 these->values, these->named, NULL);
    for (Py_ssize_t k = 0; k < count; k++)
        given[k] = Py_NewRef(these->values ? PyList_GetItem(these->values, k) : these->room[k + 1]);
    PyObject *by_name = these->named && PyDict_Size(these->named) ? these->named : NULL;
    if (is_class) {
        value = made_by(called, given, count, by_name);
    } else {
        Py_INCREF(function);
        room[1] = receiver;
        value = entered_with(function, given - (receiver != NULL), count + (receiver != NULL), by_name);
        Py_DECREF(function);
    }
    if (!value) value = failed_with(self, called, these);
    while (count--) Py_DECREF(given[count]);
    return value;
}

PyObject *run_call_with(const Node *self, PyObject *variables)
{
    PyObject *receiver = NULL, *value = NULL, *called = called_of(self, &receiver, variables);
    Arguments these = {{NULL}, NULL, NULL, 0};
    int failed = !called;
    for (Py_ssize_t at = PARTS_OF_EACH; !failed && at < parts_of(self); at += 3)
        failed = add_argument(self, at, variables, &these) < 0;
    if (!failed && stand_at(self->part[STATE], self->part[PLACE]) == 0)
        value = finished_with(self, called, receiver, &these);
    drop(&these);
    Py_XDECREF(called);
    Py_XDECREF(receiver);
    return value;
}
