"""Terminals in tests: what a program writes to a pseudo-terminal of a size, what stands there then,
and recordings of it.

A recording (`tests/terminal_recordings/NAME.cast`) is what the real tqdm wrote under CPython to a
terminal, as asciicast v2: a line of JSON with the size, and one for each piece of output. Players
of that format show it. They are made anew by

    python -m tests.terminal PYTHON

with the path of a Python that has tqdm.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import time
from pathlib import Path

from tests.machine import PATIENCE

RECORDINGS = Path(__file__).with_name("terminal_recordings")

SIZES = (60, 80, 120)

_PIECE = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[[\d;]*m|[\r\n\b]|[^\x1b\r\n\b]+")


def on_terminal(
    command: list[str], typed: bytes = b"", columns: int = 80
) -> tuple[list[tuple[float, str]], int]:
    """What a terminal of so many columns gets from a command and what is typed there: the pieces
    with the seconds at which they came; and the exit code.
    """
    process, terminal = pty.fork()
    if process == 0:
        # The size is there before the program is.
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        os.execve(command[0], command, {**os.environ, "TERM": "xterm-256color"})
    if typed:
        os.write(terminal, typed)
    pieces: list[tuple[float, str]] = []
    rest = b""
    began = time.monotonic()
    while time.monotonic() < began + PATIENCE:
        try:
            read = os.read(terminal, 65536)
        except OSError:
            break
        if not read:
            break
        rest += read
        whole = rest.decode(errors="ignore")  # a character may come in two parts
        pieces.append((time.monotonic() - began, whole))
        rest = rest[len(whole.encode()) :]
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return pieces, os.waitstatus_to_exitcode(status)


class Screen:
    """What stands on a terminal of so many columns that never scrolls.

    Attributes:
        lines: the lines from the top.
        states: the lines after each piece of text that was written, each state once.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines = [""]
        self.states: list[tuple[str, ...]] = []
        self._row = self._column = 0

    def write(self, text: str) -> None:
        """Write a text that has no sequences but colours, erasing and moving within its lines."""
        at = 0
        while at < len(text):
            match = _PIECE.match(text, at)
            assert match is not None, repr(text[at : at + 20])
            at = match.end()
            self._do(match)

    def _do(self, match: re.Match[str]) -> None:
        piece, kind, count = match[0], match[2], int(match[1] or 1)
        if piece == "\r":
            self._column = 0
        elif piece == "\n":
            self._row += 1
            self.lines += [""] * (self._row + 1 - len(self.lines))
        elif piece == "\b":
            self._column = max(self._column - 1, 0)
        elif kind == "A":
            self._row = max(self._row - count, 0)
        elif kind == "K":
            self.lines[self._row] = self.lines[self._row][: self._column]
        elif kind is None and piece[0] != "\x1b":
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + piece + line[self._column + len(piece) :]
            self._column += len(piece)
            assert self._column <= self.columns, f"a line of {self._column} columns: {piece!r}"
            state = tuple("\n".join(each.rstrip() for each in self.lines).rstrip().split("\n"))
            if state not in self.states[-1:]:
                self.states.append(state)
        else:
            assert piece.endswith("m"), repr(piece)


def states_of(text: str, columns: int) -> list[tuple[str, ...]]:
    """What stood on a terminal, one after the other, without the times and rates of bars, which
    differ from run to run.
    """
    screen = Screen(columns)
    screen.write(text)
    masked = [tuple(map(_without_times, state)) for state in screen.states]
    return [each for at, each in enumerate(masked) if at == 0 or each != masked[at - 1]]


def _without_times(line: str) -> str:
    """A line of a bar with stars for its clock, its rate and the time left."""
    rate = re.compile(r"\[[\d:]+<[\d:?]+, +[\d.?]+(?:it/s|s/it)")
    return rate.sub(lambda match: "[" + "*" * 20, line)


def recorded(path: Path) -> tuple[str, int]:
    """What a recording has, and the columns of its terminal."""
    head, *events = path.read_text("utf-8").splitlines()
    return "".join(json.loads(each)[2] for each in events), json.loads(head)["width"]


def main() -> None:
    """Make the recordings of the programs beside them."""
    for program in RECORDINGS.glob("*.py"):
        for columns in SIZES:
            pieces, code = on_terminal([sys.argv[1], str(program)], columns=columns)
            assert code == 0
            lines = [{"version": 2, "width": columns, "height": 24, "title": program.name}]
            events = [[round(seconds, 3), "o", text] for seconds, text in pieces]
            written = [json.dumps(each, ensure_ascii=False) for each in [*lines, *events]]
            path = RECORDINGS / f"{program.stem}-{columns}.cast"
            path.write_text("\n".join(written) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
