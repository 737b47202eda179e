"""Errors, warnings and findings of an explanation as text, in the layout of rustc: source lines
with marks below them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from gradcli.errors import GradcliError, Label, Source, Span, SyntaxErrors, Warned
from gradcli.record import Record
from gradcli.show.style import PLAIN, Style, block, clipped, counted, escaped, one_line

if TYPE_CHECKING:
    from gradcli.language.compiler.statements.short_loops import TimedLoop
    from gradcli.loops.hot_loop import HotLoop

# --- source lines ---------------------------------------------------------------------------------


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


# --- diagnostics ----------------------------------------------------------------------------------


_MOST_ERRORS = 100
_MOST_CALLS = 8

# These codes belong to the shell and the session: the class that Python would raise says nothing.
WITHOUT_CLASS = ("E104", "E105", "E5", "E603", "E9")


def diagnostic(error: GradcliError, style: Style = PLAIN) -> str:
    """An error with its span, notes and the fix; all errors of a text's syntax."""
    if isinstance(error, SyntaxErrors):
        texts = [_diagnostic(each, style) for each in error.errors[:_MOST_ERRORS]]
        more = len(error.errors) - _MOST_ERRORS
        if more > 0:
            texts.append(f"{style.paint('error', 'error')}: and {more:,} more syntax errors")
        return "\n\n".join(texts)
    return _diagnostic(error, style)


def _diagnostic(error: GradcliError, style: Style) -> str:
    lines = [_headline(f"error[{error.code}]", "error", message_of(error), style)]
    lines += body(_marks(error), (*error.notes, *_calls(error)), error.help, style)
    return "\n".join(lines)


def message_of(error: GradcliError) -> str:
    """An error's message behind the class that PyTorch raises, where that says anything."""
    if error.code.startswith(WITHOUT_CLASS):
        return error.message
    return f"{error.raises}: {error.message}" if error.message else error.raises


def _marks(diagnosed: GradcliError | Warned) -> list[Mark]:
    marks = [Mark(label.span, label.text, False) for label in diagnosed.labels]
    if diagnosed.span is not None:
        marks.insert(0, Mark(diagnosed.span, "", True))
    return marks


def warning(warned: Warned, style: Style = PLAIN) -> str:
    """A warning with its span and the fix."""
    lines = [_headline(f"warning[{warned.code}]", "warning", warned.message, style)]
    return "\n".join([*lines, *body(_marks(warned), (), warned.help, style)])


def usage_error(message: str, help: str | None, style: Style = PLAIN) -> str:
    """A mistake in the words of the command line."""
    lines = [_headline("error", "error", message, style)]
    return "\n".join([*lines, *body([], (), help, style)])


def note(text: str, style: Style = PLAIN) -> str:
    """A remark beside the data."""
    return f"{style.paint('note', 'note')}: {style.filled(escaped(text), 6)}"


def _headline(kind: str, role: str, message: str, style: Style) -> str:
    first, *further = style.filled(f"{kind}: {escaped(message)}", 2).split("\n")
    text = f"{style.paint(kind, role)}{style.paint(first[len(kind) :], 'strong')}"
    return "\n".join([text, *(f"  {line}" for line in further)])


def body(
    marks: list[Mark], notes: tuple[str, ...], help: str | None, style: Style
) -> Iterator[str]:
    margin = ""
    if marks:
        yield from snippet(marks, style)
        margin = " " * max(len(str(mark.span.line)) for mark in marks)
        if notes or help:
            yield style.paint(f"{margin} |", "gutter")
    for kind, text in [*(("note", note) for note in notes), *([("help", help)] if help else [])]:
        sign = f"{margin} {style.paint('=', 'gutter')} {style.paint(kind, 'strong')}: "
        plain = f"{margin} = {kind}: "
        yield sign + block(plain, style.filled(escaped(text), len(plain)))[len(plain) :]


def _calls(error: GradcliError) -> Iterator[str]:
    """The functions of the program that were open, outermost first."""
    stack = error.stack
    left_out = len(stack) - _MOST_CALLS
    for number, (name, span) in enumerate(stack):
        if left_out > 0 and number == _MOST_CALLS // 2:
            yield f"… {left_out:,} more calls"
        if left_out > 0 and _MOST_CALLS // 2 <= number < _MOST_CALLS // 2 + left_out:
            continue
        if span is None:
            yield f"in {name}()"
        else:
            yield f"in {name}(), called at {location(span)}: {clipped(one_line(span.text), 60)}"


