"""Finds the line that set a state: what made a value zero, or a module what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.recording.instructions import Write
from gradcli.autograd.tensor import Tensor
from gradcli.language.provenance import Evaluation
from gradcli.recorded.recorded_run import Recorded
from gradcli.trace.ir import Value

if TYPE_CHECKING:
    from gradcli.autograd.recording.instructions import Call
    from gradcli.errors import Span

_VIEWS = ("t", "transpose", "view", "reshape", "expand", "permute", "unsqueeze", "squeeze", "alias")
"""Ops whose result shows the numbers of what goes in."""


def origin_of_zero(run: Recorded, value: Any, call: Call | None = None) -> Span | None:
    """The line that gave a value what it is: the write to it, or where it was made.

    Args:
        call: the call that reads it; a plain number is known by its place alone.
    """
    if type(value) is Tensor:
        tensor = viewed(run, value)
        return _write_of_zero(run, tensor, call) or run.creation(tensor)
    if isinstance(value, (bool, int, float)):
        return None if call is None or call.span is None else _assigned(run, value, call.span)
    for evaluation in run.provenance.evaluations:
        if evaluation.value is value:
            return evaluation.node.span
    return None


def _write_of_zero(run: Recorded, tensor: Tensor, call: Call | None) -> Span | None:
    """The write to a tensor, ahead of a call, since which it is zero; the last one where the
    numbers were not kept.
    """
    place, is_zero = None, False
    for each in run.recorder.trace.instructions:
        if each is call:
            break
        if isinstance(each, Write) and _shows(each.tensor, tensor):
            after = each.outputs[0]
            array = None if after is None else after.array
            place = place if is_zero else each.span
            is_zero = array is not None and not np.any(array)
    return place


def _shows(written: Tensor, tensor: Tensor) -> bool:
    """Whether what was written is a tensor, or shows its memory, as `w.data` and `w[0]` do."""
    if written is tensor or written.array is tensor.array:
        return True
    arrays = [forced(each.array) for each in (written, tensor)]
    return all(isinstance(e, np.ndarray) for e in arrays) and np.may_share_memory(*arrays)


def operands_as_they_were(run: Recorded, call: Call) -> dict[str, Any]:
    """The operands of a call by parameter, tensors with the numbers that they held then."""
    return {
        name: run.recorder.stand_in(value)
        if isinstance(value, Value) and value.array is not None
        else call.arguments[name]
        for name, value in call.operands.items()
    }


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
