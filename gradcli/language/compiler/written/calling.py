"""Writes attributes, items and calls.

What an object of the program's has under a name is known for the class that was there last: a cell
of the namespace holds the class, until that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradcli.language.compiler.base import STORES
from gradcli.language.compiler.expressions.calling import NAMES_IN_USE, find_method, is_bare
from gradcli.language.compiler.written.writer import Writer, binds, enumerated, writes
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import get_attribute, set_attribute
from gradcli.language.objects.classes.user_classes import Instance, UserClass, watch_class
from gradcli.language.objects.methods import METHODS
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope

_CLASSES = 4
"""Classes that a place learns, one after the other."""


Making = Callable[[], Callable[..., Any]]
"""Makes what reads or sets an attribute of any value."""


class Cells:
    """The cells of a place, in the namespace, for one class at a time."""

    def __init__(self, names: dict[str, Any], kind: str, found: str = "") -> None:
        self.names, self.kind, self.found = names, kind, found
        self.left = _CLASSES

    def learn(self, kind: type, found: Any = None) -> None:
        """The class of the values that come here, and what it has."""
        if self.left:
            self.left -= 1
            self.names[self.kind] = kind
            if self.found:
                self.names[self.found] = found
            if issubclass(kind, Instance):
                watch_class(kind, self.forget)

    def forget(self) -> None:
        """The class has changed."""
        self.names[self.kind] = None


@writes(tree.Attribute)
def attribute(w: Writer, node: tree.Attribute, scope: Scope) -> str:
    """`value.name`."""
    owner = w.expression(node.value, scope)
    return _read_attribute(w, node, owner, partial(w.closure_over, node, scope, (node.value,)))


def _read_attribute(w: Writer, node: tree.Attribute, owner: str, read: Making) -> str:
    """Read an attribute, by what makes a function that reads it from any value."""
    key, kind = w.constant("n", node.name), w.cell("h", None)
    cells, name = Cells(w.names, kind), node.name

    def make() -> Callable[[Any], Any]:
        general = read()

        def read_and_learn(value: Any) -> Any:
            reads = value.language_reads if isinstance(value, Instance) else None
            found = general(value)
            if reads is not None and name in reads and reads is value.language_reads:
                cells.learn(type(value))
            return found

        return read_and_learn

    general = f"{w.later(make)}({owner})"
    of_instance = f"type({owner}) is {kind} and {key} in {owner}.values"
    return w.temporary(f"{owner}.values[{key}] if {of_instance} else {general}")


@binds(tree.Attribute)
def bind_attribute(w: Writer, target: tree.Attribute, scope: Scope, value: str) -> None:
    """`owner.name = value`."""
    owner = w.expression(target.value, scope)
    _write_attribute(w, target, owner, value, partial(_storing, w, target, scope, (target.value,)))


def _write_attribute(
    w: Writer, target: tree.Attribute, owner: str, value: str, store: Making
) -> None:
    """Set an attribute, by what makes a function that sets it in any value."""
    key, kind = w.constant("n", target.name), w.cell("h", None)
    cells, name = Cells(w.names, kind), target.name

    def make() -> Callable[[Any, Any], None]:
        general = store()

        def store_and_learn(owner: Any, value: Any) -> None:
            general(owner, value)
            writes = owner.language_writes if isinstance(owner, Instance) else None
            if writes is not None and name in writes:
                cells.learn(type(owner))

        return store_and_learn

    general = f"{w.later(make)}({owner}, {value})"
    w.line(f"if type({owner}) is {kind}: {owner}.values[{key}] = {value}")
    w.line(f"else: {general}")


def _storing(
    w: Writer, target: tree.Expression, scope: Scope, parts: Sequence[tree.Expression]
) -> Callable[..., None]:
    """A function of the parts of a target and of a value, which stores that."""
    store = STORES[type(target)](w.over_operands(parts), target, scope, True)
    return lambda *values: store(dict(enumerated(values[:-1])), values[-1])


@writes(tree.Subscript)
def subscript(w: Writer, node: tree.Subscript, scope: Scope) -> str:
    """`value[index]`."""
    value = w.expression(node.value, scope)
    at = w.expression(node.index, scope)
    general = w.over(node, scope, (node.value, node.index), (value, at))
    return _read_item(w, value, at, general)


def _read_item(w: Writer, value: str, at: str, general: str) -> str:
    listed = f"type({value}) is list or type({value}) is tuple"
    in_list = f"type({at}) is int and ({listed}) and -1 < {at} < len({value})"
    in_dict = f"type({value}) is dict and type({at}) in PLAIN and {at} in {value}"
    return w.temporary(f"{value}[{at}] if {in_list} or {in_dict} else {general}")


@binds(tree.Subscript)
def bind_item(w: Writer, target: tree.Subscript, scope: Scope, value: str) -> None:
    """`container[index] = value`."""
    container = w.expression(target.value, scope)
    at = w.expression(target.index, scope)
    make = partial(_storing, w, target, scope, (target.value, target.index))
    _write_item(w, container, at, value, f"{w.later(make)}({container}, {at}, {value})")


def _write_item(w: Writer, container: str, at: str, value: str, general: str) -> None:
    in_dict = f"type({container}) is dict and type({at}) in PLAIN"
    in_list = f"type({container}) is list and type({at}) is int and -1 < {at} < len({container})"
    with w.block(f"if {in_dict} or {in_list}:"):
        w.line(f"{container}[{at}] = {value}")
    with w.block("else:"):
        w.line(general)


def read_part(w: Writer, target: tree.Expression, owner: str, at: str | None) -> str:
    """What `target op= value` reads, of an owner and an index that have been evaluated."""
    w.place(target)
    if at is not None:
        return _read_item(w, owner, at, f"get_item({owner}, {at})")
    assert isinstance(target, tree.Attribute)
    name = target.name
    return _read_attribute(w, target, owner, lambda: lambda value: get_attribute(value, name))


def write_part(w: Writer, target: tree.Expression, owner: str, at: str | None, value: str) -> None:
    """What `target op= value` sets."""
    if at is not None:
        _write_item(w, owner, at, value, f"set_item({owner}, {at}, {value})")
        return
    assert isinstance(target, tree.Attribute)
    name = target.name

    def make() -> Callable[[Any, Any], None]:
        return lambda owner, value: set_attribute(owner, name, value)

    _write_attribute(w, target, owner, value, make)


@writes(tree.Slice)
def slice_expression(w: Writer, node: tree.Slice, scope: Scope) -> str:
    """`lower:upper:step` inside a subscript."""
    parts = [
        "None" if part is None else w.expression(part, scope)
        for part in (node.lower, node.upper, node.step)
    ]
    return w.temporary(f"slice({', '.join(parts)})")


@writes(tree.Call)
def call(w: Writer, node: tree.Call, scope: Scope) -> str:
    """`function(arguments)`."""
    if not node.arguments and any(is_bare(node, scope, each) for each in ("super", *NAMES_IN_USE)):
        return w.temporary(w.closure(node, scope))
    plain = not any(argument.name or argument.kind for argument in node.arguments)
    if plain and isinstance(node.function, tree.Attribute):
        return _method(w, node, node.function, scope)
    if not plain and not _in_order(node):
        return w.temporary(w.closure(node, scope))
    function = w.expression(node.function, scope)
    arguments = [w.expression(argument.value, scope) for argument in node.arguments]
    if not plain:
        nodes = (node.function, *[argument.value for argument in node.arguments])
        return w.temporary(w.over(node, scope, nodes, (function, *arguments)))
    w.place(node)
    if _names_class(w, node.function, scope):
        return _instance(w, node, function, arguments)
    entered = f"{function}.run({', '.join([function, *arguments])})"
    general = _general(w, node, function, arguments)
    if len(arguments) == 2 and _tests_class(node):
        value, cls = arguments
        table = w.compiler.predefined.table_of("isinstance") or {}
        own = w.constant("g", table.get("isinstance"))
        of_class = (
            f"{function} is {own} and type({cls}) is UserClass and type({value}) is {cls}.host"
        )
        return w.temporary(f"True if {of_class} else {general}")
    is_function = f"type({function}) is Function and {_takes(function, len(arguments))}"
    return w.temporary(f"{entered} if {is_function} else {general}")


def _general(w: Writer, node: tree.Call, function: str, arguments: Sequence[str]) -> str:
    """The call of any value."""
    return f"finished_call({w.constant('d', node)}, {function}, {_listed(arguments)})"


def _names_class(w: Writer, node: tree.Expression, scope: Scope) -> bool:
    """Whether a name is that of a class of the program's by now."""
    if not isinstance(node, tree.Name) or w.owner(node.name, scope) != (None, -1):
        return False
    return type(w.compiler.values.get(node.name)) is UserClass


