"""Which rounds of a loop are ordinary ones."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import meta_of
from gradcli.language.rounds.admission import Admitted
from gradcli.language.rounds.guard import is_ordinary
from gradcli.language.rounds.straight_line import same
from gradcli.language.rounds.trace import Trace
from gradcli.language.rounds.written import Written
from gradcli.language.scopes import Scope, Variables
from gradcli.language.signals import Run
from gradcli.state import State

if TYPE_CHECKING:
    from gradcli.language.compiler import Compiler

AFTER = 16
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
        written: the round that was traced last, None while there is none.
        compared: whether it was found to do the same as an ordinary one.
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
        self.written: Written | None = None
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
            if self.written is None:
                self._run_traced(variables)
            elif not self.written.fits(variables, self.compiler.steps):
                self.rest(variables)
            elif not self.compared:
                self._compare(self.written, variables)
            else:
                self._run_written(self.written, variables)

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
        self.attempts -= 1
        self.wait = AFTER if self.attempts else _NEVER

    def _run_written(self, written: Written, variables: Variables) -> None:
        try:
            written.round()
        except MemoryError:
            self.rest(variables)
        except KeyboardInterrupt:
            # The session may go on: what the loop names is then to be there.
            self.rest(variables)
            raise

    def _run_traced(self, variables: Variables) -> None:
        self.written = Trace(self.compiler, self.scope, self.plan, variables).run()
        if self.written is None:
            self.wait = _NEVER

    def _compare(self, written: Written, variables: Variables) -> None:
        """Run a round in both ways; from then on the written one serves if all is the same."""
        effects = Effects(self.compiler.state, written, variables)
        named = written.round()
        found = effects.seen()
        effects.undo()
        self.rest(variables)
        now = effects.seen()
        ordinary = [variables[name].array for name in written.named]
        self.compared = found[1] == now[1] and _are_same([*found[0], *named], [*now[0], *ordinary])
        if not self.compared:
            self.wait = _NEVER


class Effects:
    """What a round changes: parameters, their versions and gradients, numbers, lists, counts."""

    def __init__(self, state: State, written: Written, variables: Variables) -> None:
        self.state = state
        self.variables = variables
        self.tensors = written.updated
        self.leaves = list(written.guard.gradients)
        self.numbers = written.counted
        self.lists = written.grown
        self.arrays = [tensor.array.copy() for tensor in self.tensors]
        self.versions = [tensor.version for tensor in self.tensors]
        self.gradients = [leaf.grad for leaf in self.leaves]
        self.values = [self.variables[name] for name in self.numbers]
        self.lengths = [len(values) for values in self.lists]
        self.counts = self.state.sequence_nr, self.state.steps.left

    def seen(self) -> tuple[list[Any], list[Any]]:
        """All of that as it is now: arrays, and what is compared as text."""
        gradients = [leaf.grad for leaf in self.leaves]
        return (
            [tensor.array.copy() for tensor in self.tensors]
            + [None if each is None else each.array.copy() for each in gradients],
            [tensor.version for tensor in self.tensors]
            + [repr(self.variables[name]) for name in self.numbers]
            + [repr(values[n:]) for values, n in zip(self.lists, self.lengths, strict=True)]
            + [self.state.sequence_nr, self.state.steps.left],
        )

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


def _are_same(ones: list[Any], others: list[Any]) -> bool:
    """Whether arrays are the same, one by one, or both None."""
    return all(
        one is other if one is None or other is None else same(one, other)
        for one, other in zip(ones, others, strict=True)
    )
