"""`--inputs FILE`: a program run once for each record, each result on a line of its own.

A record is a JSON object of names and values, one on a line, or a row of csv under a header. A
value binds as `NAME=VALUE` does: numbers and lists as they stand, a string as the text of a VALUE.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import IO, TYPE_CHECKING, Any

from gradcli.cli.arguments.name_uses import name_uses
from gradcli.cli.arguments.options import Options
from gradcli.cli.arguments.values import Argument, hold_stdin, read_argument
from gradcli.cli.arguments.words import UsageError
from gradcli.cli.process.memory import memory_ceiling
from gradcli.cli.process.progress import Progress
from gradcli.cli.process.terminal import Terminal
from gradcli.cli.process.workers import Work, lost_process, results
from gradcli.cli.program.run import Run
from gradcli.errors import GradcliError
from gradcli.files.data_file import STDIN, DataFile, unreadable
from gradcli.files.gate import opened
from gradcli.session import Session
from gradcli.state import State, active

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement

_AT_ONCE = 16
"""Records that a process of `--jobs` gets at a time from a file; one at a time from a stream."""

_RIGHT, _WRONG = b"record", b"wrong"

_LONGEST_RECORD = 1 << 28
_LONGEST_SHOWN = 200


def run_records(
    terminal: Terminal,
    read: Callable[[], str],
    name: str,
    arguments: Sequence[Argument],
    options: Options,
) -> int:
    """Run a program for each record of `--inputs` and print the results as JSON Lines in order; a
    record that fails has its error in its place.

    Args:
        arguments: what all records have in common; a record's own values come first.

    Returns:
        The exit code: 0, or that of the first record that failed; that of the error where the
        program is none or the records cannot be read.

    Raises:
        UsageError: an option names what the program does not have.
    """
    assert options.inputs is not None
    state = State(limits=options.limits)
    before, active.state = active.state, state
    try:
        file = DataFile.named(options.inputs)
        program = Session.parse(read(), name)
        _warn_unused(terminal, program, arguments)
        hold_stdin(arguments, options.limits)
        runner = _Runner(program, arguments, options, terminal.error)
        work = Work(runner.answers, _pieces, _lost, options.retries, runner.within_memory)
        tasks = _tasks(file, _opened(file), options.jobs)
        with closing(results(tasks, work, options.jobs)) as answers:
            return _print(terminal, answers)
    except GradcliError as error:
        terminal.error(error)
        return error.exit_code
    finally:
        active.state = before


def _warn_unused(
    terminal: Terminal, program: Sequence[Statement], arguments: Sequence[Argument]
) -> None:
    """Warn of the common arguments that the program never uses."""
    from gradcli.cli.arguments.bindings import unused  # lazy: start-up: NumPy

    names = {name: None for statement in program for name in name_uses(statement)}
    given = [argument.name for argument in arguments]
    for argument in arguments:
        if argument.name not in names:
            terminal.warning(unused(argument, names, given))


def _print(terminal: Terminal, answers: Iterator[bytes]) -> int:
    """Print results as they come, and give the exit code."""
    progress = Progress(not terminal.quiet)
    done = failed = 0
    first: dict[str, Any] = {}
    try:
        for answer in answers:
            head, _, lines = answer.partition(b"\n")
            summary = json.loads(head)
            if "usage" in summary:
                raise UsageError(summary["usage"])
            terminal.write(lines.decode())
            terminal.flush()
            done += summary["done"]
            failed += summary["failed"]
            terminal.warnings += summary["warnings"]
            first = first or summary["first"]
            progress.show(f"{done:,} records" + (f", {failed:,} failed" if failed else ""))
    finally:
        progress.end()
    if failed:
        terminal.note(
            f"{failed:,} of {done:,} records failed; the first is record {first['record']:,}"
            f" with {first['code']}"
        )
    return int(first.get("exit_code", 0))


def _tasks(file: DataFile, stream: IO[bytes], jobs: int) -> Iterator[bytes]:
    """The records in parcels, a line each: number, line, whether it is one, text."""
    with stream:
        at_once = _AT_ONCE if jobs > 1 and file.path != STDIN else 1
        parcel: list[bytes] = []
        for number, (line, kind, text) in enumerate(_texts(file, stream), 1):
            parcel.append(b"%d %d %s %s" % (number, line, kind, text))
            if len(parcel) == at_once:
                yield b"\n".join(parcel)
                parcel.clear()
        if parcel:
            yield b"\n".join(parcel)


def _pieces(parcel: bytes) -> list[bytes]:
    return parcel.split(b"\n")


def _lost(task: bytes, attempts: int) -> bytes:
    """The answer for a record that no process got through."""
    from gradcli.render.result_json import failed, marked, text  # lazy: start-up: NumPy

    number = int(task.partition(b" ")[0])
    error = lost_process(attempts)
    line = text(marked(failed(error), number), compact=True)
    return _answer(1, [(number, error)], 0, [line])


def _answer(
    done: int, failures: Sequence[tuple[int, GradcliError]], warnings: int, lines: Sequence[str]
) -> bytes:
    """Lines of results behind one that sums them up."""
    summary: dict[str, Any] = {"done": done, "failed": len(failures), "first": {}}
    if failures:
        number, error = failures[0]
        summary["first"] = {"record": number, "code": error.code, "exit_code": error.exit_code}
    summary["warnings"] = warnings
    return json.dumps(summary).encode() + b"\n" + "".join(lines).encode()


def _opened(file: DataFile) -> IO[bytes]:
    if file.path == STDIN:
        return sys.stdin.buffer
    try:
        return opened(file.path)
    except OSError as error:
        raise unreadable(file.path, error) from error


def _texts(file: DataFile, stream: IO[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """Each record's line and its JSON behind `_RIGHT`, or what is wrong behind `_WRONG`."""
    if file.format == "csv":
        from gradcli.files.csv import records  # lazy: start-up: NumPy

        lines = (_decoded(file, f"line {line}", text) for line, text in _lines(file, stream))
        for line, cells in records(lines, file.name):
            if isinstance(cells, str):
                yield line, _WRONG, cells.encode()
            else:
                yield line, _RIGHT, json.dumps(cells).encode()
        return
    for line, text in _lines(file, stream):
        bare = text.removeprefix(b"\xef\xbb\xbf").strip() if line == 1 else text.strip()
        if bare:
            yield line, _RIGHT, bare


