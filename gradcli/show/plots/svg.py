"""A plot as SVG: one file, with colours for light and dark pages."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from gradcli.language.drawing import COLORS, Mark, Panel, Plot
from gradcli.language.drawing import panel as empty_panel
from gradcli.library.drawing.arguments import rgb
from gradcli.show.plots.scales import (
    Scale,
    color_range,
    colored,
    heights,
    pieces,
    scale_of,
    segments,
    thinned,
    ticks_of,
)
from gradcli.show.style import columns, escaped

FONT = 12.0
_ADVANCE = 0.61
"""The usual advance of a character, in font heights."""

_POINT = 100 / 72
"""Pixels of a point, in which programs give widths and sizes."""

_MOST_MARKERS = 5000

_FINEST = 400
"""Pixels along a side of a filled contour."""

_STROKES = frozenset("xX+|_1234")
"""Markers that are lines."""

_STAR = tuple(
    (length * np.sin(np.pi * number / 5), -length * np.cos(np.pi * number / 5))
    for number, length in enumerate((1.2, 0.5) * 5)
)

_DASHES = {"dashed": "6 4", "dotted": "1.5 3", "dashdot": "7 3 1.5 3"}

# Ten colours that stay apart for the colour-blind, each with another for dark pages, in the order
# of hues that matplotlib has. `tests/test_palettes.py` measures them.
PALETTE = (
    ("#234177", "#4c93d0"), ("#d08020", "#f9a600"), ("#3ba187", "#9eeed6"), ("#9a0000", "#ef2a14"),
    ("#b079e6", "#8863fb"), ("#8b6149", "#a87a62"), ("#ca58a5", "#fa76b2"), ("#424242", "#7d7d7d"),
    ("#979552", "#ccc67a"), ("#146f80", "#4febf6"),
)  # fmt: skip


def _style() -> str:
    light, dark = (
        " ".join(
            f".s{n} {{ stroke: {pair[at]}; }} .f{n} {{ fill: {pair[at]}; }}"
            for n, pair in enumerate(PALETTE)
        )
        for at in (0, 1)
    )
    return f"""
