"""The element types, PyTorch's promotion of them, and conversion from one to another.

A program's `torch.float32` is a `DType`; arrays know only NumPy's dtypes, and `of_array` leads from
one to the other. NumPy's own promotion is never asked: it differs from PyTorch's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import GradcliError, dtype_error
from gradcli.packages import imported
from gradcli.state import active

_RANKS = {"bool": 0, "int": 1, "float": 2, "complex": 3}
"""The categories in promotion's order: the higher one wins."""


class DType:
    """An element type, `torch.float32` and its like. There is one object of each, so dtypes are
    compared with `is`.

    Attributes:
        name: PyTorch's name, without `torch.`.
        category: `"bool"`, `"int"`, `"float"` or `"complex"`, which promotion goes by first.
        itemsize: bytes per element.
        numpy_dtype: NumPy's dtype; bfloat16's imports ml_dtypes when it is first read.
    """

    __slots__ = ("category", "itemsize", "name", "numpy_dtype")

    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"is_complex", "is_floating_point", "is_signed", "itemsize", "to_complex", "to_real"}
    )

    numpy_dtype: Any

    def __init__(self, name: str, category: str, itemsize: int) -> None:
        self.name = name
        self.category = category
        self.itemsize = itemsize
        if name != "bfloat16":
            self.numpy_dtype = np.dtype(name)

    def __getattr__(self, name: str) -> Any:
        # Reached only where a slot is empty, so bfloat16 costs the other dtypes nothing.
        if name != "numpy_dtype":
            raise AttributeError(name)
        self.numpy_dtype = np.dtype(imported("ml_dtypes").bfloat16)
        _BY_NUMPY[self.numpy_dtype] = self
        return self.numpy_dtype

    @property
    def scalar_type(self) -> str:
        """Its name in PyTorch's old types and in its errors: `Float` of `torch.FloatTensor`."""
        return _SCALAR_TYPES[self.name][0]

    @property
    def c_name(self) -> str:
        """Its name in C++, which some of PyTorch's errors give."""
        return _SCALAR_TYPES[self.name][1]

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a real floating dtype."""
        return self.category == "float"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex dtype."""
        return self.category == "complex"

    @property
    def is_signed(self) -> bool:
        """Whether it has negative values."""
        return self.name not in ("bool", "uint8")

    def to_complex(self) -> DType:
        """The complex dtype with parts of this one. Raises E203 for integers, and E205 for float16,
        whose complex dtype is outside the language.
        """
        if self.category == "complex":
            return self
        if self.category != "float":
            raise dtype_error(f"{self} has no complex dtype")
        if self is float16:
            raise GradcliError("E205", "torch.complex32 is outside the language")
        return complex128 if self is float64 else complex64

    def to_real(self) -> DType:
        """The dtype of a complex dtype's parts; any other dtype itself."""
        if self.category != "complex":
            return self
        return float64 if self is complex128 else float32

    def __repr__(self) -> str:
        return f"torch.{self.name}"


boolean = DType("bool", "bool", 1)
uint8 = DType("uint8", "int", 1)
int8 = DType("int8", "int", 1)
int16 = DType("int16", "int", 2)
int32 = DType("int32", "int", 4)
int64 = DType("int64", "int", 8)
float16 = DType("float16", "float", 2)
bfloat16 = DType("bfloat16", "float", 2)
float32 = DType("float32", "float", 4)
float64 = DType("float64", "float", 8)
complex64 = DType("complex64", "complex", 8)
complex128 = DType("complex128", "complex", 16)

_ALL = (
    boolean, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64,
    complex128,
)  # fmt: skip

_SCALAR_TYPES = {
    "bool": ("Bool", "bool"),
    "uint8": ("Byte", "unsigned char"),
    "int8": ("Char", "signed char"),
    "int16": ("Short", "short int"),
    "int32": ("Int", "int"),
    "int64": ("Long", "long int"),
    "float16": ("Half", "c10::Half"),
    "bfloat16": ("BFloat16", "c10::BFloat16"),
    "float32": ("Float", "float"),
    "float64": ("Double", "double"),
    "complex64": ("ComplexFloat", "c10::complex<float>"),
    "complex128": ("ComplexDouble", "c10::complex<double>"),
}

DTYPES: dict[str, DType] = {
    **{dtype.name: dtype for dtype in _ALL},
    "short": int16,
    "int": int32,
    "long": int64,
    "half": float16,
    "float": float32,
    "double": float64,
    "cfloat": complex64,
    "cdouble": complex128,
}
"""Every dtype by each of the names that `torch` has for it."""

_BY_NUMPY: dict[Any, DType] = {d.numpy_dtype: d for d in _ALL if d is not bfloat16}


def of_numpy(dtype: Any) -> DType:
    """The dtype of a NumPy dtype that arrays of the language have."""
    return _BY_NUMPY[dtype]


def of_array(array: Any) -> DType:
    """The dtype of an array or NumPy scalar. Raises E203 for one that the language does not have,
    such as NumPy's uint16.
    """
    try:
        return _BY_NUMPY[array.dtype]
    except KeyError:
        # The array may be the first of bfloat16.
        if array.dtype.name == "bfloat16" and array.dtype == bfloat16.numpy_dtype:
            return bfloat16
    raise dtype_error(f"arrays of dtype {array.dtype} are outside the language")


