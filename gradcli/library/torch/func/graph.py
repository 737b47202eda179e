"""`torch.autograd.graph`: saved-tensor hooks, which pack and unpack what nodes save, nodes,
edges, and a hook for several tensors.

While hooks are active, the saved tensors of each new node are passed to `pack`, and the node keeps
what that returns. When the node runs, `unpack` returns the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.custom_function import FunctionCall
from gradcli.autograd.engine.backward import GradientEdge, get_gradient_edge
from gradcli.autograd.hooks import Pack, Unpack, register_hook, unchanging
from gradcli.autograd.node import Node, RemovableHandle
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor, gradient_edge, storage_of
from gradcli.errors import GradcliError, assertion_error, runtime_error, type_error, value_error
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.codegen.node_class import pack_slot, saved_names
from gradcli.state import active


class PackingListener(Listener):
    """Packs what each new node saves; `mutable` where copies are saved, which only one may do."""

    __slots__ = ("mutable", "pack", "unpack")

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        super().__init__()
        self.mutable = False
        self.pack = unchanging(pack)
        self.unpack = unpack

    def __enter__(self) -> None:
        self.install()

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        if isinstance(op, FunctionCall):
            op.node.pack_saved(self.pack, self.unpack)
            super().operation(op, operands, output)
            return
        outputs = output if isinstance(output, tuple) else (output,)
        node = next((each.grad_fn for each in outputs if each.grad_fn is not None), None)
        kind = getattr(op, "node_class", None)
        if node is not None and type(node) is kind:
            self._pack_node(node, op)
        super().operation(op, operands, output)

    def _pack_node(self, node: Any, op: Any) -> None:
        for name in saved_names(op):
            value = getattr(node, f"saved_{name}", None)
            if isinstance(value, Tensor) or (name in op.outputs and value is not None):
                pack_slot(node, name, self.pack, self.unpack)


class SavedTensorsHooks:
    """`torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook)`: a context in which nodes
    keep what `pack_hook(tensor)` returns; `unpack_hook` restores the tensor when it is needed.
    """

    __slots__ = ("_listener",)

    language_name: ClassVar[str] = "torch.autograd.graph.saved_tensors_hooks"
    language_context: ClassVar[bool] = True

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise type_error("saved_tensors_hooks() needs two functions")
        self._listener = PackingListener(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        disabled = _disabled_message()
        if disabled is not None:
            raise runtime_error(disabled)
        if any(getattr(each, "reverse", False) for each in active.state.transforms):
            raise runtime_error(_TRANSFORMED)
        self._listener.install()

    def __exit__(self, *exception: object) -> None:
        self._listener.remove()


class SaveOnCPU(SavedTensorsHooks):
    """`torch.autograd.graph.save_on_cpu()`: saved tensors are kept in memory of their own."""

    __slots__ = ()

    language_name = "torch.autograd.graph.save_on_cpu"

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: Tensor(tensor.array.copy()), lambda kept: kept)


class AllowMutation(SavedTensorsHooks):
    """`torch.autograd.graph.allow_mutation_on_saved_tensors()`: what is saved inside is kept as it
    was, so that it may be written to; the backward pass has to be inside too.
    """

    __slots__ = ("_open",)

    language_name = "torch.autograd.graph.allow_mutation_on_saved_tensors"

    def __init__(self) -> None:
        super().__init__(lambda tensor: Tensor(forced(tensor.array).copy()), self._unpack)
        self._listener.mutable = True
        self._open = False

    def _unpack(self, kept: Tensor) -> Tensor:
        if not self._open:
            raise assertion_error(
                "what was saved with allow_mutation_on_saved_tensors() is needed outside of it",
                text="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded.",
            )
        return kept

    def __enter__(self) -> None:
        current = active.state.recorder
        while isinstance(current, Listener):
            if isinstance(current, PackingListener) and current.mutable:
                raise runtime_error("allow_mutation_on_saved_tensors contexts cannot be nested")
            current = current.former
        super().__enter__()
        self._open = True

    def __exit__(self, *exception: object) -> None:
        self._open = False
        super().__exit__(*exception)


class _Disabled(Listener):
    """The listener that disables hooks in its context; carries the message."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message


def _disabled_message() -> str | None:
    """The message of the innermost context that disables hooks, None if there is none."""
    current = active.state.recorder
    while isinstance(current, Listener):
        if isinstance(current, _Disabled):
            return current.message
        current = current.former
    return None


_TRANSFORMED = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an"
    " issue with your use case."
)


def refuse_hooks() -> None:
    """Raise E204 where hooks are set: a transform in reverse mode begins."""
    current = active.state.recorder
    while isinstance(current, Listener):
        if isinstance(current, PackingListener):
            raise runtime_error(_TRANSFORMED)
        current = current.former


class DisableSavedTensorsHooks:
    """`torch.autograd.graph.disable_saved_tensors_hooks(message)`: a context in
    which to set hooks is an error.
    """

    __slots__ = ("_listener",)

    language_name: ClassVar[str] = "torch.autograd.graph.disable_saved_tensors_hooks"
    language_context: ClassVar[bool] = True

    def __init__(self, error_message: str) -> None:
        self._listener = _Disabled(str(error_message))

    def __enter__(self) -> None:
        self._listener.install()

    def __exit__(self, *exception: object) -> None:
        self._listener.remove()


modules["torch.autograd.graph"].update(
    saved_tensors_hooks=SavedTensorsHooks,
    save_on_cpu=SaveOnCPU,
    allow_mutation_on_saved_tensors=AllowMutation,
    disable_saved_tensors_hooks=DisableSavedTensorsHooks,
)


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
