"""Distributions of numbers on a line: `Normal Laplace Cauchy Uniform Exponential Gamma Beta Chi2`;
of vectors: `Dirichlet MultivariateNormal`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.library.torch.distributions.constraints import (
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
    interval,
    less_than,
)
from gradcli.library.torch.distributions.distribution import (
    Distribution,
    Formulas,
    T,
    broadcast_all,
    call,
    minus,
    over,
    plus,
    times,
)
from gradcli.ops.binding.catalogue import modules, operators
from gradcli.ops.special.gamma_draws import dirichlet_draws, gamma_draws


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Draws of the standard normal distribution."""
    return call(T.empty(shape, dtype=like.dtype, device=like.device), "normal_")


class _Around(Distribution):
    """The base of those that lie around `loc`, as wide as `scale` says."""

    constraints: ClassVar[dict[str, Constraint]] = {"loc": REAL, "scale": POSITIVE}
    support = REAL
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean


class Normal(_Around):
    """Numbers around `loc`, with the standard deviation `scale`.

    Example: torch.distributions.Normal(0., 1.).log_prob(tensor(0.5))
    """

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return call(self.scale, "pow", 2)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        return T.normal(
            call(self.expanded("loc", shape), "detach"),
            call(self.expanded("scale", shape), "detach"),
        )

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.loc + standard_normal(self.shape_of(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        variance = self.scale**2
        log_scale = call(self.scale, "log")
        squares = -((value - self.loc) ** 2) / times(2, variance)
        return minus(squares - log_scale, math.log(math.sqrt(2 * math.pi)))

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        scaled = over((value - self.loc) * call(self.scale, "reciprocal"), math.sqrt(2))
        return times(0.5, plus(1, T.erf(scaled)))

    def icdf(self, value: Any) -> Any:
        scaled = self.scale * T.erfinv(minus(times(2, value), 1))
        return self.loc + times(scaled, math.sqrt(2))

    def entropy(self) -> Any:
        return plus(0.5 + 0.5 * math.log(2 * math.pi), T.log(self.scale))


class Laplace(_Around):
    """Numbers around `loc` that fall off exponentially on both sides."""

    @property
    def variance(self) -> Any:
        return times(2, call(self.scale, "pow", 2))

    @property
    def stddev(self) -> Any:
        return times(2**0.5, self.scale)

    def rsample(self, sample_shape: Any = ()) -> Any:
        least = T.finfo(self.loc.dtype).eps - 1
        empty = T.empty(self.shape_of(sample_shape), dtype=self.loc.dtype)
        u = call(empty, "uniform_", least, 1)
        return self.loc - self.scale * call(u, "sign") * T.log1p(-call(u, "abs"))

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        return -T.log(times(2, self.scale)) - T.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        apart = value - self.loc
        fall = T.expm1(-call(apart, "abs") / self.scale)
        return minus(0.5, times(0.5, call(apart, "sign")) * fall)

    def entropy(self) -> Any:
        return plus(1, T.log(times(2, self.scale)))


class Cauchy(_Around):
    """Numbers around `loc`, so far away at times that they have no mean."""

    @property
    def mean(self) -> Any:
        return T.full(self.batch_shape, math.nan, dtype=self.loc.dtype)

    @property
    def variance(self) -> Any:
        return T.full(self.batch_shape, math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Any = ()) -> Any:
        empty = T.empty(self.shape_of(sample_shape), dtype=self.loc.dtype)
        return self.loc + call(empty, "cauchy_") * self.scale

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        scaled = call(call((value - self.loc) / self.scale, "pow", 2), "log1p")
        return minus(-math.log(math.pi), call(self.scale, "log")) - scaled

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return plus(over(T.atan((value - self.loc) / self.scale), math.pi), 0.5)

    def icdf(self, value: Any) -> Any:
        return T.tan(times(math.pi, minus(value, 0.5))) * self.scale + self.loc

    def entropy(self) -> Any:
        return plus(math.log(4 * math.pi), call(self.scale, "log"))


class Uniform(Distribution):
    """Numbers from `low` up to `high`."""

    constraints: ClassVar[dict[str, Constraint]] = {"low": REAL, "high": REAL}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, low=low, high=high)
        if self.is_checked:
            self._check("parameter low", self.low, less_than(self.high))

    @property
    def mean(self) -> Any:
        return over(self.high + self.low, 2)

    @property
    def mode(self) -> Any:
        return times(math.nan, self.high)

    @property
    def stddev(self) -> Any:
        return over(self.high - self.low, 12**0.5)

    @property
    def variance(self) -> Any:
        return over(call(self.high - self.low, "pow", 2), 12)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = T.rand(self.shape_of(sample_shape), dtype=self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        above = call(call(self.low, "le", value), "type_as", self.low)
        below = call(call(self.high, "gt", value), "type_as", self.low)
        return T.log(call(above, "mul", below)) - T.log(self.high - self.low)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """From the lower to the upper bound."""
        return interval(self.low, self.high)

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return call((value - self.low) / (self.high - self.low), "clamp", min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return T.log(self.high - self.low)


class Exponential(Distribution):
    """Waiting times of events that come at a `rate`."""

    constraints: ClassVar[dict[str, Constraint]] = {"rate": POSITIVE}
    support = NONNEGATIVE
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, rate=rate)

    @property
    def mean(self) -> Any:
        return call(self.rate, "reciprocal")

    stddev = mean

    @property
    def mode(self) -> Any:
        return T.zeros_like(self.rate)

    @property
    def variance(self) -> Any:
        return call(self.rate, "pow", -2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        empty = T.empty(self.shape_of(sample_shape), dtype=self.rate.dtype)
        return call(empty, "exponential_") / self.rate

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        return call(self.rate, "log") - self.rate * value

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return minus(1, T.exp(-self.rate * value))

    def icdf(self, value: Any) -> Any:
        return -T.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return minus(1.0, T.log(self.rate))


class Gamma(Distribution):
    """Sums of `concentration` waiting times at a `rate`."""

    constraints: ClassVar[dict[str, Constraint]] = {"concentration": POSITIVE, "rate": POSITIVE}
    support = NONNEGATIVE
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return call(minus(self.concentration, 1) / self.rate, "clamp", min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / call(self.rate, "pow", 2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self.shape_of(sample_shape)
        value = gamma_draws(self.expanded("concentration", shape)) / self.expanded("rate", shape)
        least = T.finfo(value.dtype).tiny
        call(call(value, "detach"), "clamp_", min=least)
        return value

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        concentration, rate = self.concentration, self.rate
        return (
            T.xlogy(concentration, rate)
            + T.xlogy(minus(concentration, 1), value)
            - rate * value
            - T.lgamma(concentration)
        )

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        return modules["torch.special"]["gammainc"](self.concentration, self.rate * value)

    def entropy(self) -> Any:
        concentration = self.concentration
        return (
            concentration
            - T.log(self.rate)
            + T.lgamma(concentration)
            + minus(1.0, concentration) * T.digamma(concentration)
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

    constraints: ClassVar[dict[str, Constraint]] = {"concentration": POSITIVE_VECTOR}
    support = SIMPLEX
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise value_error("`concentration` parameter must be at least one-dimensional.")
        self.given = {"concentration": concentration}
        shape = concentration.array.shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return dirichlet_draws(self.expanded("concentration", self.shape_of(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        concentration = self.concentration
        return (
            call(T.xlogy(minus(concentration, 1.0), value), "sum", -1)
            + T.lgamma(call(concentration, "sum", -1))
            - call(T.lgamma(concentration), "sum", -1)
        )

    @property
    def mean(self) -> Any:
        return self.concentration / call(self.concentration, "sum", -1, True)

    @property
    def variance(self) -> Any:
        total = call(self.concentration, "sum", -1, True)
        return (
            self.concentration
            * (total - self.concentration)
            / (call(total, "pow", 2) * plus(total, 1))
        )

    def entropy(self) -> Any:
        concentration = self.concentration
        count = concentration.array.shape[-1]
        total = call(concentration, "sum", -1)
        return (
            call(T.lgamma(concentration), "sum", -1)
            - T.lgamma(total)
            - minus(count, total) * T.digamma(total)
            - call(minus(concentration, 1.0) * T.digamma(concentration), "sum", -1)
        )

    @property
    def mode(self) -> Any:
        above = call(minus(self.concentration, 1), "clamp", min=0.0)
        found = above / call(above, "sum", -1, True)
        below = call(T.lt(self.concentration, 1), "all", dim=-1, keepdim=True)
        corner = call(T.argmax(self.concentration, -1), "unsqueeze", -1)
        corners = call(T.zeros_like(found), "scatter", -1, corner, 1.0)
        return T.where(below, corners, found)


class Beta(Distribution):
    """Shares between 0 and 1."""

    __slots__ = ("dirichlet",)

    support = UNIT
    has_rsample = True
    computed: ClassVar[Formulas] = {
        "concentration0": lambda self: operators["[]"](self.dirichlet.concentration, (..., 1)),
        "concentration1": lambda self: operators["[]"](self.dirichlet.concentration, (..., 0)),
    }

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        both = T.stack(broadcast_all(concentration1, concentration0), -1)
        self.dirichlet = Dirichlet(both, validate_args)
        super().__init__(self.dirichlet.batch_shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (call(total, "pow", 2) * plus(total, 1))

    @property
    def mode(self) -> Any:
        return call(self.dirichlet.mode, "select", -1, 0)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return call(self.dirichlet.rsample(sample_shape), "select", -1, 0)

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        return self.dirichlet.log_prob(T.stack([value, minus(1.0, value)], -1))

    def entropy(self) -> Any:
        return self.dirichlet.entropy()


def _times(matrix: Any, vector: Any) -> Any:
    return call(T.matmul(matrix, call(vector, "unsqueeze", -1)), "squeeze", -1)


def log_diagonal(factor: Any) -> Any:
    """Half the logarithm of the determinant that a Cholesky factor belongs to."""
    return call(call(call(factor, "diagonal", dim1=-2, dim2=-1), "log"), "sum", -1)


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
    apart = call(call(apart, "reshape", (*shape, count)), "permute", order)
    factors = call(factor, "reshape", (-1, count, count))
    vectors = call(apart, "reshape", (-1, factors.array.shape[0], count))
    swapped = call(vectors, "permute", (1, 2, 0))
    solved = modules["torch.linalg"]["solve_triangular"](factors, swapped, upper=False)
    sums = call(call(call(solved, "pow", 2), "sum", -2), "t")
    found = call(sums, "reshape", apart.array.shape[:-1])
    back = list(range(outer))
    for index in range(len(factor_batch)):
        back += [outer + index, len(apart.array.shape) - 1 - len(factor_batch) + index]
    return call(call(found, "permute", back), "reshape", batch)


class MultivariateNormal(Distribution):
    """Vectors around `loc`, with a covariance that a matrix, its inverse or its Cholesky factor
    gives.
    """

    __slots__ = ("factor",)

    constraints: ClassVar[dict[str, Constraint]] = {
        "loc": REAL_VECTOR,
        "covariance_matrix": COVARIANCE,
        "precision_matrix": COVARIANCE,
        "scale_tril": FACTOR,
    }
    support = REAL_VECTOR
    has_rsample = True
    computed: ClassVar[Formulas] = {
        "covariance_matrix": lambda self: self.wide(
            T.matmul(self.factor, call(self.factor, "transpose", -2, -1))
        ),
        "precision_matrix": lambda self: self.wide(T.cholesky_inverse(self.factor)),
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
        batch = T.broadcast_shapes(matrix.array.shape[:-2], loc.array.shape[:-1])
        self.given = {
            "loc": call(loc, "expand", (*batch, -1)),
            name: call(matrix, "expand", (*batch, -1, -1)),
        }
        super().__init__(batch, loc.array.shape[-1:], validate_args)
        linalg = modules["torch.linalg"]
        if name == "scale_tril":
            self.factor = matrix
        elif name == "covariance_matrix":
            self.factor = linalg["cholesky"](matrix)
        else:
            turned = linalg["cholesky"](T.flip(matrix, (-2, -1)))
            inverse = T.transpose(T.flip(turned, (-2, -1)), -2, -1)
            unit = T.eye(matrix.array.shape[-1], dtype=matrix.dtype)
            self.factor = linalg["solve_triangular"](inverse, unit, upper=False)

    def wide(self, matrix: Any) -> Any:
        """A matrix for each of the batch."""
        return call(matrix, "expand", (*self.batch_shape, *self.event_shape, *self.event_shape))

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        sums = call(call(self.factor, "pow", 2), "sum", -1)
        return call(sums, "expand", (*self.batch_shape, *self.event_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = standard_normal(self.shape_of(sample_shape), self.loc)
        return self.loc + _times(self.factor, drawn)

    def log_prob(self, value: Any) -> Any:
        self.check_value(value)
        distances = mahalanobis(self.factor, value - self.loc)
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return times(-0.5, plus(constant, distances)) - log_diagonal(self.factor)

    def entropy(self) -> Any:
        constant = 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi))
        found = plus(constant, log_diagonal(self.factor))
        return call(found, "expand", self.batch_shape) if self.batch_shape else found
