"""The steps of a flat program, as `native/program.h` takes them: what NumPy does for a call of a
ufunc on arrays of given memory, shapes and strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

Step = tuple[Any, ...]

_NUMBERS = (bool, int, float)


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
        array = np.asarray(each, dtype) if type(each) in _NUMBERS else np.asarray(each)
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
        array = np.asarray(each, out.dtype) if type(each) in _NUMBERS else np.asarray(each)
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
        ordered.append(view if view.ndim else view.reshape(1))
    return ordered
