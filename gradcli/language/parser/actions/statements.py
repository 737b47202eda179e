"""Builds the statements of the syntax tree, one function for each rule of the grammar.

They are called as those in `expressions` are.
"""

from __future__ import annotations

from gradcli.errors import GradcliError, Span
from gradcli.language.parser.actions.expressions import checked_parameters
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
    Def,
    Del,
    Expression,
    For,
    Global,
    Handler,
    If,
    Parameter,
    Pass,
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


def command(span: Span, _text: str) -> Command:
    """A line for the session."""
    return Command(span)


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
    span: Span, target: Expression, _annotation: Expression, value: Expression | None
) -> Statement:
    """`target: annotation = value`, which is an assignment; without a value, nothing."""
    check_single_target(target, "be annotated")
    return Pass(span) if value is None else Assign(span, [target], value)


def del_statement(span: Span, targets: list[Expression]) -> Del:
    """`del targets`."""
    for target in targets:
        check_deletable(target)
    return Del(span, targets)


def longer_dotted_name(_span: Span, dotted: str, text: str) -> str:
    """The name of a module inside another."""
    return f"{dotted}.{text}"


def imported(_span: Span, text: str, alias: str | None) -> tuple[str, str | None]:
    """`name as alias` or `module as alias`."""
    return text, alias


def import_all(_span: Span) -> tuple[str, str | None]:
    """`*` after `import`."""
    return "*", None


def global_statement(span: Span, names: list[str]) -> Global:
    """`global names`."""
    return Global(span, "global", names)


def nonlocal_statement(span: Span, names: list[str]) -> Global:
    """`nonlocal names`."""
    return Global(span, "nonlocal", names)


# ---- compound statements ----


def if_statement(
    span: Span,
    test: Expression,
    body: Body,
    elifs: list[tuple[Expression, Body]] | None,
    orelse: Body | None,
) -> If:
    """`if test: body elif …: … else: orelse`."""
    return If(span, [(test, body), *(elifs or ())], orelse or [])


def elif_clause(_span: Span, test: Expression, body: Body) -> tuple[Expression, Body]:
    """`elif test: body`."""
    return test, body


def while_statement(span: Span, test: Expression, body: Body, orelse: Body | None) -> While:
    """`while test: body else: orelse`."""
    return While(span, test, body, orelse or [])


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
    return Try(span, body, handlers, orelse or [], final or [])


def try_finally(span: Span, body: Body, final: Body) -> Try:
    """`try: body finally: final`."""
    return Try(span, body, [], [], final)


def def_statement(
    span: Span,
    decorators: list[Expression] | None,
    text: str,
    parameters: list[Parameter] | None,
    _annotation: Expression | None,
    body: Body,
) -> Def:
    """`def name(parameters) -> annotation: body`."""
    return Def(span, text, checked_parameters(span, parameters), body, decorators or [])


def class_statement(
    span: Span,
    decorators: list[Expression] | None,
    text: str,
    arguments: list[Argument] | None,
    body: Body,
) -> Class:
    """`class name(bases): body`; E007 for keywords and unpacking among the bases."""
    for given in arguments or ():
        if given.name is not None or given.kind:
            what = f"`{given.name}=`" if given.name else f"`{given.kind}`"
            raise GradcliError(
                "E007", f"{what} among the bases is outside the language", span=given.span
            )
    return Class(span, text, [given.value for given in arguments or ()], body, decorators or [])


def parameter(
    span: Span, text: str, _annotation: Expression | None, default: Expression | None
) -> Parameter:
    """`name: annotation = default`."""
    return Parameter(span, text, "", default)
