"""Decompositions with orthogonal factors: `qr eigh eigvalsh svd svdvals`; and the products of
reflections that they are made of, `householder_product ormqr geqrf`.

The factors' signs are those that LAPACK gives. A gradient through them exists where they are
determined up to sign: distinct singular values, or eigenvalues.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.linalg.decompositions import eigh_arrays, svd_arrays
from gradcli.autograd.batched import fresh_leaf
from gradcli.autograd.engine.backward import grad as gradient_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.arguments import check_same_dtype
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES
from gradcli.ops.definition.dtype_support import INTEGRAL, dtype_names
from gradcli.ops.definition.op import Function, Op, op, takes_tensors
from gradcli.ops.elementwise.unary import is_complex
from gradcli.ops.indexing.strided import assign, fill, matrix_diagonal_of, scale
from gradcli.ops.linalg.linear_systems import (
    adjoint_of,
    check_matrices,
    column_major,
    first,
    linear_algebra_error,
    turned,
)
from gradcli.ops.linalg.triangular import solve_triangular
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.reshaping import diag_embed, tril, triu
from gradcli.ops.shape.slicing import slice_op
from gradcli.ops.shape.views import unsqueeze
from gradcli.state import active, look


def converged(name: str, function: Function, *arguments: Any, **options: Any) -> Any:
    """What a function of `numpy.linalg` gives; E204 where its algorithm does not converge."""
    try:
        return function(*arguments, **options)
    except np.linalg.LinAlgError as failure:
        raise linear_algebra_error(name, f"the algorithm did not converge: {failure}") from failure


def _on_diagonal(value: Any) -> Any:
    return diag_embed(value, 0, value.ndim - 1, value.ndim)


def _skew(value: Any) -> Any:
    return value - adjoint_of(value)


# --- QR -----------------------------------------------------------------------------------------


def _qr_array(A: Any, mode: Any) -> tuple[Any, Any]:
    if mode == "r":
        return module_of(A).empty(0, A.dtype), column_major(np.linalg.qr(A, "r"))
    Q, R = np.linalg.qr(A, mode)
    return column_major(Q), column_major(R)


def _qr_rule(grads: Any, Q: Any, R: Any, mode: str) -> Any:
    of_Q, of_R = grads
    rows, columns = R.shape[-2], R.shape[-1]
    if mode == "r":
        raise GradcliError("E409", "qr(): the derivative needs Q, which mode='r' leaves out")
    if mode == "complete" and rows > columns:
        raise GradcliError(
            "E409", "qr(): with mode='complete' and more rows than columns Q is not determined"
        )
    inner: Any = None
    if of_R is not None:
        inner = of_R @ adjoint_of(R)
    if of_Q is not None:
        through_Q = adjoint_of(Q) @ of_Q
        inner = -through_Q if inner is None else inner - through_Q
    if Q.shape[-2] >= columns:
        upper = triu(inner, 0)
        symmetric = upper + adjoint_of(upper)
        scale(matrix_diagonal_of(symmetric), 0.5)
        gradient = Q @ symmetric
        if of_Q is not None:
            gradient = gradient + of_Q
        return solve_triangular(adjoint_of(R), gradient, False, False, False)
    # Only the left part of R, of as many columns as rows, is bound to be triangular.
    skew = Q @ tril(_skew(-inner), 0)
    square = solve_triangular(adjoint_of(first(R, -1, rows)), skew, False, False, False)
    rest = zeros(square, (*square.shape[:-1], columns - rows))
    gradient = cat([square, rest], square.ndim - 1)
    return gradient if of_R is None else gradient + Q @ of_R


_qr: Op = op(
    "linalg_qr", _qr_array, outputs=("Q", "R"), keeps_layout=True, A=_qr_rule, raises=BY_KINDS
)


@function("qr", module="torch.linalg", autocast="float32", numpy="linalg.qr")
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """Q of orthonormal columns and a triangular R with `A = Q @ R`.

    `mode` is "reduced", "complete" (Q square) or "r" (R alone, Q empty). Raises E204 for another.
    """
    check_matrices("qr", square=False, A=A)
    if mode not in ("reduced", "complete", "r"):
        raise runtime_error(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r',"
            " or 'complete'"
        )
    return named("linalg_qr", "Q R", _qr.apply(A, mode))


@function("qr", method=True, autocast="float32")
def qr(input: Tensor, some: bool = True) -> Any:
    """The QR decomposition, complete where `some` is false; see `torch.linalg.qr`."""
    return named("qr", "Q R", linalg_qr(input, "reduced" if some else "complete"))


# --- eigenvalues of symmetric matrices ----------------------------------------------------------


def _eigh_array(A: Any, UPLO: str) -> tuple[Any, Any]:
    values, vectors = converged("eigh", eigh_arrays, A, UPLO)
    return values, column_major(vectors)


def _differences(values: Any) -> Any:
    """Each value less each other one, and 1 on the diagonal."""
    gaps = unsqueeze(values, values.ndim - 1) - unsqueeze(values, values.ndim)
    fill(matrix_diagonal_of(gaps), 1.0)
    return gaps


def check_phases(name: str, *overlaps: Any) -> None:
    """Raise E409 where a loss depends on the phases of complex vectors, which are arbitrary: where
    the overlaps of the vectors with their gradients have no real diagonal.
    """
    total: Any = 0
    for overlap in overlaps:
        # Forward mode transposes the rule, with tensors, at a seed that is no loss's.
        if overlap is not None and type(overlap) is not Tensor and overlap.dtype.kind == "c":
            total = total + overlap.diagonal(0, -2, -1).imag
    if not np.allclose(total, 0, rtol=1e-2, atol=1e-2):
        raise GradcliError(
            "E409",
            f"{name}(): the loss depends on the phases of complex vectors, which are arbitrary",
            help="compute it from what no phase changes, such as V.abs() or V @ V.mH",
        )


def _eigh_rule(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    of_values, of_vectors = grads
    V = eigenvectors
    if of_vectors is None:
        return (V * unsqueeze(of_values, of_values.ndim - 1)) @ adjoint_of(V)
    # The vectors only turn: the skew part of their change has an effect, with 0 on its diagonal.
    overlap = adjoint_of(V) @ of_vectors
    check_phases("eigh", overlap)
    inner = _skew(overlap) * 0.5 / _differences(eigenvalues)
    if of_values is not None:
        assign(matrix_diagonal_of(inner), of_values)
    return V @ (inner @ adjoint_of(V))


eigh: Op = op(
    "linalg_eigh",
    _eigh_array,
    keeps_layout=True,
    outputs=("eigenvalues", "eigenvectors"),
    A=_eigh_rule,
    raises=BY_VALUES,
)


def eigenvalues_of(name: str, A: Tensor, UPLO: str) -> Any:
    """The eigenvalues and eigenvectors of symmetric matrices, checked."""
    check_matrices(name, A=A)
    if UPLO not in ("L", "U", "l", "u"):
        raise runtime_error(f"{name}(): UPLO must be 'L' or 'U', not {UPLO!r}")
    return eigh.apply(A, UPLO.upper())


@function("eigh", module="torch.linalg", autocast="float32", numpy="linalg.eigh")
def linalg_eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues of symmetric matrices, smallest first, and their eigenvectors as columns.

    Only the lower (`UPLO="L"`) or upper triangle is read.
    """
    return named("linalg_eigh", "eigenvalues eigenvectors", eigenvalues_of("eigh", A, UPLO))


