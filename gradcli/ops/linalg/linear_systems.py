"""Linear systems on arrays: LU decomposition, triangular substitution, checks of the arguments.

The arithmetic is done in the arrays' own dtype, block by block: large blocks are products of
matrices, small ones are eliminated in C or over the whole batch at once. The leading dimensions are
a batch.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, new_empty, on_the_host
from gradcli.arrays.kernels import in_c
from gradcli.arrays.layout.strides import row_strides, window
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import conj
from gradcli.ops.binding.catalogue import check_operands
from gradcli.ops.definition.dtype_support import INTEGRAL, check_dtype, dtype_names
from gradcli.ops.definition.op import ANY, TensorSpec
from gradcli.ops.shape.slicing import slice_op
from gradcli.ops.shape.views import transpose

# --- checks -------------------------------------------------------------------------------------


def check_square(name: str, tensor: Tensor) -> None:
    """Raise E301 unless the last two dimensions are of one size."""
    shape = tuple(tensor.array.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        text = f"linalg.{name}: The input tensor A must have at least 2 dimensions."
        if len(shape) > 1:
            text = (
                f"linalg.{name}: A must be batches of square matrices, but they are {shape[-2]} by"
                f" {shape[-1]} matrices"
            )
        raise shape_error(
            f"{name}(): a tensor of shape {shape} holds no square matrices", text=text
        )


def incompatible(name: str, left: bool, matrices: Any, right: Any) -> str:
    """PyTorch's text for right sides whose last sizes do not fit those of the matrices."""
    sizes = ["x".join(map(str, each)) for each in (matrices, right)]
    return (
        f"linalg.{name}: Incompatible shapes of A and B for the equation"
        f" {'AX' if left else 'XA'} = B ({sizes[0]} and {sizes[1]})"
    )


_INTEGRAL = dtype_names("bool", "int", raises="RuntimeError")
_ANY = dtype_names("bool", "int", "half", raises="RuntimeError")
_REFUSED = {
    **dict.fromkeys(
        ("cholesky", "cholesky_ex", "cond", "det", "eig", "eigvals", "qr", "solve", "svd",
         "svdvals", "tensorsolve"),
        _INTEGRAL | dtype_names("half"),
    ),
    **dict.fromkeys(
        ("cholesky_inverse", "cholesky_solve", "eigh", "eigvalsh", "lu", "lu_factor",
         "solve_triangular", "triangular_solve"),
        INTEGRAL | dtype_names("half"),
    ),
}  # fmt: skip
"""The error classes for dtypes that LAPACK does not support, where it is not RuntimeError."""


def check_precision(name: str, tensor: Tensor) -> None:
    """Raise E203 unless the dtype is one that LAPACK computes in, which integers and half
    precision are not.
    """
    check_dtype(name, tensor.dtype, _REFUSED.get(name, _ANY))


def _check_square(name: str, tensor: Tensor) -> None:
    check_square(name, tensor)
    check_precision(name, tensor)


_TEXT = "linalg.{name}: The input tensor {argument} must have at least 2 dimensions."
_PLAIN = "{name}(): {argument} needs two dimensions or more, not {ndim}"

MATRICES = TensorSpec(2, ANY, _TEXT, _PLAIN, check=check_precision)
SQUARE = TensorSpec(2, ANY, _TEXT, _PLAIN, check=_check_square, sizes="of square matrices")


def check_matrices(name: str, square: bool = True, **operands: Any) -> None:
    """Raise what `MATRICES`, or `SQUARE`, say of operands, by which a function's other arguments
    decide.
    """
    takes = dict.fromkeys(operands, SQUARE if square else MATRICES)
    check_operands(name, takes, list(operands.values()), list(operands))


def linear_algebra_error(name: str, why: str, text: str | None = None) -> GradcliError:
    """The error of matrices that an algorithm fails on."""
    return value_error(f"{name}(): {why}", text=text, raises="_LinAlgError")


