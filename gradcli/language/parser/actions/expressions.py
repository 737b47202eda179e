"""Builds the expressions of the syntax tree, one function for each rule of the grammar.

The parser calls them with the span of what was read and the values of the rule's parts, in order; a
part is the text of a token, a tree, a list of parts, or None where it is absent.
"""

from __future__ import annotations

from collections.abc import Callable

from gradcli.errors import GradcliError, Label, Span
from gradcli.language.parser.actions.targets import check_target
from gradcli.language.tree.syntax import (
    Argument,
    Attribute,
    Binary,
    Call,
    Comparison,
    Comprehension,
    ComprehensionFor,
    Conditional,
    Constant,
    Dict,
    Expression,
    Lambda,
    List,
    Logical,
    Name,
    NamedExpression,
    Parameter,
    Parameters,
    Slice,
    Starred,
    Tuple,
)

# Operators of one level form one flat chain.
LEVELS = {
    operator: level
    for level, operators in enumerate(("|", "^", "&", "<< >>", "+ -", "* / // % @", "**"))
    for operator in operators.split()
}


# ---- atoms ----


def longer_tuple_display(span: Span, elements: list[Expression], last: Expression) -> Tuple:
    """A tuple that ends with an element."""
    elements.append(last)
    return Tuple(span, elements)


# ---- comprehensions ----


def clause(
    span: Span, target: Expression, iterable: Expression, conditions: list[Expression] | None
) -> ComprehensionFor:
    """`for target in iterable if condition`."""
    check_target(target)
    return ComprehensionFor(span, target, iterable, conditions or [])


# ---- operators ----


# A chain grows in place. What stands before the operator is the chain's beginning only if it starts
# where the chain does; otherwise it is a parenthesised operand.


def binary(span: Span, left: Expression, operator: str, right: Expression) -> Binary:
    """`left operator right`."""
    if (
        type(left) is Binary
        and left.span.start == span.start
        and LEVELS[left.rest[0][0]] == LEVELS[operator]
    ):
        left.rest.append((operator, right))
        left.span = span
        return left
    return Binary(span, left, [(operator, right)])


def comparison(span: Span, left: Expression, operator: str, right: Expression) -> Comparison:
    """`left operator right`, which chains."""
    if type(left) is Comparison and left.span.start == span.start:
        left.rest.append((operator, right))
        left.span = span
        return left
    return Comparison(span, left, [(operator, right)])


def two_word_comparison(
    span: Span, left: Expression, first: str, second: str, right: Expression
) -> Comparison:
    """`left not in right`, `left is not right`."""
    return comparison(span, left, f"{first} {second}", right)


def logical(span: Span, left: Expression, operator: str, right: Expression) -> Logical:
    """`left and right`, `left or right`."""
    if type(left) is Logical and left.operator == operator and left.span.start == span.start:
        left.operands.append(right)
        left.span = span
        return left
    return Logical(span, operator, [left, right])


def named(span: Span, text: str, value: Expression) -> NamedExpression:
    """`name := value`."""
    place = Span(span.source, span.start, span.start + len(text))
    return NamedExpression(span, Name(place, text), value)


# ---- attributes, calls, subscripts ----


def attribute(span: Span, value: Expression, text: str) -> Attribute:
    """`value.name`."""
    return Attribute(span, value, text, Span(span.source, span.end - len(text), span.end))


def call(span: Span, function: Expression, arguments: list[Argument] | None) -> Call:
    """`function(arguments)`; E006 for arguments in an impossible order or a keyword given twice."""
    if arguments is None:
        return Call(span, function, [])
    keywords: dict[str, Argument] = {}
    unpacked: Argument | None = None
    for argument in arguments:
        if argument.name is not None:
            if argument.name in keywords:
                raise GradcliError(
                    "E006",
                    f"the keyword argument `{argument.name}` is given twice",
                    span=argument.span,
                    labels=(Label(keywords[argument.name].span, "first given here"),),
                )
            keywords[argument.name] = argument
        elif argument.kind == "**":
            unpacked = argument
        elif unpacked is not None or (keywords and argument.kind == ""):
            raise GradcliError(
                "E006",
                "an argument without a name stands after one with a name",
                span=argument.span,
                help="move it to the front, or give it its name",
            )
        elif argument.value.span is argument.span and len(arguments) > 1:
            # Only a generator without parentheses shares its argument's span.
            raise GradcliError(
                "E006",
                "a generator beside other arguments needs parentheses",
                span=argument.span,
                help="write them around it",
            )
    return Call(span, function, arguments)


# ---- functions ----


