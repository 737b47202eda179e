"""Writes names and constants, and what binds names."""

from __future__ import annotations

from functools import partial

from gradcli.language.compiler.base import HANDLERS
from gradcli.language.compiler.names import name_store
from gradcli.language.compiler.written.writer import Writer, binds, writes
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope


@writes(tree.Constant)
def constant(w: Writer, node: tree.Constant, scope: Scope) -> str:
    """A number, a string, True, False, None or `...`."""
    return w.constant("c", node.value)


@writes(tree.Name)
def name(w: Writer, node: tree.Name, scope: Scope) -> str:
    """A name that is read."""
    owner, distance = w.owner(node.name, scope)
    if owner is not None and not (owner is w.scope and node.name in w.kept):
        own = w.variable(node.name, owner)
        if own not in w.sure:
            w.unsure.add(own)
            failing = _closure(w, node, w.scope)
            w.line(f"if {own} is UNBOUND: {failing}({{}})")
            w.sure.add(own)
        return own
    if distance < 0:
        return _of_program(w, node)
    holder = held_in(w, distance)
    key = w.constant("n", node.name)
    failing = _closure(w, node, w.scope)
    return w.temporary(
        f"{holder}[{key}] if {key} in {holder} else {failing}({around(w, distance)})"
    )


def _closure(w: Writer, node: tree.Name, scope: Scope) -> str:
    """The name of its own closure, which says what is wrong with a name that has no value."""
    return w.later(partial(HANDLERS[tree.Name], w.compiler, node, scope))


def held_in(w: Writer, distance: int) -> str:
    """The variables of a function around, 0 for those of this one."""
    if distance == 0:
        w.has_variables = True
        return "variables"
    w.has_parent = True
    holder = "parent"
    for _ in range(distance - 1):
        holder += "[PARENT]"
    return holder if distance == 1 else w.temporary(holder)


def around(w: Writer, distance: int) -> str:
    """What closures take for the variables where a name of a function around is meant."""
    if distance == 0:
        return "variables"
    w.has_parent = True
    return "{PARENT: parent}"


def _of_program(w: Writer, node: tree.Name) -> str:
    """A name of the program, or of the library."""
    key = w.constant("n", node.name)
    table = w.compiler.predefined.table_of(node.name)
    w.names["values"] = w.compiler.values
    if table is not None and node.name != "__file__":
        return w.temporary(f"values[{key}] if {key} in values else {w.constant('g', table)}[{key}]")
    return w.temporary(
        f"values[{key}] if {key} in values else {_closure(w, node, w.scope)}(values)"
    )


@binds(tree.Name)
def bind_name(w: Writer, target: tree.Name, scope: Scope, value: str) -> None:
    """`name = value`; a tensor learns its first one."""
    owner, distance = w.owner(target.name, scope)
    if owner is None:
        _bind_outside(w, target.name, distance, value)
        return
    key = w.constant("n", target.name)
    w.line(f"if type({value}) is Tensor: {value}.set_name({key})")
    if owner is w.scope and target.name in w.kept:
        w.has_variables = True
        w.line(f"variables[{key}] = {value}")
        return
    own = w.variable(target.name, owner)
    w.line(f"{own} = {value}")
    w.sure.add(own)


def _bind_outside(w: Writer, name: str, distance: int, value: str) -> None:
    """Bind a name of the program, or of a function around."""
    store = w.later(partial(name_store, w.compiler, name, w.scope, w.assigns))
    if distance >= 0:
        w.line(f"{store}({around(w, distance)}, {value})")
        return
    w.names["values"] = w.compiler.values
    w.names["overrides"] = w.compiler.interpreter.overrides
    w.line(f"if type({value}) is Tensor or overrides: {store}(values, {value})")
    w.line(f"else: values[{w.constant('n', name)}] = {value}")
