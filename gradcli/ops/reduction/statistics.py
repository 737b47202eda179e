"""Statistics: `var std var_mean std_mean median nanmedian mode`; and how values are distributed,
the counts `bincount histc histogram`, which leave the graph, and `quantile nanquantile`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.arrays.backend import moved, on_the_host, to_host
from gradcli.arrays.kernels import selection
from gradcli.arrays.kernels.sums import mean_and_squares, squares_about, wide
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import mul, mul_number, no_derivative
from gradcli.ops.binding.arguments import (
    check_floating,
    check_tensors,
    checked_values,
    normal_dim,
    normal_dims,
)
from gradcli.ops.binding.catalogue import function
from gradcli.ops.binding.functions import methods, torch
from gradcli.ops.binding.results import named
from gradcli.ops.definition.doc import (
    BY_KINDS,
    BY_VALUES,
    CHECKS,
    READS,
    Hazard,
    describe,
    effects,
    in_numpy,
)
from gradcli.ops.definition.dtype_support import (
    COMPLEX,
    NOT_FLOATING,
    NOT_SINGLE_OR_DOUBLE,
    Unsupported,
    check_dtype,
    check_floating_dtype,
    dtype_names,
)
from gradcli.ops.definition.lints import check_freedom
from gradcli.ops.definition.op import Function, Op, op, rounded_once
from gradcli.ops.elementwise.comparison import where
from gradcli.ops.indexing.along import gather
from gradcli.ops.indexing.masks import masked_fill_number
from gradcli.ops.reduction.extrema import check_not_empty, picked, put_selected, shared_evenly
from gradcli.ops.reduction.sorting import sort
from gradcli.ops.reduction.sum import (
    check_reduced,
    fold,
    mean_all,
    mean_dims,
    reduced_count,
    reduction,
)
from gradcli.ops.shape.reshaping import flatten
from gradcli.ops.shape.views import (
    expand,
    restore_dims,
    squeeze_in_place,
    transpose,
    transpose_in_place,
    unsqueeze,
    unsqueeze_in_place,
    view,
)
from gradcli.state import look

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
    if dims is None and freedom <= 0:  # inf times the distance from the mean, as if it had no sign
        return grad * where(self == mean_all(self), math.nan, math.inf)
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
for _name, _array, _rule, _words in (
    ("var_mean", _var_mean_array, _var_mean_rule, "The variance and the mean"),
    ("std_mean", _std_mean_array, _std_mean_rule, "The standard deviation and the mean"),
):
    _with_mean = op(
        _name,
        _array,
        half=rounded_once,
        outputs=("result0", "result1"),
        self=_rule,
        hazard=Hazard(nothing=f"{_name} of so few elements divides by 0"),
        raises=BY_KINDS,
    )
    _add_spread(_with_mean, _words)

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
            # PyTorch's nan as an integer is the least one.
            kind = self.dtype
            return kind.type(np.iinfo(kind).min if kind.kind in "iu" else math.nan)
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
        self=put_selected,
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


# --- counts and quantiles -------------------------------------------------------------------------


_LARGEST = 2**63 - 1
"""The largest integer of 64 bits."""


@function("bincount", method=True, effects=(CHECKS, READS))
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 stands in a vector, or the sum of its weights.

    Raises E203 for a vector that is not of integers, E204 for a negative element.

    Example: torch.bincount(tensor([3, 1, 2]))
    """
    check_tensors("bincount", input=input, **({} if weights is None else {"weights": weights}))
    check_dtype("bincount", input.dtype, dtype_names("bool", "float", "complex"))
    array = input.array
    look(None, array)
    if array.ndim != 1:
        raise dtype_error("bincount() needs a vector of integers")
    if array.size and array.min() < 0:
        raise runtime_error(
            "bincount(): an element is negative",
            text="bincount only supports 1-d non-negative integral inputs.",
        )
    if array.size and int(array.max()) == _LARGEST:  # NumPy would count them in no memory
        raise runtime_error(
            f"bincount(): an element is {_LARGEST}, and so many counts cannot be",
            text=f"maximum value of input overflowed, it should be < {_LARGEST} but got {_LARGEST}",
        )
    if minlength < 0:
        raise runtime_error(
            f"bincount(): minlength is {minlength}, below 0", text="minlength should be >= 0"
        )
    if weights is None:
        return Tensor(np.bincount(array, minlength=minlength))
    if weights.array.shape != array.shape:
        raise shape_error("bincount(): the weights have another shape than the vector")
    counts = np.bincount(array, weights.array, minlength)
    single = weights.array.dtype == np.float32
    return Tensor(counts.astype(np.float32) if single else counts)


