"""Runs a program again with another text, other values or another dtype, and shows nothing; and
tells when it wrote to its leaves: a gradient belongs to the values that the last write left.

A backward pass whose graph is gone is explained from a second run of the session, recorded.
"""

from __future__ import annotations

import gc
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from copy import copy
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.dtypes import boolean
from gradcli.arrays.files.recording import MOST_DRAWN
from gradcli.arrays.layout.meta import MetaArray
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.recording.recorder import Arrival, Listener, Step
from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import Tensor, gradient_edge, is_usable_leaf
from gradcli.errors import GradcliError, Source, Span
from gradcli.language.compiler.base import Running
from gradcli.language.events import Explained, Shown, Traced
from gradcli.language.long_loops import LoopCompiler
from gradcli.language.rounds import (
    NotRecorded,
    check_graph,
    check_recorded,
    hear_passes,
    record_rounds,
)
from gradcli.language.tree import control_flow
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.language.tree.syntax import Command
from gradcli.library.torch.nn.attributes import is_initialised
from gradcli.library.torch.nn.layers.lazy import is_uninitialized
from gradcli.library.torch.nn.module import Module
from gradcli.library.torch.nn.traversal import held_leaves
from gradcli.record import Record
from gradcli.recorded.ledger import last_pass
from gradcli.running.arguments.bindings import mapped
from gradcli.running.arguments.name_uses import assigned_again
from gradcli.running.arguments.words import Argument
from gradcli.running.report import computed_output
from gradcli.running.run import Run

if TYPE_CHECKING:
    from gradcli.autograd.node import Node
    from gradcli.autograd.recording.recorder import Event
    from gradcli.language.long_loops import Rounds
    from gradcli.language.tree.syntax import Statement
    from gradcli.recorded.result import Result
    from gradcli.running.arguments.options import Options
    from gradcli.running.process.terminal import Terminal
    from gradcli.running.run import Run
    from gradcli.running.source import Asked


# --- writes to leaves -----------------------------------------------------------------------------


def tell_of_statements(interpreter: Running, ended: Callable[[int], None]) -> None:
    """Call `ended` after each statement that the interpreter runs from now on, with how many
    statements stand around it; of iterations in a row that are not recorded, once behind the last.
    """
    interpreter.statement_ended = ended
    loops = interpreter.long_loops
    if loops is None:
        interpreter.make_hot_loop = None
    else:
        loops.resumed = lambda: ended(interpreter.depth)
    interpreter.compiler = _TellingCompiler(interpreter)


class _TellingCompiler(LoopCompiler):
    """Compiles closures of statements that tell of their end."""

    __slots__ = ()

    def statement(self, node: tree.Statement, scope: Scope) -> control_flow.Run:
        run = super().statement(node, scope)
        interpreter, ended = self.interpreter, self.interpreter.statement_ended
        assert ended is not None
        loops = self.loops

        def run_and_tell(variables: Variables) -> Any:
            interpreter.depth += 1
            try:
                control = run(variables)
            finally:
                interpreter.depth -= 1
            if loops is None or not loops.paused:
                ended(interpreter.depth)
            return control

        return run_and_tell


Place = tuple[int | str, str]
"""Where a leaf stands, the same in every run: the number of its module, in the order in which they
were made, and its name there; or "" and a name of the program's.
"""


class Moment(Record):
    """The end of a statement, after which the output is computed from a leaf.

    Attributes:
        number: how many statements ended before.
        place: of the leaf then, when it may have another name.
    """

    number: int
    place: Place


Moments = Mapping[str, Moment]
"""The moments of leaves, by the names that they have in the end."""


