"""What an error says in a program: its class and `str(error)`, beside PyTorch's and CPython's.

    python -m tests.error_texts --oracle PYTHON             the programs whose texts differ
    python -m tests.error_texts --oracle PYTHON --record    write recorded.jsonl anew

`programs.txt` holds programs that fail, a blank line between two; each runs behind the names of
`tests.recorded.SETUP`, inside a `try` that prints the error. It runs unchanged under PyTorch;
PYTHON is an interpreter that has torch. `recorded.jsonl` holds what it printed there, so that the
tests need no torch. `known_misfits.txt` holds the programs whose texts differ; it may only shrink.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent

from tests.differential.comparing import Outcome
from tests.recorded import SETUP

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "recorded.jsonl"
KNOWN_MISFITS = FOLDER / "known_misfits.txt"


def read_programs(file: Path = FOLDER / "programs.txt") -> list[str]:
    """The programs of a file."""
    text = file.read_text(encoding="utf-8").strip()
    return [program.strip("\n") for program in text.split("\n\n")] if text else []


def whole(program: str) -> str:
    """The program as it runs: what it raises is printed."""
    tried = indent(program, "    ")
    return (
        f"{SETUP}try:\n{tried}\nexcept Exception as error:\n"
        "    print(type(error).__name__)\n    print(error)\n"
    )


def write_recorded(found: list[tuple[str, Outcome]]) -> None:
    """Write `recorded.jsonl`: a line per program."""
    lines = [
        json.dumps({"program": program, "printed": there.stdout}, ensure_ascii=False)
        for program, there in found
    ]
    RECORDED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_recorded() -> dict[str, str]:
    """What each program printed under PyTorch."""
    entries = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    return {entry["program"]: entry["printed"] for entry in entries}
