"""Triangular matrices, `solve_triangular cholesky cholesky_solve cholesky_inverse`, and the LU
decomposition, `lu lu_factor lu_unpack lu_solve`: `A = P @ L @ U`, with P a permutation of the rows.
Gradients hold while the order of the rows stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, on_the_host
from gradcli.arrays.kernels import in_c
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, index_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import conj, zeros
from gradcli.ops.binding.arguments import (
    check_not_integral,
    check_same_dtype,
    check_tensors,
    checked_values,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, CHECKS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.linear_systems import (
    MATRICES,
    SQUARE,
    adjoint_of,
    check_matrices,
    check_square,
    column_major,
    first,
    incompatible,
    linear_algebra_error,
    lu_arrays,
    lu_solved,
    row_order,
    substituted,
    turned,
)
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.reshaping import tril, triu
from gradcli.ops.shape.slicing import slice_op

# --- substitution -------------------------------------------------------------------------------


def _substituted(A: Any, B: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    if left:
        return substituted(A, B, upper, unitriangular)
    A, B = A.swapaxes(-2, -1), B.swapaxes(-2, -1)
    return substituted(A, B, not upper, unitriangular, by_columns=False).swapaxes(-2, -1)


def _triangle_of(value: Any, upper: bool, unitriangular: bool) -> Any:
    """The part of a gradient that belongs to elements which were read."""
    return triu(value, int(unitriangular)) if upper else tril(value, -int(unitriangular))


def _of_triangle(of_B: Any, X: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    product = of_B @ adjoint_of(X) if left else adjoint_of(X) @ of_B
    return _triangle_of(-product, upper, unitriangular)


def _substitution_rule(
    grad: Any,
    A: Any,
    result: Any,
    upper: bool,
    left: bool,
    unitriangular: bool,
    needs: list[bool],
) -> tuple[Any, Any]:
    of_B = solve_triangular(adjoint_of(A), grad, not upper, left, unitriangular)
    of_A = _of_triangle(of_B, result, upper, left, unitriangular) if needs[0] else None
    return of_A, of_B


solve_triangular: Op = op(
    "linalg_solve_triangular",
    _substituted,
    keeps_layout=True,
    inputs=("A", "B"),
    joint=_substitution_rule,
    numpy="""\
def solve_triangular(a, b, upper, left=True, unitriangular=False):
    a = np.triu(a, unitriangular) if upper else np.tril(a, -unitriangular)
    a = a + np.eye(a.shape[-1], dtype=a.dtype) if unitriangular else a
    if left:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-2, -1), b.swapaxes(-2, -1)).swapaxes(-2, -1)
""",
    raises=BY_KINDS,
)


def _check_system(name: str, A: Tensor, B: Tensor, left: bool = True) -> None:
    check_matrices(name, A=A)
    check_matrices(name, square=False, B=B)
    check_same_dtype(name, A, B)
    matrices, right = tuple(A.array.shape), tuple(B.array.shape)
    if right[-2 if left else -1] != matrices[-1]:
        raise shape_error(incompatible(name, left, matrices[-2:], right[-2:]))


@function("solve_triangular", module="torch.linalg")
def linalg_solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The solution X of `A @ X = B`, or of `X @ A = B` where `left` is false, for triangular A.

    Only the upper or lower triangle of A is read; with `unitriangular` its diagonal counts as ones.
    A 0 on the diagonal gives inf or nan.

    Example:
        torch.linalg.solve_triangular(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]),
            upper=False)
    """
    _check_system("solve_triangular", A, B, left)
    return solve_triangular.apply(A, B, upper, left, unitriangular)


def _older_array(
    self: Any, A: Any, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Any, Any]:
    matrices = A.swapaxes(-2, -1) if transpose else A
    solution = substituted(matrices, self, upper != transpose, unitriangular)
    batch = np.broadcast_shapes(self.shape[:-2], A.shape[:-2])
    return solution, column_major(np.broadcast_to(A, (*batch, *A.shape[-2:])))


def _older_rule(
    grads: Any,
    self: Any,
    A: Any,
    solution: Any,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
    needs: list[bool],
) -> tuple[Any, Any]:
    # The right-hand side is kept as PyTorch keeps it: a write to it is an error.
    solution_grad, copy_grad = grads
    self_grad = A_grad = None
    if solution_grad is not None:
        self_grad = _triangular_solve(solution_grad, conj(A), upper, not transpose, unitriangular)[
            0
        ]
        if needs[1]:
            if transpose:
                product = conj(solution @ adjoint_of(self_grad))
            else:
                product = self_grad @ adjoint_of(solution)
            A_grad = _triangle_of(-product, upper, unitriangular)
    if copy_grad is not None:
        A_grad = copy_grad if A_grad is None else A_grad + copy_grad
    return self_grad, A_grad


