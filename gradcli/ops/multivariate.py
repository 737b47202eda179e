"""Functions of two numbers and more: `atan2 hypot copysign logaddexp lerp addcmul addcdiv`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DTYPES
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arguments import (
    check_floating,
    check_number,
    check_same_dtype,
    check_tensors,
    expose_of_tensors,
)
from gradcli.ops.arithmetic import reciprocal, zeros_like
from gradcli.ops.catalogue import function, refuse_out
from gradcli.ops.comparison import logical_and
from gradcli.ops.conjugate import conj
from gradcli.ops.copying import to
from gradcli.ops.entry import pointwise
from gradcli.ops.masking import masked_fill_number
from gradcli.ops.pointwise import exp
from gradcli.ops.power import power

_ALL_BUT_FLOAT = ("bool", "int", "complex")

# --- the plane ----------------------------------------------------------------------------------


def _inverse_square(self: Any, other: Any) -> Any:
    # The gradient at the origin is 0.
    inverse = reciprocal(self * self + other * other)
    return masked_fill_number(inverse, logical_and(self == 0, other == 0), 0)


atan2 = pointwise(
    "atan2",
    "Atan2Backward0",
    lambda self, other: np.arctan2(self, other),
    floating=True,
    self=lambda grad, self, other: grad * other * _inverse_square(self, other),
    other=lambda grad, self, other: grad * -self * _inverse_square(self, other),
)

hypot = pointwise(
    "hypot",
    "HypotBackward0",
    lambda self, other: np.hypot(self, other),
    self=lambda grad, self, result: grad * self / result,
    other=lambda grad, other, result: grad * other / result,
)

expose_of_tensors(atan2, "arctan2", inplace=True, refused=("complex",))
expose_of_tensors(hypot, inplace=True, refused=_ALL_BUT_FLOAT)

# --- the sign of another ------------------------------------------------------------------------


def _same_sign(self: Any, result: Any) -> Any:
    """1 where the sign stayed, -1 where it changed, 0 at 0."""
    return masked_fill_number(result / self, self == 0, 0)


copysign_tensor = pointwise(
    "copysign",
    "CopysignBackward0",
    lambda self, other: np.copysign(self, other),
    floating=True,
    self=lambda grad, self, result: grad * _same_sign(self, result),
    other=lambda grad: zeros_like(grad),
)

copysign_number = pointwise(
    "copysign",
    "CopysignBackward1",
    lambda self, other: np.copysign(self, other),
    floating=True,
    self=lambda grad, self, result: grad * _same_sign(self, result),
)


@function("copysign", method=True, inplace=True)
def copysign(input: Tensor, other: Any, *, out: Any = None) -> Tensor:
    """The magnitude of the input with the sign of a tensor or a number."""
    refuse_out("copysign", out)
    check_tensors("copysign", input=input)
    if type(other) is Tensor:
        return copysign_tensor.apply(input, other)
    check_number("copysign", "other", other)
    return copysign_number.apply(input, float(other))


# --- sums of exponentials -----------------------------------------------------------------------

logaddexp = pointwise(
    "logaddexp",
    "LogaddexpBackward0",
    lambda self, other: np.logaddexp(self, other),
    self=lambda grad, self, other: grad / (exp(other - self) + 1),
    other=lambda grad, self, other: grad / (exp(self - other) + 1),
)

logaddexp2 = pointwise(
    "logaddexp2",
    "Logaddexp2Backward0",
    lambda self, other: np.logaddexp2(self, other),
    self=lambda grad, self, other: grad / (2 ** (other - self) + 1),
    other=lambda grad, self, other: grad / (2 ** (self - other) + 1),
)

expose_of_tensors(logaddexp, refused=_ALL_BUT_FLOAT)
expose_of_tensors(logaddexp2, refused=_ALL_BUT_FLOAT)

# --- between two --------------------------------------------------------------------------------


def _lerp_array(self: Any, end: Any, weight: Any) -> Any:
    # From the nearer end, so that weight 1 gives `end` itself.
    step = end - self
    return np.where(np.abs(weight) < 0.5, self + step * weight, end - step * (1 - weight))[()]


lerp_number = pointwise(
    "lerp",
    "LerpBackward0",
    _lerp_array,
    self=lambda grad, weight: grad * (1 - weight),
    end=lambda grad, weight: grad * weight,
)

lerp_tensor = pointwise(
    "lerp",
    "LerpBackward1",
    _lerp_array,
    self=lambda grad, weight: grad * (1 - weight),
    end=lambda grad, weight: grad * weight,
    weight=lambda grad, self, end: grad * (end - self),
)


@function("lerp", method=True, inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Any = None) -> Tensor:
    """`input + weight * (end - input)`; the weight is a number or a tensor. Raises E203 where the
    dtypes differ.
    """
    refuse_out("lerp", out)
    check_tensors("lerp", input=input, end=end)
    check_same_dtype("lerp", input, end)
    check_floating("lerp", input)
    if type(weight) is Tensor:
        check_same_dtype("lerp", input, weight)
        return lerp_tensor.apply(input, end, weight)
    check_number("lerp", "weight", weight)
    return lerp_number.apply(input, end, weight)


# --- products and quotients added ---------------------------------------------------------------

addcmul_ = pointwise(
    "addcmul",
    "AddcmulBackward0",
    lambda self, tensor1, tensor2, value=1: self + tensor1 * tensor2 * value,
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(tensor2 * value),
    tensor2=lambda grad, tensor1, value: grad * conj(tensor1 * value),
)

addcdiv_ = pointwise(
    "addcdiv",
    "AddcdivBackward0",
    lambda self, tensor1, tensor2, value=1: self + tensor1 / tensor2 * value,
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(value / tensor2),
    tensor2=lambda grad, tensor1, tensor2, value: (
        -grad * conj((tensor1 * value) / (tensor2 * tensor2))
    ),
)


def _factor(value: Any, *tensors: Tensor) -> Any:
    """The number that a product is multiplied with; an integer where the result is one."""
    dtype = dtypes.result_dtype([tensor.array for tensor in tensors])
    return int(value) if dtype.category == "int" else value


@function("addcmul", method=True, inplace=True)
def addcmul(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1, out: Any = None
) -> Tensor:
    """`input + value * tensor1 * tensor2`."""
    refuse_out("addcmul", out)
    check_tensors("addcmul", input=input, tensor1=tensor1, tensor2=tensor2)
    return addcmul_.apply(input, tensor1, tensor2, _factor(value, input, tensor1, tensor2))


@function("addcdiv", method=True, inplace=True)
def addcdiv(
    input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1, out: Any = None
) -> Tensor:
    """`input + value * tensor1 / tensor2`. Raises E203 for the quotient of integers."""
    refuse_out("addcdiv", out)
    check_tensors("addcdiv", input=input, tensor1=tensor1, tensor2=tensor2)
    if all(t.dtype.category in ("int", "bool") for t in (tensor1, tensor2)):
        check_floating("addcdiv", tensor1, "RuntimeError")
    return addcdiv_.apply(input, tensor1, tensor2, _factor(value, input, tensor1, tensor2))


# --- powers in double precision -----------------------------------------------------------------


@function("float_power", method=True)
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """`input ** exponent` in float64, or complex128 for complex operands; one of the two may be a
    number.
    """
    refuse_out("float_power", out)
    values = (input, exponent)
    if type(exponent) is not Tensor:
        check_tensors("float_power", input=input)
    is_complex = any(
        value.dtype.category == "complex" if type(value) is Tensor else type(value) is complex
        for value in values
    )
    dtype = DTYPES["complex128" if is_complex else "float64"]
    wide = [to(v, dtype) if type(v) is Tensor else v for v in values]
    return power(*wide)
