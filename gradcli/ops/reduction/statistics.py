"""Statistics: `var std var_mean std_mean median nanmedian mode`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import on_the_host
from gradcli.arrays.kernels import selection
from gradcli.arrays.kernels.sums import mean_and_squares, squares_about, wide
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.binding.arguments import normal_dim, normal_dims
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import BY_KINDS, Hazard, describe, in_numpy
from gradcli.ops.definition.dtype_support import (
    COMPLEX,
    Unsupported,
    check_floating_dtype,
    dtype_names,
)
from gradcli.ops.definition.lints import check_freedom
from gradcli.ops.definition.op import Function, Op, op, rounded_once
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.reduction.extrema import check_not_empty, picked, put_selected, shared_evenly
from gradcli.ops.reduction.sum import (
    check_reduced,
    fold,
    mean_all,
    mean_dims,
    reduced_count,
    reduction,
)
from gradcli.ops.shape.views import expand, restore_dims

Axes = tuple[int, ...] | None

# --- variance -----------------------------------------------------------------------------------


def _moments(self: Any, dims: Axes, correction: float, keepdim: bool) -> tuple[Any, Any]:
    """Variance, not rounded yet to the input's dtype, and mean."""
    if self.dtype.kind == "c":
        parts = [_moments(part, dims, correction, keepdim) for part in (self.real, self.imag)]
        (variance, mean), (imaginary, imaginary_mean) = parts
        return _as(self.real, variance) + _as(self.real, imaginary), mean + 1j * imaginary_mean
    mean, squares = mean_and_squares(self, tuple(range(self.ndim)) if dims is None else dims)
    if not keepdim:
        mean, squares = np.squeeze(mean, dims), np.squeeze(squares, dims)
    return squares / _freedom(self, dims, correction), mean


def _variance(self: Any, dims: Axes, correction: float, keepdim: bool) -> Any:
    """The variance alone, in which PyTorch goes another way to a single result: around the mean
    rounded to the input's dtype.
    """
    if self.dtype.kind == "c":
        parts = [_variance(part, dims, correction, keepdim) for part in (self.real, self.imag)]
        return _as(self.real, parts[0]) + _as(self.real, parts[1])
    if self.dtype.char not in "fd" or not 0 < self.size == reduced_count(self.shape, dims):
        return _moments(self, dims, correction, keepdim)[0]
    variance = squares_about(mean_all(self), self) / _freedom(self, dims, correction)
    shape = (1,) * (self.ndim if keepdim else self.ndim - len(dims) if dims else 0)
    return np.reshape(variance, shape)


def _freedom(self: Any, dims: Axes, correction: float) -> Any:
    # A divisor below 0 counts as 0: PyTorch gives inf or nan.
    return np.float64(max(0.0, reduced_count(self.shape, dims) - correction))


def _as(self: Any, moment: Any) -> Any:
    """A moment in the dtype of the input."""
    return moment.astype(self.dtype)[()]


def _restored(value: Any, dims: Axes, keepdim: bool) -> Any:
    return value if dims is None else restore_dims(value, dims, keepdim)


def _var_gradient(grad: Any, self: Any, dims: Axes, correction: float, keepdim: bool) -> Any:
    freedom = reduced_count(self.shape, dims) - correction
    factor = 2.0 / freedom if freedom else math.inf
    mean = mean_all(self) if dims is None else mean_dims(self, dims, True)
    return _restored(grad, dims, keepdim) * factor * (self - mean)


def _std_gradient(
    grad: Any, self: Any, result: Any, dims: Axes, correction: float, keepdim: bool
) -> Any:
    # Where all elements are equal the derivative does not exist; 0 is taken.
    of_variance = masked_fill_number(grad / (result * 2.0), result == 0, 0)
    return _var_gradient(of_variance, self, dims, correction, keepdim)


var = op(
    "var",
    lambda self, dims, correction, keepdim: _as(
        self.real, _variance(self, dims, correction, keepdim)
    ),
    half=rounded_once,
    self=_var_gradient,
    hazard=Hazard(nothing="var of so few elements divides by 0"),
    numpy=".var(axis, keepdims)",
    raises=BY_KINDS,
)
std = op(
    "std",
    lambda self, dims, correction, keepdim: _as(
        self.real, np.sqrt(_variance(self, dims, correction, keepdim))
    ),
    half=rounded_once,
    self=_std_gradient,
    hazard=Hazard(nothing="std of so few elements divides by 0"),
    numpy=".std(axis, keepdims)",
    raises=BY_KINDS,
)


