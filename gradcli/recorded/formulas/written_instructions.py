"""Calls in a trace written in the language: which function or method computes them.

Ops that the language has under another name than their entry's are in
`gradcli.recorded.formulas.spellings`; the others have the name of their entry, or are opened up:
their forward function is read with symbols.

A function takes the arguments of its entry under their names, so which argument goes where follows
from both signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np

from gradcli.autograd.recording.trace_recorder import Call as OpCall
from gradcli.errors import GradcliError
from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import Op, registry
from gradcli.recorded.formulas.spellings import OF_WINDOWS, SEVERAL, WRITERS, Bound, Unwritten
from gradcli.recorded.symbols.reading import Reading
from gradcli.recorded.symbols.tree import (
    BUILTINS,
    Call,
    Constant,
    Item,
    Keyword,
    Name,
    Symbol,
    Unreadable,
    call_of,
    in_language,
    lifted,
    shown,
)
from gradcli.trace.ir import values_in

# --- calls by public functions --------------------------------------------------------------------


_PREFIXES = {"linalg_": "torch.linalg", "special_": "torch.special", "fft_": "torch.fft"}

_METHODS = "Tensor"

_SHORT = {"torch.nn.functional": "F", "torch": "torch"}

_NAMES = {
    "_pdist_forward": "pdist", "linalg_inv_ex": "linalg_inv",
    "linalg_solve_ex": "linalg_solve", "linalg_cholesky_ex": "linalg_cholesky",
    "linalg_lu_factor_ex": "linalg_lu_factor", "native_channel_shuffle": "channel_shuffle",
    "affine_grid_generator": "affine_grid",
    "grid_sampler_2d": "grid_sample", "grid_sampler_3d": "grid_sample",
}  # fmt: skip
"""Entries whose function has another name."""

_SINGLE = frozenset({"linalg_inv", "linalg_solve", "linalg_cholesky", "linalg_det", "cholesky"})
"""Functions that give the first output of their entry alone."""

_ORDER = {"linalg_lu": (1, 2, 0), "lu_unpack": (1, 2, 0)}
"""Where functions give the outputs of their entries in another order."""

_REDUCTIONS = ("none", "mean", "sum")

_PARAMETERS = {
    "input": ("self",), "dim": ("dims", "dim"), "upscale_factor": ("factor",),
    "downscale_factor": ("factor",), "storage_offset": ("offset",), "padding_mode": ("padding",),
    "split_sizes": ("sizes",),
}  # fmt: skip
"""Arguments of functions by what entries call them."""


def public_call(
    op: Op, name: str, bound: Mapping[str, Any], output_nr: int, several: bool
) -> Symbol | None:
    """An output of an entry as a call of the function that programs have for it, None where there
    is none that takes its arguments.

    Args:
        name: that of the entry, without the `_` of a form that writes its result.
        several: whether the entry has more than one output.
    """
    known = _NAMES.get(name, name)
    for module, name in _places(known, "reduction" in bound):
        table = catalogue.methods if module == _METHODS else catalogue.modules[module]
        function = table.get(name)
        if function is None:
            continue
        arguments = _arguments(op, function, dict(bound))
        if arguments is None:
            continue
        is_method = module == _METHODS
        plain = is_method or (module == "torch" and name not in BUILTINS)
        called = name if plain else f"{_SHORT.get(module, module)}.{name}"
        call = Call(called, tuple(arguments), is_method)
        if not several:
            return call
        if known in _SINGLE:
            return call if output_nr == 0 else None
        return Item(call, Constant(_ORDER.get(known, range(9))[output_nr]))
    return None


def _places(name: str, is_loss: bool) -> Iterator[tuple[str, str]]:
    """Where a function may stand; those of `torch` take the reduction of a loss as a number."""
    for prefix, module in _PREFIXES.items():
        if name.startswith(prefix):
            yield module, name.removeprefix(prefix)
    if not is_loss:
        yield "torch", name
    yield "torch.nn.functional", name
    yield _METHODS, name


def _arguments(op: Op, function: Any, bound: dict[str, Any]) -> list[Symbol] | None:
    """The arguments of a call of a function, None where it does not take them all."""
    operands = [name for name in bound if name in (*op.tensors, *op.lists)]
    parameters = list(signature(function).parameters.values())
    operands = [name for name in operands if name not in {each.name for each in parameters}]
    arguments: list[Symbol] = []
    by_name = False
    for parameter in parameters:
        names = (parameter.name, *_PARAMETERS.get(parameter.name, ()))
        source = next((name for name in names if name in bound), None)
        if source is None and operands and parameter.default is Parameter.empty:
            source = operands[0]
        operands = [name for name in operands if name != source]
        value = parameter.default if source is None else bound.pop(source)
        if parameter.name == "reduction" and type(value) is int:
            value = _REDUCTIONS[value]
        if type(value) is tuple and str(parameter.annotation).startswith("int"):
            value = value[0] if len(value) == 1 else None
        if value is Parameter.empty:
            return None
        by_name = by_name or parameter.kind is Parameter.KEYWORD_ONLY
        if not isinstance(value, Symbol) and value == parameter.default:
            by_name = True
            continue
        if parameter.kind is Parameter.VAR_POSITIONAL:
            arguments += map(lifted, value)
            continue
        written = Call("[]", tuple(value)) if type(value) is list else lifted(value)
        arguments.append(Keyword(parameter.name, written) if by_name else written)
    bound.pop("vector", None)  # whether a right side is a vector shows in its shape
    return None if any(value is not None for value in bound.values()) else arguments


# --- instructions ---------------------------------------------------------------------------------


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
