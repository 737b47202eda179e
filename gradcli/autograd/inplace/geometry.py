"""How views lie in the memory of their bases."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.backend import address_of, module_of

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]
"""Shape, strides and offset of a view in its base's memory, strides and offset in the view's own
elements: a real view of complex numbers has two for each of them.
"""


def geometry(base: Any, view: Any) -> Geometry:
    """How an array lies in the memory of its base."""
    size = view.itemsize
    offset = (address_of(view) - address_of(base)) // size
    return view.shape, tuple(step // size for step in view.strides), offset


def extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """How many elements of memory an array spans."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


def shown(memory: Any, dtype: Any, view: Geometry) -> Any:
    """The array that shows bytes of memory in a given geometry."""
    shape, strides, offset = view
    size = dtype.itemsize
    start = 0 if 0 in shape else offset * size
    steps = [step * size for step in strides]
    return module_of(memory).ndarray(shape, dtype, memory, start, steps)
