"""The nodes of the syntax tree that have a value, and their parts."""

from __future__ import annotations

from gradcli.errors import Span
from gradcli.language.tree.base import Expression


class Name(Expression):
    """A name that is read or bound."""

    __slots__ = ("name",)

    def __init__(self, span: Span, name: str) -> None:
        self.span = span
        self.name = name


class Constant(Expression):
    """A number, a string, True, False, None or `...`."""

    __slots__ = ("value",)

    def __init__(self, span: Span, value: object) -> None:
        self.span = span
        self.value = value


class FormattedString(Expression):
    """An f-string: constant texts and `Replacement` fields in turn."""

    __slots__ = ("parts",)

    def __init__(self, span: Span, parts: list[str | Replacement]) -> None:
        self.span = span
        self.parts = parts


class Replacement(Expression):
    """One `{value!conversion:format}` field of an f-string; `debug` is the text before `=` in
    `{x=}`.
    """

    __slots__ = ("conversion", "debug", "format", "value")

    def __init__(
        self,
        span: Span,
        value: Expression,
        conversion: str,
        format: FormattedString | None,
        debug: str,
    ) -> None:
        self.span = span
        self.value = value
        self.conversion = conversion
        self.format = format
        self.debug = debug


class Unary(Expression):
    """`-x`, `+x`, `~x`, `not x`."""

    __slots__ = ("operand", "operator")

    def __init__(self, span: Span, operator: str, operand: Expression) -> None:
        self.span = span
        self.operator = operator
        self.operand = operand


class Binary(Expression):
    """A chain of left-associative operators of one precedence, `first op operand op operand …`;
    `**` has one pair.

    Kept flat, so that ten thousand terms on one line need no recursion.
    """

    __slots__ = ("first", "rest")

    def __init__(self, span: Span, first: Expression, rest: list[tuple[str, Expression]]) -> None:
        self.span = span
        self.first = first
        self.rest = rest


class Comparison(Expression):
    """`first op operand op operand …`, with Python's chaining."""

    __slots__ = ("first", "rest")

    def __init__(self, span: Span, first: Expression, rest: list[tuple[str, Expression]]) -> None:
        self.span = span
        self.first = first
        self.rest = rest


class Logical(Expression):
    """`a and b and c`, or the same with `or`."""

    __slots__ = ("operands", "operator")

    def __init__(self, span: Span, operator: str, operands: list[Expression]) -> None:
        self.span = span
        self.operator = operator
        self.operands = operands


class Conditional(Expression):
    """`body if test else orelse`."""

    __slots__ = ("body", "orelse", "test")

    def __init__(self, span: Span, test: Expression, body: Expression, orelse: Expression) -> None:
        self.span = span
        self.test = test
        self.body = body
        self.orelse = orelse


class NamedExpression(Expression):
    """`(name := value)`."""

    __slots__ = ("name", "value")

    def __init__(self, span: Span, name: Name, value: Expression) -> None:
        self.span = span
        self.name = name
        self.value = value


class Lambda(Expression):
    """`lambda parameters: body`."""

    __slots__ = ("body", "parameters")

    def __init__(self, span: Span, parameters: Parameters, body: Expression) -> None:
        self.span = span
        self.parameters = parameters
        self.body = body


class Call(Expression):
    """`function(arguments)`."""

    __slots__ = ("arguments", "function")

    def __init__(self, span: Span, function: Expression, arguments: list[Argument]) -> None:
        self.span = span
        self.function = function
        self.arguments = arguments


class Argument(Expression):
    """One argument of a call; `kind` is `''`, `'*'` or `'**'`, `name` the keyword or None."""

    __slots__ = ("kind", "name", "value")

    def __init__(self, span: Span, kind: str, name: str | None, value: Expression) -> None:
        self.span = span
        self.kind = kind
        self.name = name
        self.value = value


class Attribute(Expression):
    """`value.name`; `name_span` is the place of the name alone."""

    __slots__ = ("name", "name_span", "value")

    def __init__(self, span: Span, value: Expression, name: str, name_span: Span) -> None:
        self.span = span
        self.value = value
        self.name = name
        self.name_span = name_span


class Subscript(Expression):
    """`value[index]`; several indices are a `Tuple`."""

    __slots__ = ("index", "value")

    def __init__(self, span: Span, value: Expression, index: Expression) -> None:
        self.span = span
        self.value = value
        self.index = index


class Slice(Expression):
    """`lower:upper:step` inside a subscript."""

    __slots__ = ("lower", "step", "upper")

    def __init__(
        self,
        span: Span,
        lower: Expression | None,
        upper: Expression | None,
        step: Expression | None,
    ) -> None:
        self.span = span
        self.lower = lower
        self.upper = upper
        self.step = step


class Tuple(Expression):
    """`a, b`."""

    __slots__ = ("elements",)

    def __init__(self, span: Span, elements: list[Expression]) -> None:
        self.span = span
        self.elements = elements


class List(Expression):
    """`[a, b]`."""

    __slots__ = ("elements",)

    def __init__(self, span: Span, elements: list[Expression]) -> None:
        self.span = span
        self.elements = elements


class Set(Expression):
    """`{a, b}`."""

    __slots__ = ("elements",)

    def __init__(self, span: Span, elements: list[Expression]) -> None:
        self.span = span
        self.elements = elements


class Dict(Expression):
    """`{key: value, **more}`; a key of None marks `**more`."""

    __slots__ = ("items",)

    def __init__(self, span: Span, items: list[tuple[Expression | None, Expression]]) -> None:
        self.span = span
        self.items = items


class Starred(Expression):
    """`*value` in a display, a call's positionals or a target."""

    __slots__ = ("value",)

    def __init__(self, span: Span, value: Expression) -> None:
        self.span = span
        self.value = value


class Comprehension(Expression):
    """`[element for …]`; `kind` is list, set, dict or generator; only a dict has a `value`."""

    __slots__ = ("clauses", "element", "kind", "value")

    def __init__(
        self,
        span: Span,
        kind: str,
        element: Expression,
        value: Expression | None,
        clauses: list[ComprehensionFor],
    ) -> None:
        self.span = span
        self.kind = kind
        self.element = element
        self.value = value
        self.clauses = clauses


class ComprehensionFor(Expression):
    """One `for target in iterable if … if …` of a comprehension."""

    __slots__ = ("conditions", "iterable", "target")

    def __init__(
        self, span: Span, target: Expression, iterable: Expression, conditions: list[Expression]
    ) -> None:
        self.span = span
        self.target = target
        self.iterable = iterable
        self.conditions = conditions


class Parameters(Expression):
    """The parameters of a `def` or `lambda`, in order."""

    __slots__ = ("parameters",)

    def __init__(self, span: Span, parameters: list[Parameter]) -> None:
        self.span = span
        self.parameters = parameters


class Parameter(Expression):
    """One parameter; `kind` is `''`, `'*'` (rest, or a bare star when `name` is empty), `'**'` or
    `'keyword'`.
    """

    __slots__ = ("default", "kind", "name")

    def __init__(self, span: Span, name: str, kind: str, default: Expression | None) -> None:
        self.span = span
        self.name = name
        self.kind = kind
        self.default = default


class Yield(Expression):
    """`yield value`, or `yield from value` where it delegates."""

    __slots__ = ("delegates", "value")

    def __init__(self, span: Span, value: Expression | None, delegates: bool) -> None:
        self.span = span
        self.value = value
        self.delegates = delegates


class Await(Expression):
    """`await value`, which is read and never runs."""

    __slots__ = ("value",)

    def __init__(self, span: Span, value: Expression) -> None:
        self.span = span
        self.value = value
