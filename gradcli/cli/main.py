"""What a person types: the only place of gradcli that prints and exits."""

from __future__ import annotations

import errno
import gc
import os
import sys

INTERRUPTED = 130
PIPE_CLOSED = 141

_UNWRITABLE = frozenset({errno.EIO, errno.EFBIG, errno.ENOSPC, errno.EDQUOT})
"""What the host says of a standard output that takes no more."""


def main(args: list[str] | None = None) -> None:
    """Run a command line and leave with its exit code, which raises SystemExit or ends the process.

    Args:
        args: the words behind `gradcli`; those of this process when None.
    """
    if args is not None:
        raise SystemExit(run(args))
    try:
        from gradcli.cli.process.interruption import leave_on_signals

        leave_on_signals()
        # A tape is a great many live objects, which the collector would walk over and over.
        gc.set_threshold(100_000, 20, 100)
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before there was a handler
        code = INTERRUPTED
    # Everything is flushed, and taking a large heap apart object by object takes a while.
    os._exit(code)


def run(args: list[str]) -> int:
    """Run a command line and give its exit code; nothing is left unwritten, and no failure of ours
    shows a traceback.
    """
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
    from gradcli.errors import GradcliError, internal_error

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
            from gradcli.cli.process.terminal import output_lost

            failure = output_lost(error)
        else:
            failure = internal_error(error)
    from gradcli.cli.process.terminal import Terminal, error_format_of

    Terminal(error_format=error_format_of(args)).error(failure)
    return failure.exit_code


def _invoke(args: list[str]) -> int:
    """Let click read the words and run the command that they name."""
    import click

    from gradcli.cli.group import gradcli, joined

    asked = os.environ.get("_GRADCLI_COMPLETE")
    if asked or not args or args[0].isidentifier() or args[0] in ("--help", "-h"):
        from gradcli.cli.group_questions import add_to

        add_to(gradcli)
    if asked:
        from gradcli.cli.commands.completion import answer

        return answer(gradcli, asked)
    try:
        with gradcli.make_context("gradcli", joined(args)) as context:
            return gradcli.invoke(context) or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        from gradcli.cli.process.terminal import Terminal, error_format_of

        help = "`gradcli --help` shows the usage"
        message = error.format_message().removesuffix(".")
        if isinstance(error, click.NoSuchOption):
            from gradcli.language.hints.spelling import closest

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
