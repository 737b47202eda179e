"""`.why`, `.blame` and `.check`: the commands' questions about what a session has run so far.

A session records no operations, so the statements that succeeded are run once more, recorded, and
nothing of that run is shown or kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gradcli.cli.dot_commands.line import Line
from gradcli.errors import GradcliError
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.cli.program.run import Run


def why(run: Run, line: Line) -> None:
    """Prove why a tensor has a gradient, requires one or is a leaf."""
    try:
        answer(run, "why", line.argument(1) or "")
    except GradcliError as error:
        error.span = error.span or line.words[1]
        raise


def blame(run: Run, _line: Line) -> None:
    """Find the first NaN or infinity."""
    answer(run, "blame")


def check(run: Run, _line: Line) -> None:
    """Check the gradients of the tensor assigned last."""
    answer(run, "check")


def answer(run: Run, command: str, question: str = "") -> None:
    """Answer a question about the statements that a session has run.

    Raises E105 for a question that `why` does not answer.
    """
    from gradcli.cli.commands import ask
    from gradcli.cli.commands import check as checking
    from gradcli.cli.commands.explain import Program

    terminal, options = run.terminal, run.options
    program = Program(run.transcript.program(), "session")
    bindings = {} if run.bindings is None else run.bindings.bindings
    arguments = [binding.argument for binding in bindings.values()]
    before = active.state
    try:
        if command == "why":
            asked = ask.read_question(question)
            ask.why(terminal, asked, program, arguments, options)
        elif command == "blame":
            ask.blame(terminal, program, arguments, options, all=False)
        else:
            wanted = checking.Check(1, checking.MOST, None, ())
            checking.check(terminal, program, arguments, options, wanted)
    except click.UsageError as error:
        raise GradcliError("E105", error.format_message()) from error
    finally:
        active.state = before
