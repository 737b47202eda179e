"""Iterates over values for loops, unpackings and calls, within limits.

A program's iterators (`map`, `zip`, generator expressions) are `Iterator`s of ours around the
host's. Whatever draws from an iterator to its end counts, since an iterator need not have one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from collections.abc import Iterator as HostIterator
from functools import cache
from typing import Any, NoReturn

from gradcli.errors import GradcliError, type_error
from gradcli.language.limits import (
    DEEPEST_ITERATOR,
    HOST_ITERATIONS,
    charge,
    check_collection,
    check_nesting,
    too_deep,
    too_many_steps,
)
from gradcli.language.objects.exceptions import HOST_ERRORS, Raised, converted
from gradcli.language.objects.repr import numbered, text
from gradcli.language.objects.types import LanguageType, called, is_exception, type_name
from gradcli.limits import length_of
from gradcli.record import Record
from gradcli.state import State, active


class Iterator(Record):
    """An iterator of a kind; `depth` is how many iterators it draws from in a row, `values` are
    what it draws from, and `never_fails` says that the host raises nothing while it does.
    """

    kind: str
    source: HostIterator[Any]
    depth: int = 0
    values: tuple[Any, ...] = ()
    number: int = 0
    never_fails: bool = False

    def __iter__(self) -> HostIterator[Any]:
        return self.source

    def __next__(self) -> Any:
        return next(self.source)

    def __repr__(self) -> str:
        origin = f" {self.origin}" if self.kind == "generator" else ""
        return numbered(f"{self.kind} object{origin}", self)

    @property
    def origin(self) -> str:
        """The name of a generator: its function's, or that of generator expressions."""
        return getattr(self.source, "name", "<genexpr>")

    def resume_in(self, context: Any) -> Iterator:
        """This generator, which enters a context each time it goes on, and leaves it to wait."""
        source: Any = self.source
        source.contexts = (*source.contexts, context)
        return self

    def language_type(self) -> LanguageType:
        """The class of the iterator: one for each kind."""
        return _iterator_type(self.kind)

    def language_getattr(self, name: str) -> Any:
        """`__next__`, and a generator's `close`, `send` and `throw`; raises AttributeError."""
        if name == "__next__" or (self.kind == "generator" and name in ("close", "send", "throw")):
            return _for_programs(getattr(self.source, name))
        if name == "__name__" and self.kind == "generator":
            return self.origin
        raise AttributeError(name)


