"""What one-shot and batch have in common: a session whose output goes to the terminal, and what is
said of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.cli.arguments.bindings import Bindings
from gradcli.cli.arguments.files import write_result
from gradcli.cli.arguments.options import Options
from gradcli.cli.arguments.values import Argument
from gradcli.cli.process.interruption import limited_time
from gradcli.cli.process.memory import memory_ceiling
from gradcli.cli.process.terminal import Terminal
from gradcli.cli.program.transcript import Transcript
from gradcli.errors import GradcliError
from gradcli.language.events import Asked, Explained, Printed, Traced
from gradcli.language.tree import Command
from gradcli.render.style import escaped
from gradcli.session import Session
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.explain.result import Result
    from gradcli.language.tree import Statement
    from gradcli.session import StatementResult


class Run:
    """One program with a session of its own.

    Args:
        terminal: where it shows things.
        options: what the command line asks for.
        record: what the session records.

    Attributes:
        session: the session.
        transcript: the statements that succeeded.
        shows_values: whether the values of expressions are shown and become `_`.
        mode: how they are shown, one of `FORMATS`.
        muted: whether what the program shows is kept back, warnings too.
        timed: whether the time of each statement is shown.
        seconds: how long its statements have run.
        reading: the files that `.read` is running, outermost first.
        bindings: the arguments, None where there are none.
    """

    __slots__ = (
        "_printed",
        "bindings",
        "mode",
        "muted",
        "options",
        "reading",
        "seconds",
        "session",
        "shows_values",
        "terminal",
        "timed",
        "transcript",
    )

    def __init__(self, terminal: Terminal, options: Options, record: str | None) -> None:
        self.terminal = terminal
        self.options = options
        self._printed: list[str] = []
        self.session = Session(
            self._emit,
            default_dtype=options.dtype or "float32",
            default_device=options.device,
            record=record,
            limits=options.limits,
        )
        self.session.command = self._command
        self._set_print_options()
        self.transcript = Transcript()
        self.shows_values = False
        self.muted = False
        self.timed = False
        self.seconds = 0.0
        self.mode = "text"
        self.reading: list[str] = []
        self.bindings: Bindings | None = None

    def _set_print_options(self) -> None:
        print_options = self.session.state.print_options
        if self.options.precision is not None:
            print_options.precision = self.options.precision
        if self.options.full:
            print_options.threshold = float("inf")

    def reset(self) -> None:
        """Forget all values, and what `.save` would write."""
        self.session.reset()
        self._set_print_options()
        self.transcript.clear()

    def follow(self, statements: Iterable[Statement]) -> Iterator[StatementResult]:
        """Run statements one after the other, and keep those that succeed."""
        timed = self.timed
        for result in self.session.execute(statements):
            self.seconds += result.seconds
            is_last = result.value is not None and self.shows_values and not self.reading
            if is_last:
                self.session.values["_"] = result.value
            if type(result.statement) is not Command:
                self.transcript.add(result.span, is_last)
            yield result
            if timed and self.timed:
                self.terminal.note(f"{_duration(result.seconds)}: {_shortened(result.span.text)}")
            timed = self.timed

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Work on the session's state, within its limits of time and steps, which start anew
        here.
        """
        state = self.session.state
        state.steps.left = state.limits.steps
        before, active.state = active.state, state
        try:
            with limited_time(state, self.terminal.error):
                yield
        finally:
            active.state = before

    @contextmanager
    def within_memory(self) -> Iterator[None]:
        """Work within the limit of memory."""
        import numpy  # noqa: F401  its libraries and their threads are not the program's

        limits = self.session.state.limits
        try:
            with memory_ceiling(limits):
                yield
        except MemoryError as error:
            raise limits.out_of_memory() from error

    def execute(
        self,
        statements: Iterable[Statement],
        arguments: Sequence[Argument],
        after: Callable[[], None] | None = None,
    ) -> Any:
        """Run statements, the arguments bound where they are first mentioned.

        Args:
            statements: the program, or the statements of a stream as they arrive.
            arguments: the arguments.
            after: called behind each statement.

        Returns:
            The value of the last statement, None unless it is an expression.
        """
        value = None
        if self.options.device is not None:
            from gradcli.arrays.backend import located

            # Before the ceiling on memory: what the GPU's libraries take is not the program's.
            located("--device", self.options.device)
        with self.within_memory():
            self.bindings = Bindings(arguments, self.session, self.options)
            for result in self.follow(self.bindings.meet(statements)):
                value = result.value
                if after is not None:
                    after()
        return value

    def report(self, value: Any = None, *, compact: bool = False) -> bool:
        """Show what the run came to and write it to the file that was asked for.

        Args:
            value: the value of the last statement, which is the output if it is a tensor.
            compact: JSON on one line.

        Returns:
            Whether there was a tensor to report on.
        """
        with self.within_memory():
            return self._report(value, compact)

    def document(self, value: Any = None) -> dict[str, Any]:
        """What the run came to as a JSON object."""
        with self.within_memory():
            return self._document(self.result(value))

    def result(self, value: Any) -> Result | None:
        """Find the output, differentiate it where the program did not, and collect what came of
        it; None for a program without a tensor.
        """
        from gradcli.cli.program.report import result_of

        inputs = [] if self.bindings is None else self.bindings.inputs()
        return result_of(self.session, self.options, inputs, value)

    def _report(self, value: Any, compact: bool) -> bool:
        from gradcli.cli.program.report import show

        result = self.result(value)
        if self.options.json:
            compact = compact or self.options.format == "jsonl"
            self.terminal.write(self._json(result, compact))
        elif result is not None:
            show(self.terminal, self.session, self.options, result)
        if self.options.output is not None:
            write_result(self.options.output, result, lambda: self._json(result, False))
        return result is not None

    def _json(self, result: Any, compact: bool) -> str:
        from gradcli.render.result_json import text

        return text(self._document(result), compact=compact)

    def _document(self, result: Any) -> dict[str, Any]:
        from gradcli.render.result_json import document

        with self.session.running():
            steps = self.options.trace == "steps"
            return document(result, "".join(self._printed), steps=steps)

    def _command(self, command: Command) -> None:
        from gradcli.cli.dot_commands.table import carry_out

        carry_out(self, command)

    def show_value(self, value: Any) -> None:
        """Show the value of an expression."""
        from gradcli.render.values import shown

        text = shown(value, self.mode, self.terminal.style, full=self.options.full)
        if self.mode == "table":
            self.show(text)
        else:
            self._emit(Printed(text))

    def show(self, text: str) -> None:
        """Show text of gradcli's own, which may be coloured, where the program's goes too."""
        if self.muted:
            return
        if self.options.json and not self.shows_values:
            self._printed.append(text)
        else:
            self.terminal.write(text)

    def _emit(self, event: Any) -> None:
        """Show what the program shows."""
        if self.muted:
            return
        if isinstance(event, Printed):
            # What came out of a file must not command the terminal.
            on_terminal = self.terminal.style.width is not None
            shown = escaped(event.text) if on_terminal else event.text
        elif isinstance(event, Traced):
            shown = f"{self._traced(event)}\n"
        elif isinstance(event, Explained):
            from gradcli.cli.commands.explain import explained_tensor

            shown = explained_tensor(self, event)
        elif isinstance(event, Asked):
            from gradcli.cli.dot_commands.ask import answer

            answer(self, event.command, event.question)
            return
        else:
            self.terminal.warning(event)
            return
        self.show(shown)

    def _traced(self, event: Traced) -> str:
        from gradcli.cli.program.report import trace_text
        from gradcli.explain.result import Result

        tensor = event.tensor
        events = self.session.rehearse(tensor) if event.style == "steps" else ()
        graph = self.session.graph(tensor)
        return trace_text(
            self.terminal, event.style, Result(tensor.name, tensor, None, (), graph, events)
        )


