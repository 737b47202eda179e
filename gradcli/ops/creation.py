"""New tensors: `tensor zeros ones full eye arange linspace zeros_like new_zeros tril_indices`.

What they share: `dtype` is the default floating dtype unless the values say otherwise, `device` is
the CPU, and only floating and complex tensors can require grad.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DType
from gradcli.arrays.sizes import Device
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.catalogue import function, method, modules
from gradcli.ops.dimensions import one_by_one, sizes_of
from gradcli.ops.operands import type_name

_MOST_ELEMENTS = 2**31
"""The largest tensor that a program may create."""

_PYTHON_TYPES = {
    bool: dtypes.bool_,
    int: dtypes.int64,
    float: dtypes.float64,
    complex: dtypes.complex128,
}

# --- arguments ----------------------------------------------------------------------------------


def checked_dtype(name: str, dtype: Any, default: DType) -> DType:
    """The dtype asked for, or the default; Python's number types stand for their widest dtypes.
    Raises E202 for what is no dtype.
    """
    if dtype is None:
        return default
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON_TYPES:
        return _PYTHON_TYPES[dtype]
    raise GradcliError("E202", f"{name}(): dtype must be a dtype, not {type_name(dtype)}")


def checked_sizes(name: str, sizes: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence. Raises E204 for a negative one, and E602 where
    they hold more elements than a program may create.
    """
    plain = sizes_of(name, sizes)
    if min(plain, default=0) < 0:
        raise GradcliError("E204", f"{name}(): {plain} has a negative size", raises="RuntimeError")
    check_count(name, math.prod(plain))
    return plain


def check_count(name: str, count: float) -> None:
    """Raise E602 where a tensor would have more elements than a program may create."""
    if count > _MOST_ELEMENTS:
        raise GradcliError(
            "E602",
            f"{name}(): {count:.0f} elements are more than the limit of {_MOST_ELEMENTS}",
            raises="RuntimeError",
        )


def made(name: str, array: Any, device: Any, requires_grad: bool) -> Tensor:
    """The new tensor of an array.

    Raises E205 for another device than the CPU, and E408 where an integer tensor should require
    grad.
    """
    if device is not None and Device(device).type != "cpu":
        raise GradcliError("E205", f"{name}(): tensors on {device} are outside the catalogue")
    result = Tensor(array)
    if requires_grad:
        if not (result.dtype.is_floating_point or result.dtype.is_complex):
            raise GradcliError(
                "E408",
                f"{name}(): only floating tensors can require grad, and this one is {result.dtype}",
                help="make it floating: write `2.` for `2`, or give dtype=torch.float32",
            )
        result.requires_grad = True
    return result


# --- from data ----------------------------------------------------------------------------------


def _shape_of(data: Any) -> tuple[int, ...]:
    """The shape that the first elements of nested sequences have."""
    shape: list[int] = []
    while isinstance(data, (list, tuple, range)):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
        if len(shape) > 64:
            raise GradcliError("E204", "tensor(): the lists are nested too deeply")
    if isinstance(data, Tensor):
        shape += data.array.shape
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], place: str, flat: list[Any]) -> None:
    """Put the numbers of nested sequences into `flat`; raises where they do not have the shape."""
    if not shape:
        if isinstance(data, Tensor):
            data = data.array[()] if not data.array.ndim else data.array.reshape(-1)
            if data.ndim and len(data) != 1:
                raise GradcliError(
                    "E204",
                    f"tensor(): {place} is a tensor of {len(data)} elements, where a number should"
                    " be",
                    help="join tensors with torch.stack()",
                )
            data = data if not data.ndim else data[0]
        elif isinstance(data, (list, tuple, range)):
            raise GradcliError("E202", f"tensor(): {place} is a list, where a number should be")
        flat.append(data)
        return
    if isinstance(data, Tensor) and data.array.ndim:
        data = list(data.array)
    if not isinstance(data, (list, tuple, range)):
        raise GradcliError(
            "E202", f"tensor(): {place} is {_described(data)}, where a list should be"
        )
    if len(data) != shape[0]:
        raise GradcliError(
            "E204",
            f"tensor(): {place} has {_counted(len(data))}, the lists beside it have {shape[0]}",
            help="all lists of one depth need the same length",
        )
    if len(shape) == 1 and not any(isinstance(item, (list, tuple, range, Tensor)) for item in data):
        flat.extend(data)
        return
    for i, item in enumerate(data):
        _flatten(item, shape[1:], f"{place}[{i}]", flat)


