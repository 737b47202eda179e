"""Functions of real numbers in pieces, each a polynomial or a quotient of two for a stretch of the
line.

A function here is a ufunc to those who call it. It takes numbers, arrays and lazy arrays; arrays of
other libraries are left to `__array_ufunc__`, which finds theirs by its name. It is computed in
float64 and rounded once to the dtype of its operands.

Coefficients interpolate a function in the zeros of a Chebyshev polynomial; they are found in 60
digits, and rounded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.native.dispatch import kernel
from gradcli.arrays.threads import over_tiles

Compute = Callable[..., Any]
"""A function of numbers of float64, or of arrays of them of one dimension."""


class Quotient:
    """The value of one polynomial over that of another, by Horner's rule."""

    def __init__(self, numerator: Sequence[float], denominator: Sequence[float] = ()) -> None:
        """
        Args:
            numerator: two coefficients or more, from the constant up.
            denominator: likewise; none for 1.
        """
        self._parts = [tuple(part) for part in (numerator, denominator) if part]
        self._arrays = np.array(numerator, np.float64), np.array(denominator, np.float64)

    def __call__(self, x: Any) -> Any:
        if type(x) is not np.ndarray:
            above, *below = [_value(part, float(x)) for part in self._parts]
            return np.float64(above / below[0] if below else above)
        compute = kernel("quotient")
        if compute is not None:
            values = np.empty_like(x)
            compute(x, *self._arrays, values)
            return values
        above, *below = [_values(part, x) for part in self._parts]
        return np.divide(above, below[0], above) if below else above


def _value(coefficients: Sequence[float], x: float) -> float:
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _values(coefficients: Sequence[float], x: Any) -> Any:
    sums = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        sums += coefficient
        sums *= x
    sums += coefficients[0]
    return sums


def in_pieces(*pieces: tuple[float, Compute]) -> Compute:
    """A function from its pieces and the numbers below which they serve; nan is left to the last,
    whatever its bound.
    """
    bounds = [bound for bound, _ in pieces[:-1]]
    functions = [function for _, function in pieces]

    def compute(x: Any) -> Any:
        if type(x) is not np.ndarray:
            return functions[bisect_right(bounds, x)](x)
        least, largest = x.min(), x.max()
        first, last = bisect_right(bounds, least), bisect_right(bounds, largest)
        if least != least:  # nan is among them
            first = 0
        if first == last:
            return functions[first](x)
        values = np.empty_like(x)
        done = np.zeros(x.shape, np.bool_)
        for number in range(first, last + 1):
            inside = x < bounds[number] if number < len(bounds) else np.ones(x.shape, np.bool_)
            places = np.flatnonzero(inside > done)
            if places.size:
                values[places] = functions[number](x[places])
            done = inside
        return values

    return compute


class ElementFunction:
    """A function of elements with the protocol of NumPy's ufuncs."""

    nout = 1
    signature = None

    def __init__(
        self,
        name: str,
        compute: Compute,
        operands: int = 1,
        of_number: Callable[[float], float] | None = None,
        in_c: str = "",
    ) -> None:
        """
        Args:
            name: the ufunc's in SciPy, and so in CuPy.
            compute: the function.
            operands: how many it has.
            of_number: the same of one float, if Python has it.
            in_c: the kernel of arrays of float64, if the C library has it.
        """
        self.__name__ = name
        self._compute = compute
        self._of_number = compute if of_number is None else of_number
        self._in_c = in_c
        self._like = np.sqrt if operands == 1 else np.logaddexp

    def resolve_dtypes(self, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
        """The dtypes for operands of some kinds and a result of None, as a ufunc gives them."""
        dtypes: tuple[Any, ...] = self._like.resolve_dtypes(kinds)
        return dtypes

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """The values, in the dtype of the operands, or written to `out`.

        Raises TypeError for operands that are no numbers.
        """
        first = operands[0]
        kind = type(first)
        if kind in _SCALARS and len(operands) == 1 and out is None:
            return kind(self._of_number(_float64(first)))
        for operand in operands:
            if type(operand) is not _ndarray and hasattr(operand, "__array_ufunc__"):
                if isinstance(operand, np.generic):
                    continue
                if operand.__array_ufunc__ is None:
                    raise TypeError(f"{self.__name__} of {type(operand).__name__}")
                keywords = {} if out is None else {"out": (out,)}
                return operand.__array_ufunc__(self, "__call__", *operands, **keywords)
        if kind is _ndarray and len(operands) == 1 and first.dtype in _DTYPES:
            dtype, arrays = first.dtype, [first]
        else:
            dtype = self.resolve_dtypes((*map(_kind, operands), None))[-1]
            arrays = [*np.broadcast_arrays(*operands)]
        result = _like_them(arrays, dtype)
        if result.size:
            # Elements are gone through as they lie in memory.
            axes = sorted(range(result.ndim), key=lambda axis: -result.strides[axis])
            flat = [each.transpose(axes).reshape(-1) for each in (*arrays, result)]
            self._fill(flat[:-1], flat[-1])
        if out is None:
            if not result.ndim:
                return result[()]
            if kind is not _ndarray or first.flags.c_contiguous or first.shape != result.shape:
                return result
            out = np.empty_like(first, dtype)  # whose dimensions lie in the operand's order
        out[...] = result
        return out

    def _fill(self, flat: Sequence[Any], values: Any) -> None:
        in_c = kernel(self._in_c) if self._in_c else None
        if values.size <= (1 if in_c is not None else _FEW):
            of_number = self._of_number
            numbers = zip(*(array.astype(np.float64) for array in flat), strict=True)
            values[:] = [of_number(*each) for each in numbers]
            return

        def fill(tile: slice) -> None:
            for start in range(tile.start, tile.stop, _BLOCK):
                block = slice(start, min(start + _BLOCK, tile.stop))
                operands = [array[block].astype(np.float64) for array in flat]
                if in_c is not None:
                    in_c(*operands, operands[0])
                    values[block] = operands[0]
                else:
                    values[block] = self._compute(*operands)

        if values.size <= _BLOCK:
            fill(slice(0, values.size))
        else:
            over_tiles(values.shape, fill)


_ndarray, _float64 = np.ndarray, np.float64
_SCALARS = frozenset({np.float32, np.float64})
_DTYPES = frozenset(map(np.dtype, _SCALARS))

_BLOCK = 1 << 12
"""Elements that are computed at a time: what a function holds of them fits the nearest cache."""

_FEW = 12
"""Elements up to which they are quicker one by one."""


def _like_them(arrays: Sequence[Any], dtype: Any) -> Any:
    """A new array of the shape of some arrays, that lies in memory as they do."""
    if all(each.flags.c_contiguous for each in arrays):
        return np.empty(arrays[0].shape, dtype)
    kinds = [None] * len(arrays)
    iterator = np.nditer((*arrays, None), ("zerosize_ok",), op_dtypes=(*kinds, dtype))
    return iterator.operands[-1]


def _kind(operand: Any) -> Any:
    """What NumPy derives a dtype from: a dtype, or the type of a Python number."""
    return getattr(operand, "dtype", type(operand))
