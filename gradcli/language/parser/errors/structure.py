"""Blocks, brackets, and what a statement lacks."""

from __future__ import annotations

from gradcli.errors import GradcliError, Label
from gradcli.language.parser.errors.location import (
    EXPRESSION_ENDS,
    EXPRESSION_STARTS,
    Place,
    invalid,
    shorten,
)
from gradcli.language.parser.tokens import CLOSERS, KEYWORDS

# What the clauses of compound statements go on from.
OWNERS = {
    "elif": "`if`",
    "else": "`if`, `for`, `while` or `try`",
    "except": "`try`",
    "finally": "`try`",
}

# Words that stand in no expression: after a bracket, they show that it was never closed.
STATEMENT_WORDS = frozenset(
    {
        "def", "class", "return", "import", "from", "raise", "assert", "del", "pass", "global",
        "nonlocal", "while", "with", "try", "break", "continue", "elif", "except", "finally",
    }
)  # fmt: skip

AUGMENTED = frozenset(
    {"+=", "-=", "*=", "/=", "//=", "%=", "@=", "**=", "&=", "|=", "^=", "<<=", ">>="}
)


def block(place: Place) -> GradcliError | None:
    """A block that is missing, or a line that is indented without reason."""
    if place.kind == "_INDENT":
        return GradcliError("E004", "unexpected indentation", span=place.here())
    if "_INDENT" in place.expected:
        last = place.at - 1
        while place.kinds[last] != ":":
            last -= 1
        first = place.line_start(last)
        message = f"expected an indented block after {place.shown(first)}"
        return GradcliError("E004", message, span=place.span(first, last))
    if {"except", "finally"} <= place.expected:
        message = "expected `except` or `finally` after the block of `try`"
        return invalid(message, place.span(block_start(place, "try")))
    if "@" in place.expected and "def" in place.expected and "NAME" not in place.expected:
        message = "expected `def` or `class` after a decorator"
        return invalid(message, place.span(block_start(place, "@")))
    if place.kind in OWNERS and place.at == place.line:
        return invalid(f"`{place.kind}` belongs to no {OWNERS[place.kind]}", place.here())
    return None


def block_start(place: Place, word: str) -> int:
    """The last token `word` before the place that is indented as the place is."""
    depth = 0
    at = place.at - 1
    while at and not (place.kinds[at] == word and depth == 0):
        depth += (place.kinds[at] == "_DEDENT") - (place.kinds[at] == "_INDENT")
        at -= 1
    return at


def bracket(place: Place) -> GradcliError | None:
    """A bracket that closes nothing, closes another one, or is never closed."""
    kind = place.kind
    opening = place.open[-1] if place.open else -1
    if kind in CLOSERS.values():
        if not place.open:
            in_string = "FSTRING_START" in place.kinds[place.line : place.at] and kind == "}"
            mend = "for a brace that stands for itself write `}}`" if in_string else None
            return invalid(f"`{kind}` closes nothing", place.here(), mend)
        if CLOSERS[place.kinds[opening]] != kind:
            return GradcliError(
                "E001",
                f"`{kind}` does not close `{place.kinds[opening]}`",
                span=place.here(),
                labels=(Label(place.span(opening), "opened here"),),
            )
    elif place.open and (assigns(place) or never_closed(place, opening)):
        message = f"`{place.kinds[opening]}` is never closed"
        return GradcliError("E003", message, span=place.span(opening))
    return None


def assigns(place: Place) -> bool:
    """Whether the token makes an assignment of what its line begins with."""
    if place.kind != "=" and place.kind not in AUGMENTED:
        return False
    ends, starts = place.tokens.ends, place.tokens.starts
    return "\n" in place.source.text[ends[place.at - 2] : starts[place.at - 1]]


def never_closed(place: Place, opening: int) -> bool:
    """Whether the text ends, a statement begins or another bracket closes before this one does."""
    waiting: list[str] = []
    for at in range(opening, len(place.kinds)):
        kind = place.kinds[at]
        if kind in CLOSERS:
            waiting.append(CLOSERS[kind])
        elif kind in STATEMENT_WORDS:
            return True
        elif kind in CLOSERS.values():
            if waiting.pop() != kind:
                return "\n" in place.span(opening, at).text
            if not waiting:
                return False
    return True


def missing_word(place: Place) -> GradcliError | None:
    """A header without its colon, a conditional without `else`, a starred value on its own."""
    first = place.first()
    if ":" in place.expected and first in KEYWORDS and not place.open and first != "lambda":
        if place.at_line_end():
            mend = f"write `{shorten(place.span(place.line, place.at - 1).text)}:`"
            return invalid(f"expected `:` to end the `{first}` line", place.gap(), mend)
        if place.kind in EXPRESSION_STARTS:
            return invalid(f"expected `:` to end the `{first}` line", place.gap())
    if "else" in place.expected and "or" in place.expected:
        message = f"expected `else` after {place.shown(place.at - 1)}"
        return invalid(message, place.gap(), "a conditional has two values: `a if test else b`")
    if place.at_line_end() or place.kind == "=":
        at = place.at - 1
        while at > place.line and place.kinds[at] != "*":
            at -= 1
        if place.kinds[at] == "*" and (at == place.line or place.kinds[at - 1] in ("=", "return")):
            message = "a starred value stands only beside others, or in brackets"
            return invalid(message, place.span(at, place.at - 1))
    return None


def missing_expression(place: Place) -> GradcliError | None:
    """An operator, bracket or word that lacks what must follow it."""
    if "NAME" not in place.expected:
        return None
    what = "an expression" if "NUMBER" in place.expected else "a name"
    if place.at == place.line:
        return invalid(f"expected {what}", place.here()) if place.at_line_end() else None
    message = f"expected {what} after {place.shown(place.at - 1)}"
    if place.at_line_end():
        return invalid(message, place.span(place.at - 1))
    return invalid(f"{message}, found {place.shown(place.at)}", place.here())


def unexpected(place: Place) -> GradcliError:
    """A token that does not fit, with no better word for it."""
    after = f" after {place.shown(place.at - 1)}" if place.at > place.line else ""
    fixed = sorted(kind for kind in place.expected if kind in ("(", "=", "in", "import", "def"))
    if fixed and (len(place.expected) == 1 or fixed == ["import"]):
        message = f"expected `{fixed[0]}`{after}"
        return invalid(message, place.gap() if place.at_line_end() else place.here())
    if place.at_line_end():
        return invalid(f"the line ends too early{after}", place.gap())
    mend = None
    if place.before() in EXPRESSION_ENDS and place.kind in EXPRESSION_STARTS:
        mend = "an operator or a comma may be missing between them"
    return invalid(f"unexpected {place.shown(place.at)}{after}", place.here(), mend)
