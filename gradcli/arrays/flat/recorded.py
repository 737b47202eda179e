"""Arrays that compute as NumPy's do and write down the steps: functions of arrays, called with
them, become flat programs without being written a second time.

What such an array does not have, as a number for `float(x)`, is what no step is for: the function
fails, and is called by the program as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, getitem, is_
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradcli.arrays.flat.steps import (
    Step,
    accumulated,
    call,
    chosen,
    copied,
    elementwise,
    into,
    picked,
    placed,
    product,
    reduced,
    taken,
)


class NotFlat(Exception):
    """A function does what no step is for."""


def plain(operand: Any) -> Any:
    """What NumPy takes for an operand; what nobody recorded is the same in every run."""
    if type(operand) is Recorded:
        return operand.array
    if isinstance(operand, (tuple, list)):  # an index too
        kind = list if isinstance(operand, list) else tuple
        return kind([plain(each) for each in operand])
    if type(operand) is slice:
        parts = operand.start, operand.stop, operand.step
        return slice(*map(plain, parts)) if Recorded in map(type, parts) else operand
    return operand


def recorded_in(operands: Iterable[Any]) -> Iterator[Recorded]:
    """The arrays on a tape among some operands, in lists, tuples and slices too."""
    for each in operands:
        if type(each) is Recorded:
            yield each
        elif isinstance(each, (list, tuple)):
            yield from recorded_in(each)
        elif type(each) is slice:
            yield from recorded_in((each.start, each.stop, each.step))


def target(operand: Any) -> Any:
    """The same for what is written to; raises NotFlat for an array that nobody recorded."""
    if type(operand) is not Recorded:
        raise NotFlat("an array that nobody recorded is written to")
    return operand.array


class ReadAttribute(NamedTuple):
    """The value that an attribute had when it was read.

    Attributes:
        held: a list that holds it.
    """

    owner: Any
    name: str
    held: list[Any]


class Tape:
    """The steps that are written down.

    Attributes:
        relied: the steps that look at objects, which come first.
        plainly: whether NumPy's functions are called, where its loops gave other bits.
        changed: whether a step has changed memory that outlives the program: nothing may be checked
            from then on.
        draws: whether a step draws random numbers.
        own: arrays whose elements steps alone read and write.
    """

    def __init__(self) -> None:
        self.relied: list[Step] = []
        self.steps: list[Step] = []
        self.plainly = False
        self.changed = False
        self.draws = False
        self.own: list[Any] = []

    def record(self, array: Any) -> Recorded:
        """An array of the program's own memory, or of a constant's."""
        return Recorded(self, array)

    def made(self, array: Any) -> Any:
        """An array that was made for a result; it itself."""
        self.own.append(array)
        return array

    def ufunc(self, ufunc: np.ufunc, operands: Sequence[Any], out: Any, **named: Any) -> Any:
        """Call a ufunc, or what is called as one; its results."""
        result = ufunc(*operands, out=out, **named)
        if ufunc.nout > 1:
            results = tuple(map(np.asarray, result))
            self.steps.append(call(ufunc, *operands, out=results, **named))
            return tuple(map(self.record, results))
        result = np.asarray(result)
        if out is None:
            self.made(result)
        steps: list[Step] = []
        if not named and not self.plainly and all(not isinstance(each, list) for each in operands):
            steps = _steps_of(ufunc, operands, result)
        for cast in steps[:-1]:
            self.made(cast[2])
        self.steps += steps or [call(ufunc, *operands, out=result, **named)]
        return self.record(result)

    def reduction(self, ufunc: np.ufunc, array: Any, out: Any, **named: Any) -> Any:
        """Call `ufunc.reduce`; its result."""
        result = np.asarray(ufunc.reduce(array, out=out, **named))
        if out is None:
            self.made(result)
        steps: list[Step] = []
        if (
            not self.plainly
            and out is None
            and set(named) <= {"axis", "keepdims", "initial", "dtype"}
        ):
            steps = _steps_of_reduction(ufunc, array, result, **named)
        self.steps += steps or [call(ufunc.reduce, array, out=result, **named)]
        return self.record(result)

    def accumulation(self, ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None) -> Any:
        """Call `ufunc.accumulate`; its result."""
        result = self.made(ufunc.accumulate(array, axis, dtype))
        same = dtype is None or dtype == array.dtype
        steps = accumulated(ufunc, array, axis, result) if same and not self.plainly else []
        self.steps += steps or [into(result, ufunc.accumulate, array, axis, dtype)]
        return self.record(result)

    def function(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function of NumPy's that gives an array: a view of an operand, or a new one."""
        is_of_one = sum(1 for _ in recorded_in([*arguments, *named.values()])) < 2
        arguments = tuple(map(plain, arguments))
        named = {name: plain(value) for name, value in named.items()}
        result = function(*arguments, **named)
        if isinstance(result, np.generic):
            result = np.asarray(result)
        if type(result) is not np.ndarray:
            raise NotFlat(f"{function} gives no array")
        if self._is_view(result, arguments):
            if not is_of_one:
                raise NotFlat("a view whose place is computed")
        else:
            if result.base is not None:
                result = result.copy("K")  # a view of what only the function knows
            self.steps.append(into(result, function, *arguments, **named))
        return self.record(result)

    def _is_view(self, result: Any, arguments: Sequence[Any]) -> bool:
        arrays = [each for each in arguments if type(each) is np.ndarray]
        return any(np.may_share_memory(each, result) for each in arrays)

    def filled(self, like: Any) -> Recorded:
        """An array of the elements of another one, which are the same in every run."""
        result = np.array(like)
        self.steps.append(copied(like, result))
        return self.record(result)

    def draw(self, function: Callable[..., Any], *arguments: Any) -> Recorded:
        """Call a function that draws random numbers; raises NotFlat where it gives no array."""
        arguments = tuple(map(plain, arguments))
        result = np.asarray(function(*arguments)).copy("K")
        step = into(result, function, *arguments)
        self.steps.append(("advance", *step[1:]))
        self.draws = True
        return self.record(result)

    def relies_on(self, *step: Any) -> None:
        """Write down, once, what has to hold of objects that no step changes."""
        if not any(
            each[0] == step[0] and all(map(is_, each[1:], step[1:])) for each in self.relied
        ):
            self.relied.append(step)

    def changes(self) -> None:
        """Write down that what follows changes memory that outlives the program."""
        if not self.changed:
            self.steps.append(("changes",))
        self.changed = True

    def sets(self, owner: Any, name: str, value: Any) -> None:
        """Write down that an attribute is set."""
        self.steps.append(("set", owner, name, value))

    def reads(self, owner: Any, name: str) -> ReadAttribute:
        """Write down that an attribute is read."""
        read = ReadAttribute(owner, name, [None])
        self.steps.append(("read", *read))
        return read

    def counts(self, read: Any, number: int) -> None:
        """Write down that an attribute becomes what was read of it, plus a number."""
        if type(read) is not ReadAttribute:
            raise NotFlat("an attribute that was read before")
        self.changes()
        self.steps.append(("put", *read, number))

    def check(self, array: Any) -> bool:
        """The value of a bool, which every run has to find again."""
        if self.changed or array.dtype != bool or array.size != 1:
            raise NotFlat("what runs depends on a value")
        self.steps.append(("same", array, array.tobytes()))
        return bool(array)

    def count(self, array: Any) -> int:
        """How many elements are not zero, which every run has to find again."""
        if self.changed:
            raise NotFlat("what runs depends on a value")
        if array.dtype != bool or not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise NotFlat("a count of what is no bool")
        counted = int(np.count_nonzero(array))
        self.steps.append(("nonzero", array, counted))
        return counted


