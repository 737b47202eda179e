"""`grid_sample affine_grid`: images sampled at computed points.

A point has a number from -1 to 1 for each dimension, the last dimension first. An image may have
two or three dimensions. Along each a point reads a few elements, its taps. The weight of a tap is a
function of the point, whose slope and curvature the second derivative needs; that is composed of
other entries, so it has derivatives in turn.

The taps, which elements a point reads along a dimension and with which weights, are functions of
arrays, and of tensors: then every step of theirs is recorded. The weights as a
matrix, a row for each point and a column for each element, are what formulas are written with.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import fmod_number, zeros, zeros_like
from gradcli.ops.binding.arguments import check_floating, check_same_dtype, sizes_of
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.copies import cast_to, detach
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.op import Op, op
from gradcli.ops.elementwise.clamp import clamp_to_numbers
from gradcli.ops.elementwise.comparison import logical_and, where
from gradcli.ops.elementwise.rounding import floor, round_to_integer
from gradcli.ops.elementwise.unary import abs_op
from gradcli.ops.indexing.along import gather, scatter_add
from gradcli.ops.linalg.products.matrix_products import bmm
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.joining import stack
from gradcli.ops.shape.slicing import select
from gradcli.ops.shape.views import expand, reshape, transpose, unsqueeze

# --- taps ---------------------------------------------------------------------------------------


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
    position = where(position == position, position, 0.0)  # PyTorch's clipping keeps no nan
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


# --- as matrices --------------------------------------------------------------------------------


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


# --- the op -------------------------------------------------------------------------------------


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


# --- the points of an affine map ----------------------------------------------------------------


def _base_grid(sizes: tuple[int, ...], align_corners: bool, dtype: Any) -> Any:
    """The points of the elements themselves, each with a 1 behind it: shape (points, ndim + 1)."""
    axes = []
    for size in sizes:
        axis = np.linspace(-1, 1, size, dtype=dtype) if size > 1 else np.zeros(size, dtype)
        axes.append(axis if align_corners or size < 1 else axis * ((size - 1) / size))
    grids = np.meshgrid(*axes, indexing="ij")
    coordinates = [*reversed(grids), np.ones(sizes, dtype)]
    return np.stack([coordinate.reshape(-1) for coordinate in coordinates], -1).astype(dtype)


def _of_base(value: Any, size: tuple[int, ...], align_corners: bool) -> Any:
    """The base grid for a batch, an array or a tensor as the value is one."""
    base = _base_grid(size[2:], align_corners, value.dtype if type(value) is not Tensor
                      else value.array.dtype)  # fmt: skip
    xp = module_of(value if type(value) is not Tensor else value.array)
    batch = xp.asarray(np.ascontiguousarray(np.broadcast_to(base, (size[0], *base.shape))))
    return Tensor(batch) if type(value) is Tensor else batch


def _affine_array(theta: Any, size: tuple[int, ...], align_corners: bool) -> Any:
    coordinates = bmm(_of_base(theta, size, align_corners), np.swapaxes(theta, 1, 2))
    return coordinates.reshape(size[0], *size[2:], len(size) - 2)


def _affine_rule(grad: Any, size: tuple[int, ...], align_corners: bool) -> Any:
    base = base_grid(grad, size, align_corners)
    flat = reshape(grad, (size[0], base.shape[1], len(size) - 2))
    return transpose(bmm(transpose(base, 1, 2), flat), 1, 2)


base_grid = op(
    "_affine_base_grid",
    _of_base,
    constant=("value",),
    decomposition=lambda value, size, align_corners: _of_base(value, size, align_corners),
    raises=BY_KINDS,
)

affine_grid_generator = op(
    "affine_grid_generator", _affine_array, theta=_affine_rule, raises=BY_KINDS
)


@function("affine_grid", module="torch.nn.functional")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The places that affine maps, (N, 2, 3) or (N, 3, 4), send the elements of images of a size
    (N, C, *sizes) to. Raises E301 where they do not fit.

    Example: F.affine_grid(tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 1, 2, 2))
    """
    check_floating("affine_grid", theta, "ValueError")
    sizes = sizes_of("affine_grid", (size,))
    ndim = len(sizes) - 2
    if ndim not in (2, 3):
        raise shape_error(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms,"
            f" respectively. Got size {sizes}.",
            raises="NotImplementedError",
        )
    if theta.array.shape != (sizes[0], ndim, ndim + 1):
        raise shape_error(
            f"affine_grid(): maps of shape {(sizes[0], ndim, ndim + 1)} go with the size {sizes},"
            f" not {tuple(theta.array.shape)}",
            text=f"Expected a batch of {ndim}D affine matrices of shape Nx{ndim}x{ndim + 1} for"
            f" size {sizes}. Got torch.Size({list(theta.array.shape)}).",
            raises="ValueError" if theta.array.shape[1:] != (ndim, ndim + 1) else "RuntimeError",
        )
    return affine_grid_generator.apply(theta, sizes, bool(align_corners))


