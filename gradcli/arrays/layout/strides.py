"""Strides: the memory layout of views, copies and results, as PyTorch chooses it.

A view without elements NumPy lays out unlike PyTorch: it gives a new array none, and lets an empty
part begin where the whole does.

PyTorch recognises channels last, the memory format of images whose channels are contiguous, by the
strides alone. Its kernels for images then lay out their results the same way, so that a network
keeps the format of its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DType, cast
from gradcli.arrays.flat.recorded import HOST_ARRAYS, Recorded
from gradcli.arrays.gpu.array import ARRAYS

_LAID_OUT = ARRAYS | {Recorded}
"""The types of what has elements in memory, unlike numbers and what is computed when it is read."""


class _Memory:
    """Another window on an array's memory, in the form that NumPy makes arrays from."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, size: Sequence[int], stride: Sequence[int], offset: int) -> None:
        interface = dict(owner.__array_interface__)
        address, protected = interface["data"]
        interface["data"] = (address + offset * owner.itemsize, protected)
        interface["shape"] = tuple(size)
        interface["strides"] = tuple(step * owner.itemsize for step in stride)
        self.owner = owner
        self.__array_interface__ = interface


def window(array: Any, size: Sequence[int], stride: Sequence[int], offset: int) -> Any:
    """A view of the memory that an array begins in: strides and offset in elements."""
    if module_of(array) is not np:
        steps = [step * array.itemsize for step in stride]
        return module_of(array).ndarray(size, array.dtype, array, offset * array.itemsize, steps)
    if type(array) in HOST_ARRAYS and array.flags.c_contiguous:
        steps = [step * array.itemsize for step in stride]
        try:
            if type(array) is Recorded:
                return array.window(size, steps, offset * array.itemsize)
            return np.ndarray(size, array.dtype, array, offset * array.itemsize, steps)
        except ValueError:  # the window reaches beyond the array
            pass
    memory = _Memory(array, size, stride, offset)
    shown = np.asarray(memory)
    del memory.__array_interface__  # which was read: the view keeps the owner alive
    return shown if shown.dtype == array.dtype else shown.view(array.dtype)


def row_strides(shape: Sequence[int]) -> list[int]:
    """The strides of a new tensor, in elements: row order, a size of 0 counted as 1."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def strides_of(array: Any) -> list[int]:
    """An array's strides in elements, as PyTorch gives them."""
    return strides_from(array.shape, array.strides, array.itemsize)


