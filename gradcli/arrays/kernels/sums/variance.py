"""Variance: sums of squared differences from a mean, in double precision and in PyTorch's order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.layout.strides import outermost_first

_FEW = 256
"""Numbers up to which they are added one by one, for the last digit of a double."""


def mean_and_squares(values: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The mean over some axes and the sum of the squared differences from it: float64 arrays in
    which those axes have the size 1.

    A few doubles are read in one pass: B. P. Welford, "Note on a method for calculating corrected
    sums of squares and products", Technometrics 4 (1962) 419. All else takes two passes.
    """
    shape = tuple([1 if axis in axes else size for axis, size in enumerate(values.shape)])
    if type(values) is np.ndarray and values.dtype.char == "d":
        each = _in_order(values, axes)
        if 0 < len(each) <= _FEW:
            mean, squares = _one_by_one(each)
            return mean.reshape(shape), squares.reshape(shape)
    exact = values.astype(np.float64)
    count = math.prod([values.shape[axis] for axis in axes])
    mean = np.add.reduce(exact, axis=axes, keepdims=True) / np.float64(count)
    difference = exact - mean
    return mean, np.add.reduce(difference * difference, axis=axes, keepdims=True)


def _in_order(values: Any, axes: tuple[int, ...]) -> Any:
    """The values with some axes joined to one, the first, in their order in memory."""
    order = [axis for axis in outermost_first(values.shape, values.strides) if axis in axes]
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    count = math.prod([values.shape[axis] for axis in axes])
    return values.transpose(*order, *kept).reshape(count, *[values.shape[axis] for axis in kept])


def _one_by_one(values: Any) -> tuple[Any, Any]:
    mean = squares = np.zeros(values.shape[1:])
    for count, value in enumerate(values, 1):
        change = value - mean
        mean = mean + change / count
        squares = squares + change * (value - mean)
    return mean, squares


def squares_about(mean: Any, values: Any) -> Any:
    """The sum of the squared differences of all values from a number, in their order in memory."""
    every = _in_order(values, tuple(range(values.ndim)))
    difference = every.astype(np.float64) - np.float64(mean)
    squares = difference * difference
    return np.add.accumulate(squares)[-1] if len(squares) else np.float64(0)
