"""Norms and distance: `norm linalg.norm linalg.vector_norm linalg.matrix_norm dist renorm`;
covariance and correlation, `cov corrcoef`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DType
from gradcli.arrays.kernels.sums import wide
from gradcli.autograd.inplace.writes import check_graph, check_memory
from gradcli.autograd.tensor import Tensor, storage_of
from gradcli.errors import GradcliError, dtype_error, runtime_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import conj, div, mul, reciprocal, sub, zeros_like
from gradcli.ops.binding.arguments import (
    Dims,
    check_not_integral,
    check_tensors,
    checked_values,
    normal_dim,
    normal_dims,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.promotion import check_subtraction
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.copies import to
from gradcli.ops.creation.fill import checked_dtype
from gradcli.ops.definition.doc import BY_KINDS, Hazard, in_numpy
from gradcli.ops.definition.dtype_support import check_dtype, check_floating_dtype, dtype_names
from gradcli.ops.definition.op import Op, TensorSpec, op
from gradcli.ops.elementwise.clamp import clamp
from gradcli.ops.elementwise.comparison import logical_or, where
from gradcli.ops.elementwise.complex import complex_of_parts, imaginary_part, real_part
from gradcli.ops.elementwise.unary import abs_op, is_complex, sgn, sqrt
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.linalg.products.matrix_products import mm
from gradcli.ops.reduction.extrema import amax_op, amin_op
from gradcli.ops.reduction.sum import (
    cast_array,
    check_reduced,
    fold,
    reduced_count,
    reduction,
    sum_all,
    sum_dims,
)
from gradcli.ops.shape.slicing import diagonal
from gradcli.ops.shape.views import (
    inverse_permutation,
    permute,
    restore_dims,
    squeeze,
    t,
    unsqueeze,
    view,
)

Axes = tuple[int, ...] | None

# --- the vector norm ----------------------------------------------------------------------------


def _norm_array(
    self: Any, ord: float, dims: Axes, keepdim: bool, dtype: DType | None = None
) -> Any:
    self = cast_array(self, dtype)
    if (ord < 0 or ord == math.inf) and not reduced_count(self.shape, dims):
        raise runtime_error(f"vector_norm(): the {ord:g} norm of no elements does not exist")
    magnitude = np.abs(wide(self))
    if ord == math.inf:
        result = fold(np.maximum, magnitude, dims, keepdim)
    elif ord == -math.inf:
        result = fold(np.minimum, magnitude, dims, keepdim)
    elif ord == 0:
        result = fold(np.add, magnitude != 0, dims, keepdim, dtype=magnitude.dtype)
    elif ord == 1:
        result = fold(np.add, magnitude, dims, keepdim)
    elif ord == 2:
        result = np.sqrt(fold(np.add, magnitude * magnitude, dims, keepdim))
    else:
        total = fold(np.add, np.power(magnitude, ord), dims, keepdim)
        result = np.power(total, 1 / ord)
    return result.astype(self.real.dtype)


def norm_gradient(grad: Any, self: Any, norm: Any, ord: float, dims: Axes, keepdim: bool) -> Any:
    """The gradient of a norm; 0 where the norm is 0 and has no derivative, none for a count."""
    if ord == 0:
        return None
    if dims is not None:
        grad, norm = restore_dims(grad, dims, keepdim), restore_dims(norm, dims, keepdim)
    if ord == 1:
        return sgn(self) * grad
    if ord == 2:
        return grad * masked_fill_number(self / norm, norm == 0, 0)
    if math.isinf(ord):
        # A nan is the norm, and has no sign.
        largest = logical_or(abs_op(self) == norm, self != self)
        count = sum_all(largest) if dims is None else sum_dims(largest, dims, True)
        return sgn(self) * (grad / count * largest)
    if ord < 1:
        powers = masked_fill_number(abs_op(self) ** (ord - 1), self == 0, 0)
        return sgn(self) * powers * grad * norm ** (1 - ord)
    direction = sgn(self) if ord < 2 else self
    scaled = direction * abs_op(self) ** (ord - (1 if ord < 2 else 2))
    return scaled * masked_fill_number(grad / norm ** (ord - 1), norm == 0, 0)


vector_norm = op(
    "linalg_vector_norm",
    _norm_array,
    self=lambda grad, self, result, ord, dims, keepdim: norm_gradient(
        grad, self, result, ord, dims, keepdim
    ),
    hazard=Hazard(zeros="linalg_vector_norm has no slope where all is 0"),
    raises=BY_KINDS,
)


def _check_cast(own: DType, wanted: DType) -> None:
    """Raise E203 for a dtype that a norm is not computed in."""
    kind = "complex" if own.is_complex else "real"
    if wanted.category not in ("float", "complex"):
        expected = "floating point or complex"
    elif wanted.is_complex != own.is_complex:
        expected = f"{kind} for {kind} inputs"
    elif dtypes.promote_types(own, wanted) is not wanted:
        raise dtype_error(
            f"linalg.vector_norm: the dtype of the input ({own.scalar_type}) should be convertible"
            f" without narrowing to the specified dtype ({wanted.scalar_type})"
        )
    else:
        return
    raise dtype_error(
        f"linalg.vector_norm: dtype should be {expected}, but got {wanted.scalar_type}"
    )


def _vector_norm(
    name: str, input: Tensor, ord: Any, dim: Dims, keepdim: bool, dtype: DType | None
) -> Tensor:
    check_reduced(name, input, keepdim)
    text = "linalg.vector_norm: Expected a floating point or complex tensor as input. Got"
    check_floating_dtype(name, input.dtype, f"{text} {input.dtype.scalar_type}")
    if type(ord) not in (int, float):
        raise type_error(f"{name}(): the order must be a number, not {type_name(ord)}")
    if dtype is not None and dtype is not input.dtype:
        _check_cast(input.dtype, dtype)
    dims = None if dim is None else normal_dims(name, input, dim)
    return vector_norm.apply(input, float(ord), dims, keepdim, dtype)


@reduction("vector_norm", module="torch.linalg", method=False)
def vector_norm_function(
    input: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of the elements as one vector, over the dimensions. Raises E203 for integers.

    Conventions: At the zero vector the gradient is 0.

    Example: torch.linalg.vector_norm(tensor([0.5, 1., 2.]))
    """
    return _vector_norm("vector_norm", input, ord, dim, keepdim, dtype)


