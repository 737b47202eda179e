"""Views of an array's memory by strides, and those without elements, which NumPy lays out unlike
PyTorch: it gives a new array none, and lets an empty part begin where the whole does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of


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
    if type(array) is np.ndarray and array.flags.c_contiguous:
        steps = [step * array.itemsize for step in stride]
        try:
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
