"""Stands in for NumPy, `math` and builtins in a function that is called with symbols.

Given no symbol they do what they always do.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.ops.lookup import named_by_numpy
from gradcli.recorded.symbols.notation import call_of, shown
from gradcli.recorded.symbols.tree import Attribute, Call, Name, Symbol, Unreadable, lifted


def has_symbol(values: Sequence[Any]) -> bool:
    """Whether there is a symbol among values, or in a list among them."""
    return any(
        isinstance(value, Symbol) or (isinstance(value, (tuple, list)) and has_symbol(value))
        for value in values
    )


class Numpy:
    """Stands in for NumPy."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if isinstance(value, type) or not callable(value):
            return value
        if name == "result_type":
            return _result_type
        return written_by_name(name, value)


class Mathematics:
    """Stands in for `math`: a constant keeps the name of where it comes from."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name)
        if name == "prod":
            return count
        if not callable(value):
            return Attribute(Name("math", is_number=True), name) if name in ("pi", "e") else value

        def written(*args: Any) -> Any:
            return Call(f"math.{name}", tuple(lifted(each) for each in args))

        return written


class Largest:
    """Stands in for `max` and `min`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not has_symbol(args):
            return getattr(builtins, self._name)(*args, **kwargs)
        return Call(self._name, tuple(lifted(each) for each in args))


def written_by_name(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that is written down where it is given a symbol."""

    def written(*args: Any, **kwargs: Any) -> Any:
        if not has_symbol((*args, *kwargs.values())):
            return function(*args, **kwargs)
        if kwargs:
            raise Unreadable(name)
        symbol = shown(name, args)
        if symbol is not None:
            return symbol
        called = named_by_numpy(function)
        if called is None:
            raise Unreadable(name)
        return call_of(called, args)

    return written


def _result_type(*operands: Any) -> Any:
    return np.dtype(np.float32) if has_symbol(operands) else np.result_type(*operands)


def count(sizes: Any) -> Any:
    """The product of sizes: how many elements there are."""
    if isinstance(sizes, Attribute) and sizes.name == "shape":
        return Call("numel", (sizes.value,), method=True)
    return math.prod(sizes)
