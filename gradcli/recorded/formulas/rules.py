"""The formulas of the catalogue's entries, read from their rules with symbols.

A formula is the rule itself, so it cannot disagree with the number that the rule gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gradcli.errors import GradcliError
from gradcli.ops.definition.op import Function, Op, parameters_of
from gradcli.recorded.symbols.reading import Reading
from gradcli.recorded.symbols.tree import (
    Attribute,
    Call,
    Constant,
    Opaque,
    Operation,
    Symbol,
    Unreadable,
    in_language,
    lifted,
)

Arguments = Mapping[str, Any]
_NONE: Arguments = MappingProxyType({})


def forward_formula(op: Op, arguments: Arguments = _NONE) -> Symbol | None:
    """What an entry computes, None where symbols cannot read its forward function.

    Args:
        arguments: values of arguments, `keepdim` or `dims`; the others appear by name.
    """
    reading = Reading()
    operands = [_operand(reading, op, name, arguments) for name in op.parameters]
    try:
        value = reading.call(op.forward, *operands)
    except (Unreadable, GradcliError):
        return None
    return value if isinstance(value, Symbol) and in_language(value) else None


def derivative_formulas(op: Op, arguments: Arguments = _NONE) -> dict[str, Symbol | None]:
    """The gradient of each differentiable input, None where there is none.

    A rule that symbols cannot read is `Opaque`: what it is a function of.

    Args:
        arguments: values of arguments, `keepdim` or `dims`; the others appear by name.
    """
    if op.joint is not None:
        gradient = _rule(op, op.joint, arguments)
        if isinstance(gradient, (tuple, list)) and len(gradient) == len(op.inputs):
            return {
                name: None if each is None else lifted(each)
                for name, each in zip(op.inputs, gradient, strict=True)
            }
        opaque = _opaque(op, op.joint, arguments)
        return dict.fromkeys(op.inputs, opaque)
    formulas: dict[str, Symbol | None] = {}
    for name, rule in op.rules.items():
        gradient = _rule(op, rule, arguments)
        if isinstance(gradient, (tuple, list)):
            gradient = _opaque(op, rule, arguments)
        formulas[name] = None if gradient is None else as_read(lifted(gradient))
    return formulas


def as_read(symbol: Symbol) -> Symbol:
    """A formula with what a reader has shorter words for: `where` for zeros that are filled in
    places, and equality without the case that both are NaN.
    """
    parts = tuple(map(as_read, symbol.parts))
    read = symbol.of_parts(parts) if parts else symbol
    if isinstance(read, Call) and read.function == "masked_fill" and len(parts) == 3:
        zeros, mask, value = parts
        if isinstance(zeros, Call) and zeros.function == "zeros":
            return Call("where", (mask, value, Constant(0)))
    if isinstance(read, Operation) and read.operator == "|" and _are_nan(*parts):
        return parts[0]
    return read


def _are_nan(equal: Symbol, both: Symbol) -> bool:
    """Whether two conditions are that two values are equal, and that neither is a number."""
    if not isinstance(equal, Operation) or equal.operator != "==":
        return False
    one, other = map(str, equal.operands)
    return str(both) == f"({one} != {one}) & ({other} != {other})"


def _rule(op: Op, rule: Function, arguments: Arguments) -> Any:
    reading = Reading()
    operands = [_operand(reading, op, name, arguments) for name in parameters_of(rule)]
    try:
        return reading.call(rule, *operands)
    except Unreadable:
        return _opaque(op, rule, arguments)
    except GradcliError:
        return None  # PyTorch defines no derivative


def _opaque(op: Op, rule: Function, arguments: Arguments) -> Opaque:
    reading = Reading()
    names = [name for name in parameters_of(rule) if name != "needs"]
    operands = [_operand(reading, op, name, arguments) for name in names]
    flat = [
        part
        for operand in operands
        for part in (operand if isinstance(operand, list) else [operand])
    ]
    return Opaque(op.node_name, tuple(lifted(part) for part in flat))


def _operand(reading: Reading, op: Op, name: str, arguments: Arguments) -> Any:
    """What a rule's or a forward function's parameter is given."""
    if name in arguments:
        return arguments[name]
    if name == "needs":
        return (True,) * len(op.inputs)
    if name == "grads":
        if op.outputs == ("*",):
            return reading.name("grads")
        return [
            reading.name(f"grad_{output}") if number in op.differentiable else None
            for number, output in enumerate(op.outputs)
        ]
    if name.endswith("_strides") and name.removesuffix("_strides") in op.tensors:
        return ()  # formulas say nothing of memory
    if name.endswith("_sizes") and name.removesuffix("_sizes") in (*op.tensors, *op.lists):
        return Attribute(reading.name(name.removesuffix("_sizes")), "shape")
    # Formulas leave casts out.
    if name == "dtype":
        return None
    is_argument = name in op.parameters and name not in (*op.tensors, *op.lists)
    return reading.name(name, is_number=is_argument)
