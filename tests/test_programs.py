"""Programs of the language with what they print, by feature.

`tests/programs/FEATURE/CASE.grad` is run as `gradcli run CASE.grad` in its folder; beside it stand

- `CASE.out`: what it prints on standard output, nothing if there is no such file; numbers are
  compared by the contract of exactness (`tests/exactness.py`);
- `CASE.err`: what it prints on standard error, to the character; such a run ends with the exit code
  of the error named there, any other with 0;
- `CASE.args`: further words of the command.

`tests/programs/errors/` has one program for each code, named by it. `python -m tests.test_programs`
writes the outputs anew: read what changed.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from gradcli.errors import CODES
from tests.exactness import difference, work_of
from tests.rows import each_row
from tests.running import Finished, hide, invoke

FOLDER = Path(__file__).parent / "programs"

CASES = sorted(FOLDER.glob("*/*.grad"))

UNREACHABLE = {
    "E507": "it stands in a record's place on standard output: tests/test_records.py",
    "E604": "it depends on the machine: tests/test_devices.py takes CuPy away",
    "E609": "a package has to be taken away: tests/test_platforms.py",
    "E608": "a process has to be ended from outside: tests/test_records.py",
    "E610": "a cluster has to have two versions: tests/test_cluster.py",
    "E209": "a check that is missing: no program is known to reach one",
    "E901": "an error of ours: no program is known to cause one",
}
"""The codes that no program can show, with the reason."""


def _run(case: Path) -> Finished:
    arguments = case.with_suffix(".args")
    words = shlex.split(arguments.read_text(encoding="utf-8")) if arguments.exists() else []
    os.chdir(case.parent)
    return invoke("run", case.name, *words)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _code(stderr: str) -> str | None:
    found = re.search(r"^\w+\[(E\d+)\]", stderr, re.MULTILINE)
    return found[1] if found else None


@each_row("case", CASES, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_program(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.parent)
    hide("scipy", monkeypatch)  # an extra, which everyday programs do without
    finished = _run(case)
    stderr = _read(case.with_suffix(".err"))
    assert finished.stderr == stderr
    recorded = _read(case.with_suffix(".out"))
    assert difference(finished.stdout, recorded, lambda: work_of(_read(case))) is None
    code = _code(stderr)
    assert finished.code == (CODES[code].exit_code if code else 0)


def test_every_code_has_a_program() -> None:
    shown = {case.stem for case in CASES if case.parent.name == "errors"}
    assert set(CODES) - set(UNREACHABLE) - shown == set()


@each_row("case", sorted(FOLDER.glob("errors/E*.err")), ids=lambda path: path.stem)
def test_error_programs_show_their_code(case: Path) -> None:
    assert _code(_read(case)) == case.stem[:4]


if __name__ == "__main__":
    for case in CASES:
        finished = _run(case)
        for suffix, text in ((".out", finished.stdout), (".err", finished.stderr)):
            path = case.with_suffix(suffix)
            if text:
                path.write_text(text, encoding="utf-8")
            else:
                path.unlink(missing_ok=True)
