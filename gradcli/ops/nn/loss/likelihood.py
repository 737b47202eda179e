"""Losses between distributions: `kl_div poisson_nll_loss gaussian_nll_loss`; and
`binary_cross_entropy`, from probabilities and from logits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels import vector_math
from gradcli.arrays.layout.strides import laid_out_like
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import add, div, mul
from gradcli.ops.binding.arguments import (
    check_constants,
    check_floating,
    check_tensors,
    checked_values,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods
from gradcli.ops.creation.copies import clone
from gradcli.ops.definition.doc import BY_KINDS, CHECKS
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, check_floating_dtype
from gradcli.ops.definition.lints import check_scores
from gradcli.ops.definition.op import op
from gradcli.ops.elementwise.clamp import clamp_min_number
from gradcli.ops.elementwise.power import power
from gradcli.ops.elementwise.unary import exp, log, sigmoid
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.nn.activations import logsigmoid_op
from gradcli.ops.nn.loss.elementwise import SUM, chosen_reduction, reduced, reduction_number, shared
from gradcli.ops.shape.views import unsqueeze
from gradcli.ops.special.error_functions import logit, xlogy


@function("kl_div", module="torch.nn.functional", autocast="float32")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence by element: the input holds log probabilities, the target
    probabilities, or their logarithms with `log_target`. The reduction "batchmean" divides the sum
    by the size of the first dimension.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    for each in (input, target):
        check_floating("kl_div", each, "RuntimeError")
    by_batch = type(reduction) is str and reduction == "batchmean"
    number = SUM if by_batch else reduction_number(reduction)
    if log_target:
        difference = target - input
        losses = exp(target) * difference
    else:
        expected = target * input
        losses = xlogy.apply(target, target) - expected
    loss = reduced(losses, number)
    return div.apply(loss, input.array.shape[0]) if by_batch and input.array.ndim else loss


@function("poisson_nll_loss", module="torch.nn.functional", autocast="float32")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of counts, the target, where the input is the rate's logarithm, or
    the rate itself; `full` adds Stirling's approximation of the constant.
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    check_tensors("poisson_nll_loss", input=input, target=target)
    number = reduction_number(reduction)
    if log_input:
        expected = target * input
        losses = exp(input) - expected
    else:
        losses = input - target * log(input + eps)
    if full:
        width = log(target * (2 * math.pi)) * 0.5
        constant = target * log(target) - target + width
        methods.add_(losses, masked_fill_number.apply(constant, target <= 1, 0))
    return reduced(losses, number)


def _check_variances(var: Any) -> None:
    """Raise E204 for a negative variance."""
    if np.any(var < 0):
        raise value_error("var has negative entry/entries")


@function("gaussian_nll_loss", module="torch.nn.functional")
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of the target under normal distributions with the input as means.

    Args:
        var: the variances, at least `eps` each: of the input's shape, or that without the last
            dimension, or with 1 for one of them; or one number.
        full: whether the constant is added.

    Raises:
        GradcliError: E301 where the variances do not fit, E204 where one is negative.

    Example: F.gaussian_nll_loss(tensor([0.5, 1., 2.]), tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    check_tensors("gaussian_nll_loss", input=input, target=target)
    if type(var) is float:
        dtype = dtypes.result_dtype((input.array, var)).numpy_dtype
        var = Tensor(module_of(input.array).full(input.array.shape, var, dtype)[()])
    check_tensors("gaussian_nll_loss", var=var)
    shape = input.array.shape
    if var.array.shape == shape[:-1] and shape:
        var = unsqueeze.apply(var, len(shape) - 1)
    elif var.array.shape != shape and not _has_one_size_less(var.array.shape, shape):
        raise shape_error(
            f"gaussian_nll_loss(): variances of shape {tuple(var.array.shape)} do not fit an input"
            f" of shape {tuple(shape)}",
            text="var is of incorrect size",
            raises="ValueError",
        )
    if type(reduction) is not str or reduction not in ("none", "mean", "sum"):
        raise value_error(f"`reduction` is not {reduction!r}", f"{reduction} is not valid")
    checked_values(_check_variances, var.array)
    check_floating_dtype("gaussian_nll_loss", var.dtype)
    check_dtype("gaussian_nll_loss", var.dtype, COMPLEX)
    var = clone.apply(var)
    # Outside the graph: the gradient passes as if nothing had been clamped.
    var.array = np.maximum(var.array, var.array.dtype.type(eps))
    width = log.apply(var)
    deviation = div.apply(power(input - target, 2), var)
    losses = mul.apply(add.apply(width, deviation), 0.5)
    if full:
        methods.add_(losses, 0.5 * math.log(2 * math.pi))
    return reduced(losses, reduction_number(reduction))


def _has_one_size_less(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Whether the shapes differ in one dimension, of which the first has one element."""
    if len(shape) != len(larger):
        return False
    return [size for size, other in zip(shape, larger, strict=True) if size != other] == [1]


