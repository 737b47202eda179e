"""Copies of modules and of their tensors."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.library.torch.nn.attributes import enlist, is_initialised
from gradcli.library.torch.nn.call import ModuleHooks
from gradcli.library.torch.nn.module import Module


def copied_tensor(copied: Tensor, original: Tensor) -> Tensor:
    """Make a copy what the original is: a parameter, a buffer, one that requires grad."""
    copied.requires_grad = original.requires_grad
    if original.meta is not None:
        meta = meta_of(copied)
        meta.is_parameter = original.meta.is_parameter
        meta.persistent = original.meta.persistent
    return copied


def not_kept(value: Any, copied: Any) -> None:
    """What a shallow copy has to keep."""


def copied_module(module: Module, of: Any, keep: Any = not_kept) -> Module:
    """A module with copies of what it holds."""
    copy: Module = object.__new__(type(module))
    enlist(copy)
    keep(module, copy)
    tables = ["_values"]
    if is_initialised(module):
        tables += ["_parameters", "_buffers", "_modules"]
        object.__setattr__(copy, "_transient", set(module._transient))
        object.__setattr__(copy, "training", module.training)
        object.__setattr__(copy, "_hooks", _hooks(module))
    for name in tables:
        table = {key: of(value) for key, value in getattr(module, name).items()}
        object.__setattr__(copy, name, table)
    return copy


def _hooks(module: Module) -> ModuleHooks | None:
    """The same hooks in tables of their own."""
    if module._hooks is None:
        return None
    copy = ModuleHooks()
    for name in ModuleHooks.__slots__:
        getattr(copy, name).update(getattr(module._hooks, name))
    return copy


def clone(module: Module, known: dict[int, Any] | None = None) -> Module:
    """A module like another, with tensors of its own; what stands in several places, whose copies
    are in `known`, still does.
    """
    copies: dict[int, Any] = {} if known is None else known

    def of(value: Any) -> Any:
        if id(value) in copies:
            return copies[id(value)]
        if isinstance(value, Module):
            return clone(value, copies)
        if not isinstance(value, Tensor):
            return value
        copies[id(value)] = copied_tensor(Tensor(value.array.copy()), value)
        return copies[id(value)]

    return copied_module(module, of, lambda one, copied: copies.update({id(one): copied}))
