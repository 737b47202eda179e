"""Runs program files, each in a session of its own; or one anew whenever it changes, and shows what
changed in its output.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING, NoReturn

from gradcli.arrays.files.gate import DOCUMENTS, program_stamps
from gradcli.errors import GradcliError
from gradcli.questions.notes.error_notes import note_arguments, note_detachments
from gradcli.running.arguments.files import STDIN, decoded_lines, program_in, read_program
from gradcli.running.arguments.options import PICTURES, Options
from gradcli.running.arguments.words import (
    Argument,
    UsageError,
    arguments_of,
    check_stdin,
    hold_files,
    read_argument,
    stdin_options,
)
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run
from gradcli.running.showing import report
from gradcli.show.style import Style, escaped

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement


def files_and_arguments(words: Sequence[str]) -> tuple[list[str], list[Argument]]:
    """The words of `gradcli run`; raises a usage error where no file is among them."""
    paths = [word for word in words if read_argument(word) is None]
    arguments = arguments_of([word for word in words if word not in paths])
    if not paths:
        raise UsageError("`gradcli run` needs a file, or `-` for standard input")
    return paths, arguments


def batch(
    terminal: Terminal, paths: Sequence[str], arguments: Sequence[Argument], options: Options
) -> int:
    """Run program files, each in a session of its own, the first error ending the run unless
    `--keep-going`.

    Returns:
        The exit code: 0, or that of the first file that failed.

    Raises:
        UsageError: an option names what a program does not have.
    """
    check_stdin(arguments, stdin_options(options) + ["`run -`"] * paths.count(STDIN))
    if options.inputs is not None:
        from gradcli.cli.sweep.sweep import run_records  # lazy: start-up: JSON
        from gradcli.running.source import program_text  # lazy: start-up: click

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

    from gradcli.running.process.workers import (  # lazy: start-up: few runs have several processes
        Work,
        lost_process,
        results,
    )

    hold_files(arguments, options.limits)

    def captured(path: bytes) -> bytes:
        """What a file prints, and what became of it."""
        out, err = StringIO(), StringIO()
        terminal.warnings = 0
        with redirect_stdout(out), redirect_stderr(err):
            error = run_file(terminal, path.decode("utf-8", "surrogateescape"), arguments, options)
        ended = ("", 0) if error is None else (error.code, error.exit_code)
        return json.dumps([out.getvalue(), err.getvalue(), terminal.warnings, ended]).encode()

    def again(path: bytes) -> list[bytes]:
        return [] if path == STDIN.encode() else [path]  # what was read of it is gone

    def lost(path: bytes, attempts: int) -> bytes:
        name = path.decode("utf-8", "surrogateescape")
        error = lost_process(attempts)
        error.message = f"{name}: {error.message}"
        err = StringIO()
        with redirect_stderr(err):
            terminal.error(error)
        return json.dumps(["", err.getvalue(), 0, (error.code, error.exit_code)]).encode()

    tasks = (path.encode("utf-8", "surrogateescape") for path in paths)
    work = Work(captured, again, lost, options.retries)
    with closing(results(tasks, work, options.jobs)) as answers:
        for answer in answers:
            out, err, warnings, (code, exit_code) = json.loads(answer)
            terminal.write(out)
            terminal.pass_on(err)
            terminal.warnings += warnings
            yield code, exit_code


def scripted(terminal: Terminal, path: str, options: Options) -> int:
    """Run a file, and then standard input in the same session; the exit code."""
    run = Run(terminal, options, "graph")
    run.shows_values = True
    run.session.state.library["argv"] = [path]
    try:
        with run.limited():
            run.execute(run.session.parse(f".read {path}", "option FILE"), [])
            _run_stream(terminal, run, [])
    except GradcliError as error:
        note_detachments(error, run, (), [])
        terminal.error(error)
        return error.exit_code
    return 0


def _run_stream(terminal: Terminal, run: Run, arguments: Sequence[Argument]) -> None:
    """Run the statements of standard input as they arrive."""
    lines = decoded_lines(sys.stdin.buffer, "stdin")
    run.execute(
        run.session.parse_stream(lines, "stdin"), arguments, lambda result: terminal.flush()
    )


MOST_OF_A_STREAM = 10_000
"""Statements of standard input that are kept: memory does not grow with its length."""


def _drawn(terminal: Terminal, path: str, options: Options) -> GradcliError | None:
    """Draw the graph of a recording; gives the error that ended it."""
    from gradcli.running.picture import draw_graph  # lazy: start-up: few recordings

    try:
        draw_graph(terminal, options, path)
    except GradcliError as failure:
        terminal.error(failure)
        return failure
    return None


def run_file(
    terminal: Terminal, path: str, arguments: Sequence[Argument], options: Options
) -> GradcliError | None:
    """Run one program file, or standard input as it arrives; gives the error that ended it."""
    try:
        text = "" if path == STDIN or path.endswith(DOCUMENTS) else program_in(path, options)
    except GradcliError as failure:
        terminal.error(failure)
        return failure
    recording = options.recording
    is_drawn = options.format in PICTURES or (recording is not None and not recording.has_data)
    if is_drawn and options.draws_shapes:
        return _drawn(terminal, path, options)
    run = Run(terminal, options, options.record if options.wants_result else None)
    run.session.state.library["argv"] = [path, *options.script]
    if path != STDIN:
        run.session.state.library["folder"] = os.path.dirname(path)
    known: Sequence[Statement] = ()
    error, meant = None, None
    try:
        with run.limited():
            if path == STDIN:
                run.transcript.most = MOST_OF_A_STREAM
                _run_stream(terminal, run, arguments)
            elif path.endswith(DOCUMENTS):
                from gradcli.cli.documents.check import (  # lazy: start-up: few are documents
                    parsed,
                    run_cells,
                )

                cells = parsed(terminal, path, read_program(path))
                known = [each for cell in cells for each in cell.statements]
                run_cells(run, cells, arguments)
            else:
                known = _parsed(run, text, path)
                if run.replay is not None and options.of is None and options.record == "graph":
                    run.replay.let_go()
                run.execute(known, arguments)
                if "yield" in text:
                    run.close_generators()
                run.tell_replay()
            if options.wants_result:
                report(run, compact=True)
            if options.draws_shapes:
                error = _drawn(terminal, path, options)
    except GradcliError as failure:
        meant = note_arguments(failure, known, arguments, f"gradcli run {path}")
        note_detachments(failure, run, known, arguments)
        terminal.error(failure)
        error = failure
        if "yield" in text:
            with suppress(GradcliError), run.limited():
                run.close_generators()
    if options.explain_loops:
        interpreter = run.session.interpreter
        terminal.explain_loops([*(interpreter.timed_loops | interpreter.hot_loops).values()])
    if run.bindings is not None:
        run.bindings.warn_unused(terminal, known if error is not None else (), meant)
    return error


def _parsed(run: Run, text: str, path: str) -> list[Statement]:
    """The program, as objects that the collector passes over: those of a long one live on, and
    would be walked over again and again. Those of one program alone: what others left may be gone.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return run.session.parse(text, path)
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
        if collects:
            gc.enable()


