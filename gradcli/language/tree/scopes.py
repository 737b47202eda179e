"""Which variables belong to which function, found before a function runs.

A running function keeps its variables in a dict, which holds the dict of the enclosing function
under `PARENT`; the program's own names are a dict without a parent. The distance to walk is known
when the function is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.tree import syntax as tree
from gradcli.record import Record

Variables = dict[str, Any]

PARENT = ""
"""The key of the enclosing function's variables; no variable has this name."""

CLASS = "class"
"""The key of the class that a class's body made, for its methods; a word no variable is named."""


def names_around(variables: Variables) -> Variables:
    """The names of the program, or of the file, whose function has these variables."""
    while PARENT in variables:
        variables = variables[PARENT]
    return variables


class Scope(Record):
    """The names that a function, lambda or comprehension binds; without a parent, those of the
    program.

    Attributes:
        comprehension: whether `:=` binds outside of it.
        first_parameter: the name by which a method calls its receiver, "" for none.
        prefix: what stands before the qualified names of what it defines, such as `Net.`.
    """

    parent: Scope | None = None
    bound: frozenset[str] = frozenset()
    global_names: frozenset[str] = frozenset()
    comprehension: bool = False
    is_class: bool = False
    first_parameter: str = ""
    prefix: str = ""

    def distance(self, name: str) -> int | None:
        """How many scopes outward a name lives, None for a name of the program."""
        scope: Scope = self
        steps = 0
        while scope.parent is not None:
            if name in scope.bound and (not scope.is_class or scope is self):
                return steps
            if name in scope.global_names:
                return None
            scope = scope.parent
            steps += 1
        return None

    @property
    def is_program(self) -> bool:
        """Whether its variables are the program's own names."""
        return self.parent is None


def function_scope(
    parent: Scope, name: str, parameters: tree.Parameters, body: list[tree.Statement]
) -> Scope:
    """The scope of a function; raises E006 for a `nonlocal` name that no enclosing function has."""
    names = [parameter.name for parameter in parameters.parameters if parameter.name]
    first = parameters.parameters[0] if names else None
    bound, global_names = _bindings(parent, set(names), body)
    receiver = first.name if first is not None and first.kind == "" else ""
    prefix = f"{parent.prefix}{name}.<locals>."
    return Scope(parent, bound, global_names, False, False, receiver, prefix)


def reads_around(scope: Scope, body: list[tree.Statement]) -> bool:
    """Whether a function of this scope may read what the functions around it hold. What is defined
    inside may do so by an annotation, or by `super()`.
    """
    around = scope.parent
    if around is None or around.is_program or not _may_read(around, _text_of(body)):
        return False
    for node in tree.nodes_of(body):
        kind = type(node)
        if kind is tree.Def or kind is tree.Class:
            return True
        if kind is tree.Name:
            name = node.name  # type: ignore[attr-defined]
            if name in _LOOKS_AROUND or (
                name not in scope.bound and around.distance(name) is not None
            ):
                return True
    return False


_LOOKS_AROUND = frozenset(
    {"__class__", "dir", "eval", "exec", "globals", "locals", "super", "vars"}
)
"""Names by which code reads variables that it does not name."""


def _may_read(around: Scope, text: str) -> bool:
    """Whether there is anything in a text that may read what a scope and those around it hold: most
    methods need no walk.
    """
    if not text.isascii():  # a name may be written in other characters
        return True
    scope: Scope | None = around
    names: Iterable[str] = _ALWAYS_LOOK
    while scope is not None:
        for name in names:
            if name in text:
                return True
        names, scope = scope.bound, scope.parent
    return False


_ALWAYS_LOOK = frozenset({"class", "def", *_LOOKS_AROUND})


def _text_of(body: Sequence[tree.Syntax]) -> str:
    """The text of parts that follow one another."""
    span = body[0].span
    return span.source.text[span.start : body[-1].span.end]


_NO_NAMES: frozenset[str] = frozenset()


def class_scope(parent: Scope, name: str, body: list[tree.Statement]) -> Scope:
    """The scope of a class's body; raises E006 as a function's does."""
    bound, global_names = _bindings(parent, set(), body)
    return Scope(parent, bound, global_names, is_class=True, prefix=f"{parent.prefix}{name}.")


