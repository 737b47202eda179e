"""A trace as text, one line an instruction, as JAX prints a jaxpr:

%4: f32[2,3] = mul(%1, %3)   # loss = w * x  file:7   writes(%1)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.trace.ir import (
    ALIAS,
    Effect,
    Effects,
    Guard,
    Inline,
    Instruction,
    Operand,
    Trace,
    Value,
)

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
