"""`torch.save` and `torch.load`: tensors and containers of them in PyTorch's own file format."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from gradcli.arrays.backend import located, to_host
from gradcli.arrays.dtypes import DTYPES, DType
from gradcli.arrays.files.data_file import DataFile, is_shape
from gradcli.arrays.files.formats import replace
from gradcli.arrays.files.pickled import (
    STORAGES,
    BadPickleError,
    Call,
    Global,
    Persistent,
    pickled,
    read_archive,
    unwritable,
    write_archive,
)
from gradcli.arrays.layout.sizes import Device, Size
from gradcli.arrays.layout.strides import memory_of
from gradcli.arrays.storage import Storage
from gradcli.autograd.tensor import Tensor
from gradcli.errors import type_error
from gradcli.language.limits import check_nesting
from gradcli.language.objects.attributes import attributes_of_tensor, set_on_tensor
from gradcli.language.objects.counters import Counter
from gradcli.language.objects.types import type_name
from gradcli.library.files import BytesIO, file_name
from gradcli.library.torch.nn.attributes import is_parameter
from gradcli.library.torch.nn.state_dict import OrderedDict
from gradcli.ops.binding.functions import methods
from gradcli.ops.creation.data import parameter

_ORDERED = Global("collections", "OrderedDict")
_COUNTER = Global("collections", "Counter")


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write tensors, numbers, text and containers of them to a file that PyTorch reads.

    Args:
        obj: what to write.
        f: the name of the file, or an `io.BytesIO`.

    Raises:
        GradcliError: E202 for other values, E603 where the file cannot be written, E606 where files
            are out of bounds.

    Example:
        import io
        torch.save(ones(2), io.BytesIO())
    """
    check_nesting(obj)
    storages = _Storages()
    try:
        data = pickled(obj, storages.described)
    except BadPickleError as error:
        raise type_error(f"torch.save() cannot write {error}") from error
    if isinstance(f, BytesIO):
        held = io.BytesIO()
        write_archive(held, "archive", data, storages.arrays)
        f.write(held.getvalue())
        return
    path = _path(f, "save")
    name = os.path.splitext(os.path.basename(path))[0] or "archive"
    replace(path, lambda stream: write_archive(stream, name, data, storages.arrays))


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **settings: Any,
) -> Any:
    """What `torch.save` wrote, here or in PyTorch: tensors, numbers, text, containers of them.

    Args:
        f: the name of the file, or an `io.BytesIO`.
        map_location: the device that the tensors are to be on.

    Raises:
        GradcliError: E502 where the file cannot be read, E504 where it is damaged, E505 where it
            holds anything else, E606 where files are out of bounds.

    Example:
        import io
        buffer = io.BytesIO()
        torch.save(ones(2), buffer)
        buffer.seek(0)
        torch.load(buffer)
    """
    if isinstance(f, BytesIO):
        file: DataFile = _Held("BytesIO", data=f.read())
    else:
        file = DataFile(_path(f, "load"))
    tensors = _Tensors(map_location)
    return read_archive(file, tensors.known(), _Flat)


class _Held(DataFile):
    """What a program has in its memory, as a file."""

    data: bytes = b""

    def content(self) -> bytes:
        return self.data


def _path(f: Any, name: str) -> str:
    return file_name(f"{name}()", f, "the name of a file or a BytesIO")


