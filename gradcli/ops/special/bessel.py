"""Bessel functions and orthogonal polynomials. Those without derivative are computed by SciPy.

Only the modified Bessel functions of the first kind have derivatives, as in PyTorch; a result of
the others requires no grad.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import on_the_host
from gradcli.arrays.kernels.special import bessel
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

# --- modified Bessel functions of the first kind --------------------------------------------------

i0: Op = pointwise(
    "i0",
    of_real(bessel.i0),
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
    of_real(bessel.i1),
    floating=True,
    self=_i1_rule,
    doc="The modified Bessel function of the first kind, of order 1.",
)

i0e: Op = pointwise(
    "special_i0e",
    of_real(bessel.i0e),
    floating=True,
    self=lambda grad, self, result: grad * (i1e(self) - sgn(self) * result),
    doc="The modified Bessel function `i0` times `exp(-abs(input))`.",
)

i1e: Op = pointwise(
    "special_i1e",
    of_real(bessel.i1e),
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
    "modified_bessel_i0": (of_real(bessel.i0), "The function `i0`, without derivative."),
    "modified_bessel_i1": (of_real(bessel.i1), "The function `i1`, without derivative."),
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
        # SciPy takes a step for each degree: nan and what lies beyond the largest have no value.
        degree = np.nan_to_num(np.trunc(np.asarray(n, np.float64)), nan=-1.0)
        steps = np.clip(degree, 0, _LARGEST_DEGREE).astype(np.int64)
        values = getattr(imported("scipy.special"), scipy_name)(
            steps, np.asarray(input, np.float64)
        )
        values = np.where(degree > _LARGEST_DEGREE, np.nan, values)
        # A degree below 0 gives 0.
        return np.where(degree < 0, 0.0, values).astype(dtype)[()]

    def forward(input: Any, n: Any) -> Any:
        return values_of(input, n)

    entry = pointwise(f"special_{name}", forward, floating=True, unsupported=dtype_names("complex"))

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
