"""Which rounds of a loop are ordinary ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gradcli.language.functions.control_flow import Run
from gradcli.language.loops.compiled import Arrays, Departure, Written
from gradcli.language.loops.guards import is_ordinary
from gradcli.language.loops.loop_carried import Admitted
from gradcli.language.loops.recorder import Trace
from gradcli.language.loops.verify import Effects, same_effects
from gradcli.language.tree.scopes import Scope, Variables

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Compiler

AFTER = 16
"""Ordinary rounds before one is traced: tracing costs about as much as it then saves in as many."""

SOON = 0.015
"""Seconds of ordinary rounds that are enough too, where rounds are long."""

_ATTEMPTS = 4
"""How often a loop is traced again, because what its rounds rely on has changed, too soon."""

WORTH = 64
"""Written rounds that are worth a trace."""

_FEW = 4
"""Written rounds of which one may depart from what was written, when it has cost two rounds."""


class TracedLoop:
    """A loop whose rounds may be traced.

    Attributes:
        rounds: how many ordinary ones there were since one was traced, or the loop began.
        spent: the seconds that they took.
        refused: whether no round will be traced.
        attempts: how often it may be traced yet without being worth it.
        written: the round that was traced last, None while there is none.
        compared: whether it was found to do the same as an ordinary one.
        served: how many rounds it has run.
        departures: how many of them departed from what was written.
        left: what it left last, None if an ordinary round came after it.
    """

    def __init__(self, compiler: Compiler, plan: Admitted, scope: Scope, body: Run) -> None:
        self.compiler = compiler
        self.plan = plan
        self.scope = scope
        self.body = body
        self.tests = [(compiler.expression(test, scope), test.span) for test in plan.tests]
        self.prepare = compiler.block(plan.prepared, scope)
        self.rest = compiler.block(plan.rest, scope)
        self.rounds = 0
        self.spent = 0.0
        self.refused = False
        self.attempts = _ATTEMPTS
        self.written: Written | None = None
        self.compared = False
        self.served = 0
        self.departures = 0
        self.left: Arrays | None = None

    def begin(
        self, variables: Variables, length: Callable[[], int] | None
    ) -> tuple[Run, Callable[[Variables], None]] | None:
        """The loop begins, perhaps once more.

        Args:
            variables: those that it runs with.
            length: how many rounds it will have, None where that cannot be known.

        Returns:
            What runs a round, and what lets the program see what the last one left; None where
            all are ordinary, as when somebody follows the program step by step.
        """
        if self.refused or self.compiler.interpreter.provenance is not None:
            return None
        self._check(variables)
        if length is None:
            return self._run_round, self._show
        numbers = count(1)
        return lambda variables: self._run_round(variables, next(numbers) >= length()), self._show

    def _run_round(self, variables: Variables, last: bool = False) -> Any:
        """Run one round, in whichever way; the last one of a loop whose length is known is an
        ordinary one. Returns the signal that it ended with.
        """
        early = self.rounds < AFTER and self.spent < SOON
        if last or early or self.refused or self._is_special(variables):
            self._show(variables)
            began = perf_counter()
            signal = self.body(variables)
            self.spent += perf_counter() - began
            self.rounds += 1
            self._check(variables)
            return signal
        if not is_ordinary(self.compiler.state) or self.compiler.interpreter.overrides:
            self._show(variables)
            return self.body(variables)
        try:
            self.prepare(variables)
        except Exception:
            self._show(variables)
            return self.body(variables)  # which does what comes before it, and fails too
        if self.written is None:
            return self._run_traced(variables)
        if not self.written.fits(variables, self.compiler.steps):
            self._show(variables)
            return self.rest(variables)
        if not self.compared:
            return self._compare(self.written, variables)
        return self._run_written(self.written, variables)

    def _is_special(self, variables: Variables) -> bool:
        """Whether this round does more than others do."""
        for test, span in self.tests:
            decision = test(variables)
            self.compiler.state.place = span
            if decision:
                return True
        return False

    def _check(self, variables: Variables) -> None:
        """Forget what was written if something that it relies on has changed."""
        if self.written is not None and not self.written.guard.holds(variables):
            self._forget()

    def _forget(self) -> None:
        self.written = None
        self.compared = False
        if self.served < WORTH:
            self.attempts -= 1
        self.served = 0
        self.departures = 0
        self.refused = not self.attempts
        self.rounds = 0
        self.spent = 0.0

    def _refuse(self) -> None:
        self.written = None
        self.refused = True

    def _run_written(self, written: Written, variables: Variables) -> Any:
        self.served += 1
        try:
            if self.left is None:
                written.begin()
            self.left = written.round()
        except Departure:
            self._show(variables)
            self.departures += 1
            signal = self.rest(variables)
            self._check(variables)
            if self.departures * _FEW > self.served + WORTH:
                self._refuse()
            return signal
        except Exception:
            self._show(variables)
            return self.rest(variables)  # which fails too, and says where
        return None

    def _show(self, variables: Variables) -> None:
        """Let what the round before left be seen, if it was a written one."""
        if self.written is not None and self.left is not None:
            self.written.show(self.left, variables)
        self.left = None

    def _run_traced(self, variables: Variables) -> Any:
        trace = Trace(self.compiler, self.scope, self.plan, variables)
        signal = trace.run()
        self.written = trace.result
        if trace.departed:
            self._forget()
        elif self.written is None:
            self._refuse()
        return signal

    def _compare(self, written: Written, variables: Variables) -> Any:
        """Run a round in both ways; from then on the written one serves if all is the same."""
        effects = Effects(self.compiler.state, written, variables)
        try:
            written.begin()
            arrays = written.finish(written.round())
            found = effects.seen(arrays[: len(written.named)])
        except Departure:
            signal = self.rest(variables)
            self._forget()
            return signal
        except Exception:
            found = None
        effects.undo()
        signal = self.rest(variables)
        now = effects.seen([variables[name].array for name in written.named])
        self.compared = found is not None and same_effects(found, now)
        if not self.compared:
            self._refuse()
        return signal
