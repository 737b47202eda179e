"""Triangular matrices: `solve_triangular cholesky cholesky_solve cholesky_inverse`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, on_the_host
from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.arguments import check_not_integral, check_same_dtype, checked_values
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, CHECKS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.linear_systems import (
    adjoint_of,
    check_matrices,
    column_major,
    incompatible,
    linear_algebra_error,
    substituted,
)
from gradcli.ops.shape.rearranging import tril, triu

# --- substitution -------------------------------------------------------------------------------


def _substituted(A: Any, B: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    if left:
        return column_major(substituted(A, B, upper, unitriangular))
    turned = substituted(A.swapaxes(-2, -1), B.swapaxes(-2, -1), not upper, unitriangular)
    return column_major(turned.swapaxes(-2, -1))


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
    return column_major(solution), column_major(A)


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
    """The lower factors, and for each matrix the order of the first leading minor that is not
    positive, or 0.
    """
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
    return lower.reshape(matrices.shape), info.reshape(matrices.shape[:-2])


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
    # Only one triangle is read.
    lower, info = _cholesky_arrays(self.conj().swapaxes(-2, -1) if upper else self)
    return column_major(lower.conj().swapaxes(-2, -1) if upper else lower), info[()]


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
    failed = np.flatnonzero(orders)
    if failed.size:
        minor = int(np.ravel(orders)[failed[0]])
        where = f" {failed[0]} of the batch" if orders.ndim else ""
        batch = f"(Batch element {failed[0]}): " if orders.ndim else ""
        raise linear_algebra_error(
            name,
            f"matrix{where} is not positive definite: its leading minor of order {minor} is not"
            " positive",
            f"linalg.{name}: {batch}The factorization could not be completed because the input is"
            f" not positive-definite (the leading minor of order {minor} is not"
            " positive-definite).",
        )


@function(
    "cholesky",
    module="torch.linalg",
    autocast="float32",
    effects=(CHECKS,),
    numpy="linalg.cholesky",
)
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with `A = L @ L.mH`, or with `upper` its adjoint.

    Raises E204 for a matrix that is not positive definite.
    """
    check_matrices("cholesky", A=A)
    factor, info = cholesky_ex.apply(A, upper)
    checked_values(_check_positive, "cholesky", info.array)
    return factor


@function("cholesky_ex", module="torch.linalg", autocast="float32")
def linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and the order of the first leading minor that is not positive, or 0."""
    check_matrices("cholesky_ex", A=A)
    factor, info = cholesky_ex.apply(A, upper)
    if check_errors:
        checked_values(_check_positive, "cholesky_ex", info.array)
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
    factor = input2.conj().swapaxes(-2, -1) if upper else input2
    middle = substituted(factor, self, False)
    return column_major(substituted(factor.conj().swapaxes(-2, -1), middle, True))


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


@function("cholesky_inverse", method=True, autocast="float32")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from its Cholesky factor L.

    Example: torch.cholesky_inverse(tensor([[2., 1.], [1., 3.]]))
    """
    check_matrices("cholesky_inverse", L=L)
    return _cholesky_inverse.apply(L, upper)
