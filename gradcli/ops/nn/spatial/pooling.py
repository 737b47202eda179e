"""Pooling: the maximum, the mean or the norm of every window, `max_pool2d avg_pool2d lp_pool2d` and
their like in 1 to 3 dimensions.

A pool of one dimension is one of two, over a tensor with a dimension of size 1 put in.

The windows of `adaptive_avg_pool2d adaptive_max_pool2d` follow from the output's sizes: along a
dimension of n elements, window i of m is from floor(i n / m) to ceil((i + 1) n / m). Max unpooling,
and fractional pooling with windows at random positions, are `max_unpool2d fractional_max_pool2d`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isinf, prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, new_zeros
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.tile_kernels import choose_tile
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.kernels.windows import Sizes, Windows
from gradcli.arrays.layout.strides import (
    channels_are_last,
    in_format_of_images,
    in_row_order,
    in_suggested_format,
    is_channels_last,
    with_channels_last,
)
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import (
    GradcliError,
    dtype_error,
    index_error,
    runtime_error,
    shape_error,
    type_error,
    value_error,
)
from gradcli.ops.arithmetic.arithmetic import mul, neg, zeros
from gradcli.ops.binding.arguments import (
    check_filled,
    check_floating,
    check_real,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.random import uniform_array
from gradcli.ops.definition.doc import (
    BY_KINDS,
    BY_VALUES,
    LAST,
    RANDOM,
    SAMPLES,
    describe,
    in_numpy,
)
from gradcli.ops.definition.dtype_support import (
    NOTHING,
    Unsupported,
    check_floating_dtype,
    dtype_names,
)
from gradcli.ops.definition.op import Function, Op, TensorSpec, op, out_of_range
from gradcli.ops.elementwise.power import power
from gradcli.ops.elementwise.unary import abs_op, sign
from gradcli.ops.indexing.along import gather, scatter_add, scatter_tensor
from gradcli.ops.indexing.strided import as_strided_in_place
from gradcli.ops.linalg.products.matrix_products import along_dims
from gradcli.ops.nn.piecewise_activations import relu_op
from gradcli.ops.nn.spatial.numpy_forms import adaptive_mean, average_pool, max_pool
from gradcli.ops.nn.spatial.unfold import check_counts, per_dimension
from gradcli.ops.reduction.sum import mean_dims
from gradcli.ops.shape.views import reshape, squeeze_dim, unsqueeze
from gradcli.record import Record
from gradcli.state import active

# --- the largest elements of arrays ---------------------------------------------------------------


def _flat(places: list[Any], sizes: Sizes) -> Any:
    """Positions along each dimension as flat positions in row order, for all their combinations."""
    ndim = len(sizes)
    total: Any = np.zeros((1,) * ndim, np.int64)
    for dim, along in enumerate(places):
        shape = [1] * ndim
        shape[dim] = -1
        total = total + (np.asarray(along) * prod(sizes[dim + 1 :])).reshape(shape)
    return total


def largest_of_windows(self: Any, windows: Windows, ceil_mode: bool) -> tuple[Any, Any]:
    """The largest element of every window, and its flat position in row order. Of equal elements it
    is the first; a nan is larger than anything.
    """
    kernel, ndim = windows.kernel, len(windows.kernel)
    sizes = self.shape[-ndim:]
    counts = windows.counts(sizes, ceil_mode)
    pooled = in_c.max_pool(self, windows, counts) if ndim == 2 else None
    if pooled is not None:
        values, places = pooled
        return _laid_out(values, self, ndim), _laid_out(places, self, ndim)
    lowest = -np.inf if self.dtype.kind not in "iu" else np.iinfo(self.dtype).min
    largest = windows.pad(self, counts, lowest)
    with_nan = self.dtype.kind not in "iu" and (
        type(self) not in HOST_ARRAYS or bool(np.isnan(np.max(self, initial=-np.inf)))
    )  # does not wait for a GPU
    # The number of the largest element in its window. The dimensions are reduced one by one,
    # the last one first, so that the numbers follow the order of the elements in a window.
    chosen = None
    count = np.uint8 if prod(kernel) < 256 else np.int32
    for dim in reversed(range(ndim)):
        first = slice(0, (counts[dim] - 1) * windows.stride[dim] + 1, windows.stride[dim])
        largest, chosen = _largest_along(
            [
                _moved(first, number * windows.dilation[dim], ndim - 1 - dim)
                for number in range(kernel[dim])
            ],
            largest,
            chosen,
            count(prod(kernel[dim + 1 :])),
            with_nan,
        )
    places = [place for place, _ in windows.elements(counts)]
    indices = _indices(chosen, windows, places, sizes, counts)
    return _laid_out(largest, self, ndim), _laid_out(indices, self, ndim)


def _laid_out(result: Any, self: Any, ndim: int) -> Any:
    """A result in the format of what is pooled; of one volume without gaps too."""
    if not (ndim == 3 and self.ndim == 4):
        return in_suggested_format(result, self)
    if self.flags.c_contiguous or not is_channels_last(self[None]):
        return in_row_order(result)
    return with_channels_last(result[None])[0]


def _moved(places: slice, by: int, behind: int) -> tuple[Any, ...]:
    """An index for positions shifted along a dimension that is followed by `behind` others."""
    moved = slice(places.start + by, places.stop + by, places.step)
    return (..., moved, *[slice(None)] * behind)


def _largest_along(
    elements: list[tuple[Any, ...]], values: Any, numbers: Any, step: Any, with_nan: bool
) -> tuple[Any, Any]:
    """The largest of the elements along one dimension of each window, and their numbers, which are
    `step` more from element to element. Without numbers all are 0.
    """
    largest = values[elements[0]].copy()
    if numbers is None:
        chosen = module_of(values).zeros(largest.shape, step.dtype)
    else:
        chosen = numbers[elements[0]].copy()
    other = np.empty_like(largest)
    for number, where in enumerate(elements[1:], 1):
        element = values[where]
        larger = element > largest
        if with_nan:
            larger |= element != element
        choose_tile(larger, element, largest, other)
        largest, other = other, largest
        later = step * type(step)(number)
        if numbers is not None:
            later = numbers[where] + later
        np.maximum(chosen, larger.view(np.uint8) * later, out=chosen)
    return largest, chosen


def _indices(
    chosen: Any, windows: Windows, places: list[Sizes], sizes: Sizes, counts: Sizes
) -> Any:
    """The flat positions in row order of the elements with the given numbers in their windows.

    Number 0 is the first element inside the tensor where the window begins before it.
    """
    firsts = [
        np.arange(count) * s - p
        for count, s, p in zip(counts, windows.stride, windows.padding, strict=True)
    ]
    steps = [
        sum(
            i * d * prod(sizes[dim + 1 :])
            for dim, (i, d) in enumerate(zip(place, windows.dilation, strict=True))
        )
        for place in places
    ]
    indices = module_of(chosen).asarray(steps).take(chosen)
    indices += _flat(firsts, sizes)
    if any(windows.padding):
        inside = [
            np.where(first < 0, first % d, first)
            for first, d in zip(firsts, windows.dilation, strict=True)
        ]
        indices = np.where(chosen == 0, _flat(inside, sizes), indices)
    return indices


# --- ops ------------------------------------------------------------------------------------------


# --- the largest of a window --------------------------------------------------------------------


def _put_at(grad_output: Any, self: Any, indices: Any, ndim: int, apart: bool) -> Any:
    """The gradient added at the indices, flat positions in the last dimensions; `apart` where no
    two of them are equal.
    """
    planes, size = prod(self.shape[:-ndim]), prod(self.shape[-ndim:])
    whole = new_zeros(grad_output, self.shape)
    if in_c.add_at(whole, indices, grad_output, planes):
        return whole
    where = indices.reshape(planes, prod(indices.shape[-ndim:])) + np.arange(planes)[:, None] * size
    if apart:
        whole.reshape(-1)[where] = grad_output.reshape(where.shape)
        return whole
    total = np.bincount(where.ravel(), grad_output.ravel(), planes * size)
    return total.reshape(self.shape).astype(grad_output.dtype)


def taken_at(value: Any, indices: Any, ndim: int) -> Any:
    """The elements of the last dimensions that the indices point at."""
    leading = tuple(value.shape[:-ndim])
    rows = reshape(value, (*leading, prod(value.shape[-ndim:])))
    positions = reshape(indices, (*leading, prod(indices.shape[-ndim:])))
    return reshape(gather(rows, len(leading), positions), tuple(indices.shape))


def _put_decomposed(grad_output: Tensor, self: Tensor, indices: Tensor, ndim: int) -> Tensor:
    """`_put_at` as a sum into the places of the elements that were picked."""
    leading, sizes = tuple(self.shape[:-ndim]), tuple(self.shape[-ndim:])
    rows, places = (
        reshape(each, (*leading, prod(each.shape[-ndim:]))) for each in (grad_output, indices)
    )
    empty = zeros(grad_output, (*leading, prod(sizes)))
    return reshape(scatter_add(empty, len(leading), places, rows), (*leading, *sizes))


def picking(
    name: str, ndim: int, forward: Function, windowed: bool = False, raises: str = BY_KINDS
) -> Op:
    """An entry that picks an element of each window and returns its position; `windowed` where its
    argument `windows` describes them.
    """

    def placed(grad_output: Any, self: Any, indices: Any, apart: bool) -> Any:
        if name.startswith("adaptive"):
            check_gradient(name, grad_output)
        grad = _put_at(grad_output, self, indices, ndim, apart)
        if windowed and self.ndim == 5:
            return in_suggested_format(grad, self)
        return in_format_of_images(grad, self, ndim)

    backward: Op = op(
        f"{name}_backward",
        lambda grad_output, self, indices, apart: placed(grad_output, self, indices, apart),
        keeps_layout=True,
        constant=("indices",),
        grad_output=lambda grad, indices: taken_at(grad, indices, ndim),
        self=lambda grad, self_sizes: zeros(grad, self_sizes),
        decomposition=lambda grad_output, self, indices, apart: _put_decomposed(
            grad_output, self, indices, ndim
        ),
        raises=BY_VALUES,
    )

    def of_any(grads: Any, self: Any, result1: Any) -> Any:
        return backward(grads[0], self, result1, False)

    def of_windows(grads: Any, self: Any, result1: Any, windows: Windows) -> Any:
        return backward(grads[0], self, result1, windows.apart())

    return op(
        name,
        forward,
        keeps_layout=True,
        outputs=("result0", "result1"),
        differentiable=(0,),
        self=of_windows if windowed else of_any,
        raises=raises,
    )


_MAX = {
    ndim: picking(f"max_pool{ndim}d_with_indices", ndim, largest_of_windows, windowed=True)
    for ndim in (2, 3)
}

_MAX_OF_LINE: Op = op(
    "max_pool1d",
    lambda self, windows, ceil_mode: largest_of_windows(self, windows, ceil_mode)[0],
    constant=("self",),
    raises=BY_KINDS,
)

# --- the mean of a window -----------------------------------------------------------------------


class Averaging(Record):
    """How an average pool counts.

    Attributes:
        windows: the windows.
        ceil_mode: whether the last window may stick out.
        count_include_pad: whether the padding counts as elements.
        divisor: what every sum is divided by; None for the number of elements.
    """

    windows: Windows
    ceil_mode: bool
    count_include_pad: bool
    divisor: int | None

    def divisors(self, sizes: Sizes, counts: Sizes) -> Any:
        """The number that each window's sum is divided by."""
        if self.divisor is not None:
            return self.divisor
        windows = self.windows
        total: Any = 1
        for dim, (size, count, k, s, p) in enumerate(
            zip(sizes, counts, windows.kernel, windows.stride, windows.padding, strict=True)
        ):
            start = np.arange(count) * s - p
            end = np.minimum(start + k, size + p)
            if not self.count_include_pad:
                start, end = np.maximum(start, 0), np.minimum(end, size)
            shape = [1] * len(sizes)
            shape[dim] = -1
            total = total * (end - start).reshape(shape)
        return total

    def matrices(self, sizes: Sizes, counts: Sizes) -> list[Any]:
        """For each dimension the matrix that a row of elements is multiplied by."""
        windows, averages = self.windows, list[Any]()
        for size, count, k, s, p in zip(
            sizes, counts, windows.kernel, windows.stride, windows.padding, strict=True
        ):
            place, start = np.arange(size)[:, None], np.arange(count) * s - p
            end = np.minimum(start + k, size + p)
            inside = (start <= place) & (place < end)
            number: Any
            if self.divisor is not None:
                number = self.divisor if not averages else 1
            elif self.count_include_pad:
                number = end - start
            else:
                number = np.minimum(end, size) - np.maximum(start, 0)
            averages.append(inside / number)
        return averages


