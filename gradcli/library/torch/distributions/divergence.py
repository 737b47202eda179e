"""`kl_divergence`: how far one distribution is from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gradcli.errors import GradcliError, type_error, value_error
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import called
from gradcli.library.torch.distributions.bounded import ContinuousBernoulli
from gradcli.library.torch.distributions.distribution import (
    TABLE,
    Distribution,
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
from gradcli.library.torch.distributions.matrices import LowRankMultivariateNormal
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
from gradcli.state import active


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of `q` from `p`, for each of the batch.

    Raises E205 for two kinds of distributions that it has no formula for.
    """
    firsts, seconds = type(p).__mro__, type(q).__mro__
    known = {(kind, kind): formula for kind, formula in _FORMULAS.items()} | UNLIKE
    known |= active.state.library.get(_OWN, {})
    fitting = [kinds for kinds in known if kinds[0] in firsts and kinds[1] in seconds]
    if fitting:  # the most specific, that of the first distribution before that of the second
        kinds = min(fitting, key=lambda each: (firsts.index(each[0]), seconds.index(each[1])))
        return known[kinds](p, q)
    raise GradcliError(
        "E205",
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}",
    )


_OWN = "distributions.kl"


def register_kl(type_p: Any, type_q: Any) -> Any:
    """A decorator of the function that gives the divergence for two kinds of distributions."""
    kinds = tuple([getattr(each, "host", each) for each in (type_p, type_q)])
    for each in kinds:
        if not isinstance(each, type) or not issubclass(each, Distribution):
            raise type_error(f"Expected a Distribution subclass but got {display(each)}")

    def register(fun: Any) -> Any:
        active.state.library.setdefault(_OWN, {})[kinds] = fun
        return fun

    return called("register_kl", register)


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


def _squares(matrix: Any) -> Any:
    """The sums of the squares in each matrix of a batch."""
    flat = methods.reshape(matrix, (-1, matrix.shape[-1] * matrix.shape[-2]))
    return methods.reshape(methods.sum(methods.pow(flat, 2), -1), matrix.shape[:-2])


def _check_events(p: Any, q: Any, kinds: str) -> None:
    if p.event_shape != q.event_shape:
        gap = " " * 26
        raise value_error(
            f"KL-divergence between two {kinds} with{gap}different event shapes cannot be computed"
        )


def _low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q, "Low Rank Multivariate Normals")
    determinants = q.log_determinant() - p.log_determinant()
    distance = q.distance(q.loc - p.loc)
    over_diagonal = methods.transpose(q.factor, -2, -1) / methods.unsqueeze(q.diagonal, -2)
    solved = q.solved(over_diagonal)
    root = methods.unsqueeze(methods.rsqrt(q.diagonal), -1)
    traces = (
        methods.sum(p.diagonal / q.diagonal, -1)
        + _squares(p.factor * root)
        - _squares(solved * methods.unsqueeze(methods.sqrt(p.diagonal), -2))
        - _squares(torch.matmul(solved, p.factor))
    )
    return times(0.5, minus(determinants + traces + distance, p.event_shape[0]))


def _full_to_low_rank(p: Any, q: Any) -> Any:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    determinants = q.log_determinant() - times(2, log_diagonal(p.factor))
    distance = q.distance(q.loc - p.loc)
    over_diagonal = methods.transpose(q.factor, -2, -1) / methods.unsqueeze(q.diagonal, -2)
    solved = q.solved(over_diagonal)
    root = methods.unsqueeze(methods.rsqrt(q.diagonal), -1)
    traces = _squares(p.factor * root) - _squares(torch.matmul(solved, p.factor))
    return times(0.5, minus(determinants + traces + distance, p.event_shape[0]))


def _low_rank_to_full(p: Any, q: Any) -> Any:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    determinants = times(2, log_diagonal(q.factor)) - p.log_determinant()
    distance = mahalanobis(q.factor, q.loc - p.loc)
    size = p.event_shape[0]
    batch = torch.broadcast_shapes(q.factor.shape[:-2], p.factor.shape[:-2])
    factor = methods.expand(q.factor, (*batch, size, size))
    columns = methods.expand(p.factor, (*batch, size, p.factor.shape[-1]))
    diagonal = methods.diag_embed(methods.sqrt(p.diagonal))
    diagonal = methods.expand(diagonal, (*batch, size, size))
    traces = [
        _squares(linalg.solve_triangular(factor, each, upper=False)) for each in (columns, diagonal)
    ]
    return times(0.5, minus(determinants + (traces[0] + traces[1]) + distance, size))


def _continuous(p: Any, q: Any) -> Any:
    moved = p.mean * (p.logits - q.logits)
    own = p.log_norm() + torch.log1p(-p.probs)
    return moved + own + (-q.log_norm() - torch.log1p(-q.probs))


