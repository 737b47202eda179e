"""Compiles assignment: plain, unpacking, augmented, `:=` and `del`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, type_error
from gradcli.language.compiler.base import (
    NUMBER_OF,
    Compiler,
    Evaluate,
    Store,
    binds,
    compiles,
    label_operands,
)
from gradcli.language.compiler.names import (
    GLOBAL,
    OWN,
    constant,
    direct,
    is_direct,
    name_delete,
)
from gradcli.language.compiler.recipes import (
    TARGETS,
    Made,
    ask,
    child,
    get,
    given,
    known,
    nothing,
    place_of,
    recipe,
    targets_of,
)
from gradcli.language.objects.attributes import delete_attribute, get_attribute, set_attribute
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.language.objects.iteration import bounded, iterate
from gradcli.language.objects.operators import (
    changing,
    delete_item,
    get_item,
    set_item,
)
from gradcli.language.objects.types import type_name
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import PARENT, Scope, Variables
from gradcli.ops.binding.catalogue import inplace_operators, setters
from gradcli.state import State


def assign(c: Compiler, node: tree.Assign, scope: Scope) -> Run:
    """`target = target = value`: the value first, then the targets from left to right."""
    value = c.expression(node.value, scope)
    if len(node.targets) == 1:
        (target,) = node.targets
        store = c.store(target, scope, assigned=True)
        if isinstance(target, tree.Name) and scope.distance(target.name) == 0:
            name = target.name

            def run_own(variables: Variables) -> None:  # the commonest statement of a loop
                new = value(variables)
                if type(new) is Tensor:
                    new.set_name(name)
                variables[name] = new

            return run_own
        return lambda variables: store(variables, value(variables))
    stores = [c.store(target, scope, assigned=True) for target in node.targets]

    def run(variables: Variables) -> None:
        new = value(variables)
        for store in stores:
            store(variables, new)

    return run


@binds(tree.Attribute)
def _attribute_store(c: Compiler, target: tree.Attribute, scope: Scope, assigned: bool) -> Store:
    """`owner.name = value`."""
    state, span = c.state, target.span
    owner = c.expression(target.value, scope)
    name = target.name
    setter = setters.get(name)
    (where, own), values = direct(c, target.value, scope), c.values

    def store_attribute(variables: Variables, value: Any) -> None:
        held = variables if where == OWN else values if where == GLOBAL else variables[PARENT]
        receiver = held[own] if own in held else owner(variables)
        state.place = span
        writes = receiver.language_writes if isinstance(receiver, Instance) else None
        if writes is not None and name in writes:
            receiver.values[name] = value
        elif setter is not None and type(receiver) is Tensor:
            setter(receiver, value)
        else:
            set_attribute(receiver, name, value)

    return store_attribute


recipe(
    tree.Attribute,
    "to_attribute",
    *(place_of(), child("value"), given("name"), get(setters, "name")),
    *(known(set_attribute), nothing(2)),
    table=TARGETS,
)


@binds(tree.Subscript)
def _item_store(c: Compiler, target: tree.Subscript, scope: Scope, assigned: bool) -> Store:
    """`container[index] = value`."""
    state, span = c.state, target.span
    container = c.expression(target.value, scope)
    index = c.expression(target.index, scope)

    def store_item(variables: Variables, value: Any) -> None:
        receiver = container(variables)
        at = index(variables)
        state.place = span
        _put_item(receiver, at, value, target.value, target.index)

    return store_item


def _put_item(
    container: Any,
    index: Any,
    value: Any,
    container_node: tree.Expression,
    index_node: tree.Expression,
) -> None:
    """`container[index] = value`, of two nodes of the tree that label a failure."""
    try:
        set_item(container, index, value)
    except GradcliError as error:
        _not_put(error, container, index, value, container_node, index_node)


def _not_put(
    error: Exception,
    container: Any,
    index: Any,
    value: Any,
    container_node: tree.Expression,
    index_node: tree.Expression,
) -> None:
    """Raise the error of `container[index] = value`, labelled."""
    if isinstance(error, GradcliError):
        label_operands(error, ((container_node, container), (index_node, index)), "[]=")
    raise error


recipe(
    tree.Subscript,
    "to_item",
    *(place_of(), child("value"), child("index"), given("value"), given("index")),
    *(known(_put_item), known(_not_put), known("__setitem__"), nothing(3)),
    table=TARGETS,
)


@binds(tree.List, tree.Tuple)
def _unpacking(c: Compiler, target: tree.Tuple | tree.List, scope: Scope, assigned: bool) -> Store:
    """`a, b = values`, `first, *rest = values`."""
    state, span = c.state, target.span
    star = -1
    stores = []
    for number, element in enumerate(target.elements):
        if isinstance(element, tree.Starred):
            star = number
            element = element.value
        stores.append(c.store(element, scope, assigned))
    count = len(stores)
    names = [] if assigned and scope.is_program else _own_names(c, target, scope)
    first, second = names if len(names) == 2 else ("", "")

    def store_each(variables: Variables, value: Any) -> None:
        if type(value) is tuple and len(value) == count:
            state.place = span
            parts: Sequence[Any] = value
        else:
            parts = unpacked(state, target, value)
        if first:  # two names, the common case
            one, other = parts
            if type(one) is not Tensor and type(other) is not Tensor:
                variables[first] = one
                variables[second] = other
                return
        for store, part in zip(stores, parts, strict=True):
            store(variables, part)

    def store_with_star(variables: Variables, value: Any) -> None:
        for store, part in zip(stores, with_star(state, target, star, value), strict=True):
            store(variables, part)

    return store_each if star < 0 else store_with_star


def _own_names(c: Compiler, target: tree.Tuple | tree.List, scope: Scope) -> list[str]:
    """The names of a target of nothing but the running code's own names; none for any other."""
    if not c.binds_directly or not all(is_direct(each, scope) for each in target.elements):
        return []
    return [each.name for each in target.elements if isinstance(each, tree.Name)]


