"""Calls in a trace written in the language: which function or method computes them.

Ops that the language has under another name than their entry's are in
`gradcli.recorded.formulas.spellings`; the others have the name of their entry, or are opened up:
their forward function is read with symbols.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.recording.instructions import Call as OpCall
from gradcli.errors import GradcliError
from gradcli.ops.definition.op import registry
from gradcli.recorded.formulas.public_calls import public_call
from gradcli.recorded.formulas.spellings import SEVERAL, WRITERS, Bound, Unwritten
from gradcli.recorded.formulas.spellings_of_windows import OF_WINDOWS
from gradcli.recorded.symbols.notation import call_of, in_language, shown
from gradcli.recorded.symbols.reading import Reading
from gradcli.recorded.symbols.tree import Call, Constant, Name, Symbol, Unreadable, lifted
from gradcli.trace.ir import values_in

_GRADIENTS = ("_backward", "_backward_data")
"""How the ops are called that compute gradients alone."""


def written(call: OpCall, bound: Bound, output_nr: int) -> Symbol:
    """The expression of an output of a call; raises Unwritten where there is none."""
    # The form that writes its result is written as the one that makes a new tensor.
    name = call.op.name.rstrip("_") or call.op.name
    if name not in ("_to_copy", "copy", "index_copy"):
        name = name.removesuffix("_copy")  # what a view shows
    array = call.results[output_nr].array
    shape = tuple(array.shape)
    if name in SEVERAL:
        return SEVERAL[name](bound, output_nr)
    shapes = [tuple(each.array.shape) for each in values_in(call.operands.values())]
    first, second = (*shapes, (), ())[:2]
    known = {"": array.dtype.name, "sizes": first, "value_sizes": second}
    if name in OF_WINDOWS:
        return OF_WINDOWS[name]({**bound, **known}, shape, output_nr)
    writer = WRITERS.get(name)
    if writer is not None:
        return writer({**bound, **known}, shape)
    op = call.op
    symbol = _as_operator(call, bound) if len(call.outputs) == 1 and not op.lists else None
    if symbol is None:
        symbol = public_call(op, name, bound, output_nr, len(call.outputs) > 1)
    return _opened(call, bound) if symbol is None else symbol


def _as_operator(call: OpCall, bound: Bound) -> Symbol | None:
    """A call without arguments as an operator or a call of its entry."""
    op = call.op
    name = op.name.rstrip("_")
    operands = [value for key, value in bound.items() if key in op.tensors or op.pointwise]
    rest = [value for key, value in bound.items() if not (key in op.tensors or op.pointwise)]
    if any(value is not None for value in rest):
        return None
    known = shown(name, operands) if len(operands) < 3 else None
    if known is not None or (op.pointwise and len(operands) > len(op.tensors)):
        return known
    named = call_of(name, operands)
    return named if in_language(named) else None


def opened(formula: Symbol, shape: tuple[int, ...], dtype: str) -> Symbol:
    """A formula of an op for gradients alone, in the language's functions; others as they are."""
    if not isinstance(formula, Call) or not formula.function.endswith(_GRADIENTS):
        return formula
    writer = WRITERS.get(formula.function)
    if writer is None or formula.function not in registry:
        return formula
    bound: dict[str, Any] = {"": dtype}
    for name, part in zip(registry[formula.function].parameters, formula.arguments, strict=False):
        bound[name] = part.value if isinstance(part, Constant) else part
        if name == "self_sizes":
            bound[name] = shape
    try:
        return writer(bound, shape)
    except (Unwritten, Unreadable, KeyError):
        return formula


def _opened(call: OpCall, bound: Bound) -> Symbol:
    """A call as the formula that its entry's forward function is."""
    op, arguments = call.op, [_argument(value) for value in bound.values()]
    if len(call.outputs) > 1 or not (op.pointwise or op.name.endswith(_GRADIENTS)):
        raise Unwritten(op.name)
    try:
        reading = Reading()
        symbols = [
            reading.name(each.name) if isinstance(each, Name) else each for each in arguments
        ]
        symbol = lifted(reading.call(op.forward, *symbols))
    except (Unreadable, GradcliError):
        raise Unwritten(op.name) from None
    if not in_language(symbol):
        raise Unwritten(op.name)
    return symbol


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        raise Unwritten("an array that was computed aside")
    return value
