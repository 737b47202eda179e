"""The elementary distributions. Of numbers on a line: `Normal Laplace Cauchy Uniform Exponential
Gamma Beta Chi2`; of vectors: `Dirichlet MultivariateNormal`; with heavy tails: `StudentT
FisherSnedecor`. Of truth values, categories and counts: `Bernoulli Categorical OneHotCategorical
Geometric Poisson Binomial NegativeBinomial Multinomial OneHotCategoricalStraightThrough`; and of
several kinds: `MixtureSameFamily`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.sizes import Size
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.library.torch.distributions.distribution import (
    BOOLEAN,
    COUNT,
    COVARIANCE,
    FACTOR,
    NONNEGATIVE,
    ONE_HOT,
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
    greater_than,
    greater_than_eq,
    half_open_interval,
    integer_interval,
    interval,
    less_than,
    minus,
    multinomial,
    of_mixture,
    over,
    plus,
    read_from,
    size_of,
    times,
)
from gradcli.ops.binding.arguments import checked_values
from gradcli.ops.binding.functions import F, linalg, methods, operators, special, torch
from gradcli.ops.creation.fill import checked_sizes
from gradcli.ops.special.gamma_draws import dirichlet_draws, gamma_draws
from gradcli.state import created

# --- numbers and vectors --------------------------------------------------------------------------


def _empty(shape: Size, like: Tensor) -> Tensor:
    """Memory for draws, of a parameter's dtype; raises E204, E602 as `empty` does."""
    sizes = checked_sizes("empty", (shape,))
    return Tensor(created(module_of(like.array).zeros, sizes, like.dtype.numpy_dtype))


def standard_normal(shape: Size, like: Tensor) -> Tensor:
    """Draws of the standard normal distribution."""
    return methods.normal_(_empty(shape, like))


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
        u = methods.uniform_(_empty(self.shape_of(sample_shape), self.loc), least, 1)
        return self.loc - self.scale * methods.sign(u) * torch.log1p(-methods.abs(u))

    def log_density(self, value: Any) -> Any:
        return -torch.log(times(2, self.scale)) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        apart = value - self.loc
        fall = torch.expm1(-methods.abs(apart) / self.scale)
        return minus(0.5, times(0.5, methods.sign(apart)) * fall)

    def icdf(self, value: Any) -> Any:
        apart = minus(value, 0.5)
        rise = torch.log1p(times(-2, methods.abs(apart)))
        return self.loc - self.scale * methods.sign(apart) * rise

    def entropy(self) -> Any:
        return plus(1, torch.log(times(2, self.scale)))


class Cauchy(_Around):
    """Numbers around `loc`, so far away at times that they have no mean."""

    mean = formula(lambda self: torch.full(self.batch_shape, math.nan, dtype=self.loc.dtype))
    variance = formula(lambda self: torch.full(self.batch_shape, math.inf, dtype=self.loc.dtype))

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = methods.cauchy_(_empty(self.shape_of(sample_shape), self.loc))
        return self.loc + drawn * self.scale

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

    arg_constraints = formula(
        lambda self: {"low": less_than(self.high), "high": greater_than(self.low)}
    )
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
        return methods.exponential_(_empty(self.shape_of(sample_shape), self.rate)) / self.rate

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

    arg_constraints = formula(lambda self: {"df": POSITIVE})

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
        self.arguments = {"concentration": concentration}
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
        corner = methods.unsqueeze(torch.argmax(inner, -1), -1)  # nan each: the first
        corners = methods.scatter(torch.zeros_like(inner), -1, corner, 1.0)
        return torch.where(below, corners, inner)


class Beta(Distribution):
    """Shares between 0 and 1."""

    fields: ClassVar[tuple[str, ...]] = ("dirichlet",)

    support = UNIT
    has_rsample = True
    computed: ClassVar[Formulas] = {
        "concentration0": lambda self: operators.getitem(self.dirichlet.concentration, (..., 1)),
        "concentration1": lambda self: operators.getitem(self.dirichlet.concentration, (..., 0)),
    }

    arg_constraints = formula(lambda self: {"concentration1": POSITIVE, "concentration0": POSITIVE})

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


def matrix_times(matrix: Any, vector: Any) -> Any:
    """The products of matrices and vectors."""
    return methods.squeeze(torch.matmul(matrix, methods.unsqueeze(vector, -1)), -1)


def precision_factor(matrix: Any) -> Any:
    """The Cholesky factor of the inverse of a matrix."""
    turned = linalg.cholesky(torch.flip(matrix, (-2, -1)))
    inverse = torch.transpose(torch.flip(turned, (-2, -1)), -2, -1)
    unit = torch.eye(matrix.array.shape[-1], dtype=matrix.dtype)
    return linalg.solve_triangular(inverse, unit, upper=False)


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


