"""`torch.autograd.graph`: nodes, edges, and a hook for several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.edge import GradientEdge, get_gradient_edge
from gradcli.autograd.hooks import register_hook
from gradcli.autograd.node import Node, RemovableHandle
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import GradcliError
from gradcli.ops.catalogue import function, modules

_MODULE = "torch.autograd.graph"

modules[_MODULE].update(GradientEdge=GradientEdge, Node=Node, get_gradient_edge=get_gradient_edge)


class MultiHandle:
    """What `register_multi_grad_hook` returns: `remove()` takes the hook away from all tensors."""

    __slots__ = ("_handles",)

    language_name = "torch.autograd.graph._MultiHandle"
    language_context = True
    language_attributes = frozenset({"remove"})
    settable_attributes: frozenset[str] = frozenset()

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone already."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


@function(module=_MODULE)
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> MultiHandle:
    """Call `fn` with the gradients of several tensors.

    Args:
        tensors: those that require grad.
        fn: with mode "all" called with the list of gradients when the last one has arrived, with
            mode "any" called with the first one.
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise GradcliError("E204", "register_multi_grad_hook(): mode is 'all' or 'any'")
    arrived: dict[int, Tensor] = {}

    def hook_for(number: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            if mode == "any" and not arrived:
                fn(gradient)
            arrived[number] = gradient
            if len(arrived) == len(tensors):
                gradients = [arrived[n] for n in range(len(tensors))]
                arrived.clear()
                if mode == "all":
                    fn(gradients)

        return hook

    return MultiHandle(
        [register_hook(tensor, hook_for(number)) for number, tensor in enumerate(tensors)]
    )


@function(module=_MODULE)
def increment_version(tensor: Any) -> None:
    """Count a write to a tensor, or to each of several, that nobody noticed."""
    for each in [tensor] if isinstance(tensor, Tensor) else list(tensor):
        storage_of(each).version += 1