_LONGEST_TIMED = 60


def _duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _shortened(text: str) -> str:
    """The first line of a statement, cut where it is long."""
    line, _, more = text.partition("\n")
    cut = len(line) > _LONGEST_TIMED or more
    return f"{line[:_LONGEST_TIMED].rstrip()} …" if cut else line


def explain_missing(
    error: GradcliError,
    statements: Sequence[Statement],
    arguments: Sequence[Argument],
    command: str,
) -> None:
    """Let the error of a name without a value show how to give it one.

    Args:
        error: what ended the run.
        statements: the program.
        arguments: the arguments that were given.
        command: the command line up to the arguments.
    """
    if error.code != "E101" or error.span is None:
        return
    from gradcli.cli.arguments.name_uses import ASSIGNED, BOUND, mentions
    from gradcli.language.hints.spelling import ADVICE, SPELLINGS
    from gradcli.language.library.namespace import UNSUPPORTED, table_of

    known = {argument.name for argument in arguments}
    missing: dict[str, None] = {}
    mentioned: set[str] = set()
    for statement in statements:
        for name, how in mentions(statement).items():
            mentioned.add(name)
            if how in (ASSIGNED, BOUND):
                known.add(name)
            elif name not in known and table_of(name) is None:
                missing.setdefault(name)
    if error.span.text not in missing or error.span.text in {*UNSUPPORTED, *ADVICE, *SPELLINGS}:
        return
    if error.help is not None and any(f"`{name}`" in error.help for name in known):
        return  # a slip in one of the program's own names
    given = [each.source.text for each in arguments if each.name in mentioned]
    wanted = [f"{name}={number}" for number, name in enumerate(missing, 2)]
    from shlex import join

    example = f"give it a value: {command} {join([*given, *wanted])}"
    if error.help is None:
        error.help = example
    else:  # what the name was likely meant to be
        error.notes = (*error.notes, f"or {example}")


def prove_cut(
    error: GradcliError,
    run: Run,
    statements: Sequence[Statement],
    arguments: Sequence[Argument],
) -> None:
    """Let the error of a tensor without a graph, or without a gradient, show where the graph was
    cut.
    """
    if error.code == "E402" or (error.code == "E202" and error.labels):
        from gradcli.cli.commands.error_notes import prove

        prove(error, run, statements, arguments)
