"""The singular value decomposition of arrays, with the signs of PyTorch's factors.

NumPy's LAPACK and MKL, which PyTorch calls, agree where there are as many rows as columns or more.
Wider matrices are reduced to lower bidiagonal form here first, as MKL does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import on_the_host


@on_the_host
def svd_arrays(matrices: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    """U, the singular values (largest first) and V's adjoint.

    Args:
        matrices: shape (*, m, n).
        full_matrices: U and V are square; else of min(m, n) columns.

    Raises:
        numpy.linalg.LinAlgError: the iteration does not converge.
    """
    *batch, rows, columns = matrices.shape
    if rows >= columns or not matrices.size or matrices.dtype.kind == "c":
        return np.linalg.svd(matrices, full_matrices)
    flat = matrices.reshape(-1, rows, columns)
    decompositions = [_wide(matrix, columns if full_matrices else rows) for matrix in flat]
    U, S, Vh = (
        np.stack(parts).reshape(*batch, *parts[0].shape)
        for parts in zip(*decompositions, strict=True)
    )
    return U, S, Vh


def reflection(values: Any) -> tuple[Any, Any]:
    """The vector v and the factor t for which I - t v vT reflects the values onto the first axis; t
    is 0 where they lie on it.
    """
    rest = np.linalg.norm(values[1:])
    vector = values.copy()
    vector[0] = 1
    if not rest:
        return vector, values.dtype.type(0)
    first = -np.copysign(np.hypot(values[0], rest), values[0])
    vector[1:] /= values[0] - first
    return vector, (first - values[0]) / first


def _wide(matrix: Any, count: int) -> tuple[Any, Any, Any]:
    """The decomposition of a matrix with fewer rows than columns, with `count` rows of Vh."""
    rows, columns = matrix.shape
    lower = matrix.copy()
    left, right = np.eye(rows, dtype=matrix.dtype), np.eye(columns, dtype=matrix.dtype)
    for i in range(rows):
        vector, factor = reflection(lower[i, i:])
        for part in (lower, right):
            part[:, i:] -= factor * np.outer(part[:, i:] @ vector, vector)
        if i < rows - 1:
            vector, factor = reflection(lower[i + 1 :, i])
            lower[i + 1 :] -= factor * np.outer(vector, vector @ lower[i + 1 :])
            left[:, i + 1 :] -= factor * np.outer(left[:, i + 1 :] @ vector, vector)
    upper = _turned_upper(np.diagonal(lower), np.diagonal(lower, -1), left)
    U, S, inner = np.linalg.svd(upper)
    Vh = right.T[:count].copy()
    Vh[:rows] = inner @ Vh[:rows]
    return left @ U, S, Vh


def _turned_upper(diagonal: Any, below: Any, left: Any) -> Any:
    """A lower bidiagonal matrix made upper by rotations from the left, which are applied to
    `left`.
    """
    size = len(diagonal)
    upper = np.diag(diagonal)
    for i in range(size - 1):
        pivot, other = upper[i, i], below[i]
        length = np.copysign(np.hypot(pivot, other), pivot)
        cosine, sine = (pivot / length, other / length) if other else (pivot * 0 + 1, other)
        upper[i, i] = length if other else pivot
        upper[i, i + 1] = sine * upper[i + 1, i + 1]
        upper[i + 1, i + 1] *= cosine
        first, second = left[:, i].copy(), left[:, i + 1].copy()
        left[:, i] = cosine * first + sine * second
        left[:, i + 1] = cosine * second - sine * first
    return upper
