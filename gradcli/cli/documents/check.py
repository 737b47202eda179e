"""Runs a document and compares the outputs that stand in it with what its programs print."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.arrays.files.writing import replace
from gradcli.cli.documents import markdown, notebook
from gradcli.cli.documents.cells import Output
from gradcli.cli.documents.comments import comment_of
from gradcli.cli.documents.comparison import same
from gradcli.cli.documents.report import Compared, document_json, document_text
from gradcli.cli.documents.running import Parsed, parsed
from gradcli.errors import GradcliError
from gradcli.language.tree.syntax import ExpressionStatement, Statement
from gradcli.record import Record
from gradcli.running.arguments.files import read_program
from gradcli.running.arguments.options import Options
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run
from gradcli.session import StatementResult


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
        new = notebook.with_outputs(path, text, {o.first: c.printed for c, o in differing})
    else:
        changes = [(o.first, o.last, o.lines(c.printed)) for c, o in differing]
        new = markdown.replaced(text, changes)
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