def _for_programs(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the host's iterator for a program."""

    def method_of_program(*values: Any) -> Any:
        if len(values) == 1 and is_exception(values[0]):
            values = (values[0](),)
        try:
            return method(*values)
        except StopIteration as ended:
            raise ended_iteration(ended) from ended
        except HOST_ERRORS as error:
            raise converted(error) from error

    return called(method.__name__, method_of_program)


@cache
def _iterator_type(kind: str) -> LanguageType:
    return LanguageType(kind, (Iterator,))


def ended_iteration(ended: StopIteration) -> GradcliError:
    """The StopIteration that a program sees, with what a generator returned."""
    if ended.value is None:
        return Raised("StopIteration", "the iterator has no more values", (), "E703", "")
    return Raised("StopIteration", text(ended.value), (ended.value,), "E703")


def drawing(kind: str, source: HostIterator[Any], *values: Any) -> Iterator:
    """The iterator of a kind over `values`; raises E601 for too many in a row."""
    depth = 1
    for value in values:
        if type(value) is Iterator:
            depth = max(depth, 1 + value.depth)
    if depth > DEEPEST_ITERATOR:
        raise too_deep("iterators")
    return Iterator(kind, source, depth, values)


def side_by_side(kind: str, source: HostIterator[Any], *values: Any) -> Iterator:
    """That of a kind which does nothing but draw from each of the values."""
    iterator = drawing(kind, source, *values)
    iterator.never_fails = _SEQUENCES.issuperset(map(type, values))
    return iterator


_SEQUENCES = frozenset({list, tuple, str, range})
VIEWS = frozenset({type({}.keys()), type({}.values()), type({}.items())})
"""The views of a dict, which show what it holds now."""

_CHANGING = {dict, set, frozenset, *VIEWS}
_SIZED = {*_SEQUENCES, *_CHANGING, bytes}


def sized(*kinds: type) -> None:
    """Know more collections of the host's that tell their length and may change in a loop."""
    _CHANGING.update(kinds)
    _SIZED.update(kinds)


def iterate(values: Any) -> HostIterator[Any]:
    """An iterator over a value for a loop; raises E202 where the value cannot be iterated over."""
    kind = type(values)
    if kind in _SEQUENCES:
        return iter(values)
    if kind is Iterator:
        source: HostIterator[Any] = values.source
        return source if values.never_fails else guarded(source)
    if kind in _CHANGING:
        return guarded(iter(values))
    if not hasattr(kind, "__iter__"):
        raise type_error(
            f"a value of type {type_name(values)} cannot be iterated over",
            text=f"'{type_name(values)}' object is not iterable",
            help="`range(n)` counts from 0 to n - 1" if kind is int else None,
        )
    # What the program gave an object of its own, or a loader, may be at fault for what comes here.
    try:
        return guarded(iter(values))
    except HOST_ERRORS as error:
        raise converted(error) from error


def bounded(values: Any) -> Iterable[Any]:
    """An iterator over a value that a call reads to its end.

    Raises E202 where the value cannot be iterated over, E602 for more values than a collection may
    have, E605 where the steps are used up.
    """
    kind = type(values)
    if kind in _SIZED:
        length = length_of(values)
        if length > active.state.limits.elements:
            check_collection(length)
        if length >= HOST_ITERATIONS:
            charge(length)
        sized: Iterable[Any] = values
        return sized
    if kind is Iterator:
        return _counted(values.source)
    if hasattr(kind, "language_class") and hasattr(kind, "__iter__"):
        return _counted(iter(values))
    return iterate(values)


def _counted(values: HostIterator[Any]) -> HostIterator[Any]:
    """The values of an iterator, each a step, no more of them than a collection may have."""
    state = active.state
    if IN_C.drawing is not None:
        return IN_C.drawing(values, state, unlike_host)
    return _counted_in(state, values)


def _counted_in(state: State, values: HostIterator[Any]) -> Generator[Any, None, None]:
    steps = state.steps
    left = state.limits.elements
    for value in guarded(values):
        left -= 1
        if left < 0:
            raise state.limits.too_many_elements(None)
        steps.left -= 1
        if steps.left < 0:
            raise too_many_steps()
        yield value


class InC(Record):
    """What nodes in C do for functions of the library's; None without the core in C.

    Attributes:
        drawing: draws from an iterator for a session's state, None for no counting, with what
            raises for an error of the host's.
        added_up: adds up what an iterator has, from a start on.
        keys: what a function gives for each item of a list.
    """

    drawing: Callable[..., HostIterator[Any]] | None = None
    added_up: Callable[[HostIterator[Any], Any], Any] | None = None
    keys: Callable[[State, Any, list[Any]], list[Any]] | None = None


IN_C = InC()


def guarded(values: HostIterator[Any]) -> HostIterator[Any]:
    """The values of an iterator, with the host's errors as the language's own."""
    if IN_C.drawing is not None:
        return IN_C.drawing(values, None, unlike_host)
    return _guarded(values)


def _guarded(values: HostIterator[Any]) -> Generator[Any, None, None]:
    # Leaving a loop early leaves the iterator where it is, so this loops rather than delegates.
    try:
        for value in values:  # noqa: UP028
            yield value
    except HOST_ERRORS as error:
        unlike_host(error)


def unlike_host(error: Exception) -> NoReturn:
    """Raise what an iterator raised, the host's errors as the language's own."""
    if isinstance(error, HOST_ERRORS):
        raise converted(error) from error
    raise error


def enter(values: dict[Any, Any], key: Any, value: Any) -> None:
    """Enter a value into a dict that is being made; raises E202 for a key that cannot be hashed."""
    check_key(key)
    try:
        values[key] = value
    except TypeError as error:
        raise converted(error) from error


def check_key(key: Any) -> None:
    """Raise E601 or E602 if hashing a key would go too deep or too far."""
    if type(key) is tuple:
        check_nesting(key)
