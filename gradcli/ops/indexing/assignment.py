"""Writing to a part of a tensor: `y[0] = v`, `y[mask] = 0`, `index_put_`, `select_scatter`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import copied_as_it_lies, overlaps_itself
from gradcli.arrays.scalars import as_zero_dim
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.inplace.writes import check_apart, check_graph, check_parts, write
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import GradcliError, dtype_error, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import normal_dim
from gradcli.ops.binding.catalogue import function, operators
from gradcli.ops.codegen.node_class import Key
from gradcli.ops.codegen.runtime import check_tensor, type_name
from gradcli.ops.creation.copies import copy_, fill_
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Function, Op, op
from gradcli.ops.indexing.along import leave_part
from gradcli.ops.indexing.basic import (
    apply_slicing,
    getitem,
    index_put,
    index_put_in_place,
    numpy_key,
)
from gradcli.ops.shape.slicing import (
    diagonal,
    diagonal_dims,
    diagonal_of,
    select,
    selected_position,
    slice_op,
)
from gradcli.ops.shape.views import expand, unsqueeze, view
from gradcli.state import active

# --- y[...] = value -----------------------------------------------------------------------------


def setitem(tensor: Tensor, key: Any, value: Any) -> None:
    """`tensor[key] = value`: write to the part that the key shows.

    The part is a view, and the write is that view's `copy_` or `fill_`; where the key holds lists,
    masks or index tensors it is `index_put_`. Raises what `getitem` raises; E202 for a value that
    is neither a number nor a tensor, E204 for a number that the dtype cannot hold, E301 for a
    tensor whose shape does not fit, E203 where an index would need a cast, and E405 where the
    tensor may not be written.
    """
    if isinstance(value, (bool, int, float, complex)):
        value = Tensor(as_zero_dim(value, tensor.dtype))
    elif not isinstance(value, Tensor):
        raise type_error(
            f"a value of type {type_name(value)} cannot be assigned to a part of a tensor",
            text=f"can't assign a {type_name(value)} to a torch.{tensor.dtype.scalar_type}Tensor",
            help="wrap it: `tensor(...)`",
        )
    kind = type(key)
    if kind is int or key is None:
        _copy_to(getitem(tensor, key), value)
    elif kind is bool:
        if key:
            _copy_to(unsqueeze.apply(tensor, 0), value)
    else:
        shown, picked = apply_slicing(tensor, (key,) if kind is slice else key)
        if not picked:
            _copy_to(shown, value)
            return
        if active.state.batch is not None and BatchedArray in map(type, picked.values()):
            active.state.batch.put(shown, picked, value)
            return
        fills = _fills(picked, value)
        if fills and not value.requires_grad and type(value.array) is not BatchedArray:
            value = Tensor(as_zero_dim(value.array.item(), shown.dtype))
        parts = key if type(key) is tuple else (key,)
        indices = [part for part in parts if type(part) is Tensor and part.array.ndim]
        if fills:  # PyTorch fills by the mask itself, which may be what it fills
            check_parts(shown, *indices)
        else:
            check_apart(shown, *indices)
        _check_written(shown, value)
        try:
            key = numpy_key(picked, shown, key)
        except GradcliError:
            _put_reached(shown, picked, value)
            raise
        shape = value.array.shape
        cut = _leading_ones_cut(shape)
        _put(shown, key, value if cut == shape else view.apply(value, cut), any_dtype=fills)


operators["[]="] = setitem


def _fills(picked: dict[int, Any], value: Tensor) -> bool:
    """Whether one element is put where a mask is true: PyTorch fills, which takes any dtype."""
    if value.array.size != 1 or len(picked) != 1:
        return False
    return bool(next(iter(picked.values())).dtype == np.bool_)


def _leading_ones_cut(shape: tuple[int, ...]) -> tuple[int, ...]:
    first = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[first:])


def _copy_to(part: Tensor, value: Tensor) -> None:
    """Write a value to a view, with the nodes that PyTorch makes on the way."""
    shape = part.array.shape
    if value.array.shape == shape:
        copy_(part, value)
    elif not value.array.ndim:
        fill_(part, value)
    else:
        cut = view.apply(value, _leading_ones_cut(value.array.shape))
        if cut.array.shape != shape:
            cut = expand.apply(cut, shape)
        copy_(part, cut)


def _check_written(tensor: Tensor, *operands: Any) -> None:
    """Raise E405 unless the values may be put into the tensor at the indices: PyTorch checks that
    before it looks at the index.
    """
    check_apart(tensor, *operands)
    check_graph("index_put_", tensor)


def _put(
    tensor: Tensor, key: Key, values: Tensor, accumulate: bool = False, any_dtype: bool = False
) -> None:
    _check_values(tensor, key, values, any_dtype)
    storage_of(tensor)
    write(tensor, index_put_in_place.apply(tensor, values, key, accumulate))


def _put_reached(tensor: Tensor, picked: dict[int, Any], values: Tensor) -> None:
    """Write what PyTorch has written when it comes to a position that does not exist, where one
    tensor of positions is the index: see `leave_part`.
    """
    (dim, positions), *others = picked.items()
    shape = tensor.array.shape
    whole = (*shape[:dim], *positions.shape, *shape[dim + 1 :])
    if others or positions.dtype == np.bool_:
        return
    # The values are checked first.
    anywhere = Key((*[slice(None)] * dim, np.zeros(positions.shape, np.int64)))
    _check_values(tensor, anywhere, values)
    outside = (positions < -shape[dim]) | (positions >= shape[dim])
    reached = positions.reshape(-1)[: int(np.argmax(outside))]
    parts = np.broadcast_to(values.array, whole).reshape(
        *shape[:dim], positions.size, *shape[dim + 1 :]
    )
    leave_part(tensor, dim, reached, parts)


def _check_values(tensor: Tensor, key: Key, values: Tensor, any_dtype: bool = False) -> None:
    """Raise E203 or E301 unless the values can be put at an index of the tensor."""
    if values.array.dtype is not tensor.array.dtype and not any_dtype:
        raise dtype_error(
            f"values of {values.dtype} cannot be put at an index of a tensor of {tensor.dtype}",
            text="Index put requires the source and destination dtypes match, got"
            f" {tensor.dtype.scalar_type} for the destination and {values.dtype.scalar_type} for"
            " the source.",
            help=f"cast them first: `.to({tensor.dtype})`",
        )
    blank = module_of(tensor.array).zeros((), bool)
    shape = np.broadcast_to(blank, tensor.array.shape)[key].shape
    try:
        fits = np.broadcast_shapes(shape, values.array.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise shape_error(
            f"values of shape {tuple(values.array.shape)} do not fit the indexed part, of shape"
            f" {tuple(shape)}",
            text=f"shape mismatch: value tensor of shape {list(values.array.shape)} cannot be"
            f" broadcast to indexing result of shape {list(shape)}",
        )


# --- index_put ----------------------------------------------------------------------------------


def _key_of(name: str, tensor: Tensor, indices: Any, values: Any, accumulate: bool) -> Key:
    """The index that a sequence of tensors means; checks it and the values, of which one alone may
    have any dtype where a mask takes it.
    """
    if not isinstance(indices, (tuple, list)):
        raise type_error(f"{name}(): the indices must be a tuple of tensors")
    for number, part in enumerate(indices):
        if not isinstance(part, Tensor):
            raise type_error(f"{name}(): index {number} must be a tensor, not {type_name(part)}")
    check_tensor(index_put, "values", values)
    # A 0-dim index would drop its dimension; as a vector of one it broadcasts with the others.
    parts = tuple(part if part.array.ndim else Tensor(part.array.reshape(1)) for part in indices)
    shown, picked = apply_slicing(tensor, parts)
    try:
        key = numpy_key(picked, shown, parts)
    except GradcliError:
        if name == "index_put_" and not accumulate:
            _put_reached(shown, picked, values)
        raise
    _check_values(tensor, key, values, _fills(picked, values) and not accumulate)
    return key


@function("index_put", method=True)
def index_put_function(
    input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """The tensor with the values at an index, a tuple of index tensors, or added there.

    Example: torch.index_put(tensor([[2., 1.], [1., 3.]]), (tensor([0]), tensor([1])), tensor([5.]))
    """
    key = _key_of("index_put", input, indices, values, accumulate)
    return index_put.apply(input, values, key, accumulate)


@function("index_put_", method=True)
def put_in_place(
    input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Write the values at an index of the tensor itself, or add them there."""
    parts = indices if isinstance(indices, (tuple, list)) else ()
    _check_written(input, values, *parts)
    key = _key_of("index_put_", input, indices, values, accumulate)
    _put(input, key, values, accumulate, any_dtype=True)
    return input


