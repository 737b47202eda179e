"""Findings of an explanation, each at its place, in the layout of diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.errors import Label, Span
from gradcli.render.snippet import Mark, snippet
from gradcli.render.style import PLAIN, Style, block, escaped


def finding(
    text: str,
    place: Span | None,
    help: str | None,
    labels: Sequence[Label] = (),
    style: Style = PLAIN,
) -> str:
    """What is found at a place, with carets below it, and the mend."""
    lines = [style.paint(escaped(text), "strong")]
    margin = " "
    if place is not None:
        marks = [Mark(place, "", True), *(Mark(each.span, each.text, False) for each in labels)]
        lines += snippet(marks, style)
        margin = " " * max(len(str(mark.span.line)) for mark in marks) + " "
    if help:
        sign = f"{margin}{style.paint('=', 'gutter')} {style.paint('help', 'strong')}: "
        plain = f"{margin}= help: "
        lines.append(sign + block(plain, escaped(help))[len(plain) :])
    return "\n".join(lines)


def place_object(place: Span | None) -> dict[str, Any]:
    """A place in JSON."""
    if place is None:
        return {"source": None, "file": None, "line": None, "column": None}
    return {
        "source": place.text,
        "file": place.source.name,
        "line": place.line,
        "column": place.column,
    }