def _tests_class(node: tree.Call) -> bool:
    """Whether a call is likely `isinstance(…)`, as it is predefined."""
    name = node.function
    return isinstance(name, tree.Name) and name.name == "isinstance"


def _instance(w: Writer, node: tree.Call, cls: str, arguments: Sequence[str]) -> str:
    """What is likely a new instance: its class's `__init__` is entered."""
    made, init, error = w.reserved(), w.reserved(), w.reserved()
    with w.block(f"if type({cls}) is UserClass and {cls}.enters is not None:"):
        w.line(f"{init} = {cls}.enters")
        with w.block("try:"):
            w.line(f"{made} = new_instance({cls}.host)")
            w.line(f"{made}.values = {{}}")
            values = ", ".join([made, *arguments])
            by_run = f"{init}.run({init}, {values}) if {_takes(init, len(arguments) + 1)}"
            w.line(f"{init} = {by_run} else {init}.invoke(({values},), {{}})")
            w.line(f"if {init} is not None: raise init_returned({init})")
        with w.block(f"except Exception as {error}:"):
            operands = f"{w.constant('d', node)}, {cls}, {_listed(arguments)}"
            w.line(f"{made} = failed({error}, {operands})")
    w.line(f"else: {made} = {_general(w, node, cls, arguments)}")
    return made


