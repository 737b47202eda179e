"""The C library's allocator: how it serves large arrays."""

from __future__ import annotations

from functools import cache

import numpy as np

_LARGEST_KEPT = (1 << 25) - (1 << 13)
"""The largest block that glibc, with its headers, may still learn to keep."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep the memory of a freed large array for the next one; set once in a
    process.

    glibc returns a large block to the system when it is freed, and the next array needs fresh
    pages, which cost more than most ops on it. When an untouched block of the largest size that
    glibc adapts to is freed, glibc keeps all smaller ones from then on. Other C libraries are not
    affected.
    """
    try:
        np.empty(_LARGEST_KEPT, np.uint8)
    except MemoryError:  # a limit on the process is lower than that
        return
