"""Run tables whole, or a sample: see the package.

Prints for each table how many programs there are, how many were compiled, and how many differ, with
the first of those. Exits with 1 where any differs, or too few were compiled.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from time import process_time

from tests.late.loop import Late, Verdict, judged, sample
from tests.late.tables import TABLES, Table

_PARCEL = 50
"""Programs that a process takes at a time."""


def arguments() -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.late", description=__doc__)
    parser.add_argument("--table", choices=TABLES, action="append", help="one table; repeatable")
    parser.add_argument("--count", type=int, help="so many programs of each table")
    parser.add_argument("--seed", type=int, default=0, help="where the sample begins")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the programs")
    parser.add_argument("--show", type=int, default=5, help="programs that are shown of a table")
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


def judge_all(lates: list[Late], jobs: int, oracle: str | None) -> Counted:
    """Run programs in so many processes."""
    counted = Counted()
    if oracle is not None:
        from tests.late.oracle import beside

        for verdict in beside(oracle, lates):
            counted.add(verdict)
    elif jobs == 1:
        for late in lates:
            counted.add(judged(late))
    else:
        with ProcessPoolExecutor(jobs) as pool:
            for verdict in pool.map(judged, lates, chunksize=_PARCEL):
                counted.add(verdict)
    return counted


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
    well = True
    for name in asked.table or TABLES:
        table = TABLES[name]
        lates = table.programs(asked.seed, asked.count)
        counted = judge_all(lates, asked.jobs, asked.oracle)
        well &= report(table, counted, asked.show, asked.oracle is None)
    print(f"{process_time():.0f} s of this process", file=sys.stderr)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