class Writes(Listener):
    """The writes to the leaves of a run, which it hears: also those through other tensors that show
    a leaf's memory, which no version counts, and those that change nothing.

    Args:
        by_value: whether leaves are compared by what they hold too, as NumPy writes to memory.

    Attributes:
        nodes: the number of the node made last, when each statement ended, and `depths`: how many
            statements stand around it.
        at: the statements that wrote to each leaf, by its `id`.
        first: the statement behind which each leaf was there.
        state: the statements that changed what models hold: they made parameters, or wrote to any
            leaf or buffer.
    """

    def __init__(self, run: Run, by_value: bool) -> None:
        super().__init__()
        self.nodes: list[int] = []
        self.depths: list[int] = []
        self.at: dict[int, list[int]] = {}
        self.first: dict[int, int] = {}
        self.state: list[int] = []
        self._run = run
        self._by_value = by_value
        self._known: dict[int, tuple[Tensor, Any, int]] = {}
        self._written: list[Any] = []
        tell_of_statements(run.session.interpreter, self._ended)
        self.former, run.session.state.recorder = run.session.state.recorder, self

    def write(self, tensor: Tensor, *what: Any) -> None:
        """What is written to a tensor is written to all that show its memory."""
        if type(tensor.array) is np.ndarray:
            self._written.append(tensor.array)
        super().write(tensor, *what)

    def replaced(self, tensor: Tensor, new: Tensor) -> None:
        """A tensor shows other memory, which holds what it holds from now on."""
        if type(tensor.array) is np.ndarray:
            self._written.append(tensor.array)
        super().replaced(tensor, new)

    def _ended(self, depth: int) -> None:
        self.depths.append(depth)
        number = len(self.nodes)
        self.nodes.append(self._run.session.state.sequence_nr)
        has_changed = any(map(self._is_written, _buffers(self._run)))
        for (module, _), leaf in placed_leaves(self._run):
            array = to_host(leaf.array)
            now = leaf, np.array(array) if self._by_value else None, leaf.version
            _, former, counted = self._known.get(id(leaf), now)
            if (
                counted != leaf.version
                or self._is_written(array)
                or (self._by_value and not np.array_equal(former, array, equal_nan=True))
            ):
                self.at.setdefault(id(leaf), []).append(number)
                has_changed = True
            has_changed |= id(leaf) not in self.first and module != ""
            self.first.setdefault(id(leaf), number)
            self._known[id(leaf)] = now
        if has_changed:
            self.state.append(number)
        self._written.clear()

    def _is_written(self, array: Any) -> bool:
        return any(np.may_share_memory(array, each) for each in self._written)

    def ahead_of(self, leaf: Tensor, node: int, always: bool) -> int | None:
        """The statement behind which a leaf has what the one that made a node read: the last that
        wrote to it, or changed what models hold, such as a running mean or the average of a leaf.
        None where nothing did since the leaf was there, unless it is wanted `always`.
        """
        own = bisect_left(self.nodes, node)
        began = (self.first.get(id(leaf), own), *self.at.get(id(leaf), ()))
        begun = max((n for n in began if n < own), default=own)
        # What was computed from it in between, outside the graph, is of the same values.
        last = max((n for n in self.state if begun <= n < own), default=begun)
        if id(leaf) not in self.at and not always and last == begun:
            return None
        if last < own:
            return last
        # The node of a custom function is made behind the statements of its forward().
        inside = self.depths[own] if own < len(self.depths) else 0
        return next((n for n in reversed(range(own)) if self.depths[n] <= inside), None)


def placed_leaves(run: Run) -> Iterator[tuple[Place, Tensor]]:
    """The leaves that require grad, parameters and those that names hold, with their places."""
    modules = run.session.state.modules
    for number, module in [] if modules is None else list(modules.items()):
        parameters = module._parameters.items() if is_initialised(module) else ()
        for name, each in parameters:
            if each is not None and _has_elements(each):
                yield (number, name), each
    for name, each in leaves(run):
        yield ("", name), each


def leaves(run: Run) -> Iterator[tuple[str, Tensor]]:
    """The leaves that names of a program lead to and that require grad, those in lists, dicts and
    objects too; none without a shape or without elements.
    """
    return (each for each in held_leaves(run.session.state) if _has_elements(each[1]))


def _buffers(run: Run) -> Iterator[Any]:
    """The arrays of the buffers of modules."""
    modules = run.session.state.modules
    for module in [] if modules is None else list(modules.values()):
        for each in getattr(module, "_buffers", {}).values():
            if each is not None and type(each.array) is np.ndarray:
                yield each.array


def _has_elements(tensor: Tensor) -> bool:
    """Whether a tensor has a shape, and values behind it."""
    return not is_uninitialized(tensor) and not isinstance(tensor.array, MetaArray)


def at_statements(
    run: Run, numbers: Collection[int], visit: Callable[[int, dict[Place, Tensor]], None]
) -> None:
    """Let a run call `visit` with its leaves as statements of these numbers have ended."""
    count = 0

    def ended(depth: int) -> None:
        nonlocal count
        if count in numbers:
            visit(count, dict(placed_leaves(run)))
        count += 1

    tell_of_statements(run.session.interpreter, ended)


def at_moments(run: Run, moments: Moments, values: Mapping[str, Any]) -> dict[str, int]:
    """Let a run give leaves their values as it reaches the moments of these.

    Returns:
        The number of the node made last as each got its value, filled as the program runs.
    """
    given: dict[str, int] = {}

    def give(number: int, placed: dict[Place, Tensor]) -> None:
        for name, array in values.items():
            moment = moments.get(name)
            leaf = None if moment is None else placed.get(moment.place)
            if moment is not None and moment.number == number and leaf is not None:
                leaf.array = array.astype(leaf.array.dtype)
                run.session.recorder.replaced(leaf, Tensor(leaf.array))
                given[name] = run.session.state.sequence_nr

    at_statements(run, {moments[name].number for name in values if name in moments}, give)
    return given


