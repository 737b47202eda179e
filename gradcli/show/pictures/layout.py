"""Layered layout of a directed graph: ranks, few crossings, straight edges, no overlaps.

The stages are those of Sugiyama, Tagawa and Toda (1981): ranks by longest path; a lane in every
rank that an edge passes, and one for its label; sweeps of barycentres against crossings; places
along a rank by least squares under the order and the widths (isotonic regression, solved by pooling
adjacent violators).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil

from gradcli.record import Record
from gradcli.show.pictures.picture import Path, Picture

ROOMY, TIGHT = 26.0, 15.0
"""Free height between two ranks, in which edges bend, where there is room and where there is not;
pixels, as all lengths here.
"""

BOX_GAP = 18.0
"""Free width between two boxes of a rank."""

_EMPTY_GAP = 8.0
"""The same behind a rank that nothing stands in."""

_LANE = 12.0
_TRACK = 10.0
"""From one edge to the next where edges run beside each other from one column to the next."""

_BEYOND = 60.0
"""Height of a column that these edges take."""

_SWEEPS = 12
_ALIGNMENTS = 8
_STRAIGHT = 8.0
"""How much more a bend between two lanes of an edge weighs than one at a box."""


class Link(Record):
    """An edge to be laid out.

    Attributes:
        source, target: the numbers of the boxes; the edge runs down, from source to target.
        label: width and height of its label, zeros for none.
        leaves, enters: where it leaves the source and enters the target, from the middle of the
            box to the right; None for where there is room.
        upward: whether it runs up from its source, as one that closes a cycle does.
    """

    source: int
    target: int
    label: tuple[float, float] = (0.0, 0.0)
    leaves: float | None = None
    enters: float | None = None
    upward: bool = False


class Layout(Record):
    """Where everything stands.

    Attributes:
        corners: the left upper corner of each box.
        paths: for each link the points it passes, from its source down to its target.
        labels: for each link the middle of its label, None where it has none.
    """

    width: float
    height: float
    corners: list[tuple[float, float]]
    paths: list[list[tuple[float, float]]]
    labels: list[tuple[float, float] | None]


class _Vertex:
    """A box, or the lane of a link in a rank, with the pieces of edges above and below it; `x` is
    its middle, `y` its upper side.
    """

    __slots__ = ("above", "below", "height", "number", "place", "rank", "width", "x", "y")

    def __init__(self, number: int | None, rank: int, width: float, height: float) -> None:
        self.number = number  # None for a lane
        self.rank = rank
        self.width = width
        self.height = height
        self.above: list[_Piece] = []
        self.below: list[_Piece] = []
        self.place = 0
        self.x = self.y = 0.0


class _Piece:
    """What of an edge lies between two ranks.

    Attributes:
        leaves, enters: where it meets the upper and the lower vertex, from the middle of each.
    """

    __slots__ = ("enters", "leaves", "lower", "upper")

    def __init__(
        self, upper: _Vertex, lower: _Vertex, leaves: float | None, enters: float | None
    ) -> None:
        self.upper = upper
        self.lower = lower
        self.leaves = leaves
        self.enters = enters
        upper.below.append(self)
        lower.above.append(self)

    @property
    def shift(self) -> float:
        """How much further right the upper vertex's middle is where the piece is straight."""
        return (self.enters or 0.0) - (self.leaves or 0.0)


def layered(
    sizes: Sequence[tuple[float, float]],
    links: Sequence[Link],
    first: frozenset[int] = frozenset(),
    last: frozenset[int] = frozenset(),
    gap: float = TIGHT,
    tallest: float | None = None,
) -> Layout:
    """Lay out boxes of the given widths and heights so that links run down.

    The links that are not `upward` form no cycle, but for those of a box to itself.

    Args:
        first, last: boxes that stand in a rank of their own at the top and at the bottom.
        gap: the free height between ranks.
        tallest: the height from which on ranks go on in a further column at the right.
    """
    down = [_turned(link) if link.upward else link for link in links]
    ranks = _ranks(len(sizes), down, first, last)
    boxes = [
        _Vertex(number, rank, *size)
        for number, (rank, size) in enumerate(zip(ranks, sizes, strict=True))
    ]
    edges = [_pieces(boxes, link) for link in down]
    layers = _ordered(boxes, edges)
    _spread_ends(layers)
    _align(layers)
    return _finished(boxes, layers, edges, down, gap, tallest)


