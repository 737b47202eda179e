"""Powers: `x ** 2`, `x ** y`, `2 ** x` and `pow`: three overloads, three nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.layout.strides import copied_in_order, in_row_order
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.arithmetic.arithmetic import conj, with_number, zeros_like
from gradcli.ops.binding.catalogue import function, in_place, inplace_operators, operators
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.codegen.runtime import wrong_operand
from gradcli.ops.definition.doc import WIDE, Hazard
from gradcli.ops.definition.dtype_support import dtype_names
from gradcli.ops.definition.op import float16_rounded_once, pointwise, rounded_once
from gradcli.ops.definition.refs import imaginary_part, logical_and, real_part
from gradcli.ops.definition.refs import where as _where  # `where` is what they call of NumPy
from gradcli.ops.elementwise.unary import is_complex, log

# What most powers, of a plain exponent, do without.

_BY_PRODUCTS = (1, 2, 3, 0.5, -2)
"""The exponents whose powers are computed by products and roots."""


def _power(self: Any, exponent: Any) -> Any:
    plain = type(exponent) in (int, float)
    if not (plain and self.dtype.kind == "f"):
        if type(self) is complex and exponent.dtype.kind == "V":
            exponent = exponent.astype(np.float32)  # NumPy does not mix bfloat16 and complex
        if (
            isinstance(exponent, np.generic)
            and exponent in _BY_PRODUCTS
            and type(self) not in NUMBERS
            and self.dtype.kind == "V"
        ):
            exponent = float(exponent)  # a number, given in bfloat16
            plain = True
        if np.result_type(self, exponent).kind in "iu" and np.any(np.less(exponent, 0)):
            return _integer_power(self, exponent)
        if type(exponent) is complex and exponent.imag == 0:
            exponent, plain = exponent.real, True
        if type(exponent) is np.bool_ and self.dtype == np.bool_:
            return self | ~exponent  # NumPy has no power of bools
    # np.power is slow for small exponents, and less exact than the product.
    if plain:
        if exponent == 1:
            return copied_in_order(self) if isinstance(self, np.ndarray) else self
        if exponent == 2:
            return self * self
        if exponent == 3:
            return self * self * self
        if exponent == 0.5:
            return np.sqrt(self)
        if exponent == -0.5 and self.dtype.kind in "fc":
            return 1 / np.sqrt(self)
        if exponent == -1 and self.dtype.kind == "c":
            return 1 / self
        if exponent == -2 and self.dtype != np.float16:
            return 1 / (self * self)
    power = np.power(self, exponent)
    if power.dtype.kind != "c" or (plain and exponent == 0):
        return power
    return _complex_power(self, exponent, power)


def _complex_power(self: Any, exponent: Any, power: Any) -> Any:
    """A power as C has it, through the logarithm: NumPy multiplies where an exponent is whole, and
    has values of its own for powers of 0.
    """
    if type(self) in NUMBERS:
        self = power.dtype.type(self)
    if np.all(np.imag(exponent)) and np.all(self):
        return power
    by_logarithm = np.exp(exponent * np.log(self)).astype(power.dtype)
    return np.where(np.equal(np.imag(exponent), 0) | np.equal(self, 0), by_logarithm, power)[()]


def _integer_power(self: Any, exponent: Any) -> Any:
    """Integers to powers that may be negative: what is no integer becomes 0."""
    inverse = np.where(
        np.equal(self, 1), 1, np.where(np.equal(self, -1), 1 - 2 * (exponent % 2), 0)
    )
    power = np.power(self, np.maximum(exponent, 0))
    return np.where(np.less(exponent, 0), inverse, power).astype(power.dtype)[()]


def _power_rule_self(grad: Any, self: Any, exponent: Any) -> Any:
    if exponent == 0:
        return zeros_like(grad)
    return grad * conj(exponent * pow_number(self, exponent - 1))


_DIVIDES = "division by zero", "a negative power of 0 divides by 0"
_ROOT = "root of a negative", "a power that is no integer is not defined below 0"

_POWER = Hazard(
    values=(
        (lambda self, exponent: self == 0 and exponent < 0, *_DIVIDES),
        (lambda self, exponent: self < 0 and exponent % 1 > 0, *_ROOT),
    ),
    slopes=(
        (
            lambda self, exponent: self == 0 and exponent < 1,
            "the slope of such a power at 0 is infinite",
        ),
    ),
    steep=True,
)
_POWER_OF_NUMBER = Hazard(
    values=(
        (lambda base, exponent: base == 0 and exponent < 0, *_DIVIDES),
        (lambda base, exponent: base < 0 and exponent % 1 > 0, *_ROOT),
    ),
    steep=True,
)

pow_number = pointwise(
    "pow",
    lambda self, exponent: _power(self, exponent),
    half=float16_rounded_once,
    self=_power_rule_self,
    hazard=_POWER,
    loop=WIDE,
)


def _power_rule_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    # The limit where 0 ** exponent has none of its own: 0 for any exponent that is not negative.
    flat = logical_and(self == 0, _rising(exponent))
    if is_complex(exponent) and not is_complex(self):
        self = self + 0j  # so that a negative one has a logarithm
    return grad * _where(flat, 0.0, conj(result * log(self)))


def _rising(exponent: Any) -> Any:
    """Where 0 to the power of an exponent does not fall from infinity."""
    if not is_complex(exponent):
        return exponent >= 0
    return logical_and(imaginary_part(exponent) == 0, real_part(exponent) >= 0)


def _power_rule_base(grad: Any, self: Any, exponent: Any) -> Any:
    return _where(exponent == 0, 0.0, grad * conj(exponent * pow_tensor(self, exponent - 1)))


pow_tensor = pointwise(
    "pow",
    _power,
    node="PowBackward1",
    half=rounded_once,
    self=_power_rule_base,
    exponent=_power_rule_exponent,
    unsupported=dtype_names("bool"),
    hazard=_POWER,
    loop=WIDE,
)


def _exponential_rule(grad: Any, base: Any, exponent: Any, result: Any) -> Any:
    if base == 0:
        return grad * _where(_rising(exponent), 0.0, result * -math.inf)
    return grad * conj(result * _logarithm(base, is_complex(exponent)))


def _logarithm(base: Any, as_complex: bool) -> Any:
    """The logarithm of a number; nan for a negative one unless `as_complex`."""
    if type(base) is complex or as_complex:
        import cmath  # lazy: start-up

        return cmath.log(base)
    return math.log(base) if base > 0 else math.nan


pow_base = pointwise(
    "pow",
    lambda exponent, base: in_row_order(_power(base, exponent)),
    node="PowBackward2",
    half=rounded_once,
    exponent=_exponential_rule,
    unsupported=dtype_names("bool"),
    hazard=_POWER_OF_NUMBER,
    loop=WIDE,
)


@function("pow", method=True, inplace=True)
def power(input: Any, exponent: Any) -> Tensor:
    """The input to a power. One of the two may be a number.

    Conventions: 0 ** 0 is 1, with gradient 0 for base and exponent.

    Example: torch.pow(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    if type(exponent) is Tensor:
        if type(input) is Tensor:
            return pow_tensor.apply(input, exponent)
        return pow_base.apply(*with_number(exponent, input))
    if type(input) is not Tensor or type(exponent) not in (int, float, bool, complex):
        wrong = ("self", input) if type(input) is not Tensor else ("exponent", exponent)
        raise wrong_operand(pow_tensor, *wrong)
    tensor, number = with_number(input, exponent)
    if tensor.dtype.category == "int" and exponent < 0:
        raise runtime_error(
            "an integer tensor cannot be raised to a negative power",
            text="Integers to negative integer powers are not allowed.",
            help="make it floating first: `x.float()`",
        )
    return pow_number.apply(tensor, number)


@function("square", method=True, inplace_function=True, numpy="square")
def square(input: Tensor) -> Tensor:
    """`input ** 2`, by the same entry as the operator."""
    return power(input, 2)


operators["**"] = power
inplace_operators["**"] = in_place("pow", power)
