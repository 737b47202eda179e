"""Batching rules of losses and of normalisation."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.batching.rules import batching, behind, side_by_side
from gradcli.library.torch.func.batching.shapes import broadcast_first
from gradcli.ops.binding.functions import methods
from gradcli.ops.definition.op import Op
from gradcli.ops.indexing.select import index_select
from gradcli.ops.nn.loss.elementwise import MEAN, NONE
from gradcli.ops.nn.normalisation.formula import Statistics
from gradcli.ops.reduction.sum import mean_dims, sum_dims
from gradcli.ops.shape.views import expand, reshape, view

# --- losses of elements -------------------------------------------------------------------------


@batching(
    "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
)  # fmt: skip
def _loss(frame: Frame, op: Op, args: Any) -> Any:
    operands, at = list(args), op.parameters.index("reduction")
    reduction, operands[at] = operands[at], NONE
    losses = op.apply(*_whole(frame, operands))
    return _reduced(losses, reduction)


def _whole(frame: Frame, operands: list[Any]) -> list[Any]:
    pair = broadcast_first(frame, *operands[:2])
    return [*pair, *side_by_side(frame, operands[0], *operands[2:])[1:]]


def _reduced(losses: Tensor, reduction: int) -> Tensor:
    if reduction == NONE:
        return losses
    along = mean_dims if reduction == MEAN else sum_dims
    return along.apply(losses, tuple(range(1, losses.array.ndim)), False)


@batching(
    "mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward",
    "soft_margin_loss_backward", "binary_cross_entropy_backward",
)  # fmt: skip
def _loss_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad, *operands = args
    at = op.parameters.index("reduction") - 1
    reduction, operands[at] = operands[at], NONE
    count = max(1, operands[0].array.size)
    self, *others = _whole(frame, operands)
    whole = behind(frame.first(grad), self.array.ndim)
    whole = expand.apply(whole, self.array.shape)
    return op.apply(whole / count if reduction == MEAN else whole, self, *others)


# --- losses of classes --------------------------------------------------------------------------


def _folded(frame: Frame, self: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and classes of all examples as samples of one batch."""
    scores, classes = frame.first(self), frame.first(target)
    shape = scores.array.shape
    if self.array.ndim == 1:
        return scores, reshape(classes, (frame.size,))
    folded = reshape(scores, (shape[0] * shape[1], *shape[2:]))
    return folded, reshape(classes, (shape[0] * shape[1], *shape[3:]))


def _weights(op: Op, self: Tensor, target: Tensor, weight: Any, ignore: int) -> Any:
    """The weight of each sample, 0 where it is left out."""
    counted = methods.to(target != ignore, self.dtype)
    if weight is None:
        return counted
    safe = target * (target != ignore)
    chosen = index_select.apply(weight, 0, reshape(safe, (safe.array.size,)))
    return reshape(chosen, safe.array.shape) * counted


@batching("nll_loss", "nll_loss2d")
def _nll(frame: Frame, op: Op, args: Any) -> Any:
    self, target, weight, reduction, ignore = args
    weight = None if weight is None else frame.plain(weight)
    scores, classes = _folded(frame, self, target)
    losses = op.apply(scores, classes, weight, NONE, ignore)
    losses = view.apply(losses, (frame.size, *target.array.shape))
    if reduction == NONE:
        return losses
    dims = tuple(range(1, losses.array.ndim))
    total = sum_dims.apply(losses, dims, False)
    if reduction != MEAN:
        return total
    weights = view.apply(_weights(op, scores, classes, weight, ignore), losses.array.shape)
    return total / sum_dims.apply(weights, dims, False)


@batching("nll_loss_backward", "nll_loss2d_backward")
def _nll_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad, self, target, weight, reduction, ignore = args
    weight = None if weight is None else frame.plain(weight)
    scores, classes = _folded(frame, self, target)
    whole = frame.first(grad)
    shape = (frame.size, *target.array.shape)
    if reduction == MEAN:
        weights = view.apply(_weights(op, scores, classes, weight, ignore), shape)
        whole = whole / sum_dims.apply(weights, tuple(range(1, len(shape))), False)
    whole = expand.apply(behind(whole, len(shape), 1), shape)
    whole = reshape(whole, classes.array.shape)
    slopes = op.apply(whole, scores, classes, weight, NONE, ignore)
    return view.apply(slopes, (frame.size, *self.array.shape))


# --- normalisation ------------------------------------------------------------------------------


def _statistics(frame: Frame, statistics: Statistics, batched_weight: bool) -> Statistics:
    """Statistics of each example by itself."""
    along = frame.size if batched_weight else 1
    dims = tuple([dim + 1 for dim in statistics.dims])
    shape, weight_shape = (frame.size, *statistics.shape), (along, *statistics.weight_shape)
    return Statistics(shape, dims, weight_shape, statistics.eps, statistics.fixed)


@batching("native_layer_norm", "native_batch_norm")
def _normalised(frame: Frame, op: Op, args: Any) -> Any:
    input, weight, bias, statistics = args
    apart = frame.is_batched(weight, bias)
    given = [
        None if each is None else frame.first(each) if apart else frame.plain(each)
        for each in (weight, bias)
    ]
    return op.apply(frame.first(input), *given, _statistics(frame, statistics, apart))


@batching("native_layer_norm_backward", "native_batch_norm_backward")
def _normalised_backward(frame: Frame, op: Op, args: Any) -> Any:
    *tensors, statistics, mask = args
    given = [None if each is None else frame.first(each) for each in tensors]
    found = op.apply(*given, _statistics(frame, statistics, True), mask)
    shapes = [tensors[1], tensors[4], tensors[5]]
    return [
        expand.apply(behind(each, 1), each.array.shape) if like is None else each
        for each, like in zip(found, shapes, strict=True)
    ]
