"""`gradcli repl`, and what happens without a program: a session, or standard input as a script."""

from __future__ import annotations

import sys
from typing import Any

import click

from gradcli.cli.documents.batch import batch, scripted
from gradcli.repl.repl import repl
from gradcli.running.arguments.click_options import options_of, terminal_of, with_session
from gradcli.running.arguments.files import STDIN
from gradcli.running.arguments.words import UsageError
from gradcli.running.process.interruption import raising_on_signals


@click.command("repl")
@with_session
@click.argument("file", required=False)
def command(file: str | None, **settings: Any) -> int:
    """Work in a session: one statement after another.

    A program or a recording, FILE, runs first; questions such as `.why w.grad` are asked of it.
    """
    return start(settings, file)


def start(settings: dict[str, Any], file: str | None = None) -> int:
    """Begin a session on a terminal; elsewhere run standard input as a script. The exit code."""
    terminal = terminal_of(settings)
    if sys.stdin is None or not sys.stdin.isatty():
        if file is not None:
            return terminal.checked(scripted(terminal, file, options_of(settings)))
        return terminal.checked(batch(terminal, [STDIN], [], options_of(settings)))
    if settings.get("inputs") is not None:
        raise UsageError("--inputs needs a program to run")
    with raising_on_signals():
        return repl(terminal, options_of(settings), file)
