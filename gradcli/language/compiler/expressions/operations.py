"""Compiles operators: arithmetic, comparisons, logic, and the conditional."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Span
from gradcli.language.compiler.base import (
    NUMBER_OF,
    Compiler,
    Evaluate,
    compiles,
    label_operands,
)
from gradcli.language.compiler.names import constant, is_direct
from gradcli.language.compiler.recipes import (
    Made,
    ask,
    by_table,
    child,
    given,
    item,
    known,
    nothing,
    operands_of,
    place_of,
    recipe,
    session,
)
from gradcli.language.limits import PLAIN
from gradcli.language.objects import operators
from gradcli.language.objects.borders import FOREIGN, beside
from gradcli.language.objects.classes.special_methods import COMPARISONS
from gradcli.language.objects.classes.user_classes import Instance, watch_class
from gradcli.language.objects.operators import NUMBERS
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.ops.binding import catalogue
from gradcli.state import State

if TYPE_CHECKING:
    from gradcli.language.native.nodes import Nodes

SIGNS = "-+~"
"""The unary operators, at the number that nodes have for each."""


@compiles(tree.Unary)
def unary(c: Compiler, node: tree.Unary, scope: Scope) -> Evaluate:
    """`-x`, `+x`, `~x`, `not x`; a signed number is a constant."""
    state, span, symbol = c.state, node.span, node.operator
    operand = node.operand
    if symbol == "-" and type(operand) is tree.Constant and type(operand.value) in (int, float):
        negative = -operand.value  # type: ignore[operator]
        return constant(c, tree.Constant(span, negative), scope)
    evaluate = c.expression(operand, scope)
    if symbol == "not":

        def negate(variables: Variables) -> bool:
            value = evaluate(variables)
            state.place = span
            return not value

        return negate

    apply = operators.unary

    def run(variables: Variables) -> Any:
        value = evaluate(variables)
        state.place = span
        return apply(symbol, value)

    return run


_SIGNED: dict[str, Callable[[Any], Any]] = {
    symbol: partial(operators.unary, symbol) for symbol in SIGNS
}
"""What the unary operators make of any value."""

recipe(
    tree.Unary,
    "negation",
    *(place_of(), child("operand")),
    number=by_table({"not": 0}, "operator"),
)
recipe(
    tree.Unary,
    "signed_number",
    *(place_of(), child("operand"), item(_SIGNED, "operator")),
    number=by_table({symbol: number for number, symbol in enumerate(SIGNS)}, "operator"),
    asks=(ask("is no", "operand", of=tree.Constant),),
)


@compiles(tree.Binary)
def binary(c: Compiler, node: tree.Binary, scope: Scope) -> Evaluate:
    """`left op right`, or a chain of one precedence; specialised for names and constants."""
    if len(node.rest) > 1:
        return _chain(c, node, scope)
    ((symbol, right_node),) = node.rest
    return operation(c, symbol, node.first, right_node, node.span, scope)


def operation(
    c: Compiler,
    symbol: str,
    left_node: tree.Expression,
    right_node: tree.Expression,
    span: Span,
    scope: Scope,
) -> Evaluate:
    """One binary operator; names with a value are read right here."""
    left = c.expression(left_node, scope)
    if c.reads_directly and is_direct(left_node, scope):
        if type(right_node) is tree.Constant:
            return _name_and_constant(c.state, symbol, left_node, left, right_node, span)
        right = c.expression(right_node, scope)
        if is_direct(right_node, scope):
            return _name_and_name(c.state, symbol, (left_node, right_node), (left, right), span)
        return _name_and_any(c.state, symbol, (left_node, right_node), (left, right), span)
    right = c.expression(right_node, scope)
    return _any_and_any(c.state, symbol, (left_node, right_node), (left, right), span)


Sides = tuple[Evaluate, Evaluate]
"""The closures of the two operands."""


def _node(
    makers: Nodes,
    state: State,
    symbol: str,
    span: Span,
    sides: Sides,
    nodes: tuple[tree.Expression, tree.Expression],
) -> Evaluate:
    """The node in C of an operator."""
    by = (_APPLIED[symbol], _METHODS[symbol])
    number = NUMBER_OF[symbol]
    return makers.binary(number, state, span, *sides, *nodes, *by, *_UNLEARNT, *_UNLEARNT)


_UNLEARNT = (None, None, None)
"""A class, when it was looked at, and its method."""


@cache
def _methods(symbol: str) -> tuple[Any, ...]:
    """What a node does by the method of an object of the program's: it finds that of a class, goes
    on where it declines, says what its failure is, and finds that of an object on the right; or
    else by the table of tensors.
    """
    name = operators.method_of(symbol, False)

    def find(kind: type) -> Any:
        return None if issubclass(kind, _WALKED) else operators.written_method(name, kind)

    def declined(
        a: Any,
        b: Any,
        left_node: tree.Expression,
        right_node: tree.Expression,
        reflected: bool,
    ) -> Any:
        try:
            if reflected:
                raise operators.unsupported(symbol, a, b)
            return operators.from_the_right(symbol, a, b)
        except _FAILURES as error:
            return _otherwise(error, symbol, (left_node, a), (right_node, b))

    def failed(
        error: Exception,
        a: Any,
        b: Any,
        left_node: tree.Expression,
        right_node: tree.Expression,
    ) -> Any:
        if not isinstance(error, _FAILURES):
            raise error
        return _otherwise(error, symbol, (left_node, a), (right_node, b))

    find_reflected = partial(operators.reflected_operator, symbol)
    found = find if symbol in COMPARISONS else name
    return found, declined, failed, find_reflected, catalogue.operators, symbol


def _name_and_name(
    state: State, symbol: str, nodes: tuple[tree.Name, tree.Name], sides: Sides, span: Span
) -> Evaluate:
    """`a op b`."""
    on_tensors, host = operators.tensor_operator(symbol), operators.HOST_OPERATORS[symbol]
    numbers, of_numbers = operators.of_numbers(symbol)
    left, right = sides
    left_node, right_node = nodes
    left_name, right_name = left_node.name, right_node.name

    def run(variables: Variables) -> Any:
        try:
            a = variables[left_name]
            b = variables[right_name]
        except KeyError:
            a = left(variables)
            b = right(variables)
        state.place = span
        try:
            if type(a) in numbers and type(b) in NUMBERS:
                return of_numbers(a, b)
            if type(a) is Tensor or type(b) is Tensor:
                if FOREIGN and (type(a) in FOREIGN or type(b) in FOREIGN):
                    return beside(symbol, a, b, on_tensors)
                return on_tensors(a, b)
            return operators.on_host(host, a, b) if FOREIGN else host(a, b)
        except _FAILURES as error:
            return _otherwise(error, symbol, (left_node, a), (right_node, b))

    return run


def _name_and_constant(
    state: State,
    symbol: str,
    left_node: tree.Name,
    left: Evaluate,
    right_node: tree.Constant,
    span: Span,
) -> Evaluate:
    """`a op 2`."""
    on_tensors, host = operators.tensor_operator(symbol), operators.HOST_OPERATORS[symbol]
    numbers, of_numbers = operators.of_numbers(symbol)
    name, constant = left_node.name, right_node.value
    is_number = type(constant) in NUMBERS

    def run(variables: Variables) -> Any:
        try:
            a = variables[name]
        except KeyError:
            a = left(variables)
        state.place = span
        try:
            if type(a) in numbers and is_number:
                return of_numbers(a, constant)
            return on_tensors(a, constant) if type(a) is Tensor else host(a, constant)
        except _FAILURES as error:
            return _otherwise(error, symbol, (left_node, a), (right_node, constant))

    return run


def _name_and_any(
    state: State, symbol: str, nodes: tuple[tree.Name, tree.Expression], sides: Sides, span: Span
) -> Evaluate:
    """`a op f(b)`."""
    on_tensors, host = operators.tensor_operator(symbol), operators.HOST_OPERATORS[symbol]
    numbers, of_numbers = operators.of_numbers(symbol)
    left, right = sides
    left_node, right_node = nodes
    name = left_node.name

    def run(variables: Variables) -> Any:
        try:
            a = variables[name]
        except KeyError:
            a = left(variables)
        b = right(variables)
        state.place = span
        try:
            if type(a) in numbers and type(b) in NUMBERS:
                return of_numbers(a, b)
            if type(a) is Tensor or type(b) is Tensor:
                if FOREIGN and (type(a) in FOREIGN or type(b) in FOREIGN):
                    return beside(symbol, a, b, on_tensors)
                return on_tensors(a, b)
            return operators.on_host(host, a, b) if FOREIGN else host(a, b)
        except _FAILURES as error:
            return _otherwise(error, symbol, (left_node, a), (right_node, b))

    return run


def _any_and_any(
    state: State,
    symbol: str,
    nodes: tuple[tree.Expression, tree.Expression],
    sides: Sides,
    span: Span,
) -> Evaluate:
    """`f(a) op g(b)`."""
    apply = _applied(symbol)
    left, right = sides
    left_node, right_node = nodes

    def run(variables: Variables) -> Any:
        a = left(variables)
        b = right(variables)
        state.place = span
        return apply(a, b, left_node, right_node)

    return run


@cache
def _applied(symbol: str) -> Callable[[Any, Any, tree.Expression, tree.Expression], Any]:
    """A binary operator on any two values, of two nodes of the tree that label a failure."""
    table, host = catalogue.operators, operators.HOST_OPERATORS[symbol]
    numbers, of_numbers = operators.of_numbers(symbol)
    on_tensors = operators.tensor_operator(symbol) if symbol == "%" else None

    def apply(a: Any, b: Any, left_node: tree.Expression, right_node: tree.Expression) -> Any:
        try:
            if type(a) in numbers and type(b) in NUMBERS:
                return of_numbers(a, b)
            if type(a) is Tensor or type(b) is Tensor:
                operator = on_tensors or table[symbol]
                if FOREIGN and (type(a) in FOREIGN or type(b) in FOREIGN):
                    return beside(symbol, a, b, operator)
                return operator(a, b)
            return operators.on_host(host, a, b) if FOREIGN else host(a, b)
        except _FAILURES as error:
            return _otherwise(error, symbol, (left_node, a), (right_node, b))

    return apply


_FAILURES: tuple[type[Exception], ...] = (*operators.OPERATOR_ERRORS, GradcliError)


def _otherwise(
    error: Exception,
    symbol: str,
    left: tuple[tree.Expression, Any],
    right: tuple[tree.Expression, Any],
) -> Any:
    """What an object's own method gives for an operator that failed, or its labelled failure."""
    method = operators.own_operator(symbol, left[1], right[1])
    if method is not None:
        return method()
    failure = error
    if not isinstance(error, GradcliError):
        failure = operators.operator_failed(symbol, left[1], right[1], error)
    else:
        operators.word_failure(error, symbol, left[1], right[1])
    if isinstance(failure, GradcliError):
        label_operands(failure, (left, right), symbol)
    if failure is error:
        raise error
    raise failure from error


