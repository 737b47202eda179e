"""Elements along one dimension by an index tensor: `gather take_along_dim scatter scatter_add`.

The index has as many dimensions as the tensor, and says for each of its places where along the
dimension to read or write.

Whole parts along one dimension, by a vector of positions: `index_select index_add index_copy
index_fill`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, on_the_host, to_host
from gradcli.arrays.fusion.executor import assign
from gradcli.arrays.kernels import in_c
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.layout.strides import copied_in_order, copied_in_rows, overlaps_itself
from gradcli.arrays.scalars import checked_cast, checked_number
from gradcli.autograd.batched import shared
from gradcli.autograd.inplace.writes import check_apart, check_distinct, check_graph, write
from gradcli.autograd.tensor import Tensor, alias
from gradcli.errors import (
    GradcliError,
    dtype_error,
    index_error,
    runtime_error,
    shape_error,
    type_error,
)
from gradcli.ops.arithmetic.arithmetic import no_derivative, zeros
from gradcli.ops.binding.arguments import check_tensors, checked_values, normal_dim
from gradcli.ops.binding.catalogue import function, in_place, method
from gradcli.ops.codegen.runtime import check_tensor, wrong_operand
from gradcli.ops.creation.copies import row_order
from gradcli.ops.definition.doc import BY_VALUES, CHECKS, READS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.indexing.basic import add_at, add_rows
from gradcli.ops.shape.reshaping import flatten
from gradcli.ops.shape.views import expand, reshape, unsqueeze, view

Sizes = tuple[int, ...]

# --- where the elements are ---------------------------------------------------------------------


def positions_along(shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """The flat position, in row order, of each element of an index in an array of a shape."""
    if not shape:
        return index
    dim %= len(shape)
    where = index * math.prod(shape[dim + 1 :])
    for axis, size in enumerate(index.shape):
        if axis != dim:
            sizes = [1] * index.ndim
            sizes[axis] = size
            where = where + (np.arange(size) * math.prod(shape[axis + 1 :])).reshape(sizes)
    return where


def in_index_shape(array: Any, index: Any) -> Any:
    """The part of an array that corresponds to the elements of an index; an empty index has any
    shape."""
    if not index.size:
        return np.zeros(index.shape, array.dtype)
    if array.ndim != index.ndim:  # one of them is 0-dim
        return array.reshape(-1)[: index.size].reshape(index.shape)
    return array[tuple(slice(0, size) for size in index.shape)]


def checked_index(name: str, index: Any) -> None:
    """Raise E202 or E203 unless the index is a tensor of integers."""
    check_tensor(gather, "index", index)
    if index.array.dtype not in (np.dtype(np.int64), np.dtype(np.int32)) and index.array.size:
        raise dtype_error(
            f"{name}(): the index must be torch.int64, and this one is {index.dtype}",
            text=f"{name}(): Expected dtype int32{' or ' if name == 'index_select' else '/'}int64"
            " for index",
            help="use `.long()`",
        )


class PositionError(GradcliError):
    """The error of a position that does not exist.

    Attributes:
        reached: how many positions of the index are in front of it.
    """

    __slots__ = ("reached",)

    reached: int


def check_range(name: str, index: Any, extent: int, dim: int, raises: str) -> None:
    """Raise E302, as the class `raises`, for a position that is not in a dimension."""
    outside = (index < 0) | (index >= extent)
    if outside.any():
        wrong = np.asarray(to_host(index))[to_host(outside)].flat[0]
        error = PositionError(
            "E302",
            f"{name}(): position {wrong} does not exist in dimension"
            f" {dim}, which has {extent} elements",
            text="index out of range in self"
            if raises == "IndexError"
            else f"index {wrong} is out of bounds for dimension {dim} with size {extent}",
            raises=raises,
        )
        error.reached = int(np.argmax(outside))
        raise error


def checked_dim(name: str, tensor: Tensor, dim: int, index: Any, source: Any = None) -> int:
    """The dimension of a gather or scatter, counted from the front; raises E202, E203, E301 or E302
    unless the index goes with the tensor and the source.
    """
    if source is not None and not isinstance(source, Tensor):
        raise wrong_operand(scatter_tensor, "src", source)
    check_tensor(gather, "index", index)
    shape = tensor.array.shape
    at = normal_dim(name, dim, len(shape))
    checked_index(name, index)
    index_shape = index.array.shape
    if not index.array.size:
        return at
    fits = len(index_shape or (1,)) == len(shape or (1,)) and all(
        axis == at or size <= have
        for axis, (size, have) in enumerate(zip(index_shape, shape, strict=False))
    )
    if source is not None:
        fits = (
            fits
            and len(source.array.shape or (1,)) == len(index_shape or (1,))
            and all(
                size <= have for size, have in zip(index_shape, source.array.shape, strict=False)
            )
        )
    if not fits:
        parts = None if source is None else tuple(source.array.shape)
        raise _not_fitting(name, tuple(shape), at, tuple(index_shape), parts)
    extent = shape[at] if shape else 1
    checked_values(check_range, name, index.array, extent, at, "RuntimeError")
    return at


def _not_fitting(
    name: str, shape: Sizes, at: int, index: Sizes, source: Sizes | None
) -> GradcliError:
    """The error of an index that does not go with a tensor and a source of these shapes."""
    whole = "input" if name == "gather" else "self"
    for words, sizes in ((whole, shape), ("src", index if source is None else source)):
        if len(index or (1,)) != len(sizes or (1,)):
            text = f"Index tensor must have the same number of dimensions as {words} tensor"
            break
    else:
        fitting = f"xpected index {list(index)} to be no larger than self {list(shape)} apart from"
        text = f"E{fitting} dimension {at}"
        if name == "gather":
            beyond = [size > have for size, have in zip(index, shape, strict=True)]
            beyond[at] = False
            text = (
                f"Size does not match at dimension {beyond.index(True)} e{fitting} dimension {at}"
            )
        elif source is not None:
            text += f" and to be no larger size than src {list(source)}"
    shapes = [shape] if source is None else [shape, source]
    return shape_error(
        f"{name}(): an index of shape {index} does not fit {' and '.join(map(str, shapes))} along"
        f" dimension {at}",
        text=text,
    )


def same_dtype(name: str, tensor: Tensor, source: Any) -> None:
    """Raise E202 or E203 unless the source is a tensor of the other's dtype."""
    check_tensor(scatter_tensor, "src", source)
    if source.array.dtype is not tensor.array.dtype:
        raise dtype_error(
            f"{name}(): the tensor is {tensor.dtype}, the source {source.dtype}",
            text="scatter(): Expected self.dtype to be equal to src.dtype",
        )


