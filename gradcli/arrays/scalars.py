"""Python numbers that are written into tensors: what `fill_`, `masked_fill` and `x[0] = 2` store.

Arithmetic lets a number wrap around or overflow, as `dtypes.cast` does; writing refuses it.
"""

from __future__ import annotations

import math
from typing import Any

from gradcli.arrays.dtypes import DType, cast, float64, uint8
from gradcli.arrays.typeinfo import finfo, iinfo
from gradcli.errors import runtime_error


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
