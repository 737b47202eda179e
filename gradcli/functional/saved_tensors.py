"""Hooks for saved tensors: a function of the program stands between a node and what it saves.

While hooks are on, each node is looked at as soon as it is made: its saved tensors are given to
`pack`, and the node keeps what that returns. When the node runs, `unpack` gives the tensors back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.arrays.deferred import forced
from gradcli.autograd.function import FunctionCall
from gradcli.autograd.function_node import Pack, Packed, Unpack
from gradcli.autograd.listening import Listener
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.node import FREED, Node
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.catalogue import modules
from gradcli.ops.entry import Op, parameters_of
from gradcli.ops.operands import saved_attribute, saved_result
from gradcli.state import active


def _unrecorded(pack: Pack) -> Pack:
    """A packing function whose computations leave the graph."""

    def packed(tensor: Tensor) -> Any:
        with NoGrad():
            return pack(tensor)

    return packed


class PackingListener(Listener):
    """Packs what each new node saves."""

    __slots__ = ("pack", "unpack")

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        super().__init__()
        self.pack = _unrecorded(pack)
        self.unpack = unpack

    def operation(self, op: Any, given: dict[str, Any], out: Any) -> None:
        if isinstance(op, FunctionCall):
            op.node.pack_saved(self.pack, self.unpack)
            super().operation(op, given, out)
            return
        outputs = out if isinstance(out, tuple) else (out,)
        node = next((each.grad_fn for each in outputs if each.grad_fn is not None), None)
        kind = getattr(op, "node_class", None)
        if node is not None and type(node) is kind:
            self._pack_node(node, op)
        super().operation(op, given, out)

    def _pack_node(self, node: Any, op: Any) -> None:
        packed = False
        for name in _saved_names(op):
            slot = f"saved_{name}"
            value = getattr(node, slot, None)
            if name in op.outputs and value is not None:
                tensor = saved_result(node, value, op.outputs.index(name))
                setattr(node, f"storage_{name}", None)
            elif isinstance(value, Tensor):
                tensor = value
            else:
                continue
            setattr(node, slot, Packed(self.pack(tensor), self.unpack))
            packed = True
        if packed:
            node.__class__ = _packing_class(type(node))


_packing_classes: dict[type[Node], type[Node]] = {}
"""For a class of nodes the one whose saved tensors are packed."""


def _saved_names(op: Op) -> list[str]:
    """The tensors that an op's nodes save, in the order in which its rules ask for them: inputs
    first, then results.
    """
    rules = [*op.rules.values(), *([op.joint] if op.joint else [])]
    asked = dict.fromkeys(name for rule in rules for name in parameters_of(rule))
    return [name for name in asked if name in op.tensors] + [
        name for name in asked if name in op.outputs
    ]


def _packing_class(kind: type[Node]) -> type[Node]:
    """The class of a node whose saved tensors are packed: it unpacks them for as long as a method
    needs them.
    """
    made = _packing_classes.get(kind)
    if made is not None:
        return made

    def run(node: Any, grads: Any, keep: bool) -> tuple[Any, ...]:
        return _unpacked(node, lambda: kind.run(node, grads, keep))

    def run_recorded(node: Any, grads: Any, keep: bool) -> tuple[Any, ...]:
        return _unpacked(node, lambda: kind.run_recorded(node, grads, keep))

    def language_getattr(node: Any, name: str) -> Any:
        return _unpacked(node, lambda: saved_attribute(node, name))

    def save_result_storage(node: Any, output_nr: int, storage: Any, array: Any) -> None:
        """What was packed does not see writes to the tensor."""

    made = type(
        kind.__name__,
        (kind,),
        {
            "__slots__": (),
            "run": run,
            "run_recorded": run_recorded,
            "language_getattr": language_getattr,
            "save_result_storage": save_result_storage,
        },
    )
    made.__slots__ = kind.__slots__
    _packing_classes[kind] = made
    return made


def _unpacked(node: Any, work: Callable[[], Any]) -> Any:
    """Do some work while a node's saved tensors are unpacked; what is not freed meanwhile is packed
    again.
    """
    packed: dict[str, Packed] = {}
    for name in _saved_names(node.op):
        slot = f"saved_{name}"
        value = getattr(node, slot, None)
        if isinstance(value, Packed):
            packed[slot] = value
    for slot, value in packed.items():
        name = slot.removeprefix("saved_")
        if name in node.op.outputs:
            setattr(node, slot, value.tensor(None, 0).array)
        else:
            edge = node.op.inputs.index(name) if name in node.op.inputs else None
            source = (None, 0) if edge is None else node.next_functions[edge]
            tensor = value.tensor(*source)
            setattr(node, slot, tensor)
            version = 0 if tensor.storage is None else tensor.storage.version
            setattr(node, f"version_{name}", version)
    try:
        return work()
    finally:
        for slot, value in packed.items():
            if getattr(node, slot) is not FREED:
                setattr(node, slot, value)


class SavedTensorsHooks:
    """`torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook)`: a context in which nodes
    keep what `pack_hook(tensor)` returns, and `unpack_hook` turns it back when it is needed.
    """

    __slots__ = ("_listener",)

    language_name: ClassVar[str] = "torch.autograd.graph.saved_tensors_hooks"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    settable_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self._listener = PackingListener(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        refusal = _refusal()
        if refusal is not None:
            raise GradcliError("E204", refusal, raises="RuntimeError")
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
        self._open = False

    def _unpack(self, kept: Tensor) -> Tensor:
        if not self._open:
            raise GradcliError(
                "E204",
                "what was saved with allow_mutation_on_saved_tensors() is needed outside of it",
                raises="AssertionError",
            )
        return kept

    def __enter__(self) -> None:
        super().__enter__()
        self._open = True

    def __exit__(self, *exception: object) -> None:
        self._open = False
        super().__exit__(*exception)


class _Refusal(Listener):
    """Stands in the line while hooks are disabled; carries the message."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message


def _refusal() -> str | None:
    """The message of the innermost context that disables hooks, None if there is none."""
    current = active.state.recorder
    while isinstance(current, Listener):
        if isinstance(current, _Refusal):
            return current.message
        current = current.former
    return None


class DisableSavedTensorsHooks:
    """`torch.autograd.graph.disable_saved_tensors_hooks(message)`: a context that refuses them."""

    __slots__ = ("_listener",)

    language_name: ClassVar[str] = "torch.autograd.graph.disable_saved_tensors_hooks"
    language_context: ClassVar[bool] = True
    language_attributes: ClassVar[frozenset[str]] = frozenset()
    settable_attributes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, error_message: str) -> None:
        self._listener = _Refusal(str(error_message))

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
