"""Type promotion: the common dtype of arrays, and of arrays and Python numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import device_of, moved
from gradcli.arrays.fusion.lazy import as_lazy, forced
from gradcli.arrays.layout.strides import cast_in_order
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, type_error, value_error
from gradcli.ops.codegen.runtime import check_devices, type_name, wrong_operand
from gradcli.ops.definition.op import Function, is_half
from gradcli.state import active

_LEAST, _MOST = -(2**63), 2**64 - 1


def number_and_array(array: Any, number: Any) -> tuple[bool, Any, Any]:
    """Whether an array and a number need promotion, the array, and the number as NumPy must see it.

    NumPy lets a Python number take a floating array's dtype, as PyTorch does, and an integer that
    of an array of int64; all else is promoted by PyTorch's rules, which gradcli implements. A large
    array of floats becomes a lazy one.
    """
    kind = type(number)
    if kind is int:
        if not _LEAST <= number <= _MOST:
            check_width(number)
    elif kind is not float:
        return True, array, number
    if type(array) in NATIVE_SCALARS:
        return False, array, number
    if array.dtype not in EVERYDAY:
        if kind is int and array.dtype is _INT64 and type(array) in _OF_NUMPY and number < 2**63:
            return False, array, np.int64(number)  # what promotion comes to
        return True, array, number
    if array.size >= active.state.lazy_from:
        return False, as_lazy(array), number
    if not number or type(array) is not np.ndarray:  # 0.0 and -0.0 are one key
        return False, array, number
    known = _numbers[array.itemsize]
    operand = known.get(number)
    if operand is None:
        if len(known) == _MANY:
            known.clear()
        operand = known[number] = np.array(number, array.dtype)
    return False, array, operand


_numbers: dict[int, dict[float, Any]] = {4: {}, 8: {}}
"""Numbers as 0-dim arrays, by number and item size: NumPy computes with them faster than with
Python's numbers."""


_MANY = 4096
"""How many numbers are cached."""


NATIVE_SCALARS = frozenset({np.float32, np.float64})


_INT64 = np.dtype(np.int64)


_OF_NUMPY = frozenset({np.int64, np.ndarray})


_HALF = (dtypes.float16, dtypes.bfloat16)


EVERYDAY = (np.dtype(np.float32), np.dtype(np.float64))


def promoted(
    op: Any, names: tuple[str, ...], operands: tuple[Any, ...]
) -> tuple[tuple[Any, ...], bool | tuple[Any, ...] | None]:
    """The operands' arrays in their common dtype, and whether that changed any of the tensors: the
    operands' devices where there were several; None if not but they may be worth `of_halves`.

    Raises E202 for an operand that is neither a tensor nor a number, and E208 as `check_devices`.
    """
    arrays = []
    for name, operand in zip(names, operands, strict=True):
        if type(operand) is Tensor:
            arrays.append(operand.array)
        elif type(operand) in NUMBERS or isinstance(operand, np.generic):
            arrays.append(operand)
        else:
            raise wrong_operand(op, name, operand)
    without = len(names) == len(op.tensors) and Tensor not in map(type, operands)
    if without and op.name not in _OF_NUMBERS:
        raise wrong_operand(op, names[0], operands[0])
    if op.name == "sub":
        check_subtraction(*arrays)
    dtype = dtypes.result_dtype(arrays)
    mixed = any(
        type(operand) is Tensor and operand.array.dtype is not dtype.numpy_dtype
        for operand in operands
    )
    homes = tuple([None if type(each) in NUMBERS else device_of(each) for each in arrays])
    if len({home for home in homes if home is not None}) > 1:
        check_devices(op, arrays)
        device = next(home for home in homes if home is not None and home.type != "cpu")
        cast = [dtypes.cast(array, dtype) for array in arrays]
        return tuple([each if home is None else moved(each, device)
                      for each, home in zip(cast, homes, strict=True)]), homes  # fmt: skip
    if op.exact_numbers and dtype in _HALF:
        first, second = arrays
        if type(second) in NUMBERS or not second.ndim:
            return (dtypes.cast(first, dtype), float(second)), True
    casts = tuple([cast_in_order(array, dtype) for array in arrays])
    if mixed or dtype not in _HALF:
        return casts, mixed
    many = _FEW if dtype is dtypes.float16 else dtypes.MANY
    return casts, None if max(casts[0].size, casts[-1].size) >= many else False


