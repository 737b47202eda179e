"""A session: runs programs and yields their results as data.

One-shot, batch, REPL and the Python interface all run programs through `Session.run`. Reading a
program needs neither NumPy nor the catalogue: they are imported when its first statement runs, so a
syntax error is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, Token, copy_context
from functools import cache
from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from gradcli.errors import GradcliError, Source, Span, internal_error
from gradcli.language.parser.parser import parse_program, parser, statements_of
from gradcli.language.tree.syntax import Command
from gradcli.record import Record
from gradcli.state import State, active

if TYPE_CHECKING:
    from gradcli.autograd.graph import Graph
    from gradcli.autograd.recording.recorder import Event, Recorder
    from gradcli.autograd.recording.stopwatch import Stopwatch
    from gradcli.autograd.tensor import Tensor
    from gradcli.language.compiler.base import Compiler, HotLoop
    from gradcli.language.compiler.statements.short_loops import HotClosure
    from gradcli.language.functions.calls import Function
    from gradcli.language.interpreter import Interpreter
    from gradcli.language.tree.control_flow import Run
    from gradcli.language.tree.scopes import Scope
    from gradcli.language.tree.syntax import For, Statement, While
    from gradcli.limits import Limits


class StatementResult(Record):
    """The result of one top-level statement.

    Attributes:
        value: the value of an expression statement, None for others.
    """

    statement: Statement
    value: Any
    seconds: float

    @property
    def span(self) -> Span:
        """The statement's text."""
        return self.statement.span


Runs = TypeVar("Runs", bound=Callable[..., Any])
"""What runs statements."""

_ROOM = 40_000
"""Slots of the host's stack that one frame takes, and leaves nearly as many beside it."""


def with_room(function: Runs) -> Runs:
    """A function in front of whose frame the host gets a large piece of memory for its stack.

    CPython gets it in pieces of 2,000 slots, and gives one back when the first frame in it ends: a
    call that ends up on such a border gets and returns pages of memory each time, and closures,
    which lie deep, meet many borders. That takes 10 µs: it is for many statements.
    """
    of: Any = function
    code = of.__code__.replace(co_stacksize=_ROOM)
    made: Any = FunctionType(code, of.__globals__, of.__name__, of.__defaults__, of.__closure__)
    return made


