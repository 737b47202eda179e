"""Compiles the displays of tuples, lists, sets and dicts, and f-strings."""

from __future__ import annotations

from typing import Any

from gradcli.language.compiler.base import Compiler, Evaluate, compiles
from gradcli.language.limits import check_text
from gradcli.language.objects.exceptions import converted
from gradcli.language.objects.formatting import convert, format_value
from gradcli.language.objects.iteration import bounded, check_key
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import check_kind
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables


def _elements(c: Compiler, elements: list[tree.Expression], scope: Scope) -> Evaluate:
    """The closure that returns a new list of the elements, with `*values` unpacked."""
    if not any(type(element) is tree.Starred for element in elements):
        parts = [c.expression(element, scope) for element in elements]
        return lambda variables: [part(variables) for part in parts]
    state = c.state
    starred = [each.value if isinstance(each, tree.Starred) else None for each in elements]
    mixed = [
        (inner is not None, c.expression(inner or each, scope), each.span)
        for each, inner in zip(elements, starred, strict=True)
    ]

    def collect(variables: Variables) -> list[Any]:
        values: list[Any] = []
        for starred, part, span in mixed:
            value = part(variables)
            if starred:
                state.place = span
                values.extend(bounded(value))
            else:
                values.append(value)
        return values

    return collect


@compiles(tree.List)
def list_display(c: Compiler, node: tree.List, scope: Scope) -> Evaluate:
    """`[a, b]`."""
    return _elements(c, node.elements, scope)


@compiles(tree.Tuple)
def tuple_display(c: Compiler, node: tree.Tuple, scope: Scope) -> Evaluate:
    """`a, b`."""
    if len(node.elements) == 2 and not any(type(e) is tree.Starred for e in node.elements):
        first, second = [c.expression(element, scope) for element in node.elements]
        return lambda variables: (first(variables), second(variables))
    elements = _elements(c, node.elements, scope)
    return lambda variables: tuple(elements(variables))


@compiles(tree.Set)
def set_display(c: Compiler, node: tree.Set, scope: Scope) -> Evaluate:
    """`{a, b}`; E202 for an element that cannot be hashed."""
    state, span = c.state, node.span
    elements = _elements(c, node.elements, scope)

    def collect(variables: Variables) -> set[Any]:
        values = elements(variables)
        state.place = span
        for value in values:
            check_key(value)
        try:
            return set(values)
        except TypeError as error:
            raise converted(error) from error

    return collect


@compiles(tree.Dict)
def dict_display(c: Compiler, node: tree.Dict, scope: Scope) -> Evaluate:
    """`{key: value, **more}`; E202 for a key that cannot be hashed."""
    state, enter = c.state, c.enter
    items = [
        (None if key is None else c.expression(key, scope), c.expression(value, scope), value.span)
        for key, value in node.items
    ]

    def collect(variables: Variables) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        for key, evaluate, span in items:
            if key is None:
                more = evaluate(variables)
                state.place = span
                check_kind(more, dict, "`**` takes a dict")
                entries.update(more)
                continue
            at = key(variables)
            value = evaluate(variables)
            state.place = span
            enter(entries, at, value)
        return entries

    return collect


@compiles(tree.FormattedString)
def formatted_string(c: Compiler, node: tree.FormattedString, scope: Scope) -> Evaluate:
    """An f-string."""
    state = c.state
    parts = [
        (lambda variables, part=part: part) if isinstance(part, str) else _field(c, part, scope)
        for part in node.parts
    ]
    span = node.span

    def write(variables: Variables) -> str:
        pieces = [part(variables) for part in parts]
        state.place = span
        check_text(sum(map(len, pieces)))
        return "".join(pieces)

    return write


def _field(c: Compiler, node: tree.Replacement, scope: Scope) -> Evaluate:
    """`{value!conversion:format}`; `{value=}` shows its own text and the value's repr."""
    state, span, debug = c.state, node.span, node.debug
    conversion = node.conversion or ("r" if debug and node.format is None else "")
    evaluate = c.expression(node.value, scope)
    spec = None if node.format is None else c.expression(node.format, scope)

    def write(variables: Variables) -> str:
        value = evaluate(variables)
        form = spec(variables) if spec is not None else ""
        state.place = span
        if conversion == "r" and not form:
            return debug + display(value)
        return debug + format_value(convert(value, conversion), form)

    return write
