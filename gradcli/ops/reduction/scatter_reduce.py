"""Reductions of parts: elements of a source at the positions of an index, `scatter_reduce
index_reduce`, and consecutive parts of a dimension, `segment_reduce`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.sums import wide
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error
from gradcli.ops.arithmetic.arithmetic import no_derivative, ones, zeros, zeros_like
from gradcli.ops.binding.arguments import check_floating, check_tensors, normal_dim, numbers_in
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import cast_to
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES
from gradcli.ops.definition.dtype_support import COMPLEX, NOTHING, check_dtype, dtype_names
from gradcli.ops.definition.op import Function, Op, op
from gradcli.ops.elementwise.comparison import logical_and, where
from gradcli.ops.indexing.along import (
    check_along,
    checked_dim,
    checked_source,
    gather,
    in_index_shape,
    index_add,
    index_fill_number,
    index_select,
    part_positions,
    positions_along,
    same_dtype,
    scatter_add,
    scatter_number,
)
from gradcli.ops.indexing.masks import masked_fill_number

_UFUNCS = {
    "sum": np.add,
    "mean": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _identity(reduce: str, dtype: Any) -> Any:
    """The initial value of a position where the tensor's own element does not count."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    if reduce == "amax":
        return limits.min if limits else -np.inf
    return limits.max if limits else np.inf


def _reduced(
    self: Any, positions: Any, values: Any, reduce: str, include_self: bool, widened: Function
) -> Any:
    whole = module_of(self).array(self, order="C")
    flat, positions, values = whole.reshape(-1), positions.reshape(-1), values.reshape(-1)
    if not include_self:
        flat[positions] = _identity(reduce, whole.dtype)
    reduced = widened(flat)
    _UFUNCS[reduce].at(reduced, positions, widened(values))
    flat[...] = reduced
    if reduce == "mean":
        counts = module_of(flat).full(flat.shape, int(include_self))
        np.add.at(counts, positions, 1)
        divisors = np.maximum(counts, 1).astype(whole.dtype)
        flat[...] = flat / divisors if whole.dtype.kind not in "iu" else flat // divisors
    return whole


def _indicator(condition: Any, like: Any) -> Any:
    """1 where a condition holds and 0 elsewhere, in another value's dtype."""
    return cast_to(condition, like.dtype if type(like) is Tensor else dtypes.of_array(like))


def _of_mean(read: Function, add: Function) -> Function:
    """The gradients of both inputs of a mean."""

    def of_mean(grad: Any, self: Any, src: Any, dim: int, index: Any, included: bool) -> Any:
        counts = zeros_like(grad) + int(included)
        counts = add(counts, dim, index, zeros_like(src) + 1)
        counts = masked_fill_number(counts, counts == 0, 1)
        return grad / counts, read(grad, dim, index) / read(counts, dim, index)

    return of_mean


def _of_product(reduced: Function, read: Function, add: Function) -> Function:
    """The gradients of both inputs of a product."""

    def of_product(
        grad: Any, self: Any, src: Any, result: Any, dim: int, index: Any, included: bool
    ) -> Any:
        # Exact also with zeros: a factor's gradient is the product of the others. Where one factor
        # of the source is the only zero of its position, the others are multiplied without it.
        filled = masked_fill_number(self, self == 0, 1)
        rest = reduced(filled, src, dim, index, "prod", included)
        grad_self = grad * rest / filled
        is_zero = src == 0
        count = add(zeros_like(self), dim, index, _indicator(is_zero, src))
        alone = logical_and(is_zero, read(count, dim, index) == 1)
        rest = reduced(self, masked_fill_number(src, alone, 1), dim, index, "prod", included)
        grad_src = where(
            alone,
            read(grad * rest, dim, index),
            read(grad * result, dim, index) / masked_fill_number(src, is_zero, 1),
        )
        return grad_self, grad_src

    return of_product


