"""Running results along a dimension: `cumsum cumprod cummax cummin logcumsumexp diff`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays import dtypes
from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DType
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arithmetic import sub, zeros
from gradcli.ops.catalogue import function, refuse_out
from gradcli.ops.comparison import where
from gradcli.ops.conjugate import conj
from gradcli.ops.copying import to
from gradcli.ops.dimensions import normal_dim
from gradcli.ops.entry import Function, Op, op
from gradcli.ops.gathering import scatter_add
from gradcli.ops.joining import cat
from gradcli.ops.pointwise import exp, log
from gradcli.ops.rearranging import flip
from gradcli.ops.reduction import cast_array, check_reduced, reduction, wide
from gradcli.ops.return_types import return_type
from gradcli.ops.slicing import narrow


def _reversed(value: Any, dim: int) -> Any:
    """The elements of a dimension in reverse order: what rules call, on arrays or tensors."""
    return flip(value, (dim,)) if value.ndim else value


def _accumulated(ufunc: Any, self: Any, dim: int, dtype: DType | None) -> Any:
    """A ufunc's running result; integers and bools give int64."""
    self = cast_array(self, dtype)
    if not self.ndim:
        return self.astype(np.int64) if self.dtype.kind in "iub" and dtype is None else self[()]
    if self.dtype.kind in "iub":
        target = np.int64 if dtype is None else self.dtype
        return ufunc.accumulate(self, axis=dim, dtype=target)
    return ufunc.accumulate(wide(self), axis=dim).astype(self.dtype)


# --- cumsum -------------------------------------------------------------------------------------

cumsum: Op = op(
    "cumsum",
    "CumsumBackward0",
    lambda self, dim, dtype=None: _accumulated(np.add, self, dim, dtype),
    self=lambda grad, dim: _reversed(cumsum(_reversed(grad, dim), dim), dim),
)

# --- cumprod ------------------------------------------------------------------------------------
#
# No rule here divides by an element, so all are exact where elements are 0.


def _recurrence_array(self: Any, coefficients: Any, dim: int, reverse: bool) -> Any:
    result = module_of(self).zeros(self.shape, self.dtype)
    sums, factors, running = (np.moveaxis(a, dim, 0) for a in (self, coefficients, result))
    count = len(sums)
    steps = range(count - 1, 0, -1) if reverse else range(count - 1)
    for i in steps:
        running[i - 1 if reverse else i + 1] = sums[i] + factors[i] * running[i]
    return result


# r[i + 1] = x[i] + c[i] * r[i] from r[0] = 0 on; `reverse` runs from the last element to the
# first. Its adjoint is the same recurrence run the other way.
linear_recurrence: Op = op(
    "linear_recurrence",
    "LinearRecurrenceBackward0",
    _recurrence_array,
    self=lambda grad, coefficients, dim, reverse: linear_recurrence(
        grad, conj(coefficients), dim, not reverse
    ),
    coefficients=lambda grad, coefficients, result, dim, reverse: (
        linear_recurrence(grad, conj(coefficients), dim, not reverse) * conj(result)
    ),
)


def _exclusive_cumprod_array(self: Any, dim: int, reverse: bool) -> Any:
    if not self.ndim:
        return module_of(self).ones((), self.dtype)[()]
    result = module_of(self).ones(self.shape, self.dtype)
    source, target = np.moveaxis(self, dim, 0), np.moveaxis(result, dim, 0)
    if reverse:
        source, target = source[::-1], target[::-1]
    np.multiply.accumulate(source[:-1], axis=0, out=target[1:])
    return result


# The product of the elements before each one; `reverse` takes those after it.
exclusive_cumprod = op(
    "exclusive_cumprod",
    "ExclusiveCumprodBackward0",
    _exclusive_cumprod_array,
    self=lambda grad, self, result, dim, reverse: (
        conj(result) * linear_recurrence(grad, conj(self), dim, not reverse)
    ),
)


def _cumprod_rule(grad: Any, self: Any, result: Any, dim: int, dtype: DType | None) -> Any:
    # The result is kept as PyTorch keeps it: a write to it is an error.
    if not self.ndim:
        return grad
    if dtype is not None:
        self = to(self, dtype) if type(self) is Tensor else dtypes.cast(self, dtype)
    self = conj(self)
    # Element i stands in every product from the i-th on: after it, each product of a gradient
    # and of the elements in between.
    later = grad + linear_recurrence(grad * self, self, dim, True)
    return exclusive_cumprod(self, dim, False) * later


cumprod = op(
    "cumprod",
    "CumprodBackward0",
    lambda self, dim, dtype=None: _accumulated(np.multiply, self, dim, dtype),
    self=_cumprod_rule,
)


