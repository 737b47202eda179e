"""What the generated functions of ops call on their slow paths: errors, devices, list arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import all_on_cpu, device_of
from gradcli.arrays.layout.sizes import no_such_shape, sizes_apart
from gradcli.autograd.engine import accumulate
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, shape_error, type_error
from gradcli.ops.definition.dtype_support import check_dtype, not_implemented
from gradcli.ops.definition.refs import to
from gradcli.state import active, charge_tensors


def wrong_operand(op: Any, name: str, value: Any) -> GradcliError:
    """The error of an operand that is no tensor."""
    shown = "input" if name == "self" else name
    number = op.parameters.index(name) + 1 if name in op.parameters else 1
    return type_error(
        f"{op.name}(): argument '{shown}' must be a tensor, not {type_name(value)}",
        text=f"{op.name}(): argument '{shown}' (position {number}) must be Tensor, not"
        f" {type_name(value)}",
        help="wrap the number: `tensor(2.)`" if isinstance(value, (int, float)) else None,
    )


def check_tensor(op: Any, name: str, value: Any) -> None:
    """Raise E202 for an operand that is no tensor."""
    if type(value) is not Tensor:
        raise wrong_operand(op, name, value)


def not_a_tensor(name: str, argument: str, number: int, value: Any) -> GradcliError:
    """The error of a function's argument, by its name and position, that is not a tensor."""
    return type_error(
        f"{name}(): argument '{argument}' must be a tensor, not {type_name(value)}",
        text=f"{name}(): argument '{argument}' (position {number}) must be Tensor, not"
        f" {type_name(value)}",
        help="wrap the number: `tensor(2.)`" if type(value) in (int, float) else None,
    )


language_name: Callable[[Any], str] = lambda value: type(value).__name__  # noqa: E731
"""The name that programs know for a value's type; the language sets it."""


def type_name(value: Any) -> str:
    """The name of a value's type in the language."""
    return "Tensor" if type(value) is Tensor else language_name(value)


def number_of(op: Any, value: Tensor) -> Any:
    """The number of a 0-dim tensor that is passed for a numeric argument. Raises E202 for other
    tensors, and for one that requires grad.
    """
    if value.array.ndim:
        raise type_error(f"{op.name}(): expected a number, not a tensor of several")
    if value.requires_grad:
        raise type_error(
            f"{op.name}(): expected a number, and no gradient reaches the tensor given for it",
            help="take its value: `x.item()`",
        )
    return value.item()


def factor_first(name: str, factor: str, value: Any) -> None:
    """Check and warn of a deprecated overload, of the function of that name, in which a number
    precedes the tensor that it multiplies; `factor` is the argument's name today. Raises E202 for
    what is no number.
    """
    if type(value) not in (int, float, bool, complex):
        kind = type_name(value)
        raise type_error(
            f"{name}(): expected a number before the tensors, not {kind}",
            text=f"{name}(): argument '{factor}' must be Number, not {kind}",
        )
    active.state.warn(
        "W015",
        f"`{name}` with the number ahead of the tensors is deprecated",
        text=f"This overload of {name} is deprecated",
        help=f"name the number, and pass it last: `{factor}={value}`",
    )


def listed(name: str, tensors: Any) -> list[Tensor]:
    """The tensors of a list argument; raises E202 for anything but a list of tensors."""
    if not isinstance(tensors, (list, tuple)):
        raise type_error(
            f"{name}(): expected a list of tensors, not {type_name(tensors)}",
            text=f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not"
            f" {type_name(tensors)}",
            help=f"put the tensors in brackets: `{name}([a, b])`",
        )
    charge_tensors(len(tensors))
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise type_error(
                f"{name}(): element {number} must be a tensor, not {type_name(tensor)}",
                text=f"expected Tensor as element {number} in argument 0, but got"
                f" {type_name(tensor)}",
            )
    return list(tensors)


