"""The table of handlers: who answers dot-commands, and `trace`, `explain`, `why` in programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.errors import GradcliError
from gradcli.language.events import Asked, Explained, Plotted, Shown, Sparkline, Traced
from gradcli.language.tree.syntax import Command
from gradcli.running.arguments.words import UsageError
from gradcli.running.run import HANDLERS as HANDLERS
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.running.run import Run


def _count(run: Run) -> None:
    """Count what the program asks to see: a second run of it knows by that where it stands. What a
    dot-command asks is not part of the program.
    """
    run.asked += not isinstance(run.statement, Command)


def _command(run: Run, command: Command) -> None:
    from gradcli.repl.dot_commands.table import carry_out  # lazy: command: a dot-command

    carry_out(run, command)


def _traced(run: Run, event: Traced) -> None:
    from gradcli.questions.explain.answer import trace_of_tensor  # lazy: command: `trace(y)`

    _count(run)
    run.show(trace_of_tensor(run, event.tensor, event.style))


def _shown(run: Run, event: Shown) -> None:
    from gradcli.questions.explain.answer import write_picture  # lazy: command: `show(y, "y.svg")`

    _count(run)
    write_picture(run, event.tensor, event.file)


def _plotted(run: Run, event: Plotted) -> None:
    from gradcli.running.plots import show_plot  # lazy: command: few programs draw

    show_plot(run, event)


def _sparkline(run: Run, event: Sparkline) -> None:
    from gradcli.running.plots import sparkline_text  # lazy: command: few programs draw

    run.show(sparkline_text(event.values, run.terminal.style))


def _explained(run: Run, event: Explained) -> None:
    _count(run)
    if event.derived:
        from gradcli.questions.derive.answer import formulas_of_tensor  # lazy: command: `derive(y)`

        run.show(formulas_of_tensor(run, event.tensor))
    else:
        from gradcli.questions.explain.answer import (  # lazy: command: `explain(y)`
            explanation_of_tensor,
        )

        run.show(explanation_of_tensor(run, event.tensor))


def _asked(run: Run, event: Asked) -> None:
    """Answer `why`, `blame`, `flow` or `check` about what a session has run so far.

    A session records no operations, so the statements that succeeded are run once more, recorded;
    of that run nothing is shown or kept.

    Raises:
        GradcliError: E105 for a question that `why` does not answer.
    """
    from gradcli.questions.blame.command import blame  # lazy: command: `why`, `blame`, `check`
    from gradcli.questions.check.command import Check, check  # lazy: command: likewise
    from gradcli.questions.explain.command import flow  # lazy: command: likewise
    from gradcli.questions.why.command import read_question, why  # lazy: command: likewise
    from gradcli.running import source  # lazy: command: likewise

    program = source.Program(run.transcript.program(), run.name_so_far())
    asked = source.Asked(run.terminal, event.command, program, run.arguments(), run.options)
    before = active.state
    try:
        if event.command == "why":
            why(asked, read_question(event.question))
        elif event.command == "blame":
            blame(asked, all=False)
        elif event.command == "flow":
            flow(asked)
        else:
            check(asked, Check(1, None, None, ()))
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