def _expose_running(entry: Op, words: str) -> None:
    name = entry.name

    @reduction(name, inplace=True)
    def running(input: Tensor, dim: int, *, dtype: DType | None = None, out: Any = None) -> Any:
        refuse_out(name, out)
        check_reduced(name, input)
        return entry.apply(input, normal_dim(name, dim, input.array.ndim), dtype)

    running.__doc__ = f"The running {words} along a dimension. Integers and bools give int64."


_expose_running(cumsum, "sum")
_expose_running(cumprod, "product")

# --- cummax and cummin --------------------------------------------------------------------------


def _running_extreme(name: str, node_name: str, ufunc: Any) -> Function:
    def forward(self: Any, dim: int) -> tuple[Any, Any]:
        if not self.ndim:
            return self[()], np.int64(0)
        values = ufunc.accumulate(self, axis=dim)
        # The last element that is as extreme as any before it: of ties the later one counts.
        found = (self == values) | ((self != self) & (values != values))
        sizes = [1] * self.ndim
        sizes[dim] = self.shape[dim]
        places = np.arange(self.shape[dim], dtype=np.int64).reshape(sizes)
        return values, np.maximum.accumulate(np.where(found, places, 0), axis=dim)

    def rule(grads: Any, self: Any, indices: Any, dim: int) -> Any:
        # The input is kept as PyTorch keeps it: a write to it is an error.
        if not self.ndim:
            return grads[0]
        return scatter_add(zeros(grads[0], self.shape), dim, indices, grads[0])

    entry = op(
        name,
        node_name,
        forward,
        outputs=("values", "indices"),
        differentiable=(0,),
        self=rule,
    )
    result = return_type(name, ("values", "indices"))

    @reduction(name)
    def running(input: Tensor, dim: int, *, out: Any = None) -> Any:
        refuse_out(name, out)
        check_reduced(name, input)
        return result(entry.apply(input, normal_dim(name, dim, input.array.ndim)))

    running.__doc__ = f"The running {name[3:]}imum along a dimension, with the indices of it."
    return running


cummax = _running_extreme("cummax", "CummaxBackward0", np.maximum)
cummin = _running_extreme("cummin", "CumminBackward0", np.minimum)

# --- logcumsumexp -------------------------------------------------------------------------------


def _logcumsumexp_array(self: Any, dim: int) -> Any:
    if not self.ndim:
        return self[()]
    return np.logaddexp.accumulate(wide(self), axis=dim).astype(self.dtype)


def _logcumsumexp_rule(grad: Any, self: Any, result: Any, dim: int) -> Any:
    if not self.ndim:
        return grad
    lowest = float(np.finfo(np.float16 if result.dtype == np.float16 else np.float32).min)

    def of_sign(part: Any, present: Any) -> Any:
        # In logarithms, so that no exponential of an element overflows.
        logarithm = where(present, log(where(present, part, 1.0)), lowest)
        summed = logcumsumexp(_reversed(logarithm - result, dim), dim)
        return exp(_reversed(summed, dim) + self)

    return of_sign(grad, grad > 0) - of_sign(-grad, grad < 0)


logcumsumexp = op(
    "logcumsumexp", "LogcumsumexpBackward0", _logcumsumexp_array, self=_logcumsumexp_rule
)


@reduction("logcumsumexp")
def logcumsumexp_(input: Tensor, dim: int, *, out: Any = None) -> Tensor:
    """The logarithm of the running sum of exponentials. Raises E203 for integers."""
    refuse_out("logcumsumexp", out)
    check_reduced("logcumsumexp", input)
    if input.dtype.category in ("int", "bool"):
        raise GradcliError(
            "E203", "logcumsumexp() is defined for floating tensors", raises="NotImplementedError"
        )
    return logcumsumexp.apply(input, normal_dim("logcumsumexp", dim, input.array.ndim))


# --- differences --------------------------------------------------------------------------------


@function("diff", method=True)
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Any = None,
) -> Tensor:
    """The n-th differences of neighbours along a dimension. Raises E301 for a 0-dim tensor."""
    refuse_out("diff", out)
    check_reduced("diff", input)
    if not input.array.ndim:
        raise GradcliError("E301", "diff() needs a tensor of at least one dimension")
    at = normal_dim("diff", dim, input.array.ndim)
    parts = [part for part in (prepend, input, append) if part is not None]
    if len(parts) > 1:
        input = cat(parts, at)
    for _ in range(n):
        count = max(input.array.shape[at] - 1, 0)
        earlier = narrow(input, at, 0, count)
        input = sub.apply(narrow(input, at, min(1, input.array.shape[at]), count), earlier)
    return input
