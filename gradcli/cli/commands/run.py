"""Batch: `gradcli run FILE… [NAME=VALUE]…`."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

from gradcli.cli.arguments.files import decoded, decoded_lines, read_program
from gradcli.cli.arguments.options import Options
from gradcli.cli.arguments.values import Argument, hold_stdin
from gradcli.cli.process.terminal import Terminal
from gradcli.cli.process.workers import results
from gradcli.cli.program.run import Run, explain_missing, prove_cut
from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.language.tree import Statement

STDIN = "-"
"""The file that is standard input."""


def batch(
    terminal: Terminal, paths: Sequence[str], arguments: Sequence[Argument], options: Options
) -> int:
    """Run program files, each in a session of its own, the first error ending the run unless
    `--keep-going`.

    Returns:
        The exit code: 0, or that of the first file that failed.

    Raises:
        click.UsageError: an option names what a program does not have.
    """
    if options.inputs is not None:
        from gradcli.cli.commands.records import run_records

        path = paths[0]
        return run_records(terminal, lambda: program_text(path), path, arguments, options)
    code = 0
    outcomes = []
    with closing(_errors(terminal, paths, arguments, options)) as errors:
        for path in paths:
            if code and not options.keep_going:
                outcomes.append(f"{path}: not run")
                continue
            failed, exit_code = next(errors)
            outcomes.append(f"{path}: {failed or 'ok'}")
            code = code or exit_code
    if len(paths) > 1:
        passed = sum(outcome.endswith(": ok") for outcome in outcomes)
        terminal.note("\n  ".join([f"{passed} of {len(paths)} files ran to their end", *outcomes]))
    return code


def program_text(path: str) -> str:
    """The text of a program that is read whole; raises E503."""
    return decoded(sys.stdin.buffer.read(), "stdin") if path == STDIN else read_program(path)


def _errors(
    terminal: Terminal, paths: Sequence[str], arguments: Sequence[Argument], options: Options
) -> Generator[tuple[str, int], None, None]:
    """Run the files, and give for each the code of the error that ended it, "" for none, and the
    exit code.
    """
    if options.jobs == 1 or len(paths) == 1:
        for path in paths:
            error = run_file(terminal, path, arguments, options)
            yield ("", 0) if error is None else (error.code, error.exit_code)
        return
    import json

    hold_stdin(arguments, options.limits)

    def captured(path: bytes) -> bytes:
        """What a file prints, and what became of it."""
        out, err = StringIO(), StringIO()
        terminal.warnings = 0
        with redirect_stdout(out), redirect_stderr(err):
            error = run_file(terminal, path.decode("utf-8", "surrogateescape"), arguments, options)
        ended = ("", 0) if error is None else (error.code, error.exit_code)
        return json.dumps([out.getvalue(), err.getvalue(), terminal.warnings, ended]).encode()

    tasks = (path.encode("utf-8", "surrogateescape") for path in paths)
    with closing(results(tasks, captured, options.jobs)) as answers:
        for answer in answers:
            out, err, warnings, (code, exit_code) = json.loads(answer)
            terminal.write(out)
            terminal.pass_on(err)
            terminal.warnings += warnings
            yield code, exit_code


MOST_OF_A_STREAM = 10_000
"""Statements of standard input that are kept: memory does not grow with its length."""


def run_file(
    terminal: Terminal, path: str, arguments: Sequence[Argument], options: Options
) -> GradcliError | None:
    """Run one program file, or standard input as it arrives; gives the error that ended it."""
    run = Run(terminal, options, options.record if options.wants_result else None)
    statements: Iterable[Statement]
    known: Sequence[Statement] = ()
    error = None
    try:
        with run.limited():
            if path == STDIN:
                lines = decoded_lines(sys.stdin.buffer, "stdin")
                run.transcript.most = MOST_OF_A_STREAM
                statements = run.session.parse_stream(lines, "stdin")
                run.execute(statements, arguments, terminal.flush)
            else:
                known = run.session.parse(read_program(path), path)
                run.execute(known, arguments)
            if options.wants_result:
                run.report(compact=True)
    except GradcliError as failure:
        explain_missing(failure, known, arguments, f"gradcli run {path}")
        prove_cut(failure, run, known, arguments)
        terminal.error(failure)
        error = failure
    if options.explain_loops:
        terminal.explain_loops(run.session.interpreter.hot_loops)
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, known if error is not None else ())
    return error
