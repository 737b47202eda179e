"""Indexing: `x[0] x[1:, ::2] x[None] x[[0, 2]] x[mask]`, and `take put index_put masked_select`.

An index is a chain, as in PyTorch: each integer is a `select`, each slice that cuts something a
`slice`, each None an `unsqueeze`, from left to right; then one `index` for all the lists, masks and
index tensors. So `x[0, :, [1, 2]]` first takes row 0, which NumPy does differently.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.kernels import in_c
from gradcli.arrays.layout.strides import (
    broadcast_strides,
    copied_in_order,
    copied_in_rows,
    laid_out,
    ordered_strides,
    overlaps_itself,
    strides_of,
)
from gradcli.autograd.batched import BatchedArray, NeedsExamples, shared
from gradcli.autograd.tensor import Tensor, refuse_batched
from gradcli.errors import GradcliError, index_error, type_error, value_error
from gradcli.limits import length_of
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import numbers_in
from gradcli.ops.binding.catalogue import operators
from gradcli.ops.codegen.node_class import Key
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.definition.doc import BY_VALUES, READS
from gradcli.ops.definition.op import Function, Op, op
from gradcli.ops.shape.slicing import alias, checked_position, select, slice_op
from gradcli.ops.shape.views import unsqueeze
from gradcli.state import active

FULL = slice(None)

# --- index: positions in several dimensions at once ---------------------------------------------


def _picked(self: Any, indices: Key) -> Any:
    """The elements at the positions, in memory as PyTorch lays them: NumPy brings the dimensions of
    the positions to the front.
    """
    rows = self.flags.c_contiguous and all(part is FULL for part in indices[1:])
    picked = self.take(indices[0], 0) if rows else self[indices]
    if picked.ndim < 2:
        return picked[()]
    written = [part for part in indices if part is not FULL]
    flat = self.flags.c_contiguous and (
        all(part.ndim < 2 for part in written)
        or (len(written) == 1 and written[0].flags.c_contiguous)
    )
    if flat and picked.size and 1 not in picked.shape:
        return picked if picked.flags.c_contiguous else picked.copy()
    positions = np.broadcast_arrays(*written)
    dims = [dim for dim, part in enumerate(indices) if part is not FULL]
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    kept = [stride for dim, stride in enumerate(strides_of(self)) if dim not in dims]
    source = (*kept[:first], *(0,) * positions[0].ndim, *kept[first:])
    after = len(kept) - first
    shape = picked.shape
    where = [part.reshape((1,) * first + part.shape + (1,) * after) for part in written]
    steps = [broadcast_strides(part.shape, strides_of(part), shape) for part in where]
    return laid_out(picked, ordered_strides(shape, [source, *steps]))


index: Op = op(
    "index",
    lambda self, indices: _picked(self, indices),
    keeps_layout=True,
    keeps=("indices",),
    # A position that is indexed twice gets both gradients.
    self=lambda grad, self_sizes, indices: index_put_impl(
        zeros(grad, self_sizes), grad, indices, True
    ),
    raises=BY_VALUES,
    effects=(READS,),  # a mask picks as many elements as it finds
)


def flat_positions(key: Key, shape: tuple[int, ...]) -> Any:
    """The position, in row order, of each element that an index of an array of this shape picks."""
    steps = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    picked = [dim for dim, what in enumerate(key) if what is not FULL]
    where = sum(key[dim] * steps[dim] for dim in picked)
    # The picked dimensions stand where they stood if they are neighbours, and in front if not.
    in_place = picked[-1] - picked[0] + 1 == len(picked)
    before = range(picked[0]) if in_place else ()
    after = [dim for dim in range(len(shape)) if dim not in picked and dim not in before]
    ndim = len(before) + where.ndim + len(after)
    where = where.reshape((1,) * len(before) + where.shape + (1,) * len(after))
    for axis, dim in [*enumerate(before), *enumerate(after, ndim - len(after))]:
        sizes = [1] * ndim
        sizes[axis] = shape[dim]
        where = where + (np.arange(shape[dim]) * steps[dim]).reshape(sizes)
    return where


def add_at(whole: Any, where: Any, values: Any) -> None:
    """Add values into an array at flat positions, as often as each stands there."""
    # One-dimensional operands take the fast path of NumPy's add.at.
    if not in_c.add_at(whole, where, values):
        np.add.at(whole.reshape(-1), where.reshape(-1), values.reshape(-1))


def add_rows(table: Any, where: Any, rows: Any) -> None:
    """Add rows to those of a table at some positions, as often as each is given; in pieces, since
    every element gets its flat position.
    """
    if in_c.add_at(table, where, rows, width=table.shape[1]):
        return
    columns = module_of(table).arange(table.shape[1])
    piece = max(1, _PIECE // max(1, table.shape[1]))
    for start in range(0, len(where), piece):
        part = slice(start, start + piece)
        add_at(table, where[part, None] * table.shape[1] + columns, rows[part])


_PIECE = 1 << 16
"""Elements that are added at a time."""


def _index_put_array(self: Any, values: Any, indices: Key, accumulate: bool) -> Any:
    whole = copied_in_order(self) if self.ndim else module_of(self).array(self)
    return _write_at(whole, values, indices, accumulate)


def _put_at(whole: Any, values: Any, indices: Key, accumulate: bool) -> None:
    if not accumulate:
        whole[indices] = values
        return
    if whole.ndim and indices[0] is not FULL and all(part is FULL for part in indices[1:]):
        at, width = indices[0], math.prod(whole.shape[1:])
        rows = _spread(values, (*at.shape, *whole.shape[1:]))
        add_rows(whole.reshape(-1, width), at.reshape(-1), rows.reshape(at.size, width))
        return
    where = flat_positions(indices, whole.shape)
    add_at(whole, where, _spread(values, where.shape))


def _spread(values: Any, shape: tuple[int, ...]) -> Any:
    """Values of a shape, repeated where they are of another one: what `broadcast_to` gives may not
    be written to, and kernels take it for an array of gaps.
    """
    return values if values.shape == shape else np.broadcast_to(values, shape)


_IN_NUMPY = """\
def replaced(x, index, values, add=False):
    x = np.array(x)
    if add:
        np.add.at(x, index, values)
    else:
        x[index] = values
    return x
