"""Writes names, constants and what binds names; operators, comparisons, logic and the conditional;
tuples, lists, sets, dicts, f-strings and comprehensions.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from gradcli.errors import Span
from gradcli.language.compiler.expressions.displays import field
from gradcli.language.compiler.expressions.operations import (
    COMPARED,
    end_of_step,
    operation,
    own_first,
)
from gradcli.language.compiler.names import name_store
from gradcli.language.compiler.written.writer import (
    Writer,
    attempted,
    binds,
    inside,
    of_values,
    writes,
)
from gradcli.language.objects.classes.special_methods import COMPARISONS
from gradcli.language.objects.operators import HOST_OPERATORS
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, comprehension_scope


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
    return w.later(partial(w.compiler.expression, node, scope))


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
    return w.temporary(f"set(iter({result}))") if node.kind == "set" else result


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