def _first_uses(executed: Executed) -> dict[int, int]:
    """The number of the first node of the output's graph that reads each leaf, by its `id`."""
    first: dict[int, int] = {}
    if executed.output is not None:
        for node in executed.run.session.graph(executed.output).nodes:
            for edge in node.edges:
                if edge.node is not None and edge.node.leaf is not None:
                    key, number = id(edge.node.leaf), node.node.sequence_nr
                    first[key] = min(first.get(key, number), number)
    return first


# --- second runs ----------------------------------------------------------------------------------


Arrays = Mapping[str, Any]

_NONE: Arrays = {}

_NEVER: Moments = {}

_OF_LAST_ROUNDS = ("ends", "graph", "steps")
"""What is recorded of a run where the last iterations of its long loops are enough."""


class Outcome(Record):
    """The results of a run: its output and the gradients of its inputs."""

    output: Any
    inputs: dict[str, Any]
    gradients: dict[str, Any]

    def arrays(self) -> dict[str, Any]:
        """The output under "", and the gradients under `NAME.grad`."""
        named = {f"{name}.grad": array for name, array in self.gradients.items()}
        by_name = {"": self.output, **named}
        return {name: array for name, array in by_name.items() if array is not None}


class Executed:
    """A program that has run, before any backward pass but its own.

    Attributes:
        output: the output, None where it computes no tensor, and `name` the variable that holds it.
        leaves: the tensors by whose elements it can be differentiated, by name.
        unnamed: how many others there are, which nothing leads to in the end, or whose names
            others have too.
        missed: those of the leaves that did not get the other value that they were to get, or not
            before the output was computed from them: at their moments the program did something
            else, as one that takes more steps with other inputs.
    """

    def __init__(self, run: Run, value: Any, values: Arrays = _NONE, took: Arrays = _NONE) -> None:
        self.run = run
        self.value = value
        replaced = () if run.replay is None else run.replay.took
        output = computed_output(run.session, run.options, value)
        self.name: str | None = None if output is None else output[0]
        self.output: Tensor | None = None if output is None else output[1]
        self.leaves: dict[str, Tensor] = {}
        self.unnamed = 0
        if self.output is not None and run.bindings is not None:
            graph = run.session.graph(self.output)
            named = [(node.variable, node.leaf) for node in graph.nodes if node.leaf is not None]
            # Of an input that the program gave its name to another leaf, that is the one meant.
            used = {id(leaf) for _, leaf in named}
            again = {name for name, leaf in named}
            inputs = [(n, v) for n, v in run.bindings.inputs() if id(v) in used or n not in again]
            for name, leaf in [*inputs, *named]:
                if name is not None and leaf.requires_grad and leaf.dtype.is_floating_point:
                    self.leaves.setdefault(name, leaf)
            known = {id(leaf) for leaf in self.leaves.values()}
            self.unnamed = sum(
                leaf.dtype.is_floating_point and id(leaf) not in known for _, leaf in named
            )
        self.missed = {
            name
            for name, leaf in self.leaves.items()
            if name in values and took.get(name) is not leaf and name not in replaced
        }

    def seed(self) -> Any:
        """The gradient of the output that the program's own backward pass began with, None where
        there was no such pass.
        """
        assert self.output is not None
        root, output_nr = gradient_edge(self.output)
        if not self._began(root):
            return None
        for event in reversed(self.run.session.recorder.events or ()):
            if isinstance(event, Step) and event.node is root:
                seed = event.grads[output_nr]
                return None if seed is None else np.asarray(to_host(seed), float)
        return None

    def _began(self, root: Node | None) -> bool:
        """Whether the program ran a backward pass from a node."""
        outputs = self.run.session.recorder.outputs.values()
        return any(each.ended and each.tensor.grad_fn is root for each in outputs)

    def gradients(self, seed: Any) -> dict[str, Any]:
        """The gradient of `(output * seed).sum()` by each leaf, or the program's own."""
        assert self.output is not None
        root = self.output.grad_fn
        if root is None:  # a leaf's `.grad` may be that of another output
            return self.slopes(seed, {}, second=False)
        recorder = self.run.session.recorder
        if not self._began(root):
            self.run.session.backward(self.output, Tensor(seed))
        # What arrived counts, whatever the program did to `.grad` before and afterwards.
        heard = last_pass(self.run.session.graph(self.output), recorder.events or ())
        gradients: dict[str, Any] = {
            name: np.zeros_like(leaf.array)
            if heard or leaf.grad is None
            else np.asarray(leaf.grad.array)
            for name, leaf in self.leaves.items()
        }
        arrivals = [each for each in heard if isinstance(each, Arrival)]
        for event in arrivals:
            for name, leaf in self.leaves.items():
                if event.node.variable is leaf:  # again where a pass inside this one brings a part
                    gradients[name] = gradients[name] + np.asarray(event.incoming)
        return gradients

    def slopes(self, seed: Any, directions: Arrays, *, second: bool) -> dict[str, Any]:
        """The gradients again as tensors; with `second` that of their directional sum."""
        assert self.output is not None
        leaves = list(self.leaves.values())
        with self.run.session.running():
            first = grad(self.output, leaves, Tensor(seed), create_graph=second, allow_unused=True)
            if second:
                used = [
                    (gradient, Tensor(directions[name]))
                    for name, gradient in zip(self.leaves, first, strict=True)
                    if gradient is not None and gradient.requires_grad
                ]
                first = (None,) * len(leaves)
                if used:
                    outputs, seeds = zip(*used, strict=True)
                    first = grad(outputs, leaves, seeds, allow_unused=True)
        return {
            name: np.zeros_like(leaf.array) if slope is None else np.asarray(slope.array)
            for (name, leaf), slope in zip(self.leaves.items(), first, strict=True)
        }


