"""Margin losses on pairs and triples: `hinge_embedding_loss margin_ranking_loss
triplet_margin_loss cosine_embedding_loss soft_margin_loss multilabel_soft_margin_loss`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import add, div, mul, neg, rsub
from gradcli.ops.binding.arguments import check_constants, check_floating, check_not_integral
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.clamp import clamp_min_number, minimum
from gradcli.ops.elementwise.comparison import choose
from gradcli.ops.elementwise.unary import sigmoid, sqrt
from gradcli.ops.nn.activations import logsigmoid_op
from gradcli.ops.nn.distance import pairwise_distance
from gradcli.ops.nn.loss.elementwise import (
    MEAN,
    chosen_reduction,
    reduced,
    reduced_pairs,
    reduction_number,
    shared,
)
from gradcli.ops.reduction.sum import sum_dims

# --- soft margins -------------------------------------------------------------------------------


def _soft_margin_bend(grad: Any, grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    share = sigmoid(-target * self)
    return shared(grad * grad_output * target * target * share * (1 - share), reduction)


soft_margin_loss_backward: Op = op(
    "soft_margin_loss_backward",
    lambda grad_output, self, target, reduction: shared(
        -target * sigmoid(-target * self) * grad_output, reduction
    ),
    constant=("target",),
    linear=True,
    self=_soft_margin_bend,
    raises=BY_KINDS,
)

_soft_margin_loss = op(
    "soft_margin_loss",
    lambda self, target, reduction: reduced_pairs(
        np.log1p(np.exp(-target * self)), self, target, reduction
    ),
    keeps_layout=True,
    constant=("target",),
    self=soft_margin_loss_backward,
    raises=BY_KINDS,
)


@function("soft_margin_loss", module="torch.nn.functional", autocast="float32")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`log(1 + exp(-target * input))` for targets 1 and -1.

    Example: F.soft_margin_loss(tensor([-1.5, 0., 2.5]), tensor([1., -1., 1.]))
    """
    number = reduction_number(reduction, size_average, reduce)
    check_floating("soft_margin_loss", input, "RuntimeError")
    check_constants("soft_margin_loss", target=target)
    if target.dtype.is_complex and not input.dtype.is_complex:
        raise dtype_error("soft_margin_loss(): a complex target, and a real input")
    if target.array.dtype is not input.array.dtype:
        target = Tensor(target.array.astype(input.array.dtype))
    loss: Tensor = _soft_margin_loss.apply(input, target, number)
    if np.broadcast_shapes(input.array.shape, target.array.shape) != input.array.shape:
        raise shape_error(
            f"soft_margin_loss(): targets of shape {tuple(target.array.shape)} do not fit an input"
            f" of shape {tuple(input.array.shape)}"
        )
    return loss


@function("multilabel_soft_margin_loss", module="torch.nn.functional")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`binary_cross_entropy_with_logits` of each class, averaged over the last dimension.

    Example:
        F.multilabel_soft_margin_loss(tensor([[2., 1.], [1., 3.]]), tensor([[0., 1.], [1., 0.]]))
    """
    number = reduction_number(reduction, size_average, reduce)
    check_floating("multilabel_soft_margin_loss", input)
    hit = mul.apply(target, logsigmoid_op.apply(input))
    miss = mul.apply(rsub(target, 1), logsigmoid_op.apply(neg.apply(input)))
    losses = neg.apply(add.apply(hit, miss))
    if weight is not None:
        losses = mul.apply(losses, weight)
    last = input.array.ndim - 1
    summed = sum_dims.apply(losses, (last,), False)
    return reduced(div.apply(summed, input.array.shape[last]), number)


# --- hinges -------------------------------------------------------------------------------------


@function("hinge_embedding_loss", module="torch.nn.functional", autocast="float32")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where the target is 1, what it lacks of the margin where the target is -1.

    Example: F.hinge_embedding_loss(tensor([-1.5, 0., 2.5]), tensor([1., -1., 1.]))
    """
    number = reduction_number(reduction, size_average, reduce)
    if input.dtype.category == "int":
        margin = int(margin)  # PyTorch subtracts from a tensor of the input's dtype
    lacking = clamp_min_number.apply(margin - input, 0)
    apart = choose.apply(target != 1, lacking, 0)
    together = choose.apply(target != -1, input, 0)
    losses = apart + together
    if number == MEAN:
        check_not_integral("hinge_embedding_loss", losses, "RuntimeError")
    return reduced(losses, number)


