"""How a statement uses names: which it reads before it assigns them, and which it assigns first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import captured_names, target_names
from gradcli.record import Record

READ = "read"
"""Read where the statement runs."""

INSIDE = "inside"
"""Read in the body of a function, whenever that runs."""

ASSIGNED = "assigned"
"""Given a value by an assignment."""

BOUND = "bound"
"""Given a value by another statement: a loop, `def`, `with`, `import`."""


_KEPT = 256
"""Statements whose uses are kept."""


class NameUse(Record):
    """One use of a name: the name, and how it is used."""

    how: str
    name: str


@lru_cache(_KEPT)
def name_uses(statement: tree.Statement) -> Mapping[str, str]:
    """How each name is used first; reads in a function's body only where nothing else is.

    What was found of a statement is kept: a program that runs on many inputs asks every time.
    """
    uses: dict[str, str] = {}
    for use in all_name_uses(statement):
        if uses.get(use.name, INSIDE) == INSIDE:
            uses[use.name] = use.how
    return uses


def assigned_again(statements: Iterable[tree.Statement]) -> set[str]:
    """The names that more than one assignment at the top level may give a value, or one in a loop
    several times.
    """
    once: set[str] = set()
    again: set[str] = set()
    for statement in statements:
        repeats = isinstance(statement, (tree.For, tree.While))
        for use in all_name_uses(statement):
            if use.how == ASSIGNED:
                (again if repeats or use.name in once else once).add(use.name)
    return again


def free_names(
    statements: Iterable[tree.Statement], bound: Iterable[str], is_builtin: Callable[[str], bool]
) -> dict[str, None]:
    """The names that statements read and nothing gives a value, in order; `bound` have one. What a
    function's body reads may get it later.
    """
    known, free, inside = set(bound), dict[str, None](), dict[str, None]()
    for statement in statements:
        for name, how in name_uses(statement).items():
            if how in (ASSIGNED, BOUND):
                known.add(name)
            elif name not in known and not is_builtin(name):
                (inside if how == INSIDE else free).setdefault(name)
    return {**free, **{name: None for name in inside if name not in known}}


def called_names(part: Any) -> set[str]:
    """The names that a part of the tree calls as functions."""
    functions = (call.function for call in calls_in(part))
    return {each.name for each in functions if isinstance(each, tree.Name)}


def calls_in(part: Any) -> Iterator[tree.Call]:
    """The calls in a part of the tree."""
    return (each for each in _nodes(part) if isinstance(each, tree.Call))


def operand_names(part: Any) -> set[str]:
    """The names that are operands of operators in a part of the tree, or arguments of ops."""
    names = set()
    for each in _nodes(part):
        operands: list[Any] = []
        if isinstance(each, tree.Unary):
            operands = [each.operand]
        elif isinstance(each, tree.Binary):
            operands = [each.first, *(operand for _, operand in each.rest)]
        elif isinstance(each, tree.Call) and not _takes_functions(each):
            operands = [argument.value for argument in each.arguments]
        names |= {operand.name for operand in operands if isinstance(operand, tree.Name)}
    return names


# fmt: off
_OF_FUNCTIONS = frozenset((
    "apply_", "callable", "checkpoint", "compile", "filter", "functional_call", "grad",
    "grad_and_value", "hessian", "hvp", "isinstance", "jacfwd", "jacobian", "jacrev", "jvp",
    "linearize", "map", "map2_", "map_", "partial", "print", "reduce", "sorted", "vhp", "vjp",
    "vmap",
))
# fmt: on
"""Functions that take functions."""


def _takes_functions(call: tree.Call) -> bool:
    function = call.function
    name = function.name if isinstance(function, (tree.Name, tree.Attribute)) else ""
    return name in _OF_FUNCTIONS


def _nodes(part: Any) -> Iterator[tree.Syntax]:
    """All nodes of a part of the tree, without recursion."""
    waiting = [part]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting += each
        elif isinstance(each, tree.Syntax):
            yield each
            waiting += _parts(each)


def all_name_uses(part: Any) -> Iterator[NameUse]:
    """Every use of a name in a part of the tree, without recursion."""
    waiting = [part]
    while waiting:
        each = waiting.pop()
        if isinstance(each, NameUse):
            yield each
        elif isinstance(each, (list, tuple)):
            waiting += reversed(each)
        elif isinstance(each, tree.Syntax):
            waiting += reversed(_parts(each))


def _parts(node: tree.Syntax) -> list[Any]:
    """The name uses and parts of a node in the order in which they run."""
    if isinstance(node, tree.Name):
        return [NameUse(READ, node.name)]
    if isinstance(node, tree.Assign):
        return [node.value, *_targets(node.targets, ASSIGNED)]
    if isinstance(node, tree.For):
        return [node.iterable, *_targets([node.target], BOUND), node.body, node.orelse]
    if isinstance(node, tree.With):
        items: list[Any] = []
        for context, target in node.items:
            items += [context, *_targets([] if target is None else [target], BOUND)]
        return [*items, node.body]
    if isinstance(node, tree.NamedExpression):
        return [node.value, NameUse(ASSIGNED, node.name.name)]
    if isinstance(node, tree.Command):
        return _named(node.span.text)
    if isinstance(node, tree.Def):
        inside = _function(node.parameters, node.body)
        return [node.decorators, *inside, NameUse(BOUND, node.name)]
    if isinstance(node, tree.Class):
        return [node.decorators, node.bases, *_class(node.body), NameUse(BOUND, node.name)]
    if isinstance(node, tree.Lambda):
        return _function(node.parameters, node.body)
    if isinstance(node, tree.Comprehension):
        return _comprehension(node)
    if isinstance(node, tree.Handler):
        named = [] if node.name is None else [NameUse(BOUND, node.name)]
        return [node.exception, *named, node.body]
    if isinstance(node, tree.Case):
        names = [*captured_names(node.pattern), *([node.name] if node.name else [])]
        return [*(NameUse(BOUND, name) for name in names), node.guard, node.body]
    if isinstance(node, tree.Import):
        return [NameUse(BOUND, alias or module.partition(".")[0]) for module, alias in node.names]
    if isinstance(node, tree.FromImport):
        return [NameUse(BOUND, alias or name) for name, alias in node.names]
    return [getattr(node, name) for name in node.fields]


def _named(line: str) -> list[NameUse]:
    """What `.trace y steps` or `y.grad?` names: a command's first argument may be a name."""
    words = line.split()[1:2] if line.startswith(".") else [line]
    names = [word.rstrip("? \t").partition(".")[0] for word in words]
    return [NameUse(READ, name) for name in names if name.isidentifier()]


