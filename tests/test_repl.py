"""The REPL: entries run in one session, and the editor in a real terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradcli.cli.options import Options
from gradcli.cli.repl import history_path, plain_reader, repl, run_entry
from gradcli.cli.running import Run
from gradcli.cli.terminal import Terminal
from tests.command_line import ROOT


@pytest.fixture
def run() -> Run:
    return Run(Terminal("never"), Options(), "graph")


def entered(run: Run, capsys: pytest.CaptureFixture[str], text: str) -> str:
    """What an entry shows on both streams."""
    run_entry(run, text, "entry 1")
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_values_are_echoed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert entered(run, capsys, "x = tensor([1., 2.], requires_grad=True)") == ""
    assert entered(run, capsys, "x") == "tensor([1., 2.], requires_grad=True)\n"
    assert entered(run, capsys, "'text'") == "'text'\n"
    assert entered(run, capsys, "None") == ""
    assert entered(run, capsys, "print('p')") == "p\n"
    assert entered(run, capsys, "(x * x).sum()") == "tensor(5., grad_fn=<SumBackward0>)\n"
    assert entered(run, capsys, "_.backward()") == ""
    assert entered(run, capsys, "x.grad; 1 + 1") == "tensor([2., 4.])\n2\n"
    assert entered(run, capsys, "_ * 2") == "4\n"


def test_errors_leave_values_intact(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    entered(run, capsys, "x = 1\ny = [1]")
    shown = entered(run, capsys, "x = 2\nx = undefined\nx = 3")
    assert "error[E101]" in shown
    assert " --> entry 1:2:5" in shown
    assert "error[E001]" in entered(run, capsys, "x = 9\nx = = 4")
    assert entered(run, capsys, "x, y") == "(2, [1])\n"
    entered(run, capsys, "with no_grad():\n    1 / 0")
    assert entered(run, capsys, "is_grad_enabled()") == "True\n"


def test_plain_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = "x = (1 +\n2)\n\ndef f():\n    return 1\n\nf()"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    read = plain_reader()
    assert [read() for _ in range(4)] == ["x = (1 +\n2)", "", "def f():\n    return 1\n", "f()"]
    with pytest.raises(EOFError):
        read()


def test_without_an_editor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdin", io.StringIO("1 + 1\nexit()\n2 + 2\n"))
    assert repl(Terminal("never")) == 0
    captured = capsys.readouterr()
    assert captured.out == "2\n"
    assert ">>> " in captured.err


def test_history_lies_in_the_folder_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert history_path() == "/state/gradcli/history"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert history_path() == "/home/somebody/.local/state/gradcli/history"


class Screen:
    """A REPL in a pseudo-terminal."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.seen = ""

    def read_until(self, text: str, seconds: float = 20) -> str:
        """What the terminal got until a text appeared."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"no {text!r} in {self.seen!r}"
            if select.select([self.descriptor], [], [], 0.1)[0]:
                new = os.read(self.descriptor, 65536).decode("utf-8", "replace")
                if "\x1b[6n" in new:  # the editor asks where the cursor is
                    os.write(self.descriptor, b"\x1b[1;1R")
                self.seen += new
        seen, _, self.seen = self.seen.partition(text)
        return seen

    def type(self, keys: str) -> None:
        os.write(self.descriptor, keys.encode())


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    process, descriptor = pty.fork()
    if process == 0:
        os.environ.update(
            PYTHONPATH=str(ROOT), XDG_STATE_HOME=str(tmp_path), TERM="xterm", NO_COLOR="1"
        )
        os.execv(sys.executable, [sys.executable, "-m", "gradcli"])
    try:
        yield Screen(descriptor)
    finally:
        os.close(descriptor)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def test_editor(screen: Screen, tmp_path: Path) -> None:
    """An entry of several lines, a loop that is interrupted, and a value that outlives it."""
    screen.read_until(">>>")
    screen.type("def f(t):\r")
    screen.read_until("...")
    screen.type("return t * 21\r\r")
    screen.read_until(">>>")
    screen.type("f(2)\r")
    screen.read_until("42")
    screen.type("i = 0\rwhile True: i += 1; i == 1 and print('spin' + 'ning')\r\r")
    screen.read_until("spinning")
    screen.type("\x03")
    screen.read_until("interrupted")
    screen.type("x = 5 +\x03")
    screen.type("f(3)\r")
    screen.read_until("63")
    screen.type("i > 0\r")
    screen.read_until("True")
    screen.type("\x04")
    history = tmp_path / "gradcli" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+def f(t):\n+    return t * 21" in history.read_text()
