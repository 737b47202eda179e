"""`kl_divergence`: how far one distribution is from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError
from gradcli.library.torch.distributions.continuous import (
    Beta,
    Dirichlet,
    Exponential,
    Gamma,
    Laplace,
    MultivariateNormal,
    Normal,
    Uniform,
    log_diagonal,
    mahalanobis,
)
from gradcli.library.torch.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    OneHotCategorical,
    Poisson,
)
from gradcli.library.torch.distributions.distribution import (
    TABLE,
    Independent,
    minus,
    sum_rightmost,
    times,
)
from gradcli.library.torch.distributions.transformed import HalfNormal
from gradcli.library.torch.distributions.transforms import LogNormal
from gradcli.library.torch.distributions.unlike import UNLIKE
from gradcli.ops.binding.catalogue import modules
from gradcli.ops.binding.functions import F, linalg, methods, torch


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of `q` from `p`, for each of the batch.

    Raises E205 for two kinds of distributions that it has no formula for.
    """
    for kinds, formula in _FORMULAS.items():
        if isinstance(p, kinds) and isinstance(q, kinds):
            return formula(p, q)
    for (first, second), formula in UNLIKE.items():
        if isinstance(p, first) and isinstance(q, second):
            return formula(p, q)
    raise GradcliError(
        "E205",
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}",
    )


def _normal(p: Any, q: Any) -> Any:
    ratio = methods.pow(p.scale / q.scale, 2)
    apart = methods.pow((p.loc - q.loc) / q.scale, 2)
    return times(0.5, minus(ratio + apart, 1) - torch.log(ratio))


def _where(condition: Any, value: float, other: Any) -> Any:
    return methods.masked_fill(other, methods.expand_as(condition, other), value)


def _bernoulli(p: Any, q: Any) -> Any:
    softplus = F.softplus
    hits = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    hits = _where(torch.eq(p.probs, 0), 0, _where(torch.eq(q.probs, 0), math.inf, hits))
    misses = minus(1, p.probs) * (softplus(q.logits) - softplus(p.logits))
    misses = _where(torch.eq(p.probs, 1), 0, _where(torch.eq(q.probs, 1), math.inf, misses))
    return hits + misses


def _binomial(p: Any, q: Any) -> Any:
    return p.total_count * (
        p.probs * (p.logits - q.logits) + torch.log1p(-p.probs) - torch.log1p(-q.probs)
    )


def _categorical(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits)
    each = _where(torch.eq(p.probs, 0), 0, _where(torch.eq(q.probs, 0), math.inf, each))
    return methods.sum(each, -1)


def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return minus(-torch.log(ratio) + ratio, 1)


def _gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * torch.log(p.rate / q.rate)
        + (torch.lgamma(q.concentration) - torch.lgamma(p.concentration))
        + (p.concentration - q.concentration) * torch.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


def _beta(p: Any, q: Any) -> Any:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    gain = torch.lgamma(q.concentration1) + torch.lgamma(q.concentration0) + torch.lgamma(total_p)
    loss = torch.lgamma(p.concentration1) + torch.lgamma(p.concentration0) + torch.lgamma(total_q)
    return (
        gain
        - loss
        + (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
        + (total_q - total_p) * torch.digamma(total_p)
    )


def _dirichlet(p: Any, q: Any) -> Any:
    total_p = methods.sum(p.concentration, -1)
    total_q = methods.sum(q.concentration, -1)
    parts = methods.sum(torch.lgamma(p.concentration) - torch.lgamma(q.concentration), -1)
    spread = torch.digamma(p.concentration) - methods.unsqueeze(torch.digamma(total_p), -1)
    moved = (p.concentration - q.concentration) * spread
    return torch.lgamma(total_p) - torch.lgamma(total_q) - parts + methods.sum(moved, -1)


def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    apart = torch.abs(p.loc - q.loc)
    return minus(-torch.log(ratio) + apart / q.scale + ratio * torch.exp(-apart / p.scale), 1)


def _uniform(p: Any, q: Any) -> Any:
    divergence = torch.log((q.high - q.low) / (p.high - p.low))
    outside = torch.logical_or(torch.gt(q.low, p.low), torch.lt(q.high, p.high))
    return _where(outside, math.inf, divergence)


def _multivariate_normal(p: Any, q: Any) -> Any:
    count = p.event_shape[0]
    half = log_diagonal(q.factor) - log_diagonal(p.factor)
    batch = torch.broadcast_shapes(q.factor.array.shape[:-2], p.factor.array.shape[:-2])
    wide = [methods.expand(each.factor, (*batch, count, count)) for each in (q, p)]
    solved = linalg.solve_triangular(*wide, upper=False)
    flat = methods.pow(methods.reshape(solved, (-1, count * count)), 2)
    trace = methods.reshape(methods.sum(flat, -1), tuple(batch))
    distance = mahalanobis(q.factor, q.loc - p.loc)
    return half + times(0.5, minus(trace + distance, count))


def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise GradcliError("E205", "the events are of different dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


_FORMULAS: dict[type, Callable[[Any, Any], Any]] = {
    Bernoulli: _bernoulli,
    Beta: _beta,
    Binomial: _binomial,
    Categorical: _categorical,
    Dirichlet: _dirichlet,
    Exponential: _exponential,
    Gamma: _gamma,
    HalfNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    Independent: _independent,
    Laplace: _laplace,
    LogNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    MultivariateNormal: _multivariate_normal,
    Normal: _normal,
    OneHotCategorical: lambda p, q: _categorical(p.categorical, q.categorical),
    Poisson: lambda p, q: p.rate * (torch.log(p.rate) - torch.log(q.rate)) - (p.rate - q.rate),
    Uniform: _uniform,
}
"""The formula for two distributions of one kind."""

TABLE["kl_divergence"] = modules["torch.distributions.kl"]["kl_divergence"] = kl_divergence
