"""Batching rules of products of matrices and vectors, and of systems with two matrices; on one
matrix functions take the examples as a leading dimension.
"""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import shape_error
from gradcli.library.torch.func.batching.frame import Frame
from gradcli.library.torch.func.batching.rules import At, batching, behind
from gradcli.ops.arithmetic.arithmetic import mul
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.definition.op import Op
from gradcli.ops.linalg.products.matmul import matmul
from gradcli.ops.linalg.products.matrix_products import baddbmm, bmm, mm, scaled
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.views import expand, permute, reshape, squeeze_dim, t, unsafe_view, unsqueeze


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
