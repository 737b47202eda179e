"""Pseudoinverse, rank and least squares: `pinv matrix_rank lstsq`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import runtime_error, shape_error
from gradcli.ops.binding.arguments import check_same_dtype, check_tensors
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_VALUES, READS, in_numpy
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.decompositions import converged
from gradcli.ops.linalg.linear_systems import adjoint_of, check_matrices, column_major
from gradcli.ops.shape.views import squeeze_dim, unsqueeze
from gradcli.state import look

# --- the pseudoinverse --------------------------------------------------------------------------


def _tolerance(magnitudes: Any, shape: tuple[int, ...], atol: Any, rtol: Any) -> Any:
    """Below what a singular value counts as 0: the larger of `atol` and `rtol` times the largest.

    Where neither is given, `rtol` is the rounding unit times the larger size.
    """
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(magnitudes.dtype).eps)
        if atol is not None:
            rtol = np.where(atol > 0, 0.0, rtol)
    atol = 0.0 if atol is None else atol
    largest = np.maximum.reduce(magnitudes, axis=-1, initial=0)
    return np.maximum(atol, rtol * largest)[..., None]


def _plain(name: str, argument: str, value: Any) -> Any:
    """A tolerance as a number or an array."""
    if value is None or type(value) in (int, float):
        return value
    check_tensors(name, **{argument: value})
    return value.array


def _pseudoinverse_array(self: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if hermitian:
        values, V = converged("pinv", np.linalg.eigh, self)
        U, Vh = V, V.conj().swapaxes(-2, -1)
        magnitudes = np.abs(values)
    else:
        U, values, Vh = converged("pinv", np.linalg.svd, self, False)
        magnitudes = values
    kept = magnitudes > _tolerance(magnitudes, self.shape, atol, rtol)
    inverses = np.where(kept, 1 / np.where(kept, values, 1), 0).astype(values.dtype)
    inverse = (Vh.conj().swapaxes(-2, -1) * inverses[..., None, :]) @ U.conj().swapaxes(-2, -1)
    return module_of(inverse).ascontiguousarray(inverse)


def _pseudoinverse_rule(grad: Any, self: Any, result: Any) -> Any:
    inverse, turned, grad = result, adjoint_of(result), adjoint_of(grad)
    # The smaller of the two possible inner products is made.
    if self.shape[-2] <= self.shape[-1]:
        inner = grad @ inverse
        outer = inner @ turned
        return (
            -adjoint_of(inverse @ inner)
            + outer
            - (self @ inverse) @ outer
            + (turned @ inverse) @ (grad - inner @ self)
        )
    inner = inverse @ grad
    outer = turned @ inner
    return (
        -adjoint_of(inner @ inverse)
        + ((grad - self @ inner) @ inverse) @ turned
        + outer
        - (outer @ inverse) @ self
    )


pinv: Op = op("linalg_pinv", _pseudoinverse_array, self=_pseudoinverse_rule, raises=BY_VALUES)


@function("pinv", module="torch.linalg")
@in_numpy("""\
def pinv(A, rtol=None, hermitian=False, atol=0):
    U, values, Vh = np.linalg.svd(A, full_matrices=False)
    if rtol is None:
        rtol = 0 if atol else max(A.shape[-2:]) * np.finfo(A.dtype).eps
    least = np.maximum(atol, rtol * values.max(-1, keepdims=True))
    inverse = np.where(values > least, 1 / np.where(values > least, values, 1), 0)
    return np.swapaxes(Vh, -1, -2).conj() * inverse[..., None, :] @ np.swapaxes(U, -1, -2).conj()
""")
def linalg_pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudoinverse of matrices, of any shape and rank.

    Singular values up to `atol`, or `rtol` times the largest, count as 0; `rcond` is the older name
    of `rtol`. With `hermitian` the matrices are symmetric.
    """
    check_matrices("pinv", square=hermitian, A=A)
    rtol = _plain("pinv", "rtol", rcond if rtol is None else rtol)
    return pinv.apply(A, _plain("pinv", "atol", atol), rtol, hermitian)


