"""Runs a program under gradcli and under PyTorch, and says how the outcomes differ."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.exactness import difference, work_of
from tests.running import OutOfTime, run, time_limit

ORACLE = Path(__file__).parent.parent / "conformance" / "oracle.py"

SECONDS = 20
"""The longest that one program may run."""

CRASH = "PyTorch crashed"
"""The error of a program that ended PyTorch's process."""


class Outcome(NamedTuple):
    """What a program printed, addresses masked, and the class and line of its error, if any."""

    stdout: str
    error: str | None

    def text(self) -> str:
        """Both, as a reader sees them."""
        return self.stdout + (f"!! {self.error}\n" if self.error else "")


class Torch:
    """PyTorch in a process of its own, asked one program after the other."""

    def __init__(self, python: str, *words: str) -> None:
        self.command = [python, str(ORACLE), *words]
        self.process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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


def category(program: str, here: Outcome, there: Outcome) -> str:
    """How two outcomes of a program compare.

    `same`; `rounding`, where numbers differ as the contract of exactness lets them; else `printed`,
    `error`, or `broken` where gradcli itself failed, and `crash` where PyTorch's process did.
    """
    if there.error == CRASH:
        return "crash"
    if here == there:
        return "same"
    if here.error is not None and here.error.startswith("gradcli broke"):
        return "broken"
    if here.error != there.error:
        return "error"
    found = difference(here.stdout, there.stdout, lambda: work_of(program))
    return "rounding" if found is None else "printed"
