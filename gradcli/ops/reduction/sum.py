"""Reductions: `sum mean prod nansum nanmean logsumexp`, and the functions that all reductions
share.

Where a program's tensor is concerned use the functions (`sum_function`, `mean`, …); entries are for
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod as product
from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import device_of
from gradcli.arrays.dtypes import DType
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import LAZY, LONG
from gradcli.arrays.kernels import vector_math
from gradcli.arrays.kernels.sums import (
    LARGEST,
    MANY,
    Step,
    is_float,
    ordered_sum,
    steps_of,
    wide,
)
from gradcli.autograd.engine import accumulate
from gradcli.autograd.inplace.writes import check_inplace
from gradcli.autograd.tensor import Tensor
from gradcli.errors import dtype_error, shape_error, type_error
from gradcli.ops.arithmetic.arithmetic import conj
from gradcli.ops.binding.arguments import NUMPY_NAMES, Dims, check_tensors, normal_dims, sizes_of
from gradcli.ops.binding.catalogue import CastTo, autocasting, function, in_place, methods, modules
from gradcli.ops.binding.functions import torch
from gradcli.ops.codegen.promotion import EVERYDAY, NATIVE_SCALARS
from gradcli.ops.codegen.runtime import type_name
from gradcli.ops.creation.fill import checked_dtype
from gradcli.ops.definition.doc import BY_KINDS, Hazard
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, check_floating_dtype
from gradcli.ops.definition.op import Function, op
from gradcli.ops.definition.refs import exp
from gradcli.ops.shape.views import expand, restore_dims, view
from gradcli.state import active

Axes = int | tuple[int, ...] | None


# --- arguments ----------------------------------------------------------------------------------


def reduction(
    *names: str,
    module: str = "torch",
    method: bool = True,
    inplace: bool = False,
    check: Callable[..., Any] = check_inplace,
    autocast: CastTo | None = None,
) -> Callable[[Function], Function]:
    """Make a reduction reachable under the names, with NumPy's `axis=` and `keepdims=` as well, and
    with Python's types of numbers for a dtype.
    """

    def decorate(body: Function) -> Function:
        if autocast is not None:
            body = autocasting(body, autocast)

        def renamed(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                kwargs = {NUMPY_NAMES.get(name, name): value for name, value in kwargs.items()}
                if "dtype" in kwargs:
                    kwargs["dtype"] = checked_dtype(names[0], kwargs["dtype"], None)
            return body(*args, **kwargs)

        for each in (body, renamed):
            each.__name__ = each.__qualname__ = names[0]
        renamed.__doc__ = body.__doc__
        renamed.__wrapped__ = body  # type: ignore[attr-defined]
        for name in names:
            modules[module][name] = renamed
            if method:
                methods[name] = renamed
            if inplace:
                methods[f"{name}_"] = in_place(name, renamed, check=check)
        return body

    return decorate


def check_reduced(name: str, input: Any, keepdim: Any = False, dtype: DType | None = None) -> None:
    """Raise E202 unless the input is a tensor and `keepdim` a bool, E203 where a gradient would
    pass a result of integers.
    """
    if type(input) is not Tensor:  # the usual case is not worth a call
        check_tensors(name, input=input)
    if type(keepdim) is not bool:
        raise type_error(f"{name}(): keepdim must be True or False, not {type_name(keepdim)}")
    if dtype is None or dtype.category not in ("bool", "int"):
        return
    if input.requires_grad and active.state.grad_enabled:
        raise dtype_error(
            f"{name}(): a result of {dtype} has no gradient, and the input requires one",
            text=f"Autograd not support dtype: {dtype.scalar_type}",
            help="`.detach()` the input",
        )


def fold(ufunc: Any, array: Any, dims: Axes, keepdim: bool = False, dtype: Any = None) -> Any:
    """A ufunc applied across the elements of dimensions, all of them for None."""
    folded = ufunc.reduce(array, axis=dims, dtype=dtype)
    if not keepdim or not array.ndim:
        return folded
    # Not by NumPy's keepdims: the strides that it gives the dimensions are not PyTorch's.
    return np.expand_dims(folded, tuple(range(array.ndim)) if dims is None else dims)


def cast_array(array: Any, dtype: DType | None) -> Any:
    """The array in a dtype; None keeps its own."""
    return array if dtype is None else dtypes.cast(array, dtype)


def reduced_count(sizes: Sequence[int], dims: Sequence[int] | None) -> int:
    """How many elements make one element of the result."""
    return product(sizes) if dims is None else product(sizes[dim] for dim in dims)


def kept_sizes(sizes: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The result's sizes with `keepdim`: those of the input, 1 where reduced."""
    return tuple(1 if dims is None or dim in dims else size for dim, size in enumerate(sizes))


