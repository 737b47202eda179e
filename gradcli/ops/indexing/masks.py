"""Elements by a mask or by their flat position: `masked_fill masked_select nonzero take put`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of, to_host
from gradcli.arrays.fusion.tile_kernels import choose
from gradcli.arrays.layout.sizes import sizes_apart
from gradcli.arrays.layout.strides import laid_out_like, overlaps_itself
from gradcli.arrays.scalars import checked_number
from gradcli.autograd.inplace.writes import check_distinct, check_graph, check_inplace, check_parts
from gradcli.autograd.tensor import Tensor, refuse_batched
from gradcli.errors import dtype_error, index_error, shape_error, type_error, value_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.catalogue import function, in_place, method
from gradcli.ops.codegen.runtime import check_tensor, type_name
from gradcli.ops.definition.doc import BY_KINDS, BY_VALUES, CHECKS, READS
from gradcli.ops.definition.op import Op, op
from gradcli.ops.indexing.basic import add_at
from gradcli.ops.shape.joining import cat, stack_function, unbind
from gradcli.ops.shape.reshaping import meshgrid
from gradcli.ops.shape.views import reshape
from gradcli.state import look

# --- masks --------------------------------------------------------------------------------------


def _checked_mask(name: str, tensor: Tensor, mask: Any) -> None:
    """Raise E202, E203 or E301 unless the mask is a bool tensor that goes with the tensor."""
    check_tensor(_masked_select, "mask", mask)
    if mask.array.dtype != np.bool_:
        raise dtype_error(
            f"{name}(): the mask must be a bool tensor, and this one is {mask.dtype}",
            text=f"{name}_ only supports boolean masks, but got mask with dtype"
            f" {mask.dtype.c_name if name == 'masked_fill' else mask.dtype.scalar_type}"
            if name in ("masked_fill", "masked_scatter")
            else f"{name}: expected BoolTensor for mask",
            help="compare: `x > 0`",
        )
    try:
        np.broadcast_shapes(tensor.array.shape, mask.array.shape)
    except ValueError:
        raise shape_error(
            f"{name}(): a mask of shape {tuple(mask.array.shape)} does not fit a tensor of shape"
            f" {tuple(tensor.array.shape)}",
            text=sizes_apart(mask.array.shape, tensor.array.shape) or None,
        ) from None


def _filled(self: Any, mask: Any, value: Any) -> Any:
    return choose(mask, value, self).astype(self.dtype, copy=False)[()]


masked_fill_number: Op = op(
    "masked_fill",
    _filled,
    constant=("mask",),
    self=lambda grad, mask: masked_fill_number(grad, mask, 0),
    raises=BY_KINDS,
)


masked_fill_tensor: Op = op(
    "masked_fill",
    _filled,
    node="MaskedFillBackward1",
    constant=("mask",),
    self=lambda grad, mask: masked_fill_number(grad, mask, 0),
    # The engine sums the gradient to the value's shape, 0-dim.
    value=lambda grad, mask: _masked_select(grad, mask),
    raises=BY_KINDS,
)


def _check_filled(
    name: str, self: Tensor, mask: Any = None, /, *operands: Any, **named: Any
) -> None:
    """Raise E405 where a mask may not be applied in place; the tensor may be expanded, the value
    part of it.
    """
    check_parts(self, named.get("mask", mask))
    check_graph(name, self, mask, *operands, **named)


@function("masked_fill", method=True)
def masked_fill(input: Tensor, mask: Any, value: Any) -> Tensor:
    """The tensor with a number, or a 0-dim tensor's, where the mask is true. The dtype stays.

    Example: torch.masked_fill(tensor([0.5, 1., 2.]), tensor([True, False, True]), 0.)
    """
    _checked_mask("masked_fill", input, mask)
    if isinstance(value, (bool, int, float, complex)):
        return masked_fill_number.apply(input, mask, checked_number(value, input.dtype))
    check_tensor(masked_fill_tensor, "value", value)
    if value.array.ndim:
        raise shape_error(
            f"masked_fill(): the value must be 0-dim, not of {value.array.ndim} dimensions",
            text="masked_fill_ only supports a 0-dimensional value tensor, but got tensor with"
            f" {value.array.ndim} dimension(s).",
        )
    if value.dtype.is_complex and not input.dtype.is_complex:
        raise dtype_error(f"masked_fill(): a complex value does not fit {input.dtype}")
    return masked_fill_tensor.apply(input, mask, value)


_written = in_place("masked_fill", masked_fill, check=_check_filled)


@method("masked_fill_")
def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """Write a number, or a 0-dim tensor's, where the mask is true."""
    _written(self, mask, value)
    if overlaps_itself(self.array.shape, self.array.strides):
        # Where elements share a place, the write put back old values beside those filled.
        filler = value.array if isinstance(value, Tensor) else value
        np.copyto(self.array, filler, where=mask.array, casting="unsafe")
    return self


def _select_masked(self: Any, mask: Any) -> Any:
    whole, mask = np.broadcast_arrays(self, mask)
    return whole[mask]