def _avg_pool_array(self: Any, averaging: Averaging) -> Any:
    windows = averaging.windows
    sizes = self.shape[-len(windows.kernel) :]
    counts = windows.counts(sizes, averaging.ceil_mode)
    padded = windows.pad(wide(self), counts)
    total = new_zeros(padded, (*self.shape[: -len(sizes)], *counts))
    for _, where in windows.elements(counts):
        total += padded[where]
    divisors = averaging.divisors(sizes, counts)
    if total.dtype.kind in "iu":
        return np.trunc(total / divisors).astype(self.dtype)
    return in_format_of_images((total / divisors).astype(self.dtype, copy=False), self, len(sizes))


def _avg_pool_backward_array(grad_output: Any, self: Any, averaging: Averaging) -> Any:
    windows = averaging.windows
    ndim = len(windows.kernel)
    sizes, counts = self.shape[-ndim:], grad_output.shape[-ndim:]
    share = (wide(grad_output) / averaging.divisors(sizes, counts)).astype(grad_output.dtype)
    leading, positions = grad_output.shape[:-ndim], prod(counts)
    columns = np.broadcast_to(
        share.reshape(*leading, 1, positions), (*leading, prod(windows.kernel), positions)
    )
    return in_format_of_images(windows.folded(columns, sizes, counts), self, ndim)


