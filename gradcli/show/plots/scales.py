"""Where numbers stand in a plot: along an axis, with ticks that people read well, and on a grid, by
lines of equal height, which marching squares find.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.language.drawing import Mark, Panel, bounds
from gradcli.record import Record

_MOST_TICKS = 200

_MOST_POINTS = 4000
"""A line of more points is drawn by the lowest and highest of each group of them."""


class Scale(Record):
    """An axis from `low` to `high`, which is the smaller one where it runs backwards."""

    low: float
    high: float
    logarithmic: bool = False

    def at(self, values: Any) -> Any:
        """The share of the way from low to high, NaN where a value has no place."""
        low, high, where = self.low, self.high, np.asarray(values, np.float64)
        if self.logarithmic:
            low, high = math.log10(low), math.log10(high)
            with np.errstate(all="ignore"):
                where = np.where(where > 0, np.log10(np.where(where > 0, where, 1.0)), np.nan)
        with np.errstate(all="ignore"):
            return (where - low) / (high - low)

    def values(self, shares: Any) -> Any:
        """The numbers at shares of the way."""
        if self.logarithmic:
            low, high = math.log10(self.low), math.log10(self.high)
            return 10 ** (low + shares * (high - low))
        return self.low + shares * (self.high - self.low)


def scale_of(panel: Panel, axis: int) -> Scale:
    """The scale of x (0) or y (1)."""
    low, high = bounds(panel, axis)
    logarithmic = panel.logarithmic[axis] and min(low, high) > 0
    if low == high:
        low, high = (low / 2, high * 2) if logarithmic else (low - 0.5, high + 0.5)
    return Scale(low, high, logarithmic)


def ticks_of(panel: Panel, axis: int, scale: Scale, most: int) -> list[tuple[float, str]]:
    """About `most` ticks or fewer, each with its share of the way and its text."""
    ticks = panel.ticks[axis]
    if ticks is None:
        values = _decades(scale, most) if scale.logarithmic else _steps(scale, most)
        texts = _powers(values) if scale.logarithmic else _texts(values)
        ticks = list(zip(values, texts, strict=True))
    shares = scale.at([at for at, _ in ticks]) if ticks else []
    pairs = zip(shares, ticks, strict=True)
    visible = [(float(share), text) for share, (_, text) in pairs if -1e-9 <= share <= 1 + 1e-9]
    every = -(-len(visible) // _MOST_TICKS)
    return visible[:: max(every, 1)]


def _steps(scale: Scale, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    low, high = sorted((scale.low, scale.high))
    rough = (high - low) / max(most, 1)
    if not (rough > 0 and math.isfinite(rough)):
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((unit * power for unit in (1, 2, 5, 10) if unit * power >= rough * 0.999), rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last - first > _MOST_TICKS:
        return [low, high]
    return [number * step for number in range(first, last + 1)]


def _decades(scale: Scale, most: int) -> list[float]:
    """Powers of ten: not all of many, and with 2 and 5 between a few."""
    low, high = sorted((math.log10(scale.low), math.log10(scale.high)))
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first >= 2:
        step = max(-(-(last - first) // max(most, 1)), 1)
        return [10.0**power for power in range(first, last + 1, step)]
    units = (1, 2, 5) if last > first or high - low > 0.5 else range(1, 10)
    candidates = [unit * 10.0**p for p in range(math.floor(low), last + 1) for unit in units]
    inside = [each for each in candidates if 10**low * 0.999 <= each <= 10**high * 1.001]
    return inside if len(inside) > 1 else _steps(scale, most)


def _texts(values: list[float]) -> list[str]:
    """Numbers as texts of equal precision."""
    largest = max((abs(each) for each in values), default=0.0)
    step = min((abs(b - a) for a, b in pairwise(values)), default=largest) or 1.0
    if largest and (largest >= 1e6 or largest < 1e-4):
        digits = max(math.ceil(math.log10(largest / step) - 1e-9), 0) if step else 0
        return [_plain_exponent(f"{each:.{digits}e}") if each else "0" for each in values]
    decimals = max(-math.floor(math.log10(step) + 1e-9), 0)
    return [f"{each if abs(each) > step * 1e-6 else 0.0:.{min(decimals, 12)}f}" for each in values]


def _plain_exponent(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"


def _powers(values: list[float]) -> list[str]:
    """Numbers of a logarithmic axis: plain ones near 1, powers of ten elsewhere."""
    return [
        f"{each:g}" if 1e-3 <= each < 1e5 else _plain_exponent(f"{each:.0e}") for each in values
    ]


def pieces(x: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a line between the places where it is not finite."""
    broken = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
    for first, last in zip([-1, *broken], [*broken, x.size], strict=True):
        if last > first + 1:
            yield x[first + 1 : last], y[first + 1 : last]


def thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """A long line by the lowest and highest point of each group."""
    if x.size <= _MOST_POINTS:
        return x, y
    kept = set()
    for part in np.array_split(np.arange(x.size), _MOST_POINTS // 2):
        kept |= {int(part[0]), int(part[y[part].argmin()]), int(part[y[part].argmax()])}
    order = np.array([*sorted(kept), x.size - 1])
    return x[order], y[order]


def color_range(mark: Mark, values: Any) -> tuple[float, float]:
    """The lowest and highest value that a mark has colours for."""
    finite = values[np.isfinite(values)]
    low, high = mark.style.get("low"), mark.style.get("high")
    low = (float(finite.min()) if finite.size else 0.0) if low is None else low
    high = (float(finite.max()) if finite.size else 1.0) if high is None else high
    return low, high


def colored(mark: Mark, values: Any) -> Any:
    """The shares of values in the range of a mark's colours."""
    low, high = color_range(mark, values)
    return (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)


# --- lines of equal height ------------------------------------------------------------------------


def segments(x: Any, y: Any, z: Any, level: float) -> Any:
    """The pieces of a line of equal height: an array of (pieces, 2 ends, x and y).

    Args:
        x, y: the places of the columns and of the rows of `z`.
    """
    corners = [z[:-1, :-1], z[:-1, 1:], z[1:, 1:], z[1:, :-1]]  # around each cell
    above = [np.asarray(each > level) for each in corners]
    finite = np.isfinite(sum(corners))
    columns, rows = np.meshgrid(np.arange(z.shape[1] - 1), np.arange(z.shape[0] - 1))
    around = [(columns, rows), (columns + 1, rows), (columns + 1, rows + 1), (columns, rows + 1)]
    crossings = []
    for side in range(4):
        first, second = side, (side + 1) % 4
        crosses = (above[first] != above[second]) & finite
        with np.errstate(all="ignore"):
            share = (level - corners[first]) / (corners[second] - corners[first])
        share = np.where(crosses, share, 0.0)
        (c1, r1), (c2, r2) = around[first], around[second]
        points = np.stack(
            [x[c1] + share * (x[c2] - x[c1]), y[r1] + share * (y[r2] - y[r1])], axis=-1
        )
        crossings.append((crosses, points))
    middle = sum(corners) / 4 > level
    pieces = []
    for first in range(4):
        for second in range(first + 1, 4):
            both = crossings[first][0] & crossings[second][0]
            saddle = crossings[0][0] & crossings[1][0] & crossings[2][0] & crossings[3][0]
            # Of a saddle two corners are cut off: the ones that differ from its middle.
            keeps = ((second - first) % 2 == 1) & ((second == first + 1) | (first == 0))
            corner = above[second % 4] if second == first + 1 else above[0]
            wanted = both & (~saddle | (keeps & (corner != middle)))
            ends = np.stack([crossings[first][1][wanted], crossings[second][1][wanted]], axis=1)
            pieces.append(ends)
    return np.concatenate(pieces)


def heights(x: Any, y: Any, z: Any, columns: Any, rows: Any) -> Any:
    """The heights at places between those of the grid, bilinear; NaN outside."""
    at_x = np.interp(columns, *_rising(x), left=np.nan, right=np.nan)
    at_y = np.interp(rows, *_rising(y), left=np.nan, right=np.nan)
    inside = np.isfinite(at_x)[None, :] & np.isfinite(at_y)[:, None]
    at_x, at_y = np.nan_to_num(at_x), np.nan_to_num(at_y)
    left = np.clip(at_x.astype(int), 0, max(x.size - 2, 0))
    top = np.clip(at_y.astype(int), 0, max(y.size - 2, 0))
    right, bottom = np.minimum(left + 1, x.size - 1), np.minimum(top + 1, y.size - 1)
    across, down = (at_x - left)[None, :], (at_y - top)[:, None]
    upper = z[np.ix_(top, left)] * (1 - across) + z[np.ix_(top, right)] * across
    lower = z[np.ix_(bottom, left)] * (1 - across) + z[np.ix_(bottom, right)] * across
    return np.where(inside, upper * (1 - down) + lower * down, np.nan)


def _rising(places: Any) -> tuple[Any, Any]:
    """Places in rising order, with the numbers of their columns."""
    numbers = np.arange(places.size, dtype=float)
    return (places, numbers) if places[0] <= places[-1] else (places[::-1], numbers[::-1])