_CLASSES = 8
"""Classes whose methods a place knows at a time."""


_WALKED = (list, tuple, dict, set)
"""Containers, which are compared only if that ends."""


def own_first(
    state: State,
    symbol: str,
    nodes: tuple[tree.Expression, tree.Expression],
    span: Span,
    otherwise: operators.Operation,
) -> operators.Operation:
    """An operator that enters the method of an object of the program's as a function is
    entered, where that comes first in Python too: no class derives from the object's. A comparison
    does with another of the class or with what is no container.
    """
    left_node, right_node = nodes
    known: dict[type, Any] = {}
    compares = symbol in COMPARISONS

    def find(kind: type) -> Any:
        if compares and issubclass(kind, _WALKED):
            return None
        method = operators.written_operator(symbol, kind)
        if method is not None and issubclass(kind, Instance) and len(known) < _CLASSES:
            watch_class(kind, partial(known.pop, kind, None))
            known[kind] = method
        return method

    def run(left: Any, right: Any) -> Any:
        kind = type(left)
        other = type(right)
        method = known.get(kind) or find(kind)
        if method is None or other is Tensor:
            return otherwise(left, right)
        if other is not kind and (issubclass(other, kind) or (compares and other not in PLAIN)):
            return otherwise(left, right)
        state.place = span
        try:
            if method.least <= 2 <= method.most:
                value = method.run(method, left, right)
            else:
                value = method.invoke((left, right), {})
            if value is NotImplemented:
                value = operators.from_the_right(symbol, left, right)
            return value
        except _FAILURES as error:
            return _otherwise(error, symbol, (left_node, left), (right_node, right))

    return run