def upward(count: int, pairs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The pairs (source, target) of boxes that close a cycle, met in depth-first order."""
    outgoing: list[list[int]] = [[] for _ in range(count)]
    for source, target in pairs:
        if source != target:
            outgoing[source].append(target)
    state = [0] * count  # 1: on the way from the root, 2: done
    closing: set[tuple[int, int]] = set()
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(outgoing[root]))]
        while stack:
            at, targets = stack[-1]
            following = next(targets, None)
            if following is None:
                state[at] = 2
                stack.pop()
            elif state[following] == 1:
                closing.add((at, following))
            elif not state[following]:
                state[following] = 1
                stack.append((following, iter(outgoing[following])))
    return closing


# --- ranks --------------------------------------------------------------------------------------


def _turned(link: Link) -> Link:
    return Link(link.target, link.source, link.label, link.enters, link.leaves, True)


def _ranks(
    count: int, down: Sequence[Link], first: frozenset[int], last: frozenset[int]
) -> list[int]:
    """The rank of each box, even numbers: labels stand in the odd ranks between.

    A box that nothing leads to stands right above the highest of those that it leads to.
    """
    outgoing: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for link in down:
        if link.source != link.target:
            outgoing[link.source].append(link.target)
            waiting[link.target] += 1
    sources = [box for box in range(count) if not waiting[box]]
    ranks = [0] * count
    ready = list(sources)
    while ready:
        box = ready.pop()
        for target in outgoing[box]:
            ranks[target] = max(ranks[target], ranks[box] + 2)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for source in sources:
        if outgoing[source]:
            ranks[source] = min(ranks[target] for target in outgoing[source]) - 2
    top, bottom = min(ranks, default=0), max(ranks, default=0)
    for box in first:
        ranks[box] = top - 2
    for box in last:
        ranks[box] = bottom + 2
    return ranks


def _pieces(boxes: list[_Vertex], link: Link) -> list[_Piece]:
    """The pieces of a link, through a lane in each rank between its boxes; none for a loop."""
    source, target = boxes[link.source], boxes[link.target]
    if source is target:
        return []
    labelled = source.rank + 1 if link.upward else target.rank - 1
    vertices = [source]
    for rank in range(source.rank + 1, target.rank):
        width, height = link.label if rank == labelled else (0.0, 0.0)
        vertices.append(_Vertex(None, rank, max(width, _LANE), height))
    vertices.append(target)
    return [
        _Piece(
            upper,
            lower,
            link.leaves if upper is source else 0.0,
            link.enters if lower is target else 0.0,
        )
        for upper, lower in pairwise(vertices)
    ]


# --- order --------------------------------------------------------------------------------------


def _ordered(boxes: list[_Vertex], edges: list[list[_Piece]]) -> list[list[_Vertex]]:
    """The ranks from the top, each in the order with the fewest crossings that was met."""
    vertices = dict.fromkeys(boxes)
    vertices.update(dict.fromkeys(piece.lower for edge in edges for piece in edge))
    by_rank: dict[int, list[_Vertex]] = {}
    for vertex in _from_below(list(vertices)):
        by_rank.setdefault(vertex.rank, []).append(vertex)
    layers = [by_rank[rank] for rank in sorted(by_rank)]
    _number(layers)
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            layer.sort(key=lambda vertex: _barycentre(vertex, downwards))
            for place, vertex in enumerate(layer):
                vertex.place = place
        count = _crossings(layers)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    _number(best)
    return best


def _from_below(vertices: list[_Vertex]) -> list[_Vertex]:
    """The vertices in depth-first order from the lowest ones up: the order of an expression."""
    seen: dict[_Vertex, None] = {}
    stack = sorted((v for v in vertices if not v.below), key=lambda v: v.rank)
    while stack:
        vertex = stack.pop()
        if vertex not in seen:
            seen[vertex] = None
            stack += [piece.upper for piece in reversed(vertex.above)]
    return list(seen)


def _number(layers: list[list[_Vertex]]) -> None:
    for layer in layers:
        for place, vertex in enumerate(layer):
            vertex.place = place


def _barycentre(vertex: _Vertex, downwards: bool) -> float:
    if downwards:
        places = [piece.upper.place for piece in vertex.above]
    else:
        places = [piece.lower.place for piece in vertex.below]
    return sum(places) / len(places) if places else float(vertex.place)


def _crossings(layers: list[list[_Vertex]]) -> int:
    """How often pieces of edges cross: the inversions among their lower ends."""
    count = 0
    for layer in layers:
        passed: list[int] = []
        for vertex in layer:
            ends = sorted(piece.lower.place for piece in vertex.below)
            count += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return count


# --- places along a rank ------------------------------------------------------------------------


def _spread_ends(layers: list[list[_Vertex]]) -> None:
    """Give each edge that may meet a box where it likes a place of its own on the box's side."""
    for layer in layers:
        for vertex in layer:
            entering = [piece for piece in vertex.above if piece.enters is None]
            entering.sort(key=lambda piece: piece.upper.place)
            for number, piece in enumerate(entering, 1):
                piece.enters = vertex.width * (number / (len(entering) + 1) - 0.5)
            leaving = [piece for piece in vertex.below if piece.leaves is None]
            leaving.sort(key=lambda piece: piece.lower.place)
            for number, piece in enumerate(leaving, 1):
                piece.leaves = vertex.width * (number / (len(leaving) + 1) - 0.5)


def _align(layers: list[list[_Vertex]]) -> None:
    """Places along each rank, as near to those of its neighbours as order and widths allow."""
    for layer in layers:
        x = 0.0
        for vertex in layer:
            vertex.x = x + vertex.width / 2
            x += vertex.width + _gap(vertex)
    for _ in range(_ALIGNMENTS):
        for layer in layers[1:]:
            _place(layer, above=True)
        for layer in reversed(layers[:-1]):
            _place(layer, above=False)


def _gap(vertex: _Vertex) -> float:
    return BOX_GAP if vertex.number is not None else _LANE / 2


def _place(layer: list[_Vertex], above: bool) -> None:
    """Move the vertices of a rank: least squares to where the neighbours are, in this order."""
    pools: list[list[float]] = []  # sum of weight times place, weight, how many vertices
    shift = 0.0
    shifts = []
    for number, vertex in enumerate(layer):
        if number:
            before = layer[number - 1]
            gap = max(_gap(before), _gap(vertex))
            shift += (before.width + vertex.width) / 2 + gap
        shifts.append(shift)
        wanted, weight = _wanted(vertex, above)
        pools.append([(wanted - shift) * weight, weight, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, weight, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += weight
            pools[-1][2] += count
    number = 0
    for total, weight, count in pools:
        for _ in range(int(count)):
            layer[number].x = total / weight + shifts[number]
            number += 1


def _wanted(vertex: _Vertex, above: bool) -> tuple[float, float]:
    """Where a vertex would stand straight with its neighbours, and how much that weighs."""
    pieces = vertex.above if above else vertex.below
    if not pieces:
        return vertex.x, 0.01
    total = weights = 0.0
    for piece in pieces:
        lanes = piece.upper.number is None and piece.lower.number is None
        weight = _STRAIGHT if lanes else 1.0
        x = piece.upper.x - piece.shift if above else piece.lower.x + piece.shift
        total += weight * x
        weights += weight
    return total / weights, weights


# --- the finished layout ------------------------------------------------------------------------


def _finished(
    boxes: list[_Vertex],
    layers: list[list[_Vertex]],
    edges: list[list[_Piece]],
    down: Sequence[Link],
    free: float,
    tallest: float | None,
) -> Layout:
    ranks: dict[int, tuple[float, float]] = {}  # the upper and the lower side of each
    y = gap = 0.0
    for layer in layers:
        height = max(vertex.height for vertex in layer)
        ranks[layer[0].rank] = (y, y + height)
        gap = free if height else _EMPTY_GAP
        y += height + gap
    columns = _columns(layers, ranks, y - gap, tallest)
    width, height, detours = _set_side_by_side(columns, ranks)
    for layer in layers:
        for vertex in layer:
            vertex.y = _upper_side(vertex, *ranks[vertex.rank])
    corners = [(box.x - box.width / 2, box.y) for box in boxes]
    paths, labels = [], []
    for pieces, link in zip(edges, down, strict=True):
        path = _path(pieces, ranks, detours) if pieces else _loop(boxes[link.source], corners)
        paths.append(path[::-1] if link.upward else path)
        lane = None
        if link.label[0] and len(pieces) > 1:
            lane = pieces[0].lower if link.upward else pieces[-1].upper
        labels.append(None if lane is None else (lane.x, sum(ranks[lane.rank]) / 2))
    return Layout(width, height, corners, paths, labels)


def _columns(
    layers: list[list[_Vertex]],
    ranks: dict[int, tuple[float, float]],
    height: float,
    tallest: float | None,
) -> list[list[list[_Vertex]]]:
    """The ranks of each column: one, or as many of about the same height as it takes.

    A column begins with the labels of the edges that come from the one before.
    """
    count = 1 if tallest is None else ceil(height / max(tallest - _BEYOND, 1.0))
    columns: list[list[list[_Vertex]]] = [[]]
    for layer in layers:
        rank = layer[0].rank
        full = ranks[rank][0] >= height * len(columns) / count
        if full and rank % 2 and len(columns) < count:
            columns.append([])
        columns[-1].append(layer)
    return columns


def _set_side_by_side(
    columns: list[list[list[_Vertex]]], ranks: dict[int, tuple[float, float]]
) -> tuple[float, float, dict[_Piece, _Detour]]:
    """Move the columns beside each other; gives width and height of all, and the way of each piece
    from one column to the next: below the one, up between the two, and from above into the other.
    """
    detours: dict[_Piece, _Detour] = {}
    crossing = [
        sorted(
            (piece for vertex in column[0] for piece in vertex.above),
            key=lambda piece: (piece.upper.place, piece.leaves or 0.0),
        )
        for column in columns[1:]
    ]
    head = max(map(len, crossing), default=0) * _TRACK + _LANE
    x = height = 0.0
    for number, column in enumerate(columns):
        vertices = [vertex for layer in column for vertex in layer]
        if not vertices:
            continue
        left = min(vertex.x - vertex.width / 2 for vertex in vertices)
        right = max(vertex.x + vertex.width / 2 for vertex in vertices)
        for vertex in vertices:
            vertex.x += x - left
        down = (head if number else 0.0) - ranks[column[0][0].rank][0]
        for layer in column:
            top, bottom = ranks[layer[0].rank]
            ranks[layer[0].rank] = top + down, bottom + down
        x += right - left
        bottom = ranks[column[-1][0].rank][1]
        height = max(height, bottom)
        leaving = crossing[number] if number < len(crossing) else []
        for place, piece in enumerate(leaving):
            # The edge furthest left takes the outer way, so that no two cross.
            outer = (len(leaving) - 1 - place) * _TRACK
            detours[piece] = _Detour(bottom + _LANE + outer, x + _LANE + outer)
        if leaving:
            x += 2 * _LANE + len(leaving) * _TRACK
            height = max(height, bottom + _LANE + len(leaving) * _TRACK)
    for pieces in crossing:
        for place, piece in enumerate(pieces):
            detours[piece].top = head - _LANE - place * _TRACK
    return x, height, detours


class _Detour:
    """How a piece gets from one column to the next: the height below the one, where it runs up, and
    the height above the other.
    """

    __slots__ = ("bottom", "top", "x")

    def __init__(self, bottom: float, x: float) -> None:
        self.bottom = bottom
        self.x = x
        self.top = 0.0


def _upper_side(vertex: _Vertex, top: float, bottom: float) -> float:
    """In the middle of its rank; at the side that its edges leave to where all go one way."""
    if vertex.above and not vertex.below:
        return top
    if vertex.below and not vertex.above:
        return bottom - vertex.height
    return (top + bottom - vertex.height) / 2


def _path(
    pieces: list[_Piece],
    ranks: dict[int, tuple[float, float]],
    detours: Mapping[_Piece, _Detour],
) -> list[tuple[float, float]]:
    """The points of an edge: straight down through each rank that it passes, and past the taller
    boxes of its own ranks, so that it bends only between ranks.
    """
    points = []
    for number, piece in enumerate(pieces):
        x = piece.upper.x + (piece.leaves or 0.0)
        if not number:
            points.append((x, piece.upper.y + piece.upper.height))
        points.append((x, ranks[piece.upper.rank][1]))
        way = detours.get(piece)
        lower = piece.lower.x + (piece.enters or 0.0)
        if way is not None:
            points += [(x, way.bottom), (way.x, way.bottom), (way.x, way.top), (lower, way.top)]
        x = lower
        points.append((x, ranks[piece.lower.rank][0]))
    points.append((points[-1][0], pieces[-1].lower.y))
    return [
        point for point, before in zip(points, [None, *points], strict=False) if point != before
    ]


def _loop(box: _Vertex, corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The edge of a box to itself, at its right side."""
    x, y = box.x + box.width / 2, corners[box.number or 0][1]
    half = box.height / 4
    return [(x, y + 3 * half), (x + BOX_GAP / 2, y + 2 * half), (x, y + half)]


# --- frames ---------------------------------------------------------------------------------------


MARGIN = 14.0
"""Free space inside a frame, pixels as all lengths here."""

TITLE = 22.0
"""Height of a frame's title."""

Point = tuple[float, float]


class Frame(Record):
    """The frame of a module."""

    module: Path
    x: float
    y: float
    width: float
    height: float


class Placed(Record):
    """Where everything stands in a picture, or in one frame of it.

    Attributes:
        corners: the left upper corner of each box, by its number.
        frames: the modules, the outer ones first.
        paths: the points from source to target of each arrow, by its number; in pieces, one for
            each frame that it passes.
        labels: the middle of each label, by the number of its arrow.
        ports: where on the frame's side each arrow passes it, by its number.
    """

    width: float
    height: float
    corners: dict[int, Point]
    frames: list[Frame]
    paths: dict[int, list[list[Point]]]
    labels: dict[int, Point]
    ports: dict[int, float]


class Sizes(Record):
    """Width and height of each box, and of each arrow's label; zeros for none."""

    boxes: Sequence[tuple[float, float]]
    labels: Sequence[tuple[float, float]]


def placed(
    picture: Picture,
    sizes: Sizes,
    gap: float = TIGHT,
    tallest: float | None = None,
    share: float = 1.0,
) -> Placed:
    """Lay out a picture.

    Args:
        gap: the free height between its ranks.
        tallest: the height from which on it goes on in a further column, and so in each frame.
        share: how much of that height a frame in a frame may take.
    """
    return _Inside(picture, sizes, _Room(gap, tallest, share), (), frozenset()).placed()


class _Room(Record):
    """How high things may stand."""

    gap: float
    tallest: float | None
    share: float

    def inside(self, depth: int) -> _Room:
        """The room in a frame that stands in so many others."""
        if self.tallest is None:
            return self
        room = self.tallest * (self.share if depth else 1.0) - 2 * MARGIN - TITLE
        return _Room(self.gap, room, 1.0 if depth else self.share)


class _Inside:
    """What stands in one module: boxes, and the frames of modules within.

    Attributes:
        items: the number of a box, or the path of a frame.
        ends: by the number of an arrow the items at its source and target, -1 for outside.
        rising: the arrows to or from outside that run up.
        closing: the pairs of items whose arrows run up, since they close a cycle.
    """

    def __init__(
        self,
        picture: Picture,
        sizes: Sizes,
        room: _Room,
        module: Path,
        rising: frozenset[int],
    ) -> None:
        self.picture = picture
        self.sizes = sizes
        self.room = room
        self.module = module
        self.rising = rising
        items: dict[int | Path, int] = {}
        item_of: dict[int, int] = {}
        depth = len(module)
        for number, box in enumerate(picture.boxes):
            if box.module[:depth] == module:
                item = number if len(box.module) == depth else box.module[: depth + 1]
                item_of[number] = items.setdefault(item, len(items))
        self.items = list(items)
        self.ends: dict[int, tuple[int, int]] = {}
        for number, arrow in enumerate(picture.arrows):
            source, target = item_of.get(arrow.source, -1), item_of.get(arrow.target, -1)
            within = source == target and (source < 0 or not isinstance(self.items[source], int))
            if not within:
                self.ends[number] = source, target
        self.closing = upward(len(items), [pair for pair in self.ends.values() if min(pair) >= 0])

    def placed(self) -> Placed:
        """Lay out the frames within, then all items with the ports of the arrows that pass."""
        frames = {
            item: _Inside(
                self.picture,
                self.sizes,
                self.room.inside(len(self.module)),
                path,
                self._rising_at(item),
            ).placed()
            for item, path in enumerate(self.items)
            if not isinstance(path, int)
        }
        sizes = [
            self.sizes.boxes[path]
            if isinstance(path, int)
            else (frames[item].width, frames[item].height)
            for item, path in enumerate(self.items)
        ]
        ports: dict[int, int] = {}
        links = {}
        for arrow, (source, target) in self.ends.items():
            if min(source, target) < 0:
                ports[arrow] = len(sizes)
                sizes.append((0.0, 0.0))
            links[arrow] = Link(
                ports[arrow] if source < 0 else source,
                ports[arrow] if target < 0 else target,
                self._label(arrow, target),
                _port(frames.get(source), arrow),
                _port(frames.get(target), arrow),
                self._is_upward(arrow),
            )
        above = {port for arrow, port in ports.items() if self._comes_from_above(arrow)}
        below = set(ports.values()) - above
        ends = frozenset(above), frozenset(below)
        layout = layered(sizes, list(links.values()), *ends, self.room.gap, self.room.tallest)
        return self._combined(layout, frames, ports)

    def _rising_at(self, item: int) -> frozenset[int]:
        """The arrows that run up where they pass the frame of an item."""
        return frozenset(
            arrow for arrow, pair in self.ends.items() if item in pair and self._is_upward(arrow)
        )

    def _is_upward(self, arrow: int) -> bool:
        return arrow in self.rising or self.ends[arrow] in self.closing

    def _comes_from_above(self, arrow: int) -> bool:
        """Whether an arrow to or from outside passes the upper side."""
        return (self.ends[arrow][0] < 0) is not (arrow in self.rising)

    def _label(self, arrow: int, target: int) -> tuple[float, float]:
        """The label's size where the arrow ends at a box in here, and nothing elsewhere."""
        at_box = target >= 0 and isinstance(self.items[target], int)
        return self.sizes.labels[arrow] if at_box else (0.0, 0.0)

    def _combined(self, layout: Layout, frames: dict[int, Placed], ports: dict[int, int]) -> Placed:
        """The layout with what stands in its frames, in the coordinates of this one."""
        left, top = (MARGIN, MARGIN + TITLE) if self.module else (0.0, 0.0)
        width, height = layout.width + 2 * left, layout.height + top + left
        placed = Placed(width, height, {}, [], {}, {}, {})
        within: dict[int, dict[int, list[list[Point]]]] = {-1: {}}
        for item, path in enumerate(self.items):
            x, y = layout.corners[item]
            if isinstance(path, int):
                placed.corners[path] = x + left, y + top
                within[item] = {}
            else:
                within[item] = _add(placed, frames[item], path, x + left, y + top)
                placed.paths.update(
                    {arrow: way for arrow, way in within[item].items() if arrow not in self.ends}
                )
        for arrow, points, label in zip(self.ends, layout.paths, layout.labels, strict=True):
            piece = [(x + left, y + top) for x, y in points]
            if arrow in ports:
                placed.ports[arrow] = x = layout.corners[ports[arrow]][0] + left
                border = (x, 0.0 if self._comes_from_above(arrow) else height)
                piece = [border, *piece] if self.ends[arrow][0] < 0 else [*piece, border]
            before, after = (within[item].get(arrow, []) for item in self.ends[arrow])
            placed.paths[arrow] = [*before, piece, *after]
            if label is not None:
                placed.labels[arrow] = label[0] + left, label[1] + top
        return placed


def _port(frame: Placed | None, arrow: int) -> float | None:
    """Where an arrow meets a frame, from its middle; None for a box, which it meets anywhere."""
    return None if frame is None else frame.ports[arrow] - frame.width / 2


def _add(
    placed: Placed, frame: Placed, path: Path, left: float, top: float
) -> dict[int, list[list[Point]]]:
    """Add a frame with all that stands in it; gives the paths there, which may go on outside."""

    def moved(point: Point) -> Point:
        return point[0] + left, point[1] + top

    placed.frames.append(Frame(path, left, top, frame.width, frame.height))
    for each in frame.frames:
        placed.frames.append(
            Frame(each.module, each.x + left, each.y + top, each.width, each.height)
        )
    placed.corners.update({box: moved(corner) for box, corner in frame.corners.items()})
    placed.labels.update({arrow: moved(label) for arrow, label in frame.labels.items()})
    return {
        arrow: [[*map(moved, piece)] for piece in pieces] for arrow, pieces in frame.paths.items()
    }
