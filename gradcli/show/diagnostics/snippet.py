"""Source lines with marks below them, as rustc shows them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gradcli.errors import Source, Span
from gradcli.record import Record
from gradcli.show.style import PLAIN, Style, escaped

_WIDEST = 160
_BEFORE = 40
_TAB = 4


class Mark(Record):
    """A span to mark: with carets where it is the primary one, with dashes otherwise."""

    span: Span
    text: str
    primary: bool


def location(span: Span) -> str:
    """`file:line:column`; an argument of the command line has a name only."""
    name = escaped(span.source.name)
    if name.startswith(("argument ", "option ")):
        return name
    place = f"{name}:{span.line}:{span.column}"
    return f"{escaped(span.origin)} ({place})" if span.origin else place


def snippet(marks: Sequence[Mark], style: Style = PLAIN) -> list[str]:
    """The lines that hold the marks, file by file, the primary mark's first."""
    sources: dict[Source, list[Mark]] = {}
    for mark in marks:
        sources.setdefault(mark.span.source, []).append(mark)
    gutter = max(len(str(mark.span.line)) for mark in marks)
    lines = []
    for number, (source, inside) in enumerate(sources.items()):
        arrow = "-->" if number == 0 else ":::"
        lead = style.paint(f"{' ' * gutter}{arrow}", "gutter")
        lines.append(f"{lead} {location(inside[0].span)}")
        lines += _lines(source, inside, gutter, style)
    return lines


def _lines(source: Source, marks: list[Mark], gutter: int, style: Style) -> list[str]:
    """The marked lines of one source, in their order."""
    by_line: dict[int, list[Mark]] = {}
    for mark in marks:
        by_line.setdefault(mark.span.line, []).append(mark)
    bar = style.paint(f"{' ' * gutter} |", "gutter")
    lines = [bar]
    before = None
    for number in sorted(by_line):
        if before is not None and number > before + 1:
            lines.append(style.paint("...", "gutter"))
        before = number
        text, below = _marked(source.line(number), by_line[number], style)
        lines.append(f"{style.paint(f'{number:>{gutter}} |', 'gutter')} {text}".rstrip())
        lines += [f"{bar} {line}" for line in below]
    return lines


def _marked(line: str, marks: list[Mark], style: Style) -> tuple[str, list[str]]:
    """A line as it is shown, and the lines of marks below it."""
    width = min(style.width or _WIDEST, _WIDEST) - 8
    starts = [mark.span.column - 1 for mark in marks]
    first = 0
    if len(line) > width:  # show the part around the first mark
        first = max(0, min(starts[0] - _BEFORE, len(line) - width))
        cut = line[first : first + width]
        ending = "…" if first + width < len(line) else ""
    else:
        cut, ending = line, ""
    pieces, columns = _columns(cut)
    lead = "…" if first else ""
    text = lead + "".join(pieces) + ending
    placed = []
    for mark, start in zip(marks, starts, strict=True):
        length = len(mark.span.text.split("\n", 1)[0])
        left = min(max(start - first, 0), len(cut))
        right = min(max(start - first + length, left), len(cut))
        at = len(lead) + columns[left]
        placed.append((at, max(len(lead) + columns[right], at + 1), mark))
    return text, _below(placed, style)


def _columns(line: str) -> tuple[list[str], list[int]]:
    """Each character as it is shown, and the column where it starts; the end's column is last."""
    if line.isascii() and line.isprintable():
        return [line], list(range(len(line) + 1))
    from unicodedata import combining, east_asian_width

    pieces = []
    columns = [0]
    for character in line:
        if character == "\t":
            shown = " " * (_TAB - columns[-1] % _TAB)
            width = len(shown)
        else:
            shown = escaped(character)
            width = len(shown)
            if shown == character:
                wide = east_asian_width(character) in "WF"
                width = 0 if combining(character) else 2 if wide else 1
        pieces.append(shown)
        columns.append(columns[-1] + width)
    return pieces, columns


def _below(placed: list[tuple[int, int, Mark]], style: Style) -> list[str]:
    """The lines of carets, dashes and labels under a line of source."""
    # Carets win where marks overlap.
    cells: dict[int, str] = {}
    for start, end, mark in sorted(placed, key=lambda each: each[2].primary):
        for column in range(start, end):
            cells[column] = "^" if mark.primary else "-"
    underline = _painted(cells, style)
    labelled = sorted((each for each in placed if each[2].text), key=lambda each: each[0])
    # A label behind the marks belongs to the last of them; inside another mark it would be read as
    # that one's.
    if labelled and labelled[-1][1] > max(cells) and not _overlapped(labelled[-1], placed):
        start, _, mark = labelled.pop()
        underline += " " + _label(mark, style)
    lines = [underline]
    while labelled:
        start, _, mark = labelled[-1]
        bars = {column: "|" for column, _, _ in labelled}
        if len(lines) == 1:
            lines.append(_painted(bars, style))
        labelled.pop()
        del bars[start]
        lead = _painted({column: bar for column, bar in bars.items() if column < start}, style)
        plain_width = max((column for column in bars if column < start), default=-1) + 1
        lines.append(lead + " " * (start - plain_width) + _label(mark, style))
    return lines


def _overlapped(one: tuple[int, int, Mark], placed: list[tuple[int, int, Mark]]) -> bool:
    """Whether a mark shares columns with another that is not just as long."""
    start, end, _ = one
    return any(
        first < end and start < last and (first, last) != (start, end) for first, last, _ in placed
    )


def _label(mark: Mark, style: Style) -> str:
    return style.paint(escaped(mark.text), "primary" if mark.primary else "secondary")


def _painted(cells: dict[int, str], style: Style) -> str:
    """Characters at their columns, in runs of one colour."""
    if not cells:
        return ""
    plain = "".join(cells.get(column, " ") for column in range(max(cells) + 1))
    if not style.color:
        return plain
    text = ""
    for sign, run in groupby(plain):
        shown = "".join(run)
        role = "primary" if sign == "^" else "secondary"
        text += shown if sign == " " else style.paint(shown, role)
    return text
