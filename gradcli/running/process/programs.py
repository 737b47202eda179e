"""Programs of the machine: a pager for long texts, the desktop's for a file, one that turns SVG
into PNG.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress

from gradcli.errors import GradcliError


def paged(text: str) -> bool:
    """Show a text in a pager: `$GRADCLI_PAGER`, `$PAGER`, else `less`.

    False where it fits the screen, or there is no terminal or pager.
    """
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        return False
    if text.count("\n") < shutil.get_terminal_size().lines:
        return False
    words = _pager()
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


def _pager() -> list[str]:
    """The words of the pager's command; none where it is to be left out."""
    chosen = os.environ.get("GRADCLI_PAGER", os.environ.get("PAGER", "less"))
    try:
        return shlex.split(chosen)
    except ValueError:
        return []


_OPENING_SECONDS = 5.0
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
        return started.wait(_OPENING_SECONDS) == 0
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


_CONVERTERS = {
    "rsvg-convert": ["--zoom", "2"],
    "cairosvg": ["-", "-f", "png", "-s", "2"],
    "inkscape": ["--pipe", "--export-type=png", "--export-filename=-", "--export-dpi=192"],
}
"""Programs that read SVG on standard input and write PNG, twice as large, on standard output."""

_CONVERTING_SECONDS = 60

_LETTER = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="16">M</text></svg>'
)
"""A picture that is empty where the machine has no font."""


def png(svg: bytes) -> bytes:
    """An SVG document as PNG, twice as large.

    Raises E603 where neither the package nor a converter is here, where one fails, and where the
    machine has no font to write with.
    """
    try:
        import resvg_py  # lazy: package: few pictures are pixels
    except ImportError:
        return _converted(svg)
    try:
        letter = resvg_py.svg_to_bytes(svg_string=_LETTER)
        if letter == resvg_py.svg_to_bytes(svg_string=_LETTER.replace("M", "")):
            raise GradcliError(
                "E603",
                "the machine has no font to write a PNG's text with",
                help="install one (fonts-dejavu), or write an .svg",
            )
        return bytes(resvg_py.svg_to_bytes(svg_string=svg.decode(), zoom=2))
    except ValueError as error:
        raise GradcliError("E603", f"resvg did not make a PNG: {error}") from error


def _converted(svg: bytes) -> bytes:
    """An SVG document as PNG, by a program that is at hand; raises E603."""
    for name, arguments in _CONVERTERS.items():
        program = shutil.which(name)
        if program is None:
            continue
        try:
            done = subprocess.run(
                [program, *arguments],
                input=svg,
                capture_output=True,
                timeout=_CONVERTING_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GradcliError("E603", f"{name} did not make a PNG: {error}") from error
        if done.returncode or not done.stdout.startswith(b"\x89PNG"):
            raise GradcliError("E603", f"{name} did not make a PNG of the picture")
        return done.stdout
    raise GradcliError(
        "E603",
        "a PNG needs the package resvg-py, which is not installed",
        help="pip install 'gradcli[png]'; or write an .svg, which browsers show",
    )
