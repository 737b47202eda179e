"""A stand-in for CuPy that keeps its arrays in the host's memory.

It is as strict as CuPy where code written for NumPy goes wrong: an array is no ndarray and does not
become one by itself, reductions and elements are arrays of no dimensions, ndarrays are refused
among a function's operands, ufuncs have no methods under NumPy's protocol, and the functions that
CuPy lacks are missing. `counts.synchronised` counts the copies to the host.

`install(monkeypatch)` makes `import cupy` find it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from tests.stand_in_cupy import kernels

MISSING = frozenset(
    {
        "block", "einsum_path", "errstate", "frompyfunc", "geomspace", "histogram_bin_edges",
        "insert", "longdouble", "matvec", "nanpercentile", "nanquantile", "ndenumerate", "nditer",
        "polyder", "polydiv", "polyint", "spacing", "unstack", "vecdot", "vecmat",
    }
)  # fmt: skip
"""NumPy's functions that CuPy 14 lacks."""

LINALG = frozenset(
    {
        "cholesky", "cond", "det", "eigh", "eigvalsh", "inv", "lstsq", "matrix_power",
        "matrix_rank", "norm", "pinv", "qr", "slogdet", "solve", "svd", "tensorinv", "tensorsolve",
    }
)  # fmt: skip
"""The functions of `cupy.linalg`."""

SPECIAL = frozenset(
    {
        "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expit", "expm1",
        "gamma", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "j0", "j1", "log1p",
        "log_ndtr", "logit", "ndtr", "ndtri", "polygamma", "psi", "xlog1py", "xlogy", "y0", "y1",
        "zeta",
    }
)  # fmt: skip


class Counts:
    """How often values were copied to the host, and how many kernels were started."""

    def __init__(self) -> None:
        self.synchronised = 0
        self.launched = 0


counts = Counts()

checked_by: list[Any] = []
"""The real CuPy, where calls are to be tried on it first: `tests.stand_in_cupy.tried_on_cupy`."""


def tried(name: str, args: Any, keywords: Any, made_of: Any = None) -> Callable[[Any], Any]:
    """Try a call on the real CuPy, if it is there: raises what it raises. What is returned takes
    the result and returns it, once it is seen to have the dtype and the shape of CuPy's.
    """
    for each in checked_by:
        return each.attempt(name, args, keywords, made_of)
    return lambda result: result


class _Device:
    """The one device that there is."""

    id = 0
    attributes: ClassVar[dict[str, int]] = {
        "MultiProcessorCount": 2,
        "MaxThreadsPerMultiProcessor": 512,
    }

    def use(self) -> None:
        """Make it the current one, which it is."""

    def synchronize(self) -> None:
        """Wait for it."""


class _Pointer:
    """An address and what keeps its memory alive."""

    def __init__(self, owner: Any, offset: int = 0) -> None:
        self.owner = owner
        self.offset = offset
        self.ptr = owner.__array_interface__["data"][0] + offset

    def __add__(self, offset: int) -> _Pointer:
        return _Pointer(self.owner, self.offset + offset)


_NO_METHODS = frozenset({"__array_interface__", "__array_struct__", "ctypes", "resize", "setflags"})


