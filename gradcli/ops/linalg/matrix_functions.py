"""Functions of whole matrices: `matrix_exp matrix_power cond`, and the eigenvalues of those that
need not be symmetric, `linalg.eig linalg.eigvals`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, on_the_host
from gradcli.arrays.kernels.linalg.matrix_exponential import matrix_exponential
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import runtime_error
from gradcli.ops.arithmetic.arithmetic import reciprocal, zeros
from gradcli.ops.arithmetic.conjugate import conj
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
    adjoint_of,
    check_matrices,
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


@function("matrix_exp", method=True, also="torch.linalg")
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices, `I + A + A @ A / 2 + …`. Raises E301 for others."""
    check_matrices("matrix_exp", input=input)
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
        check_matrices("matrix_power", input=input)
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


@function("cond", module="torch.linalg", autocast="float32")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number of matrices: in the norm `p` the product of the norms of the matrix and
    its inverse; None, 2 and -2 compare the largest and the smallest singular value.

    A singular matrix gives inf, one without elements 0.
    """
    check_matrices("cond", square=False, A=A)
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


@function("eig", module="torch.linalg", autocast="float32")
def eig(A: Tensor) -> Any:
    """The eigenvalues of square matrices and eigenvectors of length 1, as columns; both complex.
    Raises E301 for others.
    """
    check_matrices("eig", A=A)
    return named("linalg_eig", "eigenvalues eigenvectors", _eig.apply(A))


@function("eigvals", module="torch.linalg", autocast="float32")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, complex. Raises E301 for others."""
    check_matrices("eigvals", A=A)
    return _eig.apply(A)[0]