def _of_extremum(read: Function, add: Function) -> Function:
    """The gradients of both inputs of the largest or the smallest element."""

    def of_extremum(grad: Any, self: Any, src: Any, result: Any, dim: int, index: Any) -> Any:
        # Those that tie share the gradient evenly.
        self_is = _indicator(self == result, grad)
        src_is = _indicator(src == read(result, dim, index), grad)
        shared = grad / add(self_is, dim, index, src_is)
        return self_is * shared, src_is * read(shared, dim, index)

    return of_extremum


_OLD_NAMES = {"max": "amax", "min": "amin"}
"""Names of reductions that `scatter_reduce` takes and its derivative does not."""


def _gradients(reduced: Function, read: Function, add: Function, fill: Function) -> Function:
    """The joint rule of both inputs.

    Args:
        reduced: the op itself.
        read: the elements at the positions of an index.
        add: adds elements at the positions of an index.
        fill: writes a number at the positions of an index.
    """

    of_mean, of_extremum = _of_mean(read, add), _of_extremum(read, add)
    of_product = _of_product(reduced, read, add)

    def rule(
        grad: Any,
        self: Any,
        src: Any,
        result: Any,
        dim: int,
        index: Any,
        reduce: str,
        include_self: bool,
    ) -> tuple[Any, Any]:
        if reduce in _OLD_NAMES:
            raise runtime_error(
                "Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' but got"
                f" {reduce}.",
                help=f"write {_OLD_NAMES[reduce]!r}",
            )
        if reduce == "sum":
            grad_self, grad_src = grad, read(grad, dim, index)
        elif reduce == "mean":
            grad_self, grad_src = of_mean(grad, self, src, dim, index, include_self)
        elif reduce == "prod":
            grad_self, grad_src = of_product(grad, self, src, result, dim, index, include_self)
        else:
            grad_self, grad_src = of_extremum(grad, self, src, result, dim, index)
        return (grad_self if include_self else fill(grad_self, dim, index, 0)), grad_src

    return rule


_scatter_reduce: Op = op(
    "scatter_reduce",
    lambda self, src, dim, index, reduce, include_self: _reduced(
        self,
        positions_along(self.shape, dim, index),
        in_index_shape(src, index),
        str(_OLD_NAMES.get(reduce, reduce)),
        include_self,
        wide,  # half precision is rounded once
    ),
    constant=("index",),
    inputs=("self", "src"),
    joint=_gradients(
        lambda *operands: _scatter_reduce(*operands), gather, scatter_add, scatter_number
    ),
    raises=BY_VALUES,
)

_index_reduce: Op = op(
    "index_reduce",
    lambda self, src, dim, index, reduce, include_self: _reduced(
        self,
        part_positions(self.shape, dim, index),
        src,
        reduce,
        include_self,
        lambda array: array,  # half precision is rounded at each step
    ),
    constant=("index",),
    inputs=("self", "src"),
    joint=_gradients(
        lambda *operands: _index_reduce(*operands), index_select, index_add, index_fill_number
    ),
    raises=BY_VALUES,
)


_REFUSED = {"mean": dtype_names("bool"), "amax": COMPLEX, "amin": COMPLEX}
"""The dtypes without such a reduction."""

_REFUSED_BY_ITS_OWN = dtype_names("bool", "complex")

_OF_PARTS = {"mean": "floor_divide", "amax": "clamp_min", "amin": "clamp_max"}
"""Functions whose kernel reduces whole parts."""


def _check_reduction(name: str, reduce: Any, known: tuple[str, ...]) -> None:
    if reduce not in known:
        *others, last = known
        listed = f"{', '.join(others)} or {last}"
        raise runtime_error(
            f"{name}(): reduce is {', '.join(map(repr, known))}, not {reduce!r}",
            text=f"index_reduce(): Expected reduce to be one of {listed} but got {reduce}."
            if name == "index_reduce"
            else f"reduce argument must be either {listed}, got {reduce}",
        )


