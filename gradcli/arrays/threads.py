"""Work on large arrays, tile by tile, on a thread per core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from threading import local
from typing import Any, TypeVar

import numpy as np

from gradcli.state import active

TILE = 1 << 18
"""Elements of a tile: its values fit the cache, and its kernels run long enough that threads
seldom wait for the interpreter.
"""

SMALLEST_TILE = 1 << 15
"""Elements that are worth a thread of their own."""

Item = TypeVar("Item")


def tile_rows(shape: tuple[int, ...], largest: int = TILE) -> int:
    """How many rows of an array make a tile: every core gets some, if there are enough."""
    share = max(SMALLEST_TILE, -(-prod(shape) // cores()))
    return max(1, min(largest, share) // max(prod(shape[1:]), 1))


def over_tiles(shape: tuple[int, ...], work: Callable[[slice], None], largest: int = TILE) -> None:
    """Call `work` with slices of the rows of an array, on a thread per core; each slice has at most
    the largest number of elements.
    """
    length, rows = shape[0], tile_rows(shape, largest)
    starts = range(0, length, rows)
    in_turns(starts, lambda start: work(slice(start, min(start + rows, length))))


def in_turns(items: Sequence[Item], work: Callable[[Item], None]) -> None:
    """Call `work` with every item, on a thread per core; each takes the next one that is left."""
    left = iter(items)

    def run() -> None:
        with np.errstate(all="ignore"):
            for item in left:
                work(item)

    in_threads(run, len(items))


def in_threads(work: Callable[[], None], tiles: int) -> None:
    """Run a function on a thread per core, including this one, but on no more threads than tiles.
    A thread that has not begun when this one ends is not waited for: it finds no ticket. What is
    part of such work is not shared out once more. Where memory is limited there are fewer threads:
    BLAS has buffers for each that calls it.

    Raises what it raised in any of them, once all have ended; Shared in `on_one_thread`.
    """
    helpers = min(free_threads(), tiles) - 1
    if helpers < 1:
        work()
        return
    if getattr(_own, "alone", False):
        raise Shared
    tasks, helpers = _tasks_of(helpers)
    ended = type(tasks)()
    tickets = [work] * helpers
    for _ in range(helpers):
        tasks.put((tickets, ended))
    try:
        _own.shares = True
        work()
    finally:
        _own.shares = False
        withdrawn = sum(1 for _ in iter(lambda: _taken(tickets), None))
        failures = [ended.get() for _ in range(helpers - withdrawn)]
    for failure in failures:
        if failure is not None:
            raise failure


def _taken(tickets: list[Any]) -> Any:
    """A ticket's work, or None where none is left; popping is atomic."""
    try:
        return tickets.pop()
    except IndexError:
        return None


_queues: list[Any] = []
"""The queue from which the worker threads take tasks, once there is one."""

_helping: list[Any] = []

_own = local()
"""Whether what a thread does is a share of some work, and whether it is to be a thread's alone."""


class Shared(Exception):
    """Work is worth several threads."""


@contextmanager
def on_one_thread() -> Iterator[None]:
    """Raise `Shared` where work would be shared out."""
    before = getattr(_own, "alone", False)
    _own.alone = True
    try:
        yield
    finally:
        _own.alone = before


def _tasks_of(helpers: int) -> tuple[Any, int]:
    """The queue of tasks, and how many threads serve it: as many as asked for, fewer where the
    host has no more. A queue costs half of what an executor and its futures do, which matters for
    a pass over a few megabytes.
    """
    from queue import SimpleQueue
    from threading import Thread

    if not _queues:
        _queues.append(SimpleQueue())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget)  # threads do not survive a fork
    while len(_helping) < helpers:
        thread = Thread(target=_help, args=(_queues[0],), name="gradcli", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads, or none at all
            break
        _helping.append(thread)
    return _queues[0], min(helpers, len(_helping))


def _forget() -> None:
    _queues.clear()
    _helping.clear()


def _help(tasks: Any) -> None:
    _own.shares = True
    while True:
        tickets, ended = tasks.get()
        if work := _taken(tickets):
            failure = None
            try:
                work()
            except BaseException as raised:  # for the thread that waits
                failure = raised
            ended.put(failure)
            del failure
        del work, tickets, ended  # and the arrays that they hold


def free_threads() -> int:
    """How many threads work may be shared among, where it is not a share of other work itself."""
    return 1 if getattr(_own, "shares", False) else min(cores(), active.state.limits.threads)


def cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
