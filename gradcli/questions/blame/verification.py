"""Verifies a rewrite by running the changed program and comparing its numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.questions.blame.find import Fix, Rewrite
from gradcli.questions.blame.nonfinite import is_finite
from gradcli.running.rerun import Outcome

Rerun = Callable[..., Outcome | None]
"""Runs the program again: `rerun(text=None, values={}, dtype=None)` takes another text, arrays for
its names, and a dtype; None where that is an error.
"""

Arrays = Mapping[str, Any]

_NOTHING: Arrays = {}

_CLOSE = {"float16": 1e-2, "bfloat16": 5e-2, "float64": 1e-7}
"""How close numbers of a dtype are that are the same; of others 1e-4."""


class OutOfTime(Exception):
    """Rewrites have been run for as long as they may."""


def within(seconds: float, rerun: Rerun) -> Rerun:
    """A rerun that raises `OutOfTime` after so many seconds of processor time."""
    ends = process_time() + seconds

    def run(*args: Any, **kwargs: Any) -> Outcome | None:
        if process_time() > ends:
            raise OutOfTime
        return rerun(*args, **kwargs)

    return run


_SHRINKS = (0.9, 0.7, 0.5, 0.3, 0.1, 0.03)
"""What inputs whose results are too large are multiplied by: where float64 holds the results."""

_RANGES = ((0.3, 0.9), (-0.9, -0.3), (-3.0, 3.0), (2.0, 9.0))
"""Where inputs are drawn from: most functions are finite in one of them."""


def all_finite(outcome: Outcome) -> bool:
    """Whether every number of a run's results is."""
    return all(is_finite(array) for array in outcome.arrays().values())


def in_float64(text: str) -> str:
    """A program that asks for less than double precision as it is in float64."""
    text = re.sub(r"\btorch\.(float16|half|bfloat16|float32|float)\b", "torch.float64", text)
    return re.sub(r"\.(half|bfloat16|float)\(\)", ".double()", text)


class _Point:
    """Values of the inputs at which the program is finite, and what it comes to there.

    Attributes:
        where: the values in words.
        beside: whether all inputs are positive, and these are not: where what stands for the
            program may be undefined, as the logarithm of a probability is.
    """

    def __init__(self, where: str, values: Arrays, outcome: Outcome, beside: bool = False) -> None:
        self.where = where
        self.values = values
        self.outcome = outcome
        self.beside = beside


def find_fix(
    rewrites: Sequence[Rewrite],
    former: Outcome,
    exact: Outcome | None,
    rerun: Rerun,
    data: Arrays,
    text: str,
    elsewhere: bool = True,
) -> Fix | None:
    """The first rewrite whose numbers are finite, and that computes the same function: wherever
    both programs are finite, values and gradients agree, and there is such a point.

    Args:
        exact: what it comes to in double precision.
        text: the program in double precision.
        data: arrays that the program has under names, and does not differentiate by.
        elsewhere: whether the two are compared at other inputs too, where they are finite at some
            of these: that takes many runs.
    """
    points: list[_Point] | None = None
    reference: Rerun = rerun
    for rewrite in rewrites:
        outcome = rerun(rewrite.program(), dtype=rewrite.dtype)
        if outcome is None or outcome.output is None or not all_finite(outcome):
            continue
        compared = _compared(outcome, former, exact, rewrite.guards)
        if compared is None:
            continue
        if not rewrite.chooses and any(not name for name, _ in compared[2]):
            continue
        if points is None:
            reference = partial(rerun, text, dtype="float64")
            points = _points(former.inputs, data, exact, reference, elsewhere)
        counts = [_agreeing(rewrite, point, rerun, reference) for point in points]
        if any(counts) and None not in counts:
            agree, count, chosen = compared
            where = [point.where for point, n in zip(points, counts, strict=True) if n]
            return Fix(rewrite, agree, count, where, _choices(outcome, count, chosen))
    return None


_MOST = 3
"""Numbers that a rewrite chooses, and that are shown."""


def _choices(
    outcome: Outcome, count: int, chosen: Sequence[tuple[str, tuple[int, ...]]]
) -> list[str]:
    """The first of so many numbers that a rewrite chooses, in words."""
    arrays = outcome.arrays()
    choices = []
    for name, element in chosen:
        value = float(np.real(np.asarray(to_host(arrays[name]))[element])) + 0.0
        index = f"[{', '.join(map(str, element))}]" if element else ""
        choices.append(f"{name or 'the output'}{index} = {value:.4g}")
    return choices + ["…"] * (count > len(chosen))


