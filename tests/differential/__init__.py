"""Random programs, run under gradcli and under PyTorch and compared by the contract of exactness.

    python -m tests.differential --oracle PYTHON --seed 7 --count 2000    the programs of a seed
    python -m tests.differential --oracle PYTHON --show 7:41              one of them, both outcomes
    python -m tests.differential --oracle PYTHON --record                 write recorded.jsonl anew
    python -m tests.differential --oracle PYTHON --add                    record what is new only

PYTHON is an interpreter that has torch. What counts is what a program prints, node names included,
and the class and line of its error. Each program follows from its seed and number alone; the rows
that it is made of stand in tables: `expressions.py`, `statements.py`, `scenes.py`; with
`--aliasing` in `aliasing.py`. A new row needs no other change but a new recording. `by_hand.txt`
holds programs that somebody thought of, and `edges.txt` those in which gradcli was once silently
wrong, parted by lines `# ---`.

`recorded.jsonl` holds programs with PyTorch's outcomes, so that the test suite needs no torch: a
short one around every row, long ones, and those by hand. `known_misfits.txt` names those that
gradcli does not match yet; it may only shrink.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.differential.comparing import Outcome

FOLDER = Path(__file__).parent
BY_HAND = (FOLDER / "by_hand.txt", FOLDER / "edges.txt")
RECORDED = FOLDER / "recorded.jsonl"
KNOWN_MISFITS = FOLDER / "known_misfits.txt"

ROW_SEEDS = (1,)
"""For each of these, a program around every row is recorded."""

ALIASING_PROGRAMS = (2, range(30, 110))
"""The programs of `aliasing.py` that are recorded: a seed and their numbers."""

LONG_PROGRAMS = 250
"""How many longer programs are recorded."""


def recorded_programs() -> Iterator[str]:
    """The programs to record: one around each row, longer ones, and those by hand."""
    from tests.differential.generator import FAMILIES, one_of, program

    for table in FAMILIES.values():
        for row in dict.fromkeys(table):
            for seed in ROW_SEEDS:
                yield one_of(row, seed, 0)
    for number in range(LONG_PROGRAMS):
        yield program(0, number)
    yield from later_programs()


def later_programs() -> Iterator[str]:
    """Those that stand behind the others, so that they can be added without a new recording."""
    from tests.differential import aliasing

    seed, numbers = ALIASING_PROGRAMS
    yield from programs_by_hand()
    for number in numbers:
        yield aliasing.program(seed, number)


def programs_by_hand() -> Iterator[str]:
    """The programs that somebody thought of."""
    from tests.differential.generator import IMPORTS

    for path in BY_HAND:
        for text in path.read_text(encoding="utf-8").split("# ---\n"):
            yield "\n".join([*IMPORTS, text])


def write_recorded(programs: list[tuple[str, Outcome]]) -> None:
    """Write `recorded.jsonl`: a line per program."""
    lines = [
        json.dumps({"program": text, "stdout": outcome.stdout, "error": outcome.error})
        for text, outcome in programs
    ]
    RECORDED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_recorded() -> list[tuple[str, Outcome]]:
    """The recorded programs and PyTorch's outcomes."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [(entry["program"], Outcome(entry["stdout"], entry["error"])) for entry in found]
