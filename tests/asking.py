"""`python -m tests.asking [FEATURE/CASE…] [--every N]`: the asking commands on every program that
`run` runs.

Each program of `tests/programs` and `examples` goes through `why` of each leaf and parameter,
`blame`, `explain`, `derive` and `check`, each command in a process of its own, forked from this
one, with limits of time and memory. An answer and a documented refusal are fine. E209, E901 and a
command that takes more than three times the processor time of `run` and five seconds are not: each
is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.running.report import parameters_of
from tests.running import Finished, invoke, run
from tests.test_examples import EXAMPLES
from tests.test_examples import _command as example_command
from tests.test_programs import CASES

QUESTIONS = ("blame", "explain", "derive", "check")

_TIMES, _MORE = 3, 5.0
"""A command may take so many times the processor time of `run`, and so many seconds more."""

_MOST = 40.0
"""The seconds of processor time after which a command is ended."""

_MEMORY = 6 << 30

_DIFFERENCES = 30.0
"""What `check` may take beyond that for its differences."""


class Ended(Record):
    """How a command ended: its outcome, "" where its process was ended, and its processor time."""

    finished: Finished | None
    seconds: float

    @property
    def outcome(self) -> str:
        """An answer, or the reason why there is none."""
        if self.finished is None:
            return "ended"
        codes = re.findall(r"^error\[(E\d+)\]", self.finished.stderr, re.MULTILINE)
        if codes:
            return str(codes[-1])
        return {0: "answer", 1: "answer: 1", 2: "usage"}.get(
            self.finished.code, f"exit {self.finished.code}"
        )


def apart(work: Callable[[], Any], most: float) -> tuple[Any, float]:
    """What work gives in a forked process, None where that is ended; and its processor time."""
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (int(most) + 1, int(most) + 1))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            failed = 1
            try:
                json.dump(work(), answer)
                answer.flush()
                failed = 0
            finally:
                os._exit(failed)
        _, status, usage = os.wait4(child, 0)
        answer.seek(0)
        found = None if status else json.load(answer)
    return found, usage.ru_utime + usage.ru_stime


def command(words: Sequence[str], most: float = _MOST) -> Ended:
    """Run a command in a process of its own."""

    def work() -> tuple[int, str, str]:
        finished = invoke(*words)
        return finished.code, finished.stdout[:10_000], finished.stderr[-10_000:]

    found, seconds = apart(work, most)
    return Ended(None if found is None else Finished(*found), seconds)


def _names(path: Path) -> list[str]:
    """The leaves that require grad and the parameters of a program."""

    def work() -> list[str]:
        session = run(path.read_text("utf-8", errors="replace")).session
        leaves = [
            name
            for name, value in session.values.items()
            if type(value) is Tensor and value.is_leaf and value.requires_grad
        ]
        try:
            return [*leaves, *(name for name, _ in parameters_of(session))]
        except GradcliError:
            return leaves

    return apart(work, _MOST)[0] or []


def _words_of(path: Path) -> list[str]:
    """The words of `run` for a program."""
    if path in EXAMPLES:
        return example_command(path)
    arguments = path.with_suffix(".args")
    more = shlex.split(arguments.read_text("utf-8")) if arguments.exists() else []
    return ["run", path.name, *more]


class Sweep:
    """The commands that ran: how many, how they ended, and those that may not end so."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {}
        self.wrong: list[str] = []
        self.slowest: list[tuple[float, str]] = []
        self.examples: dict[str, list[str]] = {}

    def ask(self, path: Path) -> None:
        """Put a program through every question, if `run` runs it."""
        words = _words_of(path)
        os.chdir(path.parent)
        ran = command(words)
        if ran.finished is None or ran.finished.code:
            return
        arguments = words[2:]
        questions = [[each, path.name, *arguments] for each in QUESTIONS]
        names = _names(path) or ["x"]
        questions += [["why", f"{name}.grad", path.name, *arguments] for name in names]
        for asked in questions:
            self._add(asked, command(asked), ran.seconds, path)

    def _add(self, asked: Sequence[str], ended: Ended, base: float, path: Path) -> None:
        question, outcome = asked[0], ended.outcome
        self.outcomes.setdefault(question, Counter())[outcome] += 1
        line = f"{path.parent.name}: {shlex.join(asked)}"
        self.examples.setdefault(f"{question} {outcome}", []).append(line)
        room = _TIMES * base + _MORE + (_DIFFERENCES if question == "check" else 0)
        told = f"{line}: {ended.seconds:.1f} s where run takes {base:.1f} s"
        self.slowest.append((ended.seconds / (_TIMES * base + _MORE), told))
        if outcome in ("E209", "E901", "ended") or ended.seconds > room or outcome[:4] == "exit":
            said = "" if ended.finished is None else ended.finished.stderr[:1500]
            self.wrong.append(f"{outcome}: {told}\n{said}")
            print(self.wrong[-1], flush=True)

    def table(self) -> str:
        """The outcomes by question."""
        kinds = sorted({kind for counts in self.outcomes.values() for kind in counts})
        rows = [["", "commands", *kinds]]
        for question, counts in sorted(self.outcomes.items()):
            rows.append([question, str(counts.total()), *(str(counts[kind]) for kind in kinds)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


def main() -> int:
    """Ask, and print the table of the answers."""
    parser = argparse.ArgumentParser(prog="python -m tests.asking")
    parser.add_argument("cases", nargs="*", metavar="FEATURE/CASE", help="all when none is named")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th program")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="I")
    parser.add_argument("--list", default=None, metavar="OUTCOME", help="print these, as `E413`")
    arguments = parser.parse_args()
    paths = [*CASES, *EXAMPLES]
    if arguments.cases:
        paths = [each for each in paths if f"{each.parent.name}/{each.stem}" in arguments.cases]
    began = time.time()
    for question in QUESTIONS:  # so that no process has to import what all need
        invoke(question, "y = (x * x).sum()", "x=2")
    invoke("why", "x.grad", "y = (x * x).sum()", "x=2")
    sweep = Sweep()
    for path in paths[arguments.first :: arguments.every]:
        sweep.ask(path)
    print(sweep.table())
    for _, told in sorted(sweep.slowest, reverse=True)[:8]:
        print(told)
    for name, lines in sweep.examples.items():
        if arguments.list and name.endswith(arguments.list):
            print(name, *lines, sep="\n  ")
    print(f"{len(sweep.wrong)} wrong, {time.time() - began:.0f} s")
    return int(bool(sweep.wrong))


if __name__ == "__main__":
    sys.exit(main())
