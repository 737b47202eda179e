"""The commands `why`, `blame` and `check`: their words and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gradcli.cli.arguments.click_options import with_program
from gradcli.cli.group import complete_values, options_of, program_and_arguments, terminal_of

_json = click.option("--json", is_flag=True, help="Print the answer as JSON.")
_words = click.argument(
    "words", nargs=-1, metavar="PROGRAM [NAME=VALUE]…", shell_complete=complete_values
)


@click.command()
@click.argument("question", metavar="NAME.ATTRIBUTE")
@_json
@with_program
@_words
def why(question: str, words: Sequence[str], file: str | None, **given: Any) -> int:
    """Prove why a tensor has a gradient, or has none.

    The question comes first: x.grad, x.requires_grad or x.is_leaf. The answer is the path that
    carries the gradient, or every place where it was cut.
    """
    from gradcli.cli.commands import ask

    terminal = terminal_of(given.pop("color"), given)
    asked = ask.read_question(question)
    program, arguments = program_and_arguments("why", words, file)
    return terminal.checked(ask.why(terminal, asked, program, arguments, options_of(given)))


@click.command()
@click.option("--all", is_flag=True, help="Show every number that is not finite, in order.")
@_json
@with_program
@_words
def blame(words: Sequence[str], file: str | None, all: bool, **given: Any) -> int:
    """Find the first NaN or infinity, and its cure.

    Exits with 1 where the output or a gradient is not finite.
    """
    from gradcli.cli.commands import ask

    terminal = terminal_of(given.pop("color"), given)
    program, arguments = program_and_arguments("blame", words, file)
    options = options_of(given)
    return terminal.checked(ask.blame(terminal, program, arguments, options, all=all))


@click.command()
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
    help="The elements of an input that are checked, chosen at random where there are more; 100 by"
    " default.",
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
@_json
@with_program
@_words
def check(
    words: Sequence[str],
    file: str | None,
    order: int,
    elements: int | None,
    against: str | None,
    equals: Sequence[str],
    **given: Any,
) -> int:
    """Check gradients against differences, or ones made by hand.

    The program is run in float64 with each element moved a little, over a sweep of steps. Exits
    with 1 where a gradient is wrong.
    """
    from gradcli.cli.commands import check as checking

    terminal = terminal_of(given.pop("color"), given)
    program, arguments = program_and_arguments("check", words, file)
    wanted = checking.Check(order, elements or checking.MOST, against, checking.read_equals(equals))
    return terminal.checked(checking.check(terminal, program, arguments, options_of(given), wanted))


def add_to(group: click.Group) -> None:
    """Add the commands to a group: a program given in words does without them."""
    for command in (why, blame, check):
        group.add_command(command)
