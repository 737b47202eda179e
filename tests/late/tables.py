"""The tables by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.late import failing, ops, reading, settings
from tests.late.loop import Late, sample


class Table(NamedTuple):
    """A table.

    Attributes:
        name: what it is called.
        lates: makes its programs, all of them or, of a table without end, so many from a seed on.
        floor: the share of its programs whose loop has to be compiled.
        endless: how many programs stand for all of a table without end.
    """

    name: str
    lates: Callable[[], Iterable[Late]]
    floor: float

    def programs(self, seed: int, count: int | None) -> list[Late]:
        """All programs, or a sample of so many."""
        every = list(self.lates())
        return every if count is None else sample(every, count, seed)


TABLES = {
    each.name: each
    for each in [
        Table("ops", ops.lates, 0.5),
        Table("settings", settings.lates, 0.5),
        Table("failing", failing.lates, 0.5),
        Table("reading", reading.lates, 0.5),
    ]
}
