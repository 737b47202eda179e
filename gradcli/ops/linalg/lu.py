"""The LU decomposition: `lu lu_factor lu_unpack lu_solve`.

`A = P @ L @ U`, with P a permutation of the rows. Gradients hold while the order of the rows stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, index_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import check_same_dtype, check_tensors, checked_values
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, CHECKS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.linear_systems import (
    adjoint_of,
    check_matrices,
    check_square,
    column_major,
    first,
    incompatible,
    lu_arrays,
    lu_solved,
    row_order,
    turned,
)
from gradcli.ops.linalg.triangular import solve_triangular
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.rearranging import tril, triu
from gradcli.ops.shape.slicing import slice_op

# --- the factors --------------------------------------------------------------------------------


def _permutation(pivots: Any, rows: int, dtype: Any) -> Any:
    """The matrices P of the swaps."""
    order = row_order(pivots, rows)
    xp = module_of(pivots)
    positions = xp.arange(rows)[:, None]
    return xp.ascontiguousarray((order[..., None, :] == positions).astype(dtype))


def _unpacked(LU_data: Any, LU_pivots: Any) -> tuple[Any, Any, Any]:
    rows, columns = LU_data.shape[-2:]
    count, dtype, xp = min(rows, columns), LU_data.dtype, module_of(LU_data)
    # L has as many columns as there are pivots, and ones on its diagonal.
    L = np.tril(LU_data[..., :count], -1) + xp.eye(rows, count, dtype=dtype)
    U = np.triu(LU_data[..., :count, :])
    P = _permutation(LU_pivots, rows, dtype)
    return xp.ascontiguousarray(L), xp.ascontiguousarray(U), P


def _part(value: Any, dim: int, start: int, end: int) -> Any:
    """The positions between two along a dimension: a node even where these are all."""
    return slice_op(value, value.ndim + dim, start, end, 1)


def _rest(value: Any, dim: int, start: int) -> Any:
    """The positions from one on along a dimension."""
    return _part(value, dim, start, int(value.shape[dim]))


def _product_less(first_term: Any, second_term: Any) -> Any:
    """The difference of two terms, either of which may be missing."""
    if second_term is None:
        return first_term
    return -second_term if first_term is None else first_term - second_term


def _factors_gradient(of_L: Any, of_U: Any, P: Any, L: Any, U: Any) -> Any:
    """The gradient of a matrix from those of its factors L and U; one may be missing.

    L's gradient counts below the diagonal, U's on it and above.
    """
    rows, columns = int(L.shape[-2]), int(U.shape[-1])
    if rows == columns:
        below = None if of_L is None else tril(adjoint_of(L) @ of_L, -1)
        above = None if of_U is None else triu(of_U @ adjoint_of(U), 0)
        inner = above if below is None else below if above is None else below + above
        inner = solve_triangular(adjoint_of(U), inner, False, False, False)
        return P @ solve_triangular(adjoint_of(L), inner, True, True, True)
    if rows < columns:
        below = None if of_L is None else adjoint_of(L) @ of_L
        above = None if of_U is None else triu(of_U, 0) @ adjoint_of(U)
        inner = tril(_product_less(below, above), -1)
        square = adjoint_of(first(U, -1, rows))
        inner = solve_triangular(square, inner, False, False, False)
        if of_U is None:
            rest = zeros(U, (*U.shape[:-1], columns - rows))
        else:
            inner = inner + triu(first(of_U, -1, rows), 0)
            rest = _rest(of_U, -1, rows)
            inner = cat([inner, rest], inner.ndim - 1)
        inner = solve_triangular(adjoint_of(L), inner, True, True, True)
        return P @ (cat([inner, rest], inner.ndim - 1) if of_U is None else inner)
    above = None if of_U is None else of_U @ adjoint_of(U)
    below = None if of_L is None else adjoint_of(L) @ tril(of_L, -1)
    inner = triu(_product_less(above, below), 0)
    inner = solve_triangular(adjoint_of(first(L, -2, columns)), inner, True, True, True)
    if of_L is None:
        rest = zeros(L, (*L.shape[:-2], rows - columns, columns))
    else:
        inner = inner + tril(first(of_L, -2, columns), -1)
        rest = _rest(of_L, -2, columns)
        inner = cat([inner, rest], inner.ndim - 2)
    inner = solve_triangular(adjoint_of(U), inner, False, False, False)
    return P @ (cat([inner, rest], inner.ndim - 2) if of_L is None else inner)


def _unpacked_rule(grads: Any, LU_data_sizes: tuple[int, ...]) -> Any:
    of_L, of_U, _ = grads
    rows, columns = LU_data_sizes[-2:]
    count = min(rows, columns)
    if of_L is not None and of_U is not None:
        if rows == columns:
            return tril(of_L, -1) + triu(of_U, 0)
        square = tril(first(of_L, -2, count), -1) + triu(first(of_U, -1, count), 0)
        if rows > columns:
            return cat([square, _rest(of_L, -2, count)], square.ndim - 2)
        return cat([square, _rest(of_U, -1, count)], square.ndim - 1)
    if of_L is not None:
        triangle = tril(of_L, -1)
        blank = (*LU_data_sizes[:-1], columns - count)
        dim = triangle.ndim - 1
    else:
        triangle = triu(of_U, 0)
        blank = (*LU_data_sizes[:-2], rows - count, columns)
        dim = triangle.ndim - 2
    return cat([triangle, zeros(triangle, blank)], dim) if 0 not in blank[-2:] else triangle


# P comes last: it has no gradient, and edges count the outputs that have one.
_lu_unpack: Op = op(
    "lu_unpack",
    _unpacked,
    keeps_layout=True,
    constant=("LU_pivots",),
    outputs=("L", "U", "P"),
    differentiable=(0, 1),
    LU_data=_unpacked_rule,
    raises=BY_VALUES,
)


def _factored(A: Any) -> tuple[Any, Any, Any]:
    lu, pivots, info = lu_arrays(A)
    return column_major(lu), pivots, info[()]


def _factored_rule(grads: Any, LU: Any, pivots: Any) -> Any:
    grad = grads[0]
    count = min(LU.shape[-2:])
    L, U, P = _lu_unpack(LU, pivots)
    return _factors_gradient(_part(grad, -1, 0, count), _part(grad, -2, 0, count), P, L, U)


lu_factor: Op = op(
    "linalg_lu_factor_ex",
    _factored,
    keeps_layout=True,
    outputs=("LU", "pivots", "info"),
    differentiable=(0,),
    A=_factored_rule,
    raises=BY_KINDS,
)


def _refuse_no_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise GradcliError(
            "E205", f"{name}(): LU without pivoting exists on CUDA only", raises="RuntimeError"
        )


def _check_nonzero(info: Any) -> None:
    """Raise E204 where a pivot is 0."""
    if info.any():
        raise runtime_error("lu_factor(): a pivot is 0, so lu_solve could not divide")


@function("lu_factor", module="torch.linalg", effects=(CHECKS,))
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L (below the diagonal) and U in one matrix, and the row that each row was swapped with,
    counted from 1. Raises E204 where a pivot is 0.
    """
    check_matrices("lu_factor", square=False, A=A)
    _refuse_no_pivot("lu_factor", pivot)
    factors, pivots, info = lu_factor.apply(A)
    checked_values(_check_nonzero, info.array)
    return named("linalg_lu_factor", "LU pivots", (factors, pivots))


