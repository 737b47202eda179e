"""Arrays of float16 and bfloat16 by kernels in C: conversions, and arithmetic in float32 that is
rounded once. NumPy's own, which convert float16 one by one, serve where the kernels are not built.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradcli.arrays.threads import SMALLEST_TILE, over_tiles
from gradcli.native.dispatch import kernel

_MANY = 1 << 14
"""Elements from which on a table of all float16 pays where there is no kernel."""

_MANY_COMPARED = 1 << 12
"""Elements from which on it pays to compare them in float32."""

_ARITHMETIC: dict[Any, int] = {
    np.add: 0,
    np.subtract: 1,
    np.multiply: 2,
    np.divide: 3,
    np.maximum: 4,
    np.minimum: 5,
}
"""The numbers by which the kernel knows what to compute."""


def convert(array: Any, out: Any) -> None:
    """Write the values of an array to one of its shape: one is float32, the other of half
    precision.
    """
    float16, narrows = array.dtype.kind == "f", array.dtype.itemsize == 4
    # NumPy widens bfloat16 as quickly.
    compute = kernel("single_to_half" if narrows else "half_to_single") if float16 else None
    if compute is not None and _lie_alike(array, out):
        numbers = (out.dtype.kind != "f",) if narrows else ()
        _run(compute, (_elements(array), _elements(out)), numbers)
    elif float16 and not narrows and array.size >= _MANY and array.flags.c_contiguous:
        out[...] = _singles().take(array.view(np.uint16))
    else:
        np.copyto(out, array, casting="unsafe")


def converted(array: Any, dtype: Any) -> Any:
    """An array of float32 in a dtype of half precision, or one of half precision in float32."""
    out = np.empty_like(array, dtype)
    convert(array, out)
    return out


def computed(ufunc: Any, self: Any, other: Any) -> Any:
    """A ufunc of two operands of one dtype of half precision, of which one may be a number; None
    where there is no quicker way than NumPy's. Of two equal ones the maximum is `other` as float16,
    `self` as bfloat16, and so the minimum; these are written `np.maximum(other, self)`.
    """
    which = _ARITHMETIC.get(ufunc)
    if which is None:  # a comparison
        many = max(self.size, other.size) >= _MANY_COMPARED
        return ufunc(_wide(self), _wide(other)) if many else None
    if which in (0, 2) and not any(self.strides):
        self, other = other, self
    compute = kernel("half_arithmetic")
    if compute is None or not any(self.strides):
        return None
    if not any(other.strides) and other.shape in ((), self.shape):
        other = np.array([other[(0,) * other.ndim]])
    elif not _lie_alike(self, other):
        return converted(ufunc(_wide(self), _wide(other)), self.dtype) if which < 4 else None
    out = np.empty_like(self)
    operands = _elements(self), _elements(other), _elements(out)
    _run(compute, operands, (which, self.dtype.kind != "f"))
    return out


def _wide(operand: Any) -> Any:
    return converted(operand, np.float32) if operand.ndim else np.float32(operand)


def _lie_alike(first: Any, second: Any) -> bool:
    """Whether two arrays of one shape lie in memory in one order, aligned and without gaps."""
    one, other = first.flags, second.flags
    if first.shape != second.shape or not (one.aligned and other.aligned):
        return False
    if one.c_contiguous and other.c_contiguous:
        return True
    return bool(one.f_contiguous and other.f_contiguous)


def _elements(array: Any) -> Any:
    """The elements of an array without gaps, as they lie, for a kernel."""
    if array.dtype.kind == "V":  # bfloat16
        array = array.view(np.uint16)
    if not array.flags.c_contiguous:
        array = array.T
    return array if array.size < SMALLEST_TILE else array.reshape(-1)


def _run(compute: Any, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> None:
    """Call a kernel, in tiles where there are many elements; an array of one goes with each."""
    count = arrays[0].size
    if count < SMALLEST_TILE:
        compute(*arrays, *numbers)
        return

    def work(tile: slice) -> None:
        compute(*[each[tile] if each.size > 1 else each for each in arrays], *numbers)

    over_tiles((count,), work)


@cache
def _singles() -> Any:
    """Every float16, by its bits, as float32."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
