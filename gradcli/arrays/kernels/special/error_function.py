"""The error function, its complement and the normal distribution's: `erf erfc erfcx erfinv ndtri
log_ndtr`.

Near 0 erf is a polynomial in the square. Away from 0, (1 + 2x) exp(x²) erfc(x) is one in
(x - k) / (x + k), k = 3.75: M. Shepherd and J. Laframboise, "Chebyshev approximation of
(1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞", Math. Comp. 36 (1981). The quantiles of the normal
distribution are quotients of polynomials in the regions of M. Wichura, "Algorithm AS 241", Applied
Statistics 37 (1988).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.kernels.special.pieces import ElementFunction, Quotient, in_pieces
from gradcli.arrays.native.dispatch import kernel

# --- the error function -------------------------------------------------------------------------

_ERF = Quotient((
    0.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792,
    0.0052239776248180145, -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05,
    1.6461000484121368e-06, -1.6350312701054695e-07, 1.4659775274047436e-08,
    -1.1372848856791674e-09, 5.957176147748911e-11,
))  # fmt: skip
"""erf(x) / x - 1 by x², for x² up to 1, within 2e-17."""

_ERFCX = Quotient((
    1.2375126308378275, -0.14024059858554752, 0.0035854154854640676, 0.0822767384902091,
    -0.1088039301417366, 0.09230432115822194, -0.05869339858952502, 0.028362277452491275,
    -0.009746579566085057, 0.0017556255643564262, 0.0002937137820478447, -0.0002901525797062276,
    5.1648269424952344e-05, 2.2379325748868886e-05, -1.1440734789599966e-05,
    -9.633937518476757e-07, 1.7431228345004344e-06, -7.003208234297155e-08, -2.458322654586562e-07,
    3.204852366201188e-08, 2.770119132229161e-08, -5.9509367713217776e-09, -7.364025434400407e-10,
))  # fmt: skip
"""(1 + 2x) exp(x²) erfc(x) by (x - 3.75) / (x + 3.75), for x from 1/2 up, within 1.1e-16."""


def _erf_near_zero(x: Any) -> Any:
    return x + x * _ERF(x * x)


def _scaled_above(x: Any) -> Any:
    """exp(x²) erfc(x), for x from 1/2 up."""
    return _ERFCX(1 - 7.5 / (x + 3.75)) / (1 + 2 * x)


def _power_of_square(x: Any, factor: float) -> Any:
    """exp(factor · x²) for a power of 2, of whose exponent no digit is lost: the first half of x's
    digits has an exact square. From 40 on it is that of 40, which is 0 or infinite.
    """
    x = np.minimum(x, 40.0)
    high = np.float64(np.float32(x)) if type(x) not in HOST_ARRAYS else np.float32(x).astype(float)
    return np.exp(factor * high * high) * np.exp(factor * (x - high) * (x + high))


def _erfc_above(x: Any) -> Any:
    """For x from 1/2 up."""
    return _power_of_square(x, -1) * _scaled_above(x)


_erf = in_pieces(
    (-1.0, lambda x: _erfc_above(-x) - 1),
    (1.0, _erf_near_zero),
    (math.inf, lambda x: 1 - _erfc_above(x)),
)
_erfc = in_pieces(
    (-0.5, lambda x: 2 - _erfc_above(-x)),
    (0.5, lambda x: 1 - _erf_near_zero(x)),
    (math.inf, _erfc_above),
)
_erfcx = in_pieces(
    (-27.0, lambda x: x * -math.inf),
    (-0.5, lambda x: 2 * _power_of_square(x, 1) - _scaled_above(-x)),
    (0.5, lambda x: np.exp(x * x) * (1 - _erf_near_zero(x))),
    (math.inf, _scaled_above),
)

erf = ElementFunction("erf", _erf, of_number=math.erf, in_c="erf_wide")
erfc = ElementFunction("erfc", _erfc, of_number=math.erfc, in_c="erfc_wide")
erfcx = ElementFunction("erfcx", _erfcx)

# --- the normal distribution --------------------------------------------------------------------

_HALF = math.sqrt(0.5)

log_ndtr = ElementFunction(
    "log_ndtr",
    in_pieces(
        (-1.0, lambda x: np.log(_scaled_above(x * -_HALF) / 2) - x * x / 2),
        (1.0, lambda x: np.log1p(_erfc(x * _HALF) * -0.5)),
        (math.inf, lambda x: np.log1p(_power_of_square(x, -0.5) * _scaled_above(x * _HALF) / -2)),
    ),
)

_MIDDLE = Quotient(
    (
        0.8871328727963667, 31.44807353258012, 370.0151221417662, 1185.2853089003813,
        -7232.218657073823, -59561.60140208829, -136694.68789188983, -106795.92910647565,
        -19589.15365399266,
    ),
    (
        1.0, 46.92338689522055, 871.2838940641986, 8176.878340636071, 41169.98166790856,
        109244.70555458817, 140376.82723612545, 72342.69749284587, 9398.46451720659,
    ),
)  # fmt: skip
"""x / q - 2.5 at the share 1/2 + q, |q| up to 0.425, by 0.425² - q²: x within 1e-16."""

_TAIL = Quotient(
    (
        -0.014062889250315791, 0.14768432211972962, 0.2148636270949706, 0.09117675359136712,
        0.004399235435549076, -0.006088602620660734, -0.0015426041503563553, -0.00012764606399988,
        -2.9456441577069284e-06,
    ),
    (
        1.0, 2.048964952164625, 1.685964666970084, 0.7166285601373741, 0.1679650201279484,
        0.021200306305826668, 0.0012664004262728035, 2.5177520817932302e-05,
    ),
)  # fmt: skip
_FAR_TAIL = Quotient(
    (
        -0.09209535649889643, -0.02153220493053755, -0.0014993013501757536,
        -0.0006736597960255957, -0.00015509259976173896, -1.1569916637840256e-05,
        -2.9671776442343274e-07, -1.978328357834092e-09,
    ),
    (
        1.0, 0.588427959941193, 0.13060918935099963, 0.013588596130472958, 0.0006699041381397017,
        1.3905949142984522e-05, 8.496038455664907e-08,
    ),
)  # fmt: skip
_FARTHEST_TAIL = Quotient(
    (
        0.06977159298788713, 0.02826321912294237, 0.003404800797665606, 0.00013351737860843038,
        -1.4107430677823441e-06, -1.9625183346719122e-07, -3.5809186774928714e-09,
        -1.652115704953696e-11,
    ),
    (
        1.0, 0.2884795215780476, 0.032132253425115866, 0.001731993105341012,
        4.622112951688695e-05, 5.53177363659401e-07, 2.156870142941006e-09,
    ),
)  # fmt: skip
"""-x at the share p less a line, by r = √(-log p) from 1.6, 5 and 11 up: x within 1.4e-16."""

_by_root = in_pieces(
    (5.0, lambda r: 1.4375 + 1.53125 * (r - 1.6) + _TAIL(r - 1.6)),
    (11.0, lambda r: 6.75 + 1.4375 * (r - 5) + _FAR_TAIL(r - 5)),
    (28.0, lambda r: 15.25 + 1.421875 * (r - 11) + _FARTHEST_TAIL(r - 11)),
    (math.inf, lambda r: r),  # infinite, or nan
)


def _upper_quantile(p: Any) -> Any:
    """The point above which a share of a normal distribution lies that is less than 0.075; nan for
    a negative one.
    """
    return _by_root(np.sqrt(-np.log(p)))


def _quantile_near_half(q: Any) -> Any:
    """The point below which the share 1/2 + q lies."""
    return q * (2.5 + _MIDDLE(0.180625 - q * q))


ndtri = ElementFunction(
    "ndtri",
    in_pieces(
        (0.075, lambda p: -_upper_quantile(p)),
        (0.925, lambda p: _quantile_near_half(p - 0.5)),
        (math.inf, lambda p: _upper_quantile(1 - p)),
    ),
)

_HALF_ROOT_PI = math.sqrt(math.pi) / 2


def _slope(x: Any) -> Any:
    """That of erfinv where it is x; finite where that is infinite."""
    return _HALF_ROOT_PI * np.exp(np.minimum(x * x, 700.0))


# The quantiles are within 3 units in the last place; a step of Newton's takes them to about 1.


def _erfinv_near_zero(y: Any) -> Any:
    """For |y| up to 0.6: of erf(x) - y the largest part, x - y, is exact."""
    x = _quantile_near_half(y / 2) * _HALF
    return x - ((x - y) + x * _ERF(x * x)) * _slope(x)


def _erfinv_above(y: Any) -> Any:
    """For y from 0.6 up, where 1 - y is exact and x less sensitive to it; nan beyond 1."""
    x = _above_half(y) * _HALF
    share = erfc(x) if kernel("erfc_wide") else np.float64(_erfc_of_each(x))
    return x + (share - (1 - y)) * _slope(x)


_erfc_of_each = np.frompyfunc(math.erfc, 1, 1)
"""The C library's: to the step, three units of erfc are two of erfinv."""


_above_half = in_pieces(
    (0.85, lambda y: _quantile_near_half(y / 2)),
    (math.inf, lambda y: _upper_quantile(0.5 - y / 2)),
)
erfinv = ElementFunction(
    "erfinv",
    in_pieces(
        (-0.6, lambda y: -_erfinv_above(-y)),
        (0.6, _erfinv_near_zero),
        (math.inf, _erfinv_above),
    ),
)
