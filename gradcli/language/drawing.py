"""A plot as data: a figure of panels, each with what is drawn in it. What renders it is elsewhere.

Colours are `C0` to `C9` of the palette, `ink` for that of the text, or `#rrggbb`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.record import Record

MARGIN = 0.05
"""Room around the data, of their range."""

LARGEST = 1e300
"""The largest number that has a place: ranges of larger ones overflow."""

COLORS = 10
"""Colours of the palette."""


class Mark(Record):
    """Something that is drawn.

    Attributes:
        kind: with what `numbers` holds for it, arrays of float64:
            `line`: x, y; `points`: x, y and, where they differ, size and value;
            `bars`: x0, x1, y0, y1; `area`: x, low, high; `rule`: at;
            `image`: values, of two dimensions or with colours as a third, and its corners x0, x1,
            y0, y1; `contour`: x, y of the columns and rows, z, levels; `text`: x, y.
        style: `width`, `dash`, `marker`, `size`, `alpha`, `map`, `low`, `high`, `vertical`,
            `filled`, `text`, as far as they apply.
        label: its name in the legend, "" for none.
    """

    kind: str
    numbers: dict[str, Any]
    color: str
    style: dict[str, Any]
    label: str = ""


class Panel(Record):
    """One plot of a figure.

    Attributes:
        cell: its first row and column in the grid, and those behind the last.
        limits: of x and y, None where the data say them.
        ticks: of x and y, positions with their texts; None where they are chosen.
        bar: what stands beside a scale of colours, None for no scale.
    """

    cell: tuple[int, int, int, int]
    marks: list[Mark]
    labels: list[str]
    limits: list[tuple[float, float] | None]
    logarithmic: list[bool]
    ticks: list[list[tuple[float, str]] | None]
    title: str = ""
    legend: bool = False
    grid: bool = False
    equal: bool = False
    hidden: bool = False
    bar: str | None = None


class Plot(Record):
    """A figure.

    Attributes:
        width, height: in pixels.
        grid: its rows and columns of panels.
    """

    width: float
    height: float
    panels: list[Panel]
    grid: tuple[int, int] = (1, 1)
    title: str = ""


def panel(cell: tuple[int, int, int, int] = (0, 0, 1, 1)) -> Panel:
    """An empty panel."""
    return Panel(cell, [], ["", ""], [None, None], [False, False], [None, None])


_SPANS = {
    "line": (("x",), ("y",)),
    "points": (("x",), ("y",)),
    "bars": (("x0", "x1"), ("y0", "y1")),
    "area": (("x",), ("low", "high")),
    "image": (("x0", "x1"), ("y0", "y1")),
    "contour": (("x",), ("y",)),
    "text": (("x",), ("y",)),
}
"""The numbers of each kind along x and along y."""

_TIGHT = frozenset({"image", "contour"})


def bounds(panel: Panel, axis: int) -> tuple[float, float]:
    """The limits of a panel along x (0) or y (1): given ones, or those of the data with some room.

    The first is the larger one where the axis runs backwards.
    """
    fixed = panel.limits[axis]
    if fixed is not None and all(np.abs(fixed) <= LARGEST):
        return fixed
    logarithmic = panel.logarithmic[axis]
    parts = [
        np.ravel(mark.numbers[name])
        for mark in panel.marks
        for name in (
            _SPANS[mark.kind][axis]
            if mark.kind in _SPANS
            else ("at",) * (bool(mark.style["vertical"]) is (axis == 0))
        )
    ]
    values = np.concatenate(parts) if parts else np.zeros(0)
    values = values[(np.abs(values) <= LARGEST) & ((values > 0) | (not logarithmic))]
    if fixed is not None:
        values = np.append(values, [each for each in fixed if np.isfinite(each)])
    if not values.size:
        return (1.0, 10.0) if logarithmic else (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    tight = any(mark.kind in _TIGHT for mark in panel.marks)
    if logarithmic:
        room = 0.0 if tight else MARGIN * np.log10(high / low) or 0.5
        low, high = low / 10**room, high * 10**room
    else:
        room = (high - low) * (0.0 if tight else MARGIN)
        if low == high:
            room = abs(high) * MARGIN or 1.0
        stands = any(
            m.kind == "bars" and not m.numbers[f"{'xy'[axis]}0"].any() for m in panel.marks
        )
        low, high = low if stands and low == 0 else low - room, high + room
        if low == high:
            low, high = low - 0.5, high + 0.5
    if fixed is not None:
        low, high = (
            g if np.isfinite(g) else chosen for g, chosen in zip(fixed, (low, high), strict=True)
        )
    return low, high