class Rerun(Record):
    """Runs a program again.

    Args:
        terminal: what a run needs, though nothing is written to it.
        name: what diagnostics call it.
        runs: how often it ran.
        moments: the leaves that get their values in the middle of a run.
        parsed_in: the dtype that the statements of a recording's program name.
        widens: whether in float64 the narrower dtypes that the program names are float64 too, as
            `model.float()` is; and `wide`: its statements with that.
        until: when the time is over that all runs together may take; known from the first on.
        settled: the names of which it is known whether they have such a moment.
        drawn: the elements that runs took of a recording since what they left was collected.
        rounds: the iterations of long loops that are recorded besides the first and the last; None
            for all.
        failed: the values of the names in the last run that ended in an error.
        forward_only: whether of a recording nothing runs behind the line that gives its output.
        passes: of names that are assigned more than once, how many assignments there are before the
            one that makes the leaf; of modules too.
    """

    terminal: Terminal
    text: str
    name: str
    arguments: Sequence[Argument]
    options: Options
    statements: Sequence[Statement] = ()
    runs: int = 0
    drawn: int = 0
    moments: Moments = _NEVER
    settled: frozenset[str] = frozenset()
    parsed_in: str | None = None
    widens: bool = False
    wide: Sequence[Statement] = ()
    until: float | None = None
    rounds: frozenset[Rounds] | None = frozenset()
    forward_only: bool = False
    passes: Mapping[str, int] = {}  # never written to
    failed: Mapping[str, Any] = {}  # nor this

    @property
    def is_large(self) -> bool:
        """Whether a run takes much memory: a recording of a large model."""
        recording = self.options.recording
        return recording is not None and not recording.is_small

    def left(self) -> float:
        """The seconds that all further runs together may take."""
        if self.until is None:
            self.until = perf_counter() + (self.options.limits.timeout or inf)
        return self.until - perf_counter()

    def __call__(
        self,
        text: str | None = None,
        values: Arrays = _NONE,
        dtype: str | None = None,
        as_written: bool = False,
    ) -> Outcome | None:
        """The result of the program with a backward pass; None where it ends with an error or
        computes no tensor.

        Args:
            values: arrays for names, in place of the arguments or of what the program assigns; for
                parameters by their path too.
            dtype: the dtype of floating inputs and of new tensors.
            as_written: whether dtypes that the program names stay what they are.
        """
        before, self.widens = self.widens, self.widens and not as_written
        try:
            executed = self.execute(text, values, dtype)
            result = executed.run.result(executed.value)
        except GradcliError:
            return None
        finally:
            self.widens = before
        return None if result is None else outcome_of(result)

    def execute(
        self,
        text: str | None = None,
        values: Arrays = _NONE,
        dtype: str | None = None,
        record: str = "graph",
        prepare: Callable[[Run], None] | None = None,
    ) -> Executed:
        """Run the program, given the arguments of a call, and what is recorded of it; `prepare` is
        called with the run before the program.

        A leaf that no assignment at the top level makes, such as a function's or one that a
        parametrization adds to a module, gets its value before it is used first.
        """
        self._count_assignments({name.partition(".")[0] for name in values})
        ran = self._execute(text, values, dtype, record, prepare)
        unknown = ran.missed - self.settled
        if not unknown or prepare is not None or text is not None:
            return ran
        self.settled |= unknown
        moments, _ = moments_of(self, ran, dtype)
        late = {name: moments[name] for name in moments if name in unknown}
        if not late:
            return ran
        self.moments = {**self.moments, **late}
        return self._execute(text, values, dtype, record, prepare)

    def _execute(
        self,
        text: str | None,
        values: Arrays,
        dtype: str | None,
        record: str,
        prepare: Callable[[Run], None] | None,
    ) -> Executed:
        while True:
            try:
                return self._executed(text, values, dtype, record, prepare)
            except NotRecorded as needed:
                self.rounds = needed.wanted
                if self.moments:  # which are told by how many statements were recorded
                    self.moments, _ = moments_of(
                        self, self._execute(None, _NONE, None, "graph", None)
                    )

    def _executed(
        self,
        text: str | None,
        values: Arrays,
        dtype: str | None,
        record: str,
        prepare: Callable[[Run], None] | None,
    ) -> Executed:
        self._collect()
        self.runs += 1
        options, limits = self.options, self.options.limits
        if self.left() <= 0:
            raise limits.out_of_time()
        before, options.dtype = options.dtype, dtype or options.dtype
        outer, limits.until = limits.until, self.until
        try:
            run = Run(self.terminal, options, record)
            run.muted = True
            if record in _OF_LAST_ROUNDS and options.recording is None:
                hear_passes(run.session.interpreter)
            # In float64 a program of float32 is to have the random numbers that it has by itself.
            draws = before in (None, "float32") and not re.search("float64|double", self.text)
            run.session.state.narrow_draws = draws and options.dtype == "float64"
            # Those that are replaced are evaluated too, so that the program draws what it drew. It
            # may write to what it is given.
            early = {name: values[name] for name in values if name not in self.moments}
            arguments = [_with_arrays(argument, early) for argument in self.arguments]
            since = {argument.name: argument.since for argument in arguments}
            for name, array in early.items():
                if "." not in name:
                    argument = held(name, np.array(array), since.get(name, 1))
                    argument.passes = self.passes.get(name, 0)
                    arguments.append(argument)
            took = _override_parameters(run, early, self.passes)
            if run.replay is not None:
                run.replay.replace(early)
                run.replay.leave_out_steps()
                run.replay.share_memory(run.session.recorder)
                if self.forward_only:
                    run.replay.end_at_output()
                if options.focus is not None:
                    run.replay.focus(options.focus)
            late, given = values.keys() - early.keys(), {}
            if prepare is not None:
                prepare(run)
            elif late:
                given = at_moments(run, self.moments, values)
            record_rounds(run.session.interpreter, self.rounds)
            with run.limited():
                value = self._value(run, text, arguments)
                took.update(run.bindings.inputs() if run.bindings else ())
                executed = _checked(Executed(run, value, early, took))
                if prepare is None and late:
                    executed.missed |= _too_late(executed, late, given)
                return executed
        finally:
            options.dtype, limits.until = before, outer

    def _value(self, run: Run, text: str | None, arguments: Sequence[Argument]) -> Any:
        """The value of the program in a run."""
        try:
            return run.execute(self._parsed(run, text), arguments)
        except GradcliError:
            self.failed = run.session.values
            raise

    def _collect(self) -> None:
        """Free what runs before hold that nobody needs, once they have made much: the collector
        counts objects, and not their sizes.
        """
        recording = self.options.recording
        if recording is None:
            return
        if self.drawn > MOST_DRAWN:
            gc.collect()
            self.drawn = 0
        self.drawn += recording.elements

    def _parsed(self, run: Run, text: str | None = None) -> list[Statement]:
        """The program of the dtype that it runs in: that of a recording names its dtypes; or that
        of another text.
        """
        recording, dtype = self.options.recording, self.options.dtype
        widens = self.widens and dtype == "float64" and (recording is None or text is not None)
        if text is not None:
            statements = run.session.parse(text, self.name)
            return _widened(statements) if widens else statements
        if not self.statements or (recording is not None and dtype != self.parsed_in):
            text = self.text if recording is None else recording.program_in(dtype)
            self.statements, self.parsed_in = run.session.parse(text, self.name), dtype
        if not widens:
            return list(self.statements)
        if not self.wide:
            wide = run.session.parse(self.text, self.name)
            nodes = zip(tree.nodes_of(wide), tree.nodes_of(list(self.statements)), strict=True)
            for node, own in nodes:
                node.span = own.span
            self.wide = _widened(wide)
        return list(self.wide)

    def _count_assignments(self, names: Set[str]) -> None:
        """Find which assignment of each name makes the leaf, or the module with the leaves, where
        there are several.
        """
        names = names - self.passes.keys() - {argument.name for argument in self.arguments}
        if not names or self.options.recording is not None:
            return
        run = Run(self.terminal, self.options, "graph")
        run.muted = True
        statements = self._parsed(run)
        names &= assigned_again(statements)
        if not names:
            return
        stored: dict[str, list[Any]] = {name: [] for name in names}
        for name, values in stored.items():
            run.session.override(name, _counting(run, name, values))
        with run.limited():
            executed = Executed(run, run.execute(list(statements), self.arguments))
        counts = {
            name: next((n for n, each in enumerate(values) if _holds(each, name, executed)), 0)
            for name, values in stored.items()
        }
        self.passes = {**self.passes, **counts}

    def beginnings(self, executed: Executed) -> dict[str, Any]:
        """What the leaves held that the program wrote to, when each got its name."""
        names = {
            name
            for name, leaf in executed.leaves.items()
            if "." not in name and (leaf.version > 0 or f"{name}.data" in self.text)
        }
        begun: dict[str, Any] = {}
        if names:
            run = Run(self.terminal, self.options, "graph")
            run.muted = True
            for name in names:
                keep = _after(self.passes.get(name, 0), run, name, _remembering(begun, name))
                run.session.override(name, keep)
            with run.limited():
                run.execute(list(self.statements), self.arguments)
        return begun