def _decoded(file: DataFile, place: str, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        wrong = text[error.start]
        raise file.damaged(place, f"the byte 0x{wrong:02x} is not UTF-8") from error


def _lines(file: DataFile, stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream as they arrive, none of them larger than memory may bear."""
    line = 0
    while text := stream.readline(_LONGEST_RECORD):
        line += 1
        if len(text) == _LONGEST_RECORD:
            raise GradcliError("E602", f"{file.name}: line {line} is too long for a record")
        yield line, text


class _Runner:
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
        """The results of a parcel of records, one on a line, behind a line that sums them up."""
        terminal = Terminal(quiet=True)
        failures = []
        lines = []
        for task in _pieces(parcel):
            number, line, kind, text = task.split(b" ", 3)
            try:
                document, error = self._run(terminal, int(number), int(line), kind, text)
            except UsageError as wrong:
                return json.dumps({"usage": str(wrong)}).encode() + b"\n"
            lines.append(document)
            if error is not None:
                failures.append((int(number), error))
        return _answer(len(lines), failures, terminal.warnings, lines)

    def _run(
        self, terminal: Terminal, number: int, line: int, kind: bytes, text: bytes
    ) -> tuple[str, GradcliError | None]:
        """The line of one record, and the error that ended it."""
        from gradcli.render.result_json import failed, marked  # lazy: start-up: NumPy
        from gradcli.render.result_json import text as text_of  # lazy: start-up: NumPy

        run = Run(terminal, self.options, self.options.record)
        try:
            with run.limited():
                if kind == _WRONG:
                    raise DataFile(f"record {number}").damaged(f"line {line}", text.decode())
                own = _arguments(number, line, text, self.used)
                names = {argument.name for argument in own}
                common = [each for each in self.arguments if each.name not in names]
                value = run.execute(self.program, [*common, *own])
                found = run.document(value)
            return text_of(marked(found, number), compact=True), None
        except GradcliError as error:
            if error.code == "E101" and error.help is None and error.span is not None:
                error.help = f"the record does not give {error.span.text} a value"
            return text_of(marked(failed(error), number), compact=True), error
        except (UsageError, BrokenPipeError):
            raise
        except Exception as error:  # ours: the other records have their results all the same
            bug = GradcliError("E901", f"{type(error).__name__}: {error}")
            return text_of(marked(failed(bug), number), compact=True), bug


def _arguments(number: int, line: int, text: bytes, used: Container[str]) -> list[Argument]:
    """The values of a record that a program uses; raises E507, or E504 for no JSON."""
    from gradcli.files.json import numbered, parse  # lazy: start-up: NumPy
    from gradcli.files.reading import reads_stdin  # lazy: start-up: likewise

    place = f"record {number}"
    file = DataFile(f"{place} (line {line})")
    value = parse(file, _decoded(file, "", text))
    if not isinstance(value, dict):
        raise GradcliError(
            "E507",
            f"{file.name}: a record is an object of names and values",
            help='write one object on a line: {"a": 2, "b": [1, 2]}',
        )
    found = []
    for name, each in value.items():
        if name.partition(":")[0] not in used:
            continue  # data may hold more than a program needs, and under any names
        each = numbered(each)
        word = each if isinstance(each, str) else _shown(each)
        argument = read_argument(f"{name}={word}")
        if argument is None:
            raise GradcliError(
                "E507",
                f"{file.name}: {name!r} is no NAME or NAME:const",
                help="`NAME:const` keeps a value's Python type",
            )
        if argument.file and reads_stdin(argument.file):
            raise GradcliError(
                "E507",
                f"{file.name}: {name!r} names standard input, which one record would use up",
                help=f"give it to all records: {name}=@- on the command line",
            )
        argument.source.name = place
        if not isinstance(each, str):
            argument.held = each
        found.append(argument)
    return found


def _shown(value: Any) -> str:
    """A value as an expression of the language, for diagnostics: shortened where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
