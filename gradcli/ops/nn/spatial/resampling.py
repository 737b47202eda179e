"""Images in other sizes: `interpolate`, `pixel_shuffle pixel_unshuffle channel_shuffle`.

A resampling reads, along each dimension by itself, a few elements for every element that it makes,
each with a weight: the taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.layout.strides import in_suggested_format
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, shape_error, type_error, value_error
from gradcli.ops.binding.arguments import check_filled, check_floating
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_KINDS, in_numpy
from gradcli.ops.definition.op import Op, op
from gradcli.ops.linalg.products.matrix_products import along_dims
from gradcli.ops.nn.spatial.pooling import adaptive_average

Sizes = tuple[int, ...]
Taps = list[tuple[Any, Any]]
"""For one dimension, which element each tap reads for every position of the output, and its weight
(None for 1)."""

# --- taps ---------------------------------------------------------------------------------------


def _nearest(size: int, count: int, scale: float | None, exact: bool) -> Taps:
    step = size / count if scale is None else 1 / scale
    positions = (np.arange(count) + (0.5 if exact else 0)).astype(np.float32) * np.float32(step)
    return [(np.minimum(np.floor(positions).astype(np.int64), size - 1), None)]


def _positions(size: int, count: int, scale: float | None, align_corners: bool) -> Any:
    """The positions of the output between the elements read."""
    if align_corners:
        return np.arange(count) * ((size - 1) / (count - 1) if count > 1 else 0.0)
    step = size / count if scale is None else 1 / scale
    return (np.arange(count) + 0.5) * step - 0.5


def _linear(size: int, count: int, scale: float | None, align_corners: bool) -> Taps:
    positions = np.maximum(_positions(size, count, scale, align_corners), 0)
    first = np.minimum(positions.astype(np.int64), size - 1)
    part = np.clip(positions - first, 0, 1)
    return [(first, 1 - part), (np.minimum(first + 1, size - 1), part)]


def _cubic(size: int, count: int, scale: float | None, align_corners: bool) -> Taps:
    positions = _positions(size, count, scale, align_corners)
    first = np.floor(positions).astype(np.int64)
    part = positions - first
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = (far(part + 1), near(part), near(1 - part), far(2 - part))
    return [(np.clip(first + k - 1, 0, size - 1), weight) for k, weight in enumerate(weights)]


# --- resampling ---------------------------------------------------------------------------------


def _weighted(values: Any, weight: Any, dim: int) -> Any:
    if weight is None:
        return values
    shape = [1] * values.ndim
    shape[dim] = -1
    return values * weight.astype(values.dtype).reshape(shape)


def _resampled(self: Any, taps: list[Taps]) -> Any:
    values = wide(self)
    for dim, along in enumerate(taps, self.ndim - len(taps)):
        total = None
        for positions, weight in along:
            term = _weighted(np.take(values, positions, dim), weight, dim)
            total = term if total is None else total + term
        values = total
    return in_suggested_format(values.astype(self.dtype, copy=False), self)


def _transposed(grad_output: Any, input_size: Sizes, taps: list[Taps]) -> Any:
    """The transpose of `_resampled`: every element adds up what was read from it."""
    values = wide(grad_output)
    for dim, along in enumerate(taps, len(input_size) - len(taps)):
        shape = (*values.shape[:dim], input_size[dim], *values.shape[dim + 1 :])
        total = module_of(values).zeros(shape, values.dtype)
        for positions, weight in along:
            term = _weighted(values, weight, dim)
            np.add.at(np.moveaxis(total, dim, 0), positions, np.moveaxis(term, dim, 0))
        values = total
    return values.astype(grad_output.dtype, copy=False)


def _matrices(sizes: Sizes, taps: list[Taps]) -> list[Any]:
    """For each dimension the matrix that a row of elements is multiplied by."""
    pairs = zip(sizes[-len(taps) :], taps, strict=True)
    return [_resampled(np.eye(size), [along]) for size, along in pairs]


def _resampling(name: str) -> Op:
    backward: Op = op(
        f"{name}_backward",
        _transposed,
        decomposition=lambda grad_output, input_size, taps: along_dims(
            grad_output, [matrix.T for matrix in _matrices(input_size, taps)]
        ),
        grad_output=lambda grad, taps: resample(grad, taps),
        raises=BY_KINDS,
    )
    resample: Op = op(
        name,
        _resampled,
        keeps_layout=True,
        decomposition=lambda self, taps: along_dims(self, _matrices(self.shape, taps)),
        self=lambda grad, self_sizes, taps: backward(grad, self_sizes, taps),
        raises=BY_KINDS,
    )
    return resample


_NAMES = {
    "nearest": ("upsample_nearest{}d", (1, 2, 3)),
    "nearest-exact": ("_upsample_nearest_exact{}d", (1, 2, 3)),
    "linear": ("upsample_linear{}d", (1,)),
    "bilinear": ("upsample_bilinear{}d", (2,)),
    "bicubic": ("upsample_bicubic{}d", (2,)),
    "trilinear": ("upsample_trilinear{}d", (3,)),
}
_ENTRIES = {
    (mode, ndim): _resampling(name.format(ndim))
    for mode, (name, ndims) in _NAMES.items()
    for ndim in ndims
}


def _per_dimension(requested: Any, sizes: Sequence[int], what: str) -> tuple[Any, ...]:
    if not isinstance(requested, (tuple, list)):
        return (requested,) * len(sizes)
    values = tuple(requested)
    if len(values) != len(sizes):
        other, of = ("output", "output size of") if what == "size" else (what, f"{what} of shape")
        named = of.removesuffix(" of").removesuffix(" of shape")
        letter = "o" if what == "size" else "s"
        raise value_error(
            f"Input and {other} must have the same number of spatial dimensions, but got input with"
            f" spatial dimensions of {list(sizes)} and {of} {requested}. Please provide input"
            f" tensor in (N, C, d1, d2, ...,dK) format and {named} in"
            f" ({letter}1, {letter}2, ...,{letter}K) format."
        )
    return values


_RANKS = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _no_mode(mode: str, rank: int) -> GradcliError:
    """The error of a mode that is none for a number of dimensions."""
    if rank in (3, 4, 5) and mode in _RANKS:
        text = f"Got {rank}D input, but {mode} mode needs {_RANKS[mode]}D input"
    else:
        text = (
            "Input Error: Only 3D, 4D and 5D input Tensors supported"
            f" (got {rank}D) for the modes: nearest | linear | bilinear | bicubic |"
            f" trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    return value_error(text, raises="NotImplementedError")


def _no_size(sizes: Sequence[int], counts: Sequence[Any]) -> GradcliError:
    """The error of an input or an output without elements."""
    dims = "DHW"[-len(sizes) :]
    shown = [
        ", ".join(f"{dim}: {size}" for dim, size in zip(dims, each, strict=True))
        for each in (sizes, counts)
    ]
    return value_error(
        "Input and output sizes should be greater than 0, but got input"
        f" ({shown[0]}) output ({shown[1]})",
        raises="RuntimeError",
    )


@function("interpolate", "upsample", module="torch.nn.functional")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input, (N, C, *sizes), with its last dimensions in another size.

    Args:
        size: the sizes to make, or
        scale_factor: what the sizes are multiplied by.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
        align_corners: whether the outermost elements keep their place, or the outer edges do.

    Raises E204 for arguments that do not go together.

    Example: F.interpolate(arange(16.).reshape(1, 1, 4, 4), scale_factor=2)
    """
    kept = mode in ("nearest", "nearest-exact") and input.dtype is dtypes.uint8
    if not kept:
        check_floating("interpolate", input)
    if antialias:
        raise GradcliError("E205", "interpolate(): antialias is outside the catalogue")
    shape = input.array.shape
    ndim = len(shape) - 2
    if (size is None) == (scale_factor is None):
        which = "either" if size is None else "only one of"
        raise value_error(f"{which} size or scale_factor should be defined")
    sizes = shape[2:]
    scales: tuple[Any, ...] = (None,) * ndim
    if size is not None:
        counts = _per_dimension(size, sizes, "size")
    else:
        scales = _per_dimension(scale_factor, sizes, "scale_factor")
        counts = tuple(floor(own * scale) for own, scale in zip(sizes, scales, strict=True))
        if recompute_scale_factor:
            scales = (None,) * ndim
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        raise value_error(
            "align_corners option can only be set with the interpolating modes: linear | bilinear |"
            " bicubic | trilinear"
        )
    if recompute_scale_factor and size is not None:
        raise value_error("recompute_scale_factor is not meaningful with an explicit size.")
    if not all(sizes):
        raise _no_size(sizes, counts)
    if mode == "area" and ndim in (1, 2, 3):
        return adaptive_average(input, counts)
    entry = _ENTRIES.get((mode, ndim))
    if entry is None:
        raise _no_mode(mode, len(shape))
    if any(type(count) is not int or count < 1 for count in counts):
        raise _no_size(sizes, counts)
    check_filled("interpolate", input, ndim + 2)
    taps = []
    for own, count, scale in zip(sizes, counts, scales, strict=True):
        if mode.startswith("nearest"):
            taps.append(_nearest(own, count, scale, mode == "nearest-exact"))
        elif mode == "bicubic":
            taps.append(_cubic(own, count, scale, bool(align_corners)))
        else:
            taps.append(_linear(own, count, scale, bool(align_corners)))
    return entry.apply(input, taps)


