"""New tensors of one value: `zeros ones full empty zeros_like new_zeros scalar_tensor`.

Also the arguments that all functions share which create tensors: `dtype` is the default floating
dtype unless the values determine another, `device` is the default device, and only floating and
complex tensors can require grad.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

from gradcli.arrays import dtypes
from gradcli.arrays.backend import located, module_on, moved
from gradcli.arrays.dtypes import DType
from gradcli.arrays.layout.sizes import Device
from gradcli.arrays.layout.strides import laid_out_like
from gradcli.arrays.scalars import as_zero_dim, checked_cast
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, type_error
from gradcli.ops.binding.arguments import number_in, one_by_one, sizes_of
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.settings import by_rows
from gradcli.ops.definition.doc import describe, in_numpy
from gradcli.state import active

PYTHON_TYPES = {
    bool: dtypes.boolean,
    int: dtypes.int64,
    float: dtypes.float64,
    complex: dtypes.complex128,
}

# --- arguments ----------------------------------------------------------------------------------


@overload
def checked_dtype(name: str, dtype: Any, default: DType) -> DType: ...
@overload
def checked_dtype(name: str, dtype: Any, default: None) -> DType | None: ...
def checked_dtype(name: str, dtype: Any, default: DType | None) -> DType | None:
    """The requested dtype, or the default; Python's number types stand for their widest dtypes.
    Raises E202 for what is no dtype.
    """
    if dtype is None:
        return default
    if isinstance(dtype, DType):
        return dtype
    # A program's own `float` is a class of the language, which names the host's.
    for host in getattr(dtype, "hosts", (dtype,)):
        if isinstance(host, type) and host in PYTHON_TYPES:
            return PYTHON_TYPES[host]
    raise type_error(
        f"{name}(): dtype must be a dtype, not {type_name(dtype)}",
        text=f"{name}(): argument 'dtype' must be torch.dtype, not {type_name(dtype)}",
        help=f"write `torch.{dtype}`" if type(dtype) is str and dtype in dtypes.DTYPES else None,
    )


def checked_sizes(name: str, sizes: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence. Raises E204 for a negative one, and E602 where
    they hold more elements than a program may create.
    """
    plain = sizes_of(name, sizes)
    if min(plain, default=0) < 0:
        text = f"Trying to create tensor with negative dimension {min(plain)}: {list(plain)}"
        if name == "eye":
            name_of, size = ("n", plain[0]) if plain[0] < 0 else ("m", plain[1])
            text = f"{name_of} must be greater or equal to 0, got {size}"
        if name == "zeros":
            text = "zeros: Dimension size must be non-negative."
        raise runtime_error(f"{name}(): {plain} has a negative size", text=text)
    check_count(name, math.prod(plain))
    return plain


def check_count(name: str, count: float) -> None:
    """Raise E602 where a tensor would have more elements than the limit allows."""
    active.state.limits.check_elements(count, f"elements of {name}()", "RuntimeError")


def tensor_of(name: str, array: Any, device: Any, requires_grad: bool) -> Tensor:
    """The new tensor of an array, on a device: the session's for None.

    Raises E205 or E604 for a device that is not there, and E408 where an integer tensor should
    require grad.
    """
    if device is None:
        device = active.state.default_device
    if device is not None:
        array = moved(array, located(name, device))
    result = Tensor(array)
    if requires_grad:
        check_requires_grad(name, result.dtype)
        result.requires_grad = True
    return result


def check_requires_grad(name: str, dtype: DType) -> None:
    """Raise E408 for a new leaf of a dtype that has no gradients."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise GradcliError(
            "E408",
            f"{name}(): only floating tensors can require grad, and this one is {dtype}",
            text="Only Tensors of floating point and complex dtype can require gradients",
            help="make it floating: write `2.` for `2`, or give dtype=torch.float32",
        )


def number_dtype(number: Any) -> DType:
    """The dtype of a Python number: the default one for a float."""
    if type(number) is float:
        return dtypes.default_dtype()
    if type(number) is complex and dtypes.default_dtype() is not dtypes.float64:
        return dtypes.complex64
    return PYTHON_TYPES[type(number)]


# --- one value ----------------------------------------------------------------------------------


def plain_number(name: str, value: Any) -> Any:
    """A Python number, read from a 0-dim tensor that does not require grad if need be; raises
    E202 for anything else.
    """
    value = number_in(value)
    if type(value) not in PYTHON_TYPES:
        raise type_error(f"{name} must be a number, not {type_name(value)}")
    return value


def chosen_device(name: str, device: Any, like: Tensor | None = None) -> Device:
    """The device that a new tensor is made on: the one given, that of the tensor that it is to be
    like, or the session's.
    """
    if device is None:
        if like is not None:
            return like.device
        device = active.state.default_device
    return _CPU if device is None else located(name, device)


_CPU = Device("cpu")


def _filled(sizes: tuple[int, ...], value: Any, dtype: DType, device: Device) -> Any:
    number = checked_cast(value, dtype)
    return module_on(device).full(sizes, number, dtype.numpy_dtype)[()]


def _of_sizes(
    name: str,
    value: float,
    sizes: tuple[Any, ...],
    size: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """A tensor of one value, of sizes given one by one or as `size`."""
    if not sizes and size is None:
        raise GradcliError("E201", f"{name}() needs the sizes of the tensor")
    plain = checked_sizes(name, one_by_one(name, "size", sizes, size))
    target = checked_dtype(name, dtype, dtypes.default_dtype())
    target_device = chosen_device(name, device)
    return tensor_of(
        name, _filled(plain, value, target, target_device), target_device, requires_grad
    )


def _filled_like(
    name: str,
    input: Tensor,
    value: Any,
    dtype: DType,
    device: Any,
    requires_grad: bool,
    memory_format: Any,
) -> Tensor:
    """A tensor of one value, of another one's sizes and, unless it is said, its layout."""
    target_device = chosen_device(name, device, input)
    array = _filled(input.array.shape, value, dtype, target_device)
    if not by_rows(name, memory_format):
        array = laid_out_like(input.array, array)
    return _for_examples(input, tensor_of(name, array, target_device, requires_grad))


