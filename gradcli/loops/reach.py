"""What some objects lead to: to bring it back to what it was, and to compare two ways to change it.

No kind of object has to be known for that. An object of a class that is written in Python is its
attributes; a collection of the host's is what is in it; an array is its bits; and each is gone
through to whatever it holds, until only values are left that never change. An object of the host's
that keeps its state to itself, as an iterator does, can neither be read nor be brought back: it is
told (`Snapshot.closed`), so that nothing is compiled which may reach it. What is left out, because
no iteration changes it or because nobody sees it, stands in `_FIXED` and `_UNSEEN`: all else is
gone through.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from math import inf
from operator import attrgetter, is_, itemgetter
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any
from weakref import ReferenceType

import numpy as np

from gradcli.arrays.flat.planned import span_of
from gradcli.arrays.fusion.lazy import LAZY, forced
from gradcli.arrays.layout.sizes import Size
from gradcli.arrays.storage import Storage
from gradcli.autograd.node import Node
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor, TensorMeta
from gradcli.errors import Source, Span
from gradcli.language.compiler.base import Compiler
from gradcli.language.functions.calls import Function
from gradcli.language.objects.attributes import Module as Namespace
from gradcli.language.objects.classes.user_classes import UserClass
from gradcli.language.objects.types import LanguageType
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.language.tree.syntax import Syntax
from gradcli.limits import Steps
from gradcli.loops.locations import Attribute, Item, Name, Returned
from gradcli.ops.definition.op import Op
from gradcli.record import Record
from gradcli.state import State
from gradcli.trace.ir import Value, same_bits

Parts = tuple[Any, ...]
"""What an object holds."""

Seen = dict[int, list[Any]]
"""The objects that changed, by their numbers, each with what it holds in a form to compare."""

_LARGE = 1 << 16
"""Bytes of an array that is not copied where it is only read."""

_LOOKED_AT = 1 << 12
"""Elements of such an array that are looked at."""

_MANY = 256
"""Items of a collection that is not gone through where only the program itself reads it."""

_MOST = 40_000
"""Objects of which more are not worth comparing."""


class TooMany(Exception):
    """More objects are reached than are worth comparing."""


class Kind(Record):
    """How the objects of a class are read.

    Attributes:
        read: what an object holds.
        put: makes it hold that again.
        shown: what is compared of what it holds.
    """

    read: Callable[[Any], Parts]
    put: Callable[[Any, Parts], None]
    shown: Callable[[Parts], Parts]

    def is_as(self, value: Any, parts: Parts) -> bool:
        """Whether an object still holds the very same."""
        now = self.read(value)
        return len(now) == len(parts) and all(map(is_, now, parts))


class ByValue(Kind):
    """Of objects whose parts are made when they are read."""

    def is_as(self, value: Any, parts: Parts) -> bool:
        return all(map(_alike, self.read(value), parts))


class OfArrays(Kind):
    """Of arrays that were copied."""

    def is_as(self, value: Any, parts: Parts) -> bool:
        return same_bits(value, parts[0])


class Snapshot:
    """What some objects lead to, as it is now.

    Args:
        given: objects that code of ours is given, which may change whatever they lead to.
        known: objects that the program itself reads: what it takes out of a large collection is
            among them too, so none is gone through.
        variables: those of the program, of which each name's value is an object of its own; their
            order is not compared, and of the names only those for which the function says so.
        spared: the ids of arrays that are only read: large ones are not copied.
        grown: lists of which nothing changes but the end.
        alone: objects of which nothing changes but what they hold themselves.
        most: how many objects there may be.

    Attributes:
        closed: what is given that cannot be read.

    Raises:
        TooMany: there are more.
    """

    def __init__(
        self,
        given: Iterable[Any],
        known: Iterable[Any] = (),
        variables: Iterable[tuple[Variables, Callable[[str], bool]]] = (),
        spared: Iterable[int] = (),
        grown: Iterable[list[Any]] = (),
        alone: Iterable[Any] = (),
        most: float = _MOST,
    ) -> None:
        self.closed: list[Any] = []
        self._objects: list[tuple[Any, Kind, Parts]] = []
        self._numbers: dict[int, int] = {}
        self._spared = frozenset(spared)
        self._most = most
        self._exchanged: set[int] = set()
        for holder, is_read in variables:
            if id(holder) not in self._numbers:
                self._add(holder, _variables(is_read))
        for values in grown:
            if id(values) not in self._numbers:
                self._add(values, _End(len(values)))
        for each in alone:
            self._add(each, kind_of(type(each)))
        self._alone = len(self._objects)
        self._go_through(given, is_given=True)
        self._go_through(known, is_given=False)
        self._at_first = len(self._objects)

    def renew(self) -> None:
        """Take it anew, of all that was given and is led to now."""
        waiting: list[Any] = []
        objects = self._objects
        for number, (value, kind, parts) in enumerate(objects):
            if kind is ARRAY:
                np.copyto(parts[0], value)
                continue
            if kind.put is _keep:
                continue
            if type(kind) is _End:
                objects[number] = value, _End(len(value)), ()
                continue
            now = kind.read(value)
            if len(now) != len(parts) or not all(map(is_, now, parts)):
                objects[number] = value, kind, now
                if number >= self._alone:
                    waiting += now
        self._go_through(waiting, is_given=True)

    @property
    def is_stale(self) -> bool:
        """Whether much of it is not led to any more, as gradients of former iterations."""
        return len(self._objects) > 8 + self._at_first * 1.25

    def _add(self, value: Any, kind: Kind) -> Parts:
        if len(self._objects) > self._most:
            raise TooMany
        self._numbers[id(value)] = len(self._objects)
        parts = kind.read(value)
        self._objects.append((value, kind, parts))
        return parts

    def _go_through(self, roots: Iterable[Any], is_given: bool) -> None:
        waiting, numbers = [*roots], self._numbers
        while waiting:
            value = waiting.pop()
            kind = kind_of(type(value))
            if kind is FIXED or id(value) in numbers:
                continue
            if kind is CLOSED:
                if is_given:
                    self.closed.append(value)
                continue
            if kind is ARRAY:
                is_copied = value.nbytes <= _LARGE or (is_given and id(value) not in self._spared)
                self._add(value, ARRAY if is_copied else _LARGE_ARRAY)
                continue
            parts = self._add(value, kind)
            if is_given or len(parts) <= _MANY:
                waiting += parts

    def restore(self) -> None:
        """Bring everything back to what it was."""
        exchanged, self._exchanged = self._exchanged, set()
        for number, (value, kind, parts) in enumerate(self._objects):
            if number in exchanged:
                _exchange(value, parts[0])
            elif not kind.is_as(value, parts):
                kind.put(value, parts)

    def changes(self, copies: bool = False) -> Seen:
        """What differs from what it was; as copies where it is to change.

        No copies are made of large arrays: the next `restore` leaves what they hold now in those
        that hold what they were, and what is compared with them from then on is that.
        """
        changed: Seen = {}
        arrays: dict[int, Any] = {}
        for number, (value, kind, parts) in enumerate(self._objects):
            if kind.is_as(value, parts):
                continue
            if copies and kind is ARRAY:
                arrays[number] = value
            else:
                changed[number] = self._shown(kind.shown(kind.read(value)), copies)
        self._exchanged = {number for number in _apart(arrays) if _is_exchanged(arrays[number])}
        for number, value in arrays.items():
            if number in self._exchanged:
                changed[number] = [*self._objects[number][2]]
            else:
                changed[number] = self._shown((value,), copies)
        return changed

    def differences(self, one: Seen, other: Seen) -> Iterator[Any]:
        """The objects that differ between two such changes."""
        for number in one.keys() | other.keys():
            value, kind, parts = self._objects[number]
            sides = [changed.get(number) for changed in (one, other)]
            first, second = [
                self._shown(kind.shown(parts), copies=False) if each is None else each
                for each in sides
            ]
            if not all(map(_alike, first, second)) or len(first) != len(second):
                yield value

    def _shown(self, parts: Parts, copies: bool) -> list[Any]:
        """Values in a form to compare: those that were there before by their numbers, and all that
        is new by what it holds.
        """
        shown: list[Any] = []
        new: dict[int, tuple[int, Any]] = {}
        waiting = [*reversed(parts)]
        while waiting:
            value = waiting.pop()
            kind = kind_of(type(value))
            if kind is ARRAY:
                shown.append(np.array(value, order="C") if copies else _in_rows(value))
            elif id(value) in self._numbers:
                shown.append(_Known(self._numbers[id(value)]))
            elif kind is FIXED or kind is CLOSED:
                shown.append(type(value) if isinstance(value, (Node, ReferenceType)) else value)
            elif id(value) in new:
                shown.append(_Known(-1 - new[id(value)][0]))
            else:
                new[id(value)] = len(new), value
                held = kind.shown(kind.read(value))
                shown += (type(value), len(held))
                waiting += reversed(held)
        return shown


def led_to(root: Any) -> list[Any]:
    """The objects that an object leads to, itself first."""
    found: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        value = waiting.pop()
        kind = kind_of(type(value))
        if kind is not FIXED and id(value) not in found:
            found[id(value)] = value
            waiting += () if kind is ARRAY or kind is CLOSED else kind.read(value)
    return [*found.values()]


def _apart(arrays: dict[int, Any]) -> Iterator[int]:
    """The numbers of the arrays in the host's memory of which no other of them has any."""
    host = {number: each for number, each in arrays.items() if type(each) is np.ndarray}
    spans = sorted((span_of(each), number) for number, each in host.items())
    begins = [*[low for (low, _), _ in spans], inf]
    ended = 0
    for ((low, high), number), following in zip(spans, begins[1:], strict=True):
        if ended <= low and high <= following:
            yield number
        ended = max(ended, high)


