"""Tile kernels: the kernels of plans besides NumPy's ufuncs; each fills a tile of memory, `out`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS


def cast_tile(operand: Any, out: Any) -> None:
    """Convert a tile to the dtype of `out`."""
    if out.dtype.itemsize == 2 and type(out) in HOST_ARRAYS and type(operand) in HOST_ARRAYS:
        from gradcli.arrays.native.half import convert  # lazy: start-up: only for half precision

        if operand.dtype == np.float32 and out.dtype.kind != "i":
            convert(operand, out)
            return
    np.copyto(out, operand, casting="unsafe")


def copy_tile(operand: Any, out: Any) -> None:
    np.copyto(out, operand)


def scatter_tile(index: Any, chosen: Any, out: Any) -> None:
    """Fill rows with zeros, but for the element that each row's index names."""
    out.fill(0)
    out[places_along(index, 1)] = chosen


def log_softmax_tile(
    array: Any, largest: Any, logarithms: Any, powers: Any, totals: Any, out: Any
) -> None:
    """The logarithm of softmax: an array minus its largest element and the logarithm of the powers'
    total. The powers themselves are operands so that softmax can reuse them.
    """
    np.subtract(array, largest, out=out)
    np.subtract(out, logarithms, out=out)


def weights_tile(powers: Any, factors: Any, index: Any, chosen: Any, out: Any) -> None:
    """Powers times a factor, plus a number at the position that each row's index names."""
    np.multiply(powers, factors, out=out)
    out[places_along(index, 1)] += chosen


def places_along(index: Any, dim: int) -> tuple[Any, ...]:
    """The index tuple that selects the elements that `index` names along a dimension; the other
    dimensions of both arrays are the same.
    """
    ndim = index.ndim
    return tuple(
        [
            index if axis == dim else module_of(index).arange(size).reshape(-1, *(1,) * after)
            for axis, size, after in zip(
                range(ndim), index.shape, range(ndim - 1, -1, -1), strict=True
            )
        ]
    )


def choose_tile(condition: Any, chosen: Any, other: Any, out: Any) -> None:
    """Fill a tile with `chosen` where the condition holds, with `other` elsewhere."""
    bits = _BITS.get(out.dtype.char) if type(out) in HOST_ARRAYS else None
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


def choose(condition: Any, chosen: Any, other: Any) -> Any:
    """`np.where`, in a tenth of its time for many elements."""
    if type(condition) in HOST_ARRAYS and condition.size >= _MANY and condition.flags.c_contiguous:
        arrays = [each for each in (chosen, other) if type(each) in HOST_ARRAYS]
        dtype = arrays[0].dtype if arrays else condition.dtype
        numbers = [each for each in (chosen, other) if type(each) in (int, float, dtype.type)]
        if (
            dtype.char in _BITS
            and len(arrays) + len(numbers) == 2
            and all(
                each.dtype is dtype and each.shape == condition.shape and each.flags.c_contiguous
                for each in arrays
            )
        ):
            out = np.empty(condition.shape, dtype)
            choose_tile(condition, chosen, other, out)
            return out
    if type(chosen) is int and chosen == 0 and type(other) in HOST_ARRAYS:
        chosen = _ZEROS.get(other.dtype, chosen)
    return np.where(condition, chosen, other)


def positive_part(array: Any, out: Any = None) -> Any:
    """The elements that are positive, 0 for those below. NaN and -0 stay what they are."""
    if type(array) in HOST_ARRAYS and array.size >= _MANY and array.dtype in _ZEROS:
        # NumPy has a fast loop for `clip` to bounds of its dtype, none for `maximum` of a number.
        return np.clip(array, array.dtype.type(0), array.dtype.type(np.inf), out)
    zero = _ZEROS.get(array.dtype, 0) if type(array) in HOST_ARRAYS else 0
    return np.maximum(zero, array, out=out)  # in this order a negative zero keeps its sign


_MANY = 4096
"""Elements from which on the detour through integers is faster."""

_BITS: dict[str, Any] = {"e": np.int16, "E": np.int16, "f": np.int32, "d": np.int64}
"""Integers as wide as the floating dtypes, by their characters; bfloat16's is E."""

_ZEROS = {dtype: np.array(0, dtype) for dtype in map(np.dtype, (np.float32, np.float64))}
"""Zeros as arrays, with which NumPy computes faster than with a number."""


def _bits(value: Any, dtype: np.dtype[Any], bits: Any) -> Any:
    """An operand of a dtype, viewed as integers."""
    if type(value) not in HOST_ARRAYS or value.dtype is not dtype:
        value = np.asarray(value, dtype)
    return value.view(bits)
