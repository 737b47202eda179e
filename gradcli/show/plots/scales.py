"""Where numbers stand along an axis, and the ticks that people read well."""

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
