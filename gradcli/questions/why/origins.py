"""Finds the line that set a state: what made a value zero, or a module what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.provenance import Evaluation
from gradcli.recorded.recorded_run import Recorded

if TYPE_CHECKING:
    from gradcli.errors import Span

_VIEWS = ("t", "transpose", "view", "reshape", "expand", "permute", "unsqueeze", "squeeze", "alias")
"""Ops whose result shows the numbers of what goes in."""


def origin_of_zero(run: Recorded, value: Any, used: Span | None = None) -> Span | None:
    """The line that gave a value what it is: the last write to it, or where it was made.

    Args:
        used: where it is used; a plain number is known by that alone.
    """
    if type(value) is Tensor:
        tensor = viewed(run, value)
        written = [each.span for each in run.recorder.writes if each.tensor is tensor]
        if written and written[-1] is not None:
            return written[-1]
        return run.creation(tensor)
    if isinstance(value, (bool, int, float)):
        return None if used is None else _assigned(run, value, used)
    for evaluation in run.provenance.evaluations:
        if evaluation.value is value:
            return evaluation.node.span
    return None


def viewed(run: Recorded, tensor: Tensor) -> Tensor:
    """The tensor whose numbers a chain of views shows."""
    seen = {id(tensor)}
    while True:
        steps = run.flow.back.get(id(tensor), ())
        sources = [
            run.flow.values.get(each.source)
            for each in steps
            if each.call is not None and str(each.call.op.name).partition(".")[0] in _VIEWS
        ]
        source = next((each for each in sources if type(each) is Tensor), None)
        if source is None or id(source) in seen:
            return tensor
        seen.add(id(source))
        tensor = source


def _assigned(run: Recorded, value: Any, used: Span) -> Span | None:
    """The assignment of the number that an expression at a place reads."""
    for evaluation in reversed(run.provenance.evaluations):
        if evaluation.node.span is not used:
            continue
        for read in _reads(evaluation):
            for statement, assigned in run.provenance.assignments:
                if assigned is read and type(read.value) is type(value) and read.value == value:
                    return statement.span
    return None


def _reads(evaluation: Evaluation) -> Iterator[Evaluation]:
    """The evaluations whose values the operands of an expression have."""
    for part in evaluation.parts:
        yield part
        yield from part.parts
