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
