"""Whole parts along one dimension, by a vector of positions: `index_select index_add index_copy
index_fill`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.conversion import checked_cast
from gradcli.arrays.strides import copied_in_order
from gradcli.autograd.inplace import check_distinct, check_graph, write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arguments import check_tensors
from gradcli.ops.arithmetic import zeros
from gradcli.ops.catalogue import function, method, refuse_out
from gradcli.ops.dimensions import normal_dim
from gradcli.ops.entry import Op, op
from gradcli.ops.gathering import check_range, checked_index, positions_along, same_dtype
from gradcli.ops.indexing import add_at
from gradcli.ops.operands import wrong_operand
from gradcli.ops.shape import expand

Sizes = tuple[int, ...]


def part_positions(shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """The flat positions of whole parts of an array along a dimension."""
    sizes = [1] * len(shape)
    sizes[dim] = index.size
    places = list(shape)
    places[dim] = index.size
    return positions_along(shape, dim, np.broadcast_to(index.reshape(sizes), places))


def _select_parts(self: Any, dim: int, index: Any) -> Any:
    return np.take(self, index.reshape(-1), dim) if self.ndim else self.copy()


index_select: Op = op(
    "index_select",
    "IndexSelectBackward0",
    lambda self, dim, index: _select_parts(self, dim, index),
    constant=("index",),
    self=lambda grad, self_sizes, dim, index: index_add(zeros(grad, self_sizes), dim, index, grad),
)


def _add_parts(self: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    whole = module_of(self).array(self, order="C")
    values = source if alpha == 1 else source * alpha
    if not whole.ndim:
        return whole + values.sum()
    add_at(whole, part_positions(whole.shape, dim, index), values)
    return whole


def _added_rule(grad: Any, dim: int, index: Any, source: Any, alpha: Any) -> Any:
    # The source is kept as PyTorch keeps it: see `gather`.
    parts = expand(index_select(grad, dim, index), source.shape)
    return parts if alpha == 1 else parts * alpha


index_add: Op = op(
    "index_add",
    "IndexAddBackward0",
    _add_parts,
    constant=("index",),
    self=lambda grad: grad,
    source=_added_rule,
)


def _copy_parts(self: Any, dim: int, index: Any, source: Any) -> Any:
    whole = module_of(self).array(self, order="C")
    if whole.ndim:
        whole.reshape(-1)[part_positions(whole.shape, dim, index)] = source
    else:
        whole[...] = source.reshape(())
    return whole


index_copy: Op = op(
    "index_copy",
    "IndexCopyBackward0",
    _copy_parts,
    constant=("index",),
    self=lambda grad, dim, index: index_fill_number(grad, dim, index, 0),
    source=lambda grad, dim, index, source: expand(index_select(grad, dim, index), source.shape),
)


def _fill_parts(self: Any, dim: int, index: Any, value: Any) -> Any:
    whole = copied_in_order(self)
    if whole.ndim:
        np.moveaxis(whole, dim, 0)[index.reshape(-1)] = value
    elif index.size:
        whole[...] = value
    return whole


index_fill_number: Op = op(
    "index_fill",
    "IndexFillBackward0",
    _fill_parts,
    constant=("index",),
    keeps_layout=True,
    self=lambda grad, dim, index: index_fill_number(grad, dim, index, 0),
)


def _unique(index: Any) -> Any:
    if type(index) is Tensor:
        return Tensor(np.unique(index.array))
    return np.unique(index)


index_fill_tensor: Op = op(
    "index_fill",
    "IndexFillBackward1",
    _fill_parts,
    constant=("index",),
    keeps_layout=True,
    self=lambda grad, dim, index: index_fill_number(grad, dim, index, 0),
    # A part that is filled twice counts once. The engine sums to the value's shape, 0-dim.
    value=lambda grad, dim, index: index_select(grad, dim, _unique(index)),
)


def _checked_parts(name: str, tensor: Tensor, dim: int, index: Any, raises: str) -> int:
    """The dimension counted from the front; raises E202, E203 or E302 unless the index is a vector
    of positions in it.
    """
    check_tensors(name, input=tensor, index=index)
    at = normal_dim(name, dim, tensor.array.ndim)
    if index.array.ndim > 1:
        raise GradcliError("E302", f"{name}(): the index must be a vector")
    checked_index(name, index)
    extent = tensor.array.shape[at] if tensor.array.ndim else 1
    check_range(name, index.array, extent, at, raises)
    return at


@function("index_select", method=True)
def index_select_(input: Tensor, dim: int, index: Any, *, out: Any = None) -> Tensor:
    """The parts at the given positions of a dimension. Raises E302 for one that does not exist."""
    refuse_out("index_select", out)
    check_tensors("index_select", input=input)
    # PyTorch selects along dimension 1 by another route, which has its own error.
    other_route = dim in (1, 1 - input.array.ndim) or not input.array.size
    raises = "RuntimeError" if other_route else "IndexError"
    at = _checked_parts("index_select", input, dim, index, raises)
    return index_select.apply(input, at, index)


def checked_source(name: str, input: Tensor, dim: int, index: Any, source: Any, raises: str) -> int:
    """The dimension counted from the front; raises E202, E203, E301 or E302 unless the source gives
    a part for each position of the index.
    """
    if not isinstance(source, Tensor):
        raise wrong_operand(index_add, "source", source)
    normal_dim(name, dim, input.array.ndim)
    same_dtype(name, input, source)
    at = _checked_parts(name, input, dim, index, raises)
    wanted = list(input.array.shape)
    if wanted:
        wanted[at] = index.array.size
    if list(source.array.shape) != wanted and source.array.size != 1:
        raise GradcliError(
            "E301",
            f"{name}(): a source of shape {tuple(source.array.shape)} does not give"
            f" {index.array.size} parts of {tuple(input.array.shape)} along dimension {at}",
        )
    return at


@function("index_add", method=True, inplace=True, check=check_distinct)
def index_add_(input: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """The tensor with `alpha` times the parts of the source added at the positions of the index."""
    check_tensors("index_add", input=input)
    raises = "RuntimeError" if input.array.ndim == 2 else "IndexError"
    at = checked_source("index_add", input, dim, index, source, raises)
    return index_add.apply(input, at, index, source, alpha)


@function("index_copy", method=True, inplace=True, check=check_distinct)
def index_copy_(input: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """The tensor with the parts of the source at the positions of the index."""
    if type(index) is Tensor and index.dtype is dtypes.int32:
        raise GradcliError(
            "E203", "index_copy(): the index must be torch.int64", help="use `.long()`"
        )
    at = checked_source("index_copy", input, dim, index, source, "IndexError")
    return index_copy.apply(input, at, index, source)


@function("index_fill", method=True)
def index_fill(input: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """The tensor with a number, or a 0-dim tensor's, at the positions of the index."""
    check_tensors("index_fill", input=input, index=index)
    if index.array.dtype != np.int64:
        raise GradcliError(
            "E203",
            f"index_fill(): the index must be torch.int64, and this one is {index.dtype}",
            raises="IndexError",
        )
    at = normal_dim("index_fill", dim, input.array.ndim)
    extent = input.array.shape[at] if input.array.ndim else 1
    wrapped = np.where(index.array < 0, index.array + extent, index.array)
    check_range("index_fill", wrapped, extent, at, "IndexError")
    if not isinstance(value, Tensor):
        value = checked_cast(value, input.dtype)
        return index_fill_number.apply(input, at, index, value)
    if value.array.ndim:
        raise GradcliError(
            "E301", f"index_fill(): the value must be 0-dim, not of {value.array.ndim} dimensions"
        )
    return index_fill_tensor.apply(input, at, index, value)


@method("index_fill_")
def index_fill_(self: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """Write a number, or a 0-dim tensor's, at the positions of the index."""
    # The value is read before the write, so it may be one of the elements written.
    check_graph(self)
    write(self, index_fill(self, dim, index, value))
    return self
