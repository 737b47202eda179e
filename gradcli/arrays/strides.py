"""How copies lie in memory: as what they are copied from does, as far as that has no gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.arrays.backend import module_of


def copied_in_order(array: Any) -> Any:
    """A copy without gaps whose dimensions follow each other in memory as the array's do, which is
    what PyTorch calls preserving the format.
    """
    if array.ndim < 2 or array.flags.c_contiguous:
        return array.copy()
    order = outermost_first(array.shape, array.strides)
    return array.transpose(order).copy().transpose(inverse_order(order))


def laid_out_like(array: Any, made: Any) -> Any:
    """What was made of an array, of its shape: copied unless its memory is in that order."""
    if array.ndim < 2 or array.flags.c_contiguous:
        return made
    return in_order(made, outermost_first(array.shape, array.strides))


def laid_out_like_first(made: Any, first: Any, second: Any) -> Any:
    """What was made of two operands of one shape, in memory as the first of them is, as far as that
    tells dimensions apart, and for the rest as the second.
    """
    if getattr(second, "shape", None) != first.shape or made.shape != first.shape:
        return made
    return in_order(made, outermost_first(first.shape, first.strides, second.strides))


def in_order(array: Any, order: Sequence[int]) -> Any:
    """The array with its dimensions in memory in this order, the outermost first; copied unless it
    is so already.
    """
    laid = module_of(array).ascontiguousarray(array.transpose(order))
    return laid.transpose(inverse_order(order))


def inverse_order(order: Sequence[int]) -> list[int]:
    """The order of dimensions that undoes another one."""
    return sorted(range(len(order)), key=order.__getitem__)


def outermost_first(shape: tuple[int, ...], *operands: Sequence[int]) -> list[int]:
    """The dimensions by falling stride, of the first operand that tells two of them apart.

    One of stride 0 is not moved; of two equal strides the larger dimension comes first.
    """
    order = list(range(len(shape)))[::-1]  # innermost first
    for number in range(1, len(order)):
        place = number
        for below in range(number - 1, -1, -1):
            inner, outer = order[below], order[place]
            apart = _apart(shape, operands, inner, outer)
            if apart < 0:
                break
            if apart > 0:
                order[below], order[place] = outer, inner
                place = below
    return order[::-1]


def _apart(
    shape: tuple[int, ...], operands: Sequence[Sequence[int]], inner: int, outer: int
) -> int:
    """Below 0 if the inner of two dimensions belongs there, above 0 if not, else 0."""
    for strides in operands:
        if strides[inner] and strides[outer]:
            if strides[inner] != strides[outer]:
                return strides[inner] - strides[outer]
            if shape[inner] > shape[outer]:
                return 1
    return 0
