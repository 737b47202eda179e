"""The formula that layer, group and batch norm share.

They differ in the dimensions: the elements less their mean, times one over their standard
deviation, times a weight, plus a bias.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.kernels import half_precision
from gradcli.arrays.kernels.sums import LARGEST, multiply_add, wide
from gradcli.arrays.layout.strides import in_suggested_format
from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import check_floating, check_same_dtype, check_tensors
from gradcli.ops.codegen.runtime import not_a_tensor
from gradcli.ops.definition.doc import BY_KINDS, WRITES
from gradcli.ops.definition.op import Function, Op, Way, by_kernel, op, rounded_once
from gradcli.ops.elementwise.unary import sqrt
from gradcli.ops.reduction.sum import mean_dims, sum_dims
from gradcli.ops.shape.views import expand, reshape
from gradcli.record import Record

Sizes = tuple[int, ...]


class Statistics(Record):
    """Which elements are normalised together, and how.

    Attributes:
        shape: the shape to see the input in.
        dims: the dimensions of it that mean and deviation are taken over.
        weight_shape: the shape to see weight and bias in; it broadcasts to `shape`.
        eps: what is added to the variance.
        fixed: the mean and variance to use, arrays that broadcast to `shape`; None for the input's
            own, which the gradient then goes through.
    """

    shape: Sizes
    dims: Sizes
    weight_shape: Sizes
    eps: float
    fixed: tuple[Any, Any] | None = None

    def of(self, values: Any) -> tuple[Any, Any]:
        """The mean, and one over the standard deviation."""
        if self.fixed is None:
            mean = _wide_mean(values, self.dims)
            variance = _wide_mean((values - mean) ** 2, self.dims)
        else:
            mean, variance = self.fixed
        rstd = 1 / np.sqrt(variance + self.eps)
        return mean.astype(values.dtype, copy=False), rstd.astype(values.dtype, copy=False)

    def projected(self, value: Any, normal: Any) -> Any:
        """What is left of a gradient after the mean and the deviation took their share of it: its
        part across both the constant and the normalised elements.
        """
        if self.fixed is not None:
            return value
        return value - self.average(value) - normal * self.average(value * normal)

    def input_gradient(self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any) -> Any:
        """The gradient of the input, in the shape to see it in."""
        return _input_gradient(grad, wide(input).reshape(self.shape), mean, rstd, weight, self)

    def in_c(self, input: Any, weight: Any, bias: Any) -> Any:
        """What the entry's forward gives, by a kernel in C; None where there is none for it."""

    def backward_in_c(
        self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, mask: Any
    ) -> Any:
        """The gradients of input, weight and bias likewise, None for one that is not needed."""

    def average(self, value: Any) -> Any:
        """The mean over the dimensions, which stay."""
        count = prod(self.shape[dim] for dim in self.dims)
        return sum_dims(value, self.dims, True) / count

    def to_weight(self, value: Any, sizes: Sizes) -> Any:
        """A gradient summed to the weight's shape."""
        dims = tuple(i for i, size in enumerate(self.weight_shape) if size == 1)
        dims = tuple(i for i in dims if self.shape[i] != 1)
        total = sum_dims(value, dims, True) if dims else value
        return reshape(total, sizes)


# --- the formula --------------------------------------------------------------------------------


def normalised(
    input: Any, weight: Any = None, bias: Any = None, statistics: Any = None
) -> tuple[Any, Any, Any]:
    """The normalised elements, the mean, and one over the standard deviation."""
    if (from_c := statistics.in_c(input, weight, bias)) is not None:
        return from_c
    values = wide(input).reshape(statistics.shape)
    mean, rstd = statistics.of(values)
    result = (values - mean) * rstd
    slope = None if weight is None else wide(weight).reshape(statistics.weight_shape)
    offset = None if bias is None else wide(bias).reshape(statistics.weight_shape)
    if slope is not None and offset is not None and values.size < LARGEST:
        result = multiply_add(offset, result, slope)
    else:
        if slope is not None:
            result *= slope
        if offset is not None:
            result += offset
    return result.reshape(input.shape).astype(input.dtype, copy=False), mean, rstd


