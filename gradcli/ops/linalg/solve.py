"""Inverses, solutions and determinants: `inv solve det slogdet logdet tensorinv tensorsolve`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.autograd.batched import unbatched
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import add, conj
from gradcli.ops.binding.arguments import check_same_dtype, checked_values
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.creation.copies import cast_to
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, CHECKS, Hazard
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.comparison import choose
from gradcli.ops.elementwise.complex import imaginary_part
from gradcli.ops.elementwise.unary import is_complex, log
from gradcli.ops.linalg.decompositions import svd
from gradcli.ops.linalg.linear_systems import (
    adjoint_of,
    check_matrices,
    check_nonsingular,
    check_precision,
    column_major,
    incompatible,
    lu_arrays,
    lu_solved,
    permutation_sign,
    solved,
    turned,
)
from gradcli.ops.reduction.cumulative import prod_gradient_at_zeros
from gradcli.ops.shape.reshaping import diag_embed, flatten
from gradcli.ops.shape.views import expand, permute, reshape, squeeze_dim, unsqueeze

# --- inverses -----------------------------------------------------------------------------------


def _inverse_array(A: Any) -> tuple[Any, Any]:
    identity = np.broadcast_to(module_of(A).eye(A.shape[-1], dtype=A.dtype), A.shape)
    inverse, info = solved(A, identity)
    return column_major(inverse), info[()]


inv_ex: Op = op(
    "linalg_inv_ex",
    _inverse_array,
    keeps_layout=True,
    outputs=("inverse", "info"),
    differentiable=(0,),
    A=lambda grads, inverse: -(adjoint_of(inverse) @ (grads[0] @ adjoint_of(inverse))),
    raises=BY_KINDS,
    hazard=Hazard(
        nothing="the matrix is singular: it has no inverse",
        singular="the matrix is singular: it has no inverse",
    ),
)


def inverted(name: str, A: Tensor) -> Tensor:
    """The inverses of matrices that are checked; raises E204 for a singular one."""
    inverse, info = inv_ex.apply(A)
    checked_values(check_nonsingular, name, info.array)
    return inverse


@function("inv", module="torch.linalg", autocast="float32", effects=(CHECKS,), numpy="linalg.inv")
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices. Raises E301 for others, E204 for a singular one."""
    check_matrices("inv", A=A)
    return inverted("inv", A)


@function("inverse", method=True, autocast="float32", effects=(CHECKS,))
def inverse(input: Tensor) -> Tensor:
    """The inverse of square matrices; see `torch.linalg.inv`."""
    return inv(input)


@function("inv_ex", module="torch.linalg", autocast="float32")
def inv_ex_function(A: Tensor, *, check_errors: bool = False) -> Any:
    """The inverses, and for each the number of the pivot that is 0, or 0."""
    check_matrices("inv_ex", A=A)
    inverse, info = inv_ex.apply(A)
    if check_errors:
        checked_values(check_nonsingular, "inv_ex", info.array)
    return named("linalg_inv_ex", "inverse info", (inverse, info))


# --- solutions ----------------------------------------------------------------------------------


def _solution_array(A: Any, B: Any, left: bool, vector: bool) -> tuple[Any, Any]:
    right = B[..., None] if vector else B
    if left:
        solution, info = solved(A, right)
    else:
        solution, info = solved(A.swapaxes(-2, -1), right.swapaxes(-2, -1))
        solution = module_of(solution).ascontiguousarray(solution.swapaxes(-2, -1))
    if vector:
        # As PyTorch lays a matrix out, though these are vectors.
        vectors = solution[..., 0]
        return column_major(vectors) if vectors.ndim > 1 else vectors.copy(), info[()]
    return column_major(solution) if left else solution, info[()]


def _solve_rule(
    grads: Any, A: Any, result: Any, left: bool, vector: bool, needs: list[bool]
) -> tuple[Any, Any]:
    (grad, _), X = grads, result
    if vector:
        grad, X = unsqueeze(grad, grad.ndim), unsqueeze(X, X.ndim)
    of_B = solve_ex(adjoint_of(A), grad, left, False)[0]
    of_A = None
    if needs[0]:
        of_A = -(of_B @ adjoint_of(X)) if left else -(adjoint_of(X) @ of_B)
    return of_A, squeeze_dim(of_B, of_B.ndim - 1) if vector else of_B


solve_ex: Op = op(
    "linalg_solve_ex",
    _solution_array,
    keeps_layout=True,
    outputs=("result", "info"),
    differentiable=(0,),
    inputs=("A", "B"),
    joint=_solve_rule,
    raises=BY_KINDS,
)


