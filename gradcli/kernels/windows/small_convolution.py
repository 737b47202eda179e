"""Small correlations of float32 numbers in the order in which PyTorch adds on a CPU with two
threads.

PyTorch's library for matrices multiplies columns as `gradcli.kernels.windows.convolution` does. Its
library for convolutions rounds a product and the sum it is added to once. Where it reads windows as
they lie, it goes through a window place by place and at each place through the channels, and sums
gradients of weights over half of the samples in each thread.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from gradcli.kernels.linalg.small_matmul import ordered_product
from gradcli.kernels.sums.cascade_sum import ordered_sum
from gradcli.kernels.sums.fused_sums import (
    added,
    fused_sum,
    sums_in_lanes,
    sums_in_short_lanes,
    sums_in_turn,
)
from gradcli.kernels.windows.convolution_kernels import Kernels
from gradcli.kernels.windows.windows import Sizes, Windows

_FEW = 1 << 15
"""So many products are added up in order: what is left where they cancel is then what PyTorch
leaves. More go through NumPy's matrix product, which is quicker and adds in an order of its own.
"""

_LONGEST = 1024
"""Products that one sum in order takes at most, for the same reason."""


def is_ordered(array: Any, output: Sizes, products: int) -> bool:
    """Whether an output of some shape, each number of it a sum of products, is made in order."""
    return (
        type(array) is np.ndarray
        and array.dtype.char == "f"
        and 0 < products <= _LONGEST
        and 0 < prod(output) * products <= _FEW
    )


# --- windows times weights ----------------------------------------------------------------------


def correlated_in_order(
    input: Any, weight: Any, windows: Windows, groups: int, counts: Sizes, bias: Any
) -> Any:
    """`correlated`, to which a number per channel is added; `bias` may be None."""
    samples = len(input)
    outputs, channels, *_ = weight.shape
    each, length = outputs // groups, prod(counts)
    kernels = Kernels(windows, samples, each, channels, groups)
    columns = windows.columns(input, counts)
    shape = (samples, outputs, *counts)
    if kernels.one_product:
        start = None if bias is None else np.repeat(bias[:, None], length, axis=1)
        columns = columns.reshape(-1, length)
        return ordered_product(weight.reshape(outputs, -1), columns, start=start).reshape(shape)
    # (channels, places, samples, groups, outputs of a group, windows)
    read = columns.reshape(samples, groups, 1, channels, -1, length)
    read = read.transpose(3, 4, 0, 1, 2, 5).astype(np.float64)
    factors = weight.reshape(groups, each, channels, -1).transpose(2, 3, 0, 1)
    products = read * factors[:, :, None, :, :, None]
    if bias is not None:
        bias = bias.reshape(groups, each, 1)
    if kernels.begins_with_bias and bias is not None:
        products[0, 0] += bias
        bias = None
    if kernels.columns or kernels.points:
        output = fused_sum(products.reshape(-1, *products.shape[2:]))
        return (output if bias is None else output + bias).reshape(shape)
    return _by_channels(products, kernels.block, bias).reshape(shape)


def _by_channels(products: Any, block: int, bias: Any = None) -> Any:
    """The sum of products (channels, places, ...) over both, place by place, some channels at a
    time; the bias is added to the first of them.
    """
    total = bias
    for first in range(0, len(products), block):
        part = products[first : first + block].swapaxes(0, 1)
        part = fused_sum(part.reshape(-1, *products.shape[2:]))
        total = part if total is None else total + part
    return total


# --- the transpose in the input -----------------------------------------------------------------


def spread_in_order(grad: Any, weight: Any, windows: Windows, groups: int, sizes: Sizes) -> Any:
    """`spread`."""
    samples, outputs, *_ = grad.shape
    counts = grad.shape[2:]
    channels = weight.shape[1]
    each = outputs // groups
    kernels = Kernels(windows, samples, each, channels, groups)
    if kernels.one_product:
        matrix = weight.reshape(outputs, -1).T
        columns = ordered_product(matrix, grad.reshape(outputs, -1), left_by_columns=True)
        return windows.folded(columns.reshape(1, channels, -1, prod(counts)), sizes, counts)
    factors = weight.reshape(groups, each, channels, -1)
    if kernels.spread_columns:
        # (outputs of a group, samples, groups, channels and places, windows)
        read = grad.reshape(samples, groups, each, 1, -1).transpose(2, 0, 1, 3, 4)
        wide = factors.reshape(groups, each, -1, 1).swapaxes(0, 1).astype(np.float64)
        columns = fused_sum(read * wide[:, None])
        columns = columns.reshape(samples, groups * channels, -1, prod(counts))
        return windows.folded(columns, sizes, counts, reverse=len(counts) == 3)
    # (outputs of a group, places, samples, groups, channels, sizes)
    reach = windows.reach(sizes, counts)
    products = np.zeros((each, prod(windows.kernel), samples, groups, channels, *reach))
    source = grad.reshape(samples, groups, each, 1, *counts).astype(np.float64)
    source = source.transpose(2, 0, 1, *range(3, source.ndim))
    factors = factors.transpose(3, 1, 0, 2)
    factors = factors.reshape(-1, each, 1, groups, channels, *(1,) * len(sizes))
    for number, (_, where) in enumerate(windows.elements(counts)):
        products[:, number][where] = source * factors[number]
    apart = groups == 1 and any(stride > 1 for stride in windows.stride)
    padded = _by_channels(products, each if apart or kernels.points else kernels.block)
    padded = padded.reshape(samples, groups * channels, *reach)
    return np.ascontiguousarray(padded[windows.inner(sizes)])


# --- the transpose in the weights ---------------------------------------------------------------


def paired_in_order(input: Any, grad: Any, windows: Windows, groups: int) -> Any:
    """`paired`, whose result is not yet in shape."""
    samples, outputs, *counts = grad.shape
    each, channels = outputs // groups, input.shape[1] // groups
    kernels = Kernels(windows, samples, each, channels, groups)
    columns = windows.columns(input, tuple(counts))
    length = prod(counts)
    if kernels.one_product:
        columns = columns.reshape(-1, length).T
        return ordered_product(grad.reshape(outputs, -1), columns, right_by_columns=True)
    # (samples, windows, groups, outputs of a group, elements of a window)
    read = columns.reshape(samples, groups, 1, -1, length).transpose(0, 4, 1, 2, 3)
    factors = grad.reshape(samples, groups, each, 1, length).transpose(0, 4, 1, 2, 3)
    products = read.astype(np.float64) * factors
    products = products.reshape(-1, *products.shape[2:])
    shared = max(each, channels) > kernels.register
    if kernels.points:
        return _of_points(products, samples, counts[-1], shared)
    # Of three dimensions, slices are shared among threads as samples are.
    area = prod(counts[-2:])
    slices = products.reshape(-1, area, *products.shape[1:])
    half = len(slices) if shared else _half(len(slices))
    if kernels.paired_columns:
        half = len(slices) if groups > 1 else _half(samples) * (length // area)
    shares = [share for share in (slices[:half], slices[half:]) if len(share)]
    if not kernels.paired_columns:
        return _of_threads(shares)
    sums = sums_in_short_lanes if each == 1 else sums_in_lanes if each < 16 else sums_in_turn
    return added([added([part for piece in share for part in sums(piece)]) for share in shares])


def _of_threads(shares: list[Any]) -> Any:
    """The sum of what one or two threads sum, of which each has slices."""
    lines = [share.reshape(-1, *share.shape[2:]) for share in shares]
    if len(lines) == 2 and len(lines[0]) == len(lines[1]):
        return added(list(fused_sum(np.stack(lines, 1))))  # in half as many steps
    return added([fused_sum(line) for line in lines])


def _of_points(products: Any, samples: int, row: int, shared: bool) -> Any:
    """The sum over the first axis, sample by sample. Threads share pieces of samples."""
    length = len(products) // samples
    middle = 0
    if not shared:
        piece = max((size for size in range(7, 17) if length % size == 0), default=row)
        middle = _half(len(products) // piece) * piece
    cuts = sorted({*range(0, len(products), length), middle, len(products)})
    totals = []
    for inside in ([cut for cut in cuts if cut <= middle], [cut for cut in cuts if cut >= middle]):
        parts = [fused_sum(products[start:stop]) for start, stop in pairwise(inside)]
        totals += [added(parts)] if parts else []
    return added(totals)


def _half(count: int) -> int:
    """The share of the first of two threads."""
    return (count + 1) // 2


# --- the bias -----------------------------------------------------------------------------------


def channel_sums_in_order(
    grad: Any, windows: Windows, channels: int, groups: int, transposed: bool
) -> Any:
    """The sum of each channel of (N, O, *counts): the gradient of the bias of a convolution of an
    input of some channels.
    """
    samples, outputs, *counts = grad.shape
    each, channels = outputs // groups, channels // groups
    if transposed:
        kernels = Kernels(windows, samples, channels, each, groups)
    else:
        kernels = Kernels(windows, samples, each, channels, groups)
    if kernels.one_product:
        return ordered_sum(grad, (0, *range(2, grad.ndim)))
    lines = grad.swapaxes(0, 1)  # (O, N, *counts)
    if transposed:
        # Channels that fill no register lie one behind the other, and are added sample by sample.
        apart = kernels.paired_columns or (each < 4 and not kernels.points and groups == 1)
        return _in_turn(lines, samples if apart else 1)
    if kernels.paired_columns:
        return _in_turn(lines, prod(grad.shape[:1] + grad.shape[2:-1]))
    slices = samples if kernels.points else samples * prod(counts[:-2])
    half = slices if each > kernels.register else _half(slices)
    lines = lines.reshape(outputs, slices, -1)
    return added([_in_turn(part, 1) for part in (lines[:, :half], lines[:, half:]) if part.size])


def _in_turn(lines: Any, parts: int) -> Any:
    """The sum of each line of so many parts, themselves summed first: one after the other."""
    sums = np.add.accumulate(lines.reshape(len(lines), parts, -1), axis=2)[..., -1]
    return np.add.accumulate(sums, axis=1)[:, -1]