def _constant(name: str, value: float) -> Any:
    """A function that makes tensors of one value."""

    def make(
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _of_sizes(name, value, sizes, size, dtype, device, requires_grad)

    def like(
        input: Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        target = checked_dtype(name, dtype, input.dtype)
        own = f"{name}_like"
        return _filled_like(own, input, value, target, device, requires_grad, memory_format)

    def new(
        self: Tensor,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        kind, target_device = dtype or self.dtype, device or self.device
        return _for_examples(
            self, _of_sizes(name, value, sizes, size, kind, target_device, requires_grad)
        )

    article = f"A tensor of {'zeros' if value == 0 else 'ones'}"
    for body, function_name, words, example in (
        (make, name, "sizes given one by one or as one sequence", f"torch.{name}(2, 3)"),
        (
            like,
            f"{name}_like",
            "of another one's sizes and dtype",
            f"torch.{name}_like(tensor([0.5, 1., 2.]))",
        ),
        (new, f"new_{name}", "of this one's dtype", f"tensor([0.5, 1., 2.]).new_{name}(2, 3)"),
    ):
        body.__name__ = body.__qualname__ = function_name
        describe(body, f"{article}, {words}.", example)
    in_numpy(f"{name}(dtype=np.float32)")(make)
    function(name)(make)
    function(f"{name}_like")(like)
    method(f"new_{name}")(new)
    return make, like


def _for_examples(pattern: Tensor, new: Tensor) -> Tensor:
    """A new tensor, which inside `vmap` each example has for itself where each has its pattern."""
    batch = active.state.batch
    return new if batch is None else batch.for_examples(pattern, new)


# PyTorch leaves the memory of `empty` as it was; here it holds zeros, so that runs agree.
zeros, zeros_like = _constant("zeros", 0)
_constant("empty", 0)
ones, ones_like = _constant("ones", 1)


@function("full", numpy="full(dtype=np.float32)")
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one number, of the number's dtype unless `dtype` is given.

    Example: torch.full((2, 3), 7.)
    """
    if not isinstance(size, (tuple, list)):
        raise type_error(f"full(): size must be a tuple of ints, not {type_name(size)}")
    value = plain_number("full(): fill_value", fill_value)
    target = checked_dtype("full", dtype, number_dtype(value))
    sizes = checked_sizes("full", (size,))
    target_device = chosen_device("full", device)
    return tensor_of(
        "full", _filled(sizes, value, target, target_device), target_device, requires_grad
    )


@function("full_like")
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of one number, of another one's sizes and dtype.

    Example: torch.full_like(tensor([0.5, 1., 2.]), 7)
    """
    value = plain_number("full_like(): fill_value", fill_value)
    target = checked_dtype("full_like", dtype, input.dtype)
    return _filled_like("full_like", input, value, target, device, requires_grad, memory_format)


@method("new_full")
def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one number, of this one's dtype.

    Example: tensor([0.5, 1., 2.]).new_full((2, 3), 7.)
    """
    new = full(
        size,
        fill_value,
        dtype=dtype or self.dtype,
        device=device or self.device,
        requires_grad=requires_grad,
    )
    return _for_examples(self, new)


@function("scalar_tensor")
def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A 0-dim tensor of the default floating dtype, or the given one.

    Example: torch.scalar_tensor(3)
    """
    target = checked_dtype("scalar_tensor", dtype, dtypes.default_dtype())
    number = plain_number("scalar_tensor(): s", s)
    return tensor_of("scalar_tensor", as_zero_dim(number, target), device, requires_grad)
