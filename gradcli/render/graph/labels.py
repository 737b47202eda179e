"""What the pictures of a graph say at each node and edge, in whatever format."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.printing import format_elements
from gradcli.autograd.graph import GraphNode
from gradcli.autograd.tensor import Tensor
from gradcli.explain.ledger.annotated_graph import AnnotatedGraph
from gradcli.render.graph.nodes import output_of, source_of
from gradcli.render.style import escaped

_WIDEST = 40


def node_lines(node: GraphNode, annotated: AnnotatedGraph) -> list[str]:
    """The lines of a node: what it is, its name, its value and its gradient."""
    first = node.variable if node.leaf is not None else source_of(node)
    lines = [shortened(first)] if first else []
    lines.append(node.name)
    value, gradient = annotated.value(node), annotated.gradient(node)
    if value is not None:
        lines.append(f"value {number_text(value)}")
    if gradient is not None:
        lines.append(f"grad {number_text(gradient)}")
    return lines


def edge_text(node: GraphNode, number: int, annotated: AnnotatedGraph) -> str:
    """The words at an edge: its number, and what flowed along it."""
    edge = node.edges[number]
    ending = "" if edge.node is None else output_of(edge.node, edge.output_nr)
    passed = annotated.passed(node, number)
    flowed = "" if passed is None else f" {number_text(passed)}"
    return f"[{number}]{ending}{flowed}"


def constant_text(constant: Any) -> str:
    """An operand that no gradient flows to."""
    if isinstance(constant, Tensor):
        name = f"{constant.name} = " if constant.name else ""
        return f"{name}{number_text(constant.array)}"
    return repr(constant)


def number_text(array: Any) -> str:
    """A small array on one line, the shape of another."""
    if array.size <= 6:
        text = " ".join(format_elements(array).split())
        if len(text) <= _WIDEST:
            return text
    return f"of shape {tuple(array.shape)}"


def shortened(text: str) -> str:
    """Program text, cut where it is long."""
    text = escaped(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
