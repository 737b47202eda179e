"""Side exits of a run that is not as the trace was recorded, and the comparison of its arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcli.errors import Span


class SideExit(BaseException):
    """A run takes another path than the recorded one, or finds values of another kind; it leaves
    nothing of itself. No `except` of a program's, or of the host's, is for it.

    Attributes:
        reason: what the run found, for a person.
        span: where the program asked for it.
    """

    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


OTHER_KIND = "an array of another dtype, shape or layout comes out"
"""Why a run is left whose arrays are not those that its instructions are for."""


def kind_of(array: Any) -> tuple[Any, ...]:
    """How an array lies in memory: its type, dtype, shape and strides."""
    return type(array), array.dtype, array.shape, array.strides


def same(left: Any, right: Any) -> bool:
    """Whether two arrays are the same in kind, shape, layout and every bit."""
    return (
        type(left) is type(right)
        and left.dtype is right.dtype
        and left.shape == right.shape
        and left.strides == right.strides
        and same_bits(left, right)
    )


def same_bits(left: Any, right: Any) -> bool:
    """Whether two arrays of one shape and dtype hold the same bits."""
    bits = _BITS.get(left.itemsize)
    if bits is None:
        return left.tobytes() == right.tobytes()
    return bool((left.view(bits) == right.view(bits)).all())


_BITS = {1: np.uint8, 4: np.uint32, 8: np.uint64}
"""Integer dtypes by their size in bytes."""
