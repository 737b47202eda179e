"""Products built on matmul: `tensordot inner kron multi_dot trace bilinear`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays.kernels.sums import wide, wider
from gradcli.arrays.storage import InferenceStorage
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import add, conj, mul, zeros
from gradcli.ops.binding.arguments import (
    check_not_integral,
    check_same_dtype,
    check_tensors,
    normal_dims,
    numbers_in,
)
from gradcli.ops.binding.catalogue import expose, function
from gradcli.ops.creation.copies import clone
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.dtype_support import dtype_names
from gradcli.ops.definition.op import Op, TensorSpec, op
from gradcli.ops.indexing.along import index_fill_tensor
from gradcli.ops.linalg.products.matrix_products import (
    addmm,
    bmm,
    check_dtypes,
    dot,
    mm,
    scaled,
    vdot,
)
from gradcli.ops.reduction.sum import sum_dims, sum_function
from gradcli.ops.shape.reshaping import flatten
from gradcli.ops.shape.views import (
    expand,
    permute,
    reshape,
    transpose,
    unsafe_view,
    unsqueeze,
    view,
)

# --- sums over chosen dimensions ----------------------------------------------------------------


def _contracted(tensor: Tensor, dims: Any, which: int) -> tuple[int, ...]:
    """The dimensions of one operand that are summed over: the last or first n for a number n."""
    if isinstance(dims, Tensor):
        dims = numbers_in(dims)
    if type(dims) is int:
        if dims < 0 or dims > tensor.array.ndim:
            raise runtime_error(
                f"tensordot(): {dims} dimensions of a tensor of {tensor.array.ndim}"
            )
        first = tensor.array.ndim - dims if which == 0 else 0
        return tuple(range(first, first + dims))
    chosen = dims[which]
    chosen = (chosen,) if type(chosen) is int else chosen
    return normal_dims("tensordot", tensor, tuple(chosen)) if len(chosen) else ()


@function("tensordot")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The product of two tensors summed over pairs of dimensions.

    `dims` is a number n, for the last n of one and the first n of the other, or two lists. Raises
    E301 where paired sizes differ.

    Example: torch.tensordot(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]), dims=1)
    """
    first, second = _contracted(a, dims, 0), _contracted(b, dims, 1)
    return _tensordot("tensordot", a, b, first, second)


def _tensordot(
    name: str, a: Tensor, b: Tensor, first: tuple[int, ...], second: tuple[int, ...]
) -> Tensor:
    if len(first) != len(second):
        raise shape_error(f"{name}(): {len(first)} dimensions for {len(second)}")
    for i, j in zip(first, second, strict=True):
        left, right = a.array.shape[i], b.array.shape[j]
        if right == 1:
            a = sum_function(a, i, True)
        elif left == 1:
            b = sum_function(b, j, True)
        elif left != right:
            raise shape_error(
                f"{name}(): dimension {i} has size {left}, its partner {j} size {right}",
                text=f"contracted dimensions need to match, but first has size {left} in dim"
                f" {i - a.array.ndim} and second has size {right} in dim {j}",
            )
    a_kept = tuple(i for i in range(a.array.ndim) if i not in first)
    b_kept = tuple(j for j in range(b.array.ndim) if j not in second)
    a_sizes = tuple(a.array.shape[i] for i in a_kept)
    b_sizes = tuple(b.array.shape[j] for j in b_kept)
    summed = prod(a.array.shape[i] for i in first)
    left_part = permute.apply(a, (*a_kept, *first))
    right_part = permute.apply(b, (*second, *b_kept))
    if a.array.ndim and prod(a_sizes) == prod(b_sizes) == 1:
        product = dot.apply(flatten(left_part), flatten(right_part))
    else:
        rows = reshape(left_part, (prod(a_sizes), summed))
        product = mm.apply(rows, reshape(right_part, (summed, prod(b_sizes))))
    return reshape(product, (*a_sizes, *b_sizes))


