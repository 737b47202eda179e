"""Activations in pieces: piecewise linear ones, `relu leaky_relu hardtanh hardshrink threshold
prelu`, and exponential linear units, `elu selu celu`.

At a kink the slope is that of the piece below, unless a comment says otherwise. Each gradient is an
op of its own, as PyTorch prints it; that of a linear piece is constant in the input, so the
gradient of that is 0. Written in place, an exponential unit keeps its result, from which the slope
follows, as its input is gone: that is a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.fusion.tile_kernels import choose, positive_part
from gradcli.arrays.kernels import vector_math
from gradcli.arrays.layout.strides import in_row_order
from gradcli.arrays.scalars import checked_cast
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import factor_of_dtype, no_derivative, zeros_like
from gradcli.ops.binding.arguments import (
    check_floating,
    check_real,
    check_same_dtype,
    check_tensors,
    in_single,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.promotion import of_halves
from gradcli.ops.creation.fill import plain_number
from gradcli.ops.creation.random import uniform_array
from gradcli.ops.definition.doc import BY_KINDS, RANDOM, effects, in_numpy
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, dtype_names
from gradcli.ops.definition.op import Op, is_half, op, pointwise, rounded_once
from gradcli.ops.elementwise.comparison import logical_and, where
from gradcli.ops.elementwise.unary import exp
from gradcli.ops.nn.activations import activation
from gradcli.ops.shape.views import view
from gradcli.state import computed

# --- relu and threshold -------------------------------------------------------------------------


def _threshold_backward_of_half(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The gradient of half precision, compared in float32 where it has many elements."""
    grad_output, self, threshold = operands
    if self.size < dtypes.MANY or not is_half(self):
        return forward(*operands)
    number = self.dtype.type(threshold)
    return choose(of_halves(np.less_equal, np.less_equal, self, number), 0, grad_output)[()]


threshold_backward: Op = pointwise(
    "threshold_backward",
    lambda grad_output, self, threshold: choose(self <= threshold, 0, grad_output)[()],
    half=_threshold_backward_of_half,
    linear=True,
    self=lambda grad: zeros_like(grad),
)