class Session:
    """Values, state and settings that the programs run in it share.

    Args:
        emit: receives what programs show as they run: `Printed`, `Traced`, `Warned`.
        default_dtype: the name of the dtype of new floating tensors.
        default_device: where new tensors are, None for the CPU.
        record: what to record: None nothing, "graph" what the picture of a graph needs, "ends" what
            backward passes began with and what reached leaves besides, "steps" all their steps,
            "all" operations too, and to keep what nodes saved, "values" operations and what every
            expression of the program gave, "kept" both.
        times: whether to measure how long what is recorded takes.
        limits: how much its programs may use.
        compiles: whether loops and backward passes that run often are compiled.
        manual_seed: the seed of `torch`, `random` and `np.random` before the first line; without
            it `random` starts from the clock, the others from 0.

    Attributes:
        command: carries out the lines that are for the session (`.vars`, `exp?`); without it they
            are errors.
        ended: whether such a line has ended the session: no further statement runs.
        stopwatch: what measures the times, None where nothing does.
    """

    def __init__(
        self,
        emit: Callable[[Any], None] | None = None,
        *,
        default_dtype: str = "float32",
        default_device: str | None = None,
        record: str | None = None,
        times: bool = False,
        limits: Limits | None = None,
        manual_seed: int | None = None,
        compiles: bool = True,
    ) -> None:
        self.default_dtype = default_dtype
        self.default_device = default_device
        self.compiles = compiles
        self._begin(State(emit, limits), manual_seed)
        self.emit = self.state.emit
        self.record = record
        self.stopwatch: Stopwatch | None = None
        self._times = times
        self.command: Callable[[Command], None] = no_commands
        self.ended = False

    def _begin(self, state: State, manual_seed: int | None) -> None:
        """Work on a fresh state from now on, with the session's settings."""
        state.default_dtype = self.default_dtype
        state.default_device = self.default_device
        state.manual_seed = manual_seed
        state.compiles = self.compiles
        self.state = state
        self._interpreter: Interpreter | None = None

    @property
    def interpreter(self) -> Interpreter:
        """The interpreter, made when it is first needed."""
        if self._interpreter is None:
            from gradcli.language.compiler.statements.short_loops import Closures  # lazy: start-up
            from gradcli.language.interpreter import Interpreter  # lazy: start-up
            from gradcli.library import namespace  # lazy: start-up

            self._interpreter = Interpreter(self.state, self.emit, namespace)
            if self.compiles:
                self._interpreter.make_hot_loop = _hot_loop
                self.state.closure_calls = Closures(self._interpreter, _hot_closure)
            if self.record is not None:
                self.state.recorder = self._recorder()
                self.state.frames = {}
                if self._times:
                    self._start_stopwatch()
                if self.record in ("values", "kept"):
                    from gradcli.language.provenance import record_provenance  # lazy: start-up

                    record_provenance(self._interpreter)
        return self._interpreter

    @property
    def recorder(self) -> Any:
        """What records the session, behind all that listen in front of it; None for nothing."""
        recorder = self.state.recorder
        return getattr(recorder, "recorder", recorder)

    def _start_stopwatch(self) -> None:
        """Put a stopwatch in front of the recorder."""
        from gradcli.autograd.recording.stopwatch import (  # lazy: start-up: few are timed
            Stopwatch,
        )

        self.stopwatch = watch = Stopwatch()
        watch.former, self.state.recorder = self.state.recorder, watch

    def _recorder(self) -> Recorder:
        if self.record in ("all", "values", "kept"):
            from gradcli.autograd.recording.trace_recorder import (  # lazy: start-up
                TraceRecorder,
            )

            return TraceRecorder(keeps=self.record != "values", arrays=self.record == "kept")
        from gradcli.autograd.recording.recorder import EndsRecorder, Recorder  # lazy: start-up

        return EndsRecorder() if self.record == "ends" else Recorder(events=self.record != "graph")

    @property
    def values(self) -> dict[str, Any]:
        """The program's names."""
        return self.interpreter.values

    def running(self, place: Span | None = None) -> Running:
        """Work on this session's state; infinities and NaN come without warnings.

        A failure of ours leaves as E901 with the original as its cause, at `place`.
        """
        return Running(self.interpreter.state, place)

    # --- programs -------------------------------------------------------------------------------

    def run(self, text: str, name: str, first_line: int = 1) -> Iterator[StatementResult]:
        """Run a program, its text checked whole before the first statement runs.

        Raises:
            GradcliError: `SyntaxErrors` for a text that is no program, whatever else ends it.
        """
        return self.execute(self.parse(text, name, first_line))

    @staticmethod
    def parse(text: str, name: str, first_line: int = 1) -> list[Statement]:
        """The statements of a program; raises `SyntaxErrors` with all that is wrong with it."""
        return parse_program(Source(name, text, first_line))

    @staticmethod
    def parse_stream(lines: Iterator[str], name: str) -> Iterator[Statement]:
        """The statements of a program as its lines arrive."""
        for source in statements_of(lines, name):
            yield from parse_program(source)

    def expect(self, statements: Iterable[Statement]) -> None:
        """These statements come, where they are known; a stream is not."""
        if isinstance(statements, list):
            self.interpreter.expect(statements)

    def execute(self, statements: Iterable[Statement]) -> Iterator[StatementResult]:
        """Run statements one after the other, up to one that ends the session."""
        self.expect(statements)
        running: Running | None = None
        for statement in statements:
            value = None
            before = perf_counter()
            if running is None:
                running = self.running()
            running.place = statement.span
            with running:
                if type(statement) is Command:
                    self.command(statement)
                    running = None  # it may have begun anew
                else:
                    value = self.interpreter.execute(statement)
            yield StatementResult(statement, value, perf_counter() - before)
            if self.ended:
                return

    def evaluate(self, source: Source) -> Any:
        """The value of a text that is one expression, computed outside the graph."""
        with self.running():
            before, self.state.grad_enabled = self.state.grad_enabled, False
            try:
                return self.interpreter.evaluate(source)
            finally:
                self.state.grad_enabled = before

    # --- values ---------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget all values and begin anew, with the same settings and limits."""
        self._begin(State(self.emit, self.state.limits), self.state.manual_seed)

    def bind(self, name: str, value: Any) -> None:
        """Give a name a value; a tensor gets the name too."""
        from gradcli.autograd.tensor import Tensor  # lazy: start-up

        if type(value) is Tensor:
            value.set_name(name)
        self.values[name] = value

    def override(self, name: str, replace: Callable[[Any], Any] | None) -> None:
        """Let the next top-level assignment to a name store `replace(value)`; None for itself."""
        self.interpreter.overrides.pop(name, None)
        if replace is not None:
            self.interpreter.overrides[name] = replace

    def last_tensor(self) -> tuple[str, Tensor] | None:
        """The tensor that was assigned last at top level, and its name."""
        from gradcli.autograd.tensor import Tensor  # lazy: start-up

        name = self.interpreter.last_assigned
        value = None if name is None else self.values.get(name)
        return (name, value) if name is not None and type(value) is Tensor else None

    # --- differentiation ------------------------------------------------------------------------

    def backward(self, output: Tensor, seed: Tensor | None = None) -> None:
        """Run backward from an output, as `output.backward(seed)` does in a program."""
        place = None if output.grad_fn is None else output.grad_fn.place
        with self.running(place):
            from gradcli.autograd.engine.backward import backward  # lazy: start-up

            recorder = self.recorder
            own = {} if recorder is None else dict(recorder.outputs)
            backward(output, seed)
            if recorder is not None:
                recorder.outputs = own  # which are the program's

    def rehearse(self, output: Tensor, seed: Tensor | None = None) -> list[Event]:
        """The events of a backward pass from an output, which leaves no trace."""
        with self.running():
            from gradcli.autograd.recording.recorder import rehearse  # lazy: start-up

            return rehearse(output, seed)

    def graph(self, tensor: Tensor) -> Graph:
        """The backward graph of a tensor as data."""
        with self.running():
            from gradcli.autograd.graph import Graph  # lazy: start-up

            recorder = self.recorder
            return Graph(tensor, None if recorder is None else recorder.constants)


