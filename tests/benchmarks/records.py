"""What a record of `--inputs` takes in one process, in two of `--jobs` and on two workers of Dask,
and from how many records on each pays.

Each runs N and 3 N records: what a record takes is the slope, what is left is the start.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks.measure import alternate

PROGRAM = """\
k = 0
for i in range(rounds):
    k = (k * 7 + i) % 1000
y = a * w + k
"""

SIDES = {"one process": [], "--jobs 2": ["--jobs", "2"], "local:2": ["--cluster", "local:2"]}

ROUNDS = {0.1: (80, 4000), 1: (800, 1000), 10: (8000, 150), 100: (80000, 15)}
"""For records of so many milliseconds: rounds of the program's loop, and N."""


def records(folder: Path, command: list[str], quick: bool, times: int) -> None:
    """Measure all sides and print the table."""
    print(f"{'record of':<12}{'':14}{'ms a record':>12}{'start, s':>10}{'pays from':>26}")
    program = folder / "record.grad"
    program.write_text(PROGRAM, encoding="utf-8")
    for milliseconds, (rounds, count) in ROUNDS.items():
        count = 4 if quick else count
        commands = {}
        for factor in (1, 3):
            file = folder / f"{factor}.jsonl"
            lines = (json.dumps({"a": number}) + "\n" for number in range(factor * count))
            file.write_text("".join(lines), encoding="utf-8")
            words = ["run", str(program), "w=2", f"rounds:const={rounds}", "--inputs", str(file)]
            for side, more in SIDES.items():
                commands[side, factor] = [*command, *words, *more]
        series = alternate(commands, times)
        outputs = {each.runs[0].output for (_, factor), each in series.items() if factor == 3}
        if len(outputs) > 1:
            raise RuntimeError("the sides print different results")
        walls = {key: each.wall() for key, each in series.items()}
        slopes = {side: (walls[side, 3] - walls[side, 1]) / (2 * count) for side in SIDES}
        starts = {side: walls[side, 1] - slopes[side] * count for side in SIDES}
        for side in SIDES:
            name = f"{milliseconds:g} ms" if side == "one process" else ""
            line = f"{name:<12}{side:<14}{slopes[side] * 1e3:>12.2f}{starts[side]:>10.2f}"
            if side != "one process":
                line += f"{pays_from(starts, slopes, side):>26}"
            print(line, flush=True)


def pays_from(starts: dict[str, float], slopes: dict[str, float], side: str) -> str:
    """From how many records on a side is quicker than one process."""
    saved = slopes["one process"] - slopes[side]
    if saved <= 0:
        return "never"
    count = max(1, round((starts[side] - starts["one process"]) / saved))
    return f"{count:,} records, {count * slopes['one process']:.1f} s"