@function("lu_factor_ex", module="torch.linalg")
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """lu_factor()'s results, and for each matrix the number of the pivot that is 0, or 0."""
    if check_errors:
        linalg_lu_factor(A, pivot=pivot)
    check_matrices("lu_factor_ex", square=False, A=A)
    _refuse_no_pivot("lu_factor_ex", pivot)
    return named("linalg_lu_factor_ex", "LU pivots info", lu_factor.apply(A))


@function("lu", method=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The tuple of lu_factor()'s results; with `get_infos` of lu_factor_ex()'s."""
    results = linalg_lu_factor_ex(A, pivot=pivot)
    return tuple(results) if get_infos else tuple(results[:2])


def _check_unpacked(pivots: Tensor, rows: int, count: int) -> None:
    """Raise E203 or E204 for what cannot be the pivots of a matrix of so many rows."""
    if pivots.array.dtype != np.int32:
        raise dtype_error(
            f"lu_unpack(): pivots are torch.int32, and these are {pivots.dtype}",
            text="torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32"
            " dtype.\nNote: this function is intended to be used with the output produced by"
            " torch.linalg.lu_factor",
        )
    if pivots.array.shape[-1:] != (count,):
        raise shape_error(
            f"lu_unpack(): pivots of shape {tuple(pivots.array.shape)} for {count} diagonal"
            " elements"
        )
    text = (
        "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly"
        " pass the result of lu_factor?"
    )
    checked_values(_check_pivots, "lu_unpack", pivots.array, rows, text, text)


def _check_pivots(name: str, pivots: Any, rows: int, too_low: str, too_high: str) -> None:
    """Raise E204 for a pivot that is no row counted from 1."""
    for outside, text in ((pivots < 1, too_low), (pivots > rows, too_high)):
        if outside.any():
            raise runtime_error(f"{name}(): the pivots are not between 1 and {rows}", text=text)


@function("lu_unpack", effects=(CHECKS,))
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U from lu_factor()'s results; what is not to be unpacked is empty.

    Example: torch.lu_unpack(*torch.linalg.lu_factor(tensor([[2., 1.], [1., 3.]])))
    """
    check_matrices("lu_unpack", square=False, LU_data=LU_data)
    rows, columns = LU_data.array.shape[-2:]
    if unpack_pivots:
        check_tensors("lu_unpack", LU_pivots=LU_pivots)
        _check_unpacked(LU_pivots, rows, min(rows, columns))
    else:  # PyTorch does not look at them
        LU_pivots = Tensor(module_of(LU_data.array).ones(min(rows, columns), np.int32))
    L, U, P = _lu_unpack.apply(LU_data, LU_pivots)
    empty = Tensor(module_of(LU_data.array).empty(0, LU_data.array.dtype))
    data = (L, U) if unpack_data else (empty, empty)
    return named("lu_unpack", "P L U", (P if unpack_pivots else empty, *data))


linalg_lu_entry: Op = op(
    "linalg_lu",
    lambda A: _unpacked(*lu_arrays(A)[:2]),
    keeps_layout=True,
    outputs=("L", "U", "P"),
    differentiable=(0, 1),
    A=lambda grads, L, U, P: _factors_gradient(grads[0], grads[1], P, L, U),
    raises=BY_KINDS,
)


@function("lu", module="torch.linalg")
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """A permutation P, a unit lower triangular L and an upper triangular U with `A = P @ L @ U`."""
    check_matrices("lu", square=False, A=A)
    _refuse_no_pivot("lu", pivot)
    L, U, P = linalg_lu_entry.apply(A)
    return named("linalg_lu", "P L U", (P, L, U))


# --- solutions from the factors -----------------------------------------------------------------


def _solved_array(LU: Any, pivots: Any, B: Any, left: bool, adjoint: bool) -> Any:
    if not B.size:
        pivots = np.ones_like(pivots)  # PyTorch looks at none
    if left:
        return column_major(lu_solved(LU, pivots, B, adjoint))
    # X @ A = B is A.mH @ X.mH = B.mH.
    turned_back = lu_solved(LU, pivots, B.conj().swapaxes(-2, -1), not adjoint)
    return module_of(turned_back).ascontiguousarray(turned_back.conj().swapaxes(-2, -1))


def _solved_rule(
    grad: Any,
    LU: Any,
    pivots: Any,
    result: Any,
    left: bool,
    adjoint: bool,
    needs: list[bool],
) -> tuple[Any, Any]:
    of_LU = _solved_gradient(grad, LU, pivots, result, left, adjoint) if needs[0] else None
    of_B = _lu_solve(LU, pivots, grad, left, not adjoint) if needs[1] else None
    return of_LU, of_B


def _solved_gradient(grad: Any, LU: Any, pivots: Any, X: Any, left: bool, adjoint: bool) -> Any:
    L, U, P = _lu_unpack(LU, pivots)
    if left != adjoint:
        of_product = -((grad if left else adjoint_of(grad)) @ (adjoint_of(X) if left else X))
        inner = solve_triangular(adjoint_of(U), of_product, False, True, False)
        of_L = solve_triangular(adjoint_of(L), inner @ adjoint_of(U), True, True, True)
        return tril(of_L, -1) + triu(inner, 0)
    inner = turned(P) @ (X if left else adjoint_of(X))
    inner = -(inner @ (adjoint_of(grad) if left else grad) @ P)
    inner = solve_triangular(adjoint_of(L), inner, True, False, True)
    of_U = solve_triangular(adjoint_of(U), adjoint_of(L) @ inner, False, False, False)
    return tril(inner, -1) + triu(of_U, 0)


_lu_solve: Op = op(
    "linalg_lu_solve",
    _solved_array,
    keeps_layout=True,
    constant=("pivots",),
    inputs=("LU", "B"),
    joint=_solved_rule,
    raises=BY_VALUES,
)


def _check_solved(LU: Tensor, pivots: Tensor, B: Tensor, left: bool) -> None:
    """Raise E203, E204 or E301 where pivots and right sides do not go with the factors."""
    if pivots.array.dtype != np.int32:
        raise dtype_error(
            f"lu_solve(): pivots are torch.int32, and these are {pivots.dtype}",
            text="linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32",
        )
    check_square("lu_solve", LU)
    factors, right = tuple(LU.array.shape), tuple(B.array.shape)
    if right[-2 if left else -1] != factors[-1]:
        raise shape_error(
            f"lu_solve(): factors of {factors} and right sides of {right} do not fit",
            text=incompatible("lu_solve", left, factors[-2:], right[-2:]),
        )
    shape = tuple(pivots.array.shape)
    if not shape:
        raise index_error(
            "lu_solve(): the pivots are no vectors",
            text="Dimension specified as -1 but tensor has no dimensions",
        )
    if shape != factors[:-1]:
        raise shape_error(
            f"lu_solve(): pivots of shape {shape} for factors of {factors}",
            text="linalg.lu_solve: Number of pivots per batch should be same as the dimension of"
            " the matrix"
            if shape[-1] != factors[-1]
            else "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got"
            f" pivots with shape {list(shape)} instead",
        )
    if B.array.size:
        text = (
            "Pivots given to lu_solve must all be {} Did you properly pass the result of lu_factor?"
        )
        low = text.format("greater or equal to 1.")
        high = text.format("smaller or equal to LU.size(-2).")
        checked_values(_check_pivots, "lu_solve", pivots.array, factors[-1], low, high)


@function("lu_solve", module="torch.linalg", autocast="float32", effects=(CHECKS,))
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The solution X of `A @ X = B` (of `X @ A = B` where `left` is false) from lu_factor()'s
    results; with `adjoint` A's adjoint is used instead.

    Example:
        torch.linalg.lu_solve(*torch.linalg.lu_factor(tensor([[2., 1.], [1., 3.]])), tensor([[1.],
            [2.]]))
    """
    check_tensors("lu_solve", LU=LU, pivots=pivots, B=B)
    check_matrices("lu_solve", square=False, LU=LU, B=B)
    check_same_dtype(
        "lu_solve",
        LU,
        B,
        "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type"
        f" {LU.dtype.scalar_type} and B of type {B.dtype.scalar_type} instead",
    )
    _check_solved(LU, pivots, B, left)
    return _lu_solve.apply(LU, pivots, B, left, adjoint)


@function("lu_solve", method=True, autocast="float32", effects=(CHECKS,))
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The solution X of `A @ X = b` from lu_factor()'s results.

    Example:
        torch.lu_solve(tensor([[1.], [2.]]), *torch.linalg.lu_factor(tensor([[2., 1.], [1., 3.]])))
    """
    return linalg_lu_solve(LU_data, LU_pivots, b)