def linear_pool(
    name: str,
    forward: Function,
    transposed: Function,
    matrices: Function,
    unsupported: Unsupported = NOTHING,
) -> Op:
    """An entry that is linear in its input, with its transpose; both take one argument more.

    Args:
        matrices: from that argument, and the sizes before and after, to the matrix that each
            dimension is multiplied by.
    """

    def of_sizes(argument: Any, sizes: Sizes, counts: Sizes) -> Any:
        ndim = len(argument if isinstance(argument, tuple) else argument.windows.kernel)
        return matrices(argument, sizes[-ndim:], counts[-ndim:])

    def pool_transposed(grad_output: Tensor, self: Tensor, argument: Any) -> Tensor:
        maps = of_sizes(argument, self.shape, grad_output.shape)
        return along_dims(grad_output, [matrix.T for matrix in maps])

    backward: Op = op(
        f"{name}_backward",
        lambda grad_output, self, argument: transposed(grad_output, self, argument),
        keeps_layout=True,
        decomposition=pool_transposed,
        grad_output=lambda grad, argument: pool(grad, argument),
        self=lambda grad, self_sizes: zeros(grad, self_sizes),
        raises=BY_KINDS,
    )
    pool: Op = op(
        name,
        lambda self, argument: forward(self, argument),
        keeps_layout=True,
        self=lambda grad, self, argument: backward(grad, self, argument),
        unsupported=unsupported,
        raises=BY_KINDS,
    )
    return pool


_NARROW = dtype_names("bool", "complex", "uint8", "int8", "int16", "int32")

_AVERAGE = {
    ndim: linear_pool(
        f"avg_pool{ndim}d",
        _avg_pool_array,
        _avg_pool_backward_array,
        Averaging.matrices,
        _NARROW | (dtype_names("half") if ndim == 3 else NOTHING),
    )
    for ndim in (2, 3)
}

# --- what programs write ------------------------------------------------------------------------


def check_pooled(name: str, input: Tensor, ndim: int, filled: int | None = None) -> None:
    """Raise unless it can be pooled; the last `filled`, or a sample's dimensions hold elements."""
    shape = input.array.shape
    if not all(shape[len(shape) - (ndim + 1 if filled is None else filled) :]):
        raise _empty(name, ndim, list(shape))
    check_real(name, input.array)


