"""The entry point: runs a command line and leaves with its exit code.

Ctrl-C has its handler before anything large is imported, so most imports stand where they are
needed.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

INTERRUPTED = 130
PIPE_CLOSED = 141

_UNWRITABLE = frozenset({errno.EIO, errno.EFBIG, errno.ENOSPC, errno.EDQUOT})
"""What the host says of a standard output that takes no more."""


def main(args: list[str] | None = None) -> None:
    """Run a command line, this process's by default, and leave with its exit code."""
    if args is not None:
        raise SystemExit(run(args))
    try:
        from gradcli.cli.process.interruption import leave_on_signals  # lazy: start-up

        leave_on_signals()
        # A tape is a great many live objects, which the collector would walk over and over.
        gc.set_threshold(100_000, 20, 100)
        if not os.environ.get("GRADCLI_DEBUG"):
            warnings.simplefilter("ignore")  # NumPy's speak of gradcli's lines, by their paths
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before there was a handler
        code = INTERRUPTED
    # Everything is flushed, and taking a large heap apart object by object takes a while.
    os._exit(code)


def run(args: list[str]) -> int:
    """Run a command line and give its exit code; no failure of ours shows a traceback."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    try:
        code = _run(args)
    except KeyboardInterrupt:
        return _leave(INTERRUPTED)
    except BrokenPipeError:
        return _leave(PIPE_CLOSED)
    return code


def _run(args: list[str]) -> int:
    from gradcli.cli.process.terminal import (  # lazy: start-up: after the handler of Ctrl-C
        Terminal,
        error_format_of,
        output_lost,
    )
    from gradcli.errors import GradcliError, internal_error  # lazy: start-up: likewise
    from gradcli.state import State, active  # lazy: start-up: likewise

    before, active.state = active.state, State()
    try:
        code = _invoke(args)
        sys.stdout.flush()
        return code
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except GradcliError as error:
        failure = error
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            failure = output_lost(error)
        else:
            failure = internal_error(error)
    finally:
        active.state = before
    Terminal(error_format=error_format_of(args)).error(failure)
    return failure.exit_code


def _invoke(args: list[str]) -> int:
    """Let click read the words and run the command that they name."""
    import click

    from gradcli.cli import dispatch  # noqa: F401  # lazy: start-up: it says who answers events
    from gradcli.cli.arguments.words import joined  # lazy: start-up: likewise
    from gradcli.cli.group import gradcli  # lazy: start-up: likewise

    asked = os.environ.get("_GRADCLI_COMPLETE")
    if asked:
        from gradcli.cli.commands.completion import answer  # lazy: command: completion

        return answer(gradcli, asked)
    try:
        with gradcli.make_context("gradcli", joined(args)) as context:
            return gradcli.invoke(context) or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        return _usage_error(error, args)


def _usage_error(error: click.ClickException, args: list[str]) -> int:
    """Report a mistake in the words; the exit code."""
    import click

    from gradcli.cli.process.terminal import (  # lazy: start-up: after the handler of Ctrl-C
        Terminal,
        error_format_of,
    )
    from gradcli.language.hints.spelling import closest  # lazy: start-up: likewise

    help = "`gradcli --help` shows the usage"
    message = error.format_message().removesuffix(".")
    if isinstance(error, click.NoSuchOption):
        near = closest(error.option_name, error.possibilities or ())
        message = f"no such option '{error.option_name}'"
        help += "; a program that begins with `-` goes behind -e"
        help = help if near is None else f"did you mean `{near}`?"
    terminal = Terminal(error_format=error_format_of(args))
    terminal.usage_error(message[:1].lower() + message[1:], help)
    return error.exit_code


def _leave(code: int) -> int:
    """End a run in its middle: what standard output still holds must not fail at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    return code
