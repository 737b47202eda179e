"""Places the boxes of a picture: each module is a frame, laid out by itself and then as one box."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.record import Record
from gradcli.show.pictures.layout import TIGHT, Layout, Link, layered, upward
from gradcli.show.pictures.picture import Path, Picture

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