class _Storages:
    """The memory of the tensors that are written: what several share is written once."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def described(self, value: Any) -> Any:
        """How the pickle says a value that is no plain number, text or container."""
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, OrderedDict):
            return Call(_ORDERED, (), value)
        if type(value) is Counter:
            return Call(_COUNTER, (dict(value),))
        if type(value) is Size:
            return Call(Global("torch", "Size"), (tuple(value),))
        if type(value) is DType:
            return Global("torch", value.name)
        if type(value) is Device:
            return Call(Global("torch", "device"), (str(value),))
        if type(value) is complex:
            return Call(Global("builtins", "complex"), (value.real, value.imag))
        if type(value) is set:
            return Call(Global("builtins", "set"), (list(value),))
        raise unwritable(type_name(value))

    def _tensor(self, tensor: Tensor) -> Call:
        array = np.asarray(to_host(tensor.array))
        if array.dtype.name not in STORAGES:
            raise unwritable(f"tensors of {array.dtype.name}")
        flat, offset, strides = self._laid_out(array)
        kind = Global("torch", STORAGES[array.dtype.name])
        outside = Persistent(("storage", kind, str(self._number(flat)), "cpu", flat.size))
        data = (outside, offset, array.shape, strides, tensor.requires_grad, Call(_ORDERED, ()))
        rebuild = Global("torch._utils", "_rebuild_tensor_v2")
        own = attributes_of_tensor(tensor)
        if not is_parameter(tensor):
            if not own:
                return Call(rebuild, data)
            parts = (rebuild, Global("torch", "Tensor"), data, own)
            return Call(Global("torch._tensor", "_rebuild_from_type_v2"), parts)
        arguments = (Call(rebuild, data), tensor.requires_grad, Call(_ORDERED, ()))
        if not own:
            return Call(Global("torch._utils", "_rebuild_parameter"), arguments)
        return Call(Global("torch._utils", "_rebuild_parameter_with_state"), (*arguments, own))

    def _laid_out(self, array: Any) -> tuple[Any, int, tuple[int, ...]]:
        """The memory that an array lies in, where it begins there, and its steps."""
        root = memory_of(array)
        size = array.dtype.itemsize
        if root.dtype != array.dtype or not root.flags.c_contiguous:
            root = array = np.ascontiguousarray(array).reshape(array.shape)
        self._kept.append(root)
        offset = (array.ctypes.data - root.ctypes.data) // size
        return root, offset, tuple(step // size for step in array.strides)

    def _number(self, root: Any) -> int:
        if id(root) not in self._numbers:
            self._numbers[id(root)] = len(self.arrays)
            self.arrays.append(root.reshape(-1))
        return self._numbers[id(root)]


class _Flat:
    """A storage that was read, and the tensors made of it."""

    __slots__ = ("array", "tensors")

    def __init__(self, key: str, array: Any) -> None:
        self.array = array
        self.tensors: list[Tensor] = []


class _Tensors:
    """Makes the tensors of an archive."""

    def __init__(self, map_location: Any) -> None:
        # A program's function says where to; there is nowhere but the host's memory to come from.
        named = map_location is not None and not callable(map_location)
        self._device = located("load", map_location) if named else None

    def known(self) -> dict[tuple[str, str], Any]:
        """What the names in an archive's pickle stand for."""
        return {
            **{(home, "complex"): _complex for home in ("builtins", "__builtin__")},
            **{(home, "set"): _set for home in ("builtins", "__builtin__")},
            ("collections", "Counter"): _counter,
            ("collections", "OrderedDict"): _ordered,
            ("torch", "Size"): Size.of,
            ("torch", "device"): Device,
            ("torch._utils", "_rebuild_parameter"): self._parameter,
            ("torch._utils", "_rebuild_tensor_v2"): self._tensor,
            ("torch._utils", "_rebuild_parameter_with_state"): self._parameter,
            ("torch._tensor", "_rebuild_from_type_v2"): self._of_type,
            ("torch", "Tensor"): _OF_TENSOR,
            **{("torch", name): dtype for name, dtype in DTYPES.items()},
        }

    def _tensor(
        self,
        flat: Any,
        offset: Any,
        shape: Any,
        strides: Any,
        requires_grad: Any,
        hooks: Any = None,
        metadata: Any = None,
    ) -> Tensor:
        if type(flat) is not _Flat or not is_shape(shape) or not is_shape(strides):
            raise BadPickleError("a tensor is not of a storage, a shape and strides")
        last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        size = flat.array.size
        if type(offset) is not int or not (0 <= offset <= size and offset + last < size):
            if 0 not in shape:
                raise BadPickleError("a tensor leaves its storage")
            offset = 0
        steps = tuple(step * flat.array.itemsize for step in strides)
        array = np.ndarray(shape, flat.array.dtype, flat.array, offset * flat.array.itemsize, steps)
        tensor = Tensor(array if shape else array[()] if not flat.tensors else array)
        if flat.tensors:  # they write to the same memory
            storage = flat.tensors[0].storage or Storage()
            flat.tensors[0].storage = tensor.storage = storage
        flat.tensors.append(tensor)
        if self._device is not None:
            tensor = methods.to(tensor, self._device)
        differentiable = tensor.dtype.category in ("float", "complex")
        tensor.requires_grad = requires_grad is True and differentiable
        return tensor

    def _parameter(
        self, data: Any, requires_grad: Any, hooks: Any = None, state: Any = None
    ) -> Tensor:
        if not isinstance(data, Tensor):
            raise BadPickleError("a parameter is no tensor")
        return _with_attributes(parameter(data, requires_grad is True), state)

    def _of_type(self, rebuild: Any, kind: Any, parts: Any, state: Any) -> Tensor:
        if rebuild != self._tensor or kind != _OF_TENSOR or type(parts) is not tuple:
            raise BadPickleError("it holds a tensor of another class")
        return _with_attributes(self._tensor(*parts), state)


_OF_TENSOR = "torch.Tensor"
"""Stands for a class, which no value of a pickle is."""


def _with_attributes(tensor: Tensor, state: Any) -> Tensor:
    """A tensor with the attributes that a program set on it, under no name of its machinery."""
    if state is not None and type(state) is not dict:
        raise BadPickleError("the attributes of a tensor are no dict")
    for name, value in ({} if state is None else state).items():
        if type(name) is not str:
            raise BadPickleError("the name of an attribute is no text")
        set_on_tensor(tensor, name, value)
    return tensor


def _complex(real: Any, imag: Any) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise BadPickleError("a complex number is not of two numbers")
    return complex(real, imag)


def _set(values: Any = ()) -> set[Any]:
    if any(type(each) not in (str, int, float, bool, type(None)) for each in values):
        raise BadPickleError("a set holds what a set cannot hold")
    return set(values)


def _ordered(*items: Any) -> OrderedDict:
    if items:
        raise BadPickleError("an OrderedDict is not filled one by one")
    return OrderedDict()


def _counter(counts: Any = None) -> Counter:
    if counts is not None and type(counts) is not dict:
        raise BadPickleError("a Counter is not of a dict")
    return Counter(counts)


SERIALIZATION: dict[str, Any] = {"load": load, "save": save}
"""What `torch.serialization` holds; `torch` has both too."""
