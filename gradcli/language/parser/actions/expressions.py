"""Builds the expressions of the syntax tree, one function for each rule of the grammar, and
checks what is assigned to, changed in place or deleted.

The parser calls them with the span of what was read and the values of the rule's parts, in order; a
part is the text of a token, a tree, a list of parts, or None where it is absent.
"""

from __future__ import annotations

from collections.abc import Callable

from gradcli.errors import GradcliError, Label, Span
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.syntax import Expression

# Operators of one level form one flat chain.
LEVELS = {
    operator: level
    for level, operators in enumerate(("|", "^", "&", "<< >>", "+ -", "* / // % @", "**"))
    for operator in operators.split()
}


# ---- atoms ----


def longer_tuple_display(span: Span, elements: list[Expression], last: Expression) -> tree.Tuple:
    """A tuple that ends with an element."""
    elements.append(last)
    return tree.Tuple(span, elements)


# ---- comprehensions ----


def clause(
    span: Span,
    target: Expression,
    iterable: Expression,
    conditions: list[Expression] | None,
) -> tree.ComprehensionFor:
    """`for target in iterable if condition`."""
    check_target(target)
    return tree.ComprehensionFor(span, target, iterable, conditions or [])


# ---- operators ----


# A chain grows in place. What stands before the operator is the chain's beginning only if it starts
# where the chain does; otherwise it is a parenthesised operand.


def binary(span: Span, left: Expression, operator: str, right: Expression) -> tree.Binary:
    """`left operator right`."""
    if (
        type(left) is tree.Binary
        and left.span.start == span.start
        and LEVELS[left.rest[0][0]] == LEVELS[operator]
    ):
        left.rest.append((operator, right))
        left.span = span
        return left
    return tree.Binary(span, left, [(operator, right)])


def comparison(span: Span, left: Expression, operator: str, right: Expression) -> tree.Comparison:
    """`left operator right`, which chains."""
    if type(left) is tree.Comparison and left.span.start == span.start:
        left.rest.append((operator, right))
        left.span = span
        return left
    return tree.Comparison(span, left, [(operator, right)])


def two_word_comparison(
    span: Span, left: Expression, first: str, second: str, right: Expression
) -> tree.Comparison:
    """`left not in right`, `left is not right`."""
    return comparison(span, left, f"{first} {second}", right)


def logical(span: Span, left: Expression, operator: str, right: Expression) -> tree.Logical:
    """`left and right`, `left or right`."""
    if type(left) is tree.Logical and left.operator == operator and left.span.start == span.start:
        left.operands.append(right)
        left.span = span
        return left
    return tree.Logical(span, operator, [left, right])


def named(span: Span, text: str, value: Expression) -> tree.NamedExpression:
    """`name := value`."""
    place = Span(span.source, span.start, span.start + len(text))
    return tree.NamedExpression(span, tree.Name(place, text), value)


# ---- attributes, calls, subscripts ----


def attribute(span: Span, value: Expression, text: str) -> tree.Attribute:
    """`value.name`."""
    return tree.Attribute(span, value, text, Span(span.source, span.end - len(text), span.end))


def call(span: Span, function: Expression, arguments: list[tree.Argument] | None) -> tree.Call:
    """`function(arguments)`; E006 for arguments in an impossible order or a keyword given twice."""
    if arguments is None:
        return tree.Call(span, function, [])
    keywords: dict[str, tree.Argument] = {}
    unpacked: tree.Argument | None = None
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
    return tree.Call(span, function, arguments)


# ---- functions ----


def checked_parameters(owner: Span, parameters: list[tree.Parameter] | None) -> tree.Parameters:
    """The parameters of a function, those after `*` marked as keyword-only.

    Raises E006 if their order is impossible or a name stands twice.
    """
    if not parameters:
        return tree.Parameters(Span(owner.source, owner.start, owner.start), [])
    seen: dict[str, tree.Parameter] = {}
    star: tree.Parameter | None = None
    default: tree.Parameter | None = None
    previous: tree.Parameter | None = None
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
    return tree.Parameters(Span(owner.source, parameters[0].span.start, last), parameters)


