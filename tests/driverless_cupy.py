"""The real CuPy on a machine without a driver: it checks every call, compiles what it is told to,
and starts nothing.

CuPy's modules call the CUDA runtime and the driver through tables of function pointers. `load` puts
functions of Python there before CuPy reads them: there is one GPU, whose memory is the host's, and
whose kernels do nothing. All that stands before a launch is CuPy's own: the functions that exist,
their keywords, the dtypes that each takes, shapes, and the dtype and shape of each result.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

_SKIP = "int __pyx_skip_dispatch"
"""The parameter behind those that a function has in Python."""

_C_TYPES: dict[str, Any] = {
    "PyObject *": ctypes.py_object,
    "int": ctypes.c_int,
    _SKIP: ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "size_t": ctypes.c_size_t,
    "intptr_t": ctypes.c_ssize_t,
    "CUdevice": ctypes.c_int,
    "cudaMemcpyKind": ctypes.c_int,
}

_TO_HOST = 2
"""`cudaMemcpyDeviceToHost`."""

_ATTRIBUTES = {75: 9, 76: 0}
"""The compute capability; other attributes of the device are 1024."""


def _copy(target: int, source: int, size: int, kind: int, *stream: int) -> None:
    if kind == _TO_HOST:
        ctypes.memmove(target, source, size)


_PROPERTIES = {
    "name": b"none",
    "totalGlobalMem": 1 << 30,
    "warpSize": 32,
    "maxThreadsPerBlock": 1024,
    "multiProcessorCount": 16,
    "sharedMemPerBlock": 49152,
}

_ANSWERS: dict[str, Callable[..., Any]] = {
    "driverGetVersion": lambda: 12090,
    "runtimeGetVersion": lambda: 12090,
    "getDeviceCount": lambda: 1,
    "deviceGetAttribute": lambda attribute, device: _ATTRIBUTES.get(attribute, 1024),
    "funcGetAttribute": lambda attribute, function: 1024,
    "memcpy": _copy,
    "memcpyAsync": _copy,
    "memGetInfo": lambda: (1 << 30, 1 << 30),
    "getDeviceProperties": lambda device: _PROPERTIES,
}
"""What a function gives, besides None and 0."""

ptx: dict[tuple[str, tuple[str, ...]], str] = {}
"""What NVRTC made of the source texts of kernels of gradcli's own."""

_kept: list[Any] = []
"""The functions that CuPy points to."""


def _answer(name: str, signature: str) -> tuple[Any, Callable[..., Any]]:
    """A C function of a signature, and the same for Python."""
    result, _, rest = signature.partition("(")
    parameters = [] if rest == "void)" else rest[:-1].split(", ")
    kinds = [_C_TYPES.get(each, ctypes.c_void_p) for each in parameters]
    kind = _C_TYPES.get(result.strip(), ctypes.c_void_p)
    given = parameters.index(_SKIP) if _SKIP in parameters else len(parameters)
    nothing = None if kind is ctypes.py_object else 0
    compute: Callable[..., Any] = _ANSWERS.get(name, lambda *_: nothing)
    made = ctypes.PYFUNCTYPE(kind, *kinds)(lambda *args: compute(*args[:given]))
    _kept.append(made)
    return made, compute


def _replace(module: Any) -> None:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_SetPointer.argtypes = [ctypes.py_object, ctypes.c_void_p]
    for name, capsule in module.__pyx_capi__.items():
        signature = api.PyCapsule_GetName(capsule).decode()
        if "(" not in signature:
            continue
        made, compute = _answer(name, signature)
        api.PyCapsule_SetPointer(capsule, ctypes.cast(made, ctypes.c_void_p))
        if name in vars(module):
            setattr(module, name, compute)


@cache
def load() -> Any:
    """CuPy. Raises ImportError where it is not installed.

    Nothing may have imported it before: its modules read the tables as they are imported.
    """
    for name in ("runtime", "driver"):
        _replace(importlib.import_module(f"cupy_backends.cuda.api.{name}"))
    cupy = importlib.import_module("cupy")
    compiler: Any = importlib.import_module("cupy.cuda.compiler")
    module = importlib.import_module("cupy.cuda.function").Module

    def compile_module(
        source: str, options: tuple[str, ...] = (), *args: Any, **keywords: Any
    ) -> Any:
        if "gradcli_" in source and (source, options) not in ptx:
            text, _ = compiler.compile_using_nvrtc(source, (*options, "-ftz=true"), "90")
            ptx[source, options] = text.decode()
        return module()

    compiler._compile_module_with_cache = compile_module
    compiler._get_arch_for_options_for_nvrtc = lambda arch: (f"-arch=compute_{arch}", "ptx")
    cupy.cuda.set_allocator(lambda size: memory(np.zeros(max(size, 1), np.uint8)))
    return cupy


def extensions() -> Any:
    """`cupyx`, its special functions with it."""
    importlib.import_module("cupyx.scipy.special")
    return importlib.import_module("cupyx")


def memory(host: Any) -> Any:
    """CuPy's pointer to an ndarray's first element."""
    cupy = importlib.import_module("cupy")
    address = host.__array_interface__["data"][0]
    owned = cupy.cuda.UnownedMemory(address, max(host.nbytes, 1), host, 0)
    return cupy.cuda.MemoryPointer(owned, 0)
