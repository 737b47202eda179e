"""Fused multiply-add: total + factor · term with one rounding, as PyTorch's kernels compute it.

The product is computed in the next wider format, where it is exact or nearly so, and the sum is
rounded when it is stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.gpu.array import GPUArray

_DOUBLE = np.dtype(np.float64)
_EXTENDED = np.dtype(np.longdouble)
_HOST = (*HOST_ARRAYS, np.generic)


def _wide(array: Any) -> Any:
    """The next wider format than an array's. A GPU has none wider than double."""
    return _EXTENDED if array.dtype is _DOUBLE and type(array) is not GPUArray else _DOUBLE


def widened(number: Any, array: Any) -> Any:
    """A number, or numbers, rounded to an array's format, in the next wider one."""
    if isinstance(number, HOST_ARRAYS):
        return number.astype(array.dtype, copy=False).astype(_wide(array))
    if array.dtype is _DOUBLE:
        return number if type(array) is GPUArray else np.longdouble(number)
    return np.float64(array.dtype.type(number))


def multiply_add_wide(total: Any, term: Any, factor: Any) -> Any:
    """total + term · factor, a widened number or an array, in the wider format.

    Cast by hand, since a ufunc on operands of two formats takes several times as long.
    """
    wide = _wide(total)
    result = term.astype(wide) * factor
    if result.shape != total.shape:
        return result + total.astype(wide)
    result += total.astype(wide)
    return result


def is_fused(total: Any, term: Any) -> bool:
    """Whether PyTorch's kernels round total + factor · term once: both are single or double."""
    return (
        isinstance(total, _HOST)
        and isinstance(term, _HOST)
        and total.dtype is term.dtype
        and total.dtype.kind == "f"
        and total.dtype.itemsize > 2
    )


def multiply_add(total: Any, term: Any, factor: Any) -> Any:
    """total + term · factor, rounded once where PyTorch does so."""
    if not is_fused(total, term):
        return total + term * factor
    wide = multiply_add_wide(total, term, widened(factor, total))
    return wide.astype(total.dtype)[()]
