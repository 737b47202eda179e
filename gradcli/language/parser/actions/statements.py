"""Builds the statements of the syntax tree, one function for each rule of the grammar.

They are called as those in `expressions` are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError, Span
from gradcli.language.parser.actions.expressions import annotation_text, checked_parameters
from gradcli.language.parser.actions.targets import (
    check_deletable,
    check_single_target,
    check_target,
)
from gradcli.language.tree.syntax import (
    Argument,
    Assign,
    AugmentedAssign,
    Class,
    Command,
    Declare,
    Def,
    Del,
    Expression,
    For,
    FromImport,
    Global,
    Handler,
    If,
    Name,
    Parameter,
    Starred,
    Statement,
    Try,
    Tuple,
    While,
    With,
)

Body = list[Statement]
WithItem = tuple[Expression, Expression | None]


# ---- simple statements ----


def assignment(span: Span, target: Expression, value: Expression) -> Assign:
    """`target = value`."""
    check_target(target, "use `==` to compare")
    return Assign(span, [target], value)


def chained_assignment(span: Span, first: Assign, value: Expression) -> Assign:
    """`target = target = value`: what was the value so far is a target too."""
    check_target(first.value, "use `==` to compare")
    first.targets.append(first.value)
    first.value = value
    first.span = span
    return first


def augmented_assignment(
    span: Span, target: Expression, operator: str, value: Expression
) -> AugmentedAssign:
    """`target operator= value`."""
    check_single_target(target, f"be changed by `{operator}`")
    return AugmentedAssign(span, target, operator[:-1], value)


def annotated_assignment(
    span: Span, target: Expression, annotation: Expression, value: Expression | None
) -> Statement:
    """`target: annotation = value`, which is an assignment; without a value, a declaration."""
    check_single_target(target, "be annotated")
    if value is not None:
        return Assign(span, [target], value, annotation_text(annotation))
    return Declare(
        span, target.name if isinstance(target, Name) else "", annotation_text(annotation)
    )


def del_statement(span: Span, targets: list[Expression]) -> Del:
    """`del targets`."""
    for target in targets:
        check_deletable(target)
    return Del(span, targets)


# ---- compound statements ----


def for_statement(
    span: Span, target: Expression, iterable: Expression, body: Body, orelse: Body | None
) -> For:
    """`for target in iterable: body else: orelse`."""
    check_target(target)
    return For(span, target, iterable, body, orelse or [])


def with_item(_span: Span, context: Expression, target: Expression | None) -> WithItem:
    """`context as target`."""
    if target is not None:
        check_target(target)
    return context, target


def grouped_item(_span: Span, context: Expression, target: Expression) -> WithItem:
    """The first `context as target` inside parentheses."""
    check_target(target)
    return context, target


def with_statement(span: Span, items: list[WithItem | Expression], body: Body) -> With:
    """`with items: body`."""
    pairs = [item if isinstance(item, tuple) else (item, None) for item in items]
    first, target = pairs[0]
    alone = len(pairs) == 1 and target is None
    before = span.source.text[span.start + len("with") : first.span.start]
    if alone and isinstance(first, Tuple) and first.elements and not before.strip(" \t\f\\\r\n"):
        pairs = [(element, None) for element in first.elements]
    for context, _ in pairs:
        if isinstance(context, Starred):
            raise GradcliError("E006", "a context cannot be starred", span=context.span)
    return With(span, pairs, body)


def try_statement(
    span: Span, body: Body, handlers: list[Handler], orelse: Body | None, final: Body | None
) -> Try:
    """`try: body except: … else: orelse finally: final`."""
    for clause in handlers[:-1]:
        if clause.exception is None:
            message = "an `except` for everything must come last"
            raise GradcliError("E006", message, span=clause.span)
    if len({clause.takes_groups for clause in handlers}) > 1:
        message = "cannot have both `except` and `except*` on the same `try`"
        raise GradcliError("E006", message, span=handlers[-1].span)
    return Try(span, body, handlers, orelse or [], final or [])


def class_statement(
    span: Span,
    decorators: list[Expression] | None,
    text: str,
    arguments: list[Argument] | None,
    body: Body,
) -> Class:
    """`class name(bases, keyword=value): body`."""
    bases = [given.value for given in arguments or () if not given.name and not given.kind]
    keywords = [given for given in arguments or () if given.name or given.kind]
    return Class(span, text, bases, keywords, body, decorators or [])


NODES: dict[str, Callable[..., Any]] = {
    "command": lambda span, text: Command(span),
    "longer_dotted_name": lambda span, dotted, text: f"{dotted}.{text}",
    "imported": lambda span, name, alias: (name, alias),
    "import_all": lambda span: ("*", None),
    "dots": lambda span, parts: "".join(parts),
    "relative_import": lambda span, dots, module, names: FromImport(
        span, dots + (module or ""), names
    ),
    "global_statement": lambda span, names: Global(span, "global", names),
    "nonlocal_statement": lambda span, names: Global(span, "nonlocal", names),
    "if_statement": lambda span, test, body, elifs, orelse: If(
        span, [(test, body), *(elifs or ())], orelse or []
    ),
    "elif_clause": lambda span, test, body: (test, body),
    "while_statement": lambda span, test, body, orelse: While(span, test, body, orelse or []),
    "try_finally": lambda span, body, final: Try(span, body, [], [], final),
    "def_statement": lambda span, decorators, text, parameters, annotation, body: Def(
        span,
        text,
        checked_parameters(span, parameters),
        body,
        decorators or [],
        annotation_text(annotation),
    ),
    "group_handler": lambda span, exception, name, body: Handler(span, exception, name, body, True),
    "parameter": lambda span, text, annotation, default: Parameter(
        span, text, "", default, annotation_text(annotation)
    ),
}
"""The rules whose node differs from their parts by little."""