"""


def _index_put(name: str, forward: Function, scratch: bool = False) -> Op:
    return op(
        name,
        forward,
        keeps_layout=True,
        keeps=("indices",),
        # Where a position is written twice the last value stays, yet each value gets the gradient.
        self=lambda grad, indices, accumulate: (
            grad if accumulate else index_put(grad, zeros(grad, ()), indices, False)
        ),
        values=index,
        raises=BY_VALUES,
        scratch=scratch,
        numpy=_IN_NUMPY,
    )


index_put: Op = _index_put("index_put", _index_put_array)


def _write_at(self: Any, values: Any, indices: Key, accumulate: bool) -> Any:
    if self.flags.c_contiguous or not accumulate:
        _put_at(self, values, indices, accumulate)
    elif overlaps_itself(self.shape, self.strides):
        np.add.at(self, indices, values)  # a copy put back would undo what is added
    else:
        whole = copied_in_rows(self)
        _put_at(whole, values, indices, True)
        self[...] = whole
    return self


# These write to the tensor's own memory: a loop of writes does not copy it each time.
index_put_in_place: Op = _index_put("index_put_", _write_at)
index_put_impl: Op = _index_put("_index_put_impl", _write_at, scratch=True)

# --- what stands in brackets --------------------------------------------------------------------


def getitem(tensor: Tensor, key: Any) -> Tensor:
    """`tensor[key]`.

    Raises E302 for positions that do not exist and for what is no index, E202 for slice bounds that
    are no integers, E204 for a slice whose step is not positive, where PyTorch raises IndexError,
    TypeError and ValueError.
    """
    kind = type(key)
    if kind is int:
        return _selected(tensor, 0, key, tensor.array.ndim)
    if kind is slice:
        return _sliced(tensor, 0, key)
    if key is None:
        return unsqueeze.apply(tensor, 0)
    if key is Ellipsis:
        return alias.apply(tensor)
    shown, picked = apply_slicing(tensor, key)
    if picked:
        if active.state.batch is not None and BatchedArray in map(type, picked.values()):
            return active.state.batch.picked(shown, picked)
        return index.apply(shown, numpy_key(picked, shown, key))
    return alias.apply(shown) if shown is tensor else shown


operators["[]"] = getitem


def apply_slicing(tensor: Tensor, key: Any) -> tuple[Tensor, dict[int, Any]]:
    """The view that the integers, slices and Nones of an index give, and by dimension the arrays of
    positions and masks that remain to be applied to it.
    """
    items = _items(key)
    ndim = tensor.array.ndim
    specified = sum(_dimensions(item) for item in items)
    if specified > ndim:
        raise index_error(
            f"{specified} indices for a tensor of {ndim} dimensions",
            text=f"too many indices for tensor of dimension {ndim}",
        )
    shown = tensor
    picked: dict[int, Any] = {}
    dim = 0
    for item in items:
        kind = type(item)
        if kind is int:
            shown = _selected(shown, dim, item, ndim)
        elif kind is slice:
            if not _is_full(item, shown.array.shape[dim]):
                shown = _sliced(shown, dim, item)
            dim += 1
        elif item is Ellipsis:
            dim += ndim - specified
        elif item is None:
            shown = unsqueeze.apply(shown, dim)
            dim += 1
        elif kind is bool:
            shown = unsqueeze.apply(shown, dim)
            picked[dim] = np.array([item])
            dim += 1
        elif item.ndim == 0 and type(item) is not BatchedArray:
            shown = unsqueeze.apply(shown, dim)
            picked[dim] = item.reshape(1).astype(bool)
            dim += 1
        else:
            picked[dim] = item
            dim += item.ndim if item.dtype == np.bool_ else 1
    return shown, picked


def _items(key: Any) -> list[Any]:
    """The parts of an index; tensors and lists as arrays."""
    if type(key) is tuple or (type(key) is list and _is_tuple_in_disguise(key)):
        return [_item(part) for part in key]
    return [_item(key)]


def _is_tuple_in_disguise(key: list[Any]) -> bool:
    # PyTorch reads x[[[0, 1], [1, 0]]] as x[[0, 1], [1, 0]], as old NumPy did.
    return len(key) < 32 and any(
        part is None or part is Ellipsis or isinstance(part, (Tensor, list, tuple, slice, range))
        for part in key
    )


def _item(part: Any) -> Any:
    if part is None or part is Ellipsis or type(part) in (int, bool, slice):
        return part
    if isinstance(part, Tensor):
        array = part.array
        if array.ndim == 0 and array.dtype.kind == "i":
            return part.__index__() if type(array) is not BatchedArray else positions_of(array)
        if array.dtype.kind == "b" or array.dtype in _POSITIONS:
            if array.dtype.kind == "b":
                refuse_batched("indexing by a mask", part)
            array = positions_of_all(array)
            if array.dtype != np.uint8 or not array.ndim:
                return array
            text = (
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool"
                " instead."
            )
            message = "a mask of torch.uint8 is deprecated"
            active.state.warn("W015", message, text=text, help="write `mask.bool()`")
            return array.astype(bool)
        raise index_error(
            f"a tensor of {part.dtype} is no index",
            text="tensors used as indices must be long, int, byte or bool tensors",
            help="use `.long()` or a bool mask",
        )
    if isinstance(part, (list, tuple, range)):
        try:
            array = np.array(_plain(part))
        except ValueError:  # lists of several lengths
            raise value_error("the lists of an index differ in length") from None
        if array.dtype.kind not in "bif":
            raise type_error(f"a list of {array.dtype} is no index")
        return array if array.dtype.kind == "b" else array.astype(np.int64)
    raise GradcliError(
        "E302" if not isinstance(part, str) else "E202",
        f"a value of type {type_name(part)} is no index",
        text="new(): invalid data type 'str'"
        if isinstance(part, str)
        else "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are"
        f" valid indices (got {type_name(part)})",
        help="use integers, slices, `...`, None, lists, or tensors of integers or bools",
    )


def positions_of_all(array: Any) -> Any:
    """An array of positions, or a mask, that all examples share; a batched one as it is."""
    try:
        return shared(array)
    except NeedsExamples:
        return array


def positions_of(array: BatchedArray) -> Any:
    """A number of each example as it is; one that all of them share as a number."""
    try:
        return int(shared(array))
    except NeedsExamples:
        return array


_POSITIONS = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint8))


def _plain(values: Any) -> Any:
    if isinstance(values, (list, tuple, range)):
        active.state.limits.check_elements(length_of(values))
        return [_plain(value) for value in values]
    return numbers_in(values) if isinstance(values, Tensor) else values


def _dimensions(item: Any) -> int:
    """How many dimensions of the tensor a part of an index uses up."""
    if item is None or item is Ellipsis or type(item) is bool:
        return 0
    if type(item) in (int, slice):
        return 1
    is_mask = item.dtype == np.bool_ or (item.ndim == 0 and item.dtype == np.uint8)
    return int(item.ndim) if is_mask else 1


def _selected(tensor: Tensor, dim: int, position: int, ndim: int) -> Tensor:
    """The part at a position of a dimension; `ndim` is how many there were before the index."""
    shape = tensor.array.shape
    if not shape:
        raise index_error(
            "a 0-dim tensor has no elements to index",
            text="invalid index of a 0-dim tensor. Use `tensor.item()` in Python or"
            " `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number",
            help="use .item() for its value",
        )
    indexed = ndim - len(shape) + dim
    return select.apply(tensor, dim, checked_position("index", position, shape[dim], indexed))


def _bound(value: Any) -> int | None:
    """A slice's start, stop or step as an integer."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, (int, Tensor, np.integer)):
        return value.__index__()
    raise type_error(
        f"a slice goes by integers, not by a {type_name(value)}",
        text="slice indices must be integers or None or have an __index__ method",
    )


