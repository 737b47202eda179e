"""Max pooling: the largest element of every window of an array."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.tile_kernels import choose_tile
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.windows.windows import Sizes, Windows
from gradcli.arrays.layout.strides import (
    in_row_order,
    in_suggested_format,
    is_channels_last,
    with_channels_last,
)


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
