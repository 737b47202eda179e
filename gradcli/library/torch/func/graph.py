"""`torch.autograd.graph`: nodes, edges, and a hook for several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from gradcli.autograd.engine.backward import GradientEdge, get_gradient_edge
from gradcli.autograd.hooks import register_hook
from gradcli.autograd.node import Node, RemovableHandle
from gradcli.autograd.tensor import Tensor, gradient_edge, storage_of
from gradcli.errors import GradcliError, value_error
from gradcli.ops.binding.catalogue import function, modules
from gradcli.state import active

_MODULE = "torch.autograd.graph"

Hook = Callable[[Tensor], None]

modules[_MODULE].update(GradientEdge=GradientEdge, Node=Node, get_gradient_edge=get_gradient_edge)


class MultiHandle:
    """What `register_multi_grad_hook` returns: `remove()` removes the hook from all tensors."""

    __slots__ = ("_handles",)

    language_name = "torch.autograd.graph._MultiHandle"
    language_context = True
    language_attributes = frozenset({"remove"})

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the hook; has no effect if it is removed already."""
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
        fn: with mode "all" called with the list of gradients when the last one that the pass
            reaches has arrived, None for those that it does not reach; with
            mode "any" called with the first one, in each backward pass.
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise value_error(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "all" and not all(tensor.requires_grad for tensor in tensors):
        raise GradcliError(
            "E402",
            "register_multi_grad_hook() needs tensors that require grad",
            raises="AssertionError",
        )
    if mode == "any":
        tensors = [tensor for tensor in tensors if tensor.requires_grad]
    hooks = _for_all(tensors, fn) if mode == "all" else [_for_any(fn)] * len(tensors)
    return MultiHandle(
        [register_hook(tensor, hook) for tensor, hook in zip(tensors, hooks, strict=True)]
    )


def _for_all(tensors: Sequence[Tensor], fn: Callable[..., Any]) -> list[Hook]:
    """A hook for each tensor, of which the last that a backward pass calls calls `fn`: with the
    gradients, None for a tensor that the pass does not reach.
    """
    nodes = [gradient_edge(tensor)[0] for tensor in tensors]
    arrived: WeakKeyDictionary[Any, dict[int, Tensor]] = WeakKeyDictionary()

    def hook_for(number: int) -> Hook:
        def hook(gradient: Tensor) -> None:
            this = active.state.backward_pass
            gradients = arrived.setdefault(this, {})
            gradients[number] = gradient
            if len(gradients) == sum(this.will_run(node) for node in nodes):
                del arrived[this]
                fn([gradients.get(each) for each in range(len(nodes))])

        return hook

    return [hook_for(number) for number in range(len(nodes))]


def _for_any(fn: Callable[..., Any]) -> Hook:
    """A hook for all tensors, which calls `fn` the first time that a backward pass calls it."""
    ran_in: WeakSet[Any] = WeakSet()

    def hook(gradient: Tensor) -> None:
        this = active.state.backward_pass
        if this not in ran_in:
            ran_in.add(this)
            fn(gradient)

    return hook


@function(module=_MODULE)
def increment_version(tensor: Any) -> None:
    """Increment the version of a tensor, or of each of several."""
    for each in [tensor] if isinstance(tensor, Tensor) else list(tensor):
        storage_of(each).version += 1