def check_nonsingular(name: str, info: Any) -> None:
    """Raise E204 where an LU decomposition met a pivot of 0; `info` says which, 0 for none."""
    failed = np.flatnonzero(info)
    if not failed.size:
        return
    where = f" {failed[0]} of the batch" if info.ndim else ""
    pivot = int(np.ravel(info)[failed[0]])
    batch = f"(Batch element {failed[0]}): " if info.ndim else ""
    text = (
        f"linalg.{name}: {batch}The diagonal element {pivot} is zero, the inversion could not be"
        " completed because the input matrix is singular."
    )
    if name != "inv":
        text = (
            f"torch.linalg.{name}: {batch}The solver failed because the input matrix is singular."
        )
    raise linear_algebra_error(
        name, f"matrix{where} is singular: the LU decomposition's pivot {pivot} is 0", text
    )


# --- parts and layouts --------------------------------------------------------------------------


def turned(value: Any) -> Any:
    """The matrices transposed; of an array a view."""
    if type(value) is Tensor:
        return transpose.apply(value, value.array.ndim - 2, value.array.ndim - 1)
    return value.swapaxes(-2, -1)


def adjoint_of(value: Any) -> Any:
    """The matrices transposed and conjugated."""
    return conj(turned(value))


def column_major(array: Any) -> Any:
    """A copy whose columns are contiguous, as LAPACK leaves its results."""
    turned = module_of(array).array(array.swapaxes(-2, -1), order="C")
    if not turned.size:
        turned = window(turned, turned.shape, row_strides(turned.shape), 0)
    return turned.swapaxes(-2, -1)


def first(value: Any, dim: int, count: int) -> Any:
    """The first positions along a dimension, counted from the back."""
    return value if value.shape[dim] == count else slice_op(value, value.ndim + dim, 0, count, 1)


# --- LU -----------------------------------------------------------------------------------------


@on_the_host
def lu_arrays(matrices: Any) -> tuple[Any, Any, Any]:
    """The LU decomposition with partial pivoting.

    Args:
        matrices: an array of shape (*, m, n).

    Returns:
        L below the diagonal (its own of ones left out) and U in one array of shape (*, m, n); the
        row that each row was swapped with, counted from 1, int32 of shape (*, min(m, n)); the
        number of the first pivot that is 0, or 0, int32 of shape (*).
    """
    *batch, rows, columns = matrices.shape
    lu = np.array(matrices, order="C").reshape(prod(batch), rows, columns)
    pivots, info = _factor(lu)
    return (
        lu.reshape(matrices.shape),
        pivots.reshape(*batch, min(rows, columns)),
        info.reshape(batch),
    )


_BLOCK = 64
"""Rows and columns up to which a block is no longer parted."""


def _factor(lu: Any) -> tuple[Any, Any]:
    """Decompose the matrices of (N, m, n) in place, the left half of the columns before the right
    one; the pivots and `info`.
    """
    rows, columns = lu.shape[1:]
    count = min(rows, columns)
    if count <= _BLOCK:
        return _eliminate(lu)
    half = count // 2
    left, right = lu[:, :, :half], lu[:, :, half:]
    pivots, info = _factor(left)
    right[...] = _in_rows(right, row_order(pivots, rows))
    _substitute(left[:, :half], right[:, :half], upper=False, unit=True)
    right[:, half:] -= left[:, half:] @ right[:, :half]
    others, later = _factor(right[:, half:])
    left[:, half:] = _in_rows(left[:, half:], row_order(others, rows - half))
    info = np.where((info == 0) & (later > 0), later + half, info).astype(np.int32)
    return np.concatenate([pivots, others + np.int32(half)], axis=1), info


def _in_rows(array: Any, order: Any) -> Any:
    """The rows in an order."""
    return np.take_along_axis(array, np.broadcast_to(order[..., None], array.shape), -2)


def _eliminate(lu: Any) -> tuple[Any, Any]:
    """Decompose the matrices of (N, m, n) in place; the pivots and `info`."""
    eliminate = in_c.of_floats("eliminate", lu)
    if eliminate is None or not lu.size:
        return _eliminate_together(lu)
    total, rows, columns = lu.shape
    whole = np.ascontiguousarray(lu)
    pivots, info = np.empty(total * min(rows, columns), np.int64), np.empty(total, np.int64)
    eliminate(whole, pivots, info, rows, columns)
    lu[...] = whole
    return pivots.reshape(total, -1).astype(np.int32), info.astype(np.int32)


