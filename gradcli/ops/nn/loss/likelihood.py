"""Losses between distributions: `kl_div poisson_nll_loss gaussian_nll_loss`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import add, div, mul
from gradcli.ops.binding.arguments import check_floating, check_tensors, checked_values
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods
from gradcli.ops.creation.copies import clone
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, check_floating_dtype
from gradcli.ops.elementwise.power import power
from gradcli.ops.elementwise.unary import exp, log
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.nn.loss.elementwise import SUM, chosen_reduction, reduced, reduction_number
from gradcli.ops.shape.views import unsqueeze
from gradcli.ops.special.error_functions import xlogy


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
            dimension, or with 1 for it; or one number.
        full: whether the constant is added.

    Raises:
        GradcliError: E301 where the variances do not fit, E204 where one is negative.

    Example: F.gaussian_nll_loss(tensor([0.5, 1., 2.]), tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    check_tensors("gaussian_nll_loss", input=input, target=target)
    number = reduction_number(reduction)
    if type(var) is float:
        dtype = dtypes.result_dtype((input.array, var)).numpy_dtype
        var = Tensor(module_of(input.array).full(input.array.shape, var, dtype)[()])
    check_tensors("gaussian_nll_loss", var=var)
    shape = input.array.shape
    if var.array.shape == shape[:-1] and shape:
        var = unsqueeze.apply(var, len(shape) - 1)
    elif var.array.shape not in (shape, (*shape[:-1], 1)):
        raise shape_error(
            f"gaussian_nll_loss(): variances of shape {tuple(var.array.shape)} do not fit an input"
            f" of shape {tuple(shape)}",
            text="var is of incorrect size",
            raises="ValueError",
        )
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
    return reduced(losses, number)
