"""Errors and warnings on one line each, `file:line:column: error[CODE]: message`, as editors read
them.
"""

from __future__ import annotations

from gradcli.errors import GradcliError, SyntaxErrors, Warned
from gradcli.show.diagnostics.human import location, message_of
from gradcli.show.style import PLAIN, Style, one_line


def diagnostic(error: GradcliError, style: Style = PLAIN) -> str:
    """An error's line; several where a text has several syntax errors."""
    errors = error.errors if isinstance(error, SyntaxErrors) else [error]
    return "\n".join(_line(each, f"error[{each.code}]", message_of(each), style) for each in errors)


def warning(warned: Warned, style: Style = PLAIN) -> str:
    """A warning's line."""
    return _line(warned, f"warning[{warned.code}]", warned.message, style)


def usage_error(message: str, help: str | None, style: Style = PLAIN) -> str:
    """The line of a mistake in the words of the command line."""
    return f"{style.paint('error', 'error')}: {one_line(message)}"


def note(text: str, style: Style = PLAIN) -> str:
    """A remark's line."""
    return f"{style.paint('note', 'note')}: {one_line(text)}"


def _line(diagnosed: GradcliError | Warned, kind: str, message: str, style: Style) -> str:
    position = "" if diagnosed.span is None else f"{location(diagnosed.span)}: "
    role = kind.partition("[")[0]
    return f"{position}{style.paint(kind, role)}: {one_line(message)}"