# --- channels and pixels ------------------------------------------------------------------------


def _copied(turned: Any, shape: Sizes, self: Any) -> Any:
    """Turned elements in a shape, in memory as those of the input suggest."""
    return in_suggested_format(module_of(turned).ascontiguousarray(turned).reshape(shape), self)


def _shuffled(self: Any, factor: int) -> Any:
    *leading, channels, height, width = self.shape
    parts = self.reshape(*leading, channels // factor**2, factor, factor, height, width)
    n = len(leading)
    turned = parts.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    shape = (*leading, channels // factor**2, height * factor, width * factor)
    return _copied(turned, shape, self)


def _unshuffled(self: Any, factor: int) -> Any:
    *leading, channels, height, width = self.shape
    parts = self.reshape(*leading, channels, height // factor, factor, width // factor, factor)
    n = len(leading)
    turned = parts.transpose(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    shape = (*leading, channels * factor**2, height // factor, width // factor)
    return _copied(turned, shape, self)


_pixel_shuffle: Op = op(
    "pixel_shuffle",
    _shuffled,
    keeps_layout=True,
    leading=True,
    self=lambda grad, factor: _pixel_unshuffle(grad, factor),
    numpy="""\
def pixel_shuffle(x, factor):
    *before, channels, height, width = x.shape
    n, sizes = len(before), (factor, factor, height, width)
    parts = x.reshape(*before, channels // factor**2, *sizes)
    parts = parts.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return parts.reshape(*before, channels // factor**2, height * factor, width * factor)
""",
    raises=BY_KINDS,
)
_pixel_unshuffle: Op = op(
    "pixel_unshuffle",
    _unshuffled,
    keeps_layout=True,
    leading=True,
    self=_pixel_shuffle,
    numpy="""\
def pixel_unshuffle(x, factor):
    *before, channels, height, width = x.shape
    n, height, width = len(before), height // factor, width // factor
    parts = x.reshape(*before, channels, height, factor, width, factor)
    parts = parts.transpose(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return parts.reshape(*before, channels * factor**2, height, width)
""",
    raises=BY_KINDS,
)


def _regrouped(self: Any, groups: int) -> Any:
    shape = self.shape
    parts = self.reshape(shape[0], groups, shape[1] // groups, *shape[2:])
    return _copied(parts.swapaxes(1, 2), shape, self)


_channel_shuffle: Op = op(
    "native_channel_shuffle",
    _regrouped,
    keeps_layout=True,
    node="ChannelShuffleBackward0",
    self=lambda grad, self_sizes, groups: _channel_shuffle(grad, self_sizes[1] // groups),
    raises=BY_KINDS,
)


def _check_pixels(name: str, input: Tensor, factor: Any, argument: str) -> None:
    if type(factor) is not int:
        raise type_error(f"{name}(): {argument} must be an integer")
    if input.array.ndim < 3:
        raise shape_error(
            f"{name} expects input to have at least 3 dimensions, but got input with"
            f" {input.array.ndim} dimension(s)"
        )
    if factor < 1:
        raise shape_error(f"{name} expects a positive {argument}, but got {factor}")


@function("pixel_shuffle", also="torch.nn.functional")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C r², H, W) as (…, C, H r, W r): channels become pixels.

    Example: torch.pixel_shuffle(arange(4.).reshape(1, 4, 1, 1), 2)
    """
    _check_pixels("pixel_shuffle", input, upscale_factor, "upscale_factor")
    channels = input.array.shape[-3]
    if channels % upscale_factor**2:
        raise shape_error(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of"
            f" upscale_factor, but input.size(-3)={channels} is not divisible by"
            f" {upscale_factor**2}"
        )
    return _pixel_shuffle.apply(input, upscale_factor)


@function("pixel_unshuffle", also="torch.nn.functional")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H r, W r) as (…, C r², H, W): pixels become channels.

    Example: torch.pixel_unshuffle(arange(16.).reshape(1, 1, 4, 4), 2)
    """
    _check_pixels("pixel_unshuffle", input, downscale_factor, "downscale_factor")
    height, width = input.array.shape[-2:]
    for name, size, dim in (("height", height, -2), ("width", width, -1)):
        if size % downscale_factor:
            raise shape_error(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but"
                f" input.size({dim})={size} is not divisible by {downscale_factor}"
            )
    return _pixel_unshuffle.apply(input, downscale_factor)


@function("channel_shuffle", also="torch.nn.functional")
@in_numpy("""\
def channel_shuffle(x, groups):
    count, channels, *rest = x.shape
    parts = x.reshape(count, groups, channels // groups, *rest)
    return parts.swapaxes(1, 2).reshape(x.shape)
""")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of all groups in turn: the first of each, the second of each, and so on.

    Example: torch.channel_shuffle(arange(4.).reshape(1, 4, 1, 1), 2)
    """
    shape = input.array.shape
    if len(shape) < 3 or type(groups) is not int or groups < 1 or shape[1] % groups:
        raise shape_error(
            f"channel_shuffle(): {groups} groups do not fit the shape {tuple(shape)}",
            text=f"Number of channels must be divisible by groups. Got {shape[1]} channels and"
            f" {groups} groups."
            if len(shape) > 2 and groups and shape[1] % groups
            else None,
        )
    return _channel_shuffle.apply(input, groups)


@function("upsample_nearest", module="torch.nn.functional")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by the nearest element; its name from before.

    Example: F.upsample_nearest(arange(16.).reshape(1, 1, 4, 4), 8)
    """
    return interpolate(input, size, scale_factor)


@function("upsample_bilinear", module="torch.nn.functional")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` between four elements, with the corners aligned; its name from before.

    Example: F.upsample_bilinear(arange(16.).reshape(1, 1, 4, 4), 8)
    """
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)
