"""Products of reflections: `linalg.householder_product ormqr`; and `geqrf`, which finds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.batched import fresh_leaf
from gradcli.autograd.engine.backward import grad as gradient_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.arguments import check_same_dtype
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.dtype_support import INTEGRAL, dtype_names
from gradcli.ops.definition.op import Op, op, takes_tensors
from gradcli.ops.linalg.linear_systems import adjoint_of, check_matrices, column_major
from gradcli.ops.shape.rearranging import tril
from gradcli.ops.shape.slicing import slice_
from gradcli.ops.shape.views import unsqueeze
from gradcli.state import active


@takes_tensors
def reflected(input: Any, tau: Any, other: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """`Q @ other`, or `other @ Q`, of arrays or tensors, with Q or its adjoint the product of the
    reflections `1 - tau v v.mH`.
    """
    vectors = tril(input, -1) + _identity(input)  # they begin with a 1 that is not stored
    order = range(tau.shape[-1])
    for i in order if left == adjoint else reversed(order):
        v = slice_(vectors, vectors.ndim - 1, i, i + 1, 1)
        factor = unsqueeze(slice_(tau, tau.ndim - 1, i, i + 1, 1), tau.ndim)
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


ormqr_: Op = op(
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
    return ormqr_.apply(input, tau, other, left, transpose)


@function("geqrf", method=True)
def geqrf(input: Tensor) -> Any:
    """The QR decomposition as LAPACK has it: R and, below its diagonal, the reflections whose
    product is Q; and their factors.

    Example: torch.geqrf(tensor([[1., 2.], [3., 4.]]))
    """
    check_matrices("geqrf", square=False, input=input)
    reflections, tau = np.linalg.qr(np.asarray(input.array), "raw")
    return named(
        "geqrf", "a tau", (Tensor(column_major(np.swapaxes(reflections, -2, -1))), Tensor(tau))
    )
