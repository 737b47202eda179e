"""The result of a program: its output, the gradients, the graph and the steps behind them."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.autograd.graph import Graph
from gradcli.autograd.recording.recorder import Event
from gradcli.autograd.tensor import Tensor
from gradcli.record import Record
from gradcli.recorded.gradients import Gradient


class Result(Record):
    """What a run came to.

    Attributes:
        name: the output's variable, None for the value of an expression.
        seed: the gradient that backward started from, None where it was not given.
        events: the events of the backward pass in order; empty if they were not recorded.
    """

    name: str | None
    output: Tensor
    seed: Tensor | None
    gradients: Sequence[Gradient]
    graph: Graph
    events: Sequence[Event] = ()
