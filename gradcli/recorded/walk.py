"""Steps through a recorded backward pass, forward and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.autograd.graph import Graph
from gradcli.autograd.recording.recorder import Accumulation, Arrival, Event


class Walk:
    """A position in a recorded backward pass.

    Attributes:
        stops: for each stop the numbers of its events: a node that ran or a leaf that was reached,
            and the sums that followed.
        at: the number of the stop, from 0.
        breaks: the names of nodes and variables to stop at.
    """

    def __init__(self, graph: Graph, events: Sequence[Event]) -> None:
        self.graph = graph
        self.events = events
        self.stops: list[list[int]] = []
        for number, event in enumerate(events):
            if isinstance(event, Accumulation) and self.stops:
                self.stops[-1].append(number)
            else:
                self.stops.append([number])
        self.at = 0
        self.breaks: set[str] = set()

    def go(self, stop: int) -> bool:
        """Go to a stop, or as near as there is one; whether that stop is there."""
        self.at = min(max(stop, 0), len(self.stops) - 1)
        return self.at == stop

    def on(self) -> bool:
        """Go on to the next stop with a break point, or to the end; whether there was one."""
        for stop in range(self.at + 1, len(self.stops)):
            if self.names(stop) & self.breaks:
                self.at = stop
                return True
        self.at = len(self.stops) - 1
        return False

    def event(self) -> Event:
        """The node or leaf of the stop."""
        return self.events[self.stops[self.at][0]]

    def names(self, stop: int) -> set[str]:
        """What a stop can be called: node, with and without number, variable, `NAME.grad`."""
        event = self.events[self.stops[stop][0]]
        node = self.graph.find(event.node)
        name = event.node.node_name
        names = {name, name.rstrip("0123456789"), name.partition("Backward")[0]}
        variable = None if node is None else node.variable
        if variable:
            names |= {variable, f"{variable}.grad"}
        return names

    def known(self) -> set[str]:
        """Everything that a break point can name."""
        return set().union(*map(self.names, range(len(self.stops))))

    def gradients(self) -> dict[str, Any]:
        """What the leaves have gathered up to here, by name."""
        gradients = {}
        for number in self.stops[self.at]:
            last = number
        for event in self.events[: last + 1]:
            if isinstance(event, Arrival):
                node = self.graph.find(event.node)
                shown = "a leaf" if node is None else f"#{node.id}"
                gradients[event.node.variable.name or shown] = event.new
        return gradients
