"""Parts of a tensor, as views: `select narrow slice diagonal unfold`.

The gradient of a part is the gradient written to its position among zeros: for each view there is
an op that does that, whose own gradient is the view again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.layout.strides import sliced, with_strides
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, index_error, runtime_error, shape_error, value_error
from gradcli.ops.arithmetic.arithmetic import zeros
from gradcli.ops.binding.arguments import FromTheEnd, normal_dim
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.definition.doc import BY_KINDS, NEVER
from gradcli.ops.definition.op import Op, op

Sizes = tuple[int, ...]


def along(ndim: int, dim: int, what: Any) -> tuple[Any, ...]:
    """The NumPy index that applies `what` to one dimension."""
    return (*(slice(None),) * (dim % ndim), what, ...)


# --- alias --------------------------------------------------------------------------------------

alias = op("alias", lambda self: self.view(), view=True, self=lambda grad: grad, raises=NEVER)

# --- select -------------------------------------------------------------------------------------

select: Op = op(
    "select",
    lambda self, dim, index: with_strides(self)[along(self.ndim, dim, index)],
    view=True,
    self=lambda grad, self_sizes, dim, index: select_backward(grad, self_sizes, dim, index),
    raises=BY_KINDS,
)


def _put_selected(grad_output: Any, self_sizes: Sizes, dim: int, index: int) -> Any:
    whole = zeros(grad_output, self_sizes)
    whole[along(len(self_sizes), dim, index)] = grad_output
    return whole


select_backward: Op = op("select_backward", _put_selected, grad_output=select, raises=BY_KINDS)


def checked_position(name: str, index: Any, size: int, dim: int) -> int:
    """A position in a dimension, counted from the front; raises E302 where there is none."""
    if type(index) is not int:
        index = index.__index__()
    if not -size <= index < size:
        if index.bit_length() > 63:
            raise value_error(f"{name}: no position has more than 64 bits")
        raise index_error(
            f"{name}: position {index} does not exist in dimension {dim}, which has {size}"
            " elements",
            text=f"index {index} is out of bounds for dimension {dim} with size {size}",
        )
    return FromTheEnd(index, size) if index < 0 else index


@function("select", method=True)
def select_function(input: Tensor, dim: int, index: Any) -> Tensor:
    """The part at one position of a dimension, without that dimension.

    Example: torch.select(tensor([0.5, 1., 2.]), 0, 1)
    """
    shape = input.array.shape
    if not shape:
        raise index_error(
            "select(): a 0-dim tensor has no dimension to select from",
            text="select() cannot be applied to a 0-dim tensor.",
        )
    at = normal_dim("select", dim, len(shape))
    return select.apply(input, at, selected_position(index, shape, at))


def selected_position(index: Any, shape: Sizes, dim: int) -> int:
    """`checked_position` with the words of `select`."""
    try:
        return checked_position("select()", index, shape[dim], dim)
    except GradcliError as error:
        if error.code == "E302":
            error.text = (
                f"select(): index {index} out of range for tensor of size {list(shape)} at"
                f" dimension {dim}"
            )
        raise


# --- slice --------------------------------------------------------------------------------------

slice_op: Op = op(
    "slice",
    lambda self, dim, start, end, step: sliced(self, dim, start, end, step),
    view=True,
    self=lambda grad, self_sizes, dim, start, end, step: slice_backward(
        grad, self_sizes, dim, start, end, step
    ),
    raises=BY_KINDS,
)


def _put_slice(
    grad_output: Any, self_sizes: Sizes, dim: int, start: int, end: int, step: int
) -> Any:
    whole = zeros(grad_output, self_sizes)
    whole[along(len(self_sizes), dim, slice(start, end, step))] = grad_output
    return whole


slice_backward: Op = op("slice_backward", _put_slice, grad_output=slice_op, raises=BY_KINDS)


@function("narrow", method=True)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements of a dimension from `start` on. Raises E302 or E301 where there are not so
    many.

    Example: torch.narrow(tensor([0.5, 1., 2.]), 0, 1, 2)
    """
    return slice_op.apply(input, *narrowed("narrow", input, dim, start, length))


def narrowed(
    name: str, input: Tensor, dim: int, start: Any, length: int
) -> tuple[int, int, int, int]:
    """The arguments of the slice that `narrow` stands for: dimension, start, end and step."""
    shape = input.array.shape
    if not shape:
        raise shape_error(
            f"{name}(): a 0-dim tensor has no dimension",
            text=f"{name}() cannot be applied to a 0-dim tensor.",
        )
    at = normal_dim(name, dim, len(shape))
    if isinstance(start, Tensor) and (start.array.ndim or start.dtype.category != "int"):
        raise runtime_error(
            f"{name}(): a start that is a tensor holds one integer and has no dimensions",
            text="start must be an 0-dim integral Tensor.",
        )
    first = start if type(start) is int else start.__index__()
    if not -shape[at] <= first <= shape[at]:
        raise index_error(
            f"{name}(): start {first} lies outside dimension {at}, which has {shape[at]} elements",
            text=f"start out of range (expected to be in range of [{-shape[at]}, {shape[at]}], but"
            f" got {first})",
        )
    first = first + shape[at] if first < 0 else first
    if length < 0:
        raise shape_error(
            f"{name}(): there are no {length} elements",
            text=f"{name}(): length must be non-negative.",
        )
    if first + length > shape[at]:
        raise shape_error(
            f"{name}(): dimension {at} has {shape[at]} elements, not {length} from {first} on",
            text=f"start ({first}) + length ({length}) exceeds dimension size ({shape[at]}).",
        )
    return at, first, first + length, 1


