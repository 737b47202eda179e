"""The primitive matrix products: `dot vdot mv mm bmm addmm addmv addr baddbmm`; and maps along the
last dimensions by a matrix for each, which pools, paddings and resamplings are as formulas.

Operands need one dtype: nothing is promoted.

Those of operands of any rank, `@ matmul linear outer`, compose the primitive products with views
exactly as PyTorch does, so that graphs show the same plumbing.

Products of float32 that take long are computed by a kernel in C, whose threads share them, where
it is no slower than BLAS (`in_c.matrix_product`), and others by BLAS in parts on a thread per core.
BLAS itself keeps to one thread (`gradcli/cli/main.py`): its idle threads spin, against the other
BLAS that scipy brings and against ours, and a small product waits longer for them than it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of, new_empty
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.kernels import half_precision, in_c
from gradcli.arrays.layout.sizes import sizes_apart
from gradcli.arrays.layout.strides import laid_out_like_operands
from gradcli.arrays.threads import over_tiles
from gradcli.autograd.batched import BatchedArray
from gradcli.autograd.tensor import Tensor, refresh, storage_of
from gradcli.errors import GradcliError, dtype_error, shape_error
from gradcli.ops.arithmetic.arithmetic import add, check_factor, conj, factor_of_dtype, mul
from gradcli.ops.binding.arguments import check_tensors
from gradcli.ops.binding.catalogue import expose, function, operators
from gradcli.ops.binding.functions import methods
from gradcli.ops.codegen.promotion import EVERYDAY
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.dtype_support import not_defined
from gradcli.ops.definition.op import (
    Function,
    Op,
    TensorSpec,
    Way,
    by_kernel,
    check_ranks,
    op,
    rounded_once_alike,
    unread_dimension,
)
from gradcli.ops.shape.views import (
    expand,
    not_expanded,
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

MIDDLE = 1 << 20
"""Multiplications that take so long that the threads of the core in C pay."""

_WORTH = 1 << 23
"""Multiplications that take so long that waking a thread of Python's pays."""


def matrix_product(left: Any, right: Any) -> Any:
    """`np.matmul` of operands of two dimensions or more, of one dtype."""
    if left.ndim > 2 < right.ndim and left.shape[-1] == 1 and left.dtype.kind in "fc":
        # Many small calls of BLAS would take longer. A sum that begins with 0 is never -0.
        outer = left * right
        outer += 0
        return outer
    work = left.size * right.shape[-1]
    if work >= MIDDLE and left.ndim == right.ndim == 2:
        made = in_c.matrix_product(left, right)
        if made is not None:
            return made
    if work < _WORTH or type(left) not in HOST_ARRAYS or type(right) not in HOST_ARRAYS:
        return np.matmul(left, right)
    if left.ndim == right.ndim == 2:
        rows, columns = left.shape[0], right.shape[1]
        out = new_empty(left, (rows, columns))
        if rows >= columns:
            _in_parts(rows, work, lambda part: np.matmul(left[part], right, out=out[part]))
        else:
            _in_parts(columns, work, lambda part: np.matmul(left, right[:, part], out=out[:, part]))
        return out
    if left.ndim != right.ndim or left.shape[0] != right.shape[0]:
        return np.matmul(left, right)
    if left.shape[0] == 1:
        return matrix_product(left[0], right[0])[None]
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    out = new_empty(left, (*batch, left.shape[-2], right.shape[-1]))
    _in_parts(batch[0], work, lambda part: np.matmul(left[part], right[part], out=out[part]))
    return out


