"""The order in which PyTorch's `sort`, `topk`, `kthvalue` and `mode` leave equal elements.

PyTorch sorts and selects with the C++ library's `sort`, `partial_sort` and `nth_element`. The order
of equal elements is not specified; it follows from their algorithms: a heap for few of many, else
partitions about the median of three with a final insertion sort; `kthvalue` partitions in PyTorch's
own code. To return the same indices, the same steps are taken here, on lists, for the slices that
hold equal elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Before = Callable[[Any, Any], bool]

# Below these lengths the library sorts a range by insertion: in a selection, in a sort.
_SELECTION_END = 3
SORT_END = 16
"""A range of so many items or fewer is sorted by insertion, which keeps the order of equal ones."""

LONGEST = 20_000
"""In longer slices equal elements keep their order: repeating the steps would take seconds."""


def rising(keys: list[Any]) -> Before:
    """Puts positions of smaller keys before those of larger ones."""
    return lambda one, other: keys[one] < keys[other]


def falling(keys: list[Any]) -> Before:
    """Puts positions of larger keys before those of smaller ones."""
    return lambda one, other: keys[one] > keys[other]


def order(items: list[Any], before: Before) -> list[Any]:
    """The items in order by `before`, equal ones in the order of PyTorch's unstable sort: up to
    sixteen items keep their order.
    """
    _sort(items, 0, len(items), 2 * (len(items).bit_length() - 1), before)
    _insertion_sort(items, 0, len(items), before)
    return items


def select(items: list[Any], count: int, before: Before) -> list[Any]:
    """The `count` items that come first by `before`, in the order in which PyTorch gives them.

    Args:
        items: the items; the list is reordered.
        count: how many, at least 1.
        before: whether one item comes before another.
    """
    if count * 64 <= len(items):
        _heap_select(items, 0, count, len(items), before)
        _sort_heap(items, 0, count, before)
    else:
        _nth_element(items, count - 1, before)
        _sort(items, 0, count - 1, 2 * ((count - 1).bit_length() - 1), before)
        _insertion_sort(items, 0, count - 1, before)
    return items[:count]


def first(items: list[Any], count: int, before: Before) -> list[Any]:
    """The `count` items that come first by `before`, the last of them at the end, as `kthvalue`
    leaves them.
    """
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


# --- partitions ---------------------------------------------------------------------------------


def _partition(items: list[Any], first: int, last: int, before: Before) -> int:
    """Partition a range at the median of three of its items; returns where the second part
    starts.
    """
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if before(items[a], items[b]):
        median = b if before(items[b], items[c]) else c if before(items[a], items[c]) else a
    else:
        median = a if before(items[a], items[c]) else c if before(items[b], items[c]) else b
    items[first], items[median] = items[median], items[first]
    pivot = items[first]
    low, high = first + 1, last
    while True:
        while before(items[low], pivot):
            low += 1
        high -= 1
        while before(pivot, items[high]):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1


def _nth_element(items: list[Any], nth: int, before: Before) -> None:
    first, last = 0, len(items)
    depth = 2 * (last.bit_length() - 1)
    while last - first > _SELECTION_END:
        if depth == 0:
            _heap_select(items, first, nth + 1, last, before)
            items[first], items[nth] = items[nth], items[first]
            return
        depth -= 1
        cut = _partition(items, first, last, before)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(items, first, last, before)


def _sort(items: list[Any], first: int, last: int, depth: int, before: Before) -> None:
    """Sort a range except short stretches, which an insertion sort finishes."""
    while last - first > SORT_END:
        if depth == 0:
            _heap_select(items, first, last, last, before)
            _sort_heap(items, first, last, before)
            return
        depth -= 1
        cut = _partition(items, first, last, before)
        _sort(items, cut, last, depth, before)
        last = cut


def _insertion_sort(items: list[Any], first: int, last: int, before: Before) -> None:
    for i in range(first + 1, last):
        value = items[i]
        at = first if before(value, items[first]) else i
        while at > first and before(value, items[at - 1]):
            at -= 1
        items.insert(at, items.pop(i))
