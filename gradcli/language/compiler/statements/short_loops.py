"""Loops of few iterations, each of which takes long, and closures that optimizers call: whether
compiling what is left of them pays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from gradcli.autograd.tensor import Tensor
from gradcli.language.functions.hot_bodies import FEWEST
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Variables, names_around
from gradcli.state import is_unobserved

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Iterations, RunAlike, Running
    from gradcli.language.functions.calls import Function
    from gradcli.language.tree.syntax import For
    from gradcli.state import State
    from gradcli.trace.ir import GraphBreak

_TIMED = 4
"""Iterations after which a loop whose compilation did not seem to pay stays interpreted."""

_LOADING, _LOADED = 0.018, 0.003
"""Seconds that loading the compiler takes with what its first use makes, and a later use."""

_PER_NODE = 30e-6
"""Seconds that interpreting takes at most for a node of the graph, both ways: the rest of an
iteration is the work of the kernels, which compiled code calls too.
"""

_PER_NODE_OF_TRANSFORM = 80e-6
"""The same inside the transforms of `torch.func`."""


_MANY_LATER = 256
"""Iterations to come when a loop runs again, from which on compiling pays, whatever they take."""


def may_pay(interpreter: Running, length: int) -> bool:
    """Whether a loop of so many iterations is to be timed: compiling it may pay, and nobody hears
    what runs.
    """
    return (
        length >= FEWEST
        and interpreter.make_hot_loop is not None
        and interpreter.long_loops is None
        and is_unobserved(interpreter.state)
    )


def pays(left: int, seconds: float, nodes: int, transformed: bool) -> bool:
    """Whether compiling pays for so many iterations that are left.

    To capture an iteration and to verify the compiled one takes as long as interpreting several,
    and of the time that interpreting takes compiled code saves a part. Both were measured: for
    programs of `torch.func` 3 iterations and almost all, for others 11 and three fifths.

    Args:
        seconds, nodes: what one takes, and how many nodes it makes.
        transformed: whether a transform of `torch.func` runs in it.
    """
    of_transform, of_others = (3, 0.95, _PER_NODE_OF_TRANSFORM), (11, 0.6, _PER_NODE)
    costs, share, most = of_transform if transformed else of_others
    interpreting = min(seconds, most * nodes)
    loading = _LOADED if "gradcli.loops.hot_loop" in sys.modules else _LOADING
    saved = left * share * interpreting
    return saved > costs * interpreting + 2 * (seconds - interpreting) + loading


class TimedLoop:
    """A loop that stays interpreted, since compiling what was left of it would have taken longer
    than it saved; its attributes are those of a hot loop that is told of.
    """

    kind = "loop", "iteration"
    compiled_count = exits = 0
    paths: Sequence[Any] = ()

    def __init__(self, node: For) -> None:
        self.node = node
        self.interpreted_count = 0

    @property
    def broken(self) -> GraphBreak:
        """Why it is interpreted."""
        from gradcli.trace.ir import GraphBreak  # lazy: start-up: few ask for it

        reason = "compiling those that were left would have taken longer than it saved"
        return GraphBreak(reason, span=self.node.span, code="B12")


class ShortLoop:
    """Interprets the iterations of a loop, until it is known what one takes; where it pays, those
    that are left are compiled. Either way they give the same.

    Attributes:
        length: how many iterations there are, as far as is known now.
        begin_hot: what begins a hot loop of so many iterations, of which some ran already.
        later: how many will come when it runs again.
        stays: what is told how many iterations stay interpreted that compute with tensors.
        body: interprets an iteration; later what runs one.
        leave: what is called behind the last.
        alike: what runs several, None as long as nothing does.
    """

    def __init__(
        self,
        interpreter: Running,
        body: Run,
        length: Callable[[], int],
        begin_hot: Callable[[Variables, Callable[[], int], int], Iterations],
        later: int,
        stays: Callable[[int], None],
    ) -> None:
        self.state: State = interpreter.state
        self.loops = interpreter.hot_loops
        self.body = body
        self.length = length
        self.begin_hot = begin_hot
        self.later = later
        self.stays = stays
        self.leave: Callable[[Variables], None] = lambda variables: None
        self.alike: RunAlike | None = None
        self.done = 0
        self.seconds = float("inf")
        self.is_timed = True

    def run(self, variables: Variables) -> Any:
        """Run an iteration."""
        if not self.is_timed:
            return self.body(variables)
        state, compiled = self.state, self._compiled()
        nodes, transforms = state.sequence_nr, state.transform_count
        begun = perf_counter()
        signal = self.body(variables)
        seconds = perf_counter() - begun
        self.done += 1
        if self.done == 1:  # which loads what the others find
            return signal
        self.seconds = min(self.seconds, seconds)
        self.is_timed = self.done < _TIMED and self._compiled() == compiled
        left, made = self.length() - self.done, state.sequence_nr - nodes
        transformed = state.transform_count > transforms
        if self.later < _MANY_LATER and not pays(
            left + self.later, self.seconds, made, transformed
        ):
            if made and not self.is_timed and self._compiled() == compiled:
                self.stays(self.length())
            return signal
        if made and _goes_on_with_a_graph(variables, nodes):
            self.is_timed = False
        else:
            self._begin(variables)
        return signal

    def run_alike(self, variables: Variables, iterator: Any, bind: Any) -> Any:
        """Run the iterations that are like the last one, once they are compiled."""
        return None if self.alike is None else self.alike(variables, iterator, bind)

    def _compiled(self) -> int:
        """How many iterations of any loop ran compiled: an iteration with such has little left."""
        return sum(each.compiled_count for each in self.loops.values())

    def _begin(self, variables: Variables) -> None:
        done = self.done
        self.is_timed = False
        begun = self.begin_hot(variables, lambda: self.length() - done, done)
        self.body, self.leave, self.alike = begun


def _goes_on_with_a_graph(variables: Variables, before: int) -> bool:
    """Whether what was computed since a sequence number has a graph that reaches further back: of
    a loop whose iterations hand a graph on, no iteration is compiled.
    """
    seen: set[int] = set()
    left = [value.grad_fn for value in variables.values() if type(value) is Tensor]
    while left:
        node = left.pop()
        if node is None or node.sequence_nr <= before or id(node) in seen:
            continue
        seen.add(id(node))
        if any(each is not None and each.sequence_nr <= before for each in node.next_nodes):
            return True
        left += node.next_nodes
    return False


_HOT_AFTER = 256
"""Calls after which a closure is compiled, whatever they take."""


class HotClosure(Protocol):
    """A closure whose calls may run as compiled code (`gradcli/loops`).

    Attributes:
        begins: whether code of the program may have run since its last call.
    """

    begins: bool

    def call(self, function: Function) -> Any:
        """Call a function with its body."""


MakeHotClosure = Callable[["Running", "Function", int], HotClosure]
"""What makes a hot closure of a function that was called so often."""


class Closures:
    """The functions without arguments that optimizers call again and again, by their bodies: one
    may be defined anew for each step.
    """

    def __init__(self, interpreter: Running, make_hot: MakeHotClosure) -> None:
        self.interpreter = interpreter
        self.make_hot = make_hot
        self.known: dict[int, Closure] = {}

    def __call__(self, function: Function) -> Callable[[], Any]:
        """What calls a function, compiled where that pays, as long as no code of the program runs
        between the calls.
        """
        interpreter, body = self.interpreter, function.statements
        if (
            interpreter.long_loops is not None
            or interpreter.state.recorder is not None
            or names_around(function.parent) is not interpreter.values
        ):
            return function
        known = self.known.get(id(body))
        if known is None:
            known = self.known[id(body)] = Closure(interpreter, body, self.make_hot)
        elif known.hot is not None:
            known.hot.begins = True
        return partial(known.call, function)


class Closure:
    """One of them. How often it will be called nobody knows: as often again as it was.

    Attributes:
        body: the statements, whose identity tells it from others.
        called: how often it was called before it was hot.
        seconds: the least that a call took.
    """

    def __init__(self, interpreter: Running, body: Any, make_hot: MakeHotClosure) -> None:
        self.interpreter = interpreter
        self.body = body
        self.make_hot = make_hot
        self.called, self.seconds = 0, float("inf")
        self.hot: HotClosure | None = None

    def call(self, function: Function) -> Any:
        """Call it."""
        if self.hot is not None:
            return self.hot.call(function)
        state = self.interpreter.state
        nodes, transforms = state.sequence_nr, state.transform_count
        begun = perf_counter()
        result = function()
        self.seconds = min(self.seconds, perf_counter() - begun)
        self.called += 1
        made, transformed = state.sequence_nr - nodes, state.transform_count > transforms
        if self.called >= _HOT_AFTER or (
            self.called >= FEWEST and pays(self.called, self.seconds, made, transformed)
        ):
            self.hot = self.make_hot(self.interpreter, function, self.called)
        return result
