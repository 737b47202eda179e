"""The location at which the parser stopped, and the tokens around it."""

from __future__ import annotations

from gradcli.errors import GradcliError, Source, Span
from gradcli.language.parser.lexer import Lexer
from gradcli.language.parser.tokens import CLOSERS

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
