"""Rows in order, and running sums, by the kernels in C: float32 arrays in the host's memory.

Each function gives None where the kernels are not built or not made for its array.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.kernels import selection
from gradcli.arrays.kernels.in_c import whole
from gradcli.arrays.native.dispatch import kernel
from gradcli.arrays.threads import over_tiles

_SINGLE = np.dtype(np.float32)


def _is_single(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype is _SINGLE and array.size > 0


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
    stable = stable or array.shape[dim] > selection.LONGEST
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
    values = np.empty((len(rows), count), _SINGLE)
    indices = np.empty((len(rows), count), np.int64)
    over_tiles(
        rows.shape,
        lambda tile: work(rows[tile], values[tile], indices[tile], length, descending, option),
    )
    shape = (*lines.shape[:-1], count)
    return np.moveaxis(values.reshape(shape), -1, dim), np.moveaxis(indices.reshape(shape), -1, dim)
