"""The events of a running program, as data: `state.emit` receives one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.errors import Warned as Warned
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor
    from gradcli.language.drawing import Plot


class Printed(Record):
    """Text that `print` wrote, with its line end."""

    text: str


class Reported(Record):
    """Text that a program put on standard error.

    Attributes:
        by_clock: whether it says how long something takes, so that it is another one each time.
    """

    text: str
    by_clock: bool = False


class Traced(Record):
    """A tensor whose graph `trace` asked to show, in the style `tree`, `values`, `next` or
    `steps`.
    """

    tensor: Tensor
    style: str


class Shown(Record):
    """A tensor whose graph `show` asked to draw in a file."""

    tensor: Tensor
    file: str


class Plotted(Record):
    """A plot to show on the terminal, or to write to a file.

    Attributes:
        asked: whether the program asked for it to be printed, and not for a window.
    """

    plot: Plot
    file: str | None
    asked: bool = False


class Sparkline(Record):
    """Numbers to show as a line of bars: an array of float64."""

    values: Any


class Explained(Record):
    """A tensor whose gradients `explain` or `derive` asked to show.

    Attributes:
        derived: whether their formulas are wanted, not the ledger of the backward pass.
    """

    tensor: Tensor
    derived: bool


class Asked(Record):
    """A question about the run so far: `why`, `blame`, `flow` or `check`.

    Attributes:
        question: what `why` is asked, "" for the others.
    """

    command: str
    question: str = ""
