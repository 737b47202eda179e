"""The tables by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.late import failing, functions, ops, random_late, reading, settings
from tests.late.loop import Late, sample


class Table(NamedTuple):
    """A table.

    Attributes:
        name: what it is called.
        lates: makes its programs; of a table without end, so many from a seed on.
        floor: the share of its programs of which iterations have to be compiled.
        endless: whether there are as many programs as seeds.
    """

    name: str
    lates: Callable[[int, int | None], Iterable[Late]]
    floor: float
    endless: bool = False

    def programs(self, seed: int = 0, count: int | None = None) -> list[Late]:
        """All programs, or so many at even distances from the one of a number on."""
        if self.endless:
            return list(self.lates(seed, count))
        every = list(self.lates(seed, count))
        return every if count is None else sample(every, count, seed)


MOST_RANDOM = 2_000
"""How many random programs are all of them, where nobody asks for another number."""

TABLES = {
    each.name: each
    for each in [
        Table("ops", ops.lates, 0.5),
        Table("settings", lambda seed, count: settings.lates(), 0.6),
        Table("failing", lambda seed, count: failing.lates(), 0.35),
        Table("functions", lambda seed, count: functions.lates(), 0.5),
        Table("reading", lambda seed, count: reading.lates(), 0.45),
        Table(
            "random",
            lambda seed, count: random_late.lates(seed, MOST_RANDOM if count is None else count),
            0.45,
            endless=True,
        ),
    ]
}
