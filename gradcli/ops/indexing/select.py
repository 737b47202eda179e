"""Whole parts along one dimension, by a vector of positions: `index_select index_add index_copy
index_fill`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, on_the_host
from gradcli.arrays.fusion.executor import assign
from gradcli.arrays.layout.strides import copied_in_order, copied_in_rows, overlaps_itself
from gradcli.arrays.scalars import checked_cast
from gradcli.autograd.batched import shared
from gradcli.autograd.inplace.writes import check_apart, check_graph, write
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, index_error, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import check_tensors, checked_values, normal_dim
from gradcli.ops.binding.catalogue import function, in_place, method
from gradcli.ops.codegen.runtime import check_tensor
from gradcli.ops.creation.copies import row_order
from gradcli.ops.definition.doc import BY_VALUES, CHECKS, READS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.indexing.basic import add_at, add_rows
from gradcli.ops.indexing.gather import (
    PositionError,
    check_along,
    check_range,
    checked_index,
    positions_along,
    same_dtype,
)
from gradcli.ops.shape.reshaping import flatten
from gradcli.ops.shape.views import expand, unsqueeze, view

Sizes = tuple[int, ...]


def part_positions(shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """The flat positions of whole parts of an array along a dimension."""
    if not shape:
        return index.reshape(-1)
    sizes = [1] * len(shape)
    sizes[dim] = index.size
    index_shape = list(shape)
    index_shape[dim] = index.size
    return positions_along(shape, dim, np.broadcast_to(index.reshape(sizes), index_shape))


index_select: Op = op(
    "index_select",
    lambda self, dim, index: np.take(self, index.reshape(-1), dim) if self.ndim else self.copy(),
    constant=("index",),
    self=lambda grad, self_sizes, dim, index: index_add(zeros(grad, self_sizes), dim, index, grad),
    numpy="np.take({0}, {2}, axis={1})",
    raises=BY_VALUES,
)


def _unpacked(grad: Any, self_sizes: Sizes, index: Any) -> Any:
    rows = view(zeros(grad, self_sizes), (self_sizes[0] * self_sizes[1], *self_sizes[2:]))
    return view(index_add(rows, 0, index, grad), self_sizes)


pack_padded_sequence: Op = op(
    "_pack_padded_sequence",
    lambda self, index: self.reshape(-1, *self.shape[2:])[index],
    constant=("index",),
    self=lambda grad, self_sizes, index: _unpacked(grad, self_sizes, index),
    doc="The rows at positions in two dimensions that count as one.",
    raises=BY_VALUES,
)


def _add_parts(self: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    whole = copied_in_rows(self)
    values = source if alpha == 1 else source * alpha
    if not whole.ndim:
        return whole + values.sum()
    if dim in (0, -whole.ndim):
        if not values.size:
            return whole
        width = whole.size // max(1, len(whole))
        add_rows(whole.reshape(-1, width), index.reshape(-1), values.reshape(index.size, width))
    else:
        add_at(whole, part_positions(whole.shape, dim, index), values)
    return whole


def _added_rule(grad: Any, dim: int, index: Any, source: Any, alpha: Any) -> Any:
    # The source is kept as PyTorch keeps it: see `gather`.
    parts = expand(index_select(grad, dim, index), source.shape)
    return parts if alpha == 1 else parts * alpha


index_add: Op = op(
    "index_add",
    _add_parts,
    constant=("index",),
    self=lambda grad: grad,
    source=_added_rule,
    raises=BY_VALUES,
    numpy="""\
def index_added(x, axis, index, values):
    x = np.array(x)
    np.add.at(x, (slice(None),) * (axis % x.ndim) + (index,), values)
    return x
""",
)


def _copy_parts(self: Any, dim: int, index: Any, source: Any) -> Any:
    whole = copied_in_rows(self)
    if whole.ndim:
        whole.reshape(-1)[part_positions(whole.shape, dim, index)] = source
    else:
        whole[...] = source.reshape(-1)[-1]
    return whole


_index_copy: Op = op(
    "index_copy",
    _copy_parts,
    constant=("index",),
    self=lambda grad, dim, index: index_fill_number(grad, dim, index, 0),
    source=lambda grad, dim, index, source: expand(index_select(grad, dim, index), source.shape),
    raises=BY_VALUES,
)


def _fill_parts(self: Any, dim: int, index: Any, value: Any) -> Any:
    whole = copied_in_order(self) if self.ndim else module_of(self).array(self)
    _fill_places(whole, dim, index, value)
    return whole


def _fill_places(whole: Any, dim: int, index: Any, value: Any) -> None:
    if whole.ndim:
        np.moveaxis(whole, dim, 0)[index.reshape(-1)] = value
    elif index.size:
        whole[...] = value


index_fill_number: Op = op(
    "index_fill",
    _fill_parts,
    constant=("index",),
    keeps_layout=True,
    self=lambda grad, dim, index: index_fill_number(grad, dim, index, 0),
    raises=BY_VALUES,
    numpy="""\
