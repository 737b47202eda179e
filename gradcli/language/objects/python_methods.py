"""The special methods that a program may read from any value that has them, such as
`[1].__getitem__`, and as functions of the type, `list.__getitem__`.

Each is an operation of the language: it keeps the limits, and reaches nothing of the host's. Of a
type of Python's own it is that type's method, also where a class derived from it has another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.language.limits import check_collection, check_nesting
from gradcli.language.objects.classes.special_methods import ARITHMETIC, COMPARISONS
from gradcli.language.objects.iteration import bounded, check_key, drawing, iterate
from gradcli.language.objects.operators import HOST_OPERATORS, contains
from gradcli.language.objects.repr import display, text
from gradcli.language.objects.subscripts import delete_item, get_item, set_item
from gradcli.language.objects.types import type_name

Function = Callable[..., Any]

_TEXTS: dict[str, Function] = {"__repr__": display, "__str__": text}

_OF_ANY: dict[str, Function] = {
    "__call__": lambda self, /, *args, **kwargs: self(*args, **kwargs),
    "__contains__": lambda self, element, /: contains(element, self),
    "__delitem__": lambda self, key, /: delete_item(self, key),
    "__getitem__": lambda self, key, /: get_item(self, key),
    "__iter__": lambda self, /: drawing(f"{type_name(self)}_iterator", iterate(self)),
    "__len__": lambda self, /: len(self),
    "__setitem__": lambda self, key, value, /: set_item(self, key, value),
}
"""Those of values of ours: what calls, reads, counts and walks them."""

_CONTEXTS: dict[str, Function] = {
    "__enter__": lambda self, /: type(self).__enter__(self),
    "__exit__": lambda self, /, *error: type(self).__exit__(self, *error),
}
"""Those of contexts, which `with` calls."""

_UNARY = (
    "__abs__",
    "__bool__",
    "__float__",
    "__index__",
    "__int__",
    "__invert__",
    "__neg__",
    "__pos__",
)

_ALIKE: dict[type, tuple[type, ...]] = {
    bool: (int,),
    bytes: (bytes,),
    complex: (int, float, complex),
    dict: (dict,),
    float: (int, float),
    frozenset: (set, frozenset),
    int: (int,),
    list: (list,),
    range: (),
    set: (set, frozenset),
    str: (str,),
    tuple: (tuple,),
}
"""The types of Python's own, each with those that its operators take on the other side."""


def method_of_value(value: Any, name: str) -> Function | None:
    """The function behind `value.__name__`, whose first argument is the value; None for a name that
    the value has not, or that is not for programs.
    """
    kind = type(value)
    if kind in _ALIKE:
        return method_of_type(kind, name)
    if name in _CONTEXTS:
        return _CONTEXTS[name] if getattr(kind, "language_context", False) else None
    return _OF_ANY.get(name) if _has(kind, name) else None


def _has(kind: type, name: str) -> bool:
    """Whether instances of a class have a method; the class's own class may have one too."""
    method = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)
    return method is not None


def method_of_type(host: type, name: str) -> Function | None:
    """The same of `list.__name__`, for a type of Python's own."""
    if host not in _ALIKE or not _has(host, name):
        return None
    if name in _TEXTS:
        return _TEXTS[name]
    if name in _UNARY:
        return _checked(host, name)
    if name in _SYMBOLS:
        return _operator(host, *_SYMBOLS[name])
    if name == "__iter__":
        walk: Function = getattr(host, name)
        return lambda self, /: drawing(f"{host.__name__}_iterator", walk(self))
    return _of_items(host, name) if name in _OF_ANY else None


_SYMBOLS: dict[str, tuple[str, bool]] = {
    **{f"__{name}__": (symbol, False) for symbol, name in (ARITHMETIC | COMPARISONS).items()},
    **{f"__r{name}__": (symbol, True) for symbol, name in ARITHMETIC.items()},
}
"""The operators, each with whether the value stands on the right of it."""


def _checked(host: Any, name: str) -> Function:
    method = getattr(host, name)

    def checked(self: Any, /) -> Any:
        if name == "__hash__":
            check_key(self)
        return method(self)

    return checked


def _operator(host: Any, symbol: str, from_the_right: bool) -> Function:
    operation, alike = HOST_OPERATORS[symbol], _ALIKE[host]

    def apply(self: Any, other: Any, /) -> Any:
        repeated = symbol == "*" and host in (str, bytes, list, tuple) and isinstance(other, int)
        fits = isinstance(other, alike) or repeated or (symbol == "%" and host is str)
        if not fits:
            return NotImplemented
        own = _plain(host, self)
        return operation(other, own) if from_the_right else operation(own, other)

    return apply


def _plain(host: Any, value: Any) -> Any:
    """The value as one of the host's type itself, whose operators a derived class does not have."""
    if type(value) is host or host in (bool, range):
        return value
    if host in (list, tuple):
        return host.__getitem__(value, slice(None))
    if host in (dict, set, frozenset):
        return host.copy(value)
    return {str: str.__str__, int: int.__int__, float: float.__float__}[host](value)


def _of_items(host: Any, name: str) -> Function | None:
    """A method of a collection that works on its items."""
    method = getattr(host, name)

    def on_items(self: Any, /, *args: Any) -> Any:
        for each in args[:1]:
            check_key(each) if host is dict else check_nesting(each)
        if name == "__setitem__" and host is list and args and type(args[0]) is slice:
            values = list(bounded(args[1]))
            check_collection(len(self) + len(values))
            args = (args[0], values)
        return method(self, *args)

    return on_items
