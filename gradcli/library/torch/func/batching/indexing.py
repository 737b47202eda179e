"""Batching rules of indexing, and of `x[key]` where the key differs from example to example."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.batching.rules import At, batching, behind
from gradcli.library.torch.func.batching.shapes import rows
from gradcli.ops.binding.arguments import checked_values
from gradcli.ops.binding.functions import operators
from gradcli.ops.creation.copies import clone
from gradcli.ops.definition.op import Op
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.indexing.basic import FULL, Key, positions_from_front
from gradcli.ops.indexing.gather import gather, scatter_add, scatter_number, scatter_tensor
from gradcli.ops.indexing.select import index_select
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.views import expand, reshape, unsqueeze, view
from gradcli.state import active

# --- the same positions for all examples --------------------------------------------------------


def _key(indices: Key) -> Key:
    """The key behind the dimension of examples."""
    key = Key((FULL, *indices))
    key.parts = ((None, 0), *indices.parts)
    return key


def _apart(indices: Key) -> int:
    """How many dimensions the positions put in front, where they do not stay in their place."""
    dims = [dim for dim, part in enumerate(indices) if type(part) is not slice]
    if dims[-1] - dims[0] == len(dims) - 1:
        return 0
    return np.broadcast(*[indices[dim] for dim in dims]).ndim


@batching("index")
def _index(frame: Frame, op: Op, args: Any) -> Any:
    self, indices = args
    return At(op.apply(frame.first(self), _key(indices)), _apart(indices))


@batching("index_put", "index_put_", "_index_put_impl")
def _index_put(frame: Frame, op: Op, args: Any) -> Any:
    self, values, indices, accumulate = args
    whole = frame.first(self)
    if op.name != "index_put":  # it writes to its operand: expanded memory is not the examples' own
        whole = whole if frame.is_batched(self) else clone.apply(whole)
    arrays = [part for part in indices if type(part) is not slice]
    ndim = self.array.ndim - len(arrays) + max([part.ndim for part in arrays])
    if frame.is_batched(values):
        values = movedim(behind(frame.first(values), ndim + 1), 0, _apart(indices))
    elif _apart(indices):
        values = unsqueeze.apply(behind(frame.plain(values), ndim, 0), _apart(indices))
    else:
        values = frame.plain(values)
    return op.apply(whole, values, _key(indices), accumulate)


# --- positions along one dimension --------------------------------------------------------------


def _along(frame: Frame, index: Tensor, like: Tensor, dim: int) -> Tensor:
    """Positions of parts, one row for each example, as positions of elements of `like`."""
    whole = rows(frame, index)
    sizes = [1] * like.array.ndim
    sizes[0], sizes[dim] = whole.array.shape
    shape = list(like.array.shape)
    shape[dim] = sizes[dim]
    return expand.apply(view.apply(whole, tuple(sizes)), tuple(shape))


@batching("index_select")
def _index_select(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index = args
    if not frame.is_batched(index):
        whole = frame.first(self)
        if not self.array.ndim:
            return op.apply(unsqueeze.apply(whole, 1), 1, frame.plain(index))
        return op.apply(whole, dim + 1, frame.plain(index))
    if not frame.is_batched(self) and self.array.ndim:
        shared = frame.plain(self)
        flat = index_select.apply(shared, dim, reshape(frame.first(index), (-1,)))
        shape = shared.array.shape
        count = index.array.size
        return At(view.apply(flat, (*shape[:dim], frame.size, count, *shape[dim + 1 :])), dim)
    whole = frame.first(self)
    if not self.array.ndim:
        return expand.apply(whole, (frame.size,))
    return gather.apply(whole, dim + 1, _along(frame, index, whole, dim + 1))


@batching("index_add")
def _index_add(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index, source, alpha = (*args, 1)[:5]
    whole, parts = frame.first(self), frame.first(source)
    if not self.array.ndim:
        whole, parts = unsqueeze.apply(whole, 1), reshape(parts, (frame.size, -1))
    if not frame.is_batched(index):
        result = op.apply(whole, dim + 1, frame.plain(index), parts, alpha)
    else:
        parts = parts if alpha == 1 else parts * alpha
        result = scatter_add.apply(whole, dim + 1, _along(frame, index, parts, dim + 1), parts)
    return result if self.array.ndim else view.apply(result, (frame.size,))


@batching("index_copy")
def _index_copy(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index, source = args
    whole, parts = frame.first(self), frame.first(source)
    if not self.array.ndim:
        return reshape(parts, (frame.size,))
    if not frame.is_batched(index):
        return op.apply(whole, dim + 1, frame.plain(index), parts)
    return scatter_tensor.apply(whole, dim + 1, _along(frame, index, parts, dim + 1), parts)


@batching("index_fill", "index_fill.IndexFillBackward1")
def _index_fill(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index, value = args
    if self.array.ndim and not frame.is_batched(index, value):
        return op.apply(frame.first(self), dim + 1, frame.plain(index), frame.plain(value))
    whole = frame.first(self)
    if not self.array.ndim:
        whole = unsqueeze.apply(whole, 1)
    at = _along(frame, index, whole, dim + 1)
    mask = scatter_number.apply(Tensor(np.zeros(whole.array.shape, np.bool_)), dim + 1, at, True)
    if frame.is_batched(value):
        value = view.apply(frame.first(value), (frame.size, *(1,) * (whole.array.ndim - 1)))
    result = where(mask, frame.plain(value), whole)
    return result if self.array.ndim else view.apply(result, (frame.size,))


@batching("take")
def _take(frame: Frame, op: Op, args: Any) -> Any:
    self, index = args
    if not frame.is_batched(self):
        return op.apply(frame.plain(self), frame.first(index))
    positions = frame.first(index)
    size = self.array.size
    positions = where(positions < 0, positions + size, positions)
    flat = reshape(positions, (frame.size, index.array.size))
    return view.apply(gather.apply(rows(frame, self), 1, flat), positions.array.shape)


# --- embedding ----------------------------------------------------------------------------------


def _offset(frame: Frame, indices: Tensor, count: int) -> Tensor:
    """Rows of a table for each example, as rows of all tables one after another."""
    whole = frame.first(indices)
    steps = np.arange(frame.size, dtype=np.int64) * count
    return whole + Tensor(steps.reshape(-1, *(1,) * (whole.array.ndim - 1)))


@batching("embedding")
def _embedding(frame: Frame, op: Op, args: Any) -> Any:
    weight, indices, padding_idx, scaled = args
    if not frame.is_batched(weight):
        return op.apply(frame.plain(weight), frame.first(indices), padding_idx, scaled)
    count, width = weight.array.shape
    tables = reshape(frame.first(weight), (frame.size * count, width))
    return op.apply(tables, _offset(frame, indices, count), -1, False)


@batching("embedding_dense_backward")
def _embedding_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad_output, indices, count, padding_idx, scaled = args
    grad = frame.first(grad_output)
    if padding_idx >= 0:
        kept = frame.first(indices) != padding_idx
        grad = grad * unsqueeze.apply(kept, kept.array.ndim)
    rows = op.apply(grad, _offset(frame, indices, count), frame.size * count, -1, scaled)
    return view.apply(rows, (frame.size, count, grad_output.array.shape[-1]))


# --- x[key] -------------------------------------------------------------------------------------


def picked_by_examples(shown: Tensor, picked: dict[int, Any]) -> Tensor:
    """The elements of a tensor at positions that differ from example to example, by dimension."""
    shape = shown.array.shape
    dims = list(picked)
    neighbours = dims[-1] - dims[0] == len(dims) - 1
    place = dims[0] if neighbours else 0
    flat, ndim = flat_positions(shape, picked)
    count = 1
    for dim in dims:
        count *= shape[dim]
    rest = [size for dim, size in enumerate(shape) if dim not in dims]
    front = movedim(shown, tuple(dims), tuple(range(len(dims))))
    parts = index_select.apply(reshape(front, (count, *rest)), 0, reshape(flat, (flat.array.size,)))
    elements = reshape(parts, (*flat.array.shape, *rest))
    return (
        movedim(elements, tuple(range(ndim)), tuple(range(place, place + ndim)))
        if place
        else elements
    )


def put_by_examples(frame: Frame, shown: Tensor, picked: dict[int, Any], value: Tensor) -> None:
    """Write values to positions that differ from example to example.

    Raises E405 where all examples share the tensor, E205 where a transform inside differentiates.
    """
    if not frame.is_batched(shown):
        raise GradcliError("E405", "vmap: index_put_ writes examples to a tensor that all share")
    if active.state.grad_enabled and (shown.requires_grad or value.requires_grad):
        raise GradcliError("E205", "vmap: positions of each example cannot be written inside grad")
    dims = list(picked)
    front = movedim(frame.first(shown), tuple(d + 1 for d in dims), tuple(range(1, len(dims) + 1)))
    positions = [frame.first(frame.wrapped(as_tensor(array))) for array in picked.values()]
    ndim = max(each.array.ndim for each in positions)
    counted = Tensor(np.arange(frame.size).reshape(-1, *(1,) * (ndim - 1)))
    key = (counted, *[behind(each, ndim) for each in positions])
    values = frame.plain(value)
    if frame.is_batched(value):
        values = behind(frame.first(value), ndim + front.array.ndim - len(dims) - 1)
    operators.setitem(front, key, values)


def flat_positions(shape: tuple[int, ...], picked: dict[int, Any]) -> tuple[Tensor, int]:
    """Positions in several dimensions as positions in one, and how many dimensions they have."""
    total: Any = 0
    for dim, array in picked.items():
        index = as_tensor(array)
        extent = shape[dim]
        checked_values(positions_from_front, index.array, extent, dim)
        total = total * extent + where(index < 0, index + extent, index)
    return total, total.array.ndim


def as_tensor(array: Any) -> Tensor:
    """A tensor of an array, which may be batched."""
    if type(array) is not BatchedArray:
        return Tensor(array)
    tensor: Tensor = object.__new__(Tensor)
    tensor.array = array
    tensor.requires_grad = False
    tensor.grad_fn = tensor.storage = tensor.meta = None
    tensor.output_nr = 0
    return tensor