@function("inner", method=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The products summed over the last dimension of both; with a 0-dim tensor just the product.

    Example: torch.inner(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    ndims = input.array.ndim, other.array.ndim
    if not all(ndims):
        return mul.apply(input, other)
    check_dtypes("inner", input.array, other.array)
    if input.array.shape[-1] != other.array.shape[-1]:
        raise shape_error(
            f"inner(): the last dimensions of {tuple(input.array.shape)} and"
            f" {tuple(other.array.shape)} differ",
            text="inner() the last dimension must match on both input tensors but got shapes"
            f" {list(input.array.shape)} and {list(other.array.shape)}",
        )
    return _tensordot("inner", input, other, (ndims[0] - 1,), (ndims[1] - 1,))


@function("vecdot", module="torch.linalg", autocast="short")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along a dimension.

    Example: torch.linalg.vecdot(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    check_not_integral("vecdot", x, "RuntimeError")
    check_same_dtype("vecdot", x, y)
    if x.array.ndim == y.array.ndim == 1:
        return vdot.apply(x, y)
    return sum_function(mul.apply(conj(x), y), dim)


def _shown_as(operand: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """An operand in other sizes: one of inference mode remains such a tensor."""
    of_inference = type(operand.storage) is InferenceStorage
    return (view if of_inference else unsafe_view).apply(operand, sizes)


@function("kron", method=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of one times the whole of the other, block by block.

    Example: torch.kron(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    ndim = max(input.array.ndim, other.array.ndim)
    left = (1,) * (ndim - input.array.ndim) + tuple(input.array.shape)
    right = (1,) * (ndim - other.array.ndim) + tuple(other.array.shape)
    outer = _shown_as(input, tuple(size for pair in left for size in (pair, 1)))
    block = _shown_as(other, tuple(size for pair in right for size in (1, pair)))
    sizes = tuple(a * b for a, b in zip(left, right, strict=True))
    return unsafe_view.apply(mul.apply(outer, block), sizes)


# --- several matrices ---------------------------------------------------------------------------


def _cheapest(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices of these sizes so that its product costs least.

    The product of matrices i to j is best computed from those up to the split and those after it;
    of splits that cost the same, three matrices take the last and more take the first.
    """
    count = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            positions = range(i, j) if count > 3 else range(j - 1, i - 1, -1)
            price = {
                k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in positions
            }
            split[i, j] = min(price, key=lambda k: price[k])
            cost[i, j] = price[split[i, j]]
    return split


def _multiplied(
    matrices: Sequence[Tensor], split: dict[tuple[int, int], int], i: int, j: int
) -> Any:
    if i == j:
        return matrices[i]
    k = split[i, j]
    right = _multiplied(matrices, split, k + 1, j)  # PyTorch makes the right one first
    return mm.apply(_multiplied(matrices, split, i, k), right)


@function("multi_dot", module="torch.linalg")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices in the cheapest order; the first and the last may be
    vectors.

    Example: torch.linalg.multi_dot([tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]])])
    """
    check_tensors("multi_dot", **{f"tensors[{i}]": tensor for i, tensor in enumerate(tensors)})
    if len(tensors) < 2:
        raise runtime_error(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    matrices = list(tensors)
    sizes: tuple[int, ...] = ()
    if matrices[0].array.ndim == 1:
        matrices[0] = unsqueeze.apply(matrices[0], 0)
    else:
        sizes = tuple(matrices[0].array.shape[:1])
    if matrices[-1].array.ndim == 1:
        matrices[-1] = unsqueeze.apply(matrices[-1], 1)
    else:
        sizes = (*sizes, *matrices[-1].array.shape[1:])
    for i, matrix in enumerate(matrices):
        if matrix.array.ndim != 2:
            raise shape_error(
                f"multi_dot(): tensors[{i}] is no matrix",
                text=f"multi_dot(): {_allowed(i, len(matrices))} but got {matrix.array.ndim}D",
            )
        if i and matrix.array.shape[0] != matrices[i - 1].array.shape[1]:
            raise shape_error(
                f"multi_dot(): the shapes {tuple(matrices[i - 1].array.shape)} and"
                f" {tuple(matrix.array.shape)} cannot be multiplied",
                text=f"multi_dot(): tensors {i - 1} and {i} with shapes"
                f" {list(matrices[i - 1].array.shape)} and {list(matrix.array.shape)} cannot be"
                " multiplied",
            )
    extents = [matrices[0].array.shape[0], *[matrix.array.shape[1] for matrix in matrices]]
    product = _multiplied(matrices, _cheapest(extents), 0, len(matrices) - 1)
    return view.apply(product, sizes)


def _allowed(position: int, count: int) -> str:
    """How many dimensions PyTorch says that one of so many tensors may have."""
    if 0 < position < count - 1:
        return f"tensor {position} must be 2D"
    return f"the {'last' if position else 'first'} tensor must be 1D or 2D"


@function("chain_matmul")
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of one or more matrices in the cheapest order.

    Example: torch.chain_matmul(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    for matrix in matrices:
        check_tensors("chain_matmul", matrices=matrix)
        if matrix.array.ndim != 2:
            raise shape_error(
                f"chain_matmul(): a tensor of {matrix.array.ndim} dimensions is no matrix",
                text=f"Tensor dimension is {matrix.array.ndim}, expected 2 instead.",
            )
    if not matrices:
        raise runtime_error(
            "chain_matmul(): there is no matrix",
            text="chain_matmul(): Expected one or more matrices",
        )
    if len(matrices) == 1:
        return clone.apply(matrices[0])
    return multi_dot(matrices)


# --- sums of products ---------------------------------------------------------------------------


def _addbmm_array(self: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    if batch1.ndim != 3 or batch2.ndim != 3 or len(batch1) != len(batch2):
        raise shape_error(
            f"addbmm(): two batches of as many matrices are needed, not {tuple(batch1.shape)} and"
            f" {tuple(batch2.shape)}"
        )
    if not len(batch1):
        empty = batch1.reshape(batch1.shape[1], 0), batch2.reshape(0, batch2.shape[2])
        return addmm(self, *empty, beta, alpha)
    # Product by product, as PyTorch adds them up.
    for number, matrices in enumerate(zip(batch1, batch2, strict=True)):
        self = addmm(self, *matrices, 1 if number else beta, alpha)
    return self


def _of_each(grad: Any, batch: Any) -> Any:
    """The gradient of a sum over a batch of products, for every product of it."""
    return expand(unsqueeze(grad, 0), (batch.shape[0], *grad.shape))


addbmm = op(
    "addbmm",
    _addbmm_array,
    autocast=True,
    self=lambda grad, beta: scaled(grad, conj(beta)),
    batch1=lambda grad, batch2, alpha: scaled(
        bmm(_of_each(grad, batch2), conj(transpose(batch2, 1, 2))), conj(alpha)
    ),
    batch2=lambda grad, batch1, alpha: scaled(
        bmm(conj(transpose(batch1, 1, 2)), _of_each(grad, batch1)), conj(alpha)
    ),
    doc="`beta * input` and alpha times the sum of a batch's matrix products.",
    example="torch.addbmm(zeros(2, 2), arange(8.).reshape(2, 2, 2), arange(8.).reshape(2, 2, 2))",
    raises=BY_KINDS,
)
expose(addbmm, inplace=True)

# --- the trace ----------------------------------------------------------------------------------


def _trace_array(self: Any) -> Any:
    if self.dtype.kind in "iub":
        return np.trace(self, dtype=np.int64)
    # Added up in the next wider dtype, one after another, to 0: not even -0 stays negative.
    diagonal = wider(np.diagonal(self))
    total = np.add.accumulate(diagonal)[-1] if len(diagonal) else np.add.reduce(diagonal)
    return (total + 0).astype(self.dtype)


def _trace_rule(grad: Any, self_sizes: tuple[int, ...]) -> Any:
    rows, columns = self_sizes
    positions: Any = np.arange(min(rows, columns)) * (columns + 1)
    positions = Tensor(positions) if type(grad) is Tensor else positions
    return reshape(
        index_fill_tensor(zeros(grad, (rows * columns,)), 0, positions, grad), self_sizes
    )


_trace = op(
    "trace",
    _trace_array,
    takes={
        "self": TensorSpec(2, 2, text="trace: expected a matrix, but got tensor with dim {ndim}")
    },
    self=_trace_rule,
    unsupported=dtype_names("bool"),
    raises=BY_KINDS,
)


@function("trace", method=True, autocast="float32")
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal. Raises E301 for what is no matrix."""
    return _trace.apply(input)


# --- three operands at once ---------------------------------------------------------------------


def _trilinear_array(
    i1: Any,
    i2: Any,
    i3: Any,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
) -> Any:
    """sum(i1 * i2 * i3, sumdim), each operand first given new dimensions at its `expand`."""
    check_dtypes("bilinear", i1, i2, i3)
    ndim = i1.ndim + len(expand1)
    labels = [
        [dim for dim in range(ndim) if dim not in expand] for expand in (expand1, expand2, expand3)
    ]
    kept = [dim for dim in range(ndim) if dim not in sumdim]
    operands = (wide(i1), labels[0], wide(i2), labels[1], wide(i3), labels[2])
    return np.einsum(*operands, kept, optimize=True).astype(i1.dtype)


# The sum over a dimension and its expansion alternate from one rule to the next.
def _trilinear_decomposed(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
) -> Tensor:
    """`_trilinear_array`, step by step."""
    product: Any = 1.0
    for value, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for dim in dims:
            value = unsqueeze.apply(value, dim)
        product = value * product
    return sum_dims.apply(product, tuple(sumdim), False)


trilinear: Op = op(
    "_trilinear",
    _trilinear_array,
    decomposition=_trilinear_decomposed,
    i1=lambda grad, i2, i3, expand1, expand2, expand3, sumdim: trilinear(
        grad, i2, i3, sumdim, expand2, expand3, expand1
    ),
    i2=lambda grad, i1, i3, expand1, expand2, expand3, sumdim: trilinear(
        i1, grad, i3, expand1, sumdim, expand3, expand2
    ),
    i3=lambda grad, i1, i2, expand1, expand2, expand3, sumdim: trilinear(
        i1, i2, grad, expand1, expand2, sumdim, expand3
    ),
    raises=BY_KINDS,
)


def _not_bilinear(first: Any, second: Any, matrices: Any) -> str | None:
    """PyTorch's text for shapes that do not fit a weight."""
    for dim, sizes in enumerate(zip(first[:-1], second[:-1], strict=False)):
        if sizes[0] != sizes[1]:
            return (
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {sizes[0]} and"
                f" {sizes[1]}"
            )
    for number, shape in ((1, first), (2, second)):
        if len(matrices) == 3 and shape[-1] != matrices[number]:
            return (
                f"bilinear(): input{number} size does not match weight size: got {shape[-1]} but"
                f" expected {matrices[number]}"
            )
    return None


@function("bilinear", also="torch.nn.functional")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2` for each matrix of the weight, plus the bias.

    Example: F.bilinear(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]), ones(3, 2, 2))
    """
    shapes = [tuple(tensor.array.shape) for tensor in (input1, input2, weight)]
    first, second, matrices = shapes
    fitting = len(matrices) == 3 and first[:-1] == second[:-1]
    if not fitting or matrices[1:] != (*first[-1:], *second[-1:]):
        raise shape_error(
            f"bilinear(): the shapes {first} and {second} do not fit a weight of {matrices}",
            text=_not_bilinear(first, second, matrices),
        )
    count = prod(first[:-1])
    rows = reshape(input1, (count, first[-1]))
    columns = reshape(input2, (count, second[-1]))
    product = trilinear.apply(rows, weight, columns, (1, 3), (0,), (1, 2), (2, 3))
    result = reshape(product, (*first[:-1], matrices[0]))
    if bias is None:
        return result
    check_tensors("bilinear", bias=bias)
    return add.apply(result, bias)
