"""Fused row reductions: lazy arrays whose elements depend on numbers of their row, such as its
largest element, the sum of its exponentials, or the element that was picked.

Layer norm in single precision is rounded as PyTorch's kernels round it. Where terms cancel, its
result depends on the order of the sums and on which products are fused into them; its kernels work
on eight lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import Kernel, Pointwise, forced, pointwise, source_of
from gradcli.arrays.fusion.tile_kernels import log_softmax_tile, scatter_tile, weights_tile
from gradcli.arrays.kernels import vector_math
from gradcli.arrays.kernels.sums import multiply_add

# --- one element of each row --------------------------------------------------------------------


def scattered(index: Any, chosen: Any, shape: tuple[int, ...]) -> Pointwise:
    """Zeros, but for one element in each row: the gradient of picking it.

    Args:
        index: its position along dimension 1, integers of shape (rows, 1, ...).
        chosen: its value, of the same shape.
        shape: (rows, columns, ...).
    """
    return pointwise(scatter_tile, (source_of(index), source_of(chosen)), shape, chosen.dtype)


def parts_of_scattered(array: Any) -> tuple[Any, Any] | None:
    """`index` and `chosen` of a result of `scattered` that is not computed yet; else None."""
    if not _waits_for(scatter_tile, array):
        return None
    return array.operands[0].value, array.operands[1].value


def _waits_for(kernel: Kernel, array: Any) -> bool:
    """Whether an array is a result of the kernel that is not computed yet."""
    return type(array) is Pointwise and array.kernel is kernel and array.value is None


# --- softmax and its logarithm ------------------------------------------------------------------


class Powers(NamedTuple):
    """Softmax as numerators and denominators.

    Attributes:
        powers: the exponentials of the elements minus the largest of their row.
        totals: their sums, of size 1 along the dimension.
    """

    powers: Any
    totals: Any


def log_softmax(array: Any, largest: Any, powers: Powers) -> Pointwise:
    """The logarithm of softmax, which keeps the exponentials and sums that softmax can reuse.

    Args:
        array: an ndarray in row order.
        largest: the largest element of each row, of size 1 along the dimension.
        powers: softmax as numerators and denominators.
    """
    with np.errstate(all="ignore"):
        logarithms = vector_math.log(powers.totals)
    operands = (array, largest, logarithms, *powers)
    return pointwise(log_softmax_tile, tuple(map(source_of, operands)), array.shape, array.dtype)


def powers_of(array: Any) -> Powers | None:
    """The powers of a result of `log_softmax` that is not computed yet; else None."""
    if not _waits_for(log_softmax_tile, array):
        return None
    *_, powers, totals = array.operands
    return Powers(powers.value, totals.value)


def weights(powers: Any, factors: Any, index: Any, chosen: Any) -> Pointwise:
    """Powers times the factor of their row, plus a number at one position of each row.

    Args:
        powers: an ndarray of shape (rows, columns, ...) in row order.
        factors: of size 1 along some dimensions.
        index: the position along dimension 1, integers of shape (rows, 1, ...).
        chosen: what is added there, of the same shape.
    """
    operands = tuple(map(source_of, (powers, factors, index, chosen)))
    return pointwise(weights_tile, operands, powers.shape, powers.dtype)


def picked(array: Any, places: tuple[Any, ...]) -> Any:
    """The elements at some positions; of `log_softmax` only these are computed."""
    if not _waits_for(log_softmax_tile, array):
        array = forced(array)
        if type(array) not in HOST_ARRAYS:
            array = module_of(array).asarray(array)
        return array[places]
    read, largest, logarithms = [_at(operand.value, places) for operand in array.operands[:3]]
    out = np.empty(np.broadcast_shapes(*[place.shape for place in places]), array.dtype)
    with np.errstate(all="ignore"):
        log_softmax_tile(read, largest, logarithms, None, None, out)
    return out


def _at(array: Any, places: tuple[Any, ...]) -> Any:
    """The elements at some positions of an array whose dimensions of size 1 are broadcast."""
    index = [0 if size == 1 else at for at, size in zip(places, array.shape, strict=True)]
    return array[tuple(index)]


# --- layer norm in single precision ---------------------------------------------------------------


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
