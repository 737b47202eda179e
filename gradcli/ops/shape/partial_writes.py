"""Writes to a part of a value that a derivative rule has just made, on arrays and on tensors.

Where PyTorch's formula writes in place, the graph of a gradient has a `CopySlices`; so has ours
when the rule does the same.
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.inplace.writes import write
from gradcli.autograd.tensor import Tensor
from gradcli.ops.creation.copies import copy_, fill_
from gradcli.ops.shape.slicing import diagonal, slice_


def matrix_diagonal_of(value: Any) -> Any:
    """The diagonals of matrices, a view."""
    return diagonal(value, 0, value.ndim - 2, value.ndim - 1)


def block_of(value: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """The block of matrices between two rows and two columns, a view."""
    part = slice_(value, value.ndim - 2, *rows, 1)
    return slice_(part, value.ndim - 1, *columns, 1)


def assign(part: Any, value: Any) -> None:
    """Write a value into a view; its history becomes part of that of the view's base."""
    if type(part) is Tensor:
        copy_(part, value)
    else:
        part[...] = value


def fill(part: Any, number: float) -> None:
    """Write a number into each element of a view."""
    if type(part) is Tensor:
        fill_(part, number)
    else:
        part[...] = number


def scale(part: Any, number: float) -> None:
    """Multiply each element of a view by a number."""
    if type(part) is Tensor:
        write(part, part * number)
    else:
        part *= number
