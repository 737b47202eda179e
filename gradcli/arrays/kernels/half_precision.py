"""Half precision in kernels that round intermediate values, as PyTorch's kernels do to float16 or
bfloat16.

Each kernel is the forward function of an op for such arrays: it computes in float32, and `_Half`
rounds where PyTorch's kernel stores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import narrowed, widened

MEAN, SUM = 1, 2

GROUP = 32
"""Elements that PyTorch's vectorised kernels take at a time; fewer are computed one by one."""

_single = np.float32


class _Half:
    """Rounding to a dtype of half precision: float32 arrays to it and back."""

    def __init__(self, array: Any) -> None:
        self.dtype = array.dtype
        self.is_bfloat16 = array.dtype.kind != "f"

    def rounded(self, array: Any) -> Any:
        """The values rounded to the dtype, in float32."""
        single = module_of(array).asarray(array, _single)
        return widened(narrowed(single, self.dtype))

    def stored(self, array: Any) -> Any:
        """The result in the dtype."""
        return narrowed(module_of(array).asarray(array), self.dtype)[()]

    def reduced(self, losses: Any, reduction: int) -> Any:
        """Losses that were stored, their sum or their mean: added in float32."""
        losses = self.rounded(losses)
        if reduction == SUM:
            losses = np.add.reduce(losses, axis=None)
        elif reduction == MEAN:
            losses = np.add.reduce(losses, axis=None) / _single(losses.size)
        return self.stored(losses)


def _wide(*arrays: Any) -> list[Any]:
    return [widened(array) for array in arrays]


# --- functions of one number --------------------------------------------------------------------


def rsqrt(self: Any) -> Any:
    """1 / sqrt(x): elements in whole groups round once, the rest twice."""
    half = _Half(self)
    value = widened(self)
    root = np.sqrt(value)
    grouped = self.size // GROUP * GROUP
    result = module_of(root).asarray(1 / half.rounded(root))
    result.reshape(-1)[:grouped] = np.reshape(1 / root, -1)[:grouped]
    return half.stored(result)


def entr(self: Any) -> Any:
    """-x log(x); its logarithm is rounded."""
    half = _Half(self)
    value = widened(self)
    logarithm = half.rounded(np.log(value))
    entropy = np.where(value > 0, -value * logarithm, np.where(value == 0, 0.0, -np.inf))
    return half.stored(np.where(np.isnan(value), value, entropy))


def log_sigmoid_backward(grad_output: Any, self: Any) -> Any:
    """The gradient of log_sigmoid, of the exponential that its forward pass rounds."""
    half = _Half(self)
    grad, value = _wide(grad_output, self)
    small = half.rounded(np.exp(-np.abs(value)))  # what the forward pass saved
    share = small / (1 + small)
    return half.stored(grad * np.where(value < 0, 1 - share, share))


def glu_backward(grad_output: Any, self: Any, dim: int) -> Any:
    """The gradient of glu; the sigmoid of the gate is rounded."""
    half = _Half(self)
    value, gate = np.split(widened(self), 2, dim)
    grad = widened(grad_output)
    opened = half.rounded(1 / (1 + np.exp(-gate)))
    return half.stored(np.concatenate([opened * grad, (1 - opened) * opened * value * grad], dim))


# --- along a dimension --------------------------------------------------------------------------


def _shifted(self: Any, dim: int) -> Any:
    return self - np.maximum.reduce(self, axis=dim, keepdims=True, initial=-np.inf)


def softmax(self: Any, dim: int) -> Any:
    """The softmax along a dimension."""
    half = _Half(self)
    value = widened(self)
    if not self.ndim:
        return half.stored(np.exp(value - value))
    powers = np.exp(_shifted(value, dim))
    total = np.add.reduce(powers, axis=dim, keepdims=True)
    if dim % self.ndim != self.ndim - 1:
        powers = half.rounded(powers)
    return half.stored(powers / total)


def log_softmax(self: Any, dim: int) -> Any:
    """The logarithm of the softmax along a dimension."""
    half = _Half(self)
    value = widened(self)
    if not self.ndim:
        return half.stored(value - value)
    shifted = _shifted(value, dim)
    total = np.add.reduce(np.exp(shifted), axis=dim, keepdims=True)
    if dim % self.ndim == self.ndim - 1:
        return half.stored(shifted - half.rounded(np.log(half.rounded(total))))
    return half.stored(shifted - np.log(total))


# --- losses -------------------------------------------------------------------------------------


def _share(half: _Half, count: float, reduction: int, size: int) -> Any:
    """`count` parts of the mean of so many losses, or `count` itself."""
    return half.rounded(count / max(size, 1) if reduction == MEAN else count)


