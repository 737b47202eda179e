"""Batch: `gradcli run FILE… [NAME=VALUE]…`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gradcli.cli.files import decoded_lines, read_program
from gradcli.cli.options import Options
from gradcli.cli.running import Run, explain_missing
from gradcli.cli.terminal import Terminal
from gradcli.cli.values import Argument
from gradcli.errors import GradcliError

if TYPE_CHECKING:
    from gradcli.language.syntax import Statement

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
    code = 0
    outcomes = []
    for path in paths:
        if code and not options.keep_going:
            outcomes.append(f"{path}: not run")
            continue
        error = run_file(terminal, path, arguments, options)
        outcomes.append(f"{path}: {'ok' if error is None else error.code}")
        if error is not None:
            code = code or error.exit_code
    if len(paths) > 1:
        passed = sum(outcome.endswith(": ok") for outcome in outcomes)
        terminal.note("\n  ".join([f"{passed} of {len(paths)} files ran to their end", *outcomes]))
    return code


def run_file(
    terminal: Terminal, path: str, arguments: Sequence[Argument], options: Options
) -> GradcliError | None:
    """Run one program file, or standard input as it arrives; gives the error that ended it."""
    run = Run(terminal, options, options.record if options.wants_result else None)
    statements: Iterable[Statement]
    known: Sequence[Statement] = ()
    error = None
    try:
        if path == STDIN:
            statements = run.session.parse_stream(decoded_lines(sys.stdin.buffer, "stdin"), "stdin")
            run.execute(statements, arguments, terminal.flush)
        else:
            known = run.session.parse(read_program(path), path)
            run.execute(known, arguments)
        if options.wants_result:
            run.report(compact=True)
    except GradcliError as failure:
        explain_missing(failure, known, arguments, f"gradcli run {path}")
        terminal.error(failure)
        error = failure
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, known if error is not None else ())
    return error
