"""Errors and warnings as JSON, one object on a line, schema `gradcli.diagnostic/1`."""

from __future__ import annotations

import json
from typing import Any

from gradcli.errors import GradcliError, Span, SyntaxErrors, Warned
from gradcli.show.style import PLAIN, Style

SCHEMA = "gradcli.diagnostic/1"


def diagnostic(error: GradcliError, style: Style = PLAIN) -> str:
    """An error's object; several lines where a text has several syntax errors."""
    errors = error.errors if isinstance(error, SyntaxErrors) else [error]
    return "\n".join(_text({"level": "error", **error_object(each)}) for each in errors)


def warning(warned: Warned, style: Style = PLAIN) -> str:
    """A warning's object."""
    return _text(
        {
            "level": "warning",
            "code": warned.code,
            "message": warned.message,
            "spans": _spans(warned),
            "help": warned.help,
        }
    )


def usage_error(message: str, help: str | None, style: Style = PLAIN) -> str:
    """The object of a mistake in the words of the command line."""
    return _text({"level": "error", "message": message, "exit_code": 2, "help": help})


def note(text: str, style: Style = PLAIN) -> str:
    """A remark's object."""
    return _text({"level": "note", "message": text})


def error_object(error: GradcliError) -> dict[str, Any]:
    """An error as a JSON object."""
    return {
        "code": error.code,
        "class": error.raises,
        "message": error.message,
        "exit_code": error.exit_code,
        "spans": _spans(error),
        "notes": list(error.notes),
        "help": error.help,
        "stack": [
            {"function": name, "call": None if span is None else _position(span)}
            for name, span in error.stack
        ],
    }


def _spans(diagnosed: GradcliError | Warned) -> list[dict[str, Any]]:
    """The primary span first, then those with a label."""
    spans = []
    if diagnosed.span is not None:
        spans.append({**_position(diagnosed.span), "primary": True, "label": None})
    for label in diagnosed.labels:
        spans.append({**_position(label.span), "primary": False, "label": label.text})
    return spans


def _position(span: Span) -> dict[str, Any]:
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.name,
        "line": span.line,
        "column": span.column,
        "end_line": end_line,
        "end_column": end_column,
        "text": span.text,
    }


def _text(value: dict[str, Any]) -> str:
    # Escaped to ASCII: no control character and no lone surrogate is left to harm a terminal.
    return json.dumps({"schema": SCHEMA, **value})
