"""Straight-line Python, and the arrays that its variables stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Untraceable(Exception):
    """What runs is more than straight-line text can say."""


class Variable:
    """A variable of the text.

    Attributes:
        name: what it is called there.
        value: what it was in the round that was traced.
        constant: whether it is the same object in every round.
    """

    __slots__ = ("constant", "name", "value")

    def __init__(self, name: str, value: Any, constant: bool) -> None:
        self.name = name
        self.value = value
        self.constant = constant


class StraightLine:
    """A function without parameters that is being written, one call after the other.

    Attributes:
        lines: its text so far: the variable that a line gives its value, "" for none, and the line.
        namespace: what the text refers to: functions, settings, and arrays that stay.
        least_deferred: elements from which on arrays are deferred, which the text cannot be.
    """

    def __init__(self, least_deferred: int) -> None:
        self.lines: list[tuple[str, str]] = []
        self.namespace: dict[str, Any] = {}
        self.least_deferred = least_deferred
        self._variables: dict[int, Variable] = {}
        self._kept: list[Any] = []
        self._names: dict[int, str] = {}

    # --- variables ------------------------------------------------------------------------------

    def constant(self, array: Any) -> Variable:
        """The variable of an array that is the same object in every round."""
        found = self._variables.get(id(array))
        if found is None:
            found = self.stand_for(array, Variable(self.refer(array), array, True))
        return found

    def stand_for(self, array: Any, variable: Variable) -> Variable:
        """Let a variable stand for an array of the traced round."""
        if type(array) is not np.ndarray and not isinstance(array, np.generic):
            raise Untraceable
        if array.size >= self.least_deferred or array.dtype.itemsize == 2:
            raise Untraceable
        self._kept.append(array)  # whose identity is its key
        self._variables[id(array)] = variable
        return variable

    def variable_of(self, array: Any) -> Variable:
        """The variable that stands for an array; raises Untraceable where none does."""
        found = self._variables.get(id(array))
        if found is None:
            raise Untraceable
        return found

    def refer(self, value: Any) -> str:
        """How the text refers to a value: by itself where that says all, else by a name."""
        if value is None or type(value) in (bool, int) or (type(value) is str and value.isalpha()):
            return repr(value)
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"k{len(self.namespace)}"
            self.namespace[name] = value
        return name

    # --- lines ----------------------------------------------------------------------------------

    def call(self, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """Write a call and do it. Variables among the operands, and in lists among them, are those
        of the text; everything else stays as it is.

        Returns:
            The variable of the result; a tuple of them where it is one, None for None.
        """
        given = ", ".join([self._text(operand) for operand in operands])
        result = function(*[_value(operand) for operand in operands])
        for operand in operands:
            if isinstance(operand, Variable) and result is operand.value:
                return operand  # a gradient that is passed on
        name = f"v{len(self.lines)}"
        self.lines.append((name, f"{self.refer(function)}({given})"))
        if type(result) in (tuple, list):
            parts: list[Variable | None] = []
            for number, part in enumerate(result):
                if part is None:
                    parts.append(None)
                    continue
                self.lines.append((f"{name}_{number}", f"{name}[{number}]"))
                parts.append(self._result(f"{name}_{number}", part))
            return tuple(parts)
        return None if result is None else self._result(name, result)

    def write(self, line: str) -> None:
        """Write a line that gives no variable its value."""
        self.lines.append(("", line))

    def _result(self, name: str, result: Any) -> Variable:
        return self.stand_for(result, Variable(name, result, False))

    def _text(self, operand: Any) -> str:
        if isinstance(operand, Variable):
            return operand.name
        if type(operand) is list and any(isinstance(each, Variable) for each in operand):
            return "[" + ", ".join([self._text(each) for each in operand]) + "]"
        return self.refer(operand)

    def function(self, returned: Sequence[Variable]) -> Callable[[], Any]:
        """The function, which returns the values of some variables."""
        text = ["def round():"]
        text += [f"    {f'{name} = ' if name else ''}{line}" for name, line in self.lines]
        text.append(f"    return ({''.join(f'{variable.name}, ' for variable in returned)})")
        exec(compile("\n".join(text), "<round of a loop>", "exec"), self.namespace)
        return self.namespace["round"]


def _value(operand: Any) -> Any:
    if isinstance(operand, Variable):
        return operand.value
    if type(operand) is list:
        return [_value(each) for each in operand]
    return operand


def same(left: Any, right: Any) -> bool:
    """Whether two arrays are the same in kind, shape, layout and every bit."""
    return (
        type(left) is type(right)
        and left.dtype is right.dtype
        and left.shape == right.shape
        and left.strides == right.strides
        and left.tobytes() == right.tobytes()
    )
