"""Elementwise functions of one operand: `exp log sqrt sin tanh sigmoid abs` and their like.

Each entry saves what PyTorch's saves, its input or its result: a program sees the difference when
it writes to one of them between forward and backward.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import MANY, narrowed, widened
from gradcli.arrays.kernels import half_precision, vector_math
from gradcli.autograd.inplace.writes import check_inplace
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error
from gradcli.ops.arithmetic.arithmetic import conj, no_derivative, zeros_like
from gradcli.ops.binding.arguments import check_real, in_single
from gradcli.ops.binding.catalogue import expose, expose_written, in_place
from gradcli.ops.definition.doc import Hazard, Test
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.definition.lints import check_logarithm
from gradcli.ops.definition.op import (
    Op,
    bfloat16_rounded_once,
    by_kernel,
    is_half,
    pointwise,
    rounded_once,
)

# --- exponentials -------------------------------------------------------------------------------

exp = pointwise(
    "exp",
    lambda self: vector_math.exp(self),
    floating=True,
    self=lambda grad, result: grad * conj(result),
    doc="e to the power of the input.",
    hazard=Hazard(steep=True),
)

exp2 = pointwise(
    "exp2",
    lambda self: vector_math.exp2(self),
    floating=True,
    half=rounded_once,
    self=lambda grad, result: grad * conj(result) * math.log(2),
    doc="2 to the power of the input.",
)

expm1 = pointwise(
    "expm1",
    lambda self: vector_math.expm1(self),
    floating=True,
    self=lambda grad, result: grad * (conj(result) + 1),
    doc="`exp(input) - 1`, exact near 0.",
)

# --- logarithms ---------------------------------------------------------------------------------


def _logarithm(name: str, edge: int, below: Test, at_edge: Test) -> Hazard:
    """Below the edge a logarithm is not defined; there it is -inf, and so steep."""
    return Hazard(
        values=(
            (below, f"{name} of a negative", f"{name} is not defined below {edge}"),
            (at_edge, f"{name} of zero", f"{name} falls to -inf at {edge}"),
        ),
        slopes=((at_edge, f"the slope of {name} at {edge} is infinite"),),
    )


log = pointwise(
    "log",
    lambda self: vector_math.log(self),
    floating=True,
    self=lambda grad, self: grad / conj(self),
    doc="The natural logarithm.",
    hazard=_logarithm("log", 0, lambda self: self < 0, lambda self: self == 0),
    lint=check_logarithm,
)

log2 = pointwise(
    "log2",
    lambda self: vector_math.log2(self),
    floating=True,
    half=rounded_once,
    self=lambda grad, self: grad / (conj(self) * math.log(2)),
    doc="The logarithm to base 2.",
    hazard=_logarithm("log2", 0, lambda self: self < 0, lambda self: self == 0),
)

log10 = pointwise(
    "log10",
    lambda self: vector_math.log10(self),
    floating=True,
    half=rounded_once,
    self=lambda grad, self: grad / (conj(self) * math.log(10)),
    doc="The logarithm to base 10.",
    hazard=_logarithm("log10", 0, lambda self: self < 0, lambda self: self == 0),
)

log1p = pointwise(
    "log1p",
    lambda self: vector_math.log1p(self),
    floating=True,
    self=lambda grad, self: grad / conj(self + 1),
    doc="`log(1 + input)`, exact near 0.",
    hazard=_logarithm("log1p", -1, lambda self: self < -1, lambda self: self == -1),
    lint=check_logarithm,
)

# --- roots --------------------------------------------------------------------------------------

sqrt = pointwise(
    "sqrt",
    lambda self: np.sqrt(self),
    floating=True,
    ufunc=np.sqrt,
    # At 0 it is inf, the limit.
    self=lambda grad, result: grad / (conj(result) * 2),
    doc="The square root.",
    conventions="At 0 the gradient is inf, the limit: mask the input, not the result.",
    hazard=Hazard(
        values=((lambda self: self < 0, "sqrt of a negative", "sqrt is not defined below 0"),),
        slopes=((lambda self: self == 0, "the slope of sqrt at 0 is infinite"),),
    ),
)


def _cube(value: Any) -> Any:
    """The third power by products, as PyTorch rounds it, which NumPy's `**` does not."""
    return value**3 if type(value) is Tensor else value * value * value


