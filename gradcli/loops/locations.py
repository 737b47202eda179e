"""Where a program keeps values from one iteration to the next, a name, an attribute, an item, and
which names of a loop may hold another value in every iteration.

What a location holds is read, stored and removed given the variables of the code with the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.language.objects.attributes import delete_attribute, get_attribute, set_attribute
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Variables, bound_names, target_names
from gradcli.language.tree.syntax import Statement
from gradcli.trace.ir import Inline, Operand, placeholder

Key = tuple[Any, ...]
"""What tells a location from others."""


class Name:
    """A variable of the code with the loop; where there is a holder, of the program, of a function
    around, or of one that is called.
    """

    __slots__ = ("holder", "key", "name")

    def __init__(self, name: str, holder: Variables | None = None) -> None:
        self.key: Key = ("own", name) if holder is None else ("outer", id(holder), name)
        self.name = name
        self.holder = holder

    def read(self, variables: Variables) -> Any:
        return (variables if self.holder is None else self.holder)[self.name]

    def store(self, variables: Variables, value: Any) -> None:
        if type(value) is Tensor:
            value.set_name(self.name)
        (variables if self.holder is None else self.holder)[self.name] = value

    def remove(self, variables: Variables) -> None:
        (variables if self.holder is None else self.holder).pop(self.name, None)


class Returned:
    """What a call returns, kept among its variables until it ends.

    Attributes:
        tensor_name: what a tensor is called there, None for no name.
    """

    __slots__ = ("tensor_name",)

    name = "return"  # which no variable is called
    key: Key = ("own", name)

    def __init__(self, tensor_name: str | None) -> None:
        self.tensor_name = tensor_name

    def read(self, variables: Variables) -> Any:
        return variables[self.name]

    def store(self, variables: Variables, value: Any) -> None:
        if type(value) is Tensor and self.tensor_name is not None:
            value.set_name(self.tensor_name)
        variables[self.name] = value

    def remove(self, variables: Variables) -> None:
        variables.pop(self.name, None)


class Attribute:
    """An attribute of an object."""

    __slots__ = ("key", "name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.key: Key = ("attribute", id(owner), name)
        self.owner = owner
        self.name = name

    def read(self, variables: Variables) -> Any:
        return get_attribute(self.owner, self.name)

    def store(self, variables: Variables, value: Any) -> None:
        set_attribute(self.owner, self.name, value)

    def remove(self, variables: Variables) -> None:
        with suppress(GradcliError):  # there may be none
            delete_attribute(self.owner, self.name)


class Item:
    """An item of a list or a dict."""

    __slots__ = ("at", "key", "owner")

    def __init__(self, owner: Any, at: Any) -> None:
        self.key: Key = ("item", id(owner), at)
        self.owner = owner
        self.at = at

    def read(self, variables: Variables) -> Any:
        return self.owner[self.at]

    def store(self, variables: Variables, value: Any) -> None:
        self.owner[self.at] = value

    def remove(self, variables: Variables) -> None:
        self.owner.pop(self.at, None)  # of a dict: a list has all items that can be set


Location = Name | Returned | Attribute | Item


class Part:
    """An item of a tuple or list, or a tensor that an object is made of: the place gets the whole
    value with its last item.

    Attributes:
        kind: makes the whole value of its items.
    """

    __slots__ = ("items", "key", "kind", "number", "place")

    def __init__(
        self, place: Location, kind: Callable[[list[Any]], Any], items: list[Any], number: int
    ) -> None:
        self.key: Key = place.key
        self.place = place
        self.kind = kind
        self.items = items
        self.number = number

    def read(self, variables: Variables) -> Any:
        return self.place.read(variables)[self.number]

    def store(self, variables: Variables, value: Any) -> None:
        self.items[self.number] = value
        if self.number == len(self.items) - 1:
            self.place.store(variables, self.kind(self.items))


def read_op(location: Location) -> tuple[Inline, Sequence[Operand]]:
    """How compiled code reads a location."""
    operands: list[Operand] = []
    if isinstance(location, Name):
        return Inline(_variable(location, operands)), operands
    return Inline("{0}(frame)"), [location.read]


def store_op(location: Location, text: str, operands: list[Operand], named: bool) -> Inline:
    """How compiled code stores a text's value in a location; `named` to name a tensor after it."""
    if isinstance(location, Name) and not named:
        return Inline(f"{_variable(location, operands)} = {text}")
    return Inline(f"{placeholder(operands, location.store)}(frame, {text})")


