"""Losses by element: `mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy`.

Where PyTorch prints a node for a loss's gradient, that is an op here, whose rules hold the loss's
second derivatives. `reduction` is PyTorch's number: 0 none, 1 mean, 2 sum.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.kernels import half_precision
from gradcli.arrays.layout.strides import in_row_order, laid_out_like_operands
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, value_error
from gradcli.ops.binding.arguments import (
    check_floating,
    check_not_integral,
    in_dtype_of,
    plain_float,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_KINDS, in_numpy
from gradcli.ops.definition.lints import check_same_shape
from gradcli.ops.definition.op import by_kernel, op, rounded_once
from gradcli.ops.elementwise.comparison import logical_and, where
from gradcli.ops.elementwise.unary import abs_op, sgn
from gradcli.ops.reduction.sum import mean_all, sum_all
from gradcli.ops.shape.reshaping import broadcast_tensors
from gradcli.state import active

NONE, MEAN, SUM = 0, 1, 2

_NUMBERS = {"none": NONE, "mean": MEAN, "sum": SUM}


def reduction_number(
    reduction: Any, size_average: bool | None = None, reduce: bool | None = None
) -> int:
    """PyTorch's number for a reduction, or for that which the old settings choose. Raises E204 for
    what is none.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if type(reduction) is not str or reduction not in _NUMBERS:
        raise value_error(
            f"`reduction` is 'none', 'mean' or 'sum', not {reduction!r}",
            text=f"{reduction} is not a valid value for reduction",
        )
    return _NUMBERS[reduction]


def chosen_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that the old settings `size_average` and `reduce` choose, with W015, where one
    of them is given; else `reduction`.
    """
    if size_average is None and reduce is None:
        return reduction
    average = size_average is None or size_average
    chosen = "none" if reduce is not None and not reduce else "mean" if average else "sum"
    text = (
        f"size_average and reduce args will be deprecated, please use reduction='{chosen}' instead."
    )
    message = "`size_average` and `reduce` are deprecated"
    active.state.warn("W015", message, text=text, help=f"write `reduction='{chosen}'`")
    return chosen


def reduced(losses: Any, reduction: int) -> Any:
    """The losses, their mean or their sum; on arrays or tensors."""
    if reduction == NONE:
        return losses
    if reduction == SUM:
        return sum_all(losses)
    if type(losses) is Tensor:
        check_not_integral("mean", losses, "RuntimeError")
    return mean_all(losses)


def reduced_pairs(losses: Any, input: Any, target: Any, reduction: int) -> Any:
    """The losses of an array's elements and another's, in memory as the two lie, or their mean or
    sum.
    """
    return reduced(laid_out_like_operands(losses, input, target), reduction)


def shared(gradient: Any, reduction: int) -> Any:
    """The gradient of each loss from that of their mean: divided by their number, the gradient's
    own. For the other reductions it stays as it is.
    """
    return gradient / max(1, prod(gradient.shape)) if reduction == MEAN else gradient


def _part(losses: Any, reduction: int, count: int = 1) -> float:
    """What `count` losses make of their mean, or `count` for the other reductions: PyTorch's
    gradients begin with it.
    """
    return count / max(1, prod(losses.shape)) if reduction == MEAN else float(count)


def _paired(name: str, input: Any, target: Any) -> tuple[Tensor, Tensor]:
    """Input and target, expanded to one shape, integers in the other's dtype. Raises E301 where
    they have none, E203 where both are integers.
    """
    input, target = in_dtype_of(input, target), in_dtype_of(target, input)
    check_same_shape(name, input, target)
    pair: Any = broadcast_tensors(input, target)
    if name != "l1_loss":
        for operand in pair:
            check_floating(name, operand)
    return pair


# --- squares ------------------------------------------------------------------------------------

mse_loss_backward = op(
    "mse_loss_backward",
    lambda grad_output, self, target, reduction: in_row_order(
        (self - target) * _part(self, reduction, 2) * grad_output
    ),
    half=by_kernel(half_precision.mse_loss_backward),
    grad_output=lambda grad, self, target, reduction: shared((self - target) * 2 * grad, reduction),
    self=lambda grad, grad_output, reduction: shared(grad * 2 * grad_output, reduction),
    target=lambda grad, grad_output, reduction: shared(grad * -2 * grad_output, reduction),
    raises=BY_KINDS,
)

_mse_loss = op(
    "mse_loss",
    lambda self, target, reduction: reduced_pairs((self - target) ** 2, self, target, reduction),
    half=by_kernel(half_precision.mse_loss),
    keeps_layout=True,
    self=mse_loss_backward,
    target=lambda grad, self, target, reduction: mse_loss_backward(grad, target, self, reduction),
    raises=BY_KINDS,
)


@function("mse_loss", module="torch.nn.functional", autocast="float32")
@in_numpy(
    'def mse_loss(x, target, reduction="mean"):\n'
    "    each = (x - target) ** 2\n"
    '    return {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]\n'
)
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The squared differences, their mean or their sum."""
    number = reduction_number(reduction, size_average, reduce)
    return _mse_loss.apply(*_paired("mse_loss", input, target), number)