@function("eigvalsh", module="torch.linalg", autocast="float32")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, smallest first."""
    return eigenvalues_of("eigvalsh", A, UPLO)[0]


# --- singular values ----------------------------------------------------------------------------


def _svd_array(A: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
    U, S, Vh = converged("svd", svd_arrays, A, full_matrices)
    return column_major(U), S, column_major(Vh)


def _svd_rule(grads: Any, U: Any, S: Any, Vh: Any, full_matrices: bool) -> Any:
    of_U, of_S, of_Vh = grads
    rows, columns, count = U.shape[-2], Vh.shape[-1], S.shape[-1]
    if full_matrices:
        U, Vh = _leading(U, -1, count), _leading(Vh, -2, count)
        of_U = None if of_U is None else _leading(of_U, -1, count)
        of_Vh = None if of_Vh is None else _leading(of_Vh, -2, count)

    def as_row() -> Any:
        return unsqueeze(S, S.ndim - 1)

    def as_column() -> Any:
        return unsqueeze(S, S.ndim)

    if of_U is None and of_Vh is None:
        if of_S is None:
            return None
        if rows >= columns:
            return U @ (unsqueeze(of_S, of_S.ndim) * Vh)
        return (U * unsqueeze(of_S, of_S.ndim - 1)) @ Vh
    turned_U = None if of_U is None else _skew(adjoint_of(U) @ of_U)
    turned_V = None if of_Vh is None else _skew(Vh @ adjoint_of(of_Vh))
    check_phases("svd", turned_U, turned_V)
    gaps = _differences(S * S)
    if turned_V is None:
        inner = (turned_U / gaps) * as_row()
    elif turned_U is None:
        inner = as_column() * (turned_V / gaps)
    else:
        inner = (turned_U * as_row() + as_column() * turned_V) / gaps
    if of_S is not None:
        inner = inner + _on_diagonal(of_S)
    if is_complex(U) and turned_U is not None:
        inner = inner + _on_diagonal(matrix_diagonal_of(turned_U) / (S * 2))
    if rows > columns and of_U is not None:
        # The part of U's gradient that lies outside the columns of U.
        whole = U @ inner
        scaled = of_U / as_row()
        return (whole + scaled - U @ (adjoint_of(U) @ scaled)) @ Vh
    if rows < columns and of_Vh is not None:
        whole = inner @ Vh
        scaled = of_Vh / as_column()
        return U @ (whole + scaled - (scaled @ adjoint_of(Vh)) @ Vh)
    return U @ (inner @ Vh) if rows >= columns else (U @ inner) @ Vh


def _leading(value: Any, dim: int, count: int) -> Any:
    """The first positions along a dimension, counted from the back: a node even where all are."""
    return slice_op(value, value.ndim + dim, 0, count, 1)


svd: Op = op(
    "linalg_svd",
    _svd_array,
    outputs=("U", "S", "Vh"),
    keeps_layout=True,
    A=_svd_rule,
    raises=BY_VALUES,
)


@function("svd", module="torch.linalg", autocast="float32", numpy="linalg.svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """U, the singular values (largest first) and V's adjoint with `A = U @ diag(S) @ Vh`.

    Without `full_matrices` U and Vh have as many columns and rows as there are singular values.
    """
    check_matrices("svd", square=False, A=A)
    if driver is not None:
        raise GradcliError("E205", "svd(): a driver is chosen on CUDA only", raises="RuntimeError")
    return named("linalg_svd", "U S Vh", svd.apply(A, full_matrices))


@function("svd", method=True, autocast="float32")
def svd_function(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """U, the singular values and V; U and V are square and 0 where `compute_uv` is false."""
    check_matrices("svd", square=False, input=input)
    if compute_uv:
        U, S, Vh = svd.apply(input, not some)
        return named("svd", "U S V", (U, S, conj(turned(Vh))))
    *batch, rows, columns = input.array.shape
    blank = [Tensor(zeros(input.array, (*batch, size, size))) for size in (rows, columns)]
    return named("svd", "U S V", (blank[0], svd.apply(input, False)[1], blank[1]))


@function("svdvals", module="torch.linalg", autocast="float32")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices, largest first."""
    check_matrices("svdvals", square=False, A=A)
    return svd.apply(A, False)[1]


