"""Inverses, solutions and determinants: `inv solve det slogdet logdet tensorinv tensorsolve`; and
pseudoinverses, ranks and least squares: `pinv matrix_rank lstsq`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.autograd.batched import unbatched
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import add, conj
from gradcli.ops.binding.arguments import (
    check_constant,
    check_same_dtype,
    check_tensors,
    checked_values,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.creation.copies import cast_to
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, CHECKS, READS, Hazard, in_numpy
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.comparison import choose
from gradcli.ops.elementwise.complex import imaginary_part
from gradcli.ops.elementwise.unary import is_complex, log
from gradcli.ops.linalg.decompositions import converged, lapack_svd, svd
from gradcli.ops.linalg.linear_systems import (
    MATRICES,
    SQUARE,
    adjoint_of,
    check_nonsingular,
    check_precision,
    check_square,
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
from gradcli.packages import imported
from gradcli.state import look

# --- inverses -------------------------------------------------------------------------------------


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


@function(
    "inv",
    module="torch.linalg",
    autocast="float32",
    effects=(CHECKS,),
    numpy="linalg.inv",
    takes={"A": SQUARE},
)
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices. Raises E301 for others, E204 for a singular one."""
    return inverted("inv", A)


@function("inverse", method=True, autocast="float32", effects=(CHECKS,))
def inverse(input: Tensor) -> Tensor:
    """The inverse of square matrices; see `torch.linalg.inv`."""
    return inv(input)


@function("inv_ex", module="torch.linalg", autocast="float32", takes={"A": SQUARE})
def inv_ex_function(A: Tensor, *, check_errors: bool = False) -> Any:
    """The inverses, and for each the number of the pivot that is 0, or 0."""
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
    "solve",
    module="torch.linalg",
    autocast="float32",
    effects=(CHECKS,),
    numpy="linalg.solve",
    takes={"A": SQUARE},
)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution X of `A @ X = B`, or of `X @ A = B` where `left` is false.

    B holds vectors where it is one-dimensional, or has A's shape without the last dimension. Raises
    E301 where the shapes do not fit, E204 for a singular matrix.
    """
    solution, info = _solve("solve", A, B, left)
    checked_values(check_nonsingular, "solve", info.array)
    return solution


@function("solve_ex", module="torch.linalg", takes={"A": SQUARE})
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


@function("det", module="torch.linalg", numpy="linalg.det", takes={"A": SQUARE})
def linalg_det(A: Tensor) -> Tensor:
    """The determinant of square matrices. Raises E301 for others."""
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


@function("slogdet", module="torch.linalg", numpy="linalg.slogdet", takes={"A": SQUARE})
def linalg_slogdet(A: Tensor) -> Any:
    """The sign of the determinant and the logarithm of its magnitude; 0 and -inf where it is 0."""
    return named("linalg_slogdet", "sign logabsdet", _slogdet.apply(A))


@function("slogdet", method=True, takes={"input": SQUARE})
def slogdet(input: Tensor) -> Any:
    """The sign of the determinant and the logarithm of its magnitude."""
    return named("slogdet", "sign logabsdet", _slogdet.apply(input))


@function("logdet", method=True, takes={"input": SQUARE})
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: nan where it is negative, -inf where it is 0."""
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


# --- the pseudoinverse ----------------------------------------------------------------------------


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
        U, values, Vh = converged("pinv", lapack_svd, self, False)
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


@function("pinv", module="torch.linalg", takes={"A": MATRICES})
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
    if hermitian:
        check_square("pinv", A)
    rtol = rcond if rtol is None else rtol
    for argument, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, Tensor):
            check_constant("linalg_pinv", argument, value)
    rtol = _plain("pinv", "rtol", rtol)
    return pinv.apply(A, _plain("pinv", "atol", atol), rtol, hermitian)


