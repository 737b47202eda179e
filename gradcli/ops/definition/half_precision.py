"""How an op computes float16 and bfloat16: the ways that its entry can name as `half`.

PyTorch's kernels compute several steps in float32 and round once, or round what they store between
them. An op of one step names no way: NumPy rounds it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.dtypes import narrowed, widened

Way = Callable[[Callable[..., Any], tuple[Any, ...]], Any]
"""From a forward function and its arguments, of which the first is an array of two bytes an
element, to the result."""

_ARRAYS = (np.ndarray, np.generic)


def is_half(value: Any) -> bool:
    """Whether a value is an array of float16 or bfloat16."""
    return isinstance(value, _ARRAYS) and value.dtype.itemsize == 2 and value.dtype.kind not in "iu"


def computed_by(
    way: Way, forward: Callable[..., Any], parameters: tuple[str, ...]
) -> Callable[..., Any]:
    """A forward function that computes arrays of half precision in a way of its own.

    Its parameters are the function's, so it is written from them; wider arrays pay one comparison.
    """
    arguments = ", ".join(parameters)
    text = (
        f"def rounded({arguments}):\n"
        f"    if isinstance({parameters[0]}, ARRAYS) and {parameters[0]}.dtype.itemsize == 2:\n"
        f"        return way(forward, ({arguments},))\n"
        f"    return forward({arguments})\n"
    )
    namespace: dict[str, Any] = {"forward": forward, "way": way, "ARRAYS": _ARRAYS}
    exec(compile(text, f"<half precision of {forward.__name__}>", "exec"), namespace)
    rounded: Any = namespace["rounded"]
    rounded.__wrapped__ = forward
    rounded.__defaults__ = forward.__defaults__
    rounded.__module__ = forward.__module__
    return rounded


def rounded_once(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The result of a forward function for operands of which the first is of half precision."""
    dtype = operands[0].dtype
    if not is_half(operands[0]):
        return forward(*operands)
    result = forward(*[widened(value) if is_half(value) else value for value in operands])
    if isinstance(result, tuple):
        return tuple(_narrow(part, dtype) for part in result)
    return _narrow(result, dtype)


def rounded_once_alike(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`rounded_once` for an op that must see the dtypes itself, to refuse several."""
    kinds = {value.dtype for value in operands if isinstance(value, _ARRAYS)}
    return rounded_once(forward, operands) if len(kinds) == 1 else forward(*operands)


def numbers_rounded(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The result where numbers are rounded to the dtype of the first array, as each step is."""
    dtype = operands[0].dtype
    return forward(*[dtype.type(each) if type(each) is float else each for each in operands])


def bfloat16_rounded_once(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`rounded_once` for an op that rounds float16 at each step."""
    bfloat16 = operands[0].dtype.kind == "V"
    return rounded_once(forward, operands) if bfloat16 else forward(*operands)


def float16_rounded_once(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """`rounded_once` for an op that rounds bfloat16 at each step."""
    float16 = operands[0].dtype.kind == "f"
    return rounded_once(forward, operands) if float16 else forward(*operands)


def by_kernel(kernel: Callable[..., Any]) -> Way:
    """Compute half precision by a kernel of its own."""

    def computed(forward: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        dtypes = {value.dtype for value in operands if isinstance(value, _ARRAYS)}
        # The op itself raises for operands of several dtypes.
        return (kernel if len(dtypes) == 1 and is_half(operands[0]) else forward)(*operands)

    return computed


def _narrow(value: Any, dtype: Any) -> Any:
    return narrowed(value, dtype) if getattr(value, "dtype", None) == np.float32 else value
