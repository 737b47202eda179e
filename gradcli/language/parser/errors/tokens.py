"""Tokens that are none, and Python that the language leaves out."""

from __future__ import annotations

from gradcli.errors import GradcliError, Span
from gradcli.language.parser.errors.location import EXPRESSION_STARTS, Place, invalid
from gradcli.language.parser.tokens import (
    BAD_KINDS,
    BRACKET_LIMIT,
    CLOSERS,
    INDENTATION_LIMIT,
    STRINGS,
)

# Characters that word processors, formulas and other languages bring along, and what to write.
REPLACEMENTS = {
    "“": '"',
    "”": '"',
    "„": '"',
    "«": '"',
    "»": '"',
    "‘": "'",
    "’": "'",
    "−": "-",
    "–": "-",
    "—": "-",
    "×": "*",
    "·": "*",
    "⋅": "*",
    "∗": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "²": "**2",
    "³": "**3",
    "…": "...",
    "，": ",",
    "：": ":",
    "（": "(",
    "）": ")",
    "\u00a0": " ",
}

# Characters that begin something in other languages, and what stands for it here.
HABITS = {
    "!": "use `not`",
    "?": "a conditional is `a if test else b`",
}


def unreadable(place: Place) -> GradcliError | None:
    """A token that is none."""
    kind, text, span = place.kind, place.text, place.here()
    if kind not in BAD_KINDS:
        return None
    if kind == "CHARACTER":
        return unexpected_character(place)
    if kind == "UNCLOSED":
        return unclosed_string(place)
    if kind == "TOO_DEEP" and text in CLOSERS:
        return GradcliError("E005", f"more than {BRACKET_LIMIT} brackets are open", span=span)
    if kind == "TOO_DEEP":
        message = f"more than {INDENTATION_LIMIT} blocks inside one another"
        return GradcliError("E005", message, raises="IndentationError", span=span)
    if kind == "MISALIGNED" and "\t" in text:
        return GradcliError(
            "E004",
            "tabs and blanks are mixed in the indentation",
            raises="TabError",
            span=span,
            help="indent with blanks only",
        )
    if kind == "MISALIGNED":
        return GradcliError("E004", "the line is indented as no open block is", span=span)
    if kind == "BYTES":
        message = "bytes are outside the language"
        return GradcliError("E007", message, span=span, help="without the `b` it is a string")
    return invalid("the text ends after a `\\`", Span(span.source, span.start, span.start + 1))


def unexpected_character(place: Place) -> GradcliError:
    """A character that begins no token."""
    # A word comes here whole: the first character that no name may hold is to blame, or else the
    # one that no name may begin with.
    offset, character = next(
        (
            (offset, character)
            for offset, character in enumerate(place.text)
            if not f"_{character}".isidentifier()
        ),
        (0, place.text[0]),
    )
    start = place.tokens.starts[place.at] + offset
    span = Span(place.source, start, start + 1)
    if character == "\\":
        return GradcliError("E002", "a `\\` joins lines only at the very end of one", span=span)
    shown = f"`{character}`" if character.isprintable() else f"U+{ord(character):04X}"
    mend = REPLACEMENTS.get(character)
    help = HABITS.get(character) if mend is None else f"write `{mend}`"
    return GradcliError("E002", f"unexpected character {shown}", span=span, help=help)


def unclosed_string(place: Place) -> GradcliError:
    """A string or an f-string without an end."""
    kinds = place.kinds[: place.at]
    if kinds.count("FSTRING_START") > kinds.count("FSTRING_END"):
        at = max(at for at, kind in enumerate(kinds) if kind == "FSTRING_START")
        if place.open and place.open[-1] > at:
            return GradcliError(
                "E003",
                f"`{kinds[place.open[-1]]}` in the f-string is never closed",
                span=place.span(place.open[-1]),
                help="for a brace that stands for itself write `{{`",
            )
        return GradcliError("E003", "the f-string is never closed", span=place.span(at))
    start = place.tokens.starts[place.at]
    quotes = Span(place.source, start, start + (3 if place.text.startswith(STRINGS) else 1))
    return GradcliError("E003", "the string is never closed", span=quotes)


def outside_language(place: Place) -> GradcliError | None:
    """Python that the language leaves out."""
    kind, previous, span = place.kind, place.before(), place.here()
    word = place.first()
    what = None
    if kind in ("async", "await", "yield") and previous not in (".", "def", "as"):
        what = f"`{kind}`"
    elif word in ("match", "type") and place.at == place.line + 1 and kind in EXPRESSION_STARTS:
        what = f"the `{word}` statement"
        span = place.span(place.line)
    elif kind == "*" and previous == "except":
        what = "`except*`"
    elif kind in (".", "...") and previous == "from":
        what = "a relative import"
    elif kind == "/" and previous in ("(", ",", "lambda") and "**" in place.expected:
        what = "`/` among the parameters"
    return (
        None if what is None else GradcliError("E007", f"{what} is outside the language", span=span)
    )
