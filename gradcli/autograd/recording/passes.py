"""What is kept of the backward passes in iterations that are not recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.recording.recorder import Listener, Recorder
from gradcli.autograd.tensor import Tensor
from gradcli.record import Record
from gradcli.state import active


class Alike(Record):
    """Iterations of which one was heard.

    Attributes:
        arrivals: how often a gradient reached each leaf in it.
        count: how many more there were.
    """

    arrivals: Counter[Tensor]
    count: int = 0


class Passes(Listener):
    """Hears where backward passes begin, and how often gradients reach leaves.

    A recorder knows of each place only the last pass that it heard. That is the program's last one
    only where none follows that is not recorded: what it has of such a place is taken away, until
    it hears another one.

    Args:
        where: what gives the iterations that are running.
    """

    __slots__ = ("_behind", "_where", "alike", "arrived", "places", "reads")

    def __init__(self, behind: Recorder, where: Callable[[], Any]) -> None:
        super().__init__()
        self._behind = behind
        self._where = where
        self.places: dict[Any, Any] = {}
        self.arrived: Counter[Tensor] = Counter()
        self.alike: list[Alike] = []
        self.reads = False

    def differentiated(self, tensors: Sequence[Tensor], ended: bool) -> None:
        """`backward()` is called on tensors, or has come to its end."""
        state = active.state
        if state.backward_pass is None:
            self.places[state.place] = self._where()
            self._behind.outputs.pop(state.place, None)

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        self.arrived[node.variable] += 1

    def read_value(self, check: Any, operands: tuple[Any, ...]) -> None:
        """A read of values outside the ops."""
        self.reads = True

    def begin(self) -> None:
        """Iterations begin that are not recorded: they may run any of the passes."""
        for place in self.places:
            self._behind.outputs.pop(place, None)

    def lost(self) -> list[Any]:
        """For each place whose last pass was not recorded, the iterations of one."""
        return [where for place, where in self.places.items() if place not in self._behind.outputs]

    def counts(self) -> Counter[Tensor]:
        """How often gradients reached each leaf."""
        total = Counter(self.arrived)
        for each in self.alike:
            for leaf, number in each.arrivals.items():
                total[leaf] += number * each.count
        return total
