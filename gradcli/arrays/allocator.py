"""Where the memory of large arrays comes from."""

from __future__ import annotations

from functools import cache

import numpy as np

_LARGEST_KEPT = (1 << 25) - (1 << 13)
"""The largest block that glibc, with its headers, may still learn to keep."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep the memory of a large array that is freed for the next one; asked for
    once in a process.

    glibc gives a large block back to the system when it is freed, and the next array pays for fresh
    pages, which costs more than most ops on it. Freeing one block, never touched, of the largest
    size that it adapts to teaches it to keep all smaller ones. Other C libraries are not moved.
    """
    try:
        np.empty(_LARGEST_KEPT, np.uint8)
    except MemoryError:  # a limit on the process is lower than that
        return
