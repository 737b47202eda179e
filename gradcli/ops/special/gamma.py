"""Functions around gamma of two arguments: `igamma igammac mvlgamma zeta`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.kernels import half_precision
from gradcli.arrays.kernels.special import gamma
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.arithmetic.arithmetic import no_derivative
from gradcli.ops.binding.arguments import check_no_complex_number, check_tensors, plain_integer
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import WIDE, describe
from gradcli.ops.definition.dtype_support import COMPLEX, NOT_FLOATING, dtype_names
from gradcli.ops.definition.op import Op, by_kernel, pointwise
from gradcli.ops.elementwise.unary import exp, log
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.views import unsqueeze
from gradcli.ops.special.error_functions import digamma, lgamma

# --- the incomplete gamma functions -------------------------------------------------------------


def _in_the_first_dtype(function: Any) -> Any:
    def forward(self: Any, other: Any) -> Any:
        return function(self, other).astype(self.dtype)[()]

    return forward


def _density(self: Any, other: Any) -> Any:
    return exp((self - 1) * log(other) - other - lgamma(self))


def _no_shape(name: str) -> Any:
    return no_derivative(
        f"{name} by the first argument",
        "detach it",
        "NotImplementedError",
        pytorch=f"{name}: input",
    )


igamma: Op = pointwise(
    "igamma",
    _in_the_first_dtype(gamma.gammainc),
    floating=True,
    unsupported=NOT_FLOATING,
    self=_no_shape("igamma"),
    other=lambda grad, self, other: grad * _density(self, other),
    loop=WIDE,
)

igammac: Op = pointwise(
    "igammac",
    _in_the_first_dtype(gamma.gammaincc),
    floating=True,
    unsupported=NOT_FLOATING,
    self=_no_shape("igammac"),
    other=lambda grad, self, other: -grad * _density(self, other),
    loop=WIDE,
)


def _of_two_tensors(entry: Op, special_name: str, share: str) -> None:
    def of_two(input: Tensor, other: Tensor) -> Tensor:
        check_tensors(entry.name, input=input, other=other)
        return entry.apply(input, other)

    describe(
        of_two,
        f"The share of the gamma function of `input` {share} `other`.",
        f"torch.{entry.name}(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))",
    )
    function(special_name, module="torch.special")(of_two)
    function(entry.name, method=True, inplace=True)(of_two)


_of_two_tensors(igamma, "gammainc", "below")
_of_two_tensors(igammac, "gammaincc", "above")

# --- the multivariate gamma function ------------------------------------------------------------


def _steps(p: int) -> Any:
    """What is added to the argument in each of the p dimensions, downwards from 0."""
    return -0.5 * np.arange(p)[::-1]


def _mvlgamma_array(self: Any, p: int) -> Any:
    wide = self.astype(np.float32) if self.dtype.itemsize == 2 else self
    steps = _steps(p).astype(wide.dtype)
    total = lgamma(wide[..., None] + steps).sum(-1)
    return (total + p * (p - 1) / 4 * math.log(math.pi)).astype(self.dtype)[()]


def _mvlgamma_rule(grad: Any, self: Any, p: int) -> Any:
    array = self.array if type(self) is Tensor else self
    steps = module_of(array).asarray(_steps(p).astype(array.dtype))
    if type(self) is Tensor:
        return grad * sum_dims(digamma(Tensor(steps) + unsqueeze(self, -1)), (array.ndim,), False)
    return grad * digamma(self[..., None] + steps).sum(-1)


mvlgamma_entry = pointwise(
    "mvlgamma",
    _mvlgamma_array,
    floating=True,
    half=by_kernel(half_precision.mvlgamma),
    unsupported=COMPLEX,
    self=_mvlgamma_rule,
)


@function("multigammaln", module="torch.special")
@function("mvlgamma", method=True, inplace=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function in p dimensions. Raises E202 for a p that is no integer,
    E204 for one below 1.

    Example: torch.mvlgamma(tensor([2., 3.]), 2)
    """
    p = plain_integer("mvlgamma", "p", p)
    if p < 1:
        raise runtime_error(f"mvlgamma(): p is 1 or more, not {p}")
    return mvlgamma_entry.apply(input, p)


# --- the zeta function --------------------------------------------------------------------------


def _zeta_array(self: Any, other: Any) -> Any:
    dtype = (other if type(self) is float else self).dtype
    return gamma.zeta(self, other).astype(dtype)[()]


_no_exponent = no_derivative(
    "zeta by its exponent", "detach it", "NotImplementedError", pytorch="zeta"
)

_zeta: Op = pointwise(
    "special_zeta",
    _zeta_array,
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=_no_exponent,
    other=lambda grad, self, other: grad * -self * _zeta(self + 1, other),
)

zeta_of_number: Op = pointwise(
    "special_zeta",
    lambda other, self: _zeta_array(self, other),
    node="SpecialZetaBackward1",
    floating=True,
    unsupported=dtype_names("half", "complex"),
    other=lambda grad, other, self: grad * -self * zeta_of_number(other, self + 1),
)

zeta_by_number: Op = pointwise(
    "special_zeta",
    _zeta_array,
    node="SpecialZetaBackward2",
    floating=True,
    unsupported=dtype_names("half", "complex"),
    self=_no_exponent,
)


@function("zeta", module="torch.special")
def zeta(input: Any, other: Any) -> Tensor:
    """The Hurwitz zeta function: the sum of `(k + other) ** -input` over k from 0 up."""
    check_no_complex_number("zeta", input, other)
    if type(input) is Tensor and type(other) in (bool, int, float):
        return zeta_by_number.apply(input, float(other))
    if type(other) is Tensor and type(input) in (bool, int, float):
        return zeta_of_number.apply(other, float(input))
    check_tensors("zeta", input=input, other=other)
    return _zeta.apply(input, other)
