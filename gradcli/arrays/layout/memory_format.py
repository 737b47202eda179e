"""Channels last: the memory format of images whose channels are contiguous, and how results keep
it.

PyTorch recognises this memory format by the strides alone. Its kernels for images then lay out
their results the same way, so that a network keeps the format of its input.
"""

from __future__ import annotations

from typing import Any

from gradcli.arrays.layout.strides import in_row_order, laid_out
from gradcli.arrays.layout.views import strides_of


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
