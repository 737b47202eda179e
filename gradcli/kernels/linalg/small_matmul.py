"""Small products of float32 matrices in the order in which PyTorch's library for matrices adds on
a CPU, so that last bits agree.

The library has a kernel that rounds a product and the sum it is added to once, and others for what
that one leaves over or is too large for, which round both. Those add either one product after the
other, or in lanes of a register, where the numbers to be multiplied lie one behind the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.kernels.sums.cascade_sum import in_turn
from gradcli.kernels.sums.fused_sums import fused_sum

_LANES = 4
"""Numbers in a register of the kernels that round twice."""

_BLOCK = 192
"""So many products the kernel that rounds once adds up before it adds them to the result."""


def ordered_product(
    left: Any,
    right: Any,
    left_by_columns: bool = False,
    right_by_columns: bool = False,
    start: Any = None,
) -> Any:
    """left (n, k) @ right (k, m), added to `start`, which has the shape of the result.

    A matrix lies in memory row by row, or column by column where it is said to. Rows, or columns,
    have no gaps between them, and k is at least 1.
    """
    (rows, length), columns = left.shape, right.shape[1]
    if columns == 1 and not left_by_columns:
        return _plus(start, _dots_with_vector(left, right[:, 0])[:, None])
    if rows == 1 and columns > 1 and right_by_columns:
        return _plus(start, _dots_with_vector(right.T, left[0])[None])
    if rows == 1 or columns == 1:
        return _in_turn(left, right, start)
    fused = _rows_rounded_once(rows, length, columns)
    result = np.empty((rows, columns), left.dtype)
    if fused:
        result[:fused] = _rounded_once(
            left[:fused], right, None if start is None else start[:fused]
        )
    if fused < rows:
        rest, begun = left[fused:], None if start is None else start[fused:]
        if right_by_columns and left_by_columns:
            result[fused:] = _begun_chain(_products(rest, right), begun)
        elif right_by_columns:
            result[fused:] = _plus(begun, _dots(rest, right, fused))
        else:
            result[fused:] = _in_turn(rest, right, begun, fused)
    return result


def _plus(start: Any, product: Any) -> Any:
    return product if start is None else start + product


def _rows_rounded_once(rows: int, length: int, columns: int) -> int:
    """How many rows of a product go through the kernel that rounds once."""
    if columns < 12 or rows < 4:
        return 0
    if rows >= 12 or length <= 4 or (length <= 16 and columns <= 16):
        return rows
    return rows // 4 * 4


def _rounded_once(left: Any, right: Any, start: Any) -> Any:
    length = len(right)
    block = _BLOCK
    if length < 2 * _BLOCK:
        block = length if length <= _BLOCK else length // 2
    total = start
    for first in range(0, length, block):
        part = slice(first, first + block)
        wide = left[:, part].T.astype(np.float64)
        total = _plus(total, fused_sum(wide[:, :, None] * right[part, None]))
    return total


def _products(left: Any, right: Any) -> Any:
    """What is added up: an array (k, n, m) without gaps."""
    return np.multiply(left.T[:, :, None], right[:, None], order="C")


def _in_turn(left: Any, right: Any, start: Any, first_row: int = 0) -> Any:
    """One product after the other. Rows of a result do not all begin where a register does: what
    lies before that, if enough comes after it, is left to a kernel that takes eight at a time.
    """
    products = _products(left, right)
    length, rows, columns = products.shape
    heads = [-(first_row + row) * columns % _LANES for row in range(rows)]
    scalar = [(row, head) for row, head in enumerate(heads) if 0 < head <= columns - _LANES]
    pieces = []
    if length >= 8 and rows > 1 and scalar:
        for row, head in scalar:
            begun = None if start is None else start[row, :head]
            pieces.append((row, head, _by_eight(products[:, row, :head], begun)))
    result = _begun_chain(products, start)
    for row, head, piece in pieces:
        result[row, :head] = piece
    return result


def _begun_chain(products: Any, start: Any) -> Any:
    """The sum over the first axis of an array without gaps, one after the other, on top of `start`.
    The array is overwritten.
    """
    if start is not None:
        products[0] += start
    return in_turn(products)


def _by_eight(products: Any, start: Any) -> Any:
    """The sum over the first axis: of every eight, four one after the other, and four as one."""
    whole = len(products) // 8 * 8
    eights = products[:whole].reshape(-1, 8, products.shape[1])
    fours = np.add.accumulate(eights[:, 4:], axis=1)[:, -1:]
    grouped = np.concatenate([eights[:, :4], fours], axis=1).reshape(-1, products.shape[1])
    terms = [grouped, products[whole:]]
    if start is not None:
        terms.insert(0, start[None])
    return np.add.accumulate(np.concatenate(terms), axis=0)[-1]


def _dots(left: Any, right: Any, first_row: int) -> Any:
    """In lanes: columns in fours, and what those leave over in two registers. A row of the left
    matrix is read from where a register begins.
    """
    products = _products(left, right)
    length, rows, columns = products.shape
    whole = columns // _LANES * _LANES
    result = np.empty((rows, columns), left.dtype)
    for offset in range(min(rows, _LANES)):
        alike = slice(offset, None, _LANES)  # rows that begin as far from a register
        head = -(first_row + offset) * length % _LANES
        if whole:
            result[alike, :whole] = _in_lanes(products[:, alike, :whole], head, 1)
        if whole < columns:
            result[alike, whole:] = _in_lanes(products[:, alike, whole:], head, 2)
    return result


def _dots_with_vector(matrix: Any, vector: Any) -> Any:
    """matrix (n, k) @ vector in lanes: rows in fours, which begin with what does not fill a
    register; and rows left over, which begin with one register, number by number.
    """
    products = np.ascontiguousarray((matrix * vector).T)
    length, rows = products.shape
    whole = rows // _LANES * _LANES
    result = np.empty(rows, matrix.dtype)
    if whole:
        result[:whole] = _in_lanes(products[:, :whole], (length - 1) % _LANES + 1, 1)
    body = (length - _LANES) // 8 * 8
    for row in range(whole, rows):
        registers = 1 if row == whole + 1 else 2
        result[row] = _in_lanes(products[:, row : row + 1], _LANES, registers, body)[0]
    return result


def _in_lanes(products: Any, head: int, registers: int, body: int | None = None) -> Any:
    """The sum over the first axis: `head` numbers one after the other, then `body` in the lanes of
    some registers, of which the first begins with that sum, and then the rest.
    """
    width = registers * _LANES
    if body is None:
        body = (len(products) - head) // width * width
    if body <= 0:
        return np.add.accumulate(products, axis=0)[-1]
    lanes = products[head : head + body].reshape(-1, width, *products.shape[1:])
    if head:
        lanes[0, 0] += np.add.accumulate(products[:head], axis=0)[-1]
    total = np.add.accumulate(lanes, axis=0)[-1]
    if registers == 2:
        total = total[:_LANES] + total[_LANES:]
    total = (total[0] + total[2]) + (total[1] + total[3])
    rest = products[head + body :]
    if not len(rest):
        return total
    return np.add.accumulate(np.concatenate([total[None], rest]), axis=0)[-1]
