"""Decomposition: the ufuncs that a forward function or a rule consists of.

A function that reads lazy arrays builds a plan of pointwise operations when it is called with some.
The steps of that plan become instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY, Constant, Pointwise, Source
from gradcli.arrays.fusion.tile_kernels import choose_tile, positive_part
from gradcli.arrays.layout.strides import copied_in_order
from gradcli.arrays.storage import own
from gradcli.errors import GradcliError
from gradcli.trace.ir import Instruction, Kernel, Operand, Trace, Value


class _Earlier(NamedTuple):
    """The result of an earlier step."""

    number: int


class _Step(NamedTuple):
    """One ufunc and its operands: values, numbers, results of earlier steps."""

    kernel: Any
    operands: list[Any]


def is_ufunc(op: Any) -> bool:
    """Whether an op takes `out`, which may be an operand of the same layout, as last argument."""
    return isinstance(op, np.ufunc) or op is zeroed or op is positive_part


def is_copy(op: Any) -> bool:
    """Whether an op copies its operand to memory of its own, and does nothing else."""
    function = op.function if isinstance(op, Kernel) else op
    return function is np.copy or function is own or function is copied_in_order


def ufuncs_of(
    function: Callable[..., Any], operands: Sequence[Operand], trace: Trace
) -> list[Instruction]:
    """A function of arrays as ufunc instructions that are not yet added; empty where it is more."""
    values: dict[int, Any] = {}
    arguments = []
    for operand in operands:
        if isinstance(operand, Value):
            array = type(operand.array) is np.ndarray
            arguments.append(Source(operand.array) if array else operand.array)
            values[id(arguments[-1])] = operand
        elif type(operand) is np.ndarray and not operand.ndim:  # a number that was promoted
            arguments.append(operand[()])
            values[id(arguments[-1])] = operand
        else:
            arguments.append(operand)
    try:
        result = function(*arguments)
    except (GradcliError, TypeError, ValueError, AttributeError):
        return []
    steps: list[_Step] = []
    if _collect(result, values, steps, {}) is None:
        return []
    computed: list[Value] = []
    instructions = []
    for step in steps:
        every = step.operands
        inputs = tuple(
            [computed[each.number] if type(each) is _Earlier else each for each in every]
        )
        read = [each.array if isinstance(each, Value) else each for each in inputs]
        computed.append(trace.value_of(step.kernel(*read)))
        instructions.append(Instruction(step.kernel, inputs, (computed[-1],)))
    return instructions


def _collect(
    array: Any, values: dict[int, Any], steps: list[_Step], known: dict[int, _Earlier]
) -> Any:
    """Add the steps of a lazy array; returns the operand of its result, None for no ufunc."""
    if id(array) in values:
        return values[id(array)]
    if id(array) in known:
        return known[id(array)]
    if type(array) is Constant:
        return array.number
    if type(array) is not Pointwise or array.value is not None or len(steps) > _MOST:
        return None
    kernel, arguments = array.kernel, array.operands
    if kernel is choose_tile and type(arguments[1]) is int and arguments[1] == 0:
        kernel, arguments = zeroed, (arguments[0], arguments[2])
    if kernel is np.maximum and type(arguments[0]) is int and arguments[0] == 0:
        kernel, arguments = positive_part, arguments[1:]
    if kernel not in (zeroed, positive_part) and not isinstance(kernel, np.ufunc):
        return None
    operands = []
    for operand in arguments:
        value = operand
        if type(operand) in LAZY or isinstance(operand, np.generic):
            value = _collect(operand, values, steps, known)
        if value is None:
            return None
        operands.append(value)
    known[id(array)] = _Earlier(len(steps))
    steps.append(_Step(kernel, operands))
    return known[id(array)]


_MOST = 8
"""Steps of the longest function that is decomposed."""


def zeroed(condition: Any, array: Any, out: Any = None) -> Any:
    """0 where the condition holds, the array's elements elsewhere."""
    if out is None:
        out = np.empty_like(array)
    choose_tile(condition, 0, array, out)
    return out
