"""Functions of vectors along a dimension: `cross vander trapezoid cumulative_trapezoid`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.sums import is_fused, multiply_add
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, index_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import conj, zeros
from gradcli.ops.binding.arguments import check_number, check_same_dtype, check_tensors, normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import copy_
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.op import ANY, Op, TensorSpec, op
from gradcli.ops.reduction.cumulative import cumprod, cumsum
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.reshaping import flip
from gradcli.ops.shape.slicing import select, slice_op
from gradcli.ops.shape.views import expand, unsqueeze, view

# --- the cross product ----------------------------------------------------------------------------


def _cross_array(self: Any, other: Any, dim: int) -> Any:
    if not is_fused(self, other):
        return module_of(self).ascontiguousarray(np.cross(self, other, axis=dim))
    self, other = np.broadcast_arrays(self, other)
    ahead, behind = [1, 2, 0], [2, 0, 1]
    # PyTorch's kernel rounds the second product, and the first one with the difference.
    minus = -self.take(behind, dim) * other.take(ahead, dim)
    return multiply_add(minus, self.take(ahead, dim), other.take(behind, dim))


_cross: Op = op(
    "linalg_cross",
    _cross_array,
    self=lambda grad, other, dim: _cross(conj(other), grad, dim),
    other=lambda grad, self, dim: _cross(grad, conj(self), dim),
    numpy="cross",
    raises=BY_KINDS,
)


@function("cross", module="torch.linalg")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products of vectors of 3 elements along a dimension.

    Example: torch.linalg.cross(tensor([1., 0., 0.]), tensor([0., 1., 0.]))
    """
    return _crossed(input, other, dim)


