"""Builds the expressions of the syntax tree, one function for each rule of the grammar, and
checks what is assigned to, changed in place or deleted; computes the values of
numbers and strings.

The parser calls them with the span of what was read and the values of the rule's parts, in order; a
part is the text of a token, a tree, a list of parts, or None where it is absent.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from gradcli.errors import GradcliError, Label, Span
from gradcli.language.parser.lexer import STRINGS
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.syntax import Constant, Expression, FormattedString, Replacement

# --- literals -------------------------------------------------------------------------------------


# Python's own limit on the decimal digits of a whole number: the time to read them grows with the
# square of their number.
DIGIT_LIMIT = 4300

ESCAPES = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\n": "",
}
OCTAL = tuple("01234567")
HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
FLOATING = frozenset(".eE")


def number(span: Span, text: str) -> Constant:
    """A number: whole in any base, floating or imaginary."""
    if text.isdecimal() and text[0] != "0" and len(text) <= DIGIT_LIMIT:  # as most are, or:
        return Constant(span, int(text))
    if text[-1].isdecimal() and "." in text:
        return Constant(span, float(text))
    if text[-1] in "jJ":
        return Constant(span, complex(0.0, float(text[:-1])))
    if text[:2] in ("0x", "0X"):
        return Constant(span, int(text, 16))
    if not text.isdigit() and not FLOATING.isdisjoint(text):
        return Constant(span, float(text))
    if len(text) > DIGIT_LIMIT and text[:2].isdigit():
        raise GradcliError(
            "E005",
            f"a whole number of more than {DIGIT_LIMIT} digits",
            span=span,
            help="write a floating number such as `1e300`, or `0x…`",
        )
    try:
        return Constant(span, int(text, 0))
    except ValueError:
        digits = text.lstrip("0_")
        raise GradcliError(
            "E001",
            "a whole number cannot start with 0",
            span=span,
            help=f"write `{digits}`, or `0o{digits}` for an octal number",
        ) from None


def string(span: Span, text: str) -> Constant:
    """A plain string."""
    opening = text.index(text[-1])
    quotes = 3 if text.startswith(STRINGS, opening) else 1
    content = text[opening + quotes : -quotes]
    if "\r" in content:
        content = content.replace("\r\n", "\n")
    if "\\" in content and text[0] not in "rR":
        content = unescape(content, span, opening + quotes)
    return Constant(span, content)


def bytes_literal(span: Span, text: str) -> Constant:
    """Bytes."""
    quoted = text.lstrip("bB") if text[0] in "bB" else text[0] + text[2:]
    if not quoted.isascii():
        raise GradcliError("E001", "bytes hold ASCII characters alone", span=span)
    content = str(string(span, quoted).value)
    return Constant(span, content.encode("latin-1", "backslashreplace"))


def formatted_string(
    span: Span, opening: str, pieces: list[str | Replacement] | None, _closing: str
) -> FormattedString:
    """An f-string."""
    raw = "r" in opening.lower()
    return FormattedString(span, [_decode(piece, raw, span) for piece in pieces or ()])


def _decode(
    piece: str | Replacement, raw: bool, span: Span, doubled: bool = True
) -> str | Replacement:
    """A piece of an f-string with its escapes replaced, also inside the formats of its fields."""
    if isinstance(piece, str):
        text = piece.replace("\r\n", "\n")
        if doubled:
            text = text.replace("{{", "{").replace("}}", "}")
        return text if raw or "\\" not in text else unescape(text, span, None)
    if piece.format is not None:
        parts = piece.format.parts
        parts[:] = [_decode(part, raw, span, doubled=False) for part in parts]
    return piece


def replacement(
    span: Span,
    value: Expression,
    debug: Span | None,
    conversion: str | None,
    format: FormattedString | None,
) -> Replacement:
    """One field of an f-string."""
    if conversion is not None and conversion[1:] not in ("r", "s", "a"):
        raise GradcliError(
            "E001",
            f"`{conversion}` is no conversion",
            span=span,
            help="the conversions are `!r`, `!s` and `!a`",
        )
    shown = "" if debug is None else span.source.text[span.start + 1 : debug.end]
    return Replacement(span, value, conversion[1:] if conversion else "", format, shown)


def field_format(span: Span, pieces: list[str | Replacement] | None) -> FormattedString:
    """The format of a field."""
    return FormattedString(Span(span.source, span.start + 1, span.end), pieces or [])


def debug(span: Span, _sign: str) -> Span:
    """The position of the `=` in `{value=}`."""
    return span


def adjacent_strings(
    span: Span, first: Constant | FormattedString, rest: list[Constant | FormattedString]
) -> Constant | FormattedString:
    """Strings side by side, joined."""
    parts: list[str | Replacement] = []
    for part in (first, *rest):
        if isinstance(part, FormattedString):
            parts += part.parts
        else:
            parts.append(str(part.value))
    if isinstance(first, Constant) and all(isinstance(part, Constant) for part in rest):
        return Constant(span, "".join(map(str, parts)))
    return FormattedString(span, parts)


def unescape(content: str, span: Span, offset: int | None) -> str:
    """A string's content with its escapes replaced; raises E001 at `offset` in the token."""
    pieces: list[str] = []
    done = 0
    while (at := content.find("\\", done)) >= 0:
        pieces.append(content[done:at])
        mark = content[at + 1 : at + 2]
        done = at + 2
        if mark in ESCAPES:
            pieces.append(ESCAPES[mark])
        elif mark and mark in OCTAL:
            while done < at + 4 and content[done : done + 1] in OCTAL:
                done += 1
            pieces.append(chr(int(content[at + 1 : done], 8)))
        elif mark and mark in "xuUN":
            character, done = _coded_character(content, at)
            if character is None:
                place = span
                if offset is not None:
                    start = span.start + offset + at
                    place = Span(span.source, start, start + done - at)
                raise GradcliError(
                    "E001",
                    f"`{content[at:done]}` is no character",
                    span=place,
                    help="write the backslash twice, or `r` before the string, to keep it as it is",
                )
            pieces.append(character)
        else:
            pieces.append("\\" + mark)
    pieces.append(content[done:])
    return "".join(pieces)


def _coded_character(content: str, at: int) -> tuple[str | None, int]:
    """The character that the escape at `at` names, None if there is none, and where it ends."""
    mark = content[at + 1]
    if mark == "N":
        close = content.find("}", at)
        if content[at + 2 : at + 3] != "{" or close < 0:
            return None, at + 2
        from unicodedata import lookup

        try:
            return lookup(content[at + 3 : close]), close + 1
        except KeyError:
            return None, close + 1
    length = {"x": 2, "u": 4, "U": 8}[mark]
    digits = content[at + 2 : at + 2 + length]
    end = at + 2 + len(digits)
    if len(digits) < length or not HEXADECIMAL.issuperset(digits):
        return None, end
    code = int(digits, 16)
    return (chr(code), end) if code <= sys.maxunicode else (None, end)


# --- expressions ----------------------------------------------------------------------------------


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
    "generator_argument": lambda span, *parts: tree.Argument(
        span, _comprehension(span, "generator", *parts)
    ),
    "keyword_argument": lambda span, text, value: tree.Argument(span, value, "", text),
    "starred_argument": lambda span, value: tree.Argument(span, value, "*"),
    "keywords_argument": lambda span, value: tree.Argument(span, value, "**"),
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