text {{ font: {FONT:g}px system-ui, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }}
.title {{ font-size: 14px; font-weight: bold; }} .small {{ font-size: 11px; }}
.paper {{ fill: #ffffff; }} text, .fink {{ fill: #1b1f24; }} .sink {{ stroke: #1b1f24; }}
.axis {{ stroke: #57606a; fill: none; }} .grid {{ stroke: #d0d7de; }}
.box {{ fill: #ffffff; fill-opacity: 0.85; stroke: #d0d7de; }} .line {{ fill: none; }}
{light}
@media (prefers-color-scheme: dark) {{
.paper {{ fill: #0d1117; }} text, .fink {{ fill: #e6edf3; }} .sink {{ stroke: #e6edf3; }}
.axis {{ stroke: #9da7b1; }} .grid {{ stroke: #30363d; }}
.box {{ fill: #0d1117; stroke: #30363d; }}
{dark}
}}
"""


def svg(plot: Plot) -> str:
    """A figure as an SVG document of its size."""
    width, height = plot.width, plot.height
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">',
        f"<title>{_title(plot)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>',
    ]
    top = 8.0
    if plot.title:
        lines.append(_text(width / 2, 22, plot.title, "title", "middle"))
        top = 30.0
    rows, columns = plot.grid
    across, down = width / columns, (height - top) / rows
    for number, panel in enumerate(plot.panels):
        first, left, last, right = panel.cell
        cell = left * across, top + first * down, (right - left) * across, (last - first) * down
        lines += _Drawing(panel, cell, number).lines()
    return "\n".join([*lines, "</svg>"]) + "\n"


def _title(plot: Plot) -> str:
    """What a screen reader says."""
    words = [plot.title, *(panel.title for panel in plot.panels)]
    words += [mark.label for panel in plot.panels for mark in panel.marks]
    return escape(escaped("; ".join(word for word in words if word) or "a plot"))


class _Drawing:
    """A panel that is drawn in a rectangle (x, y, width, height).

    Attributes:
        inside: the rectangle of its axes.
    """

    def __init__(self, panel: Panel, cell: tuple[float, float, float, float], number: int) -> None:
        self.panel = panel
        self.number = number
        self.x, self.y = scale_of(panel, 0), scale_of(panel, 1)
        left, top, width, height = cell
        self.up = ticks_of(panel, 1, self.y, max(int(height / 45), 2))
        widest = max((_width(text) for _, text in self.up), default=0.0)
        room = 14.0 if panel.hidden else 18.0 + widest + 20.0 * bool(panel.labels[1])
        beside = 16.0 if panel.bar is None else 74.0 + 18.0 * bool(panel.bar)
        self.across = ticks_of(panel, 0, self.x, max(int((width - room - beside) / 70), 2))
        self.turned = self._is_crowded(max(width - room - beside, 20.0))
        longest = max((_width(text) for _, text in self.across), default=0.0)
        self.foot = 18.0 + (min(longest, 120.0) * 0.5 if self.turned else 0.0)
        below = 8.0 if panel.hidden else self.foot + 8.0 + 18.0 * bool(panel.labels[0])
        above = 12.0 + 18.0 * bool(panel.title)
        inner = max(width - room - beside, 20.0), max(height - above - below, 20.0)
        x, y = left + room, top + above
        if panel.equal:
            x, y, inner = self._equal(x, y, inner)
        self.inside = x, y, *inner

    def _is_crowded(self, width: float) -> bool:
        """Whether the texts of ticks that a program gave do not fit beside each other."""
        if self.panel.ticks[0] is None:
            return False
        free = float("-inf")
        for share, text in self.across:
            half = _width(text) / 2
            if share * width - half < free:
                return True
            free = share * width + half + 4
        return False

    def _equal(
        self, x: float, y: float, inner: tuple[float, float]
    ) -> tuple[float, float, tuple[float, float]]:
        """The rectangle in which a unit is as long along both axes."""
        wide, tall = abs(self.x.high - self.x.low), abs(self.y.high - self.y.low)
        if not (wide and tall and np.isfinite(wide / tall)):
            return x, y, inner
        ratio = min(max(wide / tall, 0.05), 20.0)
        width = min(inner[0], inner[1] * ratio)
        height = width / ratio
        return x + (inner[0] - width) / 2, y + (inner[1] - height) / 2, (width, height)

    def lines(self) -> Iterator[str]:
        """The elements of the panel."""
        x, y, width, height = self.inside
        clip = f"panel{self.number}"
        yield f'<clipPath id="{clip}"><rect {_rect(*self.inside)}/></clipPath>'
        across = self.across
        if self.panel.grid and not self.panel.hidden:
            for share, _ in across:
                yield _path([(x + share * width, y), (x + share * width, y + height)], "grid")
            for share, _ in self.up:
                at = y + (1 - share) * height
                yield _path([(x, at), (x + width, at)], "grid")
        yield f'<g clip-path="url(#{clip})">'
        for mark in self.panel.marks:
            yield from getattr(self, f"_{mark.kind}")(mark)
        yield "</g>"
        if not self.panel.hidden:
            yield from self._axes(across)
        if self.panel.title:
            yield _text(x + width / 2, y - 8, self.panel.title, "title", "middle")
        if self.panel.bar is not None:
            yield from self._bar()
        if self.panel.legend:
            yield from self._legend()

    def _axes(self, across: Sequence[tuple[float, str]]) -> Iterator[str]:
        x, y, width, height = self.inside
        yield f'<rect class="axis" {_rect(*self.inside)}/>'
        foot = y + height
        free = float("-inf")
        for share, text in across:
            at = x + share * width
            yield _path([(at, foot), (at, foot + 4)], "axis")
            if self.turned:
                turned = f' transform="rotate(-30 {at:.1f} {foot + 14:.1f})"'
                yield _text(at, foot + 14, text, "small", "end", turned)
            elif at - _width(text) / 2 >= free:
                yield _text(at, foot + 17, text, "small", "middle")
                free = at + _width(text) / 2 + 4
        for share, text in self.up:
            at = y + (1 - share) * height
            yield _path([(x - 4, at), (x, at)], "axis")
            yield _text(x - 7, at + 4, text, "small", "end")
        if self.panel.labels[0]:
            yield _text(x + width / 2, foot + self.foot + 18, self.panel.labels[0], "", "middle")
        if self.panel.labels[1]:
            widest = max((_width(text) for _, text in self.up), default=0.0)
            yield _upright(x - widest - 16, y + height / 2, self.panel.labels[1])

    def _legend(self) -> Iterator[str]:
        """A box with the names, in the corner that holds the fewest points."""
        named = [mark for mark in self.panel.marks if mark.label and mark.kind != "text"]
        if not named:
            return
        x, y, width, height = self.inside
        wide = 44 + max(_width(mark.label, FONT) for mark in named)
        tall = 8 + 18 * len(named)
        at_left, at_top = self._corner(wide / width, tall / height)
        left = x + 8 if at_left else x + width - wide - 8
        top = y + 8 if at_top else y + height - tall - 8
        yield f'<rect class="box" rx="3" {_rect(left, top, wide, tall)}/>'
        for number, mark in enumerate(named):
            at = top + 13 + 18 * number
            if mark.kind in ("bars", "area"):
                yield f"<rect {_rect(left + 8, at - 5, 22, 10)} {_fill(mark)}/>"
            elif mark.kind == "points":
                yield _marker(mark.style["marker"], left + 19, at, 3.5, _sample(mark))
            else:
                if mark.style.get("dash") != "none":
                    yield _path([(left + 8, at), (left + 30, at)], "", _stroke(mark))
                if mark.style.get("marker"):
                    yield _marker(mark.style["marker"], left + 19, at, 3.5, _sample(mark))
            yield _text(left + 37, at + 4, mark.label)

    def _corner(self, wide: float, tall: float) -> tuple[bool, bool]:
        """Whether the legend stands at the left, and at the top."""
        counts = {}
        for left, top in ((False, True), (True, True), (False, False), (True, False)):
            covered = 0
            for mark in self.panel.marks:
                if mark.kind in ("line", "points"):
                    px, py = self.x.at(mark.numbers["x"]), self.y.at(mark.numbers["y"])
                elif mark.kind == "bars":
                    px, py = self.x.at(mark.numbers["x0"]), self.y.at(mark.numbers["y1"])
                else:
                    continue
                near = (px < wide + 0.03) if left else (px > 0.97 - wide)
                high = (py > 0.97 - tall) if top else (py < tall + 0.03)
                covered += int((near & high).sum()) * 1000 // max(px.size, 1)
            counts[left, top] = covered
        return min(counts, key=lambda corner: counts[corner])

    def _bar(self) -> Iterator[str]:
        """A scale of colours beside the axes."""
        mark = next(
            (m for m in self.panel.marks if m.kind in ("image", "contour") or "value" in m.numbers),
            None,
        )
        if mark is None:
            return
        name = {"image": "values", "contour": "levels"}.get(mark.kind, "value")
        low, high = color_range(mark, mark.numbers[name])
        x, y, width, height = self.inside
        left = x + width + 12
        shares = np.linspace(1, 0, 64)[:, None]
        uri = data_uri(rgb(mark.style["map"], shares), mark.style["alpha"])
        yield (
            f'<image {_rect(left, y, 14, height)} preserveAspectRatio="none" href="{uri}"/>'
            f'<rect class="axis" {_rect(left, y, 14, height)}/>'
        )
        scale = Scale(low, high if high > low else low + 1)
        for share, text in ticks_of(empty_panel(), 1, scale, max(int(height / 45), 2)):
            at = y + (1 - share) * height
            yield _path([(left + 14, at), (left + 18, at)], "axis")
            yield _text(left + 21, at + 4, text, "small")
        if self.panel.bar:
            yield _upright(left + 66, y + height / 2, self.panel.bar)

    # --- marks ----------------------------------------------------------------------------------

    def _at(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Pixels of numbers; far beyond the axes they are held near, as renderers overflow."""
        left, top, width, height = self.inside
        across = np.clip(self.x.at(x), -50, 50)
        up = np.clip(self.y.at(y), -50, 50)
        return left + across * width, top + (1 - up) * height

    def _line(self, mark: Mark) -> Iterator[str]:
        x, y = self._at(mark.numbers["x"], mark.numbers["y"])
        if mark.style["dash"] != "none":
            path = "".join(_polyline(*thinned(*piece)) for piece in pieces(x, y))
            if path:
                yield f'<path d="{path}" {_stroke(mark)}/>'
        if mark.style["marker"]:
            size = mark.style["size"] * _POINT / 2
            yield from self._markers(mark, x, y, np.full(x.size, size))

    def _markers(self, mark: Mark, x: Any, y: Any, sizes: Any) -> Iterator[str]:
        seen = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if seen.size > _MOST_MARKERS:  # those on the same pixel are one
            places = np.rint(np.stack([x[seen], y[seen]], axis=1))
            seen = seen[np.sort(np.unique(places, axis=0, return_index=True)[1])]
        kind = mark.style["marker"]
        yield f"<g {_point_paint(kind, mark.color, mark.style['alpha'])}>"
        for px, py, size in zip(x[seen], y[seen], sizes[seen], strict=True):
            yield _marker(kind, px, py, size)
        yield "</g>"

    def _points(self, mark: Mark) -> Iterator[str]:
        x, y = self._at(mark.numbers["x"], mark.numbers["y"])
        areas = mark.numbers.get("size", np.full(x.size, mark.style["size"]))
        sizes = np.sqrt(np.maximum(areas, 0)) * _POINT / 2
        if mark.style["marker"] == ".":
            sizes = sizes / 2
        shades = mark.style.get("colors")
        if "value" in mark.numbers:
            colors = rgb(mark.style["map"], colored(mark, mark.numbers["value"]))
            shades = [
                "#" + "".join(f"{round(255 * p):02x}" for p in row) for row in colors.tolist()
            ]
        if shades is None:
            yield from self._markers(mark, x, y, sizes)
            return
        kind = mark.style["marker"]
        for px, py, size, shade in zip(x, y, sizes, shades, strict=False):
            if np.isfinite(px + py):
                paint = _point_paint(kind, shade, mark.style["alpha"])
                yield _marker(kind, px, py, size, paint)

    def _bars(self, mark: Mark) -> Iterator[str]:
        foot = mark.numbers["y0"]
        if self.y.logarithmic:
            foot = np.where(foot > 0, foot, min(self.y.low, self.y.high))
        x0, y0 = self._at(mark.numbers["x0"], foot)
        x1, y1 = self._at(mark.numbers["x1"], mark.numbers["y1"])
        left, top = np.minimum(x0, x1), np.minimum(y0, y1)
        wide, tall = np.abs(x1 - x0), np.abs(y1 - y0)
        colors = mark.style.get("colors")
        yield f"<g {_fill(mark)}>"
        for number, (x, y, w, h) in enumerate(zip(left, top, wide, tall, strict=True)):
            if np.isfinite(x + y + w + h):
                own = _paint("f", colors[number], mark.style["alpha"]) if colors else ""
                gap = min(w * 0.04, 0.6)
                yield f"<rect {_rect(x + gap / 2, y, max(w - gap, 0.1), h)} {own}/>"
        yield "</g>"

    def _area(self, mark: Mark) -> Iterator[str]:
        numbers = mark.numbers
        x, low = self._at(numbers["x"], numbers["low"])
        _, high = self._at(numbers["x"], numbers["high"])
        path = ""
        for (px, lower), (_, upper) in zip(
            pieces(x, low + 0 * high), pieces(x, high + 0 * low), strict=True
        ):
            around = np.concatenate([px, px[::-1]]), np.concatenate([lower, upper[::-1]])
            path += _polyline(*around) + "Z"
        if path:
            yield f'<path d="{path}" {_fill(mark)}/>'

    def _rule(self, mark: Mark) -> Iterator[str]:
        x, y, width, height = self.inside
        vertical = mark.style["vertical"]
        for at in (self.x if vertical else self.y).at(mark.numbers["at"]).tolist():
            if np.isfinite(at):
                along = x + at * width, y + (1 - at) * height
                ends = (
                    [(along[0], y), (along[0], y + height)]
                    if vertical
                    else [(x, along[1]), (x + width, along[1])]
                )
                yield _path(ends, "", _stroke(mark))

    def _text(self, mark: Mark) -> Iterator[str]:
        x, y = self._at(mark.numbers["x"], mark.numbers["y"])
        if mark.style["share"]:
            left, top, width, height = self.inside
            x = left + mark.numbers["x"] * width
            y = top + (1 - mark.numbers["y"]) * height
        anchor = {"center": "middle", "right": "end"}.get(mark.style["anchor"] or "", "start")
        if x.size and np.isfinite(x[0] + y[0]):
            for number, line in enumerate(mark.style["text"].split("\n")[:50]):
                paint = "" if mark.color == "ink" else _paint("f", mark.color, 1.0)
                yield _text(x[0], y[0] + 15 * number, line, "", anchor, f" {paint}")

    def _image(self, mark: Mark) -> Iterator[str]:
        values = mark.numbers["values"]
        corners = [self.x.at(mark.numbers[end])[0] for end in ("x0", "x1")]
        corners += [self.y.at(mark.numbers[end])[0] for end in ("y0", "y1")]
        if not values.size or not np.isfinite(corners).all():
            return
        colors = values if values.ndim == 3 else rgb(mark.style["map"], colored(mark, values))
        seen = np.isfinite(values if values.ndim == 2 else values[:, :, 0])
        x0, y0 = self._at(mark.numbers["x0"], mark.numbers["y0"])
        x1, y1 = self._at(mark.numbers["x1"], mark.numbers["y1"])
        # The first row stands at y0: pixels run from the top.
        colors, seen = (colors, seen) if y0[0] < y1[0] else (colors[::-1], seen[::-1])
        colors, seen = (colors, seen) if x0[0] < x1[0] else (colors[:, ::-1], seen[:, ::-1])
        corner = min(x0[0], x1[0]), min(y0[0], y1[0])
        size = abs(x1[0] - x0[0]), abs(y1[0] - y0[0])
        yield _raster(corner, size, colors, seen * mark.style["alpha"], "pixelated")

    def _contour(self, mark: Mark) -> Iterator[str]:
        x, y, z, levels = (mark.numbers[name] for name in ("x", "y", "z", "levels"))
        name, count = mark.style["map"], max(levels.size - 1, 1)
        if mark.style["filled"]:
            yield self._bands(mark, x, y, z, levels)
            return
        for number, level in enumerate(levels.tolist()):
            lines = segments(x, y, z, level)
            px, py = self._at(lines[:, :, 0], lines[:, :, 1])
            if not lines.size:
                continue
            path = "".join(
                f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"
                for (a, c), (b, d) in zip(px.tolist(), py.tolist(), strict=True)
            )
            shade = "".join(f"{round(255 * p):02x}" for p in rgb(name, number / count).tolist())
            paint = _paint("s", mark.color or f"#{shade}", mark.style["alpha"])
            wide = mark.style["width"] * _POINT
            yield f'<path d="{path}" {paint} stroke-width="{wide:.2f}" stroke-linecap="round"/>'

    def _bands(self, mark: Mark, x: Any, y: Any, z: Any, levels: Any) -> str:
        """The bands between the levels, as an image of the heights between those of the grid."""
        left, top, width, height = self.inside
        size = max(int(min(width, _FINEST)), 2), max(int(min(height, _FINEST)), 2)
        columns = self.x.values((np.arange(size[0]) + 0.5) / size[0])
        rows = self.y.values(1 - (np.arange(size[1]) + 0.5) / size[1])
        at_pixels = heights(x, y, z, columns, rows)
        band = np.clip(
            np.searchsorted(levels, np.nan_to_num(at_pixels)) - 1, 0, max(levels.size - 2, 0)
        )
        shares = (band + 0.5) / max(levels.size - 1, 1)
        inside = (
            (at_pixels >= levels.min()) & (at_pixels <= levels.max())
            if levels.size
            else at_pixels > at_pixels
        )
        if mark.color:
            shade = np.array([int(mark.color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
            colors = np.broadcast_to(shade, (*shares.shape, 3))
        else:
            colors = rgb(mark.style["map"], shares)
        seen = (inside & np.isfinite(at_pixels)) * mark.style["alpha"]
        return _raster((left, top), (width, height), colors, seen, "auto")


# --- elements ------------------------------------------------------------------------------------


def _raster(
    corner: tuple[float, float], size: tuple[float, float], colors: Any, alpha: Any, how: str
) -> str:
    uri = data_uri(colors, alpha)
    return (
        f'<image {_rect(*corner, *size)} preserveAspectRatio="none" '
        f'style="image-rendering: {how}" href="{uri}"/>'
    )


def _paint(kind: str, color: str, alpha: float) -> str:
    """The attributes of a stroke (`s`) or a fill (`f`)."""
    name = "stroke" if kind == "s" else "fill"
    known = f"{kind}ink" if color == "ink" else ""
    if color[:1] == "C":  # one of the palette
        known = f"{kind}{int(color[1:]) % COLORS}"
    text = f'class="{known}"' if known else f'{name}="{color or "none"}"'
    return text if alpha >= 1 else f'{text} {name}-opacity="{alpha:.3g}"'


def _fill(mark: Mark) -> str:
    return _paint("f", mark.color, mark.style.get("alpha", 1.0))


def _stroke(mark: Mark) -> str:
    paint = _paint("s", mark.color or "C0", mark.style.get("alpha", 1.0))
    dash = _DASHES.get(mark.style.get("dash", ""), "")
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    width = mark.style.get("width", 1.5) * _POINT
    return f'{paint} fill="none" stroke-width="{width:.2f}" stroke-linejoin="round"{dashes}'


def _text(
    x: float, y: float, text: str, role: str = "", anchor: str = "start", more: str = ""
) -> str:
    named = f' class="{role}"' if role else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}{placed}{more}>{escape(escaped(text))}</text>'


def _upright(x: float, y: float, text: str) -> str:
    """A text that reads upwards around a place."""
    return _text(x, y, text, "", "middle", f' transform="rotate(-90 {x:.1f} {y:.1f})"')


def _width(text: str, font: float = 11.0) -> float:
    return columns(text) * font * _ADVANCE


def _rect(x: float, y: float, width: float, height: float) -> str:
    return f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'


def _path(points: Sequence[tuple[float, float]], role: str, paint: str = "") -> str:
    named = f'class="{role}"' if role else paint
    inner = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{inner}" {named}/>'


def _polyline(x: Any, y: Any) -> str:
    points = "L".join(f"{px:.1f} {py:.1f}" for px, py in zip(x.tolist(), y.tolist(), strict=True))
    return f"M{points}" if points else ""


def _point_paint(kind: str, color: str, alpha: float) -> str:
    """The attributes of markers: some are filled, some are strokes."""
    if kind in _STROKES:
        return f'{_paint("s", color, alpha)} fill="none" stroke-width="1.6"'
    return _paint("f", color, alpha)


def _sample(mark: Mark) -> str:
    """The attributes of a marker in the legend."""
    color = mark.style.get("colors", [mark.color])[0]
    return _point_paint(mark.style["marker"], color, mark.style["alpha"])


def _marker(kind: str, x: float, y: float, size: float, paint: str = "") -> str:
    """A marker around a point, `size` from its middle to its edge."""
    if kind in _STROKES:
        turned = {"x": (1, 1), "X": (1, 1)}.get(kind)
        ends = [(size * a, size * b) for a, b in ((0.8, 0.8), (0.8, -0.8))]
        if turned is None:
            ends = [(size, 0.0), (0.0, size)]
            ends = {"|": ends[1:], "_": ends[:1]}.get(kind, ends)
        path = "".join(f"M{x - a:.1f} {y - b:.1f}L{x + a:.1f} {y + b:.1f}" for a, b in ends)
        return f'<path d="{path}" {paint}/>'
    corners = {
        "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "D": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
        "d": ((0, -1.2), (0.8, 0), (0, 1.2), (-0.8, 0)),
        "*": _STAR,
        "^": ((0, -1.1), (1, 0.9), (-1, 0.9)),
        "v": ((0, 1.1), (1, -0.9), (-1, -0.9)),
        "<": ((-1.1, 0), (0.9, 1), (0.9, -1)),
        ">": ((1.1, 0), (-0.9, 1), (-0.9, -1)),
    }.get(kind)
    if corners is None:
        radius = {".": size * 0.6, ",": 0.7}.get(kind, size)
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{max(radius, 0.3):.1f}" {paint}/>'
    inner = "L".join(f"{x + a * size * 0.9:.1f} {y + b * size * 0.9:.1f}" for a, b in corners)
    return f'<path d="M{inner}Z" {paint}/>'


def png(pixels: Any) -> bytes:
    """An array of shape (rows, columns, 4) of uint8 as a PNG file."""
    rows, columns = pixels.shape[:2]
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def data_uri(colors: Any, alpha: Any) -> str:
    """Colours of shape (rows, columns, 3) from 0 to 1 as the address of a PNG that they make."""
    opaque = np.broadcast_to(alpha, colors.shape[:2])[:, :, None]
    pixels = np.rint(np.concatenate([colors, opaque], axis=2) * 255).astype(np.uint8)
    return f"data:image/png;base64,{b64encode(png(pixels)).decode()}"
