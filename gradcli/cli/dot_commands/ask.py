"""`.why`, `.blame` and `.check`: questions about what a session has run so far.

They are the events that `why("x.grad")`, `blame()` and `check()` emit in a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.cli.dot_commands.line import Line
from gradcli.errors import GradcliError
from gradcli.language.events import Asked

if TYPE_CHECKING:
    from gradcli.cli.program.run import Run


def why(run: Run, line: Line) -> None:
    """Say why a tensor has a gradient, requires one or is a leaf."""
    try:
        run.session.emit(Asked("why", line.argument(1) or ""))
    except GradcliError as error:
        error.span = error.span or line.words[1]
        raise


def blame(run: Run, _line: Line) -> None:
    """Find the first NaN or infinity."""
    run.session.emit(Asked("blame"))


def check(run: Run, _line: Line) -> None:
    """Check the gradients of the tensor assigned last."""
    run.session.emit(Asked("check"))
