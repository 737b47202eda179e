"""Copies, casts and fills: `clone to cuda float copy_ fill_ zero_ detach contiguous`."""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import located, module_of, moved
from gradcli.arrays.dtypes import DTYPES, DType
from gradcli.arrays.layout.sizes import Device
from gradcli.arrays.layout.strides import (
    cast_in_order,
    channels_are_last,
    copied_in_order,
    is_channels_last,
    laid_out_like,
    with_channels_last,
)
from gradcli.arrays.scalars import checked_cast
from gradcli.autograd.engine import accumulate
from gradcli.autograd.inplace import writes
from gradcli.autograd.inplace.writes import (
    check_captured,
    check_graph,
    check_inplace,
    check_memory,
    is_recorded,
    overwrite,
    write,
)
from gradcli.autograd.tensor import Tensor, alias, meta_of, storage_of
from gradcli.errors import GradcliError, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.fill import PYTHON_TYPES, checked_dtype
from gradcli.ops.creation.settings import PRESERVED, by_rows, wants_channels_last
from gradcli.ops.definition.doc import BY_KINDS, NEVER, describe, in_numpy
from gradcli.ops.definition.op import Op, op
from gradcli.ops.definition.refs import real_part
from gradcli.state import active

clone = op(
    "clone",
    lambda self: copied_in_order(self),
    keeps_layout=True,
    leading=True,
    self=lambda grad: grad,
    raises=NEVER,
)


def _cast(self: Any, dtype: DType) -> Any:
    same = dtypes.of_array(self) is dtype
    return copied_in_order(self) if same else cast_in_order(self, dtype)


cast_to_floating = op(
    "_to_copy",
    lambda self, dtype: _cast(self, dtype),
    keeps_layout=True,
    leading=True,
    # The engine casts the gradient back to the input's dtype.
    self=lambda grad: grad,
    raises=BY_KINDS,
)
# Integers and bools have no gradient.
cast_to_integer = op(
    "_to_copy.integer",
    lambda self, dtype: _cast(self, dtype),
    constant=("self",),
    keeps_layout=True,
    leading=True,
    raises=BY_KINDS,
)


def cast_to(value: Any, dtype: DType) -> Any:
    """An array or tensor in a dtype, always a copy; no integer leads back to where it came from."""
    differentiable = dtype.is_floating_point or dtype.is_complex
    return (cast_to_floating if differentiable else cast_to_integer)(value, dtype)


