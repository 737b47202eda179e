"""`torch.testing`: `assert_close`, which says how two values differ, and `make_tensor`."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.language.objects.borders import is_array
from gradcli.language.objects.types import type_of
from gradcli.ops.binding.functions import methods, operators, torch
from gradcli.ops.creation.tensor_methods import set_requires_grad
from gradcli.state import charge_steps

_TOLERANCES = {
    "float16": (0.001, 1e-5),
    "bfloat16": (0.016, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""The relative and the absolute tolerance of each dtype; others are compared exactly."""

_OF_NUMBERS = {int: "int64", float: "float64", complex: "complex128"}

_Close = tuple[float, float]


def _failure(text: str, raises: str = "AssertionError") -> GradcliError:
    return GradcliError("E701", text, text=text, raises=raises)


def _tolerances(rtol: float | None, atol: float | None, *dtypes: str) -> _Close:
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is not None or atol is not None:
        raise _failure(
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no"
            f" {'rtol' if rtol is None else 'atol'}.",
            "ValueError",
        )
    tolerances = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(rtol for rtol, _ in tolerances), max(atol for _, atol in tolerances)


def _mismatch(what: str, extra: str, close: _Close, diffs: tuple[Any, Any], at: Any = None) -> str:
    """The text of numbers that differ: how many, and by how much at most."""
    rtol, atol = close
    exact = rtol == 0 and atol == 0
    lines = []
    for number, (kind, tolerance) in enumerate((("absolute", atol), ("relative", rtol))):
        if at is None:
            line = f"{kind.title()} difference: {diffs[number]}"
        else:
            line = f"Greatest {kind} difference: {diffs[number]} at index {at[number]}"
        lines.append(line if exact else f"{line} (up to {tolerance} allowed)")
    return f"{what} are not {'equal' if exact else 'close'}!\n\n{extra}\n" + "\n".join(lines)