def _bindings(
    parent: Scope, bound: set[str], body: list[tree.Statement]
) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a body binds for itself beside `bound`, and those it declares global."""
    if len(body) == 1 and type(body[0]) is tree.Return and ":=" not in _text_of(body):
        return frozenset(bound), _NO_NAMES  # as of most lambdas and many methods
    global_names: set[str] = set()
    nonlocal_names: set[str] = set()
    for node in _binding_nodes(body):
        if isinstance(node, tree.Global):
            if node.keyword == "global":
                global_names.update(node.names)
                continue
            for name in node.names:
                if parent.distance(name) is None:
                    raise GradcliError(
                        "E006", f"no enclosing function has a variable {name!r}", span=node.span
                    )
            nonlocal_names.update(node.names)
        else:
            bound.update(bound_by(node))
    return frozenset(bound - global_names - nonlocal_names), frozenset(global_names)


def comprehension_scope(parent: Scope, clauses: list[tree.ComprehensionFor]) -> Scope:
    """The scope of a comprehension: its targets are its own."""
    if len(clauses) == 1 and type(clauses[0].target) is tree.Name:
        bound = frozenset([clauses[0].target.name])
    else:
        bound = frozenset([name for clause in clauses for name in target_names(clause.target)])
    return Scope(parent, bound, _NO_NAMES, True, False, "", parent.prefix)


def target_names(target: tree.Expression) -> Iterator[str]:
    """The names that a target binds."""
    if isinstance(target, tree.Name):
        yield target.name
    elif isinstance(target, tree.Starred):
        yield from target_names(target.value)
    elif isinstance(target, (tree.Tuple, tree.List)):
        for element in target.elements:
            yield from target_names(element)


def captured_names(pattern: tree.Expression) -> Iterator[str]:
    """The names that a pattern binds."""
    if isinstance(pattern, tree.Name):
        if pattern.name != "_":
            yield pattern.name
    elif isinstance(pattern, tree.Starred):
        yield from captured_names(pattern.value)
    elif isinstance(pattern, tree.Call):
        for argument in pattern.arguments:
            yield from captured_names(argument.value)
    elif isinstance(pattern, tree.Dict):
        for _, value in pattern.items:
            yield from captured_names(value)
    elif isinstance(pattern, (tree.Tuple, tree.List)):
        for element in pattern.elements:
            yield from captured_names(element)
    elif isinstance(pattern, tree.Binary):
        for operand in (pattern.first, *[operand for _, operand in pattern.rest]):
            yield from captured_names(operand)


def has_yield(body: Sequence[tree.Syntax]) -> bool:
    """Whether a function with this body is a generator, or these parts are why."""
    if "yield" not in _text_of(body):  # a walk takes long
        return False
    waiting = [each for each in body if "yield" in each.span.text]
    return any(type(node) in _YIELDING for node in own_nodes(waiting))


_YIELDING = frozenset({tree.Yield, tree.YieldFrom})


def bound_names(body: list[tree.Statement]) -> Iterator[str]:
    """The names that statements bind in the function around them."""
    for node in _binding_nodes(body):
        yield from bound_by(node)


def _binding_nodes(body: list[tree.Statement]) -> Iterator[tree.Syntax]:
    """The nodes of a body that bind names or say where these live: expressions do by `:=` alone."""
    in_expressions = ":=" in _text_of(body) if body else False
    for statement in body:
        kind = type(statement)
        if in_expressions and ":=" in statement.span.text:
            nodes = own_nodes([statement])
        elif kind in _BLOCKS:
            nodes = _own_statements(statement)
        else:
            if kind in _BINDING:
                yield statement
            continue
        for node in nodes:
            if type(node) in _BINDING:
                yield node


_BLOCKS: dict[type[tree.Syntax], tuple[str, ...]] = {
    tree.Async: ("body",),
    tree.Case: ("body",),
    tree.For: ("body", "orelse"),
    tree.Handler: ("body",),
    tree.If: ("branches", "orelse"),
    tree.Match: ("cases",),
    tree.Try: ("body", "handlers", "orelse", "final"),
    tree.While: ("body", "orelse"),
    tree.With: ("body",),
}
"""Where statements stand in others that are of the same function."""


def _own_statements(statement: tree.Statement) -> Iterator[tree.Syntax]:
    """All statements in one, itself first, that are not inside a function or a class."""
    pending: list[Any] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, (list, tuple)):
            pending.extend(node)
        elif isinstance(node, tree.Statement):
            yield node
            pending += [getattr(node, name) for name in _BLOCKS.get(type(node), ())]


def bound_by(node: tree.Syntax) -> Iterator[str]:
    """The names that a node itself binds in the function around it."""
    if isinstance(node, (tree.Assign, tree.Del)):
        for target in node.targets:
            if type(target) is tree.Name:  # as most are, with no generator for each
                yield target.name
            else:
                yield from target_names(target)
    elif isinstance(node, (tree.AugmentedAssign, tree.For)):
        yield from target_names(node.target)
    elif isinstance(node, tree.With):
        for _, target_or_none in node.items:
            if target_or_none is not None:
                yield from target_names(target_or_none)
    elif isinstance(node, tree.NamedExpression):
        yield node.name.name
    elif isinstance(node, (tree.Class, tree.Def)):
        yield node.name
    elif isinstance(node, tree.Handler):
        if node.name is not None:
            yield node.name
    elif isinstance(node, tree.Case):
        yield from captured_names(node.pattern)
        if node.name:
            yield node.name
    elif isinstance(node, tree.Import):
        for module, alias in node.names:
            yield alias or module.partition(".")[0]
    elif isinstance(node, tree.FromImport):
        for name, alias in node.names:
            yield alias or name


_BINDING = frozenset(
    {
        *(tree.Assign, tree.AugmentedAssign, tree.Case, tree.Class, tree.Def, tree.Del, tree.For),
        *(tree.FromImport, tree.Global, tree.Handler, tree.Import, tree.NamedExpression),
        tree.With,
    }
)
"""The nodes that bind names, or say where these live."""


def own_nodes(body: Iterable[tree.Syntax]) -> Iterator[tree.Syntax]:
    """All nodes of a body that are not inside a function or a class of its own."""
    pending: list[Any] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, (list, tuple)):
            pending.extend(node)
        elif isinstance(node, tree.Syntax):
            yield node
            if isinstance(node, (tree.Def, tree.Lambda)):
                pending.extend(p.default for p in node.parameters.parameters)
                if isinstance(node, tree.Def):
                    pending.extend(node.decorators)
            elif isinstance(node, tree.Class):
                pending += [node.bases, node.decorators]
            else:
                pending += [getattr(node, name) for name in tree.parts_of(type(node))]
