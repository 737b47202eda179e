"""Ctrl-C, SIGTERM, closed streams and full disks end a run quietly; nothing is half-written."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gradcli.running.process.interruption import call_again, raising_on_signals
from tests.command_line import start
from tests.machine import PATIENCE
from tests.rows import sampled


def _wait_until_ready(running: subprocess.Popen[bytes]) -> None:
    """Wait until the process has its handlers: before that Python itself is starting."""
    caught = re.compile(r"SigCgt:\s*(\w+)")
    while running.poll() is None:
        found = caught.search(Path(f"/proc/{running.pid}/status").read_text())
        assert found is not None
        if int(found[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


def _attended() -> None:
    """What a shell gives to the programs it starts: a test's own parent may ignore the signal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


WORK = [
    ["-e", "x = torch.randn(500, 500)", "-e", "while True: x = x @ x"],
    ["-e", "for i in range(10**7): print(i)"],
    ["-e", "x = torch.randn(200, 200)", "-e", "while True: save(x, 'x.json')"],
    ["run", "-"],
    ["-e", "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)", "-e", "f(35)"],
]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
@pytest.mark.parametrize("words", sampled(WORK, 2), ids=lambda words: words[-1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_at_any_moment(words: list[str], number: signal.Signals, tmp_path: Path) -> None:
    """Once while modules are imported and once in the middle of the work."""
    random = Random(f"{words}:{number}")
    for earliest, latest in ((0.0, 0.1), (0.2, 0.4)):
        with (
            open(os.devnull, "wb") as nowhere,
            start(*words, cwd=tmp_path, preexec_fn=_attended, stdout=nowhere) as running,
        ):
            _wait_until_ready(running)
            time.sleep(random.uniform(earliest, latest))
            running.send_signal(number)
            assert running.wait(PATIENCE) == 128 + number
            assert running.stderr is not None
            assert running.stderr.read() == b""
    for path in tmp_path.iterdir():
        assert path.name == "x.json", "a temporary file was left"
        assert path.read_text().rstrip().endswith(("}", "]"))


BEGUN = ["-e", "save(ones(1), 'begun.npy')"]
"""A statement that shows from outside that the program has come so far."""


def _wait_until_begun(running: subprocess.Popen[bytes], folder: Path) -> None:
    while running.poll() is None and not (folder / "begun.npy").exists():
        time.sleep(0.001)


def test_what_was_printed_is_kept_when_interrupted(tmp_path: Path) -> None:
    words = ["-e", "print('on')", *BEGUN, "-e", "while True: pass", "--max-steps", str(10**12)]
    with start(*words, cwd=tmp_path, preexec_fn=_attended) as running:
        _wait_until_begun(running, tmp_path)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err) == (130, b"on\n", b"")


LONG_CALL = ["-e", "x = torch.linalg.svd(ones(3000, 3000))"]
"""A call into LAPACK that takes many seconds and does not heed signals."""


def test_a_long_call_is_interrupted(tmp_path: Path) -> None:
    with start(*BEGUN, *LONG_CALL, cwd=tmp_path, preexec_fn=_attended) as running:
        _wait_until_begun(running, tmp_path)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (130, b"")


def test_a_long_call_runs_out_of_time(tmp_path: Path) -> None:
    began = time.monotonic()
    with start(*BEGUN, cwd=tmp_path) as running:
        assert running.wait(PATIENCE) == 0
    started = time.monotonic() - began  # so long it takes to get to a call, on this machine now
    with start(*LONG_CALL, f"--timeout={2 * started + 0.5}") as running:
        _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 5
    assert b"error[E607]" in err
    assert b"program:1:5" in err


def test_kill_loses_no_statement_that_was_done(tmp_path: Path) -> None:
    """What standard input's statements print is on its way before the next one is read."""
    with start("run", "-", cwd=tmp_path) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"print(1)\nsave(ones(2), 'x.npy')\nprint(2)\n\n")
        running.stdin.flush()
        assert [running.stdout.readline(), running.stdout.readline()] == [b"1\n", b"2\n"]
        running.kill()
        assert running.wait(PATIENCE) == -signal.SIGKILL
    assert np.load(tmp_path / "x.npy").tolist() == [1, 1]


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "code", "out"),
    [
        ("print(1)' >&-", 0, ""),
        ("print(1)' 2>&-", 0, "1\n"),
        ("x = (' 2>&-", 3, ""),
        ("print(1)' <&-", 0, "1\n"),
        ("print(1)' <&- >&- 2>&-", 0, ""),
        ("for i in range(10**6): print(i)' | head -n1", 141, "0\n"),
        ("trace(tensor(1., requires_grad=True) * 2)' | true", 141, ""),
        ("print(1)' >/dev/full", 5, ""),
        ("x = tensor(1.) * 2' >/dev/full", 5, ""),
        ("x = (' 2>/dev/full", 3, ""),
    ],
)
def test_streams(shell: str, code: int, out: str) -> None:
    """The exit code is that of gradcli, not of the pipe's end."""
    if "/dev/full" in shell and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    command = f"set -o pipefail; '{sys.executable}' -m gradcli -e '{shell}"
    finished = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    if shell.endswith("true"):  # it may have ended before anything was written
        assert finished.returncode in (code, 0)
    else:
        assert (finished.returncode, finished.stdout) == (code, out)
    assert "Traceback" not in finished.stderr
    assert ("E603" in finished.stderr) == (code == 5)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["info"], ["help", "language"]])
def test_help_on_a_full_disk(words: list[str]) -> None:
    with open("/dev/full", "wb") as full, start(*words, stdout=full) as running:
        _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 5
    assert b"E603" in err


# --- colour ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "environment", "colored"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ([], {"TERM": "dumb"}, False),
        (["--color=never"], {"FORCE_COLOR": "1"}, False),
        (["--color=always"], {"NO_COLOR": "1", "TERM": "dumb"}, True),
        (["--color=auto"], {}, True),
    ],
)
def test_colour_on_a_terminal(
    options: list[str],
    environment: dict[str, str],
    colored: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The option comes first, then NO_COLOR, then FORCE_COLOR, then whether there is a terminal."""
    pty = pytest.importorskip("pty")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    ours, theirs = pty.openpty()
    env = {"TERM": "xterm", **environment}
    with start("e = a * 2", "a=2", *options, stdout=theirs, stdin=theirs, env=env) as running:
        assert running.wait(PATIENCE) == 0
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert ("\x1b[" in shown) is colored
    assert "e = " in re.sub(r"\x1b\[[\d;]*m", "", shown)


def test_an_interruption_in_a_finalizer_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def interrupted() -> None:
        Finalized()
        time.sleep(PATIENCE)

    monkeypatch.setattr(sys, "unraisablehook", call_again)
    with pytest.raises(KeyboardInterrupt), raising_on_signals():
        interrupted()


def test_an_import_ends_before_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is raised in a callback of the import system would be lost."""
    text = "import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n"
    (tmp_path / "interrupted_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    def interrupted() -> None:
        importlib.import_module("interrupted_module")
        time.sleep(PATIENCE)

    with pytest.raises(KeyboardInterrupt), raising_on_signals():
        interrupted()
    assert sys.modules.pop("interrupted_module").whole
