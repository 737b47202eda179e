"""Findings of an explanation, each at its span, in the layout of diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.errors import Label, Span
from gradcli.show.diagnostics.snippet import Mark, snippet
from gradcli.show.style import PLAIN, Style, block, escaped


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
