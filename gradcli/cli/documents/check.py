"""Runs a document and compares the outputs that stand in it with what its programs print.

Its cells are pieces of a program, and the outputs that stand beside them: in Markdown blocks, with
outputs behind them; in a notebook what an .ipynb file has as cells.

An output is what a program prints whatever the blanks, with `...` standing for anything, and a
number of four digits or more to a unit of its last one. What differs is told as text, and as JSON
of the schema `gradcli.document/1`.

Comments say what a statement prints too: `print(x) # tensor(4.)`, or in the lines below it. A
comment is an output where it is marked as one (`# => 4`, `# prints: 4`), and where it has a number
or a word like `True` in it and nothing but what tensors and the real output are made of: `# 2.
Backward pass` is a remark.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import ndiff
from io import StringIO
from typing import TYPE_CHECKING, Any

from gradcli.arrays.files.formats import replace
from gradcli.errors import GradcliError, Source, Span, SyntaxErrors
from gradcli.language.parser.lexer import Lexer
from gradcli.language.parser.parser import parse_program
from gradcli.language.tree.syntax import ExpressionStatement, Statement
from gradcli.record import Record
from gradcli.running.arguments.files import read_program
from gradcli.running.arguments.options import Options
from gradcli.running.plots import show_open_figures
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run
from gradcli.session import StatementResult
from gradcli.show.diagnostics.human import location

if TYPE_CHECKING:
    from gradcli.running.arguments.words import Argument


# --- cells ----------------------------------------------------------------------------------------


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
        unfinished = _block_goes_on(tokens, replaced, unfinished)
    return Source(source.name, "".join(kept), source.first_line), skipped


def _block_goes_on(tokens: Lexer, line: str, unfinished: bool) -> bool:
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
        if behind is not None and _is_output_block(
            behind, lines[block.last + 1 : behind.first - 1]
        ):
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


def _is_output_block(block: Block, between: Sequence[str]) -> bool:
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


# --- comparison -----------------------------------------------------------------------------------


# --- cells that run -------------------------------------------------------------------------------


class Parsed(Record):
    """A cell and its statements."""

    cell: Cell
    statements: Sequence[Statement]

    def shows(self, statement: Statement) -> bool:
        """Whether the value of a statement is shown, as a notebook shows that of the last one."""
        shows = self.cell.shows
        return isinstance(statement, ExpressionStatement) and (
            shows == "all" or (shows == "last" and statement is self.statements[-1])
        )


def parsed(terminal: Terminal, path: str, text: str) -> list[Parsed]:
    """The cells of a document, all of them read before the first one runs.

    Lines that are IPython's are left out, and a note says so of each.

    Raises:
        GradcliError: E503 for what is no notebook, E007 for a cell that is no program,
            `SyntaxErrors` with all that cannot be read.
    """
    cells = (notebook_cells if path.endswith(".ipynb") else markdown_cells)(path, text)
    programs = []
    errors: list[GradcliError] = []
    for cell in cells:
        try:
            source, skipped = without_magics(cell.source)
            for span in skipped:
                terminal.note(f"{location(span)}: `{span.text}` is skipped")
            programs.append(Parsed(cell, parse_program(source)))
        except GradcliError as error:
            errors += getattr(error, "errors", [error])
    if errors:
        raise SyntaxErrors(errors)
    if not programs:
        terminal.note(f"{path} holds no program")
    return programs


def run_cells(run: Run, cells: Sequence[Parsed], arguments: Sequence[Argument]) -> None:
    """Run cells one after the other, each showing the value of its last expression."""
    home = {statement: each for each in cells for statement in each.statements}

    def after(result: StatementResult) -> None:
        if result.value is not None and home[result.statement].shows(result.statement):
            with run.session.running(result.span):
                run.show_value(result.value)
        ends_cell = result.statement is home[result.statement].statements[-1]
        if ends_cell and run.terminal.style.width is not None:
            show_open_figures(run)
        run.terminal.flush()

    run.execute(home, arguments, after)


# --- what they print, compared --------------------------------------------------------------------


# --- comments that are outputs ------------------------------------------------------------------


_MARK = re.compile(r"(?:=>|->|→|⇒|(?:output|out|prints?|result)\s*:)\s*", re.IGNORECASE)

_STRINGS = re.compile(r"'[^']*'|\"[^\"]*\"")
_WORD = re.compile(r"(?<!\w)[^\W\d]\w*")
_VALUES = frozenset({"True", "False", "None", "nan", "inf"})
_OF_TENSORS = _VALUES | {
    *("tensor", "array", "Parameter", "containing", "torch", "Size", "requires_grad", "grad_fn"),
    *("dtype", "size", "device", "cpu", "float16", "float32", "float64", "bfloat16", "int32"),
    *("int64", "bool", "object", "at", "e", "j"),
}
_NODE = re.compile(r"\w+Backward\w*|AccumulateGrad")


def comment_of(cell: Cell, statement: Statement, printed: str) -> Output | None:
    """The comment that says what a statement of a Markdown block prints, None where none does."""
    source = cell.source
    row, column = source.position(statement.span.end)
    line = source.line(row)
    behind = re.match(r"\s*;?\s*#\s?", line[column - 1 :])
    if behind is not None:
        margin = line[: column - 1 + behind.end()]
        first, rest = row, line[len(margin) :]
    else:
        lead = re.match(r"\s*#\s?", source.line(row + 1)) if _has(cell, row + 1) else None
        if lead is None or line[column - 1 :].strip():
            return None
        margin = lead[0]
        first, rest = row + 1, source.line(row + 1)[len(margin) :]
    mark = _MARK.match(rest)
    if mark is not None:
        margin, rest = margin + mark[0], rest[mark.end() :]
    elif not _is_output(rest, printed):
        return None
    at = margin.rindex("#", 0, len(margin) - (mark.end() if mark else 0))
    further = " " * at + "#" + " " * (len(margin) - at - 1)
    lines = [rest]
    while _has(cell, first + len(lines)):
        below = re.fullmatch(rf" {{0,{at}}}#(.*)", source.line(first + len(lines)))
        if below is None or not (mark or _goes_on(lines) or _is_output(below[1], printed)):
            break
        lines.append(below[1].removeprefix(further[at + 1 :]))
    place = cell.place + first - source.first_line
    text = "\n".join(lines).strip()
    return Output(text, row, place, place + len(lines), margin, further)


def _has(cell: Cell, line: int) -> bool:
    """Whether a cell has a line of this number."""
    return line - cell.source.first_line < cell.source.text.count("\n")


def _goes_on(lines: list[str]) -> bool:
    """Whether a bracket is still open."""
    text = "".join(lines)
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))


def _is_output(comment: str, printed: str) -> bool:
    """Whether a comment without a mark can be read as an output."""
    if comment.strip() and comment.strip() == printed.strip():
        return True
    bare = _STRINGS.sub(" 0 ", comment)
    words = set(_WORD.findall(bare))
    known = _OF_TENSORS | set(_WORD.findall(printed))
    has_value = re.search(r"\d", bare) is not None or not words.isdisjoint(_VALUES)
    return has_value and all(word in known or _NODE.fullmatch(word) for word in words)


# --- documents ----------------------------------------------------------------------------------


SCHEMA = "gradcli.document/1"


class Compared(Record):
    """An output of a document beside what is printed there.

    Attributes:
        place: the document and the line, or the cell.
        expected: the output that stands in the document.
    """

    place: str
    expected: str
    printed: str
    same: bool


def document_text(path: str, outputs: Sequence[Compared], updated: bool) -> str:
    """The outputs that differ, `-` what stands there and `+` what is printed, and how many."""
    lines = []
    differing = [each for each in outputs if not each.same]
    for each in [] if updated else differing:
        lines.append(f"{each.place}: the output differs")
        both = each.expected.split("\n"), each.printed.split("\n")
        lines += [f"    {line}".rstrip() for line in ndiff(*both) if not line.startswith("?")]
    if not outputs:
        lines.append(f"{path}: it ran, and no output stands in it")
    elif not differing:
        agrees = "the output agrees" if len(outputs) == 1 else f"all {len(outputs)} outputs agree"
        lines.append(f"{path}: {agrees}")
    else:
        verb = "written" if updated else "differ" if len(differing) > 1 else "differs"
        lines.append(f"{path}: {len(differing)} of {len(outputs)} outputs {verb}")
    return "\n".join(lines) + "\n"


def document_json(path: str, compared: Sequence[Compared], updated: bool) -> str:
    """The same as one object, with the outputs that agree."""
    outputs = [
        {
            "place": each.place,
            "expected": each.expected,
            "printed": each.printed,
            "same": each.same,
        }
        for each in compared
    ]
    document = {"schema": SCHEMA, "file": path, "updated": updated, "outputs": outputs}
    return json.dumps(document, ensure_ascii=False) + "\n"


_NUMBER = re.compile(r"(?<![\w.])([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?!\w)")
_ROUNDED = 4
"""Digits of a number whose last one may differ."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


