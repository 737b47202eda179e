"""Runs inputs one after the other and says how each was answered: a process of its own.

    python -m tests.fuzz.worker SEED FIRST END

Before an input runs its number and kind are written as JSON on one line; afterwards these, the exit
code, the seconds that it took, and what is wrong with the answer, null for nothing.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import IO, NamedTuple

from gradcli.errors import CODES, GradcliError
from gradcli.language.objects import exceptions
from tests.fuzz.inputs import TIMEOUT, Input, input_of
from tests.running import Finished, invoke

_EXIT_CODES = {0, 2} | {code.exit_code for code in CODES.values()} - {70}

_HOST = re.compile(
    r"gradcli(\.[a-z_]+){2}|(site|dist)-packages|/gradcli/[a-z]+/|0x[0-9a-f]{9,}"
    r"|numpy\._?core|<class 'numpy\.(_|core|lib|ma)"
)
"""What no program can write and no text may show: the modules, paths and addresses of the host."""

AFTERWARDS = 2.0
"""Seconds that an input may take beyond its own limit."""

_MOST_MEMORY = 2_500_000
"""Kilobytes that the process may ever have had in use."""


_unexpected: list[str] = []
"""What became E209 in a run, whether the program caught it or not."""


def note_unexpected() -> None:
    """Have what becomes E209 written down from now on."""
    make = exceptions.unexpected

    def noted(error: Exception) -> GradcliError:
        _unexpected.append(f"E209: {''.join(traceback.format_exception(error))[-3000:]}")
        return make(error)

    exceptions.unexpected = noted


class Answer(NamedTuple):
    """How an input was answered.

    Attributes:
        code: the exit code; None where an exception left the run.
        seconds: that it took.
        wrong: what is wrong with the answer, None if nothing is.
    """

    code: int | None
    seconds: float
    wrong: str | None


def answer(given: Input) -> Answer:
    """Run an input in this process, in the current folder, which is emptied first."""
    for path in Path().iterdir():
        if path.is_file():
            path.unlink()
    for name, content in given.files.items():
        Path(name).write_bytes(content)
    _unexpected.clear()
    began, busy = time.monotonic(), time.process_time()
    try:
        finished = invoke(*given.words, stdin=given.stdin)
    except BaseException:  # nothing may leave a run, not even an exit
        return Answer(None, time.monotonic() - began, f"exception: {traceback.format_exc()}")
    seconds = time.monotonic() - began
    wrong = _problem(finished, "exit" in str(given)) or "".join(_unexpected[:1]) or None
    # On a machine that others use too an input waits: what it may take is the processor's time.
    if time.process_time() - busy > TIMEOUT + AFTERWARDS:
        wrong = wrong or f"late: {seconds:.1f} seconds"
    return Answer(finished.code, seconds, wrong)


def _problem(finished: Finished, may_exit: bool) -> str | None:
    """The same of what came out of a run, whose program may leave with an exit code of its own."""
    shown = finished.stderr[-3000:]
    if "Traceback (most recent call last)" in finished.stderr or "E901" in finished.stderr:
        return f"internal error: {shown}"
    if finished.code not in _EXIT_CODES and not may_exit:
        return f"exit code {finished.code}: {shown}"
    if (
        finished.code >= 3
        and not may_exit
        and not re.search(r"\bE\d{3}\b", finished.stderr + finished.stdout)
    ):
        return f"exit code {finished.code} without a coded error: {shown}"
    host = _HOST.search(finished.stdout + finished.stderr)
    if host is not None:
        return f"the host shows: {host.group()}: {finished.stdout[-1000:]}{shown}"
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if used > _MOST_MEMORY:
        return f"memory: {used} KB were in use"
    return None


def work(seed: int, first: int, end: int, report: IO[str]) -> None:
    """Run the inputs of a seed from one number up to another."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number in range(first, end):
            given = input_of(seed, number)
            print(json.dumps([number, given.kind]), file=report, flush=True)
            found = answer(given)
            print(json.dumps([number, given.kind, *found]), file=report, flush=True)
            if found.wrong is not None and found.wrong.startswith("memory"):
                return  # a fresh process has a fresh peak
        os.chdir("/")


if __name__ == "__main__":
    seed, first, end = map(int, sys.argv[1:])
    os.environ["GRADCLI_DEBUG"] = "1"
    warnings.simplefilter("ignore")  # as `main` does
    sys.unraisablehook = lambda _: None  # likewise
    note_unexpected()
    # What is written by C code must not get between the reports.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    work(seed, first, end, channel)
