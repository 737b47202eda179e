"""`gradcli run --watch`: a file runs anew when it changes, and its output's changes are shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from gradcli.cli.documents.batch import changes
from gradcli.show.style import PLAIN, Style
from tests.command_line import ROOT
from tests.machine import PATIENCE
from tests.running import invoke


class _Watcher:
    """A `gradcli run --watch` with its lines as they come, of both streams."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradcli", "run", "--watch", path.name],
            cwd=path.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: Queue[str] = Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.lines.put(line.rstrip("\n"))

    def until(self, last: str) -> list[str]:
        """The lines up to one that begins so."""
        found: list[str] = []
        while not found or not found[-1].startswith(last):
            try:
                found.append(self.lines.get(timeout=PATIENCE))
            except Empty:
                raise AssertionError(f"no {last!r} behind {found}") from None
        return found


@pytest.fixture
def program(tmp_path: Path) -> Iterator[tuple[Path, _Watcher]]:
    path = tmp_path / "train.py"
    path.write_text("from step import rate\nprint('a')\nprint(rate)\nprint('z')\n")
    (tmp_path / "step.py").write_text("rate = 1\n")
    watcher = _Watcher(path)
    yield path, watcher
    watcher.process.kill()
    watcher.process.wait()
    watcher.reader.join()


def _replace(path: Path, text: str) -> None:
    """Write a file as editors do."""
    part = path.with_suffix(".tmp")
    part.write_text(text)
    part.replace(path)


def test_what_changes_is_shown(program: tuple[Path, _Watcher]) -> None:
    path, watcher = program
    assert watcher.until("z") == ["a", "1", "z"]
    _replace(path.with_name("step.py"), "rate = 25\n")
    changed = ["note: train.py or a file beside it changed"]
    assert watcher.until("  z") == [*changed, "  a", "- 1", "+ 25", "  z"]
    path.write_text("print('a')\nprint(25)\nprint('z') \n")
    assert watcher.until("note: the output") == [*changed, "note: the output is the same"]
    path.write_text("print('a')\nprint(1 / 0)\n")
    lines = watcher.until("- z")
    assert any("ZeroDivisionError" in line for line in lines)
    path.unlink()
    _replace(path, "print('new')\n")
    assert watcher.until("+ new")[-2:] == ["- a", "+ new"]
    watcher.process.send_signal(signal.SIGINT)
    assert watcher.process.wait(PATIENCE) == 130


@pytest.mark.parametrize("words", [["a.py", "b.py"], ["-"], ["a.py", "--inputs", "x.jsonl"]])
def test_one_file_can_be_watched(words: list[str]) -> None:
    finished = invoke("run", "--watch", *words)
    assert (finished.code, finished.stdout) == (2, "")
    assert "--watch takes one file" in finished.stderr


CHANGES = {
    ("a\nb\n", "a\nb\n"): "",
    ("", "a\n"): "+ a\n",
    ("a\n", ""): "- a\n",
    ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n"): (
        "…\n  3\n  4\n- 5\n+ x\n  6\n  7\n…\n"
    ),
    ("a\n" + "\n".join("bcdefgh") + "\ni", "A\n" + "\n".join("bcdefgh") + "\nI"): (
        "- a\n+ A\n  b\n  c\n…\n  g\n  h\n- i\n+ I\n"
    ),
    ("\x1b[2J\n", "x\n"): "- \\x1b[2J\n+ x\n",
}


@pytest.mark.parametrize("pair", CHANGES, ids=range(len(CHANGES)))
def test_changes_of_outputs(pair: tuple[str, str]) -> None:
    assert changes(*pair, PLAIN) == CHANGES[pair]


def test_changes_in_colour() -> None:
    assert changes("a", "b", Style(color=True)) == "\x1b[1;31m- a\x1b[0m\n\x1b[32m+ b\x1b[0m\n"
