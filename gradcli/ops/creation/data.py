"""Tensors from data: `tensor as_tensor new_tensor`, and the old `Tensor LongTensor`."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, to_host
from gradcli.arrays.dtypes import DType
from gradcli.arrays.layout.sizes import Size
from gradcli.autograd.tensor import Tensor, alias, meta_of
from gradcli.errors import type_error, value_error
from gradcli.ops.binding.catalogue import function, method, modules
from gradcli.ops.binding.functions import torch
from gradcli.ops.creation.copies import clone_function, detach, to
from gradcli.ops.creation.fill import (
    PYTHON_TYPES,
    check_requires_grad,
    checked_dtype,
    number_dtype,
    tensor_of,
    zeros,
)
from gradcli.ops.creation.tensor_methods import requires_grad_
from gradcli.ops.definition.doc import STATE, describe
from gradcli.ops.definition.lints import check_copied
from gradcli.state import active, look

# --- nested sequences ---------------------------------------------------------------------------

SEQUENCES = (list, tuple, range, deque)


def _shape_of(data: Any) -> tuple[int, ...]:
    """The shape that the first elements of nested sequences have."""
    shape: list[int] = []
    while isinstance(data, SEQUENCES):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
        if len(shape) > 64:
            raise value_error("tensor(): the lists are nested too deeply")
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], path: str, flat: list[Any]) -> None:
    """Put the numbers of nested sequences into `flat`; raises where they do not have the shape."""
    if not shape:
        if isinstance(data, Tensor):
            if data.array.size != 1:
                raise value_error(
                    f"tensor(): {path} is a tensor of {data.array.size} elements, where a number"
                    " should be",
                    help="join tensors with torch.stack()",
                )
            look(None, data.array)
            data = to_host(data.array.reshape(-1)[0])
        elif isinstance(data, SEQUENCES):
            raise type_error(f"tensor(): {path} is a list, where a number should be")
        flat.append(data)
        return
    if not isinstance(data, SEQUENCES):
        raise type_error(f"tensor(): {path} is {_described(data)}, where a list should be")
    if len(data) != shape[0]:
        raise value_error(
            f"tensor(): {path} has {_counted(len(data))}, the lists beside it have {shape[0]}",
            text=f"expected sequence of length {shape[0]} at dim {path.count('[')}"
            f" (got {len(data)})",
            help="all lists of one depth need the same length",
        )
    if len(shape) == 1 and not any(isinstance(item, (*SEQUENCES, Tensor)) for item in data):
        flat.extend(data)
        return
    for i, item in enumerate(data):
        _flatten(item, shape[1:], f"{path}[{i}]", flat)


def _described(data: Any) -> str:
    return "a tensor" if isinstance(data, Tensor) else f"a {type(data).__name__}"


def _counted(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


def _element_dtype(value: Any, nested: bool) -> DType:
    """The dtype of one number of the data, the first in lists or not; raises E202 for what is no
    number.
    """
    if type(value) in PYTHON_TYPES:
        return number_dtype(value)
    if isinstance(value, np.generic):
        return dtypes.of_array(value)
    if isinstance(value, (int, float)):  # of a class that derives from it
        return number_dtype(int(value) if isinstance(value, int) else float(value))
    kind = type(value).__name__
    raised = "RuntimeError"
    if isinstance(value, str):
        raised = "ValueError" if nested else "TypeError"
    text = f"Could not infer dtype of {kind}"
    if isinstance(value, str):
        text = "too many dimensions 'str'" if nested else "new(): invalid data type 'str'"
    raise type_error(f"tensor(): a tensor holds numbers, not {kind}", text=text, raises=raised)


def _inferred(flat: list[Any], nested: bool) -> DType:
    """The dtype that holds all the numbers."""
    kinds = {type(value) for value in flat}
    if kinds == {float}:
        return dtypes.default_dtype()
    common: DType | None = None
    for value in flat if len(kinds) > 1 else flat[:1]:
        # PyTorch counts a string that comes first as one more list.
        dtype = _element_dtype(value, nested and value is flat[0])
        common = dtype if common is None else dtypes.promote_types(common, dtype)
    return common or dtypes.default_dtype()


_INTEGER_BOUNDS = {
    dtypes.uint8: (-256, 255),  # a negative number wraps around, as in C
    dtypes.int8: (-128, 127),
    dtypes.int16: (-(2**15), 2**15 - 1),
    dtypes.int32: (-(2**31), 2**31 - 1),
    dtypes.int64: (-(2**63), 2**63 - 1),
}


def _as_array(flat: list[Any], shape: tuple[int, ...], dtype: DType) -> Any:
    """The array of the numbers. Raises E204 for one that the dtype cannot hold."""
    if dtype.category == "int":
        low, high = _INTEGER_BOUNDS[dtype]
        for value in flat:
            # Only an integer wraps around where there are no signs.
            least = 0 if dtype is dtypes.uint8 and isinstance(value, float) else low
            if not least <= value.real <= high or isinstance(value, complex):
                is_wide = isinstance(value, int) and dtype is dtypes.int64
                raise value_error(
                    f"tensor(): {value} lies outside {dtype}",
                    raises="ValueError" if is_wide else "RuntimeError",
                )
        flat = [int(value) for value in flat]
        if dtype is dtypes.uint8:
            flat = [value % 256 for value in flat]
    elif dtype.category == "float" and any(isinstance(value, complex) for value in flat):
        raise type_error(f"tensor(): a complex number does not fit {dtype}")
    numpy_dtype = dtype.numpy_dtype
    try:
        if dtype.itemsize == 2 and dtype.category == "float":
            return np.array(flat, np.float32).astype(numpy_dtype).reshape(shape)[()]
        return np.array(flat, numpy_dtype).reshape(shape)[()]
    except OverflowError:
        raise value_error(
            f"tensor(): an integer lies outside {dtype}", raises="OverflowError"
        ) from None


# --- what programs call ---------------------------------------------------------------------------


def array_of(data: Any, dtype: DType | None) -> Any:
    """The array of a number, nested sequences of numbers, an array or a tensor; always a new one.

    Raises E204 for lists of unequal length, naming the position, and E202 for what is no number.
    """
    if isinstance(data, Tensor):
        data = data.array
        look(None, data)
    if isinstance(data, (np.ndarray, np.generic)):
        target = dtype or dtypes.of_array(data)
        return module_of(data).array(data, target.numpy_dtype)[()]
    if type(data) is float and dtype is None and dtypes.default_dtype() is dtypes.float32:
        return np.float32(data)
    shape = _shape_of(data)
    # A short list that holds itself twice, over and over, has a great many elements.
    active.state.limits.check_elements(math.prod(shape), raises="RuntimeError")
    flat: list[Any] = []
    if 0 not in shape:  # PyTorch checks no further than the first lists go
        _flatten(data, shape, "the data", flat)
    inferred = _inferred(flat, bool(shape))
    return _as_array(flat, shape, dtype or inferred)


@function("tensor")
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A leaf that holds a copy of the data: a number, nested lists of numbers, or a tensor.

    Floats get the default dtype, ints int64, bools bool, unless `dtype` is given. Raises E204 for
    lists of unequal length, E202 for what is no number, E408 for integers that should require grad.

    Example: torch.tensor([1., 2.])
    """
    check_copied(data)
    target = None if dtype is None else checked_dtype("tensor", dtype, dtypes.float32)
    if device is None and isinstance(data, Tensor):
        device = data.device
    return tensor_of("tensor", array_of(data, target), device, requires_grad)


