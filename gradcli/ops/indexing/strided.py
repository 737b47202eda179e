"""`as_strided`: a window on the memory that a tensor shares; `fill_diagonal_`; and writes to a part
of a value that a derivative rule has just made.

Where PyTorch's formula writes in place, the graph of a gradient has a `CopySlices`; so has ours
when the rule does the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import copied_as_it_lies, overlaps_itself, row_strides, window
from gradcli.autograd.inplace import writes
from gradcli.autograd.inplace.writes import base_array, extent, write
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import sizes_of
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.copies import copy_, fill_, row_order
from gradcli.ops.creation.fill import plain_number
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.indexing.along import index_add
from gradcli.ops.shape.slicing import diagonal, slice_op
from gradcli.ops.shape.views import reshape, squeeze_dim


def matrix_diagonal_of(value: Any) -> Any:
    """The diagonals of matrices, a view."""
    return diagonal(value, 0, value.ndim - 2, value.ndim - 1)


def block_of(value: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """The block of matrices between two rows and two columns, a view."""
    part = slice_op(value, value.ndim - 2, *rows, 1)
    return slice_op(part, value.ndim - 1, *columns, 1)


def assign(part: Any, value: Any) -> None:
    """Write a value into a view; its history becomes part of that of the view's base."""
    if type(part) is Tensor:
        copy_(part, value)
    else:
        part[...] = value


def fill(part: Any, number: float) -> None:
    """Write a number into each element of a view."""
    if type(part) is Tensor:
        fill_(part, number)
    else:
        part[...] = number


def scale(part: Any, number: float) -> None:
    """Multiply each element of a view by a number."""
    if type(part) is Tensor:
        write(part, part * number)
    else:
        part *= number


Sizes = tuple[int, ...]


def _strided_backward(
    grad: Any, self_sizes: Sizes, size: Sizes, stride: Sizes, offset: int, layout: Sizes
) -> Any:
    for dim in reversed([dim for dim, count in enumerate(size) if count == 1]):
        grad = squeeze_dim(grad, dim)
    stride = tuple(step for step, count in zip(stride, size, strict=True) if count != 1)
    size = tuple(count for count in size if count != 1)
    # The window is put into memory that holds the input too, and the input is read from there. A
    # window on a view may show what is no part of the input.
    before = max(0, -offset)
    span = before + max(extent(self_sizes, layout), offset + extent(size, stride))
    memory = zeros(grad, (span,))
    if overlaps_itself(size, stride):
        where: Any = np.array(before + offset)
        for step, count in zip(stride, size, strict=True):
            where = where[..., None] + np.arange(count) * step
        index: Any = module_of(getattr(grad, "array", grad)).asarray(where.reshape(-1))
        index = Tensor(index) if type(grad) is Tensor else index
        memory = index_add(memory, 0, index, reshape(grad, (where.size,)))
    else:
        assign(_as_strided(memory, size, stride, before + offset, (1,)), grad)
    return _as_strided(memory, self_sizes, layout, before, (1,))


_as_strided: Op = op(
    "as_strided",
    lambda self, size, stride, offset, layout: window(self, size, stride, offset),
    view=True,
    # Several elements of a window may be one element of memory: their gradients add up.
    self=_strided_backward,
    raises=BY_KINDS,
    written={},
)


def strided(tensor: Tensor, size: Sizes, stride: Sizes, offset: int) -> Tensor:
    """A window on a tensor's memory, in the graph: strides in elements, the offset from the
    tensor's own first one.
    """
    return _as_strided.apply(tensor, tuple(size), tuple(stride), offset, _strides(tensor))