def _listed(values: Sequence[str]) -> str:
    return f"({', '.join(values)},)" if values else "()"


def _in_order(node: tree.Call) -> bool:
    """Whether it makes no difference that `*values` are drawn from behind the last argument."""
    stars = any(argument.kind for argument in node.arguments)
    plain = (tree.Constant, tree.Name)
    return not stars or all(isinstance(each.value, plain) for each in node.arguments)


def _takes(function: str, count: int) -> str:
    return f"{function}.least <= {count} <= {function}.most"


def _method(w: Writer, node: tree.Call, target: tree.Attribute, scope: Scope) -> str:
    """`receiver.name(arguments)`: what the method is goes before the arguments, which may change
    that.
    """
    owner = w.expression(target.value, scope)
    key, kind, found = w.constant("n", target.name), w.cell("h", None), w.cell("f", None)
    called, receiver = w.reserved(), w.reserved()
    host, function = w.cell("h", None), w.cell("f", None)
    learn = Cells(w.names, kind, found), Cells(w.names, host, function)
    find = w.constant("k", _finder(w, target, *learn))
    with w.block(f"if type({owner}) is {kind} and {key} not in {owner}.values:"):
        w.line(f"{called} = {found}")
        w.line(f"{receiver} = {owner}")
    with w.block(f"elif type({owner}) is {host}:"):
        w.line(f"{called} = {function}")
        w.line(f"{receiver} = {owner}")
    w.line(f"else: {called}, {receiver} = {find}({owner})")
    arguments = [w.expression(argument.value, scope) for argument in node.arguments]
    w.place(node)
    takes = _takes(called, len(arguments) + 1)
    is_function = f"type({called}) is Function and {receiver} is not NO_RECEIVER and {takes}"
    entered = f"{called}.run({', '.join((called, receiver, *arguments))})"
    values = _listed((receiver, *arguments))
    values = f"{_listed(arguments)} if {receiver} is NO_RECEIVER else {values}"
    general = f"finished_call({w.constant('d', node)}, {called}, {values})"
    return w.temporary(f"{entered} if {is_function} else {general}")


def _finder(
    w: Writer, target: tree.Attribute, cells: Cells, of_hosts: Cells
) -> Callable[[Any], tuple[Any, Any]]:
    """What finds a method and its receiver in a value."""
    name, state = target.name, w.compiler.state

    def find_and_learn(value: Any) -> tuple[Any, Any]:
        called, receiver = find_method(state, target, value)
        if type(called) is Function and receiver is value and isinstance(value, Instance):
            reads = value.language_reads
            if reads is not None and reads.get(name) is called:
                cells.learn(type(value), called)
        elif METHODS.get(type(value), {}).get(name) is called:
            of_hosts.learn(type(value), called)
        return called, receiver

    return find_and_learn
