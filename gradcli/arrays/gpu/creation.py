"""NumPy's functions that make arrays, for arrays on a GPU: what `module_of` gives for one.

Every other name is NumPy's own function, which asks its operands what to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.gpu.array import GPUArray, on_device
from gradcli.arrays.gpu.runtime import cupy


def empty(shape: Any, dtype: Any = float) -> GPUArray:
    return GPUArray(cupy().empty(shape, dtype))


def zeros(shape: Any, dtype: Any = float) -> GPUArray:
    return GPUArray(cupy().zeros(shape, dtype))


def ones(shape: Any, dtype: Any = float) -> GPUArray:
    return GPUArray(cupy().ones(shape, dtype))


def full(shape: Any, value: Any, dtype: Any = None) -> GPUArray:
    """One number for all elements; the number may be on the GPU."""
    value = on_device(value)
    if dtype is None:
        dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
    return GPUArray(cupy().full(shape, value, dtype))


def arange(*bounds: Any, dtype: Any = None) -> GPUArray:
    return GPUArray(cupy().arange(*bounds, dtype=dtype))


def eye(rows: int, columns: int | None = None, k: int = 0, dtype: Any = float) -> GPUArray:
    return GPUArray(cupy().eye(rows, columns, k, dtype))


def array(value: Any, dtype: Any = None, order: str = "K", copy: bool = True) -> GPUArray:
    """A copy on the GPU."""
    return GPUArray(cupy().array(on_device(value), dtype=dtype, order=order))


def asarray(value: Any, dtype: Any = None) -> GPUArray:
    """The array itself where it is on the GPU and has the dtype; else a copy there."""
    if type(value) is GPUArray and (dtype is None or dtype == value.dtype):
        return value
    return GPUArray(cupy().asarray(on_device(value), dtype=dtype))


def ascontiguousarray(value: Any) -> GPUArray:
    """The array with its elements in row order, itself where they are already."""
    return value if value.flags.c_contiguous else GPUArray(cupy().ascontiguousarray(value.values))


def ndarray(
    shape: Any, dtype: Any, buffer: GPUArray, offset: int = 0, strides: Any = None
) -> GPUArray:
    """Another window on an array's memory: the offset in bytes from its first element, the strides
    in bytes.
    """
    memory = buffer.values.data + offset
    return GPUArray(cupy().ndarray(tuple(shape), dtype, memptr=memory, strides=strides))


def __getattr__(name: str) -> Any:
    return getattr(np, name)
