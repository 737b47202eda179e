"""Modified Bessel functions of the first kind: `i0 i1 i0e i1e`.

Up to 8 by their series, whose terms have one sign (DLMF 10.25); beyond it the root of x times the
function, scaled, is a polynomial in 16 / x - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.kernels.special.pieces import ElementFunction, Quotient, in_pieces

_NEAR = [
    Quotient([1 / (math.factorial(k) * math.factorial(k + order)) for k in range(26)])
    for order in (0, 1)
]
"""For orders 0 and 1, the function over (x / 2)^order, by x² / 4."""

_FAR_0 = Quotient((
    0.4021765094450081, 0.0033605519836678913, 0.00013621607438951463, 1.114303378845176e-05,
    1.4838476780922646e-06, 2.9735992084667734e-07, 8.872014585661555e-08, 3.932512321137824e-08,
    2.156780676115673e-08, 7.559364098665437e-09, -6.856484545962442e-09, -1.3427511481900905e-08,
    -5.0175940345046716e-09, 7.600254486433509e-09, 6.522264862032271e-09,
    -3.5862834111582305e-09, -4.5305710768621196e-09, 1.6084886155781772e-09,
    2.163681278413876e-09, -6.327909921997027e-10, -6.494591114401118e-10, 1.7698085539456536e-10,
    9.114760157514253e-11, -2.4421972688131832e-11,
))  # fmt: skip
_FAR_1 = Quotient((
    0.38939845902587233, -0.009749577193235765, -0.00021923576383137776, -1.5038547198221758e-05,
    -1.8349102493990178e-06, -3.4838563464253135e-07, -1.0001075046243961e-07,
    -4.3128498031006734e-08, -2.3394122958362557e-08, -8.432168972932417e-09,
    6.84757829926934e-09, 1.4051746928735543e-08, 5.5720183980930355e-09, -7.687251308765992e-09,
    -6.9444186339873875e-09, 3.501765193290176e-09, 4.763780078020254e-09,
    -1.5218214060680734e-09, -2.2624401109204446e-09, 5.870664618471487e-10, 6.7727478454462e-10,
    -1.6283264322621244e-10, -9.491890392992048e-11, 2.2421768596847442e-11,
))  # fmt: skip
"""√x exp(-x) times the function, by 16 / x - 1, for x from 8 up, within 1e-16."""


def _near(x: Any, order: int) -> Any:
    value = _NEAR[order](x * x / 4)
    return value * (x / 2) if order else value


def _far_scaled(x: Any, order: int) -> Any:
    """The function times exp(-x), for x from 8 up."""
    return (_FAR_1 if order else _FAR_0)(16 / x - 1) / np.sqrt(x)


def _far(x: Any, order: int) -> Any:
    x = np.minimum(x, 720.0)  # it is infinite before
    return np.exp(x) * _far_scaled(x, order)


def _whole(order: int, far: Callable[[Any, int], Any], near: Callable[[Any, int], Any]) -> Any:
    sign = -1 if order else 1
    return in_pieces(
        (-8.0, lambda x: sign * far(-x, order)),
        (8.0, lambda x: near(x, order)),
        (math.inf, lambda x: far(x, order)),
    )


def _near_scaled(x: Any, order: int) -> Any:
    return np.exp(-np.abs(x)) * _near(x, order)


i0 = ElementFunction("i0", _whole(0, _far, _near))
i1 = ElementFunction("i1", _whole(1, _far, _near))
i0e = ElementFunction("i0e", _whole(0, _far_scaled, _near_scaled))
i1e = ElementFunction("i1e", _whole(1, _far_scaled, _near_scaled))
