"""Long loops of a run that is recorded: of most, the first and the last iterations are enough.

The iterations between them are told to a listener alone, and may be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from gradcli.language.compiler.base import Between, Body, Compiler, HotLoop, Iterations, Running
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.record import Record
from gradcli.state import State, active

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


class LongLoops:
    """The loops that a run is in, and what is recorded of them.

    Attributes:
        wanted: iterations of long loops that are to be recorded besides the first and the last
            ones; None where all are.
        recorder: what hears the session's events, where nothing of the program listens too.
        missed: iterations that were not recorded and should have been, as the listener says.
        left: the same of the last ones of loops whose length is not known, inside iterations that
            were recorded.
        unheard: how many iterations were not recorded.
        sections: the sequence numbers between which such iterations in a row made nodes.
        paused: whether nothing is recorded now.
        listener: what hears the events of iterations that are not recorded.
        began, resumed: called where iterations begin that are not recorded, and behind the last of
            them.
    """

    def __init__(self) -> None:
        self.wanted: frozenset[Rounds] | None = None
        self.recorder: Any = None
        self.missed: list[Rounds] = []
        self.left: list[Rounds] = []
        self.unheard = 0
        self.sections: list[list[int]] = []
        self.paused = False
        self.listener: Any = None
        self.began: Callable[[], None] = _nothing
        self.resumed: Callable[[], None] = _nothing
        self._is_between = False
        self.rounds: list[Round] = []

    def place(self) -> Rounds:
        """The iterations that are running."""
        return tuple((each.loop.span.start, each.number) for each in self.rounds)

    def windows(self) -> frozenset[Rounds] | None:
        """The iterations that the next run has to record for those that this one missed; None for
        all, where this one already recorded some of such a loop, and not the right ones.
        """
        wanted = self.wanted or frozenset()
        known = {(*place[:-1], place[-1][0]) for place in wanted}
        if any((*place[:-1], place[-1][0]) in known for place in (*self.missed, *self.left)):
            return None
        # More of what is around a loop that was left would bring more loops that are left early.
        within = [place[:depth] for place in self.missed for depth in range(1, len(place) + 1)]
        return wanted | frozenset(
            (*place[:-1], (place[-1][0], number))
            for place in (*within, *self.left)
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
        current, number = self.rounds[-1], self.rounds[-1].number + 1
        recorder, state.recorder = state.recorder, None
        paused, self.paused = self.paused, True
        if not paused:
            self.unheard += 1
            if not self._is_between:
                self._is_between = True
                self.sections.append([state.sequence_nr, 0])
                self.began()
        try:
            return run(variables)
        finally:
            current.number = number  # a compiled iteration does not count itself
            self.paused, state.recorder = paused, recorder
            if not paused:
                self.sections[-1][1] = state.sequence_nr

    def resume(self) -> None:
        """What follows is recorded again."""
        if self._is_between:
            self._is_between = False
            self.resumed()

    def listened(self, run: Run, variables: Variables) -> Any:
        """Run an iteration, or what is interpreted of one, for the listener alone."""
        state = active.state
        before, state.recorder = state.recorder, self.listener
        try:
            return run(variables)
        finally:
            state.recorder = before

    def was_heard(self, sequence_nr: int) -> bool:
        """Whether a node was made where everything was recorded."""
        return not any(first <= sequence_nr < last for first, last in self.sections)

    def miss(self) -> None:
        """Note that the iteration that is running was the last one of its loop."""
        self.left.append(self.place())


def _nothing() -> None:
    """Nobody is to be told."""


_ENDLESS = 1 << 62
"""The length of a loop whose last iteration in a row that is not recorded is yet to come."""


class _LongLoop:
    """A loop of many iterations, of which the first and the last are recorded.

    Those between them may be compiled: what runs them tells nobody but the listener.
    """

    def __init__(
        self,
        loops: LongLoops,
        state: State,
        loop: Loop,
        body: Run,
        hot_loop: Callable[[], HotLoop | None],
    ) -> None:
        self.loops = loops
        self.state = state
        self.loop = loop
        self.body = body
        self.hot_loop = hot_loop

    def begin(
        self,
        variables: Variables,
        length: Callable[[], int] | None,
        between: Between,
        done: int = 0,
    ) -> Iterations | None:
        """The loop begins: what runs an iteration, and what is called behind the last; None where
        all are recorded.
        """
        loops, rounds = self.loops, self.loops.rounds
        if not rounds or rounds[-1].loop is not self.loop:  # a generator's, which is not counted
            return None
        if loops.paused:
            run, leave, _ = self._unheard(variables, length, between)
            return partial(loops.unheard_round, run), leave, None
        if loops.wanted is None or self.state.recorder is not loops.recorder:
            return None
        return self._begin(loops.wanted, rounds[-1], length, between)

    def _begin(
        self,
        wanted: frozenset[Rounds],
        current: Round,
        length: Callable[[], int] | None,
        between: Between,
    ) -> Iterations:
        """The same where some iterations are recorded."""
        loops, around = self.loops, self.loops.place()[:-1]
        unheard: Iterations | None = None
        last_heard, ends = 0, False

        def is_heard(number: int) -> bool:
            if number <= _HEARD or (length is not None and number > length() - _HEARD):
                return True
            return bool(wanted) and (*around, (self.loop.span.start, number)) in wanted

        def unheard_length() -> int:
            return 0 if ends else _ENDLESS

        def show(variables: Variables) -> None:
            if unheard is not None:
                unheard[1](variables)
                loops.resume()

        def run(variables: Variables) -> Any:
            nonlocal unheard, last_heard, ends
            number = current.number + 1
            if is_heard(number):
                show(variables)
                last_heard = number
                return self.body(variables)
            if unheard is None:
                known = None if length is None else unheard_length
                unheard = self._unheard(variables, known, between)
            ends = is_heard(number + 1)
            return loops.unheard_round(unheard[0], variables)

        def leave(variables: Variables) -> None:
            show(variables)
            if last_heard < current.number:
                loops.miss()

        return run, leave, None

    def _unheard(
        self, variables: Variables, length: Callable[[], int] | None, between: Between
    ) -> Iterations:
        """What runs iterations that are not recorded, and what is called behind the last."""
        hot, state = self.hot_loop(), self.state
        # What it guards against has to be what it is in the iterations.
        before, state.recorder = state.recorder, None
        try:
            begun = None if hot is None else hot.begin(variables, length, between)
        finally:
            state.recorder = before
        return begun or (partial(self.loops.listened, self.body), lambda variables: None, None)


def follow_loops(interpreter: Running) -> LongLoops:
    """Follow the loops of everything that the interpreter runs from now on."""
    loops = interpreter.long_loops = LongLoops()
    interpreter.compiler = LoopCompiler(interpreter)
    return loops


class LoopCompiler(Compiler):
    """Compiles closures of loops that know of which iterations the run is recorded."""

    __slots__ = ("loops",)

    def __init__(self, interpreter: Running) -> None:
        super().__init__(interpreter)
        self.loops: LongLoops | None = interpreter.long_loops

    def loop_body(self, loop: tree.For | tree.While, compile_block: Callable[[], Body]) -> Body:
        body: Any = super().loop_body(loop, compile_block)
        if self.loops is None:
            return cast(Body, body)
        rounds = self.loops.rounds

        def count_and_run(variables: Variables) -> Any:
            if rounds and rounds[-1].loop is loop:  # those of a generator are not reported
                rounds[-1].number += 1
            return body(variables)

        return cast(Body, count_and_run)

    def hot_loop(self, loop: Loop, scope: Scope, body: Run, in_try: bool) -> Callable[[], Any]:
        find, loops = super().hot_loop(loop, scope, body, in_try), self.loops
        return find if loops is None else lambda: _LongLoop(loops, self.state, loop, body, find)

    def _loop(self, node: tree.For | tree.While, run: Run) -> Run:
        if self.loops is None:
            return run
        rounds = self.loops.rounds

        def run_and_forget(variables: Variables) -> Any:
            rounds.append(Round(node, variables))
            try:
                return run(variables)
            finally:
                rounds.pop()

        return run_and_forget

    def statement(self, node: tree.Statement, scope: Scope) -> Run:
        run = super().statement(node, scope)
        return self._loop(node, run) if isinstance(node, (tree.For, tree.While)) else run
