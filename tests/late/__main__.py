"""Run tables whole, or a sample: see the package.

Prints for each table how many programs there are, how many were compiled, and how many differ, with
the first of those. Exits with 1 where any differs, or too few were compiled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from gradcli.loops import hot_loop
from tests.late.loop import Late, Verdict, judged
from tests.late.tables import MOST_RANDOM, TABLES, Table

_PARCEL = 20
"""Programs that a process takes at a time."""

_MADE = 10_000
"""Random programs that are made at a time."""


def arguments() -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.late", description=__doc__)
    parser.add_argument("--table", choices=TABLES, action="append", help="one table; repeatable")
    parser.add_argument("--count", type=int, help="so many programs of each table")
    parser.add_argument("--seed", type=int, default=0, help="where the sample begins")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the programs")
    parser.add_argument("--show", type=int, default=5, help="programs that are shown of a table")
    parser.add_argument(
        "--flat-after",
        type=int,
        default=1000,
        help="compiled iterations before flat programs are made: by default more than there are",
    )
    parser.add_argument("--oracle", metavar="PYTHON", help="compare with PyTorch instead")
    return parser.parse_args()


class Counted:
    """What a table came to."""

    def __init__(self) -> None:
        self.programs = self.compiled = 0
        self.differing: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        """Count a program."""
        self.programs += 1
        self.compiled += verdict.compiled > 0
        if verdict.differs:
            self.differing.append(verdict)


def show(verdict: Verdict) -> None:
    """Print a program whose two runs differ, and how."""
    print(f"--- {verdict.late.name} ({verdict.compiled} iterations compiled)")
    print(verdict.late.program.rstrip())
    for line in verdict.differs[:6]:
        print(f"  * {line}")


def _parcels(table: Table, seed: int, count: int | None) -> Iterator[list[Late]]:
    """The programs of a table; many random ones are made bit by bit."""
    if not table.endless:
        yield table.programs(seed, count)
        return
    end = seed + (MOST_RANDOM if count is None else count)
    for start in range(seed, end, _MADE):
        yield table.programs(start, min(_MADE, end - start))


def flatten_after(count: int) -> None:
    """Make flat programs of compiled iterations after so many."""
    hot_loop.FLAT_AFTER = count


def judge_all(lates: list[Late], counted: Counted, jobs: int, oracle: str | None) -> None:
    """Run programs in so many processes."""
    if oracle is not None:
        from tests.late.oracle import beside

        for verdict in beside(oracle, lates):
            counted.add(verdict)
    elif jobs == 1:
        for late in lates:
            counted.add(judged(late))
    else:
        with ProcessPoolExecutor(
            jobs, initializer=flatten_after, initargs=(hot_loop.FLAT_AFTER,)
        ) as pool:
            for verdict in pool.map(judged, lates, chunksize=_PARCEL):
                counted.add(verdict)


def report(table: Table, counted: Counted, shown: int, floor: bool) -> bool:
    """Print what a table came to; whether that is well."""
    share = counted.compiled / max(1, counted.programs)
    few = floor and share < table.floor
    print(
        f"{table.name}: {counted.programs} loops, {counted.compiled} compiled ({share:.0%}),"
        f" {len(counted.differing)} differ"
        + (f", and at least {table.floor:.0%} should be compiled" if few else ""),
        flush=True,
    )
    for verdict in counted.differing[:shown]:
        show(verdict)
    return not few and not counted.differing


def main() -> int:
    """Run the tables that were asked for."""
    asked = arguments()
    flatten_after(asked.flat_after)
    well = True
    for name in asked.table or TABLES:
        table = TABLES[name]
        counted = Counted()
        for lates in _parcels(table, asked.seed, asked.count):
            judge_all(lates, counted, asked.jobs, asked.oracle)
        well &= report(table, counted, asked.show, asked.oracle is None)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
