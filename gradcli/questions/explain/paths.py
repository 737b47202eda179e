"""Computes the share of each path from the output to a leaf in the leaf's gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.engine import accumulate
from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.recording.recorder import Event, Step
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.record import Record
from gradcli.recorded.ledger import last_pass

_MOST_PATHS = 100

_CANCELLED = 1e-3
"""Shares cancel where their sum is smaller than this part of the sum of their sizes."""


class Path(Record):
    """One path from the output to a leaf.

    Attributes:
        edges: the numbers of the edges that lead from one to the next.
        share: what it contributes to the leaf's gradient.
    """

    nodes: Sequence[GraphNode]
    edges: Sequence[int]
    share: Any


class Paths:
    """All paths to a leaf, depth first, the sum of their shares, and where they cancel."""

    def __init__(self, leaf: Tensor, paths: Sequence[Path]) -> None:
        self.leaf = leaf
        self.paths = paths
        shares = [path.share for path in paths]
        self.total = sum(shares[1:], shares[0]) if shares else np.zeros_like(leaf.array)
        sizes = sum((np.abs(share) for share in shares), np.zeros_like(leaf.array))
        lost = (np.abs(self.total) < _CANCELLED * sizes) & (sizes > 0)
        self.cancelled = [tuple(map(int, index)) for index in np.argwhere(lost)]


def paths_to(graph: Graph, events: Sequence[Event], leaf: Tensor) -> Paths:
    """Every path from the output to a leaf, with its share.

    A rule is linear in its gradient, so what flows along one path alone is what the rules on it
    give for what flows into them along it.

    Raises:
        GradcliError: E602 for more than a hundred paths.
    """
    target = next((node for node in graph.nodes if node.leaf is leaf), None)
    first = next((e for e in last_pass(graph, events) if isinstance(e, Step)), None)
    if target is None or graph.root is None or first is None:
        return Paths(leaf, ())
    counts = _counts(graph, target)
    if counts[graph.root.id] > _MOST_PATHS:
        raise GradcliError(
            "E602",
            f"{counts[graph.root.id]:,} paths lead to the leaf, and up to {_MOST_PATHS} are shown",
            help="ask for the paths to a value nearer to the output, or in a smaller program",
        )
    paths: list[Path] = []
    stack: list[tuple[list[GraphNode], list[int], Any]] = [([graph.root], [], first.grads)]
    while stack:
        nodes, edges, grads = stack.pop()
        node = nodes[-1]
        if node is target:
            paths.append(Path(nodes, edges, grads[0]))
            continue
        incoming = grads if node.node.multiple else grads[0]
        gradients = node.node.run(incoming, True)
        for number in reversed(range(len(node.edges))):
            edge, gradient = node.edges[number], gradients[number]
            if edge.node is None or gradient is None or not counts[edge.node.id]:
                continue
            metadata = edge.node.node.metadata
            passed: list[Any] = [None] * len(metadata)
            values = forced(gradient)
            passed[edge.output_nr] = accumulate.sum_to_size(
                node.node, values, values, *metadata[edge.output_nr]
            )
            stack.append(([*nodes, edge.node], [*edges, number], passed))
    return Paths(leaf, paths)


def _counts(graph: Graph, target: GraphNode) -> dict[int, int]:
    """How many paths lead from each node to the target."""
    counts: dict[int, int] = {}
    stack = [(graph.nodes[0], False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            counts[node.id] = int(node is target) + sum(
                counts[edge.node.id] for edge in node.edges if edge.node is not None
            )
        elif node.id not in counts:
            stack.append((node, True))
            stack += [(edge.node, False) for edge in node.edges if edge.node is not None]
    return counts
