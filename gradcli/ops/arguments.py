"""Checks of the arguments of composed functions; the generated ones check their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.catalogue import function, refuse_out
from gradcli.ops.entry import Function, Op
from gradcli.ops.operands import type_name
from gradcli.state import active


def check_tensors(name: str, **operands: Any) -> None:
    """Raise E202 for an operand of the function `name` that is no tensor."""
    for argument, value in operands.items():
        if type(value) is not Tensor:
            raise GradcliError(
                "E202",
                f"{name}(): argument '{argument}' must be a tensor, not {type_name(value)}",
                help="wrap the number: `tensor(2.)`" if type(value) in (int, float) else None,
            )


def check_number(name: str, argument: str, value: Any) -> None:
    """Raise E202 unless an argument is a Python number."""
    if type(value) not in (int, float, bool):
        raise GradcliError(
            "E202", f"{name}(): argument '{argument}' must be a number, not {type_name(value)}"
        )


def check_floating(name: str, tensor: Tensor, raises: str = "NotImplementedError") -> None:
    """Raise E203 for a tensor of integers or bools, as the class that PyTorch raises."""
    if tensor.dtype.category in ("int", "bool"):
        raise GradcliError(
            "E203",
            f"{name}() is defined for floating tensors, and this one is {tensor.dtype}",
            raises=raises,
            help="make it floating: `x.float()`",
        )


def check_same_dtype(name: str, input: Tensor, other: Tensor) -> None:
    """Raise E203 where two operands that are not promoted differ in dtype."""
    if input.dtype is not other.dtype:
        raise GradcliError("E203", f"{name}(): the dtypes {input.dtype} and {other.dtype} differ")


def check_constants(name: str, **operands: Tensor | None) -> None:
    """Raise E202 for an operand that is neither a tensor nor None, E408 for one that requires grad,
    which the function `name` has no derivative for.
    """
    for argument, value in operands.items():
        if value is None:
            continue
        check_tensors(name, **{argument: value})
        if value.requires_grad and active.state.grad_enabled:
            raise GradcliError(
                "E408",
                f"{name}(): there is no derivative for `{argument}`, which requires grad",
                help=f"detach it: `{argument}.detach()`",
            )


def in_dtype_of(value: Tensor, other: Tensor) -> Tensor:
    """An integer tensor in the dtype of a floating one that it is combined with; outside the
    graph, as integers have no gradient. A floating tensor stays as it is.
    """
    if value.dtype.category in ("int", "bool"):
        return Tensor(dtypes.cast(value.array, other.dtype))
    return value


def check_real(name: str, array: Any) -> None:
    """Raise E203 for an array of bools or of complex numbers."""
    if array.dtype.kind in "bc":
        raise GradcliError(
            "E203",
            f"{name}() is not defined for {dtypes.of_array(array)}",
            raises="NotImplementedError",
        )


def in_single(function: Function, self: Any, *arguments: Any) -> Any:
    """Call a function of an array. Half precision is computed in float32 and rounded once, as
    PyTorch does.
    """
    if self.dtype.itemsize == 2:
        return function(self.astype(np.float32), *arguments).astype(self.dtype)
    return function(self, *arguments)


def expose_of_tensors(
    entry: Op, *aliases: str, inplace: bool = False, refused: tuple[str, ...] = ()
) -> None:
    """Make an entry of two tensors reachable, as a function and a method that refuse numbers, and
    tensors whose common dtype is of a refused category.
    """

    def of_tensors(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
        refuse_out(entry.name, out)
        check_tensors(entry.name, input=input, other=other)
        if refused:
            dtype = dtypes.result_dtype((input.array, other.array))
            if dtype.category in refused:
                raise GradcliError(
                    "E203",
                    f"{entry.name}() is not defined for {dtype}",
                    raises="NotImplementedError",
                )
        return entry.apply(input, other)

    of_tensors.__name__ = of_tensors.__qualname__ = entry.name
    function(entry.name, *aliases, method=True, inplace=inplace)(of_tensors)
