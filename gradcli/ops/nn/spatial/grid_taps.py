"""The taps of `grid_sample`: which elements a point reads along a dimension, with which weights.

They are functions of arrays, and of tensors: then every step of theirs is recorded. The weights as
a matrix, a row for each point and a column for each element, are what formulas are written with.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import fmod_number, zeros_like
from gradcli.ops.creation.copies import cast_to, detach
from gradcli.ops.elementwise.clamp import clamp_to_numbers
from gradcli.ops.elementwise.comparison import logical_and, where
from gradcli.ops.elementwise.rounding import floor, round_to_integer
from gradcli.ops.elementwise.unary import abs_op
from gradcli.ops.linalg.products.matrix_products import bmm
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.joining import stack
from gradcli.ops.shape.slicing import select
from gradcli.ops.shape.views import reshape, transpose, unsqueeze

Tap = tuple[Any, Any, Any, Any]
"""Index as a floating number, weight, slope and curvature; None for one that is 0."""


def _position(coordinate: Any, size: int, align_corners: bool) -> tuple[Any, float]:
    """Points from -1 to 1 as positions among the elements of a dimension, and the slope."""
    if align_corners:
        return (coordinate + 1) / 2 * (size - 1), (size - 1) / 2
    return ((coordinate + 1) * size - 1) / 2, size / 2


def _mirrored(position: Any, low2: int, high2: int) -> tuple[Any, Any]:
    """Positions reflected between two ends, given as twice their values, and their slope."""
    if low2 == high2:
        return zeros_like(position), zeros_like(position)
    low, span = low2 / 2, (high2 - low2) / 2
    away = position - low
    sign = where(away < 0, zeros_like(position) - 1.0, 1.0)
    away = abs_op(away)
    rest, flips = fmod_number(away, span), floor(away / span)
    even = fmod_number(flips, 2) == 0
    return where(even, rest + low, span - rest + low), where(even, sign, -sign)


def _kept_inside(position: Any, size: int, padding: str, align_corners: bool) -> tuple[Any, Any]:
    """Positions brought inside the image as the padding mode says, and their slope."""
    slope = zeros_like(position) + 1.0
    if padding == "zeros":
        return position, slope
    if padding == "reflection":
        ends = (0, 2 * (size - 1)) if align_corners else (-1, 2 * size - 1)
        position, slope = _mirrored(position, *ends)
    inside = logical_and(position > 0, position < size - 1)
    return clamp_to_numbers(position, 0, size - 1), where(inside, slope, 0.0)


_CUBIC = -0.75


def _cubic_weights(t: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The weights of the four elements around a position, t behind the second, their slopes and
    their curvatures.
    """
    a = _CUBIC
    weights, slopes, curvatures = [], [], []
    # The distance to each element, whether it is the near side of the kernel, and its direction.
    for x, near, sign in ((t + 1, False, 1), (t, True, 1), (1 - t, True, -1), (2 - t, False, -1)):
        if near:
            weights.append(((a + 2) * x - (a + 3)) * x * x + 1)
            slopes.append(sign * (3 * (a + 2) * x - 2 * (a + 3)) * x)
            curvatures.append(6 * (a + 2) * x - 2 * (a + 3))
        else:
            weights.append(((a * x - 5 * a) * x + 8 * a) * x - 4 * a)
            slopes.append(sign * ((3 * a * x - 10 * a) * x + 8 * a))
            curvatures.append(6 * a * x - 10 * a)
    return weights, slopes, curvatures


def _straight(coordinate: Any, values: Any, slopes: Any) -> Any:
    """Values as a function of the points at which they are known, with known slopes."""
    if type(coordinate) is not Tensor:
        return values
    return coordinate * slopes + (values - detach(coordinate) * slopes)