def _chain(c: Compiler, node: tree.Binary, scope: Scope) -> Evaluate:
    """Many operators in a row, in a loop: ten thousand terms need no recursion."""
    if c.nodes is not None and len(node.rest) <= _NESTED:
        return _nested(c, node, scope)
    state = c.state
    first = c.expression(node.first, scope)
    start = node.span.start
    source = node.span.source
    # Each step's span reaches from the start of the chain to the end of its right operand.
    steps = [
        (
            symbol,
            operators.tensor_operator(symbol),
            operators.HOST_OPERATORS[symbol],
            *operators.of_numbers(symbol),
            c.expression(operand, scope),
            operand,
            Span(source, start, end_of_step(source.text, operand.span.end, node.span.end)),
        )
        for symbol, operand in node.rest
    ]

    def run(variables: Variables) -> Any:
        a = first(variables)
        for symbol, on_tensors, host, numbers, of_numbers, operand, right_node, span in steps:
            b = operand(variables)
            state.place = span
            either = type(a) is Tensor or type(b) is Tensor
            try:
                if type(a) in numbers and type(b) in NUMBERS:
                    a = of_numbers(a, b)
                elif FOREIGN and either and (type(a) in FOREIGN or type(b) in FOREIGN):
                    a = beside(symbol, a, b, on_tensors)
                elif either:
                    a = on_tensors(a, b)
                else:
                    a = operators.on_host(host, a, b) if FOREIGN else host(a, b)
            except _FAILURES as error:
                spans = [step[-1] for step in steps]
                done = spans.index(span)
                left = tree.Binary(spans[done - 1], node.first, []) if done else node.first
                a = _otherwise(error, symbol, (left, a), (right_node, b))
        return a

    return run


