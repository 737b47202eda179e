"""Calls in a trace written in the language: which function or method computes them.

Ops that the language has under another name than their entry's are in
`gradcli.explain.derive.spellings`; the others have the name of their entry, or are opened up: their
forward function is read with symbols.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.recording.instructions import Call as OpCall
from gradcli.errors import GradcliError
from gradcli.explain.derive.spellings import SEVERAL, WRITERS, Given, Unwritten
from gradcli.explain.symbols.notation import call_of, in_language, shown
from gradcli.explain.symbols.reading import Reading
from gradcli.explain.symbols.tree import Call, Constant, Name, Symbol, Unreadable, lifted
from gradcli.ops.definition.op import registry

_GRADIENTS = ("_backward", "_backward_data")
"""How the ops are called that compute gradients alone."""


def written(call: OpCall, given: Given, output_nr: int) -> Symbol:
    """The expression of an output of a call; raises Unwritten where there is none."""
    name = call.op.name
    array = call.made[output_nr].array
    shape = tuple(array.shape)
    if name in SEVERAL:
        return SEVERAL[name](given, output_nr)
    if len(call.outputs) > 1:
        raise Unwritten(name)
    writer = WRITERS.get(name)
    if writer is not None:
        return writer({**given, "": array.dtype.name}, shape)
    return _by_entry(call, given)


def opened(formula: Symbol, shape: tuple[int, ...], dtype: str) -> Symbol:
    """A formula of an op for gradients alone, in the language's functions; others as they are."""
    if not isinstance(formula, Call) or not formula.function.endswith(_GRADIENTS):
        return formula
    writer = WRITERS.get(formula.function)
    if writer is None or formula.function not in registry:
        return formula
    given: dict[str, Any] = {"": dtype}
    for name, part in zip(registry[formula.function].parameters, formula.arguments, strict=False):
        given[name] = part.value if isinstance(part, Constant) else part
        if name == "self_sizes":
            given[name] = shape
    try:
        return writer(given, shape)
    except (Unwritten, Unreadable, KeyError):
        return formula


def _by_entry(call: OpCall, given: Given) -> Symbol:
    """A call as a call of its entry, or as the formula that its forward function is."""
    op, arguments = call.op, [_argument(value) for value in given.values()]
    tensors = [value for name, value in given.items() if name in (*op.tensors, *op.lists)]
    rest = [value for name, value in given.items() if name not in (*op.tensors, *op.lists)]
    if all(value is None for value in rest):
        known = shown(op.name, tensors)
        if known is not None:
            return known
        named = call_of(op.name, tensors)
        if in_language(named):
            return named
    if not (op.pointwise or op.name.endswith(_GRADIENTS)):
        raise Unwritten(op.name)
    try:
        reading = Reading()
        made = [reading.name(each.name) if isinstance(each, Name) else each for each in arguments]
        found = lifted(reading.call(op.forward, *made))
    except (Unreadable, GradcliError):
        raise Unwritten(op.name) from None
    if not in_language(found):
        raise Unwritten(op.name)
    return found


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        raise Unwritten("an array that was computed aside")
    return value
