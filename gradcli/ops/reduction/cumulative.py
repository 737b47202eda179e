"""Cumulative reductions along a dimension, `cumsum cumprod cummax cummin logcumsumexp diff`, and
`prod`, whose gradient at zeros is computed from running products; and derivatives estimated by
finite differences, `torch.gradient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod as product
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DType
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.kernels.in_c import running_sums
from gradcli.arrays.kernels.sums import LARGEST, lane_product, wide, wider
from gradcli.autograd.batched import unbatched
from gradcli.autograd.inplace.writes import check_inplace
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import (
    add,
    conj,
    div,
    div_number,
    mul,
    ones,
    sub,
    zeros,
    zeros_like,
)
from gradcli.ops.binding.arguments import normal_dim, normal_dims
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.binding.results import named
from gradcli.ops.creation.copies import to
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.dtype_support import COMPLEX, INTEGRAL, check_dtype, dtype_names
from gradcli.ops.definition.op import Function, Op, is_half, op, rounded_once
from gradcli.ops.elementwise.binary import logaddexp_array
from gradcli.ops.elementwise.comparison import logical_xor, where
from gradcli.ops.elementwise.unary import abs_op, exp, is_complex, log
from gradcli.ops.indexing.along import scatter_add
from gradcli.ops.indexing.strided import assign
from gradcli.ops.reduction.sum import (
    cast_array,
    check_reduced,
    fold,
    kept_sizes,
    reduction,
    sum_dims,
)
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.reshaping import flip
from gradcli.ops.shape.slicing import narrow, select, slice_op
from gradcli.ops.shape.views import expand, reshape, restore_dims, view
from gradcli.state import look


def _accumulated(ufunc: Any, self: Any, dim: int, dtype: DType | None) -> Any:
    """A ufunc's running result; integers and bools give int64."""
    self = cast_array(self, dtype)
    if not self.ndim:
        return self.astype(np.int64) if self.dtype.kind in "iub" and dtype is None else self[()]
    if self.dtype.kind in "iub":
        target = np.int64 if dtype is None else self.dtype
        return ufunc.accumulate(self, axis=dim, dtype=target)
    if ufunc is np.add and (sums := running_sums(self, dim)) is not None:
        return sums
    results = ufunc.accumulate(wider(self), axis=dim)
    # PyTorch begins with the identity, so that a sum of -0 is 0.
    return ufunc(results, ufunc.identity, out=results).astype(self.dtype, copy=False)


# --- cumsum -------------------------------------------------------------------------------------


def _sum_from_the_end(value: Any, dim: int) -> Any:
    if (sums := running_sums(value, dim, True)) is not None:
        return sums
    if type(value) in HOST_ARRAYS and value.flags.c_contiguous:
        backwards = (*[slice(None)] * (dim % value.ndim), slice(None, None, -1))
        return _accumulated(np.add, value[backwards], dim, None)[backwards].copy()
    return flip(cumsum(flip(value, (dim,)), dim), (dim,))


def _has_one_step(value: Any, dim: int) -> bool:
    """Whether there is nothing to accumulate."""
    return bool(value.ndim == 0 or product(value.shape) <= 1 or value.shape[dim] == 1)


cumsum: Op = op(
    "cumsum",
    lambda self, dim, dtype=None: _accumulated(np.add, self, dim, dtype),
    self=lambda grad, dim: grad if _has_one_step(grad, dim) else _sum_from_the_end(grad, dim),
    numpy=".cumsum(axis)",
    raises=BY_KINDS,
)

# --- cumprod ------------------------------------------------------------------------------------
#
# As in PyTorch the formula depends on the values: a quotient where no element is 0. Where one is,
# products that leave an element out; those written for recording have derivatives in turn.


def _cumprod_rule(grad: Any, self: Any, result: Any, dim: int) -> Any:
    if _has_one_step(self, dim):
        return grad
    grad = _in_dtype_of(grad, self)
    self = conj(self)
    zero = forced(unbatched(self.array) if type(self) is Tensor else self) == 0
    if not zero.any():
        return _sum_from_the_end(conj(result) * grad, dim) / self
    if type(grad) is Tensor:
        return _cumprod_recorded(grad, self, dim)
    return _cumprod_computed(grad, self, conj(result), zero, dim)