_triangular_solve: Op = op(
    "triangular_solve",
    _older_array,
    keeps_layout=True,
    outputs=("solution", "cloned_coefficient"),
    inputs=("self", "A"),
    joint=_older_rule,
    raises=BY_KINDS,
)


@function("triangular_solve", method=True, autocast="float32")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The solution X of `A @ X = b`, or of `A.mT @ X = b`, with a copy of A.

    Example: torch.triangular_solve(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    _check_system("triangular_solve", A, b)
    return named(
        "triangular_solve",
        "solution cloned_coefficient",
        _triangular_solve.apply(b, A, upper, transpose, unitriangular),
    )


# --- the Cholesky decomposition -----------------------------------------------------------------


@on_the_host
def _cholesky_arrays(matrices: Any) -> tuple[Any, Any]:
    """The lower factors, their columns contiguous, and for each matrix the order of the first
    leading minor that is not positive, or 0. Only the lower triangle is read.
    """
    made = in_c.cholesky(matrices)
    if made is not None:
        factors, orders = made
        if not orders.any():
            return factors, orders.astype(np.int32)
    size = matrices.shape[-1]
    flat = matrices.reshape(-1, size, size) if matrices.size else matrices[:0]
    lower = np.zeros(flat.shape, flat.dtype)
    info = np.zeros(len(flat), np.int32)
    for position, matrix in enumerate(flat):
        try:
            if np.isfinite(matrix).all():
                lower[position] = np.linalg.cholesky(matrix)
                continue
        except np.linalg.LinAlgError:
            pass
        lower[position], info[position] = _column_by_column(matrix)
    if not matrices.size:
        info = np.zeros(matrices.shape[:-2], np.int32)
    return column_major(lower.reshape(matrices.shape)), info.reshape(matrices.shape[:-2])


def _column_by_column(matrix: Any) -> tuple[Any, int]:
    """The factor as far as there is one, and the order of the first leading minor that is not
    positive, or 0. What comes after it stays as it was.
    """
    lower = np.tril(matrix)
    with np.errstate(all="ignore"):
        for k in range(len(matrix)):
            row = lower[k, :k]
            pivot = lower[k, k].real - np.sum((row * row.conj()).real)
            lower[k, k] = pivot
            if not pivot > 0:
                return lower, k + 1
            lower[k, k] = np.sqrt(pivot)
            below = lower[k + 1 :, k] - lower[k + 1 :, :k] @ row.conj()
            lower[k + 1 :, k] = below / lower[k, k] if np.isfinite(pivot) else np.nan
    return lower, 0


def _cholesky_array(self: Any, upper: bool) -> tuple[Any, Any]:
    lower, info = _cholesky_arrays(adjoint_of(self) if upper else self)
    return column_major(adjoint_of(lower)) if upper else lower, info[()]


def _cholesky_rule(grads: Any, L: Any, upper: bool) -> Any:
    grad = grads[0]
    if upper:
        L, grad = adjoint_of(L), adjoint_of(grad)
    inner = tril(adjoint_of(L) @ grad, 0)
    inner = (inner + adjoint_of(tril(inner, -1))) * 0.5
    inner = solve_triangular(adjoint_of(L), inner, True, True, False)
    return solve_triangular(L, inner, False, False, False)


def _factoring(name: str) -> Op:
    return op(
        name,
        _cholesky_array,
        outputs=("L", "info"),
        differentiable=(0,),
        keeps_layout=True,
        self=_cholesky_rule,
        numpy="linalg.cholesky(upper)",
        raises=BY_KINDS,
    )


cholesky_ex = _factoring("linalg_cholesky_ex")
_cholesky = _factoring("cholesky")


def _check_positive(name: str, orders: Any) -> None:
    """Raise E204 where a matrix has no Cholesky factor: its leading minor of an order that is not
    0.
    """
    if orders.any():
        failed = np.flatnonzero(orders)
        minor = int(np.ravel(orders)[failed[0]])
        where = f" {failed[0]} of the batch" if orders.ndim else ""
        batch = f"(Batch element {failed[0]}): " if orders.ndim else ""
        raise linear_algebra_error(
            name.removeprefix("linalg."),
            f"matrix{where} is not positive definite: its leading minor of order {minor} is not"
            " positive",
            f"{name}: {batch}The factorization could not be completed because the input is"
            f" not positive-definite (the leading minor of order {minor} is not"
            " positive-definite).",
        )


@function(
    "cholesky",
    module="torch.linalg",
    autocast="float32",
    effects=(CHECKS,),
    numpy="linalg.cholesky",
    takes={"A": SQUARE},
)
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with `A = L @ L.mH`, or with `upper` its adjoint.

    Raises E204 for a matrix that is not positive definite.
    """
    factor, info = cholesky_ex.apply(A, upper)
    checked_values(_check_positive, "linalg.cholesky", info.array)
    return factor


@function("cholesky_ex", module="torch.linalg", autocast="float32", takes={"A": SQUARE})
def linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and the order of the first leading minor that is not positive, or 0."""
    factor, info = cholesky_ex.apply(A, upper)
    if check_errors:
        checked_values(_check_positive, "linalg.cholesky_ex", info.array)
    return named("linalg_cholesky_ex", "L info", (factor, info))


@function("cholesky", method=True, autocast="float32", effects=(CHECKS,))
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices; see `torch.linalg.cholesky`."""
    check_not_integral("cholesky", input)
    check_matrices("cholesky", input=input)
    factor, info = _cholesky.apply(input, upper)
    checked_values(_check_positive, "cholesky", info.array)
    return factor


def _cholesky_solved(self: Any, input2: Any, upper: bool) -> Any:
    factor = adjoint_of(input2) if upper else input2
    return substituted(adjoint_of(factor), substituted(factor, self, False), True)


def _cholesky_solve_rule(
    grad: Any, self: Any, input2: Any, result: Any, upper: bool, needs: list[bool]
) -> tuple[Any, Any]:
    # The right-hand side is kept as PyTorch keeps it: a write to it is an error.
    self_grad = _cholesky_solve(grad, input2, upper)
    if not needs[1]:
        return self_grad, None
    product = self_grad @ adjoint_of(result)
    product = product + adjoint_of(product)
    return self_grad, -(input2 @ product) if upper else -(product @ input2)


_cholesky_solve: Op = op(
    "cholesky_solve",
    _cholesky_solved,
    keeps_layout=True,
    inputs=("self", "input2"),
    joint=_cholesky_solve_rule,
    raises=BY_KINDS,
)


@function("cholesky_solve", method=True, autocast="float32")
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The solution X of `A @ X = B` from the Cholesky factor L of A.

    Example: torch.cholesky_solve(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    _check_system("cholesky_solve", L, B)
    return _cholesky_solve.apply(B, L, upper)


def _cholesky_inverted(self: Any, upper: bool) -> Any:
    identity = np.broadcast_to(module_of(self).eye(self.shape[-1], dtype=self.dtype), self.shape)
    inverse = _cholesky_solved(identity, self, upper)
    # One triangle is computed, and the other is its mirror image.
    half = np.triu(inverse, 1) if upper else np.tril(inverse, -1)
    mirrored = half + half.conj().swapaxes(-2, -1)
    return column_major(np.where(identity != 0, inverse.real, mirrored).astype(self.dtype))


def _cholesky_inverse_rule(grad: Any, self: Any, result: Any, upper: bool) -> Any:
    common = grad + adjoint_of(grad)
    if upper:
        return -(self @ (result @ (common @ result)))
    return -((result @ (common @ result)) @ self)


_cholesky_inverse: Op = op(
    "cholesky_inverse",
    _cholesky_inverted,
    keeps_layout=True,
    self=_cholesky_inverse_rule,
    raises=BY_KINDS,
)


@function("cholesky_inverse", method=True, autocast="float32", takes={"L": SQUARE})
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from its Cholesky factor L.

    Example: torch.cholesky_inverse(tensor([[2., 1.], [1., 3.]]))
    """
    return _cholesky_inverse.apply(L, upper)


# --- LU -------------------------------------------------------------------------------------------


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


@function("lu_factor", module="torch.linalg", effects=(CHECKS,), takes={"A": MATRICES})
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L (below the diagonal) and U in one matrix, and the row that each row was swapped with,
    counted from 1. Raises E204 where a pivot is 0.
    """
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


@function("lu_unpack", effects=(CHECKS,), takes={"LU_data": MATRICES})
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U from lu_factor()'s results; what is not to be unpacked is empty.

    Example: torch.lu_unpack(*torch.linalg.lu_factor(tensor([[2., 1.], [1., 3.]])))
    """
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


@function("lu", module="torch.linalg", takes={"A": MATRICES})
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """A permutation P, a unit lower triangular L and an upper triangular U with `A = P @ L @ U`."""
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
