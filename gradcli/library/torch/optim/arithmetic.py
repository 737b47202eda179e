"""In-place array arithmetic for optimisers, rounded as PyTorch's kernels round.

PyTorch's kernels round once after a multiplication and an addition. Here the product is taken in
the next wider format, where it is exact or nearly so, and the sum is rounded when it is written.
Python numbers are rounded to the array's format first, as in PyTorch; half precision is computed in
single.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.sums.fused_multiply_add import multiply_add_wide, widened
from gradcli.ops.arithmetic.half_precision import with_multiple

_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


def rounded(number: float, array: Any) -> Any:
    """A number in the format that an array is computed in."""
    return number if array.dtype is _DOUBLE else np.float32(number)


def narrowed(value: Any, array: Any) -> Any:
    """A result in an array's format, in which each step of half precision is kept."""
    return value if value.dtype is array.dtype else value.astype(array.dtype)


def add_scaled(total: Any, term: Any, factor: float) -> None:
    """total += factor · term."""
    if total.dtype.itemsize == 2:
        total[...] = with_multiple(total, term, factor)
        return
    if not in_c.add_scaled(total, term, factor, total):
        total[...] = multiply_add_wide(total, term, widened(factor, total))


def scaled_sum(left: Any, right: Any, factor: float) -> Any:
    """left + factor · right, as a new array."""
    if left.dtype.itemsize == 2:
        return with_multiple(left, right, factor)
    return multiply_add_wide(left, right, widened(factor, left)).astype(left.dtype)


def scale(array: Any, factor: float) -> None:
    """array *= factor."""
    array[...] = array * rounded(factor, array)


def interpolate(start: Any, end: Any, weight: float) -> None:
    """start += weight · (end - start), from whichever end is nearer."""
    if start.dtype.itemsize == 2:
        _in_single(interpolate, start, end, weight)
        return
    share = rounded(weight, start)
    if abs(weight) < 0.5:
        start[...] = multiply_add_wide(start, end - start, widened(share, start))
    else:
        start[...] = multiply_add_wide(end, end - start, -widened(1 - share, start))


def add_product(total: Any, left: Any, right: Any, factor: float) -> None:
    """total += factor · left · right."""
    if total.dtype.itemsize == 2:
        _in_single(add_product, total, left, right, factor)
        return
    total[...] = multiply_add_wide(total, left * rounded(factor, total), right)


def add_quotient(total: Any, left: Any, right: Any, factor: float) -> None:
    """total += factor · left / right."""
    if total.dtype.itemsize == 2:
        _in_single(add_quotient, total, left, right, factor)
        return
    total += left * rounded(factor, total) / right


def _in_single(step: Callable[..., None], total: Any, *operands: Any) -> None:
    """Do a step on half precision in single precision, and round the result."""
    single = total.astype(_SINGLE)
    step(single, *(v.astype(_SINGLE) if isinstance(v, np.ndarray) else v for v in operands))
    total[...] = single
