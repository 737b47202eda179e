"""`softmax`, `log_softmax` and `softmin`, without overflow, and `gumbel_softmax`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DType
from gradcli.arrays.flat.recorded import HOST_ARRAYS
from gradcli.arrays.fusion.lazy import LONG, forced
from gradcli.arrays.kernels import half_precision, in_c, vector_math
from gradcli.arrays.kernels.row_reductions import (
    Powers,
    log_softmax,
    parts_of_scattered,
    powers_of,
    weights,
)
from gradcli.arrays.kernels.sums import LARGEST, wide
from gradcli.arrays.threads import over_tiles
from gradcli.autograd.tensor import Tensor
from gradcli.ops.arithmetic.arithmetic import div, neg
from gradcli.ops.binding.arguments import check_floating, normal_dim
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.runtime import wrong_operand
from gradcli.ops.creation.copies import to
from gradcli.ops.creation.fill import checked_dtype
from gradcli.ops.creation.random import generator_of, shaped
from gradcli.ops.definition.doc import BY_KINDS, RANDOM, Hazard
from gradcli.ops.definition.lints import implicit_dim
from gradcli.ops.definition.op import Op, by_kernel, op, rounded_once
from gradcli.ops.elementwise.unary import exp
from gradcli.ops.reduction.sum import sum_dims
from gradcli.state import active, created

# --- softmax ------------------------------------------------------------------------------------


def _by_rows(write: Callable[..., None], dim: int, *arrays: Any) -> Any:
    """What `write(*arrays, dim, out)` makes of arrays of one shape, rows by rows where they are
    many.
    """
    arrays = tuple([wide(array) for array in arrays])
    out = np.empty_like(arrays[0])
    if _is_by_rows(out, dim):
        _in_rows(lambda rows: write(*[array[rows] for array in arrays], dim, out[rows]), out.shape)
    else:
        write(*arrays, dim, out)
    return out


def _is_by_rows(array: Any, dim: int) -> bool:
    return dim != 0 and type(array) in HOST_ARRAYS and array.size >= active.state.lazy_from


def _in_rows(work: Callable[[slice], None], shape: tuple[int, ...]) -> None:
    """Call `work` with the rows of one block of an array after the other."""

    def with_short_buffer(rows: slice) -> None:
        # To have longer loops NumPy repeats a number of each row in a buffer, if that is so long.
        before = np.setbufsize(_BUFFER)
        try:
            work(rows)
        finally:
            np.setbufsize(before)

    over_tiles(shape, with_short_buffer)


_BUFFER = 128
"""Elements of a buffer that is too short for rows worth a loop of their own."""


def _write_shifted(self: Any, dim: int, out: Any) -> Any:
    """The elements less the largest along the dimension, which is returned: no exponential of them
    overflows.
    """
    if self.shape[dim] < _SHORT and self.size and type(self) in HOST_ARRAYS:
        largest = np.maximum.reduce(_turned(self, dim), keepdims=True).swapaxes(0, dim)
    else:
        largest = np.maximum.reduce(self, axis=dim, keepdims=True, initial=-np.inf)
    np.subtract(self, largest, out=out)
    return largest


_SHORT = 64
"""Elements along the dimension below which NumPy spends more on beginning a row than on it."""


def _turned(array: Any, dim: int) -> Any:
    """The array by rows with the dimension as the first, over which NumPy reduces
    quickly.
    """
    turned = array.swapaxes(0, dim)
    return turned if turned.flags.c_contiguous else turned.copy("C")


def _write_softmax(self: Any, dim: int, out: Any) -> None:
    _write_shifted(self, dim, out)
    _write_powers(out, out)
    if _is_last(out, dim):
        out *= 1 / _total(out, dim)
    else:
        out /= _total(out, dim)


def _write_powers(self: Any, out: Any) -> None:
    if out.size < vector_math.FEW:
        out[...] = vector_math.exp(self)
    else:
        np.exp(self, out=out)


def _is_last(array: Any, dim: int) -> bool:
    return dim % array.ndim == array.ndim - 1


def _total(powers: Any, dim: int) -> Any:
    """The sum along the dimension, which stays."""
    if type(powers) in HOST_ARRAYS and powers.size >= LARGEST and powers.dtype.itemsize > 2:
        if powers.shape[dim] <= LONG and _is_last(powers, dim):
            return np.einsum("...i->...", powers)[..., None]  # in a third of the time
    elif type(powers) in HOST_ARRAYS and powers.shape[dim] < _SHORT and not _is_last(powers, dim):
        return np.add.reduce(_turned(powers, dim), keepdims=True).swapaxes(0, dim)
    return np.add.reduce(powers, axis=dim, keepdims=True)


def _softmax_array(self: Any, dim: int) -> Any:
    if not self.ndim:  # one element has all the weight; nan and infinities have none to give
        return np.exp(self - self)
    from_c = in_c.softmax(self) if _is_last(self, dim) else None
    if from_c is not None:
        return from_c
    return _by_rows(_write_softmax, dim, self).astype(self.dtype, copy=False)


def _sum_along(value: Any, dim: int) -> Any:
    """The sum along the dimension, which stays, of size 1; a 0-dim value is its own."""
    return sum_dims(value, (dim,), True) if value.ndim else value


def _softmax_backward_array(grad_output: Any, output: Any, dim: int) -> Any:
    from_c = None
    if getattr(output, "ndim", 0) and _is_last(output, dim):
        from_c = in_c.softmax_backward(grad_output, output)
    if from_c is not None:
        return from_c
    weighted = grad_output * output
    if type(weighted) in HOST_ARRAYS and weighted.ndim and weighted.size < LARGEST:
        return output * (grad_output - _total(weighted, dim))
    return weighted - output * _sum_along(weighted, dim)


softmax_backward: Op = op(
    "_softmax_backward_data",
    _softmax_backward_array,
    half=rounded_once,
    linear=True,
    output=lambda grad, grad_output, output, dim: (
        grad * grad_output
        - _sum_along(output * grad_output, dim) * grad
        - grad_output * _sum_along(output * grad, dim)
    ),
    raises=BY_KINDS,
)

softmax_op = op(
    "softmax",
    _softmax_array,
    half=by_kernel(half_precision.softmax),
    self=lambda grad, result, dim: softmax_backward(grad, result, dim),
    doc="Exponentials divided by their sum along a dimension.",
    hazard=Hazard(
        infinities=(
            "inf - inf",
            "softmax of nothing but infinities subtracts them from each other",
        )
    ),
    numpy="""\
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
    raises=BY_KINDS,
)

