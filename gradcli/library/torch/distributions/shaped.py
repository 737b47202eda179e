"""Transforms of vectors and matrices, `StickBreakingTransform LowerCholeskyTransform
PositiveDefiniteTransform CorrCholeskyTransform`; and those made of others or of a distribution:
`IndependentTransform ReshapeTransform CatTransform StackTransform CumulativeDistributionTransform`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.arrays.layout.sizes import Size
from gradcli.errors import assertion_error, value_error
from gradcli.language.objects.attributes import get_attribute
from gradcli.library.torch.distributions.distribution import (
    CORRELATION_FACTOR,
    COVARIANCE,
    FACTOR,
    REAL,
    REAL_VECTOR,
    SIMPLEX,
    UNIT,
    Constraint,
    concatenated,
    formula,
    independent,
    minus,
    not_shared,
    over,
    plus,
    size_of,
    stacked,
    sum_rightmost,
    times,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from gradcli.library.torch.distributions.transformed import (
    ComposeTransform,
    SigmoidTransform,
    Transform,
    given_by,
    taken_by,
)
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import F, linalg, methods, operators, torch

_TOO_FEW = "Too few dimensions on input"


class _Identity(ComposeTransform):
    """No transform at all, one for all programs."""

    language_name = ComposeTransform.language_name

    def __init__(self) -> None:
        Transform.__init__(self)

    parts = formula(lambda self: [])

    def language_setattr(self, name: str, value: Any) -> None:
        raise not_shared(self, name)


identity_transform = _Identity()
for _table in ("torch.distributions", "torch.distributions.transforms"):
    modules[_table]["identity_transform"] = identity_transform


def _but_last(value: Any) -> Any:
    return operators.getitem(value, (..., slice(None, -1)))


def _check_dims(shape: Any, least: int) -> None:
    if len(shape) < least:
        raise value_error(_TOO_FEW)


# --- of vectors and matrices ----------------------------------------------------------------------


class StickBreakingTransform(Transform):
    """The shares of a stick of which each number breaks off a part of what is left; one more."""

    compares: ClassVar[bool] = True
    domain = REAL_VECTOR
    codomain = SIMPLEX
    bijective = True

    def _call(self, x: Any) -> Any:
        offset = _steps_down(x, x.shape[-1] + 1, x.shape[-1])
        z = SigmoidTransform()._call(x - methods.log(offset))
        left = methods.cumprod(minus(1, z), -1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        parts = _but_last(y)
        offset = _steps_down(y, y.shape[-1], parts.shape[-1])
        left = minus(1, methods.cumsum(parts, -1))
        left = torch.clamp(left, min=torch.finfo(y.dtype).tiny)
        return methods.log(parts) - methods.log(left) + methods.log(offset)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - methods.log(_steps_down(x, x.shape[-1] + 1, x.shape[-1]))
        return methods.sum(-x + F.logsigmoid(x) + methods.log(_but_last(y)), -1)

    def forward_shape(self, shape: Any) -> Any:
        _check_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        _check_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


def _steps_down(like: Any, start: int, count: int) -> Any:
    """So many numbers, each one below the one before, the first one below `start`."""
    return minus(start, methods.cumsum(methods.new_ones(like, (count,)), -1))


class LowerCholeskyTransform(Transform):
    """The lower triangle of a matrix, with the exponentials of its diagonal."""

    compares: ClassVar[bool] = True
    domain = independent(REAL, 2)
    codomain = FACTOR

    def _call(self, x: Any) -> Any:
        diagonal = methods.exp(methods.diagonal(x, dim1=-2, dim2=-1))
        return methods.tril(x, -1) + methods.diag_embed(diagonal)

    def _inverse(self, y: Any) -> Any:
        diagonal = methods.log(methods.diagonal(y, dim1=-2, dim2=-1))
        return methods.tril(y, -1) + methods.diag_embed(diagonal)


class PositiveDefiniteTransform(Transform):
    """The matrix whose Cholesky factor `LowerCholeskyTransform` makes."""

    compares: ClassVar[bool] = True
    domain = independent(REAL, 2)
    codomain = COVARIANCE

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return torch.matmul(factor, methods.transpose(factor, -2, -1))

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """The Cholesky factor of a correlation matrix, made of D (D - 1) / 2 numbers."""

    domain = REAL_VECTOR
    codomain = CORRELATION_FACTOR
    bijective = True

    def _call(self, x: Any) -> Any:
        x = torch.tanh(x)
        eps = torch.finfo(x.dtype).eps
        factor = vec_to_tril_matrix(methods.clamp(x, min=-1 + eps, max=1 - eps), diag=-1)
        left = methods.cumprod(methods.sqrt(minus(1, methods.pow(factor, 2))), -1)
        factor = factor + torch.eye(factor.shape[-1], dtype=factor.dtype)
        return factor * F.pad(_but_last(left), [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = minus(1, torch.cumsum(y * y, dim=-1))
        shifted = F.pad(_but_last(left), [1, 0], value=1)
        parts = tril_matrix_to_vec(y, diag=-1)
        t = parts / methods.sqrt(tril_matrix_to_vec(shifted, diag=-1))
        return over(methods.log1p(t) - methods.log1p(methods.neg(t)), 2)

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = tril_matrix_to_vec(minus(1, methods.cumsum(y * y, -1)), diag=-2)
        breaking = times(0.5, methods.sum(methods.log(left), -1))
        bent = minus(x + F.softplus(times(-2, x)), math.log(2.0))
        return breaking + times(-2, methods.sum(bent, -1))

    def forward_shape(self, shape: Any) -> Any:
        _check_dims(shape, 1)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise value_error("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        _check_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise value_error("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


# --- of other transforms --------------------------------------------------------------------------


class IndependentTransform(Transform):
    """A transform whose last batch dimensions are those of one event."""

    fields: ClassVar[tuple[str, ...]] = ("base_transform", "reinterpreted_batch_ndims")
    language_attributes = Transform.language_attributes | set(fields)

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if (self.kept is not None) == bool(cache_size):
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def domain(self) -> Constraint:
        """That of the transform, of more dimensions."""
        return independent(taken_by(self.base_transform), self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Constraint:
        """That of the transform, of more dimensions."""
        return independent(given_by(self.base_transform), self.reinterpreted_batch_ndims)

    bijective = formula(lambda self: get_attribute(self.base_transform, "bijective"))
    sign = formula(lambda self: get_attribute(self.base_transform, "sign"))

    def _call(self, x: Any) -> Any:
        _check_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        _check_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        change = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(change, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """The same numbers in an event of another shape."""

    fields: ClassVar[tuple[str, ...]] = ("in_shape", "out_shape")
    language_attributes = Transform.language_attributes | set(fields)
    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = size_of(in_shape)
        self.out_shape = size_of(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise value_error("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    domain = formula(lambda self: independent(REAL, len(self.in_shape)))
    codomain = formula(lambda self: independent(REAL, len(self.out_shape)))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if (self.kept is not None) == bool(cache_size):
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Any) -> Any:
        batch = x.shape[: x.ndim - len(self.in_shape)]
        return methods.reshape(x, (*batch, *self.out_shape))

    def _inverse(self, y: Any) -> Any:
        batch = y.shape[: y.ndim - len(self.out_shape)]
        return methods.reshape(y, (*batch, *self.in_shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return methods.new_zeros(x, x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _reshaped(shape: Any, before: Size, after: Size) -> Size:
    """A shape whose last dimensions are others; raises E204 where they are not those before."""
    _check_dims(shape, len(before))
    cut = len(shape) - len(before)
    if tuple(shape[cut:]) != tuple(before):
        raise value_error(f"Shape mismatch: expected {shape[cut:]} but got {before}")
    return Size((*shape[:cut], *after))


class _Several(Transform):
    """The base of those that apply several transforms side by side along a dimension."""

    transforms: list[Transform]
    dim: int

    bijective = formula(lambda self: all(get_attribute(t, "bijective") for t in self.transforms))

    def take(self, tseq: Any, cache_size: int) -> list[Transform]:
        """The transforms; raises E209 for what is none."""
        parts = list(tseq)
        if not all(isinstance(each, Transform) for each in parts):
            raise assertion_error("All elements of tseq must be Transform instances")
        return [each.with_cache(cache_size) for each in parts] if cache_size else parts

    def check(self, value: Any, name: str = "tensor", letter: str = "x") -> None:
        """Raise E209 for a tensor without the dimension, or of another size there."""
        if not -value.ndim <= self.dim < value.ndim:
            of = f"tensor with {value.ndim}" if name == "tensor" else f"{letter} with {value.ndim}"
            raise assertion_error(f"dim {self.dim} out of range for {of} dimensions")
        if value.shape[self.dim] != self.wanted:
            raise assertion_error(
                f"{letter}.size({self.dim}) = {value.shape[self.dim]} must equal {self.expected}"
            )

    @property
    def wanted(self) -> int:
        """The size along the dimension."""
        raise NotImplementedError

    @property
    def expected(self) -> str:
        """The same in words."""
        raise NotImplementedError

    def parts_of(self, value: Any) -> list[Any]:
        """What each transform gets."""
        raise NotImplementedError

    def joined(self, parts: list[Any]) -> Any:
        """What they give, as one."""
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        self.check(x)
        pairs = zip(self.transforms, self.parts_of(x), strict=True)
        return self.joined([each(part) for each, part in pairs])

    def _inverse(self, y: Any) -> Any:
        self.check(y, letter="y")
        pairs = zip(self.transforms, self.parts_of(y), strict=True)
        return self.joined([each.inv(part) for each, part in pairs])

    def changes(self, x: Any, y: Any) -> list[Any]:
        """The logarithms of the derivatives of each."""
        self.check(x, "x", "x")
        self.check(y, "y", "y")
        parts = zip(self.transforms, self.parts_of(x), self.parts_of(y), strict=True)
        return [each.log_abs_det_jacobian(before, after) for each, before, after in parts]


class CatTransform(_Several):
    """Transforms of stretches of a dimension, which are put together as `cat` does it."""

    fields: ClassVar[tuple[str, ...]] = ("dim", "lengths", "transforms")
    language_attributes = Transform.language_attributes | {*fields, "length"}

    def __init__(self, tseq: Any, dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        parts = self.take(tseq, cache_size)
        super().__init__(cache_size)
        self.transforms = parts
        self.lengths = [1] * len(parts) if lengths is None else list(lengths)
        if len(self.lengths) != len(parts):
            raise assertion_error(
                f"lengths ({len(self.lengths)}) must match transforms ({len(parts)})"
            )
        self.dim = dim

    event_dim = formula(lambda self: max(get_attribute(t, "event_dim") for t in self.transforms))
    length = wanted = formula(lambda self: sum(self.lengths))
    expected = formula(lambda self: f"length {self.length}")

    @property
    def domain(self) -> Constraint:
        """Those of the transforms."""
        return concatenated(list(map(taken_by, self.transforms)), self.dim, self.lengths)

    @property
    def codomain(self) -> Constraint:
        """Those of the transforms."""
        return concatenated(list(map(given_by, self.transforms)), self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if (self.kept is not None) == bool(cache_size):
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def parts_of(self, value: Any) -> list[Any]:
        starts = [sum(self.lengths[:number]) for number in range(len(self.lengths))]
        pairs = zip(starts, self.lengths, strict=True)
        return [methods.narrow(value, self.dim, start, length) for start, length in pairs]

    def joined(self, parts: list[Any]) -> Any:
        return torch.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        wide = self.event_dim
        changes = []
        for each, change in zip(self.transforms, self.changes(x, y), strict=True):
            own = get_attribute(each, "event_dim")
            changes.append(sum_rightmost(change, wide - own) if own < wide else change)
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + wide
        if dim < 0:
            return torch.cat(changes, dim=dim)
        total: Any = 0
        for change in changes:
            total = plus(total, change)
        return total


class StackTransform(_Several):
    """Transforms of the slices of a dimension, which are put together as `stack` does it."""

    fields: ClassVar[tuple[str, ...]] = ("dim", "transforms")
    language_attributes = Transform.language_attributes | set(fields)

    def __init__(self, tseq: Any, dim: int = 0, cache_size: int = 0) -> None:
        parts = self.take(tseq, cache_size)
        super().__init__(cache_size)
        self.transforms = parts
        self.dim = dim

    wanted = formula(lambda self: len(self.transforms))
    expected = formula(lambda self: f"len(transforms) {len(self.transforms)}")

    @property
    def domain(self) -> Constraint:
        """Those of the transforms."""
        return stacked(list(map(taken_by, self.transforms)), self.dim)

    @property
    def codomain(self) -> Constraint:
        """Those of the transforms."""
        return stacked(list(map(given_by, self.transforms)), self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if (self.kept is not None) == bool(cache_size):
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def parts_of(self, value: Any) -> list[Any]:
        return [methods.select(value, self.dim, at) for at in range(value.shape[self.dim])]

    def joined(self, parts: list[Any]) -> Any:
        return torch.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return torch.stack(self.changes(x, y), dim=self.dim)


class CumulativeDistributionTransform(Transform):
    """The probability that a distribution gives what is no larger."""

    fields: ClassVar[tuple[str, ...]] = ("distribution",)
    language_attributes = Transform.language_attributes | set(fields)
    bijective = True
    codomain = UNIT
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = formula(lambda self: get_attribute(self.distribution, "support"))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if (self.kept is not None) == bool(cache_size):
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
