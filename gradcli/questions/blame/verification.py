"""Verifies a rewrite by running the changed program and comparing its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.questions.blame.finding import Fix, Rewrite
from gradcli.questions.blame.nonfinite import is_finite
from gradcli.running.rerun import Outcome

Rerun = Callable[..., Outcome | None]
"""Runs the program again: `rerun(text=None, values={}, dtype=None)` takes another text, arrays for
its names, and a dtype; None where that is an error.
"""

Arrays = Mapping[str, Any]

_CLOSE = {"e": 1e-2, "f": 1e-4, "d": 1e-7}

_RANGES = ((0.3, 0.9), (-0.9, -0.3), (-3.0, 3.0), (2.0, 9.0))
"""Where inputs are drawn from: most functions are finite in one of them."""


def all_finite(outcome: Outcome) -> bool:
    """Whether every number of a run's results is."""
    return all(is_finite(array) for array in outcome.arrays().values())


class _Point:
    """Values of the inputs at which the program is finite, and what it comes to there.

    Attributes:
        where: the values in words.
    """

    def __init__(self, where: str, values: Arrays, outcome: Outcome) -> None:
        self.where = where
        self.values = values
        self.outcome = outcome


def find_fix(
    rewrites: Sequence[Rewrite],
    former: Outcome,
    exact: Outcome | None,
    rerun: Rerun,
    data: Arrays,
) -> Fix | None:
    """The first rewrite whose numbers are finite, and that computes the same function: wherever
    both programs are finite, values and gradients agree, and there is such a point.

    Args:
        exact: what it comes to in double precision.
        data: arrays that the program has under names, and does not differentiate by.
    """
    points: list[_Point] | None = None
    for rewrite in rewrites:
        outcome = rerun(rewrite.program(), dtype=rewrite.dtype)
        if outcome is None or outcome.output is None or not all_finite(outcome):
            continue
        compared = _compared(outcome, former, exact, rewrite.guards)
        if compared is None:
            continue
        if points is None:
            inputs = former.inputs
            points = list(_points(inputs, rerun)) or list(_points({**data, **inputs}, rerun))
        where = [point.where for point in points]
        if exact is not None and all_finite(exact):
            where.insert(0, "these inputs in float64")
        if where and all(_agrees(rewrite, point, rerun) for point in points):
            return Fix(rewrite, *compared, where)
    return None


def _points(inputs: Arrays, rerun: Rerun) -> Iterator[_Point]:
    """Points at which the program is finite, in float64."""
    named = {
        name: np.asarray(array)
        for name, array in inputs.items()
        if "#" not in name and np.asarray(array).dtype.kind in "fV"
    }
    for low, high in _RANGES if named else ():
        generator = np.random.default_rng(0)
        values = {name: generator.uniform(low, high, array.shape) for name, array in named.items()}
        outcome = rerun(values=values, dtype="float64")
        if outcome is not None and all_finite(outcome):
            yield _Point(f"inputs from {low:g} to {high:g}", values, outcome)


def _agrees(rewrite: Rewrite, point: _Point, rerun: Rerun) -> bool:
    """Whether a rewrite has the program's value and gradients at a point."""
    there = rerun(rewrite.program(), point.values, "float64")
    return (
        there is not None
        and there.arrays().keys() == point.outcome.arrays().keys()
        and _compared(there, point.outcome, None) is not None
    )


def _compared(
    outcome: Outcome, former: Outcome, exact: Outcome | None, guards: bool = False
) -> tuple[int, int] | None:
    """How many numbers agree with a known one and how many are unknown; None for a mismatch."""
    agree = chosen = 0
    references = [
        # The gradients of an infinite output are 0 or NaN, and mean nothing.
        each.arrays() if is_finite(each.output) else {"": each.output}
        for each in (exact, former)
        if each is not None and each.output is not None
    ]
    for name, array in outcome.arrays().items():
        array = np.asarray(to_host(array))
        known = np.zeros(array.shape, bool)
        data = former.inputs.get(name.removesuffix(".grad"))
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
            close = _CLOSE.get(array.dtype.char, 1e-4)
            kind = complex if array.dtype.kind == "c" else float
            a, b = array[here].astype(kind), right[here].astype(kind)
            if not np.allclose(a, b, rtol=close, atol=close):
                return None
            known |= here
        agree += int(known.sum())
        chosen += int(known.size - known.sum())
    return agree, chosen