_FORMULAS: dict[type, Callable[[Any, Any], Any]] = {
    Bernoulli: _bernoulli,
    Beta: _beta,
    Binomial: _binomial,
    Categorical: _categorical,
    ContinuousBernoulli: _continuous,
    Dirichlet: _dirichlet,
    Exponential: _exponential,
    Gamma: _gamma,
    HalfNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    Independent: _independent,
    Laplace: _laplace,
    LogNormal: lambda p, q: _normal(p.base_dist, q.base_dist),
    LowRankMultivariateNormal: _low_rank,
    MultivariateNormal: _multivariate_normal,
    Normal: _normal,
    OneHotCategorical: lambda p, q: _categorical(p.categorical, q.categorical),
    Poisson: lambda p, q: p.rate * (torch.log(p.rate) - torch.log(q.rate)) - (p.rate - q.rate),
    Uniform: _uniform,
}
"""The formula for two distributions of one kind."""

for _function in (kl_divergence, register_kl):
    TABLE[_function.__name__] = _function
    modules["torch.distributions.kl"][_function.__name__] = _function


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


def _to_continuous(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q.log_norm()


def _uniform_continuous(p: Any, q: Any) -> Any:
    outside = torch.max(torch.ge(p.high, 1.0), torch.le(p.low, 0.0))
    divergence = _to_continuous(p, q)
    return torch.where(outside, times(torch.ones_like(divergence), math.inf), divergence)


def _continuous_normal(p: Any, q: Any) -> Any:
    constant = plus(math.log(2.0 * math.pi), methods.square(q.loc / q.scale))
    size = times(0.5, constant) + torch.log(q.scale)
    second = p.variance + methods.square(p.mean) - times(2.0, q.loc) * p.mean
    return -p.entropy() + size + second / times(2.0, methods.square(q.scale))


def _continuous_uniform(p: Any, q: Any) -> Any:
    divergence = -p.entropy() + methods.log(q.high - q.low)
    outside = torch.max(torch.ge(q.low, 0.0), torch.le(q.high, 1.0))
    return torch.where(outside, times(torch.ones_like(divergence), math.inf), divergence)


def _of_rate(p: Any, q: Any) -> Any:
    return _infinite(p.rate)


UNLIKE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {
    (Bernoulli, Poisson): lambda p, q: -p.entropy() - (p.probs * torch.log(q.rate) - q.rate),
    (Beta, Exponential): lambda p, q: -p.entropy() - torch.log(q.rate) + q.rate * _mean(p),
    (Beta, Gamma): _beta_gamma,
    (Beta, Normal): _beta_normal,
    (Beta, Pareto): lambda p, q: _infinite(p.concentration1),
    (Beta, Uniform): _beta_uniform,
    (Beta, ContinuousBernoulli): _to_continuous,
    (Cauchy, Cauchy): _cauchy,
    (ContinuousBernoulli, Exponential): lambda p, q: (
        -p.entropy() - torch.log(q.rate) + q.rate * p.mean
    ),
    (ContinuousBernoulli, Normal): _continuous_normal,
    (ContinuousBernoulli, Pareto): lambda p, q: _infinite(p.probs),
    (ContinuousBernoulli, Uniform): _continuous_uniform,
    **dict.fromkeys(
        [(Exponential, kind) for kind in (Beta, ContinuousBernoulli, Pareto, Uniform)], _of_rate
    ),
    (Exponential, Gamma): _exponential_gamma,
    (Exponential, Gumbel): _exponential_gumbel,
    (Exponential, Normal): _exponential_normal,
    **dict.fromkeys(
        [(Gamma, kind) for kind in (Beta, ContinuousBernoulli, Pareto, Uniform)],
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
    **dict.fromkeys(
        [(each, ContinuousBernoulli) for each in (Laplace, Normal)], lambda p, q: _infinite(p.loc)
    ),
    (Gumbel, Gumbel): _gumbel,
    (Gumbel, Normal): _gumbel_normal,
    (Laplace, Normal): _laplace_normal,
    (LowRankMultivariateNormal, MultivariateNormal): _low_rank_to_full,
    (MultivariateNormal, LowRankMultivariateNormal): _full_to_low_rank,
    (Normal, Gumbel): _normal_gumbel,
    (Normal, Laplace): _normal_laplace,
    (Pareto, Beta): lambda p, q: _infinite(p.scale),
    (Pareto, ContinuousBernoulli): lambda p, q: _infinite(p.scale),
    (Pareto, Exponential): _pareto_exponential,
    (Pareto, Gamma): _pareto_gamma,
    (Pareto, Normal): _pareto_normal,
    (Pareto, Pareto): _pareto,
    (Pareto, Uniform): lambda p, q: _infinite(p.scale),
    **dict.fromkeys([(Poisson, kind) for kind in (Bernoulli, Binomial)], _of_rate),
    (Uniform, Beta): _uniform_beta,
    (Uniform, ContinuousBernoulli): _uniform_continuous,
    (Uniform, Exponential): _uniform_exponential,
    (Uniform, Gamma): _uniform_gamma,
    (Uniform, Gumbel): _uniform_gumbel,
    (Uniform, Normal): _uniform_normal,
    (Uniform, Pareto): _uniform_pareto,
    (TransformedDistribution, TransformedDistribution): _transformed,
}  # fmt: skip
"""The formula for each two kinds, beside those of one kind that `divergence` has."""