# --- sum ----------------------------------------------------------------------------------------


def _sum_array(
    self: Any, dims: tuple[int, ...] | None, keepdim: bool, dtype: DType | None = None
) -> Any:
    if dtype is not None:
        self = dtypes.cast(self, dtype)
    kind = self.dtype.kind
    if kind == "f" and self.dtype.itemsize > 2:
        if type(self) in LAZY:
            if self.size >= LARGEST or device_of(self).type != "cpu":
                return self.reduced(dims, keepdim)
            self = self.force()  # its memory order determines the order of additions
        if type(self) in HOST_ARRAYS and 4 < self.size < LARGEST:  # no array of a GPU
            total = ordered_sum(self, dims)
            return total.reshape(kept_sizes(self.shape, dims))[()] if keepdim else total
        if (
            self.size > LONG
            and dims
            and self.dtype.itemsize == 4
            and reduced_count(self.shape, dims) > LONG
            and device_of(self).type == "cpu"  # a GPU adds pairwise
        ):
            total = fold(np.add, self, dims, keepdim, dtype=np.float64)
            return total.astype(np.float32)
        return fold(np.add, self, dims, keepdim)
    if kind in "iub" and dtype is None:
        return fold(np.add, self, dims, keepdim, dtype=np.int64)
    total = fold(np.add, wide(self), dims, keepdim)
    return total.astype(self.dtype)


sum_all = op(
    "sum",
    lambda self, dtype=None: _sum_array(self, None, False, dtype),
    reads_lazy=True,
    self=lambda grad, self_sizes: expand(grad, self_sizes),
    numpy=".sum(axis, keepdims)",
    raises=BY_KINDS,
)

sum_dims = op(
    "sum",
    lambda self, dims, keepdim, dtype=None: _sum_array(self, dims, keepdim, dtype),
    node="SumBackward1",
    reads_lazy=True,
    self=lambda grad, self_sizes, dims, keepdim: expand(
        restore_dims(grad, dims, keepdim), self_sizes
    ),
    raises=BY_KINDS,
)


