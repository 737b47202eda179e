"""The kernels in C as functions of arrays without gaps, in the host's memory: of float32, and in
linear algebra of float64.

Each gives None, or False, where the kernels are not built or not made for its arrays.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.backend import device_of, new_empty, new_zeros
from gradcli.arrays.flat.recorded import HOST_ARRAYS, Recorded
from gradcli.arrays.fusion.lazy import LAZY, as_lazy, pointwise
from gradcli.arrays.kernels.vector_math import FEW
from gradcli.arrays.native.dispatch import kernel, level
from gradcli.arrays.threads import free_threads, over_tiles, tile_rows

if TYPE_CHECKING:
    from gradcli.arrays.kernels.windows import Sizes, Windows

_SINGLE = np.dtype(np.float32)


def are_plain(*arrays: Any) -> bool:
    """Whether all are arrays that a kernel takes, or None: without gaps and aligned."""
    for each in arrays:
        if each is not None and (
            type(each) not in HOST_ARRAYS or each.dtype is not _SINGLE or not each.flags.carray
        ):
            return False
    return True


def whole(array: Any) -> Any:
    """An array without gaps and aligned, itself where it is so."""
    return array if array.flags.carray else array.copy(order="C")


# --- element by element -------------------------------------------------------------------------


def elementwise(name: str, *operands: Any) -> Any:
    """The values of a kernel for arrays of one shape, lazy where one of them is, and for the
    numbers that follow them. Few elements are left to more exact functions.
    """
    first = operands[0]
    arrays = [each for each in operands if hasattr(each, "shape")]
    if any(type(each) in LAZY for each in arrays):
        return _lazily(name, arrays, operands[len(arrays) :])
    if type(first) not in HOST_ARRAYS or first.size < FEW:
        return None
    compute = kernel(name)
    if compute is None or not are_plain(*arrays) or any(a.shape != first.shape for a in arrays):
        return None
    out = np.empty_like(first)
    flat, into = [array.reshape(-1) for array in arrays], out.reshape(-1)
    numbers = operands[len(arrays) :]
    over_tiles(into.shape, lambda tile: compute(*[a[tile] for a in flat], into[tile], *numbers))
    return out


def _lazily(name: str, arrays: list[Any], numbers: tuple[Any, ...]) -> Any:
    shape = arrays[0].shape
    if prod(shape) < FEW or kernel(name) is None or device_of(arrays[0]).type != "cpu":
        return None
    operands = tuple(map(as_lazy, arrays))
    if any(
        type(each) not in LAZY or each.shape != shape or each.dtype != _SINGLE for each in operands
    ):
        return None
    return pointwise(_tile_of(name, numbers), operands, shape, _SINGLE)


@cache
def _tile_of(name: str, numbers: tuple[Any, ...]) -> Any:
    """The kernel of a plan that a kernel in C is."""

    def fill(*operands: Any, out: Any) -> None:
        compute = kernel(name)
        assert compute is not None
        compute(*map(whole, operands), out, *numbers)

    return fill


_FAR, _NEAR = 1 << 15, 1 << 14
"""Elements that are worth a thread of the core's, which is woken more quickly than one of Python's,
where little and where much is computed of each.
"""


def _threads(work: int, share: int) -> int:
    """The threads that some work is worth, where each is to have a share at least."""
    return min(free_threads(), work // share)


def add_scaled(total: Any, term: Any, factor: float, out: Any) -> bool:
    """out = total + term · factor, rounded once."""
    add = kernel("add_scaled")
    if add is None or total.shape != term.shape or not are_plain(total, term, out):
        return False
    add(total, term, factor, out, _threads(out.size, _FAR))
    return True


def adam(arrays: tuple[Any, ...], numbers: tuple[float, ...]) -> bool:
    """A step of Adam: parameter, gradient and averages, and the numbers of the kernel."""
    step = kernel("adam")
    parameter, gradient, *averages = arrays
    if step is None or not are_plain(*arrays) or parameter.shape != gradient.shape:
        return False
    if any(each.shape != parameter.shape for each in averages):
        return False
    step(*arrays, *numbers, _threads(parameter.size, _NEAR))
    return True


# --- products of matrices -----------------------------------------------------------------------

_LEAST = (8, 48)
"""Rows and columns of the smallest product of matrices: a tile of the largest kernel."""

_SHARE = 1 << 19
"""Multiplications that are worth a thread."""

_MOST = {"avx512": 1 << 36}
_MOST_OF_OTHERS = 1 << 27
"""Multiplications from which on the kernel for some instructions takes longer than BLAS, or has not
been measured.
"""


def matrix_product(left: Any, right: Any) -> Any:
    """The product of two matrices, of which one may lie as its transpose."""
    multiply = kernel("matrix_product")
    if multiply is None or not (_is_single(left) and _is_single(right)):
        return None
    rows, columns = left.shape[0], right.shape[1]
    work = left.size * columns
    if rows < _LEAST[0] or columns < _LEAST[1] or work >= _MOST.get(level(), _MOST_OF_OTHERS):
        return None
    turned = 0
    if not left.flags.carray:
        left, turned = left.T, 1
    elif not right.flags.carray:
        right, turned = right.T, 2
    if not are_plain(left, right):
        return None
    out = new_empty(left, (rows, columns))
    threads = _threads(work, _SHARE)
    multiply(left, right, out, rows, left.size // rows, columns, turned, threads)
    return out


# --- linear algebra -----------------------------------------------------------------------------

_UNKNOWNS, _ORDER = 512, 1024
"""Unknowns of the largest system, and rows of the largest matrix to be decomposed, that stay near
enough in caches for kernels that do not divide them.
"""


def of_floats(name: str, *arrays: Any) -> Any:
    """The kernel of that name for arrays of one dtype, float32 or float64; None for others."""
    chars = {each.dtype.char if type(each) in HOST_ARRAYS else "" for each in arrays}
    suffix = {"f": "", "d": "_wide"}.get(chars.pop()) if len(chars) == 1 else None
    return None if suffix is None else kernel(name + suffix)


def _matrices(array: Any) -> tuple[Any, int]:
    """Matrices without gaps, and whether they lie as their transposes."""
    if array.flags.c_contiguous:
        return array, 0
    turned = array.swapaxes(-2, -1)
    return (turned, 1) if turned.flags.c_contiguous else (array.copy(order="C"), 0)


def substituted(triangle: Any, right: Any, upper: bool, unit: bool, by_columns: bool) -> Any:
    """The solutions of triangular systems (*, n, n) with right-hand sides (*, n, k), whose columns,
    or rows, are contiguous.
    """
    solve = of_floats("substitute", triangle, right)
    *batch, size, columns = right.shape
    if solve is None or size > _UNKNOWNS or not right.size:
        return None
    like = triangle if type(triangle) is Recorded else right
    out = new_empty(like, (*batch, columns, size) if by_columns else right.shape)
    (triangle, turned), (right, right_turned) = _matrices(triangle), _matrices(right)
    threads = _threads(right.size * size, 2 * _SHARE)
    turns = turned, right_turned, int(by_columns)
    solve(triangle, right, out, size, columns, upper, unit, *turns, threads)
    return out.swapaxes(-2, -1) if by_columns else out


def cholesky(matrices: Any) -> tuple[Any, Any] | None:
    """The lower factors of matrices (*, n, n), their columns contiguous, and for each the order of
    the first leading minor that is not positive and finite, or 0.
    """
    decompose = of_floats("cholesky", matrices)
    size = matrices.shape[-1]
    if decompose is None or size > _ORDER or not matrices.size:
        return None
    matrices, turned = _matrices(matrices)
    factors = new_empty(matrices, matrices.shape)
    orders = new_empty(matrices, matrices.shape[:-2], np.int64)
    decompose(matrices, factors, orders, size, turned, _threads(matrices.size * size, 6 * _SHARE))
    return factors.swapaxes(-2, -1), orders


# --- along the last dimension -------------------------------------------------------------------


def softmax(array: Any, mask: Any = None, scale: float = 1.0, safe: bool = False) -> Any:
    """Softmax along the last dimension, of the array times a scale plus a mask of the shape of its
    last dimensions; a `safe` row of minus infinities gives zeros.
    """
    if type(array) not in HOST_ARRAYS or array.size < FEW or not are_plain(array, mask):
        return None
    compute = kernel("softmax")
    if compute is None:
        return None
    if mask is not None and (not mask.ndim or mask.shape != array.shape[-mask.ndim :]):
        return None
    # A tile begins where the mask does.
    rows = array.reshape(-1, array.shape[-1] if mask is None else mask.size)
    out, length = np.empty_like(rows), array.shape[-1]
    over_tiles(rows.shape, lambda tile: compute(rows[tile], mask, out[tile], length, scale, safe))
    return out.reshape(array.shape)


def softmax_backward(grad: Any, output: Any, scale: float = 1.0) -> Any:
    """The gradient of softmax along the last dimension, times a scale."""
    if type(output) not in HOST_ARRAYS or output.size < FEW or grad.shape != output.shape:
        return None
    compute = kernel("softmax_backward")
    if compute is None or not are_plain(grad, output):
        return None
    length = output.shape[-1]
    grads, rows = grad.reshape(-1, length), output.reshape(-1, length)
    out = np.empty_like(rows)
    over_tiles(rows.shape, lambda t: compute(grads[t], rows[t], out[t], length, scale))
    return out.reshape(output.shape)


# --- attention ----------------------------------------------------------------------------------

_FEWEST, _VECTOR = 8, 16
"""Queries and keys of the smallest attention, and what sizes are multiples of that are no more than
the columns of the smallest product.
"""


def _are_columns(count: int) -> bool:
    return count >= _LEAST[1] or count % _VECTOR == 0


def _heads(query: Any, key: Any, value: Any, mask: Any) -> tuple[list[Any], list[Any]] | None:
    """The heads without gaps and their mask, and what the kernels take of their sizes; None where
    those are not theirs, or the heads are less than there are threads for them.
    """
    if any(not _is_single(each) for each in (query, key, value)):
        return None
    batch, heads, length, features = query.shape
    keys, threads = key.shape[2], _threads(query.size * key.shape[2], _SHARE)
    if min(length, keys) < _FEWEST or batch * heads < threads or value.shape != key.shape:
        return None
    if not (_are_columns(keys) and _are_columns(features)):
        return None
    each, lines = 1, 1
    if mask is not None:
        if not are_plain(mask) or mask.ndim < 2 or mask.shape[-1] != keys:
            return None
        # A mask of each sample is that of all its heads.
        each = heads if mask.ndim == 4 and len(mask) > 1 == mask.shape[1] else 1
        lines = mask.shape[-2]
    sizes = [length, keys, features, each, lines]
    return [*map(whole, (query, key, value)), mask], [*sizes, threads]


def attention(query: Any, key: Any, value: Any, mask: Any, scale: float) -> Any:
    """Attention of heads (B, H, L, E) to (B, H, S, E) under a mask of their last dimensions."""
    attend = kernel("attention")
    prepared = _heads(query, key, value, mask) if attend is not None else None
    if attend is None or prepared is None:
        return None
    arrays, (*sizes, threads) = prepared
    out = new_empty(query, query.shape)
    attend(*arrays, out, *sizes, scale, threads)
    return out


def attention_backward(
    grad: Any, query: Any, key: Any, value: Any, mask: Any, scale: float
) -> tuple[Any, ...] | None:
    """The gradients of queries, keys and values. The heads of a position are adjacent in memory."""
    differentiate = kernel("attention_backward")
    prepared = _heads(query, key, value, mask) if differentiate is not None else None
    if differentiate is None or prepared is None or not _is_single(grad):
        return None
    arrays, (*sizes, threads) = prepared
    gradients = [new_empty(each, each.swapaxes(1, 2).shape) for each in (query, key, value)]
    heads = query.shape[1]
    differentiate(whole(grad), *arrays, *gradients, heads, *sizes, scale, threads)
    return tuple([each.swapaxes(1, 2) for each in gradients])


# --- pooling ------------------------------------------------------------------------------------


def max_pool(array: Any, windows: Windows, counts: Sizes) -> Any:
    """The largest element of every window of images, and its flat position."""
    largest = kernel("max_pool")
    sizes = array.shape[-2:]
    geometry = (*sizes, *counts, *windows.kernel, *windows.stride, *windows.padding)
    if largest is None or not array.size or max(*geometry, *windows.dilation) >= 1 << 15:
        return None
    if not are_plain(array) or prod(sizes) * max(windows.dilation) >= 1 << 30:
        return None
    planes = array.reshape(-1, *sizes)
    values = new_empty(planes, (len(planes), *counts))
    indices = new_empty(planes, values.shape, np.int64)
    over_tiles(
        (len(planes), prod(sizes)),
        lambda tile: largest(
            planes[tile], values[tile], indices[tile], *geometry, *windows.dilation
        ),
    )
    shape = (*array.shape[:-2], *counts)
    return values.reshape(shape), indices.reshape(shape)


def add_at(whole: Any, indices: Any, values: Any, planes: int = 1, width: int = 1) -> bool:
    """Add pieces of `width` elements to those at their indices into each plane, one by one."""
    add = kernel("add_at")
    if add is None or not values.size or not are_plain(whole, values):
        return False
    if type(indices) not in HOST_ARRAYS or indices.dtype != np.int64 or not indices.flags.carray:
        return False
    size, count = whole.size // (planes * width), indices.size // planes
    add(values, indices, whole, size, count, width, _threads(values.size, _NEAR))
    return True


def put_at(whole: Any, indices: Any, values: Any) -> bool:
    """Write values of the indices' shape to those along the last dimension, one by one; `whole` has
    as many rows.
    """
    put = kernel("put_at")
    if put is None or not values.size or values.shape != indices.shape:
        return False
    if type(indices) not in HOST_ARRAYS or not are_plain(whole, values):
        return False
    if whole.shape[:-1] != indices.shape[:-1] or not indices.flags.carray:
        return False
    count = indices.shape[-1]
    put(values, indices, whole, whole.shape[-1], count, _threads(values.size, _NEAR))
    return True


# --- layer norm ---------------------------------------------------------------------------------


def layer_norm(values: Any, weight: Any, bias: Any, rows: int, eps: float) -> Any:
    """The normalised rows, their means, and one over their deviations."""
    norm = kernel("layer_norm")
    if norm is None or not values.size or not are_plain(values, weight, bias):
        return None
    lines = values.reshape(rows, -1)
    out, mean, rstd = np.empty_like(lines), new_empty(lines, (rows,)), new_empty(lines, (rows,))
    weight, bias = _flat(weight), _flat(bias)
    over_tiles(
        lines.shape,
        lambda tile: norm(lines[tile], weight, bias, out[tile], mean[tile], rstd[tile], eps),
    )
    return out, mean, rstd


def layer_norm_backward(
    grad: Any, values: Any, mean: Any, rstd: Any, weight: Any, mask: tuple[bool, ...]
) -> Any:
    """The gradients of the rows, the weight and the bias, None for one that is not asked for."""
    back = kernel("layer_norm_backward")
    if back is None or not values.size or not are_plain(grad, values, mean, rstd, weight):
        return None
    mean, rstd, weight = _flat(mean), _flat(rstd), _flat(weight)
    grad, values = grad.reshape(len(mean), -1), values.reshape(len(mean), -1)
    out = np.empty_like(values) if mask[0] else None
    each = tile_rows(values.shape)
    sums = new_zeros(values, (-(-len(values) // each), 2, values.shape[1]), np.float64)

    def work(tile: slice) -> None:
        of_weight, of_bias = sums[tile.start // each]
        back(
            grad[tile],
            values[tile],
            mean[tile],
            rstd[tile],
            weight,
            None if out is None else out[tile],
            of_weight if mask[1] else None,
            of_bias if mask[2] else None,
        )

    over_tiles(values.shape, work)
    of_weight, of_bias = np.add.reduce(sums, 0).astype(_SINGLE)
    return out, of_weight if mask[1] else None, of_bias if mask[2] else None


# --- batch norm ---------------------------------------------------------------------------------


def batch_moments(values: Any, channels: int) -> Any:
    """The mean of each channel, dimension 1, and its variance."""
    moments = kernel("batch_moments")
    if moments is None or not values.size or not are_plain(values):
        return None
    mean, variance = new_empty(values, (channels,)), new_empty(values, (channels,))
    moments(values, mean, variance, len(values), _threads(values.size, _NEAR))
    return mean, variance


def by_channel(values: Any, slope: Any, offset: Any) -> Any:
    """values · slope + offset, numbers for each channel."""
    norm = kernel("batch_norm")
    if norm is None or not values.size or not are_plain(values, slope, offset):
        return None
    out = np.empty_like(values)
    slope, offset = _flat(slope), _flat(offset)
    samples = (len(values), prod(values.shape[1:]))
    over_tiles(
        samples,
        lambda tile: norm(values[tile], slope, offset, out[tile], tile.stop - tile.start),
    )
    return out


def batch_norm_backward(
    grad: Any, values: Any, mean: Any, rstd: Any, weight: Any, wanted: bool
) -> Any:
    """The gradients of the values, if `wanted`, the weight and the bias."""
    back = kernel("batch_norm_backward")
    if back is None or not values.size or not are_plain(grad, values, mean, rstd, weight):
        return None
    out = np.empty_like(values) if wanted else None
    mean, rstd, weight = _flat(mean), _flat(rstd), _flat(weight)
    of_weight, of_bias = np.empty_like(mean), np.empty_like(mean)
    threads = _threads(values.size, _NEAR)
    back(grad, values, mean, rstd, weight, out, of_weight, of_bias, len(values), threads)
    return out, of_weight, of_bias


# --- convolution --------------------------------------------------------------------------------


def _images(*arrays: Any) -> list[Any] | None:
    """Arrays without gaps, None unless all are float32 in the host's memory."""
    if any(type(each) not in HOST_ARRAYS or each.dtype is not _SINGLE for each in arrays):
        return None
    return [whole(each) for each in arrays]


