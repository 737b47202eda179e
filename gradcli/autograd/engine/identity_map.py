"""The identity map: the program's tensors whose arrays travel through a backward pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.storage import own
from gradcli.autograd.tensor import Tensor, alias, meta_of, storage_of


class IdentityMap:
    """The tensors of a pass that records nothing, by their arrays: its seeds, and the tensors that
    require grad among those that hooks and custom functions return.

    Gradients travel as arrays. Where a hook receives an array of one of these tensors, it receives
    that very tensor, with its history; for a view of the array, a view of the tensor.
    """

    __slots__ = ("_by_array", "_by_memory")

    def __init__(self) -> None:
        # The arrays are kept alive, so that no other object gets the `id` of one.
        self._by_array: dict[int, tuple[Any, Tensor]] = {}
        self._by_memory: dict[int, Tensor] = {}

    def add(self, tensor: Tensor) -> None:
        array = tensor.array
        self._by_array[id(array)] = array, tensor
        if type(array) is np.ndarray:
            self._by_memory.setdefault(id(_memory(array)), tensor)

    def find(self, array: Any) -> Tensor | None:
        """The tensor of an array, or a view of the tensor whose memory it shows; None for none."""
        if not self._by_array:
            return None
        known = self._by_array.get(id(array))
        if known is not None:
            return known[1]
        if type(array) is not np.ndarray:
            return None
        tensor = self._by_memory.get(id(_memory(array)))
        return None if tensor is None else _view(tensor, array)

    def shown(self, array: Any) -> Tensor:
        """A gradient as a tensor for the program, which may write to it."""
        known = self.find(array)
        return Tensor(own(array)) if known is None else known


def _memory(array: Any) -> Any:
    """The array that owns the memory which another one shows."""
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def _view(tensor: Tensor, array: Any) -> Tensor:
    """A view of a tensor, as views are made under `no_grad`."""
    view = alias(tensor)
    view.array = array
    view.requires_grad = tensor.requires_grad
    meta = meta_of(view)
    meta.base = tensor if tensor.base is None else tensor.base
    meta.attr_version = storage_of(tensor).version
    meta.creation = "no_grad"
    meta.loose = True
    return view
