"""Convolution, pooling and their relatives as functions of NumPy's, which an emitted file defines.

Each goes through the places of a kernel, and reads what all windows have there as one slice.
"""

from __future__ import annotations

_PLACES = """\
    for number in range(math.prod({kernel})):
        at = []
        for size in reversed({kernel}):
            at.insert(0, number % size)
            number //= size
        window = tuple(
            slice(a * d, a * d + s * (count - 1) + 1, s)
            for a, d, s, count in zip(at, dilation, stride, {counts})
        )
"""
"""The loop over the places of a kernel; `window` is where the windows have that place."""

_LISTS = """\
    {names} = ([v] * n if type(v) is int else list(v) for v in ({names}))
"""

_COUNTS = """\
    counts = []
    for size, k, s, p, d in zip(x.shape[-n:], kernel_size, stride, padding, dilation):
        room = size + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil_mode else room // s) + 1
        counts.append(count - 1 if ceil_mode and (count - 1) * s >= size + p else count)
    ends = [
        (p, max(p, (count - 1) * s + d * (k - 1) + 1 - size - p))
        for size, k, s, p, d, count in zip(
            x.shape[-n:], kernel_size, stride, padding, dilation, counts
        )
    ]
    before = [(0, 0)] * (x.ndim - n)
"""

CONVOLUTION = (
    """\
def convolved(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if x.ndim < weight.ndim:
        return convolved(x[None], weight, bias, stride, padding, dilation, groups)[0]
    n, kernel = x.ndim - 2, weight.shape[2:]
"""
    + _LISTS.format(names="stride, dilation")
    + """\
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel)]
        sides = [(each // 2, each - each // 2) for each in total]
    else:
        padding = 0 if padding == "valid" else padding
        sides = [(p, p) for p in ([padding] * n if type(padding) is int else padding)]
    x = np.pad(x, [(0, 0), (0, 0), *sides])
    counts = [
        (size - d * (k - 1) - 1) // s + 1
        for size, d, k, s in zip(x.shape[2:], dilation, kernel, stride)
    ]
    total = 0
"""
    + _PLACES.format(kernel="kernel", counts="counts")
    + """\
        part = x[(..., *window)].reshape((len(x), groups, -1, *counts))
        factors = weight[(..., *at)].reshape((groups, -1, weight.shape[1]))
        total = total + np.einsum("ngi...,goi->ngo...", part, factors)
    total = total.reshape((len(x), len(weight), *counts))
    return total if bias is None else total + bias.reshape((-1, *[1] * n))
"""
)

TRANSPOSED_CONVOLUTION = (
    """\
def spread(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    if input.ndim < weight.ndim:
        settings = stride, padding, output_padding, groups, dilation
        return spread(input[None], weight, bias, *settings)[0]
    n, kernel, counts = input.ndim - 2, weight.shape[2:], input.shape[2:]
"""
    + _LISTS.format(names="stride, padding, output_padding, dilation")
    + """\
    sizes = [
        (count - 1) * s + d * (k - 1) + extra + 1
        for count, s, d, k, extra in zip(counts, stride, dilation, kernel, output_padding)
    ]
    grouped = input.reshape((len(input), groups, -1, *counts))
    x = np.zeros((len(input), groups * weight.shape[1], *sizes), input.dtype)
"""
    + _PLACES.format(kernel="kernel", counts="counts")
    + """\
        factors = weight[(..., *at)].reshape((groups, -1, weight.shape[1]))
        part = np.einsum("ngi...,gio->ngo...", grouped, factors)
        part = part.reshape((len(input), -1, *counts))
        x[(..., *window)] = x[(..., *window)] + part
    x = x[(..., *(slice(p, size - p) for p, size in zip(padding, sizes)))]
    return x if bias is None else x + bias.reshape((-1, *[1] * n))
"""
)

