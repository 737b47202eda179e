"""A direction times a length: the weight of weight normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.ops.arguments import check_tensors
from gradcli.ops.catalogue import function
from gradcli.ops.entry import Op, op
from gradcli.ops.norms import vector_norm
from gradcli.ops.pointwise import sqrt
from gradcli.ops.reduction import sum_dims


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim)


def _scaled(v: Any, g: Any, dim: int) -> Any:
    norm = np.sqrt((v * v).sum(axis=_others(v.ndim, dim), keepdims=True))
    return v * (g / norm)


def _rule(grad: Any, v: Any, g: Any, dim: int) -> tuple[Any, Any]:
    dims = _others(v.ndim, dim)
    norm = sqrt(sum_dims(v * v, dims, True))
    by_length = sum_dims(grad * v, dims, True) / norm
    return (g / norm) * (grad - v * (by_length / norm)), by_length


weight_norm_interface: Op = op(
    "_weight_norm_interface",
    "WeightNormInterfaceBackward0",
    _scaled,
    inputs=("v", "g"),
    joint=_rule,
)


def length_of(weight: Tensor, dim: int) -> Tensor:
    """The norm of each slice of a weight along `dim`, of the whole for -1."""
    if dim == -1:
        return vector_norm.apply(weight, 2.0, None, False)
    return vector_norm.apply(weight, 2.0, _others(weight.array.ndim, dim), True)


@function("_weight_norm")
def scaled_direction(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """`v` scaled so that its slices along `dim` have the lengths `g`."""
    check_tensors("_weight_norm", v=v, g=g)
    if dim in (0, v.array.ndim - 1):
        return weight_norm_interface.apply(v, g, dim)
    return v * (g / length_of(v, dim))
