"""Half precision: ops of several steps compute float16 and bfloat16 in float32, and round once.

PyTorch's kernels do so. An op of one step needs no help: NumPy rounds it once anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.ops.entry import Function, parameters_of, registry

_NAMES = """
    rsqrt log2 log10 exp2 tanh_backward sigmoid_backward erf erfc sinc
    silu mish gelu gelu_backward elu elu_backward hardswish hardswish_backward
    log_sigmoid log_sigmoid_backward glu glu_backward softplus softplus_backward
    clamp clamp_min clamp_max pow pow.PowBackward1 pow.PowBackward2
    lerp lerp.LerpBackward1 addcmul addcdiv
    prod prod.ProdBackward1 cumprod logcumsumexp var var_mean std std_mean
    softmax log_softmax _softmax_backward_data _log_softmax_backward_data
    mse_loss mse_loss_backward huber_loss huber_loss_backward smooth_l1_loss
    smooth_l1_loss_backward binary_cross_entropy_with_logits nll_loss
    native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward
    convolution convolution_backward
"""
"""The ops of several steps, by their names in the registry."""

_PRODUCTS = "addmm addmv addr baddbmm addbmm"
"""Those that refuse operands of several dtypes."""

_GROUP = 32
"""Elements that PyTorch adds at a time."""

_ARRAYS = (np.ndarray, np.generic)


def is_half(value: Any) -> bool:
    """Whether a value is an array of float16 or bfloat16."""
    return isinstance(value, _ARRAYS) and value.dtype.itemsize == 2 and value.dtype.kind not in "iu"


def with_multiple(self: Any, other: Any, alpha: Any) -> Any:
    """`self + alpha * other`. Half precision takes alpha in its dtype, and is rounded once in whole
    groups of elements; the product of one that is in no whole group is rounded too.
    """
    if not (is_half(self) and is_half(other)):
        return self + other * alpha
    number = other.dtype.type(alpha).astype(np.float32)
    product = np.asarray(other.astype(np.float32) * number)
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
    rounded.__defaults__ = forward.__defaults__
    rounded.__module__ = forward.__module__
    return rounded


def _computed(forward: Function, operands: tuple[Any, ...]) -> Any:
    """What a forward function gives for operands of which the first has two bytes an element."""
    dtype = operands[0].dtype
    if not is_half(operands[0]):
        return forward(*operands)
    result = forward(*[value.astype(np.float32) if is_half(value) else value for value in operands])
    if isinstance(result, tuple):
        return tuple(_narrow(part, dtype) for part in result)
    return _narrow(result, dtype)


def _computed_alike(forward: Function, operands: tuple[Any, ...]) -> Any:
    """The same for an op that refuses operands of several dtypes, which it must see as they are."""
    found = {value.dtype for value in operands if isinstance(value, _ARRAYS)}
    return _computed(forward, operands) if len(found) == 1 else forward(*operands)


def _narrow(value: Any, dtype: Any) -> Any:
    return value.astype(dtype) if getattr(value, "dtype", None) == np.float32 else value


def install() -> None:
    """Let the ops of several steps round once; called when all families are imported."""
    for names, computed in ((_NAMES, _computed), (_PRODUCTS, _computed_alike)):
        for name in names.split():
            entry = registry[name]
            entry.forward = rounded_once(entry.forward, computed)
