"""The entry point: runs a command line and leaves with its exit code.

Ctrl-C has its handler before anything large is imported, so most imports stand where they are
needed.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.running.arguments.words import UsageError

# One BLAS thread, set before NumPy is imported: `ops/linalg/products/matrix_products.py` says why.
# A program that uses gradcli as a library decides for itself.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

WRONG_USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141

_UNWRITABLE = frozenset({errno.EIO, errno.EFBIG, errno.ENOSPC, errno.EDQUOT})
"""What the host says of a standard output that takes no more."""


def main(args: list[str] | None = None) -> None:
    """Run a command line, this process's by default, and leave with its exit code."""
    if args is not None:
        raise SystemExit(run(args))
    try:
        from gradcli.running.process.interruption import (  # lazy: start-up
            call_again,
            leave_on_signals,
            remove_temporary,
        )

        if not os.environ.get("GRADCLI_DEBUG"):
            _keep_streams()  # first: a pipe for signals must not get the number of a closed stream
        leave_on_signals()
        # A tape is a great many live objects, which the collector would walk over and over.
        gc.set_threshold(100_000, 20, 100)
        if not os.environ.get("GRADCLI_DEBUG"):
            warnings.simplefilter("ignore")  # NumPy's speak of gradcli's lines, by their paths
            sys.unraisablehook = call_again
        code = run(sys.argv[1:])
        remove_temporary()
    except KeyboardInterrupt:  # before there was a handler
        code = INTERRUPTED
    # Everything is flushed, and taking a large heap apart object by object takes a while.
    os._exit(code)


def _keep_streams() -> None:
    """Give standard output and error descriptors of their own, and let what is written straight to
    1 and 2 reach nobody: libraries in C speak there in words of theirs, as OpenBLAS does before it
    ends a process without memory.
    """
    if os.name != "posix":
        return
    try:
        while (nothing := os.open(os.devnull, os.O_RDWR)) < 3:
            pass  # the caller has closed this one, and what is opened next must not take its place
        for name, number in (("stdout", 1), ("stderr", 2)):
            stream = getattr(sys, name)
            if stream is not None and stream.fileno() == number:
                stream.flush()
                own = _on_another(stream, os.dup(number))
                setattr(sys, name, own)
                setattr(sys, f"__{name}__", own)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.close(nothing)
    except OSError:  # no descriptors are left, or no /dev/null is here: as it was, then
        return


def _on_another(stream: Any, number: int) -> io.TextIOWrapper:
    """A stream of text like the host's, on another descriptor."""
    raw: Any = io.FileIO(number, "w")
    raw.name = stream.name
    unbuffered = isinstance(stream.buffer, io.RawIOBase)  # `python -u`
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


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
    from gradcli.errors import GradcliError, internal_error  # lazy: start-up: likewise
    from gradcli.packages import unusable  # lazy: start-up: likewise
    from gradcli.running.process.terminal import (  # lazy: start-up: after the handler of Ctrl-C
        Terminal,
        error_format_of,
        output_lost,
    )
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
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            failure = output_lost(error)
        elif missing and missing.partition(".")[0] not in {"gradcli", *sys.stdlib_module_names}:
            failure = unusable(missing, error)
        else:
            failure = internal_error(error)
    finally:
        active.state = before
    code = _leave(failure.exit_code)
    Terminal(error_format=error_format_of(args)).error(failure)
    return code


def _invoke(args: list[str]) -> int:
    """Run what the words name: programs without options right away, else what click finds."""
    from gradcli.repl import dispatch  # noqa: F401  # lazy: start-up: it says who answers events
    from gradcli.running.arguments.files import STDIN  # lazy: start-up: likewise
    from gradcli.running.arguments.words import (  # lazy: start-up: likewise
        UsageError,
        is_plain,
        joined,
    )

    asked = os.environ.get("_GRADCLI_COMPLETE")
    try:
        words = joined(args) or (["run", STDIN] if not sys.stdin.isatty() else [])
        if asked or not is_plain(words):
            return _by_click(words, asked)
        from gradcli.running.arguments.options import Options, limits_of  # lazy: start-up: likewise
        from gradcli.running.process.terminal import Terminal  # lazy: start-up: likewise

        terminal, options = Terminal(), Options(limits=limits_of({}))
        if words[0] == "run":
            from gradcli.cli.documents.batch import (  # lazy: start-up: likewise
                batch,
                files_and_arguments,
            )

            return terminal.checked(batch(terminal, *files_and_arguments(words[1:]), options))
        from gradcli.questions.one_shot import (  # lazy: start-up: likewise
            one_shot,
            run_words,
        )

        return run_words(terminal, (), words, options, one_shot)
    except UsageError as error:
        return _usage_error(error, args)


def _by_click(words: list[str], asked: str | None) -> int:
    """Let click read the words and run the command that they name; its import takes a while."""
    import click

    from gradcli.cli.group import gradcli  # lazy: start-up: likewise
    from gradcli.language.hints.spelling import closest  # lazy: start-up: likewise
    from gradcli.running.arguments.words import UsageError  # lazy: start-up: likewise

    if asked:
        from gradcli.cli.commands.completion import answer  # lazy: command: completion

        return answer(gradcli, asked)
    try:
        with gradcli.make_context("gradcli", words) as context:
            return gradcli.invoke(context) or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.NoSuchOption as error:
        near = closest(error.option_name, error.possibilities or ())
        help = f"{UsageError.USAGE}; a program that begins with `-` goes behind -e"
        if words[0] == "run":
            help = "the script's own words go behind `--`: gradcli run FILE -- --option"
        raise UsageError(
            f"no such option '{error.option_name}'",
            help if near is None else f"did you mean `{near}`?",
        ) from error
    except click.BadParameter as error:
        kind = error.param.type if error.param is not None else None
        choices = kind.choices if isinstance(kind, click.Choice) else ()
        word = error.message.partition("'")[2].partition("'")[0]
        near = closest(word, choices)
        help = UsageError.USAGE if near is None else f"did you mean `{near}`?"
        raise UsageError(error.format_message(), help) from error
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error


def _usage_error(error: UsageError, args: list[str]) -> int:
    """Report a mistake in the words; the exit code."""
    from gradcli.running.arguments.words import COMMANDS  # lazy: start-up: likewise
    from gradcli.running.process.terminal import (  # lazy: start-up: after the handler of Ctrl-C
        Terminal,
        error_format_of,
    )

    message, help = str(error).removesuffix("."), error.help
    command = next((word for word in args if not word.startswith("-")), "")
    if command in COMMANDS:
        help = help.replace("`gradcli --help`", f"`gradcli {command} --help`")
    terminal = Terminal(error_format=error_format_of(args))
    terminal.usage_error(message[:1].lower() + message[1:], help)
    return WRONG_USAGE


def _leave(code: int) -> int:
    """End a run in its middle: what standard output still holds must not fail at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    return code
