"""Margin losses, of classes, `multi_margin_loss multilabel_margin_loss`, and of pairs and triples,
`hinge_embedding_loss margin_ranking_loss triplet_margin_loss cosine_embedding_loss soft_margin_loss
multilabel_soft_margin_loss`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, index_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import add, div, mul, neg, no_derivative, rsub, zeros
from gradcli.ops.binding.arguments import (
    check_constants,
    check_floating,
    check_not_integral,
    checked_values,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES
from gradcli.ops.definition.dtype_support import NOT_SINGLE_OR_DOUBLE, check_dtype
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.clamp import clamp_min_number, minimum
from gradcli.ops.elementwise.comparison import choose, where
from gradcli.ops.elementwise.unary import exp, sqrt
from gradcli.ops.indexing.along import gather, index_select, scatter_number, scatter_tensor
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
from gradcli.ops.shape.views import reshape, unsqueeze

_no_second, _no_second_of_labels = (
    no_derivative(
        "the gradient of a margin loss",
        "compose the loss of clamp() and sum()",
        pytorch=f"{name}_backward",
    )
    for name in ("multi_margin_loss", "multilabel_margin_loss")
)


def _spread(grad_output: Any, count: int, reduction: int) -> Any:
    """The gradient of each sample's loss from that of the reduced one."""
    return grad_output / max(1, count) if reduction == MEAN else grad_output


# --- one class of each sample -------------------------------------------------------------------


def _lacks(self: Any, target: Any, margin: float) -> Any:
    """What each other class lacks of the margin below the right one; negative where nothing."""
    lacking = margin - np.take_along_axis(self, target[:, None], 1) + self
    np.put_along_axis(lacking, target[:, None], 0, 1)
    return lacking


def _sample_weights(weight: Any, target: Any) -> Any:
    return 1 if weight is None else weight[target][:, None]


def _multi_margin_array(
    self: Any,
    target: Any,
    weight: Any = None,
    p: int = 1,
    margin: float = 1.0,
    reduction: int = MEAN,
) -> Any:
    rows, classes = np.atleast_2d(self), np.atleast_1d(target)
    lacking = _lacks(rows, classes, margin)
    lacking = np.where(lacking > 0, lacking, 0)  # a nan lacks nothing
    losses = (lacking**p * _sample_weights(weight, classes)).sum(1) / rows.shape[1]
    return reduced(losses.reshape(target.shape)[()].astype(self.dtype), reduction)


def _multi_margin_gradient(
    grad_output: Any,
    self: Any,
    target: Any,
    weight: Any = None,
    p: int = 1,
    margin: float = 1.0,
    reduction: int = MEAN,
) -> Any:
    rows, classes = np.atleast_2d(self), np.atleast_1d(target)
    lacking = _lacks(rows, classes, margin)
    slope = np.where(lacking > 0, 1 if p == 1 else 2 * lacking, 0) / rows.shape[1]
    slope = slope * _sample_weights(weight, classes)
    np.put_along_axis(slope, classes[:, None], -slope.sum(1, keepdims=True), 1)
    share = np.reshape(_spread(grad_output, len(rows), reduction), (-1, 1))
    return (slope * share).reshape(self.shape).astype(self.dtype)


def _multi_margin_decomposed(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    p: int = 1,
    margin: float = 1.0,
    reduction: int = MEAN,
) -> Tensor:
    """`_multi_margin_gradient`, step by step."""
    count = target.array.size
    rows, classes = reshape(self, (count, -1)), reshape(target, (count, 1))
    lacking = scatter_number(margin - gather(rows, 1, classes) + rows, 1, classes, 0)
    slope = where(lacking > 0, 1.0 if p == 1 else 2 * lacking, 0.0) / int(rows.shape[1])
    if weight is not None:
        slope = slope * reshape(index_select(weight, 0, reshape(target, (-1,))), (count, 1))
    slope = scatter_tensor(slope, 1, classes, -sum_dims.apply(slope, (1,), True))
    share = reshape(_spread(grad_output, count, reduction), (-1, 1))
    return reshape(slope * share, tuple(self.shape))


multi_margin_loss_backward = op(
    "multi_margin_loss_backward",
    _multi_margin_gradient,
    decomposition=_multi_margin_decomposed,
    node="NotImplemented",
    constant=("target", "weight"),
    grad_output=_no_second,
    self=_no_second,
    raises=BY_VALUES,
)

