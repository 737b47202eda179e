"""The table of handlers: who answers dot-commands, and `trace`, `explain`, `why` in programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.cli.arguments.words import UsageError
from gradcli.cli.program.run import HANDLERS as HANDLERS
from gradcli.errors import GradcliError
from gradcli.language.events import Asked, Explained, Plotted, Shown, Sparkline, Traced
from gradcli.language.tree.syntax import Command
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.cli.program.run import Run


def _count(run: Run) -> None:
    """Count what the program asks to see: a second run of it knows by that where it stands. What a
    dot-command asks is not part of the program.
    """
    run.asked += not isinstance(run.statement, Command)


def _command(run: Run, command: Command) -> None:
    from gradcli.cli.dot_commands.table import carry_out  # lazy: command: a dot-command

    carry_out(run, command)


def _traced(run: Run, event: Traced) -> None:
    from gradcli.cli.program.explanation import trace_of_tensor  # lazy: command: `trace(y)`

    _count(run)
    run.show(trace_of_tensor(run, event.tensor, event.style))


def _shown(run: Run, event: Shown) -> None:
    from gradcli.cli.program.explanation import write_picture  # lazy: command: `show(y, "y.svg")`

    _count(run)
    write_picture(run, event.tensor, event.file)


def _plotted(run: Run, event: Plotted) -> None:
    from gradcli.cli.plots.show import show_plot  # lazy: command: few programs draw

    show_plot(run, event)


def _sparkline(run: Run, event: Sparkline) -> None:
    from gradcli.cli.plots.show import sparkline_text  # lazy: command: few programs draw

    run.show(sparkline_text(event.values, run.terminal.style))


def _explained(run: Run, event: Explained) -> None:
    _count(run)
    if event.derived:
        from gradcli.cli.program.derivation import formulas_of_tensor  # lazy: command: `derive(y)`

        run.show(formulas_of_tensor(run, event.tensor))
    else:
        from gradcli.cli.program.explanation import (  # lazy: command: `explain(y)`
            explanation_of_tensor,
        )

        run.show(explanation_of_tensor(run, event.tensor))


def _asked(run: Run, event: Asked) -> None:
    """Answer `why`, `blame` or `check` about what a session has run so far.

    A session records no operations, so the statements that succeeded are run once more, recorded;
    of that run nothing is shown or kept.

    Raises:
        GradcliError: E105 for a question that `why` does not answer.
    """
    from gradcli.cli.commands.blame import blame  # lazy: command: `why`, `blame`, `check`
    from gradcli.cli.commands.check import MOST, Check, check  # lazy: command: likewise
    from gradcli.cli.commands.why import read_question, why  # lazy: command: likewise
    from gradcli.cli.program import source  # lazy: command: likewise

    program = source.Program(run.transcript.program(), "session")
    asked = source.Asked(run.terminal, event.command, program, run.arguments(), run.options)
    before = active.state
    try:
        if event.command == "why":
            why(asked, read_question(event.question))
        elif event.command == "blame":
            blame(asked, all=False)
        else:
            check(asked, Check(1, MOST, None, ()))
    except UsageError as error:
        raise GradcliError("E105", str(error)) from error
    finally:
        active.state = before


HANDLERS.update(
    {
        Command: _command,
        Traced: _traced,
        Shown: _shown,
        Plotted: _plotted,
        Sparkline: _sparkline,
        Explained: _explained,
        Asked: _asked,
    }
)
