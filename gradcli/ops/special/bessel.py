"""Bessel functions and orthogonal polynomials. Those without derivative are computed by SciPy.

Only the modified Bessel functions of the first kind, `i0 i1 i0e i1e`, have derivatives, as in
PyTorch; a result of the others requires no grad. Up to 8 they are computed by their series, whose
terms have one sign (DLMF 10.25); beyond it the root of x times the function, scaled, is a
polynomial in 16 / x - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import on_the_host
from gradcli.arrays.kernels.special.pieces import ElementFunction, Quotient, in_pieces
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import reciprocal
from gradcli.ops.binding.arguments import check_no_complex_number, in_single
from gradcli.ops.binding.catalogue import expose, function
from gradcli.ops.definition.doc import describe
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.op import Function, Op, pointwise
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.elementwise.unary import abs_op, sgn
from gradcli.ops.special.error_functions import of_real
from gradcli.packages import imported

# --- functions of arrays --------------------------------------------------------------------------


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
    # It is infinite before 720; at infinity PyTorch multiplies inf by 0.
    return np.exp(np.where(x < np.inf, np.minimum(x, 720.0), x)) * _far_scaled(x, order)


def _whole(order: int, far: Callable[[Any, int], Any], near: Callable[[Any, int], Any]) -> Any:
    sign = -1 if order else 1
    return in_pieces(
        (-8.0, lambda x: sign * far(-x, order)),
        (8.0, lambda x: near(x, order)),
        (math.inf, lambda x: far(x, order)),
    )


def _near_scaled(x: Any, order: int) -> Any:
    return np.exp(-np.abs(x)) * _near(x, order)


i0_of = ElementFunction("i0", _whole(0, _far, _near))
i1_of = ElementFunction("i1", _whole(1, _far, _near))
i0e_of = ElementFunction("i0e", _whole(0, _far_scaled, _near_scaled))
i1e_of = ElementFunction("i1e", _whole(1, _far_scaled, _near_scaled))


# --- ops ------------------------------------------------------------------------------------------


# --- modified Bessel functions of the first kind --------------------------------------------------

i0: Op = pointwise(
    "i0",
    of_real(i0_of),
    floating=True,
    self=lambda grad, self: grad * i1(self),
    numpy="i0",
    doc="The modified Bessel function of the first kind, of order 0.",
    example="torch.i0(tensor([0.5, 1., 2.5]))",
)


def _check_slope(self: Any) -> None:
    """Raise E203 for half precision, of which the derivatives of i1 and i1e are not defined."""
    array = self.array if type(self) is Tensor else self
    check_dtype("the derivative of i1", dtypes.of_array(array), dtype_names("half"))


def _apart_from_zero(self: Any) -> tuple[Any, Any]:
    """Where the input is not close to 0, and the input with what is close made 1: the slopes there
    divide by it.
    """
    array = self.array if type(self) is Tensor else self
    apart = abs_op(self) > float(np.finfo(array.dtype).eps)
    return apart, where(apart, self, 1.0)


def _i1_rule(grad: Any, self: Any, result: Any) -> Any:
    _check_slope(self)
    apart, divisor = _apart_from_zero(self)
    return grad * where(apart, i0(divisor) - result * reciprocal(divisor), 0.5)


def _i1e_rule(grad: Any, self: Any, result: Any) -> Any:
    _check_slope(self)
    apart, divisor = _apart_from_zero(self)
    slope = i0e(divisor) - result * (sgn(divisor) + reciprocal(divisor))
    return grad * where(apart, slope, 0.5)


i1: Op = pointwise(
    "special_i1",
    of_real(i1_of),
    floating=True,
    self=_i1_rule,
    doc="The modified Bessel function of the first kind, of order 1.",
)

i0e: Op = pointwise(
    "special_i0e",
    of_real(i0e_of),
    floating=True,
    self=lambda grad, self, result: grad * (i1e(self) - sgn(self) * result),
    doc="The modified Bessel function `i0` times `exp(-abs(input))`.",
)

i1e: Op = pointwise(
    "special_i1e",
    of_real(i1e_of),
    floating=True,
    self=_i1e_rule,
    doc="The modified Bessel function `i1` times `exp(-abs(input))`.",
)

expose(i0, inplace_function=True)
expose(i0, module="torch.special", method=False)
for _name, _entry in (("i0e", i0e), ("i1", i1), ("i1e", i1e)):
    expose(_entry, _name, module="torch.special", method=False)

# --- without derivative -------------------------------------------------------------------------

_NOT_SINGLE = dtype_names("half", "complex")

_OF_ONE = {
    "airy_ai": ("airy", "The Airy function Ai; it has no derivative here, as in PyTorch."),
    "bessel_j0": ("j0", "The Bessel function of the first kind, of order 0, without derivative."),
    "bessel_j1": ("j1", "The Bessel function of the first kind, of order 1, without derivative."),
    "bessel_y0": ("y0", "The Bessel function of the second kind, of order 0, without derivative."),
    "bessel_y1": ("y1", "The Bessel function of the second kind, of order 1, without derivative."),
    "modified_bessel_k0": ("k0", "The modified Bessel function K of order 0, without derivative."),
    "modified_bessel_k1": ("k1", "The modified Bessel function K of order 1, without derivative."),
    "scaled_modified_bessel_k0": ("k0e", "`modified_bessel_k0` times `exp(input)`."),
    "scaled_modified_bessel_k1": ("k1e", "`modified_bessel_k1` times `exp(input)`."),
}
"""Functions of one number, with SciPy's names and what they do."""