# --- findings -------------------------------------------------------------------------------------


def finding(
    text: str,
    span: Span | None,
    help: str | None,
    labels: Sequence[Label] = (),
    style: Style = PLAIN,
) -> str:
    """A finding at a span, with carets below it, and the fix."""
    lines = [style.paint(wrapped(escaped(text)), "strong")]
    margin = " "
    if span is not None:
        marks = [Mark(span, "", True), *(Mark(each.span, each.text, False) for each in labels)]
        lines += snippet(marks, style)
        margin = " " * max(len(str(mark.span.line)) for mark in marks) + " "
    if help:
        sign = f"{margin}{style.paint('=', 'gutter')} {style.paint('help', 'strong')}: "
        plain = f"{margin}= help: "
        lines.append(sign + block(plain, wrapped(escaped(help), len(plain)))[len(plain) :])
    return "\n".join(lines)


def wrapped(text: str, indent: int = 0) -> str:
    """A sentence in lines of 80 columns, further ones after an indent of their own."""
    from textwrap import wrap

    return "\n".join(wrap(text, 80 - indent)) or text


def span_object(span: Span | None) -> dict[str, Any]:
    """A span in JSON."""
    if span is None:
        return {"source": None, "file": None, "line": None, "column": None}
    place: dict[str, Any] = {
        "source": span.text,
        "file": span.source.name,
        "line": span.line,
        "column": span.column,
    }
    # A recording's line stands for one of the user's.
    return {**place, "origin": span.origin} if span.origin else place


# --- loops that ran often -------------------------------------------------------------------------


def loops_explained(loops: Sequence[HotLoop | TimedLoop], style: Style = PLAIN) -> str:
    """For each loop how much of it was compiled, or where and why recording ended."""
    if not loops:
        return "no loop ran often enough to be compiled"
    compiled = [loop for loop in loops if loop.compiled_count]
    loops = [loop for loop in loops if not any(_is_inside(loop, each) for each in compiled)]
    return "\n".join([line for loop in loops for line in _explained(loop, style)])


def _is_inside(loop: HotLoop | TimedLoop, other: HotLoop | TimedLoop) -> bool:
    """Whether a loop is part of another one, and runs in its compiled iterations."""
    inner, outer = loop.node.span, other.node.span
    if inner.source is not outer.source or loop is other or loop.compiled_count:
        return False
    return outer.start <= inner.start and inner.end <= outer.end


def _explained(loop: HotLoop | TimedLoop, style: Style) -> list[str]:
    whole = loop.compiled_count + loop.interpreted_count
    head, (kind, repeated) = _head(loop.node.span), loop.kind
    notes: tuple[str, ...] = ()
    marks = [Mark(head, "", primary=True)]
    broken, help = loop.broken, None
    if loop.compiled_count:
        title = f"{kind}: {counted(loop.compiled_count, repeated)} of {whole} compiled"
        notes = (_facts(loop),)
    else:
        title = f"{kind}: {counted(whole, repeated)} interpreted"
    if broken is not None and not loop.paths:
        place = broken.span or head
        reason = f"{broken.reason} [{broken.code}]"
        same = (place.start, place.end) == (loop.node.span.start, loop.node.span.end)
        marks = [Mark(head if same else place, reason, primary=True)]
        if not same and place.line != head.line:
            marks.append(Mark(head, f"in this {kind}", primary=False))
        help = broken.hint
    return [style.paint(title, "note"), *body(marks, notes, help, style)]


def _facts(loop: HotLoop | TimedLoop) -> str:
    guards = sum(path.guard.count for path in loop.paths)
    checks = sum(path.side_exits for path in loop.paths)
    facts = [counted(len(loop.paths), "path")] if len(loop.paths) > 1 else []
    facts += [counted(guards, "guard"), counted(checks, "check") + " with a side exit"]
    return ", ".join([*facts, f"taken {counted(loop.exits, 'time')}"])


def _head(span: Span) -> Span:
    """The first line of a loop."""
    end = span.text.find("\n")
    return span if end < 0 else Span(span.source, span.start, span.start + end)