def _positive_bits(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """relu of half precision by its bits: those of what is below zero lie together."""
    (array,) = operands
    if not is_half(array):
        return forward(array)
    bits = np.asarray(array).view(np.uint16)
    below = 0x7C00 if array.dtype.kind == "f" else 0x7F80  # to the bits of minus infinity
    return (bits * (bits - np.uint16(0x8001) >= below)).view(array.dtype)[()]


relu_op = pointwise(
    "relu",
    lambda self: positive_part(self),
    half=_positive_bits,
    self=lambda grad, result: threshold_backward(grad, result, 0),
    unsupported=dtype_names("bool", raises="RuntimeError") | COMPLEX,
    numpy="np.maximum({0}, 0)",
)


@activation("relu", torch=True, method=True, inplace=True)
def relu(input: Tensor) -> Tensor:
    """The input where it is positive, 0 elsewhere. Raises E203 for bools.

    Conventions: At 0 the gradient is 0.
    """
    return relu_op.apply(input)


def _threshold_array(self: Any, threshold: float, value: Any) -> Any:
    return choose(self <= threshold, value, self)[()]


_threshold = pointwise("threshold", _threshold_array, self=threshold_backward, written={})


def _apply_threshold(entry: Op, name: str, input: Tensor, threshold: float, value: float) -> Tensor:
    check_real(name, input.array)
    number = plain_number(f"{name}()", value)
    threshold = factor_of_dtype(threshold, input.array.dtype)
    return entry.apply(input, threshold, checked_cast(number, input.dtype))


@activation(
    "threshold",
    torch=True,
    inplace=True,
    written=lambda input, threshold, value: _apply_threshold(
        _threshold.written, "threshold_", input, threshold, value
    ),
)
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """The input where it is greater than the threshold, the value elsewhere. Raises E203 for
    bools.

    Conventions: At the threshold the gradient is 0.

    Example: torch.threshold(tensor([-1.5, 0., 2.5]), 1., 0.)
    """
    return _apply_threshold(_threshold, "threshold", input, threshold, value)


# --- leaky relu ---------------------------------------------------------------------------------


def _leaky_array(self: Any, negative_slope: float) -> Any:
    return choose(self > 0, self, self * negative_slope)[()]


leaky_relu_backward, rrelu_backward = (
    pointwise(
        name,
        lambda grad_output, self, negative_slope: choose(
            self > 0, grad_output, grad_output * negative_slope
        )[()],
        half=rounded_once,
        linear=True,
        self=lambda grad: zeros_like(grad),
    )
    for name in ("leaky_relu_backward", "rrelu_with_noise_backward")
)

_TRIGGERED = (
    "In-place {} backward calculation is triggered with a negative slope which is not supported."
    " This is caused by calling in-place forward function with a negative slope, please call"
    " out-of-place version instead."
)
_OVERWRITTEN = (
    _TRIGGERED.format("elu"),
    _TRIGGERED.format("leakyReLu")
    + " File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place"
    " leakRelu backward calculation with negative slope",
)


def checked_slope(name: str, slope: float) -> float:
    """The slope of an activation written in place. Raises E409 for a derivative that turns signs:
    the op keeps the result, which does not say then whether the input was negative.
    """
    if slope < 0:
        raise GradcliError(
            "E409",
            f"{name}() has no derivative with a slope of {slope}: the input is overwritten",
            text=_OVERWRITTEN[name.startswith("leaky")],
            help=f"use {name[:-1]}()",
        )
    return slope


# Written in place it keeps the result, whose sign is the input's.
_leaky_relu = pointwise(
    "leaky_relu",
    lambda self, negative_slope: in_single(_leaky_array, self, negative_slope),
    self=leaky_relu_backward,
    written={
        "self": lambda grad, result, negative_slope: leaky_relu_backward(
            grad, result, checked_slope("leaky_relu_", negative_slope)
        )
    },
)


def _leaky(entry: Op, name: str, input: Tensor, negative_slope: float) -> Tensor:
    check_floating(name, input)
    return entry.apply(input, factor_of_dtype(negative_slope, input.array.dtype))


@activation(
    "leaky_relu",
    inplace=True,
    written=lambda input, negative_slope=0.01: _leaky(
        _leaky_relu.written, "leaky_relu_", input, negative_slope
    ),
)
@in_numpy(
    "def leaky_relu(x, negative_slope=0.01):\n    return np.where(x > 0, x, negative_slope * x)\n"
)
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """The input where it is positive, `negative_slope` times it elsewhere.

    Conventions: At 0 the slope is the negative one.
    """
    return _leaky(_leaky_relu, "leaky_relu", input, negative_slope)


_rrelu = pointwise(
    "rrelu_with_noise",
    lambda self, lower, upper: in_row_order(in_single(_leaky_array, self, (lower + upper) / 2)),
    self=lambda grad, self, lower, upper: rrelu_backward(grad, self, (lower + upper) / 2),
    written={
        "self": lambda grad, result, lower, upper: rrelu_backward(
            grad, result, checked_slope("rrelu_", (lower + upper) / 2)
        )
    },
)

rrelu_noisy_backward: Op = pointwise(
    "rrelu_with_noise_backward",
    lambda grad_output, self, noise: grad_output * noise,
    node="RreluWithNoiseBackwardBackward0",
    linear=True,
    self=lambda grad: zeros_like(grad),
    constant=("noise",),
)

rrelu_noisy = pointwise(
    "rrelu_with_noise",
    lambda self, noise: self * noise,
    self=rrelu_noisy_backward,
    constant=("noise",),
    written={},
)


def _slopes(array: Any, lower: float, upper: float) -> Any:
    """A slope for each element, drawn where the element is not positive, 1 elsewhere."""
    slopes = np.ones(array.shape, array.dtype)
    falling = np.asarray(array) <= 0
    count = int(np.count_nonzero(falling))
    slopes[falling] = uniform_array("rrelu", (count,), dtypes.float64, None, lower, upper)
    return slopes[()]


def _apply_rrelu(
    entry: Op, name: str, input: Tensor, lower: float, upper: float, training: bool
) -> Tensor:
    if lower > upper:
        raise runtime_error("Lower bound should be less than or equal to the upper bound")
    check_floating("rrelu_with_noise" if training else name, input)
    if training:
        check_dtype("rrelu_with_noise", input.dtype, dtype_names("float16"))
        noisy = rrelu_noisy if entry is _rrelu else rrelu_noisy.written
        return noisy.apply(input, Tensor(computed(_slopes, input.array, lower, upper)))
    return entry.apply(input, lower, upper)


@activation(
    "rrelu",
    torch=True,
    inplace=True,
    written=lambda input, lower=1 / 8, upper=1 / 3, training=False: _apply_rrelu(
        _rrelu.written, "rrelu_", input, lower, upper, training
    ),
)
@effects(RANDOM)
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Tensor:
    """`leaky_relu` with the slope in the middle of its range, or, in training, a slope drawn for
    each element that is not positive.
    """
    return _apply_rrelu(_rrelu, "rrelu", input, lower, upper, training)


# --- hardtanh and its like ----------------------------------------------------------------------


hardtanh_backward: Op = pointwise(
    "hardtanh_backward",
    # At both bounds the gradient is 0.
    lambda grad_output, self, min_val, max_val: choose(
        (self <= min_val) | (self >= max_val), 0, grad_output
    )[()],
    linear=True,
    self=lambda grad: zeros_like(grad),
)

_hardtanh = pointwise(
    "hardtanh",
    lambda self, min_val, max_val: in_single(np.clip, self, min_val, max_val),
    self=hardtanh_backward,
    unsupported=dtype_names("bool", raises="RuntimeError") | COMPLEX,
)


def _bounded(name: str, input: Any, min_val: float, max_val: float) -> Tensor:
    min_val, max_val = plain_number("min_val", min_val), plain_number("max_val", max_val)
    if type(min_val) is complex or type(max_val) is complex:
        raise dtype_error(f"{name}() takes real bounds")
    if min_val > max_val:
        text = "min_val cannot be greater than max_val"
        raise value_error(f"{name}(): `min_val` is above `max_val`", text)
    if input.dtype is dtypes.uint8 and int(min_val) < 0:
        raise dtype_error(f"{name}() of uint8 has no negative bound")
    low, high = dtypes.cast(min_val, input.dtype), dtypes.cast(max_val, input.dtype)
    return _hardtanh.apply(input, low.item(), high.item())


@activation("hardtanh", inplace=True)
@in_numpy("def hardtanh(x, min_val=-1.0, max_val=1.0):\n    return np.clip(x, min_val, max_val)\n")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """The input cut off at two bounds. Raises E204 where they are crossed.

    Conventions: On its two kinks the gradient is 0.
    """
    return _bounded("hardtanh", input, min_val, max_val)


@activation("relu6")
def relu6(input: Tensor) -> Tensor:
    """The input cut off at 0 and 6."""
    return _bounded("relu6", input, 0.0, 6.0)


_SIXTH = float(np.float32(1 / 6))
_no_slope = no_derivative("hardsigmoid_backward", "use sigmoid(), or differentiate once")

hardsigmoid_backward = pointwise(
    "hardsigmoid_backward",
    lambda grad_output, self: choose((self > -3) & (self < 3), grad_output * _SIXTH, 0)[()],
    node="NotImplemented",
    grad_output=_no_slope,
    self=_no_slope,
)

_hardsigmoid = pointwise(
    "hardsigmoid",
    lambda self: in_single(lambda x: np.clip(x + 3, 0, 6) / 6, self),
    self=hardsigmoid_backward,
)


@activation("hardsigmoid")
def hardsigmoid(input: Tensor) -> Tensor:
    """`relu6(input + 3) / 6`. At both kinks the gradient is 0; it has no derivative of its own.

    Conventions: On its two kinks the gradient is 0.
    """
    check_floating("hardsigmoid", input)
    return _hardsigmoid.apply(input)


def _hardswish_slope(grad_output: Any, self: Any) -> Any:
    inner = choose(self < 3, grad_output * (self / 3 + 0.5), grad_output)
    return choose(self <= -3, 0, inner)[()]


hardswish_backward: Op = pointwise(
    "hardswish_backward",
    _hardswish_slope,
    half=rounded_once,
    linear=True,
    self=lambda grad, grad_output, self: where(
        logical_and(self > -3, self < 3), grad * grad_output / 3, 0.0
    ),
)

_hardswish = pointwise(
    "hardswish",
    lambda self: in_single(lambda x: x * np.clip(x + 3, 0, 6) / 6, self),
    half=rounded_once,
    self=hardswish_backward,
)


@activation("hardswish")
@in_numpy("({0} * np.clip({0} + 3, 0, 6) / 6)")
def hardswish(input: Tensor) -> Tensor:
    """`input * relu6(input + 3) / 6`."""
    check_floating("hardswish", input)
    return _hardswish.apply(input)


# --- shrinking ----------------------------------------------------------------------------------


def _shrunk(grad_output: Any, self: Any, lambd: float) -> Any:
    if self.dtype.kind == "V":  # NumPy would compare bfloat16 with the unrounded number
        lambd = float(self.dtype.type(lambd))
    # At both kinks the gradient is 0.
    return choose((self >= -lambd) & (self <= lambd), 0, grad_output)[()]


hardshrink_backward: Op = pointwise(
    "hardshrink_backward",
    _shrunk,
    linear=True,
    self=lambda grad: zeros_like(grad),
)

_hardshrink = pointwise(
    "hardshrink",
    lambda self, lambd: _shrunk(self, self, lambd),
    self=hardshrink_backward,
    numpy="""\
def hardshrink(x, lambd=0.5):
    return np.where(np.abs(x) <= lambd, 0, x)
""",
)


@function("hardshrink", method=True, also="torch.nn.functional")
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The input where it is further from 0 than `lambd`, 0 elsewhere.

    Conventions: On its two edges the gradient is 0.
    """
    check_floating("hardshrink", input)
    return _hardshrink.apply(input, factor_of_dtype(lambd, input.array.dtype))


softshrink_backward: Op = pointwise(
    "softshrink_backward",
    _shrunk,
    linear=True,
    self=lambda grad: zeros_like(grad),
)


def _softshrink_array(self: Any, lambd: float) -> Any:
    # The product keeps nan, and the sign of what becomes 0.
    near = choose(self < -lambd, self + lambd, self * 0)
    return choose(self > lambd, self - lambd, near)[()]


_softshrink = pointwise(
    "softshrink",
    lambda self, lambd: in_single(_softshrink_array, self, lambd),
    self=softshrink_backward,
    numpy="""\
def softshrink(x, lambd=0.5):
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)
""",
)


@function("softshrink", module="torch.nn.functional")
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The input moved towards 0 by `lambd`, at most to 0. Raises E204 for a negative `lambd`.

    Conventions: On its two edges the gradient is 0.
    """
    check_floating("softshrink", input)
    lambd = factor_of_dtype(lambd, input.array.dtype)
    if lambd < 0:
        raise runtime_error(
            "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found"
            f" {lambd:g}".replace("Float", input.dtype.scalar_type)
        )
    return _softshrink.apply(input, lambd)