_WIDE_METHODS = {"bfloat16": "double", "cfloat": "cdouble", "float": "double", "half": "double"}
"""Methods that cast to a narrower dtype, with those that cast to the widest."""

_WIDE_DTYPES = {
    **dict.fromkeys(("bfloat16", "float", "float16", "float32", "half", "single"), "float64"),
    **dict.fromkeys(("cfloat", "complex64"), "complex128"),
    **dict.fromkeys(("BFloat16Tensor", "FloatTensor", "HalfTensor"), "DoubleTensor"),
}
"""The same of dtypes, and of the types that older programs name for them."""

_WITH_DTYPES = ("numpy", "torch")
"""The modules that have dtypes; they have their own names too where no import gives them."""


def _widened(statements: list[Statement]) -> list[Statement]:
    """Statements, once the widest dtype stands in them for each narrower one that they name."""
    owners = {"np", *_WITH_DTYPES}
    for node in tree.nodes_of(statements):
        if isinstance(node, tree.Import):
            owners |= {alias or name for name, alias in node.names if name in _WITH_DTYPES}
        elif isinstance(node, tree.FromImport) and node.module in _WITH_DTYPES:
            node.names = [
                (_WIDE_DTYPES.get(name, name), alias or (name if name in _WIDE_DTYPES else None))
                for name, alias in node.names
            ]
    for node in tree.nodes_of(statements):
        if isinstance(node, tree.Call) and isinstance(node.function, tree.Attribute):
            method = node.function
            if not node.arguments:
                method.name = _WIDE_METHODS.get(method.name, method.name)
        elif isinstance(node, tree.Attribute):
            owner = node.value.name if isinstance(node.value, tree.Name) else ""
            if owner in owners:
                node.name = _WIDE_DTYPES.get(node.name, node.name)
        elif isinstance(node, tree.Argument):
            value = node.value
            if isinstance(value, tree.Constant) and value.value in ("float16", "float32"):
                value.value = "float64"
    return statements