def _bounds(part: slice, extent: int) -> tuple[int, int, int]:
    """A slice's start, end and step, the first two within a dimension."""
    step = _bound(part.step)
    if step is not None and step <= 0:
        raise value_error(
            f"the step of a slice must be positive, not {step}",
            text="step must be greater than zero",
            help="use flip() for the reverse order",
        )
    start, end, step = slice(_bound(part.start), _bound(part.stop), step).indices(extent)
    return start, max(start, end), step


def _is_full(part: slice, extent: int) -> bool:
    # As in PyTorch the bounds as written decide: -2: of two elements is a slice.
    stop = _bound(part.stop)
    return (
        not _bound(part.start)
        and (stop is None or stop >= extent)
        and _bound(part.step) in (None, 1)
    )


def _sliced(tensor: Tensor, dim: int, part: slice) -> Tensor:
    shape = tensor.array.shape
    if not shape:
        raise index_error("a 0-dim tensor has no elements to slice")
    return slice_op.apply(tensor, dim, *_bounds(part, shape[dim]))


def numpy_key(picked: dict[int, Any], tensor: Tensor, written: Any) -> Key:
    """The arrays of positions and masks, by dimension, as an index for the tensor's array.

    The arrays are copies: the program may change its index tensors later. `written` is the index as
    it was written. Raises E302 for positions that do not exist and for masks and arrays that do not
    fit.
    """
    shape = tensor.array.shape
    key: list[Any] = [FULL] * len(shape)
    for dim, array in picked.items():
        if array.dtype == np.bool_:
            if array.shape != shape[dim : dim + array.ndim]:
                raise index_error(
                    f"a mask of shape {tuple(array.shape)} does not fit a tensor of shape"
                    f" {tuple(shape)} at dimension {dim}",
                    text=_mask_apart(array.shape, shape, dim),
                )
            key[dim : dim + array.ndim] = array.nonzero()
        else:
            # Positions in an empty dimension are not checked.
            unread = shape[dim] and 0 in shape
            key[dim] = (
                np.zeros_like(array) if unread else positions_from_front(array, shape[dim], dim)
            )
    arrays = [what for what in key if what is not FULL]
    try:
        np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise index_error(
            f"indices of shapes {shapes} cannot be broadcast together",
            text="shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(array.shape)) for array in arrays),
        ) from None
    index = Key(key)
    several = written if isinstance(written, (tuple, list)) else (written,)
    sources = [part for part in several if _is_picking(part)]
    index.parts = _parts(picked, sources)
    index.sources = tuple([each for each in sources if type(each) is Tensor])
    return index


