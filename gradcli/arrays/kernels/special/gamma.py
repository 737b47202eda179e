"""The gamma function's relatives: `gammaln psi zeta`.

From 8 up the first two are Stirling's series, from 0 to 8 quotients of polynomials, below 0 they
are reflected. The zeta function is summed by Euler and Maclaurin's formula (DLMF 5.11, 5.5, 25.11).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.kernels.special.pieces import ElementFunction, Quotient, in_pieces

_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
"""Bernoulli's numbers from the second on, those that are not 0."""


def _from_integer(x: Any) -> Any:
    """How far a number is from the nearest integer, exactly."""
    return x - np.rint(x)


# --- the logarithm ------------------------------------------------------------------------------

_LOG_NEAR = Quotient(
    (
        0.5772156649015329, 2.096382254425684, 3.086174211775583, 2.368781726595162,
        1.016114365780546, 0.24275306537425273, 0.030381813226669788, 0.0017278934756252459,
        3.202483161939001e-05, 4.000458757985927e-08,
    ),
    (
        1.0, 4.056774209944082, 6.801044412675819, 6.100548221006481, 3.1704810651882296,
        0.9672740591098087, 0.1678259533064295, 0.015259468310006344, 0.0006150908101049531,
        7.396026627111379e-06,
    ),
)  # fmt: skip
"""log(gamma(1 + z)) / (z (z - 1)), for z from -0.2 to 2, within 4e-17."""

_LOG_MIDDLE = Quotient(
    (
        0.6931471805599453, 1.6320110548537723, 1.423619925531502, 0.6068836793693172,
        0.1379627215440057, 0.01685269163832814, 0.0010458701204505798, 2.8508459020662262e-05,
        2.365125538789178e-07,
    ),
    (
        1.0, 1.0231978714569236, 0.40678507037003614, 0.0795596899625723, 0.00800020978813803,
        0.00039402655260299425, 8.126501478174251e-06, 4.5488765527882823e-08,
        -2.3917808078553147e-11,
    ),
)  # fmt: skip
"""log(gamma(3 + z)), for z from 0 to 5, within 4e-17."""

_LOG_SERIES = Quotient(
    [number / ((2 * k + 2) * (2 * k + 1)) for k, number in enumerate(_BERNOULLI[:10])]
)
"""x times the sum of Stirling's series, by 1 / x²."""


def stirling_series(x: Any) -> Any:
    """What log(gamma(x)) is more than (x - 1/2) log(x) - x + log(2 pi) / 2, for x from 8 up."""
    return _LOG_SERIES(1 / (x * x)) / x


def _log_above(x: Any) -> Any:
    rest = stirling_series(x) + (0.5 * math.log(2 * math.pi) - 0.5)
    return (x - 0.5) * (np.log(x) - 1) + rest


def _log_below(x: Any) -> Any:
    sine = np.abs(np.sin(math.pi * _from_integer(x)))
    return np.log(math.pi / sine) - _gammaln(1 - x)


_gammaln = in_pieces(
    (-(2.0**52), lambda x: x * -math.inf),  # all are integers, where it is infinite
    (0.0, _log_below),
    (0.8, lambda x: x * (x - 1) * _LOG_NEAR(x) - np.log(x)),
    (3.0, lambda x: (x - 1) * (x - 2) * _LOG_NEAR(x - 1)),
    (8.0, lambda x: _LOG_MIDDLE(x - 3)),
    (math.inf, _log_above),
)

gammaln = ElementFunction("gammaln", _gammaln, in_c="lgamma_wide")

# --- its derivative -----------------------------------------------------------------------------

_ROOT = (0.46163214496836236, -1.5522348162858677e-17)
"""Where psi(1 + z) is 0, in two parts."""

_PSI_NEAR = Quotient(
    (
        1.2503801375034054, 1.8675925104074453, 0.9711327526262392, 0.21631407251432455,
        0.01996408274151926, 0.0005811135063985677, 1.0894678528383955e-06,
    ),
    (
        1.0, 2.1771665986671342, 1.6630736963665909, 0.5710455727133128, 0.09111902253303285,
        0.006100975692434821, 0.00012043151172286901,
    ),
)  # fmt: skip
"""psi(1 + z) / (z - root), for z from 0 to 1, within 2e-17."""

_PSI_MIDDLE = Quotient(
    (
        0.42278433509846713, 1.2873206902186805, 1.1648324145647966, 0.4853685568754941,
        0.10649761822407762, 0.012735852550261433, 0.0008089103775006811, 2.496438207639855e-05,
        3.0763714341046807e-07, 9.230733948687256e-10,
    ),
    (
        1.0, 1.5194191696360777, 0.915275475648154, 0.28327000421682896, 0.04869888631789408,
        0.004688399196019155, 0.0002422289572915495, 6.050971577696369e-06,
        5.8661273393327335e-08, 1.2535642136277036e-10,
    ),
)  # fmt: skip
"""psi(2 + z), for z from 0 to 6, within 4e-17."""

_PSI_SERIES = Quotient([-number / (2 * k + 2) for k, number in enumerate(_BERNOULLI[:10])])
"""x² times what psi(x) is more than log(x) - 1 / (2x), by 1 / x²."""


def _psi_near(z: Any) -> Any:
    return (z - _ROOT[0] - _ROOT[1]) * _PSI_NEAR(z)


def _psi_above(x: Any) -> Any:
    inverse = 1 / x
    square = inverse * inverse
    return np.log(x) + (square * _PSI_SERIES(square) - inverse / 2)


def _psi_below(x: Any) -> Any:
    """By reflection; nan at the poles."""
    distance = _from_integer(x)
    pole = np.where(distance == 0, math.nan, math.pi / np.tan(math.pi * distance))
    return _psi(1 - x) - pole


_psi = in_pieces(
    (0.0, _psi_below),
    (1.0, lambda x: _psi_near(x) - 1 / x),
    (2.0, lambda x: _psi_near(x - 1)),
    (8.0, lambda x: _PSI_MIDDLE(x - 2)),
    (math.inf, _psi_above),
)

psi = ElementFunction("psi", _psi)

# --- the zeta function --------------------------------------------------------------------------

_TERMS = 10
"""Terms that are summed one by one."""


def _zeta_above(s: Any, q: Any) -> Any:
    """For s above 1 and positive q."""
    total = q**-s
    for k in range(1, _TERMS):
        total = total + (q + k) ** -s
    rest = q + _TERMS
    power = rest**-s
    total = total + power * (rest / (s - 1) + 0.5)
    s = np.minimum(s, 1e4)  # from there on the power is 0
    factor = power * s / rest
    for k, number in enumerate(_BERNOULLI):
        total = total + factor * (number / math.factorial(2 * k + 2))
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) / (rest * rest)
    return total


def _zeta(s: Any, q: Any) -> Any:
    below = q < 0
    if not np.any(below):
        values = _zeta_above(s, q)
    else:
        # The terms of numbers below 0 are those of their distances from it.
        first = np.where(below, q - np.floor(q), q)
        others = _zeta_above(s, 1 - first) - _zeta_above(s, 1 - np.minimum(q, 0))
        signed = np.where(s % 2 == 0, others, -others)
        values = _zeta_above(s, first) + np.where(below, signed, 0)
        values = np.where(below & (s != np.floor(s)), math.nan, values)
    values = np.where((q <= 0) & (q == np.floor(q)), math.inf, values)
    values = np.where(q == math.inf, 0.0, values)
    return np.where(s > 1, values, np.where(s == 1, math.inf, math.nan))


zeta = ElementFunction("zeta", _zeta, operands=2)
