"""A hot loop: which of its iterations are interpreted, captured, compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from gradcli.autograd.recording.recorder import Alike, Passes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.language.compiler.base import Between, Compiler, Iterations
from gradcli.language.compiler.statements.blocks import Length
from gradcli.language.long_loops import LongLoops
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import CONTINUE, Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.loops.capture import Capture
from gradcli.loops.compiled import Arrays, CompiledIteration, Effects, FailedInEffects, Undo
from gradcli.loops.finishing import NotSettled, finish
from gradcli.loops.guards import is_input
from gradcli.loops.locations import Returned, analysed
from gradcli.loops.reach import TooMany
from gradcli.loops.symbols import CHANGED, Clock
from gradcli.loops.walk import expressions, statements  # noqa: F401  each handler registers itself
from gradcli.state import active, is_unobserved
from gradcli.trace.ir import GraphBreak, SideExit
from gradcli.trace.passes import SEPARATE_PASSES

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Compiler, Running
    from gradcli.language.functions.calls import Function
    from gradcli.trace.ir import Trace

HOT_AFTER = 4
"""Interpreted iterations before one is captured: the first ones make what later ones find, as
gradients and an optimizer's memory. That there are enough to pay was seen before (`_MANY`).
"""

_ATTEMPTS = 4
"""How often a loop is captured again, because what its iterations rely on has changed, too soon."""

_ATTEMPTS_OF_FEW = 2
"""The same of a loop of few iterations."""

PAYS_AFTER = 64
"""Compiled iterations that are worth a capture."""

ITERATIONS_PER_EXIT = 4
"""Compiled iterations of which one may leave by a side exit, when it has cost two iterations."""

FLAT_AFTER = 96
"""Compiled iterations after which making flat programs of one pays."""

_TOGETHER = 64
"""Iterations that run in one call."""

_SHORT = 8
"""Iterations of a loop whose last one is not worth interpreting for what it leaves."""

_PATHS = 4
"""Paths through the body that are compiled."""


class HotLoop:
    """A loop whose iterations may be compiled.

    Attributes:
        kind: what it is called, and what it repeats.
        passes: what the traces of its iterations go through, None for all passes.
        interpreted: how many iterations were interpreted since the last capture, or the beginning.
        attempts: how many more captures may turn out useless before the loop stays interpreted.
        paths: the ways through the body that are compiled, the last one that ran first.
        carried: the places whose values differ from iteration to iteration.
        lasting: the places of tensors that are written to: they change when the loop begins again,
            and not within it.
        between: what may run between two iterations.
        unsteady: how often a side exit was taken because a number had changed that was compiled as
            a constant, by the span of the expression that reads it.
    """

    kind = "loop", "iteration"
    passes: Sequence[Callable[[Trace], Trace]] | None = None

    def __init__(
        self,
        compiler: Compiler,
        node: tree.For | tree.While,
        scope: Scope,
        body: Run,
        in_try: bool,
    ) -> None:
        self.compiler = compiler
        self.node = node
        self.scope = scope
        self.body = body
        self.plan = analysed(node, in_try)
        self.interpreted = 0
        self.refused = False
        self.attempts = _ATTEMPTS
        self.paths: list[CompiledIteration] = []
        self.carried: set[Any] = set()
        self.lasting: set[Any] = set()
        self.broken: GraphBreak | None = None
        self.compiled_count = 0
        self.interpreted_count = 0
        self.exits = 0
        self.captures = 0
        self.missed = 0
        self.between = Between.NOTHING
        self.unsteady: Counter[tuple[int, int]] = Counter()
        self._last_exit: SideExit | None = None
        self._steps_left = 0
        self.unshown: tuple[CompiledIteration, Arrays] | None = None
        self._signal: Any = None

    @property
    def is_refused(self) -> bool:
        """Whether all its iterations are interpreted from now on."""
        return self.refused and self.unshown is None

    def begin(
        self, variables: Variables, length: Length | None, between: Between, done: int = 0
    ) -> Iterations | None:
        """Prepare for a run of the loop; it may have run before.

        Args:
            length: how many iterations it will have, None where that cannot be known.
            between: what may run between two iterations.
            done: how many were interpreted already, of a loop of few: the next one is captured.

        Returns:
            Functions: one runs an iteration, one stores the results of the last one for the
            program, and one, where nothing runs between two iterations, those that are alike. None
            where all are interpreted, as when the program is stepped through.
        """
        if active.state.autocast is not None:
            return None
        if self.refused:
            if length is not None:
                self.interpreted_count += length()
            return None
        if done:
            self.interpreted, self.attempts = HOT_AFTER, min(self.attempts, _ATTEMPTS_OF_FEW)
            self.interpreted_count += done
        self.between = self._between_tests(between, variables)
        self._check(variables, begins=True)
        if length is None or length() + done < _SHORT or self.between is not Between.NOTHING:
            self.plan = self.plan._replace(leaves=True, anew=frozenset())
            return self._run_iteration, self._show, None
        number = 0

        def run(variables: Variables) -> Any:
            nonlocal number
            number += 1
            if self.refused and self.unshown is None:
                self.interpreted_count += 1
                return self.body(variables)
            return self._run_iteration(variables, number >= length())

        def run_alike(
            variables: Variables, iterator: Any, bind: Callable[[Variables, Any], None]
        ) -> Any:
            nonlocal number
            while number + 1 < length() and self._goes_on():
                count = length() - number - 1
                if count > 1 and self.paths[0].rounds is not None:
                    done = self._run_rounds(variables, count, iterator, bind)
                    number += done
                    if not done:
                        return None
                    continue
                self.compiler.steps.left -= 1
                bind(variables, next(iterator))
                number += 1
                path = self.paths[0]
                fits = path.fits(variables, self.compiler.steps)
                if not (fits and self._attempt(path, variables) is None):
                    return self._run_iteration(variables)
            return None

        return run, self._show, run_alike

    def _between_tests(self, between: Between, variables: Variables) -> Between:
        """What may run between two iterations, where objects of the program are tested too."""
        known = (int, float, bool, str, type(None), Tensor)
        outer = self.compiler.values
        tested = [variables.get(name, outer.get(name)) for name in self.plan.tested]
        plain = between is not Between.NOTHING or all(isinstance(each, known) for each in tested)
        return between if plain else Between.COUNTED

    def _run_iteration(self, variables: Variables, last: bool = False) -> Any:
        """Run one iteration, in whichever way; a known last one is interpreted."""
        if self.refused and self.unshown is None:
            self.interpreted_count += 1
            return self.body(variables)
        if last or (self.interpreted < HOT_AFTER and not self.paths):
            return self._interpret(variables)
        state, steps = self.compiler.state, self.compiler.steps
        if self.between is Between.ANYTHING or steps.left + steps.charged != self._steps_left:
            self._check(variables)
        if not is_unobserved(state) or self.compiler.interpreter.overrides:
            self.broken = self.broken or GraphBreak(
                "forward_ad, inference mode, a transform or a listener is at work"
            )
            return self._interpret(variables)
        for path in list(self.paths):
            if not (path.entered and path.settled) and not path.guard.finds_gradients():
                replaced = path.guard.replaced()
                if replaced:
                    self.carried |= replaced
                    self.paths.remove(path)
                continue
            if not path.fits(variables, steps):
                continue
            if path.served >= FLAT_AFTER and path.may_be_flat:
                self._show(variables)
                path.flatten()
            if not path.verified:
                if self._verify(path, variables):
                    return self._signal
                continue
            failure = self._attempt(path, variables)
            if isinstance(failure, SideExit):
                self.exits += 1
                self._note(failure)
                continue
            if failure is not None:
                self._last_exit = SideExit("an error is raised inside of `try`", None)
                self._misses_too_often()
                return self._interpret(variables)  # which fails too, and says where
            if self.between is not Between.NOTHING:
                self._show(variables)
            if path is not self.paths[0]:
                self.paths.remove(path)
                self.paths.insert(0, path)
            return None
        return self._run_missed(variables)

    def _goes_on(self) -> bool:
        """Whether the next iteration, too, may be one of the path of the last one, and nothing has
        to be looked at before.
        """
        if self.unshown is None:
            return False
        path, steps = self.unshown[0], self.compiler.steps
        return (
            path is self.paths[0]
            and path.entered
            and path.settled
            and not (path.may_be_flat and path.served >= FLAT_AFTER)
            and steps.left > path.steps
        )

    def _attempt(self, path: CompiledIteration, variables: Variables) -> BaseException | None:
        """Run a compiled iteration; what ended it, with what is counted as it was, or None."""
        state, steps = self.compiler.state, self.compiler.steps
        counts = state.sequence_nr, steps.left
        try:
            left = self._run_compiled(path, variables)
        except BaseException as failure:
            if not isinstance(failure, SideExit):
                self._check_whole(failure)
            state.sequence_nr, steps.left = counts
            return failure
        self.unshown = path, left
        self._steps_left = steps.left + steps.charged - 1  # the next iteration is a step
        return None

    def _run_rounds(
        self, variables: Variables, count: int, iterator: Any, bind: Callable[..., None]
    ) -> int:
        """Run some of the next iterations in one call, and draw their values; how many ran."""
        path, state, steps = self.paths[0], self.compiler.state, self.compiler.steps
        assert path.rounds is not None
        nodes, left_steps = state.sequence_nr, steps.left
        most = min(count, _TOGETHER, steps.left // (path.steps + 1))
        done, left, failure = path.rounds(most, state, "interruption")
        if failure is not None:
            state.sequence_nr = nodes + done * path.nodes
            steps.left = left_steps - done * path.steps
        if done:
            steps.left -= done
            path.served += done
            self.compiled_count += done
            bind(variables, next(islice(iterator, done - 1, None)))
            self.unshown = path, left
            self._steps_left = steps.left + steps.charged - 1
            self._raise_interruption(path, left, variables)
        if failure is not None and not isinstance(failure, SideExit):
            self._check_whole(failure)
        return done

    def _raise_interruption(self, path: CompiledIteration, left: Any, variables: Variables) -> None:
        """Raise what came while an iteration had effects."""
        if self.compiler.state.interruption is not None:
            self.unshown = None
            path.show(left, variables)
            self._raise_stored()

    def _raise_stored(self) -> None:
        state = self.compiler.state
        interruption, state.interruption = state.interruption, None
        if interruption is not None:
            raise interruption

    def _run_compiled(self, path: CompiledIteration, variables: Variables) -> Arrays:
        if self.unshown is not None and not path.covers(self.unshown[0]):
            self._show(variables)
        if not path.entered:
            for each in self.paths:
                each.entered = False
            path.enter(variables)
            path.entered = True
        left = self._executed(path, variables)
        path.served += 1
        self.compiled_count += 1
        return left

    def _executed(self, path: CompiledIteration, variables: Variables) -> Arrays:
        state = self.compiler.state
        if path.undoes:
            undo = Undo.before_one(state, path, variables)
            try:
                return path.execute()
            except BaseException:
                undo.run()
                raise
        left = path.execute()
        self._raise_interruption(path, left, variables)
        return left

    def _note(self, side_exit: SideExit) -> None:
        """Count a side exit."""
        self._last_exit = side_exit.with_traceback(None)  # whose frames hold the iteration's arrays
        if side_exit.reason == CHANGED and side_exit.span is not None:
            self.unsteady[side_exit.span.start, side_exit.span.end] += 1

    def _check_whole(self, error: BaseException) -> None:
        """Raise where an iteration was interrupted, or failed between its effects, which is a bug
        of gradcli.
        """
        state = self.compiler.state
        in_effects, state.is_in_effects = state.is_in_effects, False
        if not isinstance(error, Exception):
            raise error
        if in_effects:
            raise FailedInEffects from error

    def _run_missed(self, variables: Variables) -> Any:
        """Run an iteration that no compiled path is for."""
        if not self.paths:
            return self._capture(variables)
        refused = self._misses_too_often()
        if not refused and self.attempts > 0 and len(self.paths) < _PATHS and self.missed > 1:
            return self._capture(variables)
        return self._interpret(variables)

    def _misses_too_often(self) -> bool:
        """Count an iteration that was not compiled though others are; whether there were so many
        that none is from now on.
        """
        self.missed += 1
        served = sum(path.served for path in self.paths)
        if self.missed * ITERATIONS_PER_EXIT <= served + PAYS_AFTER:
            return False
        reason = "too many iterations take other paths than those that are compiled"
        span = self.node.span
        if self._last_exit is not None:
            reason = f"{reason}: {self._last_exit.reason}"
            span = self._last_exit.span or span
        self.broken = GraphBreak(reason, span=span, code="B07")
        self._refuse()
        return True

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
        held = [path for path in self.paths if path.guard.holds(variables)]
        if len(held) < len(self.paths):
            for path in self.paths:
                guard = path.guard
                changed = guard.changed_inputs if begins else guard.changed
                self.carried |= changed(variables) - (self.lasting if begins else set())
            if not held:
                self.attempts -= sum(path.served for path in self.paths) < PAYS_AFTER
                self._start_over()
            self.paths = held

    def forget(self, leaf: Tensor) -> None:
        """Forget the paths that rely on a leaf whose data is being replaced, with the graphs of the
        iterations that were recorded: the leaf's accumulator lives as long as a graph holds it.
        """
        gone = [path for path in self.paths if leaf in path.guard.tensors]
        for path in gone:
            self.paths.remove(path)
            if self.unshown is None or self.unshown[0] is not path:
                path.release()
        if gone and not self.paths:
            self.attempts -= sum(path.served for path in gone) < PAYS_AFTER
            self._start_over()

    def _start_over(self) -> None:
        """Allow a new capture after the last path was discarded, unless there were too many: not
        always as many iterations later, since what happens every five would be met each time.
        """
        self.interpreted = self.captures % HOT_AFTER
        if self.attempts <= 0:
            reason = "what the iterations rely on changes too often"
            self.broken = self.broken or GraphBreak(reason, span=self.node.span, code="B08")
            self._refuse()

    def _refuse(self) -> None:
        self.paths = []
        self.refused = True

    def _show(self, variables: Variables) -> None:
        """Store the results of the last iteration for the program, if it was a compiled one."""
        if self.unshown is not None:
            path, arrays = self.unshown
            self.unshown = None
            path.show(arrays, variables)

    def _capture(self, variables: Variables) -> Any:
        """Run an iteration and record it."""
        self._show(variables)
        self.interpreted_count += 1
        self.interpreted += 1
        steps = self.compiler.steps
        before = steps.left
        if not self.captures:  # what it cannot be sure of, it finds out
            values = {name: variables.get(name) for name in self.plan.rebound}
            self.carried |= {("own", name) for name, each in values.items() if is_input(each)}
        self.captures += 1
        walk = self._capture_of(variables)
        signal = self._walked(walk)
        graph_break = walk.broken
        if graph_break is None and not walk.computes():
            graph_break = GraphBreak(
                "the loop computes nothing with tensors", span=self.node.span, code="B10"
            )
            self.attempts = 1
        if graph_break is None and signal in (None, CONTINUE):
            try:
                self._add(finish(walk, before - steps.left, self.passes))
            except NotSettled:
                self.attempts -= 1
            except GraphBreak as late:
                graph_break = late
                graph_break.span = graph_break.span or self.node.span
        self.carried |= walk.carried
        written_to = {walk.loaded.get(each) for each in walk.recorder.changed_inputs}
        self.carried -= written_to - self.lasting
        self.lasting |= written_to
        if graph_break is not None:
            self.broken = graph_break.with_traceback(None)  # whose frames hold the whole capture
            self.attempts -= 1
        if not self.paths:
            self._start_over()
        self._check(variables)
        return signal

    def _walked(self, walk: Capture) -> Any:
        """Run the iteration that is captured; returns the signal that it ended with."""
        return walk.run(self.node.body)

    def _add(self, path: CompiledIteration) -> None:
        """Add a path that was compiled; those that it would disturb go."""
        kept = []
        for other in self.paths:
            both = (path.stored & other.relied) | (other.stored & path.relied)
            both |= (path.names & other.loaded) | (other.names & path.loaded)
            both |= path.switches(other) | other.switches(path)
            self.carried |= both
            if not (both or path.disturbs(other) or other.disturbs(path)):
                kept.append(other)
        if len(kept) < len(self.paths):
            self.attempts -= 1
            self.paths = []
            return
        self.paths.insert(0, path)

    def _verify(self, path: CompiledIteration, variables: Variables) -> bool:
        """Run an iteration in both ways, to compare; False where this is not one for the path.

        The interpreted one is the last: what the program goes on with is what that has left, and
        what it began with is what was there before.
        """
        self._show(variables)
        try:
            effects = Effects(self.compiler.state, path, variables)
        except TooMany:
            return self._distrust(
                "the iteration reaches more objects than are worth comparing", variables
            )
        if effects.closed is not None:
            reason = (
                f"a function is given {effects.closed}, of which nobody can see whether it changes"
            )
            return self._distrust(reason, variables)
        effects.listen(shows=False)
        readings: list[Any] = []
        try:
            path.enter(variables)
            # No other name holds what is large while the body runs.
            path.place(path.clock.keeping(readings, path.execute), variables)
            compiled = effects.seen(copies=True)
        except Exception:
            compiled = None
        except BaseException as failure:
            effects.undo()
            if not isinstance(failure, SideExit):
                raise
            self._note(failure)
            return False
        effects.undo()
        self.compiler.state.is_in_effects = False  # where it failed between them
        self._raise_stored()
        effects.listen(shows=True)
        try:
            self._signal = self._interpreted_again(variables, readings)
        finally:
            self.compiler.state.emit = effects.emit
        self.interpreted_count += 1
        different = "all" if compiled is None else effects.difference(compiled, effects.seen())
        path.verified = different is None
        if not path.verified:
            reason = "the compiled iteration did something else than the interpreted one"
            self.broken = GraphBreak(f"{reason}: {different}", span=self.node.span, code="B09")
            self._refuse()
        self._check(variables)
        return True

    def _interpreted_again(self, variables: Variables, readings: Sequence[Any]) -> Any:
        """Interpret the iteration that a compiled one did; the clocks say what they said there."""
        if not readings:
            return self.body(variables)
        walk = self._capture_of(variables)
        walk.clock = Clock(readings)
        return self._walked(walk)

    def _capture_of(self, variables: Variables) -> Capture:
        """What records an iteration while it runs."""
        carried = set(self.carried)
        return Capture(self.compiler, self.scope, self.plan, variables, carried, self.unsteady)

    def _distrust(self, reason: str, variables: Variables) -> bool:
        """Interpret an iteration, and all that follow, since it cannot be compared."""
        self.broken = GraphBreak(reason, span=self.node.span, code="B11")
        self._refuse()
        self._signal = self.body(variables)
        self.interpreted_count += 1
        return True


class HotClosure(HotLoop):
    """A function without arguments that an optimizer calls again and again, however often it is
    defined anew: its calls are like the iterations of a loop whose body is its body.

    It has been called already. Between two calls the optimizer changes the parameters, and looks at
    gradients: nothing is computed once for several, and what a call leaves is shown. Where the
    program may have run, guards are looked at too.

    Attributes:
        begins: whether the program may have run since the last call.
    """

    kind = "closure", "call"
    passes = SEPARATE_PASSES

    def __init__(self, interpreter: Running, function: Function, called: int) -> None:
        body = function.statements
        first, last = body[0].span, body[-1].span
        span = Span(first.source, first.start, last.end)
        node = tree.While(span, tree.Constant(span, True), body, [])
        super().__init__(interpreter.compiler, node, function.scope, self._interpreted, False)
        self.plan = self.plan._replace(leaves=True, anew=frozenset())
        self.begins = True
        self.interpreted_count = called
        self._own = function.body
        self._ended: Any = None
        self._runs = False

    def call(self, function: Function) -> Any:
        """Call it."""
        if self._runs:  # inside itself
            return function()
        own = function.enter_by(self._call)
        self._own, self._runs = own, True
        try:
            return function()
        finally:
            function.enter_by(own)
            self._runs = False

    def _call(self, variables: Variables) -> Any:
        """Run the body with these variables, in whichever way."""
        self.between = Between.ANYTHING if self.begins else Between.COUNTED
        self.begins, self._ended = False, None
        for path in self.paths:
            path.entered = False
        ended = self._run_iteration(variables)
        if Returned.name in variables:
            return (variables.pop(Returned.name),)
        return self._ended or ended

    def _interpreted(self, variables: Variables) -> Any:
        ended = self._own(variables)
        if ended is not None:
            variables[Returned.name] = ended[0]
        return ended

    def _walked(self, walk: Capture) -> Any:
        """Run the call that is captured: of its own variables only the result outlives it."""
        ended = super()._walked(walk)
        if walk.broken is not None or type(ended) is not tuple:
            return ended
        for key in [key for key in walk.stored if key[0] == "own"]:
            del walk.stored[key]
        value = ended[0]
        walk.note(Returned(value.name if type(value) is Tensor else None), walk.ended[0])
        self._ended = ended
        return None


class UnheardLoop(HotLoop):
    """A hot loop of which a run records some iterations.

    What is interpreted of it is told to the listener of `LongLoops`: also the iteration that is
    captured, and the one that the compiled code is compared with. So it has heard each way through
    the body that is compiled; what depends on values, it may check in compiled iterations too
    (`Listener.check`).
    """

    def __init__(
        self,
        compiler: Compiler,
        node: tree.For | tree.While,
        scope: Scope,
        body: Run,
        in_try: bool,
        following: LongLoops,
    ) -> None:
        super().__init__(
            compiler, node, scope, lambda variables: following.listened(body, variables), in_try
        )
        self._following = following
        self._arrivals: Counter[Tensor] = Counter()
        self._alike: dict[CompiledIteration, Alike] = {}

    def _walked(self, walk: Capture) -> Any:
        self._following.rounds[-1].number += 1  # the captured body does not count itself
        passes = self._following.listener
        before = Counter(passes.arrived) if isinstance(passes, Passes) else Counter()
        signal = self._following.listened(lambda _: walk.run(self.node.body), walk.variables)
        if isinstance(passes, Passes):
            self._arrivals = passes.arrived - before
        return signal

    def _add(self, path: CompiledIteration) -> None:
        super()._add(path)
        passes = self._following.listener
        if isinstance(passes, Passes):
            self._alike[path] = Alike(self._arrivals)
            passes.alike.append(self._alike[path])

    def _run_compiled(self, path: CompiledIteration, variables: Variables) -> Arrays:
        left = super()._run_compiled(path, variables)
        if path in self._alike:
            self._alike[path].count += 1
        return left
