"""The module `traceback`: the text that Python writes of an exception."""

from __future__ import annotations

from typing import Any

from gradcli.errors import GradcliError, Span, type_error
from gradcli.language.functions.calls import call
from gradcli.language.objects.attributes import get_attribute
from gradcli.language.objects.repr import text
from gradcli.language.objects.types import by_name, type_name
from gradcli.library.python.system.process import SYS
from gradcli.state import active


def _frames(error: GradcliError) -> list[tuple[str, Span | None]]:
    """The places that led to an error, from where it is handled, each with its function."""
    here = active.state.stack
    shared = 0
    for one, other in zip(error.stack, here, strict=False):
        if one is not other:
            break
        shared += 1
    names = ["<module>", *(name for name, _ in error.stack)]
    places = [*(place for _, place in error.stack), error.span]
    return list(zip(names, places, strict=True))[shared:]


def _only(error: GradcliError) -> list[str]:
    words = text(error)
    return [f"{type_name(error)}: {words}\n" if words else f"{type_name(error)}\n"]


_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def _lines(error: GradcliError, chain: bool) -> list[str]:
    lines: list[str] = []
    before = error.cause or error.context
    if chain and before is not None:
        lines += [*_lines(before, chain), _DURING if error.cause is None else _CAUSED]
    lines.append("Traceback (most recent call last):\n")
    for name, place in _frames(error):
        if place is not None:
            lines.append(f'  File "{place.source.name}", line {place.line}, in {name}\n')
            lines.append(f"    {place.source.line(place.line).strip()}\n")
    return lines + _only(error)


def _error(exc: Any, value: Any) -> GradcliError:
    """What `format_exception` was given: an exception, or its class, itself and its traceback."""
    error = exc if value is None else value
    if not isinstance(error, GradcliError):
        raise type_error(f"Exception expected for value, {type_name(error)} found")
    return error


def format_exception(
    exc: Any, /, value: Any = None, tb: Any = None, limit: Any = None, chain: Any = True
) -> list[str]:
    """The lines of a traceback, and what the exception says."""
    return _lines(_error(exc, value), bool(chain))


def format_exception_only(exc: Any, /, value: Any = None) -> list[str]:
    """What the exception says."""
    return _only(_error(exc, value))


def format_exc(limit: Any = None, chain: Any = True) -> str:
    """The traceback of the exception that is handled, as a text."""
    handled = active.state.library["handled"]
    error = handled[-1] if handled else None
    return "NoneType: None\n" if error is None else "".join(_lines(error, bool(chain)))


def print_exc(limit: Any = None, file: Any = None, chain: Any = True) -> None:
    """Write the traceback of the exception that is handled, to standard error."""
    call(get_attribute(file or SYS["stderr"], "write"), (format_exc(limit, chain),), {})


def print_exception(
    exc: Any,
    /,
    value: Any = None,
    tb: Any = None,
    limit: Any = None,
    file: Any = None,
    chain: Any = True,
) -> None:
    """Write the traceback of an exception, to standard error."""
    written = "".join(format_exception(exc, value, tb, limit, chain))
    call(get_attribute(file or SYS["stderr"], "write"), (written,), {})


TRACEBACK: dict[str, Any] = by_name(
    format_exc, format_exception, format_exception_only, print_exc, print_exception
)
"""What `traceback` holds."""
