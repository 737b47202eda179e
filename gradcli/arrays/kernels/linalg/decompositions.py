"""The eigenvectors of symmetric arrays and the singular value decomposition of any, with the signs
of PyTorch's.

Signs follow from every rotation and reflection along the way. NumPy's LAPACK rotates differently
from MKL, which PyTorch calls; so small symmetric matrices are computed here, by LAPACK's method:
reflections to tridiagonal form, then QL or QR sweeps with implicit shifts. Of singular values the
two agree where there are as many rows as columns or more; wider matrices are reduced to lower
bidiagonal form here first, as MKL does.
"""

from __future__ import annotations

import math
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


_LARGEST = 25  # beyond it LAPACK uses divide and conquer


@on_the_host
def eigh_arrays(matrices: Any, uplo: Any) -> tuple[Any, Any]:
    """The eigenvalues, smallest first, and the eigenvectors as columns.

    Args:
        matrices: shape (*, n, n).
        uplo: the triangle that is read, "L" or "U".

    Raises:
        numpy.linalg.LinAlgError: the iteration does not converge.
    """
    size = matrices.shape[-1]
    plain = uplo == "U" or matrices.dtype.kind == "c"
    if plain or not 2 < size <= _LARGEST or not np.isfinite(matrices).all():
        return np.linalg.eigh(matrices, uplo)
    flat = matrices.reshape(-1, size, size)
    values = np.linalg.eigvalsh(matrices, uplo)
    vectors = np.stack([_vectors(matrix) for matrix in flat]) if len(flat) else flat
    return values, vectors.reshape(matrices.shape).astype(matrices.dtype)


def _vectors(matrix: Any) -> Any:
    size = len(matrix)
    whole = np.tril(matrix).astype(np.float64)
    whole += np.tril(whole, -1).T
    basis = np.eye(size)
    for i in range(size - 2):
        vector, factor = reflection(whole[i + 1 :, i])
        whole[i + 1 :] -= factor * np.outer(vector, vector @ whole[i + 1 :])
        for part in (whole, basis):
            part[:, i + 1 :] -= factor * np.outer(part[:, i + 1 :] @ vector, vector)
    diagonal, beside = np.diagonal(whole).tolist(), np.diagonal(whole, -1).tolist()
    sweeps = _Sweeps(diagonal, beside, basis, matrix.dtype)
    sweeps.run()
    return sweeps.vectors[:, np.argsort(sweeps.diagonal, kind="stable")]


def _rotation(f: float, g: float) -> tuple[float, float, float]:
    """The cosine and sine that rotate (f, g) to (r, 0), and r.

    r is negative only where f is and has the larger magnitude; newer LAPACKs give it f's sign.
    """
    if g == 0:
        return 1.0, 0.0, f
    if f == 0:
        return 0.0, 1.0, g
    r = math.hypot(f, g)
    if abs(f) > abs(g) and f < 0:
        r = -r
    return f / r, g / r, r


def _of_two(a: float, b: float, c: float) -> tuple[float, float, float, float]:
    """The eigenvalues of [[a, b], [b, c]], the larger in magnitude first, and the unit eigenvector
    of that.
    """
    total, difference = a + c, a - c
    root = math.hypot(difference, 2 * b)
    large, small = (a, c) if abs(a) > abs(c) else (c, a)
    if total == 0:
        first, second, sign = root / 2, -root / 2, 1
    else:
        sign = 1 if total > 0 else -1
        first = (total + sign * root) / 2
        second = large / first * small - b / first * b
    other = 1 if difference >= 0 else -1
    along = difference + other * root
    if abs(along) > abs(2 * b):
        slope = -2 * b / along
        y = 1 / math.hypot(1, slope)
        x = slope * y
    elif b == 0:
        x, y = 1.0, 0.0
    else:
        slope = -along / (2 * b)
        x = 1 / math.hypot(1, slope)
        y = slope * x
    return (first, second, -y, x) if sign == other else (first, second, x, y)


