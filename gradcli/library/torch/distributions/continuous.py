"""Distributions of numbers on a line: `Normal Laplace Cauchy Uniform Exponential Gamma Beta Chi2`;
of vectors: `Dirichlet MultivariateNormal`; with heavy tails: `StudentT FisherSnedecor`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.distributions.distribution import (
    COVARIANCE,
    FACTOR,
    NONNEGATIVE,
    POSITIVE,
    POSITIVE_VECTOR,
    REAL,
    REAL_VECTOR,
    SIMPLEX,
    UNIT,
    Constraint,
    Constraints,
    Distribution,
    Formulas,
    broadcast_all,
    formula,
    interval,
    less_than,
    minus,
    over,
    plus,
    times,
)
from gradcli.ops.binding.functions import linalg, methods, operators, special, torch
from gradcli.ops.special.gamma_draws import dirichlet_draws, gamma_draws


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Draws of the standard normal distribution."""
    return methods.normal_(torch.empty(shape, dtype=like.dtype, device=like.device))


class _Around(Distribution):
    """The base of those that lie around `loc`, as wide as `scale` says."""

    constraints: ClassVar[Constraints] = {"loc": REAL, "scale": POSITIVE}
    support = REAL
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, loc=loc, scale=scale)

    mean = formula(lambda self: self.loc)
    mode = mean


class Normal(_Around):
    """Numbers around `loc`, with the standard deviation `scale`.

    Example: torch.distributions.Normal(0., 1.).log_prob(tensor(0.5))
    """

    stddev = formula(lambda self: self.scale)
    variance = formula(lambda self: methods.pow(self.scale, 2))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        return torch.normal(
            methods.detach(self.expanded("loc", shape)),
            methods.detach(self.expanded("scale", shape)),
        )

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.loc + standard_normal(self.shape_of(sample_shape), self.loc) * self.scale

    def log_density(self, value: Any) -> Any:
        variance = self.scale**2
        log_scale = methods.log(self.scale)
        squares = -((value - self.loc) ** 2) / times(2, variance)
        return minus(squares - log_scale, math.log(math.sqrt(2 * math.pi)))

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        scaled = over((value - self.loc) * methods.reciprocal(self.scale), math.sqrt(2))
        return times(0.5, plus(1, torch.erf(scaled)))

    def icdf(self, value: Any) -> Any:
        scaled = self.scale * torch.erfinv(minus(times(2, value), 1))
        return self.loc + times(scaled, math.sqrt(2))

    def entropy(self) -> Any:
        return plus(0.5 + 0.5 * math.log(2 * math.pi), torch.log(self.scale))


class Laplace(_Around):
    """Numbers around `loc` that fall off exponentially on both sides."""

    variance = formula(lambda self: times(2, methods.pow(self.scale, 2)))
    stddev = formula(lambda self: times(2**0.5, self.scale))

    def rsample(self, sample_shape: Any = ()) -> Any:
        least = torch.finfo(self.loc.dtype).eps - 1
        empty = torch.empty(self.shape_of(sample_shape), dtype=self.loc.dtype)
        u = methods.uniform_(empty, least, 1)
        return self.loc - self.scale * methods.sign(u) * torch.log1p(-methods.abs(u))

    def log_density(self, value: Any) -> Any:
        return -torch.log(times(2, self.scale)) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        apart = value - self.loc
        fall = torch.expm1(-methods.abs(apart) / self.scale)
        return minus(0.5, times(0.5, methods.sign(apart)) * fall)

    def entropy(self) -> Any:
        return plus(1, torch.log(times(2, self.scale)))


