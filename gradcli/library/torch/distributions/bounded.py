"""Distributions of numbers and of shares that lie between bounds, on a circle or above a threshold:
`ContinuousBernoulli VonMises GeneralizedPareto LogisticNormal`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.arrays import dtypes
from gradcli.autograd.modes import NoGrad
from gradcli.errors import value_error
from gradcli.library.torch.distributions.distribution import (
    POSITIVE,
    REAL,
    SIMPLEX,
    UNIT,
    Constraint,
    Constraints,
    Distribution,
    Formulas,
    broadcast_all,
    formula,
    interval,
    minus,
    over,
    plus,
    read_from,
    times,
)
from gradcli.library.torch.distributions.elementary import BINARY, Normal, clamped, one_of
from gradcli.library.torch.distributions.shaped import StickBreakingTransform
from gradcli.library.torch.distributions.transformed import TransformedDistribution
from gradcli.ops.binding.functions import F, methods, torch


class ContinuousBernoulli(Distribution):
    """Numbers between 0 and 1, the likelier the more `probs` says so, up to a factor.

    Args:
        lims: between which `probs` a series takes the place of formulas that lose their digits.
    """

    fields: ClassVar[tuple[str, ...]] = ("lims",)

    language_attributes = Distribution.language_attributes | {"param_shape"}
    constraints: ClassVar[Constraints] = {"probs": UNIT, "logits": REAL}
    computed: ClassVar[Formulas] = {
        "logits": BINARY["logits"],
        "probs": lambda self: clamped(torch.sigmoid(self.logits)),
    }
    support = UNIT
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        ((name, weights),) = one_of(probs, logits).items()
        (each,) = broadcast_all(weights)
        if name == "probs":
            if validate_args is not None and not UNIT.truth_of(each).all():
                raise value_error("The parameter probs has invalid values")
            each = clamped(each)
        self.arguments = {name: each}
        self.lims = lims
        super().__init__(each.array.shape, (), validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return next(iter(self.arguments.values())).shape

    def _is_apart(self) -> Any:
        """Where `probs` is not close to a half."""
        low, high = self.lims
        return torch.max(torch.le(self.probs, low), torch.gt(self.probs, high))

    def _cut(self) -> Any:
        """`probs`, with another value where it is close to a half."""
        other = times(self.lims[0], torch.ones_like(self.probs))
        return torch.where(self._is_apart(), self.probs, other)

    def log_norm(self) -> Any:
        """The logarithm of the factor that makes the density one."""
        cut = self._cut()
        below = torch.where(torch.le(cut, 0.5), cut, torch.zeros_like(cut))
        above = torch.where(torch.ge(cut, 0.5), cut, torch.ones_like(cut))
        width = torch.log(torch.abs(torch.log1p(-cut) - torch.log(cut)))
        low = torch.log1p(times(-2.0, below))
        high = torch.log(minus(times(2.0, above), 1.0))
        exact = width - torch.where(torch.le(cut, 0.5), low, high)
        x = torch.pow(minus(self.probs, 0.5), 2)
        series = plus(math.log(2.0), plus(4.0 / 3.0, times(104.0 / 45.0, x)) * x)
        return torch.where(self._is_apart(), exact, series)

    @formula
    def mean(self) -> Any:
        cut = self._cut()
        exact = cut / minus(times(2.0, cut), 1.0) + over(1.0, torch.log1p(-cut) - torch.log(cut))
        x = minus(self.probs, 0.5)
        series = plus(0.5, plus(1.0 / 3.0, times(16.0 / 45.0, torch.pow(x, 2))) * x)
        return torch.where(self._is_apart(), exact, series)

    @formula
    def variance(self) -> Any:
        cut = self._cut()
        first = cut * minus(cut, 1.0) / torch.pow(minus(1.0, times(2.0, cut)), 2)
        exact = first + over(1.0, torch.pow(torch.log1p(-cut) - torch.log(cut), 2))
        x = torch.pow(minus(self.probs, 0.5), 2)
        series = minus(1.0 / 12.0, minus(1.0 / 15.0, times(128.0 / 945.0, x)) * x)
        return torch.where(self._is_apart(), exact, series)

    stddev = formula(lambda self: torch.sqrt(self.variance))

    def _drawn(self, sample_shape: Any) -> Any:
        return torch.rand(self.shape_of(sample_shape), dtype=self.probs.dtype)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(self._drawn(sample_shape))

    def log_density(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, value)
        density = -F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return density + self.log_norm()

    def cdf(self, value: Any) -> Any:
        self.check_value(value)
        cut = self._cut()
        both = torch.pow(cut, value) * torch.pow(minus(1.0, cut), minus(1.0, value))
        exact = minus(both + cut, 1.0) / minus(times(2.0, cut), 1.0)
        inner = torch.where(self._is_apart(), exact, value)
        inner = torch.where(torch.ge(value, 1.0), torch.ones_like(value), inner)
        return torch.where(torch.le(value, 0.0), torch.zeros_like(value), inner)

    def icdf(self, value: Any) -> Any:
        cut = self._cut()
        rest = torch.log1p(-cut)
        risen = torch.log1p(-cut + value * minus(times(2.0, cut), 1.0))
        exact = (risen - torch.log1p(-cut)) / (torch.log(cut) - rest)
        return torch.where(self._is_apart(), exact, value)

    def entropy(self) -> Any:
        zero, one = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (zero - one) - self.log_norm() - zero


# --- on a circle ----------------------------------------------------------------------------------


_BESSEL = {
    0: (
        (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
        (
            *(0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2),
            *(-0.2057706e-1, 0.2635537e-1, -0.1647633e-1, 0.392377e-2),
        ),
    ),
    1: (
        (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
        (
            *(0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1),
            *(0.2282967e-1, -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
        ),
    ),
}
"""The coefficients of the two series of the modified Bessel functions, by order: below and above
3.75 (Abramowitz and Stegun, 9.8.1 to 9.8.4).
"""


def _series(y: Any, coefficients: tuple[float, ...]) -> Any:
    total: Any = coefficients[-1]
    for each in coefficients[-2::-1]:
        total = plus(each, times(y, total))
    return total


def log_bessel(x: Any, order: int) -> Any:
    """The logarithm of the modified Bessel function of an order, 0 or 1, of positive numbers."""
    below, above = _BESSEL[order]
    y = over(x, 3.75)
    small = _series(y * y, below)
    if order == 1:
        small = methods.abs(x) * small
    large = x - times(0.5, methods.log(x)) + methods.log(_series(over(3.75, x), above))
    return torch.where(torch.lt(x, 3.75), methods.log(small), large)


class VonMises(Distribution):
    """Angles around `loc`, the closer the larger `concentration`.

    Draws are those of Best and Fisher's rejection, in double precision.
    """

    constraints: ClassVar[Constraints] = {"loc": REAL, "concentration": POSITIVE}
    support = REAL

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.set_up(validate_args, loc=loc, concentration=concentration)

    mean = formula(lambda self: self.loc)
    mode = mean
    computed: ClassVar[Formulas] = {}

    @formula
    def variance(self) -> Any:
        ratio = log_bessel(self.concentration, 1) - log_bessel(self.concentration, 0)
        return minus(1, methods.exp(ratio))

    def log_density(self, value: Any) -> Any:
        density = self.concentration * torch.cos(value - self.loc)
        return minus(density, math.log(2 * math.pi)) - log_bessel(self.concentration, 0)

    def _proposed(self, kappa: Any) -> Any:
        """What the proposals, of a wrapped Cauchy distribution, are made of."""
        tau = plus(1, methods.sqrt(plus(1, times(4, methods.pow(kappa, 2)))))
        rho = (tau - methods.sqrt(times(2, tau))) / times(2, kappa)
        ratio = plus(1, methods.pow(rho, 2)) / times(2, rho)
        return torch.where(torch.lt(kappa, 1e-5), over(1, kappa) + kappa, ratio)

    def sample(self, sample_shape: Any = ()) -> Any:
        with NoGrad():
            kappa = methods.to(self.concentration, dtypes.float64)
            loc, ratio = methods.to(self.loc, dtypes.float64), self._proposed(kappa)
            x = torch.zeros(self.shape_of(sample_shape), dtype=dtypes.float64)
            done = torch.zeros(x.shape, dtype=dtypes.boolean)
            while not methods.item(methods.all(done)):
                u1, u2, u3 = methods.unbind(torch.rand((3, *x.shape), dtype=dtypes.float64))
                z = torch.cos(times(math.pi, u1))
                f = plus(1, ratio * z) / (ratio + z)
                c = kappa * (ratio - f)
                quick = torch.gt(c * minus(2, c) - u2, 0)
                exact = torch.ge(minus(plus(methods.log(c / u2), 1), c), 0)
                accepted = torch.logical_or(quick, exact)
                angles = methods.sign(minus(u3, 0.5)) * methods.acos(f)
                x = torch.where(accepted, angles, x)
                done = torch.logical_or(done, accepted)
            turned = methods.remainder(plus(x, math.pi) + loc, 2 * math.pi)
            return methods.to(minus(turned, math.pi), self.loc.dtype)


# --- above a threshold ----------------------------------------------------------------------------


class GeneralizedPareto(Distribution):
    """What is above a threshold `loc`, with a tail that `concentration` says is heavy or short."""

    constraints: ClassVar[Constraints] = {"loc": REAL, "scale": POSITIVE, "concentration": REAL}
    language_attributes = Distribution.language_attributes | {"log_cdf", "log_survival_function"}
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.set_up(validate_args, loc=loc, scale=scale, concentration=concentration)

    def _safe(self) -> tuple[Any, Any]:
        """Where the concentration is zero, and the concentration with ones there."""
        concentration = self.concentration
        zero = torch.isclose(concentration, torch.zeros_like(concentration))
        return zero, torch.where(zero, torch.ones_like(concentration), concentration)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(torch.rand(self.shape_of(sample_shape), dtype=self.loc.dtype))

    def log_density(self, value: Any) -> Any:
        z = (value - self.loc) / self.scale
        zero, safe = self._safe()
        y = over(1, safe) + torch.ones_like(z)
        fallen = torch.where(torch.eq(y, 0), y, y * torch.log1p(safe * z))
        return -methods.log(self.scale) - torch.where(zero, z, fallen)

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the probability of what is larger."""
        self.check_value(value)
        z = (value - self.loc) / self.scale
        zero, safe = self._safe()
        return torch.where(zero, -z, -torch.log1p(safe * z) / safe)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the probability of what is no larger."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        zero, safe = self._safe()
        logs = torch.log1p(-value)
        curved = self.loc + self.scale / safe * torch.expm1(-safe * logs)
        return torch.where(zero, self.loc - self.scale * logs, curved)

    @formula
    def mean(self) -> Any:
        known = torch.lt(self.concentration, 1)
        safe = torch.where(known, self.concentration, 0.5)
        return torch.where(known, self.loc + self.scale / minus(1, safe), math.nan)

    mode = formula(lambda self: self.loc)

    @formula
    def variance(self) -> Any:
        known = torch.lt(self.concentration, 0.5)
        safe = torch.where(known, self.concentration, 0.25)
        below = methods.pow(minus(1, safe), 2) * minus(1, times(2, safe))
        return torch.where(known, methods.pow(self.scale, 2) / below, math.nan)

    def entropy(self) -> Any:
        return methods.expand(plus(torch.log(self.scale) + self.concentration, 1), self.batch_shape)

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        """From the threshold on, up to an end where the tail is short."""
        end = self.loc - self.scale / self.concentration
        return interval(self.loc, torch.where(torch.lt(self.concentration, 0), end, math.inf))


# --- shares ---------------------------------------------------------------------------------------


class LogisticNormal(TransformedDistribution):
    """Shares that break sticks as normal numbers say."""

    constraints: ClassVar[Constraints] = {"loc": REAL, "scale": POSITIVE}
    computed: ClassVar[Formulas] = read_from("base_dist.base_dist", "loc", "scale")
    support = SIMPLEX
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)
