"""Lazy conjugation: views that conjugate or negate, as copies that follow each write.

NumPy has no lazily conjugated views. So a conjugate view has memory of its own, with the layout of
the original. A write to either is repeated in the other, and both have one storage: to a program
they are one memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import address_of
from gradcli.arrays.fusion.lazy import write_barrier
from gradcli.arrays.layout.strides import window

Reflection = tuple[bool, bool]
"""Whether memory is conjugated, and whether it is negated."""

PLAIN: Reflection = (False, False)


def reflected(values: Any, reflection: Reflection) -> Any:
    """Values, or a tensor, conjugated and negated as a reflection says."""
    conjugated, negated = reflection
    if conjugated:
        values = np.conj(values)
    return -values if negated else values


class LazyConjugation:
    """The memory of one storage in each of its reflections.

    Attributes:
        memory: for each reflection its memory, a flat array of the dtype whose elements are
            conjugated or negated.
    """

    __slots__ = ("_known", "memory")

    def __init__(self, array: Any) -> None:
        whole = _whole(array)
        self.memory: dict[Reflection, Any] = {PLAIN: whole}
        self._known: dict[Reflection, Any] = {PLAIN: whole.copy()}

    def reflection(self, array: Any) -> Reflection:
        """The reflection of an array of the storage."""
        return self._reflection_of(array) or PLAIN

    def _reflection_of(self, array: Any) -> Reflection | None:
        """The reflection of the memory that an array shows, None for memory of another storage."""
        address = address_of(array)
        for reflection, memory in self.memory.items():
            start = address_of(memory)
            if address == start or start < address < start + memory.nbytes:
                return reflection
        return None

    def shown(self, array: Any, reflection: Reflection) -> Any:
        """The same elements in the memory of a reflection, which is made if there is none.

        Conjugated memory is made for a complex array. The array of a tensor whose data was replaced
        belongs to no reflection: it is copied.
        """
        own = self._reflection_of(array)
        if own is None:
            copied = array.copy()
            copied[...] = reflected(copied, reflection)
            return copied
        if own == reflection:
            return array
        if reflection not in self.memory:
            plain = self.memory[PLAIN]
            plain = plain.view(array.dtype) if reflection[0] else plain
            self.memory[reflection] = reflected(plain, reflection)
            self._known[reflection] = self.memory[reflection].copy()
        offset = address_of(array) - address_of(self.memory[own])
        memory = self.memory[reflection].view(array.dtype)
        steps = [step // array.itemsize for step in array.strides]
        return window(memory, array.shape, steps, offset // array.itemsize)

    def repeat_write(self) -> None:
        """Repeat a write to the memory of one reflection in that of the others."""
        for reflection, memory in self.memory.items():
            if (memory.view(np.uint8) != self._known[reflection].view(np.uint8)).any():
                break
        else:
            return
        plain = reflected(memory, reflection)
        for other, target in self.memory.items():
            if other != reflection:
                write_barrier(target)
                target[...] = reflected(plain.view(target.dtype), other)
            self._known[other][...] = target


def _whole(array: Any) -> Any:
    """All the memory that an array shows a part of, as a flat array of its dtype."""
    owner = array
    while (base := getattr(owner, "base", None)) is not None:
        base = getattr(base, "owner", base)
        if type(base) is not type(array):
            break
        owner = base
    steps = np.asarray(owner.strides)
    flat = owner.transpose([int(dim) for dim in np.argsort(-steps, kind="stable")]).reshape(-1)
    return flat.view(array.dtype)
