"""`prod`: the product of elements."""

from __future__ import annotations

from math import prod as product
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DType
from gradcli.autograd.tensor import Tensor
from gradcli.kernels.sums.cascade_sum import LARGEST
from gradcli.kernels.sums.lane_product import lane_product
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.catalogue import refuse_out
from gradcli.ops.binding.dims import normal_dim
from gradcli.ops.creation.copies import to
from gradcli.ops.definition.op import op
from gradcli.ops.reduction.sum import cast_array, check_reduced, fold, kept_sizes, reduction
from gradcli.ops.shape.views import reshape, restore_dims
from gradcli.state import look


def _prod_array(
    self: Any, dim: int | None, keepdim: bool = False, dtype: DType | None = None
) -> Any:
    self = cast_array(self, dtype)
    if self.dtype.kind in "iub":
        target = np.int64 if dtype is None else self.dtype
        return fold(np.multiply, self, _axis(self, dim), keepdim, dtype=target)
    if _multiplies_in_lanes(self, dim):
        return _product_in_lanes(self, dim, keepdim)
    return fold(np.multiply, self, _axis(self, dim), keepdim)


def _multiplies_in_lanes(self: Any, dim: int | None) -> bool:
    """Whether the elements of each product lie one behind the other, and are few enough to care."""
    return (
        type(self) is np.ndarray
        and self.dtype.kind in "fV"
        and 0 < self.size < LARGEST
        and self.flags.c_contiguous
        and dim in (None, self.ndim - 1)
    )


def _product_in_lanes(self: Any, dim: int | None, keepdim: bool) -> Any:
    found = lane_product(self.reshape(-1) if dim is None else self)
    dims = None if dim is None else (dim,)
    return found.reshape(kept_sizes(self.shape, dims))[()] if keepdim else found


def _axis(self: Any, dim: int | None) -> Any:
    """NumPy's axis for one dimension; a 0-dim array has none."""
    return dim if self.ndim else None


def _prod_rule(grad: Any, self: Any, result: Any, dim: int | None, dtype: DType | None) -> Any:
    """The gradient from `grad` and `result`, whose reduced dimension was put back.

    As in PyTorch the formula depends on the values, not only on the arguments: the quotient where
    no element is 0, else the product of the others, which is exact there.
    """
    if dtype is not None:
        self = to(self, dtype) if type(self) is Tensor else dtypes.cast(self, dtype)
    if not self.ndim:
        return grad
    if type(self) is Tensor:
        look(None, self.array)
    zero_count = np.count_nonzero((self.array if type(self) is Tensor else self) == 0)
    if not zero_count:
        return grad * conj(result / self)
    from gradcli.ops.reduction.cumulative import prod_gradient_at_zeros

    if dim is not None:
        return prod_gradient_at_zeros(grad, self, dim)
    if zero_count > 1 and type(grad) is not Tensor:
        return zeros_like(self)
    flat = reshape(self, (product(self.shape),))
    return reshape(prod_gradient_at_zeros(grad, flat, 0), self.shape)


prod_all = op(
    "prod",
    "ProdBackward0",
    lambda self, dtype=None: _prod_array(self, None, False, dtype),
    self=lambda grad, self, result, dtype: _prod_rule(grad, self, result, None, dtype),
    numpy=".prod(axis, keepdims)",
)

prod_dim = op(
    "prod",
    "ProdBackward1",
    _prod_array,
    self=lambda grad, self, result, dim, keepdim, dtype: _prod_rule(
        restore_dims(grad, (dim,), keepdim), self, restore_dims(result, (dim,), keepdim), dim, dtype
    ),
)


@reduction("prod")
def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Tensor:
    """The product of all elements, or over one dimension. Integers and bools give int64.

    Conventions: With a zero among the elements, the gradient is the product of the others.

    Example: torch.prod(tensor([0.5, 1., 2.]))
    """
    refuse_out("prod", out)
    check_reduced("prod", input, keepdim)
    if dim is None:
        return prod_all.apply(input, dtype)
    return prod_dim.apply(input, normal_dim("prod", dim, input.array.ndim), keepdim, dtype)