def _steps_of(ufunc: np.ufunc, operands: Sequence[Any], out: Any) -> list[Step]:
    if ufunc is np.matmul:
        step = product(operands[0], operands[1], out)
        return [] if step is None else [step]
    return [] if ufunc.signature is not None else elementwise(ufunc, operands, out)


def _steps_of_reduction(
    ufunc: np.ufunc,
    array: Any,
    out: Any,
    axis: Any = 0,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    dtype: Any = None,
) -> list[Step]:
    if dtype is not None and dtype != array.dtype:
        return []
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple([each % array.ndim for each in axes])
    shape = [1 if axis in axes else size for axis, size in enumerate(array.shape)]
    first = initial if initial is not np._NoValue else ufunc.identity
    return reduced(ufunc, array, axes, first, out.reshape(shape))


_NUMBERS = (bool, int, float, np.generic)


class Recorded(NDArrayOperatorsMixin):
    """An array on a tape.

    Attributes:
        array: the array itself, on the memory that the steps read and write.
    """

    __slots__ = ("array", "tape")

    def __init__(self, tape: Tape, array: Any) -> None:
        self.tape = tape
        self.array = array

    # --- what does not change ---------------------------------------------------------------------

    shape = property(attrgetter("array.shape"))
    strides = property(attrgetter("array.strides"))
    dtype = property(attrgetter("array.dtype"))
    flags = property(attrgetter("array.flags"))
    ndim = property(attrgetter("array.ndim"))
    size = property(attrgetter("array.size"))
    itemsize = property(attrgetter("array.itemsize"))
    nbytes = property(attrgetter("array.nbytes"))

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Recorded]:
        return iter([self[number] for number in range(len(self.array))])

    # --- what NumPy's functions do ----------------------------------------------------------------

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *operands: Any, out: Any = None, **named: Any
    ) -> Any:
        tape = self.tape
        operands = tuple(map(plain, operands))
        named = {name: plain(value) for name, value in named.items()}
        if out is not None:
            out = tuple(map(target, out))
        if method == "__call__":
            return tape.ufunc(ufunc, operands, out, **named)
        if method == "reduce":
            rest = dict(zip(("axis", "dtype"), operands[1:], strict=False))
            return tape.reduction(ufunc, operands[0], out and out[0], **rest, **named)
        if method == "accumulate" and out is None:
            return tape.accumulation(ufunc, *operands, **named)
        if method == "at":
            step = self._added(operands) if ufunc is np.add else None
            ufunc.at(*operands)
            tape.steps.append(step or call(ufunc.at, *operands))
            return None
        raise NotFlat(f"{ufunc}.{method}")

    def _added(self, operands: Sequence[Any]) -> Step | None:
        """The step of `np.add.at`."""
        array, key, values = operands
        positions = self.tape.record(array)._positions(key)
        floats = array.dtype in (np.float32, np.float64) and type(values) is np.ndarray
        return placed(array, positions, values, "add") if positions and floats else None

    def __array_function__(
        self, function: Any, types: Any, arguments: Sequence[Any], named: dict[str, Any]
    ) -> Any:
        special = _FUNCTIONS.get(function)
        if special is not None:
            return special(self.tape, *arguments, **named)
        if named.get("out") is not None:
            raise NotFlat(f"{function} with `out`")
        return self.tape.function(function, *arguments, **named)

    # --- methods ----------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Recorded:
        key = key if isinstance(key, tuple) else (key,)
        if all(each is None or _is_fixed(each) for each in key):
            if ... not in key:
                key = (*key, ...)  # a view, even of one element
            return self.tape.record(self.array[plain(key)])
        positions = self._positions(key)
        if not positions:
            return self.tape.function(getitem, self, key)
        result = self.tape.made(np.array(self.array[positions]))
        step = picked(self.array, positions, result)
        self.tape.steps.append(step or into(result, getitem, self.array, positions))
        return self.tape.record(result)

    def _positions(self, key: Any) -> tuple[Any, ...]:
        """The positions of an index that has some along each dimension, where a step may find that
        one is not there; () for others.
        """
        parts = plain(key) if isinstance(key, tuple) else (plain(key),)
        own = not (self.tape.plainly or self.tape.changed) and len(parts) == self.array.ndim
        return parts if own and all(type(each) is np.ndarray for each in parts) else ()

    def __setitem__(self, key: Any, value: Any) -> None:
        is_fixed = all(map(_is_fixed, key if isinstance(key, tuple) else (key,)))
        tape, value, key = self.tape, plain(value), plain(key)
        parts = key if isinstance(key, tuple) else (key,)
        if is_fixed:
            view = self.array[key if ... in parts else (*parts, ...)]
            if value is not view and not _is_one(value, view):
                tape.steps.append(self._assigned(view, value))
            return
        step, positions = None, self._positions(key)
        if positions and isinstance(value, _NUMBERS):
            step = placed(self.array, positions, np.asarray(value, self.array.dtype))
        elif positions and type(value) is np.ndarray:
            step = placed(self.array, positions, value)
        self.array[key] = value
        tape.steps.append(step or call(self.array.__setitem__, key, value))

    def _assigned(self, view: Any, value: Any) -> Step:
        """Assign to all of a view; the step that does so."""
        if isinstance(value, _NUMBERS):
            value = np.asarray(value, view.dtype)
        view[...] = value
        if type(value) is np.ndarray and not np.may_share_memory(value, view):
            return copied(np.broadcast_to(value, view.shape), view)
        return call(view.__setitem__, ..., value)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Recorded:
        if not copy and self.array.dtype == dtype:
            return self
        result = self.tape.made(self.array.astype(dtype, order=order))
        self.tape.steps.append(copied(self.array, result))
        return self.tape.record(result)

    def copy(self, order: str = "C") -> Recorded:
        result = self.tape.made(self.array.copy(order))
        self.tape.steps.append(copied(self.array, result))
        return self.tape.record(result)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Recorded:
        shape = shape[0] if len(shape) == 1 else shape
        if order == "C" and not copy:
            result = self.array.reshape(shape)
            if not np.may_share_memory(result, self.array):  # it has to be copied
                whole = self.tape.made(result).reshape(self.array.shape)
                self.tape.steps.append(copied(self.array, whole))
            return self.tape.record(result)
        return self.tape.function(np.reshape, self, shape, order, copy=copy)

    def window(self, size: Sequence[int], strides: Sequence[int], offset: int = 0) -> Recorded:
        """A view of the memory that it begins in: strides and offset in bytes."""
        return self.tape.record(np.ndarray(size, self.array.dtype, self.array, offset, strides))

    def expand(self, size: Sequence[int]) -> Recorded:
        """A view in which dimensions of size 1 are repeated."""
        return self.tape.record(np.broadcast_to(self.array, size))

    def view(self, dtype: Any) -> Recorded:
        return self.tape.record(self.array.view(dtype))

    def squeeze(self, axis: Any = None) -> Recorded:
        return self.tape.record(self.array.squeeze(axis))

    def take(self, indices: Any, axis: int | None = None) -> Recorded:
        positions = plain(indices)
        result = self.tape.made(np.asarray(self.array.take(positions, axis)))
        fails = type(indices) is Recorded and self.tape.changed  # where something has changed
        own = axis == 0 and not (self.tape.plainly or fails)
        array = self.array
        if own and not array.flags.c_contiguous:
            array = self.tape.made(array.copy())
            self.tape.steps.append(copied(self.array, array))
        step = taken(array, positions, result) if own else None
        self.tape.steps.append(step or into(result, np.take, self.array, positions, axis))
        return self.tape.record(result)

    @property
    def real(self) -> Recorded:
        return self.tape.record(self.array.real)

    def transpose(self, *axes: Any) -> Recorded:
        return self.tape.record(self.array.transpose(*axes))

    @property
    def T(self) -> Recorded:
        return self.tape.record(self.array.T)

    def swapaxes(self, first: int, second: int) -> Recorded:
        return self.tape.record(self.array.swapaxes(first, second))

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(np.add, axis=axis, dtype=dtype, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(np.maximum, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(np.minimum, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(np.logical_or, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Any:
        return self._reduced(np.logical_and, axis=axis, keepdims=keepdims)

    def _reduced(self, ufunc: np.ufunc, **named: Any) -> Any:
        return self.tape.reduction(ufunc, self.array, None, **named)

    def __bool__(self) -> bool:
        return self.tape.check(self.array)


HOST_ARRAYS = (np.ndarray, Recorded)
"""The types of arrays in the host's memory whose elements are computed."""


def _is_fixed(part: Any) -> bool:
    """Whether a part of an index picks the same in every run: nothing of it was computed."""
    return part is ... or (type(part) in (int, slice) and not [*recorded_in((part,))])


def _is_one(value: Any, view: Any) -> bool:
    """Whether a value is a view itself, as after `whole[part] += other`."""
    return (
        type(value) is np.ndarray
        and value.__array_interface__ == view.__array_interface__
        and np.may_share_memory(value, view)
    )


def _empty_like(tape: Tape, array: Any, *arguments: Any, **named: Any) -> Recorded:
    return tape.record(np.empty_like(plain(array), *arguments, **named))


def _zeros_like(tape: Tape, array: Any, *arguments: Any, **named: Any) -> Recorded:
    result = tape.made(np.zeros_like(plain(array), *arguments, **named))
    tape.steps.append(copied(np.broadcast_to(result.dtype.type(0), result.shape), result))
    return tape.record(result)


def _broadcast_arrays(tape: Tape, *arrays: Any) -> tuple[Recorded, ...]:
    return tuple(map(tape.record, np.broadcast_arrays(*map(plain, arrays))))


def _dot(tape: Tape, left: Any, right: Any) -> Recorded:
    left, right = plain(left), plain(right)
    result = tape.made(np.asarray(np.dot(left, right)))
    step = None
    if left.ndim == right.ndim == 2 and not tape.plainly:
        step = product(left, right, result)
    tape.steps.append(step or call(np.dot, left, right, out=result))
    return tape.record(result)


def _where(tape: Tape, condition: Any, *choices: Any) -> Recorded:
    if len(choices) != 2:
        raise NotFlat("np.where of a condition alone")
    operands = [plain(each) for each in (condition, *choices)]
    result = tape.made(np.asarray(np.where(*operands)))
    steps = (
        [] if tape.plainly else chosen(np.asarray(operands[0]), operands[1], operands[2], result)
    )
    for cast in steps[:-1]:
        tape.made(cast[2])
    tape.steps += steps or [into(result, np.where, *operands)]
    return tape.record(result)


def _concatenate(tape: Tape, arrays: Any, axis: Any = 0, **named: Any) -> Recorded:
    parts = [plain(each) for each in arrays]
    if named or axis is None:
        return tape.function(np.concatenate, arrays, axis, **named)
    result = tape.made(np.concatenate(parts, axis))
    lines, start = np.moveaxis(result, axis, 0), 0
    for part in parts:
        part = np.moveaxis(part, axis, 0)
        tape.steps.append(copied(part, lines[start : start + len(part)]))
        start += len(part)
    return tape.record(result)


def _copyto(tape: Tape, out: Any, value: Any, **named: Any) -> None:
    if named == {"casting": "unsafe"} or not named:
        out[...] = value
        return
    out, value = target(out), plain(value)
    named = {name: plain(each) for name, each in named.items()}
    np.copyto(out, value, **named)
    tape.steps.append(call(np.copyto, out, value, **named))


def _clip(
    tape: Tape, array: Any, least: Any = None, most: Any = None, out: Any = None, **named: Any
) -> Any:
    operands = tuple(map(plain, (array, least, most)))
    if named or least is None or most is None or operands[0].dtype.kind != "f":
        if out is not None:
            raise NotFlat("np.clip with `out`")
        return tape.function(np.clip, array, least, most, **named)
    clip: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]
    return tape.ufunc(clip, operands, None if out is None else (target(out),))


def _count_nonzero(tape: Tape, array: Any) -> int:
    return tape.count(plain(array))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.empty_like: _empty_like,
    np.zeros_like: _zeros_like,
    np.broadcast_arrays: _broadcast_arrays,
    np.dot: _dot,
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.copyto: _copyto,
    np.count_nonzero: _count_nonzero,
    np.where: _where,
}
"""The functions of NumPy's that have steps of their own."""