@function("pinverse", method=True, autocast="float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse of matrices; see `torch.linalg.pinv`."""
    return linalg_pinv(input, rcond)


@function("matrix_rank", module="torch.linalg", autocast="float32")
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values count as more than 0, int64; the tolerances are those of pinv()."""
    check_matrices("matrix_rank", square=hermitian, A=A)
    look(None, A.array)
    if tol is not None:
        atol, rtol = tol, 0.0
    if hermitian:
        magnitudes = np.abs(converged("matrix_rank", np.linalg.eigvalsh, A.array))
    else:
        magnitudes = converged("matrix_rank", np.linalg.svd, A.array, compute_uv=False)
    tolerances = _plain("matrix_rank", "atol", atol), _plain("matrix_rank", "rtol", rtol)
    counted = magnitudes > _tolerance(magnitudes, A.array.shape, *tolerances)
    rank = Tensor(counted.sum(-1))
    storage_of(rank).count_write()  # PyTorch writes it into a result that it has made before
    return rank


# --- least squares ------------------------------------------------------------------------------


def _in_right_sides(solution: Any, rows: int) -> Any:
    """Solutions as LAPACK leaves them: by columns, where the right sides were, of so many rows."""
    held = solution.shape[-2]
    if rows <= held:
        return column_major(solution)
    width = [(0, 0)] * (solution.ndim - 2) + [(0, rows - held), (0, 0)]
    return column_major(np.pad(solution, width))[..., :held, :]


def _least_squares_array(self: Any, b: Any, rcond: float, driver: str) -> tuple[Any, Any, Any, Any]:
    rows, columns = self.shape[-2:]
    vector = b.ndim == self.ndim - 1
    b = b[..., None] if vector else b
    inverse = _pseudoinverse_array(self, None, rcond, False)
    solution = inverse @ b
    values = converged("lstsq", np.linalg.svd, self, compute_uv=False)
    rank = (values > rcond * np.maximum.reduce(values, axis=-1, initial=0)[..., None]).sum(-1)
    residuals = empty = np.empty(0, self.dtype)
    if driver != "gelsy" and rows > columns and np.all(rank == columns):
        residuals = (np.abs(b - self @ solution) ** 2).sum(-2)
    placed = _in_right_sides(solution, rows)
    return (
        placed[..., 0] if vector else placed,
        residuals,
        np.empty(0, np.int64) if driver == "gels" else rank[()],
        values if driver in ("gelsd", "gelss") else empty,
    )


def _least_squares_rule(
    grads: Any, self: Any, b: Any, solution: Any, rcond: float, needs: list[bool]
) -> tuple[Any, Any]:
    solution_grad, residuals_grad = grads[0], grads[1]
    self_grad = b_grad = None
    vector = b.ndim == self.ndim - 1
    if vector:
        last = b.ndim
        b, solution = unsqueeze(b, last), unsqueeze(solution, last)
        solution_grad = None if solution_grad is None else unsqueeze(solution_grad, last)
    if solution_grad is not None:
        inverse = pinv(self, None, rcond, False)
        b_grad = adjoint_of(inverse) @ solution_grad
        if needs[0]:
            self_grad = _pseudoinverse_rule(solution_grad @ adjoint_of(b), self, inverse)
    if residuals_grad is not None and residuals_grad.shape[-1:] != (0,):
        left_over = self @ solution - b
        weight = unsqueeze(residuals_grad, residuals_grad.ndim - 1)
        through_residuals = (weight * left_over) @ adjoint_of(solution) * 2
        self_grad = through_residuals if self_grad is None else self_grad + through_residuals
        through_b = weight * -2 * left_over
        b_grad = through_b if b_grad is None else b_grad + through_b
    return self_grad, squeeze_dim(b_grad, last) if vector and b_grad is not None else b_grad


_lstsq: Op = op(
    "linalg_lstsq",
    _least_squares_array,
    keeps_layout=True,
    outputs=("solution", "residuals", "rank", "singular_values"),
    differentiable=(0, 1),
    inputs=("self", "b"),
    joint=_least_squares_rule,
    raises=BY_VALUES,
    effects=(READS,),  # there are residuals where all ranks are full
)


@function("lstsq", module="torch.linalg", autocast="float32")
def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Any:
    """The X of least norm among those that make `input @ X - b` smallest.

    Gives the solution, the sums of squares left over, the rank and the singular values; which of
    the last three are empty depends on LAPACK's `driver`. By default, "gelsy", the rank is not.

    Example: torch.linalg.lstsq(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    check_matrices("lstsq", square=False, input=input)
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise runtime_error(
            f"lstsq(): driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', not {driver!r}"
        )
    check_same_dtype("lstsq", input, b)
    vector = b.array.ndim == input.array.ndim - 1
    if b.array.shape[: b.array.ndim - (not vector)] != input.array.shape[:-1]:
        raise shape_error(
            f"lstsq(): matrices of {tuple(input.array.shape)} and right sides of"
            f" {tuple(b.array.shape)} do not fit"
        )
    limit = max(input.array.shape[-2:]) * float(np.finfo(input.array.dtype).eps)
    return named(
        "linalg_lstsq",
        "solution residuals rank singular_values",
        _lstsq.apply(input, b, limit if rcond is None else rcond, driver),
    )
