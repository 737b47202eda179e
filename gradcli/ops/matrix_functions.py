"""Functions of whole matrices: `matrix_exp pinv matrix_rank cond lstsq cross vander`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arguments import check_same_dtype, check_tensors
from gradcli.ops.arithmetic import conj, reciprocal, zeros_like
from gradcli.ops.catalogue import function, refuse_out
from gradcli.ops.cumulative import cumprod
from gradcli.ops.decompositions import converged, svdvals
from gradcli.ops.dimensions import normal_dim
from gradcli.ops.entry import Op, op
from gradcli.ops.joining import cat
from gradcli.ops.linalg import inv_ex
from gradcli.ops.linear_systems import adjoint_of, check_matrices, check_precision
from gradcli.ops.masking import masked_fill_number
from gradcli.ops.norms import matrix_norm
from gradcli.ops.piecewise_cleanup import nan_to_num
from gradcli.ops.rearranging import flip
from gradcli.ops.reduction import sum_dims
from gradcli.ops.return_types import return_type
from gradcli.ops.shape import expand, expand_, squeeze_dim, unsqueeze
from gradcli.ops.slicing import slice_

# --- the exponential ----------------------------------------------------------------------------


def _exponential_array(self: Any) -> Any:
    import scipy.linalg

    if not self.size:
        return self.copy()
    # In double precision, rounded once.
    wide = self.astype(np.result_type(self.dtype, np.float64))
    return np.ascontiguousarray(scipy.linalg.expm(wide).astype(self.dtype))


def _exponential_rule(grad: Any, self: Any) -> Any:
    # exp of [[A, G], [0, A]] holds the derivative of exp at A in the direction G.
    matrices = adjoint_of(self)
    size, ndim = matrices.shape[-1], matrices.ndim
    above = cat([matrices, grad], ndim - 1)
    below = cat([zeros_like(grad), matrices], ndim - 1)
    whole = matrix_exp(cat([above, below], ndim - 2))
    return slice_(slice_(whole, ndim - 2, 0, size, 1), ndim - 1, size, 2 * size, 1)


matrix_exp: Op = op(
    "linalg_matrix_exp", "LinalgMatrixExpBackward0", _exponential_array, self=_exponential_rule
)


@function("matrix_exp", module="torch.linalg")
@function("matrix_exp", method=True)
def matrix_exp_(input: Tensor) -> Tensor:
    """The exponential of square matrices, `I + A + A @ A / 2 + …`. Raises E301 for others."""
    check_matrices("matrix_exp", input=input)
    return matrix_exp.apply(input)


# --- the pseudoinverse --------------------------------------------------------------------------


def _tolerance(magnitudes: Any, shape: tuple[int, ...], atol: Any, rtol: Any) -> Any:
    """Below what a singular value counts as 0: the larger of `atol` and `rtol` times the largest.

    Where neither is given, `rtol` is the rounding unit times the larger size.
    """
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(magnitudes.dtype).eps)
        if atol is not None:
            rtol = np.where(np.asarray(atol) > 0, 0.0, rtol)
    atol = 0.0 if atol is None else atol
    largest = magnitudes.max(axis=-1, initial=0)
    return np.maximum(atol, np.asarray(rtol) * largest)[..., None]


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
    return np.ascontiguousarray(inverse)


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


pinv: Op = op("linalg_pinv", "LinalgPinvBackward0", _pseudoinverse_array, self=_pseudoinverse_rule)


@function("pinv", module="torch.linalg")
def linalg_pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Any = None,
) -> Tensor:
    """The pseudoinverse of matrices, of any shape and rank.

    Singular values up to `atol`, or `rtol` times the largest, count as 0; `rcond` is the older name
    of `rtol`. With `hermitian` the matrices are symmetric.
    """
    refuse_out("pinv", out)
    check_matrices("pinv", square=hermitian, A=A)
    rtol = _plain("pinv", "rtol", rcond if rtol is None else rtol)
    return pinv.apply(A, _plain("pinv", "atol", atol), rtol, hermitian)


@function("pinverse", method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse of matrices; see `torch.linalg.pinv`."""
    return linalg_pinv(input, rcond)


