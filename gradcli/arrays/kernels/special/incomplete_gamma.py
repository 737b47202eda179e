"""The incomplete gamma functions: `gammainc`, the share of gamma(a) that lies below x, and
`gammaincc`, the share above.

Below a the share below is summed as a series, above a the share above is a continued fraction; for
an a so large that both would take long there is Temme's expansion around x = a (DLMF 8.11.4, 8.9.2,
8.12.8). Where a and x are small, a series gives the share above as well (DLMF 8.7.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.kernels.special.error_function import erfc
from gradcli.arrays.kernels.special.gamma import gammaln, stirling_series
from gradcli.arrays.kernels.special.pieces import ElementFunction, Quotient

_LONG = 1e4
"""From which a on there is Temme's expansion, within a tenth of a."""

_ENOUGH = 2000
"""Terms after which a series ends in any case; near a = x = 10,000 it takes 900."""

_EPS = 2.0**-54

_EXCESS = Quotient(
    (
        0.3333333333333333, 1.1115762650511816, 1.4546609816794025, 0.9432595839588481,
        0.31366411723444276, 0.049353143096481616, 0.0027547804914554042, 1.0796281985568481e-07,
    ),
    (
        1.0, 4.084728795153545, 6.827529541403366, 5.999588630836945, 2.957959068994346,
        0.8049422681688516, 0.10934579229983343, 0.005518884325667401,
    ),
)  # fmt: skip
"""(1/2 - (m - log(1 + m)) / m²) / m, for m from -0.4 to 0.6: m - log(1 + m) within 2.1e-16."""

_TEMME = tuple(
    Quotient(coefficients)
    for coefficients in (
        (
            -0.3333333333333333, 0.08333333333333333, -0.014814814814814815,
            0.0011574074074074073, 0.0003527336860670194, -0.0001787551440329218,
            3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06,
            8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
        ),
        (
            -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454,
            -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07,
            -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
            4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
        ),
        (
            0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049,
            2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
            -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06,
            -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10,
        ),
        (
            0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557,
            0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07,
            1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06,
            -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08,
        ),
    )
)  # fmt: skip
"""The functions of η in Temme's expansion, by their series at 0."""


def _excess(a: Any, x: Any) -> Any:
    """m - log(1 + m) where x is (1 + m) a, exact near a too."""
    m = (x - a) / a
    near = np.clip(m, -0.4, 0.6)
    return np.where(near == m, m * m * (0.5 - m * _EXCESS(near)), m - np.log(x / a))


def _density(a: Any, x: Any) -> Any:
    """x^a exp(-x) / gamma(a + 1)."""
    large = np.maximum(a, 10.0)
    of_large = np.exp(-large * _excess(large, x) - stirling_series(large))
    of_large = of_large / np.sqrt(2 * math.pi * large)
    small = np.minimum(a, 10.0)
    return np.where(a < 10, x**small * np.exp(-x) / np.exp(gammaln(small + 1)), of_large)


# --- the regions ----------------------------------------------------------------------------------
#
# Each function gives the shares below and above.


def _settled(step: Callable[..., tuple[Any, ...]], *state: Any) -> Any:
    """What an iteration comes to, for each element as soon as it stays.

    Args:
        step: the next state from its number and the state, whose last two arrays are the value and
            how far it moved, as a share.
    """
    values, places = np.empty_like(state[0]), np.arange(state[0].size)
    for number in range(1, _ENOUGH):
        state = step(number, *state)
        if number % _LOOKS:
            continue
        moves = state[-1] > _EPS
        done = places[~moves]
        if done.size:
            values[done] = state[-2][~moves]
            places, state = places[moves], tuple(each[moves] for each in state)
            if not places.size:
                return values
    values[places] = state[-2]
    return values


_LOOKS = 8
"""Steps between two looks at what has settled."""


def _by_series(a: Any, x: Any) -> tuple[Any, Any]:
    def step(k: int, a: Any, x: Any, term: Any, total: Any, _: Any) -> tuple[Any, ...]:
        term = term * (x / (a + k))
        total = total + term
        return a, x, term, total, term / total

    one = np.ones_like(a)
    below = _settled(step, a, x, one, one, one) * _density(a, x)
    return below, 1 - below


def _by_fraction(a: Any, x: Any) -> tuple[Any, Any]:
    """By Lentz's way of computing a continued fraction."""

    def step(k: int, a: Any, b: Any, c: Any, d: Any, value: Any, _: Any) -> tuple[Any, ...]:
        factor = k * (a - k)
        b = b + 2
        d = 1 / _not_zero(factor * d + b)
        c = _not_zero(b + factor / c)
        return a, b, c, d, value * (c * d), np.abs(c * d - 1)

    b = x + 1 - a
    above = _settled(step, a, b, np.full_like(a, 1e300), 1 / b, 1 / b, b) * _density(a, x) * a
    return 1 - above, above


def _not_zero(x: Any) -> Any:
    return np.where(np.abs(x) < 1e-300, 1e-300, x)


def _small(a: Any, x: Any) -> tuple[Any, Any]:
    """For a below 1 and x up to 1.1."""
    exponent = a * np.log(x) - gammaln(1 + a)
    term, total = np.ones_like(a), np.zeros_like(a)
    for k in range(1, 30):
        term = term * (-x / k)
        total = total + term / (a + k)
    above = -np.expm1(exponent) - np.exp(exponent) * a * total
    return np.exp(exponent) * (1 + a * total), above


def _by_temme(a: Any, x: Any) -> tuple[Any, Any]:
    half_square = _excess(a, x)
    eta = np.copysign(np.sqrt(2 * half_square), x - a)
    sums = _TEMME[-1](eta)
    for each in _TEMME[-2::-1]:
        sums = sums / a + each(eta)
    rest = np.exp(-a * half_square) / np.sqrt(2 * math.pi * a) * sums
    root = np.sqrt(a / 2)
    return erfc(-eta * root) / 2 - rest, erfc(eta * root) / 2 + rest


def _shares(a: Any, x: Any, number: int) -> Any:
    if type(a) is not np.ndarray:
        return _shares(np.array([a]), np.array([x]), number)[0]
    near = (a >= _LONG) & (np.abs(x - a) <= 0.1 * a)
    small = (x <= 1.1) & (a < 1)
    far = (x > 1.1) & (x > a)
    values = np.full(a.shape, math.nan)
    remaining = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    regions: tuple[tuple[Any, Callable[[Any, Any], tuple[Any, Any]]], ...] = (
        (near, _by_temme),
        (small, _small),
        (far, _by_fraction),
        (np.True_, _by_series),
    )
    for region, compute in regions:
        chosen = np.flatnonzero(remaining & region)
        remaining = remaining & ~region
        if chosen.size:
            values[chosen] = compute(a[chosen], x[chosen])[number]
    # Nothing lies below 0, and all of it below infinity; gamma(0) lies at 0, gamma(inf) beyond.
    none = ((a > 0) & (x == 0)) | ((a == math.inf) & (x >= 0) & (x < math.inf))
    whole = ((a == 0) & (x > 0)) | ((a >= 0) & (a < math.inf) & (x == math.inf))
    return np.where(none, float(number), np.where(whole, 1.0 - number, values))


gammainc = ElementFunction("gammainc", lambda a, x: _shares(a, x, 0), operands=2)
gammaincc = ElementFunction("gammaincc", lambda a, x: _shares(a, x, 1), operands=2)
