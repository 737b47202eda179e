"""Batching rules of single ops: of reductions to one number, of views that take sizes, of joining,
of indexing, and of `x[key]` where the key differs from example to example; of losses, of
normalisation and of convolution; of products of matrices and vectors, and of systems with two
matrices.

On one matrix functions take the examples as a leading dimension.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.layout.strides import strides_of
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, shape_error
from gradcli.library.torch.func.batching.rules import (
    At,
    Frame,
    aligned,
    batching,
    behind,
    folded,
    leading,
    one_by_one,
    shifted,
    side_by_side,
    unfolded,
)
from gradcli.ops.arithmetic.arithmetic import conj, mul, zeros
from gradcli.ops.binding.arguments import checked_values
from gradcli.ops.binding.functions import methods, operators
from gradcli.ops.codegen.node_class import Key
from gradcli.ops.creation.copies import clone, copied, row_order
from gradcli.ops.definition.op import Op, registry
from gradcli.ops.elementwise.comparison import choose, where
from gradcli.ops.indexing.along import (
    gather,
    index_select,
    scatter_add,
    scatter_number,
    scatter_tensor,
)
from gradcli.ops.indexing.basic import FULL, positions_from_front
from gradcli.ops.linalg.norms import vector_norm
from gradcli.ops.linalg.products.matrix_products import baddbmm, bmm, matmul, mm, scaled
from gradcli.ops.nn.loss.elementwise import MEAN, NONE
from gradcli.ops.nn.normalisation.formula import Statistics
from gradcli.ops.nn.spatial.convolution import Geometry, convolution, convolution_backward
from gradcli.ops.reduction.cumulative import prod_dim
from gradcli.ops.reduction.extrema import amax, amin
from gradcli.ops.reduction.sum import mean_dims, sum_dims
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.slicing import alias, diagonal
from gradcli.ops.shape.views import (
    expand,
    permute,
    reshape,
    squeeze_dim,
    t,
    transpose,
    unsafe_view,
    unsqueeze,
    view,
)
from gradcli.state import active

# --- reductions, views, joining, indexing ---------------------------------------------------------


# --- reductions of all elements -----------------------------------------------------------------


def rows(frame: Frame, value: Tensor) -> Tensor:
    """Each example as one row."""
    whole = frame.first(value)
    return reshape(whole, (frame.size, value.array.size))


@batching("sum", "mean")
def _sum(frame: Frame, op: Op, args: Any) -> Any:
    along = sum_dims if op.name == "sum" else mean_dims
    dims = tuple(range(1, args[0].array.ndim + 1))
    return along.apply(frame.first(args[0]), dims, False, *args[1:])


@batching("prod")
def _prod(frame: Frame, op: Op, args: Any) -> Any:
    dtype = args[1] if len(args) > 1 else None
    return prod_dim.apply(rows(frame, args[0]), 1, False, dtype)


@batching("max", "min")
def _extreme(frame: Frame, op: Op, args: Any) -> Any:
    return (amax if op.name == "max" else amin).apply(rows(frame, args[0]), (1,), False)


@batching("median", "nanmedian")
def _median(frame: Frame, op: Op, args: Any) -> Any:
    along = registry[f"{op.name}.{op.name.capitalize()}Backward1"]
    return along.apply(rows(frame, args[0]), 1, False)[0]


@batching("argmax", "argmin")
def _argmax(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, keepdim = args
    if dim is not None and self.array.ndim:
        return leading(frame, op, args)
    positions = op.apply(rows(frame, self), 1, False)
    return reshape(positions, (frame.size, *(1,) * self.array.ndim)) if keepdim else positions


@batching("norm")
def _norm(frame: Frame, op: Op, args: Any) -> Any:
    self, p, dim, keepdim = args
    return op.apply(frame.first(self), p, shifted(dim, self.array.ndim), keepdim)


@batching("trace")
def _trace(frame: Frame, op: Op, args: Any) -> Any:
    ndim = args[0].array.ndim
    if ndim != 2:
        text = f"trace: expected a matrix, but got tensor with dim {ndim}"
        raise shape_error(f"trace() takes a matrix, and an example has {ndim} dimensions", text)
    return sum_dims.apply(diagonal.apply(frame.first(args[0]), 0, 1, 2), (1,), False)


# --- views --------------------------------------------------------------------------------------


@batching("expand")
def _expand(frame: Frame, op: Op, args: Any) -> Any:
    self, size = args
    return expand.apply(behind(frame.first(self), len(size) + 1), (frame.size, *size))


@batching("repeat")
def _repeat(frame: Frame, op: Op, args: Any) -> Any:
    self, repeats = args
    return op.apply(behind(frame.first(self), len(repeats) + 1), (1, *repeats))


@batching("permute")
def _permute(frame: Frame, op: Op, args: Any) -> Any:
    self, dims = args
    ndim = self.array.ndim
    return permute.apply(frame.first(self), (0, *[dim % ndim + 1 for dim in dims]))


@batching("t", "t_")
def _t(frame: Frame, op: Op, args: Any) -> Any:
    (self,) = args
    whole = frame.first(self)
    return transpose.apply(whole, 1, 2) if self.array.ndim == 2 else alias.apply(whole)


@batching("transpose", "transpose_")
def _transpose(frame: Frame, op: Op, args: Any) -> Any:
    if not args[0].array.ndim:
        return alias.apply(frame.first(args[0]))
    return leading(frame, op, args)


@batching("as_strided", "as_strided_")
def _as_strided(frame: Frame, op: Op, args: Any) -> Any:
    self, size, stride, offset = args[:4]
    whole = frame.first(self)
    steps = tuple(strides_of(whole.array))
    return op.apply(whole, (frame.size, *size), (steps[0], *stride), offset, steps)


@batching("as_strided_scatter")
def _as_strided_scatter(frame: Frame, op: Op, args: Any) -> Any:
    self, src, size, stride, offset = args
    whole = row_order.apply(frame.first(self))
    steps = (strides_of(whole.array)[0], *stride)
    return op.apply(whole, frame.first(src), (frame.size, *size), steps, offset)


@batching("roll")
def _roll(frame: Frame, op: Op, args: Any) -> Any:
    self, shifts, dims = args
    if dims is not None:
        return op.apply(frame.first(self), shifts, shifted(dims, self.array.ndim))
    rolled = op.apply(rows(frame, self), (shifts,), (1,))
    return view.apply(rolled, (frame.size, *self.array.shape))


@batching("rot90")
def _rot90(frame: Frame, op: Op, args: Any) -> Any:
    self, k, dims = args
    return op.apply(frame.first(self), k, shifted(dims, self.array.ndim))


@batching("diagonal_copy")
def _diagonal_copy(frame: Frame, op: Op, args: Any) -> Any:
    self, offset = args
    whole = diagonal.apply(frame.first(self), offset, 1, 2)
    return clone.apply(whole)


# --- joining ------------------------------------------------------------------------------------


@batching("cat", "stack")
def _join(frame: Frame, op: Op, args: Any) -> Any:
    tensors, dim = args
    ndim = max(tensor.array.ndim for tensor in tensors)
    wholes = [frame.first(tensor) for tensor in tensors]
    if op.name == "cat":
        # An empty vector goes with any shape, and has no part.
        pairs = zip(wholes, tensors, strict=True)
        full = [whole for whole, each in pairs if each.array.shape != (0,)]
        wholes = full or wholes
    return op.apply(wholes, shifted(dim, ndim + (op.name == "stack")))


# --- copies -------------------------------------------------------------------------------------


@batching("copy", "fill", "fill.FillBackward0", "fill.FillBackward1", "fill.FillBackward3")
def _filled(frame: Frame, op: Op, args: Any) -> Any:
    self, source, *rest = args
    whole = frame.first(self)
    if type(source) is not Tensor:
        return op.apply(whole, source, *rest)
    if frame.is_batched(source):
        source = behind(frame.first(source), whole.array.ndim)
    else:
        source = behind(frame.plain(source), whole.array.ndim, 0)
    return copied.apply(whole, expand.apply(source, whole.array.shape))


@batching("masked_fill", "masked_fill.MaskedFillBackward1")
def _masked_fill(frame: Frame, op: Op, args: Any) -> Any:
    self, mask, value = args
    if frame.is_batched(value):
        return aligned(frame, choose, (mask, value, self))
    ndim = self.array.ndim
    if frame.is_batched(mask):
        whole = behind(frame.first(mask), ndim + 1)
    else:
        whole = behind(frame.plain(mask), ndim + 1, 0)
    return op.apply(frame.first(self), whole, frame.plain(value))


@batching(
    "bernoulli", "bernoulli.NotImplemented", "bernoulli_", "bernoulli_.BernoulliBackward1",
    "uniform", "normal_", "exponential", "random", "random.RandomBackward1",
    "random.RandomBackward2",
)  # fmt: skip
def _drawn(frame: Frame, op: Op, args: Any) -> Any:
    self, values = args
    if type(values) is BatchedArray and values.level == frame.level:
        return op.apply(frame.first(self), values.value.array)
    shape = frame.first(self).array.shape
    return op.apply(frame.first(self), np.broadcast_to(values, shape))


@batching("complex", "polar", "isclose")
def _pair(frame: Frame, op: Op, args: Any) -> Any:
    first, second, *rest = args
    pair = [frame.first(first), frame.first(second)]
    ndim = max(each.array.ndim for each in pair)
    return op.apply(*[behind(each, ndim) for each in pair], *rest)


def broadcast_first(frame: Frame, *operands: Tensor) -> list[Tensor]:
    """Operands of all examples, expanded to one shape."""
    ndim = max(operand.array.ndim for operand in operands)
    whole = [behind(frame.first(operand), ndim + 1) for operand in operands]
    sizes = [max(column) for column in zip(*[w.array.shape for w in whole], strict=True)]
    return [expand.apply(w, tuple(sizes)) for w in whole]


@batching("dist")
def _dist(frame: Frame, op: Op, args: Any) -> Any:
    self, other, p = args
    one, two = broadcast_first(frame, self, other)
    difference = one - two
    dims = tuple(range(1, difference.array.ndim))
    return vector_norm.apply(difference, p, dims, False, None)


# --- indexing -------------------------------------------------------------------------------------


# --- the same positions for all examples --------------------------------------------------------


def _key(indices: Key) -> Key:
    """The key behind the dimension of examples."""
    key = Key((FULL, *indices))
    key.parts = ((None, 0), *indices.parts)
    return key


def _apart(indices: Key) -> int:
    """How many dimensions the positions put in front, where they do not stay in their place."""
    dims = [dim for dim, part in enumerate(indices) if type(part) is not slice]
    if dims[-1] - dims[0] == len(dims) - 1:
        return 0
    return np.broadcast(*[indices[dim] for dim in dims]).ndim


@batching("index")
def _index(frame: Frame, op: Op, args: Any) -> Any:
    self, indices = args
    return At(op.apply(frame.first(self), _key(indices)), _apart(indices))


@batching("index_put", "index_put_", "_index_put_impl")
def _index_put(frame: Frame, op: Op, args: Any) -> Any:
    self, values, indices, accumulate = args
    whole = frame.first(self)
    if op.name != "index_put":  # it writes to its operand: expanded memory is not the examples' own
        whole = whole if frame.is_batched(self) else clone.apply(whole)
    arrays = [part for part in indices if type(part) is not slice]
    ndim = self.array.ndim - len(arrays) + max([part.ndim for part in arrays])
    if frame.is_batched(values):
        values = movedim(behind(frame.first(values), ndim + 1), 0, _apart(indices))
    elif _apart(indices):
        values = unsqueeze.apply(behind(frame.plain(values), ndim, 0), _apart(indices))
    else:
        values = frame.plain(values)
    return op.apply(whole, values, _key(indices), accumulate)


@batching("masked_select")
def _masked_select(frame: Frame, op: Op, args: Any) -> Any:
    self, mask = args  # no example has a mask of its own
    shown = np.broadcast_to(frame.plain(mask).array, np.broadcast_shapes(self.shape, mask.shape))
    whole = expand.apply(behind(frame.first(self), shown.ndim + 1), (frame.size, *shown.shape))
    whole = reshape(whole, (frame.size, shown.size))
    return index_select.apply(whole, 1, Tensor(np.flatnonzero(shown)))


# --- positions along one dimension --------------------------------------------------------------


def _along(frame: Frame, index: Tensor, like: Tensor, dim: int) -> Tensor:
    """Positions of parts, one row for each example, as positions of elements of `like`."""
    whole = rows(frame, index)
    sizes = [1] * like.array.ndim
    sizes[0], sizes[dim] = whole.array.shape
    shape = list(like.array.shape)
    shape[dim] = sizes[dim]
    return expand.apply(view.apply(whole, tuple(sizes)), tuple(shape))


@batching("index_select")
def _index_select(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index = args
    if not frame.is_batched(index):
        whole = frame.first(self)
        if not self.array.ndim:
            return op.apply(unsqueeze.apply(whole, 1), 1, frame.plain(index))
        return op.apply(whole, dim + 1, frame.plain(index))
    if not frame.is_batched(self) and self.array.ndim:
        shared = frame.plain(self)
        flat = index_select.apply(shared, dim, reshape(frame.first(index), (-1,)))
        shape = shared.array.shape
        count = index.array.size
        return At(view.apply(flat, (*shape[:dim], frame.size, count, *shape[dim + 1 :])), dim)
    whole = frame.first(self)
    if not self.array.ndim:
        return expand.apply(whole, (frame.size,))
    return gather.apply(whole, dim + 1, _along(frame, index, whole, dim + 1))


@batching("index_add")
def _index_add(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index, source, alpha = (*args, 1)[:5]
    whole, parts = frame.first(self), frame.first(source)
    if not self.array.ndim:
        whole, parts = unsqueeze.apply(whole, 1), reshape(parts, (frame.size, -1))
    if not frame.is_batched(index):
        result = op.apply(whole, dim + 1, frame.plain(index), parts, alpha)
    else:
        parts = parts if alpha == 1 else parts * alpha
        result = scatter_add.apply(whole, dim + 1, _along(frame, index, parts, dim + 1), parts)
    return result if self.array.ndim else view.apply(result, (frame.size,))


@batching("index_copy")
def _index_copy(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index, source = args
    whole, parts = frame.first(self), frame.first(source)
    if not self.array.ndim:
        return reshape(parts, (frame.size,))
    if not frame.is_batched(index):
        return op.apply(whole, dim + 1, frame.plain(index), parts)
    return scatter_tensor.apply(whole, dim + 1, _along(frame, index, parts, dim + 1), parts)


@batching("index_fill", "index_fill.IndexFillBackward1")
def _index_fill(frame: Frame, op: Op, args: Any) -> Any:
    self, dim, index, value = args
    if self.array.ndim and not frame.is_batched(index, value):
        return op.apply(frame.first(self), dim + 1, frame.plain(index), frame.plain(value))
    whole = frame.first(self)
    if not self.array.ndim:
        whole = unsqueeze.apply(whole, 1)
    at = _along(frame, index, whole, dim + 1)
    mask = scatter_number.apply(Tensor(np.zeros(whole.array.shape, np.bool_)), dim + 1, at, True)
    if frame.is_batched(value):
        value = view.apply(frame.first(value), (frame.size, *(1,) * (whole.array.ndim - 1)))
    result = where(mask, frame.plain(value), whole)
    return result if self.array.ndim else view.apply(result, (frame.size,))


@batching("take")
def _take(frame: Frame, op: Op, args: Any) -> Any:
    self, index = args
    if not frame.is_batched(self):
        return op.apply(frame.plain(self), frame.first(index))
    positions = frame.first(index)
    size = self.array.size
    positions = where(positions < 0, positions + size, positions)
    flat = reshape(positions, (frame.size, index.array.size))
    return view.apply(gather.apply(rows(frame, self), 1, flat), positions.array.shape)


# --- embedding ----------------------------------------------------------------------------------


def _offset(frame: Frame, indices: Tensor, count: int) -> Tensor:
    """Rows of a table for each example, as rows of all tables one after another."""
    whole = frame.first(indices)
    steps = np.arange(frame.size, dtype=np.int64) * count
    return whole + Tensor(steps.reshape(-1, *(1,) * (whole.array.ndim - 1)))


@batching("embedding")
def _embedding(frame: Frame, op: Op, args: Any) -> Any:
    weight, indices, padding_idx, scaled = args
    if not frame.is_batched(weight):
        return op.apply(frame.plain(weight), frame.first(indices), padding_idx, scaled)
    count, width = weight.array.shape
    tables = reshape(frame.first(weight), (frame.size * count, width))
    return op.apply(tables, _offset(frame, indices, count), -1, False)


@batching("embedding_dense_backward")
def _embedding_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad_output, indices, count, padding_idx, scaled = args
    grad = frame.first(grad_output)
    if padding_idx >= 0:
        kept = frame.first(indices) != padding_idx
        grad = grad * unsqueeze.apply(kept, kept.array.ndim)
    rows = op.apply(grad, _offset(frame, indices, count), frame.size * count, -1, scaled)
    return view.apply(rows, (frame.size, count, grad_output.array.shape[-1]))


# --- x[key] -------------------------------------------------------------------------------------


def picked_by_examples(shown: Tensor, picked: dict[int, Any]) -> Tensor:
    """The elements of a tensor at positions that differ from example to example, by dimension."""
    shape = shown.array.shape
    dims = list(picked)
    neighbours = dims[-1] - dims[0] == len(dims) - 1
    place = dims[0] if neighbours else 0
    flat, ndim = flat_positions(shape, picked)
    count = 1
    for dim in dims:
        count *= shape[dim]
    rest = [size for dim, size in enumerate(shape) if dim not in dims]
    front = movedim(shown, tuple(dims), tuple(range(len(dims))))
    parts = index_select.apply(reshape(front, (count, *rest)), 0, reshape(flat, (flat.array.size,)))
    elements = reshape(parts, (*flat.array.shape, *rest))
    return (
        movedim(elements, tuple(range(ndim)), tuple(range(place, place + ndim)))
        if place
        else elements
    )


def put_by_examples(frame: Frame, shown: Tensor, picked: dict[int, Any], value: Tensor) -> None:
    """Write values to positions that differ from example to example.

    Raises E405 where all examples share the tensor, E205 where a transform inside differentiates.
    """
    if not frame.is_batched(shown):
        raise GradcliError("E405", "vmap: index_put_ writes examples to a tensor that all share")
    if active.state.grad_enabled and (shown.requires_grad or value.requires_grad):
        raise GradcliError("E205", "vmap: positions of each example cannot be written inside grad")
    dims = list(picked)
    front = movedim(frame.first(shown), tuple(d + 1 for d in dims), tuple(range(1, len(dims) + 1)))
    positions = [frame.first(frame.wrapped(as_tensor(array))) for array in picked.values()]
    ndim = max(each.array.ndim for each in positions)
    counted = Tensor(np.arange(frame.size).reshape(-1, *(1,) * (ndim - 1)))
    key = (counted, *[behind(each, ndim) for each in positions])
    values = frame.plain(value)
    if frame.is_batched(value):
        values = behind(frame.first(value), ndim + front.array.ndim - len(dims) - 1)
    operators.setitem(front, key, values)


def flat_positions(shape: tuple[int, ...], picked: dict[int, Any]) -> tuple[Tensor, int]:
    """Positions in several dimensions as positions in one, and how many dimensions they have."""
    total: Any = 0
    for dim, array in picked.items():
        index = as_tensor(array)
        extent = shape[dim]
        checked_values(positions_from_front, index.array, extent, dim)
        total = total * extent + where(index < 0, index + extent, index)
    return total, total.array.ndim


def as_tensor(array: Any) -> Tensor:
    """A tensor of an array, which may be batched."""
    if type(array) is not BatchedArray:
        return Tensor(array)
    tensor: Tensor = object.__new__(Tensor)
    tensor.array = array
    tensor.requires_grad = False
    tensor.grad_fn = tensor.storage = tensor.meta = None
    tensor.output_nr = 0
    return tensor


# --- losses, normalisation, convolution, matrices -------------------------------------------------


# --- products -------------------------------------------------------------------------------------


def _column(vectors: Tensor) -> Tensor:
    return unsqueeze.apply(vectors, vectors.array.ndim)


def _check_ranks(op: Op, args: Any) -> None:
    """Raise E301 where an example of an operand has another number of dimensions than the op takes;
    those of what all examples share count as well.
    """
    if len(op.takes) < len(args):  # one that adds a product has checked its operands
        return
    ranks = tuple(len(each.array.shape) for each in args)
    wanted = tuple(spec.least for spec in op.takes.values())
    if ranks != wanted:
        text = (
            "Got wrong shapes for dot"
            if wanted == (1, 1)
            else f"Shape mismatch: Got incorrect dims for {op.name}(a, b). a has dim {ranks[0]}"
            f"and b has dim {ranks[1]}but expected them to have dim {wanted[0]} and dim {wanted[1]}"
        )
        raise shape_error(
            f"{op.name}() takes operands of {wanted[0]} and {wanted[1]} dimensions, and those of an"
            f" example have {ranks[0]} and {ranks[1]}",
            text=text,
        )


@batching("mm")
def _mm(frame: Frame, op: Op, args: Any) -> Any:
    left, right = args
    _check_ranks(op, args)
    if not frame.is_batched(right):  # the rows of all examples are the rows of one matrix
        whole, shared = frame.first(left), frame.plain(right)
        examples, rows, inner = whole.array.shape
        flat = mm.apply(reshape(whole, (examples * rows, inner)), shared)
        return unsafe_view.apply(flat, (examples, rows, shared.array.shape[1]))
    if not frame.is_batched(left):
        shared, whole = frame.plain(left), frame.first(right)
        examples, inner, columns = whole.array.shape
        side_by_side = reshape(permute.apply(whole, (1, 0, 2)), (inner, examples * columns))
        product = mm.apply(shared, side_by_side)
        return At(unsafe_view.apply(product, (shared.array.shape[0], examples, columns)), 1)
    return bmm.apply(frame.first(left), frame.first(right))


@batching("bmm")
def _bmm(frame: Frame, op: Op, args: Any) -> Any:
    _check_ranks(op, args)
    return matmul(*[frame.first(x) if frame.is_batched(x) else frame.plain(x) for x in args])


@batching("mv")
def _mv(frame: Frame, op: Op, args: Any) -> Any:
    matrix, vector = args
    _check_ranks(op, args)
    if not frame.is_batched(matrix):
        return mm.apply(frame.first(vector), t.apply(frame.plain(matrix)))
    if not frame.is_batched(vector):
        return matmul(frame.first(matrix), frame.plain(vector))
    product = bmm.apply(frame.first(matrix), _column(frame.first(vector)))
    return squeeze_dim.apply(product, 2)


@batching("dot", "vdot")
def _dot(frame: Frame, op: Op, args: Any) -> Any:
    left, right = args
    _check_ranks(op, args)
    if op.name == "dot" and not frame.is_batched(left):
        left, right = right, left
    if not frame.is_batched(right):
        whole = frame.first(left)
        return matmul(conj(whole) if op.name == "vdot" else whole, frame.plain(right))
    rows = frame.first(left)
    rows = conj(rows) if op.name == "vdot" else rows
    product = bmm.apply(unsqueeze.apply(rows, 1), _column(frame.first(right)))
    return reshape(product, (frame.size,))


# --- products added to something ----------------------------------------------------------------


def _added(frame: Frame, self: Tensor, product: Any, rank: int, beta: Any, alpha: Any) -> Any:
    """`beta * self + alpha * product`, of a product with one more dimension than an example has."""
    if type(product) is At:
        product = permute.apply(product.value, (1, 0, 2))
    product = scaled(product, alpha)
    if beta == 0:
        return product
    whole = frame.first(self) if frame.is_batched(self) else unsqueeze.apply(frame.plain(self), 0)
    return scaled(behind(whole, rank + 1), beta) + product


_PRODUCTS = {"addmm": (_mm, 2), "addmv": (_mv, 1), "baddbmm": (_bmm, 3)}
"""The rule of the product that is added, and the dimensions of the sum for one example."""


@batching(*_PRODUCTS)
def _added_product(frame: Frame, op: Op, args: Any) -> Any:
    self, left, right, beta, alpha = _with_factors(args)
    rule, rank = _PRODUCTS[op.name]
    return _added(frame, self, _product(frame, rule, left, right), rank, beta, alpha)


@batching("addr")
def _addr(frame: Frame, op: Op, args: Any) -> Any:
    self, left, right, beta, alpha = _with_factors(args)
    column, row = _column(frame.first(left)), unsqueeze.apply(frame.first(right), 1)
    return _added(frame, self, mul.apply(column, row), 2, beta, alpha)


@batching("addbmm")
def _addbmm(frame: Frame, op: Op, args: Any) -> Any:
    self, left, right, beta, alpha = _with_factors(args)
    product = sum_dims.apply(_product(frame, _bmm, left, right), (1,), False)
    return _added(frame, self, product, 2, beta, alpha)


def _with_factors(args: Any) -> Any:
    return (*args, 1, 1)[:5] if len(args) < 5 else args


def _product(frame: Frame, rule: Any, left: Tensor, right: Tensor) -> Any:
    """The product of two operands that all examples may share."""
    if frame.is_batched(left, right):
        return rule(frame, baddbmm, (left, right))
    rank = 3 if rule is _bmm else 2
    whole = {2: mm if rule is _mm else None, 3: bmm}[rank]
    shared = frame.plain(left), frame.plain(right)
    product = whole.apply(*shared) if whole is not None else matmul(*shared)
    return expand.apply(unsqueeze.apply(product, 0), (frame.size, *product.array.shape))


# --- pairs of matrices that are solved -----------------------------------------------------------


@batching("linalg_solve_triangular", "cholesky_solve", "triangular_solve", "linalg_lu_solve")
def _pair_of_examples(frame: Frame, op: Op, args: Any) -> Any:
    count = len(op.tensors)
    ndim = max(arg.array.ndim for arg in args[:count])
    operands = []
    for name, arg in zip(op.tensors, args[:count], strict=True):
        rank = ndim - 1 if name == "pivots" else ndim
        operands.append(behind(frame.first(arg), rank + 1))
    return op.apply(*operands, *args[count:])


@batching("linalg_solve_ex")
def _solve(frame: Frame, op: Op, args: Any) -> Any:
    A, B, left, vector = args
    if vector:
        return op.apply(frame.first(A), behind(frame.first(B), A.array.ndim), left, True)
    ndim = max(A.array.ndim, B.array.ndim)
    operands = [behind(frame.first(each), ndim + 1) for each in (A, B)]
    return op.apply(*operands, left, False)


# --- losses of elements -------------------------------------------------------------------------


@batching(
    "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
)  # fmt: skip
def _loss(frame: Frame, op: Op, args: Any) -> Any:
    operands, at = list(args), op.parameters.index("reduction")
    reduction, operands[at] = operands[at], NONE
    losses = op.apply(*_whole(frame, operands))
    if reduction == NONE:
        return losses
    along = mean_dims if reduction == MEAN else sum_dims
    return along.apply(losses, tuple(range(1, losses.array.ndim)), False)


def _whole(frame: Frame, operands: list[Any]) -> list[Any]:
    pair = broadcast_first(frame, *operands[:2])
    return [*pair, *side_by_side(frame, operands[0], *operands[2:])[1:]]


@batching(
    "mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward",
    "soft_margin_loss_backward", "binary_cross_entropy_backward",
)  # fmt: skip
def _loss_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad, *operands = args
    at = op.parameters.index("reduction") - 1
    reduction, operands[at] = operands[at], NONE
    count = max(1, operands[0].array.size)
    self, *others = _whole(frame, operands)
    whole = behind(frame.first(grad), self.array.ndim)
    whole = expand.apply(whole, self.array.shape)
    return op.apply(whole / count if reduction == MEAN else whole, self, *others)


# --- losses of classes --------------------------------------------------------------------------


def _folded(frame: Frame, self: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and classes of all examples as samples of one batch."""
    scores, classes = frame.first(self), frame.first(target)
    shape = scores.array.shape
    if self.array.ndim == 1:
        return scores, reshape(classes, (frame.size,))
    folded = reshape(scores, (shape[0] * shape[1], *shape[2:]))
    return folded, reshape(classes, (shape[0] * shape[1], *shape[3:]))


