"""CuPy: imported when the first array on a GPU asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.errors import GradcliError

_loaded: dict[str, Any] = {}
"""CuPy's modules by their names, once they are imported."""


def cupy() -> Any:
    """The module `cupy`. Raises E604 where it is missing or damaged, or finds no GPU."""
    if "cupy" in _loaded:
        return _loaded["cupy"]
    install = "install `gradcli[cuda12]` or `gradcli[cuda13]`, whichever CUDA the driver has"
    try:
        cupy = import_module("cupy")
        find_gpu = cupy.is_available
    except Exception as failure:  # a damaged installation fails in any way; a folder has no names
        missing = isinstance(failure, ModuleNotFoundError) and failure.name == "cupy"
        reason = "is not installed" if missing else f"cannot be loaded: {failure}"
        message = f"tensors on a GPU need CuPy, which {reason}"
        raise GradcliError("E604", message, help=install) from None
    try:
        problem = "" if find_gpu() else "CuPy finds no GPU"
    except RuntimeError as failure:  # a driver that is too old, say
        problem = f"CuPy cannot use the GPU: {failure}"
    if problem:
        raise GradcliError(
            "E604",
            problem,
            help="`gradcli info` lists what there is; without --device and `.cuda()` a program"
            " computes on the CPU",
        )
    _loaded["cupy"] = cupy
    return cupy


def extension(name: str) -> Any:
    """One of CuPy's modules beside `cupy`: `cupyx`, `cupyx.scipy.special`."""
    if name not in _loaded:
        _loaded[name] = import_module(name)
    return _loaded[name]