rsqrt = pointwise(
    "rsqrt",
    lambda self: 1 / np.sqrt(self),
    floating=True,
    half=by_kernel(half_precision.rsqrt),
    self=lambda grad, result: grad * -0.5 * conj(_cube(result)),
    doc="1 over the square root.",
    hazard=Hazard(
        values=(
            (lambda self: self < 0, "rsqrt of a negative", "rsqrt is not defined below 0"),
            (lambda self: self == 0, "division by zero", "rsqrt divides by 0"),
        ),
        slopes=((lambda self: self == 0, "the slope of rsqrt at 0 is infinite"),),
    ),
    numpy="(1 / np.sqrt({0}))",
)


# --- angles -------------------------------------------------------------------------------------

sin = pointwise(
    "sin",
    lambda self: vector_math.sin(self),
    floating=True,
    self=lambda grad, self: grad * conj(cos(self)),
    doc="The sine of an angle in radians.",
)

cos: Op = pointwise(
    "cos",
    lambda self: vector_math.cos(self),
    floating=True,
    self=lambda grad, self: grad * -conj(sin(self)),
    doc="The cosine of an angle in radians.",
)

tan = pointwise(
    "tan",
    lambda self: vector_math.tan(self),
    floating=True,
    self=lambda grad, result: grad * conj(result**2 + 1),
    doc="The tangent of an angle in radians.",
)

asin = pointwise(
    "asin",
    lambda self: vector_math.arcsin(self),
    floating=True,
    self=lambda grad, self: grad * conj(rsqrt(-self * self + 1)),
    doc="The angle whose sine is the input.",
    example="torch.asin(tensor([-0.5, 0., 0.5]))",
    hazard=Hazard(
        values=((lambda self: abs(self) > 1, "asin out of range", "asin is defined from -1 to 1"),),
        slopes=((lambda self: abs(self) == 1, "the slope of asin at {self:g} is infinite"),),
    ),
    numpy="arcsin",
)

acos = pointwise(
    "acos",
    lambda self: vector_math.arccos(self),
    floating=True,
    self=lambda grad, self: grad * -conj(rsqrt(-self * self + 1)),
    doc="The angle whose cosine is the input.",
    example="torch.acos(tensor([-0.5, 0., 0.5]))",
    hazard=Hazard(
        values=((lambda self: abs(self) > 1, "acos out of range", "acos is defined from -1 to 1"),),
        slopes=((lambda self: abs(self) == 1, "the slope of acos at {self:g} is infinite"),),
    ),
    numpy="arccos",
)

atan = pointwise(
    "atan",
    lambda self: vector_math.arctan(self),
    floating=True,
    self=lambda grad, self: grad / conj(self * self + 1),
    doc="The angle whose tangent is the input.",
    numpy="arctan",
)

deg2rad = pointwise(
    "deg2rad",
    lambda self: in_single(np.multiply, self, math.pi / 180),
    floating=True,
    self=lambda grad: grad * (math.pi / 180),
    unsupported=dtype_names("complex", raises="RuntimeError"),
    doc="Degrees as radians.",
)

rad2deg = pointwise(
    "rad2deg",
    lambda self: in_single(np.multiply, self, 180 / math.pi),
    floating=True,
    self=lambda grad: grad * (180 / math.pi),
    unsupported=dtype_names("complex", raises="RuntimeError"),
    doc="Radians as degrees.",
)

# --- hyperbolic functions -----------------------------------------------------------------------

sinh = pointwise(
    "sinh",
    lambda self: vector_math.sinh(self),
    floating=True,
    self=lambda grad, self: grad * conj(cosh(self)),
    doc="The hyperbolic sine.",
)

cosh: Op = pointwise(
    "cosh",
    lambda self: vector_math.cosh(self),
    floating=True,
    self=lambda grad, self: grad * conj(sinh(self)),
    doc="The hyperbolic cosine.",
)