# --- diagonal -----------------------------------------------------------------------------------

diagonal: Op = op(
    "diagonal",
    lambda self, offset, dim1, dim2: diagonal_of(self, offset, dim1, dim2),
    view=True,
    self=lambda grad, self_sizes, offset, dim1, dim2: diagonal_backward(
        grad, self_sizes, offset, dim1, dim2
    ),
    numpy="diagonal",
    raises=BY_KINDS,
)


def diagonal_of(self: Any, offset: int, dim1: int, dim2: int) -> Any:
    """An array's diagonal as a view that can be written."""
    shown = np.diagonal(with_strides(self), offset, dim1, dim2)
    # NumPy protects it; it is a view like any other.
    shown.flags.writeable = self.flags.writeable
    return shown


def _put_diagonal(grad_output: Any, self_sizes: Sizes, offset: int, dim1: int, dim2: int) -> Any:
    whole = zeros(grad_output, self_sizes)
    diagonal_of(whole, offset, dim1, dim2)[...] = grad_output
    return whole


diagonal_backward: Op = op(
    "diagonal_backward", _put_diagonal, grad_output=diagonal, raises=BY_KINDS
)


def diagonal_dims(name: str, ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    """The two dimensions of a diagonal, counted from the front; raises E302 or E301 unless they are
    two.
    """
    first, second = normal_dim(name, dim1, ndim), normal_dim(name, dim2, ndim)
    if first == second:
        raise shape_error(
            f"{name}(): dim1 and dim2 are the same, {first}",
            text=f"diagonal dimensions cannot be identical {dim1}, {dim2}",
        )
    return first, second


@function("diagonal", method=True)
def diagonal_function(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions, `offset` above the main one, as the last dimension."""
    return diagonal.apply(input, offset, *diagonal_dims("diagonal", input.array.ndim, dim1, dim2))


@function("diagonal", module="torch.linalg")
def matrix_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of the last two dimensions, or of those named."""
    return diagonal_function(A, offset, dim1, dim2)


# --- unfold -------------------------------------------------------------------------------------


def _windows(self: Any, dimension: int, size: int, step: int) -> Any:
    # The windows run along the dimension, the elements of each along a new last one.
    if not self.ndim:
        return self.reshape(1)[:size]
    shown = np.lib.stride_tricks.sliding_window_view(self, size, dimension, writeable=True)
    return shown[along(self.ndim, dimension, slice(None, None, step))]


_unfold: Op = op(
    "unfold",
    _windows,
    view=True,
    self=lambda grad, self_sizes, dimension, size, step: unfold_backward(
        grad, self_sizes, dimension, size, step
    ),
    raises=BY_KINDS,
)


def _put_windows(grad_output: Any, self_sizes: Sizes, dimension: int, size: int, step: int) -> Any:
    whole = zeros(grad_output, self_sizes)
    if not whole.ndim:
        return whole + grad_output.sum()
    windows = grad_output.shape[dimension]
    for i in range(size):  # windows overlap, their elements of one number do not
        part = slice(i, i + (windows - 1) * step + 1, step)
        whole[along(whole.ndim, dimension, part)] += grad_output[..., i]
    return whole


def _put_windows_decomposed(
    grad_output: Any, self_sizes: Sizes, dimension: int, size: int, step: int
) -> Any:
    """A sum over the elements of a window, each put where it was read."""
    if not self_sizes:
        return select(grad_output, 0, 0) if size else zeros(grad_output, ())
    last, total = len(self_sizes), None
    windows = int(grad_output.shape[dimension])
    for i in range(size):
        end = i + (windows - 1) * step + 1
        term = slice_backward(select(grad_output, last, i), self_sizes, dimension, i, end, step)
        total = term if total is None else total + term
    return total


unfold_backward: Op = op(
    "unfold_backward",
    _put_windows,
    decomposition=_put_windows_decomposed,
    grad_output=_unfold,
    raises=BY_KINDS,
)


@method("unfold")
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """The windows of `size` elements along a dimension, `step` apart. Raises E204 unless they
    fit.

    Example: tensor([0.5, 1., 2.]).unfold(0, 2, 1)
    """
    at = normal_dim("unfold", dimension, self.array.ndim)
    extent = self.array.shape[at] if self.array.ndim else 1
    if not 0 <= size <= extent:
        raise runtime_error(
            f"maximum size for tensor at dimension {at} is {extent} but size is {size}"
        )
    if step <= 0:
        raise runtime_error(f"step is {step} but must be > 0")
    return _unfold.apply(self, at, size, step)
