"""Custom functions by themselves: what the `backward()` of each returns, against differences of its
`forward()` at the operands that the program gave it, and the change of it that is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.custom_function import FunctionCall
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.modes import EnableGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Source
from gradcli.language.tree import syntax as tree
from gradcli.questions.check.check import (
    NOT_FINITE,
    WRONG,
    Checked,
    Edit,
    Time,
    check,
    edits_of_backward,
    worst,
)
from gradcli.questions.why.suspects import Suspect
from gradcli.state import active
from gradcli.trace.ir import Value

if TYPE_CHECKING:
    from gradcli.autograd.recording.trace_recorder import Call
    from gradcli.running.rerun import Executed
    from gradcli.session import Session

_Function = Callable[..., Any]
"""The `apply` of a custom function."""

_MOST_CALLS, _MOST_ELEMENTS = 6, 20
"""Calls of one function that are looked at, and elements of each operand."""

_SECONDS = 4.0
"""How long one function is looked at, and so long changes of its backward() are tried."""


class _Applied:
    """One call of a custom function, which is made again with other values.

    Attributes:
        operands: what it is called with, in order, and `moved`: the arrays of those by which it is
            differentiated, by their places.
    """

    def __init__(self, session: Session, call: Call) -> None:
        self.session = session
        self.operands = list(call.operands.values())
        needed = call.op.node.needs_input_grad
        self.moved = {
            str(place): np.array(each.array, float)
            for place, each in enumerate(self.operands)
            if isinstance(each, Value) and each.array.dtype.kind == "f" and needed[place]
        }
        self._seeds: list[Any] | None = None

    def number(self, function: _Function, values: Mapping[str, Any]) -> float:
        """What the outputs come to, each times its seed, for values of what is moved."""
        with self.session.running():
            outputs = _outputs(function, self._arguments(values, requires_grad=False))
            return float(sum((_numbers(o) * s).sum() for o, s in self._with_seeds(outputs)))

    def gradients(self, function: _Function) -> dict[str, Any]:
        """The gradients of that number, by what the function's backward() returns."""
        with self.session.running(), EnableGrad():
            arguments = self._arguments(self.moved, requires_grad=True)
            leaves = [arguments[int(place)] for place in self.moved]
            pairs = [p for p in self._with_seeds(_outputs(function, arguments)) if p[0].grad_fn]
            outputs, seeds = [o for o, _ in pairs], [Tensor(s) for _, s in pairs]
            found = grad(outputs, leaves, seeds, allow_unused=True)
        return {
            place: np.zeros_like(array) if each is None else _numbers(each)
            for (place, array), each in zip(self.moved.items(), found, strict=True)
        }

    def _with_seeds(self, outputs: Sequence[Tensor]) -> Iterator[tuple[Tensor, Any]]:
        """Those of the outputs that have gradients, with random ones: ones hide exchanges."""
        if self._seeds is None:
            generator = np.random.default_rng(0)
            self._seeds = [generator.uniform(0.5, 1.5, each.array.shape) for each in outputs]
        pairs = zip(outputs, self._seeds, strict=True)
        return ((each, seed) for each, seed in pairs if each.dtype.is_floating_point)

    def _arguments(self, values: Mapping[str, Any], *, requires_grad: bool) -> list[Any]:
        arguments: list[Any] = []
        for place, each in enumerate(self.operands):
            if isinstance(each, Value):
                array = values.get(str(place), each.array)
                each = Tensor(np.array(array)[()])
                each.requires_grad = requires_grad and str(place) in values
            arguments.append(each)
        return arguments


def _outputs(function: _Function, arguments: Sequence[Any]) -> list[Tensor]:
    """The tensors that a function returns; nobody hears of the call."""
    state = active.state
    before, state.recorder = state.recorder, None
    try:
        made = function(*arguments)
    finally:
        state.recorder = before
    return [each for each in (made if type(made) is tuple else (made,)) if type(each) is Tensor]


def _numbers(tensor: Tensor) -> Any:
    return np.asarray(to_host(forced(tensor.array)), float)


