"""Weight normalisation: a weight as a direction times a length."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.ops.binding.arguments import check_floating, check_same_dtype
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.norms import vector_norm
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.views import reshape


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim)


def _scaled(v: Any, g: Any, dim: int) -> tuple[Any, Any]:
    norm = np.sqrt((v * v).sum(axis=_others(v.ndim, dim), keepdims=True))
    return v * (g / norm), norm


def _rule(grads: Any, v: Any, g: Any, result1: Any, dim: int) -> tuple[Any, Any]:
    # As in PyTorch the norms have no derivative: the rule's own one is wrong in them.
    (grad,) = grads[:1]
    norm = result1
    size = v.shape[dim]
    rows, along = ((size, -1), 1) if dim == 0 else ((-1, size), 0)
    sums = sum_dims(reshape(grad * v, rows), (along,), False)
    sums = reshape(sums, tuple(norm.shape))
    return (g / norm) * (grad - v * (sums / (norm * norm))), sums / norm


def _decomposed(v: Tensor, g: Tensor, dim: int) -> list[Tensor]:
    norm = vector_norm.apply(v, 2.0, _others(v.array.ndim, dim), True)
    return [v * (g / norm), norm]


weight_norm_interface: Op = op(
    "_weight_norm_interface",
    _scaled,
    decomposition=_decomposed,
    inputs=("v", "g"),
    outputs=("result0", "result1"),
    differentiable=(0,),
    joint=_rule,
    raises=BY_KINDS,
)


def length_of(weight: Tensor, dim: int) -> Tensor:
    """The norm of each slice of a weight along `dim`, of the whole for -1."""
    if dim == -1:
        return vector_norm.apply(weight, 2.0, None, False)
    return vector_norm.apply(weight, 2.0, _others(weight.array.ndim, dim), True)


@function("_weight_norm")
def scaled_direction(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """`v` scaled so that its slices along `dim` have the lengths `g`."""
    if dim in (0, v.array.ndim - 1):
        check_floating("_weight_norm", v)
        check_same_dtype("_weight_norm", v, g)
        return weight_norm_interface.apply(v, g, dim)[0]
    return v * (g / length_of(v, dim))
