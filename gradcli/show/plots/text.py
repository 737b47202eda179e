"""A plot as text: lines of dots in braille, of half blocks, or of plain characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from gradcli.language.drawing import COLORS, Mark, Panel, Plot
from gradcli.record import Record
from gradcli.show.plots.scales import (
    colored,
    heights,
    pieces,
    scale_of,
    segments,
    thinned,
    ticks_of,
)
from gradcli.show.style import PLAIN, Style, escaped

ROWS = 16
"""Lines of text of a plot."""

_NARROWEST = 32
_ASCII = "*+ox#@%&$="
_SHADES = {"braille": " ░▒▓█", "blocks": " ░▒▓█", "ascii": " .:-=+*#%@"}
_HALVES = {(False, True): "▀", (True, False): "▄", (True, True): "█"}

DOTS = {"braille": (2, 4), "blocks": (1, 2), "ascii": (1, 1)}
"""The dots of a character across and down, by what a terminal can show."""


def kind_of(encoding: str | None, terminal: str = "") -> str:
    """What a stream can show: one of `DOTS`."""
    for kind, sample in (("braille", "⣿│─┤"), ("blocks", "▀▄█")):
        try:
            sample.encode(encoding or "ascii")
        except (UnicodeError, LookupError):
            continue
        if kind != "braille" or terminal != "linux":  # the console's font has no braille
            return kind
    return "ascii"


def plot_text(plot: Plot, kind: str = "braille", style: Style = PLAIN, width: int = 80) -> str:
    """A figure as text with its line end, panels of a row beside each other where there is room."""
    rows: dict[int, list[Panel]] = {}
    for panel in sorted(plot.panels, key=lambda each: each.cell):
        rows.setdefault(panel.cell[0], []).append(panel)
    lines = [plot.title.center(width).rstrip()] if plot.title else []
    for panels in rows.values():
        count = max(min(len(panels), width // _NARROWEST), 1)
        for at in range(0, len(panels), count):
            room = (width - 2 * (count - 1)) // count
            blocks = [_Drawing(each, kind, style, room).lines() for each in panels[at : at + count]]
            tallest = max(map(len, blocks))
            for number in range(tallest):
                cells = [block[number] if number < len(block) else (0, "") for block in blocks]
                line = "".join(text + " " * (room - used + 2) for used, text in cells)
                lines.append(line.rstrip())
    return "".join(f"{line}\n" for line in lines)


def sparkline(values: Sequence[float], kind: str = "braille", width: int = 60) -> str:
    """Values as a line of bars, lowest to highest; ` ` for what is not finite."""
    numbers = np.asarray(values, np.float64).ravel()
    if numbers.size > width:
        numbers = np.array([_mean(part) for part in np.array_split(numbers, width)])
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return " " * numbers.size
    bars = "_.-=*#" if kind == "ascii" else "▁▂▃▄▅▆▇█"
    low, high = float(finite.min()), float(finite.max())
    shares = (numbers - low) / (high - low) if high > low else np.full(numbers.shape, 0.5)
    return "".join(
        bars[min(int(share * len(bars)), len(bars) - 1)] if np.isfinite(share) else " "
        for share in shares.tolist()
    )


def _mean(part: Any) -> float:
    finite = part[np.isfinite(part)]
    return float(finite.mean()) if finite.size else float("nan")


class _Canvas:
    """Dots in characters, each character in the colour of what was drawn on it last."""

    def __init__(self, kind: str, columns: int, rows: int) -> None:
        self.kind = kind
        self.across, self.down = DOTS[kind]
        self.columns, self.rows = columns, rows
        self.dots = np.zeros((rows * self.down, columns * self.across), bool)
        self.owner = np.full((rows, columns), -1)
        self.over: dict[tuple[int, int], str] = {}

    def dot(self, x: Any, y: Any, owner: int) -> None:
        """Set dots at shares of the width and of the height from below; others are left out."""
        height, width = self.dots.shape
        x, y = np.ravel(x), np.ravel(y)
        kept = (x >= -1e-9) & (x <= 1 + 1e-9) & (y >= -1e-9) & (y <= 1 + 1e-9)
        across = np.clip(np.rint(x[kept] * (width - 1)).astype(int), 0, width - 1)
        down = np.clip(np.rint((1 - y[kept]) * (height - 1)).astype(int), 0, height - 1)
        self.dots[down, across] = True
        self.owner[down // self.down, across // self.across] = owner

    def line(self, x: Any, y: Any, owner: int, gap: int = 0) -> None:
        """Join points, at shares of width and height; `gap` leaves dots out, as dashes do."""
        height, width = self.dots.shape
        with np.errstate(all="ignore"):
            steps = np.maximum(np.abs(np.diff(x)) * width, np.abs(np.diff(y)) * height)
        drawn = 0
        for number in np.flatnonzero(np.isfinite(steps)):
            count = int(min(np.ceil(steps[number]), 2 * (width + height))) + 1
            share = np.linspace(0, 1, count + 1)
            along = x[number] + share * (x[number + 1] - x[number])
            up = y[number] + share * (y[number + 1] - y[number])
            if gap:
                kept = (drawn + np.arange(count + 1)) % (2 * gap) < gap
                along, up = along[kept], up[kept]
                drawn += count
            self.dot(along, up, owner)
        if x.size == 1:
            self.dot(x, y, owner)

    def write(self, x: float, y: float, text: str) -> None:
        """Put characters over the dots, the first at shares of width and height."""
        column = min(max(round(x * (self.columns - 1)), 0), max(self.columns - len(text), 0))
        row = min(max(round((1 - y) * (self.rows - 1)), 0), self.rows - 1)
        for number, character in enumerate(text[: self.columns - column]):
            self.over[row, column + number] = character

    def character(self, row: int, column: int) -> tuple[str, int]:
        """What stands in a place, and whose it is, -1 for nobody's."""
        owner = int(self.owner[row, column])
        over = self.over.get((row, column))
        if over is not None:
            return over, owner
        part = self.dots[
            row * self.down : (row + 1) * self.down,
            column * self.across : (column + 1) * self.across,
        ]
        if not part.any():
            return " ", -1
        if self.kind == "ascii":
            return _ASCII[max(owner, 0) % len(_ASCII)], owner
        if self.kind == "blocks":
            return _HALVES[bool(part[1, 0]), bool(part[0, 0])], owner
        bits = part[[0, 1, 2, 0, 1, 2, 3, 3], [0, 0, 0, 1, 1, 1, 0, 1]]
        return chr(0x2800 + int((bits << np.arange(8)).sum())), owner


