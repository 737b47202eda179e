"""The tensors that a program gave to a backward pass which records nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.storage import own
from gradcli.autograd.tensor import Tensor, alias, meta_of, storage_of


class IdentityMap:
    """The tensors that a backward pass was given: its seeds, and those that require grad among what
    hooks and custom functions return.

    Gradients travel as arrays. Where the program gets to see one that is such a tensor's, it sees
    that very tensor, history and all; where it is a view of one, a view.
    """

    __slots__ = ("_by_array", "_by_memory")

    def __init__(self) -> None:
        # With the arrays, which a tensor may exchange: no other gets the identity of one.
        self._by_array: dict[int, tuple[Any, Tensor]] = {}
        self._by_memory: dict[int, Tensor] = {}

    def add(self, tensor: Tensor) -> None:
        """Remember a tensor for when its array is seen."""
        array = tensor.array
        self._by_array[id(array)] = array, tensor
        if type(array) is np.ndarray:
            self._by_memory.setdefault(id(_memory(array)), tensor)

    def find(self, array: Any) -> Tensor | None:
        """The tensor whose array it is, or a view of the one whose memory it shows; None where
        there is none.
        """
        if not self._by_array:
            return None
        found = self._by_array.get(id(array))
        if found is not None:
            return found[1]
        if type(array) is not np.ndarray:
            return None
        tensor = self._by_memory.get(id(_memory(array)))
        return None if tensor is None else _view(tensor, array)

    def shown(self, array: Any) -> Tensor:
        """A gradient as the program sees it: a tensor that it may write to."""
        found = self.find(array)
        return Tensor(own(array)) if found is None else found


def _memory(array: Any) -> Any:
    """The array that owns the memory which another one shows."""
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def _view(tensor: Tensor, array: Any) -> Tensor:
    """A view as it is made where nothing is recorded."""
    view = alias(tensor)
    view.array = array
    view.requires_grad = tensor.requires_grad
    meta = meta_of(view)
    meta.base = tensor if tensor.base is None else tensor.base
    meta.attr_version = storage_of(tensor).version
    meta.creation = "no_grad"
    meta.loose = True
    return view
