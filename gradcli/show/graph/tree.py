"""The backward graph as a tree: `--trace=tree`.

Rounds of a loop between the first and the last are one line, `… × 10`, unless all are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from gradcli.autograd.graph import Edge, Graph, GraphNode
from gradcli.record import Record
from gradcli.show.graph.nodes import leaf_text, output_of, parts_of, source_of, value_text
from gradcli.show.style import PLAIN, Style, columns, cut

# Nodes deeper than this are drawn in a tree of their own further down, so that the lines of a long
# chain do not grow with its length; on a terminal, so that a level of so many columns leaves room
# for names and numbers.
_DEEPEST = 30
_BESIDE_LEVELS = 46

_FOLDED_FROM = 4
"""Nodes of one place of which all but the oldest and the newest are left out."""

_MOST_LEAVES = 3
"""Leaves of folded rounds that are drawn one by one."""

_GAP = 6

FOLDED = "folded"
"""The mark of a line that stands for rounds of a loop."""

LEAST = 12
"""The columns that names, and numbers, are given where there are too few."""


class TreeSettings(Record):
    """How much of a graph its tree shows.

    Attributes:
        depth: how many levels below the root, None for all.
        expand: whether each round of a loop is drawn.
        named: nodes whose numbers are shown besides those that are reached twice.
        tight: whether a level takes three columns, `├0 `, and not six, `├─[0] `.
    """

    depth: int | None = None
    expand: bool = False
    named: frozenset[int] = frozenset()
    tight: bool = False


class Line(Record):
    """A line of the tree.

    Attributes:
        words: the node's names behind the branches, each with its role.
        ending: its number, its output, and what is left out below it.
        mark: where the node is drawn if not here, or what is left out below it.
        source: whether the node's source text stands beside it.
    """

    lead: str
    words: Sequence[tuple[str, str]]
    edge: Edge
    ending: str = ""
    mark: str = ""
    source: bool = True

    @property
    def width(self) -> int:
        names = "".join(text for text, _ in self.words)
        return len(self.lead) + columns(names) + len(self.ending)

    def left(self, style: Style, room: int | None = None) -> str:
        """The branches, the names, cut where there is no room, and the ending."""
        line = self.lead
        left = self.width if room is None else max(room, len(self.lead) + LEAST)
        left -= len(self.lead) + len(self.ending)
        for text, role in self.words:
            shown = cut(text, left)
            left -= columns(shown)
            line += style.paint(shown, role) if role else shown
        return line + self.ending


Write = Callable[[Sequence[Line], Style], str]
"""What writes the lines of a tree."""


def tree(
    graph: Graph,
    style: Style = PLAIN,
    settings: TreeSettings | None = None,
    write: Write | None = None,
) -> str:
    """The graph of a tensor, each node below the one that its gradient comes from.

    A node that is reached twice is drawn once, with its number behind it, and referred to by that
    number afterwards.

    Args:
        write: writes the lines; by default each has its source text, or the value of its leaf.
    """
    if graph.root is None:
        return ""
    drawing = _Drawing(graph, style, settings or TreeSettings())
    texts: list[str] = []
    put_off = {graph.root: 0}
    while put_off:
        node = next(iter(put_off))
        root = Edge(node, 0 if texts else graph.output_nr)
        texts.append((write or _plain)([*drawing.lines(root, put_off)], style))
        del put_off[node]
    return "\n\n".join(texts)


class _Folded(Record):
    """Rounds of a loop that are one line: the nodes that the line leads to."""

    entries: Sequence[GraphNode]


class _Leaves(Record):
    """Leaves of folded rounds that are one line."""

    nodes: Sequence[GraphNode]


Child = Edge | _Folded | _Leaves


class _Drawing:
    """A tree that is being drawn.

    Attributes:
        folded: the part of each node that is left out, by the node's id.
        met: the nodes that are drawn, or are left out behind a line that says so.
    """

    def __init__(self, graph: Graph, style: Style, settings: TreeSettings) -> None:
        reached = Counter(
            edge.node.id for node in graph.nodes for edge in node.edges if edge.node is not None
        )
        self.numbered = {id for id, count in reached.items() if count > 1} | settings.named
        self.folded = {} if settings.expand else _folded(graph)
        self.most = settings.depth
        self.tight = settings.tight
        level = 3 if self.tight else 6
        room = _DEEPEST if style.width is None else (style.width - _BESIDE_LEVELS) // level
        self.deepest = min(_DEEPEST, max(room, 2))
        self.met: set[int] = set()

    def lines(self, root: Edge, put_off: dict[GraphNode, int]) -> Iterator[Line]:
        """The lines of a tree; nodes too deep for it are added to `put_off`, with their depth."""
        assert root.node is not None
        above = put_off[root.node]
        # What is still to be drawn: the text that leads to it, and that of its children.
        stack: list[tuple[Child, str, str, int]] = [(root, "", "", 0)]
        while stack:
            child, lead, below, depth = stack.pop()
            if isinstance(child, _Leaves):
                yield self._leaves(child, lead)
                continue
            if isinstance(child, _Folded):
                line, children = self._fold(child, lead)
                numbers = [""] * len(children)
            else:
                line = self._line(child, lead, depth, above, put_off)
                done = line.mark or child.node is None
                children = [] if done or child.node is None else self._children(child.node)
                numbers = _numbers(children)
            yield line
            last = len(children) - 1
            branches = []
            for place, (each, number) in enumerate(zip(children, numbers, strict=True)):
                branch = f"{'└' if place == last else '├'}{number.strip('[]')} "
                if not self.tight:
                    branch = f"{branch[0]}─{number} "
                margin = f"{below}{' ' if place == last else '│'}{' ' * (len(branch) - 1)}"
                branches.append((each, below + branch, margin, depth + 1))
            stack += reversed(branches)

    def _line(
        self, edge: Edge, lead: str, depth: int, above: int, put_off: dict[GraphNode, int]
    ) -> Line:
        node = edge.node
        if node is None:
            return Line(lead, [("None", "")], edge)
        mark = self._mark(node, depth, above, put_off)
        ending = output_of(node, edge.output_nr)
        if node.id in self.numbered:
            ending = f" #{node.id}{ending}"
        drawn = not mark
        if drawn:
            self.met.add(node.id)
            if self.most is not None and depth + above == self.most and node.edges:
                mark = f"… {self._below(node)} below"
                ending += f" {mark}"
        return Line(lead, _names(node), edge, ending, mark, drawn)

    def _mark(self, node: GraphNode, depth: int, above: int, put_off: dict[GraphNode, int]) -> str:
        """Where a node is drawn if not here."""
        if node.id in self.met:
            return "(folded)" if node.id in self.folded else "(above)"
        if depth and node in put_off:
            return "(below)"
        if depth > self.deepest and node.leaf is None:
            self.numbered.add(node.id)
            put_off[node] = above + depth
            return "(below)"
        return ""

    def _below(self, node: GraphNode) -> int:
        """How many nodes are left out below one, which are drawn nowhere else from now on."""
        before = len(self.met)
        self._reach(node, self.met)
        return len(self.met) - before

    def _reach(self, node: GraphNode, reached: set[int]) -> None:
        """Add what can be reached from a node, and stands nowhere yet."""
        stack = [node]
        while stack:
            for edge in stack.pop().edges:
                to = edge.node
                if to is not None and to.id not in reached and to.id not in self.met:
                    reached.add(to.id)
                    stack.append(to)

    # --- rounds of a loop -------------------------------------------------------------------------

    def _children(self, node: GraphNode) -> list[Child]:
        """The edges of a node; those to rounds that are left out, one behind the other, are one."""
        children: list[Child] = []
        for edge in node.edges:
            part = None if edge.node is None else self.folded.get(edge.node.id)
            before = children[-1] if children else None
            if part is None or edge.node is None or edge.node.id in self.met:
                children.append(edge)
            elif isinstance(before, _Folded) and self.folded[before.entries[0].id] == part:
                children[-1] = _Folded([*before.entries, edge.node])
            else:
                children.append(_Folded([edge.node]))
        return children

    def _fold(self, child: _Folded, lead: str) -> tuple[Line, list[Child]]:
        """The line of rounds that are left out, and what these lead to that is not drawn yet."""
        first = child.entries[0]
        part = self.folded[first.id]
        rounds = 0
        exits: dict[GraphNode, Edge] = {}
        stack = [*reversed(child.entries)]
        while stack:
            node = stack.pop()
            if node.id in self.met:
                continue
            self.met.add(node.id)
            rounds += self.folded[node.id] == part
            for edge in reversed(node.edges):
                to = edge.node
                if to is None or to.id in self.met:
                    continue
                if to.id in self.folded:
                    stack.append(to)
                else:
                    exits.setdefault(to, edge)
        children: list[Child] = []
        leaves = []
        drawn: set[int] = set()  # below another one
        for node in sorted(exits, key=lambda each: (each.leaf is not None, -each.node.sequence_nr)):
            if node.id not in drawn and node.leaf is None:
                children.append(exits[node])
                self._reach(node, drawn)
            elif node.id not in drawn:
                leaves.append(node)
        words = [(f"… × {rounds}  ", "quiet"), *_names(first)]
        if len(leaves) > _MOST_LEAVES:
            self.met.update(leaf.id for leaf in leaves)
            children.append(_Leaves(leaves))
        else:
            children += [Edge(leaf, 0) for leaf in leaves]
        return Line(lead, words, Edge(first, 0), "", FOLDED), children

    def _leaves(self, child: _Leaves, lead: str) -> Line:
        first, last = (node.variable or f"#{node.id}" for node in (child.nodes[0], child.nodes[-1]))
        words = [(f"… × {len(child.nodes)}  ", "quiet"), (child.nodes[0].name, "node")]
        return Line(lead, words, Edge(None, 0), "", f"{first} … {last}", False)


def _folded(graph: Graph) -> dict[int, Hashable]:
    """The nodes of one place that are neither the oldest nor the newest, with their part."""
    parts: dict[Hashable, list[GraphNode]] = {}
    part_of = parts_of(graph.nodes)
    for node in graph.nodes:
        if node.id in part_of:
            parts.setdefault(part_of[node.id], []).append(node)
    folded = {}
    for part, nodes in parts.items():
        if len(nodes) >= _FOLDED_FROM:
            nodes.sort(key=lambda node: node.node.sequence_nr)
            folded.update({node.id: part for node in nodes[1:-1]})
    return folded


def _names(node: GraphNode) -> list[tuple[str, str]]:
    """A node's variable, if an operation made it, and its name."""
    if node.variable is None or node.leaf is not None:
        return [(node.name, "node")]
    return [(node.variable, "variable"), ("  ", ""), (node.name, "node")]


