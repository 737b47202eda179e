"""Exponential linear units: `elu selu celu`.

Where PyTorch prints a node for an activation's gradient, the gradient is an op here. Written in
place, an activation keeps its result, from which the slope follows, as its input is gone: that is a
node of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.kernels import vector_math
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error
from gradcli.ops.binding.arguments import check_floating, in_single
from gradcli.ops.definition.doc import in_numpy
from gradcli.ops.definition.op import Op, pointwise, rounded_once
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.elementwise.unary import exp
from gradcli.ops.nn.activations import activation
from gradcli.ops.nn.piecewise_activations import checked_slope


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
    return entry.apply(input, alpha, scale, 1.0)


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
    return entry.apply(input, alpha)


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
