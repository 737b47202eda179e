"""Where values of NumPy meet ops of torch: what the one gives the other.

The tables are empty until a program uses NumPy, which fills them; so nobody else pays for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.record import Record

FOREIGN: set[type] = set()
"""The types of arguments that an op of torch may not take as they are."""

SCALARS: set[type] = set()
"""NumPy's numbers."""


class Hooks(Record):
    """What is done at the border.

    Attributes:
        array: the class of arrays.
        mixed: an operator, by its symbol, between a tensor and an array.
        argument: what a function of torch sees of an argument.
        indices: what a tensor sees of an index.
        wrap: an array of the host's as a value.
    """

    array: type
    mixed: Callable[[str, Any, Any], Any]
    argument: Callable[[Any, Any], Any]
    indices: Callable[[Any], Any]
    wrap: Callable[[Any], Any]


_hooks: list[Hooks] = []


def open_border(hooks: Hooks, scalars: frozenset[type]) -> None:
    """Let ops and values of NumPy meet."""
    _hooks.append(hooks)
    SCALARS.update(scalars)
    FOREIGN.update({hooks.array, list, tuple, *scalars})


def argument(function: Any, value: Any) -> Any:
    """What a function of torch sees of an argument."""
    return _hooks[0].argument(function, value) if type(value) in FOREIGN else value


def index(value: Any) -> Any:
    """What a tensor sees of an index."""
    return _hooks[0].indices(value) if type(value) in FOREIGN else value


def wrapped(array: Any) -> Any:
    """An array of the host's as a value."""
    return _hooks[0].wrap(array)


def number(value: Any) -> Any:
    """A number of NumPy's as Python's, which is what a tensor sees of it; others as they are."""
    return value.item() if type(value) in SCALARS else value


def is_array(value: Any) -> bool:
    """Whether a value is an array of NumPy's."""
    return bool(_hooks) and type(value) is _hooks[0].array


def beside(symbol: str, left: Any, right: Any, on_tensors: Callable[[Any, Any], Any]) -> Any:
    """A binary operator between a tensor and a value of one of the `FOREIGN` types."""
    if is_array(left) or is_array(right):
        return _hooks[0].mixed(symbol, left, right)
    return on_tensors(number(left), number(right))
