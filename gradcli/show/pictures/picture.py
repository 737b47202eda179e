"""What a picture of a backward graph shows: boxes with rows of text, and arrows between them.

Values flow down from the leaves to the output, gradients up. Operations that one place of the
program ran again and again are one box, `× 12`; a folded module is one box with its parameters.

Modules have titles, and equal ones in a row stand in one box, `Block × 6`.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.autograd.graph import GraphNode
from gradcli.language.objects.classes.user_classes import Instance
from gradcli.library.torch.nn.layer import FUNCTIONS, REQUIRED, Layer, defaults_of
from gradcli.ops.definition.op import Op
from gradcli.record import Record
from gradcli.recorded.annotated_graph import AnnotatedGraph, saved_arrays
from gradcli.show.graph.labels import (
    constant_text,
    flow_text,
    is_large,
    magnitude_text,
    node_rows,
    number_text,
    path_text,
    shape_text,
    shortened,
)
from gradcli.show.graph.nodes import parts_of, source_text
from gradcli.show.style import counted

# --- modules --------------------------------------------------------------------------------------


REPEATED = 3
"""Equal modules side by side, and operations of one place, are one box from this many on."""

Path = tuple[str, ...]
"""Where a module stands: `("net", "0")`."""


def module_title(module: Any) -> str:
    """The class of a module and its arguments, without those that have their default:
    `Linear(4, 8)`; of a class of the program's the name alone.
    """
    name = type(module).__name__
    extra = "" if isinstance(module, Instance) else str(module.extra_repr())
    if not extra or "\n" in extra:
        return name
    defaults = {
        name: each.default
        for name, each in inspect.signature(type(module).__init__).parameters.items()
    }
    if isinstance(module, Layer):
        defaults = {**defaults_of(FUNCTIONS[module.function]), **module.defaults}
    arguments = []
    for part in _parts(extra):
        key, equals, value = part.partition("=")
        value = _uniform(value if equals else key)
        if not equals or defaults.get(key) in (inspect.Parameter.empty, REQUIRED):
            arguments.append(value)
        elif key not in defaults or value != _uniform(repr(defaults[key])):
            arguments.append(f"{key}={value}")
    return f"{name}({', '.join(arguments)})" if arguments else name


def _parts(text: str) -> list[str]:
    """A list of arguments, parted at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _uniform(value: str) -> str:
    """A tuple of equal numbers as one of them: `3` for `(3, 3)`."""
    elements = value.strip("()").replace(",", " ").split()
    return elements[0] if value.startswith("(") and len({*elements}) == 1 else value


class Span(str):
    """In a path the equal modules that stand in one box, `1–5`; no part of their own names."""


def own_parts(path: Path) -> Path:
    """The parts of a path as the program has it, and at its end perhaps those of equal modules."""
    return (*(each for each in path[:-1] if not isinstance(each, Span)), *path[-1:])


def module_name(path: Path) -> str:
    """The name of a module or of equal ones side by side: `net.3.inner`, `net.1–5`."""
    return ".".join(own_parts(path))


