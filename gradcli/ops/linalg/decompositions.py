"""Decompositions with orthogonal factors: `qr eigh eigvalsh svd svdvals`; and the products of
reflections that they are made of, `householder_product ormqr geqrf`.

The factors' signs are those that PyTorch's LAPACK gives, and follow from every rotation and
reflection along the way. NumPy's LAPACK rotates differently from MKL, which PyTorch calls; so small
symmetric matrices are computed here, by LAPACK's method: reflections to tridiagonal form, then QL
or QR sweeps with implicit shifts. Of singular values the two agree where there are as many rows as
columns or more; wider matrices are reduced to lower bidiagonal form here first, as MKL does.

A gradient through them exists where they are determined up to sign: distinct singular values, or
eigenvalues.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, on_the_host
from gradcli.autograd.batched import fresh_leaf
from gradcli.autograd.engine.backward import grad as gradient_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import conj, no_derivative, zeros
from gradcli.ops.binding.arguments import check_same_dtype
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES
from gradcli.ops.definition.dtype_support import INTEGRAL, dtype_names
from gradcli.ops.definition.op import Function, Op, op, takes_tensors
from gradcli.ops.elementwise.unary import is_complex
from gradcli.ops.indexing.strided import assign, fill, matrix_diagonal_of, scale
from gradcli.ops.linalg.linear_systems import (
    MATRICES,
    SQUARE,
    adjoint_of,
    column_major,
    first,
    linear_algebra_error,
    turned,
)
from gradcli.ops.linalg.triangular import solve_triangular
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.reshaping import diag_embed, tril, triu
from gradcli.ops.shape.slicing import slice_op
from gradcli.ops.shape.views import unsqueeze
from gradcli.state import active, look

# --- factors of arrays ----------------------------------------------------------------------------


def lapack_svd(matrices: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """`numpy.linalg.svd`; a matrix with an infinite element, for which its iteration may not end,
    has nan in all parts. Raises E204, as PyTorch does, where an element is nan.
    """
    if np.isnan(matrices).any():
        raise linear_algebra_error(
            "svd",
            "the matrices hold nan",
            text="linalg.svd: The algorithm failed to converge because the input matrix contained"
            " non-finite values.",
        )
    infinite = np.isinf(matrices).any(axis=(-2, -1), keepdims=True)
    if not infinite.any():
        svd_of: Function = np.linalg.svd
        return svd_of(matrices, full_matrices, compute_uv)
    finite = np.where(infinite, matrices.dtype.type(0), matrices)
    if not compute_uv:
        return np.where(infinite[..., 0], np.nan, np.linalg.svd(finite, compute_uv=False))
    U, S, Vh = np.linalg.svd(finite, full_matrices)
    return tuple(
        np.where(where, part.dtype.type(np.nan), part)
        for where, part in ((infinite, U), (infinite[..., 0], S), (infinite, Vh))
    )


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
    by_lapack = rows >= columns or not matrices.size or matrices.dtype.kind == "c"
    if by_lapack or not np.isfinite(matrices).all():
        return lapack_svd(matrices, full_matrices)
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


# --- ops ------------------------------------------------------------------------------------------


def converged(name: str, function: Function, *arguments: Any, **options: Any) -> Any:
    """What a function of `numpy.linalg` gives; E204 where its algorithm does not converge."""
    try:
        return function(*arguments, **options)
    except np.linalg.LinAlgError as failure:
        raise linear_algebra_error(name, f"the algorithm did not converge: {failure}") from failure


def _on_diagonal(value: Any) -> Any:
    return diag_embed(value, 0, value.ndim - 1, value.ndim)


def _skew(value: Any) -> Any:
    return value - adjoint_of(value)


# --- QR -----------------------------------------------------------------------------------------


def _qr_array(A: Any, mode: Any) -> tuple[Any, Any]:
    if mode == "r":
        return module_of(A).empty(0, A.dtype), column_major(np.linalg.qr(A, "r"))
    Q, R = np.linalg.qr(A, mode)
    return column_major(Q), column_major(R)


def _qr_rule(grads: Any, Q: Any, R: Any, mode: str) -> Any:
    of_Q, of_R = grads
    rows, columns = R.shape[-2], R.shape[-1]
    if mode == "r":
        raise GradcliError("E409", "qr(): the derivative needs Q, which mode='r' leaves out")
    if mode == "complete" and rows > columns:
        raise GradcliError(
            "E409", "qr(): with mode='complete' and more rows than columns Q is not determined"
        )
    inner: Any = None
    if of_R is not None:
        inner = of_R @ adjoint_of(R)
    if of_Q is not None:
        through_Q = adjoint_of(Q) @ of_Q
        inner = -through_Q if inner is None else inner - through_Q
    if Q.shape[-2] >= columns:
        upper = triu(inner, 0)
        symmetric = upper + adjoint_of(upper)
        scale(matrix_diagonal_of(symmetric), 0.5)
        gradient = Q @ symmetric
        if of_Q is not None:
            gradient = gradient + of_Q
        return solve_triangular(adjoint_of(R), gradient, False, False, False)
    # Only the left part of R, of as many columns as rows, is bound to be triangular.
    skew = tril(_skew(-inner), 0)
    if is_complex(skew):  # R's diagonal is real, and the skew one imaginary: each counts once
        scale(matrix_diagonal_of(skew), 0.5)
    square = solve_triangular(adjoint_of(first(R, -1, rows)), Q @ skew, False, False, False)
    rest = zeros(square, (*square.shape[:-1], columns - rows))
    gradient = cat([square, rest], square.ndim - 1)
    return gradient if of_R is None else gradient + Q @ of_R


_qr: Op = op(
    "linalg_qr", _qr_array, outputs=("Q", "R"), keeps_layout=True, A=_qr_rule, raises=BY_KINDS
)


@function("qr", module="torch.linalg", autocast="float32", numpy="linalg.qr", takes={"A": MATRICES})
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """Q of orthonormal columns and a triangular R with `A = Q @ R`.

    `mode` is "reduced", "complete" (Q square) or "r" (R alone, Q empty). Raises E204 for another.
    """
    if mode not in ("reduced", "complete", "r"):
        raise runtime_error(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r',"
            " or 'complete'"
        )
    return named("linalg_qr", "Q R", _qr.apply(A, mode))


@function("qr", method=True, autocast="float32")
def qr(input: Tensor, some: bool = True) -> Any:
    """The QR decomposition, complete where `some` is false; see `torch.linalg.qr`."""
    return named("qr", "Q R", linalg_qr(input, "reduced" if some else "complete"))


# --- eigenvalues of symmetric matrices ----------------------------------------------------------


def _eigh_array(A: Any, UPLO: str) -> tuple[Any, Any]:
    values, vectors = converged("eigh", eigh_arrays, A, UPLO)
    return values, column_major(vectors)


def _differences(values: Any) -> Any:
    """Each value less each other one, and 1 on the diagonal."""
    gaps = unsqueeze(values, values.ndim - 1) - unsqueeze(values, values.ndim)
    fill(matrix_diagonal_of(gaps), 1.0)
    return gaps


def check_phases(name: str, *overlaps: Any) -> None:
    """Raise E409 where a loss depends on the phases of complex vectors, which are arbitrary: where
    the overlaps of the vectors with their gradients have no real diagonal.
    """
    total: Any = 0
    for overlap in overlaps:
        # Forward mode transposes the rule, with tensors, at a seed that is no loss's.
        if overlap is not None and type(overlap) is not Tensor and overlap.dtype.kind == "c":
            total = total + overlap.diagonal(0, -2, -1).imag
    if not np.allclose(total, 0, rtol=1e-2, atol=1e-2):
        raise GradcliError(
            "E409",
            f"{name}(): the loss depends on the phases of complex vectors, which are arbitrary",
            help="compute it from what no phase changes, such as V.abs() or V @ V.mH",
        )


def _eigh_rule(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = grads
    V = eigenvectors
    if of_vectors is None:
        return (V * unsqueeze(of_values, of_values.ndim - 1)) @ adjoint_of(V)
    # The vectors only turn: the skew part of their change has an effect, with 0 on its diagonal.
    overlap = adjoint_of(V) @ of_vectors
    check_phases("eigh", overlap)
    inner = _skew(overlap) * 0.5 / _differences(eigenvalues)
    if of_values is not None:
        assign(matrix_diagonal_of(inner), of_values)
    return V @ (inner @ adjoint_of(V))


eigh: Op = op(
    "linalg_eigh",
    _eigh_array,
    keeps_layout=True,
    outputs=("eigenvalues", "eigenvectors"),
    A=_eigh_rule,
    raises=BY_VALUES,
)


def eigenvalues_of(name: str, A: Tensor, UPLO: str) -> Any:
    """The eigenvalues and eigenvectors of symmetric matrices, checked."""
    if UPLO not in ("L", "U", "l", "u"):
        raise runtime_error(f"{name}(): UPLO must be 'L' or 'U', not {UPLO!r}")
    return eigh.apply(A, UPLO.upper())


@function(
    "eigh", module="torch.linalg", autocast="float32", numpy="linalg.eigh", takes={"A": SQUARE}
)
def linalg_eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues of symmetric matrices, smallest first, and their eigenvectors as columns.

    Only the lower (`UPLO="L"`) or upper triangle is read.
    """
    return named("linalg_eigh", "eigenvalues eigenvectors", eigenvalues_of("eigh", A, UPLO))


