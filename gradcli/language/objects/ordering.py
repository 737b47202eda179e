"""Sorts values and picks the largest, with the comparisons of the language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError, value_error
from gradcli.language.limits import check_nesting
from gradcli.language.objects.iteration import bounded


def sort_values(values: Any, key: Any = None, reverse: Any = False) -> list[Any]:
    """The values in order of themselves or of their keys, stably; raises E202, E602."""
    items = list(bounded(values))
    keys = items if key is None else [key(item) for item in items]
    check_nesting(keys)
    if key is None:
        return sorted(items, reverse=bool(reverse))
    order = sorted(range(len(items)), key=keys.__getitem__, reverse=bool(reverse))
    return [items[number] for number in order]


_ABSENT: Any = object()


def extreme(name: str, pick: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max`, which `pick` is of the host."""

    def pick_one(*values: Any, key: Any = None, default: Any = _ABSENT) -> Any:
        if not values:
            raise GradcliError(
                "E201",
                f"{name}() needs a value",
                text=f"{name} expected at least 1 argument, got 0",
            )
        if len(values) > 1 and default is not _ABSENT:
            raise GradcliError("E201", f"{name}() takes a default only with a single collection")
        items = list(bounded(values[0])) if len(values) == 1 else list(values)
        if not items:
            if default is not _ABSENT:
                return default
            raise value_error(
                f"{name}() of nothing has no value", text=f"{name}() arg is an empty sequence"
            )
        keys = items if key is None else [key(item) for item in items]
        check_nesting(keys)
        return items[pick(range(len(items)), key=keys.__getitem__)]

    pick_one.__name__ = name
    return pick_one