def _in_dtype_of(grad: Any, self: Any) -> Any:
    if grad.dtype == self.dtype:
        return grad
    dtype = self.dtype if type(self) is Tensor else dtypes.of_array(self)
    return to(grad, dtype) if type(grad) is Tensor else dtypes.cast(grad, dtype)


def _cumprod_recorded(grad: Any, self: Any, dim: int) -> Any:
    """One slice after the other, each from the products that leave its element out."""
    count = int(self.shape[dim])
    sizes = tuple(1 if d == dim else size for d, size in enumerate(self.shape))
    whole = zeros(self, tuple(self.shape))
    for k in range(count):
        before = prod_dim(slice_op(self, dim, 0, k, 1), dim, True) if k else ones(self, sizes)
        factors = before
        if k < count - 1:
            after = cumprod(slice_op(self, dim, k + 1, count, 1), dim)
            products = expand(before, tuple(after.shape)) * after if k else after
            factors = cat([before, products], dim)
        part = sum_dims(slice_op(grad, dim, k, count, 1) * factors, (dim,), False)
        assign(select(whole, dim, k), part)
    return whole


def _cumprod_computed(grad: Any, self: Any, result: Any, zero: Any, dim: int) -> Any:
    """Up to the first zero of a line the quotient holds; at it, the products that leave it out;
    after it nothing changes.
    """
    zeros_so_far = np.cumsum(zero, axis=dim)
    clear = zeros_so_far == 0
    weighted = np.where(clear, result * grad, 0).astype(grad.dtype)
    gradient = np.where(clear, _sum_from_the_end(weighted, dim) / np.where(clear, self, 1), 0)
    between = (zeros_so_far == 1) & ~zero
    position = np.argmax(zero, axis=dim, keepdims=True)
    after = np.multiply.accumulate(np.where(between, self, 1).astype(self.dtype), axis=dim)
    total = np.sum(after * np.where(zeros_so_far == 1, grad, 0), axis=dim, keepdims=True)
    before = np.take_along_axis(result, np.maximum(position - 1, 0), axis=dim)
    at_first = total * np.where(position == 0, 1, before)
    first = zero & (zeros_so_far == 1)
    return np.where(first, at_first, gradient).astype(self.dtype)


def _cast_and_rounded_once(forward: Function, operands: tuple[Any, ...]) -> Any:
    """`rounded_once` in the dtype that is asked for."""
    self, dim, dtype = operands
    self = cast_array(self, dtype)
    return rounded_once(forward, (self, dim, None if is_half(self) else dtype))


cumprod: Op = op(
    "cumprod",
    lambda self, dim, dtype=None: _accumulated(np.multiply, self, dim, dtype),
    half=_cast_and_rounded_once,
    self=_cumprod_rule,
    numpy=".cumprod(axis)",
    raises=BY_KINDS,
)


def prod_gradient_at_zeros(grad: Any, self: Any, dim: int) -> Any:
    """The gradient of the product along a dimension that divides by no element: the product of
    those before each one, and of those after it.
    """
    count = int(self.shape[dim])
    if not product(self.shape):
        return expand(grad, tuple(self.shape))
    if count == 1:
        return grad
    one = ones(self, tuple(1 if d == dim else size for d, size in enumerate(self.shape)))
    before = cumprod(cat([one, slice_op(self, dim, 0, count - 1, 1)], dim), dim)
    backwards = flip(slice_op(self, dim, 1, count, 1), (dim,))
    after = flip(cumprod(cat([one, backwards], dim), dim), (dim,))
    return grad * conj(before * after)


