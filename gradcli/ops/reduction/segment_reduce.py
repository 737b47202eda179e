"""`segment_reduce`: reductions over consecutive parts of a dimension."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error
from gradcli.ops.arithmetic.arithmetic import no_derivative, ones, zeros
from gradcli.ops.binding.arguments import check_floating, check_tensors, listed
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.dims import normal_dim
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.indexing.select import index_add, index_select

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


def _reduced(data: Any, reduce: str, lengths: Any, axis: int, initial: float | None) -> Any:
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


_no_second = no_derivative("the gradient of segment_reduce", "reduce the parts one by one")

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

segment_reduce_: Op = op(
    "segment_reduce",
    _reduced,
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
    listed(sizes)
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
    return segment_reduce_.apply(data, reduce, counts, at, initial)
