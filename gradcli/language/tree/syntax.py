"""The syntax tree: what the parser builds and the interpreter compiles.

Every node carries the span of source text that it was read from. The parser builds a node from the
parts of the grammar's rule, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from gradcli.errors import Span
from gradcli.record import Record


class Syntax(Record):
    """A node of the tree."""

    span: Span


class Expression(Syntax):
    """What has a value."""


class Statement(Syntax):
    """What is executed."""


@cache
def parts_of(kind: type[Syntax]) -> tuple[str, ...]:
    """The attributes of the nodes of a class that may hold other nodes, in order."""
    return tuple(name for name in kind.fields if name != "span")


def nodes_of(tree: Any) -> Iterator[Syntax]:
    """Every node of a tree or of trees in lists, outer ones first, without recursion."""
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Syntax):
            yield each
            waiting += [getattr(each, name) for name in reversed(parts_of(type(each)))]
        elif isinstance(each, (list, tuple)):
            waiting += reversed(each)


# ---- expressions and their parts ----


class Name(Expression):
    """A name that is read or bound."""

    name: str


class Constant(Expression):
    """A number, a string, True, False, None or `...`."""

    value: object


class FormattedString(Expression):
    """An f-string: constant texts and `Replacement` fields in turn."""

    parts: list[str | Replacement]


class Replacement(Expression):
    """One `{value!conversion:format}` of an f-string; `debug` is the text before `=`."""

    value: Expression
    conversion: str
    format: FormattedString | None
    debug: str


class Unary(Expression):
    """`-x`, `+x`, `~x`, `not x`."""

    operator: str
    operand: Expression


class Binary(Expression):
    """A chain of left-associative operators of one precedence, `first op operand op operand …`;
    `**` has one pair.

    Kept flat, so that ten thousand terms on one line need no recursion.
    """

    first: Expression
    rest: list[tuple[str, Expression]]


class Comparison(Expression):
    """`first op operand op operand …`, with Python's chaining."""

    first: Expression
    rest: list[tuple[str, Expression]]


class Logical(Expression):
    """`a and b and c`, or the same with `or`."""

    operator: str
    operands: list[Expression]


class Conditional(Expression):
    """`body if test else orelse`."""

    test: Expression
    body: Expression
    orelse: Expression


class NamedExpression(Expression):
    """`(name := value)`."""

    name: Name
    value: Expression


class Lambda(Expression):
    """`lambda parameters: body`."""

    parameters: Parameters
    body: Expression


class Call(Expression):
    """`function(arguments)`."""

    function: Expression
    arguments: list[Argument]


class Argument(Expression):
    """One argument of a call; `kind` is `''`, `'*'` or `'**'`, `name` the keyword or None."""

    value: Expression
    kind: str = ""
    name: str | None = None


class Attribute(Expression):
    """`value.name`; `name_span` is the place of the name alone."""

    value: Expression
    name: str
    name_span: Span


class Subscript(Expression):
    """`value[index]`; several indices are a `Tuple`."""

    value: Expression
    index: Expression


class Slice(Expression):
    """`lower:upper:step` inside a subscript."""

    lower: Expression | None
    upper: Expression | None
    step: Expression | None


class Tuple(Expression):
    """`a, b`."""

    elements: list[Expression]


class List(Expression):
    """`[a, b]`."""

    elements: list[Expression]


class Set(Expression):
    """`{a, b}`."""

    elements: list[Expression]


class Dict(Expression):
    """`{key: value, **more}`; a key of None marks `**more`."""

    items: list[tuple[Expression | None, Expression]]


class Starred(Expression):
    """`*value` in a display, a call's positionals or a target."""

    value: Expression


class Comprehension(Expression):
    """`[element for …]`; `kind` is list, set, dict or generator; only a dict has a `value`."""

    kind: str
    element: Expression
    value: Expression | None
    clauses: list[ComprehensionFor]


class ComprehensionFor(Expression):
    """One `for target in iterable if … if …` of a comprehension."""

    target: Expression
    iterable: Expression
    conditions: list[Expression]


