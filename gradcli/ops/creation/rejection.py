"""Numbers that are drawn until one is accepted: `poisson binomial`, and those of the gamma
distribution. Each takes the draws that PyTorch takes on the CPU, in its order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.random.generator import Generator
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error
from gradcli.ops.binding.catalogue import function
from gradcli.ops.creation.random import generator_of
from gradcli.ops.definition.doc import RANDOM
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype
from gradcli.state import charge_steps, look


def _uniform(generator: Generator) -> float:
    return float(generator.uniform(1, np.float64)[0])


def _each(
    name: str, draw: Callable[..., float], generator: Any, tensors: tuple[Tensor, ...], dtype: Any
) -> Any:
    """One number for each element, in row order."""
    if any(tensor.device.type != "cpu" for tensor in tensors):
        raise GradcliError("E205", f"{name}() draws on the CPU only", help="move it: `x.cpu()`")
    for tensor in tensors:
        check_dtype(name, tensor.dtype, COMPLEX)
    arrays = np.broadcast_arrays(*[np.asarray(tensor.array, np.float64) for tensor in tensors])
    charge_steps(arrays[0].size)
    source = generator_of(generator)
    rows = zip(*[array.ravel().tolist() for array in arrays], strict=True)
    drawn = np.array([draw(source, *row) for row in rows], np.float64)
    return drawn.reshape(arrays[0].shape).astype(dtype)[()]


# --- gamma ----------------------------------------------------------------------------------------

_THIRD, _SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))


def _gamma(source: Generator, alpha: float) -> float:
    """Marsaglia and Tsang's method; a power of a uniform number lifts alpha above 1."""
    if not 0 < alpha < math.inf:
        return alpha if alpha == 0 else math.nan
    scale = 1.0
    if alpha < 1:
        scale = (1 - _uniform(source)) ** (1 / alpha)
        alpha += 1
    d = alpha - _THIRD
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = float(source.normal(1, np.dtype(np.float64))[0])
            y = 1 + c * x
        v = y * y * y
        u = 1 - _uniform(source)
        square = x * x
        if u < 1 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v


def standard_gamma(concentration: Tensor, exact: bool = False) -> Any:
    """An array of gamma distributed numbers of rate 1, float64 where `exact`."""
    kind = np.float64 if exact else concentration.array.dtype
    return _each("gamma", _gamma, None, (concentration,), kind)


# --- counts ---------------------------------------------------------------------------------------


def _poisson(source: Generator, rate: float) -> float:
    if rate == 0:
        return 0.0
    if rate < 10:
        limit, product, count = math.exp(-rate), 1.0, 0
        while (product := product * _uniform(source)) > limit:
            count += 1
        return float(count)
    return _poisson_large(source, rate)


def _poisson_large(source: Generator, rate: float) -> float:
    """Hörmann's transformed rejection (PTRS)."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = _uniform(source) - 0.5, _uniform(source)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= squeeze:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        height = math.log(v) + math.log(inverse) - math.log(a / (us * us) + b)
        if height <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return float(k)


def _binomial(source: Generator, count: float, prob: float) -> float:
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return count
    few = min(prob, 1 - prob)
    drawn = (_binomial_large if count * few >= 10 else _binomial_small)(source, count, few)
    return drawn if prob <= 0.5 else count - drawn


def _binomial_small(source: Generator, count: float, prob: float) -> float:
    """Geometric gaps between successes."""
    reached, successes, log_failure = 0.0, 0, math.log1p(-prob)
    while True:
        u = _uniform(source)
        reached += math.ceil(math.log(u) / log_failure) if u > 0 else math.inf
        if reached > count:
            return float(successes)
        successes += 1


def _stirling_tail(k: float) -> float:
    return math.lgamma(k + 1) - (
        (k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi)
    )


def _binomial_large(source: Generator, count: float, prob: float) -> float:
    """Hörmann's transformed rejection (BTRS)."""
    deviation = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c, squeeze, r = count * prob + 0.5, 0.92 - 4.2 / b, prob / (1 - prob)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * prob)
    while True:
        u, v = _uniform(source) - 0.5, _uniform(source)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= squeeze:
            return float(k)
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(r * (count - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


@function("poisson", effects=(RANDOM,))
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Counts of a Poisson distribution, each element the rate of one.

    Raises E204 for negative rates.
    """
    if not np.all(input.array >= 0):
        raise runtime_error("invalid Poisson rate, expected rate to be non-negative")
    return Tensor(_each("poisson", _poisson, generator, (input,), input.array.dtype))


@function("binomial", effects=(RANDOM,))
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Counts of successes in `count` trials of probability `prob`.

    Example: torch.binomial(tensor([5., 9.]), tensor([0.5, 0.2]))
    """
    look(None, count.array, prob.array)
    return Tensor(_each("binomial", _binomial, generator, (count, prob), prob.array.dtype))