@function("clone", method=True)
def clone_function(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, in the graph; `torch.contiguous_format` makes it lie in row order."""
    if wants_channels_last(input, memory_format):
        return channels_last.apply(input)
    return (row_order if by_rows("clone", memory_format) else clone).apply(input)


# A copy on another device; the gradient is copied back to the first one.
to_device: Op = op(
    "_to_copy.device",
    lambda self, device, home: moved(self, device),
    leading=True,
    node="ToCopyBackward0",
    self=lambda grad, device, home: to_device(grad, home, device),
    raises=BY_KINDS,
)


def _is_dtype(value: Any) -> bool:
    """Whether a value is a dtype, or a Python type that stands for one."""
    return isinstance(value, DType) or hasattr(value, "hosts")


def wanted(
    name: str, values: tuple[Any, ...], dtype: Any, device: Any
) -> tuple[DType | None, Device | None, bool]:
    """The dtype and the device that the arguments of `to` specify, and whether to copy. In order
    stand a dtype, a tensor, or a device and perhaps a dtype; then `non_blocking` and `copy`.
    """
    flags: list[Any] = []
    if values:
        first, *flags = values
        if type(first) in (bool, float, complex) and dtype is device is None:
            dtype = PYTHON_TYPES[type(first)]  # PyTorch takes the number for its type
        elif _is_dtype(first) and dtype is device is None:
            dtype = first
        elif isinstance(first, Tensor) and dtype is device is None:
            dtype, device = first.dtype, first.device
        elif (isinstance(first, (str, Device)) or type(first) in (int, NoneType)) and not device:
            device = first
            if flags and dtype is None and (flags[0] is None or _is_dtype(flags[0])):
                dtype, *flags = flags
            elif flags:
                raise type_error(f"{name}(): behind a device stands a dtype")
        else:
            raise type_error(f"{name}(): expected a dtype or a device, not {type(first).__name__}")
        if len(flags) > 2 or any(type(flag) is not bool for flag in flags):
            raise type_error(
                f"{name}(): behind device and dtype stand `non_blocking` and `copy`, two bools"
            )
    if dtype is not None:
        dtype = checked_dtype(name, dtype, dtype)
    return dtype, None if device is None else located(name, device), flags[1:] == [True]


@method("to")
@in_numpy("{head}.astype({1})")
def to(
    self: Tensor,
    *args: Any,
    dtype: DType | None = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor in another dtype, on another device or in another memory format: itself where it
    is so already, unless `copy`.

    Raises E604 for a GPU that is not there.

    Example: tensor([0.5, 1., 2.]).to(torch.float64)
    """
    target, target_device, copied = wanted("to", args, dtype, device)
    copy = copy or copied
    home = self.device
    if target_device is not None and target_device != home:
        self = to_device.apply(self, target_device, home)
        copy = False
    result = self
    if copy or target not in (None, self.dtype):
        result = cast_to(self, target or self.dtype)
    if memory_format is None or memory_format is PRESERVED:
        return result
    if wants_channels_last(result, memory_format):
        return result if channels_are_last(result.array) else channels_moved.apply(result)
    return contiguous(result)


@method("cuda")
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a GPU; itself where it is there already. Raises E604 where there is none, E602
    for a device that is no GPU.
    """
    return to(self, device=gpu_of(device))


def gpu_of(device: Any) -> Any:
    """What `cuda()` moves to; raises for a device that is no GPU."""
    wanted = Device("cuda" if device is None else device)
    if wanted.type != "cuda":
        text = "Invalid device, must be cuda device"
        raise runtime_error(f"cuda(): {wanted} is no GPU", text=text)
    return wanted


@method("cpu")
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in the host's memory; itself where it is there already."""
    return to(self, device="cpu", memory_format=memory_format)


def _cast_method(name: str, target: DType) -> None:

    @method(name)
    def convert(self: Tensor, *, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return to(self, target, memory_format=memory_format)
        return self if self.dtype is target else cast_to(self, target)

    describe(
        convert,
        f"The tensor as {target}; itself where it is one already.",
        f"tensor([0.5, 1., 2.]).{name}()",
    )


_CASTS = "float double half bfloat16 long int short bool cfloat cdouble"
for _name in _CASTS.split():
    _cast_method(_name, DTYPES[_name])
_cast_method("byte", dtypes.uint8)
_cast_method("char", dtypes.int8)


@method("type_as")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in another one's dtype."""
    return to(self, other.dtype)


@method("contiguous")
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor with its elements in row order, or with its channels innermost: itself where they
    are so already.
    """
    if wants_channels_last(self, memory_format):
        return self if is_channels_last(self.array) else channels_last.apply(self)
    if isinstance(self.array, np.generic) or self.array.flags.c_contiguous:
        return self
    return row_order.apply(self)


row_order: Op = op(
    "contiguous",
    lambda self: self.copy(order="C"),
    leading=True,
    node="CloneBackward0",
    self=lambda grad: grad,
    raises=NEVER,
)

channels_last, channels_moved = (
    op(
        name,
        lambda self: with_channels_last(self.copy()),
        keeps_layout=True,
        leading=True,
        node=node,
        self=lambda grad: grad,
        raises=BY_KINDS,
    )
    for name, node in (
        ("contiguous.channels_last", "CloneBackward0"),
        ("_to_copy.channels_last", "ToCopyBackward0"),
    )
)

# --- leaving the graph --------------------------------------------------------------------------


@function("detach", method=True)
def detach(input: Tensor) -> Tensor:
    """The same memory and version, outside the graph."""
    return alias(input)


@function("detach_", method=True)
def detach_in_place(input: Tensor) -> Tensor:
    """Take the tensor itself out of the graph: it becomes a leaf. Raises E405 for a view.

    In inference mode the graph stays as it is.
    """
    if active.state.inference:
        return input
    check_captured("detach_", input)
    if input.base is not None:
        raise GradcliError(
            "E405",
            "a view cannot be detached in place",
            text="Can't detach views in-place. Use detach() instead. If you are using"
            " DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as"
            " True, gradients are views of DDP buckets, and hence detach_() cannot be called on"
            " these gradients. To fix this error, please refer to the Optimizer.zero_grad()"
            " function in torch/optim/optimizer.py as the solution.",
            help="use detach()",
        )
    storage_of(input)
    if input.grad_fn is not None and input.grad_fn.extra is not None:
        hooks = input.grad_fn.extra.tensor_hooks.get(input.output_nr)
        if hooks is not None:  # they stay the tensor's too
            meta_of(input).hooks = hooks
    input.grad_fn = None
    input.output_nr = 0
    input.requires_grad = False
    return input


# --- writing ------------------------------------------------------------------------------------

copied = op(
    "copy",
    lambda self, src: np.broadcast_to(src, self.shape).astype(self.dtype),
    node="CopyBackwards",
    scratch=True,
    self=lambda grad: zeros_like(grad),
    src=lambda grad: grad,
    raises=BY_KINDS,
)
writes.clone = lambda tensor: clone.apply(tensor)
writes.copied = lambda tensor, source: copied.apply(tensor, source)


@method("copy_")
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write another tensor's values, broadcast and cast, and take its history.

    Example: tensor([0.5, 1., 2.]).copy_(tensor([2., 1., 3.]))
    """
    if isinstance(src, (bool, int, float, complex)):
        src = Tensor(dtypes.cast(src, self.dtype))
    elif not isinstance(src, Tensor):
        raise type_error(f"copy_() needs a tensor, not {type(src).__name__}")
    overlapping = check_inplace("copy_", self, src)
    if self.array.dtype.kind in "iub":
        src = Tensor(src.array)  # a copy to integers carries no gradient
    same = src.array.dtype is self.array.dtype
    if same and not overlapping and not is_recorded(self, src):
        overwrite(self, src.array)
        return self
    result = copied.apply(self, src)
    if same and overlapping:
        from gradcli.ops.codegen.aliased_writes import copied_over  # lazy: start-up: rarely needed

        result.array = copied_over(self.array, src.array)
    write(self, result)
    return self


filled = op(
    "fill",
    lambda self, value: module_of(self).full(self.shape, value, self.dtype),
    node="FillBackward2",
    self=lambda grad: zeros_like(grad),
    raises=BY_KINDS,
)
# The engine sums the value's gradient to its shape, 0-dim.
filled_with_tensor = op(
    "fill",
    lambda self, value: module_of(self).full(
        self.shape, dtypes.cast(value, dtypes.of_array(self)), self.dtype
    ),
    node="FillBackward3",
    self=lambda grad: zeros_like(grad),
    value=lambda grad: grad,
    raises=BY_KINDS,
)
zeroed = op(
    "zero",
    lambda self: module_of(self).zeros(self.shape, self.dtype),
    leading=True,
    self=lambda grad: zeros_like(grad),
    raises=BY_KINDS,
)


@function("fill_", method=True)
def fill_(input: Tensor, value: Any) -> Tensor:
    """Write one number, or a 0-dim tensor's, into every element. Raises E301 for other tensors.

    Example: torch.fill_(tensor([0.5, 1., 2.]), 7)
    """
    if type(value) is not Tensor and type(value) not in NUMBERS:
        raise type_error(f"fill_(): the value must be a number, not {type_name(value)}")
    check_graph("fill_", input, value)
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise shape_error(
                f"fill_(): the value must be 0-dim, not of shape {tuple(value.array.shape)}",
                text="fill_ only supports 0-dimension value tensor but got tensor with"
                f" {value.array.ndim} dimensions.",
            )
        check_memory(input)
        if value.array.dtype is input.array.dtype and not is_recorded(input, value):
            overwrite(input, value.array)
        else:
            write(input, filled_with_tensor.apply(input, value))
        return input
    number = checked_cast(value, input.dtype)
    if is_recorded(input):
        write(input, filled.apply(input, number))
    else:
        overwrite(input, number)
    return input


fill_number = op(
    "fill",
    lambda self, value: laid_out_like(self, filled(self, value)),
    keeps_layout=True,
    self=lambda grad: zeros_like(grad),
    numpy="full_like",
    raises=BY_KINDS,
)
fill_tensor = op(
    "fill",
    lambda self, value: laid_out_like(self, filled_with_tensor(self, value)),
    node="FillBackward1",
    keeps_layout=True,
    self=lambda grad: zeros_like(grad),
    value=lambda grad: grad,
    raises=BY_KINDS,
)


@function("fill")
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of one number, or a 0-dim tensor's, of another one's sizes and dtype. Raises E301
    for a tensor that is not 0-dim.

    Conventions: The value gets the sum of the gradient, the input 0.

    Example: torch.fill(tensor([0.5, 1., 2.]), 7)
    """
    if type(value) is not Tensor:
        if type(value) not in NUMBERS:
            raise type_error(f"fill(): the value must be a number, not {type_name(value)}")
        return fill_number.apply(input, checked_cast(value, input.dtype))
    if value.array.ndim:
        raise shape_error(
            f"fill(): the value must be 0-dim, not of shape {tuple(value.array.shape)}"
        )
    return fill_tensor.apply(input, value)


@function("zero_", method=True)
def zero_(input: Tensor) -> Tensor:
    """Write zero into every element."""
    check_graph("zero_", input)
    write(input, zeroed.apply(input))
    return input


def _cast_gradient(gradient: Any, dtype: Any) -> Any:
    if isinstance(gradient, Tensor):
        if gradient.array.dtype.kind == "c" and dtype.kind == "f":
            gradient = real_part(gradient)
            if gradient.array.dtype is dtype:
                return gradient
        return cast_to(gradient, dtypes.of_array(np.empty((), dtype)))
    return dtypes.cast(gradient, dtypes.of_array(np.empty((), dtype)))


def _copied_gradient(gradient: Tensor) -> Tensor:
    """A gradient copied to new memory, as PyTorch copies it while a graph of it is recorded."""
    return copied.apply(Tensor(np.zeros_like(gradient.array)), gradient)


accumulate.cast = _cast_gradient
accumulate.copy, accumulate.clone = _copied_gradient, clone.apply
