"""Strides: the memory layout of copies and results, as PyTorch chooses it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DType, cast
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.arrays.layout.views import row_strides, strides_from, strides_of, window


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


def in_row_order(array: Any) -> Any:
    """The array in row order without gaps, as some of PyTorch's kernels lay out their results for
    every layout of their operands.
    """
    if type(array) not in ARRAYS or array.ndim < 2 or array.flags.c_contiguous:
        return array
    return array.copy()


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
    if type(value) not in ARRAYS or converted is value:
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
