"""The trace IR: the operations of a run as instructions on values, with their spans and effects,
why recording ended, and how a run that takes another path leaves it.

A trace reads like a jaxpr of JAX and is in SSA form: each value is an input, a constant, or made
once by one instruction. There are two levels: at the tensor level an instruction calls an op, at
the array level a function of arrays. `gradcli.trace.passes` optimises a trace,
`gradcli.trace.codegen` makes Python of it. As text it has a line for each instruction:

    %4: f32[2,3] = mul(%1, %3)   # loss = w * x  file:7   writes(%1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import is_
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.errors import GradcliError
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.errors import Span


class GraphBreak(Exception):
    """What runs cannot be expressed in a trace.

    Attributes:
        reason: what could not be recorded, for a person.
        span: where it happened; None until a caller, which knows it, sets it.
        code: its kind, by the table in `gradcli help speed`: mostly, that there is no instruction
            for what runs.
    """

    def __init__(
        self, reason: str, hint: str | None = None, span: Span | None = None, code: str = "B06"
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.hint = hint
        self.span = span


Stack = tuple[tuple[str, "Span | None"], ...]
"""The functions that were running, outermost first, each with the span of its call."""


class Effect(Enum):
    """What an instruction does besides making its outputs; a pure one has no effects."""

    READS = "reads"
    """A number leaves a tensor: `item`, an `if` on it."""
    WRITES = "writes"
    """Memory is written, and its version counted."""
    GRAD = "grad"
    """A leaf's `.grad` changes."""
    RANDOM = "random"
    """Random numbers are drawn."""
    STATE = "state"
    """State that outlives the iteration changes: an optimizer's memory, a list's end, a count."""
    CLOCK = "clock"
    """The time is read, behind what is computed before and ahead of the rest."""
    CHECKS = "checks"
    """It may raise, depending on values."""
    SHOWS = "shows"
    """There is output."""
    ESCAPES = "escapes"
    """A tensor is made that the program may look at afterwards, on the memory of what it reads."""


class Value(Record):
    """A value of a trace: made once and never changed.

    Attributes:
        shape: its shape; None for what is no array, such as a number or a node of a graph.
        dtype: its dtype, NumPy's or the language's; the name of its kind for what is no array.
        device: the device of its memory.
        array: its array in the recorded run, None where that is not kept.
        maker: the instruction that makes it, noted at the tensor level: at that of arrays it would
            keep a long trace alive until the next collection.
    """

    number: int
    shape: tuple[int, ...] | None
    dtype: Any
    device: str = "cpu"
    name: str | None = None
    array: Any = None
    maker: Instruction | None = None

    def __repr__(self) -> str:
        return f"%{self.number}"


Operand = Any
"""A value, a literal, or a list or tuple of such."""

Effects = Mapping[Effect, Sequence[Value]]
"""The effects of an instruction, each with the values that it concerns."""


class Kernel(Record):
    """A function of arrays under the name of the op that it belongs to.

    Attributes:
        several: whether it returns a tuple or list, one part for each output.
        raises: whether it may raise for operands of the kinds that it was recorded with.
    """

    name: str
    function: Callable[..., Any]
    several: bool = False
    raises: bool = True


class Inline(Record):
    """A piece of Python that generated code contains instead of a call.

    Attributes:
        text: Python with `{0}`, `{1}` … for the inputs. An expression, which gives the output if
            there is one; or statements, which bind the outputs `{out0}`, `{out1}` … themselves.
        name: its name in print; None to print the text.
        raises: whether it may raise for operands of the types that it was recorded with.
        flat: what writes it down as steps of a flat program, called with the tape and the operands.
            It returns the output, if there is one; else it may return a function of arrays, and
            those, with which the steps are compared. None where there are no steps.
    """

    text: str
    name: str | None = None
    raises: bool = True
    flat: Callable[..., Any] | None = None

    @property
    def binds(self) -> bool:
        """Whether the text binds the outputs itself."""
        return "{out0}" in self.text


def placeholder(operands: list[Operand], value: Operand) -> str:
    """What stands for one more operand in the text of an `Inline`."""
    operands.append(value)
    return f"{{{len(operands) - 1}}}"


ALIAS = Inline("{0}", "alias")
"""A tensor that shows another one's memory and was not made by an op: `.data`, an unpacked saved
tensor.
"""


_NOTHING: Mapping[Any, Any] = {}


