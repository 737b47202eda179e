"""Which elements a view shows: positions in memory as selections, slices and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import address_of
from gradcli.recorded.symbols.tree import Call, Constant, Item, Symbol

Region = tuple[str, tuple[Any, ...]]
"""The method that writes to a part of a tensor, and its arguments: `select_scatter`, dim, index."""


def shared_positions(view: Any, base: Any) -> Any:
    """The position in row order that each element of a view has in a base, None where some element
    has none.
    """
    if view.dtype != base.dtype or not np.may_share_memory(view, base):
        return None
    offsets = {offset: number for number, offset in enumerate(_offsets(base).ravel().tolist())}
    start = address_of(view) - address_of(base)
    positions = [offsets.get(start + offset) for offset in _offsets(view).ravel().tolist()]
    if None in positions:
        return None
    return np.array(positions, np.int64).reshape(view.shape)


def _offsets(array: Any) -> Any:
    """The distance of each element from the first one in bytes."""
    total = np.zeros(array.shape, np.int64)
    for dim, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        shape = [1] * array.ndim
        shape[dim] = size
        total = total + (np.arange(size) * stride).reshape(shape)
    return total


def region_of(positions: Any, shape: Sequence[int]) -> Region | None:
    """How the elements at positions of a tensor of a shape are written to; None for a region that
    is no selection, slice or diagonal.
    """
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    for dim, size in enumerate(shape):
        for index in range(size):
            if np.array_equal(whole.take(index, dim), positions):
                return "select_scatter", (dim, index)
        if positions.ndim == whole.ndim and positions.size:
            length = positions.shape[dim]
            for start in range(size - length + 1):
                if np.array_equal(whole.take(range(start, start + length), dim), positions):
                    return "slice_scatter", (dim, start, start + length)
    if whole.ndim == 2 and np.array_equal(np.diagonal(whole), positions):
        return "diagonal_scatter", ()
    return None


def read_at(value: Symbol, positions: Any, shape: Sequence[int]) -> Symbol:
    """The elements of a value of a shape at positions."""
    if positions.shape == tuple(shape) and (positions.ravel() == np.arange(positions.size)).all():
        return value
    if np.array_equal(positions.ravel(), np.arange(int(np.prod(shape)))):
        return Call("reshape", (value, Constant(positions.shape)), True)
    region = region_of(positions, shape)
    if region is None:
        where = Call("tensor", (Constant(positions.tolist()),))
        return Call("torch.take", (value, where))
    name, arguments = region
    if name == "diagonal_scatter":
        return Call("diagonal", (value,), True)
    dim, start, *end = arguments
    index: Any = slice(start, end[0]) if end else start
    return Item(value, Constant((*[slice(None)] * dim, index) if dim else index))


def written_at(value: Symbol, new: Symbol, positions: Any, shape: Sequence[int]) -> Symbol:
    """A value of a shape with the elements at positions replaced by a new tensor of theirs."""
    if positions.shape == tuple(shape) and (positions.ravel() == np.arange(positions.size)).all():
        return new
    region = region_of(positions, shape)
    if region is None:
        where = Call("tensor", (Constant(positions.tolist()),))
        return Call("put", (value, where, new), True)
    name, arguments = region
    return Call(name, (value, new, *map(Constant, arguments)), True)
