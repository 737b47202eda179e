"""How values are distributed: the counts `bincount histc histogram`, which leave the graph, and
`quantile nanquantile`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import moved
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import mul, mul_number
from gradcli.ops.binding.arguments import check_floating, check_tensors, checked_values, normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import CHECKS, READS, describe, effects
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.indexing.gather import gather
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.reduction.sorting import sort
from gradcli.ops.reduction.sum import check_reduced, reduction
from gradcli.ops.shape.reshaping import flatten
from gradcli.ops.shape.views import (
    expand,
    squeeze_in_place,
    transpose,
    transpose_in_place,
    unsqueeze,
    unsqueeze_in_place,
    view,
)
from gradcli.state import look

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
    look(None, array)
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
    look(None, array)
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
    look(None, input.array)
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


# --- quantiles ------------------------------------------------------------------------------------


_INTERPOLATIONS = {
    "linear": None,
    "midpoint": None,
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.rint,
}


def _checked_fractions(name: str, input: Tensor, q: Any) -> Tensor:
    """The fractions as a tensor. Raises E203 for dtypes that differ, E204 outside of 0 to 1."""
    if str(input.array.dtype) not in ("float32", "float64"):
        raise dtype_error(f"{name}() input tensor must be either float or double dtype")
    if type(q) in (int, float):
        if not 0 <= q <= 1:
            raise runtime_error(
                f"{name}(): q must lie between 0 and 1, not {q}",
                text=f"{name}() q must be in the range [0, 1] but got {q:g}",
            )
        return Tensor(moved(input.array.dtype.type(q), input.device))
    check_tensors(name, q=q)
    if q.array.ndim > 1:
        raise shape_error(f"{name}(): q must be a number or a vector")
    if q.dtype is not input.dtype:
        raise dtype_error(f"{name}(): q is {q.dtype} and the input {input.dtype}")
    checked_values(_check_shares, name, q.array)
    return q


def _check_shares(name: str, q: Any) -> None:
    """Raise E204 for a share that is none."""
    if not ((q >= 0) & (q <= 1)).all():
        raise runtime_error(f"{name}(): every q must lie between 0 and 1")


def _sorted_last(input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """The elements sorted along a last dimension; before it those that the result will have."""
    ndim = input.array.ndim
    if dim is None:
        values = sort.apply(flatten(input), 0, False, False)[0]
        sizes = (1,) * ndim if keepdim else ()
    else:
        sizes = tuple(input.array.shape[:dim] + input.array.shape[dim + 1 :])
        if keepdim:
            sizes = (*sizes[:dim], 1, *sizes[dim:])
        if dim != ndim - 1:
            input = transpose.apply(unsqueeze.apply(input, ndim), dim, ndim)
        values = sort.apply(input, input.array.ndim - 1, False, False)[0]
    return view.apply(values, (*sizes, values.array.shape[-1]))


def _ranks(values: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """Where among the sorted elements each quantile lies, between two of them in general."""
    missing = np.isnan(values.array)
    if ignore_nan:
        last = (~missing).sum(-1, keepdims=True) - 1
        ranks = mul.apply(q, Tensor(last))
        return masked_fill_number.apply(ranks, Tensor(ranks.array < 0), 0)
    # A nan is sorted last, and makes every quantile nan unless they are left out.
    size = values.array.shape[-1]
    ranks = mul_number.apply(q, size - 1)
    sizes = (*values.array.shape[:-1], max(q.array.size, 1))
    if ranks.array.shape != sizes:
        ranks = expand.apply(ranks, sizes)
    filled = np.broadcast_to(missing.any(-1, keepdims=True), sizes)
    return masked_fill_number.apply(ranks, Tensor(filled), size - 1)


def _quantile(name: str, ignore_nan: bool) -> None:
    @reduction(name, autocast="float32")
    @effects(CHECKS)
    def quantile(
        input: Tensor,
        q: Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        check_reduced(name, input, keepdim)
        fractions = _checked_fractions(name, input, q)
        if interpolation not in _INTERPOLATIONS:
            raise runtime_error(
                f"{name}(): interpolation must be one of {', '.join(_INTERPOLATIONS)}"
            )
        if not input.array.size:
            raise runtime_error(f"{name}() input tensor must be non-empty")
        at = None if dim is None else normal_dim(name, dim, input.array.ndim)
        values = _sorted_last(input, at if input.array.ndim else None, keepdim)
        ranks = _ranks(values, fractions, ignore_nan)
        last = values.array.ndim - 1
        round_to = _INTERPOLATIONS[interpolation]
        positions = ranks.array if round_to is None else round_to(ranks.array)
        below = positions.astype(np.int64)
        result = gather.apply(values, last, Tensor(below))
        if round_to is None:
            above = gather.apply(values, last, Tensor(np.ceil(positions).astype(np.int64)))
            if interpolation == "midpoint":
                weight = Tensor(np.full_like(positions, 0.5))
            else:
                weight = ranks - Tensor(below.astype(positions.dtype))
            result = methods.lerp_(result, above, weight)
        if fractions.array.ndim:
            unsqueeze_in_place(result, 0)
            last += 1
            transpose_in_place(result, 0, last)
        return squeeze_in_place(result, last)

    without = ", nan left out" if ignore_nan else ""
    describe(
        quantile,
        f"The q-quantiles of all elements, or along a dimension{without}: q lies between 0 and 1,"
        " a number or a vector of several.",
        f"torch.{name}(tensor([0.5, 1., 2.]), 0.5)",
    )


_quantile("quantile", False)
_quantile("nanquantile", True)
