"""Which rounds of a loop are ordinary ones."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import meta_of
from gradcli.language.rounds.admission import Admitted
from gradcli.language.rounds.guard import is_ordinary
from gradcli.language.rounds.straight_line import same
from gradcli.language.rounds.trace import Round, Trace
from gradcli.language.scopes import Scope, Variables
from gradcli.language.signals import Run

if TYPE_CHECKING:
    from gradcli.language.compiler import Compiler

AFTER = 32
"""Ordinary rounds before one is traced: tracing costs about as much as it then saves in as many."""

_ATTEMPTS = 4
"""How often a loop is traced: each time what its rounds rely on has changed."""

_NEVER = 1 << 62
"""More rounds than any loop has."""


class TracedLoop:
    """A loop whose rounds may be traced.

    Attributes:
        wait: ordinary rounds until one is traced.
        attempts: how often it may be traced yet.
        trace: of the round that was traced last, None while there is none.
        candidate: the round as straight-line Python, None while there is none.
        compared: whether it was found to do the same as an ordinary round.
    """

    def __init__(self, compiler: Compiler, plan: Admitted, scope: Scope, body: Run) -> None:
        self.compiler = compiler
        self.plan = plan
        self.scope = scope
        self.body = body
        self.tests = [(compiler.expression(test, scope), test.span) for test in plan.tests]
        self.prepare = compiler.block(plan.prepared, scope)
        self.rest = compiler.block(plan.rest, scope)
        self.wait = AFTER
        self.attempts = _ATTEMPTS
        self.trace: Trace | None = None
        self.candidate: Round | None = None
        self.compared = False

    def begin(self, variables: Variables, values: Collection[Any]) -> Run:
        """The loop begins, perhaps once more: what runs its rounds, one for each of the values."""
        if self.compiler.interpreter.followed is not None:
            return self.body
        self._check(variables)
        numbers = count(1)

        def run_round(variables: Variables) -> None:
            self._run_round(variables, last=next(numbers) >= len(values))

        return run_round

    def _run_round(self, variables: Variables, last: bool) -> None:
        """Run one round, in whichever way; the last one of the loop is an ordinary one."""
        self.wait -= 1
        if last or self.wait >= 0 or self._is_special(variables):
            self.body(variables)
            self._check(variables)
        elif not is_ordinary(self.compiler.state) or self.compiler.interpreter.overrides:
            self.body(variables)
        else:
            self.prepare(variables)
            if self.trace is None or self.candidate is None:
                self._run_traced(variables)
            elif not self.trace.fits(variables):
                self.rest(variables)
            elif not self.compared:
                self._compare(self.trace, self.candidate, variables)
            else:
                self._run_written(self.candidate, variables)

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
        if self.trace is not None and not self.trace.guard.holds(variables):
            self._forget()

    def _forget(self) -> None:
        self.trace = self.candidate = None
        self.compared = False
        self.attempts -= 1
        self.wait = AFTER if self.attempts else _NEVER

    def _run_written(self, written: Round, variables: Variables) -> None:
        try:
            written()
        except MemoryError:
            self.rest(variables)
        except KeyboardInterrupt:
            # The session may go on: what the loop names is then to be there.
            self.rest(variables)
            raise

    def _run_traced(self, variables: Variables) -> None:
        trace = Trace(self.compiler, self.scope, self.plan, variables)
        self.candidate = trace.run()
        if self.candidate is None:
            self.wait = _NEVER
        else:
            self.trace = trace

    def _compare(self, trace: Trace, candidate: Round, variables: Variables) -> None:
        """Run a round in both ways; from then on the written one serves if all is the same."""
        effects = Effects(trace)
        named = candidate()
        found = effects.seen()
        effects.undo()
        self.rest(variables)
        ordinary = [variables[name].array for name in trace.named]
        self.compared = effects.seen() == found and all(map(same, named, ordinary))
        if not self.compared:
            self.wait = _NEVER


class Effects:
    """What a round changes: parameters, their versions and gradients, numbers, lists, counts."""

    def __init__(self, trace: Trace) -> None:
        self.state = trace.state
        self.variables = trace.variables
        self.tensors = list(dict.fromkeys([*trace.updated, *trace.gradients.lasting]))
        self.leaves = list(trace.guard.gradients)
        self.numbers = trace.counted
        self.lists = trace.grown
        self.arrays = [tensor.array.copy() for tensor in self.tensors]
        self.versions = [tensor.version for tensor in self.tensors]
        self.gradients = [leaf.grad for leaf in self.leaves]
        self.values = [self.variables[name] for name in self.numbers]
        self.lengths = [len(values) for values in self.lists]
        self.counts = self.state.sequence_nr, self.state.steps.left

    def seen(self) -> list[Any]:
        """All of that as it is now, in a form to compare."""
        gradients = [leaf.grad for leaf in self.leaves]
        return [
            [_kept(tensor.array) for tensor in self.tensors],
            [None if each is None else _kept(each.array) for each in gradients],
            [tensor.version for tensor in self.tensors],
            [repr(self.variables[name]) for name in self.numbers],
            [repr(values[n:]) for values, n in zip(self.lists, self.lengths, strict=True)],
            (self.state.sequence_nr, self.state.steps.left),
        ]

    def undo(self) -> None:
        """Bring everything back to what it was at first."""
        for tensor, array, version in zip(self.tensors, self.arrays, self.versions, strict=True):
            tensor.array[...] = array
            if tensor.storage is not None:
                tensor.storage.version = version
        for leaf, gradient in zip(self.leaves, self.gradients, strict=True):
            meta_of(leaf).grad = gradient
        self.variables.update(zip(self.numbers, self.values, strict=True))
        for values, length in zip(self.lists, self.lengths, strict=True):
            del values[length:]
        self.state.sequence_nr, self.state.steps.left = self.counts


def _kept(array: Any) -> tuple[Any, ...]:
    return type(array), array.dtype, array.shape, array.strides, array.tobytes()