def _expose_running(entry: Op, words: str) -> None:
    name = entry.name

    def check_written(written_as: str, self: Tensor, /, *operands: Any, **named: Any) -> None:
        check_inplace(written_as, self)
        check_dtype(f"{name}_", self.dtype, dtype_names("bool"))
        dtype = named.get("dtype")
        if dtype is not None and dtype is not self.dtype:
            raise dtype_error(
                "Bad in-place call: input tensor dtype"
                f" {self.dtype.c_name} and output tensor dtype {dtype.c_name} should match"
            )

    @reduction(name, inplace=True, check=check_written)
    def running(input: Tensor, dim: int, *, dtype: DType | None = None) -> Any:
        check_reduced(name, input, dtype=dtype)
        return entry.apply(input, normal_dim(name, dim, input.array.ndim), dtype)

    describe(running, f"The running {words} along a dimension. Integers and bools give int64.")


_expose_running(cumsum, "sum")
_expose_running(cumprod, "product")

# --- cummax and cummin --------------------------------------------------------------------------


def _running_extreme(name: str, ufunc: Any) -> Function:
    def forward(self: Any, dim: int) -> tuple[Any, Any]:
        if not self.ndim:
            return self[()], np.int64(0)
        values = ufunc.accumulate(self, axis=dim)
        # The last element that is as extreme as any before it: of ties the later one counts.
        is_extreme = (self == values) | ((self != self) & (values != values))
        sizes = [1] * self.ndim
        sizes[dim] = self.shape[dim]
        positions = np.arange(self.shape[dim], dtype=np.int64).reshape(sizes)
        return values, np.maximum.accumulate(np.where(is_extreme, positions, 0), axis=dim)

    def rule(grads: Any, self: Any, indices: Any, dim: int) -> Any:
        # The input is kept as PyTorch keeps it: a write to it is an error.
        if not self.ndim:
            return grads[0]
        return scatter_add(zeros(grads[0], self.shape), dim, indices, grads[0])

    entry = op(
        name,
        forward,
        outputs=("values", "indices"),
        differentiable=(0,),
        self=rule,
        unsupported=COMPLEX,
        numpy=f"""\
def {name}(x, axis):
    values = np.{ufunc.__name__}.accumulate(x, axis)
    sizes = [-1 if dim == axis % x.ndim else 1 for dim in range(x.ndim)]
    places = np.where(x == values, np.arange(x.shape[axis]).reshape(sizes), 0)
    return values, np.maximum.accumulate(places, axis)
""",
        raises=BY_KINDS,
    )

    @reduction(name)
    def running(input: Tensor, dim: int) -> Any:
        check_reduced(name, input)
        return named(
            name, "values indices", entry.apply(input, normal_dim(name, dim, input.array.ndim))
        )

    describe(running, f"The running {name[3:]}imum along a dimension, and its indices.")
    return running


cummax = _running_extreme("cummax", np.maximum)
cummin = _running_extreme("cummin", np.minimum)

# --- logcumsumexp -------------------------------------------------------------------------------


def _logcumsumexp_array(self: Any, dim: int) -> Any:
    if not self.ndim:
        return self[()]
    if self.dtype.kind == "c":
        sums = list(np.moveaxis(self, dim, 0))
        for position in range(1, len(sums)):
            sums[position] = logaddexp_array(sums[position - 1], sums[position])
        return np.stack(sums, dim) if sums else self.copy()
    # PyTorch begins with the logarithm of 0, so that -0 becomes 0.
    return np.logaddexp.accumulate(wide(self) + 0.0, axis=dim).astype(self.dtype)


def _logcumsumexp_rule(grad: Any, self: Any, result: Any, dim: int) -> Any:
    if not self.ndim or not product(self.shape):
        return grad

    def from_the_end(exponents: Any) -> Any:
        return flip(_logcumsumexp(flip(exponents, (dim,)), dim), (dim,))

    if is_complex(grad):
        return conj(exp(from_the_end(log(conj(grad)) - result) + self))
    # So low that its exponential is 0, in every dtype: float32's least is infinite in bfloat16.
    array = result.array if type(result) is Tensor else result
    lowest = float(np.finfo(np.float16).min) if array.dtype == np.float16 else -3e38
    # In logarithms, so that no exponential of an element overflows.
    magnitude = log(abs_op(grad))

    def of_sign(present: Any) -> Any:
        shifted = where(present, magnitude, lowest) - result
        return exp(from_the_end(shifted) + self)

    return of_sign(grad > 0) - of_sign(grad < 0)