def _too_late(executed: Executed, names: Set[str], given: Mapping[str, int]) -> set[str]:
    """Those of some leaves that got their values behind a node of the output's graph that reads
    them, or never.
    """
    first, leaves = _first_uses(executed), executed.leaves
    return {
        name
        for name in names & leaves.keys()
        if name not in given or given[name] >= first.get(id(leaves[name]), inf)
    }


def unused(executed: Executed, names: Set[str]) -> set[str]:
    """Those of some leaves that the output is not computed from: what has its name only behind its
    last use is replaced there.
    """
    leaves, uses = executed.leaves, _first_uses(executed)
    return {name for name in names & leaves.keys() if id(leaves[name]) not in uses}


def _checked(executed: Executed) -> Executed:
    """A program that has run; raises `NotRecorded` where iterations are missing in its record."""
    check_recorded(executed.run.session.interpreter)
    if executed.output is not None:
        check_graph(executed.run.session.interpreter, executed.run.session.graph(executed.output))
    return executed


def _remembering(begun: dict[str, Any], name: str) -> Callable[[Any], Any]:
    """What an assignment stores: the value, of which a copy is kept."""

    def keep(value: Any) -> Any:
        if type(value) is Tensor and not is_uninitialized(value):
            begun[name] = np.array(value.array, float)
        return value

    return keep


def _counting(run: Run, name: str, values: list[Any]) -> Callable[[Any], Any]:
    """What each assignment of a name stores: its value, which is noted where it may have leaves."""

    def store(value: Any) -> Any:
        is_leaf = type(value) is Tensor and value.is_leaf
        values.append(value if is_leaf or isinstance(value, Module) else None)
        run.session.override(name, store)
        return value

    return store


