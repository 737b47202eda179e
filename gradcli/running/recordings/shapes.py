"""Runs the program of a recording for its graph alone: tensors have a shape, strides and a dtype,
and large ones no memory of their own.

What is asked of a graph (why a parameter has no gradient, a picture) needs no numbers. Each op runs
on what stands for its operands, so the graph is the op's own, and its large results are let go at
once: all large arrays are windows of one piece of memory that holds zeros, or, where it is asked
which of them share memory, of pages that nobody has touched.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any
from weakref import ref

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.tensor import Tensor

SMALL = 4096
"""An array of fewer bytes is kept: it costs less than what stands for it."""

_LEAST = 1 << 26
"""So large a block comes from the system, with pages that nobody has touched."""


class Shapes(Listener):
    """Lets large arrays go as soon as an op has made them.

    Args:
        distinct: whether what stands for arrays has memory of its own, by which it is known what
            shares it.
    """

    def __init__(self, distinct: bool = False) -> None:
        super().__init__()
        self.distinct = distinct
        # What stands for the memory of an array, by its `id`, while that is there.
        self._memories: dict[int, tuple[ref[Any], Any]] = {}
        # Integers are indices: what is written to numbers must not reach them.
        self._windows: dict[bool, Any] = {}
        # What stands for a gradient, for as long as there is one.
        self._standing: dict[int, tuple[ref[Any], Any]] = {}

    def array(self, shape: tuple[int, ...], dtype: Any, strides: Any = None) -> Any:
        """An array that stands for one of a shape and a layout."""
        dtype = np.dtype(dtype)
        ends = [(n - 1) * step for n, step in zip(shape, strides or (), strict=False)]
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if size < SMALL:
            return np.zeros(shape, dtype)
        if self.distinct:
            return np.ndarray(shape, dtype, _untouched(size))
        if strides is None or min(ends) < 0 or min(strides) < 0:
            strides = None
        else:
            size = sum(ends) + dtype.itemsize
        exact = dtype.kind in "biu"
        window = self._windows.get(exact)
        if window is None or window.nbytes < size:
            window = self._windows[exact] = np.zeros(max(size, _LEAST), np.uint8)
        return np.ndarray(shape, dtype, window, 0, strides)

    def _empty(self, array: Any) -> Any:
        """What stands for an array; a small one itself."""
        kind = type(array)
        if kind in LAZY:
            return self.array(array.shape, array.dtype)
        if kind is not np.ndarray or array.nbytes < SMALL:
            return array
        if self.distinct:
            return self._placed(array)
        return self.array(array.shape, array.dtype, array.strides)

    def _placed(self, array: Any) -> Any:
        """What stands for an array, at its place in what stands for its memory."""
        owner = array
        while type(owner.base) is np.ndarray:
            owner = owner.base
        if owner.base is not None:  # it stands for one, or shows what no array owns
            return array
        key = id(owner)
        known = self._memories.get(key)
        if known is None or known[0]() is not owner:
            forget = ref(owner, lambda _: self._memories.pop(key, None))
            known = self._memories[key] = forget, _untouched(owner.nbytes)
        lowest = np.lib.array_utils.byte_bounds(owner)[0]
        offset = array.__array_interface__["data"][0] - lowest
        return np.ndarray(array.shape, array.dtype, known[1], offset, array.strides)

    def _gradient(self, gradient: Any) -> Any:
        """The same of a gradient, one for each array, by which a recorder knows it."""
        if type(gradient) is not np.ndarray or gradient.nbytes < SMALL:
            return self._empty(gradient)
        key = id(gradient)
        known = self._standing.get(key)
        if known is not None and known[0]() is gradient:
            return known[1]
        standing = self._empty(gradient)
        self._standing[key] = ref(gradient, lambda _: self._standing.pop(key, None)), standing
        return standing

    def _gradients(self, gradients: Any) -> Any:
        if isinstance(gradients, (list, tuple)):
            return [self._gradient(each) for each in gradients]
        return self._gradient(gradients)

    # --- events -----------------------------------------------------------------------------------

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """A call of an op: let its results go, and what its node saved."""
        outputs = output if type(output) is tuple else (output,)
        for each in outputs:
            if type(each) is Tensor:
                each.array = self._empty(each.array)
        node = outputs[0].grad_fn if outputs and type(outputs[0]) is Tensor else None
        for slot in type(node).__slots__ if node is not None else ():
            if slot.startswith("saved_"):
                saved = getattr(node, slot, None)
                if type(saved) is np.ndarray or type(saved) in LAZY:
                    setattr(node, slot, self._empty(saved))
        super().operation(op, operands, output)

    def write(self, tensor: Tensor, new: Any, counted: bool = True) -> None:
        """A write: the tensor may have got another array."""
        tensor.array = self._empty(tensor.array)
        super().write(tensor, new, counted)

    def step(self, node: Any, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran."""
        super().step(node, *map(self._gradients, (grads, gradients, fitted)))

    def accumulation(self, node: Any, old: Any, incoming: Any, total: Any) -> None:
        """Gradients that met."""
        super().accumulation(node, *map(self._gradient, (old, incoming, total)))

    def leaf(self, node: Any, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that reached a leaf."""
        gradient = node.variable.grad
        if gradient is not None:
            gradient.array = self._empty(gradient.array)
        super().leaf(node, *map(self._gradient, (old, incoming, new)))


def _untouched(size: int) -> Any:
    """Memory of pages that take none until somebody writes to them; it reads as zeros."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
