"""Runs a document and compares the outputs that stand in it with what its programs print.

An output is what a program prints whatever the blanks, with `...` standing for anything, and a
number of four digits or more to a unit of its last one. What differs is told as text, and as JSON
of the schema `gradcli.document/1`.

Comments say what a statement prints too: `print(x)  # tensor(4.)`, or in the lines below it.
A comment is an output where it is marked as one (`# => 4`, `# prints: 4`), and where it has a
number or a word like `True` in it and nothing but what tensors and the real output are made of:
`# 2. Backward pass` is a remark.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from difflib import ndiff
from typing import TYPE_CHECKING, Any

from gradcli.arrays.files.formats import replace
from gradcli.cli.documents.cells import (
    Cell,
    Output,
    markdown_cells,
    notebook_cells,
    replaced,
    with_outputs,
    without_magics,
)
from gradcli.errors import GradcliError, SyntaxErrors
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