_NESTED = 50
"""Operators in a row that nest, one node in the other."""


def _nested(c: Compiler, node: tree.Binary, scope: Scope) -> Evaluate:
    """The same as nodes in C."""
    assert c.nodes is not None
    source = node.span.source
    left_node, left = node.first, c.expression(node.first, scope)
    for symbol, right_node in node.rest:
        end = end_of_step(source.text, right_node.span.end, node.span.end)
        span = Span(source, node.span.start, end)
        sides = (left, c.expression(right_node, scope))
        left = _node(c.nodes, c.state, symbol, span, sides, (left_node, right_node))
        left_node = tree.Binary(span, node.first, [])
    return left


def end_of_step(text: str, end: int, limit: int) -> int:
    """The end of an operand with the brackets that close right after it."""
    at = end
    while at < limit and text[at] in ") \n":
        at += 1
        if text[at - 1] == ")":
            end = at
    return end


@compiles(tree.Comparison)
def comparison(c: Compiler, node: tree.Comparison, scope: Scope) -> Evaluate:
    """`a < b`, `a < b <= c`, `in`, `is`: a chain stops at the first that does not hold."""
    state, span = c.state, node.span
    if len(node.rest) == 1:
        ((symbol, right_node),) = node.rest
        if symbol in operators.HOST_OPERATORS:
            return operation(c, symbol, node.first, right_node, span, scope)
        if symbol in ("is", "is not"):
            one, other = c.expression(node.first, scope), c.expression(right_node, scope)
            same = symbol == "is"
            return lambda variables: (one(variables) is other(variables)) is same
    first = c.expression(node.first, scope)
    steps = [(COMPARED[symbol], c.expression(right, scope)) for symbol, right in node.rest]
    last = len(steps) - 1

    def run(variables: Variables) -> Any:
        left = first(variables)
        for number, (compare, operand) in enumerate(steps):
            right = operand(variables)
            state.place = span
            result = compare(left, right)
            if number == last or not result:
                return result
            left = right
        return None

    return run


