"""Loops of few iterations, each of which takes long: whether compiling those that are left pays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Variables
from gradcli.state import is_unobserved

if TYPE_CHECKING:
    from gradcli.language.compiler.base import Iterations, RunAlike, Running
    from gradcli.state import State

FEWEST = 10
"""Iterations of the shortest loop that is timed."""

_TIMED = 4
"""Iterations after which a loop whose compilation did not seem to pay stays interpreted."""

_LOADING, _LOADED = 0.025, 0.003
"""Seconds that loading the compiler takes with what its first use makes, and a later use."""

_PER_NODE = 30e-6
"""Seconds that interpreting takes at most for a node of the graph, both ways: the rest of an
iteration is the work of the kernels, which compiled code calls too.
"""

_PER_NODE_OF_TRANSFORM = 80e-6
"""The same inside the transforms of `torch.func`."""


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


class ShortLoop:
    """Interprets the iterations of a loop, until it is known what one takes.

    To capture an iteration and to verify the compiled one takes as long as interpreting several,
    and of the time that interpreting takes compiled code saves a part. Both were measured: for
    programs of `torch.func` 2 iterations and almost all, for others 11 and two fifths. Where the
    saving on the iterations that are left is the larger, they are compiled. Either way they give
    the same.

    Attributes:
        length: how many iterations there are, as far as is known now.
        begin_hot: what begins a hot loop of so many iterations, of which some ran already.
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
    ) -> None:
        self.state: State = interpreter.state
        self.loops = interpreter.hot_loops
        self.body = body
        self.length = length
        self.begin_hot = begin_hot
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
        if self._pays(state.sequence_nr - nodes, state.transform_count > transforms):
            self._begin(variables)
        return signal

    def run_alike(self, variables: Variables, iterator: Any, bind: Any) -> Any:
        """Run the iterations that are like the last one, once they are compiled."""
        return None if self.alike is None else self.alike(variables, iterator, bind)

    def _compiled(self) -> int:
        """How many iterations of any loop ran compiled: an iteration with such has little left."""
        return sum(each.compiled_count for each in self.loops.values())

    def _pays(self, nodes: int, transformed: bool) -> bool:
        """Whether compiling pays for iterations that make so many nodes."""
        of_transform, of_others = (2, 0.95, _PER_NODE_OF_TRANSFORM), (11, 0.4, _PER_NODE)
        costs, share, most = of_transform if transformed else of_others
        interpreting = min(self.seconds, most * nodes)
        loading = _LOADED if "gradcli.loops.hot_loop" in sys.modules else _LOADING
        saved = (self.length() - self.done) * share * interpreting
        return saved > costs * interpreting + 2 * (self.seconds - interpreting) + loading

    def _begin(self, variables: Variables) -> None:
        done = self.done
        self.is_timed = False
        begun = self.begin_hot(variables, lambda: self.length() - done, done)
        self.body, self.leave, self.alike = begun
