"""Axes: what programs draw on. Each method adds marks to a panel of the document. And
`plot(losses)` and `sparkline(losses)`: a picture in the terminal in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from gradcli.errors import type_error, value_error
from gradcli.language.drawing import COLORS, Mark, Panel, Plot, bounds, panel
from gradcli.language.events import Plotted, Sparkline
from gradcli.language.limits import check_collection
from gradcli.language.objects.iteration import iterate
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import names, type_name
from gradcli.library.drawing.arguments import (
    MARKERS,
    array,
    color_of,
    dash,
    format_of,
    map_name,
    numbers,
    pair,
    words_of,
)
from gradcli.library.drawing.undrawn import Undrawn, not_drawn, undrawn
from gradcli.library.numpy.array import NDArray
from gradcli.record import Record
from gradcli.state import active, charge_steps

_MOST_BINS = 100_000

_LOOKS = names("""autoscale autoscale_view clabel get_legend get_xaxis get_yaxis margins
    minorticks_off minorticks_on relim set_axisbelow set_facecolor set_prop_cycle set_zorder spines
    tick_params ticklabel_format transAxes transData xaxis yaxis set_position locator_params""")
"""What changes only the looks of a picture, or is asked for in order to do so."""


class Artist(Record):
    """Something that was drawn, as programs get it back: they may rename, recolour or remove it."""

    axes: Axes
    mark: Mark

    language_name: ClassVar[str] = "matplotlib.artist.Artist"
    language_attributes = names("""axes get_color get_label remove set_alpha set_color set_data
        set_label set_linestyle set_linewidth set_ydata""")

    def language_getattr(self, name: str) -> Undrawn:
        """Anything else is taken, and changes nothing."""
        return undrawn(name, quiet=True)

    def get_color(self) -> str:
        """Its colour."""
        return self.mark.color

    def get_label(self) -> str:
        """Its name in the legend."""
        return self.mark.label

    def remove(self) -> None:
        """Take it out of the picture."""
        if self.mark in self.axes.panel.marks:
            self.axes.panel.marks.remove(self.mark)

    def set_alpha(self, alpha: Any) -> None:
        """Let what is behind be seen through it."""
        self.mark.style["alpha"] = _alpha(alpha)

    def set_color(self, color: Any) -> None:
        """Give it another colour."""
        self.mark.color = color_of(color)

    def set_label(self, s: Any) -> None:
        """Name it in the legend."""
        self.mark.label = words_of(s)

    def set_linestyle(self, ls: Any) -> None:
        """Draw it solid, dashed or dotted."""
        self.mark.style["dash"] = dash(ls)

    def set_linewidth(self, w: Any) -> None:
        """Draw it so many points wide."""
        self.mark.style["width"] = _positive(w)

    def set_data(self, *args: Any) -> None:
        """Other numbers along x and y."""
        x, y = args if len(args) == 2 else (list(iterate(args[0])) if args else (None, None))
        first, second, _ = pair(x, y, "set_data()")
        self.mark.numbers |= {"x": first, "y": second}

    def set_ydata(self, y: Any) -> None:
        """Other numbers along y."""
        self.set_data(NDArray(self.mark.numbers["x"]), y)


class Axes:
    """`matplotlib.axes.Axes`: a panel of a figure, and what draws on it."""

    __slots__ = ("cycle", "figure", "fills", "panel")

    language_name: ClassVar[str] = "matplotlib.axes._axes.Axes"
    language_attributes: ClassVar[frozenset[str]]

    def __init__(self, figure: Any, panel: Panel) -> None:
        self.figure = figure
        self.panel = panel
        self.cycle = self.fills = 0

    def language_getattr(self, name: str) -> Any:
        """What gradcli does not draw: it is taken, and said so where it would show."""
        return undrawn(name, quiet=name in _LOOKS)

    def _next(self, wanted: Any, *, fills: bool = False) -> str:
        """The colour that is wanted, or the next of the palette: lines and areas count apart."""
        if wanted is not None:
            return color_of(wanted)
        number = self.fills if fills else self.cycle
        self.cycle += not fills
        self.fills += fills
        return f"C{number % COLORS}"

    def _add(
        self, kind: str, data: dict[str, Any], color: str, style: dict[str, Any], label: Any = None
    ) -> Artist:
        marks = self.panel.marks
        check_collection(len(marks) + 1)
        words = "" if label is None else words_of(label)
        mark = Mark(kind, data, color, style, "" if words.startswith("_") else words)
        marks.append(mark)
        return Artist(self, mark)

    def _fill(self, kind: str, data: dict[str, Any], wanted: Any, looks: dict[str, Any]) -> Artist:
        """Add bars or an area, with the keywords that they share."""
        style = {"alpha": _alpha(looks.get("alpha"))}
        return self._add(kind, data, self._next(wanted, fills=True), style, looks.get("label"))

    # --- lines and points -----------------------------------------------------------------------

    def plot(self, *args: Any, **looks: Any) -> list[Artist]:
        """Lines through points: `plot(y)`, `plot(x, y)`, `plot(x, y, "r--", x2, y2, …)`."""
        drawn: list[Artist] = []
        rest = list(args)
        while rest:
            arrays = [rest.pop(0)]
            if rest and not isinstance(rest[0], str):
                arrays.append(rest.pop(0))
            form = rest.pop(0) if rest and isinstance(rest[0], str) else ""
            drawn += self._lines(arrays, format_of(form), looks)
        return drawn

    def _lines(
        self, arrays: Sequence[Any], form: dict[str, str], looks: dict[str, Any]
    ) -> list[Artist]:
        y = array(arrays[-1], "plot()")
        columns = [y] if y.ndim < 2 else list(y.T)
        labels = looks.get("label")
        if not isinstance(labels, (list, tuple)) or len(labels) != len(columns):
            labels = [labels] * len(columns)
        drawn: list[Artist] = []
        for column, label in zip(columns, labels, strict=True):
            x: Any = NDArray(np.arange(column.size))
            if len(arrays) > 1:
                x = arrays[0]
                whole = array(x, "plot()")
                if whole.ndim > 1:  # a column each, or one for all
                    at = len(drawn) if whole.shape[1] == len(columns) else 0
                    x = NDArray(whole[:, at])
            first, second, words = pair(x, NDArray(column), "plot()")
            self._name_ticks(0, words)
            wanted = _first(looks, "color", "c")
            shade = self._next(form.get("color") if wanted is None else wanted)
            style = _line_style(looks, form)
            drawn.append(self._add("line", {"x": first, "y": second}, shade, style, label))
        return drawn

    def semilogy(self, *args: Any, **looks: Any) -> list[Artist]:
        """`plot` with a logarithmic y."""
        self.panel.logarithmic[1] = True
        return self.plot(*args, **looks)

    def semilogx(self, *args: Any, **looks: Any) -> list[Artist]:
        """`plot` with a logarithmic x."""
        self.panel.logarithmic[0] = True
        return self.plot(*args, **looks)

    def loglog(self, *args: Any, **looks: Any) -> list[Artist]:
        """`plot` with both axes logarithmic."""
        self.panel.logarithmic[0] = True
        return self.semilogy(*args, **looks)

    def step(self, x: Any, y: Any, *args: Any, where: str = "pre", **looks: Any) -> list[Artist]:
        """A line of steps, each before its point, behind it, or around it."""
        first, second, _ = pair(x, y, "step()")
        if where == "mid":
            middle = (first[1:] + first[:-1]) / 2
            along = np.concatenate([first[:1], np.repeat(middle, 2), first[-1:]])
            up = np.repeat(second, 2)
        else:
            along, up = np.repeat(first, 2), np.repeat(second, 2)
            along, up = (along[1:], up[:-1]) if where == "post" else (along[:-1], up[1:])
        return self.plot(NDArray(along), NDArray(up), *args, **looks)

    def errorbar(
        self, x: Any, y: Any, yerr: Any = None, xerr: Any = None, fmt: str = "", **looks: Any
    ) -> tuple[Artist, ...]:
        """A line with an upright bar at each point, `yerr` to both sides."""
        line = self.plot(x, y, fmt, **looks)[0]
        if yerr is not None:
            first, second, _ = pair(x, y, "errorbar()")
            below, above = np.broadcast_to(numbers(yerr, "errorbar()"), (2, second.size))
            data = {
                "x": _apart(first, first, np.nan),
                "y": _apart(second - below, second + above, np.nan),
            }
            self._add("line", data, line.mark.color, _line_style(looks, {}))
        return (line,)

    def scatter(
        self,
        x: Any,
        y: Any,
        s: Any = None,
        c: Any = None,
        marker: Any = None,
        cmap: Any = None,
        norm: Any = None,
        vmin: Any = None,
        vmax: Any = None,
        alpha: Any = None,
        linewidths: Any = None,
        label: Any = None,
        **looks: Any,
    ) -> Artist:
        """Points, of sizes `s` in points squared, of colours `c` or values in colours of `cmap`."""
        first, second, words = pair(x, y, "scatter()")
        self._name_ticks(0, words)
        data = {"x": first, "y": second}
        style = {"marker": _marker(marker), "alpha": _alpha(alpha), "size": 36.0}
        if s is not None:
            sizes = np.ravel(numbers(s, "scatter()"))
            if sizes.size == 1:
                style["size"] = float(sizes[0])
            else:
                data["size"] = _for_each(sizes, first.size, "s")
        wanted = _first({"c": c, **looks}, "color", "c")
        shade = "C0"
        if wanted is None or isinstance(wanted, str):
            shade = self._next(wanted, fills=True)
        else:
            shades = array(wanted, "scatter()")
            if shades.dtype.kind == "U":
                style["colors"] = [color_of(each) for each in shades.ravel().tolist()]
                _for_each(shades.ravel(), first.size, "c")
            elif shades.ndim == 2 and shades.shape[1] in (3, 4):
                style["colors"] = [color_of(row) for row in shades.tolist()]
            elif shades.size == first.size:
                data["value"] = np.ravel(shades).astype(np.float64)
                style |= {"map": map_name(cmap), "low": _number(vmin), "high": _number(vmax)}
            else:
                shade = self._next(wanted, fills=True)
        return self._add("points", data, shade, style, label)

    # --- bars and areas ---------------------------------------------------------------------------

    def bar(
        self,
        x: Any,
        height: Any,
        width: Any = 0.8,
        bottom: Any = 0,
        *,
        align: str = "center",
        **looks: Any,
    ) -> Artist:
        """Upright bars."""
        return self._bars(0, (x, height, width, bottom), align, looks)

    def barh(
        self,
        y: Any,
        width: Any,
        height: Any = 0.8,
        left: Any = 0,
        *,
        align: str = "center",
        **looks: Any,
    ) -> Artist:
        """Bars to the right."""
        return self._bars(1, (y, width, height, left), align, looks)

    def _bars(
        self, axis: int, measures: tuple[Any, ...], align: str, looks: dict[str, Any]
    ) -> Artist:
        """Bars at places, of lengths and breadths, from a base."""
        at, length, breadth, base = measures
        what = ("bar()", "barh()")[axis]
        places, lengths, words = pair(at, length, what)
        self._name_ticks(axis, words)
        if words is None and "tick_label" in looks:
            names = [words_of(each) for each in iterate(looks["tick_label"])]
            self.panel.ticks[axis] = list(zip(places.tolist(), names, strict=False))
        breadths = np.ravel(numbers(breadth, what))
        bases = np.ravel(numbers(0 if base is None else base, what))
        edge = places - breadths * (0.5 if align == "center" else 0.0)
        first, second = (edge, edge + breadths), (bases, bases + lengths)
        (x0, x1), (y0, y1) = (second, first) if axis else (first, second)
        corners = np.broadcast_arrays(x0, x1, y0, y1)
        data = dict(zip(("x0", "x1", "y0", "y1"), corners, strict=True))
        wanted = _first(looks, "color", "c")
        if not isinstance(wanted, (list, tuple)) or not wanted or not isinstance(wanted[0], str):
            return self._fill("bars", data, wanted, looks)
        shades = [color_of(wanted[n % len(wanted)]) for n in range(places.size)]
        drawn = self._fill("bars", data, wanted[0], looks)
        drawn.mark.style["colors"] = shades
        return drawn

    def hist(
        self,
        x: Any,
        bins: Any = None,
        range: Any = None,
        density: bool = False,
        weights: Any = None,
        cumulative: bool = False,
        **looks: Any,
    ) -> tuple[Any, Any, Any]:
        """Bars of how many values fall between the edges of bins; the counts, the edges, and what
        was drawn.
        """
        several = isinstance(x, (list, tuple)) and x and not isinstance(x[0], (int, float))
        sets = [np.ravel(numbers(each, "hist()")) for each in (x if several else [x])]
        sets = [each[np.isfinite(each)] for each in sets]
        limits = None if range is None else tuple(numbers(range, "hist()").tolist())
        wanted = 10 if bins is None else bins
        if not isinstance(wanted, (int, str)):
            wanted = np.ravel(numbers(wanted, "hist()"))
        elif isinstance(wanted, int) and not 0 < wanted <= _MOST_BINS:
            raise value_error(f"hist() takes 1 to {_MOST_BINS:,} bins, not {wanted}")
        whole = np.concatenate(sets) if sets else np.zeros(0)
        try:
            edges = np.histogram_bin_edges(whole, wanted, limits)
            heavy = None if weights is None else np.ravel(numbers(weights, "hist()"))
            counts = [np.histogram(each, edges, None, density, heavy)[0] for each in sets]
        except ValueError as error:
            raise value_error(f"hist(): {error}") from None
        if cumulative:
            counts = [np.cumsum(each) for each in counts]
        labels, colors = (
            list(each) if several and isinstance(each, (list, tuple)) else [each] * len(sets)
            for each in (looks.get("label"), _first(looks, "color", "c"))
        )
        drawn = []
        wide = np.diff(edges) / len(sets)
        counts = [each.astype(np.float64) for each in counts]
        for number, count in enumerate(counts):
            left = edges[:-1] + number * wide
            data = {"x0": left, "x1": left + wide, "y0": np.zeros(count.size), "y1": count}
            own = {**looks, "label": labels[number % len(labels)]}
            drawn.append(self._fill("bars", data, colors[number % len(colors)], own))
        results = list(map(NDArray, counts))
        if several:
            return results, NDArray(edges), drawn
        return results[0], NDArray(edges), drawn[0]

    def fill_between(self, x: Any, y1: Any, y2: Any = 0, where: Any = None, **looks: Any) -> Artist:
        """The area between two curves."""
        first, low, _ = pair(x, y1, "fill_between()")
        high = np.broadcast_to(np.ravel(numbers(y2, "fill_between()")), first.shape)
        if where is not None:
            kept = np.ravel(numbers(where, "fill_between()")) != 0
            low, high = np.where(kept, low, np.nan), np.where(kept, high, np.nan)
        wanted = _first(looks, "color", "facecolor")
        return self._fill("area", {"x": first, "low": low, "high": high}, wanted, looks)

    def axhline(self, y: Any = 0, xmin: Any = 0, xmax: Any = 1, **looks: Any) -> Artist:
        """A line across the whole picture."""
        return self._rule(y, False, looks)

    def axvline(self, x: Any = 0, ymin: Any = 0, ymax: Any = 1, **looks: Any) -> Artist:
        """An upright line through the whole picture."""
        return self._rule(x, True, looks)

    def _rule(self, at: Any, vertical: bool, looks: dict[str, Any]) -> Artist:
        place = np.ravel(numbers(at, "axvline()" if vertical else "axhline()"))[:1]
        style = {**_line_style(looks, {}), "vertical": vertical}
        wanted = _first(looks, "color", "c")
        shade = "C0" if wanted is None else color_of(wanted)
        return self._add("rule", {"at": place}, shade, style, looks.get("label"))

    def hlines(self, y: Any, xmin: Any, xmax: Any, colors: Any = None, **looks: Any) -> Artist:
        """Lines across, each from `xmin` to `xmax`."""
        return self._bundle("hlines()", y, xmin, xmax, colors, looks)

    def vlines(self, x: Any, ymin: Any, ymax: Any, colors: Any = None, **looks: Any) -> Artist:
        """Upright lines, each from `ymin` to `ymax`."""
        return self._bundle("vlines()", x, ymin, ymax, colors, looks)

    def _bundle(
        self, what: str, at: Any, low: Any, high: Any, colors: Any, looks: dict[str, Any]
    ) -> Artist:
        ends = [np.ravel(numbers(each, what)) for each in (at, low, high)]
        places, first, last = np.broadcast_arrays(*ends)
        ways = [_apart(places, places, places), _apart(first, last, np.nan)]
        x, y = ways if what == "vlines()" else ways[::-1]
        shade = self._next(_first({"colors": colors, **looks}, "color", "colors"))
        style = _line_style(looks, {})
        return self._add("line", {"x": x, "y": y}, shade, style, looks.get("label"))

    # --- numbers over a plane -------------------------------------------------------------------

    def imshow(
        self,
        X: Any,
        cmap: Any = None,
        norm: Any = None,
        *,
        aspect: Any = None,
        interpolation: Any = None,
        alpha: Any = None,
        vmin: Any = None,
        vmax: Any = None,
        origin: str | None = None,
        extent: Any = None,
        **looks: Any,
    ) -> Artist:
        """A matrix as an image, or one with its colours along a third dimension."""
        image = array(X, "imshow()")
        image = np.squeeze(image) if image.ndim > 2 and 1 in image.shape else image
        if image.ndim != 2 and not (image.ndim == 3 and image.shape[2] in (3, 4)):
            raise type_error(f"Invalid shape {image.shape} for image data")
        values = np.real(image).astype(np.float64)
        if values.ndim == 3:
            values = np.clip(values / (255 if image.dtype.kind in "iu" else 1), 0, 1)[:, :, :3]
        rows, columns = values.shape[:2]
        x0, x1, y0, y1 = -0.5, columns - 0.5, -0.5, rows - 0.5
        if extent is not None:
            x0, x1, y0, y1 = numbers(extent, "imshow()").tolist()
        downward = origin != "lower"
        if downward and extent is None:
            self.panel.limits[1] = (y1, y0)
        # The first row of `values` stands at y0, counted as the axis counts.
        values = values[::-1] if downward and extent is not None else values
        corners = {"x0": x0, "x1": x1, "y0": y0, "y1": y1}
        edges = {name: np.array([each]) for name, each in corners.items()}
        style = {
            "map": map_name(cmap), "low": _number(vmin), "high": _number(vmax),
            "alpha": _alpha(alpha),
        }  # fmt: skip
        self.panel.equal = aspect != "auto"
        return self._add("image", {"values": values, **edges}, "C0", style)

    def matshow(self, Z: Any, **looks: Any) -> Artist:
        """A matrix as an image."""
        return self.imshow(Z, **looks)

    def pcolormesh(self, *args: Any, cmap: Any = None, **looks: Any) -> Artist:
        """`pcolormesh([X, Y,] C)`: cells of a grid in colours."""
        x, y, z = _grid(args, "pcolormesh()")
        left, right = (
            (each[0], each[-1]) if each.size > n else _outer(each)
            for each, n in ((x, z.shape[1]), (y, z.shape[0]))
        )
        extent = [float(each) for each in (*left, *right)]
        looks = {name: each for name, each in looks.items() if name in ("vmin", "vmax", "alpha")}
        return self.imshow(NDArray(z), cmap, extent=extent, origin="lower", aspect="auto", **looks)

    pcolor = pcolormesh

    def contour(self, *args: Any, levels: Any = None, **looks: Any) -> Artist:
        """`contour([X, Y,] Z, [levels])`: lines of equal height."""
        return self._contours("contour()", args, levels, looks)

    def contourf(self, *args: Any, levels: Any = None, **looks: Any) -> Artist:
        """`contourf([X, Y,] Z, [levels])`: bands between heights."""
        return self._contours("contourf()", args, levels, looks)

    def _contours(
        self, what: str, args: Sequence[Any], levels: Any, looks: dict[str, Any]
    ) -> Artist:
        if len(args) in (2, 4):
            *args, levels = args
        x, y, z = _grid(args, what)
        if x.size != z.shape[1] or y.size != z.shape[0] or min(z.shape) < 2:
            raise type_error(f"{what}: the lengths of x and y do not fit z of shape {z.shape}")
        finite = z[np.isfinite(z)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if levels is None or isinstance(levels, int):
            count = 8 if levels is None else max(levels, 1)
            heights = _even_levels(low, high, count, filled=what == "contourf()")
        else:
            heights = np.unique(numbers(levels, what))
        check_collection(heights.size)
        charge_steps(heights.size * (z.size // 256 + 1))
        wanted = looks.get("colors")
        shade = (
            color_of(wanted[0] if isinstance(wanted, (list, tuple)) else wanted) if wanted else ""
        )
        style = {
            "map": map_name(looks.get("cmap")), "filled": what == "contourf()",
            "alpha": _alpha(looks.get("alpha")),
            "width": _positive(_first(looks, "linewidths", "linewidth") or 1.5),
        }  # fmt: skip
        data = {"x": x, "y": y, "z": z, "levels": heights}
        return self._add("contour", data, shade, style)

    # --- words ------------------------------------------------------------------------------------

    def text(self, x: Any, y: Any, s: Any, *args: Any, **looks: Any) -> Artist:
        """Words at a place."""
        return self._words(x, y, s, looks)

    def annotate(self, text: Any, xy: Any, xytext: Any = None, *args: Any, **looks: Any) -> Artist:
        """Words about a point, at `xytext` or at the point itself."""
        place = numbers(xy if xytext is None else xytext, "annotate()").ravel().tolist()
        if looks.get("textcoords") not in (None, "data"):
            place = numbers(xy, "annotate()").ravel().tolist()
        return self._words(place[0], place[1], text, looks)

    def _words(self, x: Any, y: Any, words: Any, looks: dict[str, Any]) -> Artist:
        across = isinstance(looks.get("transform"), Undrawn)  # shares of the axes, not data
        data = {"x": numbers(x, "text()").ravel()[:1], "y": numbers(y, "text()").ravel()[:1]}
        style = {"text": words_of(words), "anchor": _first(looks, "ha", "horizontalalignment")}
        style |= {"share": across}
        wanted = looks.get("color")
        return self._add("text", data, "ink" if wanted is None else color_of(wanted), style)

    def set_title(self, label: Any, *args: Any, **looks: Any) -> None:
        """The title above the panel."""
        self.panel.title = words_of(label)

    def set_xlabel(self, xlabel: Any, *args: Any, **looks: Any) -> None:
        """What stands below the x axis."""
        self.panel.labels[0] = words_of(xlabel)

    def set_ylabel(self, ylabel: Any, *args: Any, **looks: Any) -> None:
        """What stands beside the y axis."""
        self.panel.labels[1] = words_of(ylabel)

    def legend(self, *args: Any, **looks: Any) -> None:
        """Show the names: those that were given as labels, or these."""
        self.panel.legend = True
        *handles, names = [looks.get("handles"), *args] if args else [looks.get("handles"), None]
        if names is None and handles:
            names = looks.get("labels")
        if not isinstance(names, (list, tuple)) or not names or isinstance(names[0], Artist):
            return
        drawn = handles[-1] if isinstance(handles[-1], (list, tuple)) else None
        marks = [each.mark for each in drawn or () if isinstance(each, Artist)]
        for mark, name in zip(marks or self.panel.marks, names, strict=False):
            mark.label = words_of(name)

    # --- axes -----------------------------------------------------------------------------------

    def set_xlim(self, left: Any = None, right: Any = None, **ends: Any) -> tuple[float, float]:
        """The limits of x."""
        return self._limit(0, left, ends.get("xmax", right), ends.get("xmin"))

    def set_ylim(self, bottom: Any = None, top: Any = None, **ends: Any) -> tuple[float, float]:
        """The limits of y."""
        return self._limit(1, bottom, ends.get("ymax", top), ends.get("ymin"))

    def _limit(self, axis: int, low: Any, high: Any, least: Any) -> tuple[float, float]:
        if high is None and low is not None and not isinstance(low, (int, float)):
            both = numbers(low, "limits").ravel().tolist()
            low, high = both if len(both) == 2 else (both[0], None)
        before = self.panel.limits[axis] or (np.nan, np.nan)
        limits = (low if least is None else least, high)
        ends = [b if new is None else _number(new) for new, b in zip(limits, before, strict=True)]
        self.panel.limits[axis] = ends[0], ends[1]
        return bounds(self.panel, axis)

    def get_xlim(self) -> tuple[float, float]:
        """The limits of x."""
        return bounds(self.panel, 0)

    def get_ylim(self) -> tuple[float, float]:
        """The limits of y."""
        return bounds(self.panel, 1)

    def set_xscale(self, value: str, **looks: Any) -> None:
        """`linear` or `log`."""
        self.panel.logarithmic[0] = _is_log(value)

    def set_yscale(self, value: str, **looks: Any) -> None:
        """`linear` or `log`."""
        self.panel.logarithmic[1] = _is_log(value)

    def set_xticks(self, ticks: Any = None, labels: Any = None, **looks: Any) -> None:
        """Where the ticks of x are, and their texts."""
        self._ticks(0, ticks, labels)

    def set_yticks(self, ticks: Any = None, labels: Any = None, **looks: Any) -> None:
        """Where the ticks of y are, and their texts."""
        self._ticks(1, ticks, labels)

    def set_xticklabels(self, labels: Any, **looks: Any) -> None:
        """The texts of the ticks of x."""
        self._name_again(0, labels)

    def set_yticklabels(self, labels: Any, **looks: Any) -> None:
        """The texts of the ticks of y."""
        self._name_again(1, labels)

    def _ticks(self, axis: int, ticks: Any, labels: Any) -> None:
        if ticks is None:
            return
        places = numbers(ticks, "ticks").ravel().tolist()
        check_collection(len(places))
        texts = [f"{each:g}" for each in places]
        if labels is not None:
            texts = [words_of(each) for each in iterate(labels)]
        self.panel.ticks[axis] = list(zip(places, texts, strict=False))

    def _name_again(self, axis: int, labels: Any) -> None:
        texts = [words_of(each) for each in iterate(labels)]
        places = [at for at, _ in self.panel.ticks[axis] or ()] or np.arange(float(len(texts)))
        self.panel.ticks[axis] = list(zip(map(float, places), texts, strict=False))

    def _name_ticks(self, axis: int, words: list[str] | None) -> None:
        if words is not None:
            self.panel.ticks[axis] = [(float(at), word) for at, word in enumerate(words)]

    def grid(self, visible: Any = None, *args: Any, **looks: Any) -> None:
        """Lines at the ticks: shown, not shown, or the other way round."""
        switched = bool(looks) or not self.panel.grid
        self.panel.grid = switched if visible is None else bool(visible)

    def axis(self, arg: Any = None, **looks: Any) -> tuple[float, ...]:
        """`off`, `on`, `equal`, or the four limits; gives the limits."""
        if isinstance(arg, str):
            if arg in ("off", "on"):
                self.panel.hidden = arg == "off"
            self.panel.equal = self.panel.equal or arg in ("equal", "square", "scaled", "image")
        elif isinstance(arg, bool):
            self.panel.hidden = not arg
        elif arg is not None:
            x0, x1, y0, y1 = numbers(arg, "axis()").ravel().tolist()
            self.panel.limits[:] = [(x0, x1), (y0, y1)]
        return *bounds(self.panel, 0), *bounds(self.panel, 1)

    def set_axis_off(self) -> None:
        """Show no axes."""
        self.panel.hidden = True

    def set_aspect(self, aspect: Any, *args: Any, **looks: Any) -> None:
        """`equal` for one unit being as long along both axes."""
        self.panel.equal = aspect in ("equal", 1)

    def invert_yaxis(self) -> None:
        """Let y run down."""
        self.panel.limits[1] = bounds(self.panel, 1)[::-1]

    def invert_xaxis(self) -> None:
        """Let x run to the left."""
        self.panel.limits[0] = bounds(self.panel, 0)[::-1]

    def twinx(self) -> Any:
        """A second y axis, which is not drawn."""
        not_drawn("twinx()")
        return undrawn("axes", quiet=True)

    def set(self, **settings: Any) -> None:
        """`set(title=…, xlabel=…, …)`: the methods `set_…` in one call."""
        for name, value in settings.items():
            if f"set_{name}" in self.language_attributes:
                getattr(self, f"set_{name}")(value)

    def cla(self) -> None:
        """Take everything away."""
        fresh = panel(self.panel.cell)
        for field in fresh.fields:
            setattr(self.panel, field, getattr(fresh, field))
        self.cycle = self.fills = 0

    clear = cla

    def get_figure(self) -> Any:
        """The figure that it is in."""
        return self.figure

    def get_title(self) -> str:
        """The title above the panel."""
        return self.panel.title

    def get_legend_handles_labels(self) -> tuple[list[Artist], list[str]]:
        """What has a name, and the names."""
        marks = [mark for mark in self.panel.marks if mark.label]
        return [Artist(self, mark) for mark in marks], [mark.label for mark in marks]


Axes.language_attributes = frozenset(
    {"figure", *(name for name, each in vars(Axes).items() if callable(each) and name[0] != "_")}
    - {"language_getattr"}
)


# --- settings ------------------------------------------------------------------------------------


def _first(looks: dict[str, Any], *names: str) -> Any:
    """The first of some settings that is given."""
    return next((looks[name] for name in names if looks.get(name) is not None), None)


def _number(value: Any) -> Any:
    return None if value is None else float(numbers(value, "a limit").ravel()[0])


def _positive(value: Any) -> float:
    return max(_number(value) or 0.0, 0.0)


def _alpha(value: Any) -> float:
    return 1.0 if value is None else min(_positive(value), 1.0)


def _marker(value: Any) -> str:
    if value is None:
        return "o"
    if value in ("", "None", "none", " "):
        return ""
    if not isinstance(value, str) or value not in MARKERS:
        raise value_error(f"Unrecognized marker style {display(value)}")
    return value


def _line_style(looks: dict[str, Any], form: dict[str, str]) -> dict[str, Any]:
    """How a line looks, as keywords and the format say."""
    kind = _first(looks, "linestyle", "ls", "linestyles")
    marker = looks.get("marker", form.get("marker", ""))
    return {
        "width": _positive(_first(looks, "linewidth", "lw", "linewidths") or 1.5),
        "dash": form.get("dash", "solid") if kind is None else dash(kind),
        "marker": _marker(marker) if marker else "",
        "size": _positive(_first(looks, "markersize", "ms") or 6.0),
        "alpha": _alpha(looks.get("alpha")),
    }


def _for_each(values: Any, count: int, name: str) -> Any:
    if values.size != count:
        raise value_error(f"{name} must be a scalar, or the same size as x and y")
    return values


def _is_log(scale: Any) -> bool:
    if scale not in ("linear", "log", "symlog", "logit"):
        words = f"{display(scale)} is not a valid value for scale"
        raise value_error(words, f"{words}; supported values are 'linear', 'log'")
    return bool(scale == "log")


def _grid(args: Sequence[Any], what: str) -> tuple[Any, Any, Any]:
    """The places of columns and rows, and the values, of `([X, Y,] Z)`."""
    if len(args) not in (1, 3):
        raise type_error(f"{what} takes 1 or 3 arrays, and got {len(args)}")
    z = numbers(args[-1], what)
    if z.ndim != 2:
        raise type_error(f"Input z must be 2D, not {z.ndim}D")
    if len(args) == 1:
        return np.arange(z.shape[1], dtype=float), np.arange(z.shape[0], dtype=float), z
    x, y = numbers(args[0], what), numbers(args[1], what)
    if x.ndim == 2 and y.ndim == 2:
        if not x.size or not y.size:
            raise type_error(f"{what} takes no empty grids")
        if np.ptp(x[:, 0]) > 0 and np.ptp(x[0]) == 0:  # as torch.meshgrid has it: rows are x
            x, y, z = x.T, y.T, z.T
        x, y = x[0], y[:, 0]
    return np.ravel(x), np.ravel(y), z


def _apart(*points: Any) -> Any:
    """The points of several lines in a row: the first of each, the second, the gap behind it."""
    return np.stack(np.broadcast_arrays(*points), axis=1).ravel()


def _outer(places: Any) -> tuple[float, float]:
    """The outer edges of cells whose middles are given."""
    half = (places[-1] - places[0]) / max(places.size - 1, 1) / 2 or 0.5
    return float(places[0] - half), float(places[-1] + half)


def _even_levels(low: float, high: float, count: int, filled: bool) -> Any:
    """About so many round levels between two heights."""
    span = high - low or 1.0
    power = 10.0 ** np.floor(np.log10(span / count))
    unit = next(step * power for step in (1, 2, 2.5, 5, 10) if span / (step * power) <= count)
    first, last = np.floor(low / unit), np.ceil(high / unit)
    levels = np.arange(first, last + 1) * unit
    return levels if filled else levels[1:-1] if levels.size > 2 else levels


METHODS: dict[str, Callable[..., Any]] = {
    name: getattr(Axes, name) for name in Axes.language_attributes - {"figure"}
}
"""What `pyplot` has under the same names."""


# --- a picture in one call ------------------------------------------------------------------------


_KINDS: dict[str, Callable[..., Any]] = {
    "line": Axes.plot,
    "points": Axes.scatter,
    "bars": Axes.bar,
    "histogram": Axes.hist,
    "image": Axes.imshow,
}


def plot(
    values: tuple[Any, ...], named: dict[str, Any], title: str, kind: str, file: str | None
) -> None:
    """Draw values: along their numbers, or the second along the first; named ones with a legend.

    Raises E202, E204 for what cannot be drawn.
    """
    if kind not in _KINDS:
        raise value_error(f"there is no kind of plot {display(kind)}", help=", ".join(_KINDS))
    if file is not None and not isinstance(file, str):
        raise type_error(f"plot() takes the name of a file, not {type_name(file)}")
    if not values and not named:
        raise type_error("plot() takes values: a list of numbers, or a tensor")
    if len(values) == 1 and isinstance(values[0], dict):
        named = {words_of(name): each for name, each in values[0].items()}
        values = ()
    drawn = Plot(720.0, 400.0, [panel()])
    axes = Axes(None, drawn.panels[0])
    with _values_alone():
        if values:
            _draw(axes, values, kind)
        for name, each in named.items():
            _draw(axes, (each,), kind, label=name)
    axes.panel.legend = bool(named)
    axes.panel.title = words_of(title)
    active.state.emit(Plotted(drawn, file, asked=True))


@contextmanager
def _values_alone() -> Iterator[None]:
    """A value is drawn, whatever its graph."""
    state = active.state
    before, state.grad_enabled = state.grad_enabled, False
    try:
        yield
    finally:
        state.grad_enabled = before


def _draw(axes: Axes, values: tuple[Any, ...], kind: str, **looks: Any) -> None:
    """Draw one set of values; points and bars have numbers for their places."""
    if kind in ("points", "bars") and len(values) == 1:
        values = (list(range(numbers(values[0], "plot()").size)), *values)
    _KINDS[kind](axes, *values, **({} if kind == "image" else looks))


def sparkline(values: Any) -> None:
    """Print a line of bars with the first and the last of the values."""
    with _values_alone():
        bars = numbers(values, "sparkline()").ravel()
    active.state.emit(Sparkline(bars))
