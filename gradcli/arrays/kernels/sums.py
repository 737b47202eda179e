"""Sums as PyTorch's kernels round them: cascade sums, in its order on a CPU, so that the last bits
agree, and fused multiply-adds, total + factor · term with one rounding.


PyTorch reads a sum as rows by columns, where the reduced dimensions are rows. Contiguous elements
are added in lanes, as many as a 32-byte register holds; a long column is added in four interleaved
parts. The partial sums of 16 rows, of 16 times 16 rows, and so on are kept apart, so that small
numbers are not lost. Larger sums are split among threads and have no fixed order. The variance is
such a sum of squared differences from a mean, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.gpu.array import GPUArray
from gradcli.arrays.layout.strides import outermost_first
from gradcli.arrays.threads import over_tiles

Step = Callable[[Any], Any]
"""One step of a sum: reduces arrays of one shape to smaller ones."""

LARGEST = 32768
"""Elements from which on PyTorch splits a sum among threads."""

REGISTER = 32
"""Bytes of a register."""

_plainly: Step = np.add.reduce
"""The sum over the first axis of an array without gaps, with several elements a row, row by row."""

_running_sums = np.add.accumulate
"""The running sums along the first axis."""


MANY = 4096
"""How many layouts of arrays the steps are cached for."""

_remembered: dict[tuple[Any, ...], Step] = {}


def ordered_sum(array: Any, axes: tuple[int, ...] | None) -> Any:
    """The sum of a float32 or float64 array over axes, all for None, without them.

    The array has fewer than `LARGEST` elements and at least one dimension. The steps depend on its
    layout in memory, and are found once for all arrays of that layout.
    """
    key = (array.shape, array.strides, axes, array.itemsize)
    step = _remembered.get(key)
    if step is None:
        if len(_remembered) == MANY:
            _remembered.clear()
        step = _remembered[key] = steps_of(array, axes)
    return step(array)


def steps_of(array: Any, axes: tuple[int, ...] | None) -> Step:
    """The sum over axes, all for None, of arrays with the layout of this one."""
    sizes, strides = array.shape, array.strides
    reduced = range(array.ndim) if axes is None else axes
    kept = [axis for axis in range(array.ndim) if axis not in reduced]
    shape = tuple([sizes[axis] for axis in kept])
    if not array.size:
        dtype = array.dtype
        return lambda _: np.zeros(shape, dtype)[()]
    rows = _groups(array, sorted(reduced, key=lambda axis: (strides[axis], -axis)))
    columns = _groups(array, reversed(kept))  # in the result's order in memory
    # The axes as (further rows, rows, further columns, columns), in each the innermost last.
    slow = [axis for group in reversed(rows[1:]) for axis in group]
    side = [axis for group in reversed(columns) for axis in group]
    alone = [axis for axis in range(array.ndim) if sizes[axis] == 1]
    order = alone + slow + (rows[0] if rows else []) + side
    grouped = (
        prod([sizes[axis] for axis in slow]),
        prod([sizes[axis] for axis in rows[0]]) if rows else 1,
        prod([sizes[axis] for group in columns[1:] for axis in group]),
        prod([sizes[axis] for axis in columns[0]]) if columns else 1,
    )
    added = _added(
        *grouped,
        strides[rows[0][-1]] if rows else 0,
        strides[columns[0][-1]] if columns else 0,
        array.itemsize,
    )
    if not shape and array.flags.c_contiguous:
        return lambda array: added(array)[0]
    if not shape:
        return lambda array: added(array.transpose(order)).reshape(-1)[0]
    back = sorted(range(len(side)), key=side.__getitem__)
    if order == sorted(order) and back == sorted(back):
        if shape == grouped[3:] and grouped[0] == 1:
            return added
        return lambda array: added(array).reshape(shape)
    sides = tuple([sizes[axis] for axis in side])
    return lambda array: added(array.transpose(order)).reshape(sides).transpose(back).reshape(shape)


def _groups(array: Any, axes: Iterable[int]) -> list[list[int]]:
    """Axes, passed innermost first, in groups that can be joined to one, in each the outermost axis
    first.
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


