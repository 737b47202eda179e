"""How far a long run has come, on a terminal only."""

from __future__ import annotations

import sys
import time

_PATIENCE = 1.0
"""Seconds that pass without a word."""

_BETWEEN = 0.1
"""Seconds between two states of the line."""


class Progress:
    """A line on standard error that says how far a run has come: none unless that is a terminal
    and standard output is not, and none in the first second.
    """

    def __init__(self, shown: bool = True) -> None:
        # Where results go to the terminal they are the progress.
        self._shown = shown and sys.stderr.isatty() and not sys.stdout.isatty()
        self._next = time.monotonic() + _PATIENCE
        self._drawn = False

    def show(self, text: str) -> None:
        """Bring the line up to date."""
        if not self._shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _BETWEEN
        self._drawn = True
        self._write(f"\r\x1b[K{text}")

    def end(self) -> None:
        """Take the line away."""
        if self._drawn:
            self._drawn = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._shown = False


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
        found = f", {done / seconds:,.0f} a second"
        if self._before is None:
            self._before = share
        if share is None or self._before is None or share <= self._before:
            return found
        minutes, rest = divmod(round(seconds * (1 - share) / (share - self._before)), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
        return f"{found}, {clock} left"