def _compare_numbers(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    close = _tolerances(
        options["rtol"], options["atol"], *(_OF_NUMBERS[type(n)] for n in (actual, expected))
    )
    if options["check_dtype"] and type(actual) is not type(expected):
        kinds = f"{type_of(actual)!r} != {type_of(expected)!r}"
        raise _failure(f"The (d)types do not match: {kinds}.")
    nan = options["equal_nan"] and cmath.isnan(actual) and cmath.isnan(expected)
    if actual == expected or nan:
        return
    diff = abs(actual - expected)
    if cmath.isfinite(diff) and diff <= close[1] + close[0] * abs(expected):
        return
    _fail_numbers(actual, expected, close)


def _fail_numbers(actual: Any, expected: Any, close: _Close) -> NoReturn:
    diff = abs(actual - expected)
    relative = math.inf if expected == 0 else diff / abs(expected)
    extra = f"Expected {expected} but got {actual}."
    raise _failure(_mismatch("Scalars", extra, close, (diff, relative)))


def _compare_tensors(actual: Tensor, expected: Tensor, options: dict[str, Any]) -> None:
    close = _tolerances(options["rtol"], options["atol"], actual.dtype.name, expected.dtype.name)
    read: list[tuple[str, bool, Callable[[Tensor], Any]]] = [
        ("shape", True, lambda tensor: tensor.shape),
        ("stride()", options["check_stride"], lambda tensor: methods.stride(tensor)),
        ("device", options["check_device"], lambda tensor: tensor.device),
        ("dtype", options["check_dtype"], lambda tensor: tensor.dtype),
    ]
    for name, checked, of in read:
        if checked and of(actual) != of(expected):
            raise _failure(
                f"The values for attribute '{name}' do not match: {of(actual)} != {of(expected)}."
            )
    if actual.dtype != expected.dtype:
        dtype = torch.promote_types(actual.dtype, expected.dtype)
        actual, expected = (methods.to(tensor, dtype) for tensor in (actual, expected))
    tolerance = {"rtol": close[0], "atol": close[1], "equal_nan": options["equal_nan"]}
    matches = np.asarray(forced(torch.isclose(actual, expected, **tolerance).array))
    if matches.all():
        return
    one, other = (np.asarray(forced(tensor.array)) for tensor in (actual, expected))
    if one.dtype.kind in "bui":
        one, other = one.astype(np.int64), other.astype(np.int64)
    if not matches.ndim:
        _fail_numbers(actual.item(), expected.item(), close)
    missed = matches.size - np.count_nonzero(matches)
    diff = np.where(matches, 0, np.abs(one - other)).astype(abs(one).dtype)
    as_floats = diff.astype(np.float32) if diff.dtype.kind in "iu" else diff
    relative = np.where(matches, 0, as_floats / np.abs(other).astype(as_floats.dtype))
    at = [_greatest(numbers) for numbers in (diff, relative)]
    extra = f"Mismatched elements: {missed} / {matches.size} ({missed / matches.size:.1%})"
    values = (diff[at[0]].item(), relative.astype(as_floats.dtype)[at[1]].item())
    raise _failure(_mismatch("Tensor-likes", extra, close, values, at))


def _greatest(numbers: Any) -> tuple[int, ...]:
    """The position of the greatest number, or of the first nan."""
    flat = int(np.argmax(np.where(np.isnan(numbers), np.inf, numbers)))
    return tuple(map(int, np.unravel_index(flat, numbers.shape)))


def _compare(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    """Compare two values that are no containers."""
    pair = actual, expected
    if actual is None or expected is None:
        if actual is not expected:
            raise _failure(f"None mismatch: {actual} is not {expected}")
    elif all(isinstance(value, (bool, np.bool_)) for value in pair):
        if bool(actual) is not bool(expected):
            raise _failure(f"Booleans mismatch: {actual} is not {expected}")
    elif all(isinstance(value, (int, float, complex, np.number)) for value in pair):
        plain = [v.item() if isinstance(v, np.number) else v for v in pair]
        if bool in map(type, plain):
            plain = [int(value) for value in plain]
        _compare_numbers(plain[0], plain[1], options)
    elif type_of(actual) is type_of(expected) or all(isinstance(v, Tensor) for v in pair):
        subclass = type_of(actual) is not type_of(expected) and not options["allow_subclasses"]
        tensors = [torch.from_numpy(v) if is_array(v) else v for v in pair]
        if subclass or not isinstance(tensors[0], Tensor):
            raise _unlike(*pair)
        _compare_tensors(tensors[0], tensors[1], options)
    else:
        raise _unlike(*pair)


def _unlike(actual: Any, expected: Any) -> GradcliError:
    kinds = f"{type_of(actual)!r} and {type_of(expected)!r}"
    return _failure(f"No comparison pair was able to handle inputs of type {kinds}.", "TypeError")


_Pair = tuple[tuple[Any, ...], Any, Any]


def _pairs(actual: Any, expected: Any, place: tuple[Any, ...] = ()) -> Iterator[_Pair]:
    """The values that are to be compared, each with its place in the containers."""
    charge_steps(1)
    if all(isinstance(value, (list, tuple)) for value in (actual, expected)):
        if len(actual) != len(expected):
            raise _placed(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place
            )
        keys: Any = range(len(actual))
    elif all(isinstance(value, Mapping) for value in (actual, expected)):
        keys = list(actual)
        missing, more = set(expected) - set(actual), set(actual) - set(expected)
        if missing or more:
            raise _placed(
                "The keys of the mappings do not match:\nMissing keys in the actual mapping:"
                f" {sorted(missing)}\nAdditional keys in the actual mapping: {sorted(more)}",
                place,
            )
        if all(isinstance(key, str) for key in keys):
            keys.sort()
    else:
        yield place, actual, expected
        return
    for key in keys:
        yield from _pairs(actual[key], expected[key], (*place, key))


def _placed(text: str, place: tuple[Any, ...], raises: str = "AssertionError") -> GradcliError:
    item = "".join(str([key]) for key in place)
    return _failure(f"{text}\n\nThe failure occurred for item {item}" if place else text, raises)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise an AssertionError that says how two values differ, where they are not close: tensors,
    numbers, and lists and dicts of them.

    Args:
        actual, expected: the values.
        rtol, atol: how much they may differ, relative to `expected` and at all; both or neither.
        equal_nan: whether NaN equals NaN.
        msg: another text, or a function of the text.
    """
    options = {
        "allow_subclasses": allow_subclasses,
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_stride": check_stride,
    }
    try:
        for place, one, other in list(_pairs(actual, expected)):
            try:
                _compare(one, other, options)
            except GradcliError as error:
                raise _placed(str(error.text), place, error.raises) from None
    except GradcliError as error:
        if msg is None or error.code != "E701" or error.raises != "AssertionError":
            raise
        raise _failure(msg(error.text) if callable(msg) else str(msg)) from None


def _bounds(dtype: DType, low: Any, high: Any) -> tuple[Any, Any]:
    """From where to where the numbers of a dtype are drawn."""
    whole = dtype.category in ("bool", "int")
    info = None if dtype.name == "bool" else (torch.iinfo if whole else torch.finfo)(dtype)
    least, most = (0, 2) if info is None else (info.min, info.max)
    if info is not None and whole and dtype.name != "int64":
        most += 1
    first, last = (0, 2) if info is None else (-9, 10 if whole else 9)
    low = first if low is None else low
    high = last if high is None else high
    if low != low or high != high:
        raise value_error(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and whole):
        raise value_error(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= most:
        raise value_error(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype}"
            f" only supports [{least}, {most})"
        )
    low, high = (min(max(bound, least), most) for bound in (low, high))
    return (math.ceil(low), math.ceil(high)) if whole else (low, high)


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any,
    low: Any = None,
    high: Any = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of numbers drawn evenly from `low` up to `high`."""
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = tuple(shape[0])
    whole = dtype.category in ("bool", "int")
    if requires_grad and whole:
        raise value_error(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got"
            f" {dtype=}"
        )
    noncontiguous = noncontiguous and math.prod(shape) > 1
    sizes = (*shape[:-1], 2 * shape[-1]) if noncontiguous else shape
    low, high = _bounds(dtype, low, high)
    if whole:
        result = torch.randint(low, high, sizes, device=device, dtype=dtype)
    else:
        result = torch.empty(sizes, device=device, dtype=dtype)
        parts = torch.view_as_real(result) if dtype.is_complex else result
        halves = high - low >= torch.finfo(parts.dtype).max
        methods.uniform_(parts, *((low / 2, high / 2) if halves else (low, high)))
        if halves:
            methods.mul_(parts, 2)
    if noncontiguous:
        result = operators.getitem(result, (..., slice(1, None, 2)))
    if exclude_zero:
        other = 1 if whole else torch.finfo(dtype).tiny
        operators.setitem(result, torch.eq(result, 0), other)
    if not whole:
        set_requires_grad(result, requires_grad)
    return result


TESTING: dict[str, Any] = {"assert_close": assert_close, "make_tensor": make_tensor}
