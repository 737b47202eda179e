"""Complex conjugates: what programs and the rules of derivatives call."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.ops.entry import Op, op, pointwise

COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))
"""NumPy's complex dtypes."""

_REAL = frozenset({float, int, np.float32, np.float64})


def conj(value: Any) -> Any:
    """The complex conjugate: a real value is its own, and makes no node."""
    if type(value) in _REAL or (type(value) is np.ndarray and value.dtype.kind != "c"):
        return value
    array = value.array if type(value) is Tensor else value
    if getattr(array, "dtype", None) in COMPLEX:
        return _conjugate(value) if type(value) is Tensor else np.conj(value)
    return value.conjugate() if type(value) is complex else value


def _conjugate(tensor: Tensor) -> Tensor:
    result: Tensor = conjugate.apply(tensor)
    if not is_conjugate(tensor):
        meta_of(result).creation = "conjugate"
    return result


def is_conjugate(tensor: Tensor) -> bool:
    """Whether a tensor is what `conj` made, or a view of that."""
    return tensor.meta is not None and tensor.meta.creation == "conjugate"


conjugate: Op = op(
    "_conj",
    "ConjBackward0",
    lambda self: np.conj(self),
    keeps_layout=True,
    self=lambda grad: conj(grad),
)


conj_physical: Op = pointwise(
    "conj_physical",
    "ConjPhysicalBackward0",
    lambda self: np.conj(self),
    self=lambda grad: conj_physical(grad),
)
