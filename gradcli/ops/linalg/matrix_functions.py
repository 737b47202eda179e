"""Functions of whole matrices: `matrix_exp matrix_power cond`, and the eigenvalues of those that
need not be symmetric, `linalg.eig linalg.eigvals`.

The exponential is that of PyTorch to the last bit: Taylor polynomials of degree 1, 2, 4, 8, 12 and
18, each with the fewest products. For a single matrix its 1-norm selects the degree; for a batch
the degree is always 18. A matrix of larger norm is halved until 18 suffices, and the result is
squared as often. Polynomials, coefficients and the norms up to which they hold: P. Bader, S. Blanes
and F. Casas, "Computing the matrix exponential with an optimized Taylor polynomial approximation",
Mathematics 7 (2019) 1174.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, on_the_host
from gradcli.arrays.kernels import vector_math
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import runtime_error
from gradcli.ops.arithmetic.arithmetic import conj, reciprocal, zeros
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods
from gradcli.ops.binding.results import named
from gradcli.ops.creation.copies import copy_, row_order
from gradcli.ops.creation.sequences import eye
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, CHECKS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.complex import real_part
from gradcli.ops.elementwise.rounding import nan_to_num
from gradcli.ops.indexing.strided import assign, block_of, fill, matrix_diagonal_of
from gradcli.ops.linalg.decompositions import check_phases, converged, svdvals
from gradcli.ops.linalg.linear_systems import (
    MATRICES,
    SQUARE,
    adjoint_of,
    check_precision,
    check_square,
    column_major,
    linear_algebra_error,
)
from gradcli.ops.linalg.norms import matrix_norm
from gradcli.ops.linalg.products.matrix_products import matmul
from gradcli.ops.linalg.solve import inv_ex, inverted, solve_ex
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.slicing import slice_op
from gradcli.ops.shape.views import squeeze_dim, unsqueeze

# --- the exponential of arrays --------------------------------------------------------------------


@on_the_host
def matrix_exponential(matrices: Any) -> Any:
    """exp of each matrix of an array (..., n, n), float or complex, in a new array of its dtype."""
    size = matrices.shape[-1]
    if not matrices.size:
        return matrices.copy()
    if size == 1:
        return vector_math.exp(matrices)
    each = np.ascontiguousarray(matrices).reshape(-1, size, size)
    if len(each) == 1:
        results = [_of_lowest_degree(each[0])]
    else:  # PyTorch computes no norms for a batch
        results = [_halved_and_squared(matrix) for matrix in each]
    return np.stack(results).reshape(matrices.shape)


def _of_lowest_degree(matrix: Any) -> Any:
    norm = _norm(matrix)
    for reach, polynomial in zip(_reaches(matrix), _POLYNOMIALS, strict=False):
        if norm <= reach:
            return polynomial(matrix)
    return _halved_and_squared(matrix)


def _norm(matrix: Any) -> Any:
    return np.abs(matrix).sum(0).max()


def _reaches(matrix: Any) -> tuple[float, ...]:
    return _REACHES[matrix.real.dtype.type]


def _halved_and_squared(matrix: Any) -> Any:
    norm, real = _norm(matrix), matrix.real.dtype.type
    if not math.isfinite(norm):
        return np.full_like(matrix, math.nan)
    halvings = max(0, math.ceil(np.log2(norm / real(_reaches(matrix)[-1])))) if norm else 0
    result = _degree_18(matrix * real(math.ldexp(1.0, -halvings)))
    for _ in range(halvings):
        result = _product(result, result)
    return result


# --- the polynomials ----------------------------------------------------------------------------


def _degree_2(matrix: Any) -> Any:
    return _combination((1, 1, 0.5), (_identity(matrix), matrix, _product(matrix, matrix)))


def _degree_4(matrix: Any) -> Any:
    powers = _identity(matrix), matrix, _product(matrix, matrix)
    rest = _product(powers[2], _combination((1 / 2, 1 / 6, 1 / 24), powers))
    return _combination((1, 1, 1), (*powers[:2], rest))


def _degree_8(matrix: Any) -> Any:
    x1, x2, x3, x4, x5, x6, x7, y2 = _coefficients_of_8(matrix.real.dtype.type)
    identity, square = _identity(matrix), _product(matrix, matrix)
    fourth = _product(square, _combination((x1, x2), (matrix, square)))
    left = _combination((x3, 1), (square, fourth))
    right = _combination((x4, x5, x6, x7), (identity, matrix, square, fourth))
    eighth = _product(left, right)
    return _combination((1, 1, y2, 1), (identity, matrix, square, eighth))


def _degree_12(matrix: Any) -> Any:
    square = _product(matrix, matrix)
    powers = _identity(matrix), matrix, square, _product(matrix, square)
    b0, b1, b2, b3 = (_combination(row, powers) for row in _COEFFICIENTS_OF_12)
    sixth = b2 + _product(b3, b3)
    return b0 + _product(b1 + sixth, sixth)


def _degree_18(matrix: Any) -> Any:
    square = _product(matrix, matrix)
    cube = _product(matrix, square)
    powers = _identity(matrix), matrix, square, cube, _product(cube, cube)
    b0, b1, b2, b3, b4 = (_combination(row, powers) for row in _COEFFICIENTS_OF_18)
    ninth = b3 + _product(b0, b4)
    return b1 + _product(b2 + ninth, ninth)


def _identity(matrix: Any) -> Any:
    return np.eye(len(matrix), dtype=matrix.dtype)


def _combination(coefficients: Sequence[float], powers: Sequence[Any]) -> Any:
    real = powers[0].real.dtype.type
    total = np.zeros_like(powers[0])
    for coefficient, power in zip(coefficients, powers, strict=True):
        total += real(coefficient) * power
    return total


def _product(left: Any, right: Any) -> Any:
    if len(left) <= _SMALL:  # each product rounded, then added
        return np.einsum("ij,jk->ik", left, right)
    return np.matmul(left, right)


_SMALL = 8
"""Rows up to which PyTorch multiplies without BLAS, or with the same bits."""

_POLYNOMIALS: tuple[Callable[[Any], Any], ...] = (
    lambda matrix: _identity(matrix) + matrix,
    _degree_2,
    _degree_4,
    _degree_8,
    _degree_12,
)
"""The polynomials that a small enough norm selects; the one of degree 18 serves all others."""

# fmt: off
_REACHES: dict[type, tuple[float, ...]] = {
    np.float32: (
        1.192092800768788e-07, 5.978858893805233e-04, 5.116619363445086e-02,
        5.800524627688768e-01, 1.461661507209034e+00, 3.010066362817634e+00,
    ),
    np.float64: (
        2.220446049250313e-16, 2.580956802971767e-08, 3.397168839976962e-04,
        4.991228871115323e-02, 2.996158913811580e-01, 1.090863719290036e+00,
    ),
}
"""The 1-norm up to which the polynomial of degree 1, 2, 4, 8, 12, 18 is exact to half a bit."""

_COEFFICIENTS_OF_12 = (
    (9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740),
    (5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031,
     0.01108844528519167989),
    (0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968,
     0.00610700528898058230),
    (-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359),
)

_COEFFICIENTS_OF_18 = (
    (0.0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04,
     0.0),
    (0.0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01,
     -6.37898194594723280150e-04),
    (-1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02,
     -6.98210122488052056106e-03, 3.34975017086070470649e-05),
    (-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
     2.95552570429315521194e-02, -1.39180257516060693404e-05),
    (0.0, 0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02,
     -1.40086798182036094347e-05),
)
# fmt: on


def _coefficients_of_8(real: type) -> tuple[float, ...]:
    """Each coefficient is rounded to the matrix's precision before the next is computed from it."""

    def rounded(value: float) -> float:
        return float(real(value))

    root = rounded(math.sqrt(177))
    x3 = rounded(2 / 3)
    return (
        rounded(x3 * ((1 + root) / 88)),
        rounded(x3 * ((1 + root) / 352)),
        x3,
        rounded((-271 + 29 * root) / (315 * x3)),
        rounded((-11 + 11 * root) / (1260 * x3)),
        rounded((-99 + 11 * root) / (5040 * x3)),
        rounded((89 - root) / (5040 * x3)),
        rounded((857 - 58 * root) / 630),
    )