_OF_UFUNCS = ("ufunc", "Cannot cast ufunc")
"""How NumPy's TypeErrors begin for dtypes that a ufunc does not support."""


_NO_NUMBERS = ("dtype('<U", "dtype('O')", "StrDType", "ObjectDType")
"""What stands in them for an argument that is no number."""


def misfit(
    op: Any, operands: tuple[Any, ...], failure: ValueError | TypeError | GradcliError
) -> Exception:
    """The error for arrays whose shapes or dtypes NumPy rejected. A TypeError of gradcli stays one.
    An error that the forward function raised stays too, unless it concerns a dtype and the
    shapes do not fit either: PyTorch checks shapes first.
    """
    if isinstance(failure, GradcliError) and not (
        failure.raises == "NotImplementedError" and _apart(op, operands)
    ):
        return failure
    if isinstance(failure, TypeError) and not str(failure).startswith(_OF_UFUNCS):
        return failure
    if any(kind in str(failure) for kind in _NO_NUMBERS):
        return type_error(f"{op.name}: an argument is no number")
    if (impossible := no_such_shape(failure)) is not None:
        return impossible
    if isinstance(failure, TypeError) and not _apart(op, operands):
        dtypes_of_operands = dict.fromkeys(str(o.dtype) for o in operands if type(o) is Tensor)
        plain = [operand.array if type(operand) is Tensor else operand for operand in operands]
        kind = dtypes.result_dtype(plain).scalar_type
        usual = f"\"{op.name}_cpu\" not implemented for '{kind}'"
        return dtype_error(
            f"{op.name}: not defined for tensors of {' and '.join(dtypes_of_operands)}",
            text=not_implemented(op.name, kind) or usual,
            raises="NotImplementedError",
        )
    shapes = [
        tuple(operand.array.shape) if type(operand) is Tensor else None for operand in operands
    ]
    shown = " and ".join(str(shape) for shape in shapes if shape is not None)
    if op.pointwise:
        return shape_error(
            f"{op.name}: the shapes {shown} cannot be broadcast",
            text=sizes_apart(*[shape for shape in shapes if shape is not None]) or None,
        )
    return shape_error(f"{op.name}: {failure}")


def check_operand(op: Any, array: Any, operands: tuple[Any, ...]) -> None:
    """Raise E203 where an op does not support the dtype of an operand's array; E301 for operands
    whose shapes do not fit, which PyTorch checks before its kernels check dtypes.
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
    """Whether arrays are on several devices."""
    return not all_on_cpu() and len({device_of(array) for array in arrays}) > 1


def check_devices(op: Any, arrays: Sequence[Any]) -> None:
    """Raise E208 where arrays are on several devices; a 0-dim one on the CPU goes with any."""
    if all_on_cpu():
        return
    homes = {device_of(array) for array in arrays if getattr(array, "ndim", 0)}
    if len(homes) > 1:
        first, *_, last = sorted(map(str, homes))
        raise GradcliError(
            "E208",
            f"{op.name}: expected all tensors to be on the same device, found {first} and {last}",
            text=f"Tensor on device {first} is not on the expected device meta!"
            if last == "meta"
            else None,
            help="move them with `.to(device)`; only 0-dim tensors on the CPU go with any device",
        )


def brought_home(node: Node, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients, as tensors, of a node whose operands were on several devices: each on the
    device of its operand.
    """
    homes: Any = getattr(node, "mixed", ())
    result = []
    for following, output_nr, gradient, home in zip(
        node.next_nodes, node.input_nrs, gradients, homes, strict=True
    ):
        if gradient is not None and following is not None and gradient.device != home:
            fitted = accumulate.sum_to_size(
                node, gradient, gradient.array, *following.metadata[output_nr]
            )
            gradient = to(fitted, home)
        result.append(gradient)
    return tuple(result)


def base_of(tensor: Tensor) -> Tensor:
    """The base of a view of `tensor`, which is none of inference mode's."""
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
