"""Layer norm in single precision, rounded as PyTorch's kernels round it.

Where terms cancel, the result depends on the order of the sums and on which products are fused into
them. The kernels work on eight lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.kernels.sums.fused_multiply_add import multiply_add

_LANES = 8


# --- mean and deviation ---------------------------------------------------------------------------


def _step(value: Any, count: int, mean: Any, squares: Any) -> tuple[Any, Any]:
    """Mean and sum of squares about it after one more value, for single elements."""
    change = value - mean
    mean = mean + change / np.float32(count)
    return mean, squares + change * (value - mean)


def _lane_step(value: Any, count: int, mean: Any, squares: Any) -> tuple[Any, Any]:
    """The same for lanes, with fused multiply-adds."""
    change = value - mean
    mean = multiply_add(mean, change, np.float32(1) / np.float32(count))
    return mean, multiply_add(squares, change, value - mean)


def row_moments(values: Any, eps: float) -> tuple[Any, Any]:
    """The mean of each row and one over its deviation, for rows of at most `LONGEST` elements.

    Args:
        values: float32 of shape (*, elements).
        eps: added to the variance.
    """
    mean, variance = row_variances(values)
    return mean, 1 / np.sqrt(variance + np.float32(eps))


def row_variances(values: Any) -> tuple[Any, Any]:
    """The mean and the variance of each row of at most `LONGEST` float32 elements."""
    size = values.shape[-1]
    groups = size // _LANES
    mean = squares = np.zeros((*values.shape[:-1], 1), np.float32)
    for number, place in enumerate(range(groups * _LANES, size), 1):
        mean, squares = _step(values[..., place : place + 1], number, mean, squares)
    count = size - groups * _LANES
    lanes = lane_squares = np.zeros((*values.shape[:-1], _LANES), np.float32)
    for number in range(groups):
        group = values[..., number * _LANES : (number + 1) * _LANES]
        lanes, lane_squares = _lane_step(group, number + 1, lanes, lane_squares)
    for lane in range(_LANES if groups else 0):
        count += groups
        part = np.float32(groups) / np.float32(count)
        change = lanes[..., lane : lane + 1] - mean
        spread = change * change * part
        others = lane_squares[..., lane : lane + 1]
        added = multiply_add(others, spread, np.float32(count - groups))
        mean, squares = multiply_add(mean, change, part), squares + added
    return mean, squares / np.float32(size)


LONGEST = 64
"""Longer rows take the moments of all elements at once, which is faster."""


# --- the gradient ---------------------------------------------------------------------------------


def _sum(values: Any, factor: Any) -> Any:
    """The sums of the rows of `values * factor`, in a last dimension of 1; the factor may be None.

    The last incomplete group is added to the lanes by fused multiply-add.
    """
    products = values if factor is None else values * factor
    size = products.shape[-1]
    if size < _LANES:
        return np.add.accumulate(products, axis=-1)[..., -1:]
    whole = size - size % _LANES
    groups = products[..., :whole].reshape(*products.shape[:-1], whole // _LANES, _LANES)
    lanes = np.add.accumulate(groups, axis=-2)[..., -1, :].copy()
    rest = size - whole
    if rest:
        added = lanes[..., :rest]
        if factor is None:
            added += values[..., whole:]
        else:
            added[...] = multiply_add(added, values[..., whole:], factor[..., whole:])
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes


def row_gradient(grad: Any, values: Any, mean: Any, rstd: Any, weight: Any) -> Any:
    """The gradient of rows that were normalised and multiplied by a weight.

    Args:
        grad: the gradient of the result, float32 of shape (*, elements).
        values: the rows, of the same shape.
        mean, rstd: their mean and one over their deviation, of shape (*, 1).
        weight: of shape (elements,), or None.
    """
    if weight is None:
        by_value = _sum(grad, values)
    else:
        by_value = _sum(grad * values, np.broadcast_to(weight, grad.shape))
    plain = _sum(grad, None if weight is None else np.broadcast_to(weight, grad.shape))
    scale = np.float32(1) / np.float32(values.shape[-1])
    slope = multiply_add(-by_value, plain, mean) * rstd * rstd * rstd * scale
    constant = multiply_add(-(plain * rstd * scale), -slope, mean)
    direct = grad * rstd
    if weight is not None:
        direct = direct * weight
    return multiply_add(direct, values, slope) + constant