# --- ops ------------------------------------------------------------------------------------------


# --- the exponential ----------------------------------------------------------------------------


def _exponential_rule(grad: Any, self: Any) -> Any:
    # exp of [[A, G], [0, A]] holds the derivative of exp at A in the direction G.
    matrices = adjoint_of(self)
    size = int(matrices.shape[-1])
    start, end = (0, size), (size, 2 * size)
    whole = zeros(grad, (*matrices.shape[:-2], 2 * size, 2 * size))
    assign(block_of(whole, start, start), matrices)
    assign(block_of(whole, end, end), matrices)
    assign(block_of(whole, start, end), grad)
    return block_of(_matrix_exp(whole), start, end)


_matrix_exp: Op = op(
    "linalg_matrix_exp",
    lambda self: matrix_exponential(self),
    self=_exponential_rule,
    raises=BY_KINDS,
)


@function("matrix_exp", method=True, also="torch.linalg", takes={"input": SQUARE})
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices, `I + A + A @ A / 2 + …`. Raises E301 for others."""
    return _matrix_exp.apply(input)


# --- powers ---------------------------------------------------------------------------------------


@function("matrix_power", method=True, also="torch.linalg", effects=(CHECKS,))
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Square matrices multiplied n times, by repeated squaring; their inverses where n is negative.

    Raises E301 for others, E204 for a singular matrix and a negative n.

    Example: torch.matrix_power(tensor([[2., 1.], [1., 3.]]), 3)
    """
    check_square("matrix_power", input)
    if n == 0:
        size = int(input.array.shape[-1])
        return copy_(row_order.apply(input), eye(size, dtype=input.dtype))
    if n < 0:
        check_precision("matrix_power", input)
        input, n = inverted("matrix_power", input), -n
        if n == 1:
            return input
    if n == 1:
        return row_order.apply(input)
    if n == 3:
        return matmul(matmul(input, input), input)
    square, result = input, None
    while True:
        if n % 2:
            result = square if result is None else matmul(result, square)
        n //= 2
        if not n:
            break
        square = matmul(square, square)
    assert result is not None
    return result


