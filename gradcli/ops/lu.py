"""The LU decomposition: `lu lu_factor lu_unpack lu_solve`.

`A = P @ L @ U`, with P a permutation of the rows. Gradients hold while the order of the rows stays.
"""

from __future__ import annotations

from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arguments import check_same_dtype, check_tensors
from gradcli.ops.arithmetic import zeros
from gradcli.ops.catalogue import function, refuse_out
from gradcli.ops.entry import Op, op
from gradcli.ops.joining import cat
from gradcli.ops.linear_systems import (
    adjoint_of,
    check_matrices,
    column_major,
    first,
    lu_arrays,
    lu_solved,
    row_order,
    turned,
)
from gradcli.ops.rearranging import tril, triu
from gradcli.ops.return_types import return_type
from gradcli.ops.slicing import slice_
from gradcli.ops.triangular import solve_triangular

# --- the factors --------------------------------------------------------------------------------


def _permutation(pivots: Any, rows: int, dtype: Any) -> Any:
    """The matrices P of the swaps."""
    order = row_order(pivots, rows)
    xp = module_of(pivots)
    places = xp.arange(rows)[:, None]
    return xp.ascontiguousarray((order[..., None, :] == places).astype(dtype))


def _constant(array: Any, like: Any) -> Any:
    """An array for a rule that is read with arrays or with tensors, as `like` is."""
    return Tensor(array) if type(like) is Tensor else array


def _plain(value: Any) -> Any:
    return value.array if type(value) is Tensor else value


def _lower(lu: Any) -> Any:
    """L, of as many columns as there are pivots, with ones on the diagonal."""
    rows, columns = lu.shape[-2:]
    count = min(rows, columns)
    ones = module_of(_plain(lu)).eye(rows, count, dtype=_plain(lu).dtype)
    return tril(first(lu, -1, count), -1) + _constant(ones, lu)


def _upper(lu: Any) -> Any:
    return triu(first(lu, -2, min(lu.shape[-2:])), 0)


def _rest(value: Any, dim: int, start: int) -> Any:
    """The positions from one on along a dimension."""
    return slice_(value, value.ndim + dim, start, value.shape[dim], 1)


def _factors_gradient(of_L: Any, of_U: Any, P: Any, L: Any, U: Any) -> Any:
    """The gradient of a matrix from those of its factors L and U; either may be missing."""
    rows, columns = L.shape[-2], U.shape[-1]
    count = min(rows, columns)
    of_L = zeros(L, tuple(L.shape)) if of_L is None else of_L
    of_U = zeros(U, tuple(U.shape)) if of_U is None else of_U
    square_L, square_U = first(L, -2, count), first(U, -1, count)
    below = adjoint_of(square_L) @ first(of_L, -2, count)
    above = first(of_U, -1, count) @ adjoint_of(square_U)
    # What lies beyond the square part of one factor bears on the other one.
    if columns > count:
        below = below - _rest(of_U, -1, count) @ adjoint_of(_rest(U, -1, count))
    if rows > count:
        above = above - adjoint_of(_rest(L, -2, count)) @ _rest(of_L, -2, count)
    inner = tril(below, -1) + triu(above, 0)
    if columns > count:
        inner = solve_triangular(adjoint_of(square_U), inner, False, False, False)
        inner = cat([inner, _rest(of_U, -1, count)], inner.ndim - 1)
        return P @ solve_triangular(adjoint_of(square_L), inner, True, True, True)
    inner = solve_triangular(adjoint_of(square_L), inner, True, True, True)
    if rows > count:
        inner = cat([inner, _rest(of_L, -2, count)], inner.ndim - 2)
    return P @ solve_triangular(adjoint_of(square_U), inner, False, False, False)


def _factored(A: Any) -> tuple[Any, Any, Any]:
    lu, pivots, info = lu_arrays(A)
    return column_major(lu), pivots, info[()]


def _factored_rule(grads: Any, LU: Any, pivots: Any) -> Any:
    grad = grads[0]
    count = min(LU.shape[-2:])
    of_L, of_U = tril(first(grad, -1, count), -1), triu(first(grad, -2, count), 0)
    P = _constant(_permutation(_plain(pivots), LU.shape[-2], _plain(LU).dtype), LU)
    return _factors_gradient(of_L, of_U, P, _lower(LU), _upper(LU))


lu_factor: Op = op(
    "linalg_lu_factor_ex",
    "LinalgLuFactorExBackward0",
    _factored,
    keeps_layout=True,
    outputs=("LU", "pivots", "info"),
    differentiable=(0,),
    A=_factored_rule,
)
_LU_FACTOR = return_type("linalg_lu_factor", ("LU", "pivots"))
_LU_FACTOR_EX = return_type("linalg_lu_factor_ex", ("LU", "pivots", "info"))


def _refuse_no_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise GradcliError(
            "E205", f"{name}(): LU without pivoting exists on CUDA only", raises="RuntimeError"
        )


@function("lu_factor", module="torch.linalg")
def linalg_lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """L (below the diagonal) and U in one matrix, and the row that each row was swapped with,
    counted from 1. Raises E204 where a pivot is 0.
    """
    refuse_out("lu_factor", out)
    check_matrices("lu_factor", square=False, A=A)
    _refuse_no_pivot("lu_factor", pivot)
    factors, pivots, info = lu_factor.apply(A)
    if info.array.any():
        raise GradcliError(
            "E204", "lu_factor(): a pivot is 0, so lu_solve could not divide", raises="RuntimeError"
        )
    return _LU_FACTOR((factors, pivots))


