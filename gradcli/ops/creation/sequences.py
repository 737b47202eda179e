"""New tensors of numbers in order: `arange linspace logspace eye tril_indices triu_indices`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DType
from gradcli.arrays.threads import over_tiles
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error, value_error
from gradcli.ops.binding.arguments import plain_integer
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.fill import (
    check_count,
    checked_dtype,
    checked_sizes,
    plain_number,
    tensor_of,
)
from gradcli.ops.definition.doc import describe
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names, not_defined
from gradcli.state import active


@function("arange", numpy="arange(dtype=np.float32)")
def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start`, 0 if not given, up to `end`, exclusive: int64 where all are integers.

    Raises E204 where the step is 0 or leads away from the end.

    Example: torch.arange(3)
    """
    if end is None:
        start, end = None, start
    if end is None:
        raise GradcliError("E201", "arange() needs an end")
    first = 0 if start is None else start
    numbers = [plain_number("arange()", number) for number in (first, end, step)]
    first, last, by = numbers
    _check_bounds("arange", first, last, by)
    integers = all(isinstance(number, int) for number in numbers)
    target = checked_dtype("arange", dtype, dtypes.int64 if integers else dtypes.default_dtype())
    check_dtype("arange", target, dtype_names("bool", "complex"))
    if target is dtypes.int64:  # its bounds are integers before the elements are counted
        first, last, by = int(first), int(last), int(by)
        if by == 0:
            raise value_error("step must be nonzero")
        count = -((first - last) // by)
    else:
        count = math.ceil((float(last) - float(first)) / by)
    check_count("arange", count)
    whole = target.category == "int"
    if whole:
        first, by = int(first), int(by)
    steps: Any = np.arange(count, dtype=np.int64 if whole else np.float64)
    if by != 1:
        steps *= by
    if first:
        steps += first
    return tensor_of("arange", steps.astype(target.numpy_dtype, copy=False), device, requires_grad)


def _check_bounds(name: str, first: Any, last: Any, by: Any) -> None:
    """A step leads from one finite bound to the other; raises E204 otherwise."""
    if complex in (type(first), type(last), type(by)):
        raise runtime_error(f"{name}(): complex numbers have no order")
    if by == 0 or by != by:
        raise runtime_error(f"{name}(): the step must not be {by}", "step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise runtime_error(
            f"{name}(): there is no end to count from {first} to {last}",
            f"unsupported range: {first:g} -> {last:g}",
        )
    if (last - first) * by < 0:
        raise runtime_error(
            f"{name}(): no step of {by} leads from {first} to {last}",
            "upper bound and lower bound inconsistent with step sign",
        )


@function("range")
def range_function(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start`, 0 if not given, up to `end`, which is one of them. It is deprecated.

    Raises E204 where the step is 0 or leads away from the end.

    Example: torch.range(0, 3)
    """
    text = (
        "torch.range is deprecated and will be removed in a future release because its behavior is"
        " inconsistent with Python's range builtin. Instead, use torch.arange, which produces"
        " values in [start, end)."
    )
    active.state.warn("W015", text, text=text, help="write `torch.arange(start, end + step, step)`")
    if end is None:
        start, end = 0, start
    first, last, by = [plain_number("range()", number) for number in (start, end, step)]
    _check_bounds("range", first, last, by)
    target = checked_dtype("range", dtype, dtypes.default_dtype())
    if target.category == "int":
        first, last, by = int(first), int(last), int(by)
        if by == 0:
            raise value_error("step must be nonzero")
    behind = first + (math.floor((last - first) / by) + 0.5) * by  # no rounding passes the end
    if target.category == "int":
        behind = last + (1 if by > 0 else -1)
    return arange(first, behind, by, dtype=target, device=device, requires_grad=requires_grad)


@function("linspace")
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both inclusive, at equal distances.

    Example: torch.linspace(0, 1, 5)
    """
    target = checked_dtype("linspace", dtype, _dtype_between(start, end))
    check_dtype("linspace", target, dtype_names("bool"))
    array = _evenly_spaced("linspace", start, end, steps, target, target.numpy_dtype)
    return tensor_of("linspace", array, device, requires_grad)


def _dtype_between(start: Any, end: Any) -> DType:
    """The default dtype, or its complex one where an end is complex."""
    default = dtypes.default_dtype()
    return default.to_complex() if complex in (type(start), type(end)) else default


def _evenly_spaced(
    name: str, start: Any, end: Any, steps: Any, dtype: DType, result: Any = None
) -> Any:
    """The numbers of linspace of a dtype; as `result`, a dtype of NumPy's, says, or wider than
    their own.

    The first half is counted from the start and the second from the end, so that both are exact.
    The step has the dtype's precision, and each product and sum is rounded together.
    """
    ndims = [number.array.ndim if type(number) is Tensor else 0 for number in (start, end)]
    if any(ndims):
        raise shape_error(
            f"{name} only supports 0-dimensional start and end tensors, but got start with"
            f" {ndims[0]} dimension(s) and end with {ndims[1]} dimension(s)."
        )
    first, last = (
        number.array.item()  # these two may require grad, and get none
        if type(number) is Tensor and not number.array.ndim
        else plain_number(f"{name}()", number)
        for number in (start, end)
    )
    steps = plain_integer(name, "steps", steps)
    if steps < 0:
        raise runtime_error("number of steps must be non-negative")
    check_count(name, steps)
    kind: Any = dtype.numpy_dtype.type
    wide: Any = np.longdouble if kind is np.float64 else np.float64
    if dtype.is_complex:
        wide = np.complex128
    if dtype.category == "int":
        first, last, kind, wide = int(first), int(last), np.float64, np.float64
    numbers = np.empty(steps, wide if result is None else result)
    if steps == 1:
        numbers[...] = np.asarray(first, wide if dtype.is_complex else np.float64)
        return numbers
    low, high = kind(first), kind(last)
    step, half = wide((high - low) / kind(max(steps - 1, 1))), steps // 2

    def fill(block: slice) -> None:
        start, stop = block.start, block.stop
        middle = min(max(half, start), stop)
        numbers[start:middle] = low + np.arange(start, middle, dtype=wide) * step
        falling = np.arange(steps - stop, steps - middle, dtype=wide)
        numbers[middle:stop] = (high - falling * step)[::-1]

    over_tiles((steps,), fill, _PIECE)
    return numbers


_PIECE = 1 << 14
"""How many numbers are computed at a time: their intermediate arrays fit the cache."""


@function("logspace")
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`base` to the powers of `linspace(start, end, steps)`.

    Example: torch.logspace(0, 2, 3)
    """
    target = checked_dtype("logspace", dtype, _dtype_between(start, end))
    check_dtype("logspace", target, dtype_names("bool"))
    exponents = dtypes.complex128 if target.is_complex else dtypes.float64
    if target.category == "int" and steps != 1:  # its ends are integers before powers are taken
        exponents = target
    powers = _evenly_spaced("logspace", start, end, steps, exponents)
    array = np.power(float(base), powers).astype(target.numpy_dtype)
    return tensor_of("logspace", array, device, requires_grad)


@function("eye", numpy="eye(dtype=np.float32)")
def eye(
    n: Any,
    m: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The identity matrix of `n` rows and `m` columns, `n` if not given.

    Example: torch.eye(3)
    """
    sizes = checked_sizes("eye", (n, n if m is None else m))
    target = checked_dtype("eye", dtype, dtypes.default_dtype())
    return tensor_of("eye", np.eye(*sizes, dtype=target.numpy_dtype), device, requires_grad)


def _triangle_indices(name: str, lower: bool) -> None:
    def indices(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        rows, columns = checked_sizes(name, (row, col))
        target = checked_dtype(name, dtype, dtypes.int64)
        if target not in (dtypes.int64, dtypes.int32):
            raise not_defined(name, target, "NotImplementedError", name)
        full = np.ones((rows, columns), np.bool_)
        inside = np.tril(full, offset) if lower else np.triu(full, offset)
        return tensor_of(
            name, np.stack(np.nonzero(inside)).astype(target.numpy_dtype), device, False
        )

    describe(
        indices,
        f"The rows and columns of a matrix's {'lower' if lower else 'upper'} triangle, one row of"
        " the result each.",
        f"torch.{name}(2, 3)",
    )
    function(name)(indices)


_triangle_indices("tril_indices", True)
_triangle_indices("triu_indices", False)
