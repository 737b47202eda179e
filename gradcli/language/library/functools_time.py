"""The modules `functools` and `time`, as far as training programs use them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.errors import GradcliError
from gradcli.language.objects.iteration import bounded
from gradcli.language.objects.types import type_name


class Partial:
    """`functools.partial(func, …)`: a function with some of its arguments given.

    Attributes:
        args, keywords: the arguments; a call's own come after them, and replace keywords.
    """

    __slots__ = ("args", "func", "keywords")

    language_name: ClassVar[str] = "functools.partial"
    language_attributes: ClassVar[frozenset[str]] = frozenset({"args", "func", "keywords"})
    settable_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> None:
        if not callable(func):
            raise GradcliError("E202", f"partial() takes a function, not {type_name(func)}")
        self.func = func
        self.args = args
        self.keywords = keywords

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.func(*self.args, *args, **{**self.keywords, **keywords})

    def __repr__(self) -> str:
        given = [repr(value) for value in (self.func, *self.args)]
        given += [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"functools.partial({', '.join(given)})"


_NONE = object()


def reduce(function: Callable[[Any, Any], Any], iterable: Any, initial: Any = _NONE, /) -> Any:
    """`functools.reduce(function, iterable)`: the values taken together from left to right.

    Raises E202 where there is none and no `initial`.
    """
    values = iter(bounded(iterable))
    result = next(values, _NONE) if initial is _NONE else initial
    if result is _NONE:
        raise GradcliError("E202", "reduce() of nothing needs a value to begin with")
    for value in values:
        result = function(result, value)
    return result


def seconds_now() -> float:
    """`time.time()`: the seconds since 1970."""
    return time.time()


def seconds_passed() -> float:
    """`time.perf_counter()`: the seconds since some moment."""
    return time.perf_counter()


def seconds_worked() -> float:
    """`time.process_time()`: the seconds that the processor worked for this process."""
    return time.process_time()


TIME: dict[str, Callable[[], float]] = {
    "perf_counter": seconds_passed,
    "process_time": seconds_worked,
    "time": seconds_now,
}
"""What `time` holds."""

FUNCTOOLS: dict[str, Any] = {"partial": Partial, "reduce": reduce}
"""What `functools` holds."""