def _eliminate_together(lu: Any) -> tuple[Any, Any]:
    """The same, a column of all matrices at a time.

    What is divided and what is multiplied by a reciprocal is as in PyTorch: whether the last pivot
    of a singular matrix is 0, and so an error, depends on it.
    """
    total, rows, columns = lu.shape
    count = min(rows, columns)
    pivots = np.empty((total, count), np.int32)
    info = np.zeros(total, np.int32)
    each = np.arange(total)
    with np.errstate(all="ignore"):
        for k in range(count):
            column = lu[:, k:, k]
            size = np.abs(column.real) + np.abs(column.imag)  # what LAPACK compares
            # What is not a number is larger only than what comes after it.
            size[:, 1:][np.isnan(size[:, 1:])] = -1
            position = np.argmax(size, axis=1) + k if total else each
            pivots[:, k] = position + 1
            swapped = lu[each, position]
            lu[each, position] = lu[:, k]
            lu[:, k] = swapped
            pivot = lu[:, k, k]
            zero = pivot == 0
            info[zero & (info == 0)] = k + 1
            divisor = np.where(zero, 1, pivot)[:, None]
            if rows <= 4 and k == rows - 2:
                lu[:, k + 1 :, k] /= divisor
            else:
                lu[:, k + 1 :, k] *= 1 / divisor
            lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, k, None, k + 1 :]
    return pivots, info


@on_the_host
def row_order(pivots: Any, rows: int) -> Any:
    """Which row of the matrix each row of L @ U is, from the swaps: int64 of shape (*, rows)."""
    *batch, count = pivots.shape
    total = int(np.prod(batch))
    swaps = pivots.reshape(total, count)
    if total <= _FEW_MATRICES:
        orders = [_swapped(rows, each) for each in swaps.tolist()]
        return np.array(orders, np.int64).reshape(*batch, rows)
    order = np.tile(np.arange(rows), (total, 1))
    each = np.arange(total)
    for k in range(count):
        position = swaps[:, k] - 1
        order[each, k], order[each, position] = order[each, position], order[each, k]
    return order.reshape(*batch, rows)


_FEW_MATRICES = 32
"""Matrices up to which swaps are done one by one: a swap of all at once takes as long."""


def _swapped(rows: int, swaps: list[int]) -> list[int]:
    order = list(range(rows))
    for k, position in enumerate(swaps):
        order[k], order[position - 1] = order[position - 1], order[k]
    return order


def permutation_sign(pivots: Any) -> Any:
    """1 or -1: whether the number of rows swapped is even."""
    moved = pivots != np.arange(1, pivots.shape[-1] + 1)
    return 1 - 2 * (np.count_nonzero(moved, axis=-1) % 2)


@on_the_host
def substituted(
    triangle: Any, right: Any, upper: bool, unit: bool = False, by_columns: bool = True
) -> Any:
    """The solution X of `triangle @ X = right`, of shape (*, n, k), in memory of its own.

    Args:
        triangle: shape (*, n, n); only its upper or lower part is read.
        right: shape (*, n, k), of the same batch after broadcasting.
        upper: which part.
        unit: the diagonal counts as ones.
        by_columns: whether the columns of X are contiguous, or else the rows.
    """
    batch = np.broadcast_shapes(triangle.shape[:-2], right.shape[:-2])
    triangle, right = (_expanded(each, batch) for each in (triangle, right))
    solution = in_c.substituted(triangle, right, upper, unit, by_columns)
    if solution is None:
        solution = _new_matrices(right, right.shape, by_columns)
        if right.size:
            solution[...] = right
            _substitute(triangle, solution, upper, unit)
    return solution


def _expanded(matrices: Any, batch: tuple[int, ...]) -> Any:
    shape = (*batch, *matrices.shape[-2:])
    return matrices if matrices.shape == shape else np.broadcast_to(matrices, shape)


