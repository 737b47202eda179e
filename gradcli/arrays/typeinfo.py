"""`torch.finfo` and `torch.iinfo`: the limits of the number types."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.arrays.dtypes import DTYPES, DType, default_dtype
from gradcli.errors import type_error


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