@function("histc", method=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of the equal bins between min and max; the least and the
    greatest element where the two are equal. Raises E203 for integers, E204 for no range.

    Example: torch.histc(tensor([0.5, 1., 2.]), 4)
    """
    _check_bins("histc", bins)
    check_floating("histc", input)
    array = input.array
    look(None, array)
    low, high = float(min), float(max)
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not low < high or np.isinf([low, high]).any():
        raise runtime_error(
            "torch.histc: max must be larger than min"
            if low > high
            else f"range of [{low:g}, {high:g}] is not finite"
        )
    values = array.reshape(-1)
    ends = moved(torch.linspace(low, high, bins + 1, dtype=input.dtype).array, input.device)
    values = values[(values >= ends[0]) & (values <= ends[-1])]
    return Tensor(_counted(_interpolated(values, ends), ends, None))


@function("histogram", method=True)
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many elements fall into each bin, or the sum of their weights, and where the bins end.

    Args:
        bins: how many bins of one width there are, or where they end.
        range: where the first begins and the last ends, the least and the greatest element by
            default.
        density: whether the bins' areas sum to 1.

    Raises E203 for half precision and where dtypes differ, E204 for a range that is none.

    Example: torch.histogram(tensor([0.5, 1., 2.]), 4)
    """
    check_tensors("histogram", input=input, **({} if weight is None else {"weight": weight}))
    _check_bins("histogram", bins)
    _check_histogram(input, bins, weight)
    # PyTorch computes ends that it is not given in single or double precision alone.
    check_dtype(
        "histogram",
        input.dtype,
        NOT_FLOATING if isinstance(bins, Tensor) else NOT_SINGLE_OR_DOUBLE,
    )
    look(None, input.array)
    ends = _ends(np.asarray(to_host(input.array)).reshape(-1), bins, range, input.dtype)
    given = isinstance(bins, Tensor)
    parts = _histogram.apply(input, ends, given, density, weight)
    return named("histogram", "hist bin_edges", parts)


@on_the_host
def _histogram_array(
    self: Any, ends: Any, given: bool, density: bool, weight: Any
) -> tuple[Any, Any]:
    values = np.asarray(self).reshape(-1)
    weights = None if weight is None else np.asarray(weight, np.float64).reshape(-1)
    inside = (values >= ends[0]) & (values <= ends[-1])
    values, weights = values[inside], None if weights is None else weights[inside]
    if given:
        at = np.searchsorted(ends, values, "right") - 1
    else:  # a bin that rounding missed is beside the one that the number has by division
        at = _interpolated(values, ends)
        near = at[:, None] + np.arange(-1, 2)
        reached = ends[np.clip(near, 0, len(ends) - 1)] <= values[:, None]
        at = near[:, 0] - 1 + (reached & (near < len(ends))).sum(1)
    counts = _counted(at, ends, weights)
    if density:
        counts = counts / counts.sum() / np.diff(ends)
    return counts.astype(values.dtype, copy=False), ends


_no_counts = no_derivative("histogram", "counts have no slope: smooth them, or detach() the input")

_histogram: Op = op(
    "histogram",
    lambda self, ends, given, density, weight=None: _histogram_array(
        self, ends, given, density, weight
    ),
    node="NotImplemented",
    outputs=("hist", "bin_edges"),
    self=lambda grads: _no_counts(grads),
    weight=lambda grads: _no_counts(grads),
    raises=BY_VALUES,
)


def _check_histogram(input: Tensor, bins: Any, weight: Tensor | None) -> None:
    """Raise E203 or E301 for ends of bins or weights that do not go with the input."""
    own = input.dtype
    if isinstance(bins, Tensor):
        ends = bins.array
        if ends.ndim != 1 or not ends.size:
            wanted, found = ("one dimension", f"{ends.ndim} dimensions")
            if ends.ndim == 1:
                wanted, found = ("at least 1 element", "0 elements")
            raise shape_error(
                f"torch.histogramdd: bins tensor should have {wanted}, but got {found} in the bins"
                " tensor for dimension 0"
            )
        if bins.dtype is not own:
            raise dtype_error(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but"
                f" got input with dtype {own.c_name} and bins for dimension 0 with dtype"
                f" {bins.dtype.c_name}"
            )
        _check_bins("histogram", ends.size - 1)
    if weight is None:
        return
    if weight.dtype is not own:
        raise dtype_error(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should"
            f" have the same dtype, but got input({own.c_name}), and weight({weight.dtype.c_name})"
        )
    if weight.array.size != input.array.size:
        flat, given = [input.array.size, 1], [weight.array.size]
        raise shape_error(
            "histogram(): there are not as many weights as elements",
            text="torch.histogramdd: if weight tensor is provided it should have the same shape as"
            f" the input tensor excluding its innermost dimension, but got input with shape {flat}"
            f" and weight with shape {given}",
        )


def _check_bins(name: str, bins: Any) -> None:
    """Raise E204 for no bins; a tensor says where they end."""
    if isinstance(bins, int) and bins <= 0:
        raise runtime_error(
            f"{name}() needs a bin or more",
            text=f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0",
        )


def _ends(values: Any, bins: Any, between: Any, dtype: Any) -> Any:
    """Where the bins of a histogram end; raises E204 for a range that has no order."""
    if isinstance(bins, Tensor):
        return np.asarray(to_host(bins.array))
    if between is None:
        low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    else:
        low, high = map(float, between)
    if not np.isfinite([low, high]).all():
        raise runtime_error(
            f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite"
        )
    if low > high:
        raise runtime_error(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for"
            " dimension 0"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return to_host(torch.linspace(low, high, bins + 1, dtype=dtype).array)


def _interpolated(values: Any, ends: Any) -> Any:
    """The bins that values fall into by division, rounded as PyTorch rounds it, in their dtype."""
    bins = values.dtype.type(len(ends) - 1)
    return ((values - ends[0]) * bins / (ends[-1] - ends[0])).astype(np.int64)


def _counted(at: Any, ends: Any, weights: Any) -> Any:
    """How many values, or the sum of their weights, fall into each bin; the last one is closed."""
    bins = len(ends) - 1
    return np.bincount(np.minimum(at, bins - 1), weights, bins).astype(ends.dtype)


# --- quantiles ------------------------------------------------------------------------------------


_INTERPOLATIONS = {
    "linear": None,
    "midpoint": None,
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.rint,
}


def _checked_fractions(name: str, input: Tensor, q: Any) -> Tensor:
    """The fractions as a tensor. Raises E203 for dtypes that differ, E204 outside of 0 to 1."""
    if str(input.array.dtype) not in ("float32", "float64"):
        raise dtype_error(f"{name}() input tensor must be either float or double dtype")
    if type(q) in (int, float):
        if not 0 <= q <= 1:
            raise runtime_error(
                f"{name}(): q must lie between 0 and 1, not {q}",
                text=f"{name}() q must be in the range [0, 1] but got {q:g}",
            )
        return Tensor(moved(input.array.dtype.type(q), input.device))
    check_tensors(name, q=q)
    if q.array.ndim > 1:
        raise shape_error(f"{name}(): q must be a number or a vector")
    if q.dtype is not input.dtype:
        raise dtype_error(f"{name}(): q is {q.dtype} and the input {input.dtype}")
    checked_values(_check_shares, name, q.array)
    return q


def _check_shares(name: str, q: Any) -> None:
    """Raise E204 for a share that is none."""
    if not ((q >= 0) & (q <= 1)).all():
        raise runtime_error(f"{name}(): every q must lie between 0 and 1")


def _sorted_last(input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """The elements sorted along a last dimension; before it those that the result will have."""
    ndim = input.array.ndim
    if dim is None:
        values = sort.apply(flatten(input), 0, False, False)[0]
        sizes = (1,) * ndim if keepdim else ()
    else:
        sizes = tuple(input.array.shape[:dim] + input.array.shape[dim + 1 :])
        if keepdim:
            sizes = (*sizes[:dim], 1, *sizes[dim:])
        if dim != ndim - 1:
            input = transpose.apply(unsqueeze.apply(input, ndim), dim, ndim)
        values = sort.apply(input, input.array.ndim - 1, False, False)[0]
    return view.apply(values, (*sizes, values.array.shape[-1]))


def _ranks(values: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """Where among the sorted elements each quantile lies, between two of them in general."""
    missing = np.isnan(values.array)
    if ignore_nan:
        last = (~missing).sum(-1, keepdims=True) - 1
        ranks = mul.apply(q, Tensor(last))
        return masked_fill_number.apply(ranks, Tensor(ranks.array < 0), 0)
    # A nan is sorted last, and makes every quantile nan unless they are left out.
    size = values.array.shape[-1]
    ranks = mul_number.apply(q, size - 1)
    sizes = (*values.array.shape[:-1], max(q.array.size, 1))
    if ranks.array.shape != sizes:
        ranks = expand.apply(ranks, sizes)
    filled = np.broadcast_to(missing.any(-1, keepdims=True), sizes)
    return masked_fill_number.apply(ranks, Tensor(filled), size - 1)


def _quantile(name: str, ignore_nan: bool) -> None:
    @reduction(name, autocast="float32")
    @effects(CHECKS)
    def quantile(
        input: Tensor,
        q: Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        check_reduced(name, input, keepdim)
        fractions = _checked_fractions(name, input, q)
        if interpolation not in _INTERPOLATIONS:
            raise runtime_error(
                f"{name}(): interpolation must be one of {', '.join(_INTERPOLATIONS)}"
            )
        if not input.array.size:
            raise runtime_error(f"{name}() input tensor must be non-empty")
        at = None if dim is None else normal_dim(name, dim, input.array.ndim)
        values = _sorted_last(input, at if input.array.ndim else None, keepdim)
        ranks = _ranks(values, fractions, ignore_nan)
        last = values.array.ndim - 1
        round_to = _INTERPOLATIONS[interpolation]
        positions = ranks.array if round_to is None else round_to(ranks.array)
        below = positions.astype(np.int64)
        result = gather.apply(values, last, Tensor(below))
        if round_to is None:
            above = gather.apply(values, last, Tensor(np.ceil(positions).astype(np.int64)))
            if interpolation == "midpoint":
                weight = Tensor(np.full_like(positions, 0.5))
            else:
                weight = ranks - Tensor(below.astype(positions.dtype))
            result = methods.lerp_(result, above, weight)
        if fractions.array.ndim:
            unsqueeze_in_place(result, 0)
            last += 1
            transpose_in_place(result, 0, last)
        return squeeze_in_place(result, last)

    without = ", nan left out" if ignore_nan else ""
    describe(
        quantile,
        f"The q-quantiles of all elements, or along a dimension{without}: q lies between 0 and 1,"
        " a number or a vector of several.",
        f"torch.{name}(tensor([0.5, 1., 2.]), 0.5)",
    )


_quantile("quantile", False)
_quantile("nanquantile", True)
