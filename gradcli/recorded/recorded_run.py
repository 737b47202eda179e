"""A run that was recorded whole, and the ways through its graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import Node
from gradcli.autograd.recording.trace_recorder import TraceRecorder
from gradcli.autograd.tensor import AccumulateGrad, Tensor
from gradcli.language.tree import syntax as tree
from gradcli.recorded.dataflow import Dataflow

if TYPE_CHECKING:
    from gradcli.errors import GradcliError, Span
    from gradcli.language.provenance import Provenance


class Recorded:
    """A run that was recorded whole.

    Attributes:
        recorder: the trace of its calls, writes and backward passes.
        provenance: what its expressions gave.
        output: the tensor whose gradient is meant, None where there is none.
        inputs: the tensors that arguments were bound to, by name.
        error: what the run ended with, None where it came to its end.
        has_numbers: whether its tensors hold numbers, and not shapes alone.
    """

    def __init__(
        self,
        program: Sequence[tree.Statement],
        values: dict[str, Any],
        recorder: TraceRecorder,
        provenance: Provenance,
        output: Tensor | None,
        output_name: str | None,
    ) -> None:
        self.program = program
        self.values = values
        self.recorder = recorder
        self.provenance = provenance
        self.output = output
        self.output_name = output_name
        self.inputs: dict[str, Tensor] = {}
        self.error: GradcliError | None = None
        self.has_numbers = True
        self.flow = Dataflow(recorder, provenance)

    def creation(self, tensor: Tensor) -> Span | None:
        """Where a tensor came to be."""
        for evaluation in self.provenance.evaluations:
            if evaluation.value is tensor and not isinstance(evaluation.node, tree.Name):
                return evaluation.node.span
        return None


def graph_of(node: Node) -> Graph:
    """The graph below a node."""
    if isinstance(node, AccumulateGrad):
        return Graph(node.variable)
    tensor = Tensor(None, True)
    tensor.grad_fn = node
    return Graph(tensor)


def path_to(graph: Graph, goal: GraphNode | None) -> list[GraphNode]:
    """The shortest way from the root to a node, or to the nearest leaf."""
    if graph.root is None:
        return []
    came: dict[int, GraphNode | None] = {graph.root.id: None}
    waiting = [graph.root]
    for node in waiting:
        if node is goal or (goal is None and node.leaf is not None):
            path: list[GraphNode] = []
            at: GraphNode | None = node
            while at is not None:
                path.insert(0, at)
                at = came[at.id]
            return path
        for edge in node.edges:
            if edge.node is not None and edge.node.id not in came:
                came[edge.node.id] = node
                waiting.append(edge.node)
    return []
