"""What a person types: the only place of gradcli that prints and exits."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

INTERRUPTED = 130
PIPE_CLOSED = 141


def main(args: list[str] | None = None) -> NoReturn:
    """Run a command line and leave with its exit code.

    Args:
        args: the words behind `gradcli`; those of this process when None.
    """
    if args is not None:
        raise SystemExit(run(args))
    # A tape is a great many live objects, which the collector would walk over and over.
    gc.set_threshold(100_000, 20, 100)
    code = run(sys.argv[1:])
    # Everything is flushed, and taking a large heap apart object by object takes a while.
    os._exit(code)


def run(args: list[str]) -> int:
    """Run a command line and give its exit code; nothing is left unwritten, and no failure of ours
    shows a traceback.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        code = _run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _leave(INTERRUPTED)
    except BrokenPipeError:
        return _leave(PIPE_CLOSED)
    return code


def _run(args: list[str]) -> int:
    from gradcli.errors import GradcliError

    try:
        return _invoke(args)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except GradcliError as error:
        failure = error
    except Exception as error:
        failure = GradcliError(
            "E901",
            f"{type(error).__name__}: {error}",
            help="please report it with the output of `gradcli info`",
        )
        failure.__cause__ = error
    from gradcli.cli.terminal import Terminal

    Terminal().error(failure)
    return failure.exit_code


def _invoke(args: list[str]) -> int:
    """Let click read the words and run the command that they name."""
    import click

    from gradcli.cli.commands import gradcli, joined

    try:
        with gradcli.make_context("gradcli", joined(args)) as context:
            return gradcli.invoke(context) or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        from gradcli.cli.terminal import Terminal

        help = "`gradcli --help` shows the usage"
        if isinstance(error, click.NoSuchOption):
            help += "; a program that begins with `-` goes behind -e"
        message = error.format_message().removesuffix(".")
        Terminal().usage_error(message[:1].lower() + message[1:], help)
        return error.exit_code


def _leave(code: int) -> int:
    """End a run in its middle: what standard output still holds must not fail at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    return code