class Instruction:
    """One operation on values.

    Attributes:
        op: an op of the registry (tensor level), a function of arrays, a `Kernel` or an `Inline`.
        inputs: values and literals, in the order in which `op` takes them.
        outputs: the values that it makes, None for an absent output; empty where it has only
            effects.
        span: the source text of the operation, None outside a program.
    """

    __slots__ = ("_outputs", "effects", "inputs", "op", "params", "span", "stack")

    def __init__(
        self,
        op: Any,
        inputs: Sequence[Operand],
        outputs: Sequence[Value | None] = (),
        *,
        params: Mapping[str, Any] | None = None,
        span: Span | None = None,
        stack: Stack = (),
        effects: Effects | None = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        # Most make one: a trace of thousands goes without as many tuples.
        self._outputs: Any = outputs[0] if len(outputs) == 1 else outputs
        self.params: Mapping[str, Any] = _NOTHING if params is None else params
        self.span = span
        self.stack = stack
        self.effects: Effects = _NOTHING if effects is None else effects

    @property
    def outputs(self) -> Sequence[Value | None]:
        outputs = self._outputs
        return outputs if type(outputs) is tuple or type(outputs) is list else (outputs,)

    @property
    def reads(self) -> Iterator[Value]:
        """The values that it is computed from."""
        yield from values_in(self.inputs)
        yield from values_in(self.params.values())

    @property
    def results(self) -> list[Value]:
        """The values that it makes."""
        return [value for value in self.outputs if value is not None]

    def copy(
        self, inputs: Sequence[Operand] | None = None, params: Mapping[str, Any] | None = None
    ) -> Instruction:
        """The same instruction with other inputs or settings."""
        return Instruction(
            self.op,
            self.inputs if inputs is None else inputs,
            self.outputs,
            params=self.params if params is None else params,
            span=self.span,
            stack=self.stack,
            effects=self.effects,
        )


class Kind(Enum):
    """The kinds of guards."""

    IDENTITY = "identity"
    """The same object, or the same objects one by one where a tuple is expected."""
    MODE = "mode"
    """A setting of the session: grad mode, default dtype, whether a recorder is installed."""
    VALUE = "value"
    """A value: a number, the length of a list, a check of elements that passed."""


class Guard(Record):
    """A condition that must hold as it did when the trace was recorded.

    Attributes:
        read: what reads it: a function, or a piece of Python for generated code.
        inputs: the arguments of the function, or the operands of the piece.
    """

    kind: Kind
    read: Callable[..., Any] | Inline
    expected: Operand
    inputs: Sequence[Operand] = ()
    span: Span | None = None

    @property
    def values(self) -> Iterator[Value]:
        """The values that it reads."""
        yield from values_in((*self.inputs, self.expected))

    def holds(self) -> bool:
        """Whether it holds now. A read that fails with an error of the language does not."""
        assert not isinstance(self.read, Inline)
        try:
            value = self.read(*self.inputs)
        except (GradcliError, LookupError):
            return False
        if self.kind is not Kind.IDENTITY:
            return bool(value == self.expected)
        if type(self.expected) is tuple:
            return len(value) == len(self.expected) and all(map(is_, value, self.expected))
        return value is self.expected


class Trace:
    """What ran: instructions, and the guards under which they may run again.

    Attributes:
        inputs: the values that are passed to each run of the trace.
        constants: the values that are the same objects in every run.
        prologue: the loop-invariant instructions, computed once before all runs.
        instructions: what each run does, in order.
        epilogue: instructions that only the outputs need, computed when they are read.
    """

    def __init__(self) -> None:
        self.shapes: dict[tuple[int, ...], tuple[int, ...]] = {}  # each of them once
        self.inputs: list[Value] = []
        self.constants: list[Value] = []
        self.prologue: list[Instruction] = []
        self.instructions: list[Instruction] = []
        self.epilogue: list[Instruction] = []
        self.outputs: list[Value] = []
        self.guards: list[Guard] = []
        self.breaks: list[GraphBreak] = []
        self.count = 0

    def value(self, shape: tuple[int, ...] | None, dtype: Any, **known: Any) -> Value:
        """A new value."""
        value = Value(self.count, shape, dtype, **known)
        self.count += 1
        return value

    def value_of(self, array: Any, **known: Any) -> Value:
        """A new value for an array of the run that is recorded."""
        shape = tuple(array.shape)
        shape = self.shapes.setdefault(shape, shape)
        return self.value(shape, array.dtype, array=array, **known)

    def add(self, instruction: Instruction) -> Instruction:
        """Add an instruction at the end."""
        for value in instruction.results:
            value.maker = instruction
        self.instructions.append(instruction)
        return instruction

    def copy(self, **changed: Any) -> Trace:
        """A trace that shares all with this one but the attributes that are passed."""
        copy = Trace()
        for name, own in vars(self).items():
            setattr(copy, name, changed.get(name, list(own) if isinstance(own, list) else own))
        return copy

    @property
    def effects(self) -> dict[Effect, list[Value]]:
        """The effects of all instructions, each with the values that it concerns."""
        concerned: dict[Effect, dict[Value, None]] = {}
        for instruction in self.instructions:
            for effect, values in instruction.effects.items():
                concerned.setdefault(effect, {}).update(dict.fromkeys(values))
        return {effect: list(values) for effect, values in concerned.items()}

    @property
    def lasting(self) -> set[Value]:
        """The values that are the same in every run: constants, and what the prologue makes."""
        values = set(self.constants)
        for instruction in self.prologue:
            values.update(instruction.results)
        return values


def values_in(operands: Any) -> Iterator[Value]:
    """The values among some operands, and in lists and tuples among them."""
    for operand in operands:
        if isinstance(operand, Value):
            yield operand
        elif type(operand) is list or type(operand) is tuple:
            yield from values_in(operand)


def replaced(operand: Operand, by: Mapping[Value, Operand]) -> Operand:
    """An operand with some of its values replaced."""
    if isinstance(operand, Value):
        return by.get(operand, operand)
    if type(operand) is list or type(operand) is tuple:
        return type(operand)([replaced(each, by) for each in operand])
    return operand


class SideExit(BaseException):
    """A run takes another path than the recorded one, or finds values of another kind; it leaves
    nothing of itself. No `except` of a program's, or of the host's, is for it.

    Attributes:
        reason: what the run found, for a person.
        span: where the program asked for it.
    """

    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


OTHER_KIND = "an array of another dtype, shape or layout comes out"
"""Why a run is left whose arrays are not those that its instructions are for."""


def kind_of(array: Any) -> tuple[Any, ...]:
    """How an array lies in memory: its type, dtype, shape and strides."""
    return type(array), array.dtype, array.shape, array.strides


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
    if bits is None or left.dtype.hasobject:  # references have no view as integers
        return left.tobytes() == right.tobytes()
    return bool((left.view(bits) == right.view(bits)).all())


_BITS = {1: np.uint8, 4: np.uint32, 8: np.uint64}
"""Integer dtypes by their size in bytes."""


_SHORT = {
    "bfloat16": "bf16",
    "complex64": "c64",
    "complex128": "c128",
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}
"""The short names of dtypes."""

_WIDEST = 44
"""Characters of an instruction beyond which its comment is not aligned with the others."""

_LONGEST = 60
"""Characters of source text that a comment shows."""


def lines_of(trace: Trace) -> list[str]:
    """A trace as lines of text."""
    lines = []
    for title, values in (("inputs", trace.inputs), ("constants", trace.constants)):
        if values:
            lines.append(f"{title}: {', '.join(map(declared, values))}")
    sections = (("once", trace.prologue), ("", trace.instructions), ("late", trace.epilogue))
    for title, instructions in sections:
        if title and instructions:
            lines.append(f"{title}:")
        lines += _lined_up([(call_text(each), comment(each)) for each in instructions])
    if trace.outputs:
        lines.append(f"outputs: {', '.join(map(repr, trace.outputs))}")
    if trace.effects:
        lines.append(f"effects: {'  '.join(effect_texts(trace.effects))}")
    lines += [f"guard: {guard_text(each)}" for each in trace.guards]
    for each in trace.breaks:
        place = "" if each.span is None else f"  {_place(each.span)}"
        hint = "" if each.hint is None else f"; {each.hint}"
        lines.append(f"break: {each.code} {each.reason}{place}{hint}")
    return lines


def text_of(trace: Trace) -> str:
    return "\n".join(lines_of(trace))


def type_text(value: Value) -> str:
    """The type of a value: `f32[2,3]`, with its device where that is not the host; `node`."""
    if value.shape is None:
        return str(value.dtype)
    name = getattr(value.dtype, "name", str(value.dtype))
    device = "" if value.device == "cpu" else f"@{value.device}"
    return f"{_SHORT.get(name, name)}[{','.join(map(str, value.shape))}]{device}"


def declared(value: Value) -> str:
    """A value with its type, and the program's name for it where it was not computed."""
    name = f" {value.name}" if value.name and value.maker is None else ""
    return f"{value!r}: {type_text(value)}{name}"


def op_name(op: Any) -> str:
    for attribute in ("name", "node_name", "__name__"):
        name = getattr(op, attribute, None)
        if type(name) is str and name:
            return name
    return type(op).__name__


def call_text(instruction: Instruction) -> str:
    """An instruction without its comment: `%4: f32[2,3] = mul(%1, %3)`."""
    op, inputs = instruction.op, [operand_text(each) for each in instruction.inputs]
    if isinstance(op, Inline) and op.name is None:
        outputs = {f"out{n}": repr(value) for n, value in enumerate(instruction.outputs)}
        call = op.text.format(*inputs, **outputs)
        if op.binds:
            return call
    else:
        settings = [each for each in instruction.params.items() if each[1] is not None]
        inputs += [f"{name}={operand_text(each)}" for name, each in settings]
        call = f"{op_name(op)}({', '.join(inputs)})"
    if not instruction.outputs:
        return call
    outputs_text = ", ".join(["_" if v is None else declared(v) for v in instruction.outputs])
    return f"{outputs_text} = {call}"


def operand_text(operand: Operand) -> str:
    """An operand: a value by its number, a literal as it is spelled, anything else by its kind."""
    if isinstance(operand, Value):
        return repr(operand)
    if operand is None or isinstance(operand, (bool, int, float, complex, str)):
        return repr(operand)
    if type(operand) is list:
        return f"[{', '.join(map(operand_text, operand))}]"
    if type(operand) is tuple:
        comma = "," if len(operand) == 1 else ""
        return f"({', '.join(map(operand_text, operand))}{comma})"
    if isinstance(operand, slice):
        parts = (operand.start, operand.stop, operand.step)
        return ":".join(["" if part is None else operand_text(part) for part in parts])
    if isinstance(operand, (np.ndarray, np.generic)) and not operand.ndim:
        return str(operand)  # a number that was promoted
    if isinstance(operand, (DType, np.dtype, np.ufunc, type, FunctionType, BuiltinFunctionType)):
        return op_name(operand)
    return type(operand).__name__  # any object of a program, whose attributes are its own


def comment(instruction: Instruction) -> str:
    """Where an instruction comes from, and its effects; "" where it has neither."""
    parts = []
    span = instruction.span
    if span is not None:
        results = instruction.results
        text = " ".join(span.text.split())
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        name = results[0].name if len(results) == 1 else None
        is_whole = text == name or text.startswith((f"{name} ", f"{name}="))
        # An alias has its span from what reads it, which does not bind the name.
        binds = instruction.op is not ALIAS and Effect.WRITES not in instruction.effects
        assigned = name and not is_whole and binds
        within = "".join([f"  in {called}" for called, _ in instruction.stack[-1:]])
        parts.append(f"{f'{name} = ' if assigned else ''}{text}  {_place(span)}{within}")
    parts += effect_texts(instruction.effects)
    return f"# {'   '.join(parts)}" if parts else ""


def effect_texts(effects: Effects) -> Iterator[str]:
    """Effects as text: `writes(%1)`, `random`."""
    for effect, values in effects.items():
        about = f"({', '.join(map(repr, values))})" if values else ""
        yield f"{effect.value}{about}"


def guard_text(guard: Guard) -> str:
    """A guard as text: `identity %3.__class__ is MulBackward0`."""
    inputs = [operand_text(each) for each in guard.inputs]
    if isinstance(guard.read, Inline):
        read = guard.read.text.format(*inputs)
    else:
        read = f"{op_name(guard.read)}({', '.join(inputs)})"
    sign = "is" if guard.kind.value == "identity" else "=="
    place = "" if guard.span is None else f"  {_place(guard.span)}"
    return f"{guard.kind.value} {read} {sign} {operand_text(guard.expected)}{place}"


def _place(span: Any) -> str:
    return span.origin or f"{span.source.name}:{span.line}"


def _lined_up(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Lines with their comments aligned in one column, except lines that are too long."""
    rows = list(rows)
    short = [len(text) for text, behind in rows if behind and len(text) <= _WIDEST]
    width = max(short, default=0)
    for text, behind in rows:
        yield f"{text:{width}}   {behind}" if behind else text
