"""Writes tuples, lists, sets, dicts, f-strings and comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gradcli.language.compiler.expressions.displays import field
from gradcli.language.compiler.written.writer import Writer, attempted, inside, of_values, writes
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, comprehension_scope


@writes(tree.Tuple, tree.List)
def sequence(w: Writer, node: tree.Tuple | tree.List, scope: Scope) -> str:
    """`a, b` and `[a, b]`."""
    is_list = isinstance(node, tree.List)
    if any(type(element) is tree.Starred for element in node.elements):
        result = w.temporary("[]")
        for element in node.elements:
            if isinstance(element, tree.Starred):
                value = w.expression(element.value, scope)
                w.place(element)
                w.line(f"{result}.extend(bounded({value}))")
            else:
                w.line(f"{result}.append({w.expression(element, scope)})")
        return result if is_list else w.temporary(f"tuple({result})")
    values = [w.expression(each, scope) for each in node.elements]
    listed = ", ".join(values)
    if is_list:
        return w.temporary(f"[{listed}]")
    return w.temporary(f"({listed},)" if values else "()")


@writes(tree.Set)
def set_display(w: Writer, node: tree.Set, scope: Scope) -> str:
    """`{a, b}`."""
    if any(type(element) is tree.Starred for element in node.elements):
        return w.temporary(w.closure(node, scope))
    values = [w.expression(each, scope) for each in node.elements]
    return w.temporary(w.over(node, scope, node.elements, values))


@writes(tree.Dict)
def dict_display(w: Writer, node: tree.Dict, scope: Scope) -> str:
    """`{key: value, **more}`."""
    if any(key is None for key, _ in node.items):
        return w.temporary(w.closure(node, scope))
    result = w.temporary("{}")
    for key, value in node.items:
        assert key is not None
        at = w.expression(key, scope)
        entered = w.expression(value, scope)
        _enter(w, result, at, entered, value)
    return result


def _enter(w: Writer, entries: str, key: str, value: str, place: tree.Expression) -> None:
    """Write that a value enters a dict that is being made."""
    with w.block(f"if type({key}) in PLAIN:"):
        w.line(f"{entries}[{key}] = {value}")
    with w.block("else:"):
        w.place(place)
        w.line(f"enter({entries}, {key}, {value})")


@writes(tree.FormattedString)
def formatted_string(w: Writer, node: tree.FormattedString, scope: Scope) -> str:
    """An f-string: each value is written out before the next one is evaluated."""
    pieces = []
    for part in node.parts:
        if isinstance(part, str):
            pieces.append(w.constant("c", part))
            continue
        nodes = _replaced(part)
        values = [w.expression(each, scope) for each in nodes]
        run = w.later(partial(_field, w, nodes, part, scope))
        pieces.append(w.temporary(f"{run}({', '.join(values)})"))
    w.place(node)
    return w.temporary(f"joined(state, [{', '.join(pieces)}])")


def _field(
    w: Writer, nodes: list[tree.Expression], part: tree.Replacement, scope: Scope
) -> Callable[..., Any]:
    return of_values(field(w.over_operands(nodes), part, scope))


def _replaced(part: tree.Replacement) -> list[tree.Expression]:
    """The values of a field: the one that is written out, and those in its format."""
    found = [part.value]
    if part.format is not None:
        for inner in part.format.parts:
            found += _replaced(inner) if isinstance(inner, tree.Replacement) else []
    return found


# --- comprehensions -------------------------------------------------------------------------------


@writes(tree.Comprehension)
def comprehension(w: Writer, node: tree.Comprehension, scope: Scope) -> str:
    """`[element for …]`, a set or a dict; a generator is its closure."""
    if node.kind == "generator":
        return w.temporary(w.closure(node, scope))
    return attempted(
        w, lambda: _written(w, node, scope), lambda: w.temporary(w.closure(node, scope))
    )


def _written(w: Writer, node: tree.Comprehension, scope: Scope) -> str:
    inner = comprehension_scope(scope, node.clauses)
    result = w.temporary("[]" if node.kind == "list" else "{}")

    def element() -> None:
        value = w.expression(node.element, inner)
        if node.kind == "list":
            w.line(f"{result}.append({value})")
            return
        entered = "None" if node.value is None else w.expression(node.value, inner)
        _enter(w, result, value, entered, node)

    _clause(w, node.clauses, 0, scope, inner, element)
    return w.temporary(f"set({result})") if node.kind == "set" else result


def listed(w: Writer, node: tree.Comprehension, scope: Scope, values: str) -> str:
    """The list of a comprehension of one clause, over an iterator that there is already."""
    (clause,) = node.clauses
    inner = comprehension_scope(scope, node.clauses)
    result = w.temporary("[]")

    def element() -> None:
        w.line(f"{result}.append({w.expression(node.element, inner)})")

    _iterations(w, clause, values, inner, element)
    return result


def _clause(
    w: Writer,
    clauses: list[tree.ComprehensionFor],
    number: int,
    scope: Scope,
    inner: Scope,
    element: Callable[[], None],
) -> None:
    """One `for`, with those behind it."""
    clause = clauses[number]
    values = w.expression(clause.iterable, inner if number else scope)
    w.line(f"state.place = {w.constant('p', clause.iterable.span)}")
    then = element
    if number + 1 < len(clauses):
        then = partial(_clause, w, clauses, number + 1, inner, inner, element)
    _iterations(w, clause, f"iterate({values})", inner, then)


def _iterations(
    w: Writer,
    clause: tree.ComprehensionFor,
    values: str,
    inner: Scope,
    then: Callable[[], None],
) -> None:
    """The loop over the values of an iterator, with what is done for each that is let through."""
    place = w.constant("p", clause.iterable.span)
    each = w.reserved()
    with inside(w, inner), w.block(f"for {each} in {values}:"):
        counted(w, place)
        w.bind(clause.target, inner, each)
        _conditions(w, clause.conditions, inner, then)
        w.line(f"state.place = {place}")


def _conditions(
    w: Writer, conditions: list[tree.Expression], scope: Scope, then: Callable[[], None]
) -> None:
    if not conditions:
        then()
        return
    value = w.expression(conditions[0], scope)
    with w.block(f"if {value}:"):
        _conditions(w, conditions[1:], scope, then)


def counted(w: Writer, place: str) -> None:
    """Write that an iteration is a step."""
    w.line("steps.left -= 1")
    with w.block("if steps.left < 0:"):
        w.line(f"state.place = {place}")
        w.line("raise too_many_steps()")
