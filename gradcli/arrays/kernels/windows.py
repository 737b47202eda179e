"""Sliding windows over the last dimensions of an array, which convolutions and pools read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from gradcli.arrays.backend import in_order, new_empty, new_zeros
from gradcli.arrays.layout.strides import window
from gradcli.record import Record

Sizes = tuple[int, ...]


class Windows(Record):
    """The geometry of windows over the last dimensions of an array, one entry of each per
    dimension.

    Attributes:
        kernel: the size of a window.
        stride: how far apart windows are.
        padding: how many elements are added before the first one, and after the last.
        dilation: how far apart the elements of a window are.
    """

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes

    def counts(self, sizes: Sizes, ceil_mode: bool = False) -> Sizes:
        """How many windows fit each dimension. With `ceil_mode` the last one may stick out, if it
        starts inside the tensor or before it.
        """
        counts = []
        for size, k, s, p, d in zip(
            sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            room = size + 2 * p - d * (k - 1) - 1
            count = (room + (s - 1 if ceil_mode else 0)) // s + 1
            if ceil_mode and (count - 1) * s >= size + p:
                count -= 1
            counts.append(count)
        return tuple(counts)

    def pad(self, array: Any, counts: Sizes, value: Any = 0) -> Any:
        """The array padded with a number as far as the windows reach; itself where they do not
        reach beyond its edge.
        """
        sizes = array.shape[-len(self.kernel) :]
        reach = self.reach(sizes, counts)
        if reach == sizes and not any(self.padding):
            return array
        padded = new_empty(array, (*array.shape[: -len(sizes)], *reach))
        padded[...] = value
        padded[self.inner(sizes)] = array
        return padded

    def reach(self, sizes: Sizes, counts: Sizes) -> Sizes:
        """The sizes of the padded array."""
        return tuple(
            max(size + 2 * p, (count - 1) * s + d * (k - 1) + 1)
            for size, count, k, s, p, d in zip(
                sizes, counts, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )

    def inner(self, sizes: Sizes) -> tuple[Any, ...]:
        """The index of the array in the padded one."""
        return (
            ...,
            *(slice(p, p + size) for p, size in zip(self.padding, sizes, strict=True)),
        )

    def elements(self, counts: Sizes) -> Iterator[tuple[Sizes, tuple[Any, ...]]]:
        """For each position in a window, the position and the index of that element of all windows
        in a padded array.
        """
        for place in product(*map(range, self.kernel)):
            yield (
                place,
                (
                    ...,
                    *(
                        slice(i * d, i * d + (count - 1) * s + 1, s)
                        for i, count, s, d in zip(
                            place, counts, self.stride, self.dilation, strict=True
                        )
                    ),
                ),
            )

    def apart(self) -> bool:
        """Whether no two windows share an element."""
        return all(
            s > d * (k - 1) for k, s, d in zip(self.kernel, self.stride, self.dilation, strict=True)
        )

    def columns(self, array: Any, counts: Sizes) -> Any:
        """The windows of an array (N, C, *sizes), as (N, C, elements of a window, windows)."""
        padded = in_order(self.pad(array, counts))
        outer = padded.ndim - len(counts)
        strides = [stride // padded.itemsize for stride in padded.strides]
        along = [
            *[step * d for step, d in zip(strides[outer:], self.dilation, strict=True)],
            *[step * s for step, s in zip(strides[outer:], self.stride, strict=True)],
        ]
        shape = (*padded.shape[:outer], *self.kernel, *counts)
        shown = window(padded, shape, [*strides[:outer], *along], 0)
        return shown.reshape(*padded.shape[:outer], prod(self.kernel), prod(counts))

    def folded(self, columns: Any, sizes: Sizes, counts: Sizes) -> Any:
        """The adjoint of `columns`: every element of the windows added to the element that it was
        read from.
        """
        leading = columns.shape[:-2]
        columns = columns.reshape(*leading, *self.kernel, *counts)
        padded = new_zeros(columns, (*leading, *self.reach(sizes, counts)))
        skip = (slice(None),) * len(leading)
        for place, where in self.elements(counts):
            padded[where] += columns[(*skip, *place)]
        return in_order(padded[self.inner(sizes)])