# --- binary cross entropy -------------------------------------------------------------------------


def _weighted(value: Any, weight: Any) -> Any:
    return value if weight is None else value * weight


_OF_PROBABILITIES = (
    "Using a target size ({target}) that is different to the input size ({input}) is deprecated."
    " Please ensure they have the same size."
)
_OF_LOGITS = "Target size ({target}) must be the same as input size ({input})"


def _check_target(name: str, input: Any, target: Any, text: str) -> None:
    """Raise E301 where the shapes differ."""
    if input.array.shape != target.array.shape:
        raise shape_error(
            f"{name}(): the target has shape {tuple(target.array.shape)}, the input"
            f" {tuple(input.array.shape)}",
            text=text.format(
                target=f"torch.Size({list(target.array.shape)})",
                input=f"torch.Size({list(input.array.shape)})",
            ),
            raises="ValueError",
        )


# --- from probabilities -------------------------------------------------------------------------

_LEAST_LOG = -100
"""Logarithms below are taken for it, so that the loss of a certain mistake is finite."""

_LEAST_VARIANCE = 1e-12
"""What p (1 - p) is taken for where it is less, so that the gradient there is finite."""


def _bce_array(self: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    hit = np.maximum(vector_math.log(self), _LEAST_LOG)
    miss = np.maximum(vector_math.log1p(-self), _LEAST_LOG)
    losses = _weighted((target - 1) * miss - target * hit, weight)
    return reduced(laid_out_like(self, losses), reduction)


def _variance(self: Any) -> Any:
    return clamp_min_number((1 - self) * self, _LEAST_VARIANCE)


def _bce_backward(grad: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    return shared(_weighted(grad * (self - target) / _variance(self), weight), reduction)


def _bce_bend(
    grad: Any, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int
) -> Any:
    variance = _variance(self)
    bend = (self * self - self * target * 2 + target) / (variance * variance)
    return shared(_weighted(bend * grad * grad_output, weight), reduction)


bce_backward = op(
    "binary_cross_entropy_backward",
    lambda grad_output, self, target, weight=None, reduction=1: laid_out_like(
        self, _bce_backward(grad_output, self, target, weight, reduction)
    ),
    decomposition=lambda grad_output, self, target, weight, reduction: _bce_backward(
        grad_output, self, target, weight, reduction
    ),
    keeps_layout=True,
    constant=("weight",),
    grad_output=_bce_backward,
    self=_bce_bend,
    target=lambda grad, grad_output, self, weight, reduction: shared(
        _weighted(-grad * grad_output / _variance(self), weight), reduction
    ),
    raises=BY_KINDS,
)

_binary_cross_entropy = op(
    "binary_cross_entropy",
    _bce_array,
    keeps_layout=True,
    constant=("weight",),
    self=bce_backward,
    target=lambda grad, self, weight, reduction: shared(
        _weighted(-logit(self) * grad, weight), reduction
    ),
    raises=BY_KINDS,
)


@function(
    "binary_cross_entropy", module="torch.nn.functional", autocast="float32", effects=(CHECKS,)
)
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the logarithm of the probability given to the target: the input is the probability of
    1. A logarithm counts as at least -100.

    Raises E301 where the shapes differ, E203 where the dtypes do, E204 for an input that is no
    probability.

    Example: F.binary_cross_entropy(tensor([0.2, 0.7]), tensor([0., 1.]))
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    _check_target("binary_cross_entropy", input, target, _OF_PROBABILITIES)
    if target.dtype is not input.dtype:
        raise dtype_error(
            f"Found dtype {target.dtype.scalar_type} but expected {input.dtype.scalar_type}",
            help="cast the target: `target.float()`",
        )
    check_floating("binary_cross_entropy", input)
    check_constants("binary_cross_entropy", weight=weight)
    checked_values(_check_probabilities, input.array)
    checked_values(_check_targets, target.array)
    return _binary_cross_entropy.apply(input, target, weight, reduction_number(reduction))


def _check_probabilities(input: Any) -> None:
    """Raise E204 for numbers that are no probabilities."""
    if not np.all((input >= 0) & (input <= 1)):
        raise runtime_error(
            "binary_cross_entropy(): the input must lie between 0 and 1",
            text="all elements of input should be between 0 and 1",
            help="binary_cross_entropy_with_logits() takes any number",
        )


def _check_targets(target: Any) -> None:
    """Raise E204 for targets that are no probabilities."""
    if not np.all((target >= 0) & (target <= 1)):
        raise runtime_error(
            "binary_cross_entropy(): the target must lie between 0 and 1",
            text="all elements of target should be between 0 and 1",
            help="cross_entropy() takes the numbers of classes",
        )


# --- from logits --------------------------------------------------------------------------------


def _bce_logits_array(
    self: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    hit = logsigmoid_op(self)
    if pos_weight is not None:
        hit = hit * ((pos_weight - 1) * target + 1)
    losses = _weighted((1 - target) * self - hit, weight)
    losses = laid_out_like(target, losses.astype(target.dtype, copy=False))  # made in its memory
    return reduced(losses, reduction)


def _bce_logits_rule(
    grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    if pos_weight is None:
        slope = sigmoid(self) - target
    else:
        positive = pos_weight * target
        slope = (positive + 1 - target) * sigmoid(self) - positive
    return shared(_weighted(slope * grad, weight), reduction)


def _bce_logits_target_rule(
    grad: Any, self: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    slope = -self if pos_weight is None else logsigmoid_op(-self) - logsigmoid_op(self) * pos_weight
    return shared(_weighted(slope * grad, weight), reduction)


_binary_cross_entropy_with_logits = op(
    "binary_cross_entropy_with_logits",
    _bce_logits_array,
    keeps_layout=True,
    constant=("weight", "pos_weight"),
    self=_bce_logits_rule,
    target=_bce_logits_target_rule,
    raises=BY_KINDS,
)


@function("binary_cross_entropy_with_logits", module="torch.nn.functional", autocast="float32")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of the input's sigmoid, without overflow; `pos_weight` weighs the part
    of the target that is 1.

    Raises E301 where the shapes differ, E203 for an integer target.

    Example: F.binary_cross_entropy_with_logits(tensor([0.2, 0.7]), tensor([0., 1.]))
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    _check_target("binary_cross_entropy_with_logits", input, target, _OF_LOGITS)
    check_floating("binary_cross_entropy_with_logits", input)
    check_floating("binary_cross_entropy_with_logits", target, "RuntimeError")
    check_constants("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    check_scores("binary_cross_entropy_with_logits", input, "SigmoidBackward0")
    return _binary_cross_entropy_with_logits.apply(
        input, target, weight, pos_weight, reduction_number(reduction)
    )


_REDUCTIONS = ("none", "mean", "sum")


@function("binary_cross_entropy_with_logits")
def _by_number(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """The same under torch's own name, where the reduction is a number: 0 none, 1 mean, 2 sum.
    PyTorch's binding leaves the losses as they are, whatever the schema says.

    Example: torch.binary_cross_entropy_with_logits(tensor([0.2, 0.7]), tensor([0., 1.]))
    """
    return binary_cross_entropy_with_logits(
        input, target, weight, reduction=_REDUCTIONS[reduction], pos_weight=pos_weight
    )
