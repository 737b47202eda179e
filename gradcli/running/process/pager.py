"""A pager for texts that are longer than the terminal: `$GRADCLI_PAGER`, `$PAGER`, else `less`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress


def paged(text: str) -> bool:
    """Show a text in a pager; False where it fits the screen, or there is no terminal or pager."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return False
    if text.count("\n") < shutil.get_terminal_size().lines:
        return False
    words = _command()
    if not words or shutil.which(words[0]) is None:
        return False
    # It is to show a text, and to run nothing.
    environment = {"LESS": "-FRX", **os.environ, "LESSSECURE": "1"}
    try:
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=sys.stdout, stderr=sys.stderr, env=environment
        ) as pager:
            while True:
                with suppress(KeyboardInterrupt):  # Ctrl-C is the pager's as long as it shows
                    pager.communicate(text.encode("utf-8", "backslashreplace"))
                    return True
    except OSError:
        return False


def _command() -> list[str]:
    """The words of the pager's command; none where it is to be left out."""
    chosen = os.environ.get("GRADCLI_PAGER", os.environ.get("PAGER", "less"))
    try:
        return shlex.split(chosen)
    except ValueError:
        return []
