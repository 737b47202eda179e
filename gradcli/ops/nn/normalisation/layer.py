"""`layer_norm rms_norm`, normalisation over the last dimensions, and `group_norm`, over groups of
channels; and `_weight_norm`, a weight as a direction times a length.

The mean and the deviation of a group are differentiable outputs: in the graph of a gradient PyTorch
computes the gradient from them step by step, and otherwise at once.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.kernels.in_c import layer_norm as layer_norm_in_c
from gradcli.arrays.kernels.in_c import layer_norm_backward as layer_norm_backward_in_c
from gradcli.arrays.kernels.row_reductions import LONGEST, row_gradient, row_moments, row_variances
from gradcli.arrays.kernels.sums import multiply_add, wide
from gradcli.arrays.layout.strides import in_suggested_format
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error, type_error, value_error
from gradcli.ops.arithmetic.arithmetic import add_number, mul, zeros
from gradcli.ops.binding.arguments import (
    check_floating,
    check_not_integral,
    check_same_dtype,
    check_tensors,
    sizes_of,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import contiguous, to
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import ANY, Op, TensorSpec, op, rounded_once
from gradcli.ops.elementwise.power import power
from gradcli.ops.elementwise.unary import rsqrt
from gradcli.ops.linalg.norms import vector_norm
from gradcli.ops.nn.normalisation.formula import (
    Sizes,
    Statistics,
    check_affine,
    check_several,
    decomposed,
    normalised,
    normalised_backward,
    normalised_by_channel,
    normalising,
)
from gradcli.ops.reduction.sum import mean_dims, sum_dims
from gradcli.ops.shape.views import expand, reshape, unsqueeze
from gradcli.state import active


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
                f"rms_norm(): a weight of shape {tuple(weight.array.shape)} does not fit {sizes}",
                text="Expected weight to be of same shape as normalized_shape, but got weight of"
                f" shape {list(weight.array.shape)} and normalized_shape = {list(sizes)}",
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


# --- group norm -----------------------------------------------------------------------------------


# --- the gradient -------------------------------------------------------------------------------

_LANES = 8
"""The elements of a plane that PyTorch's kernel adds at a time."""

_FEW = 3
"""The channels of a group up to which it adds one after another."""


class GroupStatistics(Statistics):
    """Those of group norm, of shape (samples, groups, channels, *plane)."""

    def of(self, values: Any) -> tuple[Any, Any]:
        """The mean, and one over the standard deviation; single precision rounds as PyTorch's
        kernel does.
        """
        elements = prod(self.shape[2:])
        single = type(values) in HOST_ARRAYS and values.dtype == np.float32 and values.size
        if not single or elements > LONGEST:
            return super().of(values)
        kept = (*self.shape[:2], *(1 for _ in self.dims))
        mean, variance = row_variances(values.reshape(*self.shape[:2], elements))
        rstd = (1 / np.sqrt(variance + np.float64(self.eps))).astype(np.float32)
        return mean.reshape(kept), rstd.reshape(kept)

    def input_gradient(self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any) -> Any:
        """The gradient of the input; for few elements in single precision it rounds as PyTorch's
        kernel does, as what is left where terms cancel depends on it.
        """
        samples, groups, channels, *rest = self.shape
        plane = prod(rest)
        few = channels <= _FEW and plane < _LANES
        if not few or type(grad) not in HOST_ARRAYS or grad.dtype != np.float32 or not grad.size:
            return super().input_gradient(grad, input, mean, rstd, weight)
        every, by_group = (samples, groups, channels, plane), (samples, groups, 1, 1)
        grad, values = grad.reshape(every), wide(input).reshape(every)
        mean, rstd = mean.reshape(by_group), rstd.reshape(by_group)
        ones = np.ones(self.weight_shape, np.float32)
        weights = (ones if weight is None else wide(weight)).reshape(1, groups, channels, 1)
        products = _weighted(np.add.accumulate(grad * values, 3)[..., -1:], weights)
        sums = _weighted(np.add.accumulate(grad, 3)[..., -1:], weights)
        scale = np.float32(1 / (channels * plane))
        slope = multiply_add(-products, sums, mean) * rstd * rstd * rstd * scale
        constant = multiply_add(-slope * mean, -(sums * rstd), scale)
        return (multiply_add(values * slope, grad, rstd * weights) + constant).reshape(self.shape)


def _weighted(values: Any, weights: Any) -> Any:
    """The sum over a group's channels of values times weights."""
    total = np.zeros_like(values[:, :, :1])
    for channel in range(values.shape[2]):
        one = slice(channel, channel + 1)
        total = multiply_add(total, values[:, :, one], weights[:, :, one])
    return total


