"""The tokens of the language: their kinds, and the patterns that the lexer finds them by."""

from __future__ import annotations

import re

# fmt: off
KEYWORDS = frozenset((
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
))
# fmt: on

# Kinds of tokens that no program may hold: a character that begins no token, a string without an
# end, an opening bracket or a block nested too deeply, a line indented as no open block is, a
# backslash that ends the text.
BAD_KINDS = frozenset({"CHARACTER", "UNCLOSED", "TOO_DEEP", "MISALIGNED", "BACKSLASH"})

# Python's own limits.
BRACKET_LIMIT = 200
INDENTATION_LIMIT = 100

# The words at the start of a line that go on with the compound statement before it, and the tokens
# that begin a statement of several lines.
CONTINUATIONS = frozenset({"elif", "else", "except", "finally"})
COMPOUNDS = frozenset(
    {"if", "while", "for", "with", "try", "def", "class", "match", "async", "@", "_INDENT"}
)

CLOSERS = {"(": ")", "[": "]", "{": "}"}

# What stands on the stack of open brackets besides brackets: an expression that is the whole text,
# a string that goes on in the next line (as its quotes), an f-string (as its quotes after `f`, or
# `r` if it is raw), a field of one, and the format of a field.
WHOLE = "whole"
STRINGS = ('"""', "'''")
QUOTES = {f"{prefix}{quotes}": quotes for prefix in "fr" for quotes in ('"', "'", *STRINGS)}
FIELD = "field"
FORMAT = "format"

(
    NAME, NUMBER, OPERATOR, OPENING, CLOSING, NEWLINE, STRING, FORMATTED, OTHER_NAME, COMMENT,
    TRIPLE, UNCLOSED, BACKSLASH, END, CHARACTER,
) = range(1, 16)  # fmt: skip

DIGITS = r"[0-9](?:_?[0-9])*+"

# One group for each of the numbers above. No repetition can be retried, so time grows with the
# length of the text alone.
TOKEN = re.compile(
    rf"""(?:[ \t\f]|\\\r?\n(?!\Z))*+(?:
    ([A-Za-z_][A-Za-z_0-9]*+)(?![\w'"])
  | (0[xX](?:_?[0-9a-fA-F])++ | 0[bB](?:_?[01])++ | 0[oO](?:_?[0-7])++
    | (?:{DIGITS}(?:\.(?:{DIGITS})?)? | \.{DIGITS})(?:[eE][+-]?{DIGITS})?[jJ]?)
  | (\*\*=? | //=? | <<=? | >>=? | -> | := | != | \.\.\. | [-+*/%@&|^<>=]=? | [,:.;~])
  | ([(\[{{]) | ([)\]}}])
  | (\r?\n)
  | ((?:[rRuU]|[bB][rR]?|[rR][bB])?(?:
      '''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''
    | '(?!'')[^'\\\n]*+(?:\\(?:\r\n|.)[^'\\\n]*+)*+'
    | \"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+\"""
    | "(?!"")[^"\\\n]*+(?:\\(?:\r\n|.)[^"\\\n]*+)*+"))
  | ((?:[fF][rR]?|[rR][fF])(?:'''|\"""|'|"))
  | ([^\W\d]\w*+)
  | (\#[^\n]*+)
  | ('''|\""") | (['"][^\n]*+)
  | (\\(?:\r?\n)?\Z)
  | (\Z)
  | (.)
)""",
    re.VERBOSE | re.DOTALL,
)

# From the start of a line over empty lines and comments to the next line's first token.
MARGIN = re.compile(
    r"(?:\A\ufeff)?(?:[ \t\f]*+(?:#[^\n]*+)?\r?\n)*+([ \t\f]*+)(?:#[^\n]*+\Z)?(\w*)"
)

# A line for the session: `.vars`, or a name with question marks, `exp?`, `f??`, `?exp`.
COMMAND = re.compile(
    r"(?:\.[A-Za-z](?:[^\n]*[^\s])? | [A-Za-z_][\w.]*+[ \t]*+\?\??"
    r" | \?\??[ \t]*+[A-Za-z_][\w.]*+ ) (?=[ \t\r]*+(?:\n|\Z))",
    re.VERBOSE,
)

# Inside a field of an f-string, outside brackets of its own, these end the expression.
FIELD_END = (
    r"[ \t\f\r\n]*+(?:(?P<DEBUG>=[ \t\f\r\n]*+(?=[:}]|!(?!=)))"
    r"|(?P<CONVERSION>!(?!=)\w*+)|(?P<FORMAT>:)|(?P<CLOSE>\}))"
)


def text_pattern(opening: str, format: bool) -> str:
    """The text of an f-string, or a field's format, up to the next field or the closing quotes."""
    quotes = QUOTES[opening]
    quote = quotes[0]
    line_end = r"\n" if len(quotes) == 1 else ""
    choices = [rf"[^{{}}\\{quote}{line_end}]"]
    if opening[0] == "f":
        choices.append(r"\\N\{[^{}\n]*+\}")
    choices += [r"\\(?:\r\n|[^{}])", r"\\(?=[{}])"]
    if not format:
        choices += [r"\{\{", r"\}\}"]
    if len(quotes) == 3:
        choices.append(rf"{quote}(?!{quote}{quote})")
    return f"(?s:{'|'.join(choices)})*+"
