"""Storage: what tensors that alias the same memory share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.fusion.lazy import LAZY
from gradcli.arrays.strides import copied_as_it_lies
from gradcli.errors import GradcliError
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.arrays.lazy_conjugation import Mirrors
    from gradcli.errors import Span


class Storage:
    """The version that aliases share, counting the writes to their memory.

    A tensor gets one when it is first aliased or written: until then its version is 0 and nobody
    else sees its memory.

    Attributes:
        version: how many writes there were.
        place: the source text of the last one, None outside a program.
        mirrors: the memory that shows this one conjugated or negated, None while there is none.
    """

    __slots__ = ("mirrors", "place", "version")

    def __init__(self) -> None:
        self.version = 0
        self.mirrors: Mirrors | None = None
        self.place: Span | None = None

    def count_write(self) -> None:
        """Take note of a write."""
        self.version += 1
        self.place = active.state.place
        if self.mirrors is not None:
            self.mirrors.follow()


class InferenceStorage(Storage):
    """The storage of a tensor made under `torch.inference_mode()`, which counts no writes.

    Whoever asks for its version wants to save the tensor for a backward pass, or to follow writes:
    neither is possible.
    """

    __slots__ = ()

    @property
    def version(self) -> int:
        """0 inside the mode; raises E408 outside."""
        self.check("E408", "be saved for a backward pass")
        return 0

    @version.setter
    def version(self, number: int) -> None:
        """Writes are not counted."""

    def count_write(self) -> None:
        """Raise E405 outside the mode: PyTorch finds out when it has written already."""
        self.check("E405", "be changed in place")

    def check(self, code: str, wish: str) -> None:
        """Raise an error of the given code outside the mode, where the tensor cannot `wish`."""
        if not active.state.inference:
            raise GradcliError(
                code,
                f"a tensor made under torch.inference_mode() cannot {wish} outside that mode",
                help="clone() it outside the mode, or make it under torch.no_grad()",
            )


def own(array: Any) -> Any:
    """An array that nobody else sees: a copy, or the scalar itself, which nobody can write to; a
    lazy array as a plan of its own.
    """
    if type(array) in LAZY:
        return array.claimed()
    if isinstance(array, np.generic):
        return array
    return array.copy() if array.flags.c_contiguous else copied_as_it_lies(array)
