"""Distributions with heavy tails: `StudentT FisherSnedecor`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from gradcli.library.torch.distributions.constraints import POSITIVE, REAL, Constraints
from gradcli.library.torch.distributions.continuous import Chi2, Gamma, standard_normal
from gradcli.library.torch.distributions.distribution import (
    Distribution,
    formula,
    minus,
    plus,
    times,
)
from gradcli.ops.binding.functions import methods, torch


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
