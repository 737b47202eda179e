"""What became of the loops that ran often, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradcli.errors import Span
from gradcli.show.diagnostics.human import Mark, body
from gradcli.show.style import PLAIN, Style, counted

if TYPE_CHECKING:
    from gradcli.loops.hot_loop import HotLoop


def explained(loops: Sequence[HotLoop], style: Style = PLAIN) -> str:
    """For each loop how much of it was compiled, or where and why recording ended."""
    if not loops:
        return "no loop ran often enough to be compiled"
    compiled = [loop for loop in loops if loop.compiled_count]
    loops = [loop for loop in loops if not any(_is_inside(loop, each) for each in compiled)]
    return "\n".join([line for loop in loops for line in _explained(loop, style)])


def _is_inside(loop: HotLoop, other: HotLoop) -> bool:
    """Whether a loop is part of another one, and runs in its compiled iterations."""
    inner, outer = loop.node.span, other.node.span
    if inner.source is not outer.source or loop is other or loop.compiled_count:
        return False
    return outer.start <= inner.start and inner.end <= outer.end


def _explained(loop: HotLoop, style: Style) -> list[str]:
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


def _facts(loop: HotLoop) -> str:
    guards = sum(path.guard.count for path in loop.paths)
    checks = sum(path.side_exits for path in loop.paths)
    facts = [counted(len(loop.paths), "path")] if len(loop.paths) > 1 else []
    facts += [counted(guards, "guard"), counted(checks, "check") + " with a side exit"]
    return ", ".join([*facts, f"taken {counted(loop.exits, 'time')}"])


def _head(span: Span) -> Span:
    """The first line of a loop."""
    end = span.text.find("\n")
    return span if end < 0 else Span(span.source, span.start, span.start + end)
