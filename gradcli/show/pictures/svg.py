"""A picture of a backward graph as SVG: one file, with colours for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from gradcli.record import Record
from gradcli.show.graph.labels import path_text
from gradcli.show.pictures.layout import ROOMY, TIGHT, Placed, Sizes, placed
from gradcli.show.pictures.picture import Arrow, Box, Picture, module_name
from gradcli.show.style import columns, escaped

FONT = 12.0
"""Height of the text, pixels as all lengths here."""

READABLE = (2000.0, 1300.0)
"""The largest picture whose text can be read where it is fitted into a window of 1400 by 900."""

_COLUMNS = (1.0, 1.25, 1.6)
"""How high columns are tried for a given aspect, where 1 is that of the whole on its area."""

_SHARES = (1.0, 0.5)
"""How much of the height a frame within a frame may take before it goes on in a further column."""

MOST_READ = 250
"""A picture of more boxes is not read as a whole."""

_ADVANCE = 0.62
"""The widest advance of a common monospaced font, in font heights."""

_LINE = 15.0
_PADDING = 8.0
_BORDER = 16.0
_ROUND = 6.0
"""Radius of a corner."""

_APART = 3.0
"""How far from the middle of an edge its two arrows run."""

# The colours stand apart for the colour-blind (Okabe and Ito, 2008), and each text has a contrast
# of at least 4.5 to what is behind it.
STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1b1f24; }
.name, .title { font-weight: bold; } .node, .note, .title { fill: #57606a; }
.title { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
.paper { fill: #ffffff; } .gradient { fill: #9a3b00; }
.box, .behind { fill: #f6f8fa; stroke: #8c959f; } .leaf .box { fill: #e3f0fb; }
.constant .box { fill: #ffffff; stroke-dasharray: 4 3; } .reference .box { fill: #e3f0fb; }
.module .box { stroke: #57606a; stroke-width: 2; }
.frame { fill: none; stroke: #57606a; stroke-dasharray: 6 3; }
path { fill: none; } .forward { stroke: #57606a; } .backward { stroke: #9a3b00; }
.carried path { stroke-dasharray: 5 3; } .constant path { stroke-dasharray: 4 3; }
.point { fill: #57606a; } .back { fill: #9a3b00; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .node, .note, .title { fill: #9da7b1; }
  .title { stroke: #0d1117; }
  .paper { fill: #0d1117; } .gradient { fill: #ffb27a; }
  .box, .behind { fill: #1c232c; stroke: #6e7681; } .leaf .box { fill: #12304d; }
  .reference .box { fill: #12304d; } .constant .box { fill: #0d1117; }
  .module .box, .frame { stroke: #8b949e; }
  .forward { stroke: #9da7b1; } .backward { stroke: #ffb27a; }
  .point { fill: #9da7b1; } .back { fill: #ffb27a; }
}
"""


class LaidOut(Record):
    """A picture with the size and the place of all that stands in it."""

    picture: Picture
    sizes: Sizes
    places: Placed
    aspect: float | None = None

    @property
    def canvas(self) -> tuple[float, float]:
        """Width and height with a border; of a given aspect larger to one side."""
        width, height = self.places.width + 2 * _BORDER, self.places.height + 2 * _BORDER
        if self.aspect is None:
            return width, height
        return max(width, height * self.aspect), max(height, width / self.aspect)

    @property
    def fits(self) -> bool:
        """Whether the whole picture can be read in a window of common size."""
        return self.places.width <= READABLE[0] and self.places.height <= READABLE[1]