def default_dtype() -> DType:
    """The dtype of new floating tensors: `torch.get_default_dtype()`."""
    return DTYPES[active.state.default_dtype]


# --- promotion ----------------------------------------------------------------------------------


def promote_types(first: DType, second: DType) -> DType:
    """The smallest dtype that both convert to: `torch.promote_types`."""
    if first is second:
        return first
    if _RANKS[first.category] > _RANKS[second.category]:
        first, second = second, first
    if first.category == second.category:
        if second is uint8:
            first, second = second, first
        if first is uint8:  # a signed dtype of the same size lacks its larger half
            return int16 if second is int8 else second
        if first.itemsize == second.itemsize:  # float16 and bfloat16: neither holds the other
            return float32
        return first if first.itemsize > second.itemsize else second
    if second.is_complex and first.is_floating_point:
        return promote_types(first, second.to_real()).to_complex()
    return second


def result_dtype(operands: Iterable[Any]) -> DType:
    """The dtype that an operation computes in: `torch.result_type`.

    Operands are arrays, NumPy scalars (which are 0-dim arrays) and Python numbers. Arrays with
    dimensions decide; 0-dim arrays, and after them numbers, count only where their category is
    higher than what is decided already. A Python float stands for the default dtype, an int for
    int64, and a complex number makes a floating dtype its complex one. No operand at all gives the
    default dtype.
    """
    dimensioned: DType | None = None
    zero_dim: DType | None = None
    number: type | None = None
    for operand in operands:
        kind = type(operand)
        if kind in _NUMBERS:
            if number is None or _RANKS[kind.__name__] > _RANKS[number.__name__]:
                number = kind
        elif operand.ndim:
            dimensioned = _promoted(dimensioned, of_array(operand))
        else:
            zero_dim = _promoted(zero_dim, of_array(operand))
    result = dimensioned or zero_dim
    if result is None:
        return _dtype_of_number(number)
    if zero_dim is not None and _RANKS[zero_dim.category] > _RANKS[result.category]:
        result = result.to_complex() if result.is_floating_point else zero_dim
    if number is not None and _RANKS[number.__name__] > _RANKS[result.category]:
        result = result.to_complex() if result.is_floating_point else _dtype_of_number(number)
    return result


_NUMBERS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
"""Python's types of numbers, which are named as the categories are, and the NumPy scalars that hold
their values.
"""


def _promoted(decided: DType | None, dtype: DType) -> DType:
    return dtype if decided is None else promote_types(decided, dtype)


def _dtype_of_number(kind: type | None) -> DType:
    if kind is bool:
        return boolean
    if kind is int:
        return int64
    return default_dtype().to_complex() if kind is complex else default_dtype()


def can_cast(source: DType, target: DType) -> bool:
    """Whether promotion's result may be written into a tensor in place, `torch.can_cast`: not into
    a lower category.
    """
    return _RANKS[source.category] <= _RANKS[target.category]


# --- conversion ---------------------------------------------------------------------------------


def cast(value: Any, dtype: DType) -> Any:
    """A value in a dtype: an array for an array, the same object where it has the dtype already; a
    NumPy scalar for a NumPy scalar or a Python number.

    Values out of range become what C makes of them, as in PyTorch: integers wrap around, floats
    overflow to infinity, complex values lose their imaginary part. NumPy warns of that unless the
    caller runs under `np.errstate`, as a session does. Raises E204 for a Python integer of more
    than 64 bits.
    """
    scalar_type = _NUMBERS.get(type(value))
    if scalar_type is not None:
        try:
            value = scalar_type(value)
        except OverflowError:
            value = _unsigned(value)
    source, target = value.dtype, dtype.numpy_dtype
    if source is target:
        return value
    if source.kind == "c" and dtype.category in ("int", "float"):
        value = value.real
    if value.dtype is float64.numpy_dtype:
        # PyTorch converts these in two steps: float16 is rounded twice, uint8 wraps around.
        if dtype is float16:
            value = value.astype(np.float32)
        elif dtype is uint8:
            value = value.astype(np.int64)
    if isinstance(value, np.generic) and source.kind != "u":
        # What astype gives, in half its time; bfloat16 of some versions reads a sign into uint64.
        return target.type(value)
    if dtype is float32:
        return widened(value)
    return narrowed(value, target) if dtype.itemsize == 2 else value.astype(target)


def widened(array: Any) -> Any:
    """An array of half precision as float32."""
    if type(array) is not np.ndarray or array.size < MANY or array.dtype.itemsize != 2:
        return array.astype(np.float32)
    from gradcli.arrays.native.half import converted  # lazy: start-up: only for half precision

    return converted(array, np.float32)


def narrowed(array: Any, dtype: Any) -> Any:
    """An array in a NumPy dtype of half precision, or another one of two bytes an element."""
    if type(array) is not np.ndarray or array.size < MANY or array.dtype != np.float32:
        return array.astype(dtype)
    from gradcli.arrays.native.half import converted  # lazy: start-up: only for half precision

    return converted(array, dtype)


MANY = 1 << 12
"""Elements from which on kernels for half precision pay."""


def _unsigned(number: int) -> Any:
    """A Python integer beyond int64 as NumPy's uint64, which wraps around where it is cast."""
    if 0 <= number < 2**64:
        return np.uint64(number)
    raise GradcliError(
        "E204",
        "the integer does not fit 64 bits",
        text="int too big to convert",
        raises="OverflowError",
    )
