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

CRASH = "PyTorch crashed"
"""The error of a program that ended PyTorch's process."""

_NUMBER = re.compile(r"[+-]?\d+\.\d*(?:e[+-]\d+)?|[+-]?\d+(?:e[+-]\d+)?")


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
        self.python = python
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, str(ORACLE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def outcome(self, program: str) -> Outcome:
        """How the program runs there."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(program)}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.close()
            self.process = self._started()
            return Outcome("", CRASH)
        return of_record(json.loads(answer))

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
    """How two outcomes compare.

    `same`; `rounding`, where numbers differ by one in the last printed digit, or by what rounding
    the larger numbers of the same program leaves where they cancel; else `printed`, `error`, or
    `broken` where gradcli itself failed, and `crash` where PyTorch's process did.
    """
    if there.error == CRASH:
        return "crash"
    if here == there:
        return "same"
    if here.error is not None and here.error.startswith("gradcli broke"):
        return "broken"
    if here.error != there.error:
        return "error"
    return "rounding" if _only_rounding(here.stdout, there.stdout) else "printed"


_CANCELLATION = Decimal("2e-6")
"""What is left of two equal float32 numbers after a few roundings, relative to them."""

_HALF = Decimal("4e-3")
"""The same for half precision, which PyTorch rounds once where gradcli may round twice."""


def _only_rounding(here: str, there: str) -> bool:
    if "".join(_NUMBER.sub("", here).split()) != "".join(_NUMBER.sub("", there).split()):
        return False
    mine, theirs = _NUMBER.findall(here), _NUMBER.findall(there)
    if len(mine) != len(theirs):
        return False
    relative = _HALF if "float16" in there else _CANCELLATION
    noise = relative * max(Decimal(1), *(abs(Decimal(number)) for number in theirs))
    return all(
        first == second or ("." in first and "." in second and _close(first, second, noise))
        for first, second in zip(mine, theirs, strict=True)
    )


def _close(mine: str, theirs: str, noise: Decimal) -> bool:
    """Whether two numbers differ by noise, or by one in the last digit that both have."""
    first, second = Decimal(mine), Decimal(theirs)
    ends = [int(number.as_tuple().exponent) for number in (first, second)]
    # A number without digits behind its point is exact: the other's digits count.
    last = min(ends) if mine.endswith(".") or theirs.endswith(".") else max(ends)
    return abs(first - second) <= max(noise, Decimal(1).scaleb(last))