def _in_parts(length: int, work: int, multiply: Any) -> None:
    """Call `multiply` with slices that share out so many rows, columns or matrices."""
    over_tiles((length, max(1, work // length)), multiply, work)


Sizes = tuple[int, ...]

# --- arrays -------------------------------------------------------------------------------------


_CASTS = {"float16": ".half()", "float32": ".float()", "float64": ".double()"}


def check_dtypes(name: str, *arrays: Any) -> None:
    """Raise E203 where the operands' dtypes differ, or are bool."""
    first = arrays[0].dtype
    for array in arrays[1:]:
        if array.dtype != first:
            raise dtype_error(
                f"{name}: operands of {dtypes.of_array(arrays[0])} and {dtypes.of_array(array)}",
                text=_dtypes_apart(name, dtypes.of_array(arrays[0]), dtypes.of_array(array)),
                help="products of matrices promote nothing: cast one,"
                f" `x{_CASTS.get(array.dtype.name, '.to(dtype)')}`",
            )
    if first.char == "?":
        raise not_defined(name, dtypes.of_array(arrays[0]), "NotImplementedError")


def _dtypes_apart(name: str, left: dtypes.DType, right: dtypes.DType) -> str | None:
    """PyTorch's text for operands of two dtypes."""
    if name in ("dot", "vdot"):
        return (
            f"dot : expected both vectors to have same dtype, but found {left.scalar_type} and"
            f" {right.scalar_type}"
        )
    if name == "addmm":
        return (
            f"mat1 and mat2 must have the same dtype, but got {left.scalar_type} and"
            f" {right.scalar_type}"
        )
    if name == "bmm":
        return f"expected scalar type {left.scalar_type} but found {right.scalar_type}"
    return f"expected m1 and m2 to have the same dtype, but got: {left.c_name} != {right.c_name}"


def _of_rank(rank: int, text: str | None = None, read: int = 0) -> TensorSpec:
    """An operand of a product, which has so many dimensions; `text` is PyTorch's."""
    dimensions = f"{rank} dimension{'s' if rank > 1 else ''}"
    plain = f"{{name}}: an operand of shape {{shape}} should have {dimensions}"
    return TensorSpec(rank, rank, text=text, plain=plain, read=read)


def misfit_of_matrices(name: str, left: Any, right: Any) -> GradcliError:
    """The error of matrices whose shapes cannot be multiplied."""
    return shape_error(
        f"{name}: the shapes {tuple(left.shape)} and {tuple(right.shape)} cannot be multiplied",
        text=_not_multiplied(name, list(left.shape), list(right.shape)),
    )


def _not_multiplied(name: str, left: list[int], right: list[int]) -> str:
    """PyTorch's text for shapes that cannot be multiplied."""
    if len(left) == len(right) == 1:
        return (
            f"inconsistent tensor size, expected tensor {left} and src {right} to have the same"
            f" number of elements, but got {left[0]} and {right[0]} elements respectively"
        )
    if len(left) == 2 and len(right) == 1:
        rows, columns = left
        return f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec ({right[0]})"
    if len(left) == len(right) == 2:
        sizes = f"{left[0]}x{left[1]} and {right[0]}x{right[1]}"
        return f"mat1 and mat2 shapes cannot be multiplied ({sizes})"
    batch = "" if name == "bmm" else sizes_apart(left[:-2], right[:-2])
    expected, actual = [left[0], left[-1]], right[:2]
    if name != "bmm":  # PyTorch folds the dimensions of the batch into one
        common = prod(np.broadcast_shapes(left[:-2], right[:-2])) if not batch else 0
        expected, actual = [common, left[-1]], [common, *right[-2:-1]]
    return batch or (
        f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got:"
        f" {actual}."
    )


def product(left: Any, right: Any) -> Any:
    """NumPy's matmul; half precision is multiplied in float32, as in PyTorch."""
    dtype = left.dtype
    if dtype.itemsize == 2 and dtypes.of_array(left).category == "float":
        return dtypes.narrowed(product(dtypes.widened(left), dtypes.widened(right)), dtype)
    if left.ndim == 1 or right.ndim == 1:
        return np.matmul(left, right)
    if left.ndim != 2 or right.ndim != 2:
        return matrix_product(left, right)
    rows, inner = left.shape
    return _of_matrices(left, right, rows, inner, right.shape[1])


def _of_matrices(left: Any, right: Any, rows: int, inner: int, columns: int) -> Any:
    """The product of two matrices of one dtype, which is not of half precision: (rows, inner) and
    (inner, columns).
    """
    if inner == 1 < columns and rows > 1:
        return left * right  # a matrix of single products adds nothing: a zero keeps its sign
    # The same product twice: `dot` has less overhead, and fills the result with zeros first.
    is_small = rows * columns < _LARGE and rows * columns * inner < MIDDLE
    return (np.dot if is_small else matrix_product)(left, right)


_LARGE = 1 << 14
"""Elements of a product whose memory takes longer to fill than `matmul` to begin."""


# --- the primitive products ---------------------------------------------------------------------


def _dot_array(name: str, self: Any, tensor: Any) -> Any:
    if self.shape != tensor.shape:
        raise misfit_of_matrices(name, self, tensor)
    check_dtypes(name, self, tensor)
    return product(self, tensor)


dot = op(
    "dot",
    lambda self, tensor: _dot_array("dot", self, tensor),
    takes=dict.fromkeys(
        ("self", "tensor"),
        _of_rank(1, "1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors"),
    ),
    self=lambda grad, tensor: grad * conj(tensor),
    tensor=lambda grad, self: grad * conj(self),
    doc="The sum of two vectors' products.",
    example="torch.dot(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))",
    numpy="({0} @ {1})",
    raises=BY_KINDS,
)

vdot = op(
    "vdot",
    lambda self, other: _dot_array("vdot", conj(self), other),
    takes=dict.fromkeys(
        ("self", "other"),
        _of_rank(1, "1D tensors expected, but got {self.ndim}D and {other.ndim}D tensors"),
    ),
    self=lambda grad, other: conj(grad) * other,
    other=lambda grad, self: grad * self,
    doc="The sum of two vectors' products, the first one conjugated.",
    example="torch.vdot(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))",
    raises=BY_KINDS,
)


def _mv_array(self: Any, vec: Any) -> Any:
    check_dtypes("mv", self, vec)
    if self.shape[1] != vec.shape[0]:
        raise misfit_of_matrices("mv", self, vec)
    return product(self, vec)


_OF_MV = "vector + matrix @ vector expected, got 1, {self.ndim}, {vec.ndim}"

mv: Op = op(
    "mv",
    lambda self, vec: _mv_array(self, vec),
    takes={"self": _of_rank(2, _OF_MV, read=1), "vec": _of_rank(1, _OF_MV)},
    self=lambda grad, vec: _column_times_row(grad, conj(vec)),
    vec=lambda grad, self: mv(conj(t(self)), grad),
    doc="The product of a matrix and a vector.",
    example="torch.mv(tensor([[2., 1.], [1., 3.]]), tensor([1., 2.]))",
    numpy="({0} @ {1})",
    raises=BY_KINDS,
)


def _column_times_row(column: Any, row: Any) -> Any:
    """The outer product: what rules call, on arrays or tensors."""
    return reshape(column, (column.shape[0], 1)) * row


def _mm_array(self: Any, mat2: Any) -> Any:
    (rows, inner), (second_rows, columns) = self.shape, mat2.shape
    if inner != second_rows:
        raise misfit_of_matrices("mm", self, mat2)
    if self.dtype is mat2.dtype and self.dtype in EVERYDAY:
        return _of_matrices(self, mat2, rows, inner, columns)
    check_dtypes("mm", self, mat2)
    return product(self, mat2)


# The gradient of a matrix that lies in memory column by column, as the transpose of one by rows
# does, is made by columns as well: transposed back, as the weights of a linear layer are, it has
# the layout of the leaf. Formulas, which say nothing of memory, are given no strides.


def _of_left(grad: Any, mat2: Any, self_strides: Sizes) -> Any:
    """The gradient of a product's left matrix."""
    if self_strides and self_strides[1] == self_strides[0] * grad.shape[0]:
        return t(mm(conj(mat2), t(grad)))
    return mm(grad, conj(t(mat2)))


def _of_right(grad: Any, self: Any, mat2_strides: Sizes) -> Any:
    """The gradient of a product's right matrix."""
    if mat2_strides and mat2_strides[1] == mat2_strides[0] * self.shape[1]:
        return t(mm(t(grad), conj(self)))
    return mm(conj(t(self)), grad)


mm: Op = op(
    "mm",
    _mm_array,
    takes=dict.fromkeys(("self", "mat2"), _of_rank(2, "{argument} must be a matrix")),
    autocast=True,
    self=_of_left,
    mat2=_of_right,
    doc="The product of two matrices.",
    example="torch.mm(tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))",
    raises=BY_KINDS,
)


def _bmm_array(name: str, self: Any, mat2: Any) -> Any:
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise misfit_of_matrices("bmm", self, mat2)
    check_dtypes(name, self)  # bools are checked before a difference of dtypes
    check_dtypes("bmm", self, mat2)
    return product(self, mat2)


bmm: Op = op(
    "bmm",
    lambda self, mat2: _bmm_array("bmm", self, mat2),
    takes={
        "self": _of_rank(3, "batch1 must be a 3D tensor"),
        "mat2": _of_rank(3, "batch2 must be a 3D tensor"),
    },
    autocast=True,
    self=lambda grad, mat2: bmm(grad, conj(transpose(mat2, 1, 2))),
    mat2=lambda grad, self: bmm(conj(transpose(self, 1, 2)), grad),
    doc="The products of two batches of matrices.",
    example="torch.bmm(arange(8.).reshape(2, 2, 2), arange(8.).reshape(2, 2, 2))",
    raises=BY_KINDS,
)

for _entry in (dot, vdot, mv, mm, bmm):
    expose(_entry)

# --- products added to something ----------------------------------------------------------------


def scaled(value: Any, number: Any) -> Any:
    """A gradient times a number; no node where the number is 1."""
    return value if number == 1 else value * number


def _counted(product: Any, alpha: Any) -> Any:
    """The product, or zeros where its factor is 0: BLAS does not look at what it has then."""
    return module_of(product).zeros_like(product) if alpha == 0 else product


def _added(name: str, self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """What `_sum` does, of operands whose dtypes must not differ."""
    check_dtypes(name, product, self)
    return _sum(name, self, product, beta, alpha)


def _sum(name: str, self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * product; with beta 0 not even a nan of `self` counts. The factors are
    of the product's dtype: beside integers 1.5 is 1.
    """
    if beta == 1 and alpha == 1 and type(product) in HOST_ARRAYS:
        try:
            product += self
        except ValueError:
            raise _not_added(name, self, product.shape) from None
        return product
    beta, alpha = (factor_of_dtype(factor, product.dtype) for factor in (beta, alpha))
    whole = _expanded(name, self, product.shape)
    scaled_product = scaled(product, alpha)
    if beta == 0:
        return scaled_product
    return (scaled(whole, beta) + scaled_product).astype(product.dtype)[()]


def _expanded(name: str, self: Any, shape: Sizes) -> Any:
    """The tensor that a product of a shape is added to, expanded to it."""
    try:
        return np.broadcast_to(self, shape)
    except ValueError:
        raise _not_added(name, self, shape) from None


def _not_added(name: str, self: Any, shape: Sizes) -> GradcliError:
    """The error of a tensor that cannot be added to a product of a shape."""
    return shape_error(
        f"{name}: a tensor of shape {tuple(self.shape)} cannot be added to a product of shape"
        f" {shape}",
        text=not_expanded(dtypes.of_array(self), self.shape, shape),
    )


def _multiplied(self: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """`_sum` of complex numbers by a kernel that multiplies by 1 as by any other number: that makes
    the other part of an infinity nan.
    """
    total = product * product.dtype.type(alpha)
    if beta != 0:
        total = self * product.dtype.type(beta) + total
    return total[()]


def _in_half(whole: Function) -> Way:
    """Half precision by a function that multiplies the product by 0 where its factor is 0."""
    return lambda forward, operands: rounded_once_alike(whole, operands)


def _product_of_addmm(mat1: Any, mat2: Any) -> Any:
    if mat1.dtype is not mat2.dtype and mat1.shape[1:] == mat2.shape[:1]:
        check_dtypes("addmm", mat1, mat2)
    return _mm_array(mat1, mat2)


addmm = op(
    "addmm",
    lambda self, mat1, mat2, beta=1, alpha=1: _added(
        "addmm", self, _counted(_product_of_addmm(mat1, mat2), alpha), beta, alpha
    ),
    takes=dict.fromkeys(
        ("mat1", "mat2"), _of_rank(2, "{argument} must be a matrix, got {ndim}-D tensor")
    ),
    autocast=True,
    half=_in_half(
        lambda self, mat1, mat2, beta, alpha: _added(
            "addmm", self, _product_of_addmm(mat1, mat2), beta, alpha
        )
    ),
    self=lambda grad, beta: scaled(grad, conj(beta)),
    mat1=lambda grad, mat2, alpha, mat1_strides: scaled(
        _of_left(grad, mat2, mat1_strides), conj(alpha)
    ),
    mat2=lambda grad, mat1, alpha, mat2_strides: scaled(
        _of_right(grad, mat1, mat2_strides), conj(alpha)
    ),
    doc="`beta * input + alpha * (mat1 @ mat2)`.",
    example=(
        "torch.addmm(tensor([[2., 1.], [1., 3.]]), tensor([[2., 1.], [1., 3.]]), "
        "tensor([[1., 0.], [2., 1.]]))"
    ),
    raises=BY_KINDS,
)


def _addmv_array(self: Any, mat: Any, vec: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _mv_array(mat, vec)
    if product.dtype.kind != "c":
        product = _counted(product, alpha)
    return _added("addmv", self, product, beta, alpha)


_OF_ADDMV = "vector + matrix @ vector expected, got 1, {mat.ndim}, {vec.ndim}"

addmv = op(
    "addmv",
    _addmv_array,
    takes={"mat": _of_rank(2, _OF_ADDMV), "vec": _of_rank(1, _OF_ADDMV)},
    half=_in_half(
        lambda self, mat, vec, beta, alpha: _added("addmv", self, _mv_array(mat, vec), beta, alpha)
    ),
    self=lambda grad, beta: scaled(grad, conj(beta)),
    mat=lambda grad, vec, alpha: scaled(_column_times_row(grad, conj(vec)), conj(alpha)),
    vec=lambda grad, mat, alpha: scaled(mv(conj(t(mat)), grad), conj(alpha)),
    doc="`beta * input + alpha * (mat @ vec)`.",
    example="torch.addmv(tensor([1., 1.]), tensor([[2., 1.], [1., 3.]]), tensor([1., 2.]))",
    raises=BY_KINDS,
)


def _addr_array(self: Any, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    dtype = _check_addr(self, vec1, vec2, beta, alpha)
    self, vec1, vec2 = (dtypes.cast(each, dtype) for each in (self, vec1, vec2))
    if dtype.is_complex:
        one = vec1.dtype.type(1)
        total = _multiplied(self, _column_times_row(vec1 * (one * alpha), vec2), beta, 1)
    else:
        total = _sum("addr", self, _column_times_row(scaled(vec1, alpha), vec2), beta, 1)
        total = dtypes.cast(total, dtype)  # bools stay bools
    return laid_out_like_operands(total, self, vec1[:, None], vec2)


def _addr_of_half(self: Any, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    _check_addr(self, vec1, vec2, beta, alpha)
    return half_precision.addr(self, vec1, vec2, beta, alpha)


def _check_addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> dtypes.DType:
    """Raise what the operands of `addr` are refused for; the dtype of the result."""
    for argument, factor in (("beta", beta), ("alpha", alpha)):
        check_factor(argument, factor, self, vec1, vec2)
    dtype = dtypes.result_dtype((self, vec1, vec2))
    for factor in (beta, alpha):
        factor_of_dtype(factor, dtype.numpy_dtype)
    try:
        np.broadcast_to(self, (vec1.size, vec2.size))
    except ValueError:
        raise _not_added("addr", self, (vec1.size, vec2.size)) from None
    return dtype


addr = op(
    "addr",
    _addr_array,
    takes=dict.fromkeys(
        ("vec1", "vec2"),
        _of_rank(1, "{name}: Expected 1-D argument {argument}, but got {ndim}-D"),
    ),
    half=by_kernel(_addr_of_half),
    keeps_layout=True,
    self=lambda grad, beta: scaled(grad, conj(beta)),
    vec1=lambda grad, vec2, alpha: scaled(mv(grad, conj(vec2)), conj(alpha)),
    vec2=lambda grad, vec1, alpha: scaled(mv(t(grad), conj(vec1)), conj(alpha)),
    doc="`beta * input + alpha * outer(vec1, vec2)`.",
    example="torch.addr(tensor([[2., 1.], [1., 3.]]), tensor([1., 2.]), tensor([3., 4.]))",
    raises=BY_KINDS,
)


def _baddbmm_array(self: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    for rank, batch in ((2, batch1), (3, batch2)):
        if batch.ndim < rank:  # PyTorch reads the dimensions before it checks their number
            dim = 2 if rank == 3 and batch.ndim else batch.ndim
            raise unread_dimension("baddbmm", batch.shape, dim)
    if self.dtype != batch1.dtype:
        check_dtypes("baddbmm", self, batch1)
    check_ranks("bmm", bmm.takes, batch1, batch2)
    product = _bmm_array("baddbmm", batch1, batch2)
    if product.dtype.kind == "c" and prod(batch1.shape[1:]) * batch2.shape[2] < _OWN_KERNEL:
        return _multiplied(_expanded("baddbmm", self, product.shape), product, beta, alpha)
    return _added("baddbmm", self, product, beta, alpha)


_OWN_KERNEL = 400
"""Multiplications of a matrix from which on PyTorch leaves a batch to BLAS."""


baddbmm = op(
    "baddbmm",
    _baddbmm_array,
    autocast=True,
    half=rounded_once_alike,
    self=lambda grad, beta: scaled(grad, conj(beta)),
    batch1=lambda grad, batch2, alpha: scaled(
        bmm(grad, conj(transpose(batch2, 1, 2))), conj(alpha)
    ),
    batch2=lambda grad, batch1, alpha: scaled(
        bmm(conj(transpose(batch1, 1, 2)), grad), conj(alpha)
    ),
    doc="`beta * input + alpha * (batch1 @ batch2)`, for batches of matrices.",
    example="torch.baddbmm(zeros(2, 2), arange(8.).reshape(2, 2, 2), arange(8.).reshape(2, 2, 2))",
    raises=BY_KINDS,
)


for _entry in (addmm, addr, baddbmm):
    expose(_entry, inplace=True)
expose(addmv, inplace_function=True)


def along_dims(value: Tensor, matrices: Sequence[Any]) -> Tensor:
    """A tensor with its last dimensions multiplied by matrices, arrays of (before, after)."""
    ndim = len(value.shape)
    for dim, array in enumerate(matrices, ndim - len(matrices)):
        if array.shape[0] == array.shape[1] and (array == np.eye(len(array))).all():
            continue
        matrix = Tensor(np.ascontiguousarray(array, value.array.dtype))
        if dim == ndim - 1:
            value = value @ matrix
        elif dim == ndim - 2:
            value = Tensor(np.ascontiguousarray(array.T, value.array.dtype)) @ value
        else:
            turned = transpose.apply(value, dim, ndim - 1) @ matrix
            value = transpose.apply(turned, dim, ndim - 1)
    return value


# --- operands of any rank -------------------------------------------------------------------------


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


@function(
    "outer",
    "ger",
    method=True,
    numpy="outer",
    takes={
        "input": _of_rank(1, "outer: Expected 1-D argument self, but got {ndim}-D"),
        "vec2": _of_rank(1, "outer: Expected 1-D argument vec2, but got {ndim}-D"),
    },
)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every product of an element of one vector and an element of the other, as a matrix.

    Example: torch.outer(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    return mul.apply(reshape(input, (input.array.shape[0], 1)), vec2)