def strides_from(sizes: tuple[int, ...], steps: tuple[int, ...], itemsize: int) -> list[int]:
    """The same of an array's shape, its strides in bytes and the bytes of an element."""
    strides = [step // itemsize for step in steps]
    if not any(strides):
        count = prod(sizes)
        if count > 1:
            return strides  # one element, expanded
        if not count:
            strides = row_strides(sizes)
    for dim in reversed(range(len(sizes))):
        # NumPy gives a new dimension of one element no stride; PyTorch the size of what is below.
        if sizes[dim] == 1 and not strides[dim]:
            strides[dim] = sizes[dim + 1] * strides[dim + 1] if dim + 1 < len(sizes) else 1
    return strides


def with_strides(array: Any) -> Any:
    """The array, or where NumPy gives it strides that PyTorch would not, a view with the latter."""
    if array.size and 0 not in array.strides:
        return array
    strides = strides_of(array)
    if [step * array.itemsize for step in strides] == [*array.strides]:
        return array
    return window(array, array.shape, strides, 0)


def sliced(array: Any, dim: int, start: int, end: int, step: int) -> Any:
    """The part of an array along a dimension, as a view."""
    dim %= array.ndim
    if array.size and 0 in array.strides:
        array = with_strides(array)
    shown = array[(*(slice(None),) * dim, slice(start, end, step), ...)]
    if shown.size:
        return shown
    strides = strides_of(array)
    offset = slice(start, end, step).indices(array.shape[dim])[0] * strides[dim]
    strides[dim] *= step
    return window(array, shown.shape, strides, offset)


@lru_cache(256)
def overlaps_itself(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether several elements of an array or a window may share an address."""
    reach = 0
    for step, count in sorted(zip(strides, shape, strict=True)):
        if count > 1:
            if step <= reach:
                return True
            reach += step * (count - 1)
    return False


def memory_of(array: Any) -> Any:
    """The array that has the memory which an array shows, itself if it has its own."""
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def in_row_order(array: Any) -> Any:
    """The array in row order without gaps, as some of PyTorch's kernels lay out their results for
    every layout of their operands.
    """
    if type(array) not in _LAID_OUT or array.ndim < 2 or array.flags.c_contiguous:
        return array
    return array.copy()


def copied_in_rows(array: Any) -> Any:
    """A copy in row order; an array of its own for a number too."""
    if type(array) is Recorded:
        return array.copy("C")
    return module_of(array).array(array, order="C")


def copied_in_order(array: Any) -> Any:
    """A copy without gaps, with the array's own strides or, where those leave gaps, its dimensions
    in the same order: PyTorch's `preserve_format`.
    """
    if array.ndim < 2:
        return array.copy()
    if array.flags.c_contiguous:
        return laid_out_like(array, array.copy())
    copied = window(
        module_of(array).empty(array.size, array.dtype), array.shape, _closed_strides(array), 0
    )
    copied[...] = array
    return copied


def cast_in_order(value: Any, dtype: DType) -> Any:
    """`dtypes.cast`, with the layout of `copied_in_order`."""
    converted = cast(value, dtype)
    if type(value) not in _LAID_OUT or converted is value:
        return converted
    return laid_out_like(value, converted)


def copied_as_it_lies(array: Any) -> Any:
    """A copy with the array's own strides, whatever gaps or repetitions they make."""
    strides = strides_of(array)
    if array.flags.c_contiguous or min(strides) < 0:
        copied = array.copy()
        # A dimension of one element has the stride that it was given, which a copy forgets.
        if copied.strides == array.strides or min(strides) < 0:
            return copied
        return window(copied.reshape(-1), array.shape, strides, 0)
    extent = 1 + sum([(n - 1) * step for n, step in zip(array.shape, strides, strict=True)])
    copied = window(module_of(array).empty(extent, array.dtype), array.shape, strides, 0)
    copied[...] = array
    return copied


def copied_to_leaf(gradient: Any, leaf: Any) -> Any:
    """A copy of a gradient with the strides of its leaf, or in row order if those leave gaps."""
    if leaf.flags.c_contiguous or not without_gaps(leaf.shape, strides_of(leaf)):
        return gradient.copy()
    copied = module_of(gradient).empty(gradient.size, gradient.dtype)
    copied = window(copied, leaf.shape, strides_of(leaf), 0)
    copied[...] = gradient
    return copied


def laid_out_like(array: Any, result: Any) -> Any:
    """A result computed from an array, of its shape: copied unless it has the layout of
    `copied_in_order`.
    """
    if array.ndim < 2 or (array.flags.c_contiguous and result.strides == array.strides):
        return result
    return laid_out(result, _closed_strides(array))


def _closed_strides(array: Any) -> list[int]:
    """The array's strides, or where they leave gaps those of an array of the same order."""
    strides = strides_of(array)
    if array.flags.c_contiguous or without_gaps(array.shape, strides):
        return strides
    return ordered_strides(array.shape, [strides])


def laid_out_like_operands(result: Any, *operands: Any) -> Any:
    """An element-wise result of operands in PyTorch's layout: the operands' layout if they all have
    the same one, without gaps, else the order that `outermost_first` finds for them.
    """
    if result.ndim < 2:
        return result
    arrays = [operand for operand in operands if getattr(operand, "ndim", 0)]
    strides = _pointwise_strides(
        _lie_of(result), len(arrays) == len(operands), *[_lie_of(array) for array in arrays]
    )
    return result if strides is None else laid_out(result, strides)


Lie = tuple[tuple[int, ...], tuple[int, ...], int, bool]
"""The layout of an array: shape, strides in bytes, bytes of an element, whether in row order."""


def _lie_of(array: Any) -> Lie:
    return array.shape, array.strides, array.itemsize, array.flags.c_contiguous


@lru_cache(4096)
def _pointwise_strides(result: Lie, all_arrays: bool, *operands: Lie) -> list[int] | None:
    """The strides, in elements, that a result should have; None where it has them already."""
    shape = result[0]
    steps = [strides_from(*each[:3]) for each in operands]
    if all_arrays and all(each[0] == shape for each in operands):
        if all(each[3] for each in operands):
            strides = row_strides(shape)
        elif all(each == steps[0] for each in steps) and without_gaps(shape, steps[0]):
            strides = steps[0]
        else:
            strides = ordered_strides(shape, steps)
    else:
        broadcast = [
            broadcast_strides(each[0], own, shape)
            for each, own in zip(operands, steps, strict=True)
        ]
        strides = ordered_strides(shape, broadcast)
    return None if strides_from(*result[:3]) == strides else strides


def laid_out(array: Any, strides: list[int]) -> Any:
    """An array with strides, in elements; copied unless it has them already."""
    shape, own = array.shape, strides_of(array)
    if own == strides:
        return array
    alike = all(size == 1 or a == b for size, a, b in zip(shape, own, strides, strict=True))
    if alike or not array.size:
        return window(array, shape, strides, 0)
    laid = window(module_of(array).empty(array.size, array.dtype), shape, strides, 0)
    laid[...] = array
    return laid


def broadcast_strides(
    sizes: tuple[int, ...], strides: Sequence[int], shape: tuple[int, ...]
) -> list[int]:
    """The strides of an array as one of a larger shape: 0 where it is repeated."""
    leading = len(shape) - len(sizes)
    own = zip(sizes, shape[leading:], strides, strict=True)
    return [0] * leading + [0 if size == 1 != whole else step for size, whole, step in own]


def ordered_strides(shape: tuple[int, ...], operands: Sequence[Sequence[int]]) -> list[int]:
    """The strides of a new array whose dimensions have the order that the operands' strides
    give.
    """
    order = outermost_first(shape, *operands)
    if order == list(range(len(shape))):
        return row_strides(shape)
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim]
    return strides


def without_gaps(shape: tuple[int, ...], strides: Sequence[int]) -> bool:
    """Whether an array fills the memory that it spans, each address once."""
    step = 1
    for stride, size in sorted([pair for pair in zip(strides, shape, strict=True) if pair[1] != 1]):
        if stride != step:
            return False
        step *= size
    return True


def inverse_order(order: Sequence[int]) -> list[int]:
    """The order of dimensions that undoes another one."""
    return sorted(range(len(order)), key=order.__getitem__)


def outermost_first(shape: tuple[int, ...], *operands: Sequence[int]) -> list[int]:
    """The dimensions by falling stride, in the first operand whose strides differ for two of them.

    One of stride 0 is not moved; of two equal strides the larger dimension comes first.
    """
    order = list(range(len(shape)))[::-1]  # innermost first
    for number in range(1, len(order)):
        place = number
        for below in range(number - 1, -1, -1):
            inner, outer = order[below], order[place]
            apart = _apart(shape, operands, inner, outer)
            if apart < 0:
                break
            if apart > 0:
                order[below], order[place] = outer, inner
                place = below
    return order[::-1]


def _apart(
    shape: tuple[int, ...], operands: Sequence[Sequence[int]], inner: int, outer: int
) -> int:
    """Below 0 if the inner of two dimensions belongs there, above 0 if not, else 0."""
    for strides in operands:
        if strides[inner] and strides[outer]:
            if strides[inner] != strides[outer]:
                return strides[inner] - strides[outer]
            if shape[inner] > shape[outer]:
                return 1
    return 0


# --- channels last --------------------------------------------------------------------------------


def channels_are_last(array: Any) -> bool:
    """Whether a batch of lines, images or volumes, (samples, channels, sizes…), has its channels
    innermost; False where sizes of 1 leave that open.
    """
    if array.ndim < 3 or not array.size:
        return False
    strides, reach = strides_of(array), 0
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        if strides[dim] < reach or (dim == 0 and reach == strides[1]):
            return False
        reach = strides[dim] * array.shape[dim]
    return strides[1] != 0


def in_format_of(result: Any, *arrays: Any) -> Any:
    """A result computed from batches: with channels last if one of them has them last, else in row
    order.
    """
    if result.ndim < 3 or not result.size or not any(map(channels_are_last, arrays)):
        return in_row_order(result)
    return with_channels_last(result)


def in_suggested_format(result: Any, *arrays: Any) -> Any:
    """A result computed from batches of images or volumes: with channels last if all of them have
    them last, else in row order. PyTorch takes no other tensors to have a format.
    """
    first = arrays[0]
    if (
        first.ndim in (4, 5)
        and first.strides[1] <= first.strides[-1]  # a quick look, which row order seldom passes
        and result.size
        and all(map(channels_are_last, arrays))
    ):
        return with_channels_last(result)
    return in_row_order(result)


def is_channels_last(array: Any) -> bool:
    """Whether a batch of images or volumes lies in memory with channels last, without gaps; sizes
    of 1 leave that open.
    """
    step = array.itemsize
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        if array.shape[dim] != 1:
            if array.strides[dim] != step:
                return False
            step *= array.shape[dim]
    return True


def with_channels_last(array: Any) -> Any:
    """A batch, copied unless its channels are innermost already."""
    strides, step = [1] * array.ndim, 1
    for dim in (1, *range(array.ndim - 1, 1, -1), 0):
        strides[dim] = step
        step *= array.shape[dim]
    return laid_out(array, strides)


def in_format_of_images(result: Any, self: Any, ndim: int) -> Any:
    """The same for the result of a pool over `ndim` dimensions; only for a batch of images."""
    return in_format_of(result, self) if ndim == 2 and self.ndim == 4 else in_row_order(result)
