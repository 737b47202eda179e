"""The second derivative of `grid_sample`, composed of other entries: it has derivatives in turn.

Along each dimension of an image a point reads a few elements, its taps. The weight of a tap is a
function of the point; here are its slope and its curvature too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.indexing.gather import gather, scatter_add
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.joining import stack
from gradcli.ops.shape.slicing import select
from gradcli.ops.shape.views import reshape, unsqueeze

Tap = tuple[Any, Any, Any, Any, Any]
"""Index, whether it is inside the image, weight, slope and curvature; None for one that is 0."""

TapsAlong = Callable[[Any, int], list[Tap]]
"""The taps along a dimension of a size, for points from -1 to 1."""


def constant(array: Any, like: Any) -> Any:
    """An array, or a tensor without history where `like` is a tensor."""
    return Tensor(array) if type(like) is Tensor else array


def straight(coordinate: Any, values: Any, slopes: Any) -> Any:
    """Values as a function of the points at which they are known, with known slopes."""
    if type(coordinate) is not Tensor:
        return values
    return coordinate * Tensor(slopes) + Tensor(values - coordinate.array * slopes)


def _times(factors: list[Any]) -> Any:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


def _plus(total: Any, term: Any) -> Any:
    return term if total is None else total + term


def _slope(chosen: tuple[Tap, ...], dims: tuple[int, ...]) -> Any:
    """The derivative of the product of the taps' weights in one dimension, or in two; None where it
    is 0.
    """
    factors = [tap[2 + dims.count(dim)] for dim, tap in enumerate(chosen)]
    return None if any(factor is None for factor in factors) else _times(factors)


def of_slopes(
    direction: Any, grad_output: Any, input: Any, grid: Any, taps_along: TapsAlong
) -> tuple[Any, Any, Any]:
    """The gradients of grad_output, input and grid from that of the grid's own gradient.

    Args:
        direction: the gradient of the grid's gradient, of the grid's shape.
        taps_along: the taps of a point along a dimension.
    """
    batch, channels, *sizes = input.shape
    dims = range(len(sizes))
    count = prod(grid.shape[1:-1])
    flat = reshape(input, (batch, channels, prod(sizes)))
    points = reshape(grad_output, (batch, channels, count))

    def along(value: Any, dim: int) -> Any:
        return reshape(select(value, value.ndim - 1, len(sizes) - 1 - dim), (batch, count))

    taps = [taps_along(along(grid, dim), size) for dim, size in zip(dims, sizes, strict=True)]
    steps = [along(direction, dim) for dim in dims]
    to_output: Any = None
    to_input = zeros(flat, tuple(flat.shape))
    to_grid: list[Any] = [None for _ in dims]
    for chosen in product(*taps):
        index, inside = chosen[0][0], chosen[0][1]
        for tap, size in zip(chosen[1:], sizes[1:], strict=True):
            index, inside = index * size + tap[0], inside & tap[1]
        coordinates = np.broadcast_to(index[:, None], (batch, channels, count))
        where = constant(coordinates.copy(), grid)
        plain = grad_output.array if type(grad_output) is Tensor else grad_output
        kept = constant(inside.astype(plain.dtype), grid)
        change: Any = None
        for dim in dims:
            change = _plus(change, steps[dim] * _slope(chosen, (dim,)))
        change = unsqueeze(change * kept, 1)
        values = gather(flat, 2, where)
        to_output = _plus(to_output, values * change)
        to_input = scatter_add(to_input, 2, where, points * change)
        overlap = sum_dims(points * values, (1,), False) * kept
        for first, second in product(dims, dims):
            bend = _slope(chosen, (first, second))
            if bend is not None:
                to_grid[first] = _plus(to_grid[first], overlap * (steps[second] * bend))
    return (
        reshape(to_output, tuple(grad_output.shape)),
        reshape(to_input, tuple(input.shape)),
        reshape(stack(to_grid[::-1], 2), tuple(grid.shape)),
    )