def same(expected: str, printed: str, alone: bool = False) -> bool:
    """Whether an output is as expected.

    Args:
        alone: whether a part may stand for all: a number for the only one of the output, `# 4.0`
            for `tensor(4.)`, and the last words of a line for the line, `# True` for `y True`.
    """
    left, right = _lines(expected), _lines(printed)
    if left == right:
        return True
    if len(left) == len(right) and all(map(_same_line, left, right)):
        return True
    if alone and len(left) == len(right) == 1 and right[0].endswith(f" {left[0]}"):
        return True
    if alone and _NUMBER.fullmatch(expected.strip()):
        numbers = _NUMBER.findall(printed)
        return len(numbers) == 1 and _same_number(expected.strip(), numbers[0])
    if "..." in expected:
        parts = map(re.escape, "\n".join(left).split("..."))
        return re.fullmatch(".*?".join(parts), "\n".join(right), re.DOTALL) is not None
    return False


def _lines(text: str) -> list[str]:
    lines = [" ".join(line.split()) for line in _ADDRESS.sub("0x", text).strip("\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_line(expected: str, printed: str) -> bool:
    left, right = _NUMBER.split(expected), _NUMBER.split(printed)
    return len(left) == len(right) and all(
        _same_number(one, other) if number % 2 else one.replace(" ", "") == other.replace(" ", "")
        for number, (one, other) in enumerate(zip(left, right, strict=True))
    )


def _same_number(expected: str, printed: str) -> bool:
    digits, _, exponent = expected.lower().partition("e")
    if "." not in digits or len(re.sub(r"\D", "", digits).lstrip("0")) < _ROUNDED:
        return float(expected) == float(printed)
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(float(expected) - float(printed)) <= unit * 1.001


class _Shown(Record):
    """What a statement showed: its value where that is an expression's, "" else."""

    printed: str
    value: str


class _Recording(Run):
    """A run that keeps what its program prints."""

    shown: str = ""

    def printed(self, text: str) -> None:
        self.show(text)

    def show(self, text: str) -> None:
        """Keep a text."""
        self.shown += text

    def taken(self) -> str:
        """What was printed since the last time."""
        text, self.shown = self.shown, ""
        return text


def check_document(terminal: Terminal, path: str, options: Options, update: bool) -> int:
    """Check the outputs of a document, and write those that differ where that is wanted.

    Returns:
        0 where all agree or were written, 1 where one differs, the code of an error that the
        document does not show.
    """
    shown: dict[Statement, _Shown] = {}
    failed: GradcliError | None = None
    cells: list[Parsed] = []
    text = ""
    try:
        text = read_program(path)
        cells = parsed(terminal, path, text)
        _run(terminal, options, cells, shown)
    except GradcliError as error:
        terminal.error(error)
        failed = error
    pairs = [pair for each in cells for pair in _compared(path, each, shown)]
    if path.endswith(".ipynb") and not update and not any(each.expected for each, _ in pairs):
        pairs = []  # a notebook whose outputs were taken out
    differing = [(compared, output) for compared, output in pairs if not compared.same]
    if update and failed is None and differing:
        _write(path, text, differing)
    answer = [compared for compared, _ in pairs]
    if failed is None or answer:
        as_text = document_json if options.json else document_text
        terminal.write(as_text(path, answer, update and failed is None))
    if failed is not None:
        return failed.exit_code
    return 1 if differing and not update else 0


def _write(path: str, text: str, differing: Sequence[tuple[Compared, Output]]) -> None:
    """Write a document with what its programs print."""
    if path.endswith(".ipynb"):
        new = with_outputs(path, text, {o.first: c.printed for c, o in differing})
    else:
        changes = [(o.first, o.last, o.lines(c.printed)) for c, o in differing]
        new = replaced(text, changes)
    replace(path, lambda file: file.write(new.encode()))


def _run(
    terminal: Terminal, options: Options, cells: Sequence[Parsed], shown: dict[Statement, _Shown]
) -> None:
    """Run the cells, and keep what each statement shows; raises an error that no output shows."""
    run = _Recording(terminal, options, None)
    home = {statement: each for each in cells for statement in each.statements}
    pending = deque(home)

    def upcoming() -> Iterator[Statement]:
        while pending:
            yield pending.popleft()

    def after(result: StatementResult) -> None:
        printed, value = run.taken(), ""
        if isinstance(result.statement, ExpressionStatement) and result.value is not None:
            with run.session.running():
                run.show_value(result.value)
            value = run.taken()
        shown[result.statement] = _Shown(printed, value)

    with run.limited():
        while pending:
            try:
                run.execute(upcoming(), (), after)
            except GradcliError as error:
                statement = run.statement
                assert statement is not None
                cell = home[statement]
                if not _is_expected(cell, statement, error):
                    raise
                said = f"{error.raises}: {error.text}".rstrip(": ")
                shown[statement] = _Shown(f"{run.taken()}{said}\n", "")
                while cell.cell.shows != "all" and pending and home[pending[0]] is cell:
                    pending.popleft()


def _is_expected(cell: Parsed, statement: Statement, error: GradcliError) -> bool:
    """Whether an output of the document says that its statement fails so."""
    last = [o for o in cell.cell.outputs if o.line is None or o.line <= statement.span.line][-1:]
    return any(o.text.rpartition("\n")[2].startswith(f"{error.raises}:") for o in last)


def _compared(
    path: str, parsed: Parsed, shown: dict[Statement, _Shown]
) -> Iterator[tuple[Compared, Output]]:
    """The outputs of a cell that has run, each with what was printed there."""
    cell, statements = parsed.cell, parsed.statements
    ran = [each for each in statements if each in shown]
    if statements and not ran:
        return

    def text(members: Sequence[Statement]) -> str:
        """What some statements showed."""
        parts = [
            part
            for each in members
            for part in (shown[each].printed, shown[each].value if parsed.shows(each) else "")
        ]
        return "".join(parts).rstrip("\n")

    ends: list[Any] = [each.line for each in cell.outputs[1:]]
    for output, end in zip(cell.outputs, [*ends, None], strict=False):
        first = output.line or 0
        members = [s for s in ran if first <= s.span.line and (end is None or s.span.line < end)]
        printed = text(members)
        silent = output.line is None and not printed and not path.endswith(".ipynb")
        if not silent:  # what stands behind a program that prints nothing is no output of it
            yield _compare(path, cell.source.name, output, printed)
    if cell.shows != "all" and not path.endswith(".ipynb"):
        for statement in ran:
            whole = (shown[statement].printed + shown[statement].value).rstrip("\n")
            comment = comment_of(cell, statement, whole) if whole else None
            if comment is not None:
                yield _compare(path, cell.source.name, comment, whole, True)


def _compare(
    path: str, source: str, output: Output, printed: str, comment: bool = False
) -> tuple[Compared, Output]:
    """An output beside what was printed; of a traceback the last line counts."""
    traceback, _, last = output.text.rpartition("\n")
    if traceback.startswith("Traceback"):
        first = output.first + traceback.count("\n") + 1
        output = Output(last, output.line, first, output.last, output.margin)
    place = source if path.endswith(".ipynb") else f"{path}:{output.first + 1}"
    agrees = same(output.text, printed, comment)
    return Compared(place, output.text, printed, agrees), output