def _masked_select_rule(grad: Any, self: Any, mask: Any) -> Any:
    # The input is kept as PyTorch keeps it: see `gather`.
    sizes = np.broadcast_shapes(tuple(self.shape), tuple(mask.shape))
    return _masked_scatter(zeros(grad, sizes), mask, grad)


_masked_select: Op = op(
    "masked_select",
    _select_masked,
    constant=("mask",),
    self=_masked_select_rule,
    numpy="{head}[{1}]",
    effects=(READS,),
    raises=BY_VALUES,
)


@function("masked_select", method=True)
def masked_select(input: Tensor, mask: Any) -> Tensor:
    """The elements where the mask is true, as a vector.

    Example: torch.masked_select(tensor([0.5, 1., 2.]), tensor([True, False, True]))
    """
    refuse_batched("masked_select", mask)
    _checked_mask("masked_select", input, mask)
    return _masked_select.apply(input, mask)


def _scatter_masked(self: Any, mask: Any, source: Any) -> Any:
    shown = np.broadcast_to(self, np.broadcast_shapes(self.shape, mask.shape))
    whole = module_of(self, mask).array(shown)
    mask = np.broadcast_to(mask, whole.shape)
    whole[mask] = source.reshape(-1)[: np.count_nonzero(mask)]
    return whole


_masked_scatter: Op = op(
    "masked_scatter",
    _scatter_masked,
    constant=("mask",),
    self=lambda grad, mask: masked_fill_number(grad, mask, 0),
    source=lambda grad, mask, source_sizes: masked_scatter_backward(grad, mask, source_sizes),
    raises=BY_VALUES,
)


def _gather_masked(grad_output: Any, mask: Any, sizes: tuple[int, ...]) -> Any:
    whole = module_of(grad_output).zeros(math.prod(sizes), grad_output.dtype)
    taken = _select_masked(grad_output, mask)
    whole[: taken.size] = taken
    return whole.reshape(sizes)


def _gather_masked_decomposed(grad_output: Tensor, mask: Tensor, sizes: tuple[int, ...]) -> Tensor:
    taken = _masked_select.apply(grad_output, mask)
    missing = math.prod(sizes) - taken.array.size
    return reshape(cat.apply([taken, zeros(taken, (missing,))], 0) if missing else taken, sizes)


masked_scatter_backward: Op = op(
    "masked_scatter_backward",
    _gather_masked,
    decomposition=_gather_masked_decomposed,
    constant=("mask",),
    grad_output=lambda grad, grad_output_sizes, mask: _masked_scatter(
        zeros(grad, grad_output_sizes), mask, grad
    ),
    raises=BY_VALUES,
)


@function(
    "masked_scatter",
    method=True,
    inplace=True,
    check=lambda name, self, *operands, **named: check_inplace(name, self),
)
def masked_scatter(input: Tensor, mask: Any, source: Tensor) -> Tensor:
    """The tensor with the elements of the source, in order, where the mask is true.

    Raises E203 where the dtypes differ, E301 where the source has too few elements.

    Example:
        torch.masked_scatter(tensor([0.5, 1., 2.]), tensor([True, False, True]), tensor([2., 1.,
            3.]))
    """
    _checked_mask("masked_scatter", input, mask)
    check_tensor(_masked_scatter, "source", source)
    if source.array.dtype is not input.array.dtype:
        raise dtype_error(
            f"masked_scatter(): the tensor is {input.dtype}, the source {source.dtype}",
            text="masked_scatter: expected self and source to have same dtypes but got"
            f"{input.dtype.scalar_type} and {source.dtype.scalar_type}",
        )
    shape = np.broadcast_shapes(input.array.shape, mask.array.shape)
    wanted = int(np.count_nonzero(np.broadcast_to(mask.array, shape)))
    if source.array.size < wanted:
        raise shape_error(
            f"masked_scatter(): {source.array.size} elements for {wanted} places",
            text="Number of elements of source < number of ones in mask",
        )
    return _masked_scatter.apply(input, mask, source)


# --- where something is ---------------------------------------------------------------------------


@function("nonzero", method=True, effects=(READS,))
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero: a row for each, or a vector per dimension.

    A 0-dim tensor has rows of no columns.

    Example: torch.nonzero(tensor([True, False, True]))
    """
    refuse_batched("nonzero", input)
    look(None, input.array)
    if as_tuple:
        return tuple(Tensor(along) for along in np.atleast_1d(input.array).nonzero())
    if not input.array.ndim:
        return Tensor(np.zeros((int(bool(input.array)), 0), np.int64))
    return Tensor(np.argwhere(input.array))


@function("argwhere", method=True, effects=(READS,))
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row for each.

    Example: torch.argwhere(tensor([True, False, True]))
    """
    return nonzero(input)


# --- flat positions -----------------------------------------------------------------------------


_take: Op = op(
    "take",
    lambda self, index: self.reshape(-1)[index],
    constant=("index",),
    # The input is kept as PyTorch keeps it: see `gather`.
    self=lambda grad, self, index: _put(zeros(grad, self.shape), index, grad, True),
    raises=BY_VALUES,
    numpy="np.take({0}, {1})",
)