class ndarray(NDArrayOperatorsMixin):  # CuPy's name
    """An array; `host` is the ndarray behind it."""

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: _Pointer | None = None, strides: Any = None
    ) -> None:
        if memptr is None:
            self.host = np.empty(shape, dtype, strides)
            return
        step = np.dtype(dtype).itemsize
        if strides is None:
            strides = np.empty(shape, np.dtype(dtype)).strides
        interface = {
            "version": 3,
            "typestr": np.dtype(dtype).str,
            "shape": tuple(shape),
            "strides": tuple(strides),
            "data": (memptr.ptr, False),
        }
        assert step
        holder = type("Memory", (), {"__array_interface__": interface, "owner": memptr.owner})()
        self.host = np.asarray(holder).view(dtype)

    device = _Device()

    @property
    def data(self) -> _Pointer:
        return _Pointer(self.host)

    @property
    def real(self) -> ndarray:
        return _array(self.host.real)

    @real.setter
    def real(self, value: Any) -> None:
        self.host.real = _plain(value)

    @property
    def imag(self) -> ndarray:
        return _array(self.host.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.host.imag = _plain(value)

    def get(self) -> Any:
        """A copy as an ndarray: waits for the device."""
        counts.synchronised += 1
        return np.array(self.host)

    def item(self) -> Any:
        return self.get().item()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __bool__(self) -> bool:
        return bool(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __index__(self) -> int:
        raise TypeError("no index")

    def __len__(self) -> int:
        return len(self.host)

    def __getitem__(self, index: Any) -> Any:
        same = tried("ndarray.__getitem__", (self, index), {})
        return same(_array(self.host[_plain(index, indexing=True)]))

    def __setitem__(self, index: Any, value: Any) -> None:
        tried("ndarray.__setitem__", (self, index, value), {})
        if isinstance(index, ndarray) and index.dtype == np.bool_ and np.size(_plain(value)) != 1:
            raise ValueError("several values are written through a mask")
        self.host[_plain(index, indexing=True)] = _plain(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _NO_METHODS:
            raise AttributeError(name)
        found = getattr(self.host, name)
        if not callable(found):
            return _wrapped(found)

        def call(*args: Any, **keywords: Any) -> Any:
            same = tried(f"ndarray.{name}", (self, *args), keywords)
            _refuse(name, (self, *args), keywords)
            return same(_wrapped(found(*_plain(args), **_plain(keywords))))

        return call

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method != "__call__" or ufunc.__name__ in MISSING:
            return NotImplemented
        return _function(ufunc)(*inputs, **keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return NotImplemented  # gradcli never hands CuPy's arrays to NumPy's functions


def _array(host: Any) -> ndarray:
    made = ndarray.__new__(ndarray)
    made.host = np.asarray(host)
    if made.host.dtype.char in "gG":
        raise ValueError(f"Unsupported dtype {made.host.dtype}")
    return made


def _plain(value: Any, indexing: bool = False) -> Any:
    """A value with ndarrays in place of the stand-in's; real ones are refused."""
    if isinstance(value, ndarray):
        return value.host
    if isinstance(value, np.ndarray) and not indexing:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if type(value) in (tuple, list):
        return type(value)([_plain(each, indexing) for each in value])
    if type(value) is dict:
        return {name: _plain(each) for name, each in value.items()}
    return value


def _wrapped(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(value)
    if isinstance(value, (tuple, list)):
        parts = [_wrapped(each) for each in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


_REDUCTIONS = frozenset({"all", "any", "max", "mean", "min", "prod", "sum"})

_LOGICAL = frozenset({"logical_and", "logical_not", "logical_or", "logical_xor"})

_ORDERING = frozenset({"argsort", "sort"})


def _refuse(name: str, args: Any, keywords: Any) -> None:
    """Raise what CuPy raises for keywords and dtypes that only NumPy takes."""
    dtypes = {str(getattr(each, "dtype", "")) for each in args}
    if name in _REDUCTIONS and not keywords.keys().isdisjoint({"initial", "where"}):
        raise TypeError(f"{name}() got an unexpected keyword argument")
    if name in _LOGICAL and not dtypes.isdisjoint({"complex64", "complex128"}):
        raise TypeError(f"Wrong type of arguments for cupy_{name}")
    if name in _ORDERING and "bfloat16" in dtypes:
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    if name == "sliding_window_view" and keywords.get("writeable"):
        raise NotImplementedError("Writeable views are not supported.")


def _function(function: Any, module: str = "") -> Any:
    name = f"{module}{function.__name__}"

    def call(*args: Any, **keywords: Any) -> Any:
        counts.launched += 1
        same = tried(name, args, keywords)
        _refuse(function.__name__, args, keywords)
        out = keywords.get("out")
        with np.errstate(all="ignore"):
            result = function(*_plain(args), **_plain(keywords))
        if function is np.where and len(args) == 3 and result.dtype.name == "bfloat16":
            result = result.astype(np.float32)  # it has no loop of its own in CuPy
        return same(out if isinstance(out, ndarray) else _wrapped(result))

    call.__name__ = function.__name__
    if function in _AT:
        call.at = _at(function, _AT[function])  # type: ignore[attr-defined]
    return call


_ATOMIC = ("int32", "int64", "float32", "float64", "uint32", "uint64")

_AT: dict[Any, tuple[str, ...]] = {
    np.add: (*_ATOMIC, "float16"),
    np.maximum: _ATOMIC,
    np.minimum: _ATOMIC,
}
"""The ufuncs whose `at` gradcli uses, with its dtypes."""

_SINGLE = {np.maximum: np.fmax, np.minimum: np.fmin}
"""What CuPy's atomics do with floats of any width: fmaxf and fminf."""


def _at(ufunc: Any, dtypes: Sequence[str]) -> Any:
    def at(target: ndarray, index: Any, values: Any) -> None:
        if target.dtype not in dtypes:
            raise TypeError(f"cupy.{ufunc.__name__}.at only supports {dtypes} as data type")
        counts.launched += 1
        tried(f"{ufunc.__name__}.at", (target, index, values), {})
        places, given = _plain(index, indexing=True), _plain(values)
        if ufunc is np.add or target.dtype.kind != "f":
            ufunc.at(target.host, places, given)
            return
        single = target.host.astype(np.float32)
        _SINGLE[ufunc].at(single, places, given.astype(np.float32))
        target.host[...] = single

    return at


def __getattr__(name: str) -> Any:
    if name in MISSING or name.startswith("__"):
        raise AttributeError(name)
    found = getattr(np, name)
    return _function(found) if callable(found) and not isinstance(found, type) else found


# --- what makes arrays ----------------------------------------------------------------------------


def is_available() -> bool:
    """Whether there is a device."""
    return True


class _Pool:
    """The device's memory."""

    def used_bytes(self) -> int:
        """What arrays take."""
        return 0

    def total_bytes(self) -> int:
        """What the process holds."""
        return 0

    def free_all_blocks(self) -> None:
        """Give back what no array takes."""


get_default_memory_pool = _Pool


def array(value: Any, dtype: Any = None, copy: bool = True, order: str = "K") -> ndarray:
    """A copy of an array, the stand-in's or NumPy's, or of numbers."""
    host: Any = value.host if isinstance(value, ndarray) else np.asarray(value)
    made: Any = np.array
    return _array(made(host, dtype, order=order))


def asarray(value: Any, dtype: Any = None) -> ndarray:
    """The same, without a copy of the stand-in's own."""
    if isinstance(value, ndarray) and (dtype is None or dtype == value.dtype):
        return value
    return array(value, dtype)


def ascontiguousarray(value: ndarray) -> ndarray:
    """In row order."""
    return _array(np.ascontiguousarray(value.host).reshape(value.host.shape))


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """Memory as it was, for which nothing runs."""
    return ndarray(shape, dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    """One number in every place."""
    return _array(np.full(shape, _plain(value), dtype))


ElementwiseKernel = kernels.ElementwiseKernel
ReductionKernel = kernels.ReductionKernel


# --- modules --------------------------------------------------------------------------------------


def _module(name: str, functions: dict[str, Any]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(functions)
    return module


class _Stream:
    """The stream that everything runs on."""

    def synchronize(self) -> None:
        """Wait for it."""


def _cuda() -> ModuleType:
    properties = {"name": b"Stand-in", "totalGlobalMem": 1 << 30}
    runtime = _module(
        "cupy.cuda.runtime",
        {
            "getDeviceCount": lambda: 1,
            "getDeviceProperties": lambda index: properties,
            "memGetInfo": lambda: (1 << 30, 1 << 30),
            "CUDARuntimeError": RuntimeError,
        },
    )
    return _module(
        "cupy.cuda",
        {
            "Device": lambda index=0: _Device(),
            "runtime": runtime,
            "get_current_stream": _Stream,
        },
    )


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `import cupy` find this module until the test ends."""
    of_scipy = pytest.importorskip("scipy.special")

    from gradcli.arrays import backend
    from gradcli.arrays.gpu import runtime as gpu_runtime

    this = sys.modules[__name__]
    linalg = {name: _function(getattr(np.linalg, name), "linalg.") for name in LINALG}
    special = {name: _function(getattr(of_scipy, name), "cupyx.scipy.special.") for name in SPECIAL}
    fft = {name: _function(getattr(np.fft, name), "fft.") for name in np.fft.__all__}
    stride_tricks = {
        "sliding_window_view": _function(
            np.lib.stride_tricks.sliding_window_view, "lib.stride_tricks."
        ),
        "as_strided": _function(np.lib.stride_tricks.as_strided, "lib.stride_tricks."),
    }
    lib = _module("cupy.lib", {"stride_tricks": _module("stride_tricks", stride_tricks)})
    modules = {
        "cupy": this,
        "cupy.cuda": _cuda(),
        "cupy.fft": _module("cupy.fft", fft),
        "cupy.linalg": _module("cupy.linalg", linalg),
        "cupy.lib": lib,
        "cupyx": _module("cupyx", {"errstate": lambda linalg: nullcontext()}),
        "cupyx.scipy": _module("cupyx.scipy", {}),
        "cupyx.scipy.special": _module("cupyx.scipy.special", special),
    }
    for name, module in modules.items():
        if name.startswith("cupy."):
            monkeypatch.setattr(this, name.removeprefix("cupy."), module, raising=False)
    monkeypatch.setattr(backend, "_gpus", [])
    monkeypatch.setattr(gpu_runtime, "_loaded", modules)
    monkeypatch.setattr(counts, "synchronised", 0)
    monkeypatch.setattr(counts, "launched", 0)
