"""`x.untyped_storage()` and `x.storage()`: the memory that a tensor shows, byte by byte and element
by element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import address_of, device_of
from gradcli.arrays.dtypes import of_array
from gradcli.arrays.fusion.lazy import forced, write_barrier
from gradcli.arrays.layout.sizes import Device
from gradcli.arrays.layout.strides import memory_of
from gradcli.autograd.inplace.writes import extent
from gradcli.autograd.tensor import Tensor, refuse_batched, storage_of
from gradcli.errors import GradcliError, index_error, runtime_error, type_error
from gradcli.ops.binding.catalogue import method
from gradcli.ops.creation.tensor_methods import data_ptr
from gradcli.ops.definition.doc import READS
from gradcli.state import active, charge_steps

_COMMON = {"data_ptr", "device", "element_size", "fill_", "is_cuda", "nbytes", "size", "tolist"}


class UntypedStorage:
    """The bytes of memory that tensors share."""

    __slots__ = ("_address", "_items")

    language_name: ClassVar[str] = "torch.storage.UntypedStorage"
    language_attributes: ClassVar[frozenset[str]] = frozenset(_COMMON)

    def __init__(self, items: Any, address: int) -> None:
        self._items = items
        self._address = address

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return device_of(self._items)

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return self.device.type == "cuda"

    def data_ptr(self) -> int:
        """Where it begins: a number that is the same in every run."""
        return self._address

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return int(self._items.itemsize)

    def fill_(self, value: Any) -> UntypedStorage:
        """Set all elements."""
        self[:] = value
        return self

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._items.nbytes)

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        charge_steps(len(self))
        numbers: list[Any] = self._items.tolist()
        return numbers

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = self._items[index]
            return UntypedStorage(part, self._address + address_of(part) - address_of(self._items))
        return self._items[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        write_barrier(self._items)
        self._items[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: Any) -> int:
        """An index from 0; raises E302 for one outside, E202 for what is no integer."""
        if not isinstance(index, int):
            raise type_error(f"can't index a {self.language_name} with {type(index).__name__}")
        if not -len(self) <= index < len(self):
            raise index_error(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __repr__(self) -> str:
        lines = "\n ".join([str(value) for value in self.tolist()])
        return f" {lines}\n[{self.language_name}({self._described()}) of size {len(self)}]"

    def _described(self) -> str:
        return f"device={self.device}"


class TypedStorage(UntypedStorage):
    """The elements of memory that tensors share."""

    __slots__ = ()

    language_name = "torch.storage.TypedStorage"
    language_attributes = frozenset(_COMMON | {"dtype", "untyped"})

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return of_array(self._items)

    def untyped(self) -> UntypedStorage:
        """The same memory, byte by byte."""
        return UntypedStorage(self._items.view(np.uint8), self._address)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise runtime_error("slices are only supported in UntypedStorage.__getitem__")
        return super().__getitem__(index)

    def _described(self) -> str:
        return f"dtype={self.dtype}, device={self.device}"


@method("storage", effects=(READS,))
def storage(self: Tensor) -> TypedStorage:
    """The elements of the memory that the tensor shows, beginning with the memory's first."""
    text = (
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be"
        " the only storage class. This should only matter to you if you are using storages"
        " directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of"
        " tensor.storage()"
    )
    help = "write `x.untyped_storage()`, or `x.storage_offset()` and `x.stride()`"
    active.state.warn("W015", "TypedStorage is deprecated", text=text, help=help)
    items, before = _memory(self)
    return TypedStorage(items, max(data_ptr(self) - before, 0))


@method("untyped_storage", effects=(READS,))
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes of the memory that the tensor shows, beginning with the memory's first."""
    items, before = _memory(self)
    return UntypedStorage(items.view(np.uint8), max(data_ptr(self) - before, 0))


def _memory(tensor: Tensor) -> tuple[Any, int]:
    """All elements of the memory that a tensor shows, and how many bytes lie before its first.

    Raises E205 for memory that is not the host's.
    """
    refuse_batched("storage", tensor)
    storage_of(tensor)
    array = tensor.array = forced(tensor.array)
    if type(array) is not np.ndarray:
        raise GradcliError("E205", "storage() shows memory of the CPU")
    root = memory_of(array)
    if root.dtype != array.dtype or not root.flags.c_contiguous:
        size = array.itemsize
        steps = tuple(step // size for step in array.strides)
        count = extent(array.shape, steps)
        return np.ndarray(count, array.dtype, array, 0, (size,)), 0
    return root.reshape(-1), address_of(array) - address_of(root)


@method("is_set_to")
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors show the same memory in the same way.

    Example: ones(2).is_set_to(zeros(2))
    """
    return (
        data_ptr(self) == data_ptr(tensor)
        and self.array.shape == tensor.array.shape
        and self.array.strides == tensor.array.strides
    )


@method("is_pinned")
def is_pinned(self: Tensor) -> bool:
    """Whether a GPU reads the memory by itself, which none does."""
    return False


@method("is_shared")
def is_shared(self: Tensor) -> bool:
    """Whether another process may see the memory, which none does."""
    return False
