"""Kernels of plans beside NumPy's ufuncs: they fill a block of memory, `out`."""

from __future__ import annotations

from typing import Any

import numpy as np


def cast_block(operand: Any, out: Any) -> None:
    """Convert a block to the dtype of `out`."""
    np.copyto(out, operand, casting="unsafe")


def copy_block(operand: Any, out: Any) -> None:
    """Copy a block."""
    np.copyto(out, operand)


def scatter_block(index: Any, chosen: Any, out: Any) -> None:
    """Fill rows with zeros, but for the element that each row's index names."""
    out.fill(0)
    np.put_along_axis(out, index, chosen, 1)


def choose_block(condition: Any, chosen: Any, other: Any, out: Any) -> None:
    """Fill a block with `chosen` where the condition holds, with `other` elsewhere."""
    bits = _BITS.get(out.dtype) if type(out) is np.ndarray else None
    if bits is None or getattr(condition, "dtype", None) != np.bool_ or not condition.shape:
        np.copyto(out, other, casting="unsafe")
        np.copyto(out, chosen, where=condition, casting="unsafe")
        return
    # Times 0 or 1, as integers, is exact for every pattern of bits and takes no branches: a mask
    # that follows no pattern costs ten times as much otherwise.
    result = out.view(bits)
    if type(chosen) is int and chosen == 0:
        np.multiply(_bits(other, out.dtype, bits), np.logical_not(condition).view(np.int8), result)
        return
    wanted, unwanted = _bits(chosen, out.dtype, bits), _bits(other, out.dtype, bits)
    np.bitwise_xor(wanted, unwanted, result)
    np.multiply(result, condition.view(np.int8), result)
    np.bitwise_xor(result, unwanted, result)


_BITS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}
"""Integers as wide as the floating dtypes."""


def _bits(value: Any, dtype: np.dtype[Any], bits: Any) -> Any:
    """An operand of a dtype, seen as integers."""
    return np.asarray(value, dtype).view(bits)
