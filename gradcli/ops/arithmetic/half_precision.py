"""Rules and sums of half precision that PyTorch's kernels round once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DTYPES, narrowed, widened
from gradcli.arrays.kernels.sums import multiply_add
from gradcli.arrays.scalars import checked_cast
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, runtime_error
from gradcli.ops.codegen.promotion import NUMBERS, check_alpha
from gradcli.ops.definition.op import Function, is_half
from gradcli.state import active

_GROUP = 32
"""Elements that PyTorch adds at a time."""


def is_unrecorded_half(tensor: Tensor) -> bool:
    """Whether a rule reads a tensor of half precision and nothing is recorded: where PyTorch has a
    kernel for the rule, which rounds once.
    """
    return is_half(tensor.array) and not active.state.grad_enabled


def rounded_rule(rule: Function, *tensors: Tensor) -> Tensor:
    """A rule of tensors of half precision computed in float32 and rounded once."""
    dtype = tensors[0].array.dtype
    return Tensor(narrowed(rule(*[widened(tensor.array) for tensor in tensors]), dtype))


def check_factor(argument: str, factor: Any, *operands: Any) -> None:
    """Raise E203 for a factor that operands of their dtype are not multiplied with: a bool beside
    what is none, a float beside integers.
    """
    kind = np.result_type(*operands).kind
    if type(factor) is bool and kind != "b":
        raise dtype_error(
            f"{argument} is a bool, which only bools are multiplied with",
            text=f"Boolean {argument} only supported for Boolean results.",
        )
    if type(factor) is float and kind in "iub":
        raise dtype_error(
            f"{argument} must be an integer for tensors of integers",
            text=f"For integral input tensors, argument {argument} must not be a floating point"
            " number.",
        )


def factor_of_dtype(factor: Any, dtype: Any) -> Any:
    """A number that elements of an array's dtype are multiplied with: beside integers it loses its
    fraction. Raises E204 where it has an imaginary part that the dtype has none for.
    """
    if isinstance(factor, complex) and dtype.kind != "c":
        if factor.imag == 0:
            return factor_of_dtype(factor.real, dtype)
        name = DTYPES[dtype.name].c_name
        raise runtime_error(
            f"{factor} is complex, and the tensors are not",
            text=f"value cannot be converted to type {name} without overflow",
        )
    return checked_cast(factor, DTYPES[dtype.name]) if dtype.kind in "iu" else factor


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
    product = module_of(other).asarray(widened(other) * number)
    flat = product.ravel(order="K")  # a view: the product has no gaps
    alone = flat[flat.size // _GROUP * _GROUP :]
    alone[...] = alone.astype(self.dtype).astype(np.float32)
    return narrowed(widened(self) + product, self.dtype)[()]