def _holds(value: Any, name: str, executed: Executed) -> bool:
    """Whether an assigned value is the leaf of a name, or a module that has one; of a name without
    one the tensor that it holds in the end.
    """
    if isinstance(value, Module):
        parameters = {id(parameter) for _, parameter in value.named_parameters()}
        return any(id(leaf) in parameters for leaf in executed.leaves.values())
    leaf = executed.leaves.get(name, executed.run.session.values.get(name))
    return value is not None and value is leaf


def _after(passes: int, run: Run, name: str, replace: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What an assignment of a name stores, after so many that store their own values."""

    def store(value: Any) -> Any:
        nonlocal passes
        if not passes:
            return replace(value)
        passes -= 1
        run.session.override(name, store)
        return value

    return store


def rerun_of(asked: Asked) -> Rerun:
    """What runs the program of a command again; raises E503 for a file that cannot be read."""
    name, text = asked.program.name, asked.program.text()
    return Rerun(asked.terminal, text, name, asked.arguments, asked.options)


def evaluate(executed: Executed, expression: str) -> Any:
    """The array of an expression in the names of a program that has run.

    Raises:
        GradcliError: E202 for a value that is no tensor of real numbers, and what the expression
            runs into.
    """
    source = Source("option --equals", expression)
    value = executed.run.session.evaluate(source)
    try:
        array = np.asarray(value.array if isinstance(value, Tensor) else value)
        if array.dtype.kind in "biuf":
            return array.astype(float)
    except (ValueError, TypeError, OverflowError):
        pass
    whole = Span(source, 0, len(expression))
    raise GradcliError("E202", "the expression of --equals gives no real numbers", span=whole)


def held(name: str, array: Any, since: int = 1) -> Argument:
    """An argument whose value is an array."""
    argument = Argument(name, False, f"{name}=", len(name) + 1)
    argument.held = Tensor(array)
    argument.since = since
    return argument


def _with_arrays(argument: Argument, values: Arrays) -> Argument:
    """An argument with other arrays in its lists and dicts, given by their paths."""
    if type(argument.held) not in (list, tuple, dict) or argument.file:
        return argument
    copied = copy(argument)

    def replaced(path: str, tensor: Tensor) -> Tensor:
        return Tensor(np.array(values[path])) if path in values else tensor

    copied.held = mapped(argument.name, argument.held, replaced)
    return copied


def outcome_of(result: Result) -> Outcome:
    """The numbers of a result."""
    gradients = {
        gradient.name or f"#{gradient.node}": (
            None if gradient.tensor.grad is None else to_host(gradient.tensor.grad.array)
        )
        for gradient in result.gradients
    }
    inputs = {each.name: to_host(each.tensor.array) for each in result.gradients if each.name}
    return Outcome(to_host(result.output.array), inputs, gradients)


def _override_parameters(run: Run, values: Arrays, passes: Mapping[str, int]) -> dict[str, Tensor]:
    """Let modules begin with other parameters, given by their paths, after so many assignments of
    their names; returns what gets those that have begun with them.
    """
    took: dict[str, Tensor] = {}
    paths = [name for name in values if "." in name]
    for first in {path.partition(".")[0] for path in paths}:

        def begin(module: Any, first: str = first) -> Any:
            for name, parameter in module.named_parameters() if isinstance(module, Module) else ():
                array = values.get(f"{first}.{name}")
                if array is None or is_uninitialized(parameter):
                    continue
                if parameter.array.shape == array.shape:
                    parameter.array = array.astype(parameter.array.dtype)
                    took[f"{first}.{name}"] = parameter
            return module

        run.session.override(first, _after(passes.get(first, 0), run, first, begin))
    return took


def leaves_of(run: Run) -> Arrays:
    """The tensors of floating numbers and booleans that names of a run hold and that no recorded
    operation made.
    """
    return {
        name: to_host(value.array)
        for name, value in run.session.values.items()
        if type(value) is Tensor
        and (value.dtype.is_floating_point or value.dtype is boolean)
        and is_usable_leaf(value)
        and _has_elements(value)
    }


_UNCOUNTED = re.compile(r"\.data\b|numpy|asarray")
"""What a program with writes to memory that no version counts has in its text."""


def moments_of(
    rerun: Rerun, here: Executed, dtype: str | None = "float64"
) -> tuple[Moments, dict[str, Any]]:
    """When the leaves got the values that the output was computed from, and these values; nothing
    of leaves that the program does not write to before.

    Args:
        dtype: that of the runs which they are for: where values decide how many steps a program
            takes, it may take others in another one.
    """
    written = any(leaf.version or "[" in name for name, leaf in here.leaves.items())
    written = written or any(True for _ in _buffers(here.run))
    by_value = _UNCOUNTED.search(rerun.text) is not None
    if not written and not rerun.settled and not by_value:
        return {}, {}
    writes: list[Writes] = []
    there = rerun.execute(dtype=dtype, prepare=lambda run: writes.append(Writes(run, by_value)))
    if there.output is None:
        return {}, {}
    first = _first_uses(there)
    numbers: dict[str, int] = {}
    for name, leaf in there.leaves.items():
        # It may have been written to before it required grad.
        always = "[" in name or name in rerun.settled or leaf.version > 0
        at_first = first.get(id(leaf))
        at = None if at_first is None else writes[0].ahead_of(leaf, at_first, always)
        if at is not None:
            numbers[name] = at
    known: dict[int, list[tuple[Place, Tensor, Any]]] = {}

    def read(number: int, placed: dict[Place, Tensor]) -> None:
        # A lazy layer draws over what it is given before its first call.
        ready = [each for each in placed.items() if not is_uninitialized(each[1])]
        known[number] = [
            (place, leaf, np.array(to_host(leaf.array), float)) for place, leaf in ready
        ]

    again = rerun.execute(
        dtype=dtype, prepare=lambda run: at_statements(run, set(numbers.values()), read)
    )
    moments: dict[str, Moment] = {}
    values: dict[str, Any] = {}
    for name, number in numbers.items():
        wanted = again.leaves.get(name)
        for place, each, array in known.get(number, ()):
            if each is wanted:
                moments[name], values[name] = Moment(number, place), array
    return moments, values


# --- a backward pass whose graph is gone ----------------------------------------------------------


Answer = TypeVar("Answer")

Explain = Callable[[Run, "Tensor", Sequence["Event"]], Answer]
"""What is made of a run, the tensor in it and the events of the backward pass from it."""


def explained(
    run: Run, tensor: Tensor, explain: Explain[Answer], seed: Tensor | None = None
) -> Answer:
    """What `explain` makes of the backward pass from a tensor of a run, which leaves no trace.

    A graph that an earlier pass freed, or whose saved values were written over since, cannot run
    again: then the statements so far are run once more and recorded, and the pass is read there.

    Raises what a backward pass raises.
    """
    try:
        return explain(run, tensor, run.session.rehearse(tensor, seed))
    except GradcliError as error:
        if error.code not in ("E403", "E404"):
            raise
        replay = _Replay(run, tensor, explain, seed)
        replay.play()
        if not replay.answers:
            raise
        return replay.answers[0]


def with_values(run: Run, tensor: Tensor, explain: Explain[Answer]) -> Answer:
    """What `explain` makes of a graph with all its values, and of the backward pass from a tensor
    that is one number; of others there are no events.

    A session keeps the values that have names; those of all nodes come from a second run of it. A
    program that is run from a file is not run again for what it asks itself, maybe in a loop.
    """
    recorder = run.session.recorder
    again = recorder is not None or isinstance(run.statement, Command)
    if again and not isinstance(recorder, TraceRecorder):
        replay = _Replay(run, tensor, explain, None)
        with suppress(GradcliError):  # statements that were forgotten
            replay.play()
        if replay.answers:
            answer: Answer = replay.answers[0]
            return answer
    if tensor.array.size != 1:
        return explain(run, tensor, ())
    return explained(run, tensor, explain)


class _Replay(Run):
    """A second run of a session, which stops to answer where the session stands."""

    def __init__(
        self, run: Run, tensor: Tensor, explain: Explain[Any], seed: Tensor | None
    ) -> None:
        super().__init__(run.terminal, run.options, "all")
        self.muted = True
        self.answers: list[Any] = []
        self._former = run
        self._explain = explain
        self._seed = seed
        self._name = next((n for n, each in run.session.values.items() if each is tensor), None)

    def play(self) -> None:
        """Run the statements so far, with the one that asks if it is no dot-command."""
        asking = self._former.statement
        program = self._former.transcript.program()
        inside = asking is not None and not isinstance(asking, Command)
        if asking is not None and inside:
            program += f"{asking.span.text}\n"
        name = self._former.name_so_far()
        try:
            with self.limited():
                self.execute(self.session.parse(program, name), self._former.arguments())
        except GradcliError:
            pass  # what failed in the session fails here too
        value = self.session.values.get(self._name or "")
        if not inside and value is not None:
            self._answer(value)

    def _emit(self, event: Any) -> None:
        if isinstance(event, (Explained, Shown, Traced)):
            self.asked += 1
            if self.asked == self._former.asked:
                self._answer(event.tensor)

    def _answer(self, tensor: Tensor) -> None:
        session = self.session
        events: Sequence[Event] = ()
        if self._seed is None:
            events = last_pass(session.graph(tensor), session.recorder.events)
        if not events and (self._seed is not None or tensor.array.size == 1):
            events = session.rehearse(tensor, self._seed)
        self.answers.append(self._explain(self, tensor, events))
