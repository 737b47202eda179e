"""The backward graph as a tree: `--trace=tree`."""

from __future__ import annotations

from collections import Counter

from gradcli.autograd.graph import Edge, Graph, GraphNode
from gradcli.record import Record
from gradcli.render.graph.nodes import leaf_text, output_of, source_of, title, value_text
from gradcli.render.style import PLAIN, Style

# Nodes deeper than this are drawn in a tree of their own further down, so that the lines of a long
# chain do not grow with its length.
_DEEPEST = 30

_GAP = 6


class _Line(Record):
    """A line of the tree: what stands left, how wide it is, and what is to stand right of it."""

    left: str
    width: int
    edge: Edge
    mark: str


def tree(graph: Graph, style: Style = PLAIN, named: frozenset[int] = frozenset()) -> str:
    """The graph of a tensor, each node below the one that its gradient comes from.

    A node that is reached twice is drawn once, with its number behind it, and referred to by that
    number afterwards.

    Args:
        named: further nodes whose numbers are shown.
    """
    if graph.root is None:
        return ""
    drawing = _Drawing(graph, style, named)
    texts = [drawing.section(Edge(graph.root, graph.output_nr))]
    while drawing.put_off:
        node = next(iter(drawing.put_off))
        texts.append(drawing.section(Edge(node, 0)))
        del drawing.put_off[node]
    return "\n\n".join(texts)


class _Drawing:
    """One tree being drawn."""

    def __init__(self, graph: Graph, style: Style, named: frozenset[int]) -> None:
        self.style = style
        reached = Counter(
            edge.node.id for node in graph.nodes for edge in node.edges if edge.node is not None
        )
        self.numbered = {id for id, count in reached.items() if count > 1} | named
        self.drawn: set[int] = set()
        self.put_off: dict[GraphNode, None] = {}

    def section(self, root: Edge) -> str:
        """The text of one root and what lies below it."""
        lines = self._lines(root)
        column = max(line.width for line in lines) + _GAP
        texts = []
        for line in lines:
            right = self._right(line, column)
            blanks = " " * (column - line.width)
            texts.append(f"{line.left}{blanks}{right}" if right else line.left)
        return "\n".join(texts)

    def _lines(self, root: Edge) -> list[_Line]:
        lines = []
        # What is still to be drawn: an edge, the text that leads to it, and that of its children.
        stack = [(root, "", "", 0)]
        while stack:
            edge, lead, below, depth = stack.pop()
            node = edge.node
            if node is None:
                lines.append(_Line(f"{lead}None", len(lead) + 4, edge, ""))
                continue
            mark = self._mark(node, depth)
            lines.append(self._line(edge, node, lead, mark))
            if mark:
                continue
            self.drawn.add(node.id)
            children = []
            for number, child in enumerate(node.edges):
                last = number == len(node.edges) - 1
                branch = f"{'└' if last else '├'}─[{number}] "
                margin = f"{below}{' ' if last else '│'}{' ' * (len(branch) - 1)}"
                children.append((child, below + branch, margin, depth + 1))
            stack += reversed(children)
        return lines

    def _mark(self, node: GraphNode, depth: int) -> str:
        """Where a node is drawn if not here."""
        if node.id in self.drawn:
            return "(above)"
        if depth and node in self.put_off:
            return "(below)"
        if depth > _DEEPEST and node.leaf is None:
            self.numbered.add(node.id)
            self.put_off[node] = None
            return "(below)"
        return ""

    def _line(self, edge: Edge, node: GraphNode, lead: str, mark: str) -> _Line:
        ending = output_of(node, edge.output_nr)
        if node.id in self.numbered:
            ending = f" #{node.id}{ending}"
        named = 0 if node.variable is None or node.leaf is not None else len(node.variable) + 2
        width = len(lead) + named + len(node.name) + len(ending)
        return _Line(f"{lead}{title(node, self.style)}{ending}", width, edge, mark)

    def _right(self, line: _Line, column: int) -> str:
        node = line.edge.node
        if node is None:
            constant = line.edge.constant
            if constant is None:
                return ""
            name = getattr(constant, "name", None)
            named = "" if name is None else f"{name}  "
            return named + value_text(constant, self.style, column + len(named))
        if line.mark:
            named = "" if node.leaf is None or node.variable is None else f"{node.variable}  "
            return self.style.paint(f"{named}{line.mark}", "quiet")
        if node.leaf is not None:
            return leaf_text(node.leaf, node.variable, self.style, column)
        return self.style.shortened(source_of(node), column)
