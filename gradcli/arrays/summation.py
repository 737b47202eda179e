"""Sums of floating arrays in the order in which PyTorch adds on a CPU, so that last bits agree.

PyTorch reads a sum as rows by columns, the reduced dimensions being rows. Elements that lie one
behind the other are added in lanes, as many as a 32-byte register holds; a long column is added in
four interleaved parts; and what is added up after 16 rows, after 16 times 16, and so on is kept
apart, so that small numbers do not drown. Larger sums are split among threads, and then follow no
fixed order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

LARGEST = 32768
"""Elements from which on PyTorch splits a sum among threads."""

_REGISTER = 32
"""Bytes of a register."""


def ordered_sum(array: Any, axes: Sequence[int] | None) -> Any:
    """The sum of a float32 or float64 array over axes, all for None, without them.

    The array has fewer than `LARGEST` elements and at least one dimension.
    """
    if array.flags.c_contiguous:
        if axes is None or len(axes) == array.ndim:
            return _line(array.reshape(-1))
        if array.ndim == 2:
            (axis,) = axes
            if array.shape[1 - axis] == 1:
                return _line(array.reshape(-1)).reshape(1)
            if array.shape[axis] > 1:
                return _rows(array) if axis else _columns(array)
    reduced = range(array.ndim) if axes is None else axes
    kept = [axis for axis in range(array.ndim) if axis not in reduced]
    shape = tuple([array.shape[axis] for axis in kept])
    if not array.size:
        return np.zeros(shape, array.dtype)[()]
    strides = array.strides
    rows = _groups(array, sorted(reduced, key=lambda axis: (strides[axis], -axis)))
    columns = _groups(array, reversed(kept))  # as the result lies in memory
    # The axes as (further rows, rows, further columns, columns), in each the quickest last.
    slow = [axis for group in reversed(rows[1:]) for axis in group]
    side = [axis for group in reversed(columns) for axis in group]
    order = slow + (rows[0] if rows else []) + side
    alone = [axis for axis in range(array.ndim) if array.shape[axis] == 1]
    sizes = array.shape
    arranged = array.transpose(alone + order).reshape(
        prod([sizes[axis] for axis in slow]),
        prod([sizes[axis] for axis in rows[0]]) if rows else 1,
        -1,
        prod([sizes[axis] for axis in columns[0]]) if columns else 1,
    )
    row_step = strides[rows[0][-1]] if rows else 0
    column_step = strides[columns[0][-1]] if columns else 0
    total = _sum_rows(arranged, row_step, column_step, len(rows) > 1)
    back = sorted(range(len(side)), key=side.__getitem__)
    return total.reshape([sizes[axis] for axis in side]).transpose(back).reshape(shape)[()]


def _groups(array: Any, axes: Iterable[int]) -> list[list[int]]:
    """Axes, given the quickest first, in groups that can be walked as one, in each the slowest
    axis first.
    """
    sizes, strides = array.shape, array.strides
    groups: list[list[int]] = []
    for axis in [axis for axis in axes if sizes[axis] != 1]:
        last = groups[-1][0] if groups else None
        if last is not None and strides[axis] == strides[last] * sizes[last]:
            groups[-1].insert(0, axis)
        else:
            groups.append([axis])
    return groups


def _sum_rows(arranged: Any, row_step: int, column_step: int, several: bool) -> Any:
    """The sums over the two first axes of `(further rows, rows, further columns, columns)`."""
    itemsize = arranged.dtype.itemsize
    lanes = _REGISTER // itemsize
    rows, columns = arranged.shape[1], arranged.shape[3]
    if row_step == itemsize and rows >= lanes:
        parts = _rows(arranged.transpose(0, 2, 3, 1))
    elif not several and column_step == itemsize and columns >= lanes:
        parts = _by_columns(arranged, 4 * lanes)
    elif several or row_step < column_step or columns == 1:
        parts = _interleaved(arranged.swapaxes(0, 1))
    else:
        parts = _by_columns(arranged, 4)
    return parts[0] if len(parts) == 1 else _in_turn(parts)


def _by_columns(arranged: Any, width: int) -> Any:
    """Columns side by side in each of the further rows and columns."""
    return _side_by_side(np.ascontiguousarray(arranged.swapaxes(0, 1)), width)


def _side_by_side(rows: Any, width: int) -> Any:
    """The sum over the first axis: whole groups of `width` columns plainly, others interleaved."""
    whole = rows.shape[-1] // width * width
    if whole == rows.shape[-1]:
        return _cascade(rows)
    if not whole:
        return _interleaved(rows)
    return np.concatenate([_cascade(rows[..., :whole]), _interleaved(rows[..., whole:])], axis=-1)


def _line(flat: Any) -> Any:
    """The sum of all elements of an array that lie one behind the other."""
    lanes = _REGISTER // flat.dtype.itemsize
    if len(flat) < lanes:
        return _interleaved(flat)
    whole = len(flat) // lanes * lanes
    sums = _interleaved(flat[:whole].reshape(-1, lanes))
    if whole < len(flat):
        sums = np.concatenate([flat[whole:], sums])
    return np.add.accumulate(sums)[-1]


def _columns(matrix: Any) -> Any:
    """The sums of the columns of a matrix that lies row by row."""
    columns = matrix.shape[1]
    lanes = _REGISTER // matrix.dtype.itemsize
    return _side_by_side(matrix, 4 * lanes if columns >= lanes else 4)


def _rows(lines: Any) -> Any:
    """The sums over the last axis, whose elements lie one behind the other: lane by lane, then what
    is left over, then the lanes.
    """
    lanes = _REGISTER // lines.dtype.itemsize
    *others, length = lines.shape
    whole = length // lanes * lanes
    if not whole:
        return _interleaved(np.ascontiguousarray(np.moveaxis(lines, -1, 0)))
    by_lane = lines[..., :whole].reshape(*others, whole // lanes, lanes)
    sums = _interleaved(np.ascontiguousarray(np.moveaxis(by_lane, -2, 0)))
    if whole < length:
        sums = np.concatenate([lines[..., whole:], sums], axis=-1)
    return np.add.accumulate(sums, axis=-1)[..., -1]


def _interleaved(rows: Any) -> Any:
    """The sum over the first axis in four parts, every fourth row one, which are then added."""
    count = len(rows) // 4
    if not count:
        return _in_turn(rows)
    parts = (
        rows[:4] if count == 1 else _cascade(rows[: count * 4].reshape(count, 4, *rows.shape[1:]))
    )
    if count * 4 == len(rows):
        return _in_turn(parts)
    first = parts[0]
    for row in rows[count * 4 :]:
        first = first + row
    return first + parts[1] + parts[2] + parts[3]


def _cascade(rows: Any) -> Any:
    """The sum over the first axis: of blocks of rows, then of blocks of those, in four levels."""
    step = 1 << max(4, (len(rows) - 1).bit_length() // 4)
    if len(rows) < step:
        return _in_turn(rows)
    levels = []
    for level in range(4):
        whole = len(rows) // step * step if level < 3 else 0
        levels.append(_in_turn(rows[whole:]) if whole < len(rows) else None)
        if not whole:
            break
        rows = _in_turn(rows[:whole].reshape(-1, step, *rows.shape[1:]).swapaxes(0, 1))
    found = [each for each in levels if each is not None]
    return _in_turn(np.stack(found)) if len(found) > 1 else found[0]


def _in_turn(rows: Any) -> Any:
    """The sum over the first axis, one row after the other."""
    # NumPy adds in pairs what lies one behind the other.
    if rows.size > len(rows):
        return np.add.reduce(
            rows if rows.flags.c_contiguous else np.ascontiguousarray(rows), axis=0
        )
    return np.add.accumulate(rows, axis=0)[-1]
