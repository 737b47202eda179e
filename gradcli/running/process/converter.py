"""Turns SVG into PNG, with the package resvg-py or a program that is at hand."""

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
                [program, *arguments], input=svg, capture_output=True, timeout=_SECONDS, check=False
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