def _plus_mean(of_spread: Any, of_mean: Any, self: Any, dims: Axes, keepdim: bool) -> Any:
    """The gradients through a spread and through the mean, added; either may be missing."""
    if of_mean is None:
        return of_spread
    whole = expand(_restored(of_mean, dims, keepdim), self.shape)
    gradient = whole / reduced_count(self.shape, dims)
    return gradient if of_spread is None else of_spread + gradient


def _var_mean_array(self: Any, dims: Axes, correction: float, keepdim: bool) -> tuple[Any, Any]:
    variance, mean = _moments(self, dims, correction, keepdim)
    return _as(self.real, variance), _as(self, mean)


def _std_mean_array(self: Any, dims: Axes, correction: float, keepdim: bool) -> tuple[Any, Any]:
    variance, mean = _moments(self, dims, correction, keepdim)
    return _as(self.real, np.sqrt(variance)), _as(self, mean)


def _var_mean_rule(grads: Any, self: Any, dims: Axes, correction: float, keepdim: bool) -> Any:
    of_var, of_mean = grads
    if of_var is not None:
        of_var = _var_gradient(of_var, self, dims, correction, keepdim)
    return _plus_mean(of_var, of_mean, self, dims, keepdim)


def _std_mean_rule(
    grads: Any, self: Any, result0: Any, dims: Axes, correction: float, keepdim: bool
) -> Any:
    of_std, of_mean = grads
    if of_std is not None:
        of_std = _std_gradient(of_std, self, result0, dims, correction, keepdim)
    return _plus_mean(of_std, of_mean, self, dims, keepdim)


var_mean = op(
    "var_mean",
    _var_mean_array,
    half=rounded_once,
    outputs=("result0", "result1"),
    self=_var_mean_rule,
    hazard=Hazard(nothing="var_mean of so few elements divides by 0"),
    raises=BY_KINDS,
)
std_mean = op(
    "std_mean",
    _std_mean_array,
    half=rounded_once,
    outputs=("result0", "result1"),
    self=_std_mean_rule,
    hazard=Hazard(nothing="std_mean of so few elements divides by 0"),
    raises=BY_KINDS,
)


