"""The modules `heapq`, `bisect` and `statistics`."""

from __future__ import annotations

import bisect as host_bisect
import heapq as host_heapq
import statistics as host_statistics
from collections.abc import Callable
from typing import Any

from gradcli.errors import type_error, value_error
from gradcli.language.functions.calls import for_host
from gradcli.language.limits import charge, check_collection, check_nesting
from gradcli.language.objects.iteration import Iterator, bounded, drawing, iterate
from gradcli.language.objects.operators import sort_values
from gradcli.language.objects.types import by_name, called, check_kind, type_name


def _on_heap(name: str) -> Callable[..., Any]:
    function = getattr(host_heapq, name)

    def change(heap: Any, *items: Any) -> Any:
        check_kind(heap, list, "heap argument must be a list")
        check_nesting(heap)
        check_collection(len(heap) + len(items))
        charge(len(heap) if name == "heapify" else 0)
        return function(heap, *items)

    return called(name, change)


def nlargest(n: int, iterable: Any, key: Any = None) -> list[Any]:
    """`heapq.nlargest(n, values)`."""
    return sort_values(iterable, key, True)[: max(n, 0)]


def nsmallest(n: int, iterable: Any, key: Any = None) -> list[Any]:
    """`heapq.nsmallest(n, values)`."""
    return sort_values(iterable, key)[: max(n, 0)]


def merge(*iterables: Any, key: Any = None, reverse: Any = False) -> Iterator:
    """`heapq.merge(…)`."""
    sources = [iterate(values) for values in iterables]
    merged = host_heapq.merge(*sources, key=for_host(key), reverse=bool(reverse))
    return drawing("generator", merged, *iterables)


HEAPQ: dict[str, Any] = {
    **by_name(merge, nlargest, nsmallest),
    **{
        name: _on_heap(name)
        for name in ("heapify", "heappop", "heappush", "heappushpop", "heapreplace")
    },
}
"""What `heapq` holds."""


def _bisection(name: str) -> Callable[..., Any]:
    function = getattr(host_bisect, name)

    def find(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> Any:
        if not hasattr(type(a), "__getitem__"):
            raise type_error(f"a value of type {type_name(a)} has no items")
        return function(a, x, lo, hi, key=for_host(key))

    return called(name, find)


BISECT: dict[str, Any] = {
    name: _bisection(name)
    for name in ("bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right")
}
"""What `bisect` holds."""


def _statistic(name: str) -> Callable[..., Any]:
    function = getattr(host_statistics, name)

    def measure(data: Any, *more: Any, **named: Any) -> Any:
        others = [list(bounded(each)) if hasattr(type(each), "__iter__") else each for each in more]
        values = list(bounded(data))
        if not all(isinstance(value, (int, float, str)) for value in values):
            raise type_error(f"{name}() takes numbers")
        charge(20 * len(values))
        try:
            return function(values, *others, **named)
        except host_statistics.StatisticsError as error:
            raise value_error(str(error)) from error

    return called(name, measure)


STATISTICS: dict[str, Any] = {
    name: _statistic(name)
    for name in (
        "correlation", "fmean", "geometric_mean", "harmonic_mean", "mean", "median",
        "median_high", "median_low", "mode", "multimode", "pstdev", "pvariance", "quantiles",
        "stdev", "variance",
    )
}  # fmt: skip
"""What `statistics` holds."""
