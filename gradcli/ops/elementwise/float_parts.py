"""Mantissas and exponents of floating-point numbers: `ldexp frexp nextafter`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import zeros_like
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.arguments import check_floating, expose_of_tensors, in_single
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, STEPS
from gradcli.ops.definition.dtype_support import NOT_FLOATING, check_dtype, dtype_names
from gradcli.ops.definition.op import Op, op, pointwise
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.elementwise.power import power


def _power_of_two(value: Any) -> Any:
    # As in PyTorch, integers give an integer: 0 where they are negative.
    return power(2, value) if type(value) is Tensor else in_single(np.exp2, value)


_ldexp: Op = pointwise(
    "ldexp",
    lambda self, other: self * np.power(other.dtype.type(2), other),
    floating=True,
    self=lambda grad, other: grad * conj(_power_of_two(other)),
    other=lambda grad, result: grad * conj(result) * math.log(2),
    numpy="(({0}) * 2.0 ** ({1}))",
    loop=STEPS,
)


@function("ldexp", method=True, inplace_function=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """`input * 2 ** other`."""
    # PyTorch raises a 2 of the input's dtype to the power first.
    if input.dtype.category == "float":
        check_dtype("ldexp", other.dtype, dtype_names("bool"))
    if input.dtype.is_complex:
        check_dtype("ldexp", other.dtype, dtype_names("float16"))
    return _ldexp.apply(input, other)


def _mantissa_and_exponent(self: Any) -> tuple[Any, Any]:
    mantissa, exponent = np.frexp(self.astype(np.float32) if self.dtype.itemsize == 2 else self)
    # What is not finite has no exponent.
    exponent = np.where(np.isfinite(self), exponent, 0).astype(np.int32)
    return mantissa.astype(self.dtype)[()], exponent[()]


_frexp = op(
    "frexp",
    _mantissa_and_exponent,
    outputs=("mantissa", "exponent"),
    differentiable=(0,),
    keeps_layout=True,
    leading=True,
    self=lambda grads, exponent: grads[0] / _power_of_two(exponent),
    raises=BY_KINDS,
)


@function("frexp", method=True)
def frexp(input: Tensor) -> Any:
    """Mantissas from 0.5 up to 1, and exponents, int32: `input = mantissa * 2 ** exponent`. Raises
    E203 for integers.

    Example: torch.frexp(tensor([0.5, 1., 2.5]))
    """
    check_floating("frexp", input, "RuntimeError")
    return named("frexp", "mantissa exponent", _frexp.apply(input))


nextafter: Op = pointwise(
    "nextafter",
    lambda self, other: np.nextafter(self, other),
    # The step is constant; where there is none the result is `other`, which is read as constant.
    self=lambda grad, self, other: where(self != other, grad, 0.0),
    other=lambda grad: zeros_like(grad),
    unsupported=NOT_FLOATING,
    doc="The next floating number after the input towards `other`.",
)
expose_of_tensors(nextafter, inplace=True)
