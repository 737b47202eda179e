"""How many rounds a figure is measured at, and whether it is one of rounds.

A loop is timed at N and 3 N rounds. What its first rounds cost besides (they are interpreted, and
compiled) is the same in both: N is large enough for it to count little, and each side has an N of
its own, since what lasts long enough for the quickest takes minutes for the slowest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SETTLED, SHORTEST, LONGEST = 5, 0.3, 4.0
"""N rounds take as many times what the first ones cost besides, and so many seconds at least and,
where the former is not reached, at most.
"""

MOST = 16
"""How many times more rounds a try has than the one before."""

_TRIES, _SETTLED_GROWTH = 4, 2.5
"""How often more rounds are tried, and the growth from which on they are enough."""

LEAST_GROWTH, MOST_GROWTH = 2.0, 4.5
"""What 3 times the rounds take at least and at most, in times of what one takes. Below that, a loop
does not depend on its own results and was computed once; above, a round costs more and more.
"""


def wanted_rounds(rounds: int, once: float, thrice: float) -> int:
    """How many rounds last long enough, by what some and three times as many took."""
    each = (thrice - once) / (2 * rounds)
    if each <= 0:
        return MOST * rounds
    seconds = min(max(SETTLED * (once - each * rounds), SHORTEST), LONGEST)
    return min(math.ceil(seconds / each), MOST * rounds)


def settled_rounds(seconds: Callable[[int], float], rounds: int) -> int:
    """How many rounds to measure a side at, by trying: `seconds` runs so many."""
    for number in range(_TRIES):
        once, thrice = seconds(rounds), seconds(3 * rounds)
        wanted = wanted_rounds(rounds, once, thrice)
        if once >= LONGEST or (wanted <= rounds and thrice / once >= _SETTLED_GROWTH):
            # Fewer may do. They are tried too: what ran beside the first try may have slowed it.
            fewer = max(min(wanted, rounds), rounds // MOST, 1)
            if number or fewer == rounds:
                return rounds
            rounds = fewer
        else:
            rounds = max(wanted, 2 * rounds)
    return rounds


def refusal(side: str, rounds: int, once: float, thrice: float) -> str | None:
    """Why a figure says nothing of a round; None where it does."""
    growth = thrice / once
    if LEAST_GROWTH <= growth <= MOST_GROWTH:
        return None
    told = f"{side}: {3 * rounds:,} rounds take {growth:.1f} times as long as {rounds:,}"
    if growth > MOST_GROWTH:
        return f"{told}, so that a round costs more and more"
    each = max(thrice - once, 0.0) / (2 * rounds)
    first = once - each * rounds
    return f"{told}: of {once:.2f} s the first rounds cost {first:.2f} s besides"