@function("margin_ranking_loss", module="torch.nn.functional", autocast="float32")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What `target * (input1 - input2)` lacks of the margin; the target, 1 or -1, says which input
    should be greater. Raises E301 where the numbers of dimensions differ.

    Example:
        F.margin_ranking_loss(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]), tensor([1., -1., 1.]))
    """
    number = reduction_number(reduction, size_average, reduce)
    _check_ndim("margin_ranking_loss", input1, input2, target)
    lacking = -target * (input1 - input2) + margin
    return reduced(methods.clamp_min_(lacking, 0), number)


def _wrong_ranks(name: str, tensors: tuple[Tensor, ...]) -> str:
    """PyTorch's text for tensors whose numbers of dimensions differ."""
    if name == "margin_ranking_loss":
        named = zip(("input1", "input2", "target"), tensors, strict=True)
        sizes = ", ".join(f"{each}: torch.Size({list(t.array.shape)})" for each, t in named)
        return f"{name} : All input tensors should have same dimension but got sizes: {sizes}"
    first, second, third = (tensor.array.ndim for tensor in tensors)
    return (
        "The anchor, positive, and negative tensors are expected to have the same number of"
        f" dimensions, but got: anchor {first}D, positive {second}D, and negative {third}D inputs"
    )


def _check_ndim(name: str, *tensors: Tensor) -> None:
    """Raise E301 unless all have the same number of dimensions."""
    if len({tensor.array.ndim for tensor in tensors}) > 1:
        shapes = " and ".join(str(tuple(tensor.array.shape)) for tensor in tensors)
        raise shape_error(
            f"{name}(): the shapes {shapes} differ in their number of dimensions",
            text=_wrong_ranks(name, tensors),
        )


# --- pairs and triples --------------------------------------------------------------------------

_LEAST_SQUARE = 1e-12
"""Added to squared lengths, so that vectors of length 0 have a cosine."""


@function("cosine_embedding_loss", module="torch.nn.functional", autocast="float32")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 less the cosine of a pair where the target is 1; what the cosine has above the margin where
    the target is -1. Raises E301 where the shapes do not fit.

    Example:
        F.cosine_embedding_loss(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]),
            tensor([1, -1]))
    """
    number = reduction_number(reduction, size_average, reduce)
    ndim = target.array.ndim
    if ndim > 1 or input1.array.ndim != ndim + 1 or input2.array.ndim != ndim + 1:
        raise shape_error(
            f"cosine_embedding_loss(): targets of shape {tuple(target.array.shape)} do not go with"
            f" inputs of shapes {tuple(input1.array.shape)} and {tuple(input2.array.shape)}",
            text=f"{ndim}D target tensor expects {ndim + 1}D input tensors, but found inputs with"
            f" sizes {list(input1.array.shape)} and {list(input2.array.shape)}."
            if ndim < 2
            else "0D or 1D target tensor expected, multi-target not supported",
        )
    product = sum_dims.apply(input1 * input2, (ndim,), False)
    square1 = sum_dims.apply(input1 * input1, (ndim,), False) + _LEAST_SQUARE
    square2 = sum_dims.apply(input2 * input2, (ndim,), False) + _LEAST_SQUARE
    cosine = product / sqrt.apply(square1 * square2)
    together = choose.apply(target == 1, 1 - cosine, 0.0)
    apart = choose.apply(target == -1, clamp_min_number.apply(cosine - margin, 0), 0.0)
    return reduced(together + apart, number)


@function("triplet_margin_loss", module="torch.nn.functional", autocast="float32")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What the distance to the negative, less that to the positive, lacks of the margin. With
    `swap` the negative's distance to the positive counts where it is less.

    Raises E204 unless the margin is positive, E301 where the numbers of dimensions differ.

    Example:
        F.triplet_margin_loss(tensor([0.5, 1., 2.]), tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda one, other: pairwise_distance(one, other, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


@function("triplet_margin_with_distance_loss", module="torch.nn.functional")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with another distance, a function of two tensors.

    Example:
        F.triplet_margin_with_distance_loss(tensor([[0.5, 1., 2.]]), tensor([[0.5, 1., 2.]]),
            tensor([[2., 1., 3.]]), distance_function=F.cosine_similarity)
    """
    number = reduction_number(reduction)
    if margin <= 0:
        raise value_error(
            "triplet_margin_loss(): the margin must be positive",
            text=f"margin must be greater than 0, got {margin}",
        )
    _check_ndim("triplet_margin_loss", anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum.apply(far, distance(positive, negative))
    return reduced(clamp_min_number.apply(near + margin - far, 0), number)