# --- gather and scatter -------------------------------------------------------------------------


gather: Op = op(
    "gather",
    lambda self, dim, index: self.reshape(-1)[positions_along(self.shape, dim, index)],
    constant=("index",),
    # PyTorch keeps the input, though only its shape is needed: so do the rules below that read a
    # value's shape, as a write to the value is an error then.
    self=lambda grad, self, dim, index: scatter_add(zeros(grad, self.shape), dim, index, grad),
    raises=BY_VALUES,
    numpy="""\
def gathered(x, axis, index):
    places = list(np.indices(index.shape))
    places[axis] = index
    return x[tuple(places)]
""",
)


@function("gather", method=True)
def gather_function(input: Tensor, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """At each place of the index the element that stands there along the dimension.

    Raises E203, E301 or E302 where the index does not fit.

    Conventions: An index that is given twice gets both gradients.

    Example: torch.gather(tensor([[2., 1.], [1., 3.]]), 1, tensor([[0, 1], [1, 0]]))
    """
    at = checked_dim("gather", input, dim, index)
    if index.array.ndim != input.array.ndim and not index.array.size:
        return Tensor(module_of(input.array).zeros(index.array.shape, input.array.dtype))
    return gather.apply(input, at, index)


@function("take_along_dim", method=True)
def take_along_dim(input: Tensor, indices: Any, dim: int | None = None) -> Tensor:
    """`gather` with the input and the index broadcast but for the dimension; negative positions
    count from the end. Without `dim` both are taken as vectors, and no position is negative.

    Example: torch.take_along_dim(tensor([[2., 1.], [1., 3.]]), tensor([[0], [1]]), 1)
    """
    checked_index("take_along_dim", indices)
    if indices.dtype is dtypes.int32:
        raise dtype_error("take_along_dim(): the index must be torch.int64", help="use `.long()`")
    if dim is None:
        input = reshape(input, (input.array.size,))
        flat = alias(indices)  # a write to it shows
        flat.array = flat.array.reshape((flat.array.size,))
        at = checked_dim("take_along_dim", input, 0, flat)
        return gather.apply(input, at, flat)
    at = normal_dim("take_along_dim", dim, input.array.ndim)
    if not input.array.ndim and not indices.array.ndim:
        raise index_error(f"Dimension specified as {dim} but tensor has no dimensions")
    if input.array.ndim != indices.array.ndim:
        raise shape_error(
            f"take_along_dim(): {indices.array.ndim} dimensions of the index for"
            f" {input.array.ndim} of the tensor",
            text="torch.take_along_dim(): input and indices should have the same number of"
            f" dimensions, but got {input.array.ndim} dimensions for input, and"
            f" {indices.array.ndim} dimensions for indices",
        )
    shape, index_shape = list(input.array.shape), list(indices.array.shape)
    shape[at] = index_shape[at] = 1
    try:
        common = list(np.broadcast_shapes(tuple(shape), tuple(index_shape)))
    except ValueError:
        raise shape_error(
            f"take_along_dim(): an index of shape {tuple(indices.array.shape)} does not"
            f" broadcast to {tuple(input.array.shape)} but for dimension {at}"
        ) from None
    common[at] = indices.array.shape[at]
    indices = Tensor(np.broadcast_to(indices.array, common))
    common[at] = input.array.shape[at]
    input = expand.apply(input, tuple(common))
    extent = input.array.shape[at]
    wrapped = np.remainder(indices.array, max(extent, 1))  # positions beyond the end wrap around
    checked_values(check_range, "take_along_dim", wrapped, extent, at, "RuntimeError")
    return gather.apply(input, at, Tensor(wrapped))


def _scattered(self: Any, dim: int, index: Any, src: Any) -> Any:
    whole, values = copied_in_rows(self), in_index_shape(src, index)
    is_last = whole.ndim > 0 and dim % whole.ndim == whole.ndim - 1
    if not (is_last and in_c.put_at(whole, index, values)):
        whole.reshape(-1)[positions_along(whole.shape, dim, index)] = values
    return whole


_IN_NUMPY = """\
def {name}(x, axis, index, values):
    x = np.array(x)
    places = list(np.indices(index.shape))
    places[axis] = index
    values = np.asarray(values)[tuple(slice(size) for size in index.shape[: np.ndim(values)])]
    {write}
    return x
"""
"""Calls that write at positions along a dimension; a number goes to all of them."""

_SCATTERED = _IN_NUMPY.format(name="scattered", write="x[tuple(places)] = values")

scatter_tensor: Op = op(
    "scatter",
    _scattered,
    constant=("index",),
    # Where several elements go to one position the last one stays, yet each gets the gradient.
    self=lambda grad, dim, index: scatter_number(grad, dim, index, 0),
    src=gather,
    raises=BY_VALUES,
    numpy=_SCATTERED,
)


def _scattered_number(self: Any, dim: int, index: Any, value: Any) -> Any:
    whole = copied_in_rows(self)
    whole.reshape(-1)[positions_along(whole.shape, dim, index)] = value
    return whole


scatter_number: Op = op(
    "scatter",
    _scattered_number,
    node="ScatterBackward1",
    constant=("index",),
    self=lambda grad, dim, index: scatter_number(grad, dim, index, 0),
    raises=BY_VALUES,
    numpy=_SCATTERED,
)


_REDUCTIONS = {"add": np.add, "multiply": np.multiply}

_no_reduced = no_derivative(
    "scatter() with `reduce`", "use scatter_reduce() or scatter_add()", pytorch="scatter"
)


def _scattered_into(self: Any, dim: int, index: Any, src: Any, reduce: str) -> Any:
    whole = copied_in_rows(self)
    flat, positions = whole.reshape(-1), positions_along(whole.shape, dim, index)
    values = in_index_shape(src, index) if np.ndim(src) else np.full(index.shape, src, whole.dtype)
    _REDUCTIONS[reduce].at(flat, positions.reshape(-1), values.reshape(-1))
    return whole


scatter_into_by_tensor: Op = op(
    "scatter.reduce",
    lambda self, dim, index, src, reduce: _scattered_into(self, dim, index, src, reduce),
    node="NotImplemented",
    constant=("index",),
    self=_no_reduced,
    src=_no_reduced,
    raises=BY_VALUES,
)

scatter_into_by_number: Op = op(
    "scatter.value_reduce",
    lambda self, dim, index, value, reduce: _scattered_into(self, dim, index, value, reduce),
    node="NotImplemented",
    constant=("index",),
    self=_no_reduced,
    raises=BY_VALUES,
)


def _reduced_scatter(input: Tensor, dim: int, index: Any, source: Any, reduce: Any) -> Tensor:
    """`scatter` that adds to what is there, or multiplies it; PyTorch defines no derivative."""
    if reduce not in _REDUCTIONS:
        raise runtime_error(
            f"scatter(): `reduce` is 'add' or 'multiply', not {reduce!r}",
            help="scatter_reduce() takes 'sum', 'prod', 'mean', 'amax' and 'amin'",
        )
    if not isinstance(source, Tensor):
        number = checked_cast(source, input.dtype)
        return scatter_into_by_number.apply(input, dim, index, number, reduce)
    same_dtype("scatter", input, source)
    return scatter_into_by_tensor.apply(input, dim, index, source, reduce)


def check_along(name: str, self: Tensor, /, dim: Any = 0, *operands: Any, **named: Any) -> None:
    """What PyTorch checks, in its order, before it writes along a dimension of a tensor: its place
    in the graph, the dimension, the memory that it shares with operands. Raises E405 and E302.
    """
    check_graph(name, self, *operands, **named)
    normal_dim("in-place write", dim, self.array.ndim)
    check_distinct(name, self, *operands, **named)


@function("scatter", method=True, inplace=True, check=check_along)
def scatter(
    input: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Tensor:
    """The tensor with the source's elements, or a number, at the places that the index says; with
    `reduce` "add" or "multiply" joined to what is there.

    Raises E203, E301 or E302 where index or source do not fit, E204 for another `reduce`.

    Conventions: Where an index is given twice, one of the values is kept; each gets the gradient.

    Example:
        torch.scatter(tensor([[2., 1.], [1., 3.]]), 1, tensor([[0, 0], [1, 0]]), tensor([[1., 0.],
            [2., 1.]]))
    """
    source = value if src is None else src
    if not isinstance(source, Tensor):
        if source is None:
            raise GradcliError("E201", "scatter() needs a source or a value")
        at = checked_dim("scatter", input, dim, index)
        if reduce is not None:
            return _reduced_scatter(input, at, index, source, reduce)
        return scatter_number.apply(input, at, index, checked_number(source, input.dtype))
    at = checked_dim("scatter", input, dim, index, source)
    if reduce is not None:
        return _reduced_scatter(input, at, index, source, reduce)
    same_dtype("scatter", input, source)
    return scatter_tensor.apply(input, at, index, source)


def _scatter_added(self: Any, dim: int, index: Any, src: Any) -> Any:
    # Half precision is rounded once for all that is added, unlike in `index_add`.
    whole = copied_in_rows(wide(self))
    add_at(whole, positions_along(whole.shape, dim, index), wide(in_index_shape(src, index)))
    return whole.astype(self.dtype, copy=False)


scatter_add: Op = op(
    "scatter_add",
    _scatter_added,
    constant=("index",),
    self=lambda grad: grad,
    src=gather,
    raises=BY_VALUES,
    numpy=_IN_NUMPY.format(name="scatter_added", write="np.add.at(x, tuple(places), values)"),
)


@function("scatter_add", method=True, inplace=True, check=check_along)
def scatter_add_function(input: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """The tensor with the source's elements added at the places that the index says.

    Example:
        torch.scatter_add(tensor([[2., 1.], [1., 3.]]), 1, tensor([[0, 0], [1, 0]]), tensor([[1.,
            0.], [2., 1.]]))
    """
    at = checked_dim("scatter_add", input, dim, index, src)
    same_dtype("scatter_add", input, src)
    return scatter_add.apply(input, at, index, src)


# --- whole parts ----------------------------------------------------------------------------------


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
        return whole + values.sum(dtype=whole.dtype)  # sums of small integers are wider
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
