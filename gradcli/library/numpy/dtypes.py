"""Dtypes and the classes of NumPy's scalars: which there are, and as values of the language."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.objects.types import Hosted, LanguageType, called, define, names, type_name

LONGEST_TEXT = 1000
"""Characters of a string in an array: each element takes the room of the longest."""

_CONCRETE = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16"),
    *("float32", "float64", "complex64", "complex128", "str_"),
)

SCALARS = frozenset(getattr(np, name) for name in _CONCRETE)
"""The host classes of the scalars that are values of the language."""

_DTYPES = frozenset(np.dtype(scalar) for scalar in SCALARS)


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype are values of the language: numbers, bools and short strings."""
    if dtype.kind == "U":
        return dtype.itemsize <= 4 * LONGEST_TEXT
    return dtype in _DTYPES


def supported(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype itself; raises E205 where no array of the language has it."""
    if not is_supported(dtype):
        words = f"arrays of {dtype}" if dtype.names is None else "structured arrays"
        raise GradcliError(
            "E205",
            f"{words} are outside the language",
            raises="TypeError",
            help="arrays hold bools, integers, floats and complex numbers of up to 64 bits a part,"
            f" and strings of up to {LONGEST_TEXT:,} characters",
        )
    return dtype if dtype.kind == "U" else np.dtype(dtype.str)  # `longlong` is int64


class Dtype:
    """A dtype as a value: `a.dtype`, `np.dtype("float32")`."""

    __slots__ = ("dtype",)

    language_name = "numpy.dtype"
    language_attributes = frozenset({"itemsize", "kind", "name", "str", "type", "char"})
    language_str = True

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    @property
    def type(self) -> LanguageType:
        """The class of its scalars."""
        return CLASSES[self.dtype.type]

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        return getattr(self.dtype, name)

    def __eq__(self, other: object) -> bool:
        try:
            return self.dtype == dtype_of(other)
        except GradcliError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return str(self.dtype)

    def __repr__(self) -> str:
        return repr(self.dtype)


def dtype_of(value: Any) -> np.dtype[Any]:
    """The host's dtype of what programs write for one: a class, a name, a dtype; raises E202, and
    E205 for one that arrays of the language do not have.
    """
    if type(value) is Dtype:
        return value.dtype
    if isinstance(value, LanguageType) and len(value.hosts) == 1:
        host = value.hosts[0]
        if host in SCALARS or host in (bool, int, float, complex, str):
            return np.dtype(host)
    if value is None:
        return np.dtype(float)
    if isinstance(value, str):
        try:
            return supported(np.dtype(value[:80]))
        except (TypeError, ValueError, SyntaxError):
            raise type_error(f"data type {value[:80]!r} not understood") from None
    shown = f"'{value}'" if type(value) is DType else type_name(value)
    raise type_error(f"Cannot interpret {shown} as a data type")


dtype_value = cache(Dtype)
"""The value of the language for a dtype: one for each."""

DTYPE = define("numpy.dtype", Dtype, construct=lambda dtype=None: dtype_value(dtype_of(dtype)))


CLASSES: dict[type, LanguageType] = {
    scalar: define(f"numpy.{scalar.__name__}", scalar) for scalar in SCALARS
}
"""The classes of the language by their host classes."""

_ABSTRACT = (
    *("character", "complexfloating", "flexible", "floating", "generic", "inexact", "integer"),
    *("number", "signedinteger", "unsignedinteger"),
)

TYPES: dict[str, LanguageType] = {
    **{name: CLASSES[getattr(np, name)] for name in (*_CONCRETE, "bool_", "int_", "uint", "intc",
       "intp", "uintp", "byte", "ubyte", "short", "ushort", "half", "single", "double", "csingle",
       "cdouble")},
    **{name: define(f"numpy.{name}", getattr(np, name)) for name in _ABSTRACT},
}  # fmt: skip
"""The classes by the names that `numpy` has for them."""


class TypeLimits(Hosted):
    """What `np.finfo(dtype)` and `np.iinfo(dtype)` give."""

    __slots__ = ()

    language_name = "numpy.finfo"
    language_attributes = names("""bits dtype eps epsneg max min precision resolution
        smallest_normal smallest_subnormal tiny""")

    def __getattr__(self, name: str) -> Any:
        limit = super().__getattr__(name)
        return dtype_value(limit) if isinstance(limit, np.dtype) else limit


def _limits(host: Any) -> Any:
    def limits(type: Any) -> TypeLimits:
        if hasattr(type, "dtype") and isinstance(type, np.generic):
            type = Dtype(type.dtype)
        try:
            return TypeLimits(host(dtype_of(type)))
        except ValueError as error:
            raise value_error(str(error)) from None

    return called(host.__name__, limits)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """`np.issubdtype(dtype, class)`."""
    kinds = []
    for argument in (arg1, arg2):
        host = argument.hosts[0] if isinstance(argument, LanguageType) and argument.hosts else None
        if host is not None and issubclass(host, np.generic):
            kinds.append(host)
        else:
            kinds.append(dtype_of(argument).type)
    return issubclass(*kinds)


FUNCTIONS: dict[str, Any] = {
    "dtype": DTYPE,
    "finfo": _limits(np.finfo),
    "iinfo": _limits(np.iinfo),
    "issubdtype": issubdtype,
}
"""The functions of dtypes."""