native_group_norm_backward: Op = op(
    "native_group_norm_backward",
    normalised_backward,
    constant=("grad_out", "input", "mean", "rstd", "weight", "bias"),
    half=rounded_once,
    outputs=("result0", "result1", "result2"),
    raises=BY_KINDS,
)


def _group_norm_rule(
    grads: Any,
    input: Any,
    result1: Any,
    result2: Any,
    weight: Any,
    bias_sizes: Any,
    statistics: Statistics,
    needs: list[bool],
) -> Any:
    grad, of_mean, of_rstd = grads
    recorded = type(input) is Tensor and active.state.grad_enabled
    if recorded or of_mean is not None or of_rstd is not None:
        return _step_by_step(grads, input, result1, result2, weight, statistics, needs)
    kept = tuple(1 if i in statistics.dims else n for i, n in enumerate(statistics.shape))
    mean, rstd = reshape(result1, kept), reshape(result2, kept)
    # PyTorch does not keep the bias: it may be written to. Only its shape is needed.
    bias = zeros(grad, bias_sizes)
    gradients = native_group_norm_backward(
        grad, input, mean, rstd, weight, bias, statistics, tuple(needs)
    )
    return [each if need else None for each, need in zip(gradients, needs, strict=True)]


def _step_by_step(
    grads: Any,
    input: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    statistics: Statistics,
    needs: list[bool],
) -> list[Any]:
    """The gradients of input, weight and bias from those of the result, the mean and rstd."""
    grad, of_mean, of_rstd = grads
    samples, groups, channels, *rest = statistics.shape
    every: Sizes = (samples, groups, channels, prod(rest))
    by_group: Sizes = (samples, groups, 1, 1)
    values, mean, rstd = reshape(input, every), reshape(mean, by_group), reshape(rstd, by_group)
    scale = 1 / (channels * every[3])
    of_input: Any = None
    of_weight: Any = None
    of_bias: Any = None
    if grad is not None:
        grad = reshape(grad, every)
        products = _summed(grad * values, 3)
        sums = _summed(grad, 3)
    if needs[0]:
        cube = rstd * rstd * rstd
        if of_rstd is not None:
            of_rstd = cube * -0.5 * reshape(of_rstd, by_group)
        if grad is not None:
            factor, by_product, by_sum = rstd, products, sums
            if weight is not None:
                weights = reshape(weight, (1, groups, channels, 1))
                factor, by_product, by_sum = rstd * weights, products * weights, sums * weights
            by_product, by_sum = _summed(by_product, 2), _summed(by_sum, 2)
            slope = (by_sum * mean - by_product) * cube * scale
            constant = -slope * mean - by_sum * rstd * scale
            of_input = factor * grad + slope * values + constant
        if of_mean is not None and of_rstd is not None:
            through = _through_statistics(of_rstd, reshape(of_mean, by_group), values, scale)
            of_input = through if of_input is None else of_input + through
        of_input = None if of_input is None else reshape(of_input, tuple(input.shape))
    if grad is not None:
        if needs[1]:
            spread = sum_dims((products - sums * mean) * rstd, (0,), False)
            of_weight = reshape(spread, tuple(weight.shape))
        if needs[2]:
            of_bias = reshape(sum_dims(sums, (0,), False), (groups * channels,))
    return [of_input, of_weight, of_bias]


def _summed(value: Any, dim: int) -> Any:
    """The sum over a dimension, of which one element stays."""
    return unsqueeze.written(sum_dims(value, (dim,), False), dim)


def _through_statistics(of_variance: Any, of_mean: Any, values: Any, scale: float) -> Any:
    """The gradient of the elements through the variance and the mean."""
    centred = values - mean_dims(values, (2, 3), True)
    return of_variance * (2 * scale) * centred + expand(of_mean, tuple(values.shape)) / (1 / scale)


def _forward(
    input: Any, weight: Any = None, bias: Any = None, statistics: Any = None
) -> tuple[Any, Any, Any]:
    plain = weight is None and bias is None
    result, mean, rstd = (normalised if plain else normalised_by_channel)(
        input, weight, bias, statistics
    )
    by_group = statistics.shape[:2]
    result = in_suggested_format(result, input)
    return result, mean.reshape(by_group), rstd.reshape(by_group)


def _decomposed(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, statistics: Statistics
) -> list[Tensor]:
    result, mean, rstd = decomposed(input, weight, bias, statistics)
    by_group = tuple(statistics.shape[:2])
    return [result, reshape(mean, by_group), reshape(rstd, by_group)]


_native_group_norm = op(
    "native_group_norm",
    _forward,
    half=rounded_once,
    keeps_layout=True,
    decomposition=_decomposed,
    outputs=("result0", "result1", "result2"),
    inputs=("input", "weight", "bias"),
    joint=_group_norm_rule,
    raises=BY_KINDS,
)

