"""Maximum, minimum and clamping: `maximum minimum fmax fmin clamp clamp_min clamp_max`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.layout.strides import laid_out_like_operands
from gradcli.arrays.scalars import checked_number
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, dtype_error, runtime_error
from gradcli.ops.arithmetic.arithmetic import with_number
from gradcli.ops.binding.arguments import check_number, expose_of_tensors
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.doc import BY_KINDS
from gradcli.ops.definition.dtype_support import COMPLEX, check_dtype, dtype_names
from gradcli.ops.definition.op import Op, op, pointwise, rounded_once
from gradcli.ops.elementwise.comparison import isnan, logical_and, logical_not, logical_or, where
from gradcli.ops.indexing.masks import masked_fill_number

# --- the larger and the smaller -----------------------------------------------------------------


def _shared(grad: Any, equal: Any, lost: Any) -> Any:
    """The gradient of the greater or smaller of two: half where they are equal, none where the
    other one was taken.
    """
    return masked_fill_number(where(equal, grad / 2, grad), lost, 0)


_NO_COMPLEX = dtype_names("complex", raises="RuntimeError")

maximum = pointwise(
    "maximum",
    lambda self, other: np.maximum(other, self),
    ufunc=np.maximum,
    self=lambda grad, self, other: _shared(grad, self == other, self < other),
    other=lambda grad, self, other: _shared(grad, self == other, self > other),
    unsupported=_NO_COMPLEX,
    doc="The larger of two tensors, element by element; nan where one is.",
    conventions="Where the two are equal, each gets half of the gradient.",
)

minimum = pointwise(
    "minimum",
    lambda self, other: np.minimum(other, self),
    ufunc=np.minimum,
    self=lambda grad, self, other: _shared(grad, self == other, self > other),
    other=lambda grad, self, other: _shared(grad, self == other, self < other),
    unsupported=_NO_COMPLEX,
    doc="The smaller of two tensors, element by element; nan where one is.",
    conventions="Where the two are equal, each gets half of the gradient.",
)


def _taken(first: Any, self: Any, other: Any) -> Any:
    return np.where(first, self, other)[()]


# Of two equal ones, which may be zeros of either sign, `fmax` and `fmin` take the first, and so
# they do where the second is nan. NumPy's take either.
fmax = pointwise(
    "fmax",
    lambda self, other: _taken((self >= other) | np.isnan(other), self, other),
    self=lambda grad, self, other: masked_fill_number(
        grad, logical_not(logical_or(self >= other, isnan(other))), 0
    ),
    other=lambda grad, self, other: masked_fill_number(
        grad, logical_or(self >= other, isnan(other)), 0
    ),
    unsupported=_NO_COMPLEX,
    doc="The larger of two tensors, element by element; the other where one is nan.",
    conventions="Where the two are equal, the input gets the gradient.",
)

fmin = pointwise(
    "fmin",
    lambda self, other: _taken((self <= other) | np.isnan(other), self, other),
    self=lambda grad, self, other: masked_fill_number(
        grad, logical_not(logical_or(self <= other, isnan(other))), 0
    ),
    other=lambda grad, self, other: masked_fill_number(
        grad, logical_or(self <= other, isnan(other)), 0
    ),
    unsupported=_NO_COMPLEX,
    doc="The smaller of two tensors, element by element; the other where one is nan.",
    conventions="Where the two are equal, the input gets the gradient.",
)

for _entry in (maximum, minimum, fmax, fmin):
    expose_of_tensors(_entry)


_BOOL_OR_COMPLEX = dtype_names("bool", "complex")

# --- clamp --------------------------------------------------------------------------------------


def _inside(grad: Any, self: Any, min: Any, max: Any) -> Any:
    """The gradient of what was clamped: whole between the bounds and at them, none outside."""
    if min is None:
        kept = self <= max
    elif max is None:
        kept = self >= min
    else:
        kept = logical_and(self >= min, self <= max)
    return where(kept, grad, 0.0)


def _below(grad: Any, self: Any, min: Any, max: Any) -> Any:
    below = self < min
    return where(below if max is None else logical_and(below, min < max), grad, 0.0)


def _above(grad: Any, self: Any, min: Any, max: Any) -> Any:
    above = self > max
    return where(above if min is None else logical_or(above, max < min), grad, 0.0)


def _clipped(self: Any, min: Any = None, max: Any = None) -> Any:
    # A zero keeps its sign on a bound of zero: of two equal ones NumPy takes the second.
    if max is None:
        return np.maximum(min, self)
    if min is None:
        return np.minimum(max, self)
    return np.clip(self, min, max)


clamp_to_numbers = pointwise(
    "clamp",
    lambda self, min=None, max=None: _clipped(self, min, max),
    node="ClampBackward1",
    half=rounded_once,
    self=_inside,
    unsupported=_BOOL_OR_COMPLEX,
    numpy="""\
def clamp(x, min=None, max=None):
    return np.clip(x, min, max)