def chosen_matrix(
    error: Callable[[str], GradcliError], **matrices: Tensor | None
) -> tuple[str, Tensor]:
    """The one of some matrices that is given, with its name; raises an error where not one is."""
    chosen = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    if len(chosen) != 1:
        raise error(f"Exactly one of {' or '.join(matrices)} may be specified.")
    return chosen[0]


class MultivariateNormal(Distribution):
    """Vectors around `loc`, with a covariance that a matrix, its inverse or its Cholesky factor
    gives.
    """

    fields: ClassVar[tuple[str, ...]] = ("factor",)

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
        name, matrix = chosen_matrix(
            value_error,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.ndim < 2:
            raise value_error(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = torch.broadcast_shapes(matrix.array.shape[:-2], loc.array.shape[:-1])
        self.arguments = {
            "loc": methods.expand(loc, (*batch, -1)),
            name: methods.expand(matrix, (*batch, -1, -1)),
        }
        super().__init__(batch, loc.array.shape[-1:], validate_args)
        if name == "scale_tril":
            self.factor = matrix
        elif name == "covariance_matrix":
            self.factor = linalg.cholesky(matrix)
        else:
            self.factor = precision_factor(matrix)

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
        return self.loc + matrix_times(self.factor, drawn)

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

    fields: ClassVar[tuple[str, ...]] = ("chi2",)

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

    fields: ClassVar[tuple[str, ...]] = ("gammas",)

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


# --- truth values, categories, counts -------------------------------------------------------------


def one_of(probs: Any, logits: Any) -> dict[str, Any]:
    """The one of `probs` and `logits` that was passed, by name; raises E204 for both or neither."""
    if (probs is None) == (logits is None):
        raise value_error("Either `probs` or `logits` must be specified, but not both.")
    return {"logits": logits} if probs is None else {"probs": probs}


def clamped(probs: Any) -> Any:
    """Probabilities that are neither 0 nor 1."""
    eps = torch.finfo(probs.dtype).eps
    return methods.clamp(probs, min=eps, max=1 - eps)


def _binary_logits(self: Any) -> Any:
    inner = clamped(self.probs)
    return torch.log(inner) - torch.log1p(-inner)


BINARY: Formulas = {
    "logits": _binary_logits,
    "probs": lambda self: torch.sigmoid(self.logits),
}
CATEGORICAL = read_from("categorical", "logits", "probs")


class _Binary(Distribution):
    """The base of those of an event of one probability."""

    constraints: ClassVar[Constraints] = {"probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = BINARY

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.set_up(validate_args, **one_of(probs, logits))


class Bernoulli(_Binary):
    """1 with the probability `probs`, else 0."""

    support = BOOLEAN
    has_enumerate_support = True

    mean = formula(lambda self: self.probs)

    @formula
    def mode(self) -> Any:
        likely = methods.to(torch.ge(self.probs, 0.5), self.probs.dtype)
        return torch.where(torch.eq(self.probs, 0.5), math.nan, likely)

    variance = formula(lambda self: self.probs * minus(1, self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            return torch.bernoulli(self.expanded("probs", self.shape_of(sample_shape)))

    def log_density(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        """Both values, for each of the batch."""
        values = torch.arange(2, dtype=next(iter(self.arguments.values())).dtype)
        return self.values_for_each(values, expand)


class Geometric(_Binary):
    """How often an event of the probability `probs` fails before it happens."""

    support = COUNT

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self.is_checked and probs is not None:
            zero = ~greater_than(0).truth_of(self.probs)
            if zero.any():
                raise value_error(
                    "Expected parameter probs (Tensor of shape"
                    f" {tuple(self.probs.array.shape)}) of distribution {self!r} to be positive but"
                    f" found invalid values:\n{Tensor(np.asarray(self.probs.array)[zero])}"
                )

    mean = formula(lambda self: minus(over(1.0, self.probs), 1.0))
    mode = formula(lambda self: torch.zeros_like(self.probs))
    variance = formula(lambda self: (minus(over(1.0, self.probs), 1.0)) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            empty = _empty(self.shape_of(sample_shape), self.probs)
            u = methods.uniform_(empty, torch.finfo(self.probs.dtype).tiny, 1)
            return torch.floor(torch.log(u) / torch.log1p(-self.probs))

    def log_density(self, value: Any) -> Any:
        value, probs = broadcast_all(value, self.probs)
        sure = torch.logical_and(torch.eq(probs, 1), torch.eq(value, 0))
        probs = methods.masked_fill(probs, sure, 0)
        return value * torch.log1p(-probs) + torch.log(self.probs)

    def entropy(self) -> Any:
        both = F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return both / self.probs


def _check_signs(probs: Any) -> None:
    """Raise E204 for a negative probability."""
    if (probs < 0).any():
        raise value_error("a probability is negative")


class Categorical(Distribution):
    """The number of a category, each of a probability of its own."""

    language_attributes = Distribution.language_attributes | {"param_shape"}
    constraints: ClassVar[Constraints] = {"probs": SIMPLEX, "logits": REAL_VECTOR}
    computed: ClassVar[Formulas] = {
        "logits": lambda self: torch.log(clamped(self.probs)),
        "probs": lambda self: F.softmax(self.logits, -1),
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        ((name, weights),) = one_of(probs, logits).items()
        if not isinstance(weights, Tensor) or weights.ndim < 1:
            raise value_error(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            each = weights / methods.sum(weights, -1, True)
        else:
            each = weights - methods.logsumexp(weights, dim=-1, keepdim=True)
        self.arguments = {name: each}
        if name == "probs":
            try:
                checked_values(_check_signs, weights.array)
            except GradcliError:
                self.arguments = {name: weights}  # what is wrong is shown as it was given
        super().__init__(each.array.shape[:-1], (), validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return next(iter(self.arguments.values())).shape

    mean = formula(lambda self: torch.full(self.batch_shape, math.nan, dtype=self.probs.dtype))
    variance = mean

    mode = formula(lambda self: torch.argmax(self.probs, -1))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            rows = methods.reshape(self.probs, (-1, self.param_shape[-1]))
            drawn = torch.multinomial(rows, size_of(sample_shape).numel(), True)
            return methods.reshape(torch.t(drawn), self.shape_of(sample_shape))

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """The numbers of the categories."""
        return integer_interval(0, self.param_shape[-1] - 1)

    def log_density(self, value: Any) -> Any:
        index = methods.unsqueeze(methods.long(value), -1)
        index, logits = torch.broadcast_tensors(index, self.logits)
        index = operators.getitem(index, (..., slice(None, 1)))
        return methods.squeeze(methods.gather(logits, -1, index), -1)

    def entropy(self) -> Any:
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -methods.sum(logits * self.probs, -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All categories, for each of the batch."""
        return self.values_for_each(torch.arange(self.param_shape[-1]), expand)


class OneHotCategorical(Distribution):
    """A category as a vector of zeros with one 1."""

    fields: ClassVar[tuple[str, ...]] = ("categorical",)

    support = ONE_HOT
    has_enumerate_support = True
    arg_constraints = formula(lambda self: self.categorical.arg_constraints)
    computed: ClassVar[Formulas] = CATEGORICAL

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.categorical = Categorical(probs, logits, validate_args)
        shape = self.categorical.param_shape
        super().__init__(self.categorical.batch_shape, shape[-1:], validate_args)

    mean = formula(lambda self: self.categorical.probs)
    variance = formula(lambda self: self.probs * minus(1, self.probs))

    @formula
    def mode(self) -> Any:
        count = self.event_shape[0]
        return methods.to(F.one_hot(self.categorical.mode, count), self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self.categorical.sample(sample_shape)
        return methods.to(F.one_hot(drawn, self.event_shape[0]), self.probs.dtype)

    def log_density(self, value: Any) -> Any:
        return self.categorical.log_prob(torch.argmax(value, -1))

    def entropy(self) -> Any:
        return self.categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All vectors, for each of the batch."""
        count = self.event_shape[0]
        values = torch.eye(count, dtype=self.probs.dtype)
        values = methods.view(values, (count, *(1 for _ in self.batch_shape), count))
        return methods.expand(values, (count, *self.batch_shape, count)) if expand else values


class Poisson(Distribution):
    """How many events come that come at a `rate`."""

    constraints: ClassVar[Constraints] = {"rate": NONNEGATIVE}
    support = COUNT

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, rate=rate)

    mean = formula(lambda self: self.rate)
    variance = mean

    mode = formula(lambda self: torch.floor(self.rate))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            return torch.poisson(self.expanded("rate", self.shape_of(sample_shape)))

    def log_density(self, value: Any) -> Any:
        rate, value = broadcast_all(self.rate, value)
        return methods.xlogy(value, rate) - rate - methods.lgamma(plus(value, 1))


def set_up_trials(
    self: Distribution, total_count: Any, probs: Any, logits: Any, validate_args: bool | None
) -> None:
    """Set up a distribution of a number of trials, each of one probability."""
    ((name, chosen),) = one_of(probs, logits).items()
    total, each = broadcast_all(total_count, chosen)
    self.arguments = {"total_count": methods.type_as(total, each), name: each}
    Distribution.__init__(self, each.array.shape, (), validate_args)


class Binomial(Distribution):
    """How many of `total_count` trials succeed, each with the probability `probs`."""

    constraints: ClassVar[Constraints] = {"total_count": COUNT, "probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = BINARY

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        set_up_trials(self, total_count, probs, logits, validate_args)

    mean = formula(lambda self: self.total_count * self.probs)

    @formula
    def mode(self) -> Any:
        return torch.minimum(torch.floor(plus(self.total_count, 1) * self.probs), self.total_count)

    variance = formula(lambda self: self.total_count * self.probs * minus(1, self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        with NoGrad():
            return torch.binomial(
                self.expanded("total_count", shape), self.expanded("probs", shape)
            )

    has_enumerate_support = True

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """The counts up to the number of trials."""
        return integer_interval(0, self.total_count)

    def enumerate_support(self, expand: bool = True) -> Any:
        """All counts, for each of the batch; raises E205 where the numbers of trials differ."""
        total = int(methods.max(self.total_count).item())
        if methods.min(self.total_count).item() != total:
            raise GradcliError(
                "E205",
                "Inhomogeneous total count not supported by `enumerate_support`.",
                raises="NotImplementedError",
            )
        values = torch.arange(1 + total, dtype=next(iter(self.arguments.values())).dtype)
        return self.values_for_each(values, expand)

    def log_density(self, value: Any) -> Any:
        total, logits = self.total_count, self.logits
        all_ways = torch.lgamma(plus(total, 1))
        ways = torch.lgamma(plus(value, 1))
        other_ways = torch.lgamma(plus(total - value, 1))
        above, below = methods.clamp(logits, min=0), methods.clamp(logits, max=0)
        positive = over(above + logits - below, 2)
        rest = torch.log1p(torch.exp(-torch.abs(logits)))
        normalised = total * positive + total * rest - all_ways
        return value * logits - ways - other_ways - normalised

    def entropy(self) -> Any:
        total = int(methods.max(self.total_count).item())
        if methods.min(self.total_count).item() != total:
            raise self.missing("entropy of different total counts")
        log_probs = self.log_prob(self.enumerate_support(False))
        return -methods.sum(torch.exp(log_probs) * log_probs, 0)


# --- counts ---------------------------------------------------------------------------------------


class NegativeBinomial(Distribution):
    """How many trials of the probability `probs` succeed until `total_count` have failed."""

    constraints: ClassVar[Constraints] = {
        "total_count": greater_than_eq(0),
        "probs": half_open_interval(0.0, 1.0),
        "logits": REAL,
    }
    computed: ClassVar[Formulas] = BINARY
    support = COUNT

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        set_up_trials(self, total_count, probs, logits, validate_args)

    mean = formula(lambda self: self.total_count * torch.exp(self.logits))

    @formula
    def mode(self) -> Any:
        likely = minus(self.total_count, 1) * methods.exp(self.logits)
        return methods.clamp(methods.floor(likely), min=0.0)

    variance = formula(lambda self: self.mean / torch.sigmoid(-self.logits))

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            rates = Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)
            return torch.poisson(rates.sample(sample_shape))

    def log_density(self, value: Any) -> Any:
        total = self.total_count
        hits = total * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        norm = -torch.lgamma(total + value) + torch.lgamma(plus(1.0, value)) + torch.lgamma(total)
        return hits - methods.masked_fill(norm, torch.eq(total + value, 0.0), 0.0)


class Multinomial(Distribution):
    """How often each category comes in `total_count` draws."""

    fields: ClassVar[tuple[str, ...]] = ("categorical", "total_count")

    language_attributes = Distribution.language_attributes | {"param_shape", "total_count"}
    constraints: ClassVar[Constraints] = {"probs": SIMPLEX, "logits": REAL_VECTOR}
    computed: ClassVar[Formulas] = CATEGORICAL

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise GradcliError(
                "E205",
                "inhomogeneous total_count is not supported",
                raises="NotImplementedError",
            )
        self.total_count = total_count
        self.categorical = Categorical(probs, logits)
        shape = self.categorical.param_shape
        super().__init__(self.categorical.batch_shape, shape[-1:], validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self.categorical.param_shape

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """Counts of so many draws."""
        return multinomial(self.total_count)

    mean = formula(lambda self: times(self.probs, self.total_count))
    variance = formula(lambda self: times(self.total_count, self.probs) * minus(1, self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = size_of(sample_shape)
        drawn = self.categorical.sample((self.total_count, *shape))
        drawn = methods.permute(drawn, *range(1, drawn.ndim), 0)
        counts = torch.zeros(self.shape_of(shape), dtype=drawn.dtype)
        methods.scatter_add_(counts, -1, drawn, torch.ones_like(drawn))
        return methods.type_as(counts, self.probs)

    def entropy(self) -> Any:
        count = torch.tensor(self.total_count)
        first = count * self.categorical.entropy() - torch.lgamma(plus(count, 1))
        trials = Binomial(self.total_count, self.probs)
        support = operators.getitem(trials.enumerate_support(False), slice(1, None))
        weights = torch.lgamma(plus(support, 1))
        return first + methods.sum(torch.exp(trials.log_prob(support)) * weights, [0, -1])

    def log_density(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, value)
        never = torch.logical_and(torch.eq(value, 0), torch.eq(logits, -math.inf))
        logits = torch.where(never, 0, logits)
        ways = torch.lgamma(plus(methods.sum(value, -1), 1))
        same = methods.sum(torch.lgamma(plus(value, 1)), -1)
        return ways - same + methods.sum(logits * value, -1)


class MixtureSameFamily(Distribution):
    """One of several distributions of a kind, chosen by a categorical one.

    Args:
        mixture_distribution: chooses.
        component_distribution: the distributions, side by side in the last batch dimension.
    """

    fields: ClassVar[tuple[str, ...]] = ("component_distribution", "mixture_distribution")

    language_attributes = Distribution.language_attributes | {
        "component_distribution",
        "mixture_distribution",
    }

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise value_error(
                " The Mixture distribution needs to be an  instance of"
                " torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise value_error(
                "The Component distribution needs to be an instance of"
                " torch.distributions.Distribution"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        count = mixture_distribution.logits.array.shape[-1]
        if component_distribution.batch_shape[-1] != count:
            raise value_error(
                f"`mixture_distribution component` ({count}) does not equal"
                f" `component_distribution.batch_shape[-1]`"
                f" ({component_distribution.batch_shape[-1]})"
            )
        batch = component_distribution.batch_shape[:-1]
        super().__init__(batch, component_distribution.event_shape, validate_args)

    @formula
    def support(self) -> Constraint | None:
        """What is drawn by one component or another."""
        base = self.component_distribution.support
        return None if base is None else of_mixture(base)

    def _pad(self, value: Any) -> Any:
        return methods.unsqueeze(value, -1 - len(self.event_shape))

    def _weights(self) -> Any:
        """The probabilities, with dimensions for those of the components."""
        probs = self.mixture_distribution.probs
        shape = probs.array.shape
        outer = len(self.mixture_distribution.batch_shape)
        more = 0 if outer == 1 else len(self.batch_shape) - outer
        ones = (1,) * len(self.event_shape)
        return methods.reshape(probs, (*shape[:-1], *(1,) * more, *shape[-1:], *ones))

    def _mixed(self, values: Any) -> Any:
        return torch.sum(self._weights() * values, dim=-1 - len(self.event_shape))

    mean = formula(lambda self: self._mixed(self.component_distribution.mean))

    @formula
    def variance(self) -> Any:
        within = self._mixed(self.component_distribution.variance)
        apart = self.component_distribution.mean - self._pad(self.mean)
        return within + self._mixed(methods.pow(apart, 2.0))

    def cdf(self, value: Any) -> Any:
        below = self.component_distribution.cdf(self._pad(value))
        return torch.sum(below * self.mixture_distribution.probs, dim=-1)

    def log_density(self, value: Any) -> Any:
        each = self.component_distribution.log_prob(self._pad(value))
        weights = torch.log_softmax(self.mixture_distribution.logits, dim=-1)
        return torch.logsumexp(each + weights, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            dim = len(size_of(sample_shape)) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            shape, event = chosen.array.shape, self.event_shape
            index = methods.reshape(chosen, (*shape, *(1,) * (len(event) + 1)))
            index = methods.repeat(index, (*(1,) * len(shape), 1, *event))
            return methods.squeeze(torch.gather(drawn, dim, index), dim)

    def __repr__(self) -> str:
        parts = f"{self.mixture_distribution!r},\n  {self.component_distribution!r}"
        return f"MixtureSameFamily(\n  {parts})"


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws let gradients through as if they were the probabilities."""

    home = "torch.distributions.one_hot_categorical"
    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        probs = self.probs
        return self.sample(sample_shape) + (probs - methods.detach(probs))
