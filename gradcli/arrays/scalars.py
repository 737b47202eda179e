"""Python numbers that are written into tensors: what `fill_`, `masked_fill` and `x[0] = 2` store;
and the limits of the number types, `torch.finfo` and `torch.iinfo`.

Arithmetic lets a number wrap around or overflow, as `dtypes.cast` does; writing refuses it.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.arrays.dtypes import DTYPES, DType, cast, default_dtype, float64, uint8
from gradcli.errors import runtime_error, type_error


class FInfo:
    """The limits of a floating dtype.

    Attributes:
        bits: of one number.
        dtype: the dtype's name, a string as in PyTorch.
        eps: the distance from 1 to the next larger number.
        max, min: the largest and the most negative finite number.
        smallest_normal, tiny: the smallest positive number of full precision.
        resolution: the decimal place to which all numbers near 1 are exact.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    language_name: ClassVar[str] = "torch.finfo"
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)

    def __init__(self, dtype: DType, fraction_bits: int, exponent: int, resolution: float) -> None:
        self.bits = 8 * dtype.itemsize
        self.dtype = dtype.name
        self.eps = 2.0**-fraction_bits
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0 ** (1 - exponent)
        self.resolution = resolution

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g},"
            f" eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g},"
            f" dtype={self.dtype})"
        )


class IInfo:
    """The limits of an integer dtype.

    Attributes:
        bits: of one number.
        dtype: the dtype's name, a string as in PyTorch.
        max, min: the largest and the smallest number.
    """

    __slots__ = ("bits", "dtype", "max", "min")

    language_name: ClassVar[str] = "torch.iinfo"
    language_attributes: ClassVar[frozenset[str]] = frozenset(__slots__)

    def __init__(self, dtype: DType) -> None:
        self.bits = 8 * dtype.itemsize
        self.dtype = dtype.name
        self.max = 2 ** (self.bits - dtype.is_signed) - 1
        self.min = -self.max - 1 if dtype.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# One object for each dtype, so that equal ones are equal.
_FLOATING = {
    name: FInfo(DTYPES[name], *limits)
    for name, limits in {
        "float16": (10, 15, 1e-3),
        "bfloat16": (7, 127, 1e-2),
        "float32": (23, 127, 1e-6),
        "float64": (52, 1023, 1e-15),
    }.items()
}
_INTEGERS = {name: IInfo(DTYPES[name]) for name in ("uint8", "int8", "int16", "int32", "int64")}


def finfo(type: Any = None) -> FInfo:
    """The limits of a floating dtype, or of a complex dtype's parts; the default dtype's if None.
    Raises E202 for anything else.

    Example: torch.finfo(torch.float32)
    """
    dtype = default_dtype() if type is None else type
    if isinstance(dtype, DType) and dtype.to_real().is_floating_point:
        return _FLOATING[dtype.to_real().name]
    raise type_error(
        "torch.finfo() requires a floating point input type. Use torch.iinfo to handle"
        " 'torch.finfo'"
    )


def iinfo(type: Any) -> IInfo:
    """The limits of an integer dtype. Raises E202 for anything else.

    Example: torch.iinfo(torch.int32)
    """
    if isinstance(type, DType) and type.category == "int":
        return _INTEGERS[type.name]
    raise type_error(
        "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"
    )


def checked_cast(number: Any, dtype: DType) -> Any:
    """A Python number as a NumPy scalar of a dtype that can hold it.

    Raises E204, as RuntimeError, for a finite number beyond the dtype's, for NaN and infinities
    where it is an integer dtype, and for an imaginary part where it is a real one; as
    OverflowError for an integer of more than 64 bits.
    """
    result = cast(number, dtype)
    if not _holds(dtype, number):
        raise runtime_error(
            f"{number} lies outside {dtype}",
            text=f"value cannot be converted to type {_name(dtype)} without overflow",
        )
    return result


def _name(dtype: DType) -> str:
    """The dtype's name in C++, as PyTorch's conversions of numbers write it."""
    if dtype.category != "int":
        return dtype.c_name
    return "int" if dtype.name == "int32" else f"{dtype.name}_t"


def checked_number(number: Any, dtype: DType) -> Any:
    """The same; the number itself where NumPy casts it alike, for compiled loops to recognise."""
    result = checked_cast(number, dtype)
    return number if _is_alike(number, dtype) else result


def plain_number(number: Any, dtype: DType) -> Any:
    """What `cast` makes of a number, unless NumPy casts it alike: then the number itself."""
    return number if _is_alike(number, dtype) else cast(number, dtype)


def _is_alike(number: Any, dtype: DType) -> bool:
    """Whether NumPy takes a number beside an array of a dtype for what `cast` makes of it."""
    if dtype.category == "int":
        return type(number) is int and iinfo(dtype).min <= number <= iinfo(dtype).max
    alike = type(number) is float or (type(number) is int and abs(number) < _EXACT)
    return alike and dtype.is_floating_point


_EXACT = 1 << 24
"""Integers below this are exact in float32."""


def as_zero_dim(number: Any, dtype: DType) -> Any:
    """The same where PyTorch makes a 0-dim tensor of the number first, as for `x[0] = 2`: there
    float16 and bfloat16 take it as float64, so that it overflows to infinity after all.
    """
    if dtype.is_floating_point and dtype.itemsize == 2:
        number = checked_cast(number, float64)
        return cast(number, dtype)
    return checked_cast(number, dtype)


def _holds(dtype: DType, number: Any) -> bool:
    if dtype.category == "bool":
        return True
    if type(number) is complex:
        if dtype.is_complex:
            part = dtype.to_real()
            return _holds(part, number.real) and _holds(part, number.imag)
        return not number.imag and _holds(dtype, number.real)
    if dtype.category == "int":
        lowest, highest = iinfo(dtype).min, iinfo(dtype).max
        if type(number) is float:
            return lowest <= number <= float(highest)
        # A negative integer wraps around where there are no signs, as in C.
        return (-highest if dtype is uint8 else lowest) <= number <= highest
    return not math.isfinite(number) or abs(number) <= finfo(dtype).max
