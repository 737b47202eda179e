"""Distinct elements: `unique unique_consecutive`. PyTorch defines no derivative for them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.backend import on_the_host
from gradcli.arrays.kernels.sums.cascade_sum import wide
from gradcli.autograd.tensor import Tensor, refuse_batched
from gradcli.ops.arithmetic.arithmetic import no_derivative
from gradcli.ops.binding.arguments import check_real
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.dims import normal_dim
from gradcli.ops.definition.doc import BY_VALUES, READS
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype
from gradcli.ops.definition.op import Function, Op, op
from gradcli.ops.reduction.sum import check_reduced

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
