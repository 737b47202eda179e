"""Sorting and searching: `sort argsort topk kthvalue msort searchsorted bucketize`; and distinct
elements, `unique unique_consecutive`, for which PyTorch defines no derivative.
"""

from __future__ import annotations

import math
from functools import partial
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, on_the_host, to_host
from gradcli.arrays.kernels import selection
from gradcli.arrays.kernels.in_c import largest_of_rows, sorted_rows
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.layout.strides import laid_out_like
from gradcli.autograd.tensor import Tensor, refuse_batched
from gradcli.errors import dtype_error, index_error, runtime_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import no_derivative
from gradcli.ops.binding.arguments import check_real, check_tensors, normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, READS
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, dtype_names
from gradcli.ops.definition.op import Function, Op, op
from gradcli.ops.reduction.extrema import picked, put_selected
from gradcli.ops.reduction.sum import check_reduced, reduction
from gradcli.state import look


def _order(self: Any, dim: int, descending: bool, named: Any = None, part: Any = None) -> Any:
    """The indices that sort a dimension; nan counts as largest. Equal elements keep their order, or
    have the one that PyTorch gives them.

    Args:
        named: gives the first indices of a slice with equal elements from the ranks of all.
        part: the indices that count, all when not given: what is equal beyond them is not named.
    """
    lines = np.moveaxis(wide(self), dim, -1)  # NumPy does not sort nan of bfloat16 last
    order = np.argsort(lines, axis=-1)
    values = np.take_along_axis(lines, order, -1)
    following, leading = values[..., 1:], values[..., :-1]
    equal = (following == leading) | ((following != following) & (leading != leading))
    if descending:
        order, equal = order[..., ::-1].copy(), equal[..., ::-1]
    begin, end = (0, order.shape[-1]) if part is None else (part.start, part.stop)
    for position in np.argwhere(equal.any(-1)):
        new = ~to_host(equal[*position])
        ranks = np.empty(order.shape[-1], np.int64)
        ranks[to_host(order[*position])] = np.concatenate([[0], np.cumsum(new)])
        decided = named is None or new[max(begin - 1, 0) : end].all()
        first = np.argsort(ranks, kind="stable") if decided else named(ranks)
        order[*position, : len(first)] = module_of(order).asarray(first)
    return np.moveaxis(order, -1, dim)


def _put_sorted(grads: Any, indices: Any, self_sizes: tuple[int, ...], dim: int) -> Any:
    return put_selected(grads, indices, self_sizes, dim, True)


# --- sort ---------------------------------------------------------------------------------------


