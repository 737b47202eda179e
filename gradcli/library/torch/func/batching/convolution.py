"""Batching rules of convolutions."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.batching.rules import At, batching, folded, unfolded
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.definition.op import Op
from gradcli.ops.nn.spatial.convolution import Geometry, convolution, convolution_backward
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.views import reshape


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
        output = unfolded(frame, convolution.apply(whole, frame.plain(weight), None, geometry))
    else:
        operands = _by_groups(frame, input, 1), _by_groups(frame, weight, 0)
        grouped = convolution.apply(*operands, None, _grouped(frame, geometry))
        output = movedim(_from_groups(frame, grouped, 1).value, 1, 0)
        if bias is None:
            return output
    column = frame.first(bias)
    return output + reshape(column, (frame.size, 1, -1, *(1,) * (input.array.ndim - 2)))


@batching("convolution_backward")
def _convolution_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad, input, weight, geometry, mask = args
    results: list[Any] = [None, None, None]
    if mask[0] and not frame.is_batched(weight):
        rank = input.array.ndim
        whole = [folded(frame, grad, rank), folded(frame, input, rank), frame.plain(weight)]
        gradients = convolution_backward.apply(*whole, geometry, (True, False, False))
        results[0] = unfolded(frame, gradients[0])
    if mask[1] or (mask[0] and results[0] is None):
        gradients = convolution_backward.apply(
            _by_groups(frame, grad, 1),
            _by_groups(frame, input, 1),
            _by_groups(frame, weight, 0),
            _grouped(frame, geometry),
            (mask[0] and results[0] is None, mask[1], False),
        )
        if mask[0] and results[0] is None:
            results[0] = _from_groups(frame, gradients[0], 1)
        if mask[1]:
            results[1] = _from_groups(frame, gradients[1], 0)
    if mask[2]:
        dims = (1, *range(3, grad.array.ndim + 1))
        results[2] = sum_dims.apply(frame.first(grad), dims, False)
    empty = zeros(frame.first(grad), (frame.size, 0))
    return [empty if each is None else each for each in results]