class _Sweeps:
    """QL and QR sweeps over a tridiagonal matrix, and the basis that they rotate.

    Attributes:
        diagonal: becomes the eigenvalues.
        beside: the off-diagonal elements, which vanish one by one.
        vectors: becomes the eigenvectors, in the diagonal's order.
        unit, tiny: the rounding unit and the smallest normal number of the dtype that results are
            rounded to: they say what is negligible, and so how many sweeps there are.
    """

    __slots__ = ("beside", "diagonal", "left", "tiny", "unit", "vectors")

    def __init__(
        self, diagonal: list[float], beside: list[float], vectors: Any, dtype: Any
    ) -> None:
        self.diagonal = diagonal
        self.beside = beside
        self.vectors = vectors
        self.unit = float(np.finfo(dtype).eps) / 2
        self.tiny = float(np.finfo(dtype).tiny)
        self.left = 30 * len(diagonal)

    def run(self) -> None:
        """Diagonalise each block between vanishing elements, from its smaller end."""
        start, size = 0, len(self.diagonal)
        while start < size:
            end = start
            while end < size - 1 and not self._negligible(end):
                end += 1
            if end < size - 1:
                self.beside[end] = 0.0
            if abs(self.diagonal[end]) < abs(self.diagonal[start]):
                self._reduce(end, start, -1)
            else:
                self._reduce(start, end, 1)
            start = end + 1

    def _negligible(self, i: int) -> bool:
        d = self.diagonal
        limit = math.sqrt(abs(d[i])) * math.sqrt(abs(d[i + 1])) * self.unit
        return abs(self.beside[i]) <= limit

    def _reduce(self, at: int, end: int, direction: int) -> None:
        """Find the eigenvalues of a block from one end to the other: QL down, QR up (-1)."""
        d, e = self.diagonal, self.beside
        shift = 0 if direction > 0 else -1  # beside[i + shift] links i and i + direction
        while (end - at) * direction >= 0:
            m = at
            while m != end:
                link = e[m + shift]
                limit = self.unit**2 * abs(d[m]) * abs(d[m + direction]) + self.tiny
                if link * link <= limit:
                    e[m + shift] = 0.0
                    break
                m += direction
            if m == at:
                at += direction
                continue
            if m == at + direction:
                low = min(at, m)
                d[low], d[low + 1], c, s = _of_two(d[low], e[low], d[low + 1])
                self._turn(low, c, s)
                e[low] = 0.0
                at += 2 * direction
                continue
            if not self.left:
                raise np.linalg.LinAlgError("the eigenvalues did not converge")
            self.left -= 1
            self._sweep(at, m, direction, shift)

    def _sweep(self, at: int, m: int, direction: int, shift: int) -> None:
        d, e = self.diagonal, self.beside
        link = e[at + shift]
        g = (d[at + direction] - d[at]) / (2 * link)
        g = d[m] - d[at] + link / (g + math.copysign(math.hypot(g, 1), g))
        s, c, p = 1.0, 1.0, 0.0
        for i in range(m - direction, at - direction, -direction):
            f, b = s * e[i + shift], c * e[i + shift]
            c, s, r = _rotation(g, f)
            if i != m - direction:
                e[i + direction + shift] = r
            g = d[i + direction] - p
            r = (d[i] - g) * s + 2 * c * b
            p = s * r
            d[i + direction] = g + p
            g = c * r - b
            self._turn(min(i, i + direction), c, -s * direction)
        d[at] -= p
        e[at + shift] = g

    def _turn(self, column: int, c: float, s: float) -> None:
        """Rotate two neighbouring columns of the vectors."""
        first, second = self.vectors[:, column].copy(), self.vectors[:, column + 1].copy()
        self.vectors[:, column] = c * first + s * second
        self.vectors[:, column + 1] = c * second - s * first
