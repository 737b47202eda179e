"""Runs inputs one after the other and says how each was answered: a process of its own.

    python -m tests.fuzz.worker SEED FIRST END

Before an input runs its number is written, afterwards what is wrong with the answer, if anything,
as JSON on one line.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import IO

from gradcli.codes import CODES
from gradcli.errors import GradcliError
from gradcli.language.objects import exceptions
from tests.fuzz.inputs import Input, input_of
from tests.running import Finished, invoke

_EXIT_CODES = {0, 2} | {code.exit_code for code in CODES.values()} - {70}

_HOST = re.compile(
    r"gradcli(\.[a-z_]+){2}|(site|dist)-packages|/gradcli/[a-z]+/|0x[0-9a-f]{9,}"
    r"|numpy\._?core|<class 'numpy\.(_|core|lib|ma)"
)
"""What no program can write and no text may show: the modules, paths and addresses of the host."""

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


def problem(given: Input) -> str | None:
    """What is wrong with the answer to an input, None if nothing is."""
    for path in Path().iterdir():
        if path.is_file():
            path.unlink()
    for name, content in given.files.items():
        Path(name).write_bytes(content)
    _unexpected.clear()
    try:
        finished = invoke(*given.words, stdin=given.stdin)
    except BaseException:  # nothing may leave a run, not even an exit
        return f"exception: {traceback.format_exc()}"
    return _problem(finished, b"exit(" in given.stdin) or "".join(_unexpected[:1]) or None


def _problem(finished: Finished, may_exit: bool) -> str | None:
    """The same of what came out of a run, whose program may leave with an exit code of its own."""
    shown = finished.stderr[-3000:]
    if "Traceback (most recent call last)" in finished.stderr or "E901" in finished.stderr:
        return f"internal error: {shown}"
    if finished.code not in _EXIT_CODES:
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
            wrong = problem(given)
            if wrong is not None:
                print(json.dumps([number, given.kind, wrong]), file=report, flush=True)
                if wrong.startswith("memory"):
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
