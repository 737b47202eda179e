"""Smooth activations: `silu gelu mish softplus logsigmoid softsign glu`.

The piecewise linear ones, `elu` and its like are in `piecewise_activations`.
Where PyTorch prints a node for an activation's
gradient, the gradient is an op here: its rule for the gradient is itself, that for the input the
activation's second derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import bfloat16, float32, of_array
from gradcli.arrays.kernels import half_precision, vector_math
from gradcli.arrays.kernels.in_c import elementwise
from gradcli.arrays.layout.strides import in_row_order, laid_out_like_operands
from gradcli.autograd.tensor import Tensor
from gradcli.errors import runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import (
    add,
    div,
    factor_of_dtype,
    is_unrecorded_half,
    rounded_rule,
    sub,
)
from gradcli.ops.binding.arguments import check_floating, check_not_integral, in_single, normal_dim
from gradcli.ops.binding.catalogue import function, in_place, methods, modules
from gradcli.ops.definition.doc import BY_KINDS, in_numpy
from gradcli.ops.definition.op import Function, Op, by_kernel, op, pointwise, rounded_once
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.elementwise.unary import abs_op, exp, log1p, sigmoid, tanh
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.slicing import slice_op
from gradcli.ops.special.error_functions import erf


def activation(
    name: str,
    *,
    torch: bool = False,
    method: bool = False,
    inplace: bool = False,
    written: Function | None = None,
    writing: Function | None = None,
) -> Callable[[Function], Function]:
    """Make an activation reachable in torch.nn.functional, where it takes `inplace=` besides.

    Args:
        name: its name.
        torch, method: whether it is also in torch, and a method.
        inplace: whether there is a function `NAME_` as well, in the same places.
        written: what the in-place form writes, where its node is another one.
        writing: the in-place form, where it does more than write the result.
    """

    def decorate(body: Function) -> Function:
        writes = writing or in_place(name, written or body)
        vars(writes)["__wrapped__"] = written or body
        count = body.__code__.co_argcount

        def of_functional(*args: Any, inplace: bool = False, **kwargs: Any) -> Tensor:
            if len(args) == count + 1:
                *args, inplace = args  # type: ignore[assignment]
            return (writes if inplace else body)(*args, **kwargs)

        of_functional.__name__ = of_functional.__qualname__ = name
        of_functional.__doc__ = body.__doc__
        of_functional.__wrapped__ = body  # type: ignore[attr-defined]
        modules["torch.nn.functional"][name] = of_functional
        tables = [modules["torch"]] * torch + [methods] * method
        for table in tables:
            table[name] = body
        if inplace:
            for table in (*tables, modules["torch.nn.functional"]):
                table[f"{name}_"] = writes
        return body

    return decorate


# --- sigmoid-weighted ---------------------------------------------------------------------------


def _silu_rule(grad: Any, self: Any) -> Any:
    if type(grad) is Tensor and is_unrecorded_half(grad):
        return rounded_rule(_silu_rule, grad, self)
    weight = sigmoid(self)
    return grad * weight * (self * (1 - weight) + 1)


_silu = pointwise(
    "silu",
    lambda self: in_single(lambda x: x / (1 + vector_math.exp(-x)), self),
    half=rounded_once,
    self=_silu_rule,
)


@activation("silu")
@in_numpy("({0} / (1 + np.exp(-{0})))")
def silu(input: Tensor) -> Tensor:
    """`input * sigmoid(input)`."""
    check_not_integral("silu", input)
    return _silu.apply(input)


def _mish_rule(grad: Any, self: Any) -> Any:
    if type(grad) is Tensor and is_unrecorded_half(grad):
        return rounded_rule(_mish_rule, grad, self)
    weight = tanh(log1p(exp(self)))
    return grad * (weight + self * sigmoid(self) * (1 - weight * weight))


def _mish_array(self: Any) -> Any:
    return self * vector_math.tanh(vector_math.log1p(vector_math.exp(self)))


_mish = pointwise(
    "mish",
    lambda self: in_single(_mish_array, self),
    half=rounded_once,
    self=_mish_rule,
)


@activation("mish")
def mish(input: Tensor) -> Tensor:
    """`input * tanh(softplus(input))`."""
    check_floating("mish", input)
    return _mish.apply(input)


# --- gelu ---------------------------------------------------------------------------------------

_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


def _gelu_array(self: Any, approximate: str, several: bool) -> Any:
    if approximate == "none":
        if (from_c := elementwise("gelu", self, several)) is not None:
            return from_c
        weight = 1 + erf(self * math.sqrt(0.5))
        if several:
            # PyTorch passes these to a library, in which infinity becomes nan, and what is larger
            # than half the largest number infinity.
            return self * (weight + (self - self)) * 0.5
        return self * 0.5 * weight
    inner = (self + self * self * self * _TANH_CUBIC) * _TANH_SCALE
    return self * 0.5 * (1 + vector_math.tanh(inner))


def _gelu_slope(self: Any, approximate: str) -> Any:
    if approximate == "none":
        density = exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi))
        return (erf(self * math.sqrt(0.5)) + 1) * 0.5 + self * density
    height, inner, _ = _tanh_parts(self)
    return (height + 1) * 0.5 + self * 0.5 * (1 - height * height) * inner


def _gelu_curvature(self: Any, approximate: str) -> Any:
    if approximate == "none":
        return exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi)) * (2 - self * self)
    height, inner, bend = _tanh_parts(self)
    return (1 - height * height) * (inner + self * 0.5 * bend - self * height * inner * inner)


def _tanh_parts(self: Any) -> tuple[Any, Any, Any]:
    """The tanh in the approximation of gelu, and its argument's first and second derivative."""
    height = tanh((self + self * self * self * _TANH_CUBIC) * _TANH_SCALE)
    inner = (self * self * (3 * _TANH_CUBIC) + 1) * _TANH_SCALE
    return height, inner, self * (6 * _TANH_CUBIC * _TANH_SCALE)


