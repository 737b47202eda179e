"""`gradcli plot`: the curve of a function, its derivative, and the tangent at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gradcli.errors import GradcliError
from gradcli.running.arguments.click_options import with_json, with_program
from gradcli.running.arguments.words import UsageError
from gradcli.running.source import asked_of

_SUFFIXES = (".svg", ".png", ".json")


@click.command("plot")
@click.option(
    "--at",
    "places",
    multiple=True,
    type=float,
    metavar="X",
    help="Draw the tangent at this place too; repeatable.",
)
@click.option("--ylim", metavar="LOW:HIGH", help="Show the values between two numbers: -5:5.")
@click.option("-o", "--output", metavar="FILE", help="Write the plot to a file: .svg, .png, .json.")
@with_json
@with_program
def command(
    words: Sequence[str],
    file: str | None,
    places: Sequence[float],
    ylim: str | None,
    output: str | None,
    **settings: Any,
) -> int:
    """Draw a function of one number, its derivative and its tangents.

    One input is a range, `x=-2:2`, or `x=-2:2:50` with the number of places at which the program is
    run; the one input without a value runs from -5 to 5. Several programs are several curves, and
    so are several outputs, `--of y,z`.
    """
    from gradcli.questions.plot.curve import (  # lazy: command: its body
        Range,
        curves_of,
        is_program,
        missing_range,
        read_height,
        read_range,
        show_curves,
    )

    ranges: list[Range] = []
    rest: list[str] = []
    programs = 0 if file is not None or settings["programs"] else 1
    further: list[str] = []
    for number, word in enumerate(words):
        range_read = read_range(word) if number >= programs else None
        if range_read is not None:
            ranges.append(range_read)
        elif number >= programs and is_program(word):
            further.append(word)
        else:
            rest.append(word)
    if len(ranges) > 1:
        raise UsageError("`gradcli plot` needs one input with a range, such as x=-2:2")
    if output is not None and not output.endswith(_SUFFIXES):
        raise UsageError(f"the suffix of {output} is none of {', '.join(_SUFFIXES)}")
    height = None if ylim is None else read_height(ylim)
    asked = asked_of("plot", rest, file, settings)
    asked.options.output = output
    if output is not None:
        asked.options.limits.check_file(output)
    curves = curves_of(asked, further)
    try:
        wanted = ranges[0] if ranges else missing_range(asked, curves)
    except GradcliError as error:
        asked.terminal.error(error)
        return asked.terminal.checked(error.exit_code)
    return asked.terminal.checked(show_curves(asked, curves, wanted, places, height))
