"""Batching rules of reductions to one number, of views that take sizes, and of joining."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.layout.strides import strides_of
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.batching.rules import aligned, batching, behind, leading, shifted
from gradcli.ops.creation.copies import clone, copied, row_order
from gradcli.ops.definition.op import Op, registry
from gradcli.ops.elementwise.comparison import choose
from gradcli.ops.linalg.norms import vector_norm
from gradcli.ops.reduction.cumulative import prod_dim
from gradcli.ops.reduction.extrema import amax, amin
from gradcli.ops.reduction.sum import mean_dims, sum_dims
from gradcli.ops.shape.slicing import alias, diagonal
from gradcli.ops.shape.views import expand, permute, reshape, transpose, view

# --- reductions of all elements -----------------------------------------------------------------


def rows(frame: Frame, value: Tensor) -> Tensor:
    """Each example as one row."""
    whole = frame.first(value)
    return reshape(whole, (frame.size, value.array.size))


@batching("sum", "mean")
def _sum(frame: Frame, op: Op, args: Any) -> Any:
    along = sum_dims if op.name == "sum" else mean_dims
    dims = tuple(range(1, args[0].array.ndim + 1))
    return along.apply(frame.first(args[0]), dims, False, *args[1:])


@batching("prod")
def _prod(frame: Frame, op: Op, args: Any) -> Any:
    dtype = args[1] if len(args) > 1 else None
    return prod_dim.apply(rows(frame, args[0]), 1, False, dtype)


@batching("max", "min")
def _extreme(frame: Frame, op: Op, args: Any) -> Any:
    return (amax if op.name == "max" else amin).apply(rows(frame, args[0]), (1,), False)


@batching("median", "nanmedian")
def _median(frame: Frame, op: Op, args: Any) -> Any:
    along = registry[f"{op.name}.{op.name.capitalize()}Backward1"]
    return along.apply(rows(frame, args[0]), 1, False)[0]


@batching("argmax", "argmin")
def _argmax(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, keepdim = args
    if dim is not None and self.array.ndim:
        return leading(frame, op, args)
    positions = op.apply(rows(frame, self), 1, False)
    return reshape(positions, (frame.size, *(1,) * self.array.ndim)) if keepdim else positions


@batching("norm")
def _norm(frame: Frame, op: Op, args: Any) -> Any:
    self, p, dim, keepdim = args
    return op.apply(frame.first(self), p, shifted(dim, self.array.ndim), keepdim)


@batching("trace")
def _trace(frame: Frame, op: Op, args: Any) -> Any:
    ndim = args[0].array.ndim
    if ndim != 2:
        text = f"trace: expected a matrix, but got tensor with dim {ndim}"
        raise shape_error(f"trace() takes a matrix, and an example has {ndim} dimensions", text)
    return sum_dims.apply(diagonal.apply(frame.first(args[0]), 0, 1, 2), (1,), False)


# --- views --------------------------------------------------------------------------------------


@batching("expand")
def _expand(frame: Frame, op: Op, args: Any) -> Any:
    self, size = args
    return expand.apply(behind(frame.first(self), len(size) + 1), (frame.size, *size))


@batching("repeat")
def _repeat(frame: Frame, op: Op, args: Any) -> Any:
    self, repeats = args
    return op.apply(behind(frame.first(self), len(repeats) + 1), (1, *repeats))


@batching("permute")
def _permute(frame: Frame, op: Op, args: Any) -> Any:
    self, dims = args
    ndim = self.array.ndim
    return permute.apply(frame.first(self), (0, *[dim % ndim + 1 for dim in dims]))


@batching("t", "t_")
def _t(frame: Frame, op: Op, args: Any) -> Any:
    (self,) = args
    whole = frame.first(self)
    return transpose.apply(whole, 1, 2) if self.array.ndim == 2 else alias.apply(whole)


@batching("transpose", "transpose_")
def _transpose(frame: Frame, op: Op, args: Any) -> Any:
    if not args[0].array.ndim:
        return alias.apply(frame.first(args[0]))
    return leading(frame, op, args)


@batching("as_strided", "as_strided_")
def _as_strided(frame: Frame, op: Op, args: Any) -> Any:
    self, size, stride, offset = args[:4]
    whole = frame.first(self)
    steps = tuple(strides_of(whole.array))
    return op.apply(whole, (frame.size, *size), (steps[0], *stride), offset, steps)


@batching("as_strided_scatter")
def _as_strided_scatter(frame: Frame, op: Op, args: Any) -> Any:
    self, src, size, stride, offset = args
    whole = row_order.apply(frame.first(self))
    steps = (strides_of(whole.array)[0], *stride)
    return op.apply(whole, frame.first(src), (frame.size, *size), steps, offset)


@batching("roll")
def _roll(frame: Frame, op: Op, args: Any) -> Any:
    self, shifts, dims = args
    if dims is not None:
        return op.apply(frame.first(self), shifts, shifted(dims, self.array.ndim))
    rolled = op.apply(rows(frame, self), (shifts,), (1,))
    return view.apply(rolled, (frame.size, *self.array.shape))


@batching("rot90")
def _rot90(frame: Frame, op: Op, args: Any) -> Any:
    self, k, dims = args
    return op.apply(frame.first(self), k, shifted(dims, self.array.ndim))


@batching("diagonal_copy")
def _diagonal_copy(frame: Frame, op: Op, args: Any) -> Any:
    self, offset = args
    whole = diagonal.apply(frame.first(self), offset, 1, 2)
    return clone.apply(whole)


# --- joining ------------------------------------------------------------------------------------


@batching("cat", "stack")
def _join(frame: Frame, op: Op, args: Any) -> Any:
    tensors, dim = args
    ndim = max(tensor.array.ndim for tensor in tensors)
    wholes = [frame.first(tensor) for tensor in tensors]
    if op.name == "cat":
        # An empty vector goes with any shape, and has no part.
        pairs = zip(wholes, tensors, strict=True)
        full = [whole for whole, each in pairs if each.array.shape != (0,)]
        wholes = full or wholes
    return op.apply(wholes, shifted(dim, ndim + (op.name == "stack")))


# --- copies -------------------------------------------------------------------------------------


@batching("copy", "fill", "fill.FillBackward0", "fill.FillBackward1", "fill.FillBackward3")
def _filled(frame: Frame, op: Op, args: Any) -> Any:
    self, source, *rest = args
    whole = frame.first(self)
    if type(source) is not Tensor:
        return op.apply(whole, source, *rest)
    if frame.is_batched(source):
        source = behind(frame.first(source), whole.array.ndim)
    else:
        source = behind(frame.plain(source), whole.array.ndim, 0)
    return copied.apply(whole, expand.apply(source, whole.array.shape))


@batching("masked_fill", "masked_fill.MaskedFillBackward1")
def _masked_fill(frame: Frame, op: Op, args: Any) -> Any:
    self, mask, value = args
    if frame.is_batched(value):
        return aligned(frame, choose, (mask, value, self))
    ndim = self.array.ndim
    if frame.is_batched(mask):
        whole = behind(frame.first(mask), ndim + 1)
    else:
        whole = behind(frame.plain(mask), ndim + 1, 0)
    return op.apply(frame.first(self), whole, frame.plain(value))


@batching(
    "bernoulli", "bernoulli.NotImplemented", "bernoulli_", "bernoulli_.BernoulliBackward1",
    "uniform", "normal_", "exponential", "random", "random.RandomBackward1",
    "random.RandomBackward2",
)  # fmt: skip
def _drawn(frame: Frame, op: Op, args: Any) -> Any:
    self, values = args
    if type(values) is BatchedArray and values.level == frame.level:
        return op.apply(frame.first(self), values.value.array)
    shape = frame.first(self).array.shape
    return op.apply(frame.first(self), np.broadcast_to(values, shape))


@batching("complex", "polar", "isclose")
def _pair(frame: Frame, op: Op, args: Any) -> Any:
    first, second, *rest = args
    pair = [frame.first(first), frame.first(second)]
    ndim = max(each.array.ndim for each in pair)
    return op.apply(*[behind(each, ndim) for each in pair], *rest)


def broadcast_first(frame: Frame, *operands: Tensor) -> list[Tensor]:
    """Operands of all examples, expanded to one shape."""
    ndim = max(operand.array.ndim for operand in operands)
    whole = [behind(frame.first(operand), ndim + 1) for operand in operands]
    sizes = [max(column) for column in zip(*[w.array.shape for w in whole], strict=True)]
    return [expand.apply(w, tuple(sizes)) for w in whole]


@batching("dist")
def _dist(frame: Frame, op: Op, args: Any) -> Any:
    self, other, p = args
    one, two = broadcast_first(frame, self, other)
    difference = one - two
    dims = tuple(range(1, difference.array.ndim))
    return vector_norm.apply(difference, p, dims, False, None)
