"""Elementwise functions of two or more operands: `atan2 hypot copysign logaddexp lerp addcmul
addcdiv`; predicates and functions of integers, `gcd lcm isin isreal is_nonzero is_same_size
is_signed`.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import complex128, float64
from gradcli.arrays.kernels.sums import multiply_add
from gradcli.arrays.layout.sizes import Size
from gradcli.autograd.inplace.writes import check_captured, check_inplace, write
from gradcli.autograd.modes import NoGrad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, shape_error
from gradcli.ops.arithmetic.arithmetic import conj, div, factor_of_dtype, reciprocal, zeros_like
from gradcli.ops.binding.arguments import (
    check_no_complex_number,
    check_not_integral,
    check_number,
    check_same_dtype,
    check_tensors,
    expose_of_tensors,
    number_in,
    sizes_of,
)
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.codegen.promotion import NUMBERS
from gradcli.ops.codegen.runtime import factor_first
from gradcli.ops.creation.copies import to
from gradcli.ops.definition.doc import READS, SCALAR, WIDE, Hazard
from gradcli.ops.definition.dtype_support import (
    COMPLEX,
    INTEGRAL,
    NOT_FLOATING,
    check_dtype,
    dtype_names,
)
from gradcli.ops.definition.op import Function, numbers_rounded, pointwise, rounded_once
from gradcli.ops.elementwise.comparison import logical_and
from gradcli.ops.elementwise.power import power
from gradcli.ops.elementwise.unary import exp
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.shape.views import view
from gradcli.state import look

# --- the plane ----------------------------------------------------------------------------------


def _atan2_rule(grad: Any, self: Any, other: Any, needs: list[bool]) -> tuple[Any, Any]:
    # The gradient at the origin is 0.
    inverse = reciprocal(self * self + other * other)
    inverse = masked_fill_number(inverse, logical_and(self == 0, other == 0), 0)
    return (
        grad * other * inverse if needs[0] else None,
        grad * -self * inverse if needs[1] else None,
    )


atan2 = pointwise(
    "atan2",
    lambda self, other: np.arctan2(self, other),
    floating=True,
    inputs=("self", "other"),
    joint=_atan2_rule,
    unsupported=COMPLEX,
    doc="The angle of the point (other, input).",
    hazard=Hazard(
        slopes=((lambda self, other: self == 0 and other == 0, "atan2 has no slope at (0, 0)"),),
        undefined=True,
    ),
    loop=WIDE,
    numpy="arctan2",
)

hypot = pointwise(
    "hypot",
    lambda self, other: np.hypot(self, other),
    self=lambda grad, self, result: grad * self / result,
    other=lambda grad, other, result: grad * other / result,
    unsupported=NOT_FLOATING,
    doc="`sqrt(input ** 2 + other ** 2)`, without overflow.",
    hazard=Hazard(
        slopes=((lambda self, other: self == other == 0, "hypot has no slope at (0, 0)"),),
        undefined=True,
    ),
    loop=WIDE,
)

expose_of_tensors(atan2, "arctan2", inplace=True)
expose_of_tensors(hypot, inplace=True)

# --- the sign of another ------------------------------------------------------------------------


def _same_sign(self: Any, result: Any) -> Any:
    """1 where the sign stayed, -1 where it changed, 0 at 0."""
    return masked_fill_number(result / self, self == 0, 0)


copysign_tensor = pointwise(
    "copysign",
    lambda self, other: np.copysign(self, other),
    floating=True,
    self=lambda grad, self, result: grad * _same_sign(self, result),
    other=lambda grad: zeros_like(grad),
)

copysign_number = pointwise(
    "copysign",
    lambda self, other: np.copysign(self, other),
    node="CopysignBackward1",
    floating=True,
    half=numbers_rounded,
    self=lambda grad, self, result: grad * _same_sign(self, result),
)


@function("copysign", method=True, inplace=True)
def copysign(input: Tensor, other: Any) -> Tensor:
    """The magnitude of the input with the sign of a tensor or a number."""
    check_tensors("copysign", input=input)
    if type(other) is Tensor:
        return copysign_tensor.apply(input, other)
    check_no_complex_number("copysign", input, other)
    check_number("copysign", "other", other)
    return copysign_number.apply(input, float(other))


# --- sums of exponentials -----------------------------------------------------------------------


def logaddexp_array(self: Any, other: Any) -> Any:
    """log(exp(self) + exp(other)) without overflow; of complex elements that of the greater real
    part is taken out.
    """
    if self.dtype.kind != "c":
        return np.logaddexp(self, other)
    swapped = np.real(self) < np.real(other)
    greater, less = np.where(swapped, other, self), np.where(swapped, self, other)
    alike = (self == other) & ~np.isfinite(self)
    return np.where(alike, self, greater + np.log1p(np.exp(less - greater)))[()]


logaddexp = pointwise(
    "logaddexp",
    logaddexp_array,
    self=lambda grad, self, other: grad / conj(exp(other - self) + 1),
    other=lambda grad, self, other: grad / conj(exp(self - other) + 1),
    unsupported=INTEGRAL,
    doc="`log(exp(input) + exp(other))`, without overflow.",
)

logaddexp2 = pointwise(
    "logaddexp2",
    lambda self, other: np.logaddexp2(self, other),
    self=lambda grad, self, other: grad / (2 ** (other - self) + 1),
    other=lambda grad, self, other: grad / (2 ** (self - other) + 1),
    unsupported=NOT_FLOATING,
    doc="`log2(2 ** input + 2 ** other)`, without overflow.",
)

expose_of_tensors(logaddexp)
expose_of_tensors(logaddexp2)

# --- between two --------------------------------------------------------------------------------


def _lerp_array(self: Any, end: Any, weight: Any) -> Any:
    # From the nearer end, so that weight 1 gives `end` itself, a zero with its sign.
    step = end - self
    if type(weight) is float and self.dtype.kind == "f":
        share = self.dtype.type(weight)
        return (
            multiply_add(self, step, share)
            if abs(weight) < 0.5
            else multiply_add(end, step, -(1 - share))
        )
    near = np.abs(weight) < 0.5
    return np.where(
        near, multiply_add(self, step, weight), multiply_add(end, step, -(1.0 - weight))
    ).astype(self.dtype)[()]


lerp_number = pointwise(
    "lerp",
    _lerp_array,
    half=rounded_once,
    self=lambda grad, weight: grad * conj(1 - weight),
    end=lambda grad, weight: grad * conj(weight),
)

lerp_tensor = pointwise(
    "lerp",
    _lerp_array,
    node="LerpBackward1",
    half=rounded_once,
    self=lambda grad, weight: grad * conj(1 - weight),
    end=lambda grad, weight: grad * conj(weight),
    weight=lambda grad, self, end: grad * conj(end - self),
)


@function("lerp", method=True, inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """From `input` a share `weight` of the way to `end`. The weight is a number or a tensor. Raises
    E203 where the dtypes differ.

    Example: torch.lerp(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]), 0.5)
    """
    check_same_dtype("lerp", input, end)
    check_not_integral("lerp", input)
    if type(weight) is Tensor:
        check_same_dtype("lerp", input, weight)
        return lerp_tensor.apply(input, end, weight)
    if not (type(weight) is complex and input.dtype.is_complex):
        check_number("lerp", "weight", weight)
    return lerp_number.apply(input, end, weight)


# --- products and quotients added ---------------------------------------------------------------

_addcmul = pointwise(
    "addcmul",
    lambda self, tensor1, tensor2, value=1: multiply_add(self, tensor1 * value, tensor2),
    half=rounded_once,
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(tensor2 * value),
    tensor2=lambda grad, tensor1, value: grad * conj(tensor1 * value),
    unsupported=dtype_names("bool"),
)

_addcdiv = pointwise(
    "addcdiv",
    lambda self, tensor1, tensor2, value=1: self + tensor1 * value / tensor2,
    half=rounded_once,
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(div(value, tensor2)),
    tensor2=lambda grad, tensor1, tensor2, value: (
        -grad * conj((tensor1 * value) / (tensor2 * tensor2))
    ),
)


def _factor(value: Any, *tensors: Tensor) -> Any:
    """The number that a product is multiplied with, as the result's dtype takes it."""
    dtype = dtypes.result_dtype([tensor.array for tensor in tensors])
    if dtype.category == "int":
        return int(factor_of_dtype(value, dtype.numpy_dtype))
    return factor_of_dtype(value, dtype.numpy_dtype) if type(value) is complex else value


