"""Opens a file with the program that the desktop has for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

_SECONDS = 5.0
"""An opener that has not failed by then is the browser itself, or has started it."""


def opens(path: str) -> bool:
    """Hand a file to the desktop; whether there is one, and it took it.

    What is started has no stream of the session, and outlives it. A browser for terminals is never
    started: it would take the session's own.
    """
    opener = _opener()
    if opener is None:
        return False
    try:
        started = subprocess.Popen(
            [opener, path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return started.wait(_SECONDS) == 0
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False


def _opener() -> str | None:
    """The program that opens files on this desktop, None where no desktop is."""
    if sys.platform == "darwin":
        return None if os.environ.get("SSH_CONNECTION") else shutil.which("open")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return shutil.which("xdg-open")
    return None
