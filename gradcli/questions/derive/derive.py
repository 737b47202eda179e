"""From a recorded run to the formulas of its gradients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.layout.meta import MetaArray
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.recording.trace_recorder import UPDATE, TraceRecorder, source_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.questions.derive.program import (
    Derivation,
    HasWordFor,
    IsValue,
    derivation,
    identifier_of,
)
from gradcli.recorded.result import Result
from gradcli.recorded.symbols.text import text_of
from gradcli.state import active

Program = Callable[..., dict[str, Any]]
"""Runs a program of the language on inputs and gives the arrays that its names hold: the text, the
inputs, the names that are wanted, and what hears of the array of each line.
"""

_CLOSE = {"float16": 1e-2, "bfloat16": 1e-1, "float64": 1e-9, "complex128": 1e-9}


_ROUNDINGS = 16
"""How many roundings of the largest number may be left of terms that cancel."""


def derive(
    result: Result,
    recorder: TraceRecorder,
    run: Program,
    has_word_for: HasWordFor | None = None,
    is_value: IsValue = lambda name, array: False,
) -> Derivation:
    """The formulas of the gradients of a result, checked by running them.

    Args:
        is_value: whether a constant with a name is written as its value, and is no input.
        has_word_for: whether a formula can be written where it goes, all where it is None.

    Raises:
        GradcliError: E413 where an op has no formula, or where the formulas give other numbers.
    """
    wanted = _wanted(result)
    if isinstance(result.output.array, MetaArray):
        raise GradcliError(
            "E413",
            "formulas are proved on numbers, and the output is a tensor on meta, which has none",
            help="make it on the CPU, or name another output: `--of NAME`",
        )
    forward = len(recorder.values)
    inputs = {name: source_of(recorder.find(tensor)) for name, tensor in wanted.items()}
    for name, value in inputs.items():
        if value.number >= forward and value.maker is not None and value.maker.op is UPDATE:
            raise _changed(f"`{name}` in place, after the output was computed from it")
    for name, tensor in _named(recorder).items():
        if not is_value(name, tensor.array):
            inputs.setdefault(name, source_of(recorder.find(tensor)))
    seed = result.seed
    if seed is not None:
        seed = Tensor(np.array(to_host(seed.array))[()])
        inputs["seed"] = source_of(recorder.find(seed))
        forward = max(forward, len(recorder.values))
    with _recording(recorder):
        try:
            tensors = list(wanted.values())
            computed = grad(result.output, tensors, seed, create_graph=True, allow_unused=True)
        except GradcliError as error:
            if error.code != "E404":
                error.notes += ("derive runs the backward pass once more, to record its graph",)
                raise
            raise _changed(f"a value in place that its gradient needs: {error.message}") from error
        gradients = {
            name: recorder.find(gradient)
            for name, gradient in zip(wanted, computed, strict=True)
            if gradient is not None
        }
        derived = derivation(recorder, inputs, gradients, forward, has_word_for, is_value)
    derived.paths = {name: path for path, name in _identifiers(result).items() if path != name}
    _check(derived, run)
    return derived


def _changed(what: str) -> GradcliError:
    return GradcliError(
        "E413",
        f"the program changed {what}",
        help="derive the gradient of a program that ends before the change, as before `opt.step()`",
    )


@contextmanager
def _recording(recorder: TraceRecorder) -> Iterator[None]:
    """Record all ops that run, with their arrays."""
    state = active.state
    before = state.recorder, state.lazy_from, recorder.keeps
    state.recorder, state.lazy_from, recorder.keeps = recorder, 1 << 62, False
    try:
        yield
    finally:
        state.recorder, state.lazy_from, recorder.keeps = before


def _wanted(result: Result) -> dict[str, Tensor]:
    """The inputs whose gradients are derived, by name."""
    names = _identifiers(result)
    wanted = {
        names[gradient.name]: gradient.tensor
        for gradient in result.gradients
        if gradient.name is not None and gradient.node is not None
    }
    if not wanted:
        raise GradcliError("E402", "no input with a name requires grad")
    return wanted


def _identifiers(result: Result) -> dict[str, str]:
    """A name for formulas of each input, that of a path without its dots and brackets."""
    identifiers: dict[str, str] = {}
    for gradient in result.gradients:
        if gradient.name is not None:
            name = identifier_of(gradient.name)
            while name in identifiers.values():
                name += "_"
            identifiers[gradient.name] = name
    return identifiers


def _named(recorder: TraceRecorder) -> dict[str, Tensor]:
    """The tensors with names that no instruction made: what the formulas may take from outside."""
    return {
        tensor.name: tensor
        for value, tensor in zip(recorder.values, recorder.tensors, strict=True)
        if value.maker is None and tensor is not None and tensor.name and tensor.name.isidentifier()
    }


def _check(derived: Derivation, run: Program) -> None:
    """Run the formulas, and raise E413 where they give other numbers than the engine."""
    program = "\n".join(f"{line.name} = {text_of(line.formula)}" for line in derived.lines)
    try:
        values, _ = run_formulas(run, program, derived.inputs, derived.gradients.values())
    except GradcliError as error:
        raise _disagreement(f"they cannot be run: {error.message}") from error
    steps = largest_of(line.array for line in derived.lines)
    for name, expected in derived.values.items():
        array = values.get(derived.gradients[name])
        close = _CLOSE.get(expected.dtype.name, 1e-4)
        if array is None or not agrees(array, expected, close, steps):
            raise _disagreement(f"that of {name} is another number than the engine's")


Largest = Mapping[np.dtype[Any], float]
"""The largest number in the arrays of each dtype."""


def largest_of(steps: Iterable[Any]) -> Largest:
    """The largest finite number in the steps of a program, of each floating dtype."""
    largest: dict[np.dtype[Any], float] = {}
    for each in steps:
        _enlarge(largest, each)
    return largest


def _enlarge(largest: dict[np.dtype[Any], float], array: Any) -> None:
    if array.dtype.kind in "fc":
        largest[array.dtype] = max(largest.get(array.dtype, 0.0), _largest(array))


def run_formulas(
    run: Program, program: str, inputs: dict[str, Any], wanted: Collection[str]
) -> tuple[dict[str, Any], Largest]:
    """Some of the arrays of a program of formulas, and the largest numbers of all."""
    largest: dict[np.dtype[Any], float] = {}
    values = run(program, inputs, set(wanted), partial(_enlarge, largest))
    return values, largest


def agrees(array: Any, expected: Any, close: float, steps: Largest) -> bool:
    """Whether two arrays are alike: to a part of the largest element, or to the rounding of the
    largest step on the way, which is left where terms cancel.
    """
    if array.shape != expected.shape:
        return False
    room = close * max(_largest(expected), 1e-30)
    if expected.dtype.kind in "fc":
        largest = steps.get(expected.dtype, 0.0)
        room = max(room, _ROUNDINGS * float(np.finfo(expected.dtype).eps) * largest)
    return bool(np.allclose(array, expected, rtol=close, atol=room, equal_nan=True))


def _largest(array: Any) -> float:
    return float(np.max(np.abs(array), initial=0.0, where=np.isfinite(array)))


def _disagreement(what: str) -> GradcliError:
    return GradcliError(
        "E413",
        f"the gradient's formulas were not confirmed: {what}",
        help="`gradcli explain` shows the numbers",
    )