def key_of_positions(shape: tuple[int, ...], *parts: Any) -> Key:
    """The index of the positions in each dimension, None for a full slice; raises E302 for one that
    does not exist.
    """
    key = [
        FULL if part is None else positions_from_front(part, shape[dim], dim)
        for dim, part in enumerate(parts)
    ]
    return Key([*key, *[FULL] * (len(shape) - len(key))])


def _mask_apart(mask: tuple[int, ...], shape: tuple[int, ...], dim: int) -> str:
    """PyTorch's text for a mask that does not have the sizes of a tensor from a dimension on."""
    at = next(at for at, size in enumerate(mask) if shape[dim + at : dim + at + 1] != (size,))
    return (
        f"The shape of the mask {list(mask)} at index {at} does not match the shape of the indexed"
        f" tensor {list(shape)} at index {dim + at}"
    )


def _parts(picked: dict[int, Any], sources: list[Any]) -> tuple[tuple[Any, int], ...]:
    """The `parts` of a Key."""
    if len(sources) != len(picked):  # a list of numbers or bools
        sources = [None] * len(picked)
    parts: list[tuple[Any, int]] = []
    following = 0
    for (dim, array), source in zip(picked.items(), sources, strict=True):
        parts += [(None, 0)] * (dim - following)
        if type(source) is Tensor and source.array.ndim:
            parts.append((source, source.version))
        else:  # PyTorch makes a bool a vector of one position, or none
            alone = type(source) in (bool, Tensor)
            parts.append((array.nonzero()[0] if alone else array, 0))
        following = dim + (array.ndim if array.dtype == np.bool_ else 1)
    return tuple(parts)


def _is_picking(part: Any) -> bool:
    """Whether a part of an index, as it is written, is one of positions or a mask."""
    if type(part) is Tensor:
        return part.array.ndim > 0 or part.array.dtype == np.bool_
    return type(part) is not int and part is not None and type(part) not in _SHOWING


_SHOWING = (slice, type(Ellipsis))
"""The types of the parts of an index that show a part of the tensor."""


def positions_from_front(array: Any, extent: int, dim: int) -> Any:
    """Positions counted from the front; raises E302 for one that does not exist."""
    plain = type(array) in HOST_ARRAYS and array.dtype == np.int64 and array.size
    if plain and array.view(np.uint64).max() < extent:  # a negative one is large
        return array.copy()
    outside = (array < -extent) | (array >= extent)
    if outside.any():
        raise index_error(
            f"position {array[outside][0]} does not exist in dimension {dim}, which has {extent}"
            " elements",
            text=f"index {array[outside][0]} is out of bounds for dimension 0 with size {extent}",
        )
    return np.where(array < 0, array + extent, array).astype(np.int64)