@function("eigvalsh", module="torch.linalg", autocast="float32", takes={"A": SQUARE})
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, smallest first."""
    return eigenvalues_of("eigvalsh", A, UPLO)[0]


# --- singular values ----------------------------------------------------------------------------


def _svd_array(A: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    U, S, Vh = converged("svd", svd_arrays, A, full_matrices)
    return column_major(U), S, column_major(Vh)


def _svd_rule(grads: Any, U: Any, S: Any, Vh: Any, full_matrices: bool) -> Any:
    of_U, of_S, of_Vh = grads
    rows, columns, count = U.shape[-2], Vh.shape[-1], S.shape[-1]
    if full_matrices:
        U, Vh = _leading(U, -1, count), _leading(Vh, -2, count)
        of_U = None if of_U is None else _leading(of_U, -1, count)
        of_Vh = None if of_Vh is None else _leading(of_Vh, -2, count)

    def as_row() -> Any:
        return unsqueeze(S, S.ndim - 1)

    def as_column() -> Any:
        return unsqueeze(S, S.ndim)

    if of_U is None and of_Vh is None:
        if of_S is None:
            return None
        if rows >= columns:
            return U @ (unsqueeze(of_S, of_S.ndim) * Vh)
        return (U * unsqueeze(of_S, of_S.ndim - 1)) @ Vh
    turned_U = None if of_U is None else _skew(adjoint_of(U) @ of_U)
    turned_V = None if of_Vh is None else _skew(Vh @ adjoint_of(of_Vh))
    check_phases("svd", turned_U, turned_V)
    gaps = _differences(S * S)
    if turned_V is None:
        inner = (turned_U / gaps) * as_row()
    elif turned_U is None:
        inner = as_column() * (turned_V / gaps)
    else:
        inner = (turned_U * as_row() + as_column() * turned_V) / gaps
    if of_S is not None:
        inner = inner + _on_diagonal(of_S)
    if is_complex(U) and turned_U is not None:
        inner = inner + _on_diagonal(matrix_diagonal_of(turned_U) / (S * 2))
    if rows > columns and of_U is not None:
        # The part of U's gradient that lies outside the columns of U.
        whole = U @ inner
        scaled = of_U / as_row()
        return (whole + scaled - U @ (adjoint_of(U) @ scaled)) @ Vh
    if rows < columns and of_Vh is not None:
        whole = inner @ Vh
        scaled = of_Vh / as_column()
        return U @ (whole + scaled - (scaled @ adjoint_of(Vh)) @ Vh)
    return U @ (inner @ Vh) if rows >= columns else (U @ inner) @ Vh


def _leading(value: Any, dim: int, count: int) -> Any:
    """The first positions along a dimension, counted from the back: a node even where all are."""
    return slice_op(value, value.ndim + dim, 0, count, 1)


svd: Op = op(
    "linalg_svd",
    _svd_array,
    outputs=("U", "S", "Vh"),
    keeps_layout=True,
    A=_svd_rule,
    raises=BY_VALUES,
)


def _check_driver(name: str, driver: str | None) -> None:
    """Raise E205 for the name of an algorithm, which is for GPUs."""
    if driver is not None:
        raise GradcliError(
            "E205",
            f"{name}(): a driver is chosen on CUDA only",
            raises="RuntimeError",
            text="torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs"
            " with cuSOLVER backend.",
        )


@function(
    "svd", module="torch.linalg", autocast="float32", numpy="linalg.svd", takes={"A": MATRICES}
)
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """U, the singular values (largest first) and V's adjoint with `A = U @ diag(S) @ Vh`.

    Without `full_matrices` U and Vh have as many columns and rows as there are singular values.
    """
    _check_driver("svd", driver)
    return named("linalg_svd", "U S Vh", svd.apply(A, full_matrices))


@function("svd", method=True, autocast="float32", takes={"input": MATRICES})
def svd_function(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """U, the singular values and V; U and V are square and 0 where `compute_uv` is false."""
    if compute_uv:
        U, S, Vh = svd.apply(input, not some)
        return named("svd", "U S V", (U, S, conj(turned(Vh))))
    *batch, rows, columns = input.array.shape
    blank = [Tensor(zeros(input.array, (*batch, size, size))) for size in (rows, columns)]
    return named("svd", "U S V", (blank[0], svd.apply(input, False)[1], blank[1]))


@function("svdvals", module="torch.linalg", autocast="float32", takes={"A": MATRICES})
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices, largest first."""
    _check_driver("svdvals", driver)
    return svd.apply(A, False)[1]