@function("as_tensor")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor: a tensor as it is, or cast in the graph; anything else copied.

    Example: torch.as_tensor([1., 2.])
    """
    target = None if dtype is None else checked_dtype("as_tensor", dtype, dtypes.float32)
    if isinstance(data, Tensor):
        return to(data, dtype=target, device=device)
    return tensor_of("as_tensor", array_of(data, target), device, False)


@function("asarray")
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """The data as a tensor, as `as_tensor` gives it; `copy` copies a tensor in any case, and with
    `requires_grad` False the result is outside the graph.

    Example: torch.asarray([1., 2.])
    """
    # Where NumPy is in use that function shares the memory of arrays.
    result: Tensor = torch.as_tensor(obj, dtype, device)
    if copy and (result is obj or isinstance(obj, np.ndarray)):
        result = clone_function(result)
    if requires_grad is False and result.requires_grad:
        return alias(result)
    return requires_grad_(result) if requires_grad and not result.requires_grad else result


@method("new_tensor")
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor that holds a copy of the data, of this one's dtype.

    Example: tensor([0.5, 1., 2.]).new_tensor(tensor([2., 1., 3.]))
    """
    return tensor(
        data,
        dtype=dtype or self.dtype,
        device=device or self.device,
        requires_grad=requires_grad,
    )


# --- the old constructors -----------------------------------------------------------------------


def _constructed(name: str, target: DType, data_or_sizes: tuple[Any, ...], device: Any) -> Tensor:
    """The tensor of data, or of the sizes that integers are."""
    if len(data_or_sizes) == 1 and not isinstance(data_or_sizes[0], (int, float, Size)):
        data = data_or_sizes[0]
        if isinstance(data, Tensor) and data.dtype is target:
            return detach(data)
        return tensor_of(name, array_of(data, target), device, False)
    return zeros(*(data_or_sizes or (0,)), dtype=target, device=device)


