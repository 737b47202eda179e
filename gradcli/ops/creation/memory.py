"""`untyped_storage` and `storage`: what a program may see of the memory that tensors share."""

from __future__ import annotations

from typing import Any, ClassVar

from gradcli.arrays.sizes import Device
from gradcli.autograd.inplace.views import storage_offset
from gradcli.autograd.tensor import Tensor
from gradcli.ops.binding.catalogue import method
from gradcli.ops.creation.tensor_methods import data_ptr


class UntypedStorage:
    """The bytes that a tensor, its base and their views share."""

    __slots__ = ("_of",)

    language_name: ClassVar[str] = "torch.storage.UntypedStorage"
    language_attributes: ClassVar[frozenset[str]] = frozenset(
        {"data_ptr", "device", "element_size", "nbytes", "size"}
    )

    def __init__(self, of: Tensor) -> None:
        self._of = of

    @property
    def device(self) -> Device:
        return self._of.device

    @property
    def _whole(self) -> Any:
        return (self._of if self._of.base is None else self._of.base).array

    def data_ptr(self) -> int:
        """Where it begins, in the numbers that `Tensor.data_ptr` gives."""
        tensor = self._of
        return data_ptr(tensor) - storage_offset(tensor) * int(tensor.array.itemsize)

    def nbytes(self) -> int:
        """How many bytes it has."""
        return int(self._whole.nbytes)

    def element_size(self) -> int:
        """The bytes of an element."""
        return 1

    def size(self) -> int:
        """How many elements it has."""
        return self.nbytes() // self.element_size()

    def __len__(self) -> int:
        return self.size()


class TypedStorage(UntypedStorage):
    """The same in elements of the tensor's dtype."""

    __slots__ = ()

    language_name = "torch.storage.TypedStorage"

    def element_size(self) -> int:
        """The bytes of an element."""
        return int(self._of.array.itemsize)


@method("untyped_storage")
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes that the tensor shares with its base and their views."""
    return UntypedStorage(self)


@method("storage")
def storage(self: Tensor) -> TypedStorage:
    """The same in elements of the tensor's dtype."""
    return TypedStorage(self)


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
