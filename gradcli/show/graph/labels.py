"""What the pictures of a graph say at each node and edge, in whatever format; and the graph in the
languages of Mermaid, which GitHub shows as a picture, and Graphviz.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.printing import format_elements
from gradcli.autograd.graph import GraphNode
from gradcli.autograd.tensor import Tensor
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.show.graph.nodes import output_of, source_of
from gradcli.show.style import clipped, escaped

_WIDEST = 40

_MOST = 6
"""The elements of an array that is shown whole."""


def node_rows(
    node: GraphNode, annotated: AnnotatedGraph, source: Callable[[GraphNode], str]
) -> list[tuple[str, str]]:
    """The lines of a node and the role of each: `name`, `node`, `value` or `gradient`."""
    first = shortened(source(node)) if node.leaf is None else path_text([node.variable or ""])
    rows = [("name", first)] if first else []
    rows.append(("node", shortened(node.name)))
    value, gradient = annotated.value(node), annotated.gradient(node)
    if not annotated.has_numbers:
        return rows if value is None else [*rows, ("value", shape_text(value))]
    if value is not None:
        rows.append(("value", f"value {number_text(value)}"))
    if gradient is not None:
        rows.append(("gradient", f"grad {number_text(gradient)}"))
    return rows


def node_lines(node: GraphNode, annotated: AnnotatedGraph) -> list[str]:
    """The lines of a node: what it is, its name, its value and its gradient."""
    return [text for _, text in node_rows(node, annotated, source_of)]


def edge_text(node: GraphNode, number: int, annotated: AnnotatedGraph) -> str:
    """The words at an edge: its number, and what flowed along it."""
    edge = node.edges[number]
    ending = "" if edge.node is None else output_of(edge.node, edge.output_nr)
    passed = annotated.passed(node, number)
    known = passed is not None and annotated.has_numbers
    flowed = f" {number_text(passed)}" if known else ""
    return f"[{number}]{ending}{flowed}"


def constant_text(constant: Any, annotated: AnnotatedGraph) -> str:
    """An operand that no gradient flows to, with its name."""
    name = getattr(constant, "name", None)
    if isinstance(constant, Tensor) and not annotated.has_numbers:
        text = shape_text(constant.array)
    else:
        text = operand_text(constant)
    return f"{name} = {text}" if name else text


def operand_text(constant: Any) -> str:
    """The value of an operand that no gradient flows to."""
    return number_text(constant.array) if isinstance(constant, Tensor) else repr(constant)


def number_text(array: Any) -> str:
    """A small array on one line, shape and norm of another."""
    return f"{shape_text(array)} {magnitude_text(array)}" if is_large(array) else _elements(array)


def magnitude_text(array: Any, most: int = _MOST) -> str:
    """A small array on one line, the norm of another."""
    return f"norm {norm_text(array)}" if is_large(array, most) else _elements(array)


def is_large(array: Any, most: int = _MOST) -> bool:
    """Whether an array is shown by its norm: it has more than so many elements, or long ones."""
    return bool(array.size > most or len(_elements(array)) > _WIDEST)


def _elements(array: Any) -> str:
    return " ".join(format_elements(array).split())


def shape_text(array: Any) -> str:
    """The sizes of an array: `(3, 4)`."""
    return str(tuple(array.shape))


def flow_text(gradient: Any) -> str:
    """A gradient at an arrow: its numbers, or its norm where it is large; "" for none."""
    if gradient is None:
        return ""
    return number_text(gradient) if gradient.size <= 2 else f"norm {norm_text(gradient)}"


def norm_text(array: Any) -> str:
    """The Euclidean norm of all elements, to four digits."""
    numbers = to_host(array)
    numbers = numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64)
    return f"{float(np.linalg.norm(numbers.ravel())):.4g}"


def path_text(path: Sequence[str], room: int = _WIDEST) -> str:
    """The path of a module or parameter, `net.0.weight`; of a long one its end."""
    text = escaped(".".join(path))
    return text if len(text) <= room else f"…{text[len(text) - room + 1 :]}"


def shortened(text: str) -> str:
    """Program text, cut where it is long."""
    return clipped(escaped(text), _WIDEST)


# --- Mermaid and Graphviz -------------------------------------------------------------------------


_ENTITIES = {
    ord(character): f"#{code};"
    for character, code in {
        '"': "quot", "#": "35", "&": "amp", "<": "lt", ">": "gt", "`": "96", "\\": "92",
        "\n": "10", "|": "124",
    }.items()
}  # fmt: skip
"""Mermaid reads these itself, even between quotes, or hands them to HTML or Markdown."""


def _edges(
    node: GraphNode, annotated: AnnotatedGraph, quoted: Callable[[str], str]
) -> Iterator[tuple[str, str, str | None]]:
    """The edges of a node that lead somewhere: what flowed along each, the name of its target, and
    the target's text where that is a constant.
    """
    for number, edge in enumerate(node.edges):
        words = quoted(edge_text(node, number, annotated))
        if edge.node is not None:
            yield words, f"n{edge.node.id}", None
        elif edge.constant is not None:
            text = quoted(shortened(constant_text(edge.constant, annotated)))
            yield words, f"c{node.id}_{number}", text


def mermaid(annotated: AnnotatedGraph) -> str:
    """The graph from the output down to the leaves: a box for each node with its value and
    gradient, a rounded one for each leaf, and at each edge what flowed along it.
    """
    lines = ["flowchart TD"]
    edges: list[str] = []
    for node in annotated.graph.nodes:
        label = "<br/>".join(map(_escaped, node_lines(node, annotated)))
        box = f'(["{label}"])' if node.leaf is not None else f'["{label}"]'
        lines.append(f"    n{node.id}{box}")
        for words, target, constant in _edges(node, annotated, _escaped):
            if constant is not None:
                lines.append(f'    {target}["{constant}"]:::constant')
            arrow = "-->" if constant is None else "-.->"
            edges.append(f'    n{node.id} {arrow}|"{words}"| {target}')
    if any(":::constant" in line for line in lines):
        edges.append("    classDef constant stroke-dasharray: 4")
    return "\n".join([*lines, *edges])


def _escaped(text: str) -> str:
    return text.translate(_ENTITIES)


def dot(annotated: AnnotatedGraph) -> str:
    """The graph from the output down to the leaves: a box for each node with its value and
    gradient, a rounded one for each leaf, and at each edge what flowed along it.
    """
    lines = ["digraph backward {", '    node [shape=box, fontname="monospace"];']
    for node in annotated.graph.nodes:
        label = "\\n".join(map(_in_quotes, node_lines(node, annotated)))
        style = ", style=rounded" if node.leaf is not None else ""
        lines.append(f'    n{node.id} [label="{label}"{style}];')
        for words, target, constant in _edges(node, annotated, _in_quotes):
            dashed = "" if constant is None else ", style=dashed"
            if constant is not None:
                lines.append(f'    {target} [label="{constant}"{dashed}];')
            lines.append(f'    n{node.id} -> {target} [label="{words}"{dashed}];')
    return "\n".join([*lines, "}"])


def _in_quotes(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
