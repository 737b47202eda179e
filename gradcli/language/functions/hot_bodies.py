"""Which functions of a program are called often enough to be written as functions of the host's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Variables
from gradcli.record import Record

HOT_AFTER = 400
"""Calls of the functions with one body from which on it is hot: to write it takes about as long as
it saves in so many.
"""

LATER = 4
"""How many times later that pays where nodes in C are what a written text stands in for."""

DEEPEST_WRITTEN = 200
"""Calls that are open at most where a body is written, which nests calls of the host itself."""


HOT_ITERATIONS = 600
"""Iterations of a loop from which on its body is hot, where no loop compiler takes it."""


def head_start(are_in_c: bool, after: int) -> int:
    """What a count begins at that makes something hot when it is `after`, of closures or nodes."""
    return (1 - LATER) * after if are_in_c else 0


class HotBlock(Record):
    """The body of a loop, and how often it ran.

    Attributes:
        body: its closure.
        is_alone: whether nothing else compiles the iterations.
        write: writes the body as a function of the variables; None where that cannot be.
        written: what runs in its place.
        runs: how often it ran since it was last looked at.
    """

    body: Run
    is_alone: Callable[[], bool]
    write: Callable[[], Run | None]
    written: Run | None = None
    runs: int = 0

    def run(self, variables: Variables) -> Any:
        """Run it once; returns how it ended."""
        if self.written is not None:
            return self.written(variables)
        self.runs += 1
        if self.runs > HOT_ITERATIONS:
            self.runs = 0
            if self.is_alone():
                self.written = self.write() or self.body
        return self.body(variables)


class HotList(Record):
    """A list comprehension, and how many elements it made.

    Attributes:
        write: writes it as a function of the variables and of an iterator; None where that cannot
            be.
        may_be: whether it may be written.
        run: what was written.
        made: the elements.
    """

    write: Callable[[], Callable[..., list[Any]] | None]
    may_be: bool
    run: Any = None
    made: int = 0

    def takes(self, values: Any) -> bool:
        """Whether it is written, as it is by now, or for values that are many."""
        if self.run is None:
            many = len(values) if type(values) in _SIZED else 0
            if self.made + many < HOT_ITERATIONS:
                return False
            self.run = self.write()
            self.may_be = self.run is not None
        return self.may_be


_SIZED = frozenset({list, str, tuple})


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
