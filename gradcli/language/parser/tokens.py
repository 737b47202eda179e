"""The tokens of the language: words, limits, what begins and ends with what."""

from __future__ import annotations

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

# The quotes of strings of several lines.
STRINGS = ('"""', "'''")

# What stands on the stack of open brackets besides brackets: an expression that is the whole text,
# a string that goes on in the next line (as its quotes), an f-string (as its quotes after `f`, or
# `r` if it is raw), a field of one, and the format of a field.
WHOLE = "whole"
QUOTES = {f"{prefix}{quotes}": quotes for prefix in "fr" for quotes in ('"', "'", *STRINGS)}
FIELD = "field"
FORMAT = "format"