def _of_one(name: str) -> Function:
    if name != "airy":
        return of_real(lambda self: getattr(imported("scipy.special"), name)(self))

    def forward(self: Any) -> Any:
        airy = imported("scipy.special").airy
        return in_single(lambda array: airy(array)[0], self)

    return forward


_WITHOUT_DERIVATIVE = {
    **{name: (_of_one(of_scipy), doc) for name, (of_scipy, doc) in _OF_ONE.items()},
    "modified_bessel_i0": (of_real(i0_of), "The function `i0`, without derivative."),
    "modified_bessel_i1": (of_real(i1_of), "The function `i1`, without derivative."),
}

for _name, (_forward, _doc) in _WITHOUT_DERIVATIVE.items():
    _entry = pointwise(
        f"special_{_name}", _forward, floating=True, unsupported=_NOT_SINGLE, doc=_doc
    )
    expose(_entry, _name, module="torch.special", method=False)


@on_the_host
def _spherical_j0(array: Any) -> Any:
    return imported("scipy.special").spherical_jn(0, array).astype(array.dtype)


spherical_bessel_j0 = pointwise(
    "special_spherical_bessel_j0",
    lambda self: in_single(_spherical_j0, self),
    floating=True,
    unsupported=_NOT_SINGLE,
    doc="`sin(input) / input`, without derivative.",
)
expose(spherical_bessel_j0, "spherical_bessel_j0", module="torch.special", method=False)

_POLYNOMIALS = {
    "chebyshev_polynomial_t": "eval_chebyt",
    "chebyshev_polynomial_u": "eval_chebyu",
    "hermite_polynomial_h": "eval_hermite",
    "hermite_polynomial_he": "eval_hermitenorm",
    "laguerre_polynomial_l": "eval_laguerre",
    "legendre_polynomial_p": "eval_legendre",
    "shifted_chebyshev_polynomial_t": "eval_sh_chebyt",
    "shifted_chebyshev_polynomial_u": "eval_sh_chebyu",
}
"""Polynomials of an input and a degree, with SciPy's names."""


_LARGEST_DEGREE = 10**6


def _polynomial(name: str, scipy_name: str) -> Function:
    @on_the_host
    def values_of(input: Any, n: Any) -> Any:
        dtype = np.asarray(n if type(input) is float else input).dtype
        # SciPy takes a step for each degree: what lies beyond the largest has no value. What is
        # no integer is the least one for PyTorch.
        degree = np.trunc(np.asarray(n, np.float64))
        degree = np.where(np.isfinite(degree), degree, -1.0)
        steps = np.clip(degree, 0, _LARGEST_DEGREE).astype(np.int64)
        values = getattr(imported("scipy.special"), scipy_name)(
            steps, np.asarray(input, np.float64)
        )
        values = np.where(degree > _LARGEST_DEGREE, np.nan, values)
        # A degree below 0 gives 0, and 0 gives 1 even for nan.
        known = np.where(degree < 0, 0.0, 1.0)
        return np.where(degree <= 0, known, values).astype(dtype)[()]

    def forward(input: Any, n: Any) -> Any:
        return values_of(input, n)

    entry = pointwise(f"special_{name}", forward, floating=True, unsupported=_NOT_SINGLE)

    def polynomial(input: Any, n: Any) -> Tensor:
        check_no_complex_number(name, input, n)
        return entry.apply(input, n)

    describe(
        polynomial,
        f"The {name.split('_polynomial')[0].replace('_', ' ')} polynomial of degree n, the fraction"
        " of n being dropped; it has no derivative.",
        f"torch.special.{name}(tensor([0.5, 1., 2.]), 3)",
    )
    return function(name, module="torch.special")(polynomial)


for _name, _scipy_name in _POLYNOMIALS.items():
    _polynomial(_name, _scipy_name)