def _sort_array(self: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
    if self.dtype.kind == "c":
        raise dtype_error("sort() is not defined for complex tensors")
    if not self.ndim:
        return self[()], np.int64(0)
    stable = stable or self.shape[dim] > selection.LONGEST
    if (in_rows := sorted_rows(self, dim, descending, stable)) is not None:
        return laid_out_like(self, in_rows[0]), laid_out_like(self, in_rows[1])
    keeps = stable or self.shape[dim] <= selection.SORT_END
    order = _order(self, dim, descending, None if keeps else selection.order)
    values, indices = picked(self, order, dim, True)
    return laid_out_like(self, values), laid_out_like(self, indices)


def _sorting(node: str) -> Op:
    return op(
        "sort",
        _sort_array,
        node=node,
        outputs=("values", "indices"),
        differentiable=(0,),
        keeps_layout=True,
        self=_put_sorted,
        numpy="""\
def sort(x, axis=-1, descending=False):
    places = np.argsort(-x if descending else x, axis, stable=True)
    return np.take_along_axis(x, places, axis), places
""",
        raises=BY_KINDS,
    )


sort = _sorting("SortBackward0")
_sort_by_stability = _sorting("SortBackward1")


@reduction("sort")
def sort_function(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> Any:
    """The elements of a dimension in order, with their indices. Equal elements of up to sixteen
    keep their order, and all with `stable`; else PyTorch's indices are given.

    Example: torch.sort(tensor([[2., 1.], [1., 3.]]), 0)
    """
    check_reduced("sort", input)
    at = normal_dim("sort", dim, input.array.ndim)
    entry = sort if stable is None else _sort_by_stability
    return named("sort", "values indices", entry.apply(input, at, descending, bool(stable)))


@reduction("argsort")
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Tensor:
    """The indices that put the elements of a dimension in order.

    Example: torch.argsort(tensor([[2., 1.], [1., 3.]]), 0)
    """
    return sort_function(input, dim, descending, stable=stable)[1]


@function("msort", method=True)
def msort(input: Tensor) -> Tensor:
    """The elements of the first dimension in order."""
    return sort_function(input, 0)[0]


# --- some of the order --------------------------------------------------------------------------


def _topk_array(self: Any, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Any, Any]:
    if not self.ndim:
        return self[()], np.int64(0)
    if (in_rows := largest_of_rows(self, k, dim, largest)) is not None:
        return in_rows
    named = partial(selection.select, count=k) if k else None
    order = _order(self, dim, largest, named, slice(0, k))
    return picked(self, order[(*(slice(None),) * dim, slice(k))], dim, True)


_topk = op(
    "topk",
    _topk_array,
    outputs=("values", "indices"),
    differentiable=(0,),
    self=_put_sorted,
    unsupported=dtype_names("bool", "complex", raises="RuntimeError"),
    numpy="""\
def topk(x, k, axis=-1, largest=True, in_order=True):
    places = np.take(np.argsort(-x if largest else x, axis, stable=True), np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places
""",
    raises=BY_KINDS,
)


@reduction("topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements of a dimension, in order, with their indices. Of equal
    elements PyTorch's indices are given. Raises E204 where there are fewer than k.

    Example: torch.topk(tensor([0.5, 1., 2.]), 2)
    """
    check_reduced("topk", input)
    at = normal_dim("topk", dim, input.array.ndim)
    size = input.array.shape[at] if input.array.ndim else 1
    count = k if type(k) is int else k.__index__()
    if not 0 <= count <= size:
        raise runtime_error(
            f"topk(): dimension {at} has {size} elements, not {count}",
            text="selected index k out of range",
        )
    return named("topk", "values indices", _topk.apply(input, count, at, largest, sorted))


def _kthvalue_array(self: Any, k: int, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if not self.ndim:
        return self[()], np.int64(0)
    named = partial(selection.first, count=k) if self.shape[dim] <= selection.LONGEST else None
    order = _order(self, dim, False, named, slice(k - 1, k))
    return picked(self, order[(*(slice(None),) * dim, slice(k - 1, k))], dim, keepdim)


_kthvalue = op(
    "kthvalue",
    _kthvalue_array,
    outputs=("values", "indices"),
    differentiable=(0,),
    self=put_selected,
    unsupported=dtype_names("bool", "complex"),
    numpy="""\
def kthvalue(x, k, axis=-1, keepdims=False):
    places = np.take(np.argsort(x, axis, stable=True), np.array([k - 1]), axis)
    found = np.take_along_axis(x, places, axis), places
    return found if keepdims else tuple(np.squeeze(each, axis) for each in found)
""",
    raises=BY_KINDS,
)


@reduction("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element of a dimension, with its index. Raises E204 where there is none.

    Example: torch.kthvalue(tensor([0.5, 1., 2.]), 2)
    """
    check_reduced("kthvalue", input, keepdim)
    at = normal_dim("kthvalue", dim, input.array.ndim)
    size = input.array.shape[at] if input.array.ndim else 1
    if not 1 <= k <= size:
        raise value_error(
            f"kthvalue(): selected number k out of range for dimension {at}",
            raises="RuntimeError" if size else "IndexError",
        )
    return named("kthvalue", "values indices", _kthvalue.apply(input, k, at, keepdim))


# --- what leaves the graph ----------------------------------------------------------------------


def _insertion_points(bounds: Any, values: Any, side: Any) -> Any:
    """Where values belong among sorted bounds. NumPy puts a nan at the end; PyTorch's search by
    halves takes a bound that it cannot compare for one that lies before.
    """
    if np.isfinite(bounds).all() and np.isfinite(values).all():
        return np.searchsorted(bounds, values, side=side)
    start = np.zeros(values.shape, np.int64)
    end = np.full(values.shape, bounds.size)
    reaches = np.greater_equal if side == "left" else np.greater
    while (undecided := start < end).any():
        middle = (start + end) // 2
        before = undecided & ~reaches(bounds[np.minimum(middle, bounds.size - 1)], values)
        start = np.where(before, middle + 1, start)
        end = np.where(undecided & ~before, middle, end)
    return start


@function("searchsorted")
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each element would have to be put into the ascending sequence to keep it in order;
    `sorter` has the indices that sort one which is not.

    Sequences of several dimensions are searched along the last one. Raises E301 where their
    leading sizes differ from the input's.

    Example: torch.searchsorted(tensor([1., 2., 3.]), tensor([2.5]))
    """
    check_reduced("searchsorted", sorted_sequence)
    if type(input) not in NUMBERS:
        check_tensors("searchsorted", input=input)
    shape = tuple(sorted_sequence.array.shape)
    leading = tuple(input.array.shape) if type(input) is Tensor else ()
    if not shape or (len(shape) > 1 and (not leading or shape[:-1] != leading[:-1])):
        raise shape_error(
            f"searchsorted(): the sequences' shape {shape} and the values' {leading} differ before"
            " the last dimension"
        )
    operands = [each.array if type(each) is Tensor else each for each in (sorted_sequence, input)]
    check_dtype("searchsorted", dtypes.result_dtype(operands), dtype_names("bool", "complex"))
    bounds = sorted_sequence.array
    if sorter is not None:
        bounds = _in_order(bounds, sorter)
    values = input.array if isinstance(input, Tensor) else module_of(bounds).asarray(input)
    look(None, bounds, values)
    if side not in (None, "left", "right"):
        raise runtime_error(f"searchsorted(): side is 'left' or 'right', not {side!r}")
    chosen = side or ("right" if right else "left")
    kind = np.int32 if out_int32 else np.int64
    if bounds.ndim == 1:
        points = _insertion_points(bounds, values, chosen)
        return Tensor(module_of(bounds).asarray(points).astype(kind)[()])
    count = math.prod(bounds.shape[:-1])
    rows = zip(
        bounds.reshape(count, bounds.shape[-1]),
        values.reshape(count, values.shape[-1]),
        strict=True,
    )
    positions = [_insertion_points(row, wanted, chosen) for row, wanted in rows]
    return Tensor(np.stack(positions).astype(kind).reshape(values.shape))


def _in_order(bounds: Any, sorter: Tensor) -> Any:
    """The sequences as the indices of `sorter` order them; raises E301, E203 or E302."""
    order = sorter.array
    if order.shape != bounds.shape:
        raise shape_error(
            f"searchsorted(): a sorter of shape {order.shape} for sequences of {bounds.shape}",
            text="torch.searchsorted(): boundary and sorter must have the same size, but got"
            f" boundary tensor {list(bounds.shape)}and got sorter tensor {list(order.shape)}",
        )
    if sorter.dtype is not dtypes.int64:
        text = "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype"
        raise dtype_error(f"{text} {sorter.dtype.scalar_type}")
    if order.size and not 0 <= order.min() <= order.max() < bounds.shape[-1]:
        raise index_error("torch.searchsorted(): sorter index out of range", raises="RuntimeError")
    return np.take_along_axis(bounds, order, -1)


@function("bucketize", method=True)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The bucket that each element lies in; `right` puts a boundary into the bucket above it.
    Raises E301 for boundaries that are no vector.

    Example: torch.bucketize(tensor([2.5]), tensor([1., 2., 3.]))
    """
    if type(input) not in NUMBERS:
        check_tensors("bucketize", input=input)
    if boundaries.array.ndim != 1:
        raise shape_error(
            "bucketize(): the boundaries must be a vector",
            text=f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})",
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# --- distinct elements ----------------------------------------------------------------------------


Distinct = tuple[Any, Any, Any]
"""The distinct elements, which of them each element is, and how often each occurs."""


@on_the_host
def _distinct(self: Any, dim: int | None) -> Distinct:
    # Every nan is one of its own, and the last: in float32 that of bfloat16 too.
    values, inverse, counts = np.unique(
        wide(self), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    values = values.astype(self.dtype, copy=False)
    return values, _shaped(self, inverse, dim), counts.astype(np.int64)


@on_the_host
def _distinct_in_a_row(self: Any, dim: int | None) -> Distinct:
    parts = self.reshape(-1) if dim is None else np.moveaxis(self, dim, 0)
    rows = parts.reshape(len(parts), prod(parts.shape[1:]))
    first = np.ones(len(parts), np.bool_)
    first[1:] = (rows[1:] != rows[:-1]).any(1)
    values = parts[first] if dim is None else np.moveaxis(parts[first], 0, dim).copy()
    starts = np.append(np.flatnonzero(first), len(parts))
    return values, _shaped(self, np.cumsum(first) - 1, dim), np.diff(starts).astype(np.int64)


def _shaped(self: Any, inverse: Any, dim: int | None) -> Any:
    return inverse.reshape(self.shape if dim is None else (-1,)).astype(np.int64)


def _entry(name: str, forward: Function) -> Op:
    refused = no_derivative(name, "detach the tensor", "NotImplementedError")
    return op(
        name,
        lambda self, dim: forward(self, dim),
        outputs=("values", "inverse", "counts"),
        differentiable=(0,),
        self=lambda grads: refused(grads[0]),
        effects=(READS,),
        raises=BY_VALUES,
    )


_unique = _entry("_unique2", _distinct)
_unique_along = _entry("unique_dim", _distinct)
_in_a_row = _entry("unique_consecutive", _distinct_in_a_row)


def _results(
    entry: Op, input: Tensor, dim: int | None, return_inverse: bool, return_counts: bool
) -> Any:
    values, inverse, counts = entry.apply(input, dim)
    results = [values]
    if return_inverse:
        results.append(inverse)
    if return_counts:
        results.append(counts)
    return values if len(results) == 1 else tuple(results)


@function("unique", method=True, effects=(READS,))
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or along a dimension the distinct parts; on request
    which of them each element is, and how often each occurs.

    Example: torch.unique(tensor([[2., 1.], [1., 3.]]))
    """
    check_reduced("unique", input)
    refuse_batched("unique", input)
    if input.dtype.is_complex:
        check_real("unique", input.array)
    if dim is None:
        return _results(_unique, input, None, return_inverse, return_counts)
    at = normal_dim("unique", dim, input.array.ndim)
    return _results(_unique_along, input, at, return_inverse, return_counts)


@function("unique_consecutive", method=True)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements, or along a dimension the parts, without those equal to the one before; on
    request which of them each element became, and how many each stands for.

    Example: torch.unique_consecutive(tensor([[2., 1.], [1., 3.]]))
    """
    check_reduced("unique_consecutive", input)
    check_dtype("unique_consecutive", input.dtype, COMPLEX)
    at = None if dim is None else normal_dim("unique_consecutive", dim, input.array.ndim)
    return _results(_in_a_row, input, at, return_inverse, return_counts)
