"""The ufuncs that a forward function or a rule comes to.

Functions that read deferred arrays show what they compute element by element when they are given
some: a plan, whose steps can be written one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.arrays.fusion.lazy import DEFERRED, Constant, Pointwise, Source
from gradcli.arrays.fusion.tile_kernels import choose_block, positive_part
from gradcli.errors import GradcliError


class Variable:
    """A variable of the text.

    Attributes:
        name: what it is called there.
        value: what it was in the round that was traced.
        constant: whether it is the same object in every round.
        own: whether the round made it, so that its memory may be used again.
    """

    __slots__ = ("constant", "name", "own", "value")

    def __init__(self, name: str, value: Any, *, constant: bool = False, own: bool = True) -> None:
        self.name = name
        self.value = value
        self.constant = constant
        self.own = own and not constant


class Earlier(NamedTuple):
    """The result of an earlier step."""

    number: int


class Step(NamedTuple):
    """One ufunc and its operands: variables, numbers, results of earlier steps."""

    kernel: Any
    operands: list[Any]


def elementwise_steps(function: Callable[..., Any], operands: Sequence[Any]) -> list[Step]:
    """What a function does to arrays, as ufuncs; empty where that cannot be seen."""
    sources: dict[int, Any] = {}
    given = []
    for operand in operands:
        if isinstance(operand, Variable):
            array = type(operand.value) is np.ndarray
            given.append(Source(operand.value) if array else operand.value)
            sources[id(given[-1])] = operand
        elif type(operand) is np.ndarray and not operand.ndim:  # a number that was promoted
            given.append(operand[()])
            sources[id(given[-1])] = operand
        else:
            given.append(operand)
    try:
        result = function(*given)
    except (GradcliError, TypeError, ValueError, AttributeError):
        return []
    steps: list[Step] = []
    return steps if _collect(result, sources, steps, {}) is not None else []


def _collect(
    array: Any, sources: dict[int, Any], steps: list[Step], known: dict[int, Earlier]
) -> Any:
    """Add the steps that compute a deferred array; how the last of them is referred to."""
    if id(array) in sources:
        return sources[id(array)]
    if id(array) in known:
        return known[id(array)]
    if type(array) is Constant:
        return array.number
    if type(array) is not Pointwise or array.value is not None or len(steps) > _MOST:
        return None
    kernel, given = array.kernel, array.operands
    if kernel is choose_block and type(given[1]) is int and given[1] == 0:
        kernel, given = zeroed, (given[0], given[2])
    if kernel is np.maximum and type(given[0]) is int and given[0] == 0:
        kernel, given = positive_part, given[1:]
    if kernel not in (zeroed, positive_part) and not isinstance(kernel, np.ufunc):
        return None
    operands = []
    for operand in given:
        found = operand
        if type(operand) in DEFERRED or isinstance(operand, np.generic):
            found = _collect(operand, sources, steps, known)
        if found is None:
            return None
        operands.append(found)
    known[id(array)] = Earlier(len(steps))
    steps.append(Step(kernel, operands))
    return known[id(array)]


_MOST = 8
"""Steps of what is worth writing out."""


def zeroed(condition: Any, array: Any, out: Any = None) -> Any:
    """0 where the condition holds, the array's elements elsewhere."""
    if out is None:
        out = np.empty_like(array)
    choose_block(condition, 0, array, out)
    return out