_SHARED = 1 << 19
"""Multiplications that are worth several threads."""


def convolution(input: Any, weight: Any, padding: tuple[int, ...], bias: Any) -> Any:
    """Every window of the input (N, C, height, width), with zeros around it, times the weights (O,
    C, rows, columns), plus a bias for each channel.
    """
    convolve = kernel("convolution")
    images = _images(input, weight) if convolve is not None and are_plain(bias) else None
    if convolve is None or images is None:
        return None
    input, weight = images
    samples, channels, height, width = input.shape
    outputs, _, rows, columns = weight.shape
    counts = (height + 2 * padding[0] - rows + 1, width + 2 * padding[1] - columns + 1)
    out = new_empty(input, (samples, outputs, *counts))
    work = samples * prod(counts) * weight.size
    sizes = (samples, channels, height, width, outputs, rows, columns, *padding)
    convolve(input, weight, bias, out, *sizes, free_threads() if work >= _SHARED else 1)
    return out


def weight_gradient(input: Any, grad: Any, shape: tuple[int, ...], padding: tuple[int, ...]) -> Any:
    """The gradient of weights of a shape (O, C, rows, columns)."""
    find = kernel("weight_gradient")
    images = _images(input, grad) if find is not None else None
    if find is None or images is None:
        return None
    input, grad = images
    out = new_empty(input, shape)
    work = grad.size * prod(shape[1:])
    sizes = (*input.shape, shape[0], *shape[2:], *padding)
    find(input, grad, out, *sizes, free_threads() if work >= _SHARED else 1)
    return out


