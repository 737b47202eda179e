"""The trace builder: records an array-level trace, call by call, from the arrays of one run, a
function of arrays as the ufuncs that it consists of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY, Constant, Pointwise, Source
from gradcli.arrays.fusion.tile_kernels import choose_tile, positive_part
from gradcli.arrays.layout.strides import copied_in_order
from gradcli.arrays.storage import own
from gradcli.errors import GradcliError
from gradcli.trace.ir import (
    Effect,
    Effects,
    GraphBreak,
    Inline,
    Instruction,
    Kernel,
    Operand,
    Stack,
    Trace,
    Value,
    same,
)

if TYPE_CHECKING:
    from gradcli.errors import Span


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


_LONGEST = 10_000
"""Instructions of the longest trace."""


class TraceBuilder:
    """Records instructions on arrays.

    Attributes:
        least_lazy: elements from which on arrays are lazy, which compiled code does not handle.
    """

    def __init__(self, least_lazy: int) -> None:
        self.trace = Trace()
        self.least_lazy = least_lazy
        self.span: Span | None = None
        self.stack: Stack = ()
        # By the `id` of the array, which the value keeps alive.
        self._values: dict[int, Value] = {}
        self._kept: list[Any] = []
        self._constants: set[Value] = set()

    # --- values -----------------------------------------------------------------------------------

    def constant(self, array: Any) -> Value:
        """The value of an array that is the same object in every run."""
        value = self._values.get(id(array))
        if value is None:
            value = self._keep(array, self.trace.value_of(array))
            self.trace.constants.append(value)
            self._constants.add(value)
        return value

    def zeros_like(self, value: Value) -> Value:
        """A constant of zeros, for calls that read only shape and dtype."""
        array = value.array
        return self.constant(np.broadcast_to(array.dtype.type(0), array.shape))

    def load(self, op: Inline, operands: Sequence[Operand], array: Any) -> Value:
        """Record how a run loads an array from its inputs."""
        value = self.stand_for(array, self.trace.value_of(array))
        self._add_load(op, operands, value)
        self.trace.inputs.append(value)
        return value

    def _add_load(self, op: Inline, operands: Sequence[Operand], value: Value) -> None:
        self._add(op, operands, (value,))

    def stand_for(self, array: Any, value: Value) -> Value:
        """Let a value stand for an array that the recorded run made or loaded."""
        if type(array) is np.ndarray and array.size >= self.least_lazy:
            raise GraphBreak(f"an array of {array.size:,} elements is computed lazily", code="B04")
        return self._keep(array, value)

    def _keep(self, array: Any, value: Value) -> Value:
        if type(array) is not np.ndarray and not isinstance(array, np.generic):
            raise GraphBreak(f"{type(array).__name__} is no array of NumPy's", code="B04")
        if array.dtype.itemsize == 2:
            raise GraphBreak(f"{array.dtype} is computed in float32 and rounded", code="B04")
        self._kept.append(array)  # its `id` is the key
        self._values[id(array)] = value
        return value

    def close(self) -> None:
        """Nothing more is recorded: arrays that no instruction reads or makes are let go."""
        self._values.clear()
        self._kept.clear()

    def knows(self, array: Any) -> bool:
        """Whether a value stands for an array."""
        return id(array) in self._values

    def value_of(self, array: Any) -> Value:
        """The value that stands for an array; raises GraphBreak where none does."""
        value = self._values.get(id(array))
        if value is None:
            raise GraphBreak("an array was made where nobody recorded it", code="B01")
        return value

    def is_constant(self, value: Value) -> bool:
        """Whether a value is the same object in every run."""
        return value in self._constants

    # --- instructions -----------------------------------------------------------------------------

    def call(
        self,
        function: Callable[..., Any] | Kernel,
        operands: Sequence[Operand],
        reads_lazy: bool = False,
        result: Any = None,
    ) -> Any:
        """Record a call, and make it unless its result is passed.

        Args:
            reads_lazy: whether it accepts lazy arrays, so that it can be decomposed into ufuncs.
            result: its result, if the call was made already.
        """
        if len(self.trace.instructions) > _LONGEST:
            raise GraphBreak(f"more than {_LONGEST:,} instructions", code="B03")
        called = function.function if isinstance(function, Kernel) else function
        if result is None:
            result = _result_of(called, operands)
        for operand in operands:
            if isinstance(operand, Value) and result is operand.array:
                return operand  # a gradient that is passed on unchanged
        if type(result) in (tuple, list):
            outputs = [None if part is None else self._new_value(part) for part in result]
            whole = function if isinstance(function, Kernel) else Kernel(called.__name__, called)
            self._add(Kernel(whole.name, called, True, whole.raises), operands, outputs)
            return tuple(outputs)
        if result is None:
            return None
        if reads_lazy and type(result) is np.ndarray:
            written = self._ufuncs(called, operands, result)
            if written is not None:
                return written
        value = self._new_value(result)
        self._add(function, operands, (value,))
        return value

    def effect(self, op: Any, operands: Sequence[Operand], **effects: Iterable[Value]) -> None:
        """Record an instruction that only has effects: `effect(op, operands, writes=[value])`."""
        known = {Effect(name): tuple(values) for name, values in effects.items()}
        self._add(op, operands, effects=known)

    def check(self, op: Any, operands: Sequence[Operand]) -> None:
        """Record a check of values, which raises where one does not hold."""
        self._add(op, operands, effects={Effect.CHECKS: ()})

    def _instruction(
        self,
        op: Any,
        operands: Sequence[Operand],
        outputs: Sequence[Value | None] = (),
        effects: Effects | None = None,
    ) -> Instruction:
        span, stack = self.span, self.stack
        return Instruction(op, tuple(operands), outputs, span=span, stack=stack, effects=effects)

    def _add(self, op: Any, operands: Sequence[Operand], *rest: Any, **settings: Any) -> None:
        self.trace.instructions.append(self._instruction(op, operands, *rest, **settings))

    def _new_value(self, array: Any) -> Value:
        return self.stand_for(array, self.trace.value_of(array))

    def _ufuncs(self, function: Any, operands: Sequence[Operand], wanted: Any) -> Value | None:
        """Record the ufuncs of a function; None, and no record, where results differ."""
        count = self.trace.count
        steps = ufuncs_of(function, operands, self.trace)
        if not steps or not same(steps[-1].results[0].array, wanted):
            self.trace.count = count
            return None
        for step in steps:
            step.span, step.stack = self.span, self.stack
            self.trace.instructions.append(step)
        (result,) = steps[-1].results
        result.array = wanted  # one array, so one `id`
        return self.stand_for(wanted, result)


def _result_of(function: Callable[..., Any], operands: Sequence[Operand]) -> Any:
    try:
        return function(*[array_of(operand) for operand in operands])
    except Exception as failure:  # it expects operands of another layout
        raise GraphBreak(
            f"the call failed when it was made again: {failure}", code="B02"
        ) from failure


def array_of(operand: Operand) -> Any:
    """The array or setting of an operand in the recorded run."""
    if isinstance(operand, Value):
        return operand.array
    if type(operand) is list:
        return [array_of(each) for each in operand]
    return operand