def _strides(tensor: Tensor) -> Sizes:
    """The tensor's strides in elements."""
    itemsize = tensor.array.itemsize
    return tuple(step // itemsize for step in tensor.array.strides)


@function("as_strided", method=True)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A window on the memory that the tensor shares: sizes, strides and offset in elements.

    Raises E301 where it reaches beyond that memory.

    Example: torch.as_strided(tensor([0.5, 1., 2.]), (2, 2), (1, 1))
    """
    return _as_strided.apply(input, *_checked_window(input, size, stride, storage_offset))


def _checked_window(
    input: Tensor, size: Any, stride: Any, storage_offset: int | None
) -> tuple[Sizes, Sizes, int, Sizes]:
    """What the ops take: the sizes and strides of a window, its offset from the tensor's own first
    element, and the tensor's strides.
    """
    sizes, strides = sizes_of("as_strided", (size,)), sizes_of("as_strided", (stride,))
    memory = base_array(input)
    count = memory.nbytes // input.array.itemsize
    own = writes.storage_offset(input)
    offset = own if storage_offset is None else storage_offset
    size = input.dtype.itemsize
    reach = offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=False))
    if (
        len(sizes) != len(strides)
        or min((*sizes, *strides, offset), default=0) < 0
        or (0 not in sizes and reach >= count)
    ):
        raise shape_error(
            f"as_strided(): sizes {sizes} with strides {strides} and offset {offset} reach beyond"
            f" the {count} elements in memory",
            text=f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset"
            f" {offset}, and itemsize {size} requiring a storage size of {(reach + 1) * size} are"
            f" out of bounds for storage of size {count * size}",
        )
    return sizes, strides, offset - own, _strides(input)


def _scattered(self: Any, src: Any, size: Sizes, stride: Sizes, offset: int) -> Any:
    if not self.ndim or overlaps_itself(self.shape, self.strides):
        whole = module_of(self).array(self, order="C")
    else:
        whole = copied_as_it_lies(self)
    window(whole, size, stride, offset)[...] = src
    return whole


_as_strided_scatter: Op = op(
    "as_strided_scatter",
    _scattered,
    keeps_layout=True,
    self=lambda grad, src_sizes, size, stride, offset: _as_strided_scatter(
        row_order(grad), zeros(grad, src_sizes), size, stride, offset
    ),
    src=lambda grad, self_sizes, size, stride, offset: _as_strided(
        row_order(grad), size, stride, offset, tuple(row_strides(self_sizes))
    ),
    raises=BY_KINDS,
)


@function("as_strided_scatter", method=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """The tensor with a window on its memory replaced: sizes, strides and offset in elements.

    Raises E301 where the window reaches beyond that memory, or the source has another shape.

    Example: torch.as_strided_scatter(tensor([0.5, 1., 2.]), tensor([7., 8.]), (2,), (2,))
    """
    sizes, strides, offset, _ = _checked_window(input, size, stride, storage_offset)
    if src.array.shape != sizes:
        raise shape_error(
            "expected src to have a size equal to the slice of self. src size ="
            f" {list(src.array.shape)}, slice size = {list(sizes)}"
        )
    return _as_strided_scatter.apply(input, src, sizes, strides, offset)


@method("as_strided_")
def as_strided_in_place(
    self: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """Give the tensor itself other sizes, strides and offset; see `as_strided`."""
    window = _checked_window(self, size, stride, storage_offset)
    writes.check_graph("as_strided_", self)
    return writes.replace_layout(self, _as_strided.written.apply(self, *window))


@method("fill_diagonal_")
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number along the main diagonal; `wrap` begins it anew below, in a tall matrix.

    Raises E301 for less than two dimensions, or more of several sizes.

    Example: tensor([[2., 1.], [1., 3.]]).fill_diagonal_(7.)
    """
    fill_value = plain_number("fill_diagonal_(): fill_value", fill_value)
    if type(wrap) is not bool:
        raise type_error(f"fill_diagonal_(): wrap must be a bool, not {type_name(wrap)}")
    shape = self.array.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise shape_error(
            f"fill_diagonal_(): a tensor of shape {tuple(shape)} has no main diagonal",
            text="dimensions must larger than 1"
            if len(shape) < 2
            else "all dimensions of input must be of equal length",
        )
    writes.check_captured("fill_diagonal_", self)
    storage_of(self)
    steps = [step // self.array.itemsize for step in self.array.strides]
    stride = sum(steps)
    fill_(strided(self, (min(shape),), (stride,), 0), fill_value)
    columns = shape[1]
    if wrap and len(shape) == 2 and shape[0] > columns + 1:
        below = steps[0] * (columns + 1)
        count = (self.array.size + columns) // (columns + 1) - columns
        fill_(strided(self, (count,), (stride,), below), fill_value)
    return self