tanh_backward: Op = pointwise(
    "tanh_backward",
    lambda grad_output, output: grad_output * conj(vector_math.one_less_square(output)),
    half=rounded_once,
    grad_output=lambda grad, output: tanh_backward(grad, conj(output)),
    output=lambda grad, grad_output, output: conj(grad) * (conj(output) * -2 * grad_output),
)

tanh = pointwise(
    "tanh",
    lambda self: vector_math.tanh(self),
    floating=True,
    self=lambda grad, result: tanh_backward(grad, result),
    doc="The hyperbolic tangent.",
)

asinh = pointwise(
    "asinh",
    lambda self: np.arcsinh(self),
    floating=True,
    self=lambda grad, self: grad * conj(rsqrt(self**2 + 1)),
    doc="The inverse hyperbolic sine.",
    numpy="arcsinh",
)


def _acosh_rule(grad: Any, self: Any) -> Any:
    if is_complex(self):  # the root of the product is that of the other branch
        return grad * conj(rsqrt(self + 1) * rsqrt(self - 1))
    return grad * conj(rsqrt(self * self - 1))


acosh = pointwise(
    "acosh",
    lambda self: np.arccosh(self),
    floating=True,
    self=_acosh_rule,
    doc="The inverse hyperbolic cosine.",
    example="torch.acosh(tensor([1., 2.]))",
    hazard=Hazard(
        values=((lambda self: self < 1, "acosh out of range", "acosh is not defined below 1"),),
        slopes=((lambda self: self == 1, "the slope of acosh at 1 is infinite"),),
    ),
    numpy="arccosh",
)

atanh = pointwise(
    "atanh",
    lambda self: vector_math.arctanh(self),
    floating=True,
    self=lambda grad, self: grad * 1 / conj(1 - self**2),
    doc="The inverse hyperbolic tangent.",
    example="torch.atanh(tensor([-0.5, 0., 0.5]))",
    hazard=Hazard(
        values=(
            (
                lambda self: abs(self) >= 1,
                "atanh out of range",
                "atanh is defined between -1 and 1",
            ),
        ),
        slopes=((lambda self: abs(self) == 1, "the slope of atanh at {self:g} is infinite"),),
    ),
    numpy="arctanh",
)

# --- the logistic function ----------------------------------------------------------------------

sigmoid_backward: Op = pointwise(
    "sigmoid_backward",
    lambda grad_output, output: grad_output * conj(1 - output) * conj(output),
    half=bfloat16_rounded_once,
    grad_output=lambda grad, output: sigmoid_backward(grad, conj(output)),
    output=lambda grad, grad_output, output: conj(grad) * grad_output * (conj(output) * -2 + 1),
)


sigmoid = pointwise(
    "sigmoid",
    lambda self: in_single(lambda self: 1 / (1 + vector_math.exp(-self)), self),
    floating=True,
    self=lambda grad, result: sigmoid_backward(grad, result),
    doc="The logistic function: `1 / (1 + exp(-input))`.",
    numpy="""\
def sigmoid(x):
    return 1 / (1 + np.exp(-x))
""",
)

# --- magnitude and sign -------------------------------------------------------------------------


def _sign_array(self: Any) -> Any:
    if self.dtype.kind == "b":
        return self.copy()
    if self.dtype.itemsize == 2 and self.size >= MANY and is_half(self):
        return narrowed(_sign_array(widened(self)), self.dtype)
    # Unlike NumPy's, PyTorch's sign of nan is 0.
    return np.subtract(self > 0, self < 0, dtype=self.dtype)


def _real_sign_array(self: Any) -> Any:
    if self.dtype.kind == "c":
        raise dtype_error(
            "sign() is not defined for complex tensors",
            raises="NotImplementedError",
            help="use sgn()",
        )
    return _sign_array(self)


sign = pointwise(
    "sign",
    _real_sign_array,
    self=lambda grad: zeros_like(grad),
    doc="-1, 0 or 1: the sign.",
    example="torch.sign(tensor([-1.5, 0., 2.5]))",
    conventions="The gradient is 0 everywhere.",
)


