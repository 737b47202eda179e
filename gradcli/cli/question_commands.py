"""The commands `why`, `blame` and `check`: their words and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gradcli.cli.command_options import with_program
from gradcli.cli.commands import (
    _options as options_of,
)
from gradcli.cli.commands import (
    _program_and_arguments as program_and_arguments,
)
from gradcli.cli.commands import (
    _terminal as terminal_of,
)
from gradcli.cli.commands import (
    _values as values,
)
from gradcli.cli.commands import (
    gradcli,
)

_json = click.option("--json", is_flag=True, help="Print the answer as JSON.")
_words = click.argument(
    "words", nargs=-1, metavar="PROGRAM [NAME=VALUE]…", shell_complete=values
)


@gradcli.command()
@click.argument("question", metavar="NAME.ATTRIBUTE")
@_json
@with_program
@_words
def why(question: str, words: Sequence[str], file: str | None, **given: Any) -> int:
    """Prove why a tensor has a gradient, or has none.

    The question comes first: x.grad, x.requires_grad or x.is_leaf. The answer is the path that
    carries the gradient, or every place where it was cut.
    """
    from gradcli.cli import questions

    terminal = terminal_of(given.pop("color"), given)
    asked = questions.read_question(question)
    program, arguments = program_and_arguments("why", words, file)
    return terminal.checked(
        questions.why(terminal, asked, program, arguments, options_of(given))
    )
