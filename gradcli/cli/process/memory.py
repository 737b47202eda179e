"""The ceiling on a run's memory.

The kernel keeps it, so that it holds for whatever the host allocates: Python's objects as well as
NumPy's arrays. What counts is the data of the process beyond what it has when the program starts;
libraries and the stacks of their threads are there by then. Where the host has no such ceiling
(Windows, macOS), the limit of elements stands alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gradcli.limits import MEMORY, Limits

_CGROUP_FILES = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def default_memory() -> int:
    """Half of the memory that the machine, or the container, has; at most `MEMORY`."""
    found = [2 * MEMORY]
    with suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in _CGROUP_FILES:
        # "max" where there is no limit
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            found.append(int(file.read()))
    return min(each for each in found if each > 0) // 2


_RESERVE = 16_000_000
"""Bytes for reporting an error in the middle of a program. `bytes(n)` has them from the system
already zero and touches none, where `bytearray(n)` would write to each page at every start.
"""


@contextmanager
def memory_ceiling(limits: Limits) -> Iterator[None]:
    """Let allocations fail with MemoryError, within the block, that take the process further than
    `limits.memory` bytes beyond what it has now.

    The ceiling is gone before an error of the block is reported, which needs memory of its own.
    """
    used = None if limits.memory is None else _data()
    if limits.memory is None or used is None:
        yield
        return
    import resource

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
    try:
        limits.reserve = bytes(_RESERVE)
        yield
    finally:
        limits.reserve = None
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _data() -> int | None:
    """The bytes of data that this process has, None where the host does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[5])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
