"""Lines of formulas that repeat by steps of one, as unrolled loops leave them, as one rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_NUMBERED = re.compile(r"(\b[A-Za-z_]\w*?|(?<=\[))(\d*)\b(?!\()")
"""A name and the number at its end, or a position in brackets."""

_LEAST = 5
"""Fewer blocks than these are shown in full."""

_LONGEST = 4
"""The most lines that a block has."""


_BETWEEN = "# … and so on {} times, the numbers in names going on by the same steps, up to"


def elided(lines: Sequence[str]) -> list[str]:
    """The lines, but of blocks that repeat with other numbers in their names the first two and the
    last.
    """
    return [_BETWEEN.format(-each) if each < 0 else lines[each] for each in left_of(lines)]


def left_of(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines that are left, and minus the number of blocks between them."""
    place = 0
    while place < len(lines):
        period, count = _longest_run(lines, place)
        if count < _LEAST:
            yield place
            place += 1
            continue
        end = place + period * count
        yield from range(place, place + 2 * period)
        yield 3 - count
        yield from range(end - period, end)
        place = end


def _longest_run(lines: Sequence[str], place: int) -> tuple[int, int]:
    """The length of the block that repeats from a line on, and how often it stands there."""
    repeats = [(period, _repeats(lines, place, period)) for period in range(1, _LONGEST + 1)]
    return max(repeats, key=lambda pair: (pair[1] >= _LEAST) * pair[0] * pair[1])


def _repeats(lines: Sequence[str], place: int, period: int) -> int:
    """How many blocks from a line on differ from each other by the same steps."""
    count, steps = 1, None
    before = _parts(lines[place : place + period])
    while place + (count + 1) * period <= len(lines):
        start = place + count * period
        after = _parts(lines[start : start + period])
        if before[0] != after[0]:
            break
        differences = [b - a for a, b in zip(before[1], after[1], strict=True)]
        if (steps is not None and differences != steps) or any(
            abs(step) > period for step in differences
        ):
            break
        before, steps, count = after, differences, count + 1
    return count


def _parts(block: Sequence[str]) -> tuple[str, list[int]]:
    """A block without the numbers in its names, and these numbers."""
    text = "\n".join(line.split("  #")[0].rstrip() for line in block)
    numbers = [int(match[2] or 0) for match in _NUMBERED.finditer(text)]
    return _NUMBERED.sub(lambda match: match[1], text), numbers
