"""Annotates a backward graph with the value and the gradient of each node, for pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Arrival, Event, Step
from gradcli.autograd.recording.trace_recorder import Call
from gradcli.autograd.tensor import Tensor
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