@function("lu_factor_ex", module="torch.linalg")
def linalg_lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None
) -> Any:
    """lu_factor()'s results, and for each matrix the number of the pivot that is 0, or 0."""
    if check_errors:
        linalg_lu_factor(A, pivot=pivot, out=out)
    refuse_out("lu_factor_ex", out)
    check_matrices("lu_factor_ex", square=False, A=A)
    _refuse_no_pivot("lu_factor_ex", pivot)
    return _LU_FACTOR_EX(lu_factor.apply(A))


@function("lu", method=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The tuple of lu_factor()'s results; with `get_infos` of lu_factor_ex()'s."""
    found = linalg_lu_factor_ex(A, pivot=pivot)
    return tuple(found) if get_infos else tuple(found[:2])


def _unpacked(LU_data: Any, LU_pivots: Any) -> tuple[Any, Any, Any]:
    P = _permutation(LU_pivots, LU_data.shape[-2], LU_data.dtype)
    xp = module_of(LU_data)
    return P, xp.ascontiguousarray(_lower(LU_data)), xp.ascontiguousarray(_upper(LU_data))


def _unpacked_rule(grads: Any, LU_data_sizes: tuple[int, ...]) -> Any:
    _, of_L, of_U = grads
    rows, columns = LU_data_sizes[-2:]
    if of_L is not None:
        of_L = tril(of_L, -1)
        if columns > rows:
            of_L = cat([of_L, zeros(of_L, (*LU_data_sizes[:-1], columns - rows))], of_L.ndim - 1)
    if of_U is not None:
        of_U = triu(of_U, 0)
        if rows > columns:
            blank = zeros(of_U, (*LU_data_sizes[:-2], rows - columns, columns))
            of_U = cat([of_U, blank], of_U.ndim - 2)
    if of_L is None or of_U is None:
        return of_U if of_L is None else of_L
    return of_L + of_U


lu_unpack: Op = op(
    "lu_unpack",
    "LuUnpackBackward0",
    _unpacked,
    keeps_layout=True,
    constant=("LU_pivots",),
    outputs=("P", "L", "U"),
    differentiable=(1, 2),
    LU_data=_unpacked_rule,
)
_LU_UNPACK = return_type("lu_unpack", ("P", "L", "U"))


@function("lu_unpack")
def lu_unpack_(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U from lu_factor()'s results; what is not to be unpacked is empty."""
    check_matrices("lu_unpack", square=False, LU_data=LU_data)
    check_tensors("lu_unpack", LU_pivots=LU_pivots)
    P, L, U = lu_unpack.apply(LU_data, LU_pivots)
    empty = Tensor(module_of(LU_data.array).empty(0, LU_data.array.dtype))
    data = (L, U) if unpack_data else (empty, empty)
    return _LU_UNPACK((P if unpack_pivots else empty, *data))


linalg_lu_entry: Op = op(
    "linalg_lu",
    "LinalgLuBackward0",
    lambda A: _unpacked(*lu_arrays(A)[:2]),
    keeps_layout=True,
    outputs=("P", "L", "U"),
    differentiable=(1, 2),
    A=lambda grads, P, L, U: _factors_gradient(
        grads[1],
        grads[2],
        _constant(_plain(P), L),
        L,
        U,
    ),
)
_LINALG_LU = return_type("linalg_lu", ("P", "L", "U"))


@function("lu", module="torch.linalg")
def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """A permutation P, a unit lower triangular L and an upper triangular U with `A = P @ L @ U`."""
    refuse_out("lu", out)
    check_matrices("lu", square=False, A=A)
    _refuse_no_pivot("lu", pivot)
    return _LINALG_LU(linalg_lu_entry.apply(A))


# --- solutions from the factors -----------------------------------------------------------------


def _solved_array(LU: Any, pivots: Any, B: Any, left: bool, adjoint: bool) -> Any:
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
    of_B = lu_solve(LU, pivots, grad, left, not adjoint)
    if not needs[0]:
        return None, of_B
    of_matrix = of_B @ adjoint_of(result) if left else adjoint_of(result) @ of_B
    if adjoint:
        of_matrix = adjoint_of(of_matrix)
    P = _constant(_permutation(_plain(pivots), LU.shape[-1], _plain(LU).dtype), LU)
    ordered = turned(P) @ -of_matrix
    of_L = tril(ordered @ adjoint_of(_upper(LU)), -1)
    return of_L + triu(adjoint_of(_lower(LU)) @ ordered, 0), of_B


lu_solve: Op = op(
    "linalg_lu_solve",
    "LinalgLuSolveBackward0",
    _solved_array,
    keeps_layout=True,
    constant=("pivots",),
    inputs=("LU", "B"),
    joint=_solved_rule,
)


@function("lu_solve", module="torch.linalg")
def linalg_lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Any = None,
) -> Tensor:
    """The solution X of `A @ X = B` (of `X @ A = B` where `left` is false) from lu_factor()'s
    results; with `adjoint` A's adjoint takes its place.
    """
    refuse_out("lu_solve", out)
    check_matrices("lu_solve", LU=LU)
    check_matrices("lu_solve", square=False, B=B)
    check_tensors("lu_solve", pivots=pivots)
    check_same_dtype("lu_solve", LU, B)
    if B.array.shape[-2 if left else -1] != LU.array.shape[-1]:
        raise GradcliError(
            "E301",
            f"lu_solve(): factors of {tuple(LU.array.shape)} and right sides of"
            f" {tuple(B.array.shape)} do not fit",
        )
    return lu_solve.apply(LU, pivots, B, left, adjoint)


@function("lu_solve", method=True)
def lu_solve_(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor:
    """The solution X of `A @ X = b` from lu_factor()'s results."""
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)
