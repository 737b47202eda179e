"""Small products of complex matrices in the order in which PyTorch's library for matrices adds on a
CPU, so that last bits agree: a matrix times its own conjugate is real on the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.kernels.sums.fused_sums import fused_sum

_FEW_IN_BATCH = 400
"""Multiplications of one of several products from which on the library computes it, not PyTorch."""

_FEW = 8192
"""Multiplications up to which a product of two matrices is added here."""

_SHORT = 3
"""So many products, or columns, are too few for the library's kernel that rounds once."""

_LONG = 8
"""From so many products on, two columns or three are added in lanes."""

_WIDE = 12
"""So many columns of double precision go through the kernel that rounds once."""


def complex_product(left: Any, right: Any) -> Any:
    """left (*, n, k) @ right (*, k, m), of one complex dtype, or (n, k) @ (k); None where the order
    is not known.
    """
    if left.ndim == 2 and right.ndim == 1 and 0 < left.size <= _FEW:
        return np.einsum("ij,j->i", left, right)
    if left.ndim < 2 or right.ndim < 2:
        return None
    rows, length = left.shape[-2:]
    columns = right.shape[-1]
    count = rows * length * columns
    if left.ndim == 3 and right.ndim == 3:
        return _one_by_one(left, right) if 0 < count < _FEW_IN_BATCH else None
    if left.ndim != 2 or right.ndim != 2 or rows < 2 or columns < 2 or not 0 < count <= _FEW:
        return None
    if left.dtype.char == "D":
        return _one_by_one(left, right) if length < _LONG and columns < _WIDE else None
    if length <= _SHORT or (length < _LONG and columns <= _SHORT):
        return _one_by_one(left, right)
    return _by_parts(left, right) if columns > _SHORT else None


def _one_by_one(left: Any, right: Any) -> Any:
    """Complex products, added one after the other."""
    return np.einsum("...ij,...jk->...ik", left, right)


def _by_parts(left: Any, right: Any) -> Any:
    """The four sums of products of real and imaginary parts, each rounded once per product."""
    result = np.empty((len(left), right.shape[1]), left.dtype)
    result.real = _sum(left.real, right.real) - _sum(left.imag, right.imag)
    result.imag = _sum(left.real, right.imag) + _sum(left.imag, right.real)
    return result


def _sum(left: Any, right: Any) -> Any:
    return fused_sum(left.T.astype(np.float64)[:, :, None] * right[:, None])
