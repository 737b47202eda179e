"""Modules as functions of parameters: `torch.func.functional_call` and `stack_module_state`; and
the module `functorch`, which has the transforms of `torch.func` under their names of old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error, value_error
from gradcli.library.copy import deepcopy
from gradcli.library.torch.nn.layers.normalisation import BatchNorm
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.creation.copies import detach
from gradcli.ops.shape.joining import stack_function
from gradcli.state import active

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


_FUNC = modules["torch.func"]

_Tensors = tuple[Tensor, ...]


def _of_old(name: str, new: str, called: Callable[..., Any]) -> Callable[..., Any]:
    """A function that warns (W015) of its name each time it is called."""
    text = (
        "We've integrated functorch into PyTorch. As the final step of the integration,"
        f" `functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future"
        f" version of PyTorch >= 2.3. Please use `{new}` instead; see the PyTorch 2.0 release notes"
        " and/or the `torch.func` migration guide for more details"
        " https://pytorch.org/docs/main/func.migrating.html"
    )

    @wraps(called)
    def warned(*args: Any, **kwargs: Any) -> Any:
        message = f"`functorch.{name}` is deprecated"
        active.state.warn(
            "W015", message, text=text, category="FutureWarning", help=f"write `{new}`"
        )
        return called(*args, **kwargs)

    warned.__name__ = name
    return warned


class _Functional(Module):
    def __init__(self, model: Any, *names: tuple[str, ...]) -> None:
        super().__init__()
        self._names = names
        self._modules["stateless_model"] = deepcopy(model).to("meta")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes with the tensors that come before its arguments."""
        count = len(self._names)
        tensors_by_name: dict[str, Any] = {}
        for names, tensors in zip(self._names, args, strict=False):
            tensors_by_name.update(zip(names, tensors, strict=True))
        return functional_call(
            self._modules["stateless_model"], tensors_by_name, args[count:], kwargs
        )


class FunctionalModule(_Functional):
    """A module as a function of its parameters."""

    language_name = "torch._functorch.make_functional.FunctionalModule"


class FunctionalModuleWithBuffers(_Functional):
    """A module as a function of its parameters and its buffers."""

    language_name = "torch._functorch.make_functional.FunctionalModuleWithBuffers"


def make_functional(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, _Tensors]:
    """A module without buffers as a function, and its parameters."""
    check_module("make_functional", model)
    if any(True for _ in model.each_tensor("_buffers")):
        raise runtime_error(
            "make_functional(model): `model` has buffers. Please use"
            " make_functional_with_buffers(model) instead."
        )
    copied, parameters, _ = _state(model, disable_autograd_tracking)
    return FunctionalModule(copied, tuple(parameters)), tuple(parameters.values())


def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, _Tensors, _Tensors]:
    """A module as a function, its parameters and its buffers."""
    check_module("make_functional_with_buffers", model)
    copied, parameters, buffers = _state(model, disable_autograd_tracking)
    function = FunctionalModuleWithBuffers(copied, tuple(parameters), tuple(buffers))
    return function, tuple(parameters.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Any,
) -> tuple[FunctionalModuleWithBuffers, _Tensors, _Tensors]:
    """Modules of one class as one function, and their tensors, each stacked."""
    models = list(models)
    parameters, buffers = stacked_state("combine_state_for_ensemble", models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(map(detach, parameters.values())), tuple(buffers.values())


def _state(model: Module, frozen: bool) -> tuple[Any, dict[str, Tensor], dict[str, Tensor]]:
    """A copy of a module, and the tensors that it was copied with, by their names."""
    copied = deepcopy(model)
    parameters, buffers = (dict(copied.each_tensor(table)) for table in ("_parameters", "_buffers"))
    if frozen:
        for parameter in parameters.values():
            parameter.requires_grad = False
    return copied, parameters, buffers


FUNCTORCH: dict[str, Any] = {
    **{
        name: _of_old(name, f"torch.{'' if name == 'vmap' else 'func.'}{name}", _FUNC[name])
        for name in ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap")
    },
    **{
        factory.__name__: _of_old(factory.__name__, f"torch.func.{new}", factory)
        for factory, new in (
            (make_functional, "functional_call"),
            (make_functional_with_buffers, "functional_call"),
            (combine_state_for_ensemble, "stack_module_state"),
        )
    },
}
"""What `functorch` holds."""

EXPERIMENTAL: dict[str, Any] = {
    name: _FUNC[name] for name in ("hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_")
}
"""What `functorch.experimental` holds."""
