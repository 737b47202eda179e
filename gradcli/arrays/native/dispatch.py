"""The one place that decides between a kernel in C and the Python kernel.

Both compute the same: bits where the contract of exactness asks for bits; ties, control flow and
text always. With `GRADCLI_NATIVE=0` in the environment there are no kernels in C; `baseline` and
`avx2` keep to what lesser processors have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

SOURCES = ("arrays/native", "language/native")
"""The folders of the package that the sources of the core stand in."""

Kernel = Callable[..., Any]
"""A function of arrays that writes to some of them and gives None; what stands for it while steps
are written down may give what it has recorded.
"""

_kernels: dict[str, Kernel | None] = {}
"""The kernels that were asked for."""

_instead: list[Callable[[str, Kernel], Kernel]] = []
"""What makes the functions that are given in their place."""


def kernel(name: str) -> Kernel | None:
    """A kernel by its name in kernels.def, None where the Python kernel serves."""
    if name not in _kernels:
        module = core()
        _kernels[name] = getattr(module, name) if module and module.serves(name) else None
    known = _kernels[name]
    return _instead[-1](name, known) if _instead and known is not None else known


def letters(name: str) -> str:
    """The kinds of a kernel's arguments, as in kernels.def: capitals for what it writes to."""
    return str(getattr(core(), name).__doc__).partition("(")[2].rstrip(")")


@contextmanager
def replaced(by: Callable[[str, Kernel], Kernel]) -> Iterator[None]:
    """Let `kernel` give other functions for the kernels in C, made of a name and a kernel."""
    _instead.append(by)
    try:
        yield
    finally:
        _instead.pop()


def description() -> str:
    """Whether there are kernels in C, and for which instructions, in a few words."""
    if core() is not None:
        return f"built, uses {level()}"
    if _asked() == "0":
        return "turned off by GRADCLI_NATIVE=0"
    return "built from other sources" if _module() is not None else "not built"


def _asked() -> str:
    return os.environ.get("GRADCLI_NATIVE", "")


def core() -> Any:
    """The extension module, loaded at the first call; None where there is none to use."""
    return _loaded()[0]


def level() -> str:
    """What the kernels in C are compiled for: `baseline`, `avx2` or `avx512`; nothing where there
    are none to use.
    """
    return _loaded()[1]


@cache
def _loaded() -> tuple[Any, str]:
    module = None if _asked() == "0" else _module()
    if module is None or _is_stale(module.__file__):
        return None, ""
    return module, module.use(_asked())


def _module() -> Any:
    try:
        return import_module("gradcli.arrays.native._core")
    except ImportError:  # it was not built, or for another system
        return None


def _is_stale(built: str) -> bool:
    """Whether a source of it, which only a checkout has, was changed since."""
    when = os.stat(built).st_mtime
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return any(_changed_since(when, os.path.join(package, folder)) for folder in SOURCES)


def _changed_since(when: float, folder: str) -> bool:
    with os.scandir(folder) as entries:
        sources = [each for each in entries if each.name.endswith((".c", ".h", ".def"))]
    return any(each.stat().st_mtime > when for each in sources)