@function("pinverse", method=True, autocast="float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse of matrices; see `torch.linalg.pinv`."""
    return linalg_pinv(input, rcond)


@function("matrix_rank", module="torch.linalg", autocast="float32", takes={"A": MATRICES})
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values count as more than 0, int64; the tolerances are those of pinv()."""
    if hermitian:
        check_square("matrix_rank", A)
    look(None, A.array)
    if tol is not None:
        atol, rtol = tol, 0.0
    if hermitian:
        magnitudes = np.abs(converged("matrix_rank", np.linalg.eigvalsh, A.array))
    else:
        magnitudes = converged("matrix_rank", lapack_svd, A.array, compute_uv=False)
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


def _by_pivots(self: Any, b: Any, rcond: float) -> tuple[Any, Any]:
    """Solutions and ranks by LAPACK's gelsy: a rank is how many columns, the longest remainder
    first, have a triangular factor of a condition within 1 / rcond; it is 1 or more but for zeros.
    """
    least_squares = imported("scipy.linalg").lstsq
    batch = np.broadcast_shapes(self.shape[:-2], b.shape[:-2])
    solution = np.empty((*batch, self.shape[-1], b.shape[-1]), self.dtype)
    rank = np.zeros(batch, np.int64)
    for at in np.ndindex(*batch):
        solution[at], _, rank[at], _ = least_squares(
            self[at], b[at], rcond, check_finite=False, lapack_driver="gelsy"
        )
    return solution, rank


def _least_squares_array(
    self: Any, b: Any, rcond: float | None, driver: str
) -> tuple[Any, Any, Any, Any]:
    rows, columns = self.shape[-2:]
    vector = b.ndim == self.ndim - 1
    b = b[..., None] if vector else b
    values = converged("lstsq", lapack_svd, self, compute_uv=False)
    if driver == "gelsy" and rcond is not None:
        solution, rank = _by_pivots(self, b, rcond)
    else:
        eps = float(np.finfo(values.dtype).eps)
        if rcond is None or driver == "gels":  # which takes the rank to be full
            rcond = max(rows, columns) * eps
        elif rcond < 0 or (driver == "gelsd" and not 0 < rcond < 1):
            rcond = eps
        solution = _pseudoinverse_array(self, None, rcond, False) @ b
        largest = np.maximum.reduce(values, axis=-1, initial=0)[..., None]
        rank = (values > rcond * largest).sum(-1)
    residuals = empty = np.empty(0, self.real.dtype)
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
    grads: Any, self: Any, b: Any, solution: Any, needs: list[bool]
) -> tuple[Any, Any]:
    solution_grad, residuals_grad = grads[0], grads[1]
    self_grad = b_grad = None
    vector = b.ndim == self.ndim - 1
    if vector:
        last = b.ndim
        b, solution = unsqueeze(b, last), unsqueeze(solution, last)
        solution_grad = None if solution_grad is None else unsqueeze(solution_grad, last)
    if solution_grad is not None:
        inverse = pinv(self, None, None, False)  # PyTorch's gradient does not heed `rcond`
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


@function("lstsq", module="torch.linalg", autocast="float32", takes={"input": MATRICES})
def lstsq(
    input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> Any:
    """The X of least norm among those that make `input @ X - b` smallest.

    Gives the solution, the sums of squares left over, the rank and the singular values; which of
    the last three are empty depends on LAPACK's `driver`. By default, "gelsy", the rank is not.

    Example: torch.linalg.lstsq(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise runtime_error(
            f"lstsq(): driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', not {driver!r}",
            text="torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd,"
            " gelss)",
        )
    check_same_dtype("lstsq", input, b)
    vector = b.array.ndim == input.array.ndim - 1
    if b.array.shape[: b.array.ndim - (not vector)] != input.array.shape[:-1]:
        raise shape_error(
            f"lstsq(): matrices of {tuple(input.array.shape)} and right sides of"
            f" {tuple(b.array.shape)} do not fit"
        )
    return named(
        "linalg_lstsq",
        "solution residuals rank singular_values",
        _lstsq.apply(input, b, rcond, driver),
    )
