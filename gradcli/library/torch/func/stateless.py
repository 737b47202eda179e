"""`torch.func.functional_call` and `stack_module_state`: modules as functions of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.library.torch.nn.layers.normalisation import BatchNorm
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.creation.copies import detach
from gradcli.ops.shape.joining import stack_function

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
        tie_weights: whether a tensor that has several names is replaced under all of them.
        strict: whether the names must be exactly those of the module.

    Raises E202 for what is no module or dictionary, E204 where names do not fit and `strict`.
    """
    check_module("functional_call", module)
    tensors = _merged(parameter_and_buffer_dicts)
    slots = {}
    if tie_weights or strict:
        slots = {
            f"{path}.{name}" if path else name: tensor
            for path, inner in module.each_module(remove_duplicate=False)
            for table in _TABLES
            for name, tensor in getattr(inner, table).items()
            if tensor is not None
        }
    new = _tied(tensors, slots) if tie_weights else dict(tensors)
    if strict:
        _check_names(module, new, slots)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    former: dict[str, Any] = {}
    try:
        for key, tensor in new.items():
            former[key] = _swapped(module, key, tensor)
        return module(*positional, **(kwargs or {}))
    finally:
        latter = {key: _swapped(module, key, tensor) for key, tensor in former.items()}
        # What forward assigned anew goes back to where the tensors came from.
        tensors.update(
            (key, latter[key]) for key in tensors if latter.get(key, _NOTHING) is not _NOTHING
        )


modules["torch.nn.utils.stateless"]["functional_call"] = functional_call

_NOTHING = object()
_NAMELESS = 'tensor name can\'t be empty string ""'


def _tied(tensors: dict[str, Any], slots: dict[str, Tensor]) -> dict[str, Any]:
    """The tensors given, each under all names of the one it replaces; E204 where two differ."""
    names: dict[int, list[str]] = {}
    for key, tensor in slots.items():
        names.setdefault(id(tensor), []).append(key)
    new = dict(tensors)
    for key, tensor in tensors.items():
        for other in names.get(id(slots.get(key)), ()):
            if tensors.get(other, tensor) is not tensor:
                raise value_error(
                    f"functional_call(): {key!r} and {other!r} are one tensor in the module, and"
                    " two are given",
                    text=f"functional_call got multiple values for keys {sorted([key, other])},"
                    " which are tied. Consider using tie_weights=False",
                    help="pass tie_weights=False",
                )
            new[other] = tensor
    return new


def _swapped(module: Any, key: str, tensor: Any) -> Any:
    """Put a tensor in the place of a dotted name, `_NOTHING` to delete it; returns what was there.

    Raises E102 for the name of no submodule, E202 for what is no tensor, E207 for an empty name.
    """
    path, _, name = str(key).rpartition(".")
    owner = module.get_submodule(path)
    if not name:
        raise GradcliError("E207", "the name of a tensor is not empty", text=repr(_NAMELESS))
    if not isinstance(key, str):
        raise GradcliError("E102", f"functional_call(): {key!r} is no name")
    table = next((t for t in (owner._parameters, owner._buffers) if name in t), owner._values)
    former = table.get(name, _NOTHING)
    for value in (tensor, former):
        if value is not None and value is not _NOTHING and not isinstance(value, Tensor):
            raise type_error(
                f"functional_call(): {key!r} takes a tensor, not {type(value).__name__}",
                text=f"{value} is not an instance of torch.Tensor",
            )
    if tensor is _NOTHING:
        table.pop(name, None)
    elif former is _NOTHING:
        owner.register(name, tensor)
    else:
        table[name] = tensor
    return former


def _check_names(module: Any, tensors: dict[str, Any], slots: Mapping[str, Any]) -> None:
    """Raise E204 unless the names given are those of the module."""
    if tensors.keys() != slots.keys():
        lines = tuple(
            f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
            for what, names in (
                ("Unexpected", tensors.keys() - slots.keys()),
                ("Missing", slots.keys() - tensors.keys()),
            )
            if names
        )
        raise GradcliError(
            "E204",
            "functional_call(): the names given are not those of the module",
            text="\n\t".join((f"Error(s) in reparametrizing for {module._get_name()}:", *lines)),
            raises="RuntimeError",
            notes=lines,
        )


def _merged(dictionaries: Any) -> dict[str, Any]:
    """The one dictionary that was given, or the tensors of several with different names."""
    if isinstance(dictionaries, dict):
        return dictionaries
    if not isinstance(dictionaries, (tuple, list)):
        raise value_error(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got"
            f" <class '{type(dictionaries).__name__}'>"
        )
    merged: dict[str, Any] = {}
    for each in dictionaries:
        if not isinstance(each, dict):
            raise value_error(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
            )
        repeated = [key for key in merged if key in each]
        if repeated:
            raise value_error(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is"
                " ambiguous"
            )
        merged.update(each)
    return merged


@function(module="torch.func")
def stack_module_state(
    models: Sequence[Any],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one class, each stacked along a new dimension.

    Raises E204 where there are none, and where they differ in class, mode or requires_grad.
    """
    return stacked_state("stack_module_state", list(models))


def stacked_state(what: str, models: list[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What `stack_module_state` returns; errors say that it is `what`."""
    if not models:
        raise runtime_error(f"{what}: Expected at least one model, got 0.")
    if any(not isinstance(model, Module) for model in models):
        raise type_error(f"{what}() takes modules")
    if len({model.training for model in models}) > 1:
        raise runtime_error(f"{what}: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise runtime_error(f"{what}: Expected all models to be of the same class.")
    parameters, buffers = (
        {
            name: _stacked(name, [dict(model.each_tensor(table))[name] for model in models])
            for name, _ in models[0].each_tensor(table)
        }
        for table in _TABLES
    )
    return parameters, buffers


def _stacked(name: str, tensors: list[Tensor]) -> Tensor:
    wanted = {tensor.requires_grad for tensor in tensors}
    if len(wanted) > 1:
        raise runtime_error(f"Expected {name} from each model to have the same .requires_grad")
    stacked = stack_function([detach(tensor) for tensor in tensors])
    stacked.requires_grad = wanted.pop()
    return stacked


@function("replace_all_batch_norm_modules_", module="torch.func")
def replace_all_batch_norm_modules_(root: Any) -> Any:
    """The module itself, whose batch norms keep no running statistics any more."""
    check_module("replace_all_batch_norm_modules_", root)
    for _, module in root.each_module():
        if isinstance(module, BatchNorm):
            module._buffers.update(dict.fromkeys(module._buffers))
            module.track_running_stats = False
    return root