def _points(
    inputs: Arrays, data: Arrays, exact: Outcome | None, reference: Rerun, elsewhere: bool
) -> list[_Point]:
    """Where the program is compared with what is to stand for it: at its own inputs in float64, as
    far as it is finite there, at smaller ones where they are too large, and at others.
    """
    points = []
    if exact is not None and exact.output is not None:
        values = exact.arrays().values()
        if any(np.isfinite(np.asarray(to_host(each))).any() for each in values):
            points.append(_Point("these inputs in float64", {}, exact))
            if not elsewhere:
                return points
        if not is_finite(exact.output):
            points += _shrunk(inputs, reference)
    everything = {**data, **inputs}
    drawn = list(_drawn(inputs, reference)) or list(_drawn(everything, reference))
    for masks in [] if drawn else _masks(data):
        drawn = drawn or list(_drawn(inputs, reference, masks))
    # Where a value always has an element without slope, such as the distance of a point to itself,
    # the gradient is compared with differences of the value.
    return points + (drawn or list(_drawn(everything, reference, whole=False)))


def _masks(data: Arrays) -> Iterator[Arrays]:
    """The masks of a program without rows that are masked whole, whichever value masks."""
    masks = {n: np.asarray(a) for n, a in data.items() if np.asarray(a).dtype.kind == "b"}
    masks = {n: a for n, a in masks.items() if a.ndim}
    if masks:
        yield {n: a | ~a.any(-1, keepdims=True) for n, a in masks.items()}
        yield {n: a & ~a.all(-1, keepdims=True) for n, a in masks.items()}


def _shrunk(inputs: Arrays, reference: Rerun) -> Iterator[_Point]:
    """The inputs times the largest factor that makes all results finite in float64."""
    named = _floating(inputs)
    for factor in _SHRINKS if any(array.any() for array in named.values()) else ():
        values = {name: array.astype(float) * factor for name, array in named.items()}
        outcome = reference(values=values)
        if outcome is not None and all_finite(outcome):
            yield _Point(f"these inputs times {factor} in float64", values, outcome)
            return


def _floating(inputs: Arrays) -> dict[str, Any]:
    return {
        name: np.asarray(array)
        for name, array in inputs.items()
        if "#" not in name and np.asarray(array).dtype.kind in "fV"
    }


def _drawn(
    inputs: Arrays, reference: Rerun, masks: Arrays = _NOTHING, whole: bool = True
) -> Iterator[_Point]:
    """Points at which the program is finite in float64, or, unless `whole`, its value is.

    Args:
        masks: arrays of booleans in place of the program's.
    """
    named = _floating(inputs)
    positive = all((array > 0).all() for array in named.values())
    for low, high in _RANGES if named else ():
        generator = np.random.default_rng(0)
        values = {name: generator.uniform(low, high, array.shape) for name, array in named.items()}
        outcome = reference(values={**values, **masks})
        if outcome is None or outcome.output is None or not is_finite(outcome.output):
            continue
        where = f"inputs from {low:g} to {high:g}"
        if masks:
            where += f" where no row of {' and '.join(masks)} is masked whole"
        if all_finite(outcome):
            yield _Point(where, {**values, **masks}, outcome, positive and low < 0)
        elif not whole:
            yield _Point(f"differences of the value at {where}", values, outcome)


_STEP = 1e-5


def _slopes_agree(there: Outcome, point: _Point, reference: Rerun) -> bool:
    """Whether the gradients of a rewrite are what differences of the program's value say."""
    generator = np.random.default_rng(1)
    gradients = {name: each for name, each in there.gradients.items() if each is not None}
    # What the program does not differentiate by stays where it is.
    moves = {name: each for name, each in point.values.items() if name in gradients}
    directions = {name: generator.normal(size=each.shape) for name, each in moves.items()}
    sums = []
    for sign in (1, -1):
        moved = {n: each + sign * _STEP * directions[n] for n, each in moves.items()}
        outcome = reference(values={**point.values, **moved})
        if outcome is None or not is_finite(outcome.output):
            return False
        sums.append(float(np.sum(to_host(outcome.output))))
    slope = sum(
        float(np.sum(np.asarray(to_host(gradients[name])) * direction))
        for name, direction in directions.items()
    )
    difference = (sums[0] - sums[1]) / (2 * _STEP)
    return abs(slope - difference) <= 1e-5 * max(1.0, abs(difference))


