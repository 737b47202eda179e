"""`gradcli check`: gradients against central differences, or against ones given by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gradcli.errors import GradcliError
from gradcli.questions.notes.error_notes import note_arguments, note_second_pass
from gradcli.record import Record
from gradcli.running.arguments.click_options import with_answer_file, with_json, with_program
from gradcli.running.source import Asked, asked_of


@click.command("check")
@click.option(
    "--order",
    type=click.IntRange(1, 2),
    default=1,
    help="Check the gradient, or the second derivative along a random direction.",
)
@click.option(
    "--elements",
    type=click.IntRange(1),
    metavar="N",
    help="The elements of an input that are checked, chosen at random where there are more; by"
    " default 100, and random directions instead where these would take more than 30 seconds.",
)
@click.option(
    "--against", metavar="FILE", help="Compare the gradients that a file holds: .npz, .npy, …"
)
@click.option(
    "--equals",
    multiple=True,
    metavar="[NAME=]EXPRESSION",
    help="Compare a gradient made by hand: 'x=2*a*b'; repeatable.",
)
@with_answer_file(".txt", ".json")
@with_json
@with_program
def command(
    words: Sequence[str],
    file: str | None,
    order: int,
    elements: int | None,
    against: str | None,
    equals: Sequence[str],
    **settings: Any,
) -> int:
    """Check gradients against differences, or ones made by hand.

    The program is run in float64 with each element moved a little, over a sweep of steps. Exits
    with 1 where a gradient is wrong.
    """
    asked = asked_of("check", words, file, settings)
    wanted = Check(order, elements, against, read_equals(equals))
    return asked.terminal.checked(check(asked, wanted))


class Check(Record):
    """The settings of `check`.

    Attributes:
        most: the elements of an input that are checked, None for as many as there is time for.
        against: a file of gradients made by hand, the arrays themselves by name, or None.
        equals: expressions for gradients, each with the name of its input where that is given.
    """

    order: int
    most: int | None
    against: str | dict[str, Any] | None
    equals: Sequence[tuple[str | None, str]]


def read_equals(words: Sequence[str]) -> list[tuple[str | None, str]]:
    """The words of `--equals`: `x=2*a*b`, or `2*a*b` for the only input."""
    pairs: list[tuple[str | None, str]] = []
    for word in words:
        name, equals, rest = word.partition("=")
        name = name.strip().removesuffix(".grad")
        if equals and name.isidentifier() and not rest.startswith("="):
            pairs.append((name, rest))
        else:
            pairs.append((None, word))
    return pairs


def check(
    asked: Asked,
    wanted: Check,
) -> int:
    """Check the gradients of a program; exits with 1 where one is wrong."""
    from gradcli.questions.check.find import (  # lazy: command: its body
        by_differences,
        by_hand,
    )
    from gradcli.running.process.progress import watched  # lazy: command: its body
    from gradcli.running.rerun import rerun_of  # lazy: command: its body

    terminal, options = asked.terminal, asked.options
    rerun = rerun_of(asked)
    rerun.widens = True
    try:
        with watched(terminal, lambda: f"{rerun.runs:,} runs"):
            if wanted.against is not None or wanted.equals:
                return by_hand(terminal, rerun, options, wanted.against, wanted.equals)
            return by_differences(terminal, rerun, options, wanted.order, wanted.most)
    except GradcliError as error:
        note_arguments(error, rerun.statements, asked.arguments, "gradcli check …")
        if error.code == "E403":
            note_second_pass(error, rerun.statements, rerun.failed)
        terminal.error(error)
        return error.exit_code