def taps_along(
    coordinate: Any, size: int, mode: str, padding: str, align_corners: bool
) -> list[Tap]:
    """The elements that are read along one dimension, as functions of the point, an array or a
    tensor.
    """
    point = detach(coordinate) if type(coordinate) is Tensor else coordinate
    position, scale = _position(point, size, align_corners)
    if mode == "bicubic":
        start = floor(position)
        behind = _straight(coordinate, position - start, zeros_like(position) + scale)
        weights, slopes, curvatures = _cubic_weights(behind)
        return [
            (
                _kept_inside(start + (number - 1), size, padding, align_corners)[0],
                weights[number], slopes[number] * scale, curvatures[number] * scale**2,
            )
            for number in range(4)
        ]  # fmt: skip
    position, inner = _kept_inside(position, size, padding, align_corners)
    if mode == "nearest":
        index, none = round_to_integer(position), zeros_like(position)
        return [(index, none + 1.0, none, None)]
    start, inner = floor(position), inner * scale
    behind = _straight(coordinate, position - start, inner)
    return [(start, 1 - behind, -inner, None), (start + 1, behind, inner, None)]


def is_inside(index: Any, size: int) -> tuple[Any, Any]:
    """An index as an integer, 0 outside the image, and whether it is inside."""
    inside = logical_and(index >= 0, index < size)
    return cast_to(where(inside, index, 0.0), dtypes.int64), inside


# --- as matrices ----------------------------------------------------------------------------------


def _matrix(taps: list[Tap], size: int, part: int) -> Tensor:
    """The weights (1) or slopes (2) of taps by point and element: (N, points, size)."""
    total: Any = None
    for tap in taps:
        elements = Tensor(np.arange(size, dtype=tap[0].array.dtype))
        term = where(unsqueeze(tap[0], 2) == elements, unsqueeze(tap[part], 2), 0.0)
        total = term if total is None else total + term
    return total


class Weights:
    """The weights of all elements at all points of a grid.

    Attributes:
        flat: the images with their dimensions as one: (N, channels, elements).
    """

    def __init__(self, input: Tensor, grid: Tensor, how: tuple[str, str, bool]) -> None:
        self.batch, self.channels, *self.sizes = input.array.shape
        self.ndim = len(self.sizes)
        self.places = grid.array.shape[1:-1]
        self.count = prod(self.places)
        self.flat: Tensor = reshape(input, (self.batch, self.channels, prod(self.sizes)))
        points = reshape(grid, (self.batch, self.count, self.ndim))
        self.along = []
        for dim, size in enumerate(self.sizes):
            taps = taps_along(select(points, 2, self.ndim - 1 - dim), size, *how)
            self.along.append([_matrix(taps, size, part) for part in (1, 2)])

    def matrix(self, by: int | None = None) -> Tensor:
        """The products of the weights, (N, points, elements); with the slope in a dimension."""
        total, *others = (parts[dim == by] for dim, parts in enumerate(self.along))
        for other in others:
            product = unsqueeze(total, 3) * unsqueeze(other, 2)
            total = reshape(product, (self.batch, self.count, -1))
        return total


def sampled_decomposed(
    input: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool
) -> Tensor:
    """Each point's value: the elements of its image, each times its weight."""
    weights = Weights(input, grid, (mode, padding, align_corners))
    values = bmm(weights.flat, transpose(weights.matrix(), 1, 2))
    return reshape(values, (weights.batch, weights.channels, *weights.places))


def sampled_backward_decomposed(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    mode: str,
    padding: str,
    align_corners: bool,
) -> tuple[Tensor, Tensor]:
    """The gradients of images and grid, by the same matrices."""
    weights = Weights(input, grid, (mode, padding, align_corners))
    points = reshape(grad_output, (weights.batch, weights.channels, weights.count))
    of_input = reshape(bmm(points, weights.matrix()), input.array.shape)
    pairs = bmm(transpose(points, 1, 2), weights.flat)
    slopes = [
        sum_dims(pairs * weights.matrix(dim), (2,), False) for dim in reversed(range(weights.ndim))
    ]
    return of_input, reshape(stack(slopes, 2), grid.array.shape)
