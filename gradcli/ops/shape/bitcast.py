"""`view(dtype)`: a tensor's memory read as another dtype."""

from __future__ import annotations

from gradcli.arrays.dtypes import DType
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor, alias
from gradcli.errors import GradcliError


def bits_as(tensor: Tensor, dtype: DType) -> Tensor:
    """The same memory and version in another dtype, outside the graph. Elements of another size
    make the last dimension longer or shorter.

    Raises E203 where they do not fit it, or it does not lie without gaps.
    """
    result = alias(tensor)
    array = forced(result.array)
    old, new = tensor.dtype.itemsize, dtype.itemsize
    if old != new:
        problem = ""
        if not array.ndim:
            problem = "a 0-dim tensor has no dimension that could grow or shrink"
        elif array.strides[-1] != old:
            problem = "the last dimension does not lie in one piece"
        elif array.shape[-1] * old % new:
            problem = f"the last dimension, of {array.shape[-1]} elements, is no multiple of it"
        if problem:
            raise GradcliError(
                "E203",
                f"view(): elements of {tensor.dtype} have {old} bytes and those of {dtype} {new}:"
                f" {problem}",
            )
    result.array = array.view(dtype.numpy_dtype)
    return result