@function("cross", method=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross products along a dimension, the first of 3 elements where none is given.

    Example: torch.cross(tensor([1., 0., 0.]), tensor([0., 1., 0.]))
    """
    if dim is None:
        sizes = tuple(input.array.shape)
        if 3 not in sizes:
            raise shape_error(
                f"cross(): no dimension of {sizes} has 3 elements",
                text="no dimension of size 3 in input",
            )
        dim = sizes.index(3)
    return _crossed(input, other, dim)


def _crossed(input: Tensor, other: Tensor, dim: int) -> Tensor:
    if input.array.ndim != other.array.ndim:
        raise shape_error(
            f"cross(): the operands have {input.array.ndim} and {other.array.ndim} dimensions",
            text="linalg.cross: inputs must have the same number of dimensions.",
        )
    if not input.array.ndim:
        raise index_error("cross(): a 0-dim tensor has no dimension of 3 elements")
    at = normal_dim("cross", dim, input.array.ndim)
    sizes = tuple(input.array.shape), tuple(other.array.shape)
    if any(not shape or shape[at] != 3 for shape in sizes):
        raise shape_error(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got"
            f" {' and '.join(str(shape[at] if shape else 1) for shape in sizes)}"
        )
    try:
        np.broadcast_shapes(*sizes)
    except ValueError:
        raise shape_error(
            f"cross(): the shapes {sizes[0]} and {sizes[1]} cannot be broadcast"
        ) from None
    check_dtype("cross", input.dtype, dtype_names("bool"))
    check_same_dtype("cross", input, other)
    return _cross.apply(input, other, at)


# --- powers ---------------------------------------------------------------------------------------


@function(
    "vander",
    module="torch.linalg",
    takes={"x": TensorSpec(1, ANY, plain="vander() needs one dimension or more")},
)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element along a new last dimension; N is x's size if None.

    Example: torch.linalg.vander(tensor([1, 2, 3]))
    """
    count = x.array.shape[-1] if N is None else N
    check_dtype("vander", x.dtype, dtype_names("bool", "half", raises="RuntimeError"))
    if count <= 1:
        raise runtime_error("vander(): N must be above 1")
    ndim = x.array.ndim
    sizes = tuple(x.array.shape)
    repeated = expand.apply(unsqueeze.apply(x, ndim), (*sizes, count - 1))
    ones = Tensor(module_of(x.array).ones((*sizes, 1), x.array.dtype))
    return cat.apply([ones, cumprod.apply(repeated, ndim, None)], ndim)


@function(
    "vander",
    takes={
        "x": TensorSpec(
            1, 1, "x must be a one-dimensional tensor.", "vander(): x must be one-dimensional"
        )
    },
)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element of a vector, the highest first unless `increasing`.

    Example: torch.vander(tensor([1, 2, 3]))
    """
    count = x.array.shape[0] if N is None else N
    if count < 0:
        raise runtime_error("vander(): N must not be negative")
    dtype = x.array.dtype if x.array.dtype.kind in "fcV" else np.int64
    powers = Tensor(module_of(x.array).ones((x.array.shape[0], count), dtype))
    if count > 1:
        # As in PyTorch the running product overwrites its operand, which its
        # derivative needs: E404.
        copy_(slice_op.apply(powers, 1, 1, count, 1), unsqueeze.apply(x, 1))
        copy_(
            slice_op.apply(powers, 1, 1, count, 1),
            cumprod.apply(slice_op.apply(powers, 1, 1, count, 1), 1, None),
        )
    return powers if increasing else flip.apply(powers, (1,))


# --- integrals ------------------------------------------------------------------------------------


def _neighbours(value: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All positions but the last, and all but the first."""
    size = value.array.shape[dim]
    last = max(size - 1, 0)
    return slice_op.apply(value, dim, 0, last, 1), slice_op.apply(value, dim, min(1, size), size, 1)


def _steps(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """The distances between the points `x` of the values `y`."""
    ndim = y.array.ndim
    if x.array.ndim == 1:
        if x.array.shape[0] != y.array.shape[dim]:
            raise shape_error(
                f"trapezoid(): {x.array.shape[0]} places for {y.array.shape[dim]} values"
            )
        sizes = [1] * ndim
        sizes[dim] = x.array.shape[0]
        x = view.apply(x, tuple(sizes))
    elif x.array.ndim < ndim:
        x = view.apply(x, (1,) * (ndim - x.array.ndim) + tuple(x.array.shape))
    before, after = _neighbours(x, dim)
    return after - before


def _operands(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[int, Any]:
    """The dimension and the distance of neighbours, checked."""
    check_tensors(name, **({} if x is None else {"x": x}))
    if x is not None and dx is not None:
        raise GradcliError("E201", f"{name}(): give x or dx, not both")
    dx = 1 if dx is None else dx
    check_number(name, "dx", dx)
    if type(dx) in (bool, complex):
        raise runtime_error(f"{name}: Currently, we only support dx as a real number.")
    if name == "trapezoid":  # it looks at the dimension before the dtypes
        normal_dim(name, dim, y.array.ndim)
        if not y.array.ndim:
            raise index_error("trapezoid(): a 0-dim tensor has no dimension to go along")
    for each in (y, y if x is None else x):
        check_dtype(name, each.dtype, dtype_names("bool", raises="RuntimeError"))
    return normal_dim(name, dim, y.array.ndim), dx


@function("trapezoid", "trapz")
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
) -> Tensor:
    """The integral along a dimension by the trapezoidal rule, with values y at the places x, or at
    distances `dx`, 1.

    Example: torch.trapezoid(tensor([0.5, 1., 2.]))
    """
    at, step = _operands("trapezoid", y, x, dx, dim)
    size = y.array.shape[at]
    if not size:
        return Tensor(zeros(y.array, tuple(y.array.shape[:at] + y.array.shape[at + 1 :]))[()])
    if x is not None:
        before, after = _neighbours(y, at)
        areas = (before + after) * _steps(x, y, at)
        return sum_dims.apply(areas, (at,), False) / 2.0
    ends = select.apply(y, at, 0) + select.apply(y, at, size - 1)
    return (sum_dims.apply(y, (at,), False) - ends * 0.5) * step


@function("cumulative_trapezoid")
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
) -> Tensor:
    """The running integral along a dimension, one element shorter; see trapezoid().

    Example: torch.cumulative_trapezoid(tensor([0.5, 1., 2.]))
    """
    at, step = _operands("cumulative_trapezoid", y, x, dx, dim)
    before, after = _neighbours(y, at)
    if x is not None:
        return cumsum.apply((before + after) * _steps(x, y, at), at) / 2.0
    return cumsum.apply((before + after) * (step / 2.0), at)