# --- its logarithm ------------------------------------------------------------------------------


def _write_log_softmax(self: Any, dim: int, out: Any) -> None:
    _write_shifted(self, dim, out)
    powers = np.empty_like(out)
    _write_powers(out, powers)
    out -= vector_math.log(_total(powers, dim))


def _log_softmax_array(self: Any, dim: int) -> Any:
    self = forced(self)
    if not self.ndim:
        return self - self
    in_order = self.flags.c_contiguous and self.dtype.itemsize > 2
    if _is_by_rows(self, dim) and in_order and active.state.grad_enabled:
        return _lazy_log_softmax(self, dim)
    return _by_rows(_write_log_softmax, dim, self).astype(self.dtype, copy=False)


def _lazy_log_softmax(self: Any, dim: int) -> Any:
    """It is subtracted when the values are read: a loss reads few of its elements, and its
    gradient the exponentials that it takes anyway, which are kept. Without a gradient to come they
    would only take memory.
    """
    powers = np.empty_like(self)
    shape = (*self.shape[:dim], 1, *self.shape[dim + 1 :])
    largest, totals = np.empty(shape, self.dtype), np.empty(shape, self.dtype)

    def write(rows: slice) -> None:
        largest[rows] = _write_shifted(self[rows], dim, powers[rows])
        _write_powers(powers[rows], powers[rows])
        totals[rows] = _total(powers[rows], dim)

    _in_rows(write, self.shape)
    return log_softmax(self, largest, Powers(powers, totals))


def _write_log_softmax_backward(grad_output: Any, output: Any, dim: int, out: Any) -> None:
    _write_powers(output, out)
    out *= _total(grad_output, dim)
    np.subtract(grad_output, out, out=out)


def _write_backward_of_powers(
    grad_output: Any, powers: Any, totals: Any, dim: int, out: Any
) -> None:
    np.multiply(powers, _total(grad_output, dim) / totals, out=out)
    np.subtract(grad_output, out, out=out)