_logcumsumexp = op(
    "logcumsumexp",
    _logcumsumexp_array,
    half=rounded_once,
    self=_logcumsumexp_rule,
    unsupported=INTEGRAL,
    numpy="np.logaddexp.accumulate({0}, {1})",
    raises=BY_KINDS,
)


@reduction("logcumsumexp")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the running sum of exponentials. Raises E203 for integers."""
    check_reduced("logcumsumexp", input)
    return _logcumsumexp.apply(input, normal_dim("logcumsumexp", dim, input.array.ndim))


# --- differences --------------------------------------------------------------------------------


@function("diff", method=True)
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The n-th differences of neighbours along a dimension; of bools, whether they differ. Raises
    E301 for a 0-dim tensor.
    """
    check_reduced("diff", input)
    if not input.array.ndim:
        raise shape_error("diff expects input to be at least one-dimensional")
    at = normal_dim("diff", dim, input.array.ndim)
    if n < 0:
        raise runtime_error(
            f"diff(): no {n}-th differences", f"order must be non-negative but got {n}"
        )
    parts = [part for part in (prepend, input, append) if part is not None]
    for part in parts:
        if part.ndim != input.ndim:
            text = "diff expects prepend or append to be the same dimension as input"
            raise shape_error(text)
        for d, (wanted, size) in enumerate(zip(input.array.shape, part.array.shape, strict=True)):
            if d != at and wanted != size:
                raise shape_error(
                    "diff expects the shape of tensor to prepend or append to match that of input"
                    f" except along the differencing dimension; input.size({d}) = {wanted}, but got"
                    f" tensor.size({d}) = {size}"
                )
    if n == 0:  # a copy of the input alone
        return methods.copy_(torch.zeros_like(input), input)
    if len(parts) > 1:
        input = cat(parts, at)
    difference = logical_xor if input.dtype.category == "bool" else sub
    for _ in range(n):
        count = max(input.array.shape[at] - 1, 0)
        earlier = narrow(input, at, 0, count)
        input = difference.apply(narrow(input, at, min(1, input.array.shape[at]), count), earlier)
    return input


# --- prod ---------------------------------------------------------------------------------------


def _prod_array(
    self: Any, dim: int | None, keepdim: bool = False, dtype: DType | None = None
) -> Any:
    self = cast_array(self, dtype)
    if self.dtype.kind in "iub":
        target = np.int64 if dtype is None else self.dtype
        return fold(np.multiply, self, _axis(self, dim), keepdim, dtype=target)
    if (
        type(self) in HOST_ARRAYS
        and self.dtype.kind in "fV"
        and 0 < self.size < LARGEST
        and self.flags.c_contiguous
        and dim in (None, self.ndim - 1)
    ):
        products = lane_product(self.reshape(-1) if dim is None else self)
        dims = None if dim is None else (dim,)
        return products.reshape(kept_sizes(self.shape, dims))[()] if keepdim else products
    return fold(np.multiply, self, _axis(self, dim), keepdim)


def _axis(self: Any, dim: int | None) -> Any:
    """NumPy's axis for one dimension; a 0-dim array has none."""
    return dim if self.ndim else None


def _prod_rule(grad: Any, self: Any, result: Any, dim: int | None, dtype: DType | None) -> Any:
    """The gradient from `grad` and `result`, whose reduced dimension was put back.

    As in PyTorch the formula depends on the values, not only on the arguments: the quotient where
    no element is 0, else the product of the others, which is exact there.
    """
    if dtype is not None:
        self = to(self, dtype) if type(self) is Tensor else dtypes.cast(self, dtype)
    if not self.ndim:
        return grad
    if type(self) is Tensor:
        look(None, unbatched(self.array))
    zero_count = np.count_nonzero((unbatched(self.array) if type(self) is Tensor else self) == 0)
    if not zero_count:
        return grad * conj(result / self)
    if dim is not None:
        return prod_gradient_at_zeros(grad, self, dim)
    if zero_count > 1 and type(grad) is not Tensor:
        return zeros_like(self)
    flat = reshape(self, (product(self.shape),))
    return reshape(prod_gradient_at_zeros(grad, flat, 0), self.shape)


