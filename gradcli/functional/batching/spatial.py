"""Batching rules of convolutions, pooling, padding and resampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.autograd.tensor import Tensor
from gradcli.functional.batching.rules import At, batching
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.definition.op import Op
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.views import reshape
from gradcli.ops.spatial.convolution import Geometry, convolution, convolution_backward

if TYPE_CHECKING:
    from gradcli.functional.batching.frame import Frame


def folded(frame: Frame, value: Tensor, rank: int) -> Tensor:
    """The values of all examples with their samples as samples of one batch: `rank` dimensions."""
    whole = frame.first(value)
    shape = whole.array.shape
    if len(shape) == rank:
        return whole
    return reshape(whole, (shape[0] * shape[1], *shape[2:]))


def unfolded(frame: Frame, value: Tensor) -> Tensor:
    """A result of samples of all examples, the examples in front."""
    shape = value.array.shape
    return reshape(value, (frame.size, shape[0] // frame.size, *shape[1:]))


_SPATIAL = {"1d": 1, "2d": 2, "3d": 3, "col": 2, "im": 2}


def _rank(op: Op) -> int:
    """The dimensions of an operand: samples, channels and those of space."""
    name = op.name.removesuffix("_backward").removesuffix("_with_indices")
    return next(count for ending, count in _SPATIAL.items() if name.endswith(ending)) + 2


_FOLDED = (
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d",
    "replication_pad2d", "replication_pad3d", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_bicubic2d",
    "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "upsample_trilinear3d", "grid_sampler_2d", "grid_sampler_3d",
)  # fmt: skip


@batching(*_FOLDED, *[f"{name}_backward" for name in _FOLDED], "im2col", "col2im")
def _fold(frame: Frame, op: Op, args: Any) -> Any:
    rank = 3 if op.name == "col2im" else _rank(op)
    first = next(arg for arg in args if type(arg) is Tensor)
    apart = first.array.ndim == rank
    result = []
    for name, arg in zip(op.parameters, args, strict=False):
        if type(arg) is Tensor:
            arg = folded(frame, arg, rank)
        elif name == "input_size":
            arg = (frame.size * arg[0], *arg[1:]) if apart else (frame.size, *arg)
        result.append(arg)
    made = op.apply(*result)
    if not apart:
        return made
    if type(made) is tuple:
        return tuple([unfolded(frame, each) for each in made])
    return unfolded(frame, made)


# --- convolution --------------------------------------------------------------------------------


def _by_groups(frame: Frame, value: Tensor, dim: int) -> Tensor:
    """The channels of all examples side by side in a dimension: each example is a group."""
    whole = movedim(frame.first(value), 0, dim)
    shape = whole.array.shape
    return reshape(whole, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _from_groups(frame: Frame, value: Tensor, dim: int) -> At:
    shape = value.array.shape
    sizes = (*shape[:dim], frame.size, shape[dim] // frame.size, *shape[dim + 1 :])
    return At(reshape(value, sizes), dim)


def _grouped(frame: Frame, geometry: Geometry) -> Geometry:
    return Geometry(
        geometry.windows, geometry.groups * frame.size, geometry.transposed, geometry.sizes
    )


@batching("convolution")
def _convolution(frame: Frame, op: Op, args: Any) -> Any:
    input, weight, bias, geometry = args
    if not frame.is_batched(weight, bias):
        shared = None if bias is None else frame.plain(bias)
        whole = folded(frame, input, input.array.ndim)
        return unfolded(frame, convolution.apply(whole, frame.plain(weight), shared, geometry))
    if not frame.is_batched(weight):
        whole = folded(frame, input, input.array.ndim)
        made = unfolded(frame, convolution.apply(whole, frame.plain(weight), None, geometry))
    else:
        operands = _by_groups(frame, input, 1), _by_groups(frame, weight, 0)
        grouped = convolution.apply(*operands, None, _grouped(frame, geometry))
        made = movedim(_from_groups(frame, grouped, 1).value, 1, 0)
        if bias is None:
            return made
    column = frame.first(bias)
    return made + reshape(column, (frame.size, 1, -1, *(1,) * (input.array.ndim - 2)))


@batching("convolution_backward")
def _convolution_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad, input, weight, geometry, mask = args
    found: list[Any] = [None, None, None]
    if mask[0] and not frame.is_batched(weight):
        rank = input.array.ndim
        whole = [folded(frame, grad, rank), folded(frame, input, rank), frame.plain(weight)]
        gradients = convolution_backward.apply(*whole, geometry, (True, False, False))
        found[0] = unfolded(frame, gradients[0])
    if mask[1] or (mask[0] and found[0] is None):
        gradients = convolution_backward.apply(
            _by_groups(frame, grad, 1),
            _by_groups(frame, input, 1),
            _by_groups(frame, weight, 0),
            _grouped(frame, geometry),
            (mask[0] and found[0] is None, mask[1], False),
        )
        if mask[0] and found[0] is None:
            found[0] = _from_groups(frame, gradients[0], 1)
        if mask[1]:
            found[1] = _from_groups(frame, gradients[1], 0)
    if mask[2]:
        dims = (1, *range(3, grad.array.ndim + 1))
        found[2] = sum_dims.apply(frame.first(grad), dims, False)
    empty = zeros(frame.first(grad), (frame.size, 0))
    return [empty if each is None else each for each in found]