class _Entry(Record):
    """A name of the legend."""

    owner: int
    label: str
    letter: str


class _Drawing:
    """A panel that is being drawn in a number of columns.

    Attributes:
        entries: what has a name. Where there are several a letter stands at the end of each, since
            not every terminal has colours.
    """

    def __init__(self, panel: Panel, kind: str, style: Style, width: int) -> None:
        self.panel = panel
        self.kind = kind
        self.style = style
        self.x, self.y = scale_of(panel, 0), scale_of(panel, 1)
        self.up = [] if panel.hidden else ticks_of(panel, 1, self.y, ROWS // 4)
        self.margin = max((len(escaped(text)) for _, text in self.up), default=0)
        self.margin = min(self.margin, width // 3)
        self.columns = max(width - self.margin - 2, 8)
        if panel.equal:  # a character is about twice as high as wide
            ratio = abs((self.x.high - self.x.low) / ((self.y.high - self.y.low) or 1.0))
            self.columns = max(round(min(2 * ROWS * ratio, self.columns)), 8)
        self.canvas = _Canvas(kind, self.columns, ROWS)
        self.owners: dict[str, int] = {}
        named = [mark for mark in panel.marks if mark.label and mark.kind != "text"]
        lines = [mark for mark in named if mark.kind == "line"][:26]
        self.entries: dict[Mark, _Entry] = {}
        for mark in named:
            lettered = len(lines) > 1 and mark in lines
            letter = chr(ord("a") + lines.index(mark)) if lettered else ""
            self.entries[mark] = _Entry(self._owner(mark), escaped(mark.label), letter)

    def _owner(self, mark: Mark) -> int:
        """A number for the mark's colour, that of the palette where it is one of it."""
        if mark.color[:1] == "C" and mark.color[1:].isdigit():
            return int(mark.color[1:]) % COLORS
        return self.owners.setdefault(mark.color, len(self.owners) + 1) % COLORS

    def lines(self) -> list[tuple[int, str]]:
        """The lines of the panel, each with its width, which colours do not count to."""
        for mark in self.panel.marks:
            getattr(self, f"_{mark.kind}")(mark, self._owner(mark))
        for mark, entry in self.entries.items():
            if entry.letter:
                self._letter(mark, entry)
        headings = []
        lead = " " * (self.margin + 2)
        if self.panel.title:
            headings.append(f"{lead}{escaped(self.panel.title).center(self.columns)}".rstrip())
        if self.panel.labels[1]:
            headings.append(escaped(self.panel.labels[1]))
        lines = [(len(line), line) for line in headings]
        lines += self._body()
        if not self.panel.hidden:
            lines += [(len(line), line) for line in self._foot()]
        return lines + self._legend()

    def _letter(self, mark: Mark, entry: _Entry) -> None:
        """A letter at the last point of a line that is seen."""
        x, y = self.x.at(mark.numbers["x"]), self.y.at(mark.numbers["y"])
        seen = np.flatnonzero((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1))
        if seen.size:
            self.canvas.write(float(x[seen[-1]]), float(y[seen[-1]]), entry.letter)

    def _body(self) -> list[tuple[int, str]]:
        tick, side = ("+", "|") if self.kind == "ascii" else ("┤", "│")
        at = {round((1 - share) * (ROWS - 1)): escaped(text) for share, text in self.up[::-1]}
        lines = []
        for row in range(ROWS):
            label = at.get(row, "")[: self.margin]
            edge = " " if self.panel.hidden else tick if row in at else side
            cells = [self.canvas.character(row, column) for column in range(self.columns)]
            text = self._painted(cells)
            lines.append((self.margin + 2 + self.columns, f"{label:>{self.margin}} {edge}{text}"))
        return lines

    def _painted(self, cells: Sequence[tuple[str, int]]) -> str:
        """Characters in the colours of their owners, in runs."""
        text = ""
        for owner, run in groupby(cells, itemgetter(1)):
            shown = "".join(character for character, _ in run)
            text += shown if owner < 0 else self.style.paint(shown, f"series{owner % 6}")
        return text

    def _foot(self) -> list[str]:
        """The x axis: its line, the texts of its ticks, its label."""
        corner, flat, tick = ("+", "-", "+") if self.kind == "ascii" else ("└", "─", "┬")
        line = [flat] * self.columns
        below = [" "] * (self.margin + 2 + self.columns)
        free = 0
        for share, text in ticks_of(self.panel, 0, self.x, max(self.columns // 10, 2)):
            column = round(share * (self.columns - 1))
            text = escaped(text)[: self.columns]
            start = self.margin + 2 + column - len(text) // 2
            start = min(start, len(below) - len(text))
            if start >= free:
                line[column] = tick
                below[start : start + len(text)] = text
                free = start + len(text) + 1
        lead = " " * (self.margin + 1)
        foot = [f"{lead}{corner}{''.join(line)}", "".join(below).rstrip()]
        if self.panel.labels[0]:
            foot.append(f"{lead} {escaped(self.panel.labels[0]).center(self.columns)}".rstrip())
        return foot

    def _legend(self) -> list[tuple[int, str]]:
        """The names, each behind its letter or a dash in its colour."""
        if not self.entries:
            return []
        parts, used = [], self.margin + 2
        dash = "-" if self.kind == "ascii" else "─"
        for entry in self.entries.values():
            sign = _ASCII[entry.owner % len(_ASCII)] if self.kind == "ascii" else dash * 2
            sign = f"{sign} {entry.letter}".rstrip()
            used += len(sign) + len(entry.label) + 4
            parts.append(f"{self.style.paint(sign, f'series{entry.owner % 6}')} {entry.label}")
        return [(used, " " * (self.margin + 2) + "   ".join(parts))]

    # --- marks ----------------------------------------------------------------------------------

    def _line(self, mark: Mark, owner: int) -> None:
        x, y = self.x.at(mark.numbers["x"]), self.y.at(mark.numbers["y"])
        dash = mark.style["dash"]
        if dash != "none":
            for piece in pieces(x, y):
                self.canvas.line(*thinned(*piece), owner, {"solid": 0, "dotted": 1}.get(dash, 3))
        if mark.style["marker"]:
            self._stars(x, y, owner)

    def _points(self, mark: Mark, owner: int) -> None:
        x, y = self.x.at(mark.numbers["x"]), self.y.at(mark.numbers["y"])
        owners = np.full(x.size, owner)
        if "value" in mark.numbers:
            shares = np.nan_to_num(colored(mark, mark.numbers["value"]))
            owners = np.clip(shares * 5, 0, 5).astype(int)
        for each in np.unique(owners):
            self._stars(x[owners == each], y[owners == each], int(each))

    def _stars(self, x: Any, y: Any, owner: int) -> None:
        """Points, each of a few dots where there are dots to spare."""
        self.canvas.dot(x, y, owner)
        if self.kind == "braille" and x.size <= self.columns * 2:
            self.canvas.dot(x + 1 / (self.canvas.dots.shape[1] - 1), y, owner)

    def _bars(self, mark: Mark, owner: int) -> None:
        height, width = self.canvas.dots.shape
        ends = [self.x.at(mark.numbers[name]) for name in ("x0", "x1")]
        ends += [self.y.at(mark.numbers[name]) for name in ("y0", "y1")]
        below = np.nan_to_num(ends[2], nan=0.0)  # the foot of a bar on a logarithmic axis
        for x0, x1, y0, y1 in zip(ends[0], ends[1], below, ends[3], strict=True):
            if not np.isfinite([x0, x1, y1]).all() or y0 == y1:
                continue
            (left, right), (low, high) = sorted((x0, x1)), sorted((y0, y1))
            across = np.arange(round(left * width), max(round(right * width), 1)) / (width - 1)
            up = np.arange(round(low * (height - 1)), round(high * (height - 1)) + 1) / (height - 1)
            grid = np.meshgrid(across[(across >= 0) & (across <= 1)], up[(up >= 0) & (up <= 1)])
            self.canvas.dot(grid[0], grid[1], owner)

    def _area(self, mark: Mark, owner: int) -> None:
        height, width = self.canvas.dots.shape
        x = self.x.at(mark.numbers["x"])
        if not x.size:
            return
        low, high = self.y.at(mark.numbers["low"]), self.y.at(mark.numbers["high"])
        order = np.argsort(x)
        at = np.arange(0, width, 2) / max(width - 1, 1)
        bottom, top = (
            np.interp(at, x[order], each[order], left=np.nan, right=np.nan) for each in (low, high)
        )
        for column, one, other in zip(at, bottom, top, strict=True):
            if np.isfinite(one + other):
                first, last = sorted((max(min(one, 1), 0), max(min(other, 1), 0)))
                up = np.arange(round(first * (height - 1)), round(last * (height - 1)) + 1, 2)
                self.canvas.dot(np.full(up.size, column), up / (height - 1), owner)

    def _rule(self, mark: Mark, owner: int) -> None:
        scale = self.x if mark.style["vertical"] else self.y
        at = np.repeat(scale.at(mark.numbers["at"]), 2)
        whole = np.array([0.0, 1.0])
        x, y = (at, whole) if mark.style["vertical"] else (whole, at)
        self.canvas.line(x, y, owner, 0 if mark.style["dash"] == "solid" else 2)

    def _text(self, mark: Mark, owner: int) -> None:
        x, y = self.x.at(mark.numbers["x"]), self.y.at(mark.numbers["y"])
        if mark.style["share"]:
            x, y = mark.numbers["x"], mark.numbers["y"]
        if x.size and np.isfinite([x[0], y[0]]).all() and 0 <= x[0] <= 1 and 0 <= y[0] <= 1:
            self.canvas.write(float(x[0]), float(y[0]), escaped(mark.style["text"]).split("\n")[0])

    def _image(self, mark: Mark, owner: int) -> None:
        values = mark.numbers["values"]
        if values.ndim == 3:
            values = values @ np.array([0.299, 0.587, 0.114])
        shares = np.nan_to_num(colored(mark, values), nan=0.0)
        rows, columns = shares.shape
        if not values.size:
            return
        row, column = self._places(mark)
        inside = (row >= 0) & (row < rows), (column >= 0) & (column < columns)
        for down in np.flatnonzero(inside[0]):
            for across in np.flatnonzero(inside[1]):
                self._shade(
                    int(down), int(across), float(shares[int(row[down]), int(column[across])])
                )

    def _places(self, mark: Mark) -> tuple[Any, Any]:
        """The row and column of an image in the middle of each line and column of text."""
        places = []
        for scale, ends, count, size in (
            (self.y, ("y0", "y1"), ROWS, mark.numbers["values"].shape[0]),
            (self.x, ("x0", "x1"), self.columns, mark.numbers["values"].shape[1]),
        ):
            low, high = (float(scale.at(mark.numbers[end])[0]) for end in ends)
            middle = (np.arange(count) + 0.5) / count
            middle = 1 - middle if scale is self.y else middle
            places.append(
                np.floor((middle - low) / (high - low) * size) if high != low else middle - 9
            )
        return places[0], places[1]

    def _contour(self, mark: Mark, owner: int) -> None:
        x, y, z, levels = (mark.numbers[name] for name in ("x", "y", "z", "levels"))
        if mark.style["filled"]:
            columns = self.x.values((np.arange(self.columns) + 0.5) / self.columns)
            rows = self.y.values(1 - (np.arange(ROWS) + 0.5) / ROWS)
            at_cells = heights(x, y, z, columns, rows)
            band = np.searchsorted(levels, np.nan_to_num(at_cells)) / max(levels.size, 1)
            for down, across in np.argwhere(np.isfinite(at_cells)):
                self._shade(down, across, float(band[down, across]))
            return
        for number, level in enumerate(levels.tolist()):
            for piece in segments(x, y, z, level):
                at = self.x.at(piece[:, 0]), self.y.at(piece[:, 1])
                self.canvas.line(*at, number % 6 if not mark.color else owner)

    def _shade(self, row: int, column: int, share: float) -> None:
        shades = _SHADES[self.kind]
        self.canvas.over[row, column] = shades[min(int(share * len(shades)), len(shades) - 1)]
