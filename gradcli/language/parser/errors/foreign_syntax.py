"""What is written so in another language, or was in mind when this was typed."""

from __future__ import annotations

from gradcli.errors import GradcliError
from gradcli.language.parser.errors.location import EXPRESSION_STARTS, Place, invalid, shorten
from gradcli.language.parser.tokens import KEYWORDS

# Operators of other languages, as the two tokens that they are cut into.
FOREIGN_OPERATORS = {
    ("&", "&"): "and",
    ("|", "|"): "or",
    ("==", "="): "==",
    ("!=", "="): "!=",
    ("<", ">"): "!=",
    ("=", "<"): "<=",
    ("=", ">"): ">=",
}


def slip(place: Place) -> GradcliError | None:
    """A slip with a known mend."""
    for look in (foreign_operator, number_and_more, foreign_statement, equals, keyword_as_name):
        error = look(place)
        if error is not None:
            return error
    return None


def foreign_operator(place: Place) -> GradcliError | None:
    """`a && b`, `x++` and their like."""
    at = place.at
    mend = FOREIGN_OPERATORS.get((place.before(), place.kind))
    if mend is not None and place.touches():
        span = place.span(at - 1, at)
        return invalid(f"`{span.text}` is no operator", span, f"use `{mend}`")
    sign = place.before()
    if (
        sign in ("+", "-")
        and place.before(2) == sign
        and place.before(3) in ("NAME", "]")
        and place.kind not in EXPRESSION_STARTS
    ):
        span = place.span(at - 2, at - 1)
        target = shorten(place.span(place.line, at - 3).text)
        return invalid(f"`{span.text}` is no operator", span, f"write `{target} {sign}= 1`")
    return None


def number_and_more(place: Place) -> GradcliError | None:
    """`2x`, `1.2.3`, `1_`: a number with letters or a second number right behind it; `x.1`."""
    if place.kind == "NUMBER" and place.text[0] == "." and place.before() in ("NAME", ")", "]"):
        index = shorten(place.text[1:])
        return invalid("expected a name after `.`", place.here(), f"an element is `[{index}]`")
    if place.before() != "NUMBER" or place.kind not in ("NAME", "NUMBER") or not place.touches():
        return None
    span = place.span(place.at - 1, place.at)
    number, rest = place.tokens.texts[place.at - 1], place.text
    product = place.kind == "NAME" and rest[0] != "_" and rest not in ("e", "E") and number != "0"
    return invalid(
        f"`{shorten(span.text)}` is neither a number nor a name",
        span,
        f"write `{shorten(number)} * {shorten(rest)}`" if product else None,
    )


def foreign_statement(place: Place) -> GradcliError | None:
    """`else if`, `elsif`, `print x`, braces around a block."""
    at, kind, first = place.at, place.kind, place.first()
    if kind == "if" and place.before() == "else":
        return invalid("`else if` is no statement", place.span(at - 1, at), "write `elif`")
    if first in ("elseif", "elsif") and at == place.line + 1:
        return invalid(f"`{first}` is no statement", place.span(place.line), "write `elif`")
    if first == "print" and at == place.line + 1 and kind in EXPRESSION_STARTS:
        end = at
        while place.kinds[end + 1] not in ("_NEWLINE", ";"):
            end += 1
        return invalid(
            "`print` is a function",
            place.span(place.line, end),
            f"write `print({shorten(place.span(at, end).text)})`",
        )
    if kind == "{" and ":" in place.expected and not place.open:
        return invalid(
            f"expected `:` to end the `{first}` line",
            place.here(),
            "a block is the indented lines after `:`, without braces",
        )
    if kind in ("else", "elif", "except", "finally") and place.line < at:
        return invalid(f"unexpected `{kind}`", place.here(), f"`{kind}` begins a line of its own")
    return None


def equals(place: Place) -> GradcliError | None:
    """`=` and `:=` where they do not stand."""
    if place.kind == ":=":
        return invalid(
            "`:=` stands only inside an expression",
            place.here(),
            "use `=`, or put parentheses around it",
        )
    if place.kind != "=":
        return None
    if place.before() in KEYWORDS and place.at == place.line + 1:
        return invalid(
            f"`{place.first()}` is a word of the language and cannot be a name",
            place.span(place.line),
        )
    header = place.kinds[place.line]
    opening = place.open[-1] if place.open else 0
    call = place.open and place.kinds[opening] == "(" and opening > place.line
    if call and place.kinds[opening - 1] in ("NAME", ")", "]") and header != "def":
        message = "a keyword argument is `name=value`"
        return invalid(message, place.here(), "use `==` to compare")
    if place.open or header in ("if", "elif", "while", "assert", "return"):
        message = "`=` does not stand in an expression"
        return invalid(message, place.here(), "use `==` to compare")
    return None


def keyword_as_name(place: Place) -> GradcliError | None:
    """`x.lambda`, `def if():`, `in = 3`."""
    named = place.before() in (".", "def", "class", "as", "import", "for", "global")
    assigned = place.at == place.line and place.kinds[place.at + 1 : place.at + 2] == ["="]
    if place.text in KEYWORDS and (named or assigned):
        message = f"`{place.text}` is a word of the language and cannot be a name"
        return invalid(message, place.here())
    return None