COMPARED: dict[str, operators.Operation] = {
    **{symbol: partial(operators.binary, symbol) for symbol in ("==", "!=", "<", "<=", ">", ">=")},
    "in": operators.contains,
    "not in": lambda left, right: not operators.contains(left, right),
    "is": operators.identity,
    "is not": lambda left, right: left is not right,
}
"""The comparisons of a chain."""


_APPLIED, _METHODS = Made(_applied), Made(_methods)

_ONE = (ask("length", "rest", of=1),)
"""One operator, with an operand on each side."""

for _kind in (tree.Binary, tree.Comparison):
    recipe(
        _kind,
        "binary",
        *(place_of(), child("first"), child("rest", 0, 1), given("first"), given("rest", 0, 1)),
        *(item(_APPLIED, "rest", 0, 0), item(_METHODS, "rest", 0, 0), nothing(6)),
        number=by_table(NUMBER_OF, "rest", 0, 0),
        asks=_ONE,
    )
recipe(
    tree.Comparison,
    "same",
    *(child("first"), child("rest", 0, 1)),
    number=by_table({"is": 0, "is not": 1}, "rest", 0, 0),
    asks=_ONE,
)
recipe(
    tree.Comparison,
    "contained",
    *(place_of(), child("first"), child("rest", 0, 1), item(COMPARED, "rest", 0, 0)),
    *(known("__contains__"), nothing(3)),
    number=by_table({"in": 0, "not in": 1}, "rest", 0, 0),
    asks=_ONE,
)


@compiles(tree.Logical)
def logical(c: Compiler, node: tree.Logical, scope: Scope) -> Evaluate:
    """`a and b`, `a or b`: the first operand that decides is the value."""
    state, truth = c.state, c.truth
    operands = [(c.expression(operand, scope), operand.span) for operand in node.operands[:-1]]
    last = c.expression(node.operands[-1], scope)
    stops_at = node.operator == "or"

    def run(variables: Variables) -> Any:
        for operand, span in operands:
            value = operand(variables)
            state.place = span
            if truth(value) is stops_at:
                return value
        return last(variables)

    return run


recipe(
    tree.Logical,
    "deciding",
    *(session(), operands_of("operands")),
    number=by_table({"and": 0, "or": 1}, "operator"),
)


@compiles(tree.Conditional)
def conditional(c: Compiler, node: tree.Conditional, scope: Scope) -> Evaluate:
    """`body if test else orelse`."""
    state, span = c.state, node.test.span
    test = c.test(node.test, scope, span)
    body = c.expression(node.body, scope)
    orelse = c.expression(node.orelse, scope)

    def run(variables: Variables) -> Any:
        decision = test(variables)
        state.place = span
        return body(variables) if decision else orelse(variables)

    return run


recipe(
    tree.Conditional, "conditional", place_of("test"), child("test"), child("body"), child("orelse")
)