# --- reading at points --------------------------------------------------------------------------


def _all_taps(input: Any, grid: Any, mode: str, padding: str, align_corners: bool) -> Any:
    """The taps of each dimension, first dimension first."""
    sizes = input.shape[2:]
    coordinates = [grid[..., len(sizes) - 1 - dim] for dim in range(len(sizes))]
    return [
        [
            (*is_inside(index, size), weight, slope)
            for index, weight, slope, _ in taps_along(
                coordinate, size, mode, padding, align_corners
            )
        ]
        for coordinate, size in zip(coordinates, sizes, strict=True)
    ]


def _flat_index(taps: Any, sizes: tuple[int, ...]) -> tuple[Any, Any]:
    """The flat position of an element in an image, and whether it is inside."""
    index, inside = taps[0][0], taps[0][1]
    for tap, size in zip(taps[1:], sizes[1:], strict=True):
        index, inside = index * size + tap[0], inside & tap[1]
    return index, inside


def _sampled(input: Any, grid: Any, mode: str, padding: str, align_corners: bool) -> Any:
    batch, channels, *sizes = input.shape
    flat = input.reshape(batch, channels, prod(sizes))
    result = module_of(input).zeros((batch, channels, *grid.shape[1:-1]), input.dtype)
    each = np.arange(batch).reshape(-1, *(1,) * len(sizes))
    for chosen in product(*_all_taps(input, grid, mode, padding, align_corners)):
        index, inside = _flat_index(chosen, tuple(sizes))
        weight = np.where(inside, 1, 0).astype(input.dtype)
        for tap in chosen:
            weight = weight * tap[2]
        values = np.moveaxis(flat[each, :, index], -1, 1)
        result += values * weight[:, None]
    return result


def _sampled_backward(
    grad_output: Any, input: Any, grid: Any, mode: str, padding: str, align_corners: bool
) -> tuple[Any, Any]:
    batch, channels, *sizes = input.shape
    flat = input.reshape(batch, channels, prod(sizes))
    of_input = np.zeros_like(flat)
    of_grid = np.zeros_like(grid)
    points = np.moveaxis(grad_output, 1, -1)
    each = np.broadcast_to(np.arange(batch).reshape(-1, *(1,) * len(sizes)), grid.shape[:-1])
    for chosen in product(*_all_taps(input, grid, mode, padding, align_corners)):
        index, inside = _flat_index(chosen, tuple(sizes))
        kept = np.where(inside, 1, 0).astype(input.dtype)
        weight = kept
        for tap in chosen:
            weight = weight * tap[2]
        at: Any = (each, slice(None), index)
        np.add.at(of_input, at, points * weight[..., None])
        overlap = (points * flat[each, :, index]).sum(-1) * kept
        for dim in range(len(sizes)):
            slope = overlap
            for other, tap in enumerate(chosen):
                slope = slope * (tap[3] if other == dim else tap[2])
            of_grid[..., len(sizes) - 1 - dim] += slope
    return of_input.reshape(input.shape), of_grid


