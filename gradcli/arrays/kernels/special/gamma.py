"""The gamma function's relatives: `gammaln psi zeta`, and the incomplete gamma functions:
`gammainc`, the share of gamma(a) that lies below x, and `gammaincc`, the share above.


From 8 up the first two are Stirling's series, from 0 to 8 quotients of polynomials, below 0 they
are reflected. The zeta function is summed by Euler and Maclaurin's formula (DLMF 5.11, 5.5, 25.11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.kernels.special.error_function import erfc
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
    (3.0, lambda x: (x - 1) * (x - 2) * _LOG_NEAR(x - 1) + 0.0),  # no -0 at 1
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


# --- the incomplete gamma function ----------------------------------------------------------------


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
