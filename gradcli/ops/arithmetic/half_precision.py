"""Half precision: ops of several steps compute float16 and bfloat16 in float32, and round once.

PyTorch's kernels do so. An op of one step needs no help: NumPy rounds it once anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.autograd.tensor import Tensor
from gradcli.kernels.half_precision import kernels
from gradcli.kernels.sums.fused_multiply_add import multiply_add
from gradcli.ops.codegen.promotion import NUMBERS, check_alpha, is_half
from gradcli.ops.definition.op import Function, adapt, parameters_of
from gradcli.state import active

_NAMES = """
    mul.MulBackward1 div.DivBackward1 round.RoundBackward1
    log2 log10 exp2 tanh_backward erf erfc sinc
    silu mish gelu_backward elu elu_backward hardswish hardswish_backward
    log_sigmoid glu softplus softplus_backward leaky_relu_backward rrelu_with_noise_backward
    elu_backward.is_result clamp clamp_min clamp_max pow.PowBackward1 pow.PowBackward2
    lerp lerp.LerpBackward1 addcmul addcdiv
    cumprod logcumsumexp var var_mean std std_mean
    _softmax_backward_data _log_softmax_backward_data smooth_l1_loss_backward
    native_batch_norm_backward native_layer_norm native_layer_norm_backward native_group_norm
    native_group_norm_backward convolution convolution_backward
"""
"""The ops of several steps, by their names in the registry."""

_BFLOAT16_NAMES = "sigmoid_backward"
"""Those that round bfloat16 once and float16 at each step."""

_FLOAT16_NAMES = "pow"
"""Those that round float16 once and bfloat16 at each step."""

_WITH_NUMBERS = """
    xlogy.XlogyBackward1 xlogy.XlogyBackward2 special_xlog1py.SpecialXlog1PyBackward1
    special_xlog1py.SpecialXlog1PyBackward2 logit copysign.CopysignBackward1
"""
"""Those that take a number in the dtype of the array beside it, and round at each step."""

_PRODUCTS = "addmm addmv baddbmm"
"""Those that do not support operands of several dtypes."""

_GROUP = 32
"""Elements that PyTorch adds at a time."""

_ARRAYS = (np.ndarray, np.generic)


def is_unrecorded_half(tensor: Tensor) -> bool:
    """Whether a rule reads a tensor of half precision and nothing is recorded: where PyTorch has a
    kernel for the rule, which rounds once.
    """
    return is_half(tensor.array) and not active.state.grad_enabled


def rounded_rule(rule: Function, *tensors: Tensor) -> Tensor:
    """A rule of tensors of half precision computed in float32 and rounded once."""
    dtype = tensors[0].array.dtype
    return Tensor(rule(*[tensor.array.astype(np.float32) for tensor in tensors]).astype(dtype))


def with_multiple(self: Any, other: Any, alpha: Any) -> Any:
    """`self + alpha * other`. Half precision takes alpha in its dtype, and is rounded once in whole
    groups of elements; the product of one that is in no whole group is rounded too.
    """
    check_alpha(self, other, alpha)
    if type(self) in NUMBERS:
        self = other.dtype.type(self)
    elif type(other) in NUMBERS:
        other = self.dtype.type(other)
    if other.dtype.kind == "b":
        alpha = bool(alpha)
    if not (is_half(self) and is_half(other)):
        return multiply_add(self, other, alpha)
    number = other.dtype.type(alpha).astype(np.float32)
    product = module_of(other).asarray(other.astype(np.float32) * number)
    flat = product.ravel(order="K")  # a view: the product has no gaps
    alone = flat[flat.size // _GROUP * _GROUP :]
    alone[...] = alone.astype(self.dtype).astype(np.float32)
    return (self.astype(np.float32) + product).astype(self.dtype)[()]


def rounded_once(forward: Function, computed: Callable[..., Any]) -> Function:
    """A forward function that computes arrays of half precision in float32. Its parameters are the
    function's own, so it is written from them; wider arrays pay one comparison.
    """
    names = parameters_of(forward)
    given = ", ".join(names)
    text = (
        f"def rounded({given}):\n"
        f"    if isinstance({names[0]}, ARRAYS) and {names[0]}.dtype.itemsize == 2:\n"
        f"        return computed(forward, ({given},))\n"
        f"    return forward({given})\n"
    )
    namespace: dict[str, Any] = {"forward": forward, "computed": computed, "ARRAYS": _ARRAYS}
    exec(compile(text, f"<half precision of {forward.__name__}>", "exec"), namespace)
    rounded: Function = namespace["rounded"]
    rounded.__wrapped__ = forward  # type: ignore[attr-defined]
    rounded.__defaults__ = forward.__defaults__
    rounded.__module__ = forward.__module__
    return rounded


def _computed(forward: Function, operands: tuple[Any, ...]) -> Any:
    """The result of a forward function for operands of which the first is of half precision."""
    dtype = operands[0].dtype
    if not is_half(operands[0]):
        return forward(*operands)
    result = forward(*[value.astype(np.float32) if is_half(value) else value for value in operands])
    if isinstance(result, tuple):
        return tuple(_narrow(part, dtype) for part in result)
    return _narrow(result, dtype)


def _computed_alike(forward: Function, operands: tuple[Any, ...]) -> Any:
    """The same for an op that does not support operands of several dtypes: it must see theirs."""
    found = {value.dtype for value in operands if isinstance(value, _ARRAYS)}
    return _computed(forward, operands) if len(found) == 1 else forward(*operands)


def _computed_with_numbers(forward: Function, operands: tuple[Any, ...]) -> Any:
    """The result of a forward function where numbers are rounded to the dtype of the first
    array.
    """
    dtype = operands[0].dtype
    return forward(*[dtype.type(each) if type(each) is float else each for each in operands])


def _computed_bfloat16(forward: Function, operands: tuple[Any, ...]) -> Any:
    """The same for an op that rounds float16 at each step."""
    bfloat16 = operands[0].dtype.kind == "V"
    return _computed(forward, operands) if bfloat16 else forward(*operands)


def _computed_float16(forward: Function, operands: tuple[Any, ...]) -> Any:
    """The same for an op that rounds bfloat16 at each step."""
    float16 = operands[0].dtype.kind == "f"
    return _computed(forward, operands) if float16 else forward(*operands)


def _by_kernel(kernel: Function) -> Callable[..., Any]:
    """Computes half precision by a kernel of its own."""

    def computed(forward: Function, operands: tuple[Any, ...]) -> Any:
        dtypes = {value.dtype for value in operands if isinstance(value, _ARRAYS)}
        # The op itself raises for operands of several dtypes.
        return (kernel if len(dtypes) == 1 and is_half(operands[0]) else forward)(*operands)

    return computed


def _narrow(value: Any, dtype: Any) -> Any:
    return value.astype(dtype) if getattr(value, "dtype", None) == np.float32 else value


def _rounding(computed: Callable[..., Any]) -> Callable[[Function], Function]:
    return lambda forward: rounded_once(forward, computed)


for _names, _way in (
    (_NAMES, _computed),
    (_PRODUCTS, _computed_alike),
    (_WITH_NUMBERS, _computed_with_numbers),
    (_BFLOAT16_NAMES, _computed_bfloat16),
    (_FLOAT16_NAMES, _computed_float16),
):
    for _name in _names.split():
        adapt(_name, _rounding(_way))
for _name, _kernel in kernels.items():
    adapt(_name, _rounding(_by_kernel(_kernel)))