def _is_exchanged(array: Any) -> bool:
    return bool(array.nbytes > _LARGE and array.flags.c_contiguous and array.flags.writeable)


def _exchange(array: Any, other: Any) -> None:
    """Let two arrays whose elements lie in a row have each other's, a piece at a time."""
    one, two = array.reshape(-1), other.reshape(-1)
    for start in range(0, one.size, _LARGE):
        piece = slice(start, start + _LARGE)
        held = one[piece].copy()
        one[piece] = two[piece]
        two[piece] = held


class _Known(Record):
    """An object that was there before, or was met before, by its number."""

    number: int


def _in_rows(array: Any) -> Any:
    return np.asarray(array, order="C") if isinstance(array, np.ndarray) else array


def _alike(one: Any, other: Any) -> bool:
    """Whether two values that never change, or two arrays, are the same."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (np.ndarray, np.generic)):
        return one.dtype is other.dtype and one.shape == other.shape and same_bits(one, other)
    if isinstance(one, (float, complex)):
        return repr(one) == repr(other)
    if type(one) is _Known:
        return bool(one.number == other.number)
    return bool(one == other)


# --- what an object holds -------------------------------------------------------------------------


def _whole(parts: Parts) -> Parts:
    return parts


def _keep(value: Any, parts: Parts) -> None:
    """What holds the same values for good needs nothing put back."""


FIXED = Kind(lambda value: (), _keep, _whole)
"""Of what never changes."""

CLOSED = Kind(lambda value: (), _keep, _whole)
"""Of what cannot be read."""


def _put_array(array: Any, parts: Parts) -> None:
    array[...] = parts[0]


def _bits_of(array: Any) -> Parts:
    """What tells whether an array was written to: of one of many elements, some of them."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array
    return (array.shape, array.strides, flat[:: max(1, len(flat) // _LOOKED_AT)].copy())


def _check_bits(array: Any, parts: Parts) -> None:
    raise AssertionError("a compiled iteration wrote to an array that it was to read")


ARRAY = OfArrays(lambda array: (array.copy(),), _put_array, _whole)
_LARGE_ARRAY = ByValue(_bits_of, _check_bits, _whole)


def _put_pairs(base: Any, values: Any, parts: Parts) -> None:
    half = len(parts) // 2
    base.clear(values)
    for key, value in zip(parts[:half], parts[half:], strict=True):
        base.__setitem__(values, key, value)


def _pairs(base: Any) -> Kind:
    return Kind(lambda d: (*base.__iter__(d), *base.values(d)), partial(_put_pairs, base), _whole)


def _variables(is_read: Callable[[str], bool]) -> Kind:
    """Of variables of the program, of which not all are read."""

    def shown(parts: Parts) -> Parts:
        half = len(parts) // 2
        held = dict(zip(parts[:half], parts[half:], strict=True))
        return tuple(each for name in sorted(filter(is_read, held)) for each in (name, held[name]))

    pairs = kind_of(dict)
    return Kind(pairs.read, pairs.put, shown)


def _items(base: Any, put: Callable[[Any, Parts], None] = _keep) -> Kind:
    return Kind(lambda values: tuple(base.__iter__(values)), put, _whole)


class _End(Kind):
    """Of lists that are appended to, from a length on."""

    def __init__(self, length: int) -> None:
        def put(values: list[Any], parts: Parts) -> None:
            del values[length:]

        super().__init__(lambda values: tuple(values[length:]), put, _whole)


def _put_list(values: list[Any], parts: Parts) -> None:
    list.__setitem__(values, slice(None), parts)


def _put_set(values: set[Any], parts: Parts) -> None:
    set.clear(values)
    set.update(values, parts)


def _put_deque(values: deque[Any], parts: Parts) -> None:
    deque.clear(values)
    deque.extend(values, parts)


def _put_bytes(values: bytearray, parts: Parts) -> None:
    values[:] = parts[0]


def _contents(cell: CellType) -> Parts:
    try:
        return (cell.cell_contents,)
    except ValueError:  # nothing was bound to the name yet
        return (_UNSET,)


def _put_contents(cell: CellType, parts: Parts) -> None:
    if parts[0] is _UNSET:
        del cell.cell_contents
    else:
        cell.cell_contents = parts[0]


def _in_function(function: FunctionType) -> Parts:
    held = (*(function.__closure__ or ()), *(function.__defaults__ or ()), function.__kwdefaults__)
    return (*held, function.__dict__) if function.__dict__ else held


_HELD: dict[type, Kind] = {
    OrderedDict: _pairs(OrderedDict),
    dict: _pairs(dict),
    list: _items(list, _put_list),
    set: _items(set, _put_set),
    deque: _items(deque, _put_deque),
    tuple: _items(tuple),
    frozenset: _items(frozenset),
    bytearray: ByValue(lambda values: (bytes(values),), _put_bytes, _whole),
    slice: Kind(lambda s: (s.start, s.stop, s.step), _keep, _whole),
    CellType: Kind(_contents, _put_contents, _whole),
    FunctionType: Kind(_in_function, _keep, _whole),
    MethodType: Kind(lambda method: (method.__self__, method.__func__), _keep, _whole),
    BuiltinFunctionType: Kind(lambda function: (function.__self__,), _keep, _whole),
    partial: Kind(lambda each: (each.func, each.args, each.keywords), _keep, _whole),
    property: Kind(lambda each: (each.fget, each.fset), _keep, _whole),
    BaseException: Kind(lambda error: (error.args,), _keep, _whole),
}
"""The classes of the host's whose objects can be read, those of their subclasses with attributes
of their own.
"""

_FIXED = (
    *(Node, Op, Syntax, Source, Span, Scope, Value, Compiler),  # Node: a graph of another iteration
    *(Name, Returned, Attribute, Item),  # places: what is stored there is known by itself
    Listener,  # what hears of an iteration is no part of it
    *LAZY,  # a value that is not computed yet
    Size,  # whole numbers alone: two with the same are alike, and each reading makes one
    *(ReferenceType, ModuleType, CodeType, type, itemgetter),
    *(np.ufunc, type(np.copyto), type(cache(is_))),
    *(type(None), type(...), type(NotImplemented), staticmethod, classmethod),
    *(GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType),
)
"""The classes of what an iteration that can be recorded never changes."""

_UNSEEN = {
    State: frozenset(
        {"addition", "calls", "closure_calls", "data_replaced", "emit", "frames", "interruption"}
        | {"is_in_effects", "limits", "outermost", "place", "recorder", "stack", "transform_count"}
        | {"values"}
    ),
    Steps: frozenset({"charged"}),
    Storage: frozenset({"address", "place"}),
    TensorMeta: frozenset({"accumulator", "attr_version"}),
}
"""Attributes that tell how far a run is, or where something was: nothing is computed of them."""

_UNSET = object()
"""Stands for an attribute, or a variable of the host's, that has no value."""


def _of_tensor(parts: Parts) -> Parts:
    """What the program can see of a tensor: one that has no attributes is like one without any."""
    array, grad_fn, meta, number, requires_grad, storage = parts
    named = _NO_META if meta is None else [getattr(meta, name) for name in _OF_META]
    hooks = () if meta is None else (*meta.hooks.values(), *meta.accumulated_hooks.values())
    version = storage if storage is not None and storage.counted else None
    seen = np.asarray(forced(array)), type(grad_fn), number, requires_grad, version
    return (*seen, *named, *hooks)


_OF_META = ("grad", "name", "base", "retains_grad", "is_parameter", "persistent", "attributes")
_NO_META = (None, None, None, False, False, None, None)

_ONLY = {
    Function: ("defaults", "stored", "wrapped"),
    UserClass: ("names",),
    Namespace: ("assigned",),
}
"""What of an object may change and be seen, where all else counts calls or keeps what was found."""


def kind_of(cls: type) -> Kind:
    """How the objects of a class are read."""
    kind = _KINDS.get(cls)
    if kind is None:
        kind = _KINDS[cls] = _found_kind(cls)
    return kind


_KINDS: dict[type, Kind] = {}


def _found_kind(cls: type) -> Kind:
    for known, names in _ONLY.items():
        if issubclass(cls, known):
            return _of_slots(cls, [_slot(cls, name) for name in names], False)
    if issubclass(cls, (*_FIXED, LanguageType)):
        return FIXED
    if hasattr(cls, "__array_finalize__") or hasattr(cls, "__cuda_array_interface__"):
        return ARRAY
    if hasattr(cls, "standing"):
        return ByValue(lambda twister: twister.standing, _put_standing, _whole)
    base: Any = next(each for each in cls.__mro__ if not _is_in_python(each))
    held = next((kind for each, kind in _HELD.items() if issubclass(base, each)), None)
    is_value = base.__hash__ not in (None, object.__hash__)  # which others are equal to
    if held is None and base is not object:
        if base is cls or not is_value:
            return FIXED if is_value else CLOSED
        held = Kind(lambda value: (base.__repr__(value),), _keep, _whole)
    if base is cls and held is not None:
        return Kind(tuple, held.put, _whole) if cls in (list, set, deque) else held
    unseen = next((names for each, names in _UNSEEN.items() if issubclass(cls, each)), ())
    slots = [
        each
        for above in cls.__mro__
        for name, each in sorted(vars(above).items())
        if type(each) is MemberDescriptorType and name not in unseen
    ]
    has_dict = cls.__dictoffset__ != 0
    own = _of_slots(cls, slots, has_dict)
    if cls is Tensor:
        own.shown = _of_tensor
    return own if held is None else _both(own, held, len(slots) + has_dict)


def _is_in_python(cls: type) -> bool:
    """Whether a class is written in Python: one of the host's has methods of its own."""
    methods = (WrapperDescriptorType, MethodDescriptorType)
    return not any(
        isinstance(each, methods) and each.__objclass__ is cls for each in vars(cls).values()
    )


def _put_standing(twister: Any, parts: Parts) -> None:
    twister.standing = parts


def _slot(cls: type, name: str) -> Any:
    return next(vars(each)[name] for each in cls.__mro__ if name in vars(each))


def _of_slots(cls: type, slots: Sequence[Any], has_dict: bool) -> Kind:
    """Of objects of a class with these attributes, and perhaps a dict of others."""
    reads = [each.__get__ for each in slots]

    def read(value: Any) -> Parts:
        parts = []
        for get in reads:
            try:
                parts.append(get(value))
            except AttributeError:
                parts.append(_UNSET)
        return (*parts, value.__dict__) if has_dict else tuple(parts)

    def put(value: Any, parts: Parts) -> None:
        for slot, now, part in zip(slots, read(value), parts, strict=False):
            if part is _UNSET and now is not _UNSET:
                slot.__delete__(value)
            elif part is not now:
                slot.__set__(value, part)

    names = [each.__name__ for each in slots] + ["__dict__"] * has_dict
    if len(names) < 2 or any(getattr(cls, each.__name__, None) is not each for each in slots):
        return Kind(read, put, _whole)  # `attrgetter` would compute a property
    read_all = attrgetter(*names)

    def read_at_once(value: Any) -> Parts:
        try:
            return read_all(value)
        except AttributeError:  # one has no value
            return read(value)

    return Kind(read_at_once, put, _whole)


def _both(own: Kind, held: Kind, count: int) -> Kind:
    """Of collections with so many attributes."""

    def put(value: Any, parts: Parts) -> None:
        own.put(value, parts[:count])
        held.put(value, parts[count:])

    return Kind(lambda value: (*own.read(value), *held.read(value)), put, _whole)
