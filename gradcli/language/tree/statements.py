"""The nodes of the syntax tree that are executed, and their parts."""

from __future__ import annotations

from gradcli.errors import Span
from gradcli.language.tree.base import Expression, Statement
from gradcli.language.tree.expressions import Argument, Parameters


class Command(Statement):
    """A line for the session rather than for the program: `.vars`, `exp?`; its text is its span's.

    What it does is up to whoever runs the session.
    """

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self.span = span


class ExpressionStatement(Statement):
    """An expression on its own."""

    __slots__ = ("value",)

    def __init__(self, span: Span, value: Expression) -> None:
        self.span = span
        self.value = value


class Assign(Statement):
    """`target = target = value`; `annotation` is the text of `target: annotation = value`."""

    __slots__ = ("annotation", "targets", "value")

    def __init__(
        self, span: Span, targets: list[Expression], value: Expression, annotation: str = ""
    ) -> None:
        self.span = span
        self.targets = targets
        self.value = value
        self.annotation = annotation


class Declare(Statement):
    """`name: annotation` without a value; `name` is "" for an attribute or an item."""

    __slots__ = ("annotation", "name")

    def __init__(self, span: Span, name: str, annotation: str) -> None:
        self.span = span
        self.name = name
        self.annotation = annotation


class AugmentedAssign(Statement):
    """`target operator= value`; `operator` without the `=`."""

    __slots__ = ("operator", "target", "value")

    def __init__(self, span: Span, target: Expression, operator: str, value: Expression) -> None:
        self.span = span
        self.target = target
        self.operator = operator
        self.value = value


class If(Statement):
    """`if`/`elif`/`else`: the branches in order, then the body of `else`."""

    __slots__ = ("branches", "orelse")

    def __init__(
        self,
        span: Span,
        branches: list[tuple[Expression, list[Statement]]],
        orelse: list[Statement],
    ) -> None:
        self.span = span
        self.branches = branches
        self.orelse = orelse


class For(Statement):
    """`for target in iterable: body`, with its `else`."""

    __slots__ = ("body", "iterable", "orelse", "target")

    def __init__(
        self,
        span: Span,
        target: Expression,
        iterable: Expression,
        body: list[Statement],
        orelse: list[Statement],
    ) -> None:
        self.span = span
        self.target = target
        self.iterable = iterable
        self.body = body
        self.orelse = orelse


class While(Statement):
    """`while test: body`, with its `else`."""

    __slots__ = ("body", "orelse", "test")

    def __init__(
        self, span: Span, test: Expression, body: list[Statement], orelse: list[Statement]
    ) -> None:
        self.span = span
        self.test = test
        self.body = body
        self.orelse = orelse


class Break(Statement):
    """`break`."""

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self.span = span


class Continue(Statement):
    """`continue`."""

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self.span = span


class Pass(Statement):
    """`pass`."""

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self.span = span


class Def(Statement):
    """`def name(parameters): body`."""

    __slots__ = ("body", "decorators", "name", "parameters")

    def __init__(
        self,
        span: Span,
        name: str,
        parameters: Parameters,
        body: list[Statement],
        decorators: list[Expression],
    ) -> None:
        self.span = span
        self.name = name
        self.parameters = parameters
        self.body = body
        self.decorators = decorators


class Class(Statement):
    """`class name(bases, metaclass=keyword): body`."""

    __slots__ = ("bases", "body", "decorators", "keywords", "name")

    def __init__(
        self,
        span: Span,
        name: str,
        bases: list[Expression],
        keywords: list[Argument],
        body: list[Statement],
        decorators: list[Expression],
    ) -> None:
        self.span = span
        self.name = name
        self.bases = bases
        self.keywords = keywords
        self.body = body
        self.decorators = decorators


class Return(Statement):
    """`return value`."""

    __slots__ = ("value",)

    def __init__(self, span: Span, value: Expression | None) -> None:
        self.span = span
        self.value = value


class With(Statement):
    """`with context as target, …: body`."""

    __slots__ = ("body", "items")

    def __init__(
        self, span: Span, items: list[tuple[Expression, Expression | None]], body: list[Statement]
    ) -> None:
        self.span = span
        self.items = items
        self.body = body


class Assert(Statement):
    """`assert test, message`."""

    __slots__ = ("message", "test")

    def __init__(self, span: Span, test: Expression, message: Expression | None) -> None:
        self.span = span
        self.test = test
        self.message = message


class Del(Statement):
    """`del targets`."""

    __slots__ = ("targets",)

    def __init__(self, span: Span, targets: list[Expression]) -> None:
        self.span = span
        self.targets = targets


class Raise(Statement):
    """`raise exception from cause`."""

    __slots__ = ("cause", "exception")

    def __init__(self, span: Span, exception: Expression | None, cause: Expression | None) -> None:
        self.span = span
        self.exception = exception
        self.cause = cause


class Try(Statement):
    """`try`/`except`/`else`/`finally`."""

    __slots__ = ("body", "final", "handlers", "orelse")

    def __init__(
        self,
        span: Span,
        body: list[Statement],
        handlers: list[Handler],
        orelse: list[Statement],
        final: list[Statement],
    ) -> None:
        self.span = span
        self.body = body
        self.handlers = handlers
        self.orelse = orelse
        self.final = final


class Handler(Statement):
    """`except exception as name: body`."""

    __slots__ = ("body", "exception", "name")

    def __init__(
        self, span: Span, exception: Expression | None, name: str | None, body: list[Statement]
    ) -> None:
        self.span = span
        self.exception = exception
        self.name = name
        self.body = body


class Import(Statement):
    """`import module as alias, …`: (dotted name, alias or None)."""

    __slots__ = ("names",)

    def __init__(self, span: Span, names: list[tuple[str, str | None]]) -> None:
        self.span = span
        self.names = names


class FromImport(Statement):
    """`from module import name as alias, …`; a name `*` imports all. A relative module begins with
    its dots.
    """

    __slots__ = ("module", "names")

    def __init__(self, span: Span, module: str, names: list[tuple[str, str | None]]) -> None:
        self.span = span
        self.module = module
        self.names = names


class Global(Statement):
    """`global names` or `nonlocal names`."""

    __slots__ = ("keyword", "names")

    def __init__(self, span: Span, keyword: str, names: list[str]) -> None:
        self.span = span
        self.keyword = keyword
        self.names = names


class Match(Statement):
    """`match subject:` with its cases."""

    __slots__ = ("cases", "subject")

    def __init__(self, span: Span, subject: Expression, cases: list[Case]) -> None:
        self.span = span
        self.subject = subject
        self.cases = cases


class Case(Statement):
    """`case pattern as name if guard: body`; `name` is "" where there is none."""

    __slots__ = ("body", "guard", "name", "pattern")

    def __init__(
        self,
        span: Span,
        pattern: Expression,
        name: str,
        guard: Expression | None,
        body: list[Statement],
    ) -> None:
        self.span = span
        self.pattern = pattern
        self.name = name
        self.guard = guard
        self.body = body


class Async(Statement):
    """`async def`, `async for` or `async with`, which is read and never runs."""

    __slots__ = ("body",)

    def __init__(self, span: Span, body: Statement) -> None:
        self.span = span
        self.body = body
