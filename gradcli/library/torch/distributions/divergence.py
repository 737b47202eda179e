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
    T,
    call,
    minus,
    sum_rightmost,
    times,
)
from gradcli.library.torch.distributions.transformed import HalfNormal
from gradcli.library.torch.distributions.transforms import LogNormal
from gradcli.library.torch.distributions.unlike import UNLIKE
from gradcli.ops.binding.catalogue import modules

F = modules["torch.nn.functional"]


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
    ratio = call(p.scale / q.scale, "pow", 2)
    apart = call((p.loc - q.loc) / q.scale, "pow", 2)
    return times(0.5, minus(ratio + apart, 1) - T.log(ratio))


def _where(condition: Any, value: float, other: Any) -> Any:
    return call(other, "masked_fill", call(condition, "expand_as", other), value)


def _bernoulli(p: Any, q: Any) -> Any:
    softplus = F["softplus"]
    hits = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    hits = _where(T.eq(p.probs, 0), 0, _where(T.eq(q.probs, 0), math.inf, hits))
    misses = minus(1, p.probs) * (softplus(q.logits) - softplus(p.logits))
    misses = _where(T.eq(p.probs, 1), 0, _where(T.eq(q.probs, 1), math.inf, misses))
    return hits + misses


def _binomial(p: Any, q: Any) -> Any:
    return p.total_count * (p.probs * (p.logits - q.logits) + T.log1p(-p.probs) - T.log1p(-q.probs))


def _categorical(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits)
    each = _where(T.eq(p.probs, 0), 0, _where(T.eq(q.probs, 0), math.inf, each))
    return call(each, "sum", -1)


def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return minus(-T.log(ratio) + ratio, 1)


def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (T.log(p.rate) - T.log(q.rate)) - (p.rate - q.rate)


def _gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * T.log(p.rate / q.rate)
        + (T.lgamma(q.concentration) - T.lgamma(p.concentration))
        + (p.concentration - q.concentration) * T.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


def _beta(p: Any, q: Any) -> Any:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    gain = T.lgamma(q.concentration1) + T.lgamma(q.concentration0) + T.lgamma(total_p)
    loss = T.lgamma(p.concentration1) + T.lgamma(p.concentration0) + T.lgamma(total_q)
    return (
        gain
        - loss
        + (p.concentration1 - q.concentration1) * T.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * T.digamma(p.concentration0)
        + (total_q - total_p) * T.digamma(total_p)
    )


def _dirichlet(p: Any, q: Any) -> Any:
    total_p = call(p.concentration, "sum", -1)
    total_q = call(q.concentration, "sum", -1)
    parts = call(T.lgamma(p.concentration) - T.lgamma(q.concentration), "sum", -1)
    spread = T.digamma(p.concentration) - call(T.digamma(total_p), "unsqueeze", -1)
    moved = (p.concentration - q.concentration) * spread
    return T.lgamma(total_p) - T.lgamma(total_q) - parts + call(moved, "sum", -1)


def _laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    apart = T.abs(p.loc - q.loc)
    return minus(-T.log(ratio) + apart / q.scale + ratio * T.exp(-apart / p.scale), 1)


def _uniform(p: Any, q: Any) -> Any:
    found = T.log((q.high - q.low) / (p.high - p.low))
    outside = T.logical_or(T.gt(q.low, p.low), T.lt(q.high, p.high))
    return _where(outside, math.inf, found)


def _multivariate_normal(p: Any, q: Any) -> Any:
    count = p.event_shape[0]
    half = log_diagonal(q.factor) - log_diagonal(p.factor)
    batch = T.broadcast_shapes(q.factor.array.shape[:-2], p.factor.array.shape[:-2])
    wide = [call(each.factor, "expand", (*batch, count, count)) for each in (q, p)]
    solved = modules["torch.linalg"]["solve_triangular"](*wide, upper=False)
    flat = call(call(solved, "reshape", (-1, count * count)), "pow", 2)
    trace = call(call(flat, "sum", -1), "reshape", tuple(batch))
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
    Poisson: _poisson,
    Uniform: _uniform,
}
"""The formula for two distributions of one kind."""

TABLE["kl_divergence"] = modules["torch.distributions.kl"]["kl_divergence"] = kl_divergence
