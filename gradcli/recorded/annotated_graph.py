"""A backward graph with the value and the gradient of each node, for pictures; and what its nodes
saved for the backward pass, and when it is freed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import FREED, Node
from gradcli.autograd.recording.recorder import Arrival, Event, Step
from gradcli.autograd.recording.trace_recorder import Call
from gradcli.autograd.tensor import Tensor
from gradcli.record import Record
from gradcli.recorded.ledger import last_pass


class AnnotatedGraph:
    """A graph and its numbers.

    Args:
        calls: what ran, where that was recorded.
        named: the tensors that names hold: their values are known without a record.
        has_numbers: whether the arrays hold numbers; without, only their shapes mean anything.
        titles: what modules are titled, by their paths.
        comparisons: the calls without a node, by the `id` of the tensor that came out.
    """

    def __init__(
        self,
        graph: Graph,
        events: Sequence[Event] = (),
        calls: Mapping[Node, Call] | None = None,
        named: Iterable[Tensor] = (),
        has_numbers: bool = True,
        titles: Mapping[str, str] = MappingProxyType({}),
        comparisons: Mapping[int, Call] = MappingProxyType({}),
    ) -> None:
        self.graph = graph
        self.has_numbers = has_numbers
        self.titles = titles
        self.comparisons = comparisons
        self._calls = calls or {}
        self._values: dict[Node, Any] = {
            tensor.grad_fn: tensor.array for tensor in named if tensor.grad_fn is not None
        }
        self._gradients: dict[Node, Any] = {}
        self._passed: dict[tuple[Node, int], Any] = {}
        used: dict[Node, set[int]] = {}
        for each in graph.nodes:
            for edge in each.edges:
                if edge.node is not None:
                    used.setdefault(edge.node.node, set()).add(edge.output_nr)
        if graph.root is not None:
            used.setdefault(graph.root.node, set()).add(graph.output_nr)
        for node, call in self._calls.items():
            output = call.output
            if type(output) is tuple and len(used.get(node, ())) == 1:
                output = output[next(iter(used[node]))]
            # What was written into since is the value of another node.
            if type(output) is Tensor and output.grad_fn is node:
                self._values[node] = output.array
        for event in last_pass(graph, events):
            if isinstance(event, Step):
                arrived = [grad for grad in event.grads if grad is not None]
                if len(arrived) == 1:
                    self._gradients[event.node] = arrived[0]
                for number, gradient in enumerate(event.fitted):
                    self._passed[event.node, number] = gradient
            elif isinstance(event, Arrival):
                self._gradients[event.node] = event.new

    def value(self, node: GraphNode) -> Any:
        """The value that a node stands for, None where it was not recorded; of several outputs the
        one that is used, None where more are.
        """
        if node.leaf is not None:
            return node.leaf.array
        if node is self.graph.root and len(node.node.metadata) == 1:
            return self.graph.tensor.array
        return self._values.get(node.node)

    def arguments(self, node: GraphNode) -> Mapping[str, Any] | None:
        """What an operation was called with, its operands too; None where that was not recorded."""
        call = self._calls.get(node.node)
        return None if call is None else call.arguments

    def gradient(self, node: GraphNode) -> Any:
        """The gradient that arrived at a node, None where none did, or one at each of several
        outputs.
        """
        if node.leaf is not None and node.leaf.grad is not None:
            return node.leaf.grad.array
        return self._gradients.get(node.node)

    def passed(self, node: GraphNode, number: int) -> Any:
        """What a node passed on along an edge, None where it passed on nothing."""
        return self._passed.get((node.node, number))


# --- what nodes saved -----------------------------------------------------------------------------


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
