"""Arrays of float16 and bfloat16 by kernels in C: conversions, and arithmetic in float32 that is
rounded once. Where the kernels are not built NumPy converts, float16 one by one; bits are the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradcli.arrays.native.dispatch import kernel
from gradcli.arrays.threads import TILE, over_tiles

_MANY = 1 << 14
"""Elements from which on float16 pays that is widened by a table, where there is no kernel, or in
an array of its own.
"""

_ARITHMETIC: dict[Any, int] = {
    np.add: 0,
    np.subtract: 1,
    np.multiply: 2,
    np.divide: 3,
    np.maximum: 4,
    np.minimum: 5,
}
"""The numbers by which the kernel knows what to compute."""


_OF_BITS: dict[Any, Any] = {
    np.negative: lambda bits: bits ^ np.uint16(0x8000),
    np.absolute: lambda bits: bits & np.uint16(0x7FFF),
}
"""What only changes the sign."""


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


def computed(ufunc: Any, self: Any, other: Any = None) -> Any:
    """A ufunc of an array of half precision, or of two operands of one such dtype, of which one may
    be a number; None where there is no quicker way than NumPy's. Of two equal ones the maximum is
    `other` as float16, `self` as bfloat16, and so the minimum: NumPy's of `other` and `self`.
    """
    if ufunc in _OF_BITS:
        return _OF_BITS[ufunc](self.view(np.uint16)).view(self.dtype)
    which = _ARITHMETIC.get(ufunc)
    if which is None:
        result = ufunc(_wide(self)) if other is None else ufunc(_wide(self), _wide(other))
        return result if result.dtype == np.bool_ else converted(result, self.dtype)
    compute = kernel("half_arithmetic")
    if compute is None or not _lie_alike(self, other):
        if which in (0, 2) and (other.ndim > self.ndim or not any(self.strides)):
            self, other = other, self
        repeated = _repeated(other, self) if compute and _lie_alike(self, self) else None
        if repeated is None:
            if which > 3 or max(self.size, other.size) < _MANY:
                return None
            return converted(ufunc(_wide(self), _wide(other)), self.dtype)
        other = repeated
    out = np.empty_like(self)
    operands = _elements(self), _elements(other), _elements(out)
    _run(compute, operands, (which, self.dtype.kind != "f"))
    return out


def _repeated(operand: Any, array: Any) -> Any:
    """The elements that an operand repeats along those of an array without gaps: one number, or
    long rows; None where it repeats none.
    """
    if operand.shape != array.shape[array.ndim - operand.ndim :]:
        return None
    if not any(operand.strides):
        return np.array([operand[(0,) * operand.ndim]])
    flags = operand.flags
    long = flags.c_contiguous and flags.aligned and operand.size >= _LONG
    return operand if long and array.flags.c_contiguous else None


_LONG = 32
"""Elements of a row from which on repeating it pays."""


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
    return array if array.size < TILE else array.reshape(-1)


def _run(compute: Any, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> None:
    """Call a kernel, in tiles where there are many elements; an array that is repeated goes with
    each tile.
    """
    count = arrays[0].size
    if count < TILE:
        compute(*arrays, *numbers)
        return
    least = min([each.size for each in arrays])
    lines = [each.reshape(-1, least if least < count else 1) for each in arrays]

    def work(tile: slice) -> None:
        compute(*[each[tile] if len(each) > 1 else each for each in lines], *numbers)

    over_tiles(lines[0].shape, work)


@cache
def _singles() -> Any:
    """Every float16, by its bits, as float32."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
