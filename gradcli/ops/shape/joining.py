"""Joining tensors, `cat stack hstack vstack dstack block_diag cartesian_prod`, and cutting one into
several views, `split chunk unbind tensor_split hsplit vsplit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import in_row_order, in_suggested_format, sliced
from gradcli.autograd.tensor import Tensor
from gradcli.errors import (
    GradcliError,
    index_error,
    runtime_error,
    shape_error,
    type_error,
    value_error,
)
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import normal_dim, numbers_in, sizes_of
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.binding.functions import torch
from gradcli.ops.codegen.runtime import listed
from gradcli.ops.definition.doc import BATCH, BY_KINDS, READS, describe
from gradcli.ops.definition.op import Op, op
from gradcli.ops.shape.reshaping import flatten, meshgrid, raised_1d, raised_2d, raised_3d
from gradcli.ops.shape.slicing import along, select, slice_op
from gradcli.ops.shape.views import squeeze_dim, view
from gradcli.state import charge_tensors

# --- cat and stack ------------------------------------------------------------------------------


def _promoted(arrays: Sequence[Any]) -> Sequence[Any]:
    """The arrays in their common dtype."""
    first = arrays[0].dtype
    if all(array.dtype is first for array in arrays):
        return arrays
    dtype = dtypes.result_dtype(arrays)
    return [dtypes.cast(array, dtype) for array in arrays]


def _cat_array(tensors: Sequence[Any], dim: int) -> Any:
    arrays = _promoted(tensors)
    return _joined([array for array in arrays if array.shape != (0,)] or arrays, dim)


def _joined(arrays: Sequence[Any], dim: int) -> Any:
    return in_suggested_format(np.concatenate(arrays, dim), *arrays)


def _cut_cat(grad: Any, tensors_sizes: Sequence[tuple[int, ...]], dim: int) -> list[Any]:
    parts: list[Any] = []
    start = 0
    for sizes in tensors_sizes:
        if sizes == (0,):  # an empty vector goes with any shape, and has no part
            parts.append(zeros(grad, sizes))
            continue
        end = start + sizes[dim]
        parts.append(slice_op(grad, dim, start, end, 1))
        start = end
    return parts


cat: Op = op(
    "cat",
    _cat_array,
    keeps_layout=True,
    lists=("tensors",),
    tensors=_cut_cat,
    numpy="concatenate",
    raises=BY_KINDS,
)


def _stack_array(tensors: Sequence[Any], dim: int) -> Any:
    arrays = _promoted(tensors)
    shape = arrays[0].shape
    if dim == len(shape):
        return in_row_order(np.stack(arrays, dim))
    # One after another along the next dimension they lie just so, and NumPy need not add one each.
    return _joined(arrays, dim).reshape(*shape[:dim], len(arrays), *shape[dim:])


stack: Op = op(
    "stack",
    _stack_array,
    keeps_layout=True,
    lists=("tensors",),
    tensors=lambda grad, tensors_sizes, dim: [
        select(grad, dim, i) for i in range(len(tensors_sizes))
    ],
    numpy="stack",
    raises=BY_KINDS,
)


@function("cat", "concat", "concatenate")
def cat_function(tensors: Any, dim: int = 0) -> Tensor:
    """The tensors one after another along a dimension, in their common dtype.

    Raises E204 for an empty list, E301 where the other dimensions differ. Empty vectors go with any
    shape.
    """
    parts = listed("cat", tensors)
    if not parts:
        raise value_error(
            "cat(): there is nothing to join",
            text="torch.cat(): expected a non-empty list of Tensors",
        )
    shapes = [part.array.shape for part in parts]
    full = [shape for shape in shapes if shape != (0,)]
    for number, shape in enumerate(shapes):
        if not shape:
            raise shape_error(
                f"cat(): tensor {number} is 0-dim",
                text=f"zero-dimensional tensor (at position {number}) cannot be concatenated",
                help="use stack()",
            )
    if not full:  # PyTorch then takes any dimension
        return cat.apply(parts, 0)
    at = normal_dim("cat", dim, len(full[0]))
    for shape in shapes:
        if shape != (0,) and len(shape) != len(full[0]):
            raise shape_error(
                f"cat(): shapes {full[0]} and {shape} differ in their number of dimensions",
                text="Tensors must have same number of dimensions: got"
                f" {len(full[0])} and {len(shape)}",
            )
    for shape in full:
        if shape[:at] + shape[at + 1 :] != full[0][:at] + full[0][at + 1 :]:
            raise shape_error(
                f"cat(): shapes {full[0]} and {shape} differ outside dimension {at}",
                text=_sizes_differ(at, full[0], shape, shapes.index(shape)),
            )
    return cat.apply(parts, at)


def _sizes_differ(at: int, first: Any, shape: Any, number: int) -> str:
    """PyTorch's text for a tensor whose sizes differ from the first one's outside a dimension."""
    dim = next(dim for dim, size in enumerate(first) if dim != at and shape[dim] != size)
    return (
        f"Sizes of tensors must match except in dimension {at}. Expected size {first[dim]} but got"
        f" size {shape[dim]} for tensor number {number} in the list."
    )


@function("stack")
def stack_function(tensors: Any, dim: int = 0) -> Tensor:
    """The tensors, all of one shape, along a new dimension, in their common dtype. Raises E301
    where shapes differ.
    """
    parts = listed("stack", tensors)
    if not parts:
        raise runtime_error(
            "stack(): there is nothing to join", text="stack expects a non-empty TensorList"
        )
    first = parts[0].array.shape
    at = normal_dim("stack", dim, len(first) + 1)
    for number, part in enumerate(parts):
        if part.array.shape != first:
            raise shape_error(
                f"stack(): the shapes {tuple(first)} and {tuple(part.array.shape)} differ",
                text=f"stack expects each tensor to be equal size, but got {list(first)} at entry 0"
                f" and {list(part.array.shape)} at entry {number}",
                help="use cat() to join along an existing dimension",
            )
    return stack.apply(parts, at)


# --- joining by the number of dimensions --------------------------------------------------------


def _stacked(name: str, tensors: Any) -> list[Tensor]:
    """The tensors of one of the functions below; raises E204 where there are none."""
    parts: list[Tensor] = list(listed(name, tensors))
    if not parts:
        raise runtime_error(f"{name}() needs a tensor", f"{name} expects a non-empty TensorList")
    return parts


@function("hstack")
def hstack(tensors: Any) -> Tensor:
    """The tensors side by side: vectors along dimension 0, others along dimension 1."""
    parts = [raised_1d(tensor) for tensor in _stacked("hstack", tensors)]
    return cat_function(parts, 0 if parts[0].array.ndim == 1 else 1)


@function("vstack", "row_stack")
def vstack(tensors: Any) -> Tensor:
    """The tensors below each other: along dimension 0, vectors as rows."""
    return cat_function([raised_2d(tensor) for tensor in _stacked("vstack", tensors)])


@function("dstack")
def dstack(tensors: Any) -> Tensor:
    """The tensors behind each other: along dimension 2."""
    return cat_function([raised_3d(tensor) for tensor in _stacked("dstack", tensors)], 2)


@function("column_stack")
def column_stack(tensors: Any) -> Tensor:
    """The tensors side by side along dimension 1, vectors as columns."""
    columns = [
        tensor if tensor.array.ndim > 1 else view.apply(tensor, (tensor.array.size, 1))
        for tensor in _stacked("column_stack", tensors)
    ]
    return cat_function(columns, 1)


def _block_diagonal(tensors: Sequence[Any]) -> Any:
    blocks = [array.reshape((1,) * (2 - array.ndim) + array.shape) for array in _promoted(tensors)]
    rows, columns = (sum(block.shape[i] for block in blocks) for i in (0, 1))
    whole = module_of(*blocks).zeros((rows, columns), blocks[0].dtype)
    for block, (rows, columns) in zip(blocks, _corners([b.shape for b in blocks]), strict=True):
        whole[rows, columns] = block
    return whole


def _corners(shapes: Sequence[tuple[int, ...]]) -> list[tuple[slice, slice]]:
    """Where each block stands: its rows and columns."""
    corners = []
    row = column = 0
    for shape in shapes:
        height, width = (1, 1, *shape)[-2:]
        corners.append((slice(row, row + height), slice(column, column + width)))
        row, column = row + height, column + width
    return corners


def _cut_blocks(grad: Any, tensors_sizes: Sequence[tuple[int, ...]]) -> list[Any]:
    parts: list[Any] = []
    for sizes, (rows, columns) in zip(tensors_sizes, _corners(tensors_sizes), strict=True):
        part = slice_op(grad, 0, rows.start, rows.stop, 1)
        part = slice_op(part, 1, columns.start, columns.stop, 1)
        for _ in range(2 - len(sizes)):
            part = squeeze_dim(part, part.ndim - 1)
        parts.append(part)
    return parts


block_diagonal: Op = op(
    "block_diag", _block_diagonal, lists=("tensors",), tensors=_cut_blocks, raises=BY_KINDS
)


@function("block_diag")
def block_diag(*tensors: Any) -> Tensor:
    """The tensors as blocks along the diagonal of a matrix of zeros. Raises E301 for more than two
    dimensions.

    Example: torch.block_diag(tensor([0.5, 1., 2.]))
    """
    if not tensors:
        return torch.empty(1, 0)
    parts = listed("block_diag", tensors)
    if any(part.array.ndim > 2 for part in parts):
        raise shape_error("block_diag(): the blocks are matrices, vectors or numbers")
    return block_diagonal.apply(parts)


# --- products -----------------------------------------------------------------------------------


@function("cartesian_prod")
def cartesian_prod(*tensors: Any) -> Tensor:
    """Every choice of one element from each of the vectors, a row for each.

    Example: torch.cartesian_prod(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    axes = listed("cartesian_prod", tensors)
    if any(axis.array.ndim != 1 for axis in axes):
        wrong = next(axis for axis in axes if axis.array.ndim != 1)
        text = f"Expect a 1D vector, but got shape {list(wrong.array.shape)}"
        raise shape_error(text)
    if len(axes) == 1:
        return axes[0]
    return stack_function([flatten(grid) for grid in meshgrid(*axes)], 1)


# --- cutting --------------------------------------------------------------------------------------


Parts = tuple[Tensor, ...]


def _rejoined(grads: Sequence[Any], sizes: Sequence[tuple[int, ...]], dim: int, join: Any) -> Any:
    """The parts' gradients joined again, zeros for those that have none."""
    present = next(grad for grad in grads if grad is not None)
    whole = []
    for grad, size in zip(grads, sizes, strict=True):
        if grad is None:
            grad = zeros(present, tuple(size))
        whole.append(grad)
    return join(whole, dim)


def _cut(self: Any, sizes: Sequence[int], dim: int) -> list[Any]:
    ends = list(accumulate(sizes, initial=0))
    return [sliced(self, dim, start, end, 1) for start, end in pairwise(ends)]


def _part_sizes(shape: tuple[int, ...], sizes: Sequence[int], dim: int) -> list[tuple[int, ...]]:
    dim %= len(shape)
    return [(*shape[:dim], size, *shape[dim + 1 :]) for size in sizes]


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    dim %= len(shape)
    return (*shape[:dim], *shape[dim + 1 :])


def _split_entry(name: str, is_view: bool) -> Op:
    """An entry that cuts a tensor into parts of the given sizes along a dimension."""
    return op(
        name,
        _cut,
        view=is_view,
        keeps_layout=True,  # parts that are no views share the memory all the same
        outputs=("*",),
        self=lambda grads, self_sizes, sizes, dim: _rejoined(
            grads, _part_sizes(self_sizes, sizes, dim), dim, cat
        ),
        numpy="""\
def split(x, sizes, axis=0):
    return np.split(x, np.cumsum(sizes)[:-1], axis)
""",
        raises=BY_KINDS,
    )


_split = _split_entry("split", True)
_split_with_sizes = _split_entry("split_with_sizes", True)
_unsafe_split = _split_entry("unsafe_split", False)
_unsafe_split_with_sizes = _split_entry("unsafe_split_with_sizes", False)

_unbind: Op = op(
    "unbind",
    lambda self, dim: [self[along(self.ndim, dim, i)] for i in range(self.shape[dim])],
    view=True,
    outputs=("*",),
    self=lambda grads, self_sizes, dim: _rejoined(
        grads, [_without(self_sizes, dim)] * len(grads), dim, stack
    ),
    raises=BY_KINDS,
)


def _equal_sizes(extent: int, size: int) -> list[int]:
    """The sizes of parts of `size` elements, the last one smaller where they do not fit."""
    if type(size) is not int:
        size = size.__index__()
    if size < 0 or (size == 0 and extent):
        raise runtime_error(
            f"split expects split_size be non-negative, but got split_size={size}"
            if size
            else "split_size can only be 0 if dimension size is 0, but got dimension size of"
            f" {extent}"
        )
    if not extent:
        return [0]
    charge_tensors(-(-extent // size))
    return [min(size, extent - start) for start in range(0, extent, size)]


def _extent(name: str, tensor: Tensor, dim: int) -> tuple[int, int]:
    """A dimension counted from the front, and its size; raises E301 for a 0-dim tensor."""
    shape = tensor.array.shape
    if not shape:
        text = f"{name} expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        raise shape_error(f"{name}(): a 0-dim tensor cannot be cut", text=text)
    at = normal_dim(name, dim, len(shape))
    return at, shape[at]


@function("split")
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Parts:
    """Views of the parts of `split_size` elements, the last one perhaps smaller, or of the given
    sizes. Raises E301 where those do not add up.

    Example: torch.split(tensor([[2., 1.], [1., 3.]]), 1)
    """
    at, extent = _extent("split", tensor, dim)
    if not isinstance(split_size_or_sections, (list, tuple)):
        return _split.apply(tensor, _equal_sizes(extent, split_size_or_sections), at)
    return split_with_sizes(tensor, split_size_or_sections, dim)


@method("split")
def _split_method(self: Tensor, split_size: Any, dim: int = 0) -> Parts:
    """`torch.split` of the tensor: views of its parts.

    Example: tensor([[2., 1.], [1., 3.]]).split(1)
    """
    return split(self, split_size, dim)


@function("split_with_sizes", method=True)
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Parts:
    """Views of the parts of the given sizes. Raises E301 where those do not add up.

    Example: torch.split_with_sizes(tensor([[2., 1.], [1., 3.]]), (1, 1))
    """
    return _split_with_sizes.apply(
        input, *_checked_sizes("split_with_sizes", input, split_sizes, dim)
    )


def _checked_sizes(
    name: str, input: Tensor, split_sizes: Any, dim: int
) -> tuple[tuple[int, ...], int]:
    """The sizes of the parts and their dimension; raises E301 for sizes that do not add up."""
    at, extent = _extent(name, input, dim)
    sizes = sizes_of(name, (split_sizes,))
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise shape_error(
            f"split(): parts of {sizes} do not make up dimension {at} of {extent}",
            text=f"split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's"
            f" size at dimension {at}), but got split_sizes={list(sizes)}",
        )
    return sizes, at


def _chunk_sizes(name: str, tensor: Tensor, chunks: int, dim: int) -> tuple[list[int], int]:
    at, extent = _extent(name, tensor, dim)
    if chunks <= 0:
        raise runtime_error(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not extent:
        charge_tensors(chunks)
        return [0] * chunks, at
    return _equal_sizes(extent, -(-extent // chunks)), at


@function("chunk", method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Parts:
    """Views of at most `chunks` parts of equal size, the last one perhaps smaller.

    Example: torch.chunk(tensor([[2., 1.], [1., 3.]]), 1)
    """
    sizes, at = _chunk_sizes("chunk", input, chunks, dim)
    entry = _split if input.array.shape[at] else _split_with_sizes
    return entry.apply(input, sizes, at)


@function("unsafe_chunk", method=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Parts:
    """The parts that `chunk` shows, which may be written: no history follows that.

    Example: torch.unsafe_chunk(tensor([[2., 1.], [1., 3.]]), 1)
    """
    return _unsafe_split.apply(input, *_chunk_sizes("unsafe_chunk", input, chunks, dim))


@function("unsafe_split", method=True)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Parts:
    """The parts that `split` shows, which may be written: no history follows that.

    Example: torch.unsafe_split(tensor([[2., 1.], [1., 3.]]), 1)
    """
    at, extent = _extent("unsafe_split", input, dim)
    return _unsafe_split.apply(input, _equal_sizes(extent, split_size), at)


@function("unsafe_split_with_sizes", method=True)
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Parts:
    """The parts that `split_with_sizes` shows, which may be written: no history follows that.

    Example: torch.unsafe_split_with_sizes(tensor([[2., 1.], [1., 3.]]), (1, 1))
    """
    sizes, at = _checked_sizes("unsafe_split_with_sizes", input, split_sizes, dim)
    return _unsafe_split_with_sizes.apply(input, sizes, at)


@function("unbind", method=True)
def unbind(input: Tensor, dim: int = 0) -> Parts:
    """Views of the parts at each position of a dimension, without it. Raises E302 for a 0-dim
    tensor.

    Example: torch.unbind(tensor([[2., 1.], [1., 3.]]), 0)
    """
    if not input.array.ndim:
        raise index_error(
            "unbind(): a 0-dim tensor has no dimension to unbind",
            text="Dimension specified as 0 but tensor has no dimensions",
        )
    at = normal_dim("unbind", dim, input.array.ndim)
    charge_tensors(input.array.shape[at])
    return _unbind.apply(input, at)


def _one_of(name: str, *positions: Any) -> Any:
    """What a function was given under one of the names that PyTorch's overloads have for it."""
    given = [each for each in positions if each is not None]
    if len(given) != 1:
        raise GradcliError("E201", f"{name}() needs either indices or sections")
    return given[0]


def _tensor_split(name: str, input: Tensor, where: Any, dim: int) -> Parts:
    at, extent = _extent(name, input, dim)
    if isinstance(where, Tensor):
        where = numbers_in(where)
    if isinstance(where, (list, tuple)):
        if not all(isinstance(cut, int) for cut in where):
            raise type_error(f"{name}(): the positions must be integers in one dimension")
        bounds = [0, *(slice(cut).indices(extent)[1] for cut in where), extent]
    elif not isinstance(where, int):
        raise type_error(f"{name}(): the number of parts must be an integer")
    elif where <= 0:
        raise runtime_error(f"{name}(): {where} parts are no parts")
    else:
        charge_tensors(where)
        size, larger = divmod(extent, where)
        bounds = [i * size + min(i, larger) for i in range(where + 1)]
    return tuple(
        slice_op.apply(input, at, start, max(start, end), 1) for start, end in pairwise(bounds)
    )


@function("tensor_split", method=True, effects=(READS,))
def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: int = 0,
    *,
    indices: Any = None,
    sections: Any = None,
    tensor_indices_or_sections: Any = None,
) -> Parts:
    """Views of so many parts, as equal as can be, or of the parts between the given positions.

    Example: torch.tensor_split(tensor([[2., 1.], [1., 3.]]), 1)
    """
    positions = _one_of(
        "tensor_split", indices_or_sections, indices, sections, tensor_indices_or_sections
    )
    return _tensor_split("tensor_split", input, positions, dim)


def _split_along(name: str, dim: int, least: int) -> None:
    @function(name, method=True)
    def split_along(
        input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: Any = None
    ) -> Parts:
        sections = _one_of(name, indices_or_sections, indices, sections)
        ndim = input.array.ndim
        if ndim < least:
            raise shape_error(
                f"{name}(): a tensor of {ndim} dimensions is too flat",
                text=f"torch.{name} requires a tensor with at least {least} dimension, but got a"
                f" tensor with {ndim} dimensions!",
            )
        at = min(dim, ndim - 1)
        if type(sections) is int and (sections <= 0 or input.array.shape[at] % sections):
            raise shape_error(
                f"{name}(): {sections} equal parts of dimension {at}, which has"
                f" {input.array.shape[at]} elements",
                text=f"torch.{name} attempted to split along dimension {at}, but the size of the"
                f" dimension {input.array.shape[at]} is not divisible by the split_size"
                f" {sections}!",
            )
        return _tensor_split(name, input, sections, at)

    describe(
        split_along,
        f"Views of the parts along dimension {dim}; see `tensor_split`.",
        f"torch.{name}({'tensor([[2., 1.], [1., 3.]]), 1' if dim < 2 else f'{BATCH}, 2'})",
    )


_split_along("hsplit", 1, 1)
_split_along("vsplit", 0, 2)
_split_along("dsplit", 2, 3)