class Cauchy(_Around):
    """Numbers around `loc`, so far away at times that they have no mean."""

    mean = formula(lambda self: torch.full(self.batch_shape, math.nan, dtype=self.loc.dtype))
    variance = formula(lambda self: torch.full(self.batch_shape, math.inf, dtype=self.loc.dtype))

    def rsample(self, sample_shape: Any = ()) -> Any:
        empty = torch.empty(self.shape_of(sample_shape), dtype=self.loc.dtype)
        return self.loc + methods.cauchy_(empty) * self.scale

    def log_density(self, value: Any) -> Any:
        scaled = methods.log1p(methods.pow((value - self.loc) / self.scale, 2))
        return minus(-math.log(math.pi), methods.log(self.scale)) - scaled

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return plus(over(torch.atan((value - self.loc) / self.scale), math.pi), 0.5)

    def icdf(self, value: Any) -> Any:
        return torch.tan(times(math.pi, minus(value, 0.5))) * self.scale + self.loc

    def entropy(self) -> Any:
        return plus(math.log(4 * math.pi), methods.log(self.scale))


class Uniform(Distribution):
    """Numbers from `low` up to `high`."""

    constraints: ClassVar[Constraints] = {"low": REAL, "high": REAL}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, low=low, high=high)
        if self.is_checked:
            self._check("parameter low", self.low, less_than(self.high))

    mean = formula(lambda self: over(self.high + self.low, 2))
    mode = formula(lambda self: times(math.nan, self.high))
    stddev = formula(lambda self: over(self.high - self.low, 12**0.5))
    variance = formula(lambda self: over(methods.pow(self.high - self.low, 2), 12))

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = torch.rand(self.shape_of(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_density(self, value: Any) -> Any:
        above = methods.type_as(methods.le(self.low, value), self.low)
        below = methods.type_as(methods.gt(self.high, value), self.low)
        return torch.log(methods.mul(above, below)) - torch.log(self.high - self.low)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """From the lower to the upper bound."""
        return interval(self.low, self.high)

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return methods.clamp((value - self.low) / (self.high - self.low), min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return torch.log(self.high - self.low)


class Exponential(Distribution):
    """Waiting times of events that come at a `rate`."""

    constraints: ClassVar[Constraints] = {"rate": POSITIVE}
    support = NONNEGATIVE
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, rate=rate)

    mean = formula(lambda self: methods.reciprocal(self.rate))
    stddev = mean

    mode = formula(lambda self: torch.zeros_like(self.rate))
    variance = formula(lambda self: methods.pow(self.rate, -2))

    def rsample(self, sample_shape: Any = ()) -> Any:
        empty = torch.empty(self.shape_of(sample_shape), dtype=self.rate.dtype)
        return methods.exponential_(empty) / self.rate

    def log_density(self, value: Any) -> Any:
        return methods.log(self.rate) - self.rate * value

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return minus(1, torch.exp(-self.rate * value))

    def icdf(self, value: Any) -> Any:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return minus(1.0, torch.log(self.rate))


class Gamma(Distribution):
    """Sums of `concentration` waiting times at a `rate`."""

    constraints: ClassVar[Constraints] = {"concentration": POSITIVE, "rate": POSITIVE}
    support = NONNEGATIVE
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, concentration=concentration, rate=rate)

    mean = formula(lambda self: self.concentration / self.rate)
    mode = formula(lambda self: methods.clamp(minus(self.concentration, 1) / self.rate, min=0))
    variance = formula(lambda self: self.concentration / methods.pow(self.rate, 2))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        value = gamma_draws(self.expanded("concentration", shape)) / self.expanded("rate", shape)
        least = torch.finfo(value.dtype).tiny
        methods.clamp_(methods.detach(value), min=least)
        return value

    def log_density(self, value: Any) -> Any:
        concentration, rate = self.concentration, self.rate
        return (
            torch.xlogy(concentration, rate)
            + torch.xlogy(minus(concentration, 1), value)
            - rate * value
            - torch.lgamma(concentration)
        )

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        concentration = self.concentration
        return (
            concentration
            - torch.log(self.rate)
            + torch.lgamma(concentration)
            + minus(1.0, concentration) * torch.digamma(concentration)
        )


class Chi2(Gamma):
    """Sums of `df` squares of standard normal numbers."""

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(times(0.5, df) if isinstance(df, Tensor) else 0.5 * df, 0.5, validate_args)

    @property
    def df(self) -> Any:
        """How many squares."""
        return times(self.concentration, 2)

    language_attributes = Gamma.language_attributes | {"df"}

    def __repr__(self) -> str:
        return "Chi2()"


class Dirichlet(Distribution):
    """Shares that sum to 1."""

    constraints: ClassVar[Constraints] = {"concentration": POSITIVE_VECTOR}
    support = SIMPLEX
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise value_error("`concentration` parameter must be at least one-dimensional.")
        self.parameters = {"concentration": concentration}
        shape = concentration.array.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return dirichlet_draws(self.expanded("concentration", self.shape_of(sample_shape)))

    def log_density(self, value: Any) -> Any:
        concentration = self.concentration
        return (
            methods.sum(torch.xlogy(minus(concentration, 1.0), value), -1)
            + torch.lgamma(methods.sum(concentration, -1))
            - methods.sum(torch.lgamma(concentration), -1)
        )

    mean = formula(lambda self: self.concentration / methods.sum(self.concentration, -1, True))

    @formula
    def variance(self) -> Any:
        total = methods.sum(self.concentration, -1, True)
        return (
            self.concentration
            * (total - self.concentration)
            / (methods.pow(total, 2) * plus(total, 1))
        )

    def entropy(self) -> Any:
        concentration = self.concentration
        count = concentration.array.shape[-1]
        total = methods.sum(concentration, -1)
        return (
            methods.sum(torch.lgamma(concentration), -1)
            - torch.lgamma(total)
            - minus(count, total) * torch.digamma(total)
            - methods.sum(minus(concentration, 1.0) * torch.digamma(concentration), -1)
        )

    @formula
    def mode(self) -> Any:
        above = methods.clamp(minus(self.concentration, 1), min=0.0)
        inner = above / methods.sum(above, -1, True)
        below = methods.all(torch.lt(self.concentration, 1), dim=-1, keepdim=True)
        corner = methods.unsqueeze(torch.argmax(self.concentration, -1), -1)
        corners = methods.scatter(torch.zeros_like(inner), -1, corner, 1.0)
        return torch.where(below, corners, inner)


class Beta(Distribution):
    """Shares between 0 and 1."""

    __slots__ = ("dirichlet",)

    support = UNIT
    has_rsample = True
    computed: ClassVar[Formulas] = {
        "concentration0": lambda self: operators.getitem(self.dirichlet.concentration, (..., 1)),
        "concentration1": lambda self: operators.getitem(self.dirichlet.concentration, (..., 0)),
    }

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = torch.stack(broadcast_all(concentration1, concentration0), -1)
        self.dirichlet = Dirichlet(both, validate_args)
        super().__init__(self.dirichlet.batch_shape, (), validate_args)

    mean = formula(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @formula
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (methods.pow(total, 2) * plus(total, 1))

    mode = formula(lambda self: methods.select(self.dirichlet.mode, -1, 0))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return methods.select(self.dirichlet.rsample(sample_shape), -1, 0)

    def log_density(self, value: Any) -> Any:
        return self.dirichlet.log_prob(torch.stack([value, minus(1.0, value)], -1))

    def entropy(self) -> Any:
        return self.dirichlet.entropy()


def _times(matrix: Any, vector: Any) -> Any:
    return methods.squeeze(torch.matmul(matrix, methods.unsqueeze(vector, -1)), -1)


def log_diagonal(factor: Any) -> Any:
    """Half the logarithm of the determinant that a Cholesky factor belongs to."""
    return methods.sum(methods.log(methods.diagonal(factor, dim1=-2, dim2=-1)), -1)


def mahalanobis(factor: Any, apart: Any) -> Any:
    """The squared distances that a Cholesky factor measures, for each of a batch of vectors."""
    count = apart.array.shape[-1]
    batch = apart.array.shape[:-1]
    factor_batch = factor.array.shape[:-2]
    outer = len(batch) - len(factor_batch)
    shape: tuple[int, ...] = batch[:outer]
    for inner, whole in zip(factor_batch, batch[outer:], strict=True):
        shape += (whole // inner, inner)
    last = outer + 2 * len(factor_batch)
    order = [*range(outer), *range(outer, last, 2), *range(outer + 1, last, 2), last]
    apart = methods.permute(methods.reshape(apart, (*shape, count)), order)
    factors = methods.reshape(factor, (-1, count, count))
    vectors = methods.reshape(apart, (-1, factors.array.shape[0], count))
    swapped = methods.permute(vectors, (1, 2, 0))
    solved = linalg.solve_triangular(factors, swapped, upper=False)
    sums = methods.t(methods.sum(methods.pow(solved, 2), -2))
    distances = methods.reshape(sums, apart.array.shape[:-1])
    back = list(range(outer))
    for index in range(len(factor_batch)):
        back += [outer + index, len(apart.array.shape) - 1 - len(factor_batch) + index]
    return methods.reshape(methods.permute(distances, back), batch)


class MultivariateNormal(Distribution):
    """Vectors around `loc`, with a covariance that a matrix, its inverse or its Cholesky factor
    gives.
    """

    __slots__ = ("factor",)

    constraints: ClassVar[Constraints] = {
        "loc": REAL_VECTOR,
        "covariance_matrix": COVARIANCE,
        "precision_matrix": COVARIANCE,
        "scale_tril": FACTOR,
    }
    support = REAL_VECTOR
    has_rsample = True
    computed: ClassVar[Formulas] = {
        "covariance_matrix": lambda self: self.wide(
            torch.matmul(self.factor, methods.transpose(self.factor, -2, -1))
        ),
        "precision_matrix": lambda self: self.wide(torch.cholesky_inverse(self.factor)),
        "scale_tril": lambda self: self.wide(self.factor),
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise value_error("loc must be at least one-dimensional.")
        named = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        chosen = [(name, matrix) for name, matrix in named.items() if matrix is not None]
        if len(chosen) != 1:
            raise value_error(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be"
                " specified."
            )
        ((name, matrix),) = chosen
        if matrix.ndim < 2:
            raise value_error(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = torch.broadcast_shapes(matrix.array.shape[:-2], loc.array.shape[:-1])
        self.parameters = {
            "loc": methods.expand(loc, (*batch, -1)),
            name: methods.expand(matrix, (*batch, -1, -1)),
        }
        super().__init__(batch, loc.array.shape[-1:], validate_args)
        if name == "scale_tril":
            self.factor = matrix
        elif name == "covariance_matrix":
            self.factor = linalg.cholesky(matrix)
        else:
            turned = linalg.cholesky(torch.flip(matrix, (-2, -1)))
            inverse = torch.transpose(torch.flip(turned, (-2, -1)), -2, -1)
            unit = torch.eye(matrix.array.shape[-1], dtype=matrix.dtype)
            self.factor = linalg.solve_triangular(inverse, unit, upper=False)

    def wide(self, matrix: Any) -> Any:
        """A matrix for each of the batch."""
        return methods.expand(matrix, (*self.batch_shape, *self.event_shape, *self.event_shape))

    mean = formula(lambda self: self.loc)
    mode = mean

    @formula
    def variance(self) -> Any:
        sums = methods.sum(methods.pow(self.factor, 2), -1)
        return methods.expand(sums, (*self.batch_shape, *self.event_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = standard_normal(self.shape_of(sample_shape), self.loc)
        return self.loc + _times(self.factor, drawn)

    def log_density(self, value: Any) -> Any:
        distances = mahalanobis(self.factor, value - self.loc)
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return times(-0.5, plus(constant, distances)) - log_diagonal(self.factor)

    def entropy(self) -> Any:
        constant = 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = plus(constant, log_diagonal(self.factor))
        return methods.expand(entropy, self.batch_shape) if self.batch_shape else entropy


# --- heavy tails ----------------------------------------------------------------------------------


class StudentT(Distribution):
    """Student's distribution of `df` degrees of freedom around `loc`, as wide as `scale` says."""

    __slots__ = ("chi2",)

    home = "torch.distributions.studentT"
    constraints: ClassVar[Constraints] = {"df": POSITIVE, "loc": REAL, "scale": POSITIVE}
    support = REAL
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.set_up(validate_args, df=df, loc=loc, scale=scale)
        self.chi2 = Chi2(self.df)

    mean = formula(lambda self: torch.where(torch.le(self.df, 1), math.nan, self.loc))
    mode = formula(lambda self: self.loc)

    @formula
    def variance(self) -> Any:
        variance = methods.pow(self.scale, 2) * self.df / minus(self.df, 2)
        variance = torch.where(torch.gt(self.df, 2), variance, math.inf)
        return torch.where(torch.le(self.df, 1), math.nan, variance)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = standard_normal(self.shape_of(sample_shape), self.df)
        spread = torch.rsqrt(self.chi2.rsample(sample_shape) / self.df)
        return self.loc + self.scale * (drawn * spread)

    def log_density(self, value: Any) -> Any:
        y = (value - self.loc) / self.scale
        norm = (
            plus(
                methods.log(self.scale) + times(0.5, methods.log(self.df)), 0.5 * math.log(math.pi)
            )
            + torch.lgamma(times(0.5, self.df))
            - torch.lgamma(times(0.5, plus(self.df, 1.0)))
        )
        falling = torch.log1p(methods.pow(y, 2.0) / self.df)
        return times(-0.5, plus(self.df, 1.0)) * falling - norm

    def entropy(self) -> Any:
        half = times(0.5, plus(self.df, 1))
        lbeta = plus(torch.lgamma(times(0.5, self.df)), math.lgamma(0.5)) - torch.lgamma(half)
        change = torch.digamma(half) - torch.digamma(times(0.5, self.df))
        return methods.log(self.scale) + half * change + times(0.5, methods.log(self.df)) + lbeta


class FisherSnedecor(Distribution):
    """The ratio of two means of squares, of `df1` and `df2` degrees of freedom."""

    __slots__ = ("gammas",)

    home = "torch.distributions.fishersnedecor"
    constraints: ClassVar[Constraints] = {"df1": POSITIVE, "df2": POSITIVE}
    support = POSITIVE
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, df1=df1, df2=df2)
        self.gammas = [Gamma(times(df, 0.5), df) for df in (self.df1, self.df2)]

    @formula
    def mean(self) -> Any:
        df2 = torch.where(torch.le(self.df2, 2), math.nan, self.df2)
        return df2 / minus(df2, 2)

    @formula
    def mode(self) -> Any:
        mode = minus(self.df1, 2) / self.df1 * self.df2 / plus(self.df2, 2)
        return torch.where(torch.le(self.df1, 2), math.nan, mode)

    @formula
    def variance(self) -> Any:
        df2 = torch.where(torch.le(self.df2, 4), math.nan, self.df2)
        above = times(2, methods.pow(df2, 2)) * minus(self.df1 + df2, 2)
        return above / (self.df1 * methods.pow(minus(df2, 2), 2) * minus(df2, 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        one, other = (methods.view(gamma.rsample(sample_shape), shape) for gamma in self.gammas)
        least = torch.finfo(other.dtype).tiny
        methods.clamp_(other, min=least)
        ratio = one / other
        methods.clamp_(ratio, min=least)
        return ratio

    def log_density(self, value: Any) -> Any:
        half1, half2 = times(self.df1, 0.5), times(self.df2, 0.5)
        ratio = self.df1 / self.df2
        both = half1 + half2
        norm = methods.lgamma(both) - methods.lgamma(half1) - methods.lgamma(half2)
        rising = half1 * methods.log(ratio) + minus(half1, 1) * torch.log(value)
        return norm + rising - both * torch.log1p(ratio * value)
