"""Runs the programs of a document, cell by cell, in one session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradcli.cli.documents import markdown, notebook
from gradcli.cli.documents.cells import Cell, without_magics
from gradcli.errors import GradcliError, SyntaxErrors
from gradcli.language.parser.parser import parse_program
from gradcli.language.tree.syntax import ExpressionStatement, Statement
from gradcli.record import Record
from gradcli.running.plots import show_open_figures
from gradcli.show.diagnostics.human import location

if TYPE_CHECKING:
    from gradcli.running.arguments.values import Argument
    from gradcli.running.process.terminal import Terminal
    from gradcli.running.run import Run
    from gradcli.session import StatementResult


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
    cells = (notebook if path.endswith(".ipynb") else markdown).cells_of(path, text)
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
