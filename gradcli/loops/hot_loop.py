"""A hot loop: which of its iterations are interpreted, captured, compiled."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler.base import Between
from gradcli.language.compiler.statements.loops import Iterations, Length
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import CONTINUE, Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.loops.capture import Capture
from gradcli.loops.compiled import Arrays, CompiledIteration, LeftInEffects
from gradcli.loops.finishing import NotSettled, finish, overlap
from gradcli.loops.locations import Item
from gradcli.loops.loop_carried import analysed
from gradcli.loops.symbols import CHANGED
from gradcli.loops.verify import Effects, same_effects
from gradcli.state import active, is_unobserved
from gradcli.trace.graph_break import GraphBreak
from gradcli.trace.guards import SideExit

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Compiler

HOT_AFTER = 4
"""Interpreted iterations before one is captured: the first ones make what later ones find, as
gradients and an optimizer's memory. That there are enough to pay was seen before (`_MANY`).
"""

_ATTEMPTS = 4
"""How often a loop is captured again, because what its iterations rely on has changed, too soon."""

PAYS_AFTER = 64
"""Compiled iterations that are worth a capture."""

ITERATIONS_PER_EXIT = 4
"""Compiled iterations of which one may leave by a side exit, when it has cost two iterations."""

_SHORT = 8
"""Iterations of a loop whose last one is not worth interpreting for what it leaves."""

_PATHS = 4
"""Paths through the body that are compiled."""


class Path:
    """One way through the body, compiled.

    Attributes:
        stored: the places that it leaves values in.
        changed: the lists and dicts that it changes, by their ids.
        found: those that it takes for constant.
        verified: whether it was found to do what the interpreter does.
        entered: whether nothing has run since that it does not know of.
    """

    def __init__(self, written: CompiledIteration, walk: Capture) -> None:
        self.written = written
        kept = {key for key, (_, value) in walk.stored.items() if value is walk.found.get(key, key)}
        self.stored = walk.stored.keys() - kept  # `w -= …` stores the `w` that it found
        self.found = {*walk.found, *walk.guard.values}
        self.given = set(walk.given)
        places = [place for place, _ in walk.stored.values()]
        owners = [place.owner for place in places if isinstance(place, Item)]
        self.changed = {id(each) for each in (*walk.grown, *owners)}
        self.names = {each.location.key for each in written.named}
        self.unseen = set(written.unseen)
        self.verified = False
        self.served = 0
        self.entered = False

    def covers(self, other: Path) -> bool:
        """Whether this path binds and forgets anew all that the other leaves unseen."""
        return self is other or (other.names <= self.names and other.unseen <= self.unseen)

    def disturbs(self, other: Path) -> bool:
        """Whether this path changes what the other takes for constant."""
        guard = other.written.guard
        if self.changed & guard.contents.keys():
            return True
        looked_at = [each for check in guard.checks for each in check.inputs]
        return overlap(self.written.updated, looked_at)


class HotLoop:
    """A loop whose iterations may be compiled.

    Attributes:
        interpreted: how many iterations were interpreted, since one was captured or the loop began.
        attempts: how often one may be captured yet without being worth it.
        paths: the ways through the body that are compiled, the last one that ran first.
        carried: the places that hold another value in every iteration.
        lasting: those of tensors that are written to: others when the loop begins, not within it.
        between: what may run between two iterations.
        unsteady: how often an iteration was left because a number was another one that was taken
            for constant, by the span of what took it.
    """

    def __init__(
        self, compiler: Compiler, node: tree.For | tree.While, scope: Scope, body: Run
    ) -> None:
        self.compiler = compiler
        self.node = node
        self.scope = scope
        self.body = body
        self.plan = analysed(node)
        self.interpreted = 0
        self.refused = False
        self.attempts = _ATTEMPTS
        self.paths: list[Path] = []
        self.carried: set[Any] = set()
        self.lasting: set[Any] = set()
        self.broken: GraphBreak | None = None
        self.compiled_count = 0
        self.interpreted_count = 0
        self.exits = 0
        self.missed = 0
        self.between = Between.NOTHING
        self.unsteady: Counter[tuple[int, int]] = Counter()
        self._last_exit: SideExit | None = None
        self._steps_left = 0
        self.left: tuple[Path, Arrays] | None = None
        self._signal: Any = None

    def begin(
        self, variables: Variables, length: Length | None, between: Between
    ) -> Iterations | None:
        """The loop begins, perhaps once more.

        Args:
            length: how many iterations it will have, None where that cannot be known.
            between: what may run between two iterations.

        Returns:
            What runs an iteration, and what lets the program see what the last one left; None
            where all are interpreted, as when somebody follows the program step by step.
        """
        if self.compiler.interpreter.provenance is not None or active.state.autocast is not None:
            return None
        if self.refused:
            if length is not None:
                self.interpreted_count += length()
            return None
        self.between = self._between_tests(between, variables)
        if length is None or length() < _SHORT or self.between is not Between.NOTHING:
            self.plan = self.plan._replace(leaves=True, anew=frozenset())
            self._check(variables, begins=True)
            return self._run_iteration, self._show
        self._check(variables, begins=True)
        number = 0

        def run(variables: Variables) -> Any:
            nonlocal number
            number += 1
            if self.refused and self.left is None:
                self.interpreted_count += 1
                return self.body(variables)
            return self._run_iteration(variables, number >= length())

        return run, self._show

    def _between_tests(self, between: Between, variables: Variables) -> Between:
        """What may run between two iterations, where objects of the program are tested too."""
        known = (int, float, bool, str, type(None), Tensor)
        outer = self.compiler.values
        tested = [variables.get(name, outer.get(name)) for name in self.plan.tested]
        plain = between is not Between.NOTHING or all(isinstance(each, known) for each in tested)
        return between if plain else Between.COUNTED

    def _run_iteration(self, variables: Variables, last: bool = False) -> Any:
        """Run one iteration, in whichever way; a known last one is interpreted."""
        if self.refused and self.left is None:
            self.interpreted_count += 1
            return self.body(variables)
        if last or (self.interpreted < HOT_AFTER and not self.paths):
            return self._interpret(variables)
        state, steps = self.compiler.state, self.compiler.steps
        if self.between is Between.ANYTHING or steps.left + steps.charged != self._steps_left:
            self._check(variables)
        if not is_unobserved(state) or self.compiler.interpreter.overrides:
            self.broken = self.broken or GraphBreak(
                "B06", "forward_ad, inference mode, a transform or a listener is at work"
            )
            return self._interpret(variables)
        for path in list(self.paths):
            written = path.written
            if not (path.entered and written.settled) and not written.guard.finds_gradients():
                replaced = written.guard.replaced()
                if replaced:
                    self.carried |= replaced
                    self.paths.remove(path)
                continue
            if not written.fits(variables, steps):
                continue
            if not path.verified:
                if self._verify(path, variables):
                    return self._signal
                continue
            counts = state.sequence_nr, steps.left
            try:
                left = self._run_compiled(path, variables)
            except SideExit as found:
                state.sequence_nr, steps.left = counts
                self.exits += 1
                self._note(found)
                continue
            except BaseException as error:
                self._check_whole(error)
                state.sequence_nr, steps.left = counts
                return self._interpret(variables)  # which fails too, and says where
            self.left = path, left
            if self.between is not Between.NOTHING:
                self._show(variables)
            self._steps_left = steps.left + steps.charged - 1  # the next iteration is a step
            if path is not self.paths[0]:
                self.paths.remove(path)
                self.paths.insert(0, path)
            return None
        return self._run_missed(variables)

    def _run_compiled(self, path: Path, variables: Variables) -> Arrays:
        if self.left is not None and not path.covers(self.left[0]):
            self._show(variables)
        if not path.entered:
            for each in self.paths:
                each.entered = False
            path.written.enter(variables)
            path.entered = True
        left = self._executed(path.written, variables)
        path.served += 1
        self.compiled_count += 1
        return left

    def _executed(self, written: CompiledIteration, variables: Variables) -> Arrays:
        state = self.compiler.state
        if written.undoes:
            effects = Effects(state, written, variables)
            try:
                return written.execute()
            except BaseException:
                effects.undo()
                raise
        left = written.execute()
        if state.interruption is not None:  # which came while the iteration had effects
            self.left = None
            written.show(left, variables)
            interruption, state.interruption = state.interruption, None
            raise interruption
        return left

    def _note(self, found: SideExit) -> None:
        """An iteration was left."""
        self._last_exit = found.with_traceback(None)  # whose frames hold the iteration's arrays
        if found.reason == CHANGED and found.span is not None:
            self.unsteady[found.span.start, found.span.end] += 1

    def _check_whole(self, error: BaseException) -> None:
        """Raise where an iteration was interrupted, or failed in the middle of its effects, which
        is a bug of ours.
        """
        state = self.compiler.state
        in_effects, state.is_in_effects = state.is_in_effects, False
        if not isinstance(error, Exception):
            raise error
        if in_effects:
            raise LeftInEffects from error

    def _run_missed(self, variables: Variables) -> Any:
        """Run an iteration that no compiled path is for."""
        if not self.paths:
            return self._capture(variables)
        self.missed += 1
        served = sum(path.served for path in self.paths)
        if self.missed * ITERATIONS_PER_EXIT > served + PAYS_AFTER:
            reason = "too many iterations take other paths than those that are compiled"
            span = self.node.span
            if self._last_exit is not None:
                reason = f"{reason}: {self._last_exit.reason}"
                span = self._last_exit.span or span
            self.broken = GraphBreak("B07", reason, span=span)
            self._refuse()
        elif self.attempts > 0 and len(self.paths) < _PATHS and self.missed > 1:
            return self._capture(variables)
        return self._interpret(variables)

    def _interpret(self, variables: Variables) -> Any:
        self._show(variables)
        signal = self.body(variables)
        self.interpreted += 1
        self.interpreted_count += 1
        self._check(variables)
        return signal

    def _check(self, variables: Variables, begins: bool = False) -> None:
        """Forget the paths that rely on something that has changed: where the loop `begins`, it may
        stay what it is now.
        """
        if not self.paths:
            return
        for path in self.paths:
            path.entered = False
        held = [path for path in self.paths if path.written.guard.holds(variables)]
        if len(held) < len(self.paths):
            for path in self.paths:
                guard = path.written.guard
                changed = guard.changed_inputs if begins else guard.changed
                self.carried |= changed(variables) - (self.lasting if begins else set())
            served = sum(path.served for path in self.paths)
            self.paths = held
            if not held:
                self._forget(served)

    def _forget(self, served: int) -> None:
        if served < PAYS_AFTER:
            self.attempts -= 1
        if self.attempts <= 0:
            self.broken = self.broken or self._changes()
            self._refuse()
        self.interpreted = 0

    def _changes(self) -> GraphBreak:
        reason = "what the iterations rely on changes too often"
        return GraphBreak("B08", reason, span=self.node.span)

    def _refuse(self) -> None:
        self.paths = []
        self.refused = True

    def _show(self, variables: Variables) -> None:
        """Let what the iteration before left be seen, if it was a compiled one."""
        if self.left is not None:
            path, arrays = self.left
            self.left = None
            path.written.show(arrays, variables)

    def _capture(self, variables: Variables) -> Any:
        """Run an iteration and record it."""
        self._show(variables)
        self.interpreted_count += 1
        self.interpreted += 1
        steps = self.compiler.steps
        before = steps.left
        carried = set(self.carried)
        walk = Capture(self.compiler, self.scope, self.plan, variables, carried, self.unsteady)
        signal = walk.run(self.node.body)
        found = walk.broken
        if found is None and not walk.computes():
            found = GraphBreak("B10", "the loop computes nothing with tensors", span=self.node.span)
            self.attempts = 1
        if found is None and signal in (None, CONTINUE):
            try:
                self._add(Path(finish(walk, before - steps.left), walk))
            except NotSettled:
                self.attempts -= 1
            except GraphBreak as late:
                found = late
                found.span = found.span or self.node.span
        self.carried |= walk.carried
        written_to = {walk.loaded.get(each) for each in walk.recorder.changed_inputs}
        self.carried -= written_to - self.lasting
        self.lasting |= written_to
        if found is not None:
            self.broken = found.with_traceback(None)  # whose frames hold the whole capture
            self.attempts -= 1
        if not self.paths:
            self.interpreted = 0
            if self.attempts <= 0:
                self.broken = self.broken or self._changes()
                self._refuse()
        self._check(variables)
        return signal

    def _add(self, path: Path) -> None:
        """Add a path that was compiled; those that it would disturb go."""
        kept = []
        for other in self.paths:
            both = (path.stored & other.found) | (other.stored & path.found)
            both |= (path.names & other.given) | (other.names & path.given)
            self.carried |= both
            if not (both or path.disturbs(other) or other.disturbs(path)):
                kept.append(other)
        if len(kept) < len(self.paths):
            self.attempts -= 1
            self.paths = []
            return
        self.paths.insert(0, path)

    def _verify(self, path: Path, variables: Variables) -> bool:
        """Run an iteration in both ways, to compare; False where this is not one for the path."""
        self._show(variables)
        written = path.written
        effects = Effects(self.compiler.state, written, variables)
        effects.hush()
        found = None
        try:
            written.enter(variables)
            # No other name holds what is large while the body runs.
            found = effects.seen(written.named_arrays(written.execute()), copies=True)
        except SideExit as exit:
            effects.undo()
            self._note(exit)
            return False
        except Exception:
            found = None
        except BaseException:
            effects.undo()
            raise
        effects.undo()
        effects.overhear()
        try:
            self._signal = self.body(variables)
        finally:
            self.compiler.state.emit = effects.emit
        self.interpreted_count += 1
        now = effects.seen([each.location.read(variables).array for each in written.named])
        path.verified = found is not None and same_effects(found, now)
        if not path.verified:
            self.broken = GraphBreak(
                "B09", "the compiled iteration did something else than the interpreted one"
            )
            self.broken.span = self.node.span
            self._refuse()
        self._check(variables)
        return True