def _agreeing(rewrite: Rewrite, point: _Point, rerun: Rerun, reference: Rerun) -> int | None:
    """How many numbers a rewrite has in common with the program at a point; None where its value or
    a gradient is another one.
    """
    there = rerun(in_float64(rewrite.program()), point.values, "float64")
    if there is None or there.arrays().keys() != point.outcome.arrays().keys():
        return None
    if point.beside and not all_finite(there):
        return 0
    compared = _compared(there, point.outcome, None)
    if compared is None and point.values:
        compared = _compared(there, point.outcome, None, noise=_noise(point, reference))
    if compared is None:
        return None
    compares = all_finite(point.outcome) or not point.values
    return compared[0] if compares or _slopes_agree(there, point, reference) else None


_SAMPLES, _APART = 9, 1e-4
"""Runs that tell how rough a program is, and how far apart their inputs are."""

_ROUGH = 10.0
"""Numbers agree that are so many times as far apart as the program is rough there."""


def _noise(point: _Point, reference: Rerun) -> Arrays:
    """How rough each result of the program is around a point: its own rounding, which is large
    where it takes nearly equal numbers from each other, as `1 - sigmoid(30)` does.

    A smooth function has next to no fourth differences, and those of noise are √70 times as large
    as it is (Moré and Wild, "Estimating computational noise", 2011).
    """
    sampled: dict[str, list[Any]] = {}
    for number in range(_SAMPLES):
        moved = {n: a * (1 + number * _APART) for n, a in _floating(point.values).items()}
        outcome = reference(values={**point.values, **moved})
        for name, array in ({} if outcome is None else outcome.arrays()).items():
            sampled.setdefault(name, []).append(np.asarray(to_host(array), float))
    noise = {}
    for name, arrays in sampled.items():
        if len(arrays) == _SAMPLES and np.isfinite(arrays).all() and arrays[0].size:
            fourth = np.diff(np.stack(arrays), 4, axis=0)
            noise[name] = float(np.sqrt((fourth**2).mean(0).max() / 70))
    return noise


def _compared(
    outcome: Outcome,
    former: Outcome,
    exact: Outcome | None,
    guards: bool = False,
    noise: Arrays = _NOTHING,
) -> tuple[int, int, list[tuple[str, tuple[int, ...]]]] | None:
    """How many numbers agree with a known one, how many are unknown, and the first few of these;
    None for a mismatch.

    Args:
        noise: how far each known number may be from the true one, by name.
    """
    agree, count = 0, 0
    chosen: list[tuple[str, tuple[int, ...]]] = []
    references = [
        # The gradients of an infinite output are 0 or NaN, and mean nothing.
        each.arrays() if is_finite(each.output) else {"": each.output}
        for each in (exact, former)
        if each is not None and each.output is not None
    ]
    for name, array in outcome.arrays().items():
        array = np.asarray(to_host(array))
        known = np.zeros(array.shape, bool)
        data = (exact or former).inputs.get(name.removesuffix(".grad"))
        # Where the data is no number, its gradient means nothing.
        counts = np.ones(array.shape, bool) if data is None else np.isfinite(to_host(data))
        for reference in references:
            right = reference.get(name)
            if right is None or right.shape != array.shape:
                continue
            right = np.asarray(to_host(right))
            if guards and not name and np.isinf(right).any():
                return None
            here = np.isfinite(right) & ~known & counts
            close = max(_CLOSE.get(each.dtype.name, 1e-4) for each in (array, right))
            kind = complex if array.dtype.kind == "c" else float
            a, b = array[here].astype(kind), right[here].astype(kind)
            scale = float(np.abs(b).max()) if b.size and array.dtype.char == "d" else 1.0
            apart = close * min(scale, 1.0) + 1e-12 + _ROUGH * noise.get(name, 0.0)
            if not np.allclose(a, b, rtol=close, atol=apart):
                return None
            known |= here
        found = int(known.sum())
        agree, count = agree + found, count + known.size - found
        unknown = np.flatnonzero(~known)[: _MOST - len(chosen)]
        for flat in map(int, unknown):
            chosen.append((name, tuple(map(int, np.unravel_index(flat, known.shape)))))
    return agree, count, chosen