class Parameters(Expression):
    """The parameters of a `def` or `lambda`, in order."""

    parameters: list[Parameter]


class Parameter(Expression):
    """One parameter; `kind` is `''`, `'*'` (rest, or a bare star), `'/'`, `'**'` or
    `'keyword'`; `annotation` is the text behind its colon.
    """

    name: str
    kind: str
    default: Expression | None
    annotation: str = ""


class Yield(Expression):
    """`yield value`."""

    value: Expression | None


class YieldFrom(Expression):
    """`yield from value`."""

    value: Expression


class Await(Expression):
    """`await value`, which is read and never runs."""

    value: Expression


# ---- statements and their parts ----


class Command(Statement):
    """A line for whoever runs the session: `.vars`, `exp?`; its text is its span's."""


class ExpressionStatement(Statement):
    """An expression on its own."""

    value: Expression


class Assign(Statement):
    """`target = target = value`; `annotation` is the text of `target: annotation = value`."""

    targets: list[Expression]
    value: Expression
    annotation: str = ""


class Declare(Statement):
    """`name: annotation` without a value; `name` is "" for an attribute or an item."""

    name: str
    annotation: str


class AugmentedAssign(Statement):
    """`target operator= value`; `operator` without the `=`."""

    target: Expression
    operator: str
    value: Expression


class If(Statement):
    """`if`/`elif`/`else`: the branches in order, then the body of `else`."""

    branches: list[tuple[Expression, list[Statement]]]
    orelse: list[Statement]


class For(Statement):
    """`for target in iterable: body`, with its `else`."""

    target: Expression
    iterable: Expression
    body: list[Statement]
    orelse: list[Statement]


class While(Statement):
    """`while test: body`, with its `else`."""

    test: Expression
    body: list[Statement]
    orelse: list[Statement]


class Break(Statement):
    """`break`."""


class Continue(Statement):
    """`continue`."""


class Pass(Statement):
    """`pass`."""


class Def(Statement):
    """`def name(parameters) -> returns: body`; `returns` is the text behind the arrow."""

    name: str
    parameters: Parameters
    body: list[Statement]
    decorators: list[Expression]
    returns: str = ""


class Class(Statement):
    """`class name(bases, metaclass=keyword): body`."""

    name: str
    bases: list[Expression]
    keywords: list[Argument]
    body: list[Statement]
    decorators: list[Expression]


class Return(Statement):
    """`return value`."""

    value: Expression | None


class With(Statement):
    """`with context as target, …: body`."""

    items: list[tuple[Expression, Expression | None]]
    body: list[Statement]


class Assert(Statement):
    """`assert test, message`."""

    test: Expression
    message: Expression | None


class Del(Statement):
    """`del targets`."""

    targets: list[Expression]


class Raise(Statement):
    """`raise exception from cause`."""

    exception: Expression | None
    cause: Expression | None


class Try(Statement):
    """`try`/`except`/`else`/`finally`."""

    body: list[Statement]
    handlers: list[Handler]
    orelse: list[Statement]
    final: list[Statement]


class Handler(Statement):
    """`except exception as name: body`; `takes_groups` is that of `except*`."""

    exception: Expression | None
    name: str | None
    body: list[Statement]
    takes_groups: bool = False


class Import(Statement):
    """`import module as alias, …`: (dotted name, alias or None)."""

    names: list[tuple[str, str | None]]


class FromImport(Statement):
    """`from module import name as alias, …`; a name `*` imports all. A relative module begins with
    its dots.
    """

    module: str
    names: list[tuple[str, str | None]]


class Match(Statement):
    """`match subject:` with its cases."""

    subject: Expression
    cases: list[Case]


class Case(Statement):
    """`case pattern as name if guard: body`."""

    pattern: Expression
    name: str | None
    guard: Expression | None
    body: list[Statement]


class Async(Statement):
    """`async def`, `async for` or `async with`, which is read and never runs."""

    body: Statement


class Global(Statement):
    """`global names` or `nonlocal names`."""

    keyword: str
    names: list[str]
