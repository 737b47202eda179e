"""Work on large arrays, tile by tile, on a thread per core."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from math import prod
from typing import Any

import numpy as np

TILE = 1 << 18
"""Elements of a tile: its values fit the cache, and its kernels run long enough that threads
seldom wait for the interpreter.
"""

SMALLEST_TILE = 1 << 15
"""Elements that are worth a thread of their own."""


def tile_rows(shape: tuple[int, ...], largest: int = TILE) -> int:
    """How many rows of an array make a tile: every core gets some, if there are enough."""
    share = max(SMALLEST_TILE, -(-prod(shape) // _cores()))
    return max(1, min(largest, share) // max(prod(shape[1:]), 1))


def over_tiles(shape: tuple[int, ...], work: Callable[[slice], None], largest: int = TILE) -> None:
    """Call `work` with one slice of rows of an array after the other, on a thread per core; each
    has no more than the largest number of elements.
    """
    length, rows = shape[0], tile_rows(shape, largest)
    tiles = -(-length // rows)
    turns = count()

    def run() -> None:
        with np.errstate(all="ignore"):
            while (tile := next(turns)) < tiles:
                work(slice(tile * rows, min((tile + 1) * rows, length)))

    in_threads(run, tiles)


def in_threads(work: Callable[[], None], tiles: int) -> None:
    """Run the same function on a thread per core, this one among them, no more than tiles.

    Raises what it raised in any of them, once all have ended.
    """
    helpers = min(_cores(), tiles) - 1
    if helpers < 1:
        work()
        return
    tasks = _tasks_of(helpers)
    ended = type(tasks)()
    for _ in range(helpers):
        tasks.put((work, ended))
    try:
        work()
    finally:
        failures = [ended.get() for _ in range(helpers)]
    for failure in failures:
        if failure is not None:
            raise failure


_queues: list[Any] = []
"""The queue from which the helping threads take tasks, once there is one."""

_helping: list[Any] = []


def _tasks_of(helpers: int) -> Any:
    """The queue of tasks, with as many threads at it. It and a thread that waits cost half of what
    an executor and its futures do, which a pass over a few megabytes feels.
    """
    from queue import SimpleQueue
    from threading import Thread

    if not _queues:
        _queues.append(SimpleQueue())
        os.register_at_fork(after_in_child=_forget)  # threads do not survive a fork
    while len(_helping) < helpers:
        thread = Thread(target=_help, args=(_queues[0],), name="gradcli", daemon=True)
        _helping.append(thread)
        thread.start()
    return _queues[0]


def _forget() -> None:
    _queues.clear()
    _helping.clear()


def _help(tasks: Any) -> None:
    while True:
        work, ended = tasks.get()
        failure = None
        try:
            work()
        except BaseException as raised:  # for the thread that waits
            failure = raised
        ended.put(failure)
        del work, ended, failure  # and the arrays that they hold


def _cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
