"""Normalisation over a batch: `batch_norm instance_norm`, and `local_response_norm`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.sums import multiply_add, wide
from gradcli.arrays.kernels.windows import Windows
from gradcli.autograd.inplace.writes import write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import add, div, mul
from gradcli.ops.binding.arguments import check_constant, check_floating
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.runtime import not_a_tensor
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.definition.doc import WRITES
from gradcli.ops.elementwise.power import power
from gradcli.ops.nn.normalisation.formula import (
    Statistics,
    check_affine,
    check_mixture,
    check_several,
    native_batch_norm,
)
from gradcli.ops.nn.spatial.padding import constant_pad
from gradcli.ops.nn.spatial.pooling import mean_of_windows
from gradcli.ops.shape.reshaping import repeat
from gradcli.ops.shape.views import reshape, squeeze_dim, unsqueeze
from gradcli.state import computed

Sizes = tuple[int, ...]

# --- batch norm ---------------------------------------------------------------------------------

_LANES = 8
"""The elements that PyTorch's kernel adds at a time."""


class ChannelStatistics(Statistics):
    """Those of batch norm: each channel is normalised over the batch."""

    def of(self, values: Any) -> tuple[Any, Any]:
        """The mean, and one over the standard deviation; for planes in single precision each step
        rounds as PyTorch's kernel does.
        """
        if not self._is_single(values):
            return super().of(values)
        mean = np.mean(values, self.dims, np.float64, keepdims=True).astype(np.float32)
        squares = np.square(values - mean)
        total = np.sum(squares, self.dims, np.float64, keepdims=True).astype(np.float32)
        variance = total / np.float32(values.size // self.shape[1])
        return mean, (1 / np.sqrt(variance + np.float64(self.eps))).astype(np.float32)

    def in_c(self, input: Any, weight: Any, bias: Any) -> Any:
        moments = in_c.batch_moments(input, self.shape[1]) if self._is_single(input) else None
        if moments is None:
            return None
        mean, variance = moments
        rstd = (1 / np.sqrt(variance + np.float64(self.eps))).astype(np.float32)
        slope = rstd if weight is None else rstd * weight
        offset = multiply_add(np.zeros_like(mean) if bias is None else bias, -mean, slope)
        result = in_c.by_channel(input, slope, offset)
        along = self.weight_shape
        return result, mean.reshape(along), rstd.reshape(along)

    def backward_in_c(
        self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, mask: Any
    ) -> Any:
        if not self._is_single(input) or prod(self.shape[2:]) <= _LANES:
            return None
        grads = in_c.batch_norm_backward(grad, input, mean, rstd, weight, mask[0])
        return grads and [each if need else None for each, need in zip(grads, mask, strict=True)]

    def _is_single(self, values: Any) -> bool:
        """Whether the rounding of PyTorch's kernel can be reproduced, which is another one for rows
        of channels.
        """
        own = self.fixed is None and prod(self.shape[2:]) > 1
        return (
            own and type(values) in HOST_ARRAYS and values.dtype == np.float32 and values.size > 0
        )

    def input_gradient(self, grad: Any, input: Any, mean: Any, rstd: Any, weight: Any) -> Any:
        """The gradient of the input; for planes of a few elements in single precision it rounds as
        PyTorch's kernel does, as what is left where terms cancel depends on it.
        """
        plane = prod(self.shape[2:])
        if plane > _LANES or not self._is_single(grad):
            return super().input_gradient(grad, input, mean, rstd, weight)
        planes = (*self.shape[:2], plane)
        along = (1, self.shape[1], 1)
        mean, rstd = mean.reshape(along), rstd.reshape(along)
        grad, centred = grad.reshape(planes), wide(input).reshape(planes) - mean
        count = np.float32(self.shape[0] * plane)
        slope = _over_planes(centred * grad) * rstd * rstd / count
        gradient = multiply_add(grad - _over_planes(grad) / count, -centred, slope) * rstd
        gradient = gradient if weight is None else gradient * weight.reshape(along)
        return gradient.reshape(self.shape)


def _over_planes(values: Any) -> Any:
    """The sum of each channel of (samples, channels, elements): of each plane, then of those.

    As many elements as there are lanes are added in pairs, fewer one after another.
    """
    if values.shape[2] == _LANES:
        while values.shape[2] > 1:
            half = values.shape[2] // 2
            values = values[..., :half] + values[..., half:]
    by_plane = np.add.accumulate(values, 2)[..., -1]
    return np.add.accumulate(by_plane, 0)[-1].reshape(1, -1, 1)


def _moved_mean(running: Any, mean: Any, momentum: float) -> Any:
    """A running mean, moved towards the batch's."""
    moved = wide(running) * (1 - momentum) + momentum * mean.reshape(-1)
    return moved.astype(running.dtype)


def _moved_variance(running: Any, input: Any, dims: tuple[int, ...], momentum: float) -> Any:
    """A running variance, moved towards the batch's."""
    count = input.size // len(running)
    moments = in_c.batch_moments(input, len(running)) if input.shape[1] == len(running) else None
    variance = np.var(wide(input), axis=dims) if moments is None else moments[1]
    variance = variance * (count / (count - 1))
    moved = wide(running) * (1 - momentum) + momentum * variance
    return moved.astype(running.dtype)


def _batch_normed(
    name: str,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running: tuple[Tensor | None, Tensor | None],
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, the means and one over the deviations."""
    shape = input.array.shape
    if len(shape) < 2:
        raise shape_error(f"{name}(): expected two dimensions or more", raises="IndexError")
    channels = shape[1]
    running_mean, running_var = running
    if training and (running_mean is None) is not (running_var is None):
        raise value_error(f"{name}(): running_mean and running_var go together")
    if training or (running_mean is not None and running_var is not None):
        check_floating(name, input)
    running_statistics = dict(zip(("running_mean", "running_var"), running, strict=True))
    for argument, tensor in {**running_statistics, "weight": weight, "bias": bias}.items():
        if isinstance(tensor, Tensor) and tensor.array.shape != (channels,):
            raise shape_error(
                f"{name}(): `{argument}` has the shape {tuple(tensor.array.shape)}, and the input"
                f" {channels} channels",
                text=f"{argument} should contain {channels} elements not {tensor.array.size}",
            )
    check_affine(name, input, (channels,), weight=weight, bias=bias)
    for number, (argument, tensor) in enumerate(running_statistics.items(), 4):
        if tensor is not None and type(tensor) is not Tensor:
            raise not_a_tensor(name, argument, number, tensor)
        if tensor is not None:
            check_constant("native_batch_norm", argument, tensor)
    along = (1, channels, *(1,) * (len(shape) - 2))
    moments = None
    if not training:
        if running_mean is None or running_var is None:
            absent = "running_mean" if running_mean is None else "running_var"
            raise runtime_error(f"{absent} must be defined in evaluation mode")
        moments = (running_mean.array.reshape(along), running_var.array.reshape(along))
    if isinstance(momentum, Tensor):
        momentum = momentum.item()
    beside = (weight, bias, running_mean, running_var)
    check_mixture(name, input, [tensor for tensor in beside if tensor is not None])
    statistics = ChannelStatistics(shape, (0, *range(2, len(shape))), along, eps, moments)
    result, mean, rstd = native_batch_norm.apply(input, weight, bias, statistics)
    if training:
        if running_mean is not None:
            moved = computed(_moved_mean, running_mean.array, mean.array, momentum)
            write(running_mean, Tensor(moved), counted=False)
        if running_var is not None:
            dims = statistics.dims
            moved = computed(_moved_variance, running_var.array, input.array, dims, momentum)
            write(running_var, Tensor(moved), counted=False)
    return result, mean, rstd


@function("batch_norm", module="torch.nn.functional", effects=(WRITES,))
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel normalised over the batch, then times a weight per channel plus a bias.

    With `training`, by the batch's own statistics, and the running ones are moved towards them;
    otherwise by the running ones. Raises E203, E204 or E301 where operands do not go together.

    Example: F.batch_norm(tensor([[2., 1.], [1., 3.]]), zeros(2), ones(2))
    """
    if training:
        shape = input.array.shape
        check_several("batch_norm", shape, shape[0] if shape else 1, tuple(shape[2:]))
    return torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@function("batch_norm", effects=(WRITES,))
def torch_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`torch.batch_norm`; see `batch_norm`.

    Example:
        torch.batch_norm(tensor([[2., 1.], [1., 3.]]), None, None, zeros(2), ones(2), False, 0.1,
            1e-5, False)
    """
    running = (running_mean, running_var)
    return _batch_normed("batch_norm", input, weight, bias, running, training, momentum, eps)[0]


@function("native_batch_norm", effects=(WRITES,))
def native_batch_norm_function(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.batch_norm`, the means of the batch and one over its deviations, or two empty tensors
    where the running ones are used.

    Example:
        torch.native_batch_norm(tensor([[2., 1.], [1., 3.]]), None, None, None, None, True, 0.1,
            1e-5)
    """
    running = (running_mean, running_var)
    results = _batch_normed("batch_norm", input, weight, bias, running, training, momentum, eps)
    if not training:
        empty = np.empty(0, input.array.dtype)
        return results[0], Tensor(empty), Tensor(empty.copy())
    return results[0], *(reshape(each, (each.array.size,)) for each in results[1:])


def _no_elements(shape: Sizes) -> GradcliError:
    return value_error(
        "Expected more than 1 spatial element when training, got input size"
        f" torch.Size({list(shape)})"
    )


@function("instance_norm", module="torch.nn.functional", effects=(WRITES,))
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each sample normalised by itself, or by the running statistics.

    Raises E203, E204 or E301 where the operands do not go together.

    Example: F.instance_norm(arange(6.).reshape(1, 1, 6))
    """
    shape = input.array.shape
    if len(shape) < 3:
        raise _no_elements(shape)
    samples, channels = shape[:2]
    check_floating("instance_norm", input)
    check_affine("instance_norm", input, (channels,), weight=weight, bias=bias)
    if use_input_stats and prod(shape[2:]) == 1:
        raise _no_elements(shape)

    def repeated(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else repeat(tensor, samples)

    statistics = (repeated(running_mean), repeated(running_var))
    result = _batch_normed(
        "instance_norm",
        contiguous(reshape(input, (1, samples * channels, *shape[2:]))),
        repeated(weight),
        repeated(bias),
        statistics,
        use_input_stats,
        momentum,
        eps,
    )[0]
    if use_input_stats:
        for running, moved in zip((running_mean, running_var), statistics, strict=True):
            if running is not None and moved is not None:
                each = moved.array.reshape(samples, channels)
                write(running, Tensor(np.mean(each, axis=0).astype(each.dtype)))
    return reshape(result, shape)


@function("instance_norm", effects=(WRITES,))
def torch_instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`torch.instance_norm`; see `instance_norm`.

    Example:
        torch.instance_norm(arange(6.).reshape(1, 1, 6), None, None, None, None, True, 0.1, 1e-5,
            False)
    """
    return instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


# --- local response norm ------------------------------------------------------------------------


@function("local_response_norm", module="torch.nn.functional")
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Each element over a power of k plus alpha times the mean of the squares of `size` channels
    around its own. Raises E204 for fewer than three dimensions.

    Example: F.local_response_norm(arange(6.).reshape(1, 1, 6), 2)
    """
    shape = input.array.shape
    if len(shape) < 3:
        raise value_error(
            "local_response_norm(): expected three dimensions or more",
            text=f"Expected 3D or higher dimensionality {' ' * 24} input (got {len(shape)}"
            " dimensions)",
        )
    if not input.array.size:
        return input
    squares = mul.apply(input, input)
    around = (size // 2, (size - 1) // 2)
    if len(shape) == 3:
        padded = constant_pad(unsqueeze.apply(squares, 1), (0, 0, *around), 0)
        means = squeeze_dim.apply(mean_of_windows(padded, _ahead((size, 1))), 1)
    else:
        sizes = (shape[0], 1, shape[1], shape[2], prod(shape[3:]))
        padded = constant_pad(reshape(squares, sizes), (0, 0, 0, 0, *around), 0)
        means = squeeze_dim.apply(mean_of_windows(padded, _ahead((size, 1, 1))), 1)
        means = reshape(means, shape)
    return div.apply(input, power(add.apply(mul.apply(means, alpha), k), beta))


def _ahead(kernel: Sizes) -> Windows:
    """Windows that move on by one element."""
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    return Windows(kernel, ones, zeros, ones)