def _numbers(children: Sequence[Child]) -> list[str]:
    """The number of each edge, `[0]`; of edges that are one line the first and the last."""
    numbers, number = [], 0
    for child in children:
        count = len(child.entries) if isinstance(child, _Folded) else 1
        numbers.append(f"[{number}]" if count == 1 else f"[{number}…{number + count - 1}]")
        number += count
    return numbers


# --- lines as text --------------------------------------------------------------------------------


def _plain(lines: Sequence[Line], style: Style) -> str:
    """The lines, each with its source text, or the value of its leaf."""
    column = max(line.width for line in lines) + _GAP
    texts = []
    for line in lines:
        right = _right(line, style, column)
        blanks = " " * (column - line.width)
        left = line.left(style)
        texts.append(f"{left}{blanks}{right}" if right else left)
    return "\n".join(texts)


def _right(line: Line, style: Style, column: int) -> str:
    node = line.edge.node
    if node is None:
        constant = line.edge.constant
        if constant is None:
            return style.paint(line.mark, "quiet")
        name = getattr(constant, "name", None)
        named = "" if name is None else f"{name}  "
        return named + value_text(constant, style, column + len(named))
    if not line.source:
        named = "" if node.leaf is None or node.variable is None else f"{node.variable}  "
        return style.paint(f"{named}{line.mark}", "quiet")
    if node.leaf is not None:
        return leaf_text(node.leaf, node.variable, style, column)
    return style.shortened(source_of(node), column)