_OF_NUMBERS = frozenset({"add", "div", "floor_divide", "mul", "sub"})
"""Ops whose PyTorch functions take two numbers and no tensor."""


def check_width(number: int) -> None:
    """Raise E204 for a Python integer of more than 64 bits."""
    if not _LEAST <= number <= _MOST:
        raise value_error(
            "the integer does not fit 64 bits",
            text="int too big to convert",
            raises="OverflowError",
        )


def check_alpha(self: Any, other: Any, alpha: Any) -> None:
    """Raise E202 for a factor that is no number, E203 where arrays of integers, or bools, are added
    with one that is a float.
    """
    if type(alpha) not in NUMBERS and not isinstance(alpha, np.generic):
        raise type_error(f"alpha must be a number, not {type_name(alpha)}")
    kind = np.result_type(self, other).kind
    if isinstance(alpha, (complex, np.complexfloating)) and kind != "c":
        raise runtime_error(
            "alpha must be real for tensors that are",
            text="For non-complex input tensors, argument alpha must not be a complex number.",
        )
    if type(alpha) is float and kind in "iub":
        raise dtype_error("alpha must be an integer for tensors of integers")


def check_subtraction(*operands: Any) -> None:
    """Raise E203 where a bool is subtracted, or subtracted from: a number, or an array's dtype."""
    for operand in operands:
        if _is_bool(operand):
            raise dtype_error(
                "`-` is not defined for bools",
                text=_NO_SUBTRACTION[all(map(_is_bool, operands))],
                help="make it a number first, `mask.float()`, or use `^` or `~`",
            )


def _is_bool(operand: Any) -> bool:
    return type(operand) is bool or getattr(operand, "dtype", None) == np.bool_


_NO_SUBTRACTION = {
    True: "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or"
    " `logical_xor()` operator instead.",
    False: "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying"
    " to invert a mask, use the `~` or `logical_not()` operator instead.",
}
"""PyTorch's text, by whether all operands are bools."""

NUMBERS = frozenset({bool, int, float, complex})


def floating(array: Any) -> Any:
    """The array of an integer operand in the default floating dtype; any other as it is."""
    if type(array) in NUMBERS:
        return float(array) if type(array) is not complex else array
    if array.dtype.kind in "iub":
        return dtypes.cast(array, dtypes.default_dtype())
    return array


def of_halves(ufunc: Any, forward: Function, self: Any, *operands: Any) -> Any:
    """The result of a forward function that is a ufunc, for an operand of half precision, or two
    that were promoted. A number beside half precision that still is one keeps its value in float32
    where it is a factor or divisor.
    """
    other = operands[0] if operands else self
    exact = type(other) is float and ufunc in _EXACT
    if exact and self.size < _FEW and is_half(self):
        return forward(self.astype(np.float32), other).astype(self.dtype)
    if operands[1:] not in _NONE_GIVEN or not is_half(self):
        return forward(self, *operands)
    many = many_for(ufunc)[self.dtype.kind != "f"]
    second = self.dtype.type(other) if type(other) in NUMBERS else other
    # NumPy would compare the two in half precision.
    if max(self.size, second.size) >= many and not (exact and float(second) != other):
        result = _computed()(ufunc, *map(forced, (self, second)[: 1 + len(operands)]))
        if result is not None:
            return result
    if exact:
        return dtypes.narrowed(forward(dtypes.widened(self), other), self.dtype)
    return forward(self, *operands)


@cache
def _computed() -> Function:
    from gradcli.arrays.native.half import computed  # lazy: start-up: only for half precision

    return computed


_NONE_GIVEN = ((), (1,))
"""The further arguments of a ufunc's op: none, or the factor of a sum."""


def many_for(ufunc: Any) -> tuple[int, int]:
    """From how many elements of float16, and of bfloat16, on `of_halves` pays."""
    return (_FEW if ufunc in _OF_KERNELS else dtypes.MANY), dtypes.MANY


_EXACT = frozenset({np.multiply, np.divide})
_OF_KERNELS = frozenset({np.add, np.subtract, np.multiply, np.divide})
_FEW = 3 << 8
