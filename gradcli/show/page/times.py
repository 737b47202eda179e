"""How long the modules of a graph took, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from gradcli.autograd.graph import Graph
from gradcli.autograd.naming import ModuleCall
from gradcli.autograd.node import Node
from gradcli.autograd.recording.stopwatch import Stopwatch
from gradcli.record import Record


class Forward(Record):
    """A call of a module that made nodes of a graph.

    Attributes:
        path: the module's.
        around: those of the modules whose calls it was made in.
    """

    path: str
    around: Sequence[str]
    seconds: float


class Times(Record):
    """What a stopwatch measured of a graph.

    Attributes:
        backward: for each node the seconds of its steps in the last pass that ran it.
    """

    forward: Sequence[Forward] = ()
    backward: Mapping[Node, float] = MappingProxyType({})


def times_of(
    graph: Graph, watch: Stopwatch, calls: Mapping[Node, ModuleCall], paths: Mapping[int, str]
) -> Times:
    """The times of a graph.

    Args:
        calls: the innermost call of a module in which a node was made.
        paths: the paths of modules by their `id`.
    """
    nodes = [each.node for each in graph.nodes]
    forward: dict[ModuleCall, Forward] = {}
    for node in nodes:
        call = calls.get(node)
        while call is not None and call in watch.calls and call not in forward:
            chain = _chain(watch, call)
            own, *around = [paths.get(id(each.module), "") for each in chain]
            forward[call] = Forward(own, around, watch.calls[call].seconds)
            call = watch.calls[call].outer
    backward = {node: seconds for node in nodes if (seconds := watch.seconds(node)) is not None}
    return Times([*forward.values()], backward)


def _chain(watch: Stopwatch, call: ModuleCall | None) -> list[ModuleCall]:
    """A call and those that it was made in."""
    chain: list[ModuleCall] = []
    while call is not None:
        chain.append(call)
        call = watch.calls[call].outer if call in watch.calls else None
    return chain
