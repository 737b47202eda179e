"""The ceiling on a run's memory.

The kernel keeps it, so that it holds for whatever the host allocates: Python's objects as well as
NumPy's arrays. What counts is the data of the process beyond what it has when the program starts;
libraries and the stacks of their threads are there by then. Where the host has no such ceiling
(Windows, macOS), the limit of elements stands alone.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import ModuleType
from typing import Any, ClassVar

from gradcli.errors import GradcliError
from gradcli.limits import MEMORY, Limits
from gradcli.running.process.interruption import end, is_ours
from gradcli.state import active

Report = Callable[[GradcliError], object]

_CGROUP_FILES = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


@cache
def default_memory() -> int:
    """Half of the memory that the machine, or the container, has; at most `MEMORY`."""
    sizes = [2 * MEMORY]
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP_FILES:
        # "max" where there is no limit
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            sizes.append(int(file.read()))
    return min(each for each in sizes if each > 0) // 2


_RESERVE = 16_000_000
"""Bytes for reporting an error in the middle of a program. `bytes(n)` has them from the system
already zero and touches none, where `bytearray(n)` would write to each page at every start.
"""


@contextmanager
def memory_ceiling(limits: Limits, report: Report) -> Iterator[None]:
    """Let allocations fail with MemoryError, within the block, that take the process further than
    `limits.memory` bytes beyond what it has now.

    The ceiling is gone before an error of the block is reported, which needs memory of its own.

    Args:
        limits: the session's.
        report: shows the error where a library ends the process.
    """
    if limits.memory is None or _data() is None:
        yield
        return
    import resource

    with _GivenUp.during(limits, report):
        _prepare(os.getpid())
        used = _data() or 0
        before = resource.getrlimit(resource.RLIMIT_DATA)
        soft, hard = before
        ceiling = min(used + limits.memory + _RESERVE, sys.maxsize)
        for other in (soft, hard):
            if other != resource.RLIM_INFINITY:
                ceiling = min(ceiling, other)
        if ceiling == soft:  # inside a block of the same kind; setting it anew takes 0.2 ms
            limits.reserve = limits.reserve or bytes(_RESERVE)
            yield
            return
        resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))
        loading = _Loading(limits)
        sys.meta_path.insert(0, loading)
        try:
            limits.reserve = bytes(_RESERVE)
            yield
        finally:
            limits.reserve = None
            sys.meta_path.remove(loading)
            resource.setrlimit(resource.RLIMIT_DATA, before)


# --- libraries ------------------------------------------------------------------------------------


class _Loading:
    """Loads modules beyond the ceiling, which moves up by what they take: a library is not the
    program's, and one that finds no memory as it starts may hang. Ours are small, and take part
    where the limit is tight.
    """

    def __init__(self, limits: Limits) -> None:
        self._all = limits.is_tight
        self._depth = 0

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's spec, with a loader that gives it room; None leaves it to the others."""
        if self._depth or not (self._all or name.startswith("scipy")):
            return None
        others = (each.find_spec(name, path, target) for each in sys.meta_path if each is not self)
        spec = next((each for each in others if each is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
        return spec

    @contextmanager
    def room(self) -> Iterator[None]:
        """No ceiling within the block."""
        import resource

        before, used = resource.getrlimit(resource.RLIMIT_DATA), _data() or 0
        resource.setrlimit(resource.RLIMIT_DATA, (before[1], before[1]))
        self._depth += 1
        try:
            yield
            blas: Any = sys.modules.get("scipy.linalg.blas")
            if hasattr(blas, "dgemv"):  # OpenBLAS again, with buffers of its own
                import numpy as np

                blas.dsyrk(1.0, np.ones((2, 2)))
                blas.dgemv(1.0, np.ones(_FOR_EACH_THREAD, order="F"), np.ones(_FOR_EACH_THREAD[1]))
        finally:
            self._depth -= 1
            ceiling = min(before[0] + max((_data() or 0) - used, 0), sys.maxsize)
            resource.setrlimit(resource.RLIMIT_DATA, (ceiling, before[1]))


class _Loader:
    """The loader of a module, which it puts back as it runs."""

    def __init__(self, loader: Any, loading: _Loading) -> None:
        self._loader = loader
        self._loading = loading

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        spec.loader = self._loader
        with self._loading.room():
            module: ModuleType | None = self._loader.create_module(spec)
        spec.loader = self  # type: ignore[assignment]
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        with self._loading.room():
            self._loader.exec_module(module)


_FOR_EACH_THREAD = (1024, 16)
"""The shape of a matrix whose product with a vector has work for each thread that BLAS may have."""


@cache
def _prepare(_process: int) -> None:
    """Load what every program needs, and let OpenBLAS make its buffers: libraries and their
    threads are not the program's. A fork has the buffers, and none of the threads.
    """
    import numpy as np

    one = np.ones((2, 2), np.float32)
    one @ one.T  # with a buffer at any size; a product of two small matrices has none on AVX-512
    np.ones(_FOR_EACH_THREAD, np.float32) @ np.ones(_FOR_EACH_THREAD[1], np.float32)


class _GivenUp:
    """What ends the process where a library does so, as OpenBLAS does without memory: with the
    error of that, and its exit code.

    Attributes:
        running: the limits and what shows an error, of each block that runs.
    """

    running: ClassVar[list[tuple[Limits, Report]]] = []

    @classmethod
    @contextmanager
    def during(cls, limits: Limits, report: Report) -> Iterator[None]:
        """Answer for what a library does within the block, in a process that is ours."""
        if is_ours():
            cls.prepare()
        cls.running.append((limits, report))
        try:
            yield
        finally:
            cls.running.pop()

    @classmethod
    @cache
    def prepare(cls) -> Any:
        """Have the system call `answer` as the process ends; nothing where it has no such list."""
        import ctypes

        answer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(cls.answer)
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None)["__cxa_atexit"](answer, None, None)
        return answer  # the system does not keep it

    @classmethod
    def answer(cls, _nothing: None) -> None:
        """Report the end, in whatever thread it came."""
        if cls.running:
            limits, report = cls.running[-1]
            error = limits.out_of_memory("a computation with matrices")
            error.span, error.stack = active.state.place, tuple(active.state.stack)
            report(error)
            end(error.exit_code)


def _data() -> int | None:
    """The bytes of data that this process has, None where the host does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[5])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
