"""Storage: the state that tensors on the same memory share; how large memory is allocated."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY
from gradcli.arrays.layout.strides import copied_as_it_lies
from gradcli.errors import GradcliError
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.arrays.fusion.lazy_conjugation import LazyConjugation
    from gradcli.errors import Span


class Storage:
    """The version that aliases share, counting the writes to their memory.

    A tensor gets one when it is first aliased or written: until then its version is 0 and nothing
    shares its memory.

    Attributes:
        version: how many writes there were.
        place: the span of the last write, None outside a program.
        lazy_conjugation: the copies of this memory that are conjugated or negated, None while there
            are none.
        address: the number that programs see as its address, and the true one; unset until asked.
    """

    __slots__ = ("address", "lazy_conjugation", "place", "version")

    address: tuple[int, int]

    def __init__(self) -> None:
        self.version = 0
        self.lazy_conjugation: LazyConjugation | None = None
        self.place: Span | None = None

    @property
    def counted(self) -> int:
        """The version, for whom no gradient depends on it."""
        return self.version

    def count_write(self, times: int = 1) -> None:
        """Count a write, which PyTorch makes in so many, and repeat it in conjugated and negated
        memory.
        """
        self.version += times
        self.place = active.state.place
        if self.lazy_conjugation is not None:
            self.lazy_conjugation.repeat_write()


class InferenceStorage(Storage):
    """The storage of a tensor made under `torch.inference_mode()`, which counts no writes.

    Its version is read to save the tensor for a backward pass, or to track writes: neither is
    possible.

    Attributes:
        writable: whether writes are allowed outside the mode too, as to what `detach()` gives.
    """

    __slots__ = ("writable",)

    def __init__(self, writable: bool = False) -> None:
        super().__init__()
        self.writable = writable

    @property
    def version(self) -> int:
        """0 inside the mode; raises E408 outside."""
        self.check("E408", "be saved for a backward pass")
        return 0

    @version.setter
    def version(self, number: int) -> None:
        """Writes are not counted."""

    @property
    def counted(self) -> int:
        """0, in the mode and outside."""
        return 0

    def count_write(self, times: int = 1) -> None:
        """Raise E405 outside the mode, after the write, as PyTorch does."""
        if not self.writable:
            self.check("E405", "be changed in place")

    def check(self, code: str, wish: str) -> None:
        """Raise an error of the given code outside the mode, where the tensor cannot `wish`."""
        if not active.state.inference:
            raise GradcliError(
                code,
                f"a tensor made under torch.inference_mode() cannot {wish} outside that mode",
                text=_INFERENCE_TEXTS[code, wish],
                help="clone() it outside the mode, or make it under torch.no_grad()",
            )


_INFERENCE_TEXTS = {
    ("E408", "be saved for a backward pass"): "Inference tensors cannot be saved for backward."
    " Please do not use Tensors created in inference mode in computation tracked by autograd. To"
    " work around this, you can make a clone to get a normal tensor and use it in autograd, or use"
    " `torch.no_grad()` instead of `torch.inference_mode()`.",
    ("E408", "require grad"): "Setting requires_grad=True on inference tensor outside InferenceMode"
    " is not allowed.",
    ("E405", "be changed in place"): "Inplace update to inference tensor outside InferenceMode is"
    " not allowed.You can make a clone to get a normal tensor before doing inplace update.See"
    " https://github.com/pytorch/rfcs/pull/17 for more details.",
}
"""PyTorch's texts, by the code and what the tensor cannot."""


def own(array: Any) -> Any:
    """An array that is not shared: a copy; a scalar itself, as it is immutable; a lazy array as a
    plan of its own.
    """
    if type(array) in LAZY:
        return array.claimed()
    if isinstance(array, np.generic):
        return array
    return array.copy() if array.flags.c_contiguous else copied_as_it_lies(array)


_LARGEST_KEPT = (1 << 25) - (1 << 13)
"""The largest block that glibc, with its headers, may still learn to keep."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep the memory of a freed large array for the next one; set once in a
    process.

    glibc returns a large block to the system when it is freed, and the next array needs fresh
    pages, which cost more than most ops on it. When an untouched block of the largest size that
    glibc adapts to is freed, glibc keeps all smaller ones from then on. Other C libraries are not
    affected.
    """
    try:
        np.empty(_LARGEST_KEPT, np.uint8)
    except MemoryError:  # a limit on the process is lower than that
        return


def return_freed_memory() -> None:
    """Return to the system what `keep_freed_memory` kept, where the C library is glibc."""
    if sys.platform != "linux":
        return
    import ctypes  # lazy: start-up: few programs are recordings

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
