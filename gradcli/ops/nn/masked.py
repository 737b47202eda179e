"""`torch.masked`: reductions and normalisations over the elements that a mask shows."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.dtypes import DType
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, value_error
from gradcli.ops.binding.arguments import normal_dim
from gradcli.ops.binding.catalogue import function, modules
from gradcli.ops.binding.functions import linalg, methods, torch
from gradcli.ops.definition.doc import describe

_MODULE = "torch.masked"
_X, _MASK = "tensor([[2., 1.], [1., 3.]])", "mask=tensor([[True, False], [True, True]])"


def _shown(input: Tensor, mask: Tensor) -> Tensor:
    """A mask as truth values of the input's shape; raises E302 for one of more dimensions."""
    if mask.ndim > input.ndim:
        raise GradcliError(
            "E302",
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the"
            " input)",
        )
    whole = methods.broadcast_to(mask, input.array.shape)
    return whole if whole.dtype is dtypes.boolean else methods.to(whole, dtypes.boolean)


def _filled(input: Tensor, mask: Tensor | None, fill: float) -> Tensor:
    """The input with a number where nothing is shown; infinities are the limits of integers."""
    if mask is None:
        return input
    number: Any = fill
    if input.dtype.category in ("int", "bool"):
        if abs(fill) == inf:
            limits = np.iinfo(input.array.dtype) if input.dtype.category == "int" else None
            number = (limits.max if fill > 0 else limits.min) if limits else fill > 0
        else:
            number = int(fill)
    other = torch.tensor(number, dtype=input.dtype)
    return torch.where(_shown(input, mask), input, other)


def _dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(input.ndim))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(sorted({int(normal_dim(_MODULE, each, input.ndim)) for each in dims}))


def _wide(input: Tensor, dtype: DType | None) -> DType:
    """The dtype of a sum or a product: that of integers is int64."""
    whole = input.dtype.category in ("int", "bool")
    return dtype or (dtypes.int64 if whole else input.dtype)


@function("sum", module=_MODULE)
def masked_sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of what the mask shows; see `torch.sum`.

    Example: torch.masked.sum(tensor([2., 1., 3.]), 0, mask=tensor([True, False, True]))
    """
    whole = _filled(input, mask, 0)
    return torch.sum(whole, _dims(input, dim), keepdim, dtype=_wide(input, dtype))


@function("prod", module=_MODULE)
def masked_prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of what the mask shows; see `torch.prod`.

    Example: torch.masked.prod(tensor([2., 1., 3.]), 0, mask=tensor([True, False, True]))
    """
    result = _filled(input, mask, 1)
    for at in reversed(_dims(input, dim)):
        result = methods.prod(result, dim=at, keepdim=keepdim)
    return methods.to(result, _wide(input, dtype))


@function("mean", module=_MODULE)
def masked_mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of what the mask shows; nan where it shows nothing.

    Example: torch.masked.mean(tensor([2., 1., 3.]), 0, mask=tensor([True, False, True]))
    """
    dtype = dtype or input.dtype
    if dtype.category in ("int", "bool"):
        raise value_error(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or"
            f" complex dtype. Got: {dtype}"
        )
    return masked_sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(
        input, dim, keepdim, mask
    )


def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    ones = Tensor(np.ones(input.array.shape, np.int64))
    return masked_sum(ones, dim, keepdim=keepdim, mask=mask)


@function("norm", module=_MODULE)
def masked_norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of what the mask shows; see `torch.linalg.vector_norm`.

    Example: torch.masked.norm(tensor([2., 1., 3.]), 2, 0, mask=tensor([True, False, True]))
    """
    order = 2.0 if ord is None else ord
    whole = _filled(input, mask, inf if order == -inf else 0)
    norm = linalg.vector_norm
    return norm(whole, order, _dims(input, dim), keepdim, dtype=dtype)


@function("normalize", module=_MODULE)
def masked_normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """What the mask shows over its norm, 0 elsewhere; see `F.normalize`.

    Example: torch.masked.normalize(tensor([2., 1., 3.]), 2, 0, mask=tensor([True, False, True]))
    """
    norm = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    least = torch.tensor(eps, dtype=norm.dtype)
    return torch.divide(_filled(input, mask, 0), torch.maximum(norm, least))


