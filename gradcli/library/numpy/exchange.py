"""What arrays and tensors do together, as in PyTorch: shared memory, operators, arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import type_error, value_error
from gradcli.language.limits import too_deep
from gradcli.language.objects.classes.special_methods import ARITHMETIC
from gradcli.language.objects.types import called, type_name
from gradcli.library.numpy.array import (
    DEEPEST,
    SCALARS,
    UFUNCS,
    NDArray,
    array_of,
    charge_operator,
    check_numbers,
    compute,
    tensor_on,
    unwrap,
)
from gradcli.ops.binding.functions import methods, operators
from gradcli.state import look


def numpy(self: Tensor, *, force: bool = False) -> NDArray:
    """The array on the tensor's memory: a write to one is seen in the other.

    Args:
        force: detach and bring to the CPU what needs it, which may be a copy.

    Raises PyTorch's errors for a tensor that requires grad, is conjugated or on a GPU.
    """
    if force:
        self = methods.resolve_conj(methods.cpu(methods.detach(self)))
    look(None, self.array)
    return NDArray(array_of(self))


def from_numpy(ndarray: Any, /) -> Tensor:
    """The tensor on an array's memory; raises E202 for what is no array of numbers, E204 for one
    that runs backwards through its memory.
    """
    if type(ndarray) is not NDArray:
        shown = type_name(ndarray)
        name = f"numpy.{shown}" if type(ndarray) in SCALARS else shown
        raise type_error(f"expected np.ndarray (got {name})")
    return tensor_on(ndarray.data)


# --- operators ------------------------------------------------------------------------------------


def mixed(symbol: str, left: Any, right: Any) -> Any:
    """An operator between a tensor and an array. PyTorch leaves it to NumPy, which makes a tensor
    of the result, or to no one.
    """
    if symbol == "==":
        tensors = [each if type(each) is Tensor else tensor_on(each.data) for each in (left, right)]
        return operators.eq(*tensors)
    if symbol == "!=":
        return True
    if symbol == "/" and type(right) is Tensor:
        return mixed("*", methods.reciprocal(right), left)
    if symbol in ARITHMETIC and type(left) is Tensor:
        operands = (unwrap(left), unwrap(right))
        charge_operator(symbol, *operands)
        return as_tensor(compute(UFUNCS[symbol], operands, {}, 0))
    kinds = ["Tensor" if type(each) is Tensor else "numpy.ndarray" for each in (left, right)]
    if symbol == "+":
        words = (
            "Concatenation operation is not implemented for NumPy arrays, use np.concatenate()"
            " instead. Please do not rely on this error; it may not be given on all Python"
            " implementations."
        )
    elif symbol in ("<", "<=", ">", ">="):
        words = f"'{symbol}' not supported between instances of '{kinds[0]}' and '{kinds[1]}'"
    else:
        shown = "** or pow()" if symbol == "**" else symbol
        words = f"unsupported operand type(s) for {shown}: '{kinds[0]}' and '{kinds[1]}'"
    raise type_error(
        words, help="`torch.from_numpy(array)` makes a tensor of it, on the same memory"
    )


def as_tensor(value: Any) -> Any:
    """What NumPy computed of tensors, as a tensor again; bools as PyTorch gives them, as uint8."""
    if isinstance(value, tuple):
        return tuple([as_tensor(each) for each in value])
    array = value.data if type(value) is NDArray else np.asarray(value)
    return tensor_on(array.astype(np.uint8) if array.dtype == np.bool_ else array)


# --- arguments of ops -----------------------------------------------------------------------------

_WITH_DTYPE = frozenset({"as_tensor", "asarray", "new_tensor", "tensor"})
"""The functions of torch that take the dtype of a number of NumPy's."""

_OF_DATA = {
    "pack_padded_sequence",
    *_WITH_DTYPE,
    *[
        f"{kind}Tensor"
        for kind in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool")
    ],
}
"""The functions of torch that take data of NumPy's."""

_OF_ITEMS = ("default_collate", "default_convert")
"""The functions of torch that take the items of a data set, as they are."""


def argument(function: Any, value: Any) -> Any:
    """What an op of torch sees of an argument: a number of NumPy's is one of Python's."""
    name = getattr(function, "__name__", "")
    if name in _OF_ITEMS:
        return value
    if type(value) in SCALARS:
        return value if name in _WITH_DTYPE else value.item()
    if type(value) in (list, tuple) and len(value) > 0:
        if name in _OF_DATA:
            return _data(value)
        if not SCALARS.isdisjoint(map(type, value)):
            return type(value)([each.item() if type(each) in SCALARS else each for each in value])
    if type(value) is NDArray and name in _OF_DATA:
        check_numbers(value.data)
        return value.data
    return value


def _data(values: Any) -> Any:
    """Nested lists of data; an array of them where there are arrays in it."""
    if not _holds_array(values, 0):
        return values
    lengths = {len(each) for each in values if type(each) in (NDArray, list, tuple)}
    if len(lengths) > 1:
        first, other = len(values[0]), next(len(v) for v in values if len(v) != len(values[0]))
        raise value_error(f"expected sequence of length {first} at dim 1 (got {other})")
    return compute(np.array, (unwrap(values),), {}, 0).data


def _holds_array(values: Any, depth: int) -> bool:
    """Whether an array is in a list, or first in a list that is in it."""
    if _HOLDING.isdisjoint(map(type, values)) or depth > DEEPEST:
        return False
    return any(
        type(each) is NDArray or (type(each) in (list, tuple) and _holds_array(each[:1], depth + 1))
        for each in values
    )


_HOLDING = frozenset({NDArray, list, tuple})


def sharing(as_tensor: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.as_tensor`, and so `torch.asarray`: it shares an array's memory where it can."""

    def share(data: Any, dtype: Any = None, device: Any = None) -> Any:
        if isinstance(data, np.ndarray):
            return as_tensor(tensor_on(data), dtype, device)
        return as_tensor(data, dtype, device)

    share.__module__ = as_tensor.__module__
    called("as_tensor", share)
    share.__doc__ = as_tensor.__doc__
    return share


def index(value: Any, depth: int = 0) -> Any:
    """What a tensor sees of an index: an array in it is a tensor. Raises E601 for lists that are
    nested too deeply.
    """
    kind = type(value)
    if kind is NDArray:
        return tensor_on(np.ascontiguousarray(value.data).reshape(value.data.shape))
    if kind in SCALARS:
        return operator.index(value) if hasattr(value, "__index__") else value.item()
    if kind in (list, tuple) and not _FOREIGN.isdisjoint(map(type, value)):
        if depth > DEEPEST:
            raise too_deep("lists")
        return kind([index(each, depth + 1) for each in value])
    return value


_FOREIGN = _HOLDING | SCALARS
