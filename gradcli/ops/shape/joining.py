"""Joining tensors: `cat stack hstack vstack dstack block_diag cartesian_prod`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import in_row_order, in_suggested_format
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import torch
from gradcli.ops.codegen.runtime import listed
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.shape.reshaping import flatten, meshgrid, raised_1d, raised_2d, raised_3d
from gradcli.ops.shape.slicing import select, slice_op
from gradcli.ops.shape.views import squeeze_dim, view

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


@function("hstack")
def hstack(tensors: Any) -> Tensor:
    """The tensors side by side: vectors along dimension 0, others along dimension 1."""
    parts = [raised_1d(tensor) for tensor in listed("hstack", tensors)]
    if not parts:
        raise runtime_error("hstack() needs a tensor")
    return cat_function(parts, 0 if parts[0].array.ndim == 1 else 1)


@function("vstack", "row_stack")
def vstack(tensors: Any) -> Tensor:
    """The tensors below each other: along dimension 0, vectors as rows."""
    return cat_function([raised_2d(tensor) for tensor in listed("vstack", tensors)])


@function("dstack")
def dstack(tensors: Any) -> Tensor:
    """The tensors behind each other: along dimension 2."""
    return cat_function([raised_3d(tensor) for tensor in listed("dstack", tensors)], 2)


@function("column_stack")
def column_stack(tensors: Any) -> Tensor:
    """The tensors side by side along dimension 1, vectors as columns."""
    columns = [
        tensor if tensor.array.ndim > 1 else view.apply(tensor, (tensor.array.size, 1))
        for tensor in listed("column_stack", tensors)
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
