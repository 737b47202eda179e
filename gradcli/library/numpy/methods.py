"""The methods and data attributes of arrays and of NumPy's scalars."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.errors import GradcliError, value_error
from gradcli.language.limits import check_collection
from gradcli.language.objects.methods import METHODS
from gradcli.language.objects.types import by_name, called, names
from gradcli.library.numpy.array import (
    NDArray,
    before_write,
    charge_elements,
    compute,
    cost_of,
    dtype_of,
    in_numpy,
    room,
    unwrap,
    usual,
    wrap,
)
from gradcli.library.numpy.functions import host_arguments

_GROWING = frozenset({"dot", "repeat", "take"})
_READING = """
    all any argmax argmin argpartition argsort choose clip compress conj conjugate copy cumprod
    cumsum diagonal dot flatten item max mean min nonzero prod ravel repeat reshape round
    searchsorted squeeze std sum swapaxes take trace transpose var
"""
_WRITING = "fill partition put sort"

_OWN = 2
"""How often memory that nothing else reads is referred to: by its array, and to count that."""

Method = Callable[..., Any]


def _method(name: str) -> Method:
    """A method of arrays that NumPy runs."""
    host = getattr(np.ndarray, name)
    writes = name in _WRITING.split()

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        values, named = host_arguments(name, (self, *args), kwargs)
        if writes:
            before_write(values[0])
        if name in _GROWING:
            cost = cost_of(name, values, named)
        else:
            cost = (usual(*values, *named.values()), 0)
        result = compute(host, values, named, *cost)
        out = kwargs.get("out")
        return out if type(out) is NDArray else result

    return called(name, method)


def astype(self: NDArray, dtype: Any, *, copy: bool = True, **kwargs: Any) -> Any:
    """`a.astype(dtype)`."""
    _, named = host_arguments("astype", (), kwargs)
    return compute(np.ndarray.astype, (self.data, dtype_of(dtype)), {**named, "copy": copy},
                   self.data.size)  # fmt: skip


def resize(self: NDArray, *new_shape: Any, refcheck: bool = True) -> None:
    """`a.resize(2, 3)`: other sizes for the array itself, its further elements 0.

    Raises E204 where the number of elements would change in memory that something else reads too,
    whatever `refcheck` says.
    """
    sizes = tuple(map(unwrap, new_shape))
    elements = room(sizes[0] if len(sizes) == 1 else sizes)
    before_write(self.data)
    if sys.getrefcount(self.data) > _OWN and elements == self.data.size:
        self.data = self.data.view()
    alone = sys.getrefcount(self.data) <= _OWN
    compute(partial(self.data.resize, refcheck=not alone), sizes, {}, elements)


def tolist(self: Any) -> Any:
    """`a.tolist()`: nested lists of Python's numbers."""
    check_collection(self.data.size)
    charge_elements(self.data.size, self.data.size << 6)
    return self.data.tolist()


def view(self: NDArray, dtype: Any = None) -> NDArray:
    """`a.view()`, `a.view(dtype)`: the same memory, with a dtype of numbers its bytes read anew."""
    if dtype is None:
        return NDArray(self.data.view())
    wanted = dtype_of(dtype)
    if "U" in (wanted.kind, self.data.dtype.kind) or "b" in (wanted.kind, self.data.dtype.kind):
        raise GradcliError("E205", "view() reads numbers as numbers", raises="TypeError")
    return NDArray(in_numpy(lambda: self.data.view(wanted)))


class Flags:
    """`a.flags`: how an array lies in memory."""

    __slots__ = ("_flags",)

    language_name = "numpy.flagsobj"
    language_attributes = names("c_contiguous contiguous f_contiguous owndata writeable")
    settable_attributes = frozenset({"writeable"})

    def __init__(self, flags: Any) -> None:
        object.__setattr__(self, "_flags", flags)

    def __getattr__(self, name: str) -> Any:
        if name not in self.language_attributes:
            raise AttributeError(name)
        return getattr(self._flags, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Memory that may not be written to stays so, whoever asks.
        if value and not self._flags.writeable:
            raise value_error("cannot set WRITEABLE flag to True of this array")
        self._flags.writeable = bool(value)


def _read(name: str) -> Method:
    # There is no `mT` of a vector.
    return lambda array: wrap(in_numpy(lambda: getattr(array.data, name)))


ARRAY_METHODS: dict[str, Method] = {
    **{name: _method(name) for name in (*_READING.split(), *_WRITING.split())},
    **by_name(astype, resize, tolist, view),
}
"""The methods of arrays."""

ARRAY_VALUES: dict[str, Method] = {
    **{
        name: _read(name)
        for name in ("T", "dtype", "imag", "itemsize", "mT", "nbytes", "ndim", "real", "shape",
                     "size", "strides")
    },
    "flags": lambda array: Flags(array.data.flags),
    "flat": lambda array: NDArray(array.data.reshape(-1)),
}  # fmt: skip
"""The data attributes of arrays."""

_SCALAR = """
    all any argmax argmin clip conj conjugate copy cumprod cumsum dot flatten item max mean min prod
    ravel repeat reshape round squeeze std sum tolist transpose var nonzero
"""


def _scalar_method(name: str) -> Method:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        values, named = host_arguments(name, (NDArray(np.asarray(self)), *args), kwargs)
        return compute(getattr(np.ndarray, name), values, named, *cost_of(name, values, named))

    return called(name, method)


def _scalar_astype(self: Any, dtype: Any, *, copy: bool = True) -> Any:
    return compute(np.ndarray.astype, (np.asarray(self), dtype_of(dtype)), {}, 1).data[()]


def methods_of(host: type) -> dict[str, Method]:
    """The methods of a class of NumPy's scalars."""
    if host is np.str_:
        return METHODS[str]
    table = {name: _scalar_method(name) for name in _SCALAR.split()}
    table["astype"] = _scalar_astype
    if issubclass(host, np.floating):
        table["is_integer"] = lambda self: bool(self.is_integer())
    if issubclass(host, np.integer):
        table["bit_count"] = lambda self: int(self.bit_count())
    return table


SCALAR_VALUES = {
    name: (lambda scalar, name=name: wrap(getattr(scalar, name)))
    for name in ("T", "dtype", "imag", "itemsize", "nbytes", "ndim", "real", "shape", "size")
}
"""The data attributes of scalars."""