def _gelu_backward_array(grad_output: Any, self: Any, approximate: str) -> Any:
    from_c = elementwise("gelu_backward", grad_output, self) if approximate == "none" else None
    if from_c is not None:
        return from_c
    return grad_output * _gelu_slope(self, approximate)


gelu_backward: Op = pointwise(
    "gelu_backward",
    _gelu_backward_array,
    half=rounded_once,
    linear=True,
    self=lambda grad, grad_output, self, approximate: (
        grad * grad_output * _gelu_curvature(self, approximate)
    ),
)

_gelu = pointwise(
    "gelu",
    lambda self, approximate: in_single(
        _gelu_array, self, approximate, self.size > 1 and of_array(self) in (float32, bfloat16)
    ),
    self=gelu_backward,
)


@function("gelu", module="torch.nn.functional")
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """The input times the normal distribution function of it, exactly or by `approximate="tanh"`.

    Raises E204 for any other way.
    """
    check_floating("gelu", input)
    if approximate not in ("none", "tanh"):
        raise runtime_error(
            f"gelu(): `approximate` is 'none' or 'tanh', not {approximate!r}",
            "approximate argument must be either none or tanh.",
        )
    return _gelu.apply(input, approximate)


# --- logarithms of sigmoids ---------------------------------------------------------------------


def _softplus_array(self: Any, beta: float, threshold: float) -> Any:
    scaled = self * beta
    return np.where(scaled > threshold, self, vector_math.log1p(vector_math.exp(scaled)) / beta)[()]


softplus_backward: Op = pointwise(
    "softplus_backward",
    lambda grad_output, self, beta, threshold: where(
        self * beta > threshold, grad_output, grad_output * sigmoid(self * beta)
    ),
    half=rounded_once,
    linear=True,
    self=lambda grad, grad_output, self, beta, threshold: where(
        self * beta > threshold,
        0.0,
        grad * grad_output * sigmoid(self * beta) * (1 - sigmoid(self * beta)) * beta,
    ),
)

_softplus = pointwise(
    "softplus",
    lambda self, beta, threshold: in_single(_softplus_array, self, beta, threshold),
    half=rounded_once,
    self=softplus_backward,
)