# --- a copy with one part replaced --------------------------------------------------------------


def _whole_copy(array: Any) -> Any:
    """A copy with the array's own strides; where its elements share their memory, by rows."""
    if not array.ndim or overlaps_itself(array.shape, array.strides):
        return module_of(array).array(array, order="C")
    return copied_as_it_lies(array)


def _part_of(shown: Function) -> Function:
    """The forward function that replaces the part of a copy that `shown` gives."""

    def replaced(self: Any, src: Any, *bounds: Any) -> Any:
        whole = _whole_copy(self)
        shown(whole, *bounds)[...] = src
        return whole

    return replaced


_select_replaced = _part_of(select.forward)
_slice_replaced = _part_of(slice_op.forward)
_diagonal_replaced = _part_of(diagonal_of)

_select_scatter: Op = op(
    "select_scatter",
    lambda self, src, dim, index: _select_replaced(self, src, dim, index),
    keeps_layout=True,
    self=lambda grad, src_sizes, dim, index: _select_scatter(
        grad, zeros(grad, src_sizes), dim, index
    ),
    src=select,
    numpy="""\
def selected_replaced(x, values, axis, index):
    x = np.array(x)
    x[(slice(None),) * (axis % x.ndim) + (index,)] = values
    return x
""",
    raises=BY_KINDS,
)