# --- a learned slope ----------------------------------------------------------------------------


def _prelu_backward_rule(
    grads: list[Any], grad_output: Any, self: Any, weight: Any
) -> tuple[Any, Any, Any]:
    for_self, for_weight = (zeros_like(grad_output) if g is None else g for g in grads)
    return (
        where(self > 0, for_self, weight * for_self + self * for_weight),
        where(self > 0, 0.0, grad_output * for_weight),
        where(self > 0, 0.0, grad_output * for_self),
    )


prelu_kernel_backward = op(
    "_prelu_kernel_backward",
    lambda grad_output, self, weight: (
        choose(self > 0, grad_output, weight * grad_output)[()],
        choose(self > 0, 0, self * grad_output)[()],
    ),
    decomposition=lambda grad_output, self, weight: (
        where(self > 0, grad_output, weight * grad_output),
        where(self > 0, 0.0, self * grad_output),
    ),
    joint=_prelu_backward_rule,
    inputs=("grad_output", "self", "weight"),
    outputs=("grad_self", "grad_weight"),
    raises=BY_KINDS,
)

prelu_kernel = pointwise(
    "_prelu_kernel",
    lambda self, weight: choose(self > 0, self, weight * self)[()],
    joint=lambda grad, self, weight: prelu_kernel_backward(grad, self, weight),
    inputs=("self", "weight"),
)


