"""Pools whose windows follow from the output's sizes: `adaptive_avg_pool2d adaptive_max_pool2d` and
their like in 1 to 3 dimensions.

Along a dimension of n elements, window i of m is from floor(i n / m) to ceil((i + 1) n / m).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.kernels.windows.windows import Sizes
from gradcli.arrays.layout.strides import channels_are_last, in_format_of_images
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, type_error
from gradcli.ops.binding.arguments import check_floating, check_not_integral
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import LAST, SAMPLES, describe, in_numpy
from gradcli.ops.indexing.strided import as_strided_in_place
from gradcli.ops.nn.spatial.numpy_forms import adaptive_mean
from gradcli.ops.nn.spatial.pooling import check_gradient, check_pooled, linear_pool, picking
from gradcli.ops.reduction.sum import mean_dims
from gradcli.ops.shape.views import squeeze_dim, unsqueeze

# --- arrays -------------------------------------------------------------------------------------


def _cells(sizes: Sizes, counts: Sizes) -> Iterator[tuple[Any, Any]]:
    """For every window, its position in the output and the slices of its elements."""
    for position in product(*map(range, counts)):
        where = (
            slice(i * size // count, -(-(i + 1) * size // count))
            for i, size, count in zip(position, sizes, counts, strict=True)
        )
        yield (..., *position), (..., *where)


def _shared(value: Any, extents: Sizes) -> Any:
    """A value divided by the sizes of a window, one after the other as PyTorch rounds it."""
    for extent in extents:
        value = value / extent
    return value


def _mean_array(self: Any, output_size: Sizes) -> Any:
    ndim = len(output_size)
    values = wide(self)
    pooled = module_of(values).empty((*self.shape[:-ndim], *output_size), values.dtype)
    for position, where in _cells(self.shape[-ndim:], output_size):
        cell = values[where]
        extents = cell.shape[-ndim:]
        # Added one by one, in row order.
        sums = np.add.accumulate(cell.reshape(*cell.shape[:-ndim], prod(extents)), axis=-1)
        pooled[position] = _shared(sums[..., -1], extents)
    return in_format_of_images(pooled.astype(self.dtype, copy=False), self, ndim)


def _mean_transposed(grad_output: Any, self: Any, output_size: Sizes) -> Any:
    ndim = len(output_size)
    check_gradient(f"adaptive_avg_pool{ndim}d", grad_output)
    grad = module_of(grad_output).zeros(self.shape, grad_output.dtype)
    for position, where in _cells(self.shape[-ndim:], output_size):
        cell = grad[where]
        share = _shared(grad_output[position], cell.shape[-ndim:])
        cell += share.reshape(*share.shape, *(1,) * ndim)
    return in_format_of_images(grad, self, ndim)


def _largest_array(self: Any, output_size: Sizes) -> tuple[Any, Any]:
    """The largest of every window, the first of ties, and its position in row order."""
    ndim = len(output_size)
    leading, sizes = self.shape[:-ndim], self.shape[-ndim:]
    order = module_of(self).arange(prod(sizes)).reshape(sizes)
    indices = module_of(self).empty((*leading, *output_size), np.int64)
    for position, where in _cells(sizes, output_size):
        within = order[where].reshape(-1)
        cell = self[where].reshape(*leading, within.size)
        chosen = np.argmax(cell, axis=-1)
        missing = cell != cell
        if missing.any():  # a nan is larger than anything, the last one largest
            last = within.size - 1 - np.argmax(missing[..., ::-1], axis=-1)
            chosen = np.where(missing.any(axis=-1), last, chosen)
        indices[position] = within[chosen]
    rows = self.reshape(*leading, prod(sizes))
    positions = indices.reshape(*leading, prod(output_size))
    values = np.take_along_axis(rows, positions, -1).reshape(indices.shape)
    return in_format_of_images(values, self, ndim), in_format_of_images(indices, self, ndim)


def _matrices(_output_size: Sizes, sizes: Sizes, counts: Sizes) -> list[Any]:
    """For each dimension the matrix that a row of elements is multiplied by."""
    matrices = []
    for size, count in zip(sizes, counts, strict=True):
        place, window = np.arange(size)[:, None], np.arange(count)
        start, end = window * size // count, -(-(window + 1) * size // count)
        matrices.append(((start <= place) & (place < end)) / (end - start))
    return matrices


_MEAN = {
    ndim: linear_pool(f"_adaptive_avg_pool{ndim}d", _mean_array, _mean_transposed, _matrices)
    for ndim in (2, 3)
}
_LARGEST = {ndim: picking(f"adaptive_max_pool{ndim}d", ndim, _largest_array) for ndim in (2, 3)}

# --- what programs write ------------------------------------------------------------------------


def _output_size(name: str, requested: Any, sizes: Sizes) -> Sizes:
    """The sizes asked for; None keeps the input's. Raises E202 or E204 for what is no size."""
    wanted = tuple(requested) if isinstance(requested, (tuple, list)) else (requested,) * len(sizes)
    if len(wanted) != len(sizes):
        raise runtime_error(
            f"{name}(): output_size must be one integer or {len(sizes)}, not {requested}"
        )
    plain = []
    for size, own in zip(wanted, sizes, strict=True):
        size = own if size is None else size
        if type(size) is not int:
            raise type_error(f"{name}(): output_size must be integers, not {requested}")
        if size < 0:
            raise runtime_error(f"{name}(): a size of {size} is none")
        plain.append(size)
    return tuple(plain)


