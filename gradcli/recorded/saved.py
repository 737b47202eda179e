"""Lists what the nodes of a graph saved for the backward pass, and when it is freed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import FREED
from gradcli.autograd.recording.recorder import Event, Step
from gradcli.autograd.tensor import Tensor
from gradcli.record import Record
from gradcli.recorded.ledger import last_pass


class Saved(Record):
    """One value that a node saved.

    Attributes:
        name: PyTorch's name of it: `_saved_self`.
        held_by: the variable of the program that holds the same memory, None if only the graph
            does.
        shared: whether a node above saved the same memory.
        step: the number of the step of the backward pass that frees it; 0 if none ran.
    """

    node: GraphNode
    name: str
    array: Any
    held_by: str | None
    shared: bool
    step: int

    @property
    def size(self) -> int:
        """The bytes that the graph alone keeps: none for what a variable or another node holds."""
        return 0 if self.shared or self.held_by else int(self.array.nbytes)


class SavedValues:
    """All that a graph saved.

    Attributes:
        peak: the bytes that the graph alone keeps when the backward pass begins, which is the most:
            each step frees what its node saved.
        by_module: the same bytes by the path of the module that saved them, the largest first;
            "" for what no module did.
    """

    def __init__(self, values: Sequence[Saved]) -> None:
        self.values = values
        self.peak = sum(value.size for value in values)
        sizes: dict[str, int] = {}
        for value in values:
            path = value.node.module or ""
            sizes[path] = sizes.get(path, 0) + value.size
        self.by_module = sorted(sizes.items(), key=lambda row: -row[1])


def saved_values(
    graph: Graph, events: Sequence[Event], variables: dict[str, Tensor]
) -> SavedValues:
    """What the nodes saved, and which of the program's variables and leaves hold it too."""
    leaves = {node.variable: node.leaf for node in graph.nodes if node.leaf is not None}
    named = {**{name or "a leaf": leaf for name, leaf in leaves.items()}, **variables}
    holders = {id(_memory(tensor.array)): name for name, tensor in reversed(named.items())}
    steps: dict[int, int] = {}
    for event in last_pass(graph, events):
        node = graph.find(event.node)
        if isinstance(event, Step) and node is not None:
            steps.setdefault(node.id, len(steps) + 1)
    ordered = sorted(graph.nodes, key=lambda node: steps.get(node.id, len(graph.nodes) + 1))
    seen: set[int] = set()
    saved: list[Saved] = []
    for node in ordered:
        for name, array in saved_arrays(node):
            memory = id(_memory(array))
            step = steps.get(node.id, 0)
            held_by = holders.get(memory)
            saved.append(Saved(node, f"_saved_{name}", array, held_by, memory in seen, step))
            seen.add(memory)
    return SavedValues(saved)


def saved_arrays(node: GraphNode) -> Iterator[tuple[str, Any]]:
    """The arrays that a node saved and that are not freed yet, with the names of the rule."""
    for slot in type(node.node).__slots__:
        if slot.startswith("saved_"):
            value = getattr(node.node, slot, None)
            array = value.array if isinstance(value, Tensor) else value
            if value is not FREED and hasattr(array, "nbytes"):
                yield slot.removeprefix("saved_"), array


def _memory(array: Any) -> Any:
    """The array that owns the memory."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array
