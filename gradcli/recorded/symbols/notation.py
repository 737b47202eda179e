"""Decides how the call of a function is written: as an operator, a function or a method,
under names that a reader can look up: the language's, and those of PyTorch's operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import registry
from gradcli.recorded.symbols.tree import (
    Attribute,
    Call,
    Choice,
    Constant,
    Operation,
    Symbol,
    is_condition,
    is_number,
    lifted,
    rebuilt,
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


# --- names that a reader can look up --------------------------------------------------------------


_AS_FUNCTION = {
    "imaginary_part": "imag",
    "log_sigmoid": "logsigmoid",
    "real_part": "real",
}
"""Functions that a reader knows under another name."""


_LEFT_OUT = {"in_pairs": 0, "of_samples": 1}
"""Functions that say nothing of values, by the argument that stands for them."""

_LARGEST_INDEX = 16


def public(symbol: Symbol) -> Symbol | None:
    """A formula without functions and values of our own; None where it needs some."""
    if isinstance(symbol, Call) and symbol.function == "restore_dims":
        return _reshaped(symbol)
    # What is no value of a program's, such as a table that was made before, is left out.
    wanted = [p for p in symbol.parts if not isinstance(p, Constant) or _is_plain(p.value)]
    parts = [public(part) for part in wanted]
    written = tuple(part for part in parts if part is not None)
    if len(written) < len(parts):
        return None
    if not isinstance(symbol, Call) or symbol.method or symbol.function == "[]":
        return rebuilt(symbol, written) if written else symbol
    name = symbol.function
    if name in _LEFT_OUT:
        return written[_LEFT_OUT[name]]
    if name == "turned":
        return Attribute(written[0], "mH")
    if name == "inverse":
        return Operation("/", Constant(1), written[0])
    if name in _AS_FUNCTION:
        return Call(_AS_FUNCTION[name], written)
    renamed = Call(name, written)
    return renamed if is_known(renamed) or (name in registry and "." not in name) else None


def _reshaped(symbol: Call) -> Symbol | None:
    """`restore_dims(grad, singles(self.shape, dims), …)`: a gradient in its input's shape."""
    grad, sizes = public(symbol.arguments[0]), symbol.arguments[1]
    if grad is None or not isinstance(sizes, Call) or sizes.function != "singles":
        return None
    return Call("reshape", (grad, sizes.arguments[0]), True)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.size <= _LARGEST_INDEX
    return value is None or isinstance(value, (bool, int, float, complex, str, slice, DType))
