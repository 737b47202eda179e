"""Convolution of many channels: the bilinear map and its two adjoints, as products of matrices.

Every window of the input becomes a column of a matrix (im2col), and one product of matrices
computes a block of samples. Where windows are adjacent, columns are read from the padded input in
long runs: rows are contiguous, so the inputs of one kernel element are one run, from the first
window to the last. Between two rows such a run holds a few columns that belong to no window; the
output leaves them out.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import in_order, new_empty, new_zeros
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.windows.windows import Sizes, Windows
from gradcli.arrays.layout.strides import window
from gradcli.arrays.threads import cores, in_turns

_BLOCK = 1 << 19
"""Elements of columns that are made at a time: columns are larger than the input by the size of the
kernel.
"""


class Columns:
    """Columns of all windows over inputs of some size.

    Attributes:
        windows: the geometry of the windows.
        sizes: the sizes of the input.
        counts: how many windows there are along each dimension.
        reach: the sizes of the padded input.
        steps: the strides of the padded input, in elements.
        side_by_side: whether a window begins at every element.
        length: how many columns one sample makes.
    """

    __slots__ = ("counts", "length", "reach", "side_by_side", "sizes", "steps", "windows")

    def __init__(self, windows: Windows, sizes: Sizes, counts: Sizes) -> None:
        self.windows = windows
        self.sizes = sizes
        self.counts = counts
        self.reach = windows.reach(sizes, counts)
        self.steps = tuple(prod(self.reach[dim + 1 :]) for dim in range(len(sizes)))
        self.side_by_side = all(stride == 1 for stride in windows.stride)
        self.length = prod(counts)
        if self.side_by_side:
            self.length = 1 + sum(
                (count - 1) * step for count, step in zip(counts, self.steps, strict=True)
            )

    def blocks(self, samples: int, channels: int) -> list[slice]:
        """The samples in blocks, so that the columns of a block do not grow too large."""
        each = channels * prod(self.windows.kernel) * self.length
        step = max(1, _BLOCK // max(1, each))
        return [slice(start, min(samples, start + step)) for start in range(0, samples, step)]

    def of(self, input: Any) -> Any:
        """The columns (C, elements of a window, N * length) of an input (N, C, *sizes)."""
        samples, channels = input.shape[:2]
        padded = new_zeros(input, (channels, samples, *self.reach))
        padded[self.windows.inner(self.sizes)] = input.swapaxes(0, 1)
        strides = [step // padded.itemsize for step in padded.strides]
        windows = self.windows
        offsets = [s * d for s, d in zip(strides[2:], windows.dilation, strict=True)]
        if self.side_by_side:
            shape: Sizes = (channels, *windows.kernel, samples, self.length)
            along = [1]
        else:
            shape = (channels, *windows.kernel, samples, *self.counts)
            along = [s * d for s, d in zip(strides[2:], windows.stride, strict=True)]
        shown = window(padded, shape, (strides[0], *offsets, strides[1], *along), 0)
        return shown.reshape(channels, prod(windows.kernel), samples * self.length)

    def added(self, columns: Any) -> Any:
        """The adjoint of `of`: an array (N, C, *sizes) with every column element added where it
        was read.
        """
        channels, _, width = columns.shape
        samples = width // self.length
        padded = new_zeros(columns, (channels, samples, *self.reach))
        if self.side_by_side:
            rows = padded.reshape(channels, samples, prod(self.reach))
            pieces = columns.reshape(channels, -1, samples, self.length)
            for number, (place, _) in enumerate(self.windows.elements(self.counts)):
                start = sum(
                    i * d * step
                    for i, d, step in zip(place, self.windows.dilation, self.steps, strict=True)
                )
                rows[:, :, start : start + self.length] += pieces[:, number]
        else:
            pieces = columns.reshape(channels, -1, samples, *self.counts)
            for number, (_, where) in enumerate(self.windows.elements(self.counts)):
                padded[where] += pieces[:, number]
        inside = padded[self.windows.inner(self.sizes)]
        return in_order(inside.swapaxes(0, 1))

    def placed(self, output: Any) -> Any:
        """An output (N, O, *counts) as rows (O, N * length): zero where there is no window."""
        samples, channels = output.shape[:2]
        if not self.side_by_side:
            return output.swapaxes(0, 1).reshape(channels, samples * self.length)
        rows = new_zeros(output, (channels, samples * self.length))
        self.shown(rows)[...] = output
        return rows

    def shown(self, rows: Any) -> Any:
        """Rows (O, N * length) as an output (N, O, *counts), on the same memory."""
        channels, width = rows.shape
        samples = width // self.length
        if not self.side_by_side:
            return rows.reshape(channels, samples, *self.counts).swapaxes(0, 1)
        strides = (self.length, rows.strides[0] // rows.itemsize, *self.steps)
        return window(rows, (samples, channels, *self.counts), strides, 0)


def _stacked(matrix: Any, groups: int) -> Any:
    """A matrix as one per group of its rows."""
    return matrix.reshape(groups, matrix.shape[0] // groups, *matrix.shape[1:])


def _weights(weight: Any, groups: int) -> Any:
    """The weights (O, C / groups, *kernel) as a matrix per group."""
    return _stacked(weight.reshape(weight.shape[0], prod(weight.shape[1:])), groups)


def _grouped(columns: Any, groups: int) -> Any:
    """Columns (C, elements, width) as (groups, elements of all its channels, width)."""
    channels, elements, width = columns.shape
    return columns.reshape(groups, channels // groups * elements, width)


def _side_by_side(windows: Windows, groups: int) -> bool:
    """Whether windows over images move by one and read adjacent elements of all channels."""
    return groups == 1 and windows.stride == windows.dilation == (1, 1)


def convolve(
    input: Any, weight: Any, windows: Windows, groups: int, counts: Sizes, bias: Any = None
) -> Any:
    """Every window of the input (N, C, *sizes) times the weights (O, C / groups, *kernel), plus a
    bias per channel: an array (N, O, *counts).
    """
    samples, channels = input.shape[:2]
    outputs = weight.shape[0]
    if _side_by_side(windows, groups) and input.size >= _SMALL:
        in_core = in_c.convolution(input, weight, windows.padding, bias)
        if in_core is not None:
            return in_core
    columns = Columns(windows, input.shape[2:], counts)
    matrices = _weights(weight, groups)
    output = new_empty(input, (samples, outputs, *counts))

    def compute(block: slice) -> None:
        rows = np.matmul(matrices, _grouped(columns.of(input[block]), groups))
        output[block] = columns.shown(rows.reshape(outputs, -1))

    in_turns(columns.blocks(samples, channels), compute)
    if bias is not None:
        output += bias.reshape(-1, *(1,) * len(counts))
    return output


def input_gradient(grad: Any, weight: Any, windows: Windows, groups: int, sizes: Sizes) -> Any:
    """The adjoint of `convolve` in its input, whose last dimensions have the given sizes."""
    samples = len(grad)
    channels = weight.shape[1] * groups
    around = tuple(k - 1 - p for k, p in zip(windows.kernel, windows.padding, strict=True))
    if _side_by_side(windows, groups) and min(around) >= 0 and grad.size >= _SMALL:
        turned = weight.swapaxes(0, 1)[:, :, ::-1, ::-1]
        in_core = in_c.convolution(grad, turned, around, None)
        if in_core is not None:
            return in_core
    columns = Columns(windows, sizes, grad.shape[2:])
    matrices = _weights(weight, groups).swapaxes(1, 2)
    output = new_empty(grad, (samples, channels, *sizes))

    def compute(block: slice) -> None:
        product = np.matmul(matrices, _stacked(columns.placed(grad[block]), groups))
        output[block] = columns.added(product.reshape(channels, prod(windows.kernel), -1))

    in_turns(columns.blocks(samples, channels), compute)
    return output


def weight_gradient(input: Any, grad: Any, windows: Windows, groups: int) -> Any:
    """The adjoint of `convolve` in its weights."""
    samples, channels = input.shape[:2]
    outputs, counts = grad.shape[1], grad.shape[2:]
    shape = (outputs, channels // groups, *windows.kernel)
    columns = Columns(windows, input.shape[2:], counts)
    if _side_by_side(windows, groups) and input.size + grad.size >= _SMALL:
        in_core = in_c.weight_gradient(input, grad, shape, windows.padding)
        if in_core is not None:
            return in_core
    dtype = input.dtype
    if dtype.char == "f" and input.size + grad.size < _SMALL:
        input, grad = input.astype(np.float64), grad.astype(np.float64)
    blocks = columns.blocks(samples, channels)
    parts = min(cores(), len(blocks))
    sums = new_zeros(input, (parts, groups, prod(shape[1:]), outputs // groups))

    def compute(part: int) -> None:
        for block in blocks[part :: len(sums)]:
            windows_of_part = _grouped(columns.of(input[block]), groups)
            rows = _stacked(columns.placed(grad[block]), groups)
            sums[part] += np.matmul(windows_of_part, rows.swapaxes(1, 2))

    in_turns(range(len(sums)), compute)
    return sums.sum(0).swapaxes(1, 2).astype(dtype, order="C").reshape(shape)


_SMALL = 1 << 12
"""Elements below which sums over all windows are computed in float64: that costs little, and in
short sums BLAS is less exact than PyTorch.
"""