def _variable(name: Name, operands: list[Operand]) -> str:
    holder = "frame" if name.holder is None else placeholder(operands, name.holder)
    return f"{holder}[{name.name!r}]"


class LoopPlan(NamedTuple):
    """What can be read from the syntax of a loop.

    Attributes:
        leaves: whether the program may read the results of an iteration before the last one: an
            iteration may end early, or it is not known which one is the last.
        anew: the names that every iteration binds before it can end, if the loops inside run, so
            that no value of an earlier iteration is read behind the loop.
        early: the names that an iteration may read before it binds them, as one that takes another
            way may, or a function that is made in it.
        rebound: those that every iteration binds to another value, computed from the last one's.
        in_try: whether an `except` around it may catch what it raises.
    """

    targets: frozenset[str]
    bound: frozenset[str]
    tested: frozenset[str]
    leaves: bool
    anew: frozenset[str]
    early: frozenset[str]
    rebound: frozenset[str]
    in_try: bool


def analysed(loop: tree.For | tree.While, in_try: bool) -> LoopPlan:
    """The plan of a loop."""
    targets, tested = frozenset[str](), frozenset[str]()
    if isinstance(loop, tree.While):
        names = tree.nodes_of(loop.test)
        tested = frozenset(each.name for each in names if isinstance(each, tree.Name))
    else:
        targets = frozenset(target_names(loop.target))
    ends = (tree.If, tree.Break, tree.Return, tree.Try)
    leaves = isinstance(loop, tree.While) or any(
        isinstance(each, ends) for each in tree.nodes_of(loop.body)
    )
    bound, anew = frozenset(bound_names(loop.body)), frozenset(_bound_anew(loop.body))
    early = frozenset(_read_early(loop.body, set()))
    rebound = early.intersection(_rebound(loop.body))
    return LoopPlan(targets, bound, tested, leaves, anew, early, rebound, in_try)


def _bound_anew(body: Sequence[Statement]) -> Iterator[str]:
    for node in body:
        if _may_end(node):
            return
        if isinstance(node, tree.Assign):
            for target in node.targets:
                yield from target_names(target)
        elif isinstance(node, (tree.For, tree.With)):
            yield from _bound_anew(node.body)


def _may_end(node: Statement) -> bool:
    """Whether an iteration may end in a statement: what ends a loop inside ends that alone."""
    kinds = _ENDS[2:] if isinstance(node, (tree.For, tree.While)) else _ENDS
    return any(isinstance(each, kinds) for each in tree.nodes_of(node))


def _rebound(body: Sequence[Statement]) -> Iterator[str]:
    for node in body:
        if isinstance(node, tree.Assign):
            called = node.value.function if isinstance(node.value, tree.Call) else None
            if not (isinstance(called, tree.Attribute) and called.name.endswith("_")):  # in place
                for target in node.targets:
                    yield from target_names(target)


def _read_early(body: Sequence[Statement], bound: set[str]) -> Iterator[str]:
    """The names that statements may read before they are bound; `bound` grows by those that are
    behind them.
    """
    for node in body:
        if isinstance(node, tree.Assign):
            yield from _read_of(node.value, bound)
            for target in node.targets:
                names = {*target_names(target)}
                yield from _read_of(target, bound | names)
                bound |= names
        elif isinstance(node, tree.For):
            yield from _read_of(node.iterable, bound)
            inside = bound | {*target_names(node.target)}
            yield from _read_of(node.target, inside)
            yield from _read_early(node.body, inside)
            yield from _read_early(node.orelse, {*bound})
        elif isinstance(node, tree.With):
            yield from _read_of(node.items, bound)
            yield from _read_early(node.body, bound)
        else:
            yield from _read_of(node, bound)


def _read_of(nodes: Any, bound: set[str]) -> Iterator[str]:
    """The names in statements or expressions that are not bound, and those in functions that they
    make, which may be called at any time.
    """
    yield from _names_in(nodes) - bound
    made = [each for each in tree.nodes_of(nodes) if isinstance(each, (tree.Def, tree.Lambda))]
    yield from _names_in(made)


def _names_in(nodes: Any) -> set[str]:
    return {each.name for each in tree.nodes_of(nodes) if isinstance(each, tree.Name)}


_ENDS = (tree.Break, tree.Continue, tree.Raise, tree.Return, tree.Try)
