"""Straight-line Python, and the arrays that its variables stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.trace.ufuncs import Earlier, Step, Variable, elementwise_steps


class Untraceable(Exception):
    """What runs is more than straight-line text can say."""


class Line:
    """One line of the text: a call that gives a variable its value.

    Attributes:
        name: the variable; "" where the line is `text` as it is.
        call: the function, as the text refers to it.
        operands: what it is called with.
        value: the result in the round that was traced.
        elementwise: whether it takes, as last argument, memory for the result, which may be that of
            an operand of the same layout.
    """

    __slots__ = ("call", "elementwise", "name", "operands", "text", "value")

    def __init__(
        self,
        name: str,
        call: str,
        operands: Sequence[Any],
        value: Any = None,
        elementwise: bool = False,
        text: str = "",
    ) -> None:
        self.name = name
        self.call = call
        self.operands = operands
        self.value = value
        self.elementwise = elementwise
        self.text = text


class StraightLine:
    """A function without parameters that is being written, one call after the other.

    Attributes:
        lines: what is written so far.
        namespace: what the text refers to: functions, settings, and arrays that stay.
        least_deferred: elements from which on arrays are deferred, which the text cannot be.
        given: the arrays that the round is given, in the round that was traced.
        looks: checks of arrays that stay, which must pass as they did, and what they are called
            with.
    """

    def __init__(self, least_deferred: int) -> None:
        self.lines: list[Line] = []
        self.namespace: dict[str, Any] = {}
        self.least_deferred = least_deferred
        self._variables: dict[int, Variable] = {}
        self._kept: list[Any] = []
        self._names: dict[int, str] = {}
        self.given: list[Any] = []
        self.looks: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._first_effect: int | None = None

    # --- variables ------------------------------------------------------------------------------

    def constant(self, array: Any) -> Variable:
        """The variable of an array that is the same object in every round."""
        found = self._variables.get(id(array))
        if found is None:
            found = self.stand_for(array, Variable(self.refer(array), array, constant=True))
        return found

    def standing_in(self, variable: Variable) -> Variable:
        """The variable of zeros of the same shape and dtype, for calls that read no more."""
        array = variable.value
        return self.constant(np.broadcast_to(array.dtype.type(0), array.shape))

    def stand_for(self, array: Any, variable: Variable) -> Variable:
        """Let a variable stand for an array of the traced round."""
        if type(array) is not np.ndarray and not isinstance(array, np.generic):
            raise Untraceable
        if array.size >= self.least_deferred or array.dtype.itemsize == 2:
            raise Untraceable
        self._kept.append(array)  # whose identity is its key
        self._variables[id(array)] = variable
        return variable

    def constants(self) -> list[Any]:
        """The arrays that are the same objects in every round."""
        return [each.value for each in self._variables.values() if each.constant]

    def knows(self, array: Any) -> bool:
        """Whether a variable stands for an array."""
        return id(array) in self._variables

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

    def call(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        deferrable: bool = False,
        result: Any = None,
    ) -> Any:
        """Write a call, and do it if its result is not known. Variables among the operands, and in
        lists among them, are those of the text; everything else stays as it is.

        Args:
            function: what is called.
            operands: what with.
            deferrable: whether it reads deferred arrays too.
            result: what came out of it, if that is known.

        Returns:
            The variable of the result; a tuple of them where it is one, None for None.
        """
        if len(self.lines) > _LONGEST:
            raise Untraceable
        if result is None:
            result = _result_of(function, operands)
        for operand in operands:
            if isinstance(operand, Variable) and result is operand.value:
                return operand  # a gradient that is passed on
        if type(result) in (tuple, list):
            whole = self._line(function, operands, result)
            parts = tuple([self._part(whole, n, part) for n, part in enumerate(result)])
            # It would keep the memory of its parts.
            self.lines.append(Line("", "", (), text=f"{whole} = None"))
            return parts
        if result is None:
            return None
        if deferrable and type(result) is np.ndarray:
            steps = elementwise_steps(function, operands)
            if steps:
                return self._steps(steps, result) or self._result(function, operands, result)
        return self._result(function, operands, result)

    def write(self, text: str, *variables: Variable) -> None:
        """Write a line that has an effect, and reads some variables."""
        if self._first_effect is None:
            self._first_effect = len(self.lines)
        self.lines.append(Line("", "", variables, text=text))

    def check(self, text: str, read: Sequence[Variable], after: Line | None = None) -> None:
        """Write a line that may raise ahead of all effects, as a round that fails is run again from
        its beginning.

        Args:
            text: the line.
            read: what it reads.
            after: the line behind which stand those that it needs, which go with it; None for none.

        Raises:
            Untraceable: where what it reads is not there yet, or may be another by then.
        """
        since = len(self.lines) if after is None else self.lines.index(after) + 1
        lines = [*self.lines[since:], Line("", "", read, text=text)]
        del self.lines[since:]
        if not self._put_ahead(lines):
            raise Untraceable

    def number(self, text: str, read: Sequence[Variable], value: float) -> Variable:
        """Write a line that computes a number, ahead of all effects if it may stand there."""
        line = Line(f"v{len(self.lines)}", "", read, text=text)
        if not self._put_ahead([line]):
            self.lines.append(line)
        return Variable(line.name, np.float64(value))

    def _put_ahead(self, lines: list[Line]) -> bool:
        """Write lines ahead of all effects; False where they would not read the same there."""
        place = len(self.lines) if self._first_effect is None else self._first_effect
        if place < len(self.lines):
            there = {line.name for line in (*self.lines[:place], *lines)}
            needed = [variable for line in lines for variable in variables_in(line.operands)]
            if any(variable.constant or variable.name not in there for variable in needed):
                return False
            self._first_effect = place + len(lines)
        self.lines[place:place] = lines
        return True

    def read(self, text: str, array: Any) -> Variable:
        """Write a line that reads an array which the round is given."""
        name = f"v{len(self.lines)}"
        self.lines.append(Line(name, "", (), array, text=text))
        self.given.append(array)
        return self.stand_for(array, Variable(name, array, own=False))

    def _line(self, function: Any, operands: Sequence[Any], value: Any, **settings: Any) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(Line(name, self.refer(function), operands, value, **settings))
        return name

    def _result(self, function: Any, operands: Sequence[Any], result: Any) -> Variable:
        name = self._line(function, operands, result)
        return self.stand_for(result, Variable(name, result))

    def _part(self, whole: str, number: int, part: Any) -> Variable | None:
        if part is None:
            return None
        name = f"{whole}_{number}"
        self.lines.append(Line(name, "", (), part, text=f"{whole}[{number}]"))
        return self.stand_for(part, Variable(name, part))

    def _steps(self, steps: list[Step], wanted: Any) -> Variable | None:
        """Write the steps that a function comes to; None, and nothing is written, if they do not
        give what it gave.
        """
        results: list[Variable] = []
        for step in steps:
            operands = [results[o.number] if type(o) is Earlier else o for o in step.operands]
            value = step.kernel(*[_value(operand) for operand in operands])
            name = self._line(step.kernel, operands, value, elementwise=True)
            results.append(Variable(name, value))
        if not same(results[-1].value, wanted):
            del self.lines[-len(steps) :]
            return None
        results[-1].value = wanted  # there is one array then, and one identity
        return self.stand_for(wanted, results[-1])

    # --- text -------------------------------------------------------------------------------------

    def statement(self, line: Line, memory: str = "") -> str:
        """A line as Python; `memory` names an array that the result may have the memory of."""
        given = [self._operand(operand) for operand in line.operands]
        call = line.text or f"{line.call}({', '.join([*given, memory] if memory else given)})"
        return f"{line.name} = {call}" if line.name else call

    def call_of(self, function: Callable[..., Any], operands: Sequence[Any]) -> str:
        """The text of a call."""
        return f"{self.refer(function)}({', '.join(map(self._operand, operands))})"

    def _operand(self, operand: Any) -> str:
        if isinstance(operand, Variable):
            return operand.name
        if type(operand) is list and any(isinstance(each, Variable) for each in operand):
            return "[" + ", ".join([self._operand(each) for each in operand]) + "]"
        return self.refer(operand)


_LONGEST = 2000
"""Lines of the longest text."""


def variables_in(operands: Sequence[Any]) -> Iterator[Variable]:
    """The variables among some operands, and in lists among them."""
    for operand in operands:
        if isinstance(operand, Variable):
            yield operand
        elif type(operand) is list:
            yield from variables_in(operand)


def _result_of(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    try:
        return function(*[_value(operand) for operand in operands])
    except Exception as failure:  # it is for operands that lie otherwise
        raise Untraceable from failure


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
        and same_bits(left, right)
    )


def same_bits(left: Any, right: Any) -> bool:
    """Whether two arrays of one shape and dtype hold the same bits."""
    bits = _BITS.get(left.itemsize)
    if bits is None:
        return left.tobytes() == right.tobytes()
    return bool((left.view(bits) == right.view(bits)).all())


_BITS = {1: np.uint8, 4: np.uint32, 8: np.uint64}
"""Integers by their size."""
