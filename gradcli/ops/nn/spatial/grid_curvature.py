"""The second derivative of `grid_sample`, composed of other entries: it has derivatives in turn.

Along each dimension of an image a point reads a few elements, its taps. The weight of a tap is a
function of the point; here are its slope and its curvature too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

from gradcli.ops.arithmetic.arithmetic import zeros, zeros_like
from gradcli.ops.elementwise.comparison import logical_and, where
from gradcli.ops.indexing.gather import gather, scatter_add
from gradcli.ops.nn.spatial.grid_taps import Tap, is_inside
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.joining import stack
from gradcli.ops.shape.slicing import select
from gradcli.ops.shape.views import expand, reshape, unsqueeze

TapsAlong = Callable[[Any, int], list[Tap]]
"""The taps along a dimension of a size, for points from -1 to 1."""


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
    factors = [tap[1 + dims.count(dim)] for dim, tap in enumerate(chosen)]
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
        index, inside = is_inside(chosen[0][0], sizes[0])
        for tap, size in zip(chosen[1:], sizes[1:], strict=True):
            further, too = is_inside(tap[0], size)
            index, inside = index * size + further, logical_and(inside, too)
        places = expand(unsqueeze(index, 1), (batch, channels, count))
        kept = where(inside, zeros_like(chosen[0][0]) + 1.0, 0.0)
        change: Any = None
        for dim in dims:
            change = _plus(change, steps[dim] * _slope(chosen, (dim,)))
        change = unsqueeze(change * kept, 1)
        values = gather(flat, 2, places)
        to_output = _plus(to_output, values * change)
        to_input = scatter_add(to_input, 2, places, points * change)
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