def _new_matrices(like: Any, shape: tuple[int, ...], by_columns: bool) -> Any:
    """Matrices for what is computed of an array, whose columns, or rows, are contiguous."""
    if not prod(shape):
        empty = new_empty(like, shape)
        return column_major(empty) if by_columns else empty
    if not by_columns:
        return new_empty(like, shape)
    *batch, rows, columns = shape
    return new_empty(like, (*batch, columns, rows)).swapaxes(-2, -1)


def _substitute(triangle: Any, solution: Any, upper: bool, unit: bool) -> None:
    """Replace right-hand sides by the solutions: of half the unknowns, then of the others."""
    size = solution.shape[-2]
    solved = in_c.substituted(triangle, solution, upper, unit, by_columns=False)
    if solved is not None:
        solution[...] = solved
    elif size <= _BLOCK:
        _substitute_together(triangle, solution, upper, unit)
    else:
        halves = slice(0, size // 2), slice(size // 2, size)
        first, second = reversed(halves) if upper else halves
        _substitute(triangle[..., first, first], solution[..., first, :], upper, unit)
        solution[..., second, :] -= triangle[..., second, first] @ solution[..., first, :]
        _substitute(triangle[..., second, second], solution[..., second, :], upper, unit)


def _substitute_together(triangle: Any, solution: Any, upper: bool, unit: bool) -> None:
    """The same, an unknown of all matrices at a time."""
    size = triangle.shape[-1]
    with np.errstate(all="ignore"):
        for k in reversed(range(size)) if upper else range(size):
            rest = slice(0, k) if upper else slice(k + 1, size)
            if not unit:
                solution[..., k, :] /= triangle[..., k, k, None]
            solution[..., rest, :] -= triangle[..., rest, k, None] * solution[..., k, None, :]


def lu_solved(lu: Any, pivots: Any, right: Any, adjoint: bool = False) -> Any:
    """The solution X of `A @ X = right`, or of `A.mH @ X = right`, from the LU decomposition of A.

    Args:
        lu, pivots: what `lu_arrays` gives, for square matrices.
        right: shape (*, n, k).
    """
    order = row_order(pivots, lu.shape[-1])
    batch = np.broadcast_shapes(lu.shape[:-2], right.shape[:-2])
    if adjoint:
        upper = lu.conj().swapaxes(-2, -1)
        middle = substituted(upper, right, upper=False)
        turned_back = substituted(upper, middle, upper=True, unit=True)
        positions = np.argsort(order, axis=-1)[..., None]
        return np.take_along_axis(turned_back, np.broadcast_to(positions, turned_back.shape), -2)
    wide = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    ordered = np.take_along_axis(wide, np.broadcast_to(order[..., None], wide.shape), -2)
    return substituted(lu, substituted(lu, ordered, upper=False, unit=True), upper=True)


@on_the_host
def solved(matrices: Any, right: Any) -> tuple[Any, Any]:
    """The solution X of `matrices @ X = right`, and the LU decomposition's `info`."""
    solution = _solution(matrices, right) if right.size else None
    if solution is not None:
        return solution, np.zeros(matrices.shape[:-2], np.int32)
    lu, pivots, info = lu_arrays(matrices)
    return lu_solved(lu, pivots, right), info


def _solution(matrices: Any, right: Any) -> Any:
    """LAPACK's solution; None where a matrix is singular, or nearly so.

    Whether a pivot is 0 depends there on how it was rounded, so the elimination decides, which
    rounds alike on every machine.
    """
    batch = np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2])
    try:
        wide = np.broadcast_to(right, (*batch, *right.shape[-2:]))
        solution = np.linalg.solve(matrices, wide)
    except np.linalg.LinAlgError:
        return None
    dims = (-2, -1)
    size, reach = (np.max(np.abs(each), axis=dims) for each in (wide, solution))
    growth = np.max(np.abs(matrices), axis=dims) * reach * _NEARLY * np.finfo(matrices.dtype).eps
    return solution if (growth < size).all() else None


_NEARLY = 64
"""A system may magnify its right side by so much less than the rounding unit's inverse."""
