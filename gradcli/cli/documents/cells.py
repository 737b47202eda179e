"""The pieces of a program that a document holds, and the outputs that stand beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO

from gradcli.errors import GradcliError, Source, Span
from gradcli.language.parser.lexer import Lexer
from gradcli.record import Record


class Output(Record):
    """An output that stands in a document.

    Attributes:
        text: what it says, without its line end.
        line: the line of the cell behind which it stands, as the cell's source counts; None where
            it is that of the whole cell.
        first, last: the lines of the document that hold it, from 0, `last` not among them; for a
            notebook the number of its cell in the file, twice.
        margin: what stands before its first line; `further` before each other, where that differs.
    """

    text: str
    line: int | None
    first: int
    last: int
    margin: str = ""
    further: str | None = None

    def lines(self, text: str) -> list[str]:
        """The lines of the document with another text in its place; none for no text."""
        further = self.margin if self.further is None else self.further
        lines = [f"{further}{line}".rstrip() for line in text.split("\n")]
        lines[0] = f"{self.margin}{lines[0].removeprefix(further.rstrip()).lstrip(' ')}"
        return lines if text else []


class Cell(Record):
    """A piece of program.

    Attributes:
        place: the number of its first line in the document, from 0; in a notebook the number of the
            cell in the file.
        shows: the values that it shows as they are computed: "all" as after `>>>`, "last", "none".
        outputs: those that stand in the document and can be read without running it.
    """

    source: Source
    place: int
    shows: str
    outputs: Sequence[Output] = ()


_MAGIC = re.compile(r"([^\S\n]*)([%!?].*|[\w.*]+\?\??[^\S\n]*)$")
"""A line that IPython takes for itself."""


def without_magics(source: Source) -> tuple[Source, list[Span]]:
    """The text of a cell without IPython's lines, in whose place `pass` stands, and those lines.

    Raises:
        GradcliError: E007 for a cell magic, which makes the cell a text of another kind.
    """
    tokens = Lexer("")
    kept: list[str] = []
    skipped: list[Span] = []
    unfinished = False
    offset = 0
    for line in StringIO(source.text):
        magic = None if unfinished else _MAGIC.match(line)
        if magic:
            span = Span(source, offset + magic.start(2), offset + len(line.rstrip()))
            if magic[2].startswith("%%"):
                raise GradcliError(
                    "E007",
                    f"the cell magic {magic[2].split()[0]} makes this cell something else than a"
                    " program",
                    span=span,
                    help="take the line out, or make the cell a text",
                )
            skipped.append(span)
        replaced = line if magic is None else f"{magic[1]}pass\n"
        offset += len(line)
        kept.append(replaced)
        unfinished = _goes_on(tokens, replaced, unfinished)
    return Source(source.name, "".join(kept), source.first_line), skipped


def _goes_on(tokens: Lexer, line: str, unfinished: bool) -> bool:
    """Whether the next line is still inside a bracket or a string."""
    tokens.feed(line)
    if not unfinished:
        tokens.begin()
        if tokens.next_line() is None:
            return False
    return not tokens.line()