@method("new")
def new(self: Tensor, *data_or_sizes: Any, device: Any = None) -> Tensor:
    """A tensor of this one's dtype, of nested lists or of the sizes, as `torch.FloatTensor`.

    Example: tensor([0.5, 1., 2.]).new([1., 2.])
    """
    return _constructed("new", self.dtype, data_or_sizes, device or self.device)


def _constructor(name: str, dtype: DType | None) -> None:
    """A constructor named after a type: data makes a tensor of it, integers are sizes. Tensors of
    its dtype are its instances.
    """

    def construct(*data_or_sizes: Any) -> Tensor:
        return _constructed(name, dtype or dtypes.default_dtype(), data_or_sizes, None)

    describe(
        construct,
        f"A {dtype or 'default dtype'} tensor of nested lists, or of the sizes.",
        f"torch.{name}({'[1., 2.]' if dtype is None or dtype.is_floating_point else '[1, 0]'})",
    )
    vars(construct)["tensor_dtype"] = dtype
    function(name)(construct)


_constructor("Tensor", None)
_TYPES = tuple(
    (f"{dtype.scalar_type}Tensor", dtype)
    for dtype in dict.fromkeys(dtypes.DTYPES.values())
    if not dtype.is_complex and dtype is not dtypes.bfloat16
)
for _name, _dtype in _TYPES:
    _constructor(_name, _dtype)

_TYPE_NAMES = {dtype: f"torch.{dtype.scalar_type}Tensor" for dtype in dtypes.DTYPES.values()}


def _named_dtype(type: Any) -> DType | None:
    """The dtype that `torch.FloatTensor`, or its name as a string, stands for; None for others."""
    for dtype, name in _TYPE_NAMES.items():
        if type == name or type is modules["torch"].get(name.removeprefix("torch.")):
            return dtype
    return None


@function("set_default_tensor_type", effects=(STATE,))
def set_default_tensor_type(t: Any) -> None:
    """The old way to set the dtype of new floating tensors: by `torch.DoubleTensor` or its name.
    Raises E202 for what is no floating type.

    Example: torch.set_default_tensor_type('torch.FloatTensor')
    """
    dtype = _named_dtype(t)
    if dtype is None or not dtype.is_floating_point:
        raise type_error("only floating-point types are supported as the default type")
    active.state.default_dtype = dtype.name


@method("type")
def type_function(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The old name of the tensor's type, `torch.FloatTensor`; with a dtype, or such a name, the
    tensor in that dtype. Raises E204 for an unknown name.

    Example: ones(2).type(torch.float64)
    """
    if dtype is None:
        return _TYPE_NAMES[self.dtype]
    if (named := _named_dtype(dtype)) is not None:
        return to(self, named)
    if isinstance(dtype, str):
        raise value_error(f"invalid type: {dtype!r}")
    if Tensor in getattr(dtype, "hosts", ()):  # `torch.Tensor` is the default type's name
        return to(self, dtypes.default_dtype())
    if not isinstance(dtype, DType) and hasattr(dtype, "hosts"):
        raise value_error(f"type(): Python's {dtype} is no type of tensors")
    return to(self, checked_dtype("type", dtype, self.dtype))


def _on_memory_of(data: Tensor | None) -> Tensor:
    """A tensor outside the graph on a tensor's memory; an empty one for None."""
    return Tensor(np.empty(0, dtypes.default_dtype().numpy_dtype)) if data is None else alias(data)


@function("Buffer", module="torch.nn")
def buffer(data: Tensor | None = None, *, persistent: bool = True) -> Tensor:
    """`torch.nn.Buffer(data)`: a tensor on the data's memory that a module which it is assigned to
    takes for part of its state.

    Example: nn.Buffer(tensor([1., 2.]))
    """
    if data is not None and not isinstance(data, Tensor):
        raise type_error(
            f"Buffer() takes a tensor, not {_described(data)}", raises="AttributeError"
        )
    result = _on_memory_of(data)
    meta_of(result).persistent = persistent
    return requires_grad_(result, data is not None and data.requires_grad)


@function("Parameter", module="torch.nn")
def parameter(data: Tensor | None = None, requires_grad: bool = True) -> Tensor:
    """`torch.nn.Parameter(data)`: a leaf on the data's memory that requires grad, and says what it
    is when it is printed.

    Example: nn.Parameter(tensor([1., 2.]))
    """
    if data is not None and not isinstance(data, Tensor):
        raise type_error(
            f"Parameter() takes a tensor, not {_described(data)}",
            text=f"'{type(data).__name__}' object has no attribute 'detach'",
            raises="AttributeError",
        )
    result = _on_memory_of(data)
    if requires_grad:
        check_requires_grad("Parameter", result.dtype)
    meta_of(result).is_parameter = True
    return requires_grad_(result, requires_grad)
