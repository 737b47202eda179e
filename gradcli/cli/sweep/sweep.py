"""`--inputs FILE`: a program run once for each record, each result on a line of its own, or all of
them collected.

A record is a JSON object of names and values, one on a line, or a row of csv under a header. A
value binds as `NAME=VALUE` does: numbers and lists as they stand, a string as the text of a VALUE.

`Runner` runs the program for one record after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gradcli.arrays.files.data_file import DataFile
from gradcli.cli.sweep.records import WRONG, Records, Sink, arguments_of, pieces, sink_of
from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.running.arguments.files import arrays_of
from gradcli.running.arguments.name_uses import name_uses
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import Argument, UsageError, hold_files
from gradcli.running.process.interruption import memory_ceiling
from gradcli.running.process.progress import Progress, Rate
from gradcli.running.process.terminal import Terminal
from gradcli.running.process.workers import Work, lost_process, results
from gradcli.running.run import Run
from gradcli.running.showing import document
from gradcli.session import Session
from gradcli.state import State, active

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement


# --- one record after the other -------------------------------------------------------------------


_SEEDS = 1 << 32


class Runner:
    """Runs a program for one record after the other."""

    def __init__(
        self,
        program: Sequence[Statement],
        arguments: Sequence[Argument],
        options: Options,
        report: Callable[[GradcliError], object],
    ) -> None:
        self.report = report
        self.program = program
        self.used = {name for statement in program for name in name_uses(statement)}
        self.arguments = arguments
        self.options = options

    @contextmanager
    def within_memory(self) -> Iterator[None]:
        """Set up the limit of memory once: doing so takes longer than a small run."""
        with memory_ceiling(self.options.limits, self.report):
            yield

    def answers(self, parcel: bytes) -> bytes:
        """The results of a parcel of records behind a line that sums them up."""
        terminal = Terminal(quiet=True)
        outcomes = []
        began = perf_counter()
        for task in pieces(parcel):
            number, line, kind, text = task.split(b" ", 3)
            try:
                outcomes.append(self._run(terminal, int(number), int(line), kind, text))
            except UsageError as wrong:
                return json.dumps({"usage": str(wrong)}).encode() + b"\n"
        return _answer(outcomes, terminal.warnings, perf_counter() - began)

    def lost(self, task: bytes, attempts: int) -> bytes:
        """The answer for a record that no process got through."""
        return _answer([self._failed(int(task.partition(b" ")[0]), lost_process(attempts))])

    def _run(self, terminal: Terminal, number: int, line: int, kind: bytes, text: bytes) -> Outcome:
        """What one record came to."""
        options = self.options
        if options.sweep.manual_seed_per_record:
            options = copy(options)
            options.manual_seed = ((options.manual_seed or 0) + number) % _SEEDS
        run = Run(terminal, options, options.record)
        try:
            with run.limited():
                if kind == WRONG:
                    raise DataFile(f"record {number}").damaged(f"line {line}", text.decode())
                own = arguments_of(number, line, text, self.used)
                names = {argument.name for argument in own}
                common = [each for each in self.arguments if each.name not in names]
                value = run.execute(self.program, [*common, *own])
                if options.keeps_arrays:
                    return _with_arrays(number, run, value, names)
                return Outcome(number, _line(document(run, value), number))
        except GradcliError as error:
            if error.code == "E101" and error.help is None and error.span is not None:
                error.help = f"the record does not give {error.span.text} a value"
            return self._failed(number, error)
        except (UsageError, BrokenPipeError):
            raise
        except Exception as error:  # ours: the other records have their results all the same
            return self._failed(number, GradcliError("E901", f"{type(error).__name__}: {error}"))

    def _failed(self, number: int, error: GradcliError) -> Outcome:
        from gradcli.show.json import failed  # lazy: start-up: NumPy

        line = b"" if self.options.keeps_arrays else _line(failed(error), number)
        return Outcome(number, line, error=error)


class Outcome(Record):
    """What a record came to.

    Attributes:
        content: its line of JSON, or its arrays one after the other.
        arrays: name, dtype and shape of each of the arrays, and whether the record itself gave the
            input that it is the gradient of.
    """

    number: int
    content: bytes
    arrays: Sequence[tuple[str, str, Sequence[int], bool]] = ()
    error: GradcliError | None = None


def _line(document: dict[str, Any], number: int) -> bytes:
    from gradcli.show.json import marked, text  # lazy: start-up: NumPy

    return text(marked(document, number), compact=True).encode()


def _with_arrays(number: int, run: Run, value: Any, own: Container[str]) -> Outcome:
    """The output and the gradients of a run as arrays; raises E507 where it has no tensor."""
    import numpy as np  # lazy: start-up: NumPy

    with run.within_memory():
        result = run.result(value)
        if result is None:
            raise GradcliError("E507", "the program computes no tensor for it")
        with run.session.running():
            output, gradients = arrays_of(result)
            arrays = {name: np.asarray(each) for name, each in (output | gradients).items()}
            described = [
                (name, each.dtype.name, each.shape, name in gradients and name[:-5] in own)
                for name, each in arrays.items()
            ]
            return Outcome(number, b"".join(each.tobytes() for each in arrays.values()), described)


def _answer(outcomes: Sequence[Outcome], warnings: int = 0, seconds: float = 0.0) -> bytes:
    """What records came to, behind a line that sums them up."""
    failed = [(each.number, each.error) for each in outcomes if each.error is not None]
    summary: dict[str, Any] = {"done": len(outcomes), "failed": len(failed), "first": {}}
    if failed:
        number, error = failed[0]
        summary["first"] = {
            "record": number,
            "code": error.code,
            "exit_code": error.exit_code,
            "message": error.message,
            "help": error.help,
        }
    summary |= {"warnings": warnings, "seconds": seconds}
    summary["arrays"] = [(each.number, each.arrays) for each in outcomes if each.arrays]
    return json.dumps(summary).encode() + b"\n" + b"".join(each.content for each in outcomes)


# --- the whole sweep ------------------------------------------------------------------------------


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