_MAX_POOL = (
    """\
def largest_in_{n}d(
    x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    n, stride = {n}, kernel_size if stride is None else stride
"""
    + _LISTS.format(names="kernel_size, stride, padding, dilation")
    + _COUNTS
    + """\
    filled = np.pad(x, before + ends, constant_values=-np.inf)
    places = np.pad(np.arange(math.prod(x.shape[-n:])).reshape(x.shape[-n:]), ends)
    values, indices = [], []
"""
    + _PLACES.format(kernel="kernel_size", counts="counts")
    + """\
        values.append(filled[(..., *window)])
        indices.append(places[window])
    values = np.stack(values)
    if not return_indices:
        return values.max(0)
    indices = np.stack(indices).reshape((-1, *[1] * (x.ndim - n), *counts))
    indices = np.broadcast_to(indices, values.shape)
    return values.max(0), np.take_along_axis(indices, values.argmax(0)[None], 0)[0]
"""
)

_AVERAGE_POOL = (
    """\
def mean_in_{n}d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
):
    n, stride, dilation = {n}, kernel_size if stride is None else stride, 1
"""
    + _LISTS.format(names="kernel_size, stride, padding, dilation")
    + _COUNTS
    + """\
    filled = np.pad(x, before + ends)
    inside = [(p, p) for p in padding]
    counted = np.pad(np.ones(x.shape[-n:], x.dtype), inside, constant_values=count_include_pad)
    counted = np.pad(counted, [(0, after - p) for p, (_, after) in zip(padding, ends)])
    total = divisor = 0
"""
    + _PLACES.format(kernel="kernel_size", counts="counts")
    + """\
        total = total + filled[(..., *window)]
        divisor = divisor + counted[window]
    return total / (divisor if divisor_override is None else divisor_override)
"""
)

_ADAPTIVE_AVERAGE = """\
def mean_of_cells_{n}d(x, output_size):
    n = {n}
    wanted = [output_size] * n if type(output_size) is int else list(output_size)
    for dim, count in zip(range(-n, 0), wanted):
        size, x = x.shape[dim], np.moveaxis(x, dim, 0)
        count = size if count is None else count
        cells = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        x = np.moveaxis(np.stack([x[a:b].mean(0) for a, b in cells]), 0, dim)
    return x
"""

WINDOWS = (
    """\
def windows_of(x, kernel_size, dilation=1, padding=0, stride=1):
    n, ceil_mode = 2, False
"""
    + _LISTS.format(names="kernel_size, dilation, padding, stride")
    + _COUNTS
    + """\
    filled, parts = np.pad(x, before + ends), []
"""
    + _PLACES.format(kernel="kernel_size", counts="counts")
    + """\
        parts.append(filled[(..., *window)])
    return np.stack(parts, -3).reshape((*x.shape[:-3], -1, math.prod(counts)))
"""
)

FOLD = (
    """\
def laid_back(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    n = 2
"""
    + _LISTS.format(names="output_size, kernel_size, dilation, padding, stride")
    + """\
    counts = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, d, p, s in zip(output_size, kernel_size, dilation, padding, stride)
    ]
    columns = input.reshape((*input.shape[:-2], -1, math.prod(kernel_size), *counts))
    sizes = [size + 2 * p for size, p in zip(output_size, padding)]
    x = np.zeros((*columns.shape[:-3], *sizes), input.dtype)
    place = 0
"""
    + _PLACES.format(kernel="kernel_size", counts="counts")
    + """\
        x[(..., *window)] = x[(..., *window)] + columns[..., place, :, :]
        place += 1
    return x[(..., *(slice(p, p + size) for p, size in zip(padding, output_size)))]
"""
)

PADDING = """\
def padded(x, pad, value=0):
    sides = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2]))[::-1]
    x = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in sides], constant_values=value)
    return x[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(sides, x.shape))]
"""


def max_pool(ndim: int) -> str:
    """`max_pool1d` and its relatives."""
    return _MAX_POOL.replace("{n}", str(ndim))


def average_pool(ndim: int) -> str:
    """`avg_pool1d` and its relatives."""
    return _AVERAGE_POOL.replace("{n}", str(ndim))


def adaptive_mean(ndim: int) -> str:
    """`adaptive_avg_pool1d` and its relatives."""
    return _ADAPTIVE_AVERAGE.replace("{n}", str(ndim))
