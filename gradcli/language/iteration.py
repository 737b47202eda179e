"""Going through values: what a loop, an unpacking or a call draws from.

A program's iterators (`map`, `zip`, generator expressions) are `Iterator`s of ours around the
host's. Whatever draws from an iterator to its end counts, since an iterator need not have one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from collections.abc import Iterator as HostIterator
from typing import Any

from gradcli.errors import GradcliError
from gradcli.language.classes import define, type_name
from gradcli.language.exceptions import HOST_ERRORS, converted
from gradcli.language.limits import (
    DEEPEST_ITERATOR,
    LARGEST_COLLECTION,
    MOST_STEPS,
    check_collection,
    check_nesting,
    too_deep,
)
from gradcli.language.text import numbered


class Iterator:
    """An iterator as a value: `kind` is its class's name, `depth` how many iterators it draws
    from in a row.
    """

    __slots__ = ("depth", "kind", "number", "source")

    def __init__(self, kind: str, source: HostIterator[Any], depth: int = 0) -> None:
        self.kind = kind
        self.source = source
        self.depth = depth
        self.number = 0

    def __iter__(self) -> HostIterator[Any]:
        return self.source

    def __next__(self) -> Any:
        return next(self.source)

    def __repr__(self) -> str:
        origin = " <genexpr>" if self.kind == "generator" else ""
        return numbered(f"{self.kind} object{origin}", self)


define("iterator", Iterator)


def drawing(kind: str, source: HostIterator[Any], *values: Any) -> Iterator:
    """The iterator of a kind whose source draws from `values`; raises E601 for too many
    iterators in a row.
    """
    depth = 1 + max((value.depth for value in values if type(value) is Iterator), default=0)
    if depth > DEEPEST_ITERATOR:
        raise too_deep("iterators")
    return Iterator(kind, source, depth)


_SEQUENCES = frozenset({list, tuple, str, range})
_CHANGING = frozenset({dict, set, type({}.keys()), type({}.values()), type({}.items())})
_SIZED = _SEQUENCES | _CHANGING


def iterate(values: Any) -> HostIterator[Any]:
    """What a loop draws from; raises E202 where the value cannot be iterated over."""
    kind = type(values)
    if kind in _SEQUENCES:
        return iter(values)
    if kind is Iterator or kind in _CHANGING:
        return guarded(iter(values), MOST_STEPS)
    if not hasattr(kind, "__iter__"):
        raise GradcliError("E202", f"a value of type {type_name(values)} cannot be iterated over")
    return iter(values)


def bounded(values: Any) -> Iterable[Any]:
    """What a call draws from to the end: raises E602 for more values than a collection may have."""
    kind = type(values)
    if kind in _SIZED:
        try:
            check_collection(len(values))
        except OverflowError as error:  # a range longer than the host can say
            raise _too_many(LARGEST_COLLECTION) from error
        sized: Iterable[Any] = values
        return sized
    if kind is Iterator:
        return guarded(values.source, LARGEST_COLLECTION)
    return iterate(values)


def guarded(values: HostIterator[Any], most: int) -> Generator[Any, None, None]:
    """The values of an iterator, at most so many, with the host's errors as the language's own.

    Leaving a loop early leaves the iterator where it is, so this loops rather than delegates.
    """
    left = most
    try:
        for value in values:
            left -= 1
            if left < 0:
                raise _too_many(most)
            yield value
    except HOST_ERRORS as error:
        raise converted(error) from error


def _too_many(most: int) -> GradcliError:
    return GradcliError("E602", f"more than {most:,} values are too many to be drawn at once")


def check_key(key: Any) -> None:
    """Raise E601 or E602 if hashing a key would go too deep or too far."""
    if type(key) is tuple:
        check_nesting(key)