def laid_out(picture: Picture, aspect: float | None = None) -> LaidOut:
    """The picture, laid out for the widths of its texts: roomy, tight, or in columns, the first way
    in which it can be read as a whole; tight where there is none.

    Args:
        aspect: the width over the height that it is to have: then the way in which it needs the
            smallest canvas of this kind.
    """
    sizes = Sizes([*map(_box_size, picture.boxes)], [*map(_label_size, picture.arrows)])
    tight = LaidOut(picture, sizes, placed(picture, sizes))
    tight.aspect = aspect
    if len(picture.boxes) > MOST_READ:
        return tight
    if aspect is not None:
        # As high as a canvas of this area is, and higher: columns are never quite full.
        even = (tight.places.width * tight.places.height / aspect) ** 0.5
        ways = [
            LaidOut(picture, sizes, placed(picture, sizes, TIGHT, even * more, share), aspect)
            for more in _COLUMNS
            for share in _SHARES
        ]
        return min([tight, *ways], key=lambda each: each.canvas[1])
    roomy = LaidOut(picture, sizes, placed(picture, sizes, ROOMY))
    for each in (roomy, tight):
        if each.fits:
            return each
    for share in _SHARES:
        each = LaidOut(picture, sizes, placed(picture, sizes, TIGHT, READABLE[1], share))
        if each.fits:
            return each
    return tight


def svg(laid_out: LaidOut) -> str:
    """The picture as an SVG document, as large as its text needs.

    Values run down along the grey arrows, gradients up along the coloured ones.
    """
    return "\n".join(_lines(laid_out)) + "\n"


def _width(text: str) -> float:
    return columns(text) * FONT * _ADVANCE


def _box_size(box: Box) -> tuple[float, float]:
    width = max(_width("".join(text for _, text in row.pieces).rstrip()) for row in box.rows)
    return width + 2 * _PADDING, len(box.rows) * _LINE + _PADDING


def _label_size(arrow: Arrow) -> tuple[float, float]:
    return (_width(arrow.gradient) + 4, FONT + 2) if arrow.gradient else (0.0, 0.0)


def _lines(laid_out: LaidOut) -> Iterator[str]:
    picture, places, sizes = laid_out.picture, laid_out.places, laid_out.sizes
    width, height = laid_out.canvas
    left, top = (width - places.width) / 2, (height - places.height) / 2
    title = f"Backward graph of {picture.title}" if picture.title else "Backward graph"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="title">'
    )
    yield f'<title id="title">{_text(title)}</title>'
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>'
    yield f'<g transform="translate({left:.0f} {top:.0f})">'
    for number, arrow in enumerate(picture.arrows):
        yield f'<g id="arrow{number}" class="{arrow.kind}">'
        yield from _arrow(arrow, places.paths[number])
        yield "</g>"
    for frame in places.frames:  # their titles can be read where an arrow runs through them
        yield (
            f'<rect class="frame" x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.width:.1f}"'
            f' height="{frame.height:.1f}" rx="8"/>'
        )
        room = int((frame.width - 16) / (FONT * _ADVANCE))
        name, title = module_name(frame.module), picture.modules.title(frame.module)
        both = f"{name}  {title}"
        shown = both if title != frame.module[-1] and columns(both) <= room else name
        yield _words("title", path_text([shown], room), frame.x + 8, frame.y + 16)
    for number, (x, y) in places.labels.items():
        yield f'<g id="label{number}">'
        yield from _label(picture.arrows[number], x, y, sizes.labels[number])
        yield "</g>"
    for number, box in enumerate(picture.boxes):
        x, y = places.corners[number]
        yield f'<g id="box{number}" class="{box.kind}" transform="translate({x:.1f} {y:.1f})">'
        yield from _box(box, *sizes.boxes[number])
        yield "</g>"
    yield "</g>\n</svg>"


def _box(box: Box, width: float, height: float) -> Iterator[str]:
    round = 12 if box.kind in ("leaf", "reference") else 3
    if box.several:
        yield f'<rect class="behind" x="4" y="4" width="{width:.1f}" height="{height:.1f}" rx="3"/>'
    yield f'<rect class="box" width="{width:.1f}" height="{height:.1f}" rx="{round}"/>'
    for number, row in enumerate(box.rows):
        baseline = _PADDING / 2 + number * _LINE + FONT
        if row.more:
            pieces = [f'<tspan class="{role}">{_text(text)}</tspan>' for role, text in row.pieces]
            yield f'<text x="{_PADDING:.1f}" y="{baseline:.1f}">{"".join(pieces)}</text>'
        else:
            yield _words(row.role, row.text, _PADDING, baseline)


