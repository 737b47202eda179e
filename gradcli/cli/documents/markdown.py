"""Markdown: the blocks of programs in a text, and the outputs that stand behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gradcli.cli.documents.cells import Cell, Output
from gradcli.errors import Source
from gradcli.record import Record

_PROGRAMS = frozenset(
    {"python", "py", "python3", "pycon", "ipython", "ipython3", "grad", "gradcli", "code-cell"}
)
_OUTPUTS = frozenset({"", "text", "txt", "output", "out", "plaintext", "console", "result"})
_LEFT_OUT = frozenset({"skip", "ignore", "notest"})
"""Words behind the language of a block that is not to be run."""

_FENCE = re.compile(r"(\s*(?:>\s*)*)(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r"\W*(the )?(output|out|result|prints?|gives|which prints)\W*", re.IGNORECASE)
"""What may stand between a program and its output."""


class Block(Record):
    """A fenced block.

    Attributes:
        words: those behind the opening fence.
        first, last: the lines between the fences, from 0, `last` not among them.
        margin: what stands before each of them.
        lines: they, without the margin.
    """

    words: Sequence[str]
    first: int
    last: int
    margin: str
    lines: Sequence[str]


def markdown_cells(path: str, text: str) -> list[Cell]:
    """The programs of a Markdown text: its blocks of `python` and `grad`, `>>>` and `...` taken
    off.
    """
    lines = text.split("\n")
    blocks = _blocks(lines)
    cells = []
    for block, behind in zip(blocks, [*blocks[1:], None], strict=False):
        language, *words = [*block.words, ""]
        if language not in _PROGRAMS or not _LEFT_OUT.isdisjoint(words):
            continue
        if any(line.startswith(">>>") for line in block.lines):
            cells.append(_session(path, block))
            continue
        source = Source(path, _joined(block.lines), block.first + 1)
        outputs = []
        if behind is not None and _is_output(behind, lines[block.last + 1 : behind.first - 1]):
            shown = "\n".join(behind.lines)
            outputs.append(Output(shown, None, behind.first, behind.last, behind.margin))
        cells.append(Cell(source, block.first, "last", outputs))
    return cells


def replaced(text: str, changes: Iterable[tuple[int, int, Sequence[str]]]) -> str:
    """A text with other lines in place of some, each change from a line, up to one behind."""
    lines = text.split("\n")
    for first, last, new in sorted(changes, reverse=True):
        lines[first:last] = new
    return "\n".join(lines)


def _blocks(lines: Sequence[str]) -> list[Block]:
    """All fenced blocks; one that is not closed reaches to the end."""
    fenced = []
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        at += 1
        if opening is None:
            continue
        margin, fence = opening[1], opening[2]
        first = at
        while at < len(lines) and not _closes(lines[at], fence):
            at += 1
        inside = [_without(line, margin) for line in lines[first:at]]
        words = opening[3].replace("{", " ").replace("}", " ").replace(",", " ").split()
        fenced.append(Block(words, first, at, margin, inside))
        at += 1
    return fenced


def _closes(line: str, fence: str) -> bool:
    bare = line.strip("> \t")
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def _without(line: str, margin: str) -> str:
    """A line of a block that is set in."""
    if line.startswith(margin):
        return line[len(margin) :]
    return line.removeprefix(margin.rstrip()) if margin.strip() else line.lstrip(" \t")


def _is_output(block: Block, between: Sequence[str]) -> bool:
    """Whether a block right behind a program is what that prints."""
    words = [line for line in between if line.strip()]
    shell = bool(block.lines) and block.lines[0].startswith("$ ")
    near = not words or (len(words) == 1 and _HEADING.fullmatch(words[0]) is not None)
    return near and not shell and (block.words[0] if block.words else "") in _OUTPUTS


def _session(path: str, block: Block) -> Cell:
    """A block with prompts: its lines without them, in place of outputs blank ones.

    As in a doctest an output ends at a blank line, `<BLANKLINE>` stands for one inside it, and a
    prompt without an output prints nothing.
    """
    program: list[str] = []
    outputs: list[Output] = []
    shown: list[str] | None = None  # the output that is being read
    for number, line in enumerate(block.lines, block.first):
        prompt = line[:3] if line[3:4] in ("", " ") else ""
        is_code = prompt == ">>>" or (prompt == "..." and shown == [])
        if is_code:
            shown = []
            if prompt == ">>>":
                outputs.append(Output("", number + 1, number + 1, number + 1, block.margin))
            outputs[-1].first = outputs[-1].last = number + 1
        elif shown is not None and line.strip():
            shown.append("" if line.strip() == "<BLANKLINE>" else line)
            outputs[-1].text = "\n".join(shown)
            outputs[-1].last = number + 1
        else:
            shown = None
        program.append(line[4:] if is_code else "")
    return Cell(Source(path, _joined(program), block.first + 1), block.first, "all", outputs)


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