def unpacked(state: State, target: tree.Tuple | tree.List, value: Any) -> list[Any]:
    """The parts of a value for the elements of a target without a star."""
    count = len(target.elements)
    state.place = target.span
    parts = list(islice(_parts(value), count + 1))
    if len(parts) != count:
        number = f"more than {count}" if len(parts) > count else f"only {len(parts)}"
        text = f"not enough values to unpack (expected {count}, got {len(parts)})"
        if len(parts) > count:
            text = f"too many values to unpack (expected {count})"
        message = f"{count} values are needed, and there are {number}"
        raise GradcliError("E303", message, text=text)
    return parts


for _kind in (tree.List, tree.Tuple):
    recipe(
        _kind,
        "to_elements",
        *(place_of(), given(), known(unpacked), targets_of("elements")),
        asks=(ask("none is", "elements", of=tree.Starred),),
        table=TARGETS,
    )


def with_star(state: State, target: tree.Tuple | tree.List, star: int, value: Any) -> list[Any]:
    """The parts of a value for the elements of a target, of which the one at `star` takes a list of
    all that the others leave.
    """
    state.place = target.span
    count = len(target.elements)
    _parts(value)
    parts = list(bounded(value))
    after = count - star - 1
    if len(parts) < count - 1:
        raise GradcliError(
            "E303",
            f"at least {count - 1} values are needed, and there are {len(parts)}",
            text=f"not enough values to unpack (expected at least {count - 1}, got {len(parts)})",
        )
    end = len(parts) - after
    return [*parts[:star], parts[star:end], *parts[end:]]


def _parts(value: Any) -> Any:
    """An iterator over a value that is unpacked; raises E202 for what cannot be unpacked."""
    if not hasattr(type(value), "__iter__"):
        raise type_error(
            f"a value of type {type_name(value)} cannot be unpacked",
            text=f"cannot unpack non-iterable {type_name(value)} object",
        )
    return iterate(value)


