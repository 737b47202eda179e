"""The cells of a document: pieces of a program, and the outputs that stand beside them. In Markdown
they are blocks, with outputs behind them; in a notebook what an .ipynb file has as cells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

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


# --- Markdown -------------------------------------------------------------------------------------


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


# --- notebooks ------------------------------------------------------------------------------------


_FORMAT = 4
"""The format of notebooks since 2015."""


def notebook_cells(path: str, text: str) -> list[Cell]:
    """The code cells of a notebook, numbered from 1 as they count when all are run in order.

    Raises E503 for what is no notebook of Python.
    """
    cells: list[Cell] = []
    for place, cell in _code_cells(_loaded(path, text)):
        source = Source(f"{path}:cell {len(cells) + 1}", joined(cell["source"]))
        shows = "none" if source.text.rstrip().endswith(";") else "last"
        cells.append(Cell(source, place, shows, [Output(_printed(cell), None, place, place)]))
    return cells


def with_outputs(path: str, text: str, outputs: Mapping[int, str]) -> str:
    """The text of a notebook with other outputs of cells, by the number of the cell in the file.

    An output is text of its standard output; pictures and numbers of runs go with what was there.
    """
    notebook = _loaded(path, text)
    for place, output in outputs.items():
        cell = notebook["cells"][place]
        lines = output.splitlines(keepends=True)
        cell["outputs"] = (
            [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
        )
        cell["execution_count"] = None
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _loaded(path: str, text: str) -> dict[str, Any]:
    """The notebook as data, its cells checked."""
    try:
        notebook = json.loads(text)
    except RecursionError as error:
        raise GradcliError("E503", f"{path} is no notebook: it is nested too deep") from error
    except ValueError as error:
        raise GradcliError("E503", f"{path} is no notebook: it is not JSON: {error}") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        older = isinstance(notebook, dict) and "worksheets" in notebook
        raise GradcliError(
            "E503",
            f"{path} is no notebook of format {_FORMAT}: it has no list of cells",
            help="`jupyter nbconvert --to notebook` brings an older one to it" if older else None,
        )
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    language = kernel.get("language", "python") if isinstance(kernel, dict) else "python"
    if language != "python":
        raise GradcliError("E503", f"{path} is a notebook of {language}, not of Python")
    return notebook


def _code_cells(notebook: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The cells that hold code, each with its number in the file."""
    for place, cell in enumerate(notebook["cells"]):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield place, {**cell, "source": cell.get("source", "")}


def joined(text: Any) -> str:
    """A text as notebooks hold it, whole or in a list of lines."""
    if isinstance(text, list):
        return "".join(each for each in text if isinstance(each, str))
    return text if isinstance(text, str) else ""


def _printed(cell: dict[str, Any]) -> str:
    """What a cell printed on standard output, and the value that it showed."""
    parts = []
    for output in cell.get("outputs") or ():
        if not isinstance(output, dict):
            continue
        kind, data = output.get("output_type"), output.get("data")
        if kind == "stream" and output.get("name") == "stdout":
            parts.append(joined(output.get("text")))
        elif kind == "execute_result" and isinstance(data, dict):
            parts.append(joined(data.get("text/plain")))
        elif kind == "error":
            parts.append(f"{output.get('ename')}: {joined(output.get('evalue'))}")
    ended = [part if part.endswith("\n") else f"{part}\n" for part in parts]
    return "".join(ended).rstrip("\n")