class Modules:
    """The modules of a picture as a tree, in which equal neighbours share a parent.

    Args:
        parts: the module of each box, and whether the box is a leaf's.
        titles: what modules are titled, by their names.

    Attributes:
        titles: what modules and groups are titled, by their paths in the tree.
        groups: those among them that stand for equal modules.
    """

    def __init__(self, parts: Iterable[tuple[Path, bool]], titles: Mapping[str, str]) -> None:
        self._known = titles
        self._contents: dict[Path, Counter[Path]] = {}
        self._children: dict[Path, dict[Path, None]] = {}
        for module, is_leaf in parts:
            for depth in range(1, len(module) + 1):
                path = module[:depth]
                # Of equal modules the first may have fewer nodes: nobody asks for its input's
                # gradient. Their parameters are the same.
                contents = self._contents.setdefault(path, Counter())
                if is_leaf:
                    contents[module[depth:]] += 1
                self._children.setdefault(path[:-1], {})[path] = None
        self._spans: dict[Path, Span] = {}
        several: dict[Path, str] = {}
        for parent, children in self._children.items():
            self._group(parent, [*children], several)
        self.titles = {
            self.grouped(path): titles.get(".".join(path), path[-1]) for path in self._contents
        }
        for path, title in several.items():
            grouped = self.grouped(path[:-1]) + path[-1:]
            self.titles[grouped] = title
        self.groups = frozenset(self.grouped(path[:-1]) + path[-1:] for path in several)

    def _group(self, parent: Path, children: list[Path], several: dict[Path, str]) -> None:
        """Give equal neighbours a parent of their own, or their parent where it has no others;
        `several` gets what such parents are titled.
        """
        run: list[Path] = []
        for child in [*children, None]:
            if child is not None and (not run or self._alike(run[0], child)):
                run.append(child)
                continue
            if len(run) >= REPEATED:
                title = f"{self._known.get('.'.join(run[0]), run[0][-1])} × {len(run)}"
                if len(run) == len(children) and parent:
                    several[parent] = title
                else:
                    span = Span(f"{run[0][-1]}–{run[-1][-1]}")
                    self._spans.update(dict.fromkeys(run, span))
                    several[*parent, span] = title
            run = [] if child is None else [child]

    def _alike(self, one: Path, other: Path) -> bool:
        named = [self._known.get(".".join(path)) for path in (one, other)]
        return (
            named[0] is not None
            and named[0] == named[1]
            and self._contents[one] == self._contents[other]
        )

    def title(self, path: Path) -> str:
        """What a module or a group is titled; of an unknown one the last part of its name."""
        return self.titles.get(path, path[-1])

    def grouped(self, path: Path) -> Path:
        """Where a module of the program stands in the tree."""
        place: list[str] = []
        for depth in range(1, len(path) + 1):
            span = self._spans.get(path[:depth])
            place += path[depth - 1 : depth] if span is None else (span, path[depth - 1])
        return tuple(place)


# --- the picture ----------------------------------------------------------------------------------


REFERRED = 4
"""A leaf that more boxes use is joined to the first of them; the others have a reference to it, as
long edges across the whole picture would tell less.
"""

MOST_LISTED = 8
"""A folded module with more parameters says how many they are, and does not list them."""


class Row(Record):
    """A line of a box; its role is `name`, `node`, `value`, `gradient` or `note`.

    Attributes:
        more: further texts of the line, each with its role.
    """

    role: str
    text: str
    more: Sequence[tuple[str, str]] = ()

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """The texts of the line with their roles."""
        return [(self.role, self.text), *self.more]


class Box(Record):
    """A box of a kind: `leaf`, `node`, `constant`, `repeated`, `module`, or `reference` for a leaf
    whose own box stands elsewhere.

    Attributes:
        module: the module that it stands in, () for none.
        nodes: the ids of the nodes that it stands for.
        several: whether it stands for several things that are alike.
    """

    kind: str
    rows: Sequence[Row]
    module: Path
    nodes: Sequence[int] = ()
    several: bool = False


class Arrow(Record):
    """From an operand to its result, with what flowed back along it.

    Attributes:
        gradient: the gradient that the result passed on, "" for none.
        kind: `flow`, `constant` where no gradient can flow, `carried` from one repetition of a box
            to the next.
        edges: the edges that it stands for: the result's id, and the edge's number there.
    """

    source: int
    target: int
    gradient: str
    kind: str
    edges: Sequence[tuple[int, int]] = ()


class Picture(Record):
    """A backward graph, ready to be laid out."""

    title: str
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    modules: Modules = Modules((), {})


def part_counts(
    annotated: AnnotatedGraph, folded: frozenset[Path] = frozenset(), expand: bool = False
) -> Counter[Path]:
    """How many boxes stand in each module of a picture, and under () in all of it, constants and
    references not counted; found without drawing it.
    """
    drawing = _Drawing(annotated, folded, False, True)
    counts: Counter[Path] = Counter()
    for _, members in drawing.parts(expand):
        path = drawing.path(members[0])
        counts.update(path[:depth] for depth in range(len(path) + 1))
    return counts