def _empty(name: str, ndim: int, shape: list[int]) -> GradcliError:
    """The error of a tensor without elements."""
    if name.startswith("adaptive"):
        if name == "adaptive_avg_pool1d":  # PyTorch makes it one of two dimensions first
            name, shape = "adaptive_avg_pool2d", [*shape[:-1], 1, shape[-1]]
        return _no_elements(name, "input", shape)
    if name == "avg_pool1d":
        ndim, shape = 2, [*shape[:-1], 1, shape[-1]]
    before = f"{name}: " if name == "max_pool1d" else ""
    text = f"{before}Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with optional 0 dim"
    text += f" batch size for input, but got:{shape}"
    if name in ("avg_pool3d", "max_pool3d"):
        called = {"max_pool3d": "max_pool3d_with_indices_out_cpu_template"}.get(name, name)
        text = f"{called}(): Expected input's non-batch dimensions to have positive length, but"
        text += f" input has a shape of {shape} and non-batch dimension 0 has length zero!"
    return shape_error(f"{name}(): a tensor of shape {tuple(shape)} has no elements", text=text)


def check_gradient(name: str, grad_output: Any) -> None:
    """Raise E301 for the gradient of an output without elements, but for one without samples, as
    PyTorch does in an adaptive pool's backward.
    """
    shape = list(grad_output.shape)
    if 0 in shape[1:]:
        raise _no_elements(f"{name}_backward", "grad_output", shape)


def _no_elements(name: str, argument: str, shape: list[int]) -> GradcliError:
    return shape_error(
        f"{name}(): {argument} of shape {tuple(shape)} has no elements",
        text=f"{name}(): Expected {argument} to have non-zero size for non-batch dimensions, but"
        f" {argument} has sizes {shape} with dimension {shape.index(0, 1)} being empty",
    )


def _wrong_rank(name: str, ndim: int, shape: list[int]) -> GradcliError:
    """The error of a tensor with too few dimensions, or too many."""
    ranks = f"{ndim + 1}D or {ndim + 2}D"
    text, raises = f"non-empty {ranks} (batch mode) tensor expected for input", None
    if name == "max_pool1d":
        text = f"{name}: Expected {ranks} (batch mode) tensor with optional 0 dim batch size for"
        text += f" input, but got:{shape}"
    elif ndim == 1:
        called = name.replace("lp_", "avg_")
        text = (
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1"
        )
        text += f" 'self' (while checking arguments for {called})"
    elif name.startswith("adaptive"):
        text = f"{name}(): Expected {ranks} tensor, but got{':' * ('max' in name)} {shape}"
    elif name in ("avg_pool2d", "lp_pool2d", "fractional_max_pool2d") and len(shape) < 3:
        text, raises = out_of_range(-3, len(shape)), "IndexError"
    problem = f"{name}(): expected {ndim + 1} or {ndim + 2} dimensions, not {len(shape)}"
    return shape_error(problem, text=text, raises=raises)


def _pooled(ndim: int) -> dict[str, TensorSpec]:
    """What a pool over so many dimensions takes."""
    misfit = lambda name, array, _: _wrong_rank(name, ndim, list(array.shape))  # noqa: E731
    return {"input": TensorSpec(ndim + 1, ndim + 2, misfit=misfit)}


