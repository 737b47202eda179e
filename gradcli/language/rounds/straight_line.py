"""Straight-line Python, and the arrays that its variables stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from gradcli.language.rounds.elementwise import Earlier, Step, Variable, elementwise_steps


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
    """

    def __init__(self, least_deferred: int) -> None:
        self.lines: list[Line] = []
        self.namespace: dict[str, Any] = {}
        self.least_deferred = least_deferred
        self._variables: dict[int, Variable] = {}
        self._kept: list[Any] = []
        self._names: dict[int, str] = {}
        self._given: list[Any] = []
        self._first_effect: int | None = None

    # --- variables ------------------------------------------------------------------------------

    def constant(self, array: Any) -> Variable:
        """The variable of an array that is the same object in every round."""
        found = self._variables.get(id(array))
        if found is None:
            found = self.stand_for(array, Variable(self.refer(array), array, constant=True))
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
        self._given.append(array)
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

    # --- the functions --------------------------------------------------------------------------

    def functions(
        self, wanted: Sequence[Variable], changed: Sequence[Any]
    ) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
        """The text as two functions: the first has all effects, the second makes the values of some
        variables of what the first returns, when somebody wants to see them.

        Args:
            wanted: the variables.
            changed: the arrays that the text writes to.
        """
        early, late = self._parted(wanted, changed)
        made = {line.name for line in late}
        read = [*chain.from_iterable(variables_in(line.operands) for line in late), *wanted]
        kept = {each.name: each for each in read if not each.constant and each.name not in made}
        return (
            self._function("run_round()", self._text(early, list(kept.values())), kept),
            self._function(
                "finish(kept)",
                [f"({''.join(f'{name}, ' for name in kept)}) = kept", *map(self._statement, late)],
                [variable.name for variable in wanted],
            ),
        )

    def _function(self, head: str, body: Iterable[str], names: Iterable[str]) -> Callable[..., Any]:
        text = [f"def {head}:", *body, f"return ({''.join(f'{name}, ' for name in names)})"]
        exec(compile("\n    ".join(text), "<round of a loop>", "exec"), self.namespace)
        function: Callable[..., Any] = self.namespace[head.partition("(")[0]]
        return function

    def _parted(
        self, wanted: Sequence[Variable], changed: Sequence[Any]
    ) -> tuple[list[Line], list[Line]]:
        """The lines of a round, and those that only what is wanted needs: their operands are the
        same after it, and with floating numbers no call fails. What nothing needs is left out.
        """
        dtypes = {array.dtype for array in changed}
        # What a round is given may lie where the text writes to.
        given = [array for array in self._given if array.dtype in dtypes]
        moving = [*changed, *given]
        needed: set[str] = set()
        shown = {variable.name for variable in wanted}
        early, late = [], []
        for line in reversed(self.lines):
            read = list(variables_in(line.operands))
            if (
                not line.call
                or line.name in needed
                or getattr(line.value, "dtype", _NOTHING).kind != "f"
                or any(np.may_share_memory(v.value, each) for v in read for each in moving)
            ):
                early.append(line)
                needed.update(variable.name for variable in read)
            elif line.name in shown:
                late.append(line)
                shown.update(variable.name for variable in read)
        return early[::-1], late[::-1]

    def _text(self, lines: list[Line], returned: Sequence[Variable]) -> Iterator[str]:
        """Some lines; the memory of large arrays is used again, or let go, when they were read for
        the last time.
        """
        last: dict[str, int] = {}
        alive: dict[str, Any] = {}
        constants = [each.value for each in self._variables.values() if each.constant]
        for number, line in enumerate(lines):
            for variable in variables_in(line.operands):
                last[variable.name] = number
                alive[variable.name] = variable.value
        for variable in returned:
            last[variable.name] = len(lines)
            alive[variable.name] = variable.value
        for number, line in enumerate(lines):
            dying = [
                variable
                for variable in dict.fromkeys(variables_in(line.operands))
                if not variable.constant
                and last[variable.name] == number
                and variable.value.nbytes >= _LARGE
            ]
            for variable in dying:
                del alive[variable.name]
            memory = ""
            if line.elementwise:
                for variable in dying:
                    if variable.own and _may_take_over(
                        variable.value, line.value, (*alive.values(), *constants)
                    ):
                        memory = variable.name
                        break
            yield self._statement(line, memory)
            for variable in dying:
                if variable.name != line.name:
                    yield f"{variable.name} = None"

    def _statement(self, line: Line, memory: str = "") -> str:
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


_NOTHING = np.dtype(np.void)
"""The dtype of what is no array."""

_LONGEST = 2000
"""Lines of the longest text."""

_LARGE = 1 << 12
"""Bytes from which on memory is worth keeping an eye on."""


def variables_in(operands: Sequence[Any]) -> Iterator[Variable]:
    """The variables among some operands, and in lists among them."""
    for operand in operands:
        if isinstance(operand, Variable):
            yield operand
        elif type(operand) is list:
            yield from variables_in(operand)


def _may_take_over(old: Any, new: Any, alive: Iterable[Any]) -> bool:
    """Whether a result may have an operand's memory: it lies the same way, and nothing that is read
    later lies there.
    """
    return (
        old.shape == new.shape
        and old.strides == new.strides
        and old.dtype is new.dtype
        and not any(np.may_share_memory(old, each) for each in alive)
    )


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