def _weights(self: Tensor, target: Tensor, weight: Any, ignore: int) -> Any:
    """The weight of each sample, 0 where it is left out."""
    counted = methods.to(target != ignore, self.dtype)
    if weight is None:
        return counted
    safe = target * (target != ignore)
    chosen = index_select.apply(weight, 0, reshape(safe, (safe.array.size,)))
    return reshape(chosen, safe.array.shape) * counted


@batching("nll_loss", "nll_loss2d")
def _nll(frame: Frame, op: Op, args: Any) -> Any:
    self, target, weight, reduction, ignore = args
    if weight is not None and frame.is_batched(weight):  # of each example's classes
        return one_by_one(frame, op, args)
    weight = None if weight is None else frame.plain(weight)
    scores, classes = _folded(frame, self, target)
    losses = op.apply(scores, classes, weight, NONE, ignore)
    losses = view.apply(losses, (frame.size, *target.array.shape))
    if reduction == NONE:
        return losses
    dims = tuple(range(1, losses.array.ndim))
    total = sum_dims.apply(losses, dims, False)
    if reduction != MEAN:
        return total
    weights = view.apply(_weights(scores, classes, weight, ignore), losses.array.shape)
    return total / sum_dims.apply(weights, dims, False)


@batching("nll_loss_backward", "nll_loss2d_backward")
def _nll_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad, self, target, weight, reduction, ignore = args
    if weight is not None and frame.is_batched(weight):
        return one_by_one(frame, op, args)
    weight = None if weight is None else frame.plain(weight)
    scores, classes = _folded(frame, self, target)
    whole = frame.first(grad)
    shape = (frame.size, *target.array.shape)
    if reduction == MEAN:
        weights = view.apply(_weights(scores, classes, weight, ignore), shape)
        whole = whole / sum_dims.apply(weights, tuple(range(1, len(shape))), False)
    whole = expand.apply(behind(whole, len(shape), 1), shape)
    whole = reshape(whole, classes.array.shape)
    slopes = op.apply(whole, scores, classes, weight, NONE, ignore)
    return view.apply(slopes, (frame.size, *self.array.shape))