NODES: dict[str, Callable[..., Expression | tuple[Expression | None, Expression]]] = {
    "true": lambda span: tree.Constant(span, True),
    "false": lambda span: tree.Constant(span, False),
    "none": lambda span: tree.Constant(span, None),
    "ellipsis": lambda span: tree.Constant(span, ...),
    "empty_tuple": lambda span: tree.Tuple(span, []),
    "list_display": lambda span, elements: tree.List(span, elements or []),
    "dict_display": lambda span, entries: tree.Dict(span, entries or []),
    "entry": lambda span, key, value: (key, value),
    "merged_entry": lambda span, value: (None, value),
    "generator": lambda span, *parts: _comprehension(span, "generator", *parts),
    "list_comprehension": lambda span, *parts: _comprehension(span, "list", *parts),
    "set_comprehension": lambda span, *parts: _comprehension(span, "set", *parts),
    "dict_comprehension": lambda span, *parts: tree.Comprehension(span, "dict", *parts),
    # `**` is a chain of its own, since it groups to the right.
    "power": lambda span, base, operator, exponent: tree.Binary(span, base, [(operator, exponent)]),
    "conditional": lambda span, body, test, orelse: tree.Conditional(span, test, body, orelse),
    "argument": lambda span, value: tree.Argument(span, "", None, value),
    "generator_argument": lambda span, *parts: tree.Argument(
        span, "", None, _comprehension(span, "generator", *parts)
    ),
    "keyword_argument": lambda span, text, value: tree.Argument(span, "", text, value),
    "starred_argument": lambda span, value: tree.Argument(span, "*", None, value),
    "keywords_argument": lambda span, value: tree.Argument(span, "**", None, value),
    "unpacked_index": lambda span, value: tree.Tuple(span, [tree.Starred(span, value)]),
    "slicing": lambda span, lower, colon, upper, second_colon, step: tree.Slice(
        span, lower, upper, step
    ),
    "lambda_expression": lambda span, parameters, body: tree.Lambda(
        span, checked_parameters(span, parameters), body
    ),
    "lambda_parameter": lambda span, text, default: tree.Parameter(span, text, "", default),
    "rest_parameter": lambda span, text, annotation=None: tree.Parameter(
        span, text or "", "*", None, annotation_text(annotation)
    ),
    "positional_marker": lambda span: tree.Parameter(span, "", "/", None),
    "keywords_parameter": lambda span, text, annotation=None: tree.Parameter(
        span, text, "**", None, annotation_text(annotation)
    ),
}
"""The rules whose node differs from their parts by little: an order, a word, what is left out."""


def annotation_text(annotation: Expression | None) -> str:
    """The text of an annotation, "" for none."""
    return "" if annotation is None else annotation.span.text


def _comprehension(
    span: Span, kind: str, element: Expression, clauses: list[tree.ComprehensionFor]
) -> tree.Comprehension:
    return tree.Comprehension(span, kind, element, None, clauses)


# --- targets of assignments -----------------------------------------------------------------------


DESCRIPTIONS: dict[type[Expression], str] = {
    tree.Await: "`await`",
    tree.Binary: "an operation",
    tree.Call: "a call",
    tree.Comparison: "a comparison",
    tree.Comprehension: "a comprehension",
    tree.Conditional: "a conditional",
    tree.Dict: "a dictionary",
    tree.FormattedString: "an f-string",
    tree.Lambda: "a lambda",
    tree.List: "a list",
    tree.Logical: "an operation",
    tree.NamedExpression: "`:=`",
    tree.Set: "a set",
    tree.Starred: "a starred expression",
    tree.Tuple: "a tuple",
    tree.Unary: "an operation",
    tree.Yield: "`yield`",
    tree.YieldFrom: "`yield`",
}


def check_target(target: Expression, help: str | None = None) -> None:
    """Passes what can be assigned to; anything else is an E006, with this help."""
    # The nesting of displays is bounded, as that of all brackets is.
    if isinstance(target, (tree.Tuple, tree.List)):
        starred = 0
        for element in target.elements:
            inner = element
            if isinstance(element, tree.Starred):
                inner = element.value
                starred += 1
                if starred > 1:
                    raise GradcliError("E006", "two targets are starred", span=element.span)
            check_target(inner, help)
    elif not isinstance(target, (tree.Name, tree.Attribute, tree.Subscript)):
        raise GradcliError(
            "E006",
            f"{describe(target)} cannot be assigned to",
            span=target.span,
            help=help,
        )


def check_single_target(target: Expression, what: str) -> None:
    """Passes one name, attribute or subscript; anything else is an E006."""
    if not isinstance(target, (tree.Name, tree.Attribute, tree.Subscript)):
        raise GradcliError("E006", f"{describe(target)} cannot {what}", span=target.span)


def check_deletable(target: Expression) -> None:
    """Passes what can be deleted; anything else is an E006."""
    if isinstance(target, (tree.Tuple, tree.List)):
        for element in target.elements:
            check_deletable(element)
    else:
        check_single_target(target, "be deleted")


def describe(expression: Expression) -> str:
    """What an expression is, in words."""
    if isinstance(expression, tree.Constant):
        if isinstance(expression.value, str):
            return "a string"
        if isinstance(expression.value, (bool, type(None), type(...))):
            return f"`{expression.span.text}`"
        return "a number"
    return DESCRIPTIONS[type(expression)]
