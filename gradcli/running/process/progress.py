"""How far a long run has come, on a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from gradcli.running.process.interruption import AT_END, AT_WORK, started
from gradcli.show.style import Style

_PATIENCE = 2.0
"""Seconds that pass without a word, and after each thing that is printed there."""

_BETWEEN = 0.1
"""Seconds between two states of the line."""


class Progress:
    """A line on standard error that says how far a run has come: none unless that is a terminal,
    none in the first two seconds, and none where something else was printed in the last two.

    Args:
        beside: whether there is one where standard output is that terminal too; where results go
            to it as they come, they are the progress.
    """

    def __init__(self, shown: bool = True, beside: bool = False) -> None:
        self._shown = shown and sys.stderr.isatty() and (beside or not sys.stdout.isatty())
        self._next = time.monotonic() + _PATIENCE
        self._drawn = self._unended = False
        self._lock = threading.Lock()

    def show(self, text: str) -> None:
        """Bring the line up to date."""
        if not self._shown or time.monotonic() < self._next:
            return
        with self._lock:
            if self._shown and not self._unended:
                self._next = time.monotonic() + _BETWEEN
                self._drawn = True
                self._write(f"\r\x1b[K{text}")

    def make_room(self, text: str) -> None:
        """Take the line away before a text is printed; it stays away behind one without an end."""
        with self._lock:
            self._next = time.monotonic() + _PATIENCE
            self._unended = not text.endswith("\n") if text else self._unended
            self.clear()

    def end(self) -> None:
        """Take the line away for good."""
        with self._lock:
            self._shown = False
            self.clear()

    def clear(self) -> None:
        """Take the line away, where it is drawn."""
        if self._drawn:
            self._drawn = False
            self._write("\r\x1b[K")

    def say(self, text: str) -> None:
        """Say a last word in the line's place, or below what was printed."""
        begin = "\r\x1b[K" if self._drawn else "\n"
        self._drawn = False
        self._write(f"{begin}{text}\n")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._shown = False


class Screen(Protocol):
    """What the line is drawn on: a `Terminal`.

    Attributes:
        quiet: whether nothing is to be said beside results.
        progress: the line that is there, None for none.
        error_style: the style of standard error.
    """

    quiet: bool
    progress: Progress | None
    error_style: Style


@contextmanager
def watched(terminal: Screen, describe: Callable[[], str]) -> Iterator[None]:
    """Show on a terminal how long the block has been at work, and what `describe` says of it; a
    block inside such a block shows nothing of its own.
    """
    if terminal.quiet or terminal.progress is not None or not sys.stderr.isatty():
        yield
        return
    progress = Progress(beside=True)
    over = threading.Event()
    since = time.monotonic()

    def draw() -> None:
        wait = _PATIENCE
        while not over.wait(wait):
            wait = _BETWEEN
            columns = terminal.error_style.width or 80
            progress.show(f"{time.monotonic() - since:.0f} s  {describe()}"[: columns - 1])

    def say_where() -> None:
        progress.say(f"interrupted at {describe()}")

    terminal.progress = progress
    AT_END.append(say_where)
    AT_WORK.append(describe)
    started(draw)
    try:
        yield
    finally:
        over.set()
        terminal.progress = None
        AT_END.remove(say_where)
        AT_WORK.remove(describe)
        progress.end()


class Rate:
    """How quickly a run gets on, and how long it will take at that."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._before: float | None = None

    def text(self, done: int, share: float | None) -> str:
        """The rate, and the time left where the share that is done is known.

        Args:
            done: how many were done since this began.
            share: what part of all has been done, from 0 to 1.
        """
        seconds = max(time.monotonic() - self._began, 1e-3)
        speed = f", {done / seconds:,.0f} a second"
        if self._before is None:
            self._before = share
        if share is None or self._before is None or share <= self._before:
            return speed
        minutes, rest = divmod(round(seconds * (1 - share) / (share - self._before)), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
        return f"{speed}, {clock} left"