def _too_much_padding(name: str, windows: Windows) -> GradcliError:
    """The error of more padding than half of a window."""
    pads, kernel, dilation = windows.padding, windows.kernel, windows.dilation
    at = next(at for at, pad in enumerate(pads) if pad > kernel[at] // 2)
    if name == "max_pool1d":
        return runtime_error(
            "max_pool1d() padding should be at most half of kernel size, but got"
            f" padding={pads[0]} and kernel_size={kernel[0]}"
        )
    if pads[at] <= (dilation[at] * (kernel[at] - 1) + 1) // 2 and len(pads) == 2:
        return runtime_error(
            "pad should be smaller than or equal to half of kernel size, but got"
            f" padW = {pads[1]}, padH = {pads[0]}, kW = {kernel[1]}, kH = {kernel[0]}"
        )
    return runtime_error(
        f"pad should be at most half of effective kernel size, but got pad={pads[at]},"
        f" kernel_size={kernel[at]} and dilation={dilation[at]}"
    )


def windows_of(
    name: str, ndim: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1
) -> Windows:
    """The windows that arguments describe. Raises E204 for more padding than half of one."""
    kernel = per_dimension(name, "kernel_size", kernel_size, ndim)
    strides = kernel
    if stride is not None and stride != ():
        strides = per_dimension(name, "stride", stride, ndim)
    paddings = per_dimension(name, "padding", padding, ndim, 0)
    windows = Windows(kernel, strides, paddings, per_dimension(name, "dilation", dilation, ndim))
    if any(p > k // 2 for p, k in zip(paddings, kernel, strict=True)):
        raise _too_much_padding(name, windows)
    return windows


def _check_windows(name: str, input: Tensor, ndim: int, windows: Windows, ceil_mode: bool) -> None:
    """Raise unless the input can be pooled and a window fits into it."""
    check_pooled(name, input, ndim)
    sizes = input.array.shape[-ndim:]
    counts = windows.counts(sizes, ceil_mode)
    if name == "max_pool1d":
        text = f"max_pool1d() Invalid computed output size: {counts[0]}"
    else:
        channels = input.array.shape[-ndim - 1]
        one = (1,) * (ndim == 1)
        before, behind = ("x".join(map(str, (channels, *one, *each))) for each in (sizes, counts))
        text = (
            f"Given input size: ({before}). Calculated output size: ({behind})."
            " Output size is too small"
        )
    check_counts(name, sizes, counts, text)


def _flattened(windows: Windows) -> Windows:
    """Windows over one dimension as windows over two, of which the first has size 1."""
    return Windows(
        (1, *windows.kernel), (1, *windows.stride), (0, *windows.padding), (1, *windows.dilation)
    )


def _max_pool(
    name: str, input: Tensor, ndim: int, windows: Windows, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    """The largest of every window, and where it was."""
    _check_windows(name, input, ndim, windows, ceil_mode)
    if ndim == 3 and input.array.ndim == 4 and channels_are_last(input.array):
        # PyTorch asks for the format as if one volume were a batch of images.
        raise runtime_error(
            f"{name}(): the depth of the volume is innermost in memory",
            text="Unsupported memory format. Supports only ChannelsLast3d, Contiguous",
            help="`.contiguous()` lays it out by rows",
        )
    if ndim > 1:
        values, indices = _MAX[ndim].apply(input, windows, ceil_mode)
        return values, indices
    dim = input.array.ndim - 1
    raised = unsqueeze.apply(input, dim)
    values, indices = _MAX[2].apply(raised, _flattened(windows), ceil_mode)
    return squeeze_dim.apply(values, dim), squeeze_dim.apply(indices, dim)


def _expose_max_pool(ndim: int) -> None:
    name = f"max_pool{ndim}d"

    def of_functional(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        windows = windows_of(name, ndim, kernel_size, stride, padding, dilation)
        state = active.state
        recorded = (input.requires_grad and state.grad_enabled) or state.batch is not None
        if ndim == 1 and not return_indices and not recorded:
            _check_windows("max_pool1d", input, 1, windows, ceil_mode)
            check_floating("max_pool1d", input)
            largest = _MAX_OF_LINE.apply(input, windows, ceil_mode)
            if input.array.ndim == 2:
                storage_of(largest).count_write()  # PyTorch squeezes it, and that counts
            return largest
        results = _max_pool(name, input, ndim, windows, ceil_mode)
        return results if return_indices else results[0]

    def of_torch(
        input: Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        return of_functional(input, kernel_size, stride, padding, dilation, ceil_mode)

    for body, module in ((of_functional, "F"), (of_torch, "torch")):
        describe(
            body,
            f"The largest element of each window of the last {LAST[ndim]}.",
            f"{module}.{name}({SAMPLES[ndim]}, 2)",
        )
    takes = _pooled(ndim)
    of_windows = in_numpy(max_pool(ndim))(of_functional)
    function(name, module="torch.nn.functional", takes=takes)(of_windows)
    function(name, takes=takes)(of_torch)


def averaged(name: str, input: Tensor, ndim: int, averaging: Averaging) -> Tensor:
    """The mean of every window."""
    _check_windows(name, input, ndim, averaging.windows, averaging.ceil_mode)
    if ndim > 1:
        return _AVERAGE[ndim].apply(input, averaging)
    dim = input.array.ndim - 1
    averaging.windows = _flattened(averaging.windows)
    return squeeze_dim.apply(_AVERAGE[2].apply(unsqueeze.apply(input, dim), averaging), dim)


def mean_of_windows(input: Tensor, windows: Windows) -> Tensor:
    """The mean of every window of two or three dimensions."""
    return _AVERAGE[len(windows.kernel)].apply(input, Averaging(windows, False, True, None))


@function("avg_pool1d", also="torch.nn.functional", numpy=average_pool(1), takes=_pooled(1))
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window over the last dimension; see `avg_pool2d`.

    Example: torch.avg_pool1d(arange(6.).reshape(1, 1, 6), 2)
    """
    windows = windows_of("avg_pool1d", 1, kernel_size, stride, padding)
    averaging = Averaging(windows, ceil_mode, count_include_pad, None)
    return averaged("avg_pool1d", input, 1, averaging)


def _expose_avg_pool(ndim: int) -> None:
    name = f"avg_pool{ndim}d"

    def avg_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        windows = windows_of(name, ndim, kernel_size, stride, padding)
        if divisor_override == 0:
            raise runtime_error(f"{name}(): divisor must not be 0", "divisor must be not zero")
        averaging = Averaging(windows, ceil_mode, count_include_pad, divisor_override)
        return averaged(name, input, ndim, averaging)

    describe(
        avg_pool,
        f"The mean of each window of the last {LAST[ndim]}.",
        f"F.{name}({SAMPLES[ndim]}, 2)",
    )
    of_windows = in_numpy(average_pool(ndim))(avg_pool)
    function(name, module="torch.nn.functional", takes=_pooled(ndim))(of_windows)


_expose_max_pool(1)
for _ndim in (2, 3):
    _expose_max_pool(_ndim)
    _expose_avg_pool(_ndim)


def _expose_lp_pool(ndim: int) -> None:
    name = f"lp_pool{ndim}d"

    def lp_pool(
        input: Tensor,
        norm_type: Any,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        if ndim == 1 and type(kernel_size) is not int:
            raise type_error(f"{name}(): kernel_size must be an integer")
        windows = windows_of(name, ndim, kernel_size, stride, 0)
        if isinf(norm_type):
            sizes = abs_op.apply(input)
            if norm_type > 0:
                return _max_pool(name, sizes, ndim, windows, ceil_mode)[0]
            return neg.apply(_max_pool(name, neg.apply(sizes), ndim, windows, ceil_mode)[0])
        count = prod(windows.kernel)
        averaging = Averaging(windows, ceil_mode, True, None)
        pooled = averaged(name, power(input, norm_type), ndim, averaging)
        positive = mul.apply(sign.apply(pooled), relu_op.apply(abs_op.apply(pooled)))
        return power(mul.apply(positive, count), 1.0 / norm_type)

    describe(
        lp_pool,
        f"The p-norm of each window of the last {LAST[ndim]}.",
        f"F.{name}({SAMPLES[ndim]}, 2, 2)",
    )
    function(name, module="torch.nn.functional", takes=_pooled(ndim))(lp_pool)


for _ndim in (1, 2, 3):
    _expose_lp_pool(_ndim)


# --- windows that follow from the output's sizes --------------------------------------------------


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


def _output_size(name: str, requested: Any, input: Tensor, ndim: int) -> Sizes:
    """The sizes asked for; of several, None keeps the input's. Raises E202, E204 or E301 for what
    is no size.
    """
    shape = input.array.shape
    argument = f"{name}(): argument 'output_size' (position 2) must be tuple of ints,"
    listed = isinstance(requested, (tuple, list) if ndim == 1 else (tuple, list, str))
    if not listed and type(requested) is not int:
        kind = type_name(requested)
        raise type_error(
            f"{argument} not {kind}"
            if ndim == 1 or kind == "bool"
            else f"object of type '{kind}' has no len()"
        )
    wanted = tuple(requested) if listed else (requested,) * ndim
    if ndim > 1 and listed:
        if len(wanted) >= len(shape):
            raise value_error(f"Input dimension should be at least {len(wanted) + 1}")
        own = shape[len(shape) - len(wanted) :]
        wanted = tuple(o if w is None else w for w, o in zip(wanted, own, strict=True))
    for at, size in enumerate(wanted):
        if type(size) is not int:
            raise type_error(f"{argument} but found element of type {type_name(size)} at pos {at}")
    if len(wanted) != ndim:
        raise runtime_error(
            f"{name}() argument 'output_size' should contain one int (got {len(wanted)})"
            if ndim == 1
            else f"{name}: output_size must be {ndim}"
            if "avg" in name
            else f"{name}(): internal error: output_size.size() must be {ndim}"
        )
    if min(wanted) < 0:
        raise runtime_error(_negative_size(name, wanted, shape))
    return wanted


def _negative_size(name: str, wanted: Sizes, shape: Sizes) -> str:
    """PyTorch's text for it; in one dimension it pools two."""
    whole = (1, *wanted) if len(wanted) == 1 else wanted
    if "max" in name:
        made = [*shape[: len(shape) - len(wanted)], *whole]
        below = next(size for size in whole if size < 0)
        return f"Trying to create tensor with negative dimension {below}: {made}"
    name = name.replace("1d", "2d")
    listed = f"{whole[0]}, {','.join(map(str, whole[1:]))}"
    return (
        f"{name}: elements of output_size must be greater than or equal to 0 but received"
        f" {{{listed}}}"
    )


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
        sizes = _output_size(mean_name, output_size, input, ndim)
        if all(size == 1 for size in sizes):
            # One window is PyTorch's mean, which takes complex numbers.
            check_floating_dtype("mean", input.dtype)
            if not input.dtype.is_complex:
                check_pooled(mean_name, input, ndim, 0)
            return adaptive_average(input, sizes)
        check_pooled(mean_name, input, ndim, ndim if ndim < 3 else _of_one_sample(input))
        check_floating(mean_name, input)
        return adaptive_average(input, sizes)

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        check_pooled(max_name, input, ndim, _of_one_sample(input))
        sizes = _output_size(max_name, output_size, input, ndim)
        check_floating(max_name, input)
        if ndim > 1:
            results = _LARGEST[ndim].apply(input, sizes)
        else:
            dim = input.array.ndim - 1
            raised = _LARGEST[2].apply(unsqueeze.apply(input, dim), (1, *sizes))
            results = tuple(squeeze_dim.apply(result, dim) for result in raised)
        return results if return_indices else results[0]

    in_numpy(adaptive_mean(ndim))(adaptive_avg_pool)
    takes = _pooled(ndim)
    also = "torch" if ndim == 1 else ""
    function(mean_name, module="torch.nn.functional", also=also, takes=takes)(adaptive_avg_pool)
    function(max_name, module="torch.nn.functional", takes=takes)(adaptive_max_pool)
    windows = f"windows that divide the last {LAST[ndim]} evenly."
    if ndim == 1:
        windows = "windows that divide the last dimension into `output_size`."
    describe(adaptive_avg_pool, f"Means of {windows}", f"F.{mean_name}({SAMPLES[ndim]}, 2)")
    describe(adaptive_max_pool, f"Maxima of {windows}", f"F.{max_name}({SAMPLES[ndim]}, 2)")
    if ndim == 1:

        def with_indices(input: Tensor, output_size: Any) -> Any:
            return adaptive_max_pool(input, output_size, True)

        with_indices.__doc__ = adaptive_max_pool.__doc__
        function(max_name, takes=takes)(with_indices)


for _ndim in (1, 2, 3):
    _expose(_ndim)


# --- unpooling, and windows at random positions ---------------------------------------------------


# --- max_unpool ---------------------------------------------------------------------------------


def _unpooled(self: Any, indices: Any, output_size: Sizes) -> Any:
    ndim = len(output_size)
    planes, size = prod(self.shape[:-ndim]), prod(output_size)
    if np.any((indices < 0) | (indices >= size)):
        raise index_error(
            f"max_unpool{ndim}d(): an index lies outside the {size} elements of the output",
            raises="RuntimeError",
        )
    result = module_of(self).zeros((planes, size), self.dtype)
    rows = (planes, prod(self.shape[-ndim:]))
    np.put_along_axis(result, indices.reshape(rows), self.reshape(rows), 1)
    return result.reshape(*self.shape[:-ndim], *output_size)


def _unpooled_decomposed(self: Tensor, indices: Tensor, output_size: Sizes) -> Tensor:
    leading, ndim = tuple(self.shape[: -len(output_size)]), len(output_size)
    rows, places = (reshape(each, (*leading, prod(each.shape[-ndim:]))) for each in (self, indices))
    empty = zeros(self, (*leading, prod(output_size)))
    return reshape(scatter_tensor(empty, len(leading), places, rows), (*leading, *output_size))


def _unpool(ndim: int) -> Op:
    return op(
        f"max_unpool{ndim}d",
        _unpooled,
        decomposition=_unpooled_decomposed,
        constant=("indices",),
        self=lambda grad, indices: taken_at(grad, indices, ndim),
        raises=BY_VALUES,
    )


_UNPOOL = {2: _unpool(2), 3: _unpool(3)}


def _unpooled_sizes(
    name: str, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, output_size: Any
) -> Sizes:
    default = tuple(
        (size - 1) * step + window - 2 * pad
        for size, step, window, pad in zip(sizes, stride, kernel, padding, strict=True)
    )
    if output_size is None:
        return default
    requested = tuple(output_size)[-len(sizes) :]
    for wanted, usual, step in zip(requested, default, stride, strict=False):
        if not usual - step < wanted < usual + step:
            raise value_error(
                f"{name}(): the output size {requested} cannot have been pooled to {sizes}"
            )
    return requested


def _expose_unpool(ndim: int) -> None:
    name = f"max_unpool{ndim}d"

    @function(name, module="torch.nn.functional")
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        if indices.dtype.name != "int64":
            raise dtype_error(
                f"elements in indices should be type int64 but got: {indices.dtype.scalar_type}"
            )
        shape = input.array.shape
        if shape != indices.array.shape or len(shape) not in (ndim + 1, ndim + 2):
            raise shape_error(
                f"{name}(): an input of shape {shape} and indices of {indices.array.shape}",
                text=None
                if shape == indices.array.shape
                else "Expected shape of indices to be same as that of the input tensor"
                f" ({list(shape)}) but got indices tensor with shape:"
                f" {list(indices.array.shape)}",
            )
        check_filled(name, input, ndim + 2)
        check_floating(name, input)
        kernel = per_dimension(name, "kernel_size", kernel_size, ndim)
        steps = per_dimension(name, "stride", kernel_size if stride is None else stride, ndim)
        pads = per_dimension(name, "padding", padding, ndim, 0)
        counts = _unpooled_sizes(name, shape[-ndim:], kernel, steps, pads, output_size)
        if ndim > 1:
            return _UNPOOL[ndim].apply(input, indices, counts)
        raised = unsqueeze.apply(input, -1), unsqueeze.apply(indices, -1)
        return squeeze_dim.apply(_UNPOOL[2].apply(*raised, (*counts, 1)), len(shape))

    opening, closing = "[" * (ndim + 2), "]" * (ndim + 2)
    picked = ("1., 2.", "1, 2") if ndim == 1 else ("1.", "3")
    describe(
        max_unpool,
        f"What max_pool{ndim}d picked, put back where it was; 0 elsewhere. Raises E301 where the"
        " shapes do not fit, E204 for an output size that cannot be.",
        f"F.{name}({', '.join(f'tensor({opening}{each}{closing})' for each in picked)}, 2)",
    )


for _ndim in (1, 2, 3):
    _expose_unpool(_ndim)

# --- fractional_max_pool ------------------------------------------------------------------------


def _starts(sample: Any, size: int, count: int, window: int) -> Any:
    """Where the windows of a dimension begin, for each sample: shape (..., count)."""
    if count < 2:
        return module_of(sample).full((*sample.shape, count), size - window)
    step = (size - window) / (count - 1)
    positions = np.arange(count - 1)
    starts = np.trunc((positions + sample[..., None]) * step) - np.trunc(sample[..., None] * step)
    last = module_of(sample).full((*sample.shape, 1), size - window)
    return np.concatenate([starts.astype(np.int64), last], -1)


def _fractional_array(
    self: Any, kernel_size: Sizes, output_size: Sizes, samples: Any
) -> tuple[Any, Any]:
    """The largest of each window and its position in row order; a nan is larger than anything."""
    ndim = len(kernel_size)
    sizes = self.shape[-ndim:]
    planes = self.reshape(-1, prod(sizes))
    samples = samples.reshape(len(planes), ndim)
    positions: Any = np.zeros((len(planes), *(1,) * (2 * ndim)), np.int64)
    for dim, (size, count, window) in enumerate(zip(sizes, output_size, kernel_size, strict=True)):
        # The samples of two dimensions are drawn for the last one first, those of three in order.
        starts = _starts(samples[:, 1 - dim if ndim == 2 else dim], size, count, window)
        along = starts[:, :, None] + np.arange(window)
        aligned = [len(planes), *(1,) * (2 * ndim)]
        aligned[1 + dim], aligned[1 + ndim + dim] = count, window
        positions = positions + along.reshape(aligned) * prod(sizes[dim + 1 :])
    positions = np.broadcast_to(positions, (len(planes), *output_size, *kernel_size))
    positions = positions.reshape(len(planes), prod(output_size), prod(kernel_size))
    values = planes[np.arange(len(planes))[:, None, None], positions]
    ranked = np.where(np.isnan(values), np.inf, values)
    best = np.argmax(ranked, -1)[..., None]
    shape = (*self.shape[:-ndim], *output_size)
    return (
        np.take_along_axis(values, best, -1).reshape(shape),
        np.take_along_axis(positions, best, -1).reshape(shape),
    )


# Samples outside of [0, 1) put a window outside of the input.
_FRACTIONAL = {
    ndim: picking(f"fractional_max_pool{ndim}d", ndim, _fractional_array, raises=BY_VALUES)
    for ndim in (2, 3)
}


def _ratios(name: str, output_ratio: Any, ndim: int) -> Any:
    """The ratio of each dimension; one number for all is taken over three alone, as in PyTorch."""
    if not isinstance(output_ratio, (tuple, list)):
        if ndim == 3:
            return (output_ratio,) * ndim
        raise type_error(
            f"{name}(): 'output_ratio' has a number for each dimension, such as ({'0.5, ' * ndim})",
            text=f"object of type '{type_name(output_ratio)}' has no len()",
        )
    short = len(output_ratio) < ndim
    if short or (len(output_ratio) > ndim and ndim == 2):
        raise value_error(
            f"{name}(): 'output_ratio' has {len(output_ratio)} numbers for {ndim} dimensions",
            text="tuple index out of range"
            if short
            else f"{name} requires output_ratio to either be a single Int or tuple of Ints.",
            raises="IndexError" if short else None,
        )
    return output_ratio[:ndim]


_LEAST = -(1 << 63)
"""The least of PyTorch's integers."""


def _whole(name: str, argument: str, value: Any, ndim: int, least: int) -> Sizes:
    """The whole number of each dimension, or one for all; a list of one is none, unlike elsewhere
    among pools.
    """
    if isinstance(value, (tuple, list)) and len(value) != ndim:
        three = "three " if ndim == 3 else ""
        raise runtime_error(
            f"{name}(): '{argument}' has {len(value)} numbers for {ndim} dimensions",
            text=f"{name}: {argument} must either be a single Int or tuple of {three}Ints",
        )
    return per_dimension(name, argument, value, ndim, least)


_IN_FRACTIONAL = {2: "fractional_max_pool2d()", 3: "fractional_max_pool3d_out()"}
"""What PyTorch's errors call the two."""


def _checked_samples(samples: Tensor, input: Tensor, ndim: int) -> Any:
    """The numbers that choose the windows, (N, C, ndim); raises where they are not."""
    shape, channels = samples.array.shape, input.array.shape[-ndim - 1]
    batch = 1 if input.array.ndim == ndim + 1 else input.array.shape[0]
    what, text = "_random_samples", ""
    if samples.dtype is not input.dtype:
        text = f"Expect {what} to have the same dtype as input"
    elif len(shape) != 3:
        text = f"Expect {what} to have 3 dimensions, got {len(shape)}"
    elif shape[0] < batch:
        text = f"Expect {what}.size(0) no less then input batch size."
    elif shape[1] != channels:
        text = f"Expect {what}.size(1) equals to input channel size."
    elif shape[2] != ndim:
        text = f"Expect {what}.size(2) equals to {ndim}; got {shape[2]}."
    if text:
        raise runtime_error(text)
    return samples.array[:batch]


def _check_fractional(name: str, shape: Sizes, kernel: Sizes, counts: Sizes) -> None:
    """Raise E204 or E301 where so many windows are not found in an input of a shape."""
    ndim = len(kernel)
    called = _IN_FRACTIONAL[ndim]
    if 0 in shape[1:]:
        raise shape_error(
            f"{called}: Expected input to have non-zero size for non-batch dimensions, but"
            f" got{list(shape)} with dimension {shape.index(0, 1)} being empty."
        )
    words = ("time", "height", "width")[-ndim:]
    for size, count, window, word in zip(shape[-ndim:], counts, kernel, words, strict=True):
        # Over three dimensions PyTorch wants an element more than the windows take.
        if count + window - 1 + (ndim == 3) > size:
            raise shape_error(
                f"{name}(): {count} windows of {window} elements do not fit into {size}",
                text=f"{called}: pool {word} {window} too large relative to input {word} {size}",
            )
    if min(counts) < 0:
        raise runtime_error(_negative_size(name, counts, shape))


def _expose_fractional(ndim: int) -> None:
    name = f"fractional_max_pool{ndim}d"

    ranks = f"{ndim + 1}D or {ndim + 2}D"
    takes = {
        "input": TensorSpec(
            ndim + 1,
            ndim + 2,
            f"{_IN_FRACTIONAL[ndim]}: Expected {ranks} tensor, but got: {{sizes[input]}}",
            plain="{name}(): an input of shape {shape}",
        )
    }

    @function(name, module="torch.nn.functional", effects=(RANDOM,), takes=takes)
    def fractional_max_pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        check_floating(name, input)
        shape = input.array.shape
        sizes = shape[-ndim:]
        if output_size is None:
            if output_ratio is None:
                raise value_error(
                    f"{name} requires specifying either an output_size or an output_ratio"
                )
            ratios = _ratios(name, output_ratio, ndim)
            output_size = tuple(int(n * ratio) for n, ratio in zip(sizes, ratios, strict=True))
        kernel = _whole(name, "kernel_size", kernel_size, ndim, 1)
        counts = _whole(name, "output_size", output_size, ndim, _LEAST)
        _check_fractional(name, shape, kernel, counts)
        if _random_samples is None:
            batch = 1 if len(shape) == ndim + 1 else shape[0]
            drawn = (batch, shape[-ndim - 1], ndim)
            samples = uniform_array(name, drawn, input.dtype, None, 0.0, 1.0)
        else:
            samples = _checked_samples(_random_samples, input, ndim)
        values, indices = _FRACTIONAL[ndim].apply(input, kernel, counts, samples)
        return (values, indices) if return_indices else values

    describe(
        fractional_max_pool,
        "The largest of windows at random places, as many as `output_size` says, or as"
        " `output_ratio` says of the input's. Raises E301 where the windows do not fit, E204 unless"
        " one of the two is given.",
        f"F.{name}({SAMPLES[ndim]}, {4 - ndim}, output_size={4 - ndim})",
    )


for _ndim in (2, 3):
    _expose_fractional(_ndim)
