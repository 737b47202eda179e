"""`torch.func.functional_call`: a module as a function of its parameters."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.nn.module import Module
from gradcli.ops.catalogue import function

_TABLES = ("_parameters", "_buffers")


@function(module="torch.func")
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What a module computes with other tensors in place of its parameters and buffers.

    Args:
        module: left as it was afterwards.
        parameter_and_buffer_dicts: tensors by dotted name, or several such dictionaries; what they
            do not name stays the module's own.
        args: the module's arguments: a tuple of them, or one that is no tuple.
        kwargs: its keywords.
        tie_weights: whether a tensor that stands in several places is replaced in all of them.
        strict: whether the names must be exactly those of the module.

    Raises E202 for what is no module or dictionary, E204 where names do not fit and `strict`.
    """
    if not isinstance(module, Module):
        raise GradcliError(
            "E202", f"functional_call() takes an nn.Module, not {type(module).__name__}"
        )
    given = _merged(parameter_and_buffer_dicts)
    places = {
        f"{path}.{name}" if path else name: (getattr(inner, table), name)
        for path, inner in module.each_module(remove_duplicate=False)
        for table in _TABLES
        for name, tensor in getattr(inner, table).items()
        if tensor is not None
    }
    if strict and given.keys() != places.keys():
        raise GradcliError(
            "E204",
            "functional_call(): the names given are not those of the module",
            raises="RuntimeError",
            notes=tuple(
                f"{what}: {', '.join(sorted(names))}"
                for what, names in (
                    ("missing", places.keys() - given.keys()),
                    ("not expected", given.keys() - places.keys()),
                )
                if names
            ),
        )
    before = [(table, name, table[name]) for table, name in places.values()]
    new = {key: given[key] for key in places if key in given}
    if tie_weights:
        by_tensor = {id(places[key][0][places[key][1]]): tensor for key, tensor in new.items()}
        for key, (table, name) in places.items():
            if key not in new and id(table[name]) in by_tensor:
                new[key] = by_tensor[id(table[name])]
    try:
        for key, tensor in new.items():
            table, name = places[key]
            table[name] = tensor
        positional = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*positional, **(kwargs or {}))
    finally:
        for table, name, tensor in before:
            table[name] = tensor


def _merged(dictionaries: Any) -> dict[str, Tensor]:
    """The tensors of one dictionary, or of several with different names."""
    several = dictionaries if isinstance(dictionaries, (tuple, list)) else [dictionaries]
    merged: dict[str, Tensor] = {}
    for each in several:
        if not isinstance(each, dict):
            raise GradcliError(
                "E202",
                f"functional_call() takes dictionaries of tensors, not {type(each).__name__}",
                raises="ValueError",
            )
        repeated = merged.keys() & each.keys()
        if repeated:
            raise GradcliError(
                "E204", f"functional_call(): {sorted(repeated)[0]!r} is in two dictionaries"
            )
        merged.update(each)
    return merged
