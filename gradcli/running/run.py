"""One run of one program: a session whose output goes to the terminal.

Its transcript has the statements that succeeded, for `.save` and for `name?`.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import length_hint
from time import process_time
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError, Source, Span, Warned
from gradcli.language.events import Printed, Reported
from gradcli.language.parser.parser import parse_program
from gradcli.language.tree.syntax import AugmentedAssign, Command, Name
from gradcli.running.arguments.name_uses import ASSIGNED, BOUND, all_name_uses
from gradcli.running.arguments.options import Options
from gradcli.running.arguments.words import Argument
from gradcli.running.process.interruption import limited_time, memory_ceiling
from gradcli.running.process.terminal import Terminal
from gradcli.session import Session, with_room
from gradcli.show.style import escaped
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement
    from gradcli.recorded.recorded_run import Recorded
    from gradcli.recorded.result import Result
    from gradcli.running.arguments.bindings import Bindings
    from gradcli.running.process.progress import Rate
    from gradcli.running.recordings.replay import Replay
    from gradcli.session import StatementResult

# --- the transcript -----------------------------------------------------------------------------


_LAST = r"(?<!\w)_(?!\w)"
"""A use of `_`, the value shown last."""


class Transcript:
    """The statements of a session in the order in which they succeeded.

    Attributes:
        most: how many statements are kept, the oldest being forgotten first; None for all.
        lines: how many lines `program` has, nothing forgotten.
    """

    def __init__(self) -> None:
        self.failed = self.lines = 0
        self.most: int | None = None
        self._statements: deque[tuple[Span, bool]] = deque()
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._statements)

    def add(self, span: Span, is_last: bool = False) -> None:
        """Keep a statement; `is_last` if its value became `_`."""
        self._statements.append((span, is_last))
        self.lines += span.text.count("\n") + 1
        if self.most is not None and len(self._statements) > self.most:
            self._statements.popleft()
            self._forgotten += 1

    def last(self) -> Span | None:
        """The statement that was kept last."""
        return self._statements[-1][0] if self._statements else None

    def clear(self) -> None:
        """Forget everything."""
        self._statements.clear()
        self._forgotten = 0
        self.failed = self.lines = 0

    def program(self) -> str:
        """The statements as a program that leaves the same values, without relying on `_` being
        kept: an expression whose value a later statement reads as `_` is assigned to it.

        Raises E602 where some of them were forgotten.
        """
        if self._forgotten:
            raise GradcliError(
                "E602",
                f"{self._forgotten + len(self):,} statements were read as they arrived, and only"
                f" the last {len(self):,} are kept",
                help="put the program into a file, and run that",
            )
        texts = [span.text for span, _ in self._statements]
        last = None
        for number, (_, is_last) in enumerate(self._statements):
            if last is not None and re.search(_LAST, texts[number]):
                texts[last] = f"_ = {texts[last]}"
                last = None
            if is_last:
                last = number
        return "".join(f"{text}\n" for text in texts)

    def assignment(self, name: str) -> Span | None:
        """The statement that gave a name its value last, None if none did."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        for span, _ in reversed(self._statements):
            if not word.search(span.text):
                continue
            if any(_gives(each, name) for each in parse_program(Source("", span.text))):
                return span
        return None


def _gives(statement: Statement, name: str) -> bool:
    """Whether a statement gives a name a value anywhere in it."""
    if isinstance(statement, AugmentedAssign):
        return isinstance(statement.target, Name) and statement.target.name == name
    return any(
        use.name == name and use.how in (ASSIGNED, BOUND) for use in all_name_uses(statement)
    )


# --- runs ---------------------------------------------------------------------------------------


Handler = Callable[["Run", Any], None]

HANDLERS: dict[type, Handler] = {}
"""Who answers what a program asks for, by the event's class, a dot-command's among them.
`repl/dispatch.py` fills it: the answers run programs themselves.
"""


_OF_LIMITS = 5
"""The exit code of what ends a program by force."""


