"""Storage: what tensors that alias the same memory share."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.deferred import DEFERRED


class Storage:
    """The version that aliases share, counting the writes to their memory.

    A tensor gets one when it is first aliased or written: until then its version is 0 and nobody
    else sees its memory.
    """

    __slots__ = ("version",)

    def __init__(self, version: int = 0) -> None:
        self.version = version


def own(array: Any) -> Any:
    """An array that nobody else sees: a copy, or the scalar itself, which nobody can write to; a
    deferred array as a plan of its own.
    """
    if type(array) in DEFERRED:
        return array.claimed()
    return array if isinstance(array, np.generic) else array.copy()