# --- magnitudes ---------------------------------------------------------------------------------


@function("l1_loss", module="torch.nn.functional", autocast="float32")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The magnitudes of the differences, their mean or their sum."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_same_shape("l1_loss", input, target)
    number = reduction_number(reduction)
    input, target = broadcast_tensors(input, target)
    return reduced(abs_op(input - target), number)


# --- squares near, magnitudes far ---------------------------------------------------------------


def _smooth_l1_array(self: Any, target: Any, reduction: int, beta: float) -> Any:
    distance = np.abs(self - target)
    losses = np.where(distance < beta, distance * distance * 0.5 / beta, distance - 0.5 * beta)
    return reduced_pairs(losses[()], self, target, reduction)


def _smooth_l1_slope(self: Any, target: Any, grad: Any, beta: float) -> Any:
    difference = self - target
    # A nan is within no distance, and stays nan.
    far = abs_op(difference) >= beta
    return where(far, sgn(difference) * grad, difference * grad / beta)


def _smooth_l1_gradient(
    grad_output: Any, self: Any, target: Any, reduction: int, beta: float
) -> Any:
    difference, part = self - target, _part(self, reduction)
    near = difference / beta * part * grad_output
    far = np.sign(difference) * (grad_output * part)
    return in_row_order(np.where(np.abs(difference) >= beta, far, near)[()])


def _smooth_l1_bend(self: Any, target: Any, grad: Any, beta: float) -> Any:
    return where(abs_op(self - target) < beta, grad / beta, 0.0)


smooth_l1_loss_backward = op(
    "smooth_l1_loss_backward",
    _smooth_l1_gradient,
    half=rounded_once,
    grad_output=lambda grad, self, target, reduction, beta: shared(
        _smooth_l1_slope(self, target, grad, beta), reduction
    ),
    self=lambda grad, grad_output, self, target, reduction, beta: shared(
        _smooth_l1_bend(self, target, grad * grad_output, beta), reduction
    ),
    target=lambda grad, grad_output, self, target, reduction, beta: shared(
        _smooth_l1_bend(self, target, -grad * grad_output, beta), reduction
    ),
    raises=BY_KINDS,
)

_smooth_l1_loss = op(
    "smooth_l1_loss",
    _smooth_l1_array,
    half=by_kernel(half_precision.smooth_l1_loss),
    keeps_layout=True,
    self=smooth_l1_loss_backward,
    target=lambda grad, self, target, reduction, beta: smooth_l1_loss_backward(
        grad, target, self, reduction, beta
    ),
    raises=BY_KINDS,
)