def _solve(name: str, A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    check_matrices(name, A=A)
    check_same_dtype(name, A, B)
    matrices, right = tuple(A.array.shape), tuple(B.array.shape)
    vector = len(right) == 1 or right == matrices[:-1]
    if vector and not left:
        raise shape_error(f"{name}(): a vector stands on the right only with left=True")
    if not right or right[-1 if vector or not left else -2] != matrices[-1]:
        raise shape_error(
            f"{name}(): matrices of {matrices} and right sides of {right} do not fit",
            text=incompatible("solve", left, matrices[-2:], (*right, 1) if vector else right[-2:]),
        )
    solution, info = solve_ex.apply(A, B, left, vector)
    return solution, info


@function(
    "solve", module="torch.linalg", autocast="float32", effects=(CHECKS,), numpy="linalg.solve"
)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution X of `A @ X = B`, or of `X @ A = B` where `left` is false.

    B holds vectors where it is one-dimensional, or has A's shape without the last dimension. Raises
    E301 where the shapes do not fit, E204 for a singular matrix.
    """
    solution, info = _solve("solve", A, B, left)
    checked_values(check_nonsingular, "solve", info.array)
    return solution


@function("solve_ex", module="torch.linalg")
def solve_ex_function(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> Any:
    """The solution, and for each matrix the number of the pivot that is 0, or 0."""
    solution, info = _solve("solve_ex", A, B, left)
    if check_errors:
        checked_values(check_nonsingular, "solve_ex", info.array)
    return named("linalg_solve_ex", "result info", (solution, info))


# --- determinants -------------------------------------------------------------------------------


def _scaled_identity(number: Any, size: int) -> Any:
    """A number for each matrix of a batch, on the diagonal of a matrix of that size."""
    row = expand(unsqueeze(number, number.ndim), (*number.shape, size))
    return diag_embed(row, 0, number.ndim, number.ndim + 1)


def _lu_of(A: Any) -> tuple[Any, Any]:
    lu, pivots, _ = lu_arrays(A.swapaxes(-2, -1) if A.flags.c_contiguous else A)
    return lu, pivots


def _determinant_array(A: Any) -> Any:
    lu, pivots = _lu_of(A)
    diagonal = np.diagonal(lu, 0, -2, -1)
    return (np.prod(diagonal, axis=-1) * permutation_sign(pivots).astype(A.dtype))[()]


def _singular_gradient(grad: Any, A: Any) -> Any:
    """The determinant's gradient from the singular values: it is there at a singular matrix too."""
    U, S, Vh = svd(A, True)
    sign = conj(_det(U) * _det(Vh)) * grad
    others = prod_gradient_at_zeros(unsqueeze(sign, sign.ndim), S, S.ndim - 1)
    return (U * unsqueeze(others, others.ndim - 1)) @ Vh


def _det_rule(grad: Any, A: Any, result: Any) -> Any:
    size = int(A.shape[-1])
    if size == 1:
        return expand(unsqueeze(unsqueeze(grad, grad.ndim), grad.ndim + 1), tuple(A.shape))
    scale = grad * conj(result)
    if type(grad) is not Tensor:
        # A pivot of 0 is replaced by the rounding unit, so that a singular matrix has a gradient,
        # of 0, as in PyTorch.
        lu, pivots, _ = lu_arrays(A.conj().swapaxes(-2, -1))
        diagonal = np.diagonal(lu, 0, -2, -1)
        lift = np.where(diagonal == 0, np.finfo(A.dtype).eps, 0).astype(A.dtype)
        lifted = lu + diag_embed(lift, 0, A.ndim - 2, A.ndim - 1)
        return column_major(lu_solved(lifted, pivots, _scaled_identity(scale, size)))
    limit = 100 * float(np.finfo(A.array.dtype).eps)
    if bool((np.abs(unbatched(result.array)) < limit).any()):
        return _singular_gradient(grad, A)
    return solve_ex(adjoint_of(A), turned(_scaled_identity(scale, size)), True, False)[0]


_det: Op = op("linalg_det", _determinant_array, A=_det_rule, raises=BY_VALUES)


@function("det", module="torch.linalg", numpy="linalg.det")
def linalg_det(A: Tensor) -> Tensor:
    """The determinant of square matrices. Raises E301 for others."""
    check_matrices("det", A=A)
    return _det.apply(A)


@function("det", method=True, numpy="linalg.det")
def det(input: Tensor) -> Tensor:
    """The determinant of square matrices; see `torch.linalg.det`."""
    return linalg_det(input)


def _slogdet_array(A: Any) -> tuple[Any, Any]:
    lu, pivots = _lu_of(A)
    diagonal = np.diagonal(lu, 0, -2, -1)
    magnitude = np.abs(diagonal)
    with np.errstate(all="ignore"):
        signs = diagonal / np.where(magnitude == 0, 1, magnitude)
        # A real nan has no sign.
        signless = magnitude == 0 if signs.dtype.kind == "c" else ~(magnitude > 0)
        signs = np.where(signless, 0, signs)
        sign = np.prod(signs, axis=-1) * permutation_sign(pivots)
        logarithm = np.sum(np.log(magnitude), axis=-1)
    return sign.astype(A.dtype)[()], logarithm.astype(magnitude.dtype)[()]


def _slogdet_rule(grads: Any, A: Any, sign: Any) -> Any:
    of_sign, grad = grads
    # A real determinant's sign is constant wherever it has a derivative; a complex one turns.
    if of_sign is not None and is_complex(A):
        turn = imaginary_part(conj(of_sign) * sign)
        grad = turn * -1j if grad is None else grad - turn * 1j
    if grad is None:
        return None
    if is_complex(A) and not is_complex(grad):
        grad = cast_to(grad, A.dtype if type(A) is Tensor else dtypes.of_array(A))
    return solve_ex(adjoint_of(A), turned(_scaled_identity(grad, A.shape[-1])), True, False)[0]


_slogdet: Op = op(
    "linalg_slogdet",
    _slogdet_array,
    keeps_layout=True,
    outputs=("sign", "logabsdet"),
    A=_slogdet_rule,
    raises=BY_KINDS,
)


@function("slogdet", module="torch.linalg", numpy="linalg.slogdet")
def linalg_slogdet(A: Tensor) -> Any:
    """The sign of the determinant and the logarithm of its magnitude; 0 and -inf where it is 0."""
    check_matrices("slogdet", A=A)
    return named("linalg_slogdet", "sign logabsdet", _slogdet.apply(A))


@function("slogdet", method=True)
def slogdet(input: Tensor) -> Any:
    """The sign of the determinant and the logarithm of its magnitude."""
    check_matrices("slogdet", input=input)
    return named("slogdet", "sign logabsdet", _slogdet.apply(input))


@function("logdet", method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: nan where it is negative, -inf where it is 0."""
    check_matrices("logdet", input=input)
    sign, logarithm = _slogdet.apply(input)
    if input.dtype.is_complex:
        return add.apply(log.apply(sign), logarithm)
    return choose.apply(sign == -1, math.nan, logarithm)


# --- tensors as matrices ------------------------------------------------------------------------


@function("tensorinv", module="torch.linalg", autocast="float32", effects=(CHECKS,))
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of `X -> tensordot(A, X, A.ndim - ind)`; A's first `ind` dimensions are as many
    elements as its others.

    Example: torch.linalg.tensorinv(tensor([[2., 1.], [1., 3.]]), ind=1)
    """
    check_precision("tensorinv", A)
    if type(ind) is not int or ind <= 0:
        raise runtime_error("tensorinv(): ind must be above 0")
    shape = tuple(A.array.shape)
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise shape_error(f"tensorinv(): {rows} rows and {columns} columns are not square")
    inverse = inverted("tensorinv", reshape(A, (rows, columns)))
    return reshape(inverse, (*shape[ind:], *shape[:ind]))


@function("tensorsolve", module="torch.linalg", autocast="float32", effects=(CHECKS,))
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """The solution X of `tensordot(A, X, X.ndim) = B`, after A's dimensions `dims` are put last.

    Example: torch.linalg.tensorsolve(tensor([[2., 1.], [1., 3.]]), tensor([1., 2.]))
    """
    check_precision("tensorsolve", A)
    if dims is not None:
        ndim = A.array.ndim
        last = [d % ndim for d in dims]
        A = permute.apply(A, tuple([d for d in range(ndim) if d not in last] + last))
    sizes = tuple(A.array.shape[B.array.ndim :])
    columns, rows = math.prod(sizes), B.array.size
    if columns * rows != A.array.size or columns != rows:
        raise shape_error(f"tensorsolve(): {rows} equations for {columns} unknowns")
    solution = solve(reshape(A, (rows, columns)), flatten(B))
    return reshape(solution, sizes)
