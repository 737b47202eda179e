"""What objects lead to is found, brought back and compared whatever their class."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import partial
from types import CellType
from typing import Any

import numpy as np
import pytest

from gradcli.arrays.storage import InferenceStorage, Storage
from gradcli.loops.reach import CLOSED, Snapshot, TooMany, kind_of, led_to
from tests.running import run


class Slotted:
    __slots__ = ("one", "two")

    two: int

    def __init__(self) -> None:
        self.one = 1


class Both(Slotted):
    def __init__(self) -> None:
        super().__init__()
        self.own = [0]


class Hiding(list[Any]):
    """A list that goes through none of its items."""

    def __iter__(self) -> Any:
        return iter(())


def _bound(values: list[Any]) -> Callable[[], list[Any]]:
    return lambda: values


def _set_two(value: Slotted) -> None:
    value.one, value.two = 5, 6


def _write(array: Any) -> None:
    array[1] = 7


CHANGES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "a list": ([1, 2], lambda values: values.append(3)),
    "a list in a tuple in a dict": ({"a": (1, [2])}, lambda d: d["a"][1].clear()),
    "a dict": ({"a": 1}, lambda d: d.update(b=2)),
    "the order of an OrderedDict": (OrderedDict(a=1, b=2), lambda d: d.move_to_end("a")),
    "a defaultdict": (defaultdict(list), lambda d: d["a"].append(1)),
    "a Counter": (Counter("ab"), lambda c: c.update("a")),
    "a set": ({1}, lambda values: values.add(2)),
    "a deque": (deque([1, 2], 2), lambda values: values.append(3)),
    "a bytearray": (bytearray(b"ab"), lambda values: values.pop()),
    "an array": (np.zeros(3), _write),
    "slots": (Slotted(), _set_two),
    "slots and a dict": (Both(), lambda value: value.own.append(1)),
    "an attribute that there was none of": (Both(), lambda value: setattr(value, "new", 1)),
    "a list that hides its items": (Hiding([1, [2]]), lambda values: values[1].append(3)),
    "what a function is bound to": (_bound([1]), lambda function: function().append(2)),
    "what a partial is given": (partial(print, [1]), lambda each: each.args[0].append(2)),
    "what a method is bound to": ([1].append, lambda append: append(2)),
    "a cell": (CellType(1), lambda cell: setattr(cell, "cell_contents", 2)),
    "a storage": (Storage(), lambda storage: setattr(storage, "version", 2)),
}


def _shown(value: Any) -> str:
    parts = [(type(each), kind_of(type(each)).read(each)) for each in led_to(value)]
    return repr([(kind, [repr(part) for part in held]) for kind, held in parts])


@pytest.mark.parametrize("name", CHANGES)
def test_restore(name: str) -> None:
    value, change = CHANGES[name]
    before, was = Snapshot([value]), _shown(value)
    change(value)
    assert _shown(value) != was
    one = before.changes(copies=True)
    before.restore()
    assert _shown(value) == was
    assert not before.changes()
    change(value)
    assert not [*before.differences(one, before.changes())]
    before.restore()
    assert [*before.differences(one, before.changes())]


def test_what_is_new_is_compared_by_what_it_holds() -> None:
    values: list[Any] = []
    before = Snapshot([values])
    changes = []
    for number in (1.0, 1.0, 2.0):
        values[:] = [{"a": [np.full(2, number), {number}, Both()]}]
        changes.append(before.changes(copies=True))
        before.restore()
    assert not [*before.differences(changes[0], changes[1])]
    assert [*before.differences(changes[0], changes[2])] == [values]


def test_iterators_are_closed() -> None:
    def numbers() -> Any:
        yield 1

    for closed in (iter([1]), zip([1], [2], strict=True), numbers()):
        held = {"a": [closed]}
        assert Snapshot([held]).closed == [closed]
        assert Snapshot([], [held]).closed == []


def test_renewed() -> None:
    values: list[Any] = [1]
    before = Snapshot([values])
    values.append([2])
    before.renew()
    values[1].append(3)
    before.restore()
    assert values == [1, [2]]


def test_the_end_of_a_list() -> None:
    values: list[Any] = [[1]]
    before = Snapshot([[values]], grown=[values])
    values += [[2], 3]
    before.restore()
    assert values == [[1]]
    values.append(4)
    before.renew()
    values.append(5)
    before.restore()
    assert values == [[1], 4]


def test_too_many() -> None:
    with pytest.raises(TooMany):
        Snapshot([[[] for _ in range(50_000)]])


def test_large_arrays_are_copied_unless_they_are_only_read() -> None:
    array = np.zeros(1 << 15)
    before = Snapshot([array], spared=[id(array)])
    array[0] = 1
    assert before.changes()
    with pytest.raises(AssertionError):
        before.restore()
    before = Snapshot([array])
    array[0] = 2
    before.restore()
    assert array[0] == 1


def _doubled(*arrays: Any) -> None:
    for each in arrays:
        each *= 2


def test_large_arrays_that_share_memory_or_none() -> None:
    numbers = np.random.default_rng(3)
    whole, alone, turned = numbers.random((3, 1 << 15))
    whole, turned = whole.copy(), turned.copy().reshape(2, -1).T
    held = [whole, whole[5:], alone, turned]
    before, was = Snapshot(held), [each.copy() for each in held]
    _doubled(whole, alone, turned)
    one = before.changes(copies=True)
    before.restore()
    assert all(map(np.array_equal, held, was))
    _doubled(whole, alone, turned)
    assert not [*before.differences(one, before.changes())]
    for each, shown in ((alone, [alone]), (whole, [whole, held[1]]), (turned, [turned])):
        each[-1] += 1
        different = [*before.differences(one, before.changes())]
        assert {*map(id, different)} == {*map(id, shown)}
        each[-1] = 2 * was[[*map(id, held)].index(id(each))][-1]


def test_a_large_array_that_only_one_of_two_changes() -> None:
    for changes_first in (True, False):
        array = np.random.default_rng(4).random(1 << 15)
        before = Snapshot([array])
        _doubled(*[array] * changes_first)
        one = before.changes(copies=True)
        before.restore()
        _doubled(*[array] * (not changes_first))
        assert [*before.differences(one, before.changes())] == [array]


def test_what_two_iterations_did_is_compared_without_a_copy_of_large_arrays() -> None:
    array = np.random.default_rng(5).random(1 << 20)
    before = Snapshot([array])
    array += 1
    tracemalloc.start()
    try:
        one = before.changes(copies=True)
        before.restore()
        array += 1
        assert not [*before.differences(one, before.changes())]
        assert tracemalloc.get_traced_memory()[1] < array.nbytes / 2
    finally:
        tracemalloc.stop()


def test_every_class_of_gradcli_can_be_read() -> None:
    """A class that is added is read too: nothing has to be entered anywhere."""
    run("import torch\nfrom torch import nn\nnn.Linear(2, 2)\ntorch.optim.lr_scheduler.StepLR")
    classes = {
        each
        for name, module in [*sys.modules.items()]
        if name.startswith("gradcli.")
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__.startswith("gradcli.")
    }
    assert len(classes) > 200
    closed = {each.__name__ for each in classes if kind_of(each) is CLOSED}
    assert closed <= {"Program", "_Active", "Here"}  # of compiled code, and of the host's threads


def test_slots_under_properties_are_read_themselves() -> None:
    storage = InferenceStorage()
    before = Snapshot([storage])
    storage.writable = True
    before.restore()
    assert not storage.writable