def augmented_assign(c: Compiler, node: tree.AugmentedAssign, scope: Scope) -> Run:
    """`target op= value`: container and index of the target are evaluated once."""
    state, span, symbol = c.state, node.span, node.operator
    value = c.expression(node.value, scope)
    target = node.target
    if isinstance(target, tree.Name):
        read = c.expression(target, scope)
        store = c.store(target, scope, assigned=True)
        augmented = AUGMENTED[symbol]

        def augment_name(variables: Variables) -> None:
            left = read(variables)
            right = value(variables)
            state.place = span
            store(variables, augmented(left, right, target, node.value))

        return augment_name
    owner, at, place = part_of(c, target, scope)
    get, put = (get_attribute, set_attribute) if at is None else (get_item, set_item)
    change = changing(symbol)
    if c.nodes is not None:
        number = ~NUMBER_OF[symbol] if at is None else NUMBER_OF[symbol]
        by = (get, put, change, None, None, None, None)
        return c.nodes.augmented_part(number, state, span, target.span, owner, place, value, *by)

    def augment(variables: Variables) -> None:
        receiver, key = owner(variables), place(variables)
        state.place = target.span
        left = get(receiver, key)
        right = value(variables)
        state.place = span
        put(receiver, key, change(left, right))

    return augment


def _augmented(symbol: str) -> Callable[[Any, Any, tree.Expression, tree.Expression], Any]:
    """What gives the value of `left symbol= right`, of two nodes of the tree that label a
    failure.
    """
    change = changing(symbol)

    def augmented(
        left: Any, right: Any, left_node: tree.Expression, right_node: tree.Expression
    ) -> Any:
        try:
            if type(left) is type(right) is Tensor and symbol in inplace_operators:
                return inplace_operators[symbol](left, right)  # the step of an optimizer
            return change(left, right)
        except GradcliError as error:
            label_operands(error, ((left_node, left), (right_node, right)), f"{symbol}=")
            raise

    return augmented


AUGMENTED = Made(_augmented)
"""The same by the operator."""


def part_of(
    c: Compiler, target: tree.Expression, scope: Scope
) -> tuple[Evaluate, tree.Expression | None, Evaluate]:
    """The owner of an attribute or an item, the index of the item, and what gives its key."""
    if isinstance(target, tree.Attribute):
        key = constant(c, tree.Constant(target.span, target.name), scope)
        return c.expression(target.value, scope), None, key
    assert isinstance(target, tree.Subscript)
    return c.expression(target.value, scope), target.index, c.expression(target.index, scope)


@compiles(tree.NamedExpression)
def named_expression(c: Compiler, node: tree.NamedExpression, scope: Scope) -> Evaluate:
    """`(name := value)`."""
    value = c.expression(node.value, scope)
    store = c.store(node.name, scope, assigned=True)

    def run(variables: Variables) -> Any:
        new = value(variables)
        store(variables, new)
        return new

    return run


@compiles(tree.Del)
def del_statement(c: Compiler, node: tree.Del, scope: Scope) -> Run:
    """`del` of names and items."""
    deletes = [_deletion(c, target, scope) for target in node.targets]

    def run(variables: Variables) -> None:
        for delete in deletes:
            delete(variables)

    return run


def _deletion(c: Compiler, target: tree.Expression, scope: Scope) -> Run:
    if isinstance(target, tree.Name):
        return name_delete(c, target, scope)
    state, span = c.state, target.span
    if isinstance(target, (tree.Tuple, tree.List)):
        return del_statement(c, tree.Del(span, target.elements), scope)
    owner, at, place = part_of(c, target, scope)
    remove = delete_attribute if at is None else delete_item

    def delete(variables: Variables) -> None:
        receiver, key = owner(variables), place(variables)
        state.place = span
        remove(receiver, key)

    return delete