# --- watching -------------------------------------------------------------------------------------


_BETWEEN = 0.2
"""Seconds between two looks at the files."""


class _Recording(Terminal):
    """A terminal that keeps what goes to standard output, and passes it on where it is `live`."""

    def __init__(self, terminal: Terminal, live: bool) -> None:
        for name, value in vars(terminal).items():
            setattr(self, name, value)
        self.live = live
        self.parts: list[str] = []

    def _write(self, text: str) -> None:
        """Keep a text, and print it on the first run."""
        self.parts.append(text)
        if self.live:
            super()._write(text)


def watch(terminal: Terminal, path: str, run: Callable[[Terminal], object]) -> NoReturn:
    """Run a file again and again, until Ctrl-C ends the process.

    The first run prints as it goes; each one after it what came and went in the output since the
    run before. Programs beside the file, which it may import, count as it does.
    """
    before: str | None = None
    while True:
        seen = program_stamps(path)
        recording = _Recording(terminal, before is None)
        run(recording)
        text = "".join(recording.parts)
        if before is not None:
            terminal.write(changes(before, text, terminal.style))
            if before == text:
                terminal.note("the output is the same")
        terminal.flush()
        before = text
        _wait_for_change(path, seen)
        terminal.note(f"{path} or a file beside it changed")


def _wait_for_change(path: str, seen: dict[str, tuple[int, int]]) -> None:
    """Wait until the files are other ones, and are no longer being written."""
    last = seen
    while True:
        time.sleep(_BETWEEN)
        now = program_stamps(path)
        if now != seen and now == last and path in now:
            return
        last = now


_AROUND = 2
"""Lines of what stayed that are shown around what changed."""

_MOST = 2_000
"""Lines of an output that are compared; of a longer one the last."""


def changes(before: str, after: str, style: Style) -> str:
    """The lines that went (`-`) and came (`+`), with those around them; "" where none did."""
    from difflib import SequenceMatcher

    old, new = (text.splitlines()[-_MOST:] for text in (before, after))
    if old == new:
        return ""
    lines: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_AROUND):
        if group[0][1] > 0 or lines:
            lines.append(style.paint("…", "quiet"))
        for tag, first, last, start, end in group:
            if tag == "equal":
                lines += [f"  {escaped(line)}".rstrip() for line in old[first:last]]
                continue
            lines += [style.paint(f"- {escaped(line)}", "error") for line in old[first:last]]
            lines += [style.paint(f"+ {escaped(line)}", "series2") for line in new[start:end]]
        if group[-1][2] < len(old):
            lines.append(style.paint("…", "quiet"))
    return "\n".join(line for n, line in enumerate(lines) if n == 0 or line != lines[n - 1]) + "\n"
