"""Compares gradcli with PyTorch on random programs, from the shell."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable

from tests.differential import (
    RECORDED,
    aliasing,
    later_programs,
    read_recorded,
    recorded_programs,
    write_recorded,
)
from tests.differential.comparing import Outcome, Torch, category, outcome_here
from tests.differential.generator import program
from tests.differential.shrinking import shrunk

EXPLAINED = {"same", "rounding", "crash"}
"""The kinds of outcome that need no mending."""


def main() -> int:
    """Run the programs of a seed under both and list what differs, or do what an option asks."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--oracle", metavar="PYTHON", help="an interpreter that has torch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200, help="how many programs of the seed")
    parser.add_argument("--show", metavar="SEED:NUMBER", help="one program and both outcomes")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} anew")
    parser.add_argument("--add", action="store_true", help="record what is new only")
    parser.add_argument("--aliasing", action="store_true", help="programs of aliasing.py")
    parser.add_argument("--whole", action="store_true", help="list differing programs unshrunk")
    arguments = parser.parse_args()
    if arguments.show and not arguments.oracle:
        seed, number = map(int, arguments.show.split(":"))
        text = program(seed, number)
        print(f"{text}\n--- gradcli\n{outcome_here(text).text()}", end="")
        return 0
    if not arguments.oracle:
        parser.error("--oracle PYTHON is needed: an interpreter that has torch")
    torch = Torch(arguments.oracle)
    try:
        if arguments.record:
            return record(torch, recorded_programs(), [])
        if arguments.add:
            kept = read_recorded()
            known = {text for text, _ in kept}
            return record(torch, (text for text in later_programs() if text not in known), kept)
        if arguments.show:
            return show(torch, *map(int, arguments.show.split(":")))
        made = aliasing.program if arguments.aliasing else program
        return compare(torch, made, arguments.seed, arguments.count, arguments.whole)
    finally:
        torch.close()


def compare(torch: Torch, made: Callable[..., str], seed: int, count: int, whole: bool) -> int:
    """Run programs under both; print each difference, shrunk, and how many there are of a kind."""
    found: Counter[str] = Counter()
    for number in range(count):
        text = made(seed, number)
        here, there = outcome_here(text), torch.outcome(text)
        kind = category(text, here, there)
        found[kind] += 1
        if kind not in EXPLAINED:
            short = text if whole else _shrunk(torch, text, _signature(text, here, there))
            print(f"==== {seed}:{number} {kind}\n{short}", end="")
            print(first_difference(outcome_here(short), torch.outcome(short)), flush=True)
    print(f"seed {seed}: {count} programs, {', '.join(f'{n} {k}' for k, n in found.items())}")
    return 0 if set(found) <= EXPLAINED else 1


def show(torch: Torch, seed: int, number: int) -> int:
    """Print a program and what both make of it."""
    text = program(seed, number)
    here, there = outcome_here(text), torch.outcome(text)
    print(f"{text}\n--- gradcli\n{here.text()}\n--- PyTorch\n{there.text()}", end="")
    print(category(text, here, there))
    return 0


def record(torch: Torch, programs: Iterable[str], kept: list[tuple[str, Outcome]]) -> int:
    """Write programs with PyTorch's outcomes behind those kept; leave out those inexact by
    rounding.
    """
    for text in programs:
        there = torch.outcome(text)
        if category(text, outcome_here(text), there) != "rounding":
            kept.append((text, there))
    write_recorded(kept)
    print(f"{len(kept)} programs")
    return 0


def first_difference(here: Outcome, there: Outcome) -> str:
    """The first line in which two outcomes differ."""
    mine, theirs = here.text().splitlines(), there.text().splitlines()
    for position in range(max(len(mine), len(theirs))):
        pair = [lines[position] if position < len(lines) else "" for lines in (mine, theirs)]
        if pair[0] != pair[1]:
            return f"  gradcli: {pair[0]}\n  PyTorch: {pair[1]}"
    return "  no difference"


def _shrunk(torch: Torch, text: str, due: tuple[str, ...]) -> str:
    return shrunk(
        text,
        lambda shorter: _signature(shorter, outcome_here(shorter), torch.outcome(shorter)) == due,
    )


def _signature(text: str, here: Outcome, there: Outcome) -> tuple[str, ...]:
    """What a difference is about: its kind, and the classes of the errors."""
    classes = [f"{outcome.error}".split(" at line ")[0] for outcome in (here, there)]
    return (category(text, here, there), *classes)


if __name__ == "__main__":
    sys.exit(main())