def _log_softmax_backward_array(grad_output: Any, output: Any, dim: int) -> Any:
    softmax = powers_of(output)
    parts = parts_of_scattered(grad_output) if dim == 1 else None
    if softmax is not None and parts is not None and (parts[1] <= 0).all():
        # A row of the gradient is zero but for one element, which is its sum. What it is less goes
        # along as a factor; its sign keeps a weight of 0 from becoming -0.
        index, chosen = parts
        return weights(softmax.powers, (0 - chosen) / softmax.totals, index, chosen)
    grad_output = forced(grad_output)
    if softmax is not None:
        return _by_rows(_write_backward_of_powers, dim, grad_output, *softmax)
    output = forced(output)
    if not output.ndim:
        return grad_output - np.exp(output) * grad_output
    return _by_rows(_write_log_softmax_backward, dim, grad_output, output).astype(
        output.dtype, copy=False
    )


log_softmax_backward = op(
    "_log_softmax_backward_data",
    _log_softmax_backward_array,
    half=rounded_once,
    reads_lazy=True,
    grad_output=lambda grad, output, dim: grad - _sum_along(grad * exp(output), dim),
    output=lambda grad, grad_output, output, dim: (
        -_sum_along(grad_output, dim) * exp(output) * grad
    ),
    raises=BY_KINDS,
)

log_softmax_op = op(
    "log_softmax",
    _log_softmax_array,
    half=by_kernel(half_precision.log_softmax),
    reads_lazy=True,
    self=lambda grad, result, dim: log_softmax_backward(grad, result, dim),
    doc="The logarithm of softmax, without overflow.",
    hazard=Hazard(
        infinities=(
            "inf - inf",
            "log_softmax of nothing but infinities subtracts them from each other",
        )
    ),
    numpy="""\
def log_softmax(x, axis):
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
""",
    raises=BY_KINDS,
)

# --- what programs write ------------------------------------------------------------------------


def along(entry: Op, input: Tensor, dim: Any, dtype: DType | None) -> Tensor:
    """`softmax_` or `log_softmax_` along a dimension, computed in a dtype.

    Raises E203 for integers, E302 where there is no such dimension.
    """
    target = checked_dtype(entry.name, dtype, None)
    if target is not None:
        input = to(input, target)
    axis = normal_dim(entry.name, dim, input.array.ndim)
    if not (input.array.size or input.dtype.is_floating_point):
        return Tensor(input.array.copy())  # PyTorch returns before it finds that it has no kernel
    inner = axis < input.array.ndim - 1
    check_floating(entry.name, input, kernel=f"inner_{entry.name}" if inner else "")
    return entry.apply(input, axis)


def _expose(entry: Op) -> None:
    def of_torch(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
        return along(entry, input, dim, dtype)

    def of_functional(
        input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
    ) -> Tensor:
        return along(entry, input, implicit_dim(entry.name, input) if dim is None else dim, dtype)

    function(entry.name, method=True)(of_torch)
    function(entry.name, module="torch.special")(of_torch)
    function(entry.name, module="torch.nn.functional")(of_functional)


_expose(softmax_op)
_expose(log_softmax_op)


@function("softmin", module="torch.nn.functional")
def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """The softmax of the negative.

    Example: F.softmin(tensor([[2., 1.], [1., 3.]]), 0)
    """
    if type(input) is not Tensor:
        error = wrong_operand(softmax_op, "input", input)
        error.raises = "TypeError" if dim is not None else "AttributeError"
        raise error
    dim = implicit_dim("softmin", input) if dim is None else dim
    return along(softmax_op, neg.apply(input), dim, dtype)


# --- gumbel_softmax -----------------------------------------------------------------------------


@function("gumbel_softmax", module="torch.nn.functional", effects=(RANDOM,))
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of a distribution by its logits, made smooth: softmax of the logits plus Gumbel
    noise, divided by `tau`. With `hard` the value is a one-hot vector and the gradient that of the
    smooth sample.

    Example: F.gumbel_softmax(tensor([0.5, 1., 2.5]))
    """
    noise = Tensor(created(_gumbel_noise, logits.array, logits.dtype))
    soft: Tensor = along(softmax_op, div.apply(logits + noise, tau), dim, None)
    return Tensor(created(_rounded_up, soft.array, dim)) + soft if hard else soft


def _gumbel_noise(logits: Any, dtype: DType) -> Any:
    drawn = shaped(generator_of(None).exponential(logits.size), logits.shape, dtype)
    return module_of(logits).asarray(-np.log(drawn))[()]


def _rounded_up(shares: Any, dim: int) -> Any:
    """What the largest share of each row lacks to 1, and the others to 0."""
    one_hot = np.zeros_like(shares)
    np.put_along_axis(one_hot, np.expand_dims(np.argmax(shares, axis=dim), dim), 1, dim)
    return one_hot - shares
