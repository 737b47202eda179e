"""Statements of an iteration that is captured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler.assignment import part_of
from gradcli.language.compiler.over_operands import Operation
from gradcli.language.compiler.statements.blocks import for_statement
from gradcli.language.compiler.statements.definitions import function_of
from gradcli.language.compiler.statements.lints import is_watched
from gradcli.language.objects.attributes import get_attribute, set_attribute
from gradcli.language.objects.operators import augmented, get_item, set_item
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.language.tree.syntax import Expression
from gradcli.loops.capture import RECORDED, Capture
from gradcli.loops.symbols import Symbol
from gradcli.loops.walk.expressions import as_operand, check_defaults, operate


def _assign(walk: Capture, node: tree.Assign, scope: Scope) -> Run:
    value = walk.expression(node.value, scope)
    stores = [walk.store(target, scope, assigned=True) for target in node.targets]
    first = node.targets[0]
    name = first.name if len(node.targets) == 1 and isinstance(first, tree.Name) else None
    # The interpreter watches it, and warns.
    is_step = f"{name}.grad" in node.value.span.text and is_watched(node, walk.compiler.loop)
    leaf = name if is_step else None

    def run(variables: Variables) -> None:
        new = value(variables)
        if leaf is not None:
            old = walk.holder(leaf, scope, variables).get(leaf)
            if type(old) is Tensor and type(new) is Tensor and new.grad_fn is not None:
                walk.refuse(
                    f"`{leaf}` is replaced by a tensor with a graph",
                    f"change the leaf itself: `with torch.no_grad(): {leaf} -= …`",
                )
        for store in stores:
            store(variables, new)

    return run


def _augment(walk: Capture, node: tree.AugmentedAssign, scope: Scope) -> Run:
    target, value = node.target, walk.expression(node.value, scope)
    sides: list[Expression] = [target, node.value]
    one = tree.Binary(node.span, target, [(node.operator, node.value)])
    operation = Operation(walk, one, scope, sides)
    if isinstance(target, tree.Name):
        read, store = walk.expression(target, scope), walk.store(target, scope, assigned=True)
        change = Operation(walk, node, scope, sides)

        def augment_name(variables: Variables) -> None:
            left = read(variables)
            store(variables, _changed(walk, operation, change, left, value(variables)))

        return augment_name
    assert isinstance(target, (tree.Attribute, tree.Subscript))
    receiver, (_, index, key) = walk.expression(target.value, scope), part_of(walk, target, scope)
    get, put = (get_attribute, set_attribute) if index is None else (get_item, set_item)
    read_part = walk.read_attribute if index is None else walk.read_item

    def augment(variables: Variables) -> None:
        owner, at = receiver(variables), key(variables)
        walk.state.place = target.span
        owner, at = walk.exact(owner), walk.exact(at)
        left = read_part(owner, at, lambda: get(owner, at))
        right = value(variables)
        walk.state.place = node.span
        change = partial(augmented, node.operator)
        walk.put(owner, at, _changed(walk, operation, change, left, right), put)

    return augment


def _changed(
    walk: Capture, operation: Operation, change: Callable[..., Any], left: Any, right: Any
) -> Any:
    """What `left op= right` stores: a new number, or what `change` makes of the operands."""
    if type(left) is not Tensor and (type(left) is Symbol or type(right) is Symbol):
        return operate(walk, operation, left, right)
    walk.check_list(left)
    ((symbol, _),) = operation.node.rest
    return walk.heard(change, [left, as_operand(walk, symbol, left, right)])


def _assert(walk: Capture, node: tree.Assert, scope: Scope) -> Run:
    test = walk.test(node.test, scope, node.test.span)
    false = tree.Constant(node.test.span, False)
    failing = walk.compiler.statement(tree.Assert(node.span, false, node.message), scope)
    return lambda variables: None if test(variables) else failing(variables)


def _def(walk: Capture, node: tree.Def, scope: Scope) -> Run:
    make = function_of(walk.compiler, node, scope)
    store = walk.store(tree.Name(node.span, node.name), scope)
    decorated = walk.compiler.statement(node, scope) if node.decorators else None

    def run(variables: Variables) -> None:
        check_defaults(walk, node.parameters, node.span)
        if decorated is not None:
            walk.refuse("a decorated function is defined in the iteration", span=node.span)
            decorated(variables)
        else:
            store(variables, walk.new_function(make(variables), make, variables))

    return run


def _delete(walk: Capture, node: tree.Del, scope: Scope) -> Run:
    delete = walk.compiler.statement(node, scope)
    names = [
        isinstance(each, tree.Name) and scope.distance(each.name) == 0 for each in node.targets
    ]

    def run(variables: Variables) -> None:
        if variables is walk.variables or not all(names):
            walk.refuse("a name or an item is deleted", span=node.span)
        delete(variables)

    return run


RECORDED |= {
    tree.Assert: _assert,
    tree.Assign: _assign,
    tree.AugmentedAssign: _augment,
    tree.Def: _def,
    tree.Del: _delete,
    tree.For: for_statement,
}
