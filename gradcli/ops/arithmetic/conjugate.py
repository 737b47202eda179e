"""Complex conjugates and negated views, for programs and for derivative rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy_conjugation import PLAIN, LazyConjugation, Reflection
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.inplace.writes import base_array
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op, pointwise

COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))
"""NumPy's complex dtypes."""

_REAL = frozenset({float, int, np.float32, np.float64})


def conj(value: Any) -> Any:
    """The complex conjugate: a real value is its own, and makes no node."""
    if type(value) in _REAL or (type(value) in HOST_ARRAYS and value.dtype.kind != "c"):
        return value
    array = value.array if type(value) is Tensor else value
    if getattr(array, "dtype", None) in COMPLEX:
        return _conjugate(value) if type(value) is Tensor else np.conj(value)
    return value.conjugate() if type(value) is complex else value


def _conjugate(tensor: Tensor) -> Tensor:
    if type(tensor.array) is BatchedArray:
        return conj_physical.apply(tensor)
    conjugated, negated = reflection_of(tensor)
    return _reflected(conjugate, tensor, (not conjugated, negated))


def negated(tensor: Tensor) -> Tensor:
    """A view that shows a tensor's elements negated."""
    conjugated, negated = reflection_of(tensor)
    return _reflected(neg_view, tensor, (conjugated, not negated))


def _reflected(view: Op, tensor: Tensor, reflection: Reflection) -> Tensor:
    """What an op returns, with the memory that follows the tensor's."""
    result: Tensor = view.apply(tensor)
    result.array = lazy_conjugation_of(tensor).shown(tensor.array, reflection)
    return result


def lazy_conjugation_of(tensor: Tensor) -> LazyConjugation:
    """All storages that are views of a tensor's memory, conjugated or negated."""
    storage = storage_of(tensor)
    if storage.lazy_conjugation is None:
        storage.lazy_conjugation = LazyConjugation(base_array(tensor))
    return storage.lazy_conjugation


def reflection_of(tensor: Tensor) -> Reflection:
    """How a tensor shows the memory that it shares with others: conjugated, or negated."""
    storage = tensor.storage
    if storage is None or storage.lazy_conjugation is None:
        return PLAIN
    return storage.lazy_conjugation.reflection(tensor.array)


# The views have memory of their own, kept equal to the tensor's:
# `arrays/fusion/lazy_conjugation.py`.

conjugate: Op = op(
    "_conj", lambda self: np.conj(self), view=True, self=lambda grad: conj(grad), raises=BY_KINDS
)

neg_view: Op = op(
    "_neg_view", lambda self: -self, view=True, self=lambda grad: -grad, raises=BY_KINDS
)

conj_physical: Op = pointwise("conj_physical", lambda self: np.conj(self), linear=True, written={})