def _flat(array: Any) -> Any:
    return None if array is None else array.reshape(-1)


# --- rows in order, running sums ------------------------------------------------------------------


def _is_single(array: Any) -> bool:
    return type(array) in HOST_ARRAYS and array.dtype is _SINGLE and array.size > 0


def running_sums(array: Any, dim: int, backwards: bool = False) -> Any:
    """The sums of the elements up to each one along a dimension, kept in float64; backwards, from
    each one to the end.
    """
    add = kernel("running_sum") if _is_single(array) else None
    if add is None or not array.flags.carray:
        return None
    out = np.empty_like(array)
    dim %= array.ndim
    length, inner = array.shape[dim], prod(array.shape[dim + 1 :])
    if inner == 1:
        rows, into = array.reshape(-1, length), out.reshape(-1, length)
        over_tiles(rows.shape, lambda tile: add(rows[tile], into[tile], length, 1, 0, 1, backwards))
    else:
        columns = (inner, array.size // inner)
        over_tiles(
            columns,
            lambda tile: add(array, out, length, inner, tile.start, tile.stop, backwards),
        )
    return out


def sorted_rows(array: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any] | None:
    """The values of `sort` and their indices."""
    sort = kernel("sorted_rows") if _is_single(array) else None
    if sort is None:
        return None
    return _by_rows(sort, array, dim, array.shape[dim], descending, stable)


def largest_of_rows(array: Any, count: int, dim: int, largest: bool) -> tuple[Any, Any] | None:
    """The values of `topk` and their indices."""
    select = kernel("selected_rows") if _is_single(array) and count else None
    return None if select is None else _by_rows(select, array, dim, count, largest, count)


def _by_rows(
    work: Any, array: Any, dim: int, count: int, descending: bool, option: int
) -> tuple[Any, Any]:
    """What a kernel makes of the rows along a dimension: `count` values and indices of each."""
    lines = np.moveaxis(array, dim, -1)
    length = lines.shape[-1]
    rows = whole(lines).reshape(-1, length)
    values = new_empty(rows, (len(rows), count))
    indices = new_empty(rows, (len(rows), count), np.int64)
    over_tiles(
        rows.shape,
        lambda tile: work(rows[tile], values[tile], indices[tile], length, descending, option),
    )
    shape = (*lines.shape[:-1], count)
    return np.moveaxis(values.reshape(shape), -1, dim), np.moveaxis(indices.reshape(shape), -1, dim)