def _described(data: Any) -> str:
    return "a tensor" if isinstance(data, Tensor) else f"a {type(data).__name__}"


def _counted(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


def _dtype_of(value: Any) -> DType:
    """The dtype of one number of the data; raises E202 for what is no number."""
    kind = type(value)
    if kind is float:
        return dtypes.default_dtype()
    if kind is complex:
        wide = dtypes.default_dtype() is dtypes.float64
        return dtypes.complex128 if wide else dtypes.complex64
    if kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    if isinstance(value, np.generic):
        return dtypes.of_array(value)
    raise GradcliError(
        "E202",
        f"tensor(): a tensor holds numbers, not {kind.__name__}",
        raises=_class_of_misfit(value),
    )


def _class_of_misfit(value: Any) -> str:
    """The class that PyTorch raises for data that is no number."""
    return "TypeError" if isinstance(value, str) else "RuntimeError"


def _inferred(flat: list[Any]) -> DType:
    """The dtype that holds all the numbers."""
    kinds = {type(value) for value in flat}
    if kinds == {float}:
        return dtypes.default_dtype()
    found: DType | None = None
    for value in flat if len(kinds) > 1 else flat[:1]:
        dtype = _dtype_of(value)
        found = dtype if found is None else dtypes.promote_types(found, dtype)
    return found or dtypes.default_dtype()


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
            if not low <= value.real <= high or isinstance(value, complex):
                raise GradcliError(
                    "E204",
                    f"tensor(): {value} lies outside {dtype}",
                    raises="ValueError" if isinstance(value, int) and dtype is dtypes.int64
                    else "RuntimeError",
                )  # fmt: skip
        flat = [int(value) for value in flat]
        if dtype is dtypes.uint8:
            flat = [value % 256 for value in flat]
    elif dtype.category == "float" and any(isinstance(value, complex) for value in flat):
        raise GradcliError("E202", f"tensor(): a complex number does not fit {dtype}")
    numpy_dtype = dtype.numpy_dtype
    if dtype.itemsize == 2 and dtype.category == "float":
        return np.array(flat, np.float32).astype(numpy_dtype).reshape(shape)[()]
    return np.array(flat, numpy_dtype).reshape(shape)[()]


def array_of(data: Any, dtype: DType | None) -> Any:
    """The array of a number, nested sequences of numbers, an array or a tensor; always a new one.

    Raises E204 for lists of unequal length, naming the place, and E202 for what is no number.
    """
    if isinstance(data, Tensor):
        data = data.array
    if isinstance(data, (np.ndarray, np.generic)):
        target = dtype or dtypes.of_array(data)
        return np.array(data, target.numpy_dtype)[()]
    if type(data) is float and dtype is None and dtypes.default_dtype() is dtypes.float32:
        return np.float32(data)
    shape = _shape_of(data)
    flat: list[Any] = []
    _flatten(data, shape, "the data", flat)
    inferred = _inferred(flat)
    if not flat:
        inferred = dtypes.default_dtype()
    return _as_array(flat, shape, dtype or inferred)


@function("tensor")
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A leaf that holds a copy of the data: a number, nested lists of numbers, or a tensor.

    Floats get the default dtype, ints int64, bools bool, unless `dtype` is given. Raises E204 for
    lists of unequal length, E202 for what is no number, E408 for integers that should require grad.
    """
    target = None if dtype is None else checked_dtype("tensor", dtype, dtypes.float32)
    return made("tensor", array_of(data, target), device, requires_grad)


@function("as_tensor", "asarray")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """The data as a tensor: a tensor as it is, or cast in the graph; anything else copied."""
    from gradcli.ops.copying import to

    target = None if dtype is None else checked_dtype("as_tensor", dtype, dtypes.float32)
    if isinstance(data, Tensor):
        return to(data, dtype=target, device=device)
    return made("as_tensor", array_of(data, target), device, False)


@function("scalar_tensor")
def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A 0-dim tensor of the default floating dtype, or the given one."""
    target = checked_dtype("scalar_tensor", dtype, dtypes.default_dtype())
    return made("scalar_tensor", dtypes.cast(plain_number("s", s), target), device, requires_grad)


# --- one value ----------------------------------------------------------------------------------


def plain_number(name: str, value: Any) -> Any:
    """A Python number, taken out of a 0-dim tensor if need be; raises E202 for anything else."""
    if isinstance(value, Tensor) and not value.array.ndim:
        value = value.array.item()
    if type(value) not in _PYTHON_TYPES:
        raise GradcliError("E202", f"{name} must be a number, not {type_name(value)}")
    return value


def _filled(sizes: tuple[int, ...], value: Any, dtype: DType) -> Any:
    return np.full(sizes, dtypes.cast(value, dtype), dtype.numpy_dtype)[()]


def _constant(name: str, value: float, *names: str) -> Any:
    """A function that makes tensors of one value."""

    def make(
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        if not sizes and size is None:
            raise GradcliError("E201", f"{name}() needs the sizes of the tensor")
        plain = checked_sizes(name, one_by_one(name, "size", sizes, size))
        target = checked_dtype(name, dtype, dtypes.default_dtype())
        return made(name, _filled(plain, value, target), device, requires_grad)

    def like(
        input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        pattern = _pattern(f"{name}_like", input)
        target = checked_dtype(name, dtype, pattern.dtype)
        array = _filled(pattern.array.shape, value, target)
        return made(f"{name}_like", array, device, requires_grad)

    def new(
        self: Tensor,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return make(
            *sizes, size=size, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad
        )

    article = f"A tensor of {'zeros' if value == 0 else 'ones'}"
    for body, made_name, words in (
        (make, name, "sizes given one by one or as one sequence"),
        (like, f"{name}_like", "of another one's sizes and dtype"),
        (new, f"new_{name}", "of this one's dtype"),
    ):
        body.__name__ = body.__qualname__ = made_name
        body.__doc__ = f"{article}, {words}."
    for each in (name, *names):
        function(each)(make)
        function(f"{each}_like")(like)
        method(f"new_{each}")(new)
    return make, like


def _pattern(name: str, input: Any) -> Tensor:
    """The tensor that a new one is to be like; raises E202 for anything else."""
    if type(input) is not Tensor:
        raise GradcliError("E202", f"{name}() needs a tensor, not {type_name(input)}")
    return input


# PyTorch leaves the memory of `empty` as it was; here it holds zeros, so that runs agree.
zeros, zeros_like = _constant("zeros", 0, "empty")
ones, ones_like = _constant("ones", 1)


@function("full")
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one number, of the number's dtype unless `dtype` is given."""
    if not isinstance(size, (tuple, list)):
        raise GradcliError("E202", f"full(): size must be a tuple of ints, not {type_name(size)}")
    value = plain_number("full(): fill_value", fill_value)
    target = checked_dtype("full", dtype, _dtype_of(value))
    sizes = checked_sizes("full", (size,))
    return made("full", _filled(sizes, value, target), device, requires_grad)


@function("full_like")
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one number, of another one's sizes and dtype."""
    pattern = _pattern("full_like", input)
    return full(
        tuple(pattern.array.shape),
        fill_value,
        dtype=dtype or pattern.dtype,
        device=device,
        requires_grad=requires_grad,
    )


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
    """A tensor of one number, of this one's dtype."""
    return full(
        size, fill_value, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad
    )


@method("new_tensor")
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor that holds a copy of the data, of this one's dtype."""
    return tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


modules["torch"]["Tensor"] = Tensor