def _targets(targets: Iterable[tree.Expression], how: str) -> list[NameUse]:
    """What targets read (`x[i] = …` reads x and i) and give a value."""
    uses = []
    for target in targets:
        names = list(dict.fromkeys(target_names(target)))
        uses += [use for use in all_name_uses(target) if use.name not in names]
        uses += [NameUse(how, name) for name in names]
    return uses


def _function(parameters: tree.Parameters, body: Any) -> list[Any]:
    """The names that a function uses: its defaults are read at once, other names when it runs."""
    own = {parameter.name for parameter in parameters.parameters}
    inner = list(all_name_uses(body))
    own |= {use.name for use in inner if use.how in (ASSIGNED, BOUND)}
    defaults = [parameter.default for parameter in parameters.parameters]
    names = dict.fromkeys(use.name for use in inner if use.name not in own)
    return [*defaults, *(NameUse(INSIDE, name) for name in names)]


def _class(body: Any) -> list[NameUse]:
    """The names that the body of a class uses: it runs at once, and those it binds are its own."""
    inner = list(all_name_uses(body))
    own = {use.name for use in inner if use.how in (ASSIGNED, BOUND)}
    return [m for m in inner if m.how == INSIDE or (m.how == READ and m.name not in own)]


def _comprehension(node: tree.Comprehension) -> list[Any]:
    own = {name for clause in node.clauses for name in target_names(clause.target)}
    parts: list[Any] = []
    for clause in node.clauses:
        parts += [clause.iterable, clause.conditions]
    inner = all_name_uses([*parts, node.element, node.value])
    return [use for use in inner if use.name not in own]
