"""Cutting a tensor into several views: `split chunk unbind tensor_split hsplit vsplit`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from gradcli.arrays.layout.strides import sliced
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, index_error, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import numbers_in, normal_dim, sizes_of
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BATCH, BY_KINDS, READS, describe
from gradcli.ops.definition.op import Op, op
from gradcli.ops.shape.joining import cat, stack
from gradcli.ops.shape.slicing import along, slice_op
from gradcli.state import charge_tensors

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


@function("split", method=True)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Parts:
    """Views of the parts of `split_size` elements, the last one perhaps smaller, or of the given
    sizes. Raises E301 where those do not add up.

    Example: torch.split(tensor([[2., 1.], [1., 3.]]), 1)
    """
    at, extent = _extent("split", tensor, dim)
    if not isinstance(split_size_or_sections, (list, tuple)):
        return _split.apply(tensor, _equal_sizes(extent, split_size_or_sections), at)
    return split_with_sizes(tensor, split_size_or_sections, dim)


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
) -> Parts:
    """Views of so many parts, as equal as can be, or of the parts between the given positions.

    Example: torch.tensor_split(tensor([[2., 1.], [1., 3.]]), 1)
    """
    positions = [x for x in (indices_or_sections, indices, sections) if x is not None]
    if len(positions) != 1:
        raise GradcliError("E201", "tensor_split() needs either indices or sections")
    return _tensor_split("tensor_split", input, positions[0], dim)


def _split_along(name: str, dim: int, least: int) -> None:
    @function(name, method=True)
    def split_along(input: Tensor, indices_or_sections: Any) -> Parts:
        ndim = input.array.ndim
        if ndim < least:
            raise shape_error(f"{name}(): a tensor of {ndim} dimensions is too flat")
        at = min(dim, ndim - 1)
        sections = indices_or_sections
        if type(sections) is int and (sections <= 0 or input.array.shape[at] % sections):
            raise shape_error(
                f"{name}(): {sections} equal parts of dimension {at}, which has"
                f" {input.array.shape[at]} elements"
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
