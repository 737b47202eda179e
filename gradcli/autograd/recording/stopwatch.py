"""How long modules and backward steps take, measured as a program runs.

A stopwatch stands in front of the recorder. The time that recording takes is left out, so what it
measures is the program's own: the call of a module from its beginning to its end, with the calls
inside it, and each step of a backward pass with what the engine does for it. On a GPU it is the
time until the work was handed over.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gradcli.autograd.graph import ModuleCall
from gradcli.autograd.recording.recorder import Listener
from gradcli.record import Record
from gradcli.state import active

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.autograd.node import Node


class CallTime(Record):
    """How long a call of a module took.

    Attributes:
        outer: the call that it was made in, None for the outermost.
    """

    seconds: float
    outer: ModuleCall | None


class _Pass(Record):
    """A backward pass that runs: its number, and when its last event had been handed on."""

    number: int
    since: float


def _left_out(event: str) -> Any:
    """A method that hands an event on, and leaves out the time that this takes."""

    def method(self: Stopwatch, *details: Any) -> None:
        began = perf_counter()
        try:
            getattr(self.former, event)(*details)
        finally:
            self._away += perf_counter() - began

    return method


def _of_a_node(event: str) -> Any:
    """The same of an event in a backward pass, whose node gets the time since the event before."""
    hand_on = _left_out(event)

    def method(self: Stopwatch, node: Node, *details: Any) -> None:
        this = self._passes[active.state.backward_pass]
        number, seconds = self._steps.get(node, (this.number, 0.0))
        before = seconds if number == this.number else 0.0
        self._steps[node] = this.number, before + self._now() - this.since
        try:
            hand_on(self, node, *details)
        finally:
            this.since = self._now()

    return method


class Stopwatch(Listener):
    """Measures the calls of modules and the steps of backward passes.

    Attributes:
        calls: the calls of modules that have ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[ModuleCall, CallTime] = {}
        self._running: list[tuple[ModuleCall, float]] = []
        # The number of the pass that ran a node last, and the seconds of its steps in that.
        self._steps: WeakKeyDictionary[Node, tuple[int, float]] = WeakKeyDictionary()
        # Passes may run inside one another.
        self._passes: WeakKeyDictionary[Any, _Pass] = WeakKeyDictionary()
        self._begun = 0
        self._away = 0.0

    def _now(self) -> float:
        """The seconds that the program has run."""
        return perf_counter() - self._away

    def seconds(self, node: Node) -> float | None:
        """How long the steps of a node took in the last pass that ran it, None where none did."""
        timed = self._steps.get(node)
        return None if timed is None else timed[1]

    def entered(self, call: ModuleCall) -> None:
        """A module is called."""
        self._running.append((call, self._now()))

    def left(self, call: ModuleCall) -> None:
        """The call of a module ended, also by an error."""
        _, began = self._running.pop()
        outer = self._running[-1][0] if self._running else None
        self.calls[call] = CallTime(self._now() - began, outer)

    def prepared(self, seconds: float) -> None:
        """An op was called for the first time in this process; that is no time of the program's."""
        self._away += seconds

    def backward(self, roots: Sequence[tuple[Node, int, Any]], accumulate: bool) -> None:
        """A backward pass begins."""
        _left_out("backward")(self, roots, accumulate)
        self._begun += 1
        self._passes[active.state.backward_pass] = _Pass(self._begun, self._now())

    operation = _left_out("operation")
    write = _left_out("write")
    computed = _left_out("computed")
    read_value = _left_out("read_value")
    returned = _left_out("returned")
    step = _of_a_node("step")
    accumulation = _of_a_node("accumulation")
    leaf = _of_a_node("leaf")
