"""How quick this machine is, for tests that must not depend on it, and what its processor knows.

What a test bounds is processor time, which other processes do not take away, as a multiple of what
the machine needs for a piece of work that never changes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

PATIENCE = 120
"""Seconds after which a process that should have ended is taken to hang."""

_QUICK = 0.012
"""Seconds of processor time that `_work` takes on the machine that limits were written for."""


KERNELS = {"Nehalem": "sse4_2", "Haswell": "avx2", "Zen": "avx2", "SkylakeX": "avx512f"}
"""The flag of a processor that runs each of OpenBLAS's sets of kernels."""


@cache
def processor_flags() -> frozenset[str]:
    """The instructions that the processor has, by the system's names; none where it names none."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = (line.partition(":")[2].split() for line in lines if line.startswith("flags"))
    return frozenset(next(found, []))


def _work() -> None:
    table = dict.fromkeys(range(1000), 0)
    for number in range(200_000):
        table[number % 1000] += number


@cache
def slowness() -> float:
    """How many times more processor time this machine needs; at least 1."""
    times = []
    for _ in range(3):
        began = time.process_time()
        _work()
        times.append(time.process_time() - began)
    return max(1.0, min(times) / _QUICK)


@contextmanager
def takes_at_most(seconds: float) -> Iterator[None]:
    """Assert that the block takes no more of the processor's time, for a machine of this kind.

    What other tests left as garbage is not collected meanwhile.
    """
    bound = seconds * slowness()
    gc.disable()
    began = time.process_time()
    try:
        yield
    finally:
        taken = time.process_time() - began
        gc.enable()
    assert taken <= bound, f"{taken:.3f} s, where {bound:.3f} are enough"