def _added(
    slow: int, rows: int, side: int, columns: int, row_step: int, column_step: int, itemsize: int
) -> Step:
    """The sum of arrays that can be read as (further rows, rows, further columns, columns) over the
    two first. Rows and columns, but not the further ones, are `row_step` and `column_step` bytes
    apart.
    """
    lanes = REGISTER // itemsize
    along = row_step == itemsize and rows >= lanes
    if slow == side == columns == 1:
        if along:
            return _along(rows, lanes, 1)
        of_column = _interleaved(rows, in_turn)
        return lambda array: of_column(array.reshape(rows, 1))
    if along:
        of_rows = _along(rows, lanes, 2 if slow == side == 1 else 4)
        if slow == side == 1:
            return lambda array: of_rows(array.reshape(rows, columns).T)
        return lambda array: in_turn(
            of_rows(array.reshape(slow, rows, side, columns).transpose(0, 2, 3, 1))
        )
    # Contiguous columns have one layout.
    adder = _plainly if slow == side == 1 < columns and column_step < row_step else in_turn
    if slow == 1 and column_step == itemsize and columns >= lanes:
        of_columns = _side_by_side(rows, columns, 4 * lanes, adder)
    elif slow > 1 or row_step < column_step or columns == 1:
        of_columns = _interleaved(rows, in_turn)
    else:
        of_columns = _side_by_side(rows, columns, 4, adder)
    if slow == side == 1:
        return lambda array: of_columns(array.reshape(rows, columns))
    return lambda array: in_turn(
        of_columns(array.reshape(slow, rows, side, columns).swapaxes(0, 1))
    )


def _along(length: int, lanes: int, ndim: int) -> Step:
    """The sum over the last of `ndim` axes, whose elements are contiguous: in lanes, then the
    remaining elements, then over the lanes. The sum of a line is an array of one element.
    """
    count = length // lanes
    whole = count * lanes
    lane_by_lane = _interleaved(count, _plainly)
    if ndim == 1:

        def of_line(array: Any) -> Any:
            if whole == length:
                return _running_sums(lane_by_lane(array.reshape(count, lanes)))[-1:]
            line = array.reshape(-1)
            sums = lane_by_lane(line[:whole].reshape(count, lanes))
            return _running_sums(np.concatenate((line[whole:], sums)))[-1:]

        return of_line
    order = (ndim - 1, *range(ndim - 1), ndim)

    def step(lines: Any) -> Any:
        by_lane = lines[..., :whole].reshape(*lines.shape[:-1], count, lanes)
        turned = by_lane.transpose(order)
        sums = lane_by_lane(turned if turned.flags.c_contiguous else turned.copy())
        if whole < length:
            sums = np.concatenate([lines[..., whole:], sums], axis=-1)
        return _running_sums(sums, -1)[..., -1].copy()

    return step


def _side_by_side(rows: int, columns: int, width: int, adder: Step) -> Step:
    """The sum over the first axis: whole groups of `width` columns row by row, others
    interleaved.
    """
    whole = columns // width * width
    if whole == columns:
        return _cascade(rows, adder)
    if not whole:
        return _interleaved(rows, adder)
    grouped, others = _cascade(rows, in_turn), _interleaved(rows, in_turn)
    return lambda array: np.concatenate(
        [grouped(array[..., :whole]), others(array[..., whole:])], axis=-1
    )


def _interleaved(rows: int, adder: Step) -> Step:
    """The sum over the first axis in four parts, each of every fourth row, which are then added."""
    count, left = divmod(rows, 4)
    if not count or rows == 4:
        return adder
    if count == 1:
        order = np.array([0, *range(4, rows), 1, 2, 3])
        return lambda array: adder(array.take(order, 0))
    added = _cascade(count, adder)
    if not left:
        return lambda array: adder(added(array.reshape(count, 4, *array.shape[1:])))

    def step(array: Any) -> Any:
        parts = added(array[: rows - left].reshape(count, 4, *array.shape[1:]))
        first = parts[0]
        for row in array[rows - left :]:
            first = first + row
        return first + parts[1] + parts[2] + parts[3]

    return step


