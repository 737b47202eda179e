"""Elements along one dimension by an index tensor: `gather take_along_dim scatter scatter_add`.

The index has as many dimensions as the tensor, and says for each of its places where along the
dimension to read or write.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, to_host
from gradcli.arrays.kernels.sums import wide
from gradcli.arrays.layout.strides import copied_in_rows
from gradcli.arrays.scalars import checked_cast, checked_number
from gradcli.autograd.inplace.writes import check_distinct, check_graph
from gradcli.autograd.tensor import Tensor, alias
from gradcli.errors import GradcliError, dtype_error, index_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import no_derivative, zeros
from gradcli.ops.binding.arguments import checked_values, normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.runtime import check_tensor, wrong_operand
from gradcli.ops.definition.doc import BY_VALUES
from gradcli.ops.definition.op import Op, op
from gradcli.ops.indexing.basic import add_at
from gradcli.ops.shape.views import expand, reshape

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
        shapes = [tuple(shape)] + ([] if source is None else [tuple(source.array.shape)])
        text = None
        if len(index_shape or (1,)) != len(shape or (1,)):
            text = "Index tensor must have the same number of dimensions as input tensor"
        raise shape_error(
            f"{name}(): an index of shape {tuple(index_shape)} does not fit"
            f" {' and '.join(map(str, shapes))} along dimension {at}",
            text=text,
        )
    extent = shape[at] if shape else 1
    checked_values(check_range, name, index.array, extent, at, "RuntimeError")
    return at


def same_dtype(name: str, tensor: Tensor, source: Any) -> None:
    """Raise E202 or E203 unless the source is a tensor of the other's dtype."""
    check_tensor(scatter_tensor, "src", source)
    if source.array.dtype is not tensor.array.dtype:
        raise dtype_error(f"{name}(): the tensor is {tensor.dtype}, the source {source.dtype}")


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
        flat.array = flat.array.reshape(-1)
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
    whole = copied_in_rows(self)
    whole.reshape(-1)[positions_along(whole.shape, dim, index)] = in_index_shape(src, index)
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

_no_reduced = no_derivative("scatter() with `reduce`", "use scatter_reduce() or scatter_add()")


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