def index_fill(array, axis, index, value):
    x = np.array(array)
    x[(slice(None),) * (axis % x.ndim) + (index,)] = value
    return x
""",
)


def _unique(index: Any) -> Any:
    if type(index) is Tensor:
        return Tensor(np.unique(shared(index.array)))
    return np.unique(index)


index_fill_tensor: Op = op(
    "index_fill",
    _fill_parts,
    node="IndexFillBackward1",
    constant=("index",),
    keeps_layout=True,
    self=lambda grad, dim, index: index_fill_number(grad, dim, index, 0),
    # A part that is filled twice counts once. The engine sums to the value's shape, 0-dim.
    value=lambda grad, dim, index: index_select(grad, dim, _unique(index)),
    raises=BY_VALUES,
)


def _check_vector(name: str, tensor: Tensor, index: Any) -> None:
    """Raise E202, E203 or E302 unless the index is a vector of integers, or one of them."""
    check_tensors(name, input=tensor, index=index)
    if index.array.ndim > 1:
        raise index_error(f"{name}(): Index is supposed to be a vector")
    checked_index(name, index)


@function("index_select", method=True)
def index_select_function(input: Tensor, dim: int, index: Any) -> Tensor:
    """The parts at the given positions of a dimension. Raises E302 for one that does not exist.

    Example: torch.index_select(tensor([[2., 1.], [1., 3.]]), 0, tensor([1]))
    """
    # PyTorch selects along dimension 1 by another kernel, which has its own error.
    ndim = input.array.ndim
    other_route = ndim > 1 and (dim in (1, 1 - ndim) or not input.array.size)
    raises = "RuntimeError" if other_route else "IndexError"
    at = normal_dim("index_select", dim, input.array.ndim)
    _check_vector("index_select", input, index)
    extent = input.array.shape[at] if input.array.ndim else 1
    checked_values(check_range, "index_select", index.array, extent, at, raises)
    if not ndim and index.array.size != 1:
        count = index.array.size
        raise shape_error(
            f"index_select(): {count} positions in a tensor of one element and no dimension",
            text=f"index_select(): Index to scalar can have only 1 value, got {count} value(s)",
        )
    return index_select.apply(input, at, index)


def checked_source(name: str, input: Tensor, dim: int, index: Any, source: Any, raises: str) -> int:
    """The dimension counted from the front; raises E202, E203, E301 or E302 unless the source gives
    a part for each position of the index. Positions are looked at last, as in PyTorch.
    """
    check_tensor(index_add, "source", source)
    at = normal_dim(name, dim, input.array.ndim)
    _check_vector(name, input, index)
    same_dtype(name, input, source)
    source_sizes, own = list(source.array.shape), list(input.array.shape)
    count = index.array.size
    misfit_of = _copy_misfit if name == "index_copy" else _sum_misfit
    problem, kind, text = misfit_of(name, source_sizes, own, at, count)
    if problem:
        raise shape_error(
            f"{name}(): {count} positions along dimension {at} of {tuple(own)}, and a source of"
            f" shape {tuple(source_sizes)}: {problem}",
            text=text,
            raises=kind,
        )
    extent = own[at] if own else 1
    checked_values(check_range, name, index.array, extent, at, raises)
    return at


def _without(sizes: list[int], at: int) -> list[int]:
    return sizes[:at] + sizes[at + 1 :]


def _check_copied_dims(tensor: Tensor, index: Tensor, source: Tensor) -> None:
    """Raise E302 where the numbers of dimensions of what `index_copy` was given do not fit, which
    PyTorch finds before it looks at dtypes.
    """
    problem = text = None
    source_ndim, own = source.array.ndim, tensor.array.ndim
    if index.array.ndim > 1:
        problem = "the index must be a vector"
    elif not source_ndim and index.array.size != 1:
        problem = "one element is no more than one part"
        text = (
            "index_copy_(): When source is scalar, index should have one element (got"
            f" {index.array.size})"
        )
    elif source_ndim and own and source_ndim != own:
        problem = f"{source_ndim} dimensions cannot be copied into {own}"
        text = (
            "index_copy_(): When source and destination are not scalars, their dimensionality must"
            f" match. Source dimensionality ({source_ndim}), destination dimensionality ({own})"
        )
    if problem is not None:
        raise index_error(f"index_copy(): {problem}", text=text)


def _sum_misfit(
    name: str, source: list[int], own: list[int], at: int, count: int
) -> tuple[str, str, str]:
    """What is wrong with the shape of a source that is added to, or reduced with, a tensor of shape
    `own`, with the class that PyTorch raises for it and its text.
    """
    if not source and at == 0 and count != 1:
        text = f"Dimension specified as {at} but tensor has no dimensions"
        return "one element is no more than one part", "IndexError", text
    if at >= max(len(source), 1) or (source and source[at] != count):
        if at < len(source):
            words = f"Number of indices ({count}) should be equal to source.size(dim): "
            text = f"{name}_(): {words}({source[at]}), for dim: {at}"
        else:
            words = f"Indexing dim {at} is out of bounds of the source tensor with dim"
            text = f"{name}_(): {words} {len(source)}"
        return "it does not have a part for each", "RuntimeError", text
    parts = (_without(source, at), _without(own, at)) if source and own else (source, own)
    text = (
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got"
        f" self.shape = {own} source.shape = {source}"
    )
    return "" if parts[0] == parts[1] else "the parts have another shape", "RuntimeError", text


def _copy_misfit(
    name: str, sizes: list[int], own: list[int], at: int, count: int
) -> tuple[str, str, str]:
    """The same of a source that is copied."""
    target, source = _without(own, at), _without(sizes, at)
    if source != target:
        text = (
            f"{name}_(): Source/destination tensor must have same slice shapes. Destination slice"
            f" shape: {' '.join(map(str, target))} at dimension {at} and source slice shape:"
            f" {' '.join(map(str, source))} at dimension 0."
        )
        return "the parts have another shape", "RuntimeError", text
    if sizes and sizes[at] != count:
        text = f"{name}_(): Number of indices ({count}) should be equal to source.size(dim)"
        return "it does not have a part for each", "IndexError", f"{text} ({sizes[at]})"
    return "", "RuntimeError", ""


@function("index_add", method=True)
def index_add_function(
    input: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1
) -> Tensor:
    """The tensor with `alpha` times the parts of the source added at the positions of the index.

    Example: torch.index_add(tensor([[2., 1.], [1., 3.]]), 0, tensor([1]), ones(1, 2))
    """
    ndim = input.array.ndim
    # PyTorch adds along the first and the last dimension by another kernel.
    other_route = ndim > 1 and dim in (0, -ndim, ndim - 1, -1)
    raises = "RuntimeError" if other_route else "IndexError"
    at = checked_source("index_add", input, dim, index, source, raises)
    if type(alpha) is not int or alpha != 1:
        alpha = checked_cast(alpha, input.dtype)
    return index_add.apply(input, at, index, source, alpha)


@function("index_copy", method=True)
def index_copy(input: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """The tensor with the parts of the source at the positions of the index.

    Example: torch.index_copy(tensor([[2., 1.], [1., 3.]]), 0, tensor([1]), ones(1, 2))
    """
    check_tensors("index_copy", input=input, index=index, source=source)
    normal_dim("index_copy", dim, input.array.ndim)
    _check_copied_dims(input, index, source)
    if index.dtype is dtypes.int32:
        raise dtype_error("index_copy(): the index must be torch.int64", help="use `.long()`")
    raises = "IndexError" if input.array.size else "RuntimeError"
    at = checked_source("index_copy", input, dim, index, source, raises)
    return _index_copy.apply(input, at, index, source)


@function("index_fill", method=True)
def index_fill(input: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """The tensor with a number, or a 0-dim tensor's, at the positions of the index.

    Example: torch.index_fill(tensor([[2., 1.], [1., 3.]]), 0, tensor([1]), 0.)
    """
    check_tensors("index_fill", input=input, index=index)
    if isinstance(value, Tensor) and value.array.ndim:
        raise shape_error(
            f"index_fill(): the value must be 0-dim, not of {value.array.ndim} dimensions"
        )
    if index.array.dtype != np.int64:
        raise dtype_error(
            f"index_fill(): the index must be torch.int64, and this one is {index.dtype}",
            raises="IndexError",
        )
    if index.array.ndim > 1:
        raise index_error("index_fill(): the index must be a vector", raises="RuntimeError")
    at = normal_dim("index_fill", dim, input.array.ndim)
    extent = input.array.shape[at] if input.array.ndim else 1
    wrapped = np.where(index.array < 0, index.array + extent, index.array)
    check_range("index_fill", wrapped, extent, at, "IndexError" if extent else "RuntimeError")
    if not isinstance(value, Tensor):
        value = checked_cast(value, input.dtype)
        return index_fill_number.apply(input, at, index, value)
    if value.dtype.is_complex and not input.dtype.is_complex:
        raise dtype_error(f"index_fill(): a complex value does not fit {input.dtype}")
    return index_fill_tensor.apply(input, at, index, value)


@method("index_fill_")
def index_fill_(self: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """Write a number, or a 0-dim tensor's, at the positions of the index."""
    # The value is read before the write, so it may be one of the elements written.
    check_apart(self, index)
    check_graph("index_fill_", self, value)
    try:
        result = index_fill(self, dim, index, value)
    except PositionError as refusal:
        filler = value.array if isinstance(value, Tensor) else checked_cast(value, self.dtype)
        leave_part(self, dim, index.array[: refusal.reached], filler)
        raise
    write(self, result)
    if overlaps_itself(self.array.shape, self.array.strides):
        # Where elements share a place, the write put back old values beside those filled.
        filler = value.array if isinstance(value, Tensor) else value
        _fill_places(self.array, dim, index.array, filler)
    return self