def mse_loss(self: Any, target: Any, reduction: int) -> Any:
    """The squares of rounded differences, their sum or their mean."""
    half = _Half(self)
    difference = half.rounded(np.subtract(*_wide(self, target)))
    return half.reduced(difference * difference, reduction)


def mse_loss_backward(grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    """The gradient of `mse_loss`."""
    half = _Half(self)
    grad, value, wanted = _wide(grad_output, self, target)
    difference = half.rounded(value - wanted)
    part = _share(half, 2.0, reduction, difference.size)
    return half.stored(half.rounded(part * difference) * grad)


def huber_loss(self: Any, target: Any, reduction: int, delta: float) -> Any:
    """The Huber losses, their sum or their mean."""
    half = _Half(self)
    # bfloat16 is rounded at each step, float16 at the end.
    step = half.rounded if half.is_bfloat16 else _unrounded
    distance = step(np.abs(np.subtract(*_wide(self, target))))
    delta = step(_single(delta))
    near = step(0.5 * distance) * distance
    far = delta * step(distance - step(0.5 * delta))
    return half.reduced(np.where(distance <= delta, near, far), reduction)


def _unrounded(value: Any) -> Any:
    return value


def huber_loss_backward(
    grad_output: Any, self: Any, target: Any, reduction: int, delta: float
) -> Any:
    """The gradient of `huber_loss`."""
    half = _Half(self)
    grad, value, wanted = _wide(grad_output, self, target)
    difference = half.rounded(value - wanted)
    part = _share(half, 1.0, reduction, difference.size)
    limit = half.rounded(delta)
    far = half.rounded(half.rounded(part * grad) * limit)
    near = half.rounded(part * difference) * grad
    return half.stored(np.where(np.abs(difference) < limit, near, np.sign(difference) * far))


def smooth_l1_loss(self: Any, target: Any, reduction: int, beta: float) -> Any:
    """The smooth L1 losses, their sum or their mean."""
    half = _Half(self)
    # Here it is float16 that is rounded at each step.
    step = _unrounded if half.is_bfloat16 else half.rounded
    distance = step(np.abs(np.subtract(*_wide(self, target))))
    beta = step(_single(beta))
    near = step(step(0.5 * distance) * distance) / beta
    far = distance - step(0.5 * beta)
    return half.reduced(np.where(distance < beta, near, far), reduction)


# --- over a batch -------------------------------------------------------------------------------


def batch_norm(
    input: Any, weight: Any = None, bias: Any = None, statistics: Any = None
) -> tuple[Any, Any, Any]:
    """The normalised input, and each channel's mean and reciprocal deviation."""
    half = _Half(input)
    values = widened(input).reshape(statistics.shape)
    if statistics.fixed is None:
        mean = np.mean(values, statistics.dims, np.float64, keepdims=True).astype(_single)
        squares = np.sum((values - mean) ** 2, statistics.dims, np.float64, keepdims=True)
        count = values.size // mean.size
        if half.is_bfloat16:
            squares = half.rounded(squares)
        variance = squares / count
        if half.is_bfloat16:
            variance = half.rounded(variance)
    else:
        mean, variance = _wide(*statistics.fixed)
    deviation = 1 / np.sqrt(variance.astype(np.float64) + statistics.eps)
    if statistics.fixed is None:
        mean, deviation = half.rounded(mean), half.rounded(deviation)
    slope = widened(deviation)
    if weight is not None:
        slope = slope * widened(weight).reshape(statistics.weight_shape)
    offset = -mean * slope
    if bias is not None:
        offset = offset + widened(bias).reshape(statistics.weight_shape)
    result = (values * slope + offset).reshape(input.shape)
    return half.stored(result), half.stored(mean), half.stored(deviation)


# --- products -----------------------------------------------------------------------------------


def addr(self: Any, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * self + alpha * outer(vec1, vec2), rounded at each step."""
    half = _Half(self)
    total, column, row = _wide(self, vec1, vec2)
    column = half.rounded(half.rounded(alpha) * column)[:, None]
    product = half.rounded(column * row)
    return half.stored(product + half.rounded(half.rounded(beta) * total) if beta else product)


def mvlgamma(self: Any, p: int, gammaln: Callable[[Any], Any]) -> Any:
    """The logarithm of the multivariate gamma function, by that of the gamma function; each term is
    rounded.
    """
    half = _Half(self)
    steps = np.arange(p, dtype=_single) * -0.5
    terms = half.rounded(gammaln(half.rounded(widened(self)[..., None] + steps)))
    total = half.rounded(np.add.reduce(terms, axis=-1))
    constant = p * (p - 1) / 4 * float(np.log(np.pi))
    return half.stored(total + half.rounded(constant))