_slice_scatter: Op = op(
    "slice_scatter",
    lambda self, src, dim, start, end, step: _slice_replaced(self, src, dim, start, end, step),
    keeps_layout=True,
    self=lambda grad, src_sizes, dim, start, end, step: _slice_scatter(
        grad, zeros(grad, src_sizes), dim, start, end, step
    ),
    src=slice_op,
    numpy="""\
def slice_replaced(x, values, axis, start, end, step=1):
    x = np.array(x)
    x[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)] = values
    return x
""",
    raises=BY_KINDS,
)

_diagonal_scatter: Op = op(
    "diagonal_scatter",
    lambda self, src, offset, dim1, dim2: _diagonal_replaced(self, src, offset, dim1, dim2),
    keeps_layout=True,
    self=lambda grad, src_sizes, offset, dim1, dim2: _diagonal_scatter(
        grad, zeros(grad, src_sizes), offset, dim1, dim2
    ),
    src=diagonal,
    numpy="""\
def diagonal_replaced(x, values, offset=0, axis1=0, axis2=1):
    x = np.moveaxis(np.array(x), (axis1, axis2), (-2, -1))
    i = np.arange(values.shape[-1])
    x[..., i + max(-offset, 0), i + max(offset, 0)] = values
    return np.moveaxis(x, (-2, -1), (axis1, axis2))
""",
    raises=BY_KINDS,
)


def _replaced(
    entry: Op, input: Tensor, src: Any, part: Function, bounds: tuple[Any, ...]
) -> Tensor:
    check_tensor(entry, "src", src)
    shape = part(input.array, *bounds).shape
    if src.array.shape != shape:
        raise shape_error(
            f"{entry.name}(): a source of shape {tuple(src.array.shape)} for a part of shape"
            f" {tuple(shape)}",
            text="expected src to have a size equal to the slice of self. src size ="
            f" {list(src.array.shape)}, slice size = {list(shape)}",
        )
    return entry.apply(input, src, *bounds)


@function("select_scatter", method=True)
def select_scatter(input: Tensor, src: Any, dim: int, index: int) -> Tensor:
    """The tensor with the part at one position of a dimension replaced.

    Example: torch.select_scatter(tensor([[2., 1.], [1., 3.]]), ones(2), 0, 1)
    """
    at = normal_dim("select_scatter", dim, input.array.ndim)
    position = selected_position(index, input.array.shape, at)
    return _replaced(_select_scatter, input, src, select.forward, (at, position))


@function("slice_scatter", method=True)
def slice_scatter(
    input: Tensor,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """The tensor with a slice of a dimension replaced.

    Example: torch.slice_scatter(tensor([[2., 1.], [1., 3.]]), ones(1, 2), 0, 0, 1)
    """
    at = normal_dim("slice_scatter", dim, input.array.ndim)
    if step <= 0:
        raise runtime_error("slice step must be positive")
    first, last, by = slice(start, end, step).indices(input.array.shape[at])
    bounds = (at, first, max(first, last), by)
    return _replaced(_slice_scatter, input, src, slice_op.forward, bounds)


@function("diagonal_scatter", method=True)
def diagonal_scatter(
    input: Tensor, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """The tensor with a diagonal replaced.

    Example: torch.diagonal_scatter(tensor([[2., 1.], [1., 3.]]), zeros(2))
    """
    dims = diagonal_dims("diagonal_scatter", input.array.ndim, dim1, dim2)
    return _replaced(_diagonal_scatter, input, src, diagonal_of, (offset, *dims))
