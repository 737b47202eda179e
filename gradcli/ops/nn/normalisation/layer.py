"""`layer_norm rms_norm`: normalisation over the last dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.in_c import layer_norm as layer_norm_in_c
from gradcli.arrays.kernels.in_c import layer_norm_backward as layer_norm_backward_in_c
from gradcli.arrays.kernels.row_reductions import LONGEST, row_gradient, row_moments
from gradcli.arrays.kernels.sums import wide
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import add_number, mul
from gradcli.ops.binding.arguments import check_not_integral, check_tensors, sizes_of
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import contiguous, to
from gradcli.ops.elementwise.power import power
from gradcli.ops.elementwise.unary import rsqrt
from gradcli.ops.nn.normalisation.formula import Sizes, Statistics, check_affine, normalising
from gradcli.ops.reduction.sum import mean_dims


class RowStatistics(Statistics):
    """Those of layer norm: the last dimensions are normalised, each element has its weight."""

    def of(self, values: Any) -> tuple[Any, Any]:
        """The mean, and one over the standard deviation."""
        elements = prod(self.shape[dim] for dim in self.dims)
        if not self._is_single(values) or elements > LONGEST:
            return super().of(values)
        leading = self.shape[: self.dims[0]]
        kept = (*leading, *(1 for _ in self.dims))
        mean, rstd = row_moments(values.reshape(*leading, elements), self.eps)
        return mean.reshape(kept), rstd.reshape(kept)

    def in_c(self, input: Any, weight: Any, bias: Any) -> Any:
        rows = prod(self.shape[: self.dims[0]])
        results = layer_norm_in_c(input, weight, bias, rows, self.eps)
        if results is None:
            return None
        result, mean, rstd = results
        kept = (*self.shape[: self.dims[0]], *(1 for _ in self.dims))
        return result.reshape(input.shape), mean.reshape(kept), rstd.reshape(kept)

    def backward_in_c(
        self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, mask: Any
    ) -> Any:
        grads = layer_norm_backward_in_c(grad, input, mean, rstd, weight, mask)
        if grads is None:
            return None
        sizes = (input.shape, self.shape[self.dims[0] :], self.shape[self.dims[0] :])
        return [
            each if each is None else each.reshape(s) for each, s in zip(grads, sizes, strict=True)
        ]

    @staticmethod
    def _is_single(values: Any) -> bool:
        """Whether the rounding of PyTorch's kernels for single precision can be reproduced."""
        return bool(values.dtype == np.float32 and module_of(values) is np and values.size)

    def input_gradient(self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any) -> Any:
        """The gradient of the input; single precision rounds as PyTorch's kernel does."""
        if not self._is_single(grad):
            return super().input_gradient(grad, input, mean, rstd, weight)
        rows = (*self.shape[: self.dims[0]], -1)
        moments = (*rows[:-1], 1)
        scaling = None if weight is None else wide(weight).reshape(-1)
        values = wide(input).reshape(rows)
        return row_gradient(
            grad.reshape(rows), values, mean.reshape(moments), rstd.reshape(moments), scaling
        )


_native_layer_norm = normalising(
    "native_layer_norm",
    ("grad_out", "input", "mean", "rstd", "weight", "bias"),
)


# --- what programs write ------------------------------------------------------------------------


def _normalized_sizes(name: str, input: Any, normalized_shape: Any) -> Sizes:
    """The sizes to normalise over; raises E301 unless they are the input's last."""
    check_tensors(name, input=input)
    if not isinstance(normalized_shape, (tuple, list)):
        raise type_error(f"{name}(): normalized_shape must be a tuple of integers")
    sizes = sizes_of(name, (normalized_shape,))
    shape = input.array.shape
    if not sizes:
        raise runtime_error(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one"
            " element, but got normalized_shape = []"
        )
    if tuple(shape[-len(sizes) :]) != sizes:
        raise shape_error(
            f"{name}(): {sizes} is not how the shape {tuple(shape)} ends",
            text=f"Given normalized_shape={list(sizes)}, expected input with shape"
            f" [*{', ' * (name != 'rms_norm')}{str(list(sizes))[1:]}, but got input of"
            f" size{list(shape)}",
            raises="ValueError" if name == "rms_norm" and len(shape) < len(sizes) else None,
        )
    return sizes


@function("layer_norm", module="torch.nn.functional")
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The input normalised over its last dimensions, then times `weight` plus `bias`.

    Raises E203 or E301 where the operands do not go together.

    Example: F.layer_norm(tensor([[2., 1.], [1., 3.]]), (2,))
    """
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


@function("native_layer_norm")
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, the means and one over the deviations.

    Example: torch.native_layer_norm(tensor([[2., 1.], [1., 3.]]), (2,), None, None, 1e-5)
    """
    sizes = _normalized_sizes("layer_norm", input, normalized_shape)
    check_affine("layer_norm", input, sizes, weight=weight, bias=bias)
    shape = input.array.shape
    first = len(shape) - len(sizes)
    statistics = RowStatistics(shape, tuple(range(first, len(shape))), (1,) * first + sizes, eps)
    result, mean, rstd = _native_layer_norm.apply(input, weight, bias, statistics)
    return result, mean, rstd


@function("layer_norm")
def torch_layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """`torch.layer_norm`; see `layer_norm`.

    Example: torch.layer_norm(tensor([[2., 1.], [1., 3.]]), (2,))
    """
    return layer_norm(input, normalized_shape, weight, bias, eps)


@function("rms_norm", also="torch.nn.functional")
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The input over the root of the mean of its squares over its last dimensions.

    Example: torch.rms_norm(tensor([[2., 1.], [1., 3.]]), (2,))
    """
    sizes = _normalized_sizes("rms_norm", input, normalized_shape)
    check_not_integral("rms_norm", input)
    if weight is not None:
        check_tensors("rms_norm", weight=weight)
        if weight.array.shape != sizes:
            raise shape_error(
                f"rms_norm(): a weight of shape {tuple(weight.array.shape)} does not fit {sizes}"
            )
    dtype = input.dtype
    if dtype.itemsize == 2:
        input = to(input, dtypes.float32)
    if eps is None:
        eps = float(np.finfo(input.array.dtype).eps)
    ndim = input.array.ndim
    squares = mean_dims.apply(power(input, 2), tuple(range(ndim - len(sizes), ndim)), True)
    result = mul.apply(input, rsqrt.apply(add_number.apply(squares, eps)))
    if weight is not None:
        result = mul.apply(result, weight)
    return contiguous(result if dtype is result.dtype else to(result, dtype))