""",
)


def _clamp_arrays(self: Any, min: Any = None, max: Any = None) -> Any:
    operands = [array for array in (self, min, max) if array is not None]
    dtype = dtypes.result_dtype(operands)
    result = dtypes.cast(self, dtype)
    if min is not None:
        result = np.maximum(dtypes.cast(min, dtype), result)
    if max is not None:
        result = np.minimum(dtypes.cast(max, dtype), result)
    return laid_out_like_operands(result, *operands)


clamp_to_tensors = op(
    "clamp", _clamp_arrays, keeps_layout=True, self=_inside, min=_below, max=_above, raises=BY_KINDS
)


def _complex_bound(name: str, raises: str) -> GradcliError:
    """The error for a bound that is a complex number."""
    return dtype_error(f"{name}(): complex numbers have no order", raises=raises)


@function("clamp", "clip", method=True, inplace_function=True)
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The tensor with what is less than `min` or greater than `max` set to that bound; where the
    bounds are crossed, to `max`. The bounds are numbers, or tensors.

    Raises E204 where both are missing.

    Conventions: On a bound the gradient passes.

    Example: torch.clamp(tensor([-1.5, 0., 2.5]), -1., 1.)
    """
    bounds = [bound for bound in (min, max) if bound is not None]
    if not bounds:
        raise runtime_error(
            "clamp(): at least one of `min` and `max` is needed",
            text="torch.clamp: At least one of 'min' or 'max' must not be None",
        )
    if all(type(bound) is Tensor for bound in bounds):
        dtype = dtypes.result_dtype([input.array, *[bound.array for bound in bounds]])
        check_dtype("clamp", dtype, _BOOL_OR_COMPLEX if len(bounds) == 2 else COMPLEX)
        return clamp_to_tensors.apply(input, min, max)
    # A tensor beside a number is taken for the number that it holds.
    low, high = (bound.item() if type(bound) is Tensor else bound for bound in (min, max))
    for argument, bound in (("min", low), ("max", high)):
        if type(bound) is complex:
            floating = input.dtype.is_floating_point
            raise _complex_bound("clamp", "RuntimeError" if floating else "NotImplementedError")
        if bound is not None:
            check_number("clamp", argument, bound)
            check_dtype("clamp", input.dtype, COMPLEX)
            input, _ = with_number(input, bound)
    if input.dtype.category == "int":
        low, high = (
            None if bound is None else checked_number(bound, input.dtype) for bound in (low, high)
        )
    return clamp_to_numbers.apply(input, low, high)


clamp_min_number = pointwise(
    "clamp_min",
    lambda self, min: np.maximum(min, self),
    half=rounded_once,
    self=lambda grad, self, min: where(self >= min, grad, 0.0),
    unsupported=COMPLEX,
    numpy="maximum",
)

clamp_min_tensor = pointwise(
    "clamp_min",
    lambda self, min: np.maximum(min, self),
    node="ClampMinBackward1",
    self=lambda grad, self, min: where(self >= min, grad, 0.0),
    unsupported=COMPLEX,
    min=lambda grad, self, min: where(self < min, grad, 0.0),
)

clamp_max_number = pointwise(
    "clamp_max",
    lambda self, max: np.minimum(max, self),
    half=rounded_once,
    self=lambda grad, self, max: where(self <= max, grad, 0.0),
    unsupported=COMPLEX,
    numpy="minimum",
)

clamp_max_tensor = pointwise(
    "clamp_max",
    lambda self, max: np.minimum(max, self),
    node="ClampMaxBackward1",
    self=lambda grad, self, max: where(self <= max, grad, 0.0),
    unsupported=COMPLEX,
    max=lambda grad, self, max: where(self > max, grad, 0.0),
)


def _bounded(name: str, input: Tensor, bound: Any, by_tensor: Op, by_number: Op) -> Tensor:
    """`clamp_min` and `clamp_max`, by a tensor or by a number."""
    if type(bound) is Tensor:
        return by_tensor.apply(input, bound)
    if type(bound) is complex:
        raise _complex_bound(name, "NotImplementedError")
    check_number(name, name.removeprefix("clamp_"), bound)
    return by_number.apply(*with_number(input, bound))


@function("clamp_min", method=True, inplace_function=True)
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """The tensor with what is less than a number, or a tensor's element, set to that.

    Conventions: On the bound the gradient passes.

    Example: torch.clamp_min(tensor([-1.5, 0., 2.5]), 0.)
    """
    return _bounded("clamp_min", input, min, clamp_min_tensor, clamp_min_number)


@function("clamp_max", method=True, inplace_function=True)
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """The tensor with what is greater than a number, or a tensor's element, set to that.

    Conventions: On the bound the gradient passes.

    Example: torch.clamp_max(tensor([-1.5, 0., 2.5]), 0.)
    """
    return _bounded("clamp_max", input, max, clamp_max_tensor, clamp_max_number)
