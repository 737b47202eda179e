"""The derivatives of `torch.func` against differences: while the program runs, each function that a
transform differentiates is called again with other values, at the place where it was called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.batched import batched_tensor
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor, with_history
from gradcli.errors import GradcliError
from gradcli.language.functions.calls import Function
from gradcli.library.torch.func.derivatives import Application, pull, push
from gradcli.library.torch.func.levels import Level
from gradcli.library.torch.func.structure import leaves, rebuilt
from gradcli.questions.check.check import FINE, WRONG, Checked, Time, check, worst
from gradcli.questions.check.functions import judged
from gradcli.questions.why.suspects import Suspect, suspects
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.autograd.graph import GraphNode
    from gradcli.running.rerun import Rerun
    from gradcli.running.run import Run

_MOST_CALLS = 3
"""Calls of one transform that are looked at, at each place."""

_MOST = 100
"""The elements of an input that are checked unless another number is given; and of all inputs
together that forward mode moves one by one.
"""


class Transforms(Listener):
    """Checks the functions of a run that transforms differentiate, when they are called.

    Attributes:
        checked: the derivatives, in order, and `nodes`: those of the graphs that give them.
        drawing: the transforms whose functions draw numbers, which are not checked.
    """

    def __init__(self, most: int | None, seconds: float) -> None:
        super().__init__()
        self.checked: list[Checked] = []
        self.nodes: list[GraphNode] = []
        self.drawing: set[str] = set()
        self._most = most or _MOST
        self._time = Time(seconds, seconds, perf_counter())
        self._calls: dict[Any, int] = {}
        self._around: list[Level] = []

    def places(self, rerun: Rerun) -> list[Suspect]:
        """What in the program may make them wrong; none where they are right."""
        if not self.checked or worst(self.checked) != WRONG:
            return []
        named = suspects(rerun.statements, self.nodes, ())
        return judged(rerun.execute(dtype="float64", record="kept"), named)

    def listen(self, run: Run) -> None:
        """Hear what a run tells from now on."""
        self._session = run.session
        self.former, run.session.state.recorder = run.session.state.recorder, self

    def applied(self, level: Level, call: Application, inputs: Sequence[Any], output: Any) -> None:
        """A transform has called its function. Of one inside another, which sees what that moves,
        nothing is said until the other's function is called with plain values.
        """
        place = active.state.place, call.shown
        transforms = [each for each in active.state.transforms if isinstance(each, Level)]
        count = self._calls.get(place, 0)
        if count == _MOST_CALLS or self._time.is_up(1.0, True):
            return
        if any(each is not level and each not in self._around for each in transforms):
            return
        self._calls[place] = count + 1
        applied = _Applied(level, call, inputs, output)
        self._around.append(level)
        try:
            if applied.moved and applied.outputs:
                self._check(applied, again=count > 0)
        finally:
            self._around.pop()

    def _check(self, applied: _Applied, again: bool) -> None:
        """Compare the derivatives of one call, and those that its function computes itself."""
        here = applied.number(applied.moved)
        with _unheard():
            if here == here and here != applied.number(applied.moved):
                self.drawing.add(applied.call.shown)
                return
            gradients, moved = applied.gradients(), applied.moved
            precision = applied.precision
            found = check(applied.number, gradients, moved, self._most, precision, time=self._time)
        for each in found:
            each.label, each.by_transform = each.name, True
        known = {each.name for each in self.checked if each.verdict == FINE} if again else set()
        self.checked += [each for each in found if each.verdict != FINE or each.name not in known]
        for output in applied.outputs:
            self.nodes += self._session.graph(output).nodes


class _Applied:
    """A call of a function that a transform differentiates, which is made again with other values.

    Attributes:
        outputs: the tensors of real numbers that it returned.
        moved: the arrays that it is differentiated by, of all examples, by what their derivatives
            are called.
        precision: the relative rounding error of their coarsest dtype.
    """

    def __init__(self, level: Level, call: Application, inputs: Sequence[Any], output: Any) -> None:
        self.call = call
        self.outputs = _real(output)
        self.moved: dict[str, Any] = {}
        self._level = level
        self._inputs = inputs
        self._flat = leaves(list(inputs))
        names = _names(call, inputs)
        if len(_real(self._flat)) == len(self._flat) == len({*names}):
            self.moved = {
                f"{call.shown} by {name}": np.array(_of_all_examples(each), float)
                for name, each in zip(names, self._flat, strict=True)
            }
        self.precision = max(
            (float(np.finfo(e.array.dtype).eps) for e in self._flat if e.array.dtype.itemsize < 8),
            default=0.0,
        )
        self._seeds: list[Any] = []

    def number(self, values: Mapping[str, Any]) -> float:
        """What the outputs come to, each times its seed, for values of what is moved."""
        flat = [
            _batched(np.asarray(values[name]).astype(each.array.dtype))
            for name, each in zip(self.moved, self._flat, strict=True)
        ]
        output, _ = self.call(rebuilt(list(self._inputs), flat))
        numbers = [np.asarray(_of_all_examples(each), float) for each in _real(output)]
        if not self._seeds:  # 1 for a number, else random ones, as ones hide exchanges
            generator = np.random.default_rng(0)
            is_number = len(self.outputs) == 1 and self.outputs[0].array.size == 1
            self._seeds = [
                np.ones(each.shape) if is_number else generator.uniform(0.5, 1.5, each.shape)
                for each in numbers
            ]
        pairs = zip(numbers, self._seeds, strict=True)
        return float(sum((number * seed).sum() for number, seed in pairs))

    def gradients(self) -> dict[str, Any]:
        """The gradients of that number, by what the transform goes through."""
        if self.call.is_forward and sum(each.size for each in self.moved.values()) <= _MOST:
            return {name: self._moving(name) for name in self.moved}
        seeds = [_batched(each.astype(o.array.dtype)) for each, o in self._with_seeds()]
        found = pull(self._level, self.outputs, self._flat, seeds)
        return {
            name: np.asarray(_of_all_examples(each), float)
            for name, each in zip(self.moved, found, strict=True)
        }

    def _with_seeds(self) -> Iterator[tuple[Any, Tensor]]:
        return zip(self._seeds, self.outputs, strict=True)

    def _moving(self, name: str) -> Any:
        """The derivative by one input, as forward mode has it, element by element."""
        starts = [with_history(each.array, each.grad_fn) for each in self._flat]
        at = [*self.moved].index(name)
        slopes = np.zeros_like(self.moved[name])
        for index in np.ndindex(slopes.shape):
            unit = np.zeros(slopes.shape, self._flat[at].array.dtype)
            unit[index] = 1
            directions = [_batched(unit) if n == at else None for n in range(len(starts))]
            moved = push(self._level, self.outputs, self.outputs, starts, directions)
            slopes[index] = sum(
                (seed * _of_all_examples(tangent)).sum()
                for seed, tangent in zip(self._seeds, moved, strict=True)
            )
        return slopes


def _real(structure: Any) -> list[Tensor]:
    """The tensors of real floating-point numbers in a structure."""
    tensors = [each for each in leaves(structure) if isinstance(each, Tensor)]
    return [each for each in tensors if each.dtype.is_floating_point]


def _names(call: Application, inputs: Sequence[Any]) -> list[str]:
    """What each tensor is called that a function is differentiated by: the parameter, and where it
    stands in that.
    """
    func = call.func
    parameters = func.signature.positional if isinstance(func, Function) else ()
    names: list[str] = []
    for position, value in zip(call.positions, inputs, strict=True):
        given = call.args[position]
        name = given.name if isinstance(given, Tensor) else None
        if position < len(parameters):
            name = parameters[position]
        names += _paths(name or f"argument {position}", value)
    return names


def _paths(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _paths(f"{name}[{key!r}]", part)
    elif isinstance(value, (list, tuple)):
        for number, part in enumerate(value):
            yield from _paths(f"{name}[{number}]", part)
    else:
        yield name


def _frames() -> Iterator[Any]:
    """The levels of batching that run, the innermost first."""
    frame: Any = active.state.batch
    while frame is not None:
        yield frame
        frame = frame.outer


def _of_all_examples(tensor: Tensor) -> Any:
    """The array of a tensor for all examples, the dimensions that count them first."""
    for frame in _frames():
        tensor = frame.run(frame.first, tensor)
    return to_host(forced(tensor.array))


def _batched(array: Any) -> Tensor:
    """A tensor of such an array, as a function sees it that is mapped."""
    tensor = Tensor(array[()])
    for frame in reversed([*_frames()]):
        tensor = batched_tensor(tensor, 0, frame.level)
    return tensor


@contextmanager
def _unheard() -> Iterator[None]:
    """Let nobody hear what runs."""
    state = active.state
    before, state.recorder = state.recorder, None
    try:
        yield
    finally:
        state.recorder = before


def transforms_checked(rerun: Rerun, most: int | None, seconds: float) -> Transforms:
    """The derivatives of `torch.func` that a program computes, which runs in float64."""
    heard = Transforms(most, seconds)
    # Functions that change what they see are called more often than the program means.
    with suppress(GradcliError):
        rerun.execute(dtype="float64", prepare=heard.listen)
    return heard
