"""`gradcli plot`: the curve of a function, its derivative, and the tangent at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

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
    **given: Any,
) -> int:
    """Draw a function of one number, its derivative and its tangents.

    One input is a range, `x=-2:2`, or `x=-2:2:50` with the number of places at which the program is
    run.
    """
    from gradcli.questions.plot.curve import (  # lazy: command: its body
        Range,
        read_height,
        read_range,
        show_curve,
    )

    ranges: list[Range] = []
    rest = []
    for number, word in enumerate(words):
        behind = number > 0 or file is not None or given["programs"]
        found = read_range(word) if behind else None
        if found is None:
            rest.append(word)
        else:
            ranges.append(found)
    if len(ranges) != 1:
        raise UsageError("`gradcli plot` needs one input with a range, such as x=-2:2")
    if output is not None and not output.endswith(_SUFFIXES):
        raise UsageError(f"the suffix of {output} is none of {', '.join(_SUFFIXES)}")
    height = None if ylim is None else read_height(ylim)
    asked = asked_of("plot", rest, file, given)
    asked.options.output = output
    if output is not None:
        asked.options.limits.check_file(output)
    return asked.terminal.checked(show_curve(asked, ranges[0], places, height))
