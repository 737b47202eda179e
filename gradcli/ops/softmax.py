"""`softmax`, `log_softmax` and `softmin`, without overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arguments import check_floating, check_tensors
from gradcli.ops.arithmetic import neg
from gradcli.ops.catalogue import function
from gradcli.ops.copying import to
from gradcli.ops.dimensions import normal_dim
from gradcli.ops.entry import Op, op
from gradcli.ops.pointwise import exp
from gradcli.ops.reduction import sum_dims, wide

# --- softmax ------------------------------------------------------------------------------------


def _shifted(self: Any, dim: int) -> Any:
    """The elements less the largest along the dimension: no exponential of them overflows."""
    self = wide(self)
    return self - np.maximum.reduce(self, axis=dim, keepdims=True, initial=-np.inf)


def _softmax_array(self: Any, dim: int) -> Any:
    if not self.ndim:  # one element has all the weight; nan and infinities have none to give
        return np.exp(self - self)
    weights = np.exp(_shifted(self, dim))
    weights /= np.add.reduce(weights, axis=dim, keepdims=True)
    return weights.astype(self.dtype, copy=False)


def _sum_along(value: Any, dim: int) -> Any:
    """The sum along the dimension, which stays, of size 1; a 0-dim value is its own."""
    return sum_dims(value, (dim,), True) if value.ndim else value


def _softmax_backward_array(grad_output: Any, output: Any, dim: int) -> Any:
    weighted = grad_output * output
    return weighted - output * _sum_along(weighted, dim)


softmax_backward: Op = op(
    "_softmax_backward_data",
    "SoftmaxBackwardDataBackward0",
    _softmax_backward_array,
    grad_output=lambda grad, output, dim: softmax_backward(grad, output, dim),
    output=lambda grad, grad_output, output, dim: (
        grad * grad_output
        - _sum_along(output * grad_output, dim) * grad
        - grad_output * _sum_along(output * grad, dim)
    ),
)

softmax_ = op(
    "softmax",
    "SoftmaxBackward0",
    _softmax_array,
    self=lambda grad, result, dim: softmax_backward(grad, result, dim),
)

# --- its logarithm ------------------------------------------------------------------------------


def _log_softmax_array(self: Any, dim: int) -> Any:
    if not self.ndim:
        return self - self
    shifted = _shifted(self, dim)
    shifted -= np.log(np.add.reduce(np.exp(shifted), axis=dim, keepdims=True))
    return shifted.astype(self.dtype, copy=False)


def _log_softmax_backward_array(grad_output: Any, output: Any, dim: int) -> Any:
    return grad_output - np.exp(output) * _sum_along(grad_output, dim)


log_softmax_backward = op(
    "_log_softmax_backward_data",
    "LogSoftmaxBackwardDataBackward0",
    _log_softmax_backward_array,
    grad_output=lambda grad, output, dim: grad - _sum_along(grad * exp(output), dim),
    output=lambda grad, grad_output, output, dim: (
        -_sum_along(grad_output, dim) * exp(output) * grad
    ),
)

log_softmax_ = op(
    "log_softmax",
    "LogSoftmaxBackward0",
    _log_softmax_array,
    self=lambda grad, result, dim: log_softmax_backward(grad, result, dim),
)

# --- what programs write ------------------------------------------------------------------------


def along(entry: Op, input: Tensor, dim: Any, dtype: DType | None) -> Tensor:
    """`softmax_` or `log_softmax_` along a dimension, computed in a dtype.

    Raises E203 for integers, E302 where there is no such dimension.
    """
    check_tensors(entry.name, input=input)
    if dtype is not None:
        input = to(input, dtype)
    check_floating(entry.name, input)
    return entry.apply(input, normal_dim(entry.name, dim, input.array.ndim))


def _implied_dim(input: Tensor) -> int:
    """The dimension that torch.nn.functional takes where none is given."""
    return 0 if input.array.ndim in (0, 1, 3) else 1


def _expose(entry: Op) -> None:
    def of_torch(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
        return along(entry, input, dim, dtype)

    def of_functional(
        input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
    ) -> Tensor:
        check_tensors(entry.name, input=input)
        return along(entry, input, _implied_dim(input) if dim is None else dim, dtype)

    for body in (of_torch, of_functional):
        body.__name__ = body.__qualname__ = entry.name
    function(entry.name, method=True)(of_torch)
    function(entry.name, module="torch.special")(of_torch)
    function(entry.name, module="torch.nn.functional")(of_functional)


_expose(softmax_)
_expose(log_softmax_)


@function("softmin", module="torch.nn.functional")
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """The softmax of the negative."""
    check_tensors("softmin", input=input)
    return along(softmax_, neg.apply(input), _implied_dim(input) if dim is None else dim, dtype)
