"""The tensors and arguments that nodes save: checked when they are read, shown as
`grad_fn._saved_NAME`, and packed where saved-tensor hooks are set.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.layout.strides import strides_of
from gradcli.autograd.hooks import Pack, Packed, SavedTensor, Unpack
from gradcli.autograd.node import FREED, Node, detached, freed, modified
from gradcli.autograd.tensor import AccumulateGrad, Tensor, gradient_edge, refresh, with_history
from gradcli.ops.definition.op import Op, parameters_of
from gradcli.state import active


def check_saved(node: Node, name: str, tensor: Tensor, expected: int) -> None:
    """Raise E404 if a saved input was written to since."""
    assert tensor.storage is not None
    if tensor.storage.version != expected:
        base = tensor.base
        shown = tensor.name or (None if base is None else base.name)
        shown = shown or ("input" if name == "self" else name)
        refresh(tensor)
        producer, storage = (tensor.grad_fn, tensor.output_nr), tensor.storage
        held = (tensor.array.shape, tensor.array.dtype)
        raise modified(node, shown, held, producer, storage.version, expected, storage.place)


def check_attached(node: Node, name: str, tensor: Tensor, edge: int) -> None:
    """Raise E404 if a saved input without grad_fn had one when it was saved."""
    source = node.next_nodes[edge]
    if source is not None and type(source) is not AccumulateGrad:
        raise detached(node, tensor.name or ("input" if name == "self" else name))


def check_result(node: Any, name: str, storage: Any, expected: int) -> None:
    """Raise E404 if a saved result was written to since."""
    if storage.version != expected:
        op = node.op
        number = 0 if op.outputs == ("*",) else op.outputs.index(name)
        if op.outputs == ("*",) or number in op.differentiable:
            name = node.assigned or name
        held, producer = node.metadata[number], (node, number)
        raise modified(node, name, held, producer, storage.version, expected, storage.place)


def saved_tensor(node: Node, tensor: Tensor, edge: int | None) -> Tensor:
    """A saved input as a tensor with the history that it had when it was saved."""
    source = None if edge is None else node.next_nodes[edge]
    if source is None:
        return Tensor(tensor.array) if tensor.requires_grad else tensor
    if isinstance(source, AccumulateGrad):
        # What a hook unpacked has another value, and replaces the leaf.
        return tensor if gradient_edge(tensor)[0] is source else source.variable
    assert edge is not None
    producer = tensor.grad_fn
    if producer is source or (producer is not None and producer.next_nodes == (source,)):
        return tensor  # the latter is the copy of a value that was overwritten
    return with_history(tensor.array, source, node.input_nrs[edge])


def saved_array(node: Node, number: Any) -> Any:
    """A saved number as the 0-dim tensor that PyTorch wraps it in. Beside half precision, which
    would round it, it stays a number where nothing is recorded.
    """
    shape, dtype = node.metadata[0]
    if dtype.itemsize == 2 and not active.state.grad_enabled:
        return number
    array = np.asarray(number)
    wrapped = Tensor((array if dtype.itemsize == 2 and shape else array.astype(dtype))[()])
    if active.state.recorder is not None:
        active.state.recorder.wrapped(wrapped)
    return wrapped


def saved_result(node: Node, array: Any, output_nr: int) -> Tensor:
    """A saved result as a tensor whose history is the node itself; where it was written to a view,
    the view's history, as long as there is a view.
    """
    extra = node.extra
    renewed = None if extra is None or extra.renewed is None else extra.renewed()
    return with_history(array, node, output_nr) if renewed is None else with_history(array, renewed)


_READ_AS_UNSIGNED = frozenset(
    {"diagonal", "ignore_index", "offset", "pad", "padding_idx", "shifts"}
)
"""Arguments of which PyTorch shows a negative number as an unsigned one of 64 bits."""


def _shown(value: Any, unsigned: bool) -> Any:
    """A saved argument as a program sees it."""
    if unsigned and type(value) is int and value < 0:
        return value + (1 << 64)
    return value.shown() if hasattr(value, "shown") else value


def saved_attribute(node: Any, name: str) -> Any:
    """`grad_fn._saved_NAME`: what the node saved; raises E403 where it was freed, AttributeError
    where the node saves nothing of that name.
    """
    if name.startswith("_raw_saved_"):
        return raw_saved(node, name)
    if not name.startswith("_saved_"):
        return Node.language_getattr(node, name)
    what = name.removeprefix("_saved_")
    slots = type(node).__slots__
    if f"saved_{what}" in slots:
        value = getattr(node, f"saved_{what}", None)
        if value is FREED:
            raise freed(node)
        if what in node.op.outputs:
            return _shown_result(node, what, value)
        if type(value) is not Tensor:
            return None if value is None else Tensor(np.asarray(value)[()])
        if value.grad_fn is None and not value.requires_grad:
            return value
        if value.storage is not None:
            check_saved(node, what, value, getattr(node, f"version_{what}"))
        inputs = node.op.inputs
        return saved_tensor(node, value, inputs.index(what) if what in inputs else None)
    for slot in (what, f"argument_{what}", f"argument_{what}s"):
        if slot in slots:
            value = getattr(node, slot)
            unsigned = what in _READ_AS_UNSIGNED
            if type(value) is tuple:
                return tuple([_shown(each, unsigned) for each in value])
            return _shown(value, unsigned)
    for ending, measure in (("_sym_sizes", tuple), ("_sym_numel", prod)):
        source = what.removesuffix(ending)
        if source != what and source in node.op.inputs:
            return measure(_sizes_of_input(node, node.op.inputs.index(source)))
    source = what.removesuffix("_sym_strides")
    if source != what and f"saved_{source}" in slots:
        value = getattr(node, f"saved_{source}", None)
        if type(value) is Tensor:
            return tuple(strides_of(value.array))
    raise AttributeError(name)


def _shown_result(node: Any, name: str, array: Any) -> Tensor:
    """A saved result as a program sees it, on the memory of the tensor; E404 where it was written
    to since.
    """
    number = node.op.outputs.index(name)
    recorded = node.op.outputs == ("result",) or number in node.op.differentiable
    shown = saved_result(node, array, number) if recorded else Tensor(array)
    storage = getattr(node, f"storage_{name}")
    if storage is not None:
        check_result(node, name, storage, getattr(node, f"version_{name}"))
        shown.storage = storage
    return shown


def _sizes_of_input(node: Node, number: int) -> tuple[int, ...]:
    """The shape of an input, read from the node that its gradient flows to."""
    source = node.next_nodes[number]
    return () if source is None else source.metadata[node.input_nrs[number]][0]


# --- saved-tensor hooks -------------------------------------------------------------------------


def pack_slot(node: Any, name: str, pack: Pack, unpack: Unpack) -> None:
    """Replace one tensor that a node saved by what the hook `pack` returns for it."""
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
"""For each class of nodes the subclass whose saved tensors are packed."""


def saved_names(op: Op) -> list[str]:
    """The tensors that an op's nodes save, in the order in which its rules name them: inputs
    first, then results.
    """
    rules = [*op.rules.values(), *([op.joint] if op.joint else [])]
    needed = dict.fromkeys(name for rule in rules for name in parameters_of(rule))
    return [name for name in needed if name in op.tensors] + [
        name for name in needed if name in op.outputs
    ]


def _packing_class(kind: type[Node]) -> type[Node]:
    """The subclass for nodes whose saved tensors are packed: it unpacks them while a method
    runs.
    """
    if (packing := _packing_classes.get(kind)) is not None:
        return packing

    def run(node: Any, grads: Any, keep: bool) -> tuple[Any, ...]:
        return _unpacked(node, lambda: kind.run(node, grads, keep))

    def run_recorded(node: Any, grads: Any, keep: bool) -> tuple[Any, ...]:
        return _unpacked(node, lambda: kind.run_recorded(node, grads, keep))

    def language_getattr(node: Any, name: str) -> Any:
        if name.startswith("_raw_saved_"):
            return saved_attribute(node, name)
        return _unpacked(node, lambda: saved_attribute(node, name))

    def save_result_storage(node: Any, output_nr: int, storage: Any, array: Any) -> None:
        """Nothing: a packed value does not follow writes to the tensor."""

    packing = type(
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
    packing.__slots__ = kind.__slots__
    _packing_classes[kind] = packing
    return packing


def _unpacked(node: Any, work: Callable[[], Any]) -> Any:
    """Call `work` while a node's saved tensors are unpacked; those that it does not free are packed
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