@function("scatter_reduce", method=True, inplace=True, check=check_along)
def scatter_reduce(
    input: Tensor, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with the source's elements reduced into the places that the index says.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether the tensor's own elements count.

    Example:
        torch.scatter_reduce(tensor([[2., 1.], [1., 3.]]), 1, tensor([[0, 0], [1, 0]]),
            tensor([[1., 0.], [2., 1.]]), 'amax')
    """
    reduced = _OLD_NAMES.get(reduce, reduce)
    _check_reduction("scatter_reduce", reduced, ("sum", "prod", "mean", "amax", "amin"))
    at = checked_dim("scatter_reduce", input, dim, index, src)
    same_dtype("scatter_reduce", input, src)
    check_dtype("scatter_reduce", input.dtype, _REFUSED.get(reduced, NOTHING), f"reduce_{reduced}")
    return _scatter_reduce.apply(input, src, at, index, reduce, include_self)


@function("index_reduce", method=True, inplace=True, check=check_along)
def index_reduce(
    input: Tensor, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with the parts of the source reduced into the positions of the index.

    Args:
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether the tensor's own elements count.

    Example: torch.index_reduce(tensor([[2., 1.], [1., 3.]]), 0, tensor([1]), ones(1, 2), 'mean')
    """
    _check_reduction("index_reduce", reduce, ("prod", "mean", "amax", "amin"))
    at = checked_source("index_reduce", input, dim, index, source, "IndexError")
    # PyTorch reduces elements by a kernel of their own, and parts by the kernels of pointwise ops.
    if not include_self or input.array.ndim < 2:
        kernel = "reduce_elements" if include_self else "reduce_without_self"
        check_dtype("index_reduce", input.dtype, _REFUSED_BY_ITS_OWN, kernel)
    check_dtype(
        "index_reduce", input.dtype, _REFUSED.get(reduce, NOTHING), _OF_PARTS.get(reduce, "")
    )
    return _index_reduce.apply(input, source, at, index, reduce, include_self)


# --- segments -------------------------------------------------------------------------------------


_FIRST = {"max": -np.inf, "mean": np.nan, "min": np.inf, "prod": 1.0, "sum": 0.0}
"""What an empty part gives, by the reduction."""

_COMBINE = {
    "max": np.maximum,
    "mean": np.add,
    "min": np.minimum,
    "prod": np.multiply,
    "sum": np.add,
}

_METHODS = {"max": "max", "mean": "sum", "min": "min", "prod": "prod", "sum": "sum"}


def _parts(lengths: tuple[int, ...]) -> list[tuple[int, int]]:
    ends = np.cumsum((0, *lengths)).tolist()
    return list(pairwise(ends))


def _of_segments(data: Any, reduce: str, lengths: Any, axis: int, initial: float | None) -> Any:
    combine = _COMBINE[reduce]
    values = np.moveaxis(data, axis, 0)
    result = module_of(data).empty((len(lengths), *values.shape[1:]), data.dtype)
    for number, (start, end) in enumerate(_parts(lengths)):
        first = initial if initial is not None else _FIRST[reduce]
        if end > start:
            reduced = getattr(values[start:end], _METHODS[reduce])(axis=0)
            if initial is not None:
                reduced = combine(reduced, data.dtype.type(initial))
            result[number] = reduced / (end - start) if reduce == "mean" else reduced
        else:
            result[number] = first
    return np.moveaxis(result, 0, axis)


def _gradient(
    grad: Any, output: Any, data: Any, reduce: str, lengths: Any, axis: int, initial: float | None
) -> Any:
    grads, results, values = (np.moveaxis(each, axis, 0) for each in (grad, output, data))
    slopes = module_of(data).zeros(values.shape, data.dtype)
    for number, (start, end) in enumerate(_parts(lengths)):
        part, rows = values[start:end], slice(start, end)
        if reduce in ("max", "min"):
            # Equal elements share; what is not finite counts as the largest.
            picked = (part == results[number]) | np.isnan(part)
            count = np.maximum(picked.sum(0), 1)
            slopes[rows] = np.where(picked, grads[number] / count, 0)
        elif reduce == "prod":
            for at in range(start, end):
                others = values[start:at].prod(0) * values[at + 1 : end].prod(0)
                slopes[at] = grads[number] * others * (1 if initial is None else initial)
        else:
            slopes[rows] = grads[number] / (end - start if reduce == "mean" and end > start else 1)
    return np.moveaxis(slopes, 0, axis)


def _gradient_decomposed(
    grad: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    lengths: tuple[int, ...],
    axis: int,
    initial: float | None,
) -> Tensor:
    """`_gradient` of finite elements that are not 0, step by step."""
    segments = Tensor(np.repeat(np.arange(len(lengths)), lengths))
    spread: Tensor = index_select(grad, axis, segments)
    if reduce == "sum":
        return spread
    if reduce == "mean":
        counts = np.repeat(lengths, lengths).astype(data.array.dtype)
        shape = [1] * data.ndim
        shape[axis] = -1
        return spread / Tensor(counts.reshape(shape))
    results = index_select(output, axis, segments)
    if reduce == "prod":
        return spread * results / data
    picked = where(data == results, ones(data, ()), zeros(data, ()))
    totals = index_add(zeros(output, tuple(output.shape)), axis, segments, picked)
    return spread * picked / index_select(totals, axis, segments)


_no_second = no_derivative(
    "the gradient of segment_reduce",
    "reduce the parts one by one",
    pytorch="_segment_reduce_backward",
)

segment_reduce_backward: Op = op(
    "_segment_reduce_backward",
    _gradient,
    decomposition=_gradient_decomposed,
    node="NotImplemented",
    grad=_no_second,
    output=_no_second,
    data=_no_second,
    raises=BY_KINDS,
)

_segment_reduce: Op = op(
    "segment_reduce",
    _of_segments,
    data=lambda grad, result, data, reduce, lengths, axis, initial: segment_reduce_backward(
        grad, result, data, reduce, lengths, axis, initial
    ),
    raises=BY_KINDS,
)


def _lengths(lengths: Tensor | None, offsets: Tensor | None, axis: int) -> tuple[int, ...]:
    sizes = lengths if offsets is None else offsets
    if sizes is None:
        raise runtime_error("segment_reduce(): Either lengths or offsets must be defined.")
    check_tensors("segment_reduce", lengths=sizes)
    if sizes.array.dtype.kind not in "iu":
        raise dtype_error("segment_reduce(): lengths must be integers")
    numbers_in(sizes)
    rows = sizes.array.reshape(-1, sizes.array.shape[-1]) if sizes.ndim else sizes.array
    if sizes.ndim != axis + 1 or (rows != rows[:1]).any():
        raise GradcliError("E205", "segment_reduce(): all rows have the same lengths here")
    values = rows[0].tolist()
    return tuple(values if offsets is None else np.diff(values).tolist())


@function("segment_reduce")
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Each part of a dimension reduced by "sum", "mean", "max", "min" or "prod".

    Args:
        lengths: of the parts; or `offsets`, where each begins, and where the last one ends.
        initial: what each part's reduction begins with, and what an empty one gives.

    Raises E204 for lengths that do not add up to the dimension, and for another reduction.

    Conventions: What ties for the largest or the smallest shares the gradient.

    Example: torch.segment_reduce(tensor([1., 2., 3.]), "sum", lengths=tensor([1, 2]))
    """
    check_floating("segment_reduce", data)
    if reduce not in _COMBINE:
        raise runtime_error(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    at = int(normal_dim("segment_reduce", axis, data.ndim))
    counts = _lengths(lengths, offsets, at)
    if not unsafe and (any(count < 0 for count in counts) or sum(counts) != data.array.shape[at]):
        raise runtime_error(
            "segment_reduce(): Expected all rows of lengths along axis to sum to"
            " data.size(lengths.dim()-1) when !unsafe."
        )
    return _segment_reduce.apply(data, reduce, counts, at, initial)
