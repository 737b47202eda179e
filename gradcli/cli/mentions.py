"""How a statement uses names: which it reads before it assigns them, and which it assigns first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcli.language import syntax
from gradcli.language.scopes import target_names

READ = "read"
"""Read where the statement runs."""

INSIDE = "inside"
"""Read in the body of a function, whenever that runs."""

ASSIGNED = "assigned"
"""Given a new value at top level."""


def mentions(statement: syntax.Statement) -> dict[str, str]:
    """How each name is mentioned first, in the order of the run; a read in a function's body counts
    only for a name that is mentioned nowhere else.
    """
    found: dict[str, str] = {}
    for how, name in _walk(statement):
        if found.get(name, INSIDE) == INSIDE:
            found[name] = how
    return found


def _walk(node: Any) -> Iterator[tuple[str, str]]:
    if isinstance(node, (list, tuple)):
        for part in node:
            yield from _walk(part)
    elif isinstance(node, syntax.Name):
        yield READ, node.name
    elif isinstance(node, syntax.Assign):
        yield from _walk(node.value)
        for target in node.targets:
            yield from _target(target)
    elif isinstance(node, syntax.For):
        yield from _walk(node.iterable)
        yield from _target(node.target)
        yield from _walk([node.body, node.orelse])
    elif isinstance(node, syntax.With):
        for context, target in node.items:
            yield from _walk(context)
            if target is not None:
                yield from _target(target)
        yield from _walk(node.body)
    elif isinstance(node, syntax.NamedExpression):
        yield from _walk(node.value)
        yield ASSIGNED, node.name.name
    elif isinstance(node, syntax.Def):
        yield from _walk(node.decorators)
        yield from _function(node.parameters, node.body)
        yield ASSIGNED, node.name
    elif isinstance(node, syntax.Lambda):
        yield from _function(node.parameters, [node.body])
    elif isinstance(node, syntax.Comprehension):
        yield from _comprehension(node)
    elif isinstance(node, syntax.Binary):  # flat, however long it is
        yield from _walk(node.first)
        for _, operand in node.rest:
            yield from _walk(operand)
    elif isinstance(node, syntax.Syntax):
        for slot in type(node).__slots__:
            yield from _walk(getattr(node, slot))


def _target(target: syntax.Expression) -> Iterator[tuple[str, str]]:
    """What a target reads (`x[i] = …` reads x and i) and assigns."""
    names = set(target_names(target))
    for _, name in _walk(target):
        if name not in names:
            yield READ, name
    for name in names:
        yield ASSIGNED, name


def _function(parameters: syntax.Parameters, body: list[Any]) -> Iterator[tuple[str, str]]:
    own = {parameter.name for parameter in parameters.parameters}
    for parameter in parameters.parameters:
        yield from _walk(parameter.default)
    inner = list(_walk(body))
    own |= {name for how, name in inner if how == ASSIGNED}
    for _, name in inner:
        if name not in own:
            yield INSIDE, name


def _comprehension(node: syntax.Comprehension) -> Iterator[tuple[str, str]]:
    own = {name for clause in node.clauses for name in target_names(clause.target)}
    parts: list[Any] = []
    for clause in node.clauses:
        parts += [clause.iterable, clause.conditions]
    for how, name in _walk([*parts, node.element, node.value]):
        if name not in own:
            yield how, name