_multi_margin_loss = op(
    "multi_margin_loss",
    _multi_margin_array,
    constant=("target", "weight"),
    self=multi_margin_loss_backward,
    raises=BY_VALUES,
)


def _check_classes(name: str, target: Any, least: int, classes: int, text: str) -> None:
    """Raise E302 for a target that is no class; `text` is PyTorch's."""
    if np.any((target < least) | (target >= classes)):
        raise index_error(
            f"{name}(): a target is none of the {classes} classes", text=text, raises="RuntimeError"
        )


@function("multi_margin_loss", module="torch.nn.functional", autocast="float32")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What the other classes lack of the margin below the target's, to the power p, 1 or 2, summed
    and divided by the number of classes. Raises E204 for another p, E301 where the shapes do not
    fit, E302 for a target that is no class.

    Example: F.multi_margin_loss(tensor([[0.1, 0.7], [1.2, 0.4]]), tensor([0, 1]))
    """
    number = reduction_number(reduction, size_average, reduce)
    check_dtype("multi_margin_loss", input.dtype, NOT_SINGLE_OR_DOUBLE)
    check_constants("multi_margin_loss", weight=weight)
    if p not in (1, 2):
        raise value_error("only p == 1 and p == 2 supported")
    _check_samples("multi_margin_loss", input, target, target.array.ndim == input.array.ndim - 1)
    classes, wrong = input.array.shape[-1], "target out of range"
    if weight is not None and weight.array.ndim != 1:
        raise value_error("weight must be one-dimensional")
    if weight is not None and weight.array.shape != (classes,):
        raise shape_error(
            f"multi_margin_loss(): {tuple(weight.array.shape)} weights for {classes} classes",
            text=f"inconsistent weight size, expected {classes} but got {list(weight.array.shape)}",
        )
    checked_values(_check_classes, "multi_margin_loss", target.array, 0, classes, wrong)
    return _multi_margin_loss.apply(input, target, weight, p, margin, number)


def _check_samples(name: str, input: Tensor, target: Tensor, fits: bool) -> None:
    shape = input.array.shape
    if len(shape) > 2 or shape[-1:] == (0,):
        raise shape_error(
            f"{name}(): an input of shape {tuple(shape)} has no row of classes",
            text="Expected non-empty vector or matrix with optional 0-dim batch size, but got:"
            f" {list(shape)}",
        )
    if target.dtype.name != "int64":
        text = f"expected scalar type Long but found {target.dtype.scalar_type}"
        raise dtype_error(text)
    if len(shape) not in (1, 2) or not fits or target.array.shape[:1] != shape[:1][: target.ndim]:
        raise shape_error(
            f"{name}(): a target of shape {tuple(target.array.shape)} does not go with an input of"
            f" shape {tuple(shape)}",
            text=f"inconsistent target size: {list(target.array.shape)} for input of size:"
            f" {list(shape)}"
            if name == "multilabel_margin_loss"
            else f"{name}: target tensor should be 1-D with size equal to the number of input"
            f" samples (batch size). Expected target size {list(shape[:-1])}, but got"
            f" {list(target.array.shape)}. Input has shape {list(shape)}.",
        )


# --- several classes of each sample -------------------------------------------------------------


def _label_counts(target: Any) -> Any:
    """How often each row of a target names each class, before its first -1."""
    named = np.cumsum(target < 0, axis=1) == 0
    counts = module_of(target).zeros(target.shape, np.int64)
    rows, columns = np.nonzero(named)
    module_of(target).add.at(counts, (rows, target[rows, columns]), 1)
    return counts


def _label_gaps(self: Any, counts: Any) -> tuple[Any, Any]:
    """For each sample and pair of a named and another class, what the other lacks below it, and
    how often the pair counts.
    """
    gaps = 1 - self[:, :, None] + self[:, None, :]
    pairs = counts[:, :, None] * (counts == 0)[:, None, :]
    return np.where(pairs > 0, gaps, 0), pairs


def _multilabel_array(self: Any, target: Any, reduction: int) -> tuple[Any, Any]:
    rows, names = np.atleast_2d(self), np.atleast_2d(target)
    counts = _label_counts(names)
    gaps, pairs = _label_gaps(rows, counts)
    losses = ((np.maximum(gaps, 0) * pairs).sum((1, 2)) / rows.shape[1]).astype(self.dtype)
    losses = losses.reshape(self.shape[:-1])[()]
    return reduced(losses, reduction), (counts > 0).reshape(target.shape).astype(self.dtype)


def _multilabel_gradient(
    grad_output: Any, self: Any, target: Any, is_target: Any, reduction: int
) -> Any:
    rows = np.atleast_2d(self)
    gaps, pairs = _label_gaps(rows, _label_counts(np.atleast_2d(target)))
    wrong = np.where(gaps > 0, pairs, 0)
    slope = (wrong.sum(1) - wrong.sum(2).astype(np.float64)) / rows.shape[1]
    share = np.reshape(_spread(grad_output, len(rows), reduction), (-1, 1))
    return (slope * share).reshape(self.shape).astype(self.dtype)


def _decomposed_gaps(self: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """`_label_gaps`, step by step, each as often as its pair counts; and how often that is."""
    counts = _label_counts(np.atleast_2d(target.array))
    pairs = Tensor((counts[:, :, None] * (counts == 0)[:, None, :]).astype(self.array.dtype))
    return pairs * (1 - unsqueeze.apply(self, 2) + unsqueeze.apply(self, 1)), pairs


def _multilabel_decomposed(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    names = np.atleast_2d(target.array)
    mask = Tensor((_label_counts(names) > 0).astype(self.array.dtype))
    gaps, _ = _decomposed_gaps(reshape(self, tuple(names.shape)), target)
    losses = sum_dims.apply(clamp_min_number(gaps, 0), (1, 2), False)
    losses = reshape(losses / names.shape[1], tuple(self.shape[:-1]))
    return reduced(losses, reduction), reshape(mask, tuple(target.shape))


def _multilabel_gradient_decomposed(
    grad_output: Tensor, self: Tensor, target: Tensor, is_target: Tensor, reduction: int
) -> Tensor:
    classes = int(self.shape[-1])
    rows = reshape(self, (-1, classes))
    gaps, pairs = _decomposed_gaps(rows, target)
    wrong = where(gaps > 0, pairs, zeros(rows, ()))
    slope = sum_dims.apply(wrong, (1,), False) - sum_dims.apply(wrong, (2,), False)
    share = reshape(_spread(grad_output, int(rows.shape[0]), reduction), (-1, 1))
    return reshape(slope / classes * share, tuple(self.shape))


multilabel_margin_loss_backward = op(
    "multilabel_margin_loss_backward",
    _multilabel_gradient,
    decomposition=_multilabel_gradient_decomposed,
    node="NotImplemented",
    constant=("target", "is_target"),
    grad_output=_no_second_of_labels,
    self=_no_second_of_labels,
    raises=BY_VALUES,
)

_multilabel_margin_loss = op(
    "multilabel_margin_loss_forward",
    _multilabel_array,
    decomposition=_multilabel_decomposed,
    node="MultilabelMarginLossBackward0",
    constant=("target",),
    outputs=("output", "is_target"),
    differentiable=(0,),
    self=lambda grads, self, target, is_target, reduction: multilabel_margin_loss_backward(
        grads[0], self, target, is_target, reduction
    ),
    raises=BY_VALUES,
)


@function("multilabel_margin_loss", module="torch.nn.functional", autocast="float32")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What the other classes lack of a margin of 1 below each class that a row of the target names
    before its first -1. Raises E301 where the shapes differ, E302 for what is no class.

    Example: F.multilabel_margin_loss(tensor([[0.1, 0.7], [1.2, 0.4]]), tensor([[0, -1], [1, -1]]))
    """
    number = reduction_number(reduction, size_average, reduce)
    check_dtype("multilabel_margin_loss", input.dtype, NOT_SINGLE_OR_DOUBLE)
    fits = target.array.shape == input.array.shape
    _check_samples("multilabel_margin_loss", input, target, fits)
    classes, wrong = input.array.shape[-1], "argument #2 'target' is out of range"
    checked_values(_check_classes, "multilabel_margin_loss", target.array, -1, classes, wrong)
    return _multilabel_margin_loss.apply(input, target, number)[0]


# --- pairs and triples ----------------------------------------------------------------------------


# --- soft margins -------------------------------------------------------------------------------


def _soft_margin_bend(grad: Any, grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    odds = exp(-target * self)
    slope = odds / ((odds + 1) * (odds + 1))
    return shared(grad * grad_output * target * target * slope, reduction)


def _soft_margin_slope(grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    """nan where the odds of the wrong side are beyond the dtype, as in PyTorch."""
    odds = exp(-target * self)
    return shared(-target * odds / (odds + 1) * grad_output, reduction)


soft_margin_loss_backward: Op = op(
    "soft_margin_loss_backward",
    _soft_margin_slope,
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
