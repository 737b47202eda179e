"""The sums that norms are made of, in the order of PyTorch's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.kernels.sums.cascade_sum import REGISTER
from gradcli.kernels.sums.fused_multiply_add import multiply_add


def sum_in_turn(array: Any, dims: Sequence[int] | None) -> Any:
    """The sum over dimensions, all for None, which go: one element after another."""
    reduced = range(array.ndim) if dims is None else dims
    kept = [dim for dim in range(array.ndim) if dim not in reduced]
    sizes = [array.shape[dim] for dim in kept]
    rows = array.transpose([*reduced, *kept]).reshape(-1, *sizes)
    return np.add.accumulate(rows, axis=0)[-1] if len(rows) else np.zeros(sizes, array.dtype)[()]


def sum_of_squares(array: Any, dims: Sequence[int] | None) -> Any:
    """The sum of the squares over dimensions, all for None, which go."""
    count = array.ndim if dims is None else len(dims)
    kept = array.ndim - count
    flags = array.flags
    if not kept and (flags.c_contiguous or flags.f_contiguous):
        return _by_lanes(array.ravel(order="K"))
    if flags.c_contiguous and dims is not None and sorted(dims) == list(range(kept, array.ndim)):
        return _by_lanes(array.reshape(*array.shape[:kept], -1))
    return sum_in_turn(array * array, dims)


def _by_lanes(lines: Any) -> Any:
    """The sums of squares over the last axis, whose elements lie one behind the other: as many as a
    register holds at a time, then the rest, of which float32 is squared in fours.
    """
    lanes = REGISTER // lines.dtype.itemsize
    *others, length = lines.shape
    whole = length // lanes * lanes
    total = np.zeros(others, lines.dtype)[()]
    if whole:
        squares = np.square(lines[..., :whole]).reshape(*others, -1, lanes)
        total = np.add.accumulate(np.add.reduce(squares, axis=-2), axis=-1)[..., -1]
    fours = (length - whole) // 4 * 4 if lanes == 8 else 0
    for number in range(whole, length):
        each = lines[..., number]
        fused = number >= whole + fours
        total = multiply_add(total, each, each) if fused else total + each * each
    return total
