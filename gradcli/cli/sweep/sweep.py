"""`--inputs FILE`: a program run once for each record, each result on a line of its own, or all of
them collected.

A record is a JSON object of names and values, one on a line, or a row of csv under a header. A
value binds as `NAME=VALUE` does: numbers and lists as they stand, a string as the text of a VALUE.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from gradcli.cli.sweep.reading import Records, pieces
from gradcli.cli.sweep.runner import Runner
from gradcli.cli.sweep.sinks import Sink, sink_of
from gradcli.errors import GradcliError
from gradcli.running.arguments.name_uses import name_uses
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.values import Argument, hold_files
from gradcli.running.arguments.words import UsageError
from gradcli.running.process.progress import Progress, Rate
from gradcli.running.process.terminal import Terminal
from gradcli.running.process.workers import Work, results
from gradcli.session import Session
from gradcli.state import State, active

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement


def sweep(terminal: Terminal, program: str, arguments: Sequence[Argument], options: Options) -> int:
    """`run_records` of a program's text."""
    return run_records(terminal, lambda: program, "program", arguments, options)


def run_records(
    terminal: Terminal,
    read: Callable[[], str],
    name: str,
    arguments: Sequence[Argument],
    options: Options,
) -> int:
    """Run a program for each record of `--inputs` and hand the results on in order; a record that
    fails has its error in its place.

    Args:
        arguments: what all records have in common; a record's own values come first.

    Returns:
        The exit code: 0, or that of the first record that failed; that of the error where the
        program is none or the records cannot be read.

    Raises:
        UsageError: an option names what the program does not have.
    """
    state = State(limits=options.limits)
    before, active.state = active.state, state
    try:
        text = read()
        program = Session.parse(text, name)
        _warn_unused(terminal, program, arguments)
        hold_files(arguments, options.limits, stdin_only=options.sweep.cluster is None)
        runner = Runner(program, arguments, options, terminal.error)
        work = Work(runner.answers, pieces, runner.lost, options.retries, runner.within_memory)

        def answered(records: Records) -> Generator[bytes, None, None]:
            if options.sweep.cluster is None:
                return results(records.parcels(), work, options.jobs)
            from gradcli.cli.sweep import cluster  # lazy: command: Dask, where it is asked for

            setup = cluster.setup_of(text, name, arguments, options)
            return cluster.results_of(terminal, records, work, setup, options)

        with (
            closing(sink_of(terminal, options)) as sink,
            closing(Records(options, sink.done)) as records,
            closing(answered(records)) as answers,
        ):
            return _hand_on(terminal, options, answers, sink, records)
    except GradcliError as error:
        terminal.error(error)
        return error.exit_code
    finally:
        active.state = before


def _warn_unused(
    terminal: Terminal, program: Sequence[Statement], arguments: Sequence[Argument]
) -> None:
    """Warn of the common arguments that the program never uses."""
    from gradcli.running.arguments.bindings import unused  # lazy: start-up: NumPy

    names = {name: None for statement in program for name in name_uses(statement)}
    bound = [argument.name for argument in arguments]
    for argument in arguments:
        if argument.name not in names:
            terminal.warning(unused(argument, names, bound))


def _hand_on(
    terminal: Terminal,
    options: Options,
    answers: Iterator[bytes],
    sink: Sink,
    records: Records,
) -> int:
    """Hand results on as they come, and give the exit code."""
    progress, rate = Progress(not terminal.quiet), Rate()
    done, failed, first = sink.done, sink.failed, sink.first
    try:
        for answer in answers:
            head, _, content = answer.partition(b"\n")
            summary: dict[str, Any] = json.loads(head)
            if "usage" in summary:
                raise UsageError(summary["usage"])
            sink.add(summary, content)
            done += summary["done"]
            failed += summary["failed"]
            terminal.warnings += summary["warnings"]
            first = first or summary["first"]
            counts = f"{done:,} records" + (f", {failed:,} failed" if failed else "")
            progress.show(counts + rate.text(done - sink.done, records.share()))
    finally:
        progress.end()
    sink.finish()
    if options.output is not None:
        terminal.wrote(options.output, f"{done - failed:,} of {done:,} records")
    if failed:
        terminal.note(
            f"{failed:,} of {done:,} records failed; the first is record {first['record']:,}"
            f" with {first['code']}"
        )
    return int(first.get("exit_code", 0))
