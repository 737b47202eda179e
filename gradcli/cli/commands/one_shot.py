"""One-shot: `gradcli 'PROGRAM' [NAME=VALUE]…`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from gradcli.questions.one_shot import one_shot, run_words
from gradcli.running.arguments.click_options import (
    PROGRAM_LINES,
    options_of,
    terminal_of,
    values,
    with_options,
)
from gradcli.running.arguments.words import PROGRAM


def _help(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """A program's help is the whole command's."""
    if wanted:
        click.echo(ctx.find_root().get_help())
        ctx.exit()


@click.command(PROGRAM, hidden=True, add_help_option=False)
@PROGRAM_LINES
@click.option(
    "-h",
    "--help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help,
    help="Show this.",
)
@with_options
@click.argument("words", nargs=-1, shell_complete=values)
def command(programs: Sequence[str], words: Sequence[str], **settings: Any) -> int:
    """Run a program given in the words themselves."""
    if not programs and not words:
        from gradcli.cli.commands.repl import start  # lazy: command: a session

        return start(settings)
    terminal, options = terminal_of(settings), options_of(settings)
    if options.inputs is None:
        return run_words(terminal, programs, words, options, one_shot)
    from gradcli.cli.sweep.sweep import sweep  # lazy: command: JSON

    return run_words(terminal, programs, words, options, sweep)
