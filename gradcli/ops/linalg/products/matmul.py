"""Matrix products of operands of any rank: `@ matmul linear outer`.

They compose the primitive products with views exactly as PyTorch does, so that graphs show the same
plumbing.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.tensor import Tensor, refresh, storage_of
from gradcli.errors import shape_error
from gradcli.ops.arithmetic.arithmetic import add, mul
from gradcli.ops.binding.arguments import check_tensors
from gradcli.ops.binding.catalogue import function, operators
from gradcli.ops.binding.functions import methods
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.linalg.products.matrix_products import (
    addmm,
    bmm,
    check_ranks,
    dot,
    misfit_of_matrices,
    mm,
    mv,
)
from gradcli.ops.shape.views import (
    expand,
    reshape,
    squeeze_dim,
    squeeze_dim_in_place,
    t,
    transpose,
    unsafe_view,
    unsqueeze,
    view,
)
from gradcli.state import active

# --- matmul -------------------------------------------------------------------------------------


def _wants_grad(tensor: Tensor) -> bool:
    if tensor.storage is not None:
        refresh(tensor)
    return tensor.requires_grad


def _folds(left: Tensor, right: Tensor) -> bool:
    """Whether the larger operand is folded into one matrix, rather than the smaller one repeated.

    It is where the smaller one wants a gradient, so that this is no sum over repetitions, and
    where folding costs no copy.
    """
    larger, smaller = (left, right) if left.array.ndim >= right.array.ndim else (right, left)
    if larger.array.ndim < 3 or smaller.array.ndim > 2:
        return False
    if _wants_grad(smaller):
        return True
    if left.array.ndim == 2:
        return False
    array = larger.array.layout if type(larger.array) is BatchedArray else larger.array
    array = array if larger is left else np.swapaxes(array, -1, -2)
    return not array.size or all(
        array.strides[i] == array.strides[i + 1] * array.shape[i + 1] for i in range(array.ndim - 2)
    )


def _folded(left: Tensor, right: Tensor) -> Tensor:
    """A product of a stack of matrices and a matrix or vector, as one product of matrices."""
    stack, small = left, right
    if swapped := right.array.ndim > left.array.ndim:
        stack = transpose.apply(right, right.array.ndim - 2, right.array.ndim - 1)
        small = t.apply(left) if left.array.ndim == 2 else left
    shape = stack.array.shape
    rows = reshape(stack, (prod(shape[:-1]), shape[-1]))
    if small.array.ndim == 1:
        return unsafe_view.apply(mv.apply(rows, small), shape[:-1])
    result = unsafe_view.apply(mm.apply(rows, small), (*shape[:-1], small.array.shape[1]))
    if not swapped:
        return result
    ndim = result.array.ndim
    return contiguous(transpose.apply(result, ndim - 2, ndim - 1))


def _batched(left: Tensor, right: Tensor) -> Tensor:
    """A product of stacks of matrices, whose leading sizes are broadcast against each other."""
    first, second = left.array.shape, right.array.shape
    if len(first) == len(second) == 3 and first[0] != second[0]:
        # As in `_folds`: what would be repeated is folded instead.
        if first[0] == 1 and _wants_grad(left):
            return matmul(squeeze_dim.apply(left, 0), right)
        if second[0] == 1 and _wants_grad(right):
            return matmul(left, squeeze_dim.apply(right, 0))
    matrix = first[-2:] if len(first) > 1 else (1, *first)
    try:
        batch = np.broadcast_shapes(first[:-2], second[:-2])
    except ValueError:
        raise misfit_of_matrices("matmul", left, right) from None
    count = prod(batch)
    stack = reshape(expand.apply(left, (*batch, *matrix)), (count, *matrix))
    if len(second) == 1:  # a vector
        repeated = reshape(expand.apply(right, (*batch, *second)), (count, *second))
        product = bmm.apply(stack, unsqueeze.apply(repeated, 2))
        return unsafe_view.apply(squeeze_dim.apply(product, 2), first[:-1])
    repeated = reshape(expand.apply(right, (*batch, *second[-2:])), (count, *second[-2:]))
    rows = first[-2:-1]  # a vector on the left has none
    return unsafe_view.apply(bmm.apply(stack, repeated), (*batch, *rows, second[-1]))


@function("matmul", method=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product of two tensors; more than two dimensions are stacks of matrices.

    Raises E301 where the sizes do not fit, E203 where the dtypes differ.
    """
    if type(input) is not Tensor or type(other) is not Tensor:
        check_tensors("matmul", input=input, other=other)
    if active.state.autocast is not None:
        return active.state.autocast.short(matmul, input, other)
    left, right = input.array.ndim, other.array.ndim
    if left == 2:
        if right == 2:
            return mm.apply(input, other)
        if right == 1:
            return mv.apply(input, other)
    elif left == 1:
        if right == 1:
            return dot.apply(input, other)
        if right == 2:
            row = mm.apply(unsqueeze.apply(input, 0), other)
            product = squeeze_dim_in_place.apply(row, 0)
            storage_of(product).version = 1
            return product
    if not left or not right:
        raise shape_error(
            "matmul: a 0-dim tensor is no matrix",
            text="both arguments to matmul need to be at least 1D, but they are"
            f" {input.array.ndim}D and {other.array.ndim}D",
            help="multiply by a number with `*`",
        )
    if input.array.shape[-1] != other.array.shape[-2 if right > 1 else 0]:
        raise misfit_of_matrices("matmul", input, other)
    return _folded(input, other) if _folds(input, other) else _batched(input, other)


function("matmul", module="torch.linalg")(matmul)
operators["@"] = matmul

# --- linear -------------------------------------------------------------------------------------


@function("linear", module="torch.nn.functional")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.t() + bias`, over the last dimension of the input.

    Example: F.linear(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    check_tensors("linear", input=input, weight=weight)
    if active.state.autocast is not None:
        return active.state.autocast.short(linear, input, weight, bias)
    if weight.array.ndim > 2:
        raise shape_error(f"linear(): a weight of shape {tuple(weight.array.shape)}")
    if bias is None:
        return matmul(input, t.apply(weight))
    check_tensors("linear", bias=bias)
    shape = input.array.shape
    if len(shape) == 2:
        return addmm.apply(bias, input, t.apply(weight))
    widths = bias.array.shape
    one_row = widths and bias.array.size == widths[-1]
    if shape and one_row and input.array.flags.c_contiguous and weight.array.ndim == 2:
        rows = reshape(input, (prod(shape[:-1]), shape[-1]))
        product = addmm.apply(bias, rows, t.apply(weight))
        return view.apply(product, (*shape[:-1], product.array.shape[1]))
    product = matmul(input, t.apply(weight))
    sizes = zip(reversed(widths), reversed(product.array.shape), strict=False)
    if len(widths) <= product.array.ndim and all(size in (1, whole) for size, whole in sizes):
        result = add.apply(product, bias)
        storage_of(result).version = storage_of(product).version + 1  # PyTorch adds in place
        return result
    return methods.add_(product, bias)  # which raises


@function("outer", "ger", method=True, numpy="outer")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every product of an element of one vector and an element of the other, as a matrix.

    Example: torch.outer(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    check_ranks("outer", (input.array, 1), (vec2.array, 1))
    return mul.apply(reshape(input, (input.array.shape[0], 1)), vec2)
