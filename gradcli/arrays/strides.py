"""How copies lie in memory: as what they are copied from does, as far as that has no gaps."""

from __future__ import annotations

from typing import Any


def copied_in_order(array: Any) -> Any:
    """A copy without gaps whose dimensions follow each other in memory as the array's do, which is
    what PyTorch calls preserving the format.
    """
    if array.ndim < 2 or array.flags.c_contiguous:
        return array.copy()
    order = _outermost_first(array.shape, array.strides)
    back = sorted(range(array.ndim), key=order.__getitem__)
    return array.transpose(order).copy().transpose(back)


def _outermost_first(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The dimensions by falling stride; one of stride 0 is not moved, of two equal strides the
    larger dimension comes first.
    """
    order = list(range(len(shape)))[::-1]  # innermost first
    for number in range(1, len(order)):
        place = number
        for below in range(number - 1, -1, -1):
            inner, outer = order[below], order[place]
            if not strides[inner] or not strides[outer]:
                continue
            if (strides[inner], shape[inner]) <= (strides[outer], shape[outer]):
                break
            order[below], order[place] = outer, inner
            place = below
    return order[::-1]
