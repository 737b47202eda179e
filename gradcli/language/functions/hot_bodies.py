"""Which functions of a program are called often enough to be written as functions of the host's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.language.tree.control_flow import Run
from gradcli.record import Record

HOT_AFTER = 100
"""Calls of the functions with one body from which on it is hot: to write it takes about as long as
it saves in so many.
"""

DEEPEST_WRITTEN = 200
"""Calls that are open at most where a body is written, which nests calls of the host itself."""


class HotBody(Record):
    """The body of a `def` or `lambda`, and how often it was called.

    Attributes:
        body: its closure.
        least, most: how many arguments it may be given by position.
        write: writes the body as a function of the `Function` and its arguments; None where that
            cannot be.
        run: what it wrote.
    """

    body: Run
    least: int
    most: int
    write: Callable[[], Callable[..., Any] | None]
    calls: int = 0
    run: Callable[..., Any] | None = None

    def called(self, function: Any) -> None:
        """A function with the body is called and not written yet."""
        self.calls += 1
        if self.calls > HOT_AFTER and self.run is None:
            if len(function.state.stack) > DEEPEST_WRITTEN:
                return
            self.calls = -1 << 60  # once
            self.run = self.write()
        if self.run is not None:
            function.enter_by(function.body)
