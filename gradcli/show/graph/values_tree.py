"""The backward graph as a tree with its numbers: `--trace=values`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.record import Record
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.show.graph.labels import is_large, norm_text, number_text
from gradcli.show.graph.nodes import source_of
from gradcli.show.graph.tree import FOLDED, LEAST, Line, TreeSettings, tree
from gradcli.show.style import PLAIN, Style, columns, cut, padded

_GAP = 3

_VALUE, _GRADIENT = 8, 11
"""The columns of a value and of the norm of a gradient where there are too few for both whole."""

_PLACE = 24
"""The columns of source text that shapes give way to."""


def values_tree(
    values: AnnotatedGraph, style: Style = PLAIN, settings: TreeSettings | None = None
) -> str:
    """The tree of a graph with the value and the gradient of each node.

    Lines fit into the width of the style: shapes go first, then places, numbers and names are cut.
    """
    settings = settings or TreeSettings()
    settings = TreeSettings(settings.depth, settings.expand, settings.named, True)
    return tree(values.graph, style, settings, partial(_written, values))


class _Columns(Record):
    """The columns of a line: how wide each is, and what is between two of them.

    Attributes:
        left: those of branches and names; None where nothing is cut.
        place: those of source text; None where nothing is cut.
    """

    left: int | None
    value: int
    gradient: int
    place: int | None
    gap: int


def _written(values: AnnotatedGraph, lines: Sequence[Line], style: Style) -> str:
    """The lines, with value, gradient and place in columns."""
    lines = [*map(_named, lines)]
    names = max(line.width for line in lines)
    cells = [_cells(line, values, _whole) for line in lines]
    value, gradient, place = (max(columns(each[at]) for each in cells) for at in range(3))
    layout = _Columns(None, value, gradient, None, _GAP)
    if style.width is not None:
        room = style.width - names - value - gradient - 3 * _GAP
        layout = _Columns(names, value, gradient, room, _GAP)
        if room < min(place, _PLACE):
            cells = [_cells(line, values, _norms) for line in lines]
            widths = [max(columns(each[at]) for each in cells) for at in range(2)]
            layout = _narrow(names, widths, style.width)
    texts = zip(lines, cells, strict=True)
    return "\n".join(_line(line, each, layout, names, style) for line, each in texts)


def _narrow(names: int, widths: Sequence[int], width: int) -> _Columns:
    """The columns of a terminal that is too narrow for shapes."""
    gap = 2 if width >= 80 else 1
    value, gradient = min(widths[0], _VALUE), min(widths[1], _GRADIENT)
    room = width - value - gradient - 3 * gap
    left = min(names, max(room - LEAST, LEAST))
    spare = room - left - _PLACE
    if spare > 0:  # numbers are worth more than a long place
        value = min(widths[0], value + spare)
        room = width - value - gradient - 3 * gap
    return _Columns(left, value, gradient, max(room - left, 0), gap)


def _line(
    line: Line, cells: tuple[str, str, str], layout: _Columns, names: int, style: Style
) -> str:
    """One line: branches and names, value, gradient, place."""
    shown, grad, place = cells
    gap = " " * layout.gap
    left = names if layout.left is None else layout.left
    text = line.left(style, layout.left)
    text += " " * (left - min(line.width, left)) + gap
    shown = padded(cut(shown, layout.value), layout.value)
    text += f"{shown if line.source else style.paint(shown, 'quiet')}{gap}"
    grad = cut(grad, layout.gradient)
    text += style.paint(grad, "gradient") + " " * (layout.gradient - columns(grad))
    used = left + layout.value + layout.gradient + 3 * layout.gap
    place = style.shortened(place, used) if layout.place is None else cut(place, layout.place)
    return f"{text}{gap}{place}".rstrip()


def _named(line: Line) -> Line:
    """A line of a leaf with the leaf's name alone, which is cut last."""
    node = line.edge.node
    if node is None or node.leaf is None or node.variable is None:
        return line
    words = [(node.variable, "variable")]
    return Line(line.lead, words, line.edge, line.ending, line.mark, line.source)


def _whole(array: Any, lead: str) -> str:
    """A small array on one line, shape and norm of another."""
    return f"{lead} {number_text(array)}"


def _norms(array: Any, lead: str) -> str:
    """A value in a few columns, the norm of a large one; the norm of a gradient."""
    if lead == "=" and not is_large(array):
        return f"= {number_text(array)}"
    return f"‖{norm_text(array)}‖" if lead == "=" else f"‖g‖ {norm_text(array)}"


def _cells(
    line: Line, values: AnnotatedGraph, number: Callable[[Any, str], str]
) -> tuple[str, str, str]:
    """The value, the gradient and the place of a line."""
    node, constant = line.edge.node, line.edge.constant
    if node is None:
        name = getattr(constant, "name", None) or line.mark
        if isinstance(constant, Tensor):
            return number(constant.array, "="), "", name
        return "" if constant is None else f"= {constant!r}", "", name
    if not line.source:
        return line.mark, "", ""
    place = "" if node.leaf is not None else source_of(node)
    if line.mark == FOLDED:
        return "", "", place
    value, gradient = values.value(node), values.gradient(node)
    return (
        "" if value is None else number(value, "="),
        "" if gradient is None else number(gradient, "grad"),
        place,
    )
