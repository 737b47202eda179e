"""Formulas in names that a reader can look up: the language's, and those of PyTorch's operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.dtypes import DType
from gradcli.ops.definition.op import registry
from gradcli.recorded.symbols.notation import is_known
from gradcli.recorded.symbols.substitution import rebuilt
from gradcli.recorded.symbols.tree import Attribute, Call, Constant, Operation, Symbol

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
    return renamed if is_known(renamed) or _is_pytorchs(name) else None


def _reshaped(symbol: Call) -> Symbol | None:
    """`restore_dims(grad, singles(self.shape, dims), …)`: a gradient in its input's shape."""
    grad, sizes = public(symbol.arguments[0]), symbol.arguments[1]
    if grad is None or not isinstance(sizes, Call) or sizes.function != "singles":
        return None
    return Call("reshape", (grad, sizes.arguments[0]), True)


def _is_pytorchs(name: str) -> bool:
    return name in registry and "." not in name


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(each) for each in value)
    if isinstance(value, np.ndarray):
        return value.size <= _LARGEST_INDEX
    return value is None or isinstance(value, (bool, int, float, complex, str, slice, DType))
