"""Runs a program anew whenever its file changes, and shows what changed in its output."""

from __future__ import annotations

import time
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import NoReturn

from gradcli.arrays.files.gate import program_stamps
from gradcli.running.process.terminal import Terminal
from gradcli.show.style import Style, escaped

_BETWEEN = 0.2
"""Seconds between two looks at the files."""


class _Recording(Terminal):
    """A terminal that keeps what goes to standard output, and passes it on where it is `live`."""

    def __init__(self, terminal: Terminal, live: bool) -> None:
        for name, value in vars(terminal).items():
            setattr(self, name, value)
        self.live = live
        self.parts: list[str] = []

    def _write(self, text: str) -> None:
        """Keep a text, and print it on the first run."""
        self.parts.append(text)
        if self.live:
            super()._write(text)


def watch(terminal: Terminal, path: str, run: Callable[[Terminal], object]) -> NoReturn:
    """Run a file again and again, until Ctrl-C ends the process.

    The first run prints as it goes; each one after it what came and went in the output since the
    run before. Programs beside the file, which it may import, count as it does.
    """
    before: str | None = None
    while True:
        seen = program_stamps(path)
        recording = _Recording(terminal, before is None)
        run(recording)
        text = "".join(recording.parts)
        if before is not None:
            terminal.write(changes(before, text, terminal.style))
            if before == text:
                terminal.note("the output is the same")
        terminal.flush()
        before = text
        _wait_for_change(path, seen)
        terminal.note(f"{path} or a file beside it changed")


def _wait_for_change(path: str, seen: dict[str, tuple[int, int]]) -> None:
    """Wait until the files are other ones, and are no longer being written."""
    last = seen
    while True:
        time.sleep(_BETWEEN)
        now = program_stamps(path)
        if now != seen and now == last and path in now:
            return
        last = now


_AROUND = 2
"""Lines of what stayed that are shown around what changed."""

_MOST = 2_000
"""Lines of an output that are compared; of a longer one the last."""


def changes(before: str, after: str, style: Style) -> str:
    """The lines that went (`-`) and came (`+`), with those around them; "" where none did."""
    old, new = (text.splitlines()[-_MOST:] for text in (before, after))
    if old == new:
        return ""
    lines: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_AROUND):
        if group[0][1] > 0 or lines:
            lines.append(style.paint("…", "quiet"))
        for tag, first, last, start, end in group:
            if tag == "equal":
                lines += [f"  {escaped(line)}".rstrip() for line in old[first:last]]
                continue
            lines += [style.paint(f"- {escaped(line)}", "error") for line in old[first:last]]
            lines += [style.paint(f"+ {escaped(line)}", "series2") for line in new[start:end]]
        if group[-1][2] < len(old):
            lines.append(style.paint("…", "quiet"))
    return "\n".join(line for n, line in enumerate(lines) if n == 0 or line != lines[n - 1]) + "\n"
