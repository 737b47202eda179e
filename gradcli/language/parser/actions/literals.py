"""Computes the values of number and string literals."""

from __future__ import annotations

import sys

from gradcli.errors import GradcliError, Span
from gradcli.language.parser.lexer import STRINGS
from gradcli.language.tree.syntax import Constant, Expression, FormattedString, Replacement

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


def number(span: Span, text: str) -> Constant:
    """A number: whole in any base, floating or imaginary."""
    if text[-1] in "jJ":
        return Constant(span, complex(0.0, float(text[:-1])))
    if text[:2] in ("0x", "0X"):
        return Constant(span, int(text, 16))
    if not text.isdigit() and any(sign in text for sign in ".eE"):
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