# --- normalisation ------------------------------------------------------------------------------


def _statistics(frame: Frame, statistics: Statistics, batched_weight: bool) -> Statistics:
    """Statistics of each example by itself."""
    along = frame.size if batched_weight else 1
    dims = tuple([dim + 1 for dim in statistics.dims])
    shape, weight_shape = (frame.size, *statistics.shape), (along, *statistics.weight_shape)
    return Statistics(shape, dims, weight_shape, statistics.eps, statistics.fixed)


@batching("native_layer_norm", "native_batch_norm")
def _normalised(frame: Frame, op: Op, args: Any) -> Any:
    input, weight, bias, statistics = args
    apart = frame.is_batched(weight, bias)
    parameters = [
        None if each is None else frame.first(each) if apart else frame.plain(each)
        for each in (weight, bias)
    ]
    return op.apply(frame.first(input), *parameters, _statistics(frame, statistics, apart))


@batching("native_layer_norm_backward", "native_batch_norm_backward")
def _normalised_backward(frame: Frame, op: Op, args: Any) -> Any:
    *tensors, statistics, mask = args
    operands = [None if each is None else frame.first(each) for each in tensors]
    gradients = op.apply(*operands, _statistics(frame, statistics, True), mask)
    shapes = [tensors[1], tensors[4], tensors[5]]
    return [
        expand.apply(behind(each, 1), each.array.shape) if like is None else each
        for each, like in zip(gradients, shapes, strict=True)
    ]


