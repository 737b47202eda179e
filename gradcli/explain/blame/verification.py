"""Verifies a rewrite by running the changed program and comparing its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.explain.blame.finding import Fix, Outcome, Rewrite

Rerun = Callable[..., Outcome | None]
"""Runs the program again: `rerun(text=None, values={}, dtype=None)` takes another text, arrays for
its names, and a dtype; None where that is an error.
"""

_CLOSE = {"e": 1e-2, "f": 1e-4, "d": 1e-7}


def find_fix(
    rewrites: Sequence[Rewrite], former: Outcome, exact: Outcome | None, rerun: Rerun
) -> Fix | None:
    """The first rewrite whose numbers are finite, and right wherever the right number is known.

    Args:
        exact: what it comes to in double precision.
    """
    tame = _tame(former)
    reference = rerun(values=tame, dtype="float64") if tame else None
    if reference is not None and not reference.is_finite():
        reference = None
    for rewrite in rewrites:
        outcome = rerun(rewrite.program(), dtype=rewrite.dtype)
        if outcome is None or outcome.output is None or not outcome.is_finite():
            continue
        compared = _compared(outcome, former, exact, rewrite.guards)
        if compared is None:
            continue
        if reference is not None:
            there = rerun(rewrite.program(), tame, "float64")
            if there is None or _compared(there, reference, None) is None:
                continue
        return Fix(rewrite, *compared, reference is not None)
    return None


def _tame(outcome: Outcome) -> dict[str, Any]:
    """Values for the inputs that most functions are finite at: different ones between 0 and 1."""
    generator = np.random.default_rng(0)
    return {
        name: generator.uniform(0.3, 0.9, array.shape)
        for name, array in outcome.gradients.items()
        if array is not None and name.isidentifier() and array.dtype.kind != "c"
    }


def _compared(
    outcome: Outcome, former: Outcome, exact: Outcome | None, guards: bool = False
) -> tuple[int, int] | None:
    """How many numbers agree with a known one and how many are unknown; None for a mismatch."""
    agree = chosen = 0
    references = [each.arrays() for each in (exact, former) if each is not None]
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
