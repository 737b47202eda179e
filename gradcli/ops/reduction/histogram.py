"""Counts of values: `bincount histc histogram`. They leave the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, shape_error
from gradcli.ops.binding.arguments import check_floating, check_tensors
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import CHECKS, READS
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names

_LARGEST = 2**63 - 1
"""The largest integer of 64 bits."""


@function("bincount", method=True, effects=(CHECKS, READS))
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 stands in a vector, or the sum of its weights.

    Raises E203 for a vector that is not of integers, E204 for a negative element.

    Example: torch.bincount(tensor([3, 1, 2]))
    """
    check_tensors("bincount", input=input, **({} if weights is None else {"weights": weights}))
    check_dtype("bincount", input.dtype, dtype_names("bool", "float", "complex"))
    array = input.array
    if array.ndim != 1:
        raise dtype_error("bincount() needs a vector of integers")
    if array.size and array.min() < 0:
        raise runtime_error(
            "bincount(): an element is negative",
            text="bincount only supports 1-d non-negative integral inputs.",
        )
    if array.size and int(array.max()) == _LARGEST:  # NumPy would count them in no memory
        raise runtime_error(
            f"bincount(): an element is {_LARGEST}, and so many counts cannot be",
            text=f"maximum value of input overflowed, it should be < {_LARGEST} but got {_LARGEST}",
        )
    if minlength < 0:
        raise runtime_error(
            f"bincount(): minlength is {minlength}, below 0", text="minlength should be >= 0"
        )
    if weights is None:
        return Tensor(np.bincount(array, minlength=minlength))
    if weights.array.shape != array.shape:
        raise shape_error("bincount(): the weights have another shape than the vector")
    counts = np.bincount(array, weights.array, minlength)
    single = weights.array.dtype == np.float32
    return Tensor(counts.astype(np.float32) if single else counts)


@function("histc", method=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of the equal bins between min and max; the least and the
    greatest element where the two are equal. Raises E203 for integers, E204 for no range.

    Example: torch.histc(tensor([0.5, 1., 2.]), 4)
    """
    if bins <= 0:
        raise runtime_error(
            "histc() needs a bin or more",
            text=f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0",
        )
    check_floating("histc", input)
    array = input.array
    low, high = float(min), float(max)
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not low < high or np.isinf([low, high]).any():
        raise runtime_error(
            "torch.histc: max must be larger than min"
            if low > high
            else f"range of [{low:g}, {high:g}] is not finite"
        )
    counts, _ = np.histogram(array, bins, (low, high))
    return Tensor(counts.astype(array.dtype))


@function("histogram", method=True)
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many elements fall into each bin, or the sum of their weights, and where the bins end.

    Args:
        bins: how many bins of one width there are, or where they end.
        range: where the first begins and the last ends, the least and the greatest element by
            default.
        density: whether the bins' areas sum to 1.

    Example: torch.histogram(tensor([0.5, 1., 2.]), 4)
    """
    check_tensors("histogram", input=input, **({} if weight is None else {"weight": weight}))
    check_floating("histogram", input)
    edges = bins.array if isinstance(bins, Tensor) else bins
    if isinstance(edges, int) and edges <= 0:
        raise runtime_error(
            "histogram() needs a bin or more",
            text=f"torch.histogram(): bins must be > 0, but got {edges} for dimension 0",
        )
    if weight is not None and weight.array.shape != input.array.shape:
        raise shape_error("histogram(): the weights have another shape than the input")
    values = np.asarray(input.array, np.float64)
    between = None if range is None else (float(range[0]), float(range[1]))
    if between is not None and not between[0] <= between[1]:
        raise runtime_error("torch.histogram(): max must be larger than min")
    weights = None if weight is None else np.asarray(weight.array, np.float64)
    counts, ends = np.histogram(values, edges, between, density, weights)
    parts = [Tensor(part.astype(input.array.dtype)) for part in (counts, ends)]
    return named("histogram", "hist bin_edges", parts)