@cache
def _silence() -> tuple[ContextVar[Any], Any]:
    """The variable of a thread's context that `np.errstate(all="ignore")` sets, and its value.

    To make the value takes ten times as long as to set it, which every statement does.
    """
    import numpy as np  # lazy: start-up

    outside = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    changed = [(each, value) for each, value in inside.items() if outside.get(each) is not value]
    if len(changed) != 1:  # of a NumPy that keeps it elsewhere
        np.seterr(all="ignore")
        return ContextVar("silence"), None
    return changed[0]


class Running:
    """The context in which a session works; see `Session.running`. It is entered many times in
    every run, so it is no generator, and the statements of a program have one in turn.

    Attributes:
        place: where a failure of ours is.
    """

    __slots__ = ("_before", "_silence", "_state", "place")

    def __init__(self, state: State, place: Span | None) -> None:
        self._state = state
        self.place = place

    def __enter__(self) -> None:
        variable, ignored = _silence()
        self._silence: Token[Any] = variable.set(ignored)
        self._before, active.state = active.state, self._state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: Any
    ) -> None:
        self._silence.var.reset(self._silence)
        try:
            if error is not None:
                self._pass_on(error)
        finally:
            active.state = self._before

    def _pass_on(self, error: BaseException) -> None:
        """Add to an error where it was, or raise what it is outside."""
        if isinstance(error, GradcliError):
            if error.span is None:
                error.span = self.place
            if error.modules:
                from gradcli.library.torch.nn.traversal import note_layer  # lazy: start-up

                note_layer(error)
        elif isinstance(error, MemoryError):
            from gradcli.language.objects.exceptions import converted  # lazy: start-up

            failure = converted(error)
            failure.span = self.place
            raise failure from error
        elif isinstance(error, Exception) and not isinstance(error, BrokenPipeError):
            # A broken pipe: whoever received what was emitted has gone.
            raise internal_error(error, self.place) from error


def _hot_closure(interpreter: Any, function: Function, called: int) -> HotClosure:
    """What compiles the calls of the functions with the body of one."""
    from gradcli.loops import hot_loop  # lazy: start-up

    hot = hot_loop.HotClosure(interpreter, function, called)
    interpreter.hot_loops[id(function.statements)] = hot
    return hot


def _hot_loop(
    compiler: Compiler, loop: For | While, scope: Scope, body: Run, in_try: bool
) -> HotLoop:
    """What may compile a loop's iterations: one for each loop, however often that is compiled."""
    from gradcli.loops import hot_loop  # lazy: start-up

    known = compiler.interpreter.hot_loops
    hot = known.get(id(loop))
    if hot is None:
        parser.cache_clear()  # what is loaded again where more is read makes room
        loops = compiler.interpreter.long_loops
        if loops is None:
            hot = hot_loop.HotLoop(compiler, loop, scope, body, in_try)
        else:
            from gradcli.loops.hot_loop import UnheardLoop  # lazy: start-up

            hot = UnheardLoop(compiler, loop, scope, body, in_try, loops)
        known[id(loop)] = hot
    return hot


def no_commands(command: Command) -> None:
    """The answer of a session that carries out no commands: raises E104."""
    raise GradcliError(
        "E104",
        f"`{command.span.text}` is a line for the command line's sessions",
        span=command.span,
        help="a statement that starts with `.` on a line of its own is never part of a program",
    )