def _checked(name: str, input: Tensor, output_size: Any, ndim: int, filled: int) -> Sizes:
    check_pooled(name, input, ndim, filled)
    check_floating(name, input)
    return _output_size(name, output_size, input.array.shape[-ndim:])


def _of_one_sample(input: Any) -> int:
    """The dimensions but the first, which may be empty, whether it counts samples or channels."""
    return input.array.ndim - 1 if type(input) is Tensor else 0


def adaptive_average(input: Tensor, sizes: Sizes) -> Tensor:
    """The mean of every window, so many windows per dimension as given, over 1 to 3 dimensions."""
    if len(sizes) == 1:
        dim = input.array.ndim - 1
        raised = unsqueeze.apply(input, dim)
        return squeeze_dim.apply(adaptive_average(raised, (1, *sizes)), dim)
    if all(size == 1 for size in sizes):
        last = input.array.ndim
        mean = mean_dims.apply(input, tuple(range(last - 1, last - 1 - len(sizes), -1)), True)
        if last == len(sizes) + 2 and channels_are_last(input.array):
            channels = input.array.shape[1]
            steps = (channels, 1, *(channels,) * len(sizes))
            as_strided_in_place(mean, mean.array.shape, steps)
        return mean
    return _MEAN[len(sizes)].apply(input, sizes)


def _expose(ndim: int) -> None:
    mean_name, max_name = f"adaptive_avg_pool{ndim}d", f"adaptive_max_pool{ndim}d"

    def adaptive_avg_pool(input: Tensor, output_size: Any) -> Tensor:
        if type(input) is Tensor and output_size in (1, (1,) * ndim):
            # One window is PyTorch's mean, which takes complex numbers.
            check_not_integral("mean", input, "RuntimeError")
            if not input.dtype.is_complex or input.array.ndim not in (ndim + 1, ndim + 2):
                check_pooled(mean_name, input, ndim, 0)
            return adaptive_average(input, (1,) * ndim)
        filled = ndim if ndim < 3 else _of_one_sample(input)
        sizes = _checked(mean_name, input, output_size, ndim, filled)
        return adaptive_average(input, sizes)

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        sizes = _checked(max_name, input, output_size, ndim, _of_one_sample(input))
        if ndim > 1:
            results = _LARGEST[ndim].apply(input, sizes)
        else:
            dim = input.array.ndim - 1
            raised = _LARGEST[2].apply(unsqueeze.apply(input, dim), (1, *sizes))
            results = tuple(squeeze_dim.apply(result, dim) for result in raised)
        return results if return_indices else results[0]

    in_numpy(adaptive_mean(ndim))(adaptive_avg_pool)
    function(mean_name, module="torch.nn.functional")(adaptive_avg_pool)
    function(max_name, module="torch.nn.functional")(adaptive_max_pool)
    windows = f"windows that divide the last {LAST[ndim]} evenly."
    if ndim == 1:
        windows = "windows that divide the last dimension into `output_size`."
    describe(adaptive_avg_pool, f"Means of {windows}", f"F.{mean_name}({SAMPLES[ndim]}, 2)")
    describe(adaptive_max_pool, f"Maxima of {windows}", f"F.{max_name}({SAMPLES[ndim]}, 2)")
    if ndim == 1:

        def with_indices(input: Tensor, output_size: Any) -> Any:
            return adaptive_max_pool(input, output_size, True)

        with_indices.__doc__ = adaptive_max_pool.__doc__
        function(mean_name)(adaptive_avg_pool)
        function(max_name)(with_indices)


for _ndim in (1, 2, 3):
    _expose(_ndim)
