"""Colours for entries, from the tokens of the language's own lexer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer as PromptLexer
from prompt_toolkit.styles import Style

from gradcli.language.parser.lexer import BAD_KINDS, KEYWORDS, Lexer

COLORS = Style.from_dict(
    {
        "prompt": "bold",
        "keyword": "ansiblue",
        "number": "ansicyan",
        "string": "ansigreen",
        "comment": "ansibrightblack",
        "command": "ansimagenta",
        "call": "bold",
        "wrong": "ansired",
    }
)

_STRINGS = frozenset(
    {"STRING", "BYTES", "FSTRING_START", "FSTRING_TEXT", "FSTRING_END", "UNCLOSED"}
)
_LONGEST = 100_000
"""A longer entry is shown plain: it is lexed anew at each key."""


class EntryLexer(PromptLexer):
    """The classes of an entry's characters."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """A function from the number of a line to its pieces, each with its class."""
        text = document.text
        lines: list[StyleAndTextTuples] = [[]]
        for style, piece in pieces(text) if len(text) <= _LONGEST else [("", text)]:
            first, *further = piece.split("\n")
            lines[-1].append((style, first))
            lines += [[(style, line)] for line in further]
        return lambda number: lines[number] if number < len(lines) else []


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """A text in pieces, each with the class of its colour; together they are the text."""
    done = 0
    for start, end, name in _tokens(text):
        if start > done:
            yield from _between(text[done:start])
        if end > done:
            yield (f"class:{name}" if name else "", text[max(start, done) : end])
            done = end
    if done < len(text):
        yield from _between(text[done:])


def _tokens(text: str) -> Iterator[tuple[int, int, str]]:
    tokens = Lexer(text)
    while tokens.statement():
        kinds = tokens.kinds
        for at, kind in enumerate(kinds):
            yield tokens.starts[at], tokens.ends[at], _class(kinds, at, kind)


def _class(kinds: list[str], at: int, kind: str) -> str:
    if kind == "NAME":
        return "call" if kinds[at + 1] == "(" else ""
    if kind in _STRINGS:
        return "string"
    if kind in KEYWORDS:
        return "keyword"
    if kind == "NUMBER":
        return "number"
    if kind == "COMMAND":
        return "command"
    return "wrong" if kind in BAD_KINDS else ""


def _between(text: str) -> Iterator[tuple[str, str]]:
    """What stands between tokens: blanks, and comments up to the ends of their lines."""
    for number, line in enumerate(text.split("\n")):
        if number:
            yield "", "\n"
        blanks, sign, comment = line.partition("#")
        if blanks:
            yield "", blanks
        if sign:
            yield "class:comment", sign + comment
