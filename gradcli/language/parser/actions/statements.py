"""Builds the statements of the syntax tree, one function for each rule of the grammar.

They are called as those in `expressions` are. What the grammar cannot say, statements out of place
and trees that are too deep, is checked here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.errors import GradcliError, Span
from gradcli.language.parser.actions.expressions import (
    annotation_text,
    check_deletable,
    check_single_target,
    check_target,
    checked_parameters,
)
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import blocks_of
from gradcli.language.tree.syntax import Expression, Statement

Body = list[Statement]
WithItem = tuple[Expression, Expression | None]


# ---- simple statements ----


def assignment(span: Span, target: Expression, value: Expression) -> tree.Assign:
    """`target = value`."""
    check_target(target, "use `==` to compare")
    return tree.Assign(span, [target], value)


def chained_assignment(span: Span, first: tree.Assign, value: Expression) -> tree.Assign:
    """`target = target = value`: what was the value so far is a target too."""
    check_target(first.value, "use `==` to compare")
    first.targets.append(first.value)
    first.value = value
    first.span = span
    return first


def augmented_assignment(
    span: Span, target: Expression, operator: str, value: Expression
) -> tree.AugmentedAssign:
    """`target operator= value`."""
    check_single_target(target, f"be changed by `{operator}`")
    return tree.AugmentedAssign(span, target, operator[:-1], value)


def annotated_assignment(
    span: Span, target: Expression, annotation: Expression, value: Expression | None
) -> Statement:
    """`target: annotation = value`, which is an assignment; without a value, a declaration."""
    check_single_target(target, "be annotated")
    if value is not None:
        return tree.Assign(span, [target], value, annotation_text(annotation))
    return tree.Declare(
        span, target.name if isinstance(target, tree.Name) else "", annotation_text(annotation)
    )


def del_statement(span: Span, targets: list[Expression]) -> tree.Del:
    """`del targets`."""
    for target in targets:
        check_deletable(target)
    return tree.Del(span, targets)


# ---- compound statements ----


def for_statement(
    span: Span, target: Expression, iterable: Expression, body: Body, orelse: Body | None
) -> tree.For:
    """`for target in iterable: body else: orelse`."""
    check_target(target)
    return tree.For(span, target, iterable, body, orelse or [])


def with_item(_span: Span, context: Expression, target: Expression | None) -> WithItem:
    """`context as target`."""
    if target is not None:
        check_target(target)
    return context, target


def grouped_item(_span: Span, context: Expression, target: Expression) -> WithItem:
    """The first `context as target` inside parentheses."""
    check_target(target)
    return context, target


def with_statement(span: Span, items: list[WithItem | Expression], body: Body) -> tree.With:
    """`with items: body`."""
    pairs = [item if isinstance(item, tuple) else (item, None) for item in items]
    first, target = pairs[0]
    alone = len(pairs) == 1 and target is None
    before = span.source.text[span.start + len("with") : first.span.start]
    if (
        alone
        and isinstance(first, tree.Tuple)
        and first.elements
        and not before.strip(" \t\f\\\r\n")
    ):
        pairs = [(element, None) for element in first.elements]
    for context, _ in pairs:
        if isinstance(context, tree.Starred):
            raise GradcliError("E006", "a context cannot be starred", span=context.span)
    return tree.With(span, pairs, body)


def try_statement(
    span: Span, body: Body, handlers: list[tree.Handler], orelse: Body | None, final: Body | None
) -> tree.Try:
    """`try: body except: … else: orelse finally: final`."""
    for clause in handlers[:-1]:
        if clause.exception is None:
            message = "an `except` for everything must come last"
            raise GradcliError("E006", message, span=clause.span)
    if len({clause.takes_groups for clause in handlers}) > 1:
        message = "cannot have both `except` and `except*` on the same `try`"
        raise GradcliError("E006", message, span=handlers[-1].span)
    return tree.Try(span, body, handlers, orelse or [], final or [])


def class_statement(
    span: Span,
    decorators: list[Expression] | None,
    text: str,
    arguments: list[tree.Argument] | None,
    body: Body,
) -> tree.Class:
    """`class name(bases, keyword=value): body`."""
    bases = [
        argument.value for argument in arguments or () if not argument.name and not argument.kind
    ]
    keywords = [argument for argument in arguments or () if argument.name or argument.kind]
    return tree.Class(span, text, bases, keywords, body, decorators or [])


NODES: dict[str, Callable[..., Any]] = {
    "command": lambda span, text: tree.Command(span),
    "longer_dotted_name": lambda span, dotted, text: f"{dotted}.{text}",
    "imported": lambda span, name, alias: (name, alias),
    "import_all": lambda span: ("*", None),
    "dots": lambda span, parts: "".join(parts),
    "relative_import": lambda span, dots, module, names: tree.FromImport(
        span, dots + (module or ""), names
    ),
    "global_statement": lambda span, names: tree.Global(span, "global", names),
    "nonlocal_statement": lambda span, names: tree.Global(span, "nonlocal", names),
    "if_statement": lambda span, test, body, elifs, orelse: tree.If(
        span, [(test, body), *(elifs or ())], orelse or []
    ),
    "elif_clause": lambda span, test, body: (test, body),
    "while_statement": lambda span, test, body, orelse: tree.While(span, test, body, orelse or []),
    "try_finally": lambda span, body, final: tree.Try(span, body, [], [], final),
    "def_statement": lambda span, decorators, text, parameters, annotation, body: tree.Def(
        span,
        text,
        checked_parameters(span, parameters),
        body,
        decorators or [],
        annotation_text(annotation),
    ),
    "group_handler": lambda span, exception, name, body: tree.Handler(
        span, exception, name, body, True
    ),
    "parameter": lambda span, text, annotation, default: tree.Parameter(
        span, text, "", default, annotation_text(annotation)
    ),
}
"""The rules whose node differs from their parts by little."""


# --- what the grammar cannot say ------------------------------------------------------------------


# The interpreter works on a tree by recursion; this many levels are far from Python's own limit.
DEPTH_LIMIT = 400

# The keywords of statements that cannot stand everywhere.
PLACED = frozenset({"return", "break", "continue", "nonlocal", "import"})


def check_placement(
    statements: list[tree.Statement],
    in_function: bool = False,
    in_loop: bool = False,
    in_class: bool = False,
) -> None:
    """Passes statements that stand where they may; the first that does not is an E006."""
    for statement in statements:
        if isinstance(statement, tree.Return):
            if not in_function:
                raise GradcliError("E006", "`return` outside a function", span=statement.span)
        elif isinstance(statement, (tree.Break, tree.Continue)):
            if not in_loop:
                word = statement.span.text
                raise GradcliError("E006", f"`{word}` outside a loop", span=statement.span)
        elif isinstance(statement, tree.Global):
            if statement.keyword == "nonlocal" and not in_function:
                raise GradcliError("E006", "`nonlocal` outside a function", span=statement.span)
        elif isinstance(statement, tree.FromImport):
            if (in_function or in_class) and statement.names[0][0] == "*":
                inside = "class" if in_class else "function"
                raise GradcliError("E006", f"`import *` inside a {inside}", span=statement.span)
        elif isinstance(statement, tree.Def):
            check_placement(statement.body, in_function=True)
        elif isinstance(statement, tree.Class):
            check_placement(statement.body, in_class=True)
        elif isinstance(statement, (tree.For, tree.While)):
            check_placement(statement.body, in_function, in_loop=True)
            check_placement(statement.orelse, in_function, in_loop)
        else:
            for body in blocks_of(statement):
                check_placement(body, in_function, in_loop)


def check_depth(trees: Sequence[tree.Syntax]) -> None:
    """Passes trees of at most `DEPTH_LIMIT` levels; a deeper one is an E005."""
    level: list[tree.Syntax] = list(trees)
    for _ in range(DEPTH_LIMIT):
        level = [part for node in level for part in _parts(node)]
        if not level:
            return
    raise GradcliError(
        "E005",
        f"expressions more than {DEPTH_LIMIT} levels inside one another",
        span=level[0].span,
        help="give the inner part a name on a line of its own",
    )


def _parts(node: tree.Syntax) -> list[tree.Syntax]:
    """The trees right below a tree."""
    parts: list[tree.Syntax] = []
    for name in node.fields:
        waiting = [getattr(node, name)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, tree.Syntax):
                parts.append(value)
            elif isinstance(value, (list, tuple)):
                waiting.extend(value)
    return parts
