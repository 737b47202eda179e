"""`kl_divergence`: how far one distribution is from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError
from gradcli.library.torch.distributions.distribution import (
    TABLE,
    Independent,
    minus,
    over,
    plus,
    sum_rightmost,
    times,
)
from gradcli.library.torch.distributions.elementary import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Cauchy,
    Dirichlet,
    Exponential,
    Gamma,
    Geometric,
    Laplace,
    MultivariateNormal,
    Normal,
    OneHotCategorical,
    Poisson,
    Uniform,
    log_diagonal,
    mahalanobis,
)
from gradcli.library.torch.distributions.transformed import (
    Gumbel,
    HalfNormal,
    LogNormal,
    Pareto,
    TransformedDistribution,
    are_alike,
)
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
    if methods.item(methods.any(torch.lt(p.total_count, q.total_count))):
        raise GradcliError(
            "E205",
            "KL between Binomials where q.total_count > p.total_count is not implemented",
        )
    divergence = p.total_count * (
        p.probs * (p.logits - q.logits) + torch.log1p(-p.probs) - torch.log1p(-q.probs)
    )
    return _infinite_where(torch.gt(p.total_count, q.total_count), divergence)


def _transformed(p: Any, q: Any) -> Any:
    """That of the distributions to which the same transforms are applied."""
    if p.event_shape != q.event_shape or not are_alike(p.transforms, q.transforms):
        raise GradcliError("E205", "No KL(p || q) is implemented for different transforms")
    return kl_divergence(p.base_dist, q.base_dist)


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


# --- distributions of two kinds -------------------------------------------------------------------


_EULER = 0.57721566490153286060


def _square(value: Any) -> Any:
    return methods.pow(value, 2)


def _infinite_where(condition: Any, value: Any) -> Any:
    return methods.masked_fill(value, methods.expand_as(condition, value), math.inf)


def _infinite(value: Any) -> Any:
    return torch.full_like(value, math.inf)


def _x_log_x(value: Any) -> Any:
    return torch.xlogy(value, value)


def _cauchy(p: Any, q: Any) -> Any:
    apart = _square(p.scale + q.scale) + _square(p.loc - q.loc)
    return torch.log(apart) - torch.log(times(4, p.scale * q.scale))


def _gumbel(p: Any, q: Any) -> Any:
    ratio, after, before = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    moved = torch.exp(after + torch.lgamma(plus(1, ratio)) - before)
    return minus(-torch.log(ratio) - after + before + times(ratio, _EULER) + moved, 1 + _EULER)


def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    divergence = minus(q.alpha * torch.log(p.scale / q.scale) - torch.log(ratio) + ratio, 1)
    return _infinite_where(torch.lt(p.scale, q.scale), divergence)


def _mean(p: Any) -> Any:
    """The mean of a beta distribution."""
    return p.concentration1 / (p.concentration1 + p.concentration0)


def _beta_gamma(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    size = torch.lgamma(q.concentration) - q.concentration * torch.log(q.rate)
    slope = minus(q.concentration, 1) * (torch.digamma(p.concentration1) - torch.digamma(total))
    return -p.entropy() + size - slope + q.rate * p.concentration1 / total


def _beta_normal(p: Any, q: Any) -> Any:
    mean, variance = _mean(p), _square(q.scale)
    total = plus(p.concentration1 + p.concentration0, 1)
    second = times(mean * minus(1, mean) / total + _square(mean), 0.5)
    apart = second - q.loc * mean + times(_square(q.loc), 0.5)
    return -p.entropy() + times(0.5, torch.log(times(variance, 2 * math.pi))) + apart / variance


def _beta_uniform(p: Any, q: Any) -> Any:
    divergence = -p.entropy() + torch.log(q.high - q.low)
    return _infinite_where(torch.logical_or(torch.gt(q.low, 0), torch.lt(q.high, 1)), divergence)


def _uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    upper = _x_log_x(p.high) - _x_log_x(p.low) - width
    lower = _x_log_x(minus(1, p.high)) - _x_log_x(minus(1, p.low)) + width
    first = minus(q.concentration1, 1) * upper / width
    second = minus(q.concentration0, 1) * lower / width
    size = torch.lgamma(q.concentration1) + torch.lgamma(q.concentration0)
    size = size - torch.lgamma(q.concentration1 + q.concentration0)
    outside = torch.logical_or(torch.gt(p.high, 1), torch.lt(p.low, 0))
    return _infinite_where(outside, second + size - torch.log(width) - first)


def _uniform_exponential(p: Any, q: Any) -> Any:
    mean = over(q.rate * (p.high + p.low), 2)
    return _infinite_where(torch.lt(p.low, 0), mean - torch.log((p.high - p.low) * q.rate))


def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    size = torch.log(times(math.sqrt(math.pi * 2), q.scale) / width)
    apart = _square(over(p.high + p.low - times(2, q.loc), 2))
    return size + times(0.5, over(_square(width), 12) + apart) / _square(q.scale)


def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    expected = -q.concentration * torch.log(ratio) + ratio + torch.lgamma(q.concentration)
    return minus(expected + times(q.concentration, _EULER), 1 + _EULER)


def _exponential_normal(p: Any, q: Any) -> Any:
    variance, rate = _square(q.scale), _square(p.rate)
    size = times(0.5, torch.log(times(rate * variance, 2 * math.pi)))
    apart = over(1, rate) - q.loc / p.rate + times(_square(q.loc), 0.5)
    return minus(size, 1) + apart / variance


def _exponential_gumbel(p: Any, q: Any) -> Any:
    product, moved = p.rate * q.scale, q.loc / q.scale
    tail = torch.exp(moved) * product / plus(product, 1)
    return minus(torch.log(product), 1) - moved + tail + over(1, product)


def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log(q.rate) + q.rate * p.concentration / p.rate


def _gamma_normal(p: Any, q: Any) -> Any:
    variance, rate, shape = _square(q.scale), _square(p.rate), p.concentration
    size = times(0.5, torch.log(times(rate * variance, 2 * math.pi))) - shape - torch.lgamma(shape)
    second = times(0.5, _square(shape) + shape) / rate
    apart = second - q.loc * shape / p.rate + times(0.5, _square(q.loc))
    return size + minus(shape, 1) * torch.digamma(shape) + apart / variance


def _gamma_gumbel(p: Any, q: Any) -> Any:
    product, moved, shape = p.rate * q.scale, q.loc / q.scale, p.concentration
    size = minus(shape, 1) * torch.digamma(shape) - torch.lgamma(shape) - shape
    tail = torch.exp(moved) * methods.pow(plus(1, over(1, product)), -shape)
    return size + torch.log(product) + shape / product + tail - moved


def _gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    size = torch.log(over(ratio, math.sqrt(2 * math.pi)))
    spread = over(_square(times(ratio, math.pi * 0.5)), 3)
    apart = times(_square((p.loc + times(p.scale, _EULER) - q.loc) / q.scale), 0.5)
    return minus(-size + spread + apart, _EULER + 1)


def _laplace_normal(p: Any, q: Any) -> Any:
    variance = _square(q.scale)
    ratio = _square(p.scale) / variance
    size = times(0.5, torch.log(over(times(2, ratio), math.pi)))
    apart = times(0.5, _square(p.loc)) - p.loc * q.loc + times(0.5, _square(q.loc))
    return minus(-size + ratio + apart / variance, 1)


def _normal_gumbel(p: Any, q: Any) -> Any:
    mean, moved = p.loc / q.scale, q.loc / q.scale
    spread = _square(p.scale / q.scale)
    tail = torch.exp(-mean + times(0.5, spread) + moved)
    divergence = -times(torch.log(spread), 0.5) + (mean - moved) + tail
    return minus(divergence, 0.5 * (1 + math.log(2 * math.pi)))


def _normal_laplace(p: Any, q: Any) -> Any:
    apart = p.loc - q.loc
    steps = apart / p.scale
    bell = times(math.sqrt(2 / math.pi), p.scale) * torch.exp(times(-0.5, _square(steps)))
    rest = apart * torch.erf(times(math.sqrt(0.5), steps))
    divergence = -torch.log(p.scale / q.scale) + (bell + rest) / q.scale
    return minus(divergence, 0.5 * (1 + math.log(0.5 * math.pi)))


def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    divergence = torch.log(p.alpha / product) - over(1, p.alpha)
    divergence = minus(divergence + p.alpha * product / minus(p.alpha, 1), 1)
    return _infinite_where(torch.le(p.alpha, 1), divergence)


def _pareto_gamma(p: Any, q: Any) -> Any:
    mean_log = over(1, p.alpha) + torch.log(p.scale)
    size = torch.lgamma(q.concentration) - q.concentration * torch.log(q.rate)
    rest = q.rate * p.alpha * p.scale / minus(p.alpha, 1)
    divergence = torch.log(p.alpha) - mean_log + size + minus(1, q.concentration) * mean_log
    return _infinite_where(torch.le(p.alpha, 1), minus(divergence + rest, 1))


def _pareto_normal(p: Any, q: Any) -> Any:
    step = p.scale / minus(p.alpha, 1)
    size = torch.log(times(math.sqrt(2 * math.pi), q.scale) * p.alpha / p.scale)
    spread = p.alpha * _square(step) / minus(p.alpha, 2) + _square(p.alpha * step - q.loc)
    divergence = size - over(1, p.alpha) + spread / times(2, _square(q.scale))
    return _infinite_where(torch.le(p.alpha, 2), minus(divergence, 1))


def _mean_log(p: Any) -> Any:
    """The mean of the logarithm under a uniform distribution."""
    width = p.high - p.low
    return (_x_log_x(p.high) - _x_log_x(p.low) - width) / width


def _uniform_gamma(p: Any, q: Any) -> Any:
    size = torch.lgamma(q.concentration) - q.concentration * torch.log(q.rate)
    divergence = -torch.log(p.high - p.low) + size + minus(1, q.concentration) * _mean_log(p)
    return _infinite_where(torch.lt(p.low, 0), divergence + over(q.rate * (p.high + p.low), 2))


def _uniform_gumbel(p: Any, q: Any) -> Any:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return torch.log(ratio) + times(0.5, high + low) - ratio * (torch.exp(-high) - torch.exp(-low))


def _uniform_pareto(p: Any, q: Any) -> Any:
    size = torch.log(q.alpha * methods.pow(q.scale, q.alpha) * (p.high - p.low))
    return _infinite_where(torch.lt(p.low, q.scale), _mean_log(p) * plus(q.alpha, 1) - size)


def _of_rate(p: Any, q: Any) -> Any:
    return _infinite(p.rate)


UNLIKE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {
    (Bernoulli, Poisson): lambda p, q: -p.entropy() - (p.probs * torch.log(q.rate) - q.rate),
    (Beta, Exponential): lambda p, q: -p.entropy() - torch.log(q.rate) + q.rate * _mean(p),
    (Beta, Gamma): _beta_gamma,
    (Beta, Normal): _beta_normal,
    (Beta, Pareto): lambda p, q: _infinite(p.concentration1),
    (Beta, Uniform): _beta_uniform,
    (Cauchy, Cauchy): _cauchy,
    **dict.fromkeys([(Exponential, kind) for kind in (Beta, Pareto, Uniform)], _of_rate),
    (Exponential, Gamma): _exponential_gamma,
    (Exponential, Gumbel): _exponential_gumbel,
    (Exponential, Normal): _exponential_normal,
    **dict.fromkeys(
        [(Gamma, kind) for kind in (Beta, Pareto, Uniform)],
        lambda p, q: _infinite(p.concentration),
    ),
    (Gamma, Exponential): _gamma_exponential,
    (Gamma, Gumbel): _gamma_gumbel,
    (Gamma, Normal): _gamma_normal,
    (Geometric, Geometric): lambda p, q: -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits,
    **dict.fromkeys(
        [(each, kind) for each in (Gumbel, Laplace, Normal)
         for kind in (Beta, Exponential, Gamma, Pareto, Uniform)],
        lambda p, q: _infinite(p.loc),
    ),
    (Gumbel, Gumbel): _gumbel,
    (Gumbel, Normal): _gumbel_normal,
    (Laplace, Normal): _laplace_normal,
    (Normal, Gumbel): _normal_gumbel,
    (Normal, Laplace): _normal_laplace,
    (Pareto, Beta): lambda p, q: _infinite(p.scale),
    (Pareto, Exponential): _pareto_exponential,
    (Pareto, Gamma): _pareto_gamma,
    (Pareto, Normal): _pareto_normal,
    (Pareto, Pareto): _pareto,
    (Pareto, Uniform): lambda p, q: _infinite(p.scale),
    **dict.fromkeys([(Poisson, kind) for kind in (Bernoulli, Binomial)], _of_rate),
    (Uniform, Beta): _uniform_beta,
    (Uniform, Exponential): _uniform_exponential,
    (Uniform, Gamma): _uniform_gamma,
    (Uniform, Gumbel): _uniform_gumbel,
    (Uniform, Normal): _uniform_normal,
    (Uniform, Pareto): _uniform_pareto,
    (TransformedDistribution, TransformedDistribution): _transformed,
}  # fmt: skip
"""The formula for each two kinds, beside those of one kind that `divergence` has."""
