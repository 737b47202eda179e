"""Packing what nodes saved: a function of the program stands between a node and a saved tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.autograd.node import FREED, Node
from gradcli.autograd.saved_tensor import Pack, Packed, SavedTensor, Unpack
from gradcli.autograd.tensor import Tensor
from gradcli.ops.codegen.runtime import saved_attribute, saved_result
from gradcli.ops.definition.op import Op, parameters_of


def pack_slot(node: Any, name: str, pack: Pack, unpack: Unpack) -> None:
    """Let a node keep what `pack` makes of one tensor that it saved."""
    slot = f"saved_{name}"
    tensor = getattr(node, slot)
    if name in node.op.outputs:
        tensor = saved_result(node, tensor, node.op.outputs.index(name))
    packed = Packed(pack(tensor), unpack)
    if name in node.op.outputs:
        setattr(node, f"storage_{name}", None)
    setattr(node, slot, packed)
    if type(node) not in _packing_classes.values():
        node.__class__ = _packing_class(type(node))


_packing_classes: dict[type[Node], type[Node]] = {}
"""For a class of nodes the one whose saved tensors are packed."""


def saved_names(op: Op) -> list[str]:
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
        if name.startswith("_raw_saved_"):
            return saved_attribute(node, name)
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
    for name in saved_names(node.op):
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


def raw_saved(node: Any, name: str) -> SavedTensor:
    """`grad_fn._raw_saved_NAME`; raises AttributeError where the node saves no such tensor."""
    what = name.removeprefix("_raw_saved_")
    if f"saved_{what}" not in type(node).__slots__:
        raise AttributeError(name)

    def kept() -> Any:
        value = getattr(node, f"saved_{what}", None)
        tensor = value is FREED or isinstance(value, (Tensor, Packed)) or what in node.op.outputs
        return value if tensor else None

    return SavedTensor(
        kept,
        lambda value: isinstance(value, Packed),
        lambda pack, unpack: pack_slot(node, what, pack, unpack),
    )