def _by_groups(frame: Frame, value: Tensor, dim: int) -> Tensor:
    """The channels of all examples side by side in a dimension: each example is a group."""
    whole = movedim(frame.first(value), 0, dim)
    shape = whole.array.shape
    return reshape(whole, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _from_groups(frame: Frame, value: Tensor, dim: int) -> At:
    shape = value.array.shape
    sizes = (*shape[:dim], frame.size, shape[dim] // frame.size, *shape[dim + 1 :])
    return At(reshape(value, sizes), dim)


def _grouped(frame: Frame, geometry: Geometry) -> Geometry:
    return Geometry(
        geometry.windows, geometry.groups * frame.size, geometry.transposed, geometry.sizes
    )


@batching("convolution")
def _convolution(frame: Frame, op: Op, args: Any) -> Any:
    input, weight, bias, geometry = args
    if not frame.is_batched(weight, bias):
        shared = None if bias is None else frame.plain(bias)
        whole = folded(frame, input, input.array.ndim)
        return unfolded(frame, convolution.apply(whole, frame.plain(weight), shared, geometry))
    if not frame.is_batched(weight):
        whole = folded(frame, input, input.array.ndim)
        output = unfolded(frame, convolution.apply(whole, frame.plain(weight), None, geometry))
    else:
        operands = _by_groups(frame, input, 1), _by_groups(frame, weight, 0)
        grouped = convolution.apply(*operands, None, _grouped(frame, geometry))
        output = movedim(_from_groups(frame, grouped, 1).value, 1, 0)
        if bias is None:
            return output
    column = frame.first(bias)
    return output + reshape(column, (frame.size, 1, -1, *(1,) * (input.array.ndim - 2)))


@batching("convolution_backward")
def _convolution_backward(frame: Frame, op: Op, args: Any) -> Any:
    grad, input, weight, geometry, mask = args
    results: list[Any] = [None, None, None]
    if mask[0] and not frame.is_batched(weight):
        rank = input.array.ndim
        whole = [folded(frame, grad, rank), folded(frame, input, rank), frame.plain(weight)]
        gradients = convolution_backward.apply(*whole, geometry, (True, False, False))
        results[0] = unfolded(frame, gradients[0])
    if mask[1] or (mask[0] and results[0] is None):
        gradients = convolution_backward.apply(
            _by_groups(frame, grad, 1),
            _by_groups(frame, input, 1),
            _by_groups(frame, weight, 0),
            _grouped(frame, geometry),
            (mask[0] and results[0] is None, mask[1], False),
        )
        if mask[0] and results[0] is None:
            results[0] = _from_groups(frame, gradients[0], 1)
        if mask[1]:
            results[1] = _from_groups(frame, gradients[1], 0)
    if mask[2]:
        dims = (1, *range(3, grad.array.ndim + 1))
        results[2] = sum_dims.apply(frame.first(grad), dims, False)
    empty = zeros(frame.first(grad), (frame.size, 0))
    return [empty if each is None else each for each in results]
