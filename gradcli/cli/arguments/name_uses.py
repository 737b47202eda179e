"""How a statement uses names: which it reads before it assigns them, and which it assigns first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradcli.language import tree
from gradcli.language.tree.scopes import target_names

READ = "read"
"""Read where the statement runs."""

INSIDE = "inside"
"""Read in the body of a function, whenever that runs."""

ASSIGNED = "assigned"
"""Given a value by an assignment."""

BOUND = "bound"
"""Given a value by another statement: a loop, `def`, `with`, `import`."""


class Mention:
    """One mention of a name."""

    __slots__ = ("how", "name")

    def __init__(self, how: str, name: str) -> None:
        self.how = how
        self.name = name


def mentions(statement: tree.Statement) -> dict[str, str]:
    """How each name is mentioned first, in the order of the run; a read in a function's body counts
    only for a name that is mentioned nowhere else.
    """
    found: dict[str, str] = {}
    for mention in all_mentions(statement):
        if found.get(mention.name, INSIDE) == INSIDE:
            found[mention.name] = mention.how
    return found


def all_mentions(part: Any) -> Iterator[Mention]:
    """Every mention in a part of the tree; trees are deeper than the host would let us recurse."""
    waiting = [part]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mention):
            yield each
        elif isinstance(each, (list, tuple)):
            waiting += reversed(each)
        elif isinstance(each, tree.Syntax):
            waiting += reversed(_parts(each))


def _parts(node: tree.Syntax) -> list[Any]:
    """The mentions and parts of a node in the order in which they run."""
    if isinstance(node, tree.Name):
        return [Mention(READ, node.name)]
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
        return [node.value, Mention(ASSIGNED, node.name.name)]
    if isinstance(node, tree.Command):
        return _named(node.span.text)
    if isinstance(node, tree.Def):
        inside = _function(node.parameters, node.body)
        return [node.decorators, *inside, Mention(BOUND, node.name)]
    if isinstance(node, tree.Class):
        return [node.decorators, node.bases, *_class(node.body), Mention(BOUND, node.name)]
    if isinstance(node, tree.Lambda):
        return _function(node.parameters, node.body)
    if isinstance(node, tree.Comprehension):
        return _comprehension(node)
    if isinstance(node, tree.Handler):
        named = [] if node.name is None else [Mention(BOUND, node.name)]
        return [node.exception, *named, node.body]
    if isinstance(node, tree.Import):
        return [Mention(BOUND, alias or module.partition(".")[0]) for module, alias in node.names]
    if isinstance(node, tree.FromImport):
        return [Mention(BOUND, alias or name) for name, alias in node.names]
    return [getattr(node, slot) for slot in type(node).__slots__]


def _named(line: str) -> list[Mention]:
    """What `.trace y steps` or `y.grad?` names: a command's first argument may be a name."""
    words = line.split()[1:2] if line.startswith(".") else [line]
    names = [word.rstrip("? \t").partition(".")[0] for word in words]
    return [Mention(READ, name) for name in names if name.isidentifier()]


def _targets(targets: Iterable[tree.Expression], how: str) -> list[Mention]:
    """What targets read (`x[i] = …` reads x and i) and give a value."""
    found = []
    for target in targets:
        names = list(dict.fromkeys(target_names(target)))
        found += [mention for mention in all_mentions(target) if mention.name not in names]
        found += [Mention(how, name) for name in names]
    return found


def _function(parameters: tree.Parameters, body: Any) -> list[Any]:
    """What a function mentions: its defaults are read at once, other names when it runs."""
    own = {parameter.name for parameter in parameters.parameters}
    inner = list(all_mentions(body))
    own |= {mention.name for mention in inner if mention.how in (ASSIGNED, BOUND)}
    defaults = [parameter.default for parameter in parameters.parameters]
    names = dict.fromkeys(mention.name for mention in inner if mention.name not in own)
    return [*defaults, *(Mention(INSIDE, name) for name in names)]


def _class(body: Any) -> list[Mention]:
    """What the body of a class mentions: it runs at once, and the names it binds are its own."""
    inner = list(all_mentions(body))
    own = {mention.name for mention in inner if mention.how in (ASSIGNED, BOUND)}
    return [m for m in inner if m.how == INSIDE or (m.how == READ and m.name not in own)]


def _comprehension(node: tree.Comprehension) -> list[Any]:
    own = {name for clause in node.clauses for name in target_names(clause.target)}
    parts: list[Any] = []
    for clause in node.clauses:
        parts += [clause.iterable, clause.conditions]
    inner = all_mentions([*parts, node.element, node.value])
    return [mention for mention in inner if mention.name not in own]