def _value_first(body: Function) -> Function:
    """The function with PyTorch's deprecated overload, too: `value` comes before the factors."""

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if len(args) == 3:
            kwargs["value"] = number_in(args[0])
            factor_first(body.__name__, "value", kwargs["value"])
            args = args[1:]
        return body(input, *args, **kwargs)

    return update_wrapper(call, body)


@function("addcmul", method=True, inplace=True)
@_value_first
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`.

    Example: torch.addcmul(tensor([0.5, 1., 2.]), tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    return _addcmul.apply(input, tensor1, tensor2, _factor(value, input, tensor1, tensor2))


_OF_INTEGERS = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will"
    " perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be"
    " implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer"
    " inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv"
    " behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all"
    " dtypes."
)


@function("addcdiv", method=True, inplace=True)
@_value_first
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`. Raises E203 for the quotient of integers.

    Example: torch.addcdiv(tensor([0.5, 1., 2.]), tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    if all(t.dtype.category in ("int", "bool") for t in (tensor1, tensor2)):
        raise dtype_error(f"addcdiv() is not defined for {tensor1.dtype}", text=_OF_INTEGERS)
    return _addcdiv.apply(input, tensor1, tensor2, _factor(value, input, tensor1, tensor2))


# --- powers in double precision -----------------------------------------------------------------


@function("float_power", method=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """`input ** exponent` in float64, or complex128 for complex operands; one of the two may be a
    number.

    Example: torch.float_power(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    values = (input, exponent)
    if type(exponent) is not Tensor:
        check_tensors("float_power", input=input)
    is_complex = any(
        value.dtype.category == "complex" if type(value) is Tensor else type(value) is complex
        for value in values
    )
    dtype = complex128 if is_complex else float64
    wide = [to(v, dtype) if type(v) is Tensor else v for v in values]
    return power(*wide)


@method("float_power_")
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power`, written to a tensor of its dtype; raises E203 for one of another."""
    check_captured("float_power_", self, exponent)
    with NoGrad():
        dtype = float_power(self, exponent).dtype
    if dtype is not self.dtype:
        raise dtype_error(
            f"float_power_(): the result is {dtype}, and the tensor {self.dtype}",
            text=f"the base given to float_power_ has dtype {self.dtype.scalar_type} but the"
            f" operation's result requires dtype {dtype.scalar_type}",
        )
    check_inplace("float_power_", self, exponent)
    write(self, float_power(self, exponent))
    return self


# --- predicates and integers ----------------------------------------------------------------------


_NO_INTEGERS = dtype_names("float", "complex", "bool")
for _name, _array, _doc in (
    ("gcd", lambda self, other: np.gcd(self, other), "The greatest common divisor of integers."),
    ("lcm", lambda self, other: np.lcm(self, other), "The least common multiple of integers."),
):
    _entry = pointwise(
        _name,
        _array,
        unsupported=_NO_INTEGERS,
        doc=_doc,
        example=f"torch.{_name}(tensor([3, 1, 2]), tensor([6, 4, 3]))",
        loop=SCALAR,
    )
    expose_of_tensors(_entry, inplace_function=True)


_NEITHER_ORDERED = dtype_names("bool", "complex", raises="RuntimeError")


@function("isin")
def isin(
    elements: Any = None,
    test_elements: Any = None,
    *,
    element: Any = None,
    test_element: Any = None,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Where an element is among the test elements; one of the two may be a number.

    Example: torch.isin(tensor([3, 1, 2]), tensor([6, 4, 3]))
    """
    elements = element if elements is None else elements  # PyTorch's names for numbers
    test_elements = test_element if test_elements is None else test_elements
    if type(elements) is not Tensor:
        check_tensors("isin", test_elements=test_elements)
    operands = {"elements": elements, "test_elements": test_elements}
    for argument, value in operands.items():
        if type(value) not in NUMBERS:
            check_tensors("isin", **{argument: value})
    arrays = [
        value.array if type(value) is Tensor else np.asarray(value) for value in operands.values()
    ]
    look(None, *arrays)
    for array in arrays:
        check_dtype("isin", dtypes.of_array(array), _NEITHER_ORDERED)
    # Few test elements are compared one by one, as a vector that must be a view of them.
    if type(test_elements) is Tensor and arrays[1].size < int(10 * arrays[0].size ** 0.145):
        view.forward(arrays[1], (arrays[1].size,))
    members = np.isin(arrays[0], arrays[1], assume_unique=assume_unique, invert=invert)
    return Tensor(members[()])


@function("isreal", method=True)
def isreal(input: Tensor) -> Tensor:
    """Where the imaginary part is 0; everywhere in a real tensor.

    Example: torch.isreal(tensor([3, 1, 2]))
    """
    return Tensor(np.isreal(input.array))


@function("is_nonzero", method=True, effects=(READS,))
def is_nonzero(input: Tensor) -> bool:
    """Whether a tensor's one element is not 0. Raises E203 where there is not exactly one.

    Example: torch.is_nonzero(tensor([2.]))
    """
    if input.array.size != 1:
        raise dtype_error(f"is_nonzero(): the tensor has {input.array.size} elements")
    return bool(input.array)


@function("is_same_size", method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape.

    Example: torch.is_same_size(tensor([3, 1, 2]), tensor([6, 4, 3]))
    """
    return bool(input.array.shape == other.array.shape)


@function("is_signed", method=True)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative values.

    Example: torch.is_signed(tensor([3, 1, 2]))
    """
    return input.dtype.is_signed


@function("broadcast_shapes")
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that shapes broadcast to. Raises E301 where they do not.

    Example: torch.broadcast_shapes((2, 1), (3,))
    """
    plain = [sizes_of("broadcast_shapes", (shape,)) for shape in shapes]
    try:
        return Size(np.broadcast_shapes(*plain))
    except ValueError:
        shown = " and ".join(map(str, plain))
        text = f"broadcast_shapes(): {shown} cannot be broadcast"
        raise shape_error(text) from None
