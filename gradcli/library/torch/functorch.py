"""The module `functorch`: the transforms of `torch.func` under their names of old, and modules as
functions of their parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.library.copy import deepcopy
from gradcli.library.torch.func.stateless import functional_call, stacked_state
from gradcli.library.torch.nn.module import Module, check_module
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.creation.copies import detach
from gradcli.state import active

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