# --- what programs write ------------------------------------------------------------------------


@function(
    "group_norm",
    module="torch.nn.functional",
    takes={
        "input": TensorSpec(
            2,
            ANY,
            "Expected at least 2 dimensions for input tensor but received {ndim}",
            "group_norm(): expected two dimensions or more",
        )
    },
)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Each sample's channels normalised in groups, then times a weight per channel plus a bias.

    Raises E203, E204 or E301 where the operands do not go together.

    Example: F.group_norm(tensor([[2., 1.], [1., 3.]]), 1)
    """
    shape = input.array.shape
    if type(num_groups) is int and num_groups:
        check_several("group_norm", shape, shape[0] * shape[1] // num_groups, shape[2:])
    return _group_normed(input, num_groups, weight, bias, eps)[0]


@function("native_group_norm")
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, the means of the groups and one over their deviations; the sizes are those of
    the input.

    Example: torch.native_group_norm(tensor([[2., 1.], [1., 3.]]), None, None, 2, 2, 1, 1, 1e-5)
    """
    if input.array.size != N * C * HxW:
        raise shape_error("Expected X.numel() == N * C * HxW to be true, but got false.")
    result, mean, rstd = _group_normed(input, group, weight, bias, eps)
    return result, reshape(mean, (N, group)), reshape(rstd, (N, group))


def _group_normed(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, the means and one over the deviations; raises as `group_norm`."""
    shape = input.array.shape
    channels = shape[1]
    if type(num_groups) is not int or not num_groups:
        raise value_error(
            "group_norm(): num_groups must be a positive integer",
            raises="ZeroDivisionError" if num_groups == 0 else "TypeError",
        )
    if num_groups < 0 or channels % num_groups:
        raise runtime_error(
            "Expected number of channels in input to be divisible by num_groups, but got input of"
            f" shape {list(shape)} and num_groups={num_groups}"
        )
    check_affine("group_norm", input, (channels,), weight=weight, bias=bias)
    grouped = (shape[0], num_groups, channels // num_groups, *shape[2:])
    statistics = GroupStatistics(
        grouped,
        tuple(range(2, len(grouped))),
        (1, num_groups, channels // num_groups, *(1,) * (len(shape) - 2)),
        eps,
    )
    result, mean, rstd = _native_group_norm.apply(input, weight, bias, statistics)
    return result, mean, rstd


@function("group_norm")
def torch_group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`torch.group_norm`; see `group_norm`.

    Example: torch.group_norm(tensor([[2., 1.], [1., 3.]]), 1)
    """
    return group_norm(input, num_groups, weight, bias, eps)


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim)


def _scaled(v: Any, g: Any, dim: int) -> tuple[Any, Any]:
    norm = np.sqrt((v * v).sum(axis=_others(v.ndim, dim), keepdims=True))
    return v * (g / norm), norm


def _rule(grads: Any, v: Any, g: Any, result1: Any, dim: int) -> tuple[Any, Any]:
    # As in PyTorch the norms have no derivative: the rule's own one is wrong in them.
    (grad,) = grads[:1]
    norm = result1
    size = v.shape[dim]
    rows, along = ((size, -1), 1) if dim == 0 else ((-1, size), 0)
    sums = sum_dims(reshape(grad * v, rows), (along,), False)
    sums = reshape(sums, tuple(norm.shape))
    return (g / norm) * (grad - v * (sums / (norm * norm))), sums / norm


def _weight_decomposed(v: Tensor, g: Tensor, dim: int) -> list[Tensor]:
    norm = vector_norm.apply(v, 2.0, _others(v.array.ndim, dim), True)
    return [v * (g / norm), norm]


weight_norm_interface: Op = op(
    "_weight_norm_interface",
    _scaled,
    decomposition=_weight_decomposed,
    inputs=("v", "g"),
    outputs=("result0", "result1"),
    differentiable=(0,),
    joint=_rule,
    raises=BY_KINDS,
)


def length_of(weight: Tensor, dim: int) -> Tensor:
    """The norm of each slice of a weight along `dim`, of the whole for -1."""
    if dim == -1:
        return vector_norm.apply(weight, 2.0, None, False)
    return vector_norm.apply(weight, 2.0, _others(weight.array.ndim, dim), True)


@function("_weight_norm")
def scaled_direction(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """`v` scaled so that its slices along `dim` have the lengths `g`."""
    if dim in (0, v.array.ndim - 1):
        check_floating("_weight_norm", v)
        check_same_dtype("_weight_norm", v, g)
        return weight_norm_interface.apply(v, g, dim)[0]
    return v * (g / length_of(v, dim))
