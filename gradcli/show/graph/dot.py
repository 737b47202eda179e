"""The backward graph in the language of Graphviz."""

from __future__ import annotations

from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.show.graph.labels import constant_text, edge_text, node_lines, shortened


def dot(annotated: AnnotatedGraph) -> str:
    """The graph from the output down to the leaves: a box for each node with its value and
    gradient, a rounded one for each leaf, and at each edge what flowed along it.
    """
    lines = ["digraph backward {", '    node [shape=box, fontname="monospace"];']
    for node in annotated.graph.nodes:
        label = "\\n".join(map(_escaped, node_lines(node, annotated)))
        style = ", style=rounded" if node.leaf is not None else ""
        lines.append(f'    n{node.id} [label="{label}"{style}];')
        for number, edge in enumerate(node.edges):
            words = _escaped(edge_text(node, number, annotated))
            if edge.node is not None:
                lines.append(f'    n{node.id} -> n{edge.node.id} [label="{words}"];')
            elif edge.constant is not None:
                constant = f"c{node.id}_{number}"
                text = _escaped(shortened(constant_text(edge.constant)))
                lines.append(f'    {constant} [label="{text}", style=dashed];')
                lines.append(f'    n{node.id} -> {constant} [label="{words}", style=dashed];')
    return "\n".join([*lines, "}"])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