def _cascade(rows: int, adder: Step) -> Step:
    """The cascade sum over the first axis: blocks of rows, then blocks of those, in four levels."""
    block = 1 << max(4, (rows - 1).bit_length() // 4)
    if rows <= block:
        return adder
    if adder is _plainly and rows == 2 * block:

        def of_two(array: Any) -> Any:
            first, second = np.add.reduce(array.reshape(2, block, *array.shape[1:]), 1)
            return first + second

        return of_two
    if rows < 2 * block:
        return lambda array: in_turn(array[block:]) + in_turn(array[:block])

    def step(array: Any) -> Any:
        levels = []
        for level in range(4):
            whole = len(array) // block * block if level < 3 else 0
            if whole < len(array):
                levels.append(in_turn(array[whole:]))
            if not whole:
                break
            array = in_turn(array[:whole].reshape(-1, block, *array.shape[1:]).swapaxes(0, 1))
        return in_turn(np.stack(levels)) if len(levels) > 1 else levels[0]

    return step


def in_turn(array: Any) -> Any:
    """The sum of a floating array over the first axis, one row after the other."""
    # NumPy adds contiguous elements pairwise.
    if array.size == len(array):
        return _running_sums(array)[-1]
    if array.flags.c_contiguous or (array.ndim == 2 and array.strides[0] > array.strides[1] > 0):
        return _plainly(array)
    return _plainly(array.copy("C"))


def wide(array: Any) -> Any:
    """A half-precision array as float32, in which PyTorch accumulates; any other unchanged."""
    return dtypes.widened(array) if array.dtype.itemsize == 2 and is_float(array) else array


def wider(array: Any) -> Any:
    """An array in the next wider dtype, in which PyTorch accumulates one element after another."""
    dtype = _WIDER.get(array.dtype)
    return wide(array) if dtype is None else array.astype(dtype)


_WIDER: dict[Any, Any] = {
    np.dtype(np.float32): np.float64,
    np.dtype(np.complex64): np.complex128,
}


def is_float(array: Any) -> bool:
    """Whether the elements are real floating-point numbers."""
    return dtypes.of_array(array).category == "float"


def lane_product(lines: Any) -> Any:
    """The product over the last axis: four registers at a time, then the four, then the numbers in
    a register and the remaining ones, one after another.
    """
    lanes = REGISTER // lines.dtype.itemsize
    *others, length = lines.shape
    whole = length // (4 * lanes) * (4 * lanes)
    if whole:
        parts = np.multiply.reduce(lines[..., :whole].reshape(*others, -1, 4, lanes), axis=-3)
        parts = parts[..., ::2, :] * parts[..., 1::2, :]
        register = parts[..., 0, :] * parts[..., 1, :]
        lines = np.concatenate([register, lines[..., whole:]], axis=-1)
    return np.multiply.accumulate(lines, axis=-1)[..., -1].copy()


# --- variance -------------------------------------------------------------------------------------


_FEW = 256
"""Numbers up to which they are added one by one, for the last digit of a double."""


def mean_and_squares(values: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The mean over some axes and the sum of the squared differences from it: float64 arrays in
    which those axes have the size 1.

    A few doubles are read in one pass: B. P. Welford, "Note on a method for calculating corrected
    sums of squares and products", Technometrics 4 (1962) 419. All else takes two passes.
    """
    shape = tuple([1 if axis in axes else size for axis, size in enumerate(values.shape)])
    if type(values) in HOST_ARRAYS and values.dtype.char == "d":
        each = _in_order(values, axes)
        if 0 < len(each) <= _FEW:
            mean, squares = _one_by_one(each)
            return mean.reshape(shape), squares.reshape(shape)
    if (
        type(values) is np.ndarray
        and values.size >= 2 * _ROWS
        and axes == (values.ndim - 1,)
        and values.flags.c_contiguous
    ):
        return _by_rows(values, shape)
    exact = values.astype(np.float64)
    count = math.prod([values.shape[axis] for axis in axes])
    mean = np.add.reduce(exact, axis=axes, keepdims=True) / np.float64(count)
    difference = exact - mean
    return mean, np.add.reduce(difference * difference, axis=axes, keepdims=True)


_ROWS = 1 << 14
"""Elements of some rows whose float64 stay in the processor's caches."""


def _by_rows(values: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The same along the last axis, on a thread per core."""
    rows = values.reshape(-1, values.shape[-1])
    mean, squares = np.empty((len(rows), 1)), np.empty((len(rows), 1))

    def work(tile: slice) -> None:
        exact = rows[tile].astype(np.float64)
        np.add.reduce(exact, axis=1, keepdims=True, out=mean[tile])
        mean[tile] /= np.float64(values.shape[-1])
        exact -= mean[tile]
        exact *= exact
        np.add.reduce(exact, axis=1, keepdims=True, out=squares[tile])

    over_tiles(rows.shape, work, _ROWS)
    return mean.reshape(shape), squares.reshape(shape)


def _in_order(values: Any, axes: tuple[int, ...]) -> Any:
    """The values with some axes joined to one, the first, in their order in memory."""
    order = [axis for axis in outermost_first(values.shape, values.strides) if axis in axes]
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    count = math.prod([values.shape[axis] for axis in axes])
    return values.transpose(*order, *kept).reshape(count, *[values.shape[axis] for axis in kept])


def _one_by_one(values: Any) -> tuple[Any, Any]:
    mean = squares = np.zeros(values.shape[1:])
    for count, value in enumerate(values, 1):
        change = value - mean
        mean = mean + change / count
        squares = squares + change * (value - mean)
    return mean, squares


def squares_about(mean: Any, values: Any) -> Any:
    """The sum of the squared differences of all values from a number, in their order in memory."""
    every = _in_order(values, tuple(range(values.ndim)))
    difference = every.astype(np.float64) - np.float64(mean)
    squares = difference * difference
    return np.add.accumulate(squares)[-1] if len(squares) else np.float64(0)


# --- fused multiply-add ---------------------------------------------------------------------------


_DOUBLE = np.dtype(np.float64)
_EXTENDED = np.dtype(np.longdouble)
_HOST = (*HOST_ARRAYS, np.generic)


def _wide(array: Any) -> Any:
    """The next wider format than an array's. A GPU has none wider than double."""
    return _EXTENDED if array.dtype is _DOUBLE and type(array) is not GPUArray else _DOUBLE


def widened(number: Any, array: Any) -> Any:
    """A number, or numbers, rounded to an array's format, in the next wider one."""
    if isinstance(number, HOST_ARRAYS):
        return number.astype(array.dtype, copy=False).astype(_wide(array))
    if array.dtype is _DOUBLE:
        return number if type(array) is GPUArray else np.longdouble(number)
    return np.float64(array.dtype.type(number))


def multiply_add_wide(total: Any, term: Any, factor: Any) -> Any:
    """total + term · factor, a widened number or an array, in the wider format.

    Cast by hand, since a ufunc on operands of two formats takes several times as long.
    """
    wide = _wide(total)
    result = term.astype(wide) * factor
    if result.shape != total.shape:
        return result + total.astype(wide)
    result += total.astype(wide)
    return result


def is_fused(total: Any, term: Any) -> bool:
    """Whether PyTorch's kernels round total + factor · term once: both are single or double."""
    return (
        isinstance(total, _HOST)
        and isinstance(term, _HOST)
        and total.dtype is term.dtype
        and total.dtype.kind == "f"
        and total.dtype.itemsize > 2
    )


def multiply_add(total: Any, term: Any, factor: Any) -> Any:
    """total + term · factor, rounded once where PyTorch does so."""
    if not is_fused(total, term):
        return total + term * factor
    wide = multiply_add_wide(total, term, widened(factor, total))
    return wide.astype(total.dtype)[()]
