"""What a record of `--inputs` takes in one process, in two of `--jobs` and on two workers of Dask,
and from how many records on each pays.

Each runs N and 3 N records: what a record takes is the slope, what is left is the start. Wall time
wants a quiet machine; processor time, that of all processes together, says what the sharing itself
costs on a busy one too. A side without its package is left out.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.measure import Series, alternate

PROGRAM = """\
k = 0
for i in range(rounds):
    k = (k * 7 + i) % 1000
y = a * w + k
"""

ALONE = "one process"

SIDES = {ALONE: [], "--jobs 2": ["--jobs", "2"]}
if find_spec("distributed") is not None:
    SIDES["local:2"] = ["--cluster", "local:2"]

ROUNDS = {0.1: (80, 4000), 1: (800, 1000), 10: (8000, 150), 100: (80000, 15)}
"""For records of so many milliseconds: rounds of the program's loop, and N."""


def records(folder: Path, command: list[str], quick: bool, times: int) -> None:
    """Measure all sides and print the table."""
    print(f"{'':26}{'wall':>10}{'':>10}{'':>24}{'processor':>12}")
    print(
        f"{'record of':<12}{'':14}{'ms each':>10}{'start, s':>10}{'pays from':>24}"
        f"{'ms each':>12}{'start, s':>10}"
    )
    for milliseconds, (rounds, count) in ROUNDS.items():
        count = 4 if quick else count
        series = measured(folder, command, rounds, count, times)
        walls = {key: each.wall() for key, each in series.items()}
        spent = {key: each.processor() for key, each in series.items()}
        alone = line_of(walls, ALONE, count)
        for side in SIDES:
            each, start = line_of(walls, side, count)
            name = f"{milliseconds:g} ms" if side == ALONE else ""
            pays = "" if side == ALONE else pays_from(alone, (each, start))
            busy, begun = line_of(spent, side, count)
            print(
                f"{name:<12}{side:<14}{each * 1e3:>10.2f}{start:>10.2f}{pays:>24}"
                f"{busy * 1e3:>12.2f}{begun:>10.2f}",
                flush=True,
            )


def measured(
    folder: Path, command: list[str], rounds: int, count: int, times: int
) -> dict[tuple[str, int], Series]:
    """The runs of each side with N and 3 N records; raises RuntimeError where they print different
    results.
    """
    program = folder / "record.grad"
    program.write_text(PROGRAM, encoding="utf-8")
    commands = {}
    for factor in (1, 3):
        file = folder / f"{factor}.jsonl"
        lines = (json.dumps({"a": number}) + "\n" for number in range(factor * count))
        file.write_text("".join(lines), encoding="utf-8")
        words = ["run", str(program), "w=2", f"rounds:const={rounds}", "--inputs", str(file)]
        for side, more in SIDES.items():
            commands[side, factor] = [*command, *words, *more]
    series = alternate(commands, times)
    if len({each.runs[0].output for (_, factor), each in series.items() if factor == 3}) > 1:
        raise RuntimeError("the sides print different results")
    return series


def line_of(seconds: dict[tuple[str, int], float], side: str, count: int) -> tuple[float, float]:
    """What a record takes, and the start."""
    each = (seconds[side, 3] - seconds[side, 1]) / (2 * count)
    return each, seconds[side, 1] - each * count


def pays_from(alone: tuple[float, float], shared: tuple[float, float]) -> str:
    """From how many records on a side is quicker than one process."""
    saved = alone[0] - shared[0]
    if saved <= 0:
        return "never"
    count = max(1, round((shared[1] - alone[1]) / saved))
    return f"{count:,} records, {count * alone[0]:.1f} s"
