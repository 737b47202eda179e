"""Watches a worker: an input that takes too long or ends the process is a failure too."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.inputs import input_of

LONGEST = 60.0
"""Seconds without an answer that are a hang, on a busy machine too: an input's own limit is 4."""

STARTING = 60.0
"""Seconds that a worker may take to start."""

WORKER = ["-m", "tests.fuzz.worker"]
"""What Python runs as a worker."""


class Failure:
    """An input that was answered badly; `what` says how."""

    __slots__ = ("number", "seed", "what")

    def __init__(self, seed: int, number: int, what: str) -> None:
        self.seed = seed
        self.number = number
        self.what = what

    def __str__(self) -> str:
        return f"--- {self.seed}:{self.number} {input_of(self.seed, self.number)}\n{self.what}\n"


class Outcome:
    """How many inputs of each kind were run, and those that failed.

    Attributes:
        codes: how often each exit code came, by kind.
        slowest: the seconds of the slowest of each kind, and its number.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.codes: defaultdict[str, Counter[int | None]] = defaultdict(Counter)
        self.slowest: dict[str, tuple[float, int]] = {}
        self.failures: list[Failure] = []

    def add(self, number: int, kind: str, code: int | None, seconds: float) -> None:
        """Count an input that was run."""
        self.counts[kind] += 1
        self.codes[kind][code] += 1
        self.slowest[kind] = max(self.slowest.get(kind, (0.0, 0)), (seconds, number))

    def table(self) -> str:
        """A line for each kind: inputs, exit codes, the slowest."""
        lines = []
        for kind, count in sorted(self.counts.items()):
            seconds, number = self.slowest[kind]
            codes = ", ".join(
                f"{code}: {times:,}" for code, times in self.codes[kind].most_common()
            )
            lines.append(f"{count:9,}  {kind:18}  {seconds:4.1f} s ({number})  {codes}")
        return "\n".join(lines)


def fuzz(
    seed: int,
    first: int,
    count: int,
    seconds: float | None,
    show: Callable[[Failure], object] = lambda failure: None,
) -> Outcome:
    """Run inputs until there are enough or the time is over.

    Args:
        seed: what the inputs follow from.
        first: the number of the first input.
        count: how many.
        seconds: for how long, None for no limit.
        show: receives each failure as it is found.
    """
    outcome = Outcome()
    end = None if seconds is None else time.monotonic() + seconds
    number = first
    while number < first + count and (end is None or time.monotonic() < end):
        number = _watch(seed, number, first + count, end, outcome, show)
    return outcome


def _watch(
    seed: int,
    first: int,
    last: int,
    end: float | None,
    outcome: Outcome,
    show: Callable[[Failure], object],
) -> int:
    """Run one worker for as long as it goes well; gives the number to go on with."""
    number = first - 1
    root = Path(__file__).parents[2]
    words = [sys.executable, *WORKER, str(seed), str(first), str(last)]
    worker = subprocess.Popen(
        words,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert worker.stdout is not None
    assert worker.stderr is not None

    def failed(what: str) -> None:
        failure = Failure(seed, number, what)
        outcome.failures.append(failure)
        show(failure)

    selector = selectors.DefaultSelector()
    selector.register(worker.stdout, selectors.EVENT_READ)
    pending = b""
    try:
        while end is None or time.monotonic() < end:
            if not selector.select(LONGEST + (STARTING if number < first else 0)):
                failed(f"hang: no answer after {LONGEST:g} seconds")
                return number + 1
            data = os.read(worker.stdout.fileno(), 1 << 16)
            if not data:
                if worker.wait() != 0:
                    worker.stderr.flush()
                    said = worker.stderr.read().decode(errors="replace")[-3000:]
                    failed(f"the process ended with {worker.returncode}: {said}")
                return number + 1
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                number, kind, *answer = json.loads(line)
                if answer:
                    code, seconds, wrong = answer
                    outcome.add(number, kind, code, seconds)
                    if wrong is not None:
                        failed(wrong)
        return last
    finally:
        worker.kill()
        worker.communicate()
        selector.close()