# --- the matrix norm ----------------------------------------------------------------------------


def _matrix_norm(
    name: str, input: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: DType | None
) -> Tensor:
    check_reduced(name, input, keepdim)
    ndim = input.array.ndim
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise _no_order(ord)
    if ndim < 2:
        text = "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        raise shape_error(text)
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise runtime_error(f"{name}(): dim must be two dimensions")
    # PyTorch counts them from the front before anything is saved.
    rows, columns = map(int, normal_dims(name, input, dim))
    if ord == "fro":
        return _vector_norm(name, input, 2, (rows, columns), keepdim, dtype)
    if ord in (2, -2, "nuc"):
        return _spectral_norm(input, ord, rows, columns, keepdim, dtype)
    if ord not in (1, -1, math.inf, -math.inf):
        raise _no_order(ord)
    # The largest (or smallest) sum of magnitudes of a column, or of a row.
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    if not keepdim and compared > summed:
        compared -= 1
    sums = _vector_norm(name, input, 1, summed, keepdim, dtype)
    return _extreme(sums, ord, compared, keepdim)


def _extreme(values: Tensor, ord: float, dim: int, keepdim: bool) -> Tensor:
    """The largest value of a dimension, or for a negative order the smallest; of none the largest
    is 0, as no norm is negative.
    """
    if ord > 0 and values.array.shape[dim] == 0:
        zeros = zeros_like(sum_dims.apply(values, (dim,), keepdim))
        storage_of(zeros).count_write()  # PyTorch fills it
        return zeros
    return (amax_op if ord > 0 else amin_op)(values, dim, keepdim)


def _no_order(ord: Any) -> GradcliError:
    return runtime_error(f"linalg.matrix_norm: Order {ord} not supported.")


def _spectral_norm(
    input: Tensor, ord: Any, rows: int, columns: int, keepdim: bool, dtype: DType | None
) -> Tensor:
    """The largest, smallest or summed singular value of each matrix."""
    order = tuple(dim for dim in range(input.array.ndim) if dim not in (rows, columns))
    order = (*order, rows, columns)
    check_dtype("matrix_norm", dtype or input.dtype, dtype_names("half", raises="RuntimeError"))
    from gradcli.ops.linalg.decompositions import svdvals  # lazy: family: decompositions

    values = svdvals(permute.apply(to(input, dtype) if dtype else input, order))
    last = values.array.ndim - 1
    if ord == "nuc":
        norm = sum_dims.apply(values, (last,), keepdim)
    else:
        norm = _extreme(values, ord, last, keepdim)
    if not keepdim:
        return norm
    return permute.apply(unsqueeze.apply(norm, last + 1), inverse_permutation(order))