def _put_array(self: Any, index: Any, source: Any, accumulate: bool) -> Any:
    xp = module_of(self)
    whole = xp.array(self, order="C")
    if accumulate:
        add_at(whole, xp.asarray(index), xp.asarray(source))
    else:
        whole.reshape(-1)[index.reshape(-1)] = source.reshape(-1)
    return laid_out_like(self, whole)


_put: Op = op(
    "put",
    _put_array,
    keeps_layout=True,
    constant=("index",),
    self=lambda grad, index, accumulate: (
        grad if accumulate else _put(grad, index, zeros(grad, tuple(index.shape)), False)
    ),
    # The source is kept as PyTorch keeps it: see `gather`.
    source=lambda grad, index, source: reshape(_take(grad, index), source.shape),
    raises=BY_VALUES,
    numpy="""\
def put(array, index, values, accumulate=False):
    x = np.array(array).reshape(-1)
    if accumulate:
        np.add.at(x, index, values)
    else:
        x[index] = values
    return x.reshape(array.shape)
""",
)


def _checked_flat(name: str, tensor: Tensor, index: Any) -> None:
    """Raise E202, E203 or E302 unless the index holds positions in the tensor."""
    check_tensor(_take, "index", index)
    if index.array.dtype != np.int64:
        raise dtype_error(f"{name}(): the index must be torch.int64, and this one is {index.dtype}")
    size = tensor.array.size
    outside = (index.array < -size) | (index.array >= size)
    if outside.any():
        wrong = np.asarray(to_host(index.array))[to_host(outside)].flat[0]
        raise index_error(
            f"out of range: tried to access index {wrong} on a tensor of {size} elements."
        )


@function("take", method=True)
def take(input: Tensor, index: Any) -> Tensor:
    """The elements at flat positions, in the index's shape.

    Conventions: An index that is given twice gets both gradients.

    Example: torch.take(tensor([[2., 1.], [1., 3.]]), tensor([0, 3]))
    """
    _checked_flat("take", input, index)
    return _take.apply(input, index)


@function("unravel_index", effects=(CHECKS,))
def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """The indices along each dimension of a shape that flat positions in it stand for.

    Raises E203 unless the positions are integers, E202 or E204 for what is no shape.

    Example: torch.unravel_index(tensor([1, 5]), (2, 3))
    """
    if not isinstance(indices, Tensor):
        raise type_error(
            "unravel_index(): the indices must be a tensor",
            text=f"'{type(indices).__name__}' object has no attribute 'is_complex'",
            raises="AttributeError",
        )
    if indices.dtype.category != "int":
        raise dtype_error(
            f"expected 'indices' to be integer dtype, but got {indices.dtype}", raises="TypeError"
        )
    sizes = (shape,) if type(shape) is int else shape
    if not isinstance(sizes, (tuple, list)) or any(type(size) is not int for size in sizes):
        raise type_error(
            "expected 'shape' to be int or sequence of ints, but got"
            f" <class '{type(shape).__name__}'>"
        )
    if any(size < 0 for size in sizes):
        raise value_error(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    positions = module_of(indices.array).asarray(indices.array).astype(np.int64)
    if not sizes:
        return ()
    steps = np.append(np.cumprod(np.array(sizes[:0:-1], np.int64))[::-1], 1)
    coordinates = positions[..., None] // steps % np.array(sizes, np.int64)
    return unbind(Tensor(coordinates), -1)


@function("put", method=True, inplace=True, check=check_distinct)
def put(input: Tensor, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """The tensor with the source's elements at flat positions, or added there.

    Raises E203 where the dtypes differ, E301 where the index and the source do.

    Example: torch.put(tensor([[2., 1.], [1., 3.]]), tensor([0, 3]), tensor([7., 8.]))
    """
    check_tensor(_put, "source", source)
    if source.array.dtype is not input.array.dtype:
        raise dtype_error(f"put(): the tensor is {input.dtype}, the source {source.dtype}")
    _checked_flat("put", input, index)
    if source.array.size != index.array.size:
        raise shape_error(
            f"put(): {source.array.size} elements for {index.array.size} positions",
            raises="IndexError",
        )
    return _put.apply(input, index, source, accumulate)


# --- combinations -------------------------------------------------------------------------------


@function("combinations")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of `r` elements of a vector in order, a row for each.

    Example: torch.combinations(tensor([1, 2, 3]))
    """
    if isinstance(r, Tensor) or type(r) is float:
        raise type_error(f"combinations(): `r` must be an int, not {type_name(r)}")
    if input.array.ndim != 1 or r < 0:
        raise shape_error(
            f"Expect a non-negative number, but got {r}"
            if r < 0
            else f"Expect a 1D vector, but got shape {list(input.array.shape)}"
        )
    if not r:
        return Tensor(module_of(input.array).empty((0,), input.array.dtype))
    positions = np.indices((input.array.size,) * r)
    ordered = (
        positions[:-1] <= positions[1:] if with_replacement else positions[:-1] < positions[1:]
    )
    mask = Tensor(module_of(input.array).asarray(ordered.all(0)))
    return stack_function([_masked_select.apply(grid, mask) for grid in meshgrid(*[input] * r)], 1)