# --- products of reflections ----------------------------------------------------------------------


@takes_tensors
def reflected(input: Any, tau: Any, other: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """`Q @ other`, or `other @ Q`, of arrays or tensors, with Q or its adjoint the product of the
    reflections `1 - tau v v.mH`.
    """
    vectors = tril(input, -1) + _identity(input)  # they begin with a 1 that is not stored
    order = range(tau.shape[-1])
    for i in order if left == adjoint else reversed(order):
        v = slice_op(vectors, vectors.ndim - 1, i, i + 1, 1)
        factor = unsqueeze(slice_op(tau, tau.ndim - 1, i, i + 1, 1), tau.ndim)
        factor = conj(factor) if adjoint else factor
        if left:
            other = other - (v * factor) @ (adjoint_of(v) @ other)
        else:
            other = other - ((other @ v) * factor) @ adjoint_of(v)
    return other


def _identity(input: Any) -> Any:
    """The first columns of the identity, for each matrix."""
    rows, columns = input.shape[-2:]
    array = getattr(input, "array", input)
    identity = module_of(array).eye(rows, columns, dtype=array.dtype)
    whole = module_of(array).array(np.broadcast_to(identity, input.shape))
    return Tensor(whole) if type(input) is Tensor else whole


def _by_composition(body: Any, grad: Any, *operands: Any) -> tuple[Any, ...]:
    """The gradients of a function that is composed of other entries, for arrays or tensors."""
    if type(grad) is Tensor and active.state.grad_enabled:
        wanted = [operand for operand in operands if operand.requires_grad]
        if not wanted:
            return tuple(None for _ in operands)
        each = iter(gradient_of(body(*operands), wanted, grad, create_graph=True))
        return tuple(next(each) if operand.requires_grad else None for operand in operands)
    leaves = [fresh_leaf(getattr(operand, "array", operand)) for operand in operands]
    before = active.state.grad_enabled
    active.state.grad_enabled = True
    try:
        result = body(*leaves)
        gradients = gradient_of(result, leaves, grad if type(grad) is Tensor else Tensor(grad))
    finally:
        active.state.grad_enabled = before
    if type(grad) is Tensor:
        return tuple(gradients)
    return tuple(None if gradient is None else gradient.array for gradient in gradients)


_householder_product: Op = op(
    "linalg_householder_product",
    lambda input, tau: column_major(reflected(input, tau, _identity(input))),
    keeps_layout=True,
    joint=lambda grad, input, tau: _by_composition(
        lambda input, tau: reflected(input, tau, _identity(input)), grad, input, tau
    ),
    inputs=("input", "tau"),
    unsupported=INTEGRAL | dtype_names("half"),
    raises=BY_KINDS,
)


_ormqr: Op = op(
    "ormqr",
    lambda self, input2, input3, left, transpose: column_major(
        reflected(self, input2, input3, left=left, adjoint=transpose)
    ),
    keeps_layout=True,
    joint=lambda grad, self, input2, input3, left, transpose: _by_composition(
        lambda *operands: reflected(*operands, left=left, adjoint=transpose),
        grad,
        self,
        input2,
        input3,
    ),
    inputs=("self", "input2", "input3"),
    unsupported=INTEGRAL | dtype_names("half"),
    raises=BY_KINDS,
)


def _check_reflections(name: str, input: Tensor, tau: Tensor) -> None:
    check_same_dtype(name, input, tau)
    shape, factors = input.array.shape, tau.array.shape
    if len(shape) < 2 or shape[-2] < shape[-1]:
        raise shape_error(
            f"{name}(): at least as many rows as columns are needed, not shape {shape}"
        )
    if factors[:-1] != shape[:-2] or not factors or factors[-1] > shape[-1]:
        raise shape_error(f"{name}(): factors of shape {factors} for vectors of {shape}")


@function("householder_product", module="torch.linalg")
@function("orgqr", method=True, autocast="float32")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections, whose vectors stand below the diagonal of
    `input` and factors in `tau`. Raises E301 where the shapes do not fit.

    Example: torch.orgqr(tensor([[2., 1.], [1., 3.]]), tensor([0.5, 1.]))
    """
    _check_reflections("householder_product", input, tau)
    return _householder_product.apply(input, tau)


@function("ormqr", method=True, autocast="float32")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """The product of reflections, or its adjoint with `transpose`, times a matrix, on its left or
    right. Raises E301 where the shapes do not fit.

    Example:
        torch.ormqr(tensor([[2., 1.], [1., 3.]]), tensor([0.5, 1.]), tensor([[1., 0.], [2., 1.]]))
    """
    _check_reflections("ormqr", input, tau)
    check_same_dtype("ormqr", input, other)
    rows = input.array.shape[-2]
    if other.array.ndim < 2 or other.array.shape[-2 if left else -1] != rows:
        raise shape_error(
            f"ormqr(): a matrix of shape {other.array.shape} does not go with {rows} rows"
        )
    return _ormqr.apply(input, tau, other, left, transpose)


@on_the_host
def _reflections_array(self: Any) -> tuple[Any, Any]:
    reflections, tau = np.linalg.qr(np.asarray(self), "raw")
    return column_major(np.swapaxes(reflections, -2, -1)), tau


_no_geqrf = no_derivative("geqrf", "use torch.linalg.qr()", "NotImplementedError")

_geqrf: Op = op(
    "geqrf",
    lambda self: _reflections_array(self),
    outputs=("a", "tau"),
    self=lambda grads: _no_geqrf(grads),
    keeps_layout=True,
    raises=BY_KINDS,
)


@function("geqrf", method=True, takes={"input": MATRICES})
def geqrf(input: Tensor) -> Any:
    """The QR decomposition as LAPACK has it: R and, below its diagonal, the reflections whose
    product is Q; and their factors.

    Example: torch.geqrf(tensor([[1., 2.], [3., 4.]]))
    """
    look(None, input.array)
    return named("geqrf", "a tau", _geqrf.apply(input))
