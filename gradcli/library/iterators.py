"""The built-in functions that make iterators."""

from __future__ import annotations

import builtins as host
from collections.abc import Callable
from itertools import starmap
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import type_error
from gradcli.language.functions.calls import Function, call
from gradcli.language.objects.iteration import Iterator, drawing, ended_iteration, iterate
from gradcli.language.objects.types import called, type_name
from gradcli.ops.binding.functions import methods

_ABSENT: Any = object()


def enumerate_(iterable: Any, start: int = 0) -> Iterator:
    return drawing("enumerate", host.enumerate(iterate(iterable), start), iterable)


def zip_(*iterables: Any, strict: Any = False) -> Iterator:
    sources = [iterate(values) for values in iterables]
    return drawing("zip", host.zip(*sources, strict=bool(strict)), *iterables)


def map_(function: Any, iterable: Any, /, *iterables: Any) -> Iterator:
    sources = [iterate(values) for values in (iterable, *iterables)]
    values = starmap(_applied(function), host.zip(*sources, strict=False))
    return drawing("map", values, iterable, *iterables)


def filter_(function: Any, iterable: Any, /) -> Iterator:
    test = None if function is None else _applied(function)
    return drawing("filter", host.filter(test, iterate(iterable)), iterable)


def _applied(function: Any) -> Callable[..., Any]:
    """A value of a program as a function of the host, whose errors are the language's own."""
    if type(function) is Function:
        return function
    return lambda *args: call(function, args, {})


def reversed_(sequence: Any, /) -> Any:
    if type(sequence) is Tensor:
        return methods.flip(sequence, 0) if sequence.array.ndim else sequence
    kind = type(sequence)
    if not hasattr(kind, "__reversed__") and not (
        hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    ):
        raise type_error(
            f"a value of type {type_name(sequence)} has no reverse order",
            text=f"'{type_name(sequence)}' object is not reversible",
        )
    return drawing("reversed", host.reversed(sequence))


def iter_(iterable: Any, sentinel: Any = _ABSENT, /) -> Iterator:
    if sentinel is not _ABSENT:
        return drawing("callable_iterator", host.iter(_applied(iterable), sentinel))
    if type(iterable) is Iterator:
        return iterable
    return drawing(f"{type_name(iterable)}_iterator", iterate(iterable))


def next_(iterator: Any, default: Any = _ABSENT, /) -> Any:
    if not hasattr(type(iterator), "__next__"):
        raise type_error(
            f"a value of type {type_name(iterator)} is no iterator",
            text=f"'{type_name(iterator)}' object is not an iterator",
        )
    try:
        return next(iterator)
    except StopIteration as error:
        if default is not _ABSENT:
            return default
        raise ended_iteration(error) from error


ITERATORS: dict[str, Callable[..., Any]] = {}
"""`enumerate`, `filter`, `iter`, `map`, `next`, `reversed` and `zip`."""

for _function in (enumerate_, filter_, iter_, map_, next_, reversed_, zip_):
    called(_function.__name__.rstrip("_"), _function)
    ITERATORS[_function.__name__] = _function