@function("smooth_l1_loss", module="torch.nn.functional", autocast="float32")
@in_numpy(
    'def smooth_l1_loss(x, target, reduction="mean", beta=1.0):\n'
    "    d = np.abs(x - target)\n"
    "    each = np.where(d < beta, d**2 / (2 * beta), d - beta / 2)\n"
    '    return {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]\n'
)
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Half the squared difference over beta where it is below beta, the magnitude less half of beta
    elsewhere. Raises E204 for a negative beta.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    if beta < 0:
        raise runtime_error("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    number = reduction_number(reduction)
    return _smooth_l1_loss.apply(*_paired("smooth_l1_loss", input, target), number, beta)


def _huber_array(self: Any, target: Any, reduction: int, delta: float) -> Any:
    distance = np.abs(self - target)
    losses = np.where(
        distance <= delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta
    )
    return reduced_pairs(losses[()].astype(self.dtype, copy=False), self, target, reduction)


def _huber_slope(self: Any, target: Any, delta: float) -> Any:
    difference = self - target
    return where(abs_op(difference) > delta, sgn(difference) * delta, difference)


def _huber_gradient(grad_output: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    if self.dtype != target.dtype:
        raise dtype_error(
            f"huber_loss(): no gradient for an input of {self.dtype} and a target of"
            f" {target.dtype}",
            help="cast the target to the input's dtype first",
        )
    difference, part = self - target, _part(self, reduction)
    far = np.sign(difference) * (grad_output * part * delta)
    near = difference * part * grad_output
    return in_row_order(np.where(np.abs(difference) > delta, far, near)[()])


def _huber_bend(self: Any, target: Any, grad: Any, delta: float) -> Any:
    difference = self - target
    return where(logical_and(difference > -delta, difference < delta), grad, 0.0)


huber_loss_backward = op(
    "huber_loss_backward",
    _huber_gradient,
    half=by_kernel(half_precision.huber_loss_backward),
    grad_output=lambda grad, self, target, reduction, delta: shared(
        _huber_slope(self, target, delta) * grad, reduction
    ),
    self=lambda grad, grad_output, self, target, reduction, delta: shared(
        _huber_bend(self, target, grad * grad_output, delta), reduction
    ),
    target=lambda grad, grad_output, self, target, reduction, delta: shared(
        _huber_bend(self, target, -grad * grad_output, delta), reduction
    ),
    raises=BY_KINDS,
)

_huber_loss = op(
    "huber_loss",
    _huber_array,
    half=by_kernel(half_precision.huber_loss),
    keeps_layout=True,
    self=huber_loss_backward,
    target=lambda grad, self, target, reduction, delta: huber_loss_backward(
        grad, target, self, reduction, delta
    ),
    raises=BY_KINDS,
)


@function("huber_loss", module="torch.nn.functional", autocast="float32")
@in_numpy(
    'def huber_loss(x, target, reduction="mean", delta=1.0):\n'
    "    d = np.abs(x - target)\n"
    "    each = np.where(d < delta, d**2 / 2, delta * (d - delta / 2))\n"
    '    return {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]\n'
)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """Half the squared difference where it is at most delta, delta times the magnitude less half of
    delta elsewhere, in the input's dtype. Raises E204 unless delta is positive, E203 for an input
    of integers.

    Conventions: On the joint the gradient is that of the parabola.
    """
    delta = plain_float("huber_loss", "delta", delta)
    if delta <= 0:
        raise runtime_error("huber_loss does not support non-positive values for delta.")
    number = reduction_number(reduction)
    check_same_shape("huber_loss", input, target)
    pair: Any = broadcast_tensors(input, target)
    dtype = dtypes.result_dtype((input.array, target.array))
    if not dtypes.can_cast(dtype, input.dtype):
        raise dtype_error(
            f"huber_loss(): a loss of {dtype} cannot be {input.dtype}, as the input is"
        )
    check_floating("huber_loss", input)
    return _huber_loss.apply(*pair, number, delta)