class Run:
    """One program with a session of its own.

    Args:
        handlers: who answers the program's events, by their class. What is printed is shown, and
            an event that nobody answers is a warning.

    Attributes:
        transcript: the statements that succeeded.
        mode: how values are shown, one of `FORMATS`.
        muted: whether what the program shows is kept back, warnings too.
        mistakes: of the warnings that were kept back those of a training that goes wrong though its
            gradients are right.
        seconds: how long its statements have run.
        work: the seconds of processor time that they took, with what was done with their results,
            however busy the machine is.
        reading: the files that `.read` is running, outermost first.
        statement: the one that runs, or ran last.
        asked: how often the program asked to see a graph or its gradients.
        collected: what the program printed, where that is part of a document.
    """

    def __init__(
        self,
        terminal: Terminal,
        options: Options,
        record: str | None,
        handlers: Mapping[type, Handler] = HANDLERS,
    ) -> None:
        self.terminal = terminal
        self.handlers = handlers
        self.options = options
        self.collected: list[str] = []
        self.session = Session(
            self._emit,
            default_dtype=options.dtype or "float32",
            default_device=options.device,
            record=record,
            times=record == "all" and options.steps and options.recording is None,
            limits=options.limits,
            manual_seed=options.manual_seed,
            compiles=not options.no_compiled_loops,
        )
        self.session.command = lambda command: self.handlers[Command](self, command)
        self.replay: Replay | None = None
        self._rate: tuple[Any, Rate, int] | None = None
        self._begin()
        self.transcript = Transcript()
        self.shows_values = False
        self.muted = False
        self.mistakes: list[Warned] = []
        self.timed = False
        self.seconds = self.work = 0.0
        self.mode = "text"
        self.reading: list[str] = []
        self.statement: Statement | None = None
        self.asked = 0
        self.bindings: Bindings | None = None

    def _begin(self) -> None:
        """Set up a session that has run nothing yet."""
        if self.options.watched is not None:
            raise GradcliError(
                "E506",
                f"{self.options.watched.path} has the figures of each step, and no program",
                help="`gradcli blame` and `gradcli explain --flow` answer from it; what is asked"
                " of a program is asked of a recording that was made without --watch",
            )
        if self.options.recording is not None:
            self.begin_replay()
        print_options = self.session.state.print_options
        if self.options.precision is not None:
            print_options.precision = self.options.precision
        if self.options.full:
            print_options.threshold = float("inf")

    def begin_replay(self) -> None:
        """Let the program of the options' recording run in this session."""
        from gradcli.running.recordings.replay import (  # lazy: start-up: few are
            Replay,
            Shapes,
        )

        recording = self.options.recording
        assert recording is not None
        shapes = Shapes(self.options.saved) if self.options.graph_alone else None
        self.replay = Replay(recording, self.session, self.options.dtype, self.bound_names, shapes)

    def name_so_far(self) -> str:
        """What diagnostics call the statements that succeeded: a recording's path, whose lines lead
        on to the user's files, where they begin with its program.
        """
        recording = self.options.recording
        if recording is None:
            return "session"
        program, so_far = recording.program_in(self.options.dtype), self.transcript.program()
        return recording.path if so_far.startswith(program) else "session"

    def reset(self) -> None:
        """Forget all values, and what `.save` would write."""
        self.session.reset()
        self._begin()
        self.transcript.clear()

    def follow(self, statements: Iterable[Statement]) -> Iterator[StatementResult]:
        """Run statements one after the other, and keep those that succeed."""
        timed, begun = self.timed, process_time()
        self.session.expect(statements)
        for result in self.session.execute(self._noted(statements)):
            self.seconds += result.seconds
            before, begun = begun, process_time()
            self.work += begun - before
            if self.replay is not None:
                self.replay.after(result.statement)
            is_last = result.value is not None and self.shows_values and not self.reading
            if is_last:
                self.session.values["_"] = result.value
            if type(result.statement) is not Command:
                self.transcript.add(result.span, is_last)
            yield result
            if timed and self.timed:
                self.terminal.note(f"{_duration(result.seconds)}: {_shortened(result.span.text)}")
            timed = self.timed

    def _noted(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        for statement in statements:
            self.statement = statement
            if self.replay is not None:
                self.replay.before(statement)
                if self.replay.leaves_out(statement):
                    continue
            yield statement

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Work on the session's state within new limits of time and steps."""
        state = self.session.state
        state.steps.left = state.limits.steps
        before, active.state = active.state, state
        try:
            with self._watched(), limited_time(state, self.terminal.error):
                yield
        finally:
            active.state = before

    def _watched(self) -> AbstractContextManager[None]:
        """A line on a terminal that says where the program is, and how far."""
        if not sys.stderr.isatty():
            return nullcontext()
        from gradcli.running.process.progress import watched  # lazy: start-up: on a terminal

        return watched(self.terminal, self._state_of_work)

    def _state_of_work(self) -> str:
        """The line that is at work, and the loop rounds and calls so far."""
        state = self.session.state
        span = state.place or (self.statement.span if self.statement is not None else None)
        place = "" if span is None else f"{escaped(span.source.name)}:{span.line}  "
        far = self._rounds()
        if far is not None:
            return f"{place}{far}"
        count = state.limits.steps - state.steps.left
        return f"{place}{count:,} rounds and calls" if count else place

    def _rounds(self) -> str | None:
        """How far the outermost loop over a sequence has come, and the time that is left."""
        outermost = self.session.state.outermost
        if outermost is None:
            return None
        iterator, total = outermost
        done = total - length_hint(iterator)
        if self._rate is None or self._rate[0] is not iterator:
            from gradcli.running.process.progress import Rate  # lazy: start-up: on a terminal

            self._rate = iterator, Rate(), done
        _, rate, before = self._rate
        share = done / total if total else 1.0
        speed = rate.text(done - before, share) if done > before else ""
        return f"{share:.0%} of {total:,} rounds{speed}"

    @contextmanager
    def within_memory(self) -> Iterator[None]:
        """Work within the limit of memory."""
        limits = self.session.state.limits
        try:
            with memory_ceiling(limits, self.terminal.error):
                yield
        except MemoryError as error:
            raise limits.out_of_memory() from error

    @with_room
    def execute(
        self,
        statements: Iterable[Statement],
        arguments: Sequence[Argument],
        after: Callable[[StatementResult], None] | None = None,
    ) -> Any:
        """Run statements, the arguments bound where their names are first used.

        Args:
            after: called with the result of each.

        Returns:
            The value of the last statement, None unless it is an expression.
        """
        value = None
        if self.options.device is not None:
            from gradcli.arrays.backend import located  # lazy: start-up: NumPy

            # Before the ceiling on memory: what the GPU's libraries take is not the program's.
            located("--device", self.options.device)
        with self.within_memory():
            from gradcli.running.arguments.bindings import Bindings  # lazy: start-up: NumPy

            self.bindings = Bindings(arguments, self.session, self.options)
            for result in self.follow(self.bindings.meet(statements)):
                value = result.value
                if after is not None:
                    after(result)
        return value

    def close_generators(self) -> None:
        """Close the generators that names still lead to, as Python does when a program ends: their
        `finally` blocks run, and what they raise then is told and ignored.
        """
        from gradcli.language.objects import iteration  # lazy: start-up: few programs have any
        from gradcli.library.torch.nn.traversal import held_values  # lazy: start-up: few have any

        with self.session.running():
            for _, value in list(held_values(self.session.state)):
                if type(value) is not iteration.Iterator or value.kind != "generator":
                    continue
                try:
                    value.language_getattr("close")()
                except GradcliError as error:
                    if error.exit_code == _OF_LIMITS:
                        raise
                    self.terminal.note(
                        f"ignored as a generator was closed at the end: {error.raises}:"
                        f" {error.message}"
                    )

    def tell_replay(self) -> None:
        """Say of a recording's program how its results compare with those of the run."""
        if self.replay is None:
            return
        replaced = self.bound_names()
        differs = self.replay.difference_told()
        if replaced:
            self.terminal.note(self.replay.told_of_replaced(replaced))
        elif differs is not None:
            self.terminal.warning(differs)
        elif not self.replay.recording.is_told:
            self.replay.recording.is_told = True
            self.terminal.note(self.replay.told())

    def bound_names(self) -> list[str]:
        """The names that arguments were bound to."""
        return [] if self.bindings is None else [name for name, _ in self.bindings.inputs()]

    def structures(self) -> list[tuple[str, Any, list[str]]]:
        """The lists, tuples and dicts that Python gave as inputs: the name, what it was bound to,
        the paths of the tensors in it.
        """
        bindings = {} if self.bindings is None else self.bindings.bindings
        return [
            (name, each.bound, [path for path, _ in each.tensors()])
            for name, each in bindings.items()
            if type(each.bound) in (list, tuple, dict)
        ]

    @property
    def has_numbers(self) -> bool:
        """Whether its tensors hold numbers, and not shapes alone."""
        return self.replay is None or self.replay.shapes is None

    def arguments(self) -> list[Argument]:
        """The arguments that the program was given."""
        if self.bindings is None:
            return []
        return [binding.argument for binding in self.bindings.bindings.values()]

    def result(self, value: Any, draws: bool = False) -> Result | None:
        """Find the output, differentiate it if needed, and collect the result, if any.

        Args:
            draws: whether it is the graph that is wanted: of an output without one, or that is a
                leaf, that of what `backward()` was called on last is taken, unless `--of` names the
                output.
        """
        from gradcli.running.report import differentiated, result_of  # lazy: start-up: NumPy

        inputs = [] if self.bindings is None else self.bindings.inputs()
        result = result_of(self.session, self.options, inputs, value)
        root = None if result is None else result.graph.root
        is_bare = result is not None and (root is None or root.leaf is not None)
        if draws and is_bare and self.options.of is None:
            named = differentiated(self.session)
            if named is not None:
                return result_of(self.session, self.options, inputs, named[1])
        return result

    def computed(self, value: Any) -> Result | None:
        """The same of what the program computes, which may be what it went backward from.

        Raises:
            GradcliError: E402 for a leaf that no argument gave, and as `result`.
        """
        from gradcli.running.report import (  # lazy: start-up: NumPy
            bare_leaf,
            computed_output,
            result_at,
        )

        named = computed_output(self.session, self.options, value)
        if named is None:
            return None
        inputs = [] if self.bindings is None else self.bindings.inputs()
        output = named[1]
        is_input = any(tensor is output for _, tensor in inputs)
        if output.requires_grad and output.grad_fn is None and not is_input:
            raise bare_leaf()
        return result_at(self.session, self.options, inputs, named, again=False)

    def recorded(
        self, statements: Sequence[Statement], value: Any, differentiates: bool
    ) -> Recorded:
        """The run with all its values; `differentiates` to end it with a backward pass."""
        from gradcli.recorded.recorded_run import Recorded  # lazy: start-up: NumPy

        recorder, provenance = self.session.recorder, self.session.interpreter.provenance
        assert provenance is not None
        name, output = None, None
        if differentiates and not recorder.passes:
            result = self.result(value)
            if result is not None:
                name, output = result.name, result.output
        else:
            from gradcli.running.report import find_output  # lazy: start-up: NumPy

            named = find_output(self.session, self.options, None)
            if named is not None:
                name, output = named
        names = self.session.state.names()
        with self.session.running():
            recorded = Recorded(statements, names, recorder, provenance, output, name)
        recorded.has_numbers = self.has_numbers
        if self.options.recording is not None:
            recorded.rebound = self.options.recording.rebound
        return recorded

    def show_value(self, value: Any) -> None:
        """Show the value of an expression."""
        from gradcli.show.values import shown  # lazy: start-up: NumPy

        text = shown(value, self.mode, self.terminal.style, full=self.options.full)
        if self.mode == "table":
            self.show(text)
        else:
            self._emit(Printed(text))

    def printed(self, text: str) -> None:
        """Show what the program printed."""
        if self._collects:
            self.collected.append(text)
        else:
            self.terminal.print(text, self.options.limits.files)

    @property
    def _collects(self) -> bool:
        """Whether what is printed is part of a document."""
        return self.options.json and not self.shows_values

    def show(self, text: str) -> None:
        """Show text of gradcli's own, which may be coloured, where the program's goes too."""
        if self.muted:
            return
        if self._collects:
            self.collected.append(text)
        elif self.shows_values and type(self.statement) is Command and self.options.limits.files:
            self.terminal.page(text)
        else:
            self.terminal.write(text)

    def tell_mistakes(self) -> None:
        """Warn of the mistakes that were kept back, behind an answer."""
        for each in self.mistakes:
            self.terminal.warning(each)

    def _emit(self, event: Any) -> None:
        """Show or answer an event of the program."""
        if self.muted:
            if type(event) is Warned and event.code in _MISTAKES:
                self.mistakes.append(event)
            return
        if isinstance(event, Printed):
            self.printed(event.text)
        elif isinstance(event, Reported):
            self.terminal.report(event.text, self.options.limits.files)
        elif type(event) in self.handlers:
            self.handlers[type(event)](self, event)
        else:
            self.terminal.warning(event)


# fmt: off
_MISTAKES = frozenset((
    "W001", "W002", "W004", "W017", "W018", "W020", "W021", "W023", "W024", "W026",
    "W029", "W030",
))
# fmt: on
"""Warnings of what no gradient shows: shapes that meet in another way than is meant, probabilities
where scores are expected, gradients that are never cleared.
"""

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