prod_all = op(
    "prod",
    lambda self, dtype=None: _prod_array(self, None, False, dtype),
    self=lambda grad, self, result, dtype: _prod_rule(grad, self, result, None, dtype),
    numpy=".prod(axis, keepdims)",
    raises=BY_KINDS,
)


prod_dim = op(
    "prod",
    _prod_array,
    node="ProdBackward1",
    self=lambda grad, self, result, dim, keepdim, dtype: _prod_rule(
        restore_dims(grad, (dim,), keepdim), self, restore_dims(result, (dim,), keepdim), dim, dtype
    ),
    raises=BY_KINDS,
)


@reduction("prod", autocast="float32")
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The product of all elements, or over one dimension. Integers and bools give int64.

    Conventions: With a zero among the elements, the gradient is the product of the others.
    """
    check_reduced("prod", input, keepdim, dtype)
    if dim is None:
        return prod_all.apply(input, dtype)
    return prod_dim.apply(input, normal_dim("prod", dim, input.array.ndim), keepdim, dtype)


# --- finite differences ---------------------------------------------------------------------------


def _wrong(message: str, text: str | None = None) -> GradcliError:
    return runtime_error(f"gradient(): {message}", text)


def _at_equal_distance(input: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """The slopes where the points are `spacing` apart."""
    # In PyTorch's order: the middle first, and of two terms the second.
    size = input.array.shape[dim]
    earlier = slice_op.apply(input, dim, 0, size - 2, 1)
    inner = div_number.apply(slice_op.apply(input, dim, 2, size, 1) - earlier, spacing)
    if edge_order == 1:
        x0 = narrow(input, dim, 0, 1)
        front = div_number.apply(narrow(input, dim, 1, 1) - x0, spacing)
        y1 = narrow(input, dim, size - 2, 1)
        back = div_number.apply(narrow(input, dim, size - 1, 1) - y1, spacing)
    else:
        x2 = narrow(input, dim, 2, 1) * 0.5
        x1 = narrow(input, dim, 1, 1) * 2
        front = div_number.apply(narrow(input, dim, 0, 1) * -1.5 + x1 - x2, spacing)
        y0 = narrow(input, dim, size - 1, 1) * 1.5
        y1 = narrow(input, dim, size - 2, 1) * 2
        back = div_number.apply(narrow(input, dim, size - 3, 1) * 0.5 - y1 + y0, spacing)
    return cat.apply((front, div_number.apply(inner, 2), back), dim)


def _at_points(input: Tensor, dim: int, points: Tensor, edge_order: int) -> Tensor:
    """The slopes where the points stand in a vector."""
    size = input.array.shape[dim]
    if points.array.shape != (size,):
        raise _wrong(f"dimension {dim} has {size} elements, and there are points of another number")
    shape = [1] * input.array.ndim
    shape[dim] = -1

    def along(vector: Tensor) -> Tensor:
        sizes = tuple(vector.array.size if n == -1 else 1 for n in shape)
        return view.apply(vector, sizes)

    earlier = slice_op.apply(points, 0, 0, size - 1, 1)
    steps = slice_op.apply(points, 0, 1, size, 1) - earlier
    count = size - 1
    before, after = slice_op.apply(steps, 0, 0, count - 1, 1), slice_op.apply(steps, 0, 1, count, 1)
    weights = [along(weight) for weight in _weights_between(before, after)]
    rise = [partial(slice_op.apply, input, dim, i, size - 2 + i, 1) for i in range(3)]
    middle = _weighted(weights, rise)
    front = _at_end(input, dim, steps, (0, 1, 2), edge_order)
    back = _at_end(input, dim, steps, (size - 1, size - 2, size - 3), edge_order)
    return cat.apply((front, middle, back), dim)


# In all that follows PyTorch computes the right operand of an operator before the left one, which
# the order of the backward pass shows.


def _weights_between(before: Tensor, after: Tensor) -> Iterator[Tensor]:
    """The weights of the values at three points, the first `before` and the last `after` the second
    one, whose slope they give.
    """
    divisor = before * (before + after)
    yield -after / divisor
    divisor = before * after
    yield (after - before) / divisor
    divisor = after * (before + after)
    yield before / divisor


def _at_end(
    input: Tensor, dim: int, steps: Tensor, positions: tuple[int, ...], edge_order: int
) -> Tensor:
    """The slope at the first of three points, the outermost, from two or three of them."""
    at_front = positions[0] == 0
    near, far = (0, 1) if at_front else (steps.array.size - 1, steps.array.size - 2)

    def step(position: int) -> Tensor:
        return select.apply(steps, 0, position)

    def both() -> Tensor:
        farther = step(far)
        return step(near) + farther

    def signed(weight: Tensor, minus: bool) -> Tensor:
        return -weight if minus else weight

    if edge_order == 1:
        distance = step(near)
        low, high = sorted(positions[:2])
        lower = narrow(input, dim, low, 1)
        return div.apply(narrow(input, dim, high, 1) - lower, distance)

    def outermost() -> Tensor:
        sum_of_steps = both()
        divisor = step(near) * sum_of_steps
        farther = step(far)
        return signed(step(near) * 2 + farther, at_front) / divisor

    def second() -> Tensor:
        farther = step(far)
        divisor = step(near) * farther
        return signed(both(), not at_front) / divisor

    def third() -> Tensor:
        sum_of_steps = both()
        divisor = step(far) * sum_of_steps
        return signed(step(near), at_front) / divisor

    makers = (outermost, second, third) if at_front else (third, second, outermost)
    weights = [make() for make in makers]
    return _weighted(
        weights, [partial(narrow, input, dim, position, 1) for position in sorted(positions)]
    )


def _weighted(weights: Sequence[Tensor], values: Sequence[Callable[[], Tensor]]) -> Tensor:
    """The sum of three values times their weights."""
    third, second, first = [
        mul.apply(weight, value())
        for weight, value in zip(reversed(weights), reversed(values), strict=True)
    ]
    return add.apply(add.apply(first, second), third)


@function("gradient")
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slopes along each dimension: half the difference of the values on both sides of a point,
    at the ends a difference of two points (`edge_order` 1) or of three (2).

    Args:
        spacing: the distance of the points, one number or one for each dimension, or a vector of
            the points for each.
        dim: the dimensions, all by default.

    Raises E204 for too few elements, or too few or many distances.

    Example: torch.gradient(tensor([0.5, 1., 2.5]))
    """
    if edge_order not in (1, 2):
        raise _wrong(
            f"edge_order is 1 or 2, not {edge_order}",
            "torch.gradient only supports edge_order=1 and edge_order=2.",
        )
    check_dtype("gradient", input.dtype, dtype_names("uint8", raises="RuntimeError"))
    dims = normal_dims("gradient", input, dim)
    spacings = spacing if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if isinstance(spacing, Tensor):
        spacings = [spacing]
    if len(spacings) != len(dims):
        rest = (
            f", or a list of length equal to 'self.dim() = {input.ndim}', since dim argument was"
            f" not given, but got a list of length {len(spacings)}"
            if dim is None
            else " or it's spacing and dim arguments to have the same length, but got a spacing"
            f" argument of length {len(spacings)} and a dim argument of length {len(dims)}."
        )
        raise runtime_error(
            f"gradient(): {len(spacings)} distances were given for {len(dims)} dimensions",
            text=f"torch.gradient expected spacing to be unspecified, a scalar{rest}",
        )
    slopes = []
    for d, distance in zip(dims, spacings, strict=True):
        if input.array.shape[d] < edge_order + 1:
            raise _wrong(
                f"dimension {d} has fewer than {edge_order + 1} elements",
                "torch.gradient expected each dimension size to be at least edge_order+1",
            )
        if isinstance(distance, Tensor) and distance.array.ndim:
            slopes.append(_at_points(input, d, distance, edge_order))
        else:
            number = 1 if distance is None else distance
            number = number.item() if isinstance(number, Tensor) else number
            slopes.append(_at_equal_distance(input, d, number, edge_order))
    return tuple(slopes)
