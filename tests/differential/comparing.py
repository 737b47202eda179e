"""Runs a program under gradcli and under PyTorch, and says how the outcomes differ."""

from __future__ import annotations

import json
import re
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from tests.running import OutOfTime, run, time_limit

ORACLE = Path(__file__).parent.parent / "conformance" / "oracle.py"

SECONDS = 20
"""The longest that one program may run."""

_NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]\d+)?|-?\d+(?:e[+-]\d+)?")


class Outcome(NamedTuple):
    """What a program printed, addresses masked, and the class and line of its error, if any."""

    stdout: str
    error: str | None

    def text(self) -> str:
        """Both, as a reader sees them."""
        return self.stdout + (f"!! {self.error}\n" if self.error else "")


class Torch:
    """PyTorch in a process of its own, asked one program after the other."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, str(ORACLE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def outcome(self, program: str) -> Outcome:
        """How the program runs there."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(program)}\n")
        self.process.stdin.flush()
        return of_record(json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def of_record(record: dict[str, Any]) -> Outcome:
    """An outcome as it was recorded."""
    error = record["error"]
    return Outcome(record["stdout"], f"{error['type']} at line {error['line']}" if error else None)


def outcome_here(program: str) -> Outcome:
    """How the program runs under gradcli; a failure of gradcli's own counts as its error."""
    try:
        with time_limit(SECONDS):
            outcome = run(program)
    except (Exception, OutOfTime) as failure:
        return Outcome("", f"gradcli broke: {type(failure).__name__}: {failure}")
    error = outcome.error
    if error is None:
        return Outcome(outcome.masked, None)
    line = error.span.line if error.span is not None else None
    return Outcome(outcome.masked, f"{error.raises} at line {line}")


def category(here: Outcome, there: Outcome) -> str:
    """How two outcomes compare: `same`, `last digit`, `printed`, `error` or `broken`."""
    if here == there:
        return "same"
    if here.error is not None and here.error.startswith("gradcli broke"):
        return "broken"
    if here.error != there.error:
        return "error"
    return "last digit" if _within_last_digit(here.stdout, there.stdout) else "printed"


def _within_last_digit(here: str, there: str) -> bool:
    """Whether the texts differ only in numbers, and those by one in the last printed digit."""
    if "".join(_NUMBER.sub("", here).split()) != "".join(_NUMBER.sub("", there).split()):
        return False
    numbers = list(zip(_NUMBER.findall(here), _NUMBER.findall(there), strict=True))
    return all(mine == theirs or _adjacent(mine, theirs) for mine, theirs in numbers)


def _adjacent(mine: str, theirs: str) -> bool:
    if "." not in mine or "." not in theirs:
        return False
    first, second = Decimal(mine), Decimal(theirs)
    last_digit = max(first.as_tuple().exponent, second.as_tuple().exponent)
    return abs(first - second) <= Decimal(1).scaleb(int(last_digit))