def _label(arrow: Arrow, x: float, y: float, size: tuple[float, float]) -> Iterator[str]:
    width, height = size
    yield (
        f'<rect class="paper" x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}"'
        f' height="{height:.1f}"/>'
    )
    yield (
        f'<text class="gradient" text-anchor="middle" x="{x:.1f}" y="{y + 4:.1f}">'
        f"{_text(arrow.gradient)}</text>"
    )


def _arrow(arrow: Arrow, pieces: list[list[tuple[float, float]]]) -> Iterator[str]:
    """The arrow of the value, and beside it the arrow of the gradient the other way."""
    apart = 0.0 if arrow.kind == "constant" else _APART
    yield _line("forward", pieces, -apart)
    yield _head("point", pieces[-1], -apart)
    if arrow.gradient:
        yield _line("backward", pieces, apart)
        yield _head("back", pieces[0][::-1], apart)


def _line(kind: str, pieces: list[list[tuple[float, float]]], shift: float) -> str:
    """A path that bends smoothly and meets each of its points vertically; from one column to the
    next it runs along straight lines with round corners.
    """
    words = []
    for piece in pieces:
        points = _shifted(piece, shift)
        x, y = points[0]
        words.append(f"M{x:.1f} {y:.1f}")
        for number, (to_x, to_y) in enumerate(points[1:], 1):
            after = points[number + 1] if number + 1 < len(points) else (to_x, to_y)
            if to_x != x and to_y != y:
                middle = (y + to_y) / 2
                words.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
            elif (to_x == x) == (after[0] == to_x) or (after[0] != to_x and after[1] != to_y):
                words.append(f"L{to_x:.1f} {to_y:.1f}")
            else:
                near, far = _towards((to_x, to_y), (x, y)), _towards((to_x, to_y), after)
                words.append(f"L{near}Q{to_x:.1f} {to_y:.1f} {far}")
            x, y = to_x, to_y
    return f'<path class="{kind}" d="{"".join(words)}"/>'


def _shifted(points: Sequence[tuple[float, float]], shift: float) -> list[tuple[float, float]]:
    """Points moved to the right, so that the two arrows of an edge run beside each other, also
    where it goes up between two columns.
    """
    level = [a[1] == b[1] and a[0] != b[0] for a, b in pairwise(points)]
    shifted = []
    for number, (x, y) in enumerate(points):
        along = any(level[max(number - 1, 0) : number + 1])
        up = (number > 0 and level[number - 1] and any(level[number + 1 : number + 2])) or (
            number > 1 and level[number - 2] and any(level[number : number + 1])
        )
        shifted.append((x - shift if up else x + shift, y - shift if along else y))
    return shifted


def _towards(corner: tuple[float, float], point: tuple[float, float]) -> str:
    """Where a corner begins to be round on the way to a point."""
    distance = abs(point[0] - corner[0]) + abs(point[1] - corner[1])
    share = min(_ROUND, distance / 2) / distance if distance else 0.0
    x, y = (a + (b - a) * share for a, b in zip(corner, point, strict=True))
    return f"{x:.1f} {y:.1f}"


def _head(kind: str, piece: Sequence[tuple[float, float]], shift: float) -> str:
    """The head of an arrow at the end of a piece."""
    (_, before), (x, y) = piece[-2:]
    x += shift
    back = y - 6 if y >= before else y + 6
    corners = f"{x:.1f},{y:.1f} {x - 3:.1f},{back:.1f} {x + 3:.1f},{back:.1f}"
    return f'<polygon class="{kind}" points="{corners}"/>'


def _words(role: str, text: str, x: float, y: float) -> str:
    return f'<text class="{role}" x="{x:.1f}" y="{y:.1f}">{_text(text)}</text>'


def _text(text: str) -> str:
    """A text of a program; XML has no place for two characters that it may hold."""
    spelled = escaped(text).translate({0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD})
    return escape(spelled).replace("  ", "\u00a0\u00a0")
