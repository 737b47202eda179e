"""Writes operators, comparisons, logic and the conditional."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from gradcli.errors import Span
from gradcli.language.compiler.expressions.operations import (
    COMPARED,
    end_of_step,
    operation,
    own_first,
)
from gradcli.language.compiler.written.writer import Writer, of_values, writes
from gradcli.language.objects.classes.special_methods import COMPARISONS
from gradcli.language.objects.operators import HOST_OPERATORS
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope

SMALL = 1 << 60
"""Integers below it are floats without an error, and so are their products integers of few bits."""

_WITHIN = "-SMALL < {0} < SMALL"
_BOTH_FLOATS = "type({0}) is float is type({1})"
_BOTH_INTS = "type({0}) is int is type({1})"
_ONE_KIND = f"{_BOTH_FLOATS} or {_BOTH_INTS}"
_SMALL_INTS = f"{_BOTH_INTS} and {_WITHIN.format('{0}')} and {_WITHIN.format('{1}')}"
_A_NUMBER = "type({0}) is int or type({0}) is float"

_GUARDS: dict[str, str] = {
    "+": _ONE_KIND,
    "-": _ONE_KIND,
    "*": f"{_BOTH_FLOATS} or {_SMALL_INTS}",
    "/": f"type({{0}}) is float and (type({{1}}) is float or type({{1}}) is int"
    f" and {_WITHIN.format('{1}')}) and {{1}}",
    "//": f"{_BOTH_INTS} and {{1}}",
    "%": f"{_BOTH_INTS} and {{1}}",
    **dict.fromkeys(
        COMPARISONS, f"{_BOTH_INTS} or type({{0}}) is type({{1}}) and type({{0}}) in ORDERED"
    ),
}
"""When an operator of the host's gives what it means in the language, cannot fail, and runs nothing
of the program's, for operands `{0}` and `{1}`.
"""

_SMALL_INT = "type({0}) is int and " + _WITHIN

_WITH_SMALL_INT: dict[str, str] = {
    "+": _A_NUMBER,
    "-": _A_NUMBER,
    "*": f"type({{0}}) is float or {_SMALL_INT}",
    **dict.fromkeys(COMPARISONS, _A_NUMBER),
}
"""The same where one operand, either, is known to be a small integer, and `{0}` is the other."""

_BY_SMALL_INT: dict[str, str] = {
    "/": f"type({{0}}) is float or {_SMALL_INT}",
    "//": "type({0}) is int",
    "%": "type({0}) is int",
}
"""The same for one on the right, which is not 0."""

_LARGEST_POWER = 3

_POWERS = f"type({{0}}) is float and -LARGE < {{0}} < LARGE or {_SMALL_INT}"
"""When a power with an exponent of 1 to `_LARGEST_POWER` is finite, and an integer of few bits."""

NAMES: dict[str, Any] = {"SMALL": SMALL, "LARGE": 1e100, "ORDERED": frozenset({int, float, str})}
"""What the guards refer to."""


def guard(symbol: str, left: str, right: str, nodes: tuple[Any, Any]) -> str | None:
    """The guard of an operator between two names; None where there is none."""
    values = [each.value if type(each) is tree.Constant else None for each in nodes]
    for number, (value, other) in enumerate(zip(values, (right, left), strict=True)):
        if type(value) is int and abs(value) < SMALL:
            if symbol in _WITH_SMALL_INT:
                return _WITH_SMALL_INT[symbol].format(other)
            if number and value and symbol in _BY_SMALL_INT:
                return _BY_SMALL_INT[symbol].format(other)
            if number and symbol == "**" and 0 < value <= _LARGEST_POWER:
                return _POWERS.format(other)
        elif type(value) is str and symbol in COMPARISONS:
            return f"type({other}) is str"
        elif type(value) is float and symbol in _WITH_SMALL_INT and symbol in COMPARISONS:
            return _A_NUMBER.format(other)
        elif type(value) is float and (symbol in "+-*" or (number and value and symbol == "/")):
            return f"type({other}) is float"
    return _GUARDS[symbol].format(left, right) if symbol in _GUARDS else None


def applied(
    w: Writer,
    symbol: str,
    nodes: tuple[tree.Expression, tree.Expression],
    operands: tuple[str, str],
    span: Span,
    scope: Scope,
) -> str:
    """What a binary operator gives for two names."""

    def make() -> Callable[..., Any]:
        run = of_values(operation(w.over_operands(nodes), symbol, *nodes, span, scope))
        return own_first(w.compiler.state, symbol, nodes, span, run)

    general = f"{w.later(make)}({', '.join(operands)})"
    holds = guard(symbol, *operands, nodes)
    if holds is None:
        return general
    return f"{operands[0]} {symbol} {operands[1]} if {holds} else {general}"


@writes(tree.Binary)
def binary(w: Writer, node: tree.Binary, scope: Scope) -> str:
    """`left op right`, or a chain of one precedence."""
    left = w.expression(node.first, scope)
    left_node = node.first
    source = node.span.source
    for symbol, right_node in node.rest:
        right = w.expression(right_node, scope)
        span = node.span
        if len(node.rest) > 1:
            end = end_of_step(source.text, right_node.span.end, span.end)
            span = Span(source, span.start, end)
        sides = (left_node, right_node)
        left = w.temporary(applied(w, symbol, sides, (left, right), span, scope))
        left_node = tree.Binary(span, node.first, [])
    return left


@writes(tree.Unary)
def unary(w: Writer, node: tree.Unary, scope: Scope) -> str:
    """`-x`, `+x`, `~x`, `not x`."""
    operand = node.operand
    if node.operator == "not":
        value = w.expression(operand, scope)
        w.place(node)
        result = w.temporary(f"not {value}")
        w.tested.add(result)
        return result
    is_number = type(operand) is tree.Constant and type(operand.value) in (int, float)
    if node.operator == "-" and is_number:
        return w.constant("c", -operand.value)  # type: ignore[attr-defined]
    value = w.expression(operand, scope)
    general = w.over(node, scope, (operand,), (value,))
    if node.operator == "-":
        return w.temporary(f"-{value} if type({value}) is float else {general}")
    return w.temporary(general)


@writes(tree.Comparison)
def comparison(w: Writer, node: tree.Comparison, scope: Scope) -> str:
    """`a < b`, `in`, `is`; a chain stops at the first that does not hold."""
    if len(node.rest) > 1:
        return _chain(w, node, scope)
    left = w.expression(node.first, scope)
    ((symbol, right_node),) = node.rest
    right = w.expression(right_node, scope)
    if symbol in ("is", "is not"):
        result = w.temporary(f"{left} {symbol} {right}")
    elif symbol in HOST_OPERATORS:
        sides = (node.first, right_node)
        result = w.temporary(applied(w, symbol, sides, (left, right), node.span, scope))
    else:
        general = w.over(node, scope, (node.first, right_node), (left, right))
        holds = f"type({right}) in HASHING and type({left}) in PLAIN"
        result = w.temporary(f"{left} {symbol} {right} if {holds} else {general}")
    w.tested.add(result)
    return result


def _chain(w: Writer, node: tree.Comparison, scope: Scope) -> str:
    """Several comparisons, at the place of the whole."""
    left, left_node = w.expression(node.first, scope), node.first
    result = w.reserved()
    with ExitStack() as blocks:
        for number, (symbol, right_node) in enumerate(node.rest):
            right = w.expression(right_node, scope)
            w.place(node)
            holds = guard(symbol, left, right, (left_node, right_node))
            text = f"{w.constant('k', COMPARED[symbol])}({left}, {right})"
            if holds is not None:
                text = f"{left} {symbol} {right} if {holds} else {text}"
            w.line(f"{result} = {text}")
            if number + 1 < len(node.rest):
                blocks.enter_context(w.block(f"if {result}:"))
            left, left_node = right, right_node
    return result


@writes(tree.Logical)
def logical(w: Writer, node: tree.Logical, scope: Scope) -> str:
    """`a and b`, `a or b`: the first operand that decides is the value."""
    result = w.reserved()
    goes_on = result if node.operator == "and" else f"not {result}"
    with ExitStack() as blocks:
        for number, operand in enumerate(node.operands):
            value = w.expression(operand, scope)
            w.line(f"{result} = {value}")
            if number + 1 < len(node.operands):
                if value not in w.tested:
                    w.place(operand)
                blocks.enter_context(w.block(f"if {goes_on}:"))
    return result


@writes(tree.Conditional)
def conditional(w: Writer, node: tree.Conditional, scope: Scope) -> str:
    """`body if test else orelse`."""
    test = w.test(node.test, scope)
    result = w.reserved()
    with w.block(f"if {test}:"):
        w.line(f"{result} = {w.expression(node.body, scope)}")
    with w.block("else:"):
        w.line(f"{result} = {w.expression(node.orelse, scope)}")
    return result
