"""Where values of NumPy, and numbers of a program's own classes, meet ops of torch: what the one
gives the other.

The tables are empty until a program uses NumPy, or derives a class from `int` or `float`; so nobody
else pays for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.language.objects.classes.special_methods import ARITHMETIC, COMPARISONS
from gradcli.record import Record

_OPERATORS = ARITHMETIC | COMPARISONS

FOREIGN: set[type] = set()
"""The types of arguments that an op of torch may not take as they are."""

SCALARS: set[type] = set()
"""NumPy's numbers."""


OWN_NUMBERS: dict[type, Callable[[Any], Any]] = {}
"""The classes of a program's whose instances are numbers, each with what reads the number."""


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


def know_numbers(host: type) -> None:
    """Let ops see Python's numbers in the instances of a class derived from `int` or `float`."""
    OWN_NUMBERS[host] = int.__int__ if issubclass(host, int) else float.__float__
    FOREIGN.update({list, tuple, host})


def argument(function: Any, value: Any) -> Any:
    """What a function of torch sees of an argument."""
    if type(value) not in FOREIGN:
        return value
    value = _own_as_plain(value)
    return _hooks[0].argument(function, value) if _hooks else value


def index(value: Any) -> Any:
    """What a tensor sees of an index."""
    if type(value) not in FOREIGN:
        return value
    value = _own_as_plain(value)
    return _hooks[0].indices(value) if _hooks else value


def _own_as_plain(value: Any) -> Any:
    """Python's numbers for those of a program's own classes, also in a list or tuple."""
    if type(value) not in (list, tuple):
        return own_number(value)
    if OWN_NUMBERS.keys().isdisjoint(map(type, value)):
        return value
    return type(value)(map(own_number, value))


def own_number(value: Any) -> Any:
    """A number of a program's own class as Python's; others as they are."""
    plain = OWN_NUMBERS.get(type(value))
    return value if plain is None else plain(value)


def wrapped(array: Any) -> Any:
    """An array of the host's as a value."""
    return _hooks[0].wrap(array)


def number(value: Any) -> Any:
    """A number of NumPy's, or of a program's own class, as Python's, which is what a tensor sees
    of it; others as they are.
    """
    return value.item() if type(value) in SCALARS else own_number(value)


def is_array(value: Any) -> bool:
    """Whether a value is an array of NumPy's."""
    return bool(_hooks) and type(value) is _hooks[0].array


def beside(symbol: str, left: Any, right: Any, on_tensors: Callable[[Any, Any], Any]) -> Any:
    """A binary operator between a tensor and a value of one of the `FOREIGN` types."""
    if is_array(left) or is_array(right):
        return _hooks[0].mixed(symbol, left, right)
    if type(left) in OWN_NUMBERS:  # an operator of the program's comes before the tensor's
        name = f"__{_OPERATORS[symbol]}__"
        method: Any = getattr(type(left), name, None)
        if method not in (None, getattr(int, name, None), getattr(float, name, None)):
            result = method(left, right)
            if result is not NotImplemented:
                return result
    return on_tensors(number(left), number(right))