def _add_spread(entry: Op, words: str) -> None:
    """The function of a spread; `unbiased` is the older name of `correction` 1 or 0."""
    name = entry.name

    @reduction(name, method="_" not in name)
    def spread(
        input: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Any:
        check_reduced(name, input, keepdim)
        text = "std and var only support floating point and complex dtypes"
        check_floating_dtype(name, input.dtype, text)
        if type(dim) is bool:
            dim, unbiased = None, dim
        if unbiased is not None:
            if correction is not None:
                raise GradcliError("E201", f"{name}(): give unbiased or correction, not both")
            correction = float(unbiased)
        dims = None if dim is None and not keepdim else normal_dims(name, input, dim)
        correction = 1 if correction is None else correction
        check_freedom(name, reduced_count(input.array.shape, dims), correction)
        return entry.apply(input, dims, correction, keepdim)

    describe(
        spread,
        f"{words}, over the dimensions; its divisor is the count less `correction`, 1.",
        conventions="Where the result is 0 the gradient is 0." if name == "std" else "",
    )


_add_spread(var, "The variance")
_add_spread(std, "The standard deviation")
_add_spread(var_mean, "The variance and the mean")
_add_spread(std_mean, "The standard deviation and the mean")

# --- the middle and the most frequent -----------------------------------------------------------


def _middle(self: Any, ignore_nan: bool) -> Any:
    """The positions along the last dimension of the median: of two in the middle the lower one."""
    # In float32 bfloat16 has its nan last.
    order = np.argsort(wide(self), axis=-1, kind="stable")
    missing = fold(np.add, self != self, -1, True)
    count = self.shape[-1]
    # NaNs are sorted last; one makes the median nan, unless they are left out.
    position = (count - missing - 1) // 2 if ignore_nan else (count - 1) // 2 + 0 * missing
    if not ignore_nan:
        position = np.where(missing > 0, count - missing, position)
    return np.take_along_axis(order, np.maximum(position, 0), -1)


def _median_of_all(name: str, node_name: str, ignore_nan: bool) -> Op:
    def forward(self: Any) -> Any:
        flat = np.reshape(self, -1)
        if not flat.size:
            return self.dtype.type(math.nan)
        return flat[_middle(flat, ignore_nan)[0]]

    return op(
        name,
        forward,
        node=node_name,
        self=shared_evenly,
        unsupported=_BOOL_OR_COMPLEX,
        raises=BY_KINDS,
    )


_BOOL_OR_COMPLEX = dtype_names("bool", "complex")


def _picked_along(name: str, node_name: str, pick: Function, unsupported: Unsupported) -> Op:
    """An op that picks one element along a dimension; `pick` finds its position in the last one."""

    def forward(self: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
        if not self.ndim:
            return self[()], np.int64(0)
        check_not_empty(name, self, (dim,))
        positions = np.moveaxis(pick(np.moveaxis(self, dim, -1)), -1, dim)
        return picked(self, positions, dim, keepdim)

    return op(
        name,
        forward,
        node=node_name,
        outputs=("values", "indices"),
        differentiable=(0,),
        self=lambda grads, indices, self_sizes, dim, keepdim: put_selected(
            grads[0], dim, indices, self_sizes, keepdim
        ),
        unsupported=unsupported,
        raises=BY_KINDS,
    )


_IN_NUMPY = """\
def lower_median(x, dim=None, keepdim=False):
    if dim is None:
        return np.sort(x.reshape(-1))[(x.size - 1) // 2]
    order = np.argsort(x, dim)
    at = np.take(order, np.array([(x.shape[dim] - 1) // 2]), dim)
    values = np.take_along_axis(x, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))
"""


def _median(name: str, number: str, ignore_nan: bool) -> Function:
    of_all = _median_of_all(name, f"{number}Backward0", ignore_nan)
    along = _picked_along(
        name, f"{number}Backward1", lambda self: _middle(self, ignore_nan), _BOOL_OR_COMPLEX
    )

    @reduction(name)
    @in_numpy("" if ignore_nan else _IN_NUMPY)
    def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        check_reduced(name, input, keepdim)
        if dim is None:
            return of_all.apply(input)
        at = normal_dim(name, dim, input.array.ndim)
        return named(name, "values indices", along.apply(input, at, keepdim))

    rest = ", nan left out" if ignore_nan else ""
    describe(
        median,
        f"The median of all elements, or with its indices along a dimension{rest}; of two in the"
        " middle the lower one.",
        conventions="Ties share the gradient evenly; along `dim`, one of them gets it all.",
    )
    return median


median = _median("median", "Median", False)
nanmedian = _median("nanmedian", "Nanmedian", True)


@on_the_host
def _most_frequent(self: Any) -> Any:
    """The positions along the last dimension of the most frequent value: the smallest of several,
    and of its positions the one that PyTorch's sort leaves last.
    """
    length = self.shape[-1]
    flat = np.reshape(self, (-1, length))
    values = np.sort(flat, axis=-1)
    begins = np.ones(values.shape, bool)
    begins[:, 1:] = values[:, 1:] != values[:, :-1]
    numbers = np.arange(length)
    runs = numbers - np.maximum.accumulate(np.where(begins, numbers, 0), axis=-1)
    ends = np.argmax(runs, axis=-1)[:, None]  # of the first of the longest runs
    equal = flat == np.take_along_axis(values, ends, -1)
    positions = length - 1 - np.argmax(equal[:, ::-1], axis=-1)[:, None]
    if selection.SORT_END < length <= selection.LONGEST:
        for row in np.flatnonzero(np.take_along_axis(runs, ends, -1)):
            order = selection.order(flat[row])
            positions[row] = order[ends[row, 0]]
    for row in np.flatnonzero((values != values).any(-1)):
        positions[row] = _most_frequent_beside_nan(flat[row])
    return np.reshape(positions, (*self.shape[:-1], 1))


def _most_frequent_beside_nan(values: Any) -> int:
    """The same where nan, which is less than nothing and equal to nothing, disturbs the order: what
    PyTorch gives follows from its sorting by insertion.
    """
    order: list[int] = []
    for position, value in enumerate(values):
        at = len(order)
        if order and value < values[order[0]]:
            at = 0
        while at and value < values[order[at - 1]]:
            at -= 1
        order.insert(at, position)
    best, most, count = order[0], 0, 0
    for position, following in zip(order, [*order[1:], None], strict=True):
        count += 1
        if following is None or values[position] != values[following]:
            if count > most:
                best, most = position, count
            count = 0
    return best


_mode = _picked_along("mode", "ModeBackward0", _most_frequent, COMPLEX)


@reduction("mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent value along a dimension, with an index of it.

    Example: torch.mode(tensor([[2., 1.], [1., 3.]]), 0)
    """
    check_reduced("mode", input, keepdim)
    at = normal_dim("mode", dim, input.array.ndim)
    return named("mode", "values indices", _mode.apply(input, at, keepdim))
