"""The backward graph as a tree with its numbers: `--trace=values`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.show.graph.labels import number_text, operand_text
from gradcli.show.graph.nodes import source_of
from gradcli.show.graph.tree import FOLDED, LEAST, Line, TreeSettings, tree
from gradcli.show.style import PLAIN, Style, columns, cut, padded

_GAP = 3


def values_tree(
    values: AnnotatedGraph, style: Style = PLAIN, settings: TreeSettings | None = None
) -> str:
    """The tree of a graph with the value and the gradient of each node.

    Lines fit into the width of the style: places are shortened first, then numbers, then names.
    """
    return tree(values.graph, style, settings, partial(_written, values))


def _written(values: AnnotatedGraph, lines: Sequence[Line], style: Style) -> str:
    """The lines, with value, gradient and place in columns."""
    lines = [*map(_named, lines)]
    cells = [_cells(line, values) for line in lines]
    left = max(line.width for line in lines)
    value, gradient = (max(columns(each[at]) for each in cells) for at in (0, 1))
    room = None
    if style.width is not None:
        room = left = min(left, max(style.width - 2 * (_GAP + LEAST), LEAST))
        numbers = max(style.width - left - 2 * _GAP, 2)
        if value + gradient > numbers:
            value = min(value, max(numbers - gradient, numbers // 2))
            gradient = min(gradient, numbers - value)
    used = left + value + gradient + 3 * _GAP
    texts = []
    for line, (shown, grad, place) in zip(lines, cells, strict=True):
        text = line.left(style, room)
        text += " " * (left + _GAP - min(line.width, left))
        shown = padded(cut(shown, value), value)
        text += f"{shown if line.source else style.paint(shown, 'quiet')}{' ' * _GAP}"
        grad = cut(grad, gradient)
        text += style.paint(grad, "gradient") + " " * (gradient - columns(grad))
        if style.width is None:
            place = style.shortened(place, used)
        else:
            rest = style.width - used
            place = cut(place, rest) if rest >= min(LEAST, len(place)) else ""
        texts.append(f"{text}{' ' * _GAP}{place}".rstrip())
    return "\n".join(texts)


def _named(line: Line) -> Line:
    """A line of a leaf with the leaf's name, which is cut last."""
    node = line.edge.node
    if node is None or node.leaf is None or node.variable is None:
        return line
    words = [*line.words, ("  ", ""), (node.variable, "variable")]
    return Line(line.lead, words, line.edge, line.ending, line.mark, line.source)


def _cells(line: Line, values: AnnotatedGraph) -> tuple[str, str, str]:
    """The value, the gradient and the place of a line."""
    node, constant = line.edge.node, line.edge.constant
    if node is None:
        name = getattr(constant, "name", None) or line.mark
        return ("" if constant is None else f"= {operand_text(constant)}"), "", name
    if not line.source:
        return line.mark, "", ""
    place = "" if node.leaf is not None else source_of(node)
    if line.mark == FOLDED:
        return "", "", place
    value, gradient = values.value(node), values.gradient(node)
    return (
        "" if value is None else f"= {number_text(value)}",
        "" if gradient is None else f"grad {number_text(gradient)}",
        place,
    )