# --- the condition number -----------------------------------------------------------------------


_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


@function("cond", module="torch.linalg", autocast="float32", takes={"A": MATRICES})
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number of matrices: in the norm `p` the product of the norms of the matrix and
    its inverse; None, 2 and -2 compare the largest and the smallest singular value.

    A singular matrix gives inf, one without elements 0.
    """
    if p not in _ORDERS:
        raise runtime_error(f"linalg.cond got an invalid norm type: {p}")
    if isinstance(p, str) or (p not in (None, 2, -2) and A.array.size):
        check_square(f"cond(ord={p})", A)
    if not A.array.size:
        number = Tensor(module_of(A.array).zeros(A.array.shape[:-2], A.array.real.dtype))
        storage_of(number).count_write()  # PyTorch fills it
        return number
    if p in (None, 2, -2):
        values = svdvals(A)
        last = values.array.ndim - 1
        size = values.array.shape[last]
        largest = slice_op.apply(values, last, 0, 1, 1)
        smallest = slice_op.apply(values, last, size - 1, size, 1)
        ratio = smallest / largest if p == -2 else largest / smallest
        return squeeze_dim.apply(ratio, last)
    if p == "nuc":
        values = svdvals(A)
        last = (values.array.ndim - 1,)
        inverted = sum_dims.apply(reciprocal.apply(values), last, False)
        return sum_dims.apply(values, last, False) * inverted
    inverse, info = inv_ex.apply(A)
    singular = Tensor((info.array != 0)[..., None, None])
    # As in PyTorch the inverse itself is written to, which its own derivative needs: E404.
    methods.masked_fill_(inverse, singular, math.inf)
    number = matrix_norm(A, p) * matrix_norm(inverse, p)
    return nan_to_num.apply(number, math.inf, math.inf, -math.inf)


# --- eigenvalues of matrices that are not symmetric -----------------------------------------------


@on_the_host
def _eig_on_host(A: Any) -> tuple[Any, Any]:
    dtype = np.result_type(A.dtype, np.complex64)
    if not np.isfinite(A).all():
        raise runtime_error("eig(): the matrices hold nan or infinite elements")
    if A.dtype == np.float32:
        values, vectors = _eig_in_single(A, signature="f->FF")
        if np.isnan(values).any():
            raise linear_algebra_error("eig", "the algorithm did not converge")
    else:
        values, vectors = converged("eig", np.linalg.eig, A)
    return values.astype(dtype), column_major(vectors.astype(dtype))


_eig_in_single: Any = np.linalg._umath_linalg.eig
"""LAPACK's function in the matrix's own precision, which the signs of the vectors depend on: what
NumPy makes public computes in float64."""


def _eig_rule(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = grads
    L, V = eigenvalues, eigenvectors
    if of_vectors is None:
        inner = unsqueeze(of_values, L.ndim) * adjoint_of(V)
        return solve_ex(adjoint_of(V), inner, True, False)[0]
    overlap = adjoint_of(V) @ of_vectors
    check_phases("eig", overlap)
    # Vectors have length 1, so the part of a gradient along its own vector changes nothing.
    own = real_part(matrix_diagonal_of(overlap))
    inner = overlap - adjoint_of(V) @ (V * unsqueeze(own, L.ndim - 1))
    conjugates = conj(L)
    gaps = unsqueeze(conjugates, L.ndim - 1) - unsqueeze(conjugates, L.ndim)
    fill(matrix_diagonal_of(gaps), 1.0)
    inner = inner / gaps
    if of_values is not None:
        assign(matrix_diagonal_of(inner), of_values)
    return solve_ex(adjoint_of(V), inner @ adjoint_of(V), True, False)[0]


_eig: Op = op(
    "linalg_eig",
    lambda A: _eig_on_host(A),
    outputs=("eigenvalues", "eigenvectors"),
    keeps_layout=True,
    A=_eig_rule,
    raises=BY_VALUES,
)


@function("eig", module="torch.linalg", autocast="float32", takes={"A": SQUARE})
def eig(A: Tensor) -> Any:
    """The eigenvalues of square matrices and eigenvectors of length 1, as columns; both complex.
    Raises E301 for others.
    """
    return named("linalg_eig", "eigenvalues eigenvectors", _eig.apply(A))


@function("eigvals", module="torch.linalg", autocast="float32", takes={"A": SQUARE})
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, complex. Raises E301 for others."""
    return _eig.apply(A)[0]