def checked_parameters(owner: Span, parameters: list[Parameter] | None) -> Parameters:
    """The parameters of a function, those after `*` marked as keyword-only.

    Raises E006 if their order is impossible or a name stands twice.
    """
    if not parameters:
        return Parameters(Span(owner.source, owner.start, owner.start), [])
    seen: dict[str, Parameter] = {}
    star: Parameter | None = None
    default: Parameter | None = None
    previous: Parameter | None = None
    for number, parameter in enumerate(parameters):
        before = parameters[:number]
        if parameter.name in seen:
            raise GradcliError(
                "E006",
                f"the parameter `{parameter.name}` is named twice",
                span=parameter.span,
                labels=(Label(seen[parameter.name].span, "first named here"),),
            )
        if parameter.name:
            seen[parameter.name] = parameter
        if previous is not None and previous.kind == "**":
            raise GradcliError("E006", "a parameter stands after `**`", span=parameter.span)
        if parameter.kind == "/":
            if star is not None or previous is None or any(p.kind == "/" for p in before):
                raise GradcliError("E006", "`/` stands once, before `*`", span=parameter.span)
        elif parameter.kind == "*":
            if star is not None:
                raise GradcliError("E006", "`*` stands twice", span=parameter.span)
            star = parameter
        elif parameter.kind == "" and star is not None:
            parameter.kind = "keyword"
        elif parameter.default is not None:
            default = parameter
        elif parameter.kind == "" and default is not None:
            raise GradcliError(
                "E006",
                f"the parameter `{parameter.name}` has no default and stands after one that has",
                span=parameter.span,
                labels=(Label(default.span, "has a default"),),
            )
        previous = parameter
    named_after = any(parameter.kind == "keyword" for parameter in parameters)
    if star is not None and not star.name and not named_after:
        raise GradcliError("E006", "a bare `*` needs a parameter after it", span=star.span)
    last = parameters[-1].span.end
    return Parameters(Span(owner.source, parameters[0].span.start, last), parameters)


NODES: dict[str, Callable[..., Expression | tuple[Expression | None, Expression]]] = {
    "true": lambda span: Constant(span, True),
    "false": lambda span: Constant(span, False),
    "none": lambda span: Constant(span, None),
    "ellipsis": lambda span: Constant(span, ...),
    "empty_tuple": lambda span: Tuple(span, []),
    "list_display": lambda span, elements: List(span, elements or []),
    "dict_display": lambda span, entries: Dict(span, entries or []),
    "entry": lambda span, key, value: (key, value),
    "merged_entry": lambda span, value: (None, value),
    "generator": lambda span, *parts: _comprehension(span, "generator", *parts),
    "list_comprehension": lambda span, *parts: _comprehension(span, "list", *parts),
    "set_comprehension": lambda span, *parts: _comprehension(span, "set", *parts),
    "dict_comprehension": lambda span, *parts: Comprehension(span, "dict", *parts),
    # `**` is a chain of its own, since it groups to the right.
    "power": lambda span, base, operator, exponent: Binary(span, base, [(operator, exponent)]),
    "conditional": lambda span, body, test, orelse: Conditional(span, test, body, orelse),
    "argument": lambda span, value: Argument(span, "", None, value),
    "generator_argument": lambda span, *parts: Argument(
        span, "", None, _comprehension(span, "generator", *parts)
    ),
    "keyword_argument": lambda span, text, value: Argument(span, "", text, value),
    "starred_argument": lambda span, value: Argument(span, "*", None, value),
    "keywords_argument": lambda span, value: Argument(span, "**", None, value),
    "unpacked_index": lambda span, value: Tuple(span, [Starred(span, value)]),
    "slicing": lambda span, lower, colon, upper, second_colon, step: Slice(
        span, lower, upper, step
    ),
    "lambda_expression": lambda span, parameters, body: Lambda(
        span, checked_parameters(span, parameters), body
    ),
    "lambda_parameter": lambda span, text, default: Parameter(span, text, "", default),
    "rest_parameter": lambda span, text, annotation=None: Parameter(
        span, text or "", "*", None, annotation_text(annotation)
    ),
    "positional_marker": lambda span: Parameter(span, "", "/", None),
    "keywords_parameter": lambda span, text, annotation=None: Parameter(
        span, text, "**", None, annotation_text(annotation)
    ),
}
"""The rules whose node differs from their parts by little: an order, a word, what is left out."""


def annotation_text(annotation: Expression | None) -> str:
    """The text of an annotation, "" for none."""
    return "" if annotation is None else annotation.span.text


def _comprehension(
    span: Span, kind: str, element: Expression, clauses: list[ComprehensionFor]
) -> Comprehension:
    return Comprehension(span, kind, element, None, clauses)
