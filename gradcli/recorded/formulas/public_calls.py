"""Calls of entries by the functions that programs have for them: `torch.linalg.eigh(x, UPLO="U")`.

A function takes the arguments of its entry under their names, so which argument goes where follows
from both signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import Parameter, signature
from typing import Any

from gradcli.ops.binding import catalogue
from gradcli.ops.definition.op import Op
from gradcli.recorded.symbols.notation import BUILTINS
from gradcli.recorded.symbols.tree import Call, Constant, Item, Keyword, Symbol, lifted

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