@function("matrix_rank", module="torch.linalg")
def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Any = None,
) -> Tensor:
    """How many singular values count as more than 0, int64; the tolerances are those of pinv()."""
    refuse_out("matrix_rank", out)
    check_matrices("matrix_rank", square=hermitian, A=A)
    if tol is not None:
        atol, rtol = tol, 0.0
    if hermitian:
        magnitudes = np.abs(converged("matrix_rank", np.linalg.eigvalsh, A.array))
    else:
        magnitudes = converged("matrix_rank", np.linalg.svd, A.array, compute_uv=False)
    given = _plain("matrix_rank", "atol", atol), _plain("matrix_rank", "rtol", rtol)
    counted = magnitudes > _tolerance(magnitudes, A.array.shape, *given)
    return Tensor(np.int64(np.count_nonzero(counted)) if counted.ndim == 1 else counted.sum(-1))


# --- the condition number -----------------------------------------------------------------------


@function("cond", module="torch.linalg")
def cond(A: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    """The condition number of matrices: in the norm `p` the product of the norms of the matrix and
    its inverse; None, 2 and -2 compare the largest and the smallest singular value.

    A singular matrix gives inf.
    """
    refuse_out("cond", out)
    check_matrices("cond", square=p not in (None, 2, -2), A=A)
    if p in (None, 2, -2):
        values = svdvals(A)
        last = values.array.ndim - 1
        size = values.array.shape[last]
        largest = slice_.apply(values, last, 0, 1, 1)
        smallest = slice_.apply(values, last, size - 1, size, 1)
        ratio = smallest / largest if p == -2 else largest / smallest
        return squeeze_dim.apply(ratio, last)
    if p == "nuc":
        values = svdvals(A)
        last = (values.array.ndim - 1,)
        inverted = sum_dims.apply(reciprocal.apply(values), last, False)
        return sum_dims.apply(values, last, False) * inverted
    inverse, info = inv_ex.apply(A)
    singular = Tensor((info.array != 0)[..., None, None])
    inverse = masked_fill_number.apply(inverse, singular, math.inf)
    return nan_to_num.apply(matrix_norm(A, p) * matrix_norm(inverse, p), math.inf, math.inf, -math.inf)


# --- least squares ------------------------------------------------------------------------------


def _least_squares_array(self: Any, b: Any, rcond: float) -> tuple[Any, Any, Any, Any]:
    rows, columns = self.shape[-2:]
    inverse = _pseudoinverse_array(self, None, rcond, False)
    solution = inverse @ b
    values = converged("lstsq", np.linalg.svd, self, compute_uv=False)
    rank = (values > rcond * values.max(axis=-1, initial=0)[..., None]).sum(-1)
    residuals = np.empty(0, self.dtype)
    if rows > columns and np.all(rank == columns):
        residuals = (np.abs(b - self @ solution) ** 2).sum(-2)
    return solution, residuals, np.int64(rank) if rank.ndim == 0 else rank, np.empty(0, self.dtype)


def _least_squares_rule(
    grads: Any, self: Any, b: Any, solution: Any, rcond: float, needs: list[bool]
) -> tuple[Any, Any]:
    of_solution, of_residuals = grads[0], grads[1]
    of_self = of_b = None
    if of_solution is not None:
        inverse = pinv(self, None, rcond, False)
        of_b = adjoint_of(inverse) @ of_solution
        if needs[0]:
            of_self = _pseudoinverse_rule(of_solution @ adjoint_of(b), self, inverse)
    if of_residuals is not None and of_residuals.shape[-1:] != (0,):
        left_over = (self @ solution - b) * unsqueeze(of_residuals, of_residuals.ndim - 1) * 2
        of_matrix = left_over @ adjoint_of(solution)
        of_self = of_matrix if of_self is None else of_self + of_matrix
        of_b = -left_over if of_b is None else of_b - left_over
    return of_self, of_b


_lstsq: Op = op(
    "linalg_lstsq",
    "LinalgLstsqBackward0",
    _least_squares_array,
    outputs=("solution", "residuals", "rank", "singular_values"),
    differentiable=(0, 1),
    inputs=("self", "b"),
    joint=_least_squares_rule,
)
_LSTSQ = return_type(
    "linalg_lstsq", ("solution", "residuals", "rank", "singular_values")
)


@function("lstsq", module="torch.linalg")
def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Any:
    """The X of least norm among those that make `input @ X - b` smallest.

    Gives the solution, the sums of squares left over (empty unless there are more equations than
    unknowns), the rank, and the singular values (always empty).
    """
    check_matrices("lstsq", square=False, input=input)
    check_tensors("lstsq", b=b)
    check_same_dtype("lstsq", input, b)
    vector = b.array.ndim == input.array.ndim - 1
    if b.array.shape[: b.array.ndim - (not vector)] != input.array.shape[:-1]:
        raise GradcliError(
            "E301",
            f"lstsq(): matrices of {tuple(input.array.shape)} and right sides of"
            f" {tuple(b.array.shape)} do not fit",
        )
    limit = max(input.array.shape[-2:]) * float(np.finfo(input.array.dtype).eps)
    right = unsqueeze.apply(b, b.array.ndim) if vector else b
    found = list(_lstsq.apply(input, right, limit if rcond is None else rcond))
    if vector:
        found[0] = squeeze_dim.apply(found[0], found[0].array.ndim - 1)
    return _LSTSQ(found)


# --- vectors ------------------------------------------------------------------------------------


def _cross_array(self: Any, other: Any, dim: int) -> Any:
    return np.ascontiguousarray(np.cross(self, other, axis=dim))


cross: Op = op(
    "linalg_cross",
    "LinalgCrossBackward0",
    _cross_array,
    self=lambda grad, other, dim: cross(conj(other), grad, dim),
    other=lambda grad, self, dim: cross(grad, conj(self), dim),
)


@function("cross", module="torch.linalg")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """The cross products of vectors of 3 elements along a dimension."""
    refuse_out("cross", out)
    return _cross("cross", input, other, dim)


@function("cross", method=True)
def cross_(input: Tensor, other: Tensor, dim: int | None = None, *, out: Any = None) -> Tensor:
    """The cross products along a dimension, the first of 3 elements where none is given."""
    refuse_out("cross", out)
    check_tensors("cross", input=input, other=other)
    if dim is None:
        sizes = tuple(input.array.shape)
        if 3 not in sizes:
            raise GradcliError("E301", f"cross(): no dimension of {sizes} has 3 elements")
        dim = sizes.index(3)
    return _cross("cross", input, other, dim)


def _cross(name: str, input: Tensor, other: Tensor, dim: int) -> Tensor:
    check_tensors(name, input=input, other=other)
    if input.array.ndim != other.array.ndim:
        raise GradcliError(
            "E301",
            f"{name}(): the operands have {input.array.ndim} and {other.array.ndim} dimensions",
        )
    at = normal_dim(name, dim, input.array.ndim)
    sizes = tuple(input.array.shape), tuple(other.array.shape)
    if any(not shape or shape[at] != 3 for shape in sizes):
        raise GradcliError("E301", f"{name}(): dimension {dim} must have 3 elements in both")
    try:
        common = np.broadcast_shapes(*sizes)
    except ValueError:
        raise GradcliError(
            "E301", f"{name}(): the shapes {sizes[0]} and {sizes[1]} cannot be broadcast"
        ) from None
    return cross.apply(_as_large(input, common), _as_large(other, common), at)


def _as_large(value: Tensor, sizes: tuple[int, ...]) -> Tensor:
    return value if value.array.shape == sizes else expand_(value, *sizes)


@function("vander", module="torch.linalg")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element along a new last dimension; N is x's size if None."""
    check_tensors("vander", x=x)
    check_vector("vander", x)
    count = x.array.shape[-1] if N is None else N
    if count <= 1:
        raise GradcliError("E204", "vander(): N must be above 1", raises="RuntimeError")
    ndim = x.array.ndim
    sizes = tuple(x.array.shape)
    repeated = expand.apply(unsqueeze.apply(x, ndim), (*sizes, count - 1))
    ones = Tensor(np.ones((*sizes, 1), x.array.dtype))
    return cat.apply([ones, cumprod.apply(repeated, ndim, None)], ndim)


def check_vector(name: str, x: Tensor) -> None:
    """Raise E301 for a 0-dim tensor."""
    if not x.array.ndim:
        raise GradcliError("E301", f"{name}() needs one dimension or more")
