"""The order in which PyTorch's `sort`, `topk`, `kthvalue` and `mode` leave equal elements.

PyTorch sorts and selects with the C++ library's `sort`, `partial_sort` and `nth_element`. The order
of equal elements is not specified; it follows from their algorithms: a heap for few of many, else
partitions about the median of three with a final insertion sort; `kthvalue` partitions in PyTorch's
own code. To return the same indices, the same steps are taken here for the slices that hold equal
elements: a partition at once, and only where there are equal ones.

The keys of a slice are integers that rank its elements, equal ones alike; smaller ones come first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Before = Callable[[Any, Any], bool]

# Below these lengths the library sorts a range by insertion: in a selection, in a sort.
_SELECTION_END = 3
SORT_END = 16
"""A range of so many items or fewer is sorted by insertion, which keeps the order of equal ones."""

LONGEST = 20_000
"""In longer slices equal elements keep their order: repeating the steps would take seconds."""


def _rising(keys: Any) -> Before:
    """Whether a position comes before another."""
    ranks = keys.tolist()
    return lambda one, other: bool(ranks[one] < ranks[other])


def order(keys: Any) -> Any:
    """The positions in the order of their keys, equal ones in the order of PyTorch's unstable sort:
    up to sixteen keep their order.
    """
    places = np.arange(len(keys))
    _sort(places, keys, len(keys))
    return places


def select(keys: Any, count: int) -> Any:
    """The `count` positions that come first, 1 or more, in PyTorch's order."""
    places = np.arange(len(keys))
    if count * 64 <= len(keys):
        return _from_heap(places, keys, count)[:count]
    _nth_element(places, keys, count - 1)
    _sort(places, keys, count - 1)
    return places[:count]


def first(keys: Any, count: int) -> list[int]:
    """The `count` positions that come first as `kthvalue` leaves them, the last one at the end."""
    items, before = list(range(len(keys))), _rising(keys)
    low, high = 0, len(items) - 1
    while high > low + 1:
        middle = low + (high - low) // 2
        items[middle], items[low + 1] = items[low + 1], items[middle]
        for one, other in ((low + 1, high), (low, high), (low + 1, low)):
            if before(items[other], items[one]):
                items[one], items[other] = items[other], items[one]
        pivot, left, right = items[low], low + 1, high
        while True:
            left += 1
            while before(items[left], pivot):
                left += 1
            right -= 1
            while before(pivot, items[right]):
                right -= 1
            if right < left:
                break
            items[left], items[right] = items[right], items[left]
        items[low], items[right] = items[right], items[low]
        if right < count:
            low = left
        if right >= count - 1:
            high = right - 1
    if high == low + 1 and before(items[high], items[low]):
        items[low], items[high] = items[high], items[low]
    return items[:count]


# --- heaps --------------------------------------------------------------------------------------


def _sift(items: list[Any], first: int, hole: int, length: int, value: Any, before: Before) -> None:
    """Put a value into a heap at a hole: down to a leaf, then up to its position."""
    top = hole
    child = hole
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if before(items[first + child], items[first + child - 1]):
            child -= 1
        items[first + hole] = items[first + child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * (child + 1)
        items[first + hole] = items[first + child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and before(items[first + parent], value):
        items[first + hole] = items[first + parent]
        hole = parent
        parent = (hole - 1) // 2
    items[first + hole] = value


def _heap_select(items: list[Any], first: int, middle: int, last: int, before: Before) -> None:
    """Bring the items that come first into `first` to `middle`, as a heap."""
    length = middle - first
    for parent in range((length - 2) // 2, -1, -1):
        _sift(items, first, parent, length, items[first + parent], before)
    for i in range(middle, last):
        if before(items[i], items[first]):
            value, items[i] = items[i], items[first]
            _sift(items, first, 0, length, value, before)


def _sort_heap(items: list[Any], first: int, last: int, before: Before) -> None:
    while last - first > 1:
        last -= 1
        value, items[last] = items[last], items[first]
        _sift(items, first, 0, last - first, value, before)


def _from_heap(places: Any, keys: Any, count: int) -> Any:
    """Positions of which the first so many are in order, by a heap of that size."""
    items, before = places.tolist(), _rising(keys)
    _heap_select(items, 0, count, len(items), before)
    _sort_heap(items, 0, count, before)
    return np.array(items)


# --- partitions ---------------------------------------------------------------------------------


def _partition(places: Any, keys: Any, first: int, last: int) -> int:
    """Partition a range at the median of three of its items; returns where the second part
    starts. Of each pair that is swapped, one is the next from the left that does not come before
    the median, the other the next from the right that does not come after it.
    """
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    of_a, of_b, of_c = keys[places[[a, b, c]]].tolist()
    if of_a < of_b:
        median = b if of_b < of_c else c if of_a < of_c else a
    else:
        median = a if of_a < of_c else c if of_b < of_c else b
    places[[first, median]] = places[[median, first]]
    rest = places[first + 1 : last]
    ranks, pivot = keys[rest], keys[places[first]]
    left, right = np.flatnonzero(ranks >= pivot), np.flatnonzero(ranks <= pivot)[::-1]
    both = min(len(left), len(right))
    swaps = int(np.count_nonzero(left[:both] < right[:both]))
    stops = [*left[swaps : swaps + 1].tolist(), *right[max(swaps - 1, 0) : swaps].tolist()]
    left, right = left[:swaps], right[:swaps]
    rest[left], rest[right] = rest[right], rest[left]
    return first + 1 + int(min(stops))


def _nth_element(places: Any, keys: Any, nth: int) -> None:
    first, last = 0, len(places)
    depth = 2 * (last.bit_length() - 1)
    while last - first > _SELECTION_END:
        if depth == 0:
            items = places.tolist()
            _heap_select(items, first, nth + 1, last, _rising(keys))
            items[first], items[nth] = items[nth], items[first]
            places[:] = items
            return
        depth -= 1
        cut = _partition(places, keys, first, last)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(places, keys, first, last)


def _sort(places: Any, keys: Any, count: int) -> None:
    """Sort the first positions: partitions, then an insertion sort of all. Ranges without equal
    items need no partition.
    """
    ranges = [(0, count, 2 * (count.bit_length() - 1))]
    while ranges:
        first, last, depth = ranges.pop()
        if last - first <= SORT_END:
            continue
        ranks = np.sort(keys[places[first:last]])
        if not (ranks[1:] == ranks[:-1]).any():
            continue
        if depth == 0:
            places[first:last] = _from_heap(places[first:last], keys, last - first)
            continue
        cut = _partition(places, keys, first, last)
        ranges += [(first, cut, depth - 1), (cut, last, depth - 1)]
    _insertion_sort(places, keys, 0, count)


def _insertion_sort(places: Any, keys: Any, first: int, last: int) -> None:
    """Sort a range; equal items keep their order."""
    part = places[first:last]
    places[first:last] = part[np.argsort(keys[part], kind="stable")]
