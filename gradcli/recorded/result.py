"""The result of a program: its output, the gradients and the kind of each (none,
structural zero, zero, value), the graph and the steps behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import has_values, is_uninitialized, to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.recording.recorder import Event
from gradcli.autograd.tensor import Tensor, gradient_edge
from gradcli.ops.definition.op import parameters_of
from gradcli.record import Record

NONE = "none"
STRUCTURAL_ZERO = "structural zero"
ZERO = "zero"
VALUE = "value"


NO_SHAPE = "no input has passed through its lazy layer, so it has no shape yet"
"""Why the parameter of a lazy layer has no gradient in front of the layer's first call."""


class Gradient:
    """What a backward pass left in an input's `.grad`.

    Attributes:
        node: its number in the graph, None if it is not in it.
        kind: `none` where there is no gradient; `structural zero` where it is zero whatever the
            values are, since every path to the input crosses an op without slope (`floor`); `zero`
            where the values make it so; `value` otherwise.
        reason: why there is none, or why it is structurally zero; "" otherwise.
    """

    def __init__(self, name: str | None, tensor: Tensor, graph: Graph, output: str) -> None:
        edge = None if is_uninitialized(tensor.array) else gradient_edge(tensor)[0]
        leaf = None if edge is None else graph.find(edge)
        self.name = name
        self.tensor = tensor
        self.node = None if leaf is None else leaf.id
        self.reason = ""
        if tensor.grad is None:
            self.kind = NONE
            self.reason = _why_none(tensor, leaf, output)
        elif not has_values(tensor.grad.array) or tensor.grad.array.any():
            self.kind = VALUE
        elif leaf is not None and not _has_slope(graph, leaf):
            self.kind = STRUCTURAL_ZERO
            self.reason = f"every way to it from {output} crosses an op without slope"
        else:
            self.kind = ZERO


def _why_none(tensor: Tensor, leaf: GraphNode | None, output: str) -> str:
    if not tensor.requires_grad:
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            return f"{tensor.dtype} carries no gradient"
        return "it does not require grad"
    if is_uninitialized(tensor.array):
        return NO_SHAPE
    if leaf is None:
        return f"no recorded operation leads from it to {output}"
    return "no gradient reached it"


def _has_slope(graph: Graph, target: GraphNode) -> bool:
    """Whether a path from the root to a node avoids the edges whose derivative is zero."""
    assert graph.root is not None
    seen = {graph.root.id}
    stack = [graph.root]
    while stack:
        node = stack.pop()
        if node is target:
            return True
        for number, edge in enumerate(node.edges):
            if edge.node is not None and edge.node.id not in seen and not flat(node, number):
                seen.add(edge.node.id)
                stack.append(edge.node)
    return False


def flat(node: GraphNode, number: int) -> bool:
    """Whether the derivative of an input is zero whatever the values are.

    A rule that asks for nothing but the gradient is a fixed linear map, so one probe decides.
    """
    op: Any = getattr(node.node, "op", None)
    if op is None or number >= len(op.inputs) or op.inputs[number] not in op.rules:
        return False
    rule = op.rules[op.inputs[number]]
    if parameters_of(rule) != ("grad",) or len(node.node.metadata) != 1:
        return False
    shape, dtype = node.node.metadata[0]
    probe = rule(np.ones(shape, dtype))
    return probe is None or not np.any(probe)


def has_nan(array: Any) -> bool:
    """Whether a floating array holds NaN."""
    host = to_host(forced(array))
    return host.dtype.kind in "fcV" and bool((host != host).any())


def has_infinity(array: Any) -> bool:
    """Whether a floating array holds an infinite number."""
    host = to_host(forced(array))
    if host.dtype.kind == "V":
        host = host.astype(np.float32)
    return host.dtype.kind in "fc" and bool(np.isinf(host).any())


# --- the result -----------------------------------------------------------------------------------


class Result(Record):
    """What a run came to.

    Attributes:
        name: the output's variable, None for the value of an expression.
        seed: the gradient that backward started from, None where it was not given.
        events: the events of the backward pass in order; empty if they were not recorded.
    """

    name: str | None
    output: Tensor
    seed: Tensor | None
    gradients: Sequence[Gradient]
    graph: Graph
    events: Sequence[Event] = ()