@function("softplus", module="torch.nn.functional")
@in_numpy(
    "def softplus(x, beta=1.0, threshold=20.0):\n"
    "    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)\n"
)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`log(1 + exp(beta * input)) / beta`, and the input itself where `beta * input` is above the
    threshold.
    """
    check_floating("softplus", input)
    numbers = [factor_of_dtype(each, input.array.dtype) for each in (beta, threshold)]
    return _softplus.apply(input, *numbers)


def _logsigmoid_backward_array(grad_output: Any, self: Any) -> Any:
    # The sigmoid of -self, from an exponential that cannot overflow.
    small = vector_math.exp(-np.abs(self))
    share = small / (1 + small)
    return grad_output * np.where(self < 0, 1 - share, share)[()]


logsigmoid_backward: Op = pointwise(
    "log_sigmoid_backward",
    _logsigmoid_backward_array,
    half=by_kernel(half_precision.log_sigmoid_backward),
    linear=True,
    self=lambda grad, grad_output, self: grad * grad_output * (sigmoid(self) - 1) * sigmoid(self),
)


def _logsigmoid_array(self: Any) -> Any:
    return np.minimum(0, self) - vector_math.log1p(vector_math.exp(-np.abs(self)))


logsigmoid_op = pointwise(
    "log_sigmoid",
    lambda self: in_row_order(in_single(_logsigmoid_array, self)),
    half=rounded_once,
    self=logsigmoid_backward,
)


@function("logsigmoid", module="torch.nn.functional")
def logsigmoid(input: Tensor) -> Tensor:
    """`log(sigmoid(input))`, without overflow."""
    check_floating("logsigmoid", input)
    return logsigmoid_op.apply(input)


# --- what other ops make up ---------------------------------------------------------------------


@function("softsign", module="torch.nn.functional")
def softsign(input: Tensor) -> Tensor:
    """`input / (abs(input) + 1)`."""
    return div.apply(input, add.apply(abs_op.apply(input), 1))


@function("tanhshrink", module="torch.nn.functional")
def tanhshrink(input: Tensor) -> Tensor:
    """`input - tanh(input)`."""
    return sub.apply(input, tanh.apply(input))


# --- one half gates the other -------------------------------------------------------------------


def _halves(self: Any, dim: int) -> tuple[Any, Any]:
    half = self.shape[dim] // 2
    return slice_op(self, dim, 0, half, 1), slice_op(self, dim, half, 2 * half, 1)


def _glu_array(self: Any, dim: int) -> Any:
    value, gate = _halves(self, dim)
    return laid_out_like_operands(value * sigmoid(gate), value, gate)


def _glu_slopes(self: Any, dim: int) -> Any:
    """The derivative in the value and in the gate, one after another along the dimension."""
    value, gate = _halves(self, dim)
    opened = sigmoid(gate)
    return cat([opened, value * opened * (1 - opened)], dim)


def _glu_backward_rule_grad(grad: Any, self: Any, dim: int) -> Any:
    of_value, of_gate = _halves(grad * _glu_slopes(self, dim), dim)
    return of_value + of_gate


def _glu_backward_rule_self(grad: Any, grad_output: Any, self: Any, dim: int) -> Any:
    value, gate = _halves(self, dim)
    of_value, of_gate = _halves(grad, dim)
    opened = sigmoid(gate)
    bend = grad_output * opened * (1 - opened)
    gate_part = of_value + of_gate * value * (1 - opened * 2)
    return cat([of_gate * bend, gate_part * bend], dim)


glu_backward = op(
    "glu_backward",
    lambda grad_output, self, dim: np.concatenate([grad_output] * 2, dim) * _glu_slopes(self, dim),
    half=by_kernel(half_precision.glu_backward),
    decomposition=lambda grad_output, self, dim: (
        cat([grad_output, grad_output], dim) * _glu_slopes(self, dim)
    ),
    grad_output=_glu_backward_rule_grad,
    self=_glu_backward_rule_self,
    raises=BY_KINDS,
)

_glu = op(
    "glu", _glu_array, half=rounded_once, keeps_layout=True, self=glu_backward, raises=BY_KINDS
)


@function("glu", module="torch.nn.functional")
@in_numpy(
    "def glu(x, dim=-1):\n"
    "    first, gate = np.split(x, 2, dim)\n"
    "    return first / (1 + np.exp(-gate))\n"
)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension times the sigmoid of the second. Raises E301 where it cannot be
    halved.

    Example: F.glu(tensor([[2., 1.], [1., 3.]]))
    """
    if not input.array.ndim:
        raise shape_error("glu(): a 0-dim tensor cannot be halved")
    at = normal_dim("glu", dim, input.array.ndim)
    size = input.array.shape[at]
    if size % 2:
        text = f"Halving dimension must be even, but dimension {at} is size {size}"
        raise shape_error(text)
    check_floating("glu", input)
    return _glu.apply(input, at)