# --- writes that end at a position that does not exist ------------------------------------------


def leave_part(self: Tensor, dim: int, index: Any, values: Any) -> None:
    """Write what PyTorch has written when it comes to a position that does not exist: the parts
    that the positions in front of it name, of what lies first along the dimensions further out.
    """
    whole = copied_in_order(self.array)
    if whole.ndim:
        outer = (0,) * (dim % whole.ndim)
        whole[outer][index] = values[outer][: index.size] if np.ndim(values) else values
        assign(self.array, whole)


@method("index_copy_")
def _copy_in_place(self: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """Write the parts of the source at the positions of the index."""
    try:
        return _copied(self, dim, index, source)
    except PositionError as refusal:
        leave_part(self, dim, index.array[: refusal.reached], source.array)
        raise


@method("index_add_")
def _add_in_place(self: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """Add `alpha` times the parts of the source at the positions of the index."""
    try:
        return _added(self, dim, index, source, alpha=alpha)
    except PositionError as refusal:
        ndim = self.array.ndim
        if ndim:
            at = dim % ndim
            # Whole parts are added one after the other, but for those of one element.
            outer = (0,) * at if at == ndim - 1 else ()
            parts = np.take(source.array[outer], range(refusal.reached), at - len(outer))
            written, positions = self.array[outer], index.array[: refusal.reached]
            assign(written, _add_parts(written, at - len(outer), positions, parts, alpha))
        raise


_copied = in_place("index_copy", index_copy, check=check_along)
_added = in_place("index_add", index_add_function, check=check_along)


# --- repeat_interleave --------------------------------------------------------------------------


@function("repeat_interleave", method=True, effects=(CHECKS, READS))
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element repeated next to itself: so often, or as often as its own entry of `repeats`.

    Without `dim` the tensor is taken as one vector; without `repeats`, the input holds them and
    positions are returned.

    Example: torch.repeat_interleave(tensor([0.5, 1., 2.]), 2)
    """
    if repeats is None:
        _check_counts(input, input.array)
        if input.array.ndim != 1:
            raise runtime_error(
                "repeat_interleave(): the counts must be a vector",
                "repeat_interleave only accept 1D vector as repeat",
            )
        return Tensor(_positions(input.array.size, input.array))
    counts = repeats.array.reshape(-1) if isinstance(repeats, Tensor) else np.asarray(repeats)
    if isinstance(repeats, Tensor) and repeats.array.ndim > 1:
        raise runtime_error("repeats must be 0-dim or 1-dim tensor")
    _check_counts(repeats, counts)
    if dim is None:
        input, dim = flatten(input), 0
    at = normal_dim("repeat_interleave", dim, input.array.ndim)
    shape = input.array.shape
    total = shape[at] * int(counts.sum()) if counts.size == 1 else int(counts.sum())
    if output_size not in (None, total):
        raise runtime_error(
            f"repeat_interleave(): output_size is {output_size}, and there are {total} elements"
        )
    if not isinstance(repeats, Tensor):
        apart = unsqueeze.apply(input, at + 1)
        wide = expand.apply(apart, (*shape[: at + 1], repeats, *shape[at + 1 :]))
        joined = (*shape[:at], shape[at] * repeats, *shape[at + 1 :])
        return view.apply(row_order.apply(wide), joined)
    if counts.size not in (1, shape[at]):
        raise shape_error(
            f"repeat_interleave(): {counts.size} repeats for dimension {at} of {shape[at]}"
        )
    where = module_of(input.array).asarray(_positions(shape[at], counts))
    return index_select.apply(input, at, Tensor(where))


def _check_counts(repeats: Any, counts: Any) -> None:
    if counts.dtype.kind not in "iu":
        raise type_error(
            "repeat_interleave(): the counts must be integers",
            raises="NotImplementedError" if isinstance(repeats, Tensor) else "TypeError",
        )
    if counts.size and counts.min() < 0:
        raise runtime_error("Repeats must be non-negative")


@on_the_host
def _positions(size: int, counts: Any) -> Any:
    """Each position as often as its count says."""
    return np.repeat(np.arange(size), counts)