@function("matrix_norm", module="torch.linalg")
def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of the matrices in two dimensions: `ord` is "fro", "nuc", or 1, 2 or inf of either
    sign.
    """
    target = checked_dtype("matrix_norm", dtype, None)
    return _matrix_norm("matrix_norm", A, ord, dim, keepdim, target)


@function("norm", module="torch.linalg")
def linalg_norm(
    A: Tensor,
    ord: Any = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """A vector norm, or a matrix norm where an order and two dimensions are given.

    Conventions: At the zero vector the gradient is 0.
    """
    dtype = checked_dtype("norm", dtype, None)
    if ord is None:
        return _vector_norm("norm", A, 2, dim, keepdim, dtype)
    check_reduced("norm", A, keepdim)
    ndim = A.array.ndim
    if dim is None:
        if ndim not in (1, 2):
            raise shape_error(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got"
                f" {ndim}D."
            )
        if ndim == 1 and not isinstance(ord, str):
            return _vector_norm("norm", A, ord, None, keepdim, dtype)
        dim = tuple(range(ndim))
    of_vector = type(dim) is int or (isinstance(dim, (tuple, list)) and len(dim) == 1)
    if of_vector and not isinstance(ord, str):
        return _vector_norm("norm", A, ord, dim, keepdim, dtype)
    return _matrix_norm("norm", A, ord, dim, keepdim, dtype)


@reduction("norm")
@in_numpy("""\
def norm(x, order=2, axis=None, keepdims=False):
    if order == np.inf:
        return np.abs(x).max(axis=axis, keepdims=keepdims)
    return (np.abs(x) ** order).sum(axis=axis, keepdims=keepdims) ** (1 / order)
