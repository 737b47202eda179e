"""Finds stretches of a long list that repeat, one behind the other: the blocks of a network, the
rounds of a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gradcli.record import Record

_FEWEST = 3
"""Times that a stretch stands there, at least."""

_LEAST_SAVED = 8
"""Items that are left out, at least: a shorter list would be no easier to read."""

_LONGEST = 2_000
"""Items of a stretch, at most."""


class Repeat(Record):
    """A stretch of items that repeats.

    Attributes:
        start: where it stands first.
        length: how many items it has.
        times: how often it stands there in all.
    """

    start: int
    length: int
    times: int

    @property
    def end(self) -> int:
        """Where the last of them ends."""
        return self.start + self.length * self.times


def repeats(keys: Sequence[str]) -> list[Repeat]:
    """The stretches of equal keys that repeat, those first that save most; in the first of each
    others may repeat. In the order of their starts, the longer first.
    """
    numbers: dict[str, int] = {}
    codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    return sorted(_within(codes, 0, len(codes)), key=lambda each: (each.start, -each.end))


def _within(codes: np.ndarray, low: int, high: int) -> Iterator[Repeat]:
    best = _best(codes, low, high)
    if best is None:
        return
    yield best
    first = best.start + best.length
    for start, end in ((low, best.start), (best.start, first), (best.end, high)):
        yield from _within(codes, start, end)


def _best(codes: np.ndarray, low: int, high: int) -> Repeat | None:
    """The stretch between two places that saves most, the shortest of those; None for none."""
    part = codes[low:high]
    best: Repeat | None = None
    most = _LEAST_SAVED - 1
    for length in range(1, min(len(part) // _FEWEST, _LONGEST) + 1):
        # Runs of items that are those so many places on: between the ones that are not.
        unlike = np.flatnonzero(part[:-length] != part[length:])
        bounds = np.concatenate(([-1], unlike, [len(part) - length]))
        runs = np.diff(bounds) - 1
        at = int(np.argmax(runs))
        more = int(runs[at]) // length
        if more >= _FEWEST - 1 and more * length > most:
            most = more * length
            best = Repeat(low + int(bounds[at]) + 1, length, more + 1)
    return best
