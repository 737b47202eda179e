"""Recognises syntax of other languages and common typing errors, and gives the fix."""

from __future__ import annotations

from gradcli.errors import GradcliError
from gradcli.language.parser.errors.structure import EXPRESSION_STARTS, Location, invalid, shorten
from gradcli.language.parser.lexer import KEYWORDS

# Operators of other languages, as the two tokens that they are split into.
FOREIGN_OPERATORS = {
    ("&", "&"): "and",
    ("|", "|"): "or",
    ("==", "="): "==",
    ("!=", "="): "!=",
    ("<", ">"): "!=",
    ("=", "<"): "<=",
    ("=", ">"): ">=",
}


def foreign_syntax(location: Location) -> GradcliError | None:
    """Syntax of another language, or a common typing error, with its fix."""
    for check in (foreign_operator, number_and_more, foreign_statement, equals, keyword_as_name):
        error = check(location)
        if error is not None:
            return error
    return None


def foreign_operator(location: Location) -> GradcliError | None:
    """`a && b`, `x++` and their like."""
    at = location.at
    fix = FOREIGN_OPERATORS.get((location.before(), location.kind))
    if fix is not None and location.touches():
        span = location.span(at - 1, at)
        return invalid(f"`{span.text}` is no operator", span, f"use `{fix}`")
    sign = location.before()
    if (
        sign in ("+", "-")
        and location.before(2) == sign
        and location.before(3) in ("NAME", "]")
        and location.kind not in EXPRESSION_STARTS
    ):
        span = location.span(at - 2, at - 1)
        target = shorten(location.span(location.line, at - 3).text)
        return invalid(f"`{span.text}` is no operator", span, f"write `{target} {sign}= 1`")
    return None


def number_and_more(location: Location) -> GradcliError | None:
    """`2x`, `1.2.3`, `1_`: a number with letters or a second number right behind it; `x.1`."""
    if (
        location.kind == "NUMBER"
        and location.text[0] == "."
        and location.before() in ("NAME", ")", "]")
    ):
        index = shorten(location.text[1:])
        return invalid("expected a name after `.`", location.here(), f"an element is `[{index}]`")
    if (
        location.before() != "NUMBER"
        or location.kind not in ("NAME", "NUMBER")
        or not location.touches()
    ):
        return None
    span = location.span(location.at - 1, location.at)
    number, rest = location.tokens.texts[location.at - 1], location.text
    product = (
        location.kind == "NAME" and rest[0] != "_" and rest not in ("e", "E") and number != "0"
    )
    return invalid(
        f"`{shorten(span.text)}` is neither a number nor a name",
        span,
        f"write `{shorten(number)} * {shorten(rest)}`" if product else None,
    )


def foreign_statement(location: Location) -> GradcliError | None:
    """`else if`, `elsif`, `print x`, braces around a block."""
    at, kind, first = location.at, location.kind, location.first()
    if kind == "if" and location.before() == "else":
        return invalid("`else if` is no statement", location.span(at - 1, at), "write `elif`")
    if first in ("elseif", "elsif") and at == location.line + 1:
        return invalid(f"`{first}` is no statement", location.span(location.line), "write `elif`")
    if first == "print" and at == location.line + 1 and kind in EXPRESSION_STARTS:
        end = at
        while location.kinds[end + 1] not in ("_NEWLINE", ";"):
            end += 1
        return invalid(
            "`print` is a function",
            location.span(location.line, end),
            f"write `print({shorten(location.span(at, end).text)})`",
        )
    if kind == "{" and ":" in location.expected and not location.open:
        return invalid(
            f"expected `:` to end the `{first}` line",
            location.here(),
            "a block is the indented lines after `:`, without braces",
        )
    if kind in ("else", "elif", "except", "finally") and location.line < at:
        return invalid(
            f"unexpected `{kind}`", location.here(), f"`{kind}` begins a line of its own"
        )
    return None


def equals(location: Location) -> GradcliError | None:
    """`=` and `:=` where they do not stand."""
    if location.kind == ":=":
        return invalid(
            "`:=` stands only inside an expression",
            location.here(),
            "use `=`, or put parentheses around it",
        )
    if location.kind != "=":
        return None
    if location.before() in KEYWORDS and location.at == location.line + 1:
        return invalid(
            f"`{location.first()}` is a word of the language and cannot be a name",
            location.span(location.line),
        )
    header = location.kinds[location.line]
    opening = location.open[-1] if location.open else 0
    call = location.open and location.kinds[opening] == "(" and opening > location.line
    if call and location.kinds[opening - 1] in ("NAME", ")", "]") and header != "def":
        message = "a keyword argument is `name=value`"
        return invalid(message, location.here(), "use `==` to compare")
    if location.open or header in ("if", "elif", "while", "assert", "return"):
        message = "`=` does not stand in an expression"
        return invalid(message, location.here(), "use `==` to compare")
    return None


def keyword_as_name(location: Location) -> GradcliError | None:
    """`x.lambda`, `def if():`, `in = 3`."""
    named = location.before() in (".", "def", "class", "as", "import", "for", "global")
    assigned = location.at == location.line and location.kinds[
        location.at + 1 : location.at + 2
    ] == ["="]
    if location.text in KEYWORDS and (named or assigned):
        message = f"`{location.text}` is a word of the language and cannot be a name"
        return invalid(message, location.here())
    return None