def _sgn_rule(grad: Any, self: Any, result: Any) -> Any:
    from gradcli.ops.indexing.masks import masked_fill_number  # lazy: family: masks

    if not is_complex(self):
        return zeros_like(grad)
    # Only what turns the number changes the result: the part of the gradient along it goes.
    magnitude = abs_op(self)
    across = (grad - result * result * conj(grad)) / (magnitude * 2.0)
    return masked_fill_number(across, magnitude == 0, 0)


def is_complex(value: Any) -> bool:
    """Whether an array or tensor is complex."""
    array = value.array if type(value) is Tensor else value
    return bool(array.dtype.kind == "c")


def _direction(self: Any) -> Any:
    """Complex numbers over their magnitude, which leaves nan of an infinite one."""
    return np.where(np.isinf(self), self.dtype.type(complex(np.nan, np.nan)), np.sign(self))[()]


sgn = pointwise(
    "sgn",
    lambda self: _direction(self) if self.dtype.kind == "c" else _sign_array(self),
    self=_sgn_rule,
    doc="The sign; of a complex number, the number over its magnitude.",
    example="torch.sgn(tensor([-1.5, 0., 2.5]))",
    conventions="At 0 the gradient is 0.",
    numpy="sign",
)


def _abs_array(self: Any) -> Any:
    if self.dtype.kind == "b":
        check_real("abs", self)
    return np.abs(self)


abs_op = pointwise(
    "abs",
    _abs_array,
    ufunc=np.abs,
    # At 0 it is 0, the middle of the slopes -1 and 1.
    self=lambda grad, self: grad * sgn(self),
    doc="The magnitude.",
    example="torch.abs(tensor([-1.5, 0., 2.5]))",
    conventions="At 0 the gradient is 0, the middle of the slopes -1 and 1.",
)


def _check_abs_in_place(name: str, self: Tensor, /) -> bool:
    """Raise E203 for complex numbers, which real ones cannot replace, and what
    `check_inplace` raises.
    """
    check_dtype("abs_", self.dtype, dtype_names("complex", raises="RuntimeError"))
    return check_inplace(name, self)


# --- what programs write ------------------------------------------------------------------------

for _entry in (exp, log, log2, log10, sqrt, rsqrt, sin, cos, tan, sinh, cosh, tanh):
    expose(_entry, inplace_function=True)
for _entry in (deg2rad, rad2deg, sigmoid):
    expose(_entry, inplace_function=True)
for _entry in (sign, sgn):
    expose(_entry, inplace=True)
for _entry in (asin, acos, atan, asinh, acosh, atanh):
    expose(_entry, _entry.name, f"arc{_entry.name.removeprefix('a')}", inplace_function=True)


def _without_derivative(entry: Op) -> None:
    """Give the in-place forms of an entry, under both its names, the node that raises E409."""
    name = entry.name
    written = pointwise(
        f"{name}_",
        entry.forward,
        node=f"{name.capitalize()}Backward1",
        floating=True,
        self=no_derivative(
            f"{name}_",
            f"write it out of place: `x = {name}(x)`",
            "NotImplementedError",
            pytorch=f"inplace version of {name}",
        ),
        hazard=entry.hazard,
    )
    for shown in (name, f"arc{name.removeprefix('a')}"):
        expose_written(shown, in_place(shown, written.apply), True)


for _entry in (asinh, acosh, atanh):
    _without_derivative(_entry)
for _entry in (exp2, expm1, log1p):
    expose(_entry, inplace_function=True)
    expose(_entry, module="torch.special", method=False)
expose(abs_op, "abs", "absolute")
for _name, _is_function in (("abs", True), ("absolute", False)):
    _form = in_place("abs", abs_op.apply, check=_check_abs_in_place, written_as=f"{_name}_")
    expose_written(_name, _form, _is_function)
expose(sigmoid, "expit", module="torch.special", method=False)
for _entry in (tanh, sigmoid):
    expose(_entry, module="torch.nn.functional", method=False)
