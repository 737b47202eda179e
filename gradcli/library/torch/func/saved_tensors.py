"""Saved-tensor hooks: functions of the program that pack and unpack what nodes save.

While hooks are active, the saved tensors of each new node are passed to `pack`, and the node keeps
what that returns. When the node runs, `unpack` returns the tensors.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.custom.function import FunctionCall
from gradcli.autograd.hooks import Pack, Unpack, unchanging
from gradcli.autograd.recording.listeners import Listener
from gradcli.autograd.tensor import Tensor
from gradcli.errors import assertion_error, runtime_error, type_error
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.codegen.saved import pack_slot, saved_names
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
