"""Arrays that compute as NumPy's do and write down the steps: functions of arrays, called with
them, become flat programs without being written a second time.

What such an array does not have, as a number for `float(x)`, is what no step is for: the function
fails, and is called by the program as it stands.

The steps are those of `native/program.h`: what NumPy does for a call of a ufunc on arrays of given
memory, shapes and strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter, getitem, is_
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradcli.record import Record

# --- steps ----------------------------------------------------------------------------------------


Step = tuple[Any, ...]

_PLAIN_NUMBERS = (bool, int, float)


class OtherShape(Exception):
    """A call gave an array of another shape or dtype than it did when it was recorded."""


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Step:
    """Call a function, whose result is left alone."""
    return "call", partial(function, *arguments, **named), ()


def into(out: Any, function: Callable[..., Any], *arguments: Any, **named: Any) -> Step:
    """Call a function and copy its result to where it is read."""
    return "call", partial(_compute, out, partial(function, *arguments, **named)), ()


def each_into(outs: Sequence[Any], function: Callable[..., Any], *arguments: Any) -> Step:
    """The same for a function of several results, those of None left out."""
    return "call", partial(_compute_each, outs, partial(function, *arguments)), ()


def _compute(out: Any, function: Callable[[], Any]) -> None:
    _set(out, function())


def _compute_each(outs: Sequence[Any], function: Callable[[], Any]) -> None:
    results = function()
    if len(results) != len(outs):
        raise OtherShape
    for out, result in zip(outs, results, strict=True):
        if out is not None:
            _set(out, result)


def _set(out: Any, result: Any) -> None:
    result = np.asarray(result)
    if result.shape != out.shape or result.dtype != out.dtype:
        raise OtherShape
    out[...] = result


def copied(array: Any, out: Any) -> Step:
    """Copy elements to an array of the same shape, cast to its dtype."""
    if _is_cast(array.dtype, out.dtype) and array.shape == out.shape and _is_plain(array, out):
        return "copy", array, out
    return call(np.copyto, out, array, casting="unsafe")


def _is_cast(source: Any, target: Any) -> bool:
    """Whether C casts from one dtype to another."""
    return source == target or f"{source.char}{target.char}" in _CASTS


_CASTS = frozenset({"fd", "df", "?f", "?d", "lf", "ld", "qf", "qd", "bi"})
"""The pairs of dtypes that `CASTS` in native/program.h has; those of 32 bits have no `l`."""


def taken(array: Any, positions: Any, out: Any) -> Step | None:
    """Copy rows of an array; None where something does not lie in a row."""
    plain = positions.dtype == np.int64 and array.dtype.isnative and array.ndim and len(array)
    if not plain or not all(each.flags.c_contiguous for each in (array, positions, out)):
        return None
    return "take", array, positions, out


def picked(array: Any, positions: Sequence[Any], out: Any) -> Step | None:
    """Read the elements at positions along each dimension; None for indices of other kinds."""
    return _at_positions("pick", array, positions, out)


def placed(array: Any, positions: Sequence[Any], values: Any, name: str = "place") -> Step | None:
    """Write values to the elements at positions along each dimension, one after another; or "add"
    them.
    """
    if values.dtype != array.dtype or np.may_share_memory(array, values):
        return None
    shape = np.broadcast_shapes(*[each.shape for each in positions])
    return _at_positions(name, array, positions, np.broadcast_to(values, shape))


def _at_positions(name: str, array: Any, positions: Sequence[Any], values: Any) -> Step | None:
    fits = len(positions) == array.ndim <= _MOST_POSITIONS and array.dtype.isnative
    if not fits or any(each.dtype != np.int64 for each in positions):
        return None
    return name, array, values, *[np.broadcast_to(each, values.shape) for each in positions]


_MOST_POSITIONS = 3
"""Dimensions of the arrays whose elements a step takes by positions."""


def elementwise(ufunc: np.ufunc, operands: Sequence[Any], out: Any) -> list[Step]:
    """The loop of a ufunc over operands, arrays and numbers, behind the copies of those that are
    cast to its dtypes; nothing where NumPy copies those that overlap, or no step casts them.
    """
    dtypes = ufunc.resolve_dtypes((*[_dtype_of(each) for each in operands], None))
    arrays: list[Any] = []
    steps: list[Step] = []
    for each, dtype in zip(operands, dtypes, strict=False):
        array = np.asarray(each, dtype) if type(each) in _PLAIN_NUMBERS else np.asarray(each)
        if array.dtype != dtype and _is_cast(array.dtype, dtype):
            steps.append(copied(array, array.astype(dtype)))
            array = steps[-1][2]
        arrays.append(array)
    number = _loop_of(ufunc, dtypes, [*arrays, out])
    if number is None or not _are_apart(arrays, out):
        return []
    flags: Any = [["readonly"]] * len(arrays) + [["readwrite"]]
    order = np.nditer([*arrays, out], ["external_loop", "zerosize_ok"], flags)
    views = _in_order([*arrays, out], order.itviews)
    return [] if views is None else [*steps, ("loop", ufunc, number, *views)]


def accumulated(ufunc: np.ufunc, array: Any, axis: int, out: Any) -> list[Step]:
    """A ufunc applied along a dimension, with what it has given so far: a loop that reads what it
    wrote last, as NumPy runs it; nothing where NumPy would cast.
    """
    number = _loop_of(ufunc, [array.dtype] * 3, [array, array, out])
    if number is None or not array.size or not array.ndim:
        return []
    array, out = np.moveaxis(array, axis, -1), np.moveaxis(out, axis, -1)
    steps = [copied(array[..., :1], out[..., :1])]
    if array.shape[-1] > 1:
        steps.append(("loop", ufunc, number, out[..., :-1], array[..., 1:], out[..., 1:]))
    return steps


def chosen(condition: Any, one: Any, other: Any, out: Any) -> list[Step]:
    """What `np.where` does, for arrays and numbers; nothing for elements that no step copies."""
    if condition.dtype != bool or out.dtype.itemsize not in (1, 4, 8) or not _is_plain(out):
        return []
    steps: list[Step] = []
    arrays = [np.broadcast_to(condition, out.shape)]
    for each in (one, other):
        array = np.asarray(each, out.dtype) if type(each) in _PLAIN_NUMBERS else np.asarray(each)
        if array.dtype != out.dtype:
            steps.append(copied(array, array.astype(out.dtype)))
            array = steps[-1][-1]
            if steps[-1][0] != "copy":
                return []
        arrays.append(np.broadcast_to(array, out.shape))
    arrays = [each.reshape(1) if not out.ndim else each for each in (*arrays, out)]
    return [*steps, ("where", *arrays)]


def product(left: Any, right: Any, out: Any) -> Step | None:
    """The loop of `matmul` for matrices, or batches of them; None where NumPy would cast."""
    number = _loop_of(np.matmul, [left.dtype] * 3, [left, right, out])
    if (
        number is None
        or min(left.ndim, right.ndim, out.ndim) < 2
        or not _are_apart([left, right], out)
    ):
        return None
    batch = out.shape[:-2]
    shapes = [(*batch, *each.shape[-2:]) for each in (left, right)]
    pair = [np.broadcast_to(each, shape) for each, shape in zip((left, right), shapes, strict=True)]
    return "product", np.matmul, number, *pair, out


def reduced(ufunc: np.ufunc, array: Any, axes: tuple[int, ...], first: Any, out: Any) -> list[Step]:
    """A ufunc applied across dimensions.

    Args:
        first: what the reduction begins with, a number; None for the first elements.
        out: of the shape of `array` with sizes of 1 along the axes.

    Returns nothing where NumPy does more than to run its loop.
    """
    number = _loop_of(ufunc, [array.dtype] * 3, [array, array, out])
    if number is None or not array.size:
        return []
    if first is None:
        if len(axes) > 1:
            return []
        begin = [slice(None)] * array.ndim
        begin[axes[0]] = slice(1)
        steps = [copied(array[tuple(begin)], out)]
        begin[axes[0]] = slice(1, None)
        array = array[tuple(begin)]
        if not array.size:
            return steps
    else:
        steps = [("copy", np.broadcast_to(out.dtype.type(first), out.shape), out)]
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    small = out.reshape([out.shape[axis] for axis in kept])
    if not np.may_share_memory(small, out):
        return []
    places = [-1 if axis in axes else kept.index(axis) for axis in range(array.ndim)]
    order = np.nditer(
        [small, array],
        ["external_loop", "reduce_ok"],
        [["readwrite"], ["readonly"]],
        op_axes=[places, list(range(array.ndim))],
    )
    views = _in_order([small, array], order.itviews)
    return [] if views is None else [*steps, ("loop", ufunc, number, views[0], views[1], views[0])]


def _dtype_of(operand: Any) -> Any:
    return type(operand) if type(operand) in (int, float) else np.asarray(operand).dtype


def _loop_of(ufunc: np.ufunc, dtypes: Sequence[Any], arrays: Sequence[Any]) -> int | None:
    """The number of a loop for native dtypes that the arrays have."""
    text = "".join([dtype.char for dtype in dtypes])
    signature = f"{text[: ufunc.nin]}->{text[ufunc.nin :]}"
    if signature not in ufunc.types or not _is_plain(*arrays):
        return None
    fits = all(array.dtype == dtype for array, dtype in zip(arrays, dtypes, strict=True))
    return ufunc.types.index(signature) if fits else None


def _is_plain(*arrays: Any) -> bool:
    """Whether C can read the elements as they lie."""
    return all(each.flags.aligned and each.dtype.isnative and each.ndim <= 6 for each in arrays)


def _are_apart(arrays: Sequence[Any], out: Any) -> bool:
    """Whether a loop reads no element of `out` that it has written, but at the same place."""
    return not any(np.may_share_memory(each, out) and not _is_same(each, out) for each in arrays)


def _is_same(array: Any, other: Any) -> bool:
    return bool(
        array.shape == other.shape
        and array.strides == other.strides
        and array.__array_interface__["data"][0] == other.__array_interface__["data"][0]
    )


def _in_order(arrays: Sequence[Any], views: Sequence[Any]) -> list[Any] | None:
    """The arrays with dimensions in the order in which NumPy goes through them."""
    ordered = []
    for array, view in zip(arrays, views, strict=True):
        if array.__array_interface__["data"][0] != view.__array_interface__["data"][0]:
            return None  # it goes through a dimension from its end
        is_same = view.shape == array.shape and view.strides == array.strides and view.ndim
        ordered.append(array if is_same else view if view.ndim else view.reshape(1))
    return ordered


# --- arrays ---------------------------------------------------------------------------------------


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


class ReadAttribute(Record):
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
        numbers: those that the last step of an optimizer took, for which group of parameters, and
            what was written down behind it.
    """

    def __init__(self) -> None:
        self.relied: list[Step] = []
        self.steps: list[Step] = []
        self.plainly = False
        self.changed = False
        self.draws = False
        self.own: list[Any] = []
        self.numbers: tuple[Any, list[Recorded], Step | None] = None, [], None

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
        self.steps.append(("read", owner, name, read.held))
        return read

    def counts(self, read: Any, number: int) -> None:
        """Write down that an attribute becomes what was read of it, plus a number."""
        if type(read) is not ReadAttribute:
            raise NotFlat("an attribute that was read before")
        self.changes()
        self.steps.append(("put", read.owner, read.name, read.held, number))

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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Without it NumPy would make an array of objects, element by element.
        raise NotFlat("an array of the host is made of it")

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
    return tape.record(tape.made(np.empty_like(plain(array), *arguments, **named)))


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


def _tril(tape: Tape, array: Any, k: int = 0) -> Recorded:
    return _where(tape, _below(array.shape, k), array, 0)


def _triu(tape: Tape, array: Any, k: int = 0) -> Recorded:
    return _where(tape, _below(array.shape, k - 1), 0, array)


def _below(shape: tuple[int, ...], k: int) -> Any:
    """Which elements of matrices lie on a diagonal or below it."""
    return np.broadcast_to(np.tri(shape[-2], shape[-1], k, dtype=bool), shape)


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
    np.tril: _tril,
    np.triu: _triu,
    np.where: _where,
}
"""The functions of NumPy's that have steps of their own."""
