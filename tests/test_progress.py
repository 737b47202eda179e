"""The line that says how far a run has come: on a terminal alone, and gone when the run is over."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.cli.main import run
from gradcli.running.process import progress
from tests.machine import PATIENCE

LINE, GONE = "\r\x1b[K", "\r\x1b[K"

LOOP = "import time\nend = time.time() + {}\nwhile time.time() < end: time.sleep(0.001)\n"


class _Screen:
    """A stream that is a terminal, or is none, and keeps what it got."""

    encoding = "utf-8"

    def __init__(self, terminal: bool, shared: list[str] | None = None) -> None:
        self.terminal = terminal
        self.parts = [] if shared is None else shared

    def isatty(self) -> bool:
        return self.terminal

    def fileno(self) -> int:
        raise OSError

    def write(self, text: str) -> None:
        self.parts.append(text)

    def flush(self) -> None:
        pass


@pytest.fixture
def screens(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool, bool], tuple[_Screen, _Screen]]:
    """Standard output and error, terminals or not, and a line that comes soon."""
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_BETWEEN", 0.02)

    def made(out: bool, err: bool) -> tuple[_Screen, _Screen]:
        shared: list[str] = []
        both = _Screen(out, shared if out else None), _Screen(err, shared)
        monkeypatch.setattr(sys, "stdout", both[0])
        monkeypatch.setattr(sys, "stderr", both[1])
        return both

    return made


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["-e", LOOP.format(0.4)], "program:3  "),
        (["plot", LOOP.format(0.1) + "y = x * 1", "x=0:1:6", "-o", "{}"], "of 6 places"),
        (["check", LOOP.format(0.05) + "y = (x * x).sum()", "x=[1,2,3]"], " runs"),
    ],
)
def test_a_long_run_says_how_far_it_is(
    command: list[str],
    said: str,
    screens: Callable[[bool, bool], tuple[_Screen, _Screen]],
    tmp_path: os.PathLike[str],
) -> None:
    _, err = screens(True, True)
    assert run([each.replace("{}", f"{tmp_path}/p.svg") for each in command]) == 0
    drawn = [part for part in err.parts if part.startswith(LINE) and len(part) > len(LINE)]
    assert drawn
    assert any(said in part for part in drawn)
    last = max(number for number, part in enumerate(err.parts) if part in drawn)
    assert GONE in err.parts[last + 1 :]
    assert err.parts.count(GONE) <= len(drawn)


def test_a_sweep_says_its_rate_and_the_time_left(
    screens: Callable[[bool, bool], tuple[_Screen, _Screen]], tmp_path: Path
) -> None:
    _, err = screens(False, True)
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"a": 1}\n' * 30)
    assert run([LOOP.format(0.02) + "y = a * 2", "--inputs", str(cases)]) == 0
    drawn = [part.removeprefix(LINE) for part in err.parts if len(part) > len(LINE)]
    assert drawn
    rate = r"\d+ records, \d+ a second(, 0:\d\d left)?"
    assert all(re.fullmatch(rate, each) for each in drawn)
    assert drawn[-1].endswith(" left")
    assert err.parts[-1] == GONE


@pytest.mark.parametrize("quiet", [False, True])
def test_in_a_pipe_and_when_quiet_nothing_is_said(
    quiet: bool, screens: Callable[[bool, bool], tuple[_Screen, _Screen]]
) -> None:
    _, err = screens(False, quiet)
    assert run(["-e", LOOP.format(0.2), *(["-q"] if quiet else [])]) == 0
    assert "".join(err.parts) == ""


def test_output_and_the_line_do_not_mix(
    screens: Callable[[bool, bool], tuple[_Screen, _Screen]],
) -> None:
    _, err = screens(True, True)
    text = LOOP.format(0.2)
    assert run(["-e", f"{text}print('a')\n{text}print('b', end='')\n{text}print('c')"]) == 0
    shown: list[str] = []
    for part in err.parts:
        if part.startswith(LINE):
            assert not shown or shown[-1].endswith("\n")  # no half line is ever covered
        else:
            shown.append(part)
    assert "".join(shown) == "a\nbc\n"


def test_ctrl_c_says_where_it_was() -> None:
    process, terminal = pty.fork()
    if process == 0:
        words = ["-c", f"import sys; sys.path.insert(0, {os.getcwd()!r})\n{_CHILD}"]
        os.execv(sys.executable, [sys.executable, *words])
    seen = b""
    end = time.monotonic() + PATIENCE
    while b"rounds and calls" not in seen:
        assert time.monotonic() < end
        seen += os.read(terminal, 4096)
    os.kill(process, signal.SIGINT)
    while True:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130
    assert re.search(rb"\r\x1b\[Kinterrupted at program:3  [\d,]+ rounds and calls\r\n$", seen)


_CHILD = f"""
from gradcli.running.process import progress
progress._PATIENCE = 0.05
from gradcli.cli.main import main
sys.argv[1:] = ["-e", {LOOP.format(60)!r}]
main()
"""


def test_a_run_without_a_terminal_starts_no_thread() -> None:
    program = (
        "import sys, threading\nfrom gradcli.cli.main import run\n"
        "run(['-e', 'x = 1', '-q'])\nassert 'gradcli.running.process.progress' not in sys.modules\n"
        "assert threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_a_loop_over_a_range_says_its_share_and_the_time_left(
    screens: Callable[[bool, bool], tuple[_Screen, _Screen]],
) -> None:
    _, err = screens(True, True)
    program = (
        "import time\nfor step in range(40):\n    time.sleep(0.01)\n    for k in range(3): pass"
    )
    assert run(["-e", program]) == 0
    drawn = "".join(err.parts)
    assert re.search(r"program:\d  \d+% of 40 rounds, \d+ a second, 0:0\d left", drawn)