def _sampler(ndim: int) -> Op:
    def second(
        grads: Any,
        grad_output: Any,
        input: Any,
        grid: Any,
        mode: str,
        padding: str,
        align_corners: bool,
    ) -> tuple[Any, Any, Any]:
        of_input, of_grid = grads
        how = (mode, padding, align_corners)
        to_output = to_image = to_grid = None
        if of_input is not None:
            to_output = sampler(of_input, grid, *how)
            _, to_grid = backward(grad_output, of_input, grid, *how)
        if of_grid is None or mode == "nearest":
            return to_output, to_image, to_grid
        more_output, to_image, more_grid = of_slopes(
            of_grid,
            grad_output,
            input,
            grid,
            lambda coordinate, size: taps_along(coordinate, size, *how),
        )
        if of_input is None:
            return more_output, to_image, more_grid
        return to_output + more_output, to_image, to_grid + more_grid

    backward = op(
        f"grid_sampler_{ndim}d_backward",
        _sampled_backward,
        outputs=("of_input", "of_grid"),
        inputs=("grad_output", "input", "grid"),
        joint=second,
        decomposition=sampled_backward_decomposed,
        raises=BY_KINDS,
    )
    sampler = op(
        f"grid_sampler_{ndim}d",
        _sampled,
        joint=lambda grad, input, grid, mode, padding, align_corners: backward(
            grad, input, grid, mode, padding, align_corners
        ),
        inputs=("input", "grid"),
        decomposition=sampled_decomposed,
        raises=BY_KINDS,
    )
    return sampler


_SAMPLERS = {2: _sampler(2), 3: _sampler(3)}


def _wrong_grid(shape: list[int], grid: list[int]) -> str | None:
    """PyTorch's text for a grid that does not go with images."""
    sizes = f"but got input with sizes {shape} and grid with sizes {grid}"
    if len(shape) != len(grid):
        return (
            f"grid_sampler(): expected {len(shape)}D input and grid with same number of dimensions,"
            f" {sizes}"
        )
    if shape[0] != grid[0]:
        return f"grid_sampler(): expected grid and input to have same batch size, {sizes}"
    if grid[-1] != len(shape) - 2:
        return (
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but"
            f" got grid with sizes {grid}"
        )
    return None


@function("grid_sample", module="torch.nn.functional", autocast="float32")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images (N, C, *sizes) read at the places of a grid (N, *places, ndim), between the elements.

    Args:
        mode: "bilinear", "nearest", or for images of two dimensions "bicubic".
        padding_mode: what is outside: "zeros", "border" (the outermost element) or "reflection".
        align_corners: whether -1 and 1 are the outermost elements, or their outer edges.

    Raises E204 for other modes, E301 where the shapes do not fit, E203 where the dtypes differ.

    Example: F.grid_sample(arange(16.).reshape(1, 1, 4, 4), zeros(1, 1, 1, 2))
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise value_error(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic',"
            f" but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise value_error(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or"
            f" 'reflection', but got: '{padding_mode}'"
        )
    check_floating("grid_sample", input)
    check_same_dtype("grid_sample", input, grid)
    shape, grid_shape = input.array.shape, grid.array.shape
    ndim = len(shape) - 2
    fits = ndim in (2, 3) and len(grid_shape) == len(shape) and grid_shape[-1] == ndim
    if not fits or grid_shape[0] != shape[0] or 0 in shape[2:]:
        raise shape_error(
            f"grid_sample(): a grid of shape {grid_shape} does not go with images of {shape}",
            text=_wrong_grid(list(shape), list(grid_shape)),
        )
    if mode == "bicubic" and ndim == 3:
        raise runtime_error("grid_sampler(): bicubic interpolation only supports 4D input")
    return _SAMPLERS[ndim].apply(input, grid, mode, padding_mode, bool(align_corners))


def _expose_sampler(name: str, ndims: tuple[int, ...]) -> None:
    @function(name)
    def grid_sampler(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        if input.array.ndim - 2 not in ndims:
            raise shape_error(f"{name}() does not take images of {input.array.ndim - 2}")
        modes = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
        for number, known in zip((interpolation_mode, padding_mode), modes, strict=True):
            if number not in range(3):
                raise value_error(f"{name}(): the modes are {known}, not {number}")
        mode, padding = modes[0][interpolation_mode], modes[1][padding_mode]
        return grid_sample(input, grid, mode, padding, align_corners)

    sizes = "zeros(1, 1, 2, 2), zeros(1, 1, 1, 2)"
    if ndims == (3,):
        sizes = "zeros(1, 1, 2, 2, 2), zeros(1, 1, 1, 1, 3)"
    describe(
        grid_sampler,
        "`torch.nn.functional.grid_sample` with numbers for the modes.",
        f"torch.{name}({sizes}, 0, 0, False)",
    )


_expose_sampler("grid_sampler", (2, 3))
_expose_sampler("grid_sampler_2d", (2,))
_expose_sampler("grid_sampler_3d", (3,))
