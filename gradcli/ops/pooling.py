"""Pools: the largest or the mean of every window, `max_pool2d avg_pool2d adaptive_avg_pool2d` and
their like in 1 to 3 dimensions.

A pool of one dimension is one of two, over a tensor with a dimension of size 1 put in.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arguments import check_real, check_tensors
from gradcli.ops.arithmetic import mul, zeros
from gradcli.ops.catalogue import function, operators
from gradcli.ops.entry import Function, Op, op
from gradcli.ops.gathering import gather
from gradcli.ops.pointwise import abs_, sign
from gradcli.ops.reduction import mean_dims, wide
from gradcli.ops.shape import reshape, squeeze_dim, unsqueeze
from gradcli.ops.windows import Sizes, Windows, check_counts, per_dimension

# --- the largest of a window --------------------------------------------------------------------


def _flat(places: list[Any], sizes: Sizes) -> Any:
    """Places along each dimension as one place in row order, of all their combinations."""
    ndim = len(sizes)
    total: Any = np.zeros((1,) * ndim, np.int64)
    for dim, along in enumerate(places):
        shape = [1] * ndim
        shape[dim] = -1
        total = total + (np.asarray(along) * prod(sizes[dim + 1 :])).reshape(shape)
    return total


def _max_pool_array(self: Any, windows: Windows, ceil_mode: bool) -> tuple[Any, Any]:
    """The largest of every window, and its place in row order. Of ties it is the first; a nan is
    larger than anything.
    """
    sizes = self.shape[-len(windows.kernel) :]
    counts = windows.counts(sizes, ceil_mode)
    lowest = -np.inf if self.dtype.kind not in "iu" else np.iinfo(self.dtype).min
    padded = windows.pad(self, counts, lowest)
    largest = np.full((*self.shape[: -len(sizes)], *counts), lowest, self.dtype)
    starts = []
    for count, s, p, d in zip(
        counts, windows.stride, windows.padding, windows.dilation, strict=True
    ):
        start = np.arange(count) * s - p
        starts.append(np.where(start < 0, start % d, start))
    indices = np.broadcast_to(_flat(starts, sizes), largest.shape)
    for place, where in windows.elements(counts):
        element = padded[where]
        along = [
            np.arange(count) * s - p + i * d
            for count, i, s, p, d in zip(
                counts, place, windows.stride, windows.padding, windows.dilation, strict=True
            )
        ]
        larger = (element > largest) | (element != element)
        largest = np.where(larger, element, largest)
        indices = np.where(larger, _flat(along, sizes), indices)
    return largest, indices


def _put_at(grad_output: Any, self: Any, indices: Any) -> Any:
    """The gradient added where the indices, places in the last dimensions, point."""
    ndim = _pooled_dims(grad_output, self)
    planes, size = prod(self.shape[:-ndim]), prod(self.shape[-ndim:])
    where = indices.reshape(planes, -1) + np.arange(planes)[:, None] * size
    total = np.bincount(where.ravel(), grad_output.ravel(), planes * size)
    return total.reshape(self.shape).astype(grad_output.dtype)


def _pooled_dims(output: Any, self: Any) -> int:
    """How many dimensions a pool was over: those from the first that differs, two at least."""
    shape, sizes = output.shape, self.shape
    return max([2, *(len(sizes) - i for i in range(len(sizes)) if sizes[i] != shape[i])])


def _taken_at(value: Any, indices: Any, ndim: int) -> Any:
    """The elements of the last dimensions that the indices point at."""
    shape = indices.shape
    leading = tuple(shape[:-ndim])
    size = prod(value.shape[len(leading) :])
    places = prod(shape[-ndim:])
    rows = reshape(value, (*leading, size))
    taken = gather(rows, len(leading), reshape(indices, (*leading, places)))
    return reshape(taken, tuple(shape))


def _largest(name: str, node_name: str, ndim: int, forward: Function) -> Op:
    """An entry that picks the largest element of each window and tells where it was."""
    backward: Op = op(
        f"{name}_backward",
        f"{node_name.removesuffix('0')}Backward0",
        _put_at,
        constant=("indices",),
        grad_output=lambda grad, indices: _taken_at(grad, indices, ndim),
        self=lambda grad, self_sizes: zeros(grad, self_sizes),
    )
    return op(
        name,
        node_name,
        forward,
        outputs=("result0", "result1"),
        differentiable=(0,),
        self=lambda grads, self, result1: backward(grads[0], self, result1),
    )
