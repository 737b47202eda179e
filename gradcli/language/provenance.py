"""Records the provenance of values: what every expression evaluated to, and from which values.

A `ProvenanceCompiler` wraps the closures of expressions and assignments. Only explanations use it:
every other program is compiled without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gradcli.language.compiler.base import Body, Compiler, Evaluate, Iterations, Running
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.record import Record
from gradcli.state import State, active


class Evaluation(Record):
    """One evaluation of an expression.

    Attributes:
        parts: the evaluations inside it, those of a called function's body too.
        grad_enabled: whether gradients were on.
    """

    node: tree.Expression
    value: Any
    parts: list[Evaluation]
    grad_enabled: bool


Loop = tree.For | tree.While


class Round(Record):
    """The iteration that a running loop is in.

    Attributes:
        number: counts from 1; 0 before the first.
        variables: the names that the loop's body reads and writes.
    """

    loop: tree.For | tree.While
    variables: Variables
    number: int = 0


Rounds = tuple[tuple[int, int], ...]
"""The iterations that are running, outermost first: where the loop begins, and its number."""

_HEARD = 8
"""So many of the first and of the last iterations of a long loop are recorded, and of those before
one that is wanted.
"""


class Provenance:
    """What a run evaluated, in the order in which it ended, and assigned.

    Attributes:
        wanted: iterations of long loops that are to be recorded besides the first and the last
            ones; None where all are.
        recorder: what hears the session's events, where nothing of the program listens too.
        missed: iterations that were not recorded and should have been: the last ones of loops
            whose length is not known, and those that the listener says.
        unheard: how many iterations were not recorded.
        paused: whether nothing is recorded now.
        listener: what hears the events of iterations that are not recorded.
    """

    def __init__(self) -> None:
        self.wanted: frozenset[Rounds] | None = None
        self.recorder: Any = None
        self.missed: list[Rounds] = []
        self.unheard = 0
        self.paused = False
        self.listener: Any = None
        self.evaluations: list[Evaluation] = []
        self.assignments: list[tuple[tree.Assign | tree.AugmentedAssign, Evaluation]] = []
        self.latest: dict[str, Evaluation] = {}
        self.open: list[list[Evaluation]] = [[]]
        self.rounds: list[Round] = []

    def first_assignment(self, name: str) -> tree.Statement | None:
        """The statement that assigned to a name first."""
        for statement, _ in self.assignments:
            if name in targets_of(statement):
                return statement
        return None

    def last_assignment(self, name: str) -> tree.Statement | None:
        """The statement that assigned to a name last."""
        for statement, _ in reversed(self.assignments):
            if name in targets_of(statement):
                return statement
        return None

    # --- long loops -------------------------------------------------------------------------------

    def place(self) -> Rounds:
        """The iterations that are running."""
        return tuple((each.loop.span.start, each.number) for each in self.rounds)

    def windows(self) -> frozenset[Rounds]:
        """The iterations that the next run has to record for those that this one missed."""
        within = [place[:depth] for place in self.missed for depth in range(1, len(place) + 1)]
        return frozenset(
            (*place[:-1], (place[-1][0], number))
            for place in within
            for number in range(place[-1][1] - _HEARD, place[-1][1] + 3)
        )

    def heard(self, place: Rounds) -> bool:
        """Whether everything up to an iteration was recorded, where the listener missed none."""
        wanted = self.wanted
        return wanted is None or all(
            number <= _HEARD or place[: depth + 1] in wanted
            for depth, (_, number) in enumerate(place)
        )

    def unheard_round(self, run: Run, variables: Variables) -> Any:
        """Run an iteration that is not recorded."""
        state = active.state
        recorder, state.recorder = state.recorder, self.listener
        self.paused = True
        self.unheard += 1
        try:
            return run(variables)
        finally:
            self.paused = False
            state.recorder = recorder

    def miss(self) -> None:
        """Note that the iteration that is running should have been recorded."""
        self.missed.append(self.place())


class _LongLoop:
    """A loop of many iterations, of which the first and the last are recorded."""

    def __init__(self, provenance: Provenance, state: State, loop: Loop, body: Run) -> None:
        self.provenance = provenance
        self.state = state
        self.loop = loop
        self.body = body

    def begin(
        self, variables: Variables, length: Callable[[], int] | None, between: Any
    ) -> Iterations | None:
        """The loop begins: what runs an iteration, and what is called behind the last; None where
        all are recorded, or none.
        """
        provenance, body = self.provenance, self.body
        wanted, rounds = provenance.wanted, provenance.rounds
        is_heard = provenance.paused or self.state.recorder is not provenance.recorder
        if wanted is None or is_heard or not rounds or rounds[-1].loop is not self.loop:
            return None
        current, last_heard = rounds[-1], 0

        def run(variables: Variables) -> Any:
            nonlocal last_heard
            number = current.number + 1
            is_heard = number <= _HEARD or (length is not None and number > length() - _HEARD)
            if is_heard or (*provenance.place()[:-1], (self.loop.span.start, number)) in wanted:
                last_heard = number
                return body(variables)
            return provenance.unheard_round(body, variables)

        def leave(variables: Variables) -> None:
            if last_heard < current.number:
                provenance.miss()

        return run, leave, None


def record_provenance(interpreter: Running) -> None:
    """Record the provenance of everything that the interpreter runs from now on."""
    interpreter.provenance = Provenance()
    interpreter.compiler = ProvenanceCompiler(interpreter)


class ProvenanceCompiler(Compiler):
    """Compiles closures that record their values in `provenance`."""

    __slots__ = ("provenance",)

    def __init__(self, interpreter: Running) -> None:
        super().__init__(interpreter)
        assert interpreter.provenance is not None
        self.provenance: Provenance = interpreter.provenance

    def expression(self, node: tree.Expression, scope: Scope) -> Evaluate:
        evaluate = super().expression(node, scope)
        if isinstance(node, (tree.Constant, tree.FormattedString, tree.Slice)):
            return evaluate
        provenance, state, is_name = self.provenance, self.state, type(node) is tree.Name
        direct = [] if is_name else [n for n in _operands(node) if type(n) is tree.Name]

        def evaluate_and_record(variables: Variables) -> Any:
            if provenance.paused:
                return evaluate(variables)
            parts: list[Evaluation] = []
            provenance.open.append(parts)
            try:
                value = evaluate(variables)
            finally:
                provenance.open.pop()
            # A closure may read the variables of its operands by itself.
            met = {part.node for part in parts}
            for name in direct:
                if name not in met and name.name in variables:
                    known = provenance.latest.get(name.name)
                    read = Evaluation(name, variables[name.name], [], state.grad_enabled)
                    if known is not None and known.value is read.value:
                        read.parts.append(known)
                    parts.append(read)
            if is_name:
                known = provenance.latest.get(node.name)  # type: ignore[attr-defined]
                if known is not None and known.value is value:
                    parts.append(known)
            ended = Evaluation(node, value, parts, state.grad_enabled)
            provenance.evaluations.append(ended)
            provenance.open[-1].append(ended)
            return value

        return evaluate_and_record

    def loop_body(self, loop: tree.For | tree.While, compile_block: Callable[[], Body]) -> Body:
        body: Any = super().loop_body(loop, compile_block)
        rounds = self.provenance.rounds

        def count_and_run(variables: Variables) -> Any:
            if rounds and rounds[-1].loop is loop:  # those of a generator are not reported
                rounds[-1].number += 1
            return body(variables)

        return cast(Body, count_and_run)

    def hot_loop(self, loop: Loop, scope: Scope, body: Run) -> Callable[[], Any]:
        return lambda: _LongLoop(self.provenance, self.state, loop, body)

    def _loop(self, node: tree.For | tree.While, run: Run) -> Run:
        rounds = self.provenance.rounds

        def run_and_forget(variables: Variables) -> Any:
            rounds.append(Round(node, variables))
            try:
                return run(variables)
            finally:
                rounds.pop()

        return run_and_forget

    def statement(self, node: tree.Statement, scope: Scope) -> Run:
        run = super().statement(node, scope)
        if isinstance(node, (tree.For, tree.While)):
            return self._loop(node, run)
        if not isinstance(node, (tree.Assign, tree.AugmentedAssign)):
            return run
        provenance, state = self.provenance, self.state
        names = targets_of(node)

        def run_and_record(variables: Variables) -> Any:
            if provenance.paused:
                return run(variables)
            parts: list[Evaluation] = []
            provenance.open.append(parts)
            try:
                ended = run(variables)
            finally:
                provenance.open.pop()
            value = next((each for each in parts if each.node is node.value), None)
            if value is None or isinstance(node, tree.AugmentedAssign):
                value = Evaluation(node.value, None, parts, state.grad_enabled)
            for name in names:
                if value.value is None and name in variables:
                    value.value = variables[name]
                provenance.latest[name] = value
            if isinstance(node, tree.AugmentedAssign):
                provenance.evaluations.append(value)
            provenance.assignments.append((node, value))
            return ended

        return run_and_record


def _operands(node: tree.Expression) -> list[Any]:
    """The expressions right inside an operator."""
    if isinstance(node, (tree.Binary, tree.Comparison)):
        return [node.first, *(operand for _, operand in node.rest)]
    if isinstance(node, tree.Unary):
        return [node.operand]
    return []


def targets_of(node: tree.Statement) -> list[str]:
    """The plain names that an assignment binds."""
    targets = node.targets if isinstance(node, tree.Assign) else []
    if isinstance(node, tree.AugmentedAssign):
        targets = [node.target]
    return [target.name for target in targets if isinstance(target, tree.Name)]
