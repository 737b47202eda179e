"""Turns SVG into PNG with a program that is at hand."""

from __future__ import annotations

import shutil
import subprocess

from gradcli.errors import GradcliError

_CONVERTERS = {
    "rsvg-convert": ["--zoom", "2"],
    "cairosvg": ["-", "-f", "png", "-s", "2"],
    "inkscape": ["--pipe", "--export-type=png", "--export-filename=-", "--export-dpi=192"],
}
"""Programs that read SVG on standard input and write PNG, twice as large, on standard output."""

_SECONDS = 60


def has_converter() -> bool:
    """Whether one of the programs is at hand."""
    return any(map(shutil.which, _CONVERTERS))


def png(svg: bytes) -> bytes:
    """An SVG document as PNG; raises E603 where no converter is at hand, or where it fails."""
    for name, arguments in _CONVERTERS.items():
        program = shutil.which(name)
        if program is None:
            continue
        try:
            done = subprocess.run(
                [program, *arguments], input=svg, capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GradcliError("E603", f"{name} did not make a PNG: {error}") from error
        if done.returncode or not done.stdout.startswith(b"\x89PNG"):
            raise GradcliError("E603", f"{name} did not make a PNG of the picture")
        return done.stdout
    raise GradcliError(
        "E603",
        f"none of {', '.join(_CONVERTERS)} is here to make a PNG",
        help="write an .svg, which browsers and word processors show",
    )
