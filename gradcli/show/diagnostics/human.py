"""Errors, warnings and findings of an explanation as text, in the layout of rustc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.errors import GradcliError, Label, Span, SyntaxErrors, Warned
from gradcli.show.diagnostics.snippet import Mark, location, snippet
from gradcli.show.style import PLAIN, Style, block, clipped, escaped, one_line

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
