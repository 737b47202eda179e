"""Running the command line, inside the test process or as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradcli.cli.main import run
from tests.machine import PATIENCE

ROOT = Path(__file__).parent.parent


class Shown:
    """What a command line came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


class CommandLine:
    """Runs `gradcli` with words, and what a pipe holds, inside the test process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str, stdin: str | None = None) -> Shown:
        self.capsys.readouterr()
        before = sys.stdin
        if stdin is not None:
            sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        try:
            code = run(list(words))
        finally:
            sys.stdin = before
        captured = self.capsys.readouterr()
        return Shown(code, captured.out, captured.err)


def start(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """A process of `gradcli` with pipes for its streams."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-m", "gradcli", *words], env=environment, **{**streams, **options}
    )


def process(*words: str, stdin: bytes = b"", **options: Any) -> Shown:
    """A process of `gradcli` run to its end."""
    with start(*words, **options) as running:
        out, err = running.communicate(stdin, timeout=PATIENCE)
    return Shown(running.returncode, out.decode(), err.decode())