def _spread(
    input: Tensor,
    dim: Any,
    unbiased: bool | None,
    keepdim: bool,
    dtype: DType | None,
    mask: Tensor | None,
    correction: float | None,
) -> Tensor:
    """The variance, in PyTorch's steps."""
    dtype = dtype or (dtypes.float32 if input.dtype.category in ("int", "bool") else input.dtype)
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    count: Tensor = _count(input, dim, True, mask)
    total = masked_sum(input, dim, keepdim=True, dtype=dtype, mask=mask)
    centred = torch.subtract(input, torch.divide(total, count))
    squares = centred * methods.conj(centred)
    total = masked_sum(squares, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    count = methods.reshape(count, total.array.shape)
    if correction:
        less = torch.subtract(methods.to(count, dtype), correction)
        count = torch.maximum(less, torch.tensor(0.0, dtype=less.dtype))
    return methods.to(torch.divide(total, count), dtype)


def _expose_spread(name: str, finish: Callable[[Tensor], Tensor]) -> None:
    @function(name, module=_MODULE)
    def spread(
        input: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
        dtype: DType | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        return finish(_spread(input, dim, unbiased, keepdim, dtype, mask, correction))

    example = f"torch.masked.{name}({_X}, 1, {_MASK})"
    describe(spread, f"`torch.{name}` of what the mask shows.", example=example)


_expose_spread("var", lambda value: value)
_expose_spread("std", lambda value: torch.sqrt(value))


def _expose_reduction(name: str, fill: float, dims: Callable[[Tensor, Any], Any] = _dims) -> None:
    """A reduction of what is shown, beside a number that changes nothing."""

    @function(name, module=_MODULE)
    def reduction(
        input: Tensor,
        dim: Any = None,
        *,
        keepdim: bool = False,
        dtype: DType | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        result = modules["torch"][name](_filled(input, mask, fill), dims(input, dim), keepdim)
        return methods.to(result, dtype or input.dtype)

    example = f"torch.masked.{name}({_X}, 1, {_MASK})"
    describe(reduction, f"`torch.{name}` of what the mask shows.", example=example)


def _expose_along(name: str, fill: float, module: str = "torch") -> None:
    """A function along one dimension, whose result has the input's shape."""

    @function(name, module=_MODULE)
    def along(
        input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
    ) -> Tensor:
        at = _dims(input, dim)[0]
        return modules[module][name](_filled(input, mask, fill), at, dtype=dtype or input.dtype)

    example = f"torch.masked.{name}({_X}, 1, {_MASK})"
    describe(along, f"`{name}` of what the mask shows.", example=example)


for _name, _fill in (("amax", -inf), ("amin", inf), ("logsumexp", -inf)):
    _expose_reduction(_name, _fill)
for _name, _fill in (("argmax", -inf), ("argmin", inf)):
    _expose_reduction(_name, _fill, lambda input, dim: dim)
for _name, _fill in (("cumsum", 0.0), ("cumprod", 1.0)):
    _expose_along(_name, _fill)
for _name, _fill in (("softmax", -inf), ("log_softmax", -inf), ("softmin", inf)):
    _expose_along(_name, _fill, "torch.nn.functional")


@function("median", module=_MODULE)
def masked_median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median of what the mask shows, the lower of two; nan where it shows nothing, and
    E204 where nan is no value of the dtype.

    Example: torch.masked.median(tensor([2., 1., 3.]), 0, mask=tensor([True, False, True]))
    """
    at = _dims(input, dim)[0]
    numbers = input if input.dtype.is_floating_point else methods.to(input, dtypes.float32)
    result = torch.nanmedian(_filled(numbers, mask, nan), at, keepdim)[0]
    if numbers is input:
        return result
    if np.isnan(result.array).any():
        raise value_error(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return methods.to(result, dtype or input.dtype)


@function("logaddexp", module=_MODULE)
def masked_logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """`torch.logaddexp` of what each mask shows.

    Example: torch.masked.logaddexp(tensor([2.]), tensor([1.]), input_mask=tensor([True]))
    """
    parts = _filled(input, input_mask, -inf), _filled(other, other_mask, -inf)
    return methods.to(torch.logaddexp(*parts), dtype or input.dtype)