""")
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """The p-norm of the elements as one vector; "fro" is the 2-norm. Raises E203 for integers.

    Conventions: At the zero vector the gradient is 0.

    Example: torch.norm(tensor([0.5, 1., 2.]))
    """
    if not isinstance(p, str) or (p == "fro" and not (isinstance(dim, tuple) and len(dim) > 2)):
        order = 2 if p is None or p == "fro" else p
        return _vector_norm("norm", input, order, dim, keepdim, dtype)
    check_reduced("norm", input, keepdim)
    dims = tuple(range(input.array.ndim)) if dim is None else dim
    return _matrix_norm("norm", input, p, dims, keepdim, dtype)


# --- the distance -------------------------------------------------------------------------------


def _dist_array(self: Any, other: Any, p: float) -> Any:
    dtype = dtypes.result_dtype((self, other))
    difference = dtypes.cast(self, dtype) - dtypes.cast(other, dtype)
    return _norm_array(difference, p, None, False)


def _dist_rule(grad: Any, self: Any, other: Any, result: Any, p: float) -> Any:
    return norm_gradient(grad, self - other, result, p, None, False)


_dist = op(
    "dist",
    _dist_array,
    self=_dist_rule,
    other=lambda grad, self, other, result, p: -_dist_rule(grad, self, other, result, p),
    hazard=Hazard(zeros="dist has no slope where all is 0"),
    raises=BY_KINDS,
)


@function("dist", method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors, broadcast against each other.

    Example: torch.dist(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    check_reduced("dist", input)
    check_reduced("dist", other)
    check_subtraction(input.array, other.array)
    check_floating_dtype("dist", dtypes.result_dtype((input.array, other.array)))
    return _dist.apply(input, other, float(p))


# --- renorm -------------------------------------------------------------------------------------

_LEAST_NORM = 1e-7
"""Added to a norm before it divides."""


def _other_dims(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != dim)


def _renorm_array(self: Any, p: float, dim: int, maxnorm: float) -> Any:
    norm = vector_norm(self, p, _other_dims(self.ndim, dim), True)
    scale = np.where(norm > maxnorm, maxnorm / (norm + _LEAST_NORM), 1)
    return (self * scale).astype(self.dtype)


def _renorm_rule(grad: Any, self: Any, p: float, dim: int, maxnorm: float) -> Any:
    dims = _other_dims(self.ndim, dim)
    norm = vector_norm(self, p, dims, True)
    product = conj(self) * grad
    along = sum_dims(real_part(product) if is_complex(self) else product, dims, True)
    inverse = reciprocal(norm + _LEAST_NORM)
    slope = norm_gradient(along, self, norm, p, dims, True)
    shortened = inverse * maxnorm * (grad if slope is None else grad - inverse * slope)
    return where(norm > maxnorm, shortened, grad)


_renorm: Op = op("renorm", _renorm_array, self=_renorm_rule, raises=BY_KINDS)


def _checked_dim(input: Tensor, p: Any, dim: int, maxnorm: Any) -> int:
    """The dimension of the slices; raises what the arguments of `renorm` are refused for."""
    check_not_integral("renorm", input, "RuntimeError")
    if p <= 0:
        raise runtime_error(
            f"renorm(): p must be positive, not {p}",
            text="renorm: non-positive-norm not supported",
        )
    if maxnorm < 0:
        raise runtime_error(
            f"renorm(): maxnorm must not be negative, as {maxnorm} is",
            text=f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}",
        )
    if input.array.ndim < 2:
        raise shape_error(
            "renorm() needs at least two dimensions",
            text=f"renorm: input needs at least 2 dimensions, got {input.array.ndim} dimensions",
        )
    return normal_dim("renorm", dim, input.array.ndim)


def _check_written(name: str, input: Tensor, /, p: Any = 2, dim: int = 0, maxnorm: Any = 0) -> bool:
    """`check_inplace`, which finds memory that overlaps after the arguments are checked."""
    check_graph(name, input)
    _checked_dim(input, p, dim, maxnorm)
    return check_memory(input)


@function("renorm", method=True, inplace=True, check=_check_written)
def renorm(input: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """The tensor with each slice along `dim` whose p-norm is above `maxnorm` scaled down to it.
    Raises E204 unless p is positive and maxnorm not negative, E301 for fewer than two dimensions.

    Example: torch.renorm(tensor([[2., 1.], [1., 3.]]), 2, 0, 1.)
    """
    at = _checked_dim(input, p, dim, maxnorm)
    return _renorm.apply(input, float(p), at, float(maxnorm))


# --- covariance and correlation -------------------------------------------------------------------


def _checked_weights(name: str, weights: Any, count: int, kinds: tuple[str, ...]) -> None:
    check_tensors("cov", **{name: weights})
    expected = "cov(): expected {} to have {} but got {}"
    ndim, size = weights.array.ndim, weights.array.size
    if ndim > 1:
        text = expected.format(name, "one or fewer dimensions", f"{name} with {ndim} dimensions")
        raise shape_error(f"cov(): {name} must be a vector of {count} elements", text=text)
    if weights.dtype.category not in kinds:
        kind = "integral" if "int" in kinds else "floating point"
        found = f"{name} with {weights.dtype.scalar_type} dtype"
        text = expected.format(name, f"{kind} dtype", found)
        raise dtype_error(f"cov(): {name} cannot be {weights.dtype}", text)
    if size != count:
        same = "the same numel as there are observations in the input"
        text = expected.format(name, same, f"{size} != {count}")
        raise shape_error(f"cov(): {name} must be a vector of {count} elements", text=text)
    checked_values(_check_signs, name, weights.array)


def _check_signs(name: str, weights: Any) -> None:
    """Raise E204 for a negative weight."""
    if (weights < 0).any():
        raise runtime_error(f"cov(): {name} cannot be negative")


@function(
    "cov",
    method=True,
    takes={
        "input": TensorSpec(
            0,
            2,
            "cov(): expected input to have two or fewer dimensions but got an input with {ndim}"
            " dimensions",
            "cov(): the input has {ndim} dimensions, and two are the most",
        )
    },
)
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance of variables, which are rows, over observations, which are columns.

    The divisor is the count of observations less `correction`; `fweights` says how often each
    observation was made, `aweights` how much it counts.

    Example: torch.cov(tensor([0.5, 1., 2.]))
    """
    rows = input if input.array.ndim == 2 else view.apply(input, (1, input.array.size))
    count = rows.array.shape[1]
    weights = fweights
    if fweights is not None:
        _checked_weights("fweights", fweights, count, ("int",))
    if aweights is not None:
        _checked_weights("aweights", aweights, count, ("float",))
        weights = aweights if fweights is None else mul.apply(fweights, aweights)
    total = Tensor(np.int64(count)) if weights is None else sum_all.apply(weights)
    weighted = rows if weights is None else mul.apply(rows, weights)
    mean = div.apply(sum_dims.apply(weighted, (1,), False), total)
    divisor = total - correction
    if aweights is not None and correction:
        assert weights is not None
        divisor = total - correction * sum_all.apply(mul.apply(weights, aweights)) / total
    if divisor.array <= 0:
        divisor = Tensor(np.zeros_like(divisor.array)[()])
    centred = sub.apply(rows, unsqueeze.apply(mean, 1))
    scaled = centred if weights is None else mul.apply(centred, weights)
    return squeeze(div.apply(mm.apply(centred, conj(t.apply(scaled))), divisor))


@function("corrcoef", method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation of variables, which are rows, over observations, which are columns.

    Example: torch.corrcoef(tensor([0.5, 1., 2.]))
    """
    covariance = cov(input)
    if not covariance.array.ndim:
        return div.apply(covariance, covariance)
    deviation = sqrt.apply(diagonal.apply(covariance, 0, 0, 1))
    size = deviation.array.shape[0]
    by_row = div.apply(covariance, view.apply(deviation, (size, 1)))
    correlation = div.apply(by_row, view.apply(deviation, (1, size)))
    if not correlation.dtype.is_complex:
        return clamp(correlation, -1, 1)
    parts = clamp(real_part(correlation), -1, 1), clamp(imaginary_part(correlation), -1, 1)
    return complex_of_parts(*parts)
