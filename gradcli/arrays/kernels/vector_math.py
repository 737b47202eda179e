"""Exponentials, logarithms, trigonometric and hyperbolic functions of float32.

NumPy's loops for float32 are up to 2 ulp off, PyTorch's hardly ever. So small arrays are computed
in float64 and rounded. Large ones are not, as that takes longer and their last digits are not
printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gradcli.arrays.backend import device_of, module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import LAZY

FEW = 256
"""Elements from which on NumPy's own loops are used."""

MANY = 1 << 15
"""Elements of bfloat16 from which on a table of all 65,536 pays: each costs up to 16 ns."""

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_float32 = np.float32


def _values(array: Any) -> Any:
    """The values of a small array in the host's memory, which may be lazy; None for anything else,
    also for the symbols of formulas.
    """
    kind = type(array)
    if kind in LAZY:
        if array.size >= FEW or device_of(array).type != "cpu":
            return None
        return array.force()
    return array if kind in HOST_ARRAYS and array.size < FEW else None


@cache
def _every(ufunc: Any, dtype: Any) -> Any:
    """A function of every bfloat16, by its bits."""
    return ufunc(np.arange(1 << 16, dtype=np.uint16).view(dtype))


def rounded(ufunc: Any, of_number: Callable[[Any], float]) -> Callable[[Any], Any]:
    """A function of an array or a NumPy scalar, from its ufunc and Python's function of a float."""

    def compute(self: Any) -> Any:
        if type(self) is _float32:
            try:
                return _float32(of_number(self))
            except (ValueError, OverflowError):  # where the ufunc returns nan or inf
                return ufunc(self)
        values = self if type(self) in HOST_ARRAYS and self.size < FEW else _values(self)
        if values is not None and values.dtype is _SINGLE:
            return ufunc(values.astype(_DOUBLE)).astype(_SINGLE)
        many = type(self) in HOST_ARRAYS and self.size >= MANY
        if many and self.dtype.kind == "V" and self.flags.c_contiguous:
            return _every(ufunc, self.dtype).take(self.view(np.uint16))
        return ufunc(self)

    compute.__name__ = compute.__qualname__ = ufunc.__name__
    return compute


exp = rounded(np.exp, math.exp)
exp2 = rounded(np.exp2, math.exp2)
expm1 = rounded(np.expm1, math.expm1)
log = rounded(np.log, math.log)
log2 = rounded(np.log2, math.log2)
log10 = rounded(np.log10, math.log10)
_log1p_of_real = rounded(np.log1p, math.log1p)
sin = rounded(np.sin, math.sin)
cos = rounded(np.cos, math.cos)
tan = rounded(np.tan, math.tan)
arcsin = rounded(np.arcsin, math.asin)
arccos = rounded(np.arccos, math.acos)
arctan = rounded(np.arctan, math.atan)
sinh = rounded(np.sinh, math.sinh)
cosh = rounded(np.cosh, math.cosh)
tanh = rounded(np.tanh, math.tanh)
arctanh = rounded(np.arctanh, math.atanh)


def log1p(self: Any) -> Any:
    """`log(1 + self)`, exact near 0 for complex numbers too, whose absolute value NumPy rounds."""
    if getattr(getattr(self, "dtype", None), "kind", "") != "c":
        return _log1p_of_real(self)
    xp = module_of(self)
    wide = xp.asarray(self, np.complex128)
    x, y = wide.real, wide.imag
    small = np.hypot(x, y) < 0.5
    squared = xp.where(small, x * (2 + x) + y * y, 0)  # |1 + self| ** 2 - 1
    near = xp.where(squared == 0, x, 0.5 * np.log1p(squared))
    logarithm = xp.empty(wide.shape, np.complex128)
    logarithm.real = xp.where(small, near, np.log(np.hypot(x + 1, y)))
    logarithm.imag = np.arctan2(y, x + 1)
    return logarithm.astype(self.dtype)[()]


def one_less_square(self: Any) -> Any:
    """1 - x · x, rounded once where PyTorch does so: for float32 and float64."""
    if type(self) is _float32:
        number = float(self)
        return _float32(1 - number * number)
    values = self if type(self) is np.float64 else _values(self)
    if values is None:
        square = self * self
        if type(square) in HOST_ARRAYS and square.dtype is _SINGLE:
            return np.subtract(_ONE, square, square)
        return 1 - square
    if values.dtype is _SINGLE:
        wide = values.astype(_DOUBLE)
        wide *= wide
        return (_WIDE_ONE - wide).astype(_SINGLE)
    if values.dtype is not _DOUBLE:
        return 1 - values * values
    wide = values.astype(np.longdouble)
    return (1 - wide * wide).astype(_DOUBLE)


_ONE, _WIDE_ONE = np.array(1, np.float32), np.array(1, np.float64)
