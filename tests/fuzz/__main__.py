"""The command line of the fuzz tests: inputs, exit codes and the slowest by kind, and every input
that was answered badly.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.inputs import input_of
from tests.fuzz.running import fuzz
from tests.running import invoke


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10**9, help="how many inputs")
    parser.add_argument("--seconds", type=float, default=None, help="for how long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--show", metavar="SEED:NUMBER", help="show one input and its answer")
    given = parser.parse_args()
    if given.show:
        seed, _, number = given.show.partition(":")
        one = input_of(int(seed), int(number))
        print(one)
        finished = invoke(*one.words, stdin=one.stdin)
        print(f"exit code {finished.code}\n{finished.stdout}{finished.stderr}")
        return 0
    if given.seconds is None and given.count == 10**9:
        parser.error("give --count or --seconds")
    outcome = fuzz(given.seed, given.first, given.count, given.seconds, show=print)
    print(outcome.table())
    print(f"{sum(outcome.counts.values()):9,}  inputs, {len(outcome.failures)} answered badly")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
