"""The backward graph in the languages of Mermaid, which GitHub shows as a picture, and Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gradcli.autograd.graph import GraphNode
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.show.graph.labels import constant_text, edge_text, node_lines, shortened

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