def normalised_by_channel(
    input: Any, weight: Any = None, bias: Any = None, statistics: Any = None
) -> tuple[Any, Any, Any]:
    """The same as a line for each channel, a slope and an offset: as PyTorch's batch norm does."""
    if (from_c := statistics.in_c(input, weight, bias)) is not None:
        return from_c
    values = wide(input).reshape(statistics.shape)
    mean, rstd = statistics.of(values)
    slope, offset = rstd, zeros(mean, mean.shape)
    if weight is not None:
        slope = rstd * wide(weight).reshape(statistics.weight_shape)
    if bias is not None:
        offset = wide(bias).reshape(statistics.weight_shape)
    offset = multiply_add(offset, -mean, slope)
    few = values.size < LARGEST
    result = multiply_add(offset, values, slope) if few else values * slope + offset
    return result.reshape(input.shape).astype(input.dtype, copy=False), mean, rstd


def _of_batch(
    input: Any, weight: Any = None, bias: Any = None, statistics: Any = None
) -> tuple[Any, Any, Any]:
    result, mean, rstd = normalised_by_channel(input, weight, bias, statistics)
    return in_suggested_format(result, input), mean, rstd


def _wide_mean(values: Any, dims: Sizes) -> Any:
    """The mean in float64, nan where there is nothing, which `np.mean` would warn of."""
    total = np.sum(values, dims, np.float64, keepdims=True)
    return total / (values.size // max(total.size, 1))


def _mean(values: Any, dims: Sizes) -> Any:
    return _wide_mean(values, dims).astype(values.dtype)


def _input_gradient(
    grad: Any, values: Any, mean: Any, rstd: Any, weight: Any, statistics: Statistics
) -> Any:
    """The gradient of the input. Sums are taken in float64 and rounded, and a weight that is one
    for all the elements of a sum stays out of it, as in PyTorch: what is left where terms cancel
    depends on it.
    """
    factor = None
    centred = values - mean
    weights = None if weight is None else wide(weight).reshape(statistics.weight_shape)
    if weights is not None:
        if all(statistics.weight_shape[dim] == 1 for dim in statistics.dims):
            factor = weights
        else:
            grad = grad * weights
    if statistics.fixed is None:
        slope = _mean(centred * grad, statistics.dims) * rstd * rstd
        grad = grad - _mean(grad, statistics.dims) - centred * slope
    grad = grad * rstd
    return grad if factor is None else grad * factor


def normalised_backward(
    grad_out: Any,
    input: Any,
    mean: Any,
    rstd: Any,
    weight: Any = None,
    bias: Any = None,
    statistics: Any = None,
    output_mask: Any = (True, True, True),
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias; an empty array for one that is not needed."""
    dtype = input.dtype
    unused = np.empty(0, dtype)
    gradients = statistics.backward_in_c(grad_out, input, mean, rstd, weight, output_mask)
    if gradients is not None:
        one, two, three = [unused if each is None else each for each in gradients]
        return one, two, three
    grad = wide(grad_out).reshape(statistics.shape)
    centred = wide(input).reshape(statistics.shape) - mean
    of_input, of_weight, of_bias = unused, unused, unused
    if output_mask[0]:
        of_input = statistics.input_gradient(grad, input, mean, rstd, weight).reshape(input.shape)
    if output_mask[1]:
        of_weight = statistics.to_weight(grad * (centred * rstd), weight.shape)
        of_weight = of_weight.astype(weight.dtype, copy=False)
    if output_mask[2]:
        of_bias = statistics.to_weight(grad, bias.shape).astype(bias.dtype, copy=False)
    return of_input.astype(dtype, copy=False), of_weight, of_bias


def decomposed(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, statistics: Statistics
) -> list[Tensor]:
    """`normalised`, step by step."""
    values = reshape(input, statistics.shape)
    if statistics.fixed is None:
        mean = mean_dims.apply(values, statistics.dims, True)
        centred = values - mean
        variance = mean_dims.apply(centred * centred, statistics.dims, True)
    else:
        mean, variance = (Tensor(np.array(each)) for each in statistics.fixed)
        centred = values - mean
    rstd = 1 / sqrt.apply(variance + statistics.eps)
    result = centred * rstd
    if weight is not None:
        result = result * reshape(weight, statistics.weight_shape)
    if bias is not None:
        result = result + reshape(bias, statistics.weight_shape)
    return [reshape(result, tuple(input.shape)), mean, rstd]


def _backward_decomposed(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    statistics: Statistics,
    output_mask: Any,
) -> list[Tensor | None]:
    """`normalised_backward`, step by step."""
    incoming = reshape(grad_out, statistics.shape)
    normal = (reshape(input, statistics.shape) - mean) * rstd
    grads: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        slope = incoming if weight is None else incoming * reshape(weight, statistics.weight_shape)
        if statistics.fixed is None:
            along = slope - mean_dims.apply(slope, statistics.dims, True)
            slope = along - normal * mean_dims.apply(slope * normal, statistics.dims, True)
        grads[0] = reshape(rstd * slope, tuple(input.shape))
    if output_mask[1]:
        assert weight is not None
        grads[1] = statistics.to_weight(incoming * normal, tuple(weight.shape))
    if output_mask[2]:
        assert bias is not None
        grads[2] = statistics.to_weight(incoming, tuple(bias.shape))
    return grads


def _double_backward(
    grads: Any, grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, statistics: Any
) -> dict[str, Any]:
    """The gradients of what `normalised_backward` computes, by the name of its operand.

    With n the normalised elements, r one over the deviation, g the gradient times the weight and P
    the projection of `Statistics`, it computes r P(g), the sums of grad_out n, and of grad_out.
    """
    shape, sizes = statistics.shape, input.shape
    # Mean and deviation are functions of the input here, whose gradient is written out.
    mean, rstd = _plain(mean), _plain(rstd)
    incoming = reshape(grad_out, shape)
    normal = (reshape(input, shape) - mean) * rstd
    by_weight = incoming
    weights = None
    if weight is not None:
        weights = reshape(weight, statistics.weight_shape)
        by_weight = incoming * weights
    to_grad: Any = None
    to_normal: Any = None
    to_input: Any = None
    to_weight: Any = None
    for_input, for_weight, for_bias = grads
    if for_input is not None:
        direction = reshape(for_input, shape)
        projected = rstd * statistics.projected(direction, normal)
        to_grad = projected if weights is None else projected * weights
        if weight is not None:
            to_weight = statistics.to_weight(projected * incoming, weight.shape)
        if statistics.fixed is None:
            to_normal = -rstd * (
                direction * statistics.average(by_weight * normal)
                + by_weight * statistics.average(direction * normal)
            )
            # Through the deviation only: r changes by -r * r * n / count per element.
            to_input = -rstd * normal * statistics.average(projected * by_weight)
    if for_weight is not None:
        spread = reshape(for_weight, statistics.weight_shape)
        to_grad = _plus(to_grad, spread * normal)
        to_normal = _plus(to_normal, spread * incoming)
    if for_bias is not None:
        spread = expand(reshape(for_bias, statistics.weight_shape), tuple(shape))
        to_grad = _plus(to_grad, spread)
    if to_normal is not None:
        to_input = _plus(to_input, rstd * statistics.projected(to_normal, normal))
    return {
        "grad_out": None if to_grad is None else reshape(to_grad, sizes),
        "input": None if to_input is None else reshape(to_input, sizes),
        "weight": to_weight,
    }


def _plain(value: Any) -> Any:
    return Tensor(value.array) if type(value) is Tensor else value


def _plus(total: Any, term: Any) -> Any:
    return term if total is None else total + term


def normalising(
    name: str,
    operands: tuple[str, ...],
    forward: Function = normalised,
    effects: tuple[str, ...] = (),
    half: Way = rounded_once,
) -> Op:
    """An entry of the formula, and of its backward, whose node has its edges in the order of
    `operands`. Mean and deviation get no gradient of their own: what they owe the input is in its.
    """

    def double_rule(
        grads: Any, grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, statistics: Any
    ) -> Any:
        by_operand = _double_backward(grads, grad_out, input, mean, rstd, weight, statistics)
        return [by_operand.get(operand) for operand in operands]

    backward: Op = op(
        f"{name}_backward",
        normalised_backward,
        half=rounded_once,
        decomposition=_backward_decomposed,
        outputs=("result0", "result1", "result2"),
        inputs=operands,
        constant=() if "bias" in operands else ("bias",),
        joint=double_rule,
        raises=BY_KINDS,
    )

    def rule(
        grads: Any,
        input: Any,
        result1: Any,
        result2: Any,
        weight: Any,
        bias: Any,
        statistics: Any,
        needs: Any,
    ) -> Any:
        mean, rstd = _plain(result1), _plain(result2)
        gradients = backward(grads[0], input, mean, rstd, weight, bias, statistics, tuple(needs))
        return [grad if need else None for grad, need in zip(gradients, needs, strict=True)]

    def rule_by_sizes(
        grads: Any,
        input: Any,
        result1: Any,
        result2: Any,
        weight: Any,
        bias_sizes: Any,
        statistics: Any,
        needs: Any,
    ) -> Any:
        # Where it has no edge to the bias PyTorch does not keep it: it may be written to.
        bias = zeros(grads[0], bias_sizes)
        return rule(grads, input, result1, result2, weight, bias, statistics, needs)

    return op(
        name,
        forward,
        half=half,
        keeps_layout=forward is not normalised,
        decomposition=decomposed,
        outputs=("result0", "result1", "result2"),
        differentiable=(0,),
        inputs=("input", "weight", "bias"),
        joint=rule if "bias" in operands else rule_by_sizes,
        effects=effects,
        raises=BY_KINDS,
    )


_OPERANDS = ("grad_out", "input", "weight", "mean", "rstd")
native_batch_norm = normalising(
    "native_batch_norm",
    _OPERANDS,
    _of_batch,
    (WRITES,),  # the running statistics
    by_kernel(half_precision.batch_norm),
)

# --- arguments ----------------------------------------------------------------------------------


def check_affine(name: str, input: Tensor, sizes: Sizes, **affine: Tensor | None) -> None:
    """Raise E202, E203 or E301 where the input and what goes with it do not fit."""
    check_tensors(name, input=input)
    operands = {argument: tensor for argument, tensor in affine.items() if tensor is not None}
    first = 3 if name in ("group_norm", "layer_norm") else 2  # behind the groups or the sizes
    for number, argument in enumerate(("weight", "bias"), first):
        if argument in operands and type(operands[argument]) is not Tensor:
            raise not_a_tensor(name, argument, number, operands[argument])
    check_mixture(name, input, operands.values())
    check_floating(name, input)
    for argument, tensor in operands.items():
        if tensor.array.shape != sizes:
            raise shape_error(
                f"{name}(): `{argument}` has the shape {tuple(tensor.array.shape)}, and should have"
                f" {sizes}",
                text=f"Expected {argument} to be a vector of size equal to the number of channels"
                f" in input, but got {argument} of shape {list(tensor.array.shape)} and input of"
                f" shape {list(input.array.shape)}"
                if name == "group_norm"
                else f"Expected {argument} to be of same shape as normalized_shape, but got"
                f" {argument} of shape {list(tensor.array.shape)} and normalized_shape ="
                f" {list(sizes)}",
            )


def check_mixture(name: str, input: Tensor, others: Iterable[Tensor]) -> None:
    """Raise E203 unless the input and what goes with it have one dtype; beside an input of half
    precision all the others may be float32.
    """
    others = list(others)
    is_half = input.dtype.category == "float" and input.dtype.itemsize == 2
    if is_half and all(other.dtype is dtypes.float32 for other in others):
        return
    for other in others:
        check_same_dtype(
            name, input, other, "mixed dtype (CPU): all inputs must share same datatype."
        )


def check_several(name: str, shape: Sizes, first: int, others: Sizes) -> None:
    """Raise E204 where there is one value per channel, which has no deviation; `shape` is the
    input's shape.
    """
    if first * prod(others) == 1:
        raise value_error(
            f"{name}(): more than one value per channel is needed",
            text="Expected more than 1 value per channel when training, got input size"
            f" torch.Size({[*shape]})",
        )
