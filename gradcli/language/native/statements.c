/* Statements in a row, those that decide between blocks, and assignment. */

#include "node.h"

/* Statements in a row; where `number` is 1, one of them may end the block. */
PyObject *run_block(const Node *self, PyObject *variables)
{
    Py_ssize_t count = parts_of(self);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *ended = value_of(self->part[k], variables);
        if (!ended || (self->number && ended != Py_None)) return ended;
        Py_DECREF(ended);
    }
    Py_RETURN_NONE;
}

/* An expression whose value nobody wants. */
PyObject *run_effect(const Node *self, PyObject *variables)
{
    PyObject *value = value_of(self->part[0], variables);
    if (!value) return NULL;
    Py_DECREF(value);
    Py_RETURN_NONE;
}

/* `return value`. */
PyObject *run_returned(const Node *self, PyObject *variables)
{
    PyObject *value = value_of(self->part[0], variables);
    if (!value) return NULL;
    PyObject *ended = PyTuple_Pack(1, value);
    Py_DECREF(value);
    return ended;
}

/* The block of the branch that is taken, None for none; NULL with an exception set. */
static PyObject *taken(const Node *self, PyObject *variables)
{
    Py_ssize_t last = parts_of(self) - 1, k;
    for (k = 1; k < last; k += 3) {
        int truth = decides(value_of(self->part[k], variables), self->part[STATE],
                            self->part[k + 1]);
        if (truth < 0) return NULL;
        if (truth) return self->part[k + 2];
    }
    return self->part[last];
}

/* `if`, `elif`, `else`: behind the state there are tests, each with its place and its block, and the
 * block of `else`, or None. */
PyObject *run_branches(const Node *self, PyObject *variables)
{
    PyObject *block = taken(self, variables);
    return !block || block == Py_None ? Py_XNewRef(block) : value_of(block, variables);
}

int returns(PyObject *statement, PyObject *variables, PyObject **value)
{
    const Node *node = (const Node *)statement;
    Evaluate run = Py_IS_TYPE(statement, node_type) ? node->run : NULL;
    int ended = 0;
    if (run == run_returned) return (*value = value_of(node->part[0], variables)) ? 1 : -1;
    if (run == run_branches) {
        PyObject *block = taken(node, variables);
        return !block ? -1 : block == Py_None ? 0 : returns(block, variables, value);
    }
    if (run == run_block && node->number) {
        for (Py_ssize_t k = 0; k < parts_of(node) && !ended; k++)
            ended = returns(node->part[k], variables, value);
        return ended;
    }
    PyObject *end = value_of(statement, variables);
    if (!end) return -1;
    if (end != Py_None) ended = (*value = Py_XNewRef(PyTuple_GetItem(end, 0))) ? 1 : -1;
    Py_DECREF(end);
    return ended;
}

/* --- assignment ------------------------------------------------------------------------------- */

/* `target = target = value`: the value, and then the targets. */
PyObject *run_assigned(const Node *self, PyObject *variables)
{
    PyObject *value = value_of(self->part[0], variables);
    if (!value) return NULL;
    Py_ssize_t count = parts_of(self), k = 1;
    while (k < count && store_in(self->part[k], variables, value) == 0) k++;
    Py_DECREF(value);
    if (k < count) return NULL;
    Py_RETURN_NONE;
}

enum { FEW_MORE = 16 };

/* `left op= right` where it is of the host's numbers or short; NULL, perhaps with an exception set. */
static PyObject *changed(long operator, PyObject *state, PyObject *left, PyObject *right)
{
    if (!Py_IS_TYPE(left, &PyList_Type)) return operated(operator, state, left, right);
    if (operator != ADDITION || !Py_IS_TYPE(right, &PyList_Type)) return NULL;
    Py_ssize_t length = PyList_Size(left), more = PyList_Size(right), most = most_elements(state);
    if (most < 0 || more >= FEW_MORE || length > most - more) return NULL;
    return PyList_SetSlice(left, length, length, right) < 0 ? NULL : Py_NewRef(left);
}

/* `name op= value`: `number` is the operator; parts are what reads the name, the value, the target,
 * the nodes of the tree and the function. */
PyObject *run_augmented_name(const Node *self, PyObject *variables)
{
    enum { READ = FIRST, VALUE, TARGET, TARGET_NODE, VALUE_NODE, OTHERWISE };
    PyObject *left = value_of(self->part[READ], variables), *right = NULL, *value = NULL;
    int failed = -1;
    if (!left) return NULL;
    if (!(right = value_of(self->part[VALUE], variables))) goto end;
    if (stand_at(self->part[STATE], self->part[PLACE]) < 0) goto end;
    value = changed(self->number, self->part[STATE], left, right);
    if (!value && !PyErr_Occurred())
        value = PyObject_CallFunctionObjArgs(self->part[OTHERWISE], left, right,
                                             self->part[TARGET_NODE], self->part[VALUE_NODE], NULL);
    if (value) failed = store_in(self->part[TARGET], variables, value);
end:
    Py_DECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(value);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* `owner.name op= value`, `owner[key] op= value`: `number` is the operator, of an attribute its
 * complement; parts are the place of the target, the functions that read it, write it and change its
 * value, and what is learnt of an instance's class. */
PyObject *run_augmented_part(const Node *self, PyObject *variables)
{
    enum { TARGET_PLACE = FIRST, OWNER, KEY, VALUE, GET, PUT, CHANGE, OF_READ, OF_WRITE = OF_READ + 2 };
    PyObject *const *part = self->part;
    int is_item = self->number >= 0, failed = -1;
    PyObject *owner = value_of(part[OWNER], variables), *left = NULL, *right = NULL, *value = NULL;
    PyObject *key = owner ? value_of(part[KEY], variables) : NULL;
    if (!key || stand_at(part[STATE], part[TARGET_PLACE]) < 0) goto end;
    left = is_item ? item_of(owner, key) : attribute_of(self, OF_READ, owner, key);
    if (!left && !PyErr_Occurred()) left = PyObject_CallFunctionObjArgs(part[GET], owner, key, NULL);
    if (!left || !(right = value_of(part[VALUE], variables))) goto end;
    if (stand_at(part[STATE], part[PLACE]) < 0) goto end;
    value = changed(is_item ? self->number : ~self->number, part[STATE], left, right);
    if (!value && !PyErr_Occurred())
        value = PyObject_CallFunctionObjArgs(part[CHANGE], left, right, NULL);
    if (!value) goto end;
    failed = is_item ? put_item(owner, key, value) : put_attribute(self, OF_WRITE, owner, key, value);
    if (failed > 0) {
        PyObject *nothing = PyObject_CallFunctionObjArgs(part[PUT], owner, key, value, NULL);
        Py_XDECREF(nothing);
        failed = nothing ? 0 : -1;
    }
end:
    Py_XDECREF(owner);
    Py_XDECREF(key);
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(value);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