# --- products of reflections ----------------------------------------------------------------------


@takes_tensors
def reflected(input: Any, tau: Any, other: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """`Q @ other`, or `other @ Q`, of arrays or tensors, with Q or its adjoint the product of the
    reflections `1 - tau v v.mH`.
    """
    vectors = tril(input, -1) + _identity(input)  # they begin with a 1 that is not stored
    order = range(tau.shape[-1])
    for i in order if left == adjoint else reversed(order):
        v = slice_op(vectors, vectors.ndim - 1, i, i + 1, 1)
        factor = unsqueeze(slice_op(tau, tau.ndim - 1, i, i + 1, 1), tau.ndim)
        factor = conj(factor) if adjoint else factor
        if left:
            other = other - (v * factor) @ (adjoint_of(v) @ other)
        else:
            other = other - ((other @ v) * factor) @ adjoint_of(v)
    return other


def _identity(input: Any) -> Any:
    """The first columns of the identity, for each matrix."""
    rows, columns = input.shape[-2:]
    array = getattr(input, "array", input)
    identity = module_of(array).eye(rows, columns, dtype=array.dtype)
    whole = module_of(array).array(np.broadcast_to(identity, input.shape))
    return Tensor(whole) if type(input) is Tensor else whole


def _by_composition(body: Any, grad: Any, *operands: Any) -> tuple[Any, ...]:
    """The gradients of a function that is composed of other entries, for arrays or tensors."""
    if type(grad) is Tensor and active.state.grad_enabled:
        wanted = [operand for operand in operands if operand.requires_grad]
        if not wanted:
            return tuple(None for _ in operands)
        each = iter(gradient_of(body(*operands), wanted, grad, create_graph=True))
        return tuple(next(each) if operand.requires_grad else None for operand in operands)
    leaves = [fresh_leaf(getattr(operand, "array", operand)) for operand in operands]
    before = active.state.grad_enabled
    active.state.grad_enabled = True
    try:
        result = body(*leaves)
        gradients = gradient_of(result, leaves, grad if type(grad) is Tensor else Tensor(grad))
    finally:
        active.state.grad_enabled = before
    if type(grad) is Tensor:
        return tuple(gradients)
    return tuple(None if gradient is None else gradient.array for gradient in gradients)


_householder_product: Op = op(
    "linalg_householder_product",
    lambda input, tau: column_major(reflected(input, tau, _identity(input))),
    keeps_layout=True,
    joint=lambda grad, input, tau: _by_composition(
        lambda input, tau: reflected(input, tau, _identity(input)), grad, input, tau
    ),
    inputs=("input", "tau"),
    unsupported=INTEGRAL | dtype_names("half"),
    raises=BY_KINDS,
)


_ormqr: Op = op(
    "ormqr",
    lambda self, input2, input3, left, transpose: column_major(
        reflected(self, input2, input3, left=left, adjoint=transpose)
    ),
    keeps_layout=True,
    joint=lambda grad, self, input2, input3, left, transpose: _by_composition(
        lambda *operands: reflected(*operands, left=left, adjoint=transpose),
        grad,
        self,
        input2,
        input3,
    ),
    inputs=("self", "input2", "input3"),
    unsupported=INTEGRAL | dtype_names("half"),
    raises=BY_KINDS,
)


def _check_reflections(name: str, input: Tensor, tau: Tensor) -> None:
    check_same_dtype(name, input, tau)
    shape, factors = input.array.shape, tau.array.shape
    if len(shape) < 2 or shape[-2] < shape[-1]:
        raise shape_error(
            f"{name}(): at least as many rows as columns are needed, not shape {shape}"
        )
    if factors[:-1] != shape[:-2] or not factors or factors[-1] > shape[-1]:
        raise shape_error(f"{name}(): factors of shape {factors} for vectors of {shape}")


@function("householder_product", module="torch.linalg")
@function("orgqr", method=True, autocast="float32")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections, whose vectors stand below the diagonal of
    `input` and factors in `tau`. Raises E301 where the shapes do not fit.

    Example: torch.orgqr(tensor([[2., 1.], [1., 3.]]), tensor([0.5, 1.]))
    """
    _check_reflections("householder_product", input, tau)
    return _householder_product.apply(input, tau)


@function("ormqr", method=True, autocast="float32")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """The product of reflections, or its adjoint with `transpose`, times a matrix, on its left or
    right. Raises E301 where the shapes do not fit.

    Example:
        torch.ormqr(tensor([[2., 1.], [1., 3.]]), tensor([0.5, 1.]), tensor([[1., 0.], [2., 1.]]))
    """
    _check_reflections("ormqr", input, tau)
    check_same_dtype("ormqr", input, other)
    rows = input.array.shape[-2]
    if other.array.ndim < 2 or other.array.shape[-2 if left else -1] != rows:
        raise shape_error(
            f"ormqr(): a matrix of shape {other.array.shape} does not go with {rows} rows"
        )
    return _ormqr.apply(input, tau, other, left, transpose)


@function("geqrf", method=True)
def geqrf(input: Tensor) -> Any:
    """The QR decomposition as LAPACK has it: R and, below its diagonal, the reflections whose
    product is Q; and their factors.

    Example: torch.geqrf(tensor([[1., 2.], [3., 4.]]))
    """
    check_matrices("geqrf", square=False, input=input)
    look(None, input.array)
    reflections, tau = np.linalg.qr(np.asarray(input.array), "raw")
    return named(
        "geqrf", "a tau", (Tensor(column_major(np.swapaxes(reflections, -2, -1))), Tensor(tau))
    )
