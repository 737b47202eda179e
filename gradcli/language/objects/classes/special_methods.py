"""The special methods that a program's class may define: operators, conversions, containers.

The host calls them by its own protocols, so each is wrapped: the result is checked here, where the
host would raise an error of its own, and the end of an iterator is raised as the host expects it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from gradcli.errors import GradcliError, type_error
from gradcli.language.objects.types import type_name

ARITHMETIC = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
"""The names of operators in their special methods: `__add__`, `__radd__` and `__iadd__`."""

COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
"""The names of comparisons in theirs."""

_OF_ANY_TYPE = (
    *(f"__{prefix}{name}__" for name in ARITHMETIC.values() for prefix in ("", "r", "i")),
    *(f"__{name}__" for name in COMPARISONS.values()),
    *(f"__{name}__" for name in ("neg", "pos", "invert", "abs", "round", "divmod", "rdivmod")),
    *(f"__{name}__" for name in ("call", "getitem", "setitem", "delitem", "contains", "iter")),
    *(f"__{name}__" for name in ("next", "missing", "reversed", "enter", "exit", "getattr")),
)

SPECIAL_METHODS: dict[str, Any] = {
    **dict.fromkeys(_OF_ANY_TYPE, object),
    "__bool__": bool,
    "__complex__": complex,
    "__float__": float,
    "__format__": str,
    "__hash__": int,
    "__index__": int,
    "__int__": int,
    "__len__": int,
    "__repr__": str,
    "__str__": str,
}
"""The special methods that the host calls, each with the type of its result."""

RENAMED = {
    "__delattr__": "language_deletes",
    "__delete__": "language_delete",
    "__get__": "language_get",
    "__getattribute__": "language_gets",
    "__new__": "language_new",
    "__set__": "language_set",
    "__set_name__": "language_set_name",
    "__setattr__": "language_sets",
}
"""Those that the interpreter calls, each with its name in the host class: under their own names
they would change how the host itself treats the object.
"""

OF_THE_CLASS = frozenset({"__class_getitem__", "__init_subclass__"})
"""Those that are class methods without a decorator."""

CALLED_HERE = frozenset(
    {"__copy__", "__deepcopy__", "__doc__", "__getattr__", "__getstate__", "__init__"}
    | {"__match_args__", "__post_init__", "__setstate__", "__slots__"}
)
"""What the interpreter and the library look up in the table of the class: the host class lacks it.
"""


def special_method(name: str, function: Any) -> Callable[..., Any]:
    """The host's method that calls the program's; raises E202 for a result of the wrong type."""
    if not callable(function):
        raise type_error(f"{name} of a class is a function, not {type_name(function)}")
    if name == "__next__":
        return _next(function)
    kind = SPECIAL_METHODS[name]
    if kind is object:

        def unchecked(self: Any, *args: Any, **kwargs: Any) -> Any:
            return function(self, *args, **kwargs)

        unchecked.__name__ = name
        vars(unchecked)["function"] = function
        return unchecked

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        return checked_length(result) if name == "__len__" else _checked(name, kind, result)

    method.__name__ = name
    vars(method)["function"] = function
    return method


def _checked(name: str, kind: type, result: Any) -> Any:
    """What a special method returned, if it is of the kind; raises E202."""
    if isinstance(result, kind):
        return result
    raise type_error(
        f"{name}() must return {kind.__name__}, not {type_name(result)}",
        text=f"{name} returned non-string (type {type_name(result)})" if kind is str else None,
    )


def checked_length(result: Any) -> int:
    """What `__len__` returned as a length; raises E202 and E204 for what is none."""
    length = int(_checked("__len__", int, result))
    if 0 <= length <= sys.maxsize:
        return length
    raise GradcliError(
        "E204",
        f"{result} cannot be a length",
        text="__len__() should return >= 0",
        raises="ValueError" if length < 0 else "OverflowError",
    )


def sequence_iterator(self: Any) -> Iterator[Any]:
    """`__iter__` of a class with `__getitem__` alone: items from 0 up to an IndexError."""
    for number in count():
        try:
            item = self[number]
        except GradcliError as error:
            if error.raises != "IndexError":
                raise
            return
        yield item


def _next(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        try:
            return function(self)
        except GradcliError as error:
            if error.raises != "StopIteration":
                raise
            raise StopIteration from error

    method.__name__ = "__next__"
    return method