@function("prelu", method=True, also="torch.nn.functional", autocast="short")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The input where it is positive, `weight` times it elsewhere: one weight, or one for each
    channel (dimension 1).

    Raises E203 where the dtypes differ, E301 where the number of weights fits no dimension.

    Example: torch.prelu(tensor([-1.5, 0., 2.5]), tensor(0.25))
    """
    check_tensors("prelu", input=input, weight=weight)
    check_same_dtype("prelu", input, weight)
    shape, weights = input.array.shape, weight.array.shape
    if len(weights) > 1:
        raise shape_error(
            f"prelu(): the weight must be a vector or 0-dim, not of shape {tuple(weights)}"
        )
    channels = shape[1] if len(shape) > 1 else 1
    if weight.array.size not in (1, channels):
        raise shape_error(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers ="
            f" {weight.array.size} and channel size = {channels}."
        )
    wanted = (1,) * min(len(shape), 1) + (weight.array.size,) + (1,) * (len(shape) - 2)
    if len(shape) < 2:
        wanted = (1,) * len(shape)
    if tuple(weights) != wanted:
        weight = view(weight, wanted)
    check_floating("prelu", input)
    return prelu_kernel.apply(input, weight)


# --- exponential linear units ---------------------------------------------------------------------


def _elu_array(self: Any, alpha: float, scale: float, input_scale: float) -> Any:
    below = vector_math.expm1(self * input_scale) * (alpha * scale)
    return np.where(self <= 0, below, self * scale)[()]


def _elu_gradient(
    grad_output: Any, self: Any, alpha: float, scale: float, input_scale: float
) -> Any:
    # At 0 it is the gradient below; the second derivative is 0 there.
    below = grad_output * input_scale * (alpha * scale) * exp(self * input_scale)
    return where(self <= 0, below, grad_output * scale)


elu_backward: Op = pointwise(
    "elu_backward",
    _elu_gradient,
    half=rounded_once,
    linear=True,
    self=lambda grad, grad_output, self, alpha, scale, input_scale: where(
        self < 0,
        grad * grad_output * exp(self * input_scale) * (alpha * scale * input_scale**2),
        0.0,
    ),
)

# The operand is a result and not called so: in a rule, `result` is what the op itself gives.
elu_backward_of_result: Op = pointwise(
    "elu_backward.is_result",
    lambda grad_output, self_or_result, alpha, scale, input_scale: np.where(
        self_or_result <= 0,
        grad_output * input_scale * (self_or_result + alpha * scale),
        grad_output * scale,
    )[()],
    node="EluBackwardBackward0",
    half=rounded_once,
    linear=True,
    self_or_result=lambda grad, grad_output, self_or_result, input_scale: where(
        self_or_result < 0, grad * grad_output * input_scale, 0.0
    ),
)


_elu = pointwise(
    "elu",
    lambda self, alpha, scale, input_scale: in_single(_elu_array, self, alpha, scale, input_scale),
    half=rounded_once,
    self=elu_backward,
    written={
        "self": lambda grad, result, alpha, scale, input_scale: elu_backward_of_result(
            grad, result, checked_slope("elu_", alpha), scale, input_scale
        )
    },
)


def _apply_elu(entry: Op, name: str, input: Tensor, alpha: float, scale: float) -> Tensor:
    check_floating(name, input)
    return entry.apply(input, factor_of_dtype(alpha, input.array.dtype), scale, 1.0)


@activation(
    "elu",
    inplace=True,
    written=lambda input, alpha=1.0: _apply_elu(_elu.written, "elu_", input, alpha, 1.0),
)
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """The input where it is positive, `alpha * (exp(input) - 1)` elsewhere.

    Conventions: At 0 the slope is the one below.
    """
    return _apply_elu(_elu, "elu", input, alpha, 1.0)


_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


@activation(
    "selu",
    torch=True,
    inplace=True,
    written=lambda input: _apply_elu(_elu.written, "selu_", input, _SELU_ALPHA, _SELU_SCALE),
)
def selu(input: Tensor) -> Tensor:
    """`elu` with the alpha and the scale that keep mean 0 and variance 1."""
    return _apply_elu(_elu, "selu", input, _SELU_ALPHA, _SELU_SCALE)


def _inverse(alpha: float) -> float:
    """One over alpha, which PyTorch's derivative takes in single precision."""
    return 1 / float(np.float32(alpha))


_celu = pointwise(
    "celu",
    lambda self, alpha: in_single(_elu_array, self, alpha, 1.0, 1 / alpha),
    self=lambda grad, self, alpha: elu_backward(grad, self, alpha, 1.0, _inverse(alpha)),
    written={
        "self": lambda grad, result, alpha: elu_backward_of_result(
            grad, result, checked_slope("celu_", alpha), 1.0, _inverse(alpha)
        )
    },
)


def _apply_celu(entry: Op, name: str, input: Tensor, alpha: float) -> Tensor:
    if alpha == 0:
        raise runtime_error(f"{name}(): `alpha` must not be 0")
    check_floating(name, input)
    return entry.apply(input, factor_of_dtype(alpha, input.array.dtype))


@activation(
    "celu",
    torch=True,
    inplace=True,
    written=lambda input, alpha=1.0: _apply_celu(_celu.written, "celu_", input, alpha),
)
@in_numpy(
    "def celu(x, alpha=1.0):\n"
    "    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))\n"
)
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """The input where it is positive, `alpha * (exp(input / alpha) - 1)` elsewhere."""
    return _apply_celu(_celu, "celu", input, alpha)
