"""The one place that decides between a kernel in C and the Python kernel.

Both compute the same: bits where the contract of exactness asks for bits; ties, control flow and
text always. With `GRADCLI_NATIVE=0` in the environment there are no kernels in C; `baseline` and
`avx2` keep to what lesser processors have.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

Kernel = Callable[..., None]

_loaded: list[Any] = []
"""The extension module, or None where there is none, once a kernel was asked for."""


def kernel(name: str) -> Kernel | None:
    """A kernel by its name in kernels.def, None where the Python kernel serves."""
    return getattr(_loaded[0] if _loaded else _core(), name, None)


def description() -> str:
    """Whether there are kernels in C, and for which instructions, in a few words."""
    core, asked = _core(), _asked()
    if core is not None:
        return f"built, uses {core.use(asked)}"
    return "turned off by GRADCLI_NATIVE=0" if asked == "0" else "not built"


def _asked() -> str:
    return os.environ.get("GRADCLI_NATIVE", "")


def _core() -> Any:
    """The extension module, loaded at the first call, or None."""
    if not _loaded:
        core = None
        if _asked() != "0":
            try:
                core = import_module("gradcli.native._core")
                core.use(_asked())
            except ImportError:  # it was not built, or for another system
                core = None
        _loaded.append(core)
    return _loaded[0]
