"""Batching rules of losses, of normalisation and of convolution; of products of matrices and
vectors, and of systems with two matrices. On one matrix functions take the examples as a leading
dimension.
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error
from gradcli.library.torch.func.batching.rules import (
    At,
    Frame,
    batching,
    behind,
    folded,
    side_by_side,
    unfolded,
)
from gradcli.library.torch.func.batching.shapes import broadcast_first
from gradcli.ops.arithmetic.arithmetic import mul, zeros
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.functions import methods
from gradcli.ops.definition.op import Op
from gradcli.ops.indexing.along import index_select
from gradcli.ops.linalg.products.matrix_products import baddbmm, bmm, matmul, mm, scaled
from gradcli.ops.nn.loss.elementwise import MEAN, NONE
from gradcli.ops.nn.normalisation.formula import Statistics
from gradcli.ops.nn.spatial.convolution import Geometry, convolution, convolution_backward
from gradcli.ops.reduction.sum import mean_dims, sum_dims
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.views import (
    expand,
    permute,
    reshape,
    squeeze_dim,
    t,
    unsafe_view,
    unsqueeze,
    view,
)

# --- products -------------------------------------------------------------------------------------


def _column(vectors: Tensor) -> Tensor:
    return unsqueeze.apply(vectors, vectors.array.ndim)


_RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "vdot": (1, 1)}


def _check_ranks(op: Op, args: Any) -> None:
    """Raise E301 where an example of an operand has another number of dimensions than the op takes;
    those of what all examples share count as well.
    """
    if op.name not in _RANKS:  # one that adds a product has checked its operands
        return
    ranks, wanted = tuple(len(each.array.shape) for each in args), _RANKS[op.name]
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
def _pair(frame: Frame, op: Op, args: Any) -> Any:
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