def judged(executed: Executed, named: Sequence[Suspect]) -> list[Suspect]:
    """What may make gradients wrong, of the custom functions among it those that are wrong by
    themselves, with the change of backward() that makes them right, which was run, where one does;
    and those of which that cannot be known.

    Args:
        executed: the program, recorded with its arrays.
    """
    calls = [e for e in executed.run.session.recorder.calls if isinstance(e.op, FunctionCall)]
    found: list[Suspect] = []
    for each in named:
        function = each.function
        if function is None:
            found.append(each)
        else:
            own = [e for e in calls if e.op.name == function.name]
            found += _verdict(executed.run.session, each, own)
    return found


def _verdict(session: Session, suspect: Suspect, calls: Sequence[Call]) -> list[Suspect]:
    """What is known of a custom function, nothing where it is right in all its calls."""
    calls = [each for each in calls if any(each.op.node.needs_input_grad)]
    until = perf_counter() + _SECONDS
    for call in calls[:_MOST_CALLS]:
        applied = _Applied(session, call)
        try:
            checked = _checked(applied, call.op.node.function.apply, until)
        except GradcliError:
            return [suspect]
        if not checked or worst(checked) == NOT_FINITE or perf_counter() > until:
            return [suspect]
        if worst(checked) == WRONG:
            return _with_slips(suspect, applied, [e for e in checked if e.verdict == WRONG])
    return [suspect] if not calls or len(calls) > _MOST_CALLS else []


def _checked(applied: _Applied, function: _Function, until: float) -> list[Checked]:
    """The gradients of one call against differences; none where it draws numbers."""

    def number(values: Mapping[str, Any]) -> float:
        return applied.number(function, values)

    if not applied.moved or number(applied.moved) != number(applied.moved):
        return []
    began = perf_counter()
    time = Time(until - began, until - began, began)
    gradients = applied.gradients(function)
    return check(number, gradients, applied.moved, _MOST_ELEMENTS, 0.0, time=time)


def _with_slips(suspect: Suspect, applied: _Applied, wrong: Sequence[Checked]) -> list[Suspect]:
    """A custom function that is wrong: for each gradient what is wrong with it."""
    assert suspect.function is not None
    text = f"`{suspect.function.name}` has a backward() of its own"
    returned = suspect.returned
    if returned is None:
        text = f"{text}, which does not return the slope of its forward()"
        return [Suspect(suspect.place, text, suspect.help)]
    parts = returned.elements if isinstance(returned, tree.Tuple) else [returned]
    found = []
    for each in wrong:
        part = parts[min(int(each.name), len(parts) - 1)]
        edit = _edit(suspect, part, applied, each)
        place = suspect.place if part is returned else part.span
        if edit is not None:
            said = f"{edit.slip}: `{edit.text}` is right"
            found.append(Suspect(place, said, f"{text}, and this is what it returns"))
        else:
            slip = f": {each.slip}" if each.slip else ""
            said = f"{text}, and this is not the slope of its forward(){slip}"
            found.append(Suspect(place, said, suspect.help))
    return found


def _edit(
    suspect: Suspect, part: tree.Expression, applied: _Applied, checked: Checked
) -> Edit | None:
    """The change of an expression that backward() returns which gives the slopes of differences, in
    the call that was checked; None for none.
    """
    assert suspect.function is not None
    span, whole = part.span, suspect.function.span
    text = whole.source.text
    until = perf_counter() + _SECONDS
    for edit in edits_of_backward(part, suspect.incoming):
        if perf_counter() > until:
            break
        changed = text[whole.start : span.start] + edit.text + text[span.end : whole.end]
        try:
            function = _defined(applied.session, changed, suspect.function.name)
            gradients = applied.gradients(function)
        except GradcliError:
            continue
        if _is_right(gradients[checked.name], checked):
            return edit
    return None


def _defined(session: Session, text: str, name: str) -> _Function:
    """What applies a custom function of a text, in the names of a session."""
    for _ in session.run(text, "backward"):
        pass
    function: _Function = session.evaluate(Source("backward", f"{name}.apply"))
    return function


def _is_right(gradient: Any, checked: Checked) -> bool:
    """Whether a gradient has the slopes that differences had."""
    numeric = np.array([each.numeric for each in checked.elements])
    analytic = np.array([gradient[each.index] for each in checked.elements])
    room = 1e-5 * float(np.abs(numeric).max())
    return bool(
        np.isfinite(analytic).all() and np.allclose(analytic, numeric, rtol=1e-4, atol=room)
    )