@reduction("sum")
def sum_function(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum of all elements, or over the given dimensions. Integers and bools give int64."""
    check_reduced("sum", input, keepdim, dtype)
    if dim is None and not keepdim:
        return sum_all.apply(input, dtype)
    return sum_dims.apply(input, normal_dims("sum", input, dim), keepdim, dtype)


def sum_to(gradient: Any, shape: tuple[int, ...]) -> Any:
    """A gradient summed to a shape that broadcasts to its own: what the engine does for every
    input. Raises ValueError for any other shape.

    The method is chosen once for arrays of the same memory order.
    """
    if type(gradient) in HOST_ARRAYS:
        key = (gradient.shape, gradient.strides, gradient.dtype, shape)
        step = _remembered.get(key)
        if step is None:
            if len(_remembered) == MANY:
                _remembered.clear()
            step = _remembered[key] = _summing(gradient, shape)
        return step(gradient)
    if type(gradient) is not Tensor:
        return _summing(gradient, shape)(gradient)
    larger = gradient.array.shape
    dims = _broadcast_dims(shape, larger)
    if not shape:
        return sum_all(gradient)
    summed = sum_dims(gradient, dims, True)
    return view(summed, shape) if len(larger) > len(shape) else summed


_remembered: dict[tuple[Any, ...], Step] = {}


def _summing(gradient: Any, shape: tuple[int, ...]) -> Step:
    """A function that sums arrays of this memory order to a shape."""
    dims = _broadcast_dims(shape, gradient.shape) if shape else None
    if type(gradient) in HOST_ARRAYS and gradient.dtype in EVERYDAY and 4 < gradient.size < LARGEST:
        step = steps_of(gradient, dims)
    else:
        step = partial(_sum_array, dims=dims, keepdim=False)
    if not shape or len(shape) == gradient.ndim - len(dims or ()):
        return step
    return lambda array: step(array).reshape(shape)


def _broadcast_dims(shape: tuple[int, ...], larger: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions of a larger shape that broadcasting a shape to it adds or stretches. Raises
    ValueError where it does not broadcast.
    """
    leading = len(larger) - len(shape)
    if leading < 0:
        raise ValueError("the shape has more dimensions")
    stretched = [leading + i for i, size in enumerate(shape) if size != larger[leading + i]]
    if any(shape[dim - leading] != 1 for dim in stretched):
        raise ValueError("the shape does not broadcast")
    return (*range(leading), *stretched)


accumulate.sum_to = sum_to


@function("sum_to_size", method=True)
def sum_to_size(input: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """The tensor summed to a size that broadcasts to its own. Raises E301 for any other size.

    Example: torch.sum_to_size(tensor([[2., 1.], [1., 3.]]), (1, 2))
    """
    wanted = sizes_of("sum_to_size", sizes if size is None else (size,))
    shape = tuple(input.array.shape)
    if not wanted:
        return torch.sum(input)
    if wanted == shape:
        return input
    try:
        summed: Tensor = sum_to(input, wanted)
    except ValueError:
        raise shape_error(
            f"sum_to_size(): a tensor of shape {shape} cannot be summed to {wanted}",
            text=f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.",
        ) from None
    return summed


# --- nansum -------------------------------------------------------------------------------------


def _nansum_array(
    self: Any, dims: tuple[int, ...] | None, keepdim: bool, dtype: DType | None = None
) -> Any:
    if is_float(self):
        self = np.where(np.isnan(self), self.dtype.type(0), self)
    return _sum_array(self, dims, keepdim, dtype)


_nansum = op(
    "nansum",
    _nansum_array,
    # What was left out has gradient 0.
    self=lambda grad, self, dims, keepdim: (
        expand(grad if dims is None else restore_dims(grad, dims, keepdim), self.shape)
        * (self == self)
    ),
    raises=BY_KINDS,
)


@reduction("nansum")
def nansum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum of the elements that are not nan.

    Conventions: What was left out has gradient 0.
    """
    check_reduced("nansum", input, keepdim, dtype)
    if input.dtype.is_complex:
        text = "nansum on CPU does not support complex inputs"
        raise dtype_error("nansum() is not defined for complex tensors", text=text)
    if dtype is not None:
        check_dtype("nansum", dtype, COMPLEX)
    dims = None if dim is None and not keepdim else normal_dims("nansum", input, dim)
    return _nansum.apply(input, dims, keepdim, dtype)


@reduction("nanmean")
def nanmean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean of the elements that are not nan. Raises E203 for integers."""
    check_reduced("nanmean", input, keepdim)
    check_floating_dtype("nanmean", dtype or input.dtype, whose="Optional" if dtype else "Input")
    present = sum_function(input == input, dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / present


# --- mean ---------------------------------------------------------------------------------------


def _mean_array(
    self: Any, dims: tuple[int, ...] | None, keepdim: bool, dtype: DType | None = None
) -> Any:
    if dtype is not None:
        self = dtypes.cast(self, dtype)
    total = _sum_array(wide(self), dims, keepdim)
    count = self.size if dims is None else reduced_count(self.shape, dims)
    mean = total / total.dtype.type(count)
    return mean if mean.dtype is self.dtype else mean.astype(self.dtype)


def _mean_rule(grad: Any, self_sizes: tuple[int, ...]) -> Any:
    count = product(self_sizes)
    if type(grad) in NATIVE_SCALARS and count < active.state.lazy_from:
        slopes = np.empty(self_sizes, grad.dtype)
        slopes.fill(grad / count)  # dividing what was expanded takes three times as long
        return slopes
    return expand(grad, self_sizes) / count


mean_all = op(
    "mean",
    lambda self, dtype=None: _mean_array(self, None, False, dtype),
    reads_lazy=True,
    self=_mean_rule,
    hazard=Hazard(nothing="the mean of nothing divides 0 by 0"),
    numpy=".mean(axis, keepdims)",
    raises=BY_KINDS,
)

mean_dims = op(
    "mean",
    lambda self, dims, keepdim, dtype=None: _mean_array(self, dims, keepdim, dtype),
    node="MeanBackward1",
    reads_lazy=True,
    self=lambda grad, self_sizes, dims, keepdim: (
        expand(restore_dims(grad, dims, keepdim), self_sizes) / reduced_count(self_sizes, dims)
    ),
    hazard=Hazard(nothing="the mean of nothing divides 0 by 0"),
    raises=BY_KINDS,
)


@reduction("mean")
def mean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean of all elements, or over the given dimensions. Raises E203 for integers."""
    check_reduced("mean", input, keepdim)
    if dtype is not None or input.array.dtype not in EVERYDAY:
        whose = "Input" if dtype is None else "Optional"
        check_floating_dtype("mean", dtype or input.dtype, whose=whose)
    if dim is None and not keepdim:
        return mean_all.apply(input, dtype)
    return mean_dims.apply(input, normal_dims("mean", input, dim), keepdim, dtype)


# --- logsumexp ----------------------------------------------------------------------------------


def logsumexp_array(self: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """log(sum(exp(self))) without overflow: the largest element is taken out first."""
    if not self.size:
        return np.log(fold(np.add, np.exp(self), dims, keepdim))
    largest = np.max(self.real, axis=dims, keepdims=True)  # the logarithm's angle stays principal
    # Where the largest is infinite it cannot be taken out: inf - inf is nan.
    largest = np.where(np.isinf(largest), largest.dtype.type(0), largest)
    total = _sum_array(vector_math.exp(self - largest), dims, True)
    result = vector_math.log(total) + largest
    return result if keepdim else np.squeeze(result, dims)[()]


def _logsumexp_rule(grad: Any, self: Any, result: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    return restore_dims(grad, dims, keepdim) * conj(exp(self - restore_dims(result, dims, keepdim)))


logsumexp = op(
    "logsumexp",
    logsumexp_array,
    self=_logsumexp_rule,
    numpy="""\
def logsumexp(x, axis, keepdims=False):
    if np.iscomplexobj(x):
        return np.log(np.exp(x).sum(axis=axis, keepdims=keepdims))
    return np.logaddexp.reduce(x, axis=axis, keepdims=keepdims)
""",
    raises=BY_KINDS,
)


@reduction("logsumexp")
def logsumexp_function(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials over the dimensions. Integers become floating."""
    check_reduced("logsumexp", input, keepdim)
    if dim is None:
        raise type_error("logsumexp() needs the dimensions to reduce, not None")
    ndim = input.array.ndim
    if dim in ((), []) and ndim and input.array.size:
        # PyTorch takes the largest along no dimension, and the sum along all.
        raise shape_error(
            "logsumexp(): an empty list of dimensions",
            text=f"output with shape [] doesn't match the broadcast shape {[1] * ndim}",
            help="leave `dim` out of sum(), or name all dimensions",
        )
    if input.dtype.category in ("int", "bool"):
        input = Tensor(dtypes.cast(input.array, dtypes.default_dtype()))
    return logsumexp.apply(input, normal_dims("logsumexp", input, dim), keepdim)


modules["torch.special"]["logsumexp"] = torch.logsumexp
