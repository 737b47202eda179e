"""Decides how the call of a function is written: as an operator, a function or a method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import registry
from gradcli.recorded.symbols.tree import (
    Call,
    Choice,
    Constant,
    Operation,
    Symbol,
    is_condition,
    is_number,
    lifted,
)

OPERATORS = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/",
    "true_divide": "/", "divide": "/", "pow": "**", "power": "**", "eq": "==", "equal": "==",
    "ne": "!=", "not_equal": "!=", "lt": "<", "less": "<", "le": "<=", "less_equal": "<=",
    "gt": ">", "greater": ">", "ge": ">=", "greater_equal": ">=", "mm": "@", "bmm": "@",
    "matmul": "@", "floor_divide": "//", "remainder": "%", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "bitwise_left_shift": "<<", "bitwise_right_shift": ">>",
}  # fmt: skip
"""Functions of two operands that are written as an operator, by the catalogue's and NumPy's name.
"""

SIGNS = {"neg": "-", "negative": "-", "bitwise_not": "~", "invert": "~"}

_LOGIC = {"logical_and": "&", "logical_or": "|", "logical_not": "~"}
"""Functions of conditions, which are written as an operator too."""

BUILTINS = frozenset({"all", "any", "complex", "max", "min", "round", "sum", "trace"})
"""Plain names that a program reads as Python's own functions."""

_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""Functions of two tensors, and what they are called where one is a number."""


def call_of(name: str, args: Sequence[Any]) -> Call:
    """A call by name; as a method where a plain name is none of the catalogue's functions."""
    plain = name in catalogue.modules["torch"] and name not in BUILTINS
    method = name in catalogue.methods and not plain
    if name in BUILTINS and not method:
        name = f"torch.{name}"
    return Call(name, tuple(lifted(each) for each in args), method)


def is_elementwise(name: str) -> bool:
    """Whether a function computes each element of a result by itself, in floating point."""
    op = registry.get(name.removeprefix("math."))
    return op is not None and op.pointwise and bool(op.rules)


def in_language(symbol: Symbol) -> bool:
    """Whether a program can compute an expression: all that it calls has a name there."""
    return not any(isinstance(part, Call) and not is_known(part) for part in symbol.walk())


def is_known(call: Call) -> bool:
    """Whether a call is one of the language."""
    name = call.function
    if call.method:
        return name in catalogue.methods
    if name in ("", "max", "min") or name.startswith("math."):
        return True
    name = name.removeprefix("torch.")
    return name in catalogue.modules["torch"] or name in catalogue.modules["torch.special"]


def shown(name: str, args: Sequence[Any]) -> Symbol | None:
    """What is written otherwise than as a call, by the catalogue's and by NumPy's name."""
    operands = tuple(lifted(each) for each in args)
    if name in OPERATORS:
        return Operation(OPERATORS[name], *operands[:2])
    if name in SIGNS:
        return Operation(SIGNS[name], operands[0])
    if name in _LOGIC and all(is_condition(each) for each in operands):
        if name == "logical_not" and is_number(operands[0]):
            return Operation("==", operands[0], Constant(False))
        return Operation(_LOGIC[name], *operands)
    if name == "where" and is_number(operands[0]):
        return Choice(*operands)
    if hasattr(math, name) and all(is_number(each) for each in operands):
        return Call(f"math.{name}", operands)
    if name in _BOUNDS and any(is_number(each) for each in operands):
        one, other = operands
        return Call(_BOUNDS[name], (other, one) if is_number(one) else (one, other))
    return None


def rounded_quotient(self: Any, other: Any, rounding_mode: Any) -> Symbol:
    """The quotient rounded down, or to zero."""
    if rounding_mode == "floor":
        return Operation("//", lifted(self), lifted(other))
    return Call("trunc", (Operation("/", lifted(self), lifted(other)),))


def is_default(value: Any) -> bool:
    """Whether an argument leaves an op as its operator is: `alpha=1`."""
    return value is None or (not isinstance(value, Symbol) and value == 1)
