"""The history of entries: a file of the user's, one entry on each line as a JSON string.

Several sessions append to it at once; each entry is written in one go, so that none breaks another.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable

from prompt_toolkit.history import History

_MOST_BYTES = 4_000_000
"""How much of the end of a long history is read."""


def history_path() -> str:
    """The history's file: in the user's folder of states, or where `GRADCLI_HISTORY` says; "" for
    none.
    """
    chosen = os.environ.get("GRADCLI_HISTORY")
    if chosen is not None:
        return os.path.expanduser(chosen)
    folder = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, "gradcli", "history")


class EntryHistory(History):
    """The entries of earlier sessions and of this one.

    Args:
        path: the file, "" to remember this session only.
        note: says that the file cannot be used; called once at most.
    """

    def __init__(self, path: str, note: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._note = note
        self._last = ""
        if path:
            try:
                self._prepare()
            except OSError as error:
                self._give_up(error)

    def load_history_strings(self) -> Iterable[str]:
        """The entries, the newest first."""
        if not self._path:
            return []
        try:
            with open(self._path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _MOST_BYTES, 0))
                lines = file.read().split(b"\n")
        except OSError as error:
            self._give_up(error)
            return []
        return [entry for line in reversed(lines) if (entry := _entry(line))]

    def append_string(self, string: str) -> None:
        """Remember an entry, unless it is the one before over again."""
        entry = string.rstrip()
        if entry and entry != self._last:
            self._last = entry
            super().append_string(entry)

    def store_string(self, string: str) -> None:
        """Add an entry to the file."""
        if not self._path:
            return
        line = json.dumps(string).encode() + b"\n"
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:
            self._give_up(error)

    def _prepare(self) -> None:
        """Make the file, which only its owner can read."""
        os.makedirs(os.path.dirname(self._path) or ".", mode=0o700, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            regular = stat.S_ISREG(os.fstat(file).st_mode)  # a device keeps the mode that it has
            if regular and hasattr(os, "fchmod"):
                os.fchmod(file, 0o600)
        finally:
            os.close(file)

    def _give_up(self, error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        self._note(f"the history lasts for this session only: {self._path}: {reason}")
        self._path = ""


def _entry(line: bytes) -> str:
    """The entry on a line, "" where it holds none: the first line that was read may be cut."""
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    return entry if isinstance(entry, str) else ""
