"""Compiles comprehensions and generator expressions, each with a scope of its own."""

from __future__ import annotations

from collections.abc import Generator
from collections.abc import Iterator as HostIterator
from typing import TYPE_CHECKING, Any

from gradcli.language.compiler.base import Compiler, Evaluate, Store, compiles
from gradcli.language.limits import enter_host_call, too_many_steps
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import PARENT, Scope, Variables, comprehension_scope
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.errors import Span
    from gradcli.limits import Steps


class _Clause(Record):
    """One `for target in iterable if …`, compiled."""

    iterable: Evaluate
    store: Store
    conditions: list[Evaluate]
    span: Span


@compiles(tree.Comprehension)
def comprehension(c: Compiler, node: tree.Comprehension, scope: Scope) -> Evaluate:
    """`[element for …]` and its relatives; only a generator waits until it is drawn from."""
    inner = comprehension_scope(scope, node.clauses)
    clauses = [
        _Clause(
            # The first iterable is evaluated outside, as in Python.
            c.expression(clause.iterable, inner if number else scope),
            c.store(clause.target, inner),
            [c.test(condition, inner, None) for condition in clause.conditions],
            clause.iterable.span,
        )
        for number, clause in enumerate(node.clauses)
    ]
    element = c.expression(node.element, inner)
    if node.kind == "generator":
        return _generator(c, clauses, element)
    if node.kind == "dict":
        assert node.value is not None
        return _dict(c, clauses, element, c.expression(node.value, inner), node.span)

    if node.kind == "set":
        members = _dict(c, clauses, element, lambda inside: None, node.span)
        return lambda variables: set(members(variables))
    if len(clauses) == 1:
        return _single(c, clauses[0], element)
    return lambda variables: [element(inside) for inside in _iterations(c, clauses, variables)]


def _single(c: Compiler, clause: _Clause, element: Evaluate) -> Evaluate:
    """`[element for target in iterable if condition]`, the common case."""
    state, steps, iterate = c.state, c.steps, c.iterate
    iterable, store = clause.iterable, clause.store
    conditions, span = clause.conditions, clause.span

    def collect(variables: Variables) -> list[Any]:
        values = iterable(variables)
        state.place = span
        inside: Variables = {PARENT: variables}
        elements = []
        for value in iterate(values):
            steps.left -= 1
            if steps.left < 0:
                raise too_many_steps()
            store(inside, value)
            for condition in conditions:
                if not condition(inside):
                    break
            else:
                elements.append(element(inside))
            state.place = span
        return elements

    return collect


def _iterations(
    c: Compiler, clauses: list[_Clause], variables: Variables
) -> Generator[Variables, None, None]:
    """The comprehension's variables, once for each iteration."""
    first = clauses[0].iterable(variables)
    c.state.place = clauses[0].span
    return _inner_iterations(c, clauses, 0, {PARENT: variables}, c.iterate(first))


def _inner_iterations(
    c: Compiler,
    clauses: list[_Clause],
    number: int,
    inside: Variables,
    values: HostIterator[Any],
) -> Generator[Variables, None, None]:
    clause = clauses[number]
    state, steps = c.state, c.steps
    for value in values:
        steps.left -= 1
        if steps.left < 0:
            raise too_many_steps()
        clause.store(inside, value)
        if all(condition(inside) for condition in clause.conditions):
            if number + 1 == len(clauses):
                yield inside
            else:
                following = clauses[number + 1]
                more = following.iterable(inside)
                state.place = following.span
                yield from _inner_iterations(c, clauses, number + 1, inside, c.iterate(more))
        state.place = clause.span


def _dict(
    c: Compiler, clauses: list[_Clause], key: Evaluate, value: Evaluate, span: Span
) -> Evaluate:
    state, enter = c.state, c.enter

    def collect(variables: Variables) -> dict[Any, Any]:
        items: dict[Any, Any] = {}
        for inside in _iterations(c, clauses, variables):
            at = key(inside)
            new = value(inside)
            state.place = span
            enter(items, at, new)
        return items

    return collect


def _generator(c: Compiler, clauses: list[_Clause], element: Evaluate) -> Evaluate:
    state, steps = c.state, c.steps

    def start(variables: Variables) -> Any:
        first = clauses[0].iterable(variables)
        state.place = clauses[0].span
        iterations = _inner_iterations(c, clauses, 0, {PARENT: variables}, c.iterate(first))
        return c.drawing("generator", _drawn(iterations, element, steps), first)

    return start


def _drawn(
    iterations: HostIterator[Variables], element: Evaluate, steps: Steps
) -> Generator[Any, None, None]:
    """The elements of a generator expression."""
    while True:
        enter_host_call(steps)
        try:
            value = element(next(iterations))
        except StopIteration:
            return
        finally:
            steps.nested -= 1
        yield value
