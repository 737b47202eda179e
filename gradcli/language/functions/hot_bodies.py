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

FEWEST = 10
"""Iterations of the shortest loop that is timed."""

HOT_ITERATIONS = 600
"""Iterations of a loop from which on its body is hot, where no loop compiler takes it."""


def before_hot(after: int, are_in_c: bool) -> int:
    """What a count of closures, or of nodes, begins at which is above 0 when they are hot."""
    return -after * (LATER if are_in_c else 1)


class HotBlock(Record):
    """The body of a loop, and how often it ran.

    Attributes:
        body: its closure.
        is_alone: whether nothing else compiles the iterations.
        write: writes the body as a function of the variables; None where that cannot be.
        runs: how often it ran since it was last looked at; above 0 it is looked at again.
        written: what runs in its place.
    """

    body: Run
    is_alone: Callable[[], bool]
    write: Callable[[], Run | None]
    runs: int
    written: Run | None = None

    def run(self, variables: Variables) -> Any:
        """Run it once; returns how it ended."""
        if self.written is not None:
            return self.written(variables)
        self.runs += 1
        if self.runs > 0:
            self.runs = -HOT_ITERATIONS
            self.look()
        return self.body(variables)

    def look(self) -> Run | None:
        """Write it, where nothing else compiles it; gives what runs in its place."""
        if self.is_alone():
            self.written = self.write() or self.body
        return self.written


class HotList(Record):
    """A list comprehension, and how many elements it made.

    Attributes:
        write: writes it as a function of the variables and of an iterator; None where that cannot
            be.
        may_be: whether it may be written.
        made: the elements, above 0 where they are many.
        run: what was written.
    """

    write: Callable[[], Callable[..., list[Any]] | None]
    may_be: bool
    made: int
    run: Any = None

    def takes(self, values: Any) -> bool:
        """Whether it is written, as it is by now, or for values that are many."""
        if self.run is None:
            many = len(values) if type(values) in _SIZED else 0
            if self.made + many < 0:
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
        calls: how often it was called, above 0 where that is often.
        run: what it wrote.
    """

    body: Run
    least: int
    most: int
    write: Callable[[], Callable[..., Any] | None]
    calls: int
    run: Callable[..., Any] | None = None

    def called(self, function: Any) -> None:
        """A function with the body is called and not written yet."""
        self.calls += 1
        if self.calls > 0 and self.run is None:
            if len(function.state.stack) > DEEPEST_WRITTEN:
                return
            self.calls = -1 << 60  # once
            self.run = self.write()
        if self.run is not None:
            function.enter_by(function.body)
