"""What the generated functions of ops call: the roads that are taken rarely, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import device_of, gpu_in_use
from gradcli.arrays.storage import InferenceStorage
from gradcli.autograd.engine import accumulate
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.definition.dtype_support import check_dtype
from gradcli.ops.definition.ref import ref
from gradcli.state import active

to = ref("to")


def wrong_operand(op: Any, name: str, value: Any) -> GradcliError:
    """The error of an operand that is no tensor."""
    shown = "input" if name == "self" else name
    return GradcliError(
        "E202",
        f"{op.name}(): argument '{shown}' must be a tensor, not {type_name(value)}",
        help="wrap the number: `tensor(2.)`" if isinstance(value, (int, float)) else None,
    )


def type_name(value: Any) -> str:
    """A value's type as a program knows it."""
    return "Tensor" if type(value) is Tensor else type(value).__name__


def number_of(op: Any, value: Tensor) -> Any:
    """The number in a 0-dim tensor that stands for a number; raises E202 for other tensors, and for
    one that a gradient is wanted of.
    """
    if value.array.ndim:
        raise GradcliError("E202", f"{op.name}(): expected a number, not a tensor of several")
    if value.requires_grad:
        raise GradcliError(
            "E202",
            f"{op.name}(): expected a number, and no gradient reaches the tensor given for it",
            help="take its value: `x.item()`",
        )
    return value.item()


def listed(name: str, tensors: Any) -> list[Tensor]:
    """The tensors of a list argument; raises E202 for what is no list of tensors."""
    if not isinstance(tensors, (list, tuple)):
        raise GradcliError(
            "E202",
            f"{name}(): expected a list of tensors, not {type_name(tensors)}",
            help=f"put the tensors in brackets: `{name}([a, b])`",
        )
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise GradcliError(
                "E202", f"{name}(): element {number} must be a tensor, not {type_name(tensor)}"
            )
    return list(tensors)


_OF_UFUNCS = ("ufunc", "Cannot cast ufunc")
"""How the messages begin of NumPy's TypeErrors for dtypes that a ufunc does not have."""


def misfit(
    op: Any, operands: tuple[Any, ...], failure: ValueError | TypeError | GradcliError
) -> Exception:
    """The error of arrays whose shapes or dtypes NumPy refused; a TypeError of ours stays one. What
    the forward function refused itself stays too, unless it is a dtype of operands whose shapes do
    not fit either, which PyTorch finds first.
    """
    if isinstance(failure, GradcliError) and not (
        failure.raises == "NotImplementedError" and _apart(op, operands)
    ):
        return failure
    if isinstance(failure, TypeError) and not str(failure).startswith(_OF_UFUNCS):
        return failure
    if isinstance(failure, TypeError) and not _apart(op, operands):
        dtypes_given = dict.fromkeys(str(o.dtype) for o in operands if type(o) is Tensor)
        return GradcliError(
            "E203",
            f"{op.name}: not defined for tensors of {' and '.join(dtypes_given)}",
            raises="NotImplementedError",
        )
    shapes = [
        tuple(operand.array.shape) if type(operand) is Tensor else None for operand in operands
    ]
    shown = " and ".join(str(shape) for shape in shapes if shape is not None)
    if op.pointwise:
        return GradcliError("E301", f"{op.name}: the shapes {shown} cannot be broadcast")
    return GradcliError("E301", f"{op.name}: {failure}")


def check_operand(op: Any, array: Any, operands: tuple[Any, ...]) -> None:
    """Raise E203 where an entry refuses the dtype of an operand's array; E301 for operands whose
    shapes do not fit, which PyTorch finds before its kernels refuse a dtype.
    """
    try:
        check_dtype(op.name, dtypes.of_array(array), op.unsupported)
    except GradcliError as refusal:
        if refusal.raises == "NotImplementedError" and _apart(op, operands):
            raise misfit(op, operands, ValueError()) from None
        raise


def _apart(op: Any, operands: tuple[Any, ...]) -> bool:
    """Whether the shapes of the operands of a pointwise op cannot be broadcast."""
    try:
        np.broadcast_shapes(*[o.array.shape for o in operands if type(o) is Tensor])
    except ValueError:
        return bool(op.pointwise)
    return False


def devices_differ(*arrays: Any) -> bool:
    """Whether arrays lie on several devices."""
    return gpu_in_use() and len({device_of(array) for array in arrays}) > 1


def check_devices(op: Any, arrays: Sequence[Any]) -> None:
    """Raise E208 where arrays lie on several devices; a 0-dim one on the CPU goes with any."""
    if not gpu_in_use():
        return
    homes = {device_of(array) for array in arrays if getattr(array, "ndim", 0)}
    if len(homes) > 1:
        shown = " and ".join(sorted(map(str, homes)))
        raise GradcliError(
            "E208",
            f"{op.name}: expected all tensors to be on the same device, found {shown}",
            help="move them with `.to(device)`; only 0-dim tensors on the CPU go with any device",
        )


def brought_home(node: Node, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients, tensors, of a node whose operands lay on several devices: each on its
    operand's own.
    """
    homes: Any = getattr(node, "mixed", ())
    result = []
    for following, output_nr, gradient, home in zip(
        node.next_nodes, node.input_nrs, gradients, homes, strict=True
    ):
        if gradient is not None and following is not None and gradient.device != home:
            fitted = accumulate.fit(node, gradient, gradient.array, *following.metadata[output_nr])
            gradient = to(fitted, home)
        result.append(gradient)
    return tuple(result)


def base_of(tensor: Tensor) -> Tensor | None:
    """The tensor whose memory a view of `tensor` shows, None where no graph follows writes to it:
    for tensors of inference mode.
    """
    if type(tensor.storage) is InferenceStorage:
        return None
    meta = tensor.meta
    return tensor if meta is None or meta.base is None else meta.base


def creation_of(tensor: Tensor) -> str:
    """How the tensor was made, where that restricts writing to it and its views: see
    `TensorMeta`.
    """
    return "" if tensor.meta is None else tensor.meta.creation


def run_on_tensors(node: Node, grads: Any, keep: bool) -> tuple[Any, ...]:
    """Run a node's rules with tensors that are not recorded, so that PyTorch's promotion applies
    and each op rounds as it does in a program.
    """
    state = active.state
    before = state.grad_enabled
    state.grad_enabled = False
    try:
        wrapped = (
            [None if grad is None else Tensor(grad) for grad in grads]
            if isinstance(grads, list)
            else Tensor(grads)
        )
        gradients = node.run_recorded(wrapped, keep)
    finally:
        state.grad_enabled = before
    return tuple(None if gradient is None else gradient.array for gradient in gradients)
