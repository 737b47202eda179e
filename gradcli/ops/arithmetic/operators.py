"""The operators of programs for arithmetic: `+ - * / // %`, binary, unary and in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import write_barrier
from gradcli.arrays.storage import Storage
from gradcli.autograd.inplace.writes import check_memory, is_recorded
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.ops.arithmetic.arithmetic import (
    add,
    div,
    floor_divide,
    floor_divide_of_number,
    mul,
    neg,
    reciprocal,
    remainder,
    remainder_of_number,
    rsub,
    sub,
    with_number,
)
from gradcli.ops.binding.catalogue import in_place, inplace_operators, operators, unary_operators
from gradcli.ops.definition.op import Function, Op
from gradcli.state import active


def _commutative(entry: Op) -> Function:
    """An operator that puts its tensor first, as PyTorch does with `2 * x`."""

    def operator(left: Any, right: Any) -> Any:
        return entry.apply(left, right) if type(left) is Tensor else entry.apply(right, left)

    return operator


def _minus(left: Any, right: Any) -> Any:
    return sub.apply(left, right) if type(left) is Tensor else rsub(right, left)


def _over(left: Any, right: Any) -> Any:
    # A number over a tensor is its reciprocal times the number.
    return (
        div.apply(left, right) if type(left) is Tensor else mul.apply(reciprocal.apply(right), left)
    )


def _by_sides(function: Function, of_number: Op) -> Function:
    def operator(left: Any, right: Any) -> Any:
        if type(left) is Tensor:
            return function(left, right)
        return of_number.apply(*with_number(right, left))

    return operator


operators.update(
    {
        "+": _commutative(add),
        "-": _minus,
        "*": _commutative(mul),
        "/": _over,
        "//": _by_sides(floor_divide, floor_divide_of_number),
        "%": _by_sides(remainder, remainder_of_number),
    }
)


def _updating(ufunc: Any, general: Function) -> Function:
    """An in-place operator which writes directly to the memory where nothing is recorded and
    nothing has to be brought into line: the step of an optimizer.
    """

    def operator(self: Tensor, other: Any) -> Tensor:
        if type(other) is not Tensor:
            return general(self, other)
        state = active.state
        array, operand = self.array, other.array
        dtype = array.dtype
        if (
            dtype is not operand.dtype
            or type(array) is not np.ndarray
            or type(operand) is not np.ndarray
            or (dtype is not _SINGLE and dtype is not _DOUBLE)
            or array.shape != operand.shape
            or state.recorder is not None
            or state.born is not None
            or (state.grad_enabled and is_recorded(self, other))
        ):
            return general(self, other)
        storage = self.storage or storage_of(self)
        if storage.lazy_conjugation is not None:
            return general(self, other)
        if (
            other.storage is storage or type(storage) is not Storage or not array.flags.c_contiguous
        ) and check_memory(self, other):
            return general(self, other)
        if state.pending_readers:
            write_barrier(array)
        ufunc(array, operand, array)
        storage.count_write()
        return self

    return operator


_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

inplace_operators.update(
    {
        "+": _updating(np.add, in_place("add", lambda self, other: add.apply(self, other))),
        "-": _updating(np.subtract, in_place("sub", lambda self, other: sub.apply(self, other))),
        "*": _updating(np.multiply, in_place("mul", lambda self, other: mul.apply(self, other))),
        "/": _updating(np.divide, in_place("div", lambda self, other: div.apply(self, other))),
        "//": in_place("floor_divide", floor_divide),
        "%": in_place("remainder", remainder),
    }
)
unary_operators.update({"-": lambda value: neg.apply(value), "+": lambda value: value})
