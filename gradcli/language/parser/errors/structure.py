"""Explains errors of structure where the parser stopped: blocks, brackets, missing parts of a
statement.
"""

from __future__ import annotations

from gradcli.errors import GradcliError, Label, Source, Span
from gradcli.language.parser.lexer import CLOSERS, KEYWORDS, Lexer

# The kinds of token that an expression may end with, and those that begin one and nothing else.
EXPRESSION_ENDS = frozenset(
    {"NAME", "NUMBER", "STRING", "FSTRING_END", "True", "False", "None", "...", ")", "]", "}"}
)
EXPRESSION_STARTS = frozenset(
    {"NAME", "NUMBER", "STRING", "FSTRING_START", "True", "False", "None", "...", "lambda", "not"}
)

# Tokens that begin a line.
LINE_STARTS = ("_NEWLINE", "_INDENT", "_DEDENT", "MISALIGNED")


class Location:
    """The tokens of the statement, the index of the one that does not fit, and what would fit.

    `line` is the index of the first token on the logical line, `open` holds the indices of the
    brackets that are open.
    """

    def __init__(self, source: Source, tokens: Lexer, at: int, expected: set[str]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = at
        self.expected = expected
        self.kinds = tokens.kinds
        self.kind = tokens.kinds[at]
        self.text = tokens.texts[at]
        self.line = self.line_start(at)
        self.open: list[int] = []
        for number in range(at):
            kind = self.kinds[number]
            if kind in CLOSERS:
                self.open.append(number)
            elif self.open and kind == CLOSERS[self.kinds[self.open[-1]]]:
                self.open.pop()

    def line_start(self, at: int) -> int:
        """The first token of the logical line that the token at `at` stands on."""
        while at and self.kinds[at - 1] not in LINE_STARTS:
            at -= 1
        return at

    def first(self) -> str:
        """The first word of the line, or nothing if the reading stopped there."""
        return self.tokens.texts[self.line] if self.line < self.at else ""

    def before(self, count: int = 1) -> str:
        """The kind of the token `count` tokens earlier on the line, or nothing."""
        at = self.at - count
        return self.kinds[at] if at >= self.line else ""

    def touches(self) -> bool:
        """Whether no blank stands between the token and the one before it."""
        return self.at > 0 and self.tokens.ends[self.at - 1] == self.tokens.starts[self.at]

    def at_line_end(self) -> bool:
        """Whether nothing more stands on the line."""
        return self.kind in ("_NEWLINE", "_DEDENT", "$END")

    def span(self, first: int, last: int | None = None) -> Span:
        """The stretch from one token to another, or of one token."""
        end = self.tokens.ends[first if last is None else last]
        return Span(self.source, self.tokens.starts[first], end)

    def here(self) -> Span:
        """The stretch of the token that does not fit."""
        return self.span(self.at)

    def gap(self) -> Span:
        """The empty stretch right behind the token before."""
        end = self.tokens.ends[self.at - 1] if self.at else self.tokens.starts[0]
        return Span(self.source, end, end)

    def shown(self, at: int) -> str:
        """A token as a message quotes it."""
        return f"`{shorten(self.tokens.texts[at])}`"


def shorten(text: str) -> str:
    """A text as a message quotes it: to the end of its line, and not too long."""
    longest = 40
    for at, character in enumerate(text[: longest + 1]):
        if at == longest or not character.isprintable():
            return f"{text[:at]}…"
    return text


def invalid(message: str, span: Span, help: str | None = None) -> GradcliError:
    """The error for text that is no statement."""
    return GradcliError("E001", message, span=span, help=help)


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


def block(location: Location) -> GradcliError | None:
    """A block that is missing, or a line that is indented without reason."""
    if location.kind == "_INDENT":
        return GradcliError("E004", "unexpected indentation", span=location.here())
    if "_INDENT" in location.expected:
        last = location.at - 1
        while location.kinds[last] != ":":
            last -= 1
        first = location.line_start(last)
        message = f"expected an indented block after {location.shown(first)}"
        return GradcliError("E004", message, span=location.span(first, last))
    if {"except", "finally"} <= location.expected:
        message = "expected `except` or `finally` after the block of `try`"
        return invalid(message, location.span(block_start(location, "try")))
    if "@" in location.expected and "def" in location.expected and "NAME" not in location.expected:
        message = "expected `def` or `class` after a decorator"
        return invalid(message, location.span(block_start(location, "@")))
    if location.kind in OWNERS and location.at == location.line:
        return invalid(f"`{location.kind}` belongs to no {OWNERS[location.kind]}", location.here())
    return None


def block_start(location: Location, word: str) -> int:
    """The last token `word` before the location, at the indentation of the location."""
    depth = 0
    at = location.at - 1
    while at and not (location.kinds[at] == word and depth == 0):
        depth += (location.kinds[at] == "_DEDENT") - (location.kinds[at] == "_INDENT")
        at -= 1
    return at


def bracket(location: Location) -> GradcliError | None:
    """A bracket that closes nothing, closes another one, or is never closed."""
    kind = location.kind
    opening = location.open[-1] if location.open else -1
    if kind in CLOSERS.values():
        if not location.open:
            in_string = (
                "FSTRING_START" in location.kinds[location.line : location.at] and kind == "}"
            )
            fix = "for a brace that stands for itself write `}}`" if in_string else None
            return invalid(f"`{kind}` closes nothing", location.here(), fix)
        if CLOSERS[location.kinds[opening]] != kind:
            return GradcliError(
                "E001",
                f"`{kind}` does not close `{location.kinds[opening]}`",
                span=location.here(),
                labels=(Label(location.span(opening), "opened here"),),
            )
    elif location.open and (assigns(location) or never_closed(location, opening)):
        message = f"`{location.kinds[opening]}` is never closed"
        return GradcliError("E003", message, span=location.span(opening))
    return None


def assigns(location: Location) -> bool:
    """Whether the token makes an assignment of what its line begins with."""
    if location.kind != "=" and location.kind not in AUGMENTED:
        return False
    ends, starts = location.tokens.ends, location.tokens.starts
    return "\n" in location.source.text[ends[location.at - 2] : starts[location.at - 1]]


def never_closed(location: Location, opening: int) -> bool:
    """Whether the text ends, a statement begins or another bracket closes before this one does."""
    waiting: list[str] = []
    for at in range(opening, len(location.kinds)):
        kind = location.kinds[at]
        if kind in CLOSERS:
            waiting.append(CLOSERS[kind])
        elif kind in STATEMENT_WORDS:
            return True
        elif kind in CLOSERS.values():
            if waiting.pop() != kind:
                return "\n" in location.span(opening, at).text
            if not waiting:
                return False
    return True


def missing_word(location: Location) -> GradcliError | None:
    """A header without its colon, a conditional without `else`, a starred value on its own."""
    first = location.first()
    if ":" in location.expected and first in KEYWORDS and not location.open and first != "lambda":
        if location.at_line_end():
            fix = f"write `{shorten(location.span(location.line, location.at - 1).text)}:`"
            return invalid(f"expected `:` to end the `{first}` line", location.gap(), fix)
        if location.kind in EXPRESSION_STARTS:
            return invalid(f"expected `:` to end the `{first}` line", location.gap())
    if "else" in location.expected and "or" in location.expected:
        message = f"expected `else` after {location.shown(location.at - 1)}"
        return invalid(message, location.gap(), "a conditional has two values: `a if test else b`")
    if location.at_line_end() or location.kind == "=":
        at = location.at - 1
        while at > location.line and location.kinds[at] != "*":
            at -= 1
        if location.kinds[at] == "*" and (
            at == location.line or location.kinds[at - 1] in ("=", "return")
        ):
            message = "a starred value stands only beside others, or in brackets"
            return invalid(message, location.span(at, location.at - 1))
    return None


def missing_expression(location: Location) -> GradcliError | None:
    """An operator, bracket or word that lacks what must follow it."""
    if "NAME" not in location.expected:
        return None
    what = "an expression" if "NUMBER" in location.expected else "a name"
    if location.at == location.line:
        return invalid(f"expected {what}", location.here()) if location.at_line_end() else None
    message = f"expected {what} after {location.shown(location.at - 1)}"
    if location.at_line_end():
        return invalid(message, location.span(location.at - 1))
    return invalid(f"{message}, found {location.shown(location.at)}", location.here())


def unexpected(location: Location) -> GradcliError:
    """A token that does not fit, with no better word for it."""
    after = f" after {location.shown(location.at - 1)}" if location.at > location.line else ""
    fixed = sorted(kind for kind in location.expected if kind in ("(", "=", "in", "import", "def"))
    if fixed and (len(location.expected) == 1 or fixed == ["import"]):
        message = f"expected `{fixed[0]}`{after}"
        return invalid(message, location.gap() if location.at_line_end() else location.here())
    if location.at_line_end():
        return invalid(f"the line ends too early{after}", location.gap())
    fix = None
    if location.before() in EXPRESSION_ENDS and location.kind in EXPRESSION_STARTS:
        fix = "an operator or a comma may be missing between them"
    return invalid(f"unexpected {location.shown(location.at)}{after}", location.here(), fix)