def picture_of(
    annotated: AnnotatedGraph,
    folded: frozenset[Path] = frozenset(),
    expand: bool = False,
    saved: bool = False,
) -> Picture:
    """The picture of a graph.

    Args:
        folded: the modules that are one box.
        expand: whether each repetition has a box of its own.
        saved: whether boxes of nodes show what these saved for the backward pass.

    A transpose or another view without a name stands in the box of the one operation that reads it.
    """
    drawing = _Drawing(annotated, folded, saved, not expand)
    parts = drawing.parts(expand)
    for kind, members in parts:
        drawing.add(kind, members)
    for _, members in parts:
        drawing.connect(members)
    graph = annotated.graph
    title = graph.tensor.name or (source_text(graph.root) if graph.root else "")
    return Picture(shortened(title), drawing.boxes, drawing.arrows, drawing.modules)


_SHORT = {"value": "value", "gradient": "grad"}


def _aligned(cells: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Parameters and their gradients as columns of equal widths."""
    widths = [max((len(cell[at]) for cell in cells), default=0) + 2 for at in (0, 1)]
    return [
        [("value", name.ljust(widths[0])), ("gradient", gradient.ljust(widths[1]))]
        for name, gradient in cells
    ]


def _between(text: str, end: str) -> str:
    """What the first and the last round show: `value 0.1 … 0.9`."""
    if text == end:
        return text
    return f"{text} … {' '.join(word for word in end.split() if not word.isalpha())}"


def _op_name(node: GraphNode) -> str:
    """The function that made a node."""
    op: Op = node.node.op
    return op.name.partition(".")[0]


class _Drawing:
    """A picture that is being made.

    Attributes:
        part: what a node has in common with its repetitions, by the node's id.
        box_of: the number of the box that stands for a node, by the node's id.
        first_user: the operation that uses a leaf first, by the leaf's id.
        uses: by how many edges a node is used, by its id.
        reader: the operation in whose box a view stands, by the view's id.
        modules: the tree of modules.
    """

    def __init__(
        self,
        annotated: AnnotatedGraph,
        folded: frozenset[Path],
        saved: bool,
        absorbs: bool,
    ) -> None:
        self.annotated = annotated
        self.saved = saved
        self.folded = folded
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.box_of: dict[int, int] = {}
        self.nodes = sorted(annotated.graph.nodes, key=lambda node: node.node.sequence_nr)
        self.first_user: dict[int, GraphNode] = {}
        self.part = parts_of(self.nodes)
        self.uses: Counter[int] = Counter()
        self.reader: dict[int, GraphNode] = {}
        for node in self.nodes:
            for edge in node.edges:
                if edge.node is not None and edge.node.leaf is not None:
                    self.first_user.setdefault(edge.node.id, node)
                    self.uses[edge.node.id] += 1
        parts = ((self._module(node), node.leaf is not None) for node in self.nodes)
        self.modules = Modules(parts, annotated.titles)
        if absorbs:
            self._absorb_views()

    def _absorb_views(self) -> None:
        """Find the operations in whose boxes views stand."""
        readers: dict[int, list[GraphNode]] = {}
        for node in self.nodes:
            for edge in node.edges:
                if edge.node is not None:
                    readers.setdefault(edge.node.id, []).append(node)
        for node in reversed(self.nodes):
            users = readers.get(node.id, [])
            op: Op | None = getattr(node.node, "op", None)
            single = len(users) == len(node.node.metadata) == 1
            if op is not None and op.view and single and node.variable is None:
                self.reader[node.id] = self.reader.get(users[0].id, users[0])

    def parts(self, expand: bool) -> list[tuple[str, list[GraphNode]]]:
        """The nodes that stand in one box, in the order in which they ran, and its kind."""
        members_by_part: dict[Hashable, list[GraphNode]] = {}
        for node in self.nodes:
            members_by_part.setdefault(self._part(node), []).append(node)
        parts = []
        for part, members in members_by_part.items():
            if part in self.folded:
                parts.append(("module", members))
            elif len(self._shown(members)) >= REPEATED and not expand:
                parts.append(("repeated", members))
            else:
                boxes: dict[int, list[GraphNode]] = {}
                for each in members:
                    boxes.setdefault(self.reader.get(each.id, each).id, []).append(each)
                parts += [
                    ("node" if each[-1].leaf is None else "leaf", each) for each in boxes.values()
                ]
        return parts

    def _shown(self, members: Sequence[GraphNode]) -> list[GraphNode]:
        """The nodes of a box without the views that were absorbed."""
        return [each for each in members if each.id not in self.reader]

    def _part(self, node: GraphNode) -> Hashable:
        """What the nodes of one box have in common."""
        node = self.reader.get(node.id, node)
        path = self.path(node)
        for length in range(1, len(path) + 1):
            if path[:length] in self.folded:
                return path[:length]
        return self.part.get(node.id, node.id)

    def path(self, node: GraphNode) -> Path:
        """Where the module of a node stands in the tree of modules."""
        return self.modules.grouped(self._module(node))

    def _module(self, node: GraphNode) -> Path:
        """The module of a node; a leaf stands in that of the operation which uses it first."""
        module = self.first_user.get(node.id, node).module
        # A frame holds all calls of a module.
        return () if module is None else tuple(module.partition(",")[0].split("."))

    def add(self, kind: str, members: list[GraphNode]) -> None:
        """Add the box of these nodes."""
        for node in members:
            self.box_of[node.id] = len(self.boxes)
        path = self.path(self.reader.get(members[0].id, members[0]))
        several = kind == "repeated"
        if kind == "module":
            path = next(path[:n] for n in range(1, len(path) + 1) if path[:n] in self.folded)
            several = path in self.modules.groups
            rows, path = self._module_rows(path, members), path[:-1]
        elif kind == "repeated":
            rows = self._repeated_rows(self._shown(members))
        else:
            (shown,) = self._shown(members)
            rows = self._node_rows(shown)
            if self.saved:
                rows += [
                    Row("note", f"saves {name} {self._amount(array)}")
                    for name, array in saved_arrays(shown)
                ]
        views = Counter(_op_name(each) for each in members if each.id in self.reader)
        if views and kind != "module":
            rows.append(Row("note", f"through {', '.join(views)}"))
        self.boxes.append(Box(kind, rows, path, [node.id for node in members], several))

    def _amount(self, array: Any) -> str:
        """An array in a few words."""
        return number_text(array) if self.annotated.has_numbers else shape_text(array)

    def _module_rows(self, path: Path, members: list[GraphNode]) -> list[Row]:
        """A folded module: its name, how much it holds, and its parameters."""
        leaves = [node for node in members if node.leaf is not None]
        leaves.sort(key=lambda node: node.variable or "")
        name, title = path_text([module_name(path)]), self.modules.title(path)
        nodes = counted(len(members) - len(leaves), "node")
        rows = [Row("name", name), Row("node", nodes)]
        if title != path[-1]:
            rows = [Row("name", shortened(title)), Row("node", f"{name}, {nodes}")]
        if len(leaves) > MOST_LISTED:
            elements = sum(int(node.leaf.array.size) for node in leaves if node.leaf is not None)
            text = f"{counted(len(leaves), 'parameter')}, {elements:,} elements  "
            gradients = [self.annotated.gradient(node) for node in leaves]
            squares = [float(np.square(np.abs(g)).sum()) for g in gradients if g is not None]
            flowed = f"grad norm {sum(squares) ** 0.5:.4g}" if squares else ""
            return [*rows, Row("value", text, [("gradient", flowed)])]
        for first, *more, (role, last) in _aligned([*map(self._parameter, leaves)]):
            rows.append(Row(*first, [*more, (role, last.rstrip())]))
        return rows

    def _parameter(self, node: GraphNode) -> tuple[str, str]:
        """A leaf in a folded module: its whole name, by which one looks for it, with its shape, and
        its gradient.
        """
        assert node.leaf is not None
        name = path_text([node.variable or f"#{node.id}"])
        gradient = self.annotated.gradient(node)
        flowed = "" if gradient is None else "grad"
        if flowed and self.annotated.has_numbers:
            flowed = f"grad {magnitude_text(gradient)}"
        return f"{name} {shape_text(node.leaf.array)}", flowed

    def _node_rows(self, node: GraphNode, most: int = 6) -> list[Row]:
        """The rows of a node: of an array of more elements the shape, and the norms on one line."""
        value, gradient = self.annotated.value(node), self.annotated.gradient(node)
        rows = [Row(*row) for row in node_rows(node, self.annotated, source_text)]
        if not self.annotated.has_numbers:
            return rows
        large = [each for each in (value, gradient) if each is not None and is_large(each, most)]
        if large:
            rows = [row for row in rows if row.role in ("name", "node")]
            rows[-1] = Row("node", f"{shortened(node.name)} {shape_text(large[0])}")
            shown = [
                (role, each)
                for role, each in (("value", value), ("gradient", gradient))
                if each is not None
            ]
            texts = [(role, f"{_SHORT[role]} {magnitude_text(each, most)}") for role, each in shown]
            rows.append(Row(*texts[0], [(role, f"  {text}") for role, text in texts[1:]]))
        return rows

    def _repeated_rows(self, members: list[GraphNode]) -> list[Row]:
        """Repetitions: what they have in common, and the first and last number of each kind."""
        first, last = (self._node_rows(members[at], 1) for at in (0, -1))
        rows = [Row("note", f"× {len(members)}")]
        for row, other in zip(first, last, strict=False):
            pairs = zip(row.pieces, other.pieces, strict=False)
            (head, *more) = [(role, _between(text, end)) for (role, text), (_, end) in pairs]
            rows.append(Row(*head, more))
        return rows

    def connect(self, members: list[GraphNode]) -> None:
        """Add the arrows that lead to the box of these nodes, one from each other box."""
        target = self.box_of[members[0].id]
        arriving: dict[tuple[int, GraphNode], list[tuple[int, int]]] = {}
        for node in members:
            for number, edge in enumerate(node.edges):
                if edge.node is not None:
                    source = self.box_of[edge.node.id]
                    if source == target and self._is_inside(edge.node, node):
                        continue
                    if source == target and edge.node.id in self.reader:
                        continue
                    used = edge.node if edge.node.leaf is not None else members[0]
                    arriving.setdefault((source, used), []).append((node.id, number))
                elif edge.constant is not None and node is self._shown(members)[0]:
                    self._constant(edge.constant, node, target)
        for (source, used), edges in arriving.items():
            kind = "carried" if source == target else "flow"
            start = self._reference(used, members[0]) if self._is_far(used, members) else source
            text = f"× {len(edges)}" if len(edges) > 1 else self._flow(*edges[0])
            self.arrows.append(Arrow(start, target, text, kind, edges))

    def _is_inside(self, operand: GraphNode, node: GraphNode) -> bool:
        """Whether an edge stays inside one call of a folded module; from one call to a later one of
        the same module it is carried.
        """
        if self.boxes[self.box_of[node.id]].kind != "module":
            return False
        before, after = (each.module or "" for each in (operand, node))
        return before == after or before.partition(",")[0] != after.partition(",")[0]

    def _flow(self, node: int, number: int) -> str:
        """What flowed back along an edge."""
        if not self.annotated.has_numbers:
            return ""
        return flow_text(self.annotated.passed(self.annotated.graph.nodes[node - 1], number))

    def _is_far(self, used: GraphNode, members: list[GraphNode]) -> bool:
        """Whether a leaf of many uses is used first elsewhere."""
        return self.uses[used.id] > REFERRED and self.first_user[used.id] not in members

    def _reference(self, leaf: GraphNode, user: GraphNode) -> int:
        """The number of a new reference to a leaf, beside the operation that uses it."""
        name = path_text([leaf.variable or f"#{leaf.id}"])
        self.boxes.append(Box("reference", [Row("name", f"{name} ↑")], self.path(user)))
        return len(self.boxes) - 1

    def _constant(self, value: Any, node: GraphNode, target: int) -> None:
        """An operand that takes no gradient, in a box of its own; none in a folded module."""
        if self.boxes[target].kind == "module":
            return
        self.arrows.append(Arrow(len(self.boxes), target, "", "constant"))
        rows = [Row("value", shortened(constant_text(value, self.annotated)))]
        self.boxes.append(Box("constant", rows, self.path(node)))
