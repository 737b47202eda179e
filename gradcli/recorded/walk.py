"""Steps through a recorded backward pass, forward and back; and what hooks changed in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.graph import Graph
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Accumulation, Arrival, Event, Step
from gradcli.language.tree import syntax as tree


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


# --- what hooks changed ---------------------------------------------------------------------------


def before_hooks(events: Sequence[Event]) -> list[dict[int, Any]]:
    """For each event the gradients that a hook replaced before it, by output number."""
    passed: dict[tuple[Node, int], Any] = {}
    replaced: list[dict[int, Any]] = []
    for event in events:
        if isinstance(event, Accumulation):
            # With several outputs, which of them it was is not recorded.
            for number in range(len(event.node.metadata)):
                passed.pop((event.node, number), None)
            if len(event.node.metadata) == 1:
                passed[event.node, 0] = event.new
            replaced.append({})
            continue
        arrived = [event.incoming] if isinstance(event, Arrival) else event.grads
        replaced.append(
            {
                number: passed[event.node, number]
                for number, gradient in enumerate(arrived)
                if (event.node, number) in passed
                and not _alike(passed[event.node, number], gradient)
            }
        )
        if not isinstance(event, Arrival):
            edges = zip(event.node.next_nodes, event.node.input_nrs, event.fitted, strict=True)
            for node, number, gradient in edges:
                if node is not None and gradient is not None:
                    passed[node, number] = gradient
    return replaced


def hook_calls(
    program: Sequence[tree.Statement],
    variables: Mapping[Node, str | None],
    events: Sequence[Event],
    among: Collection[Node],
) -> Iterator[tuple[tree.Call, str]]:
    """The registrations of hooks that changed a gradient, with what each was registered on.

    Args:
        variables: what the program calls each node's output.
        among: the nodes whose hooks are meant.
    """
    changed = {
        variables.get(event.node)
        for event, replaced in zip(events, before_hooks(events), strict=True)
        if replaced and isinstance(event, (Arrival, Step)) and event.node in among
    }
    others = {*variables.values()} - changed
    by_modules = any(_is_of_module(event) for event in events if event.node in among)
    for each in tree.nodes_of(list(program)) if changed or by_modules else ():
        if not isinstance(each, tree.Call) or not isinstance(each.function, tree.Attribute):
            continue
        owner, method = each.function.value.span.text, each.function.name
        if not method.startswith("register_") or not method.endswith("hook"):
            continue
        if not changed and "full_backward" not in method:
            continue
        # A loop's variable, say, is none of the names; another tensor's name is.
        if _path(owner) not in others or method != "register_hook":
            yield each, owner


def _is_of_module(event: Event) -> bool:
    """Whether a backward hook of a module replaced a gradient: its node passes on what arrives."""
    if not isinstance(event, Step) or event.node.node_name != "BackwardHookFunctionBackward":
        return False
    return not all(map(_alike, event.grads, event.fitted))


def _path(text: str) -> str:
    """The path of a parameter that the program writes with subscripts."""
    return re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", text)


def _alike(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    a, b = np.asarray(forced(a)), np.asarray(forced(b))
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
