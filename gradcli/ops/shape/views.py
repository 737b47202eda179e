"""Shapes: views that show the same elements in other sizes, `view reshape expand squeeze`, or with
their dimensions turned, `transpose permute t`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.dtypes import DType, of_array
from gradcli.arrays.flat.recorded import Recorded
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.layout.strides import window, with_strides
from gradcli.autograd.inplace.writes import check_graph, replace_layout
from gradcli.autograd.tensor import Tensor, alias
from gradcli.errors import GradcliError, dtype_error, shape_error
from gradcli.ops.binding.arguments import Dims, normal_dim, normal_dims, one_by_one, sizes_of
from gradcli.ops.binding.catalogue import check_write, function, method
from gradcli.ops.codegen.promotion import NATIVE_SCALARS
from gradcli.ops.creation.copies import row_order
from gradcli.ops.creation.fill import checked_dtype
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.op import Function, Op, op

# --- expand -------------------------------------------------------------------------------------


def not_expanded(dtype: DType, shape: Sequence[int], size: Sequence[int]) -> str:
    """PyTorch's text for a shape that cannot be expanded to a size."""
    leading = len(size) - len(shape)
    if leading < 0:
        return (
            f"expand(torch.{dtype.scalar_type}Tensor{{{list(shape)}}}, size={list(size)}): the"
            f" number of sizes provided ({len(size)}) must be greater or equal to the number of"
            f" dimensions in the tensor ({len(shape)})"
        )
    apart = [dim for dim, have in enumerate(shape, leading) if have not in (1, size[dim])]
    if not apart:
        return f"expand: invalid size {list(size)}"
    dim = apart[-1]
    return (
        f"The expanded size of the tensor ({size[dim]}) must match the existing size"
        f" ({shape[dim - leading]}) at non-singleton dimension {dim}.  Target sizes: {list(size)}."
        f"  Tensor sizes: {list(shape)}"
    )


def _expand_array(self: Any, size: tuple[int, ...]) -> Any:
    if type(self) in NATIVE_SCALARS:  # every sum's gradient comes here
        return np.ndarray(size, self.dtype, self, 0, (0,) * len(size))
    self = with_strides(forced(self))
    strides = [0] * (len(size) - self.ndim)
    if self.ndim > len(size):
        text = not_expanded(of_array(self), self.shape, size)
        raise shape_error(text)
    for have, want, step in zip(self.shape, size[len(strides) :], self.strides, strict=True):
        if have not in (1, want):
            raise shape_error(
                f"expand: {tuple(self.shape)} cannot be expanded to {tuple(size)}",
                text=not_expanded(of_array(self), self.shape, size),
            )
        strides.append(step if have == want else 0)
    for dim in range(len(size) - self.ndim - 1, -1, -1):
        if size[dim] == 1 and self.ndim:
            strides[dim] = size[dim + 1] * strides[dim + 1]
    if type(self) is Recorded:
        return self.expand(size)
    if self.flags.c_contiguous and self.dtype.kind != "V":  # in a third of the time NumPy takes
        return module_of(self).ndarray(size, self.dtype, self, 0, strides)
    return window(self, size, [step // self.itemsize for step in strides], 0)


expand: Op = op(
    "expand",
    _expand_array,
    view=True,
    # The engine sums the gradient to the input's shape.
    self=lambda grad: grad,
    numpy="broadcast_to",
    raises=BY_KINDS,
)


@method("expand")
def expand_function(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """The tensor repeated without copying; -1 keeps a size. Raises E301 where sizes do not fit.

    Conventions: The gradient is summed over what was repeated.

    Example: tensor([0.5, 1., 2.]).expand(2, 3)
    """
    wanted = list(sizes_of("expand", one_by_one("expand", "size", sizes, size)))
    shape = self.array.shape
    leading = len(wanted) - len(shape)
    for i, have in enumerate(shape):
        if leading >= 0 and wanted[leading + i] == -1:
            wanted[leading + i] = have
    if leading < 0 or any(
        want < 0 or (i >= leading and shape[i - leading] not in (1, want))
        for i, want in enumerate(wanted)
    ):
        raise shape_error(
            f"expand(): a tensor of shape {tuple(shape)} cannot be expanded to {tuple(wanted)}",
            text=not_expanded(self.dtype, shape, wanted),
        )
    return expand.apply(self, tuple(wanted))


@method("broadcast_to")
def broadcast_to(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """The tensor expanded to a shape, its sizes one by one or as one sequence.

    Example: torch.broadcast_to(tensor([0.5, 1., 2.]), (2, 3))
    """
    return expand_function(self, *sizes, size=size)


@function("broadcast_to")
def _broadcast_to(input: Tensor, size: Any) -> Tensor:
    """The tensor expanded to a shape; see `expand`.

    Example: torch.broadcast_to(tensor([0.5, 1., 2.]), (2, 3))
    """
    return expand_function(input, size)


@method("expand_as")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor expanded to another one's shape; see `expand`.

    Example: tensor([0.5, 1., 2.]).expand_as(tensor([2., 1., 3.]))
    """
    return expand_function(self, other.array.shape)


# --- view and reshape ---------------------------------------------------------------------------


def inferred_sizes(name: str, sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """Sizes with the one -1 replaced by what makes `count` elements.

    Raises E301 where the sizes hold another number of elements, or -1 is not unique.
    """
    known = 1
    unknown = -1
    written = list(sizes)
    for i, size in enumerate(sizes):
        if size == -1 and unknown < 0:
            unknown = i
        elif size < 0:
            raise shape_error(
                f"{name}(): {tuple(sizes)} is no shape",
                text="only one dimension can be inferred"
                if size == -1
                else f"invalid shape dimension {size} at index {i} of shape {list(sizes)}",
            )
        else:
            known *= size
    if unknown >= 0 and known:
        sizes = (*sizes[:unknown], count // known, *sizes[unknown + 1 :])
        known *= sizes[unknown]
    elif unknown >= 0 and not count:
        raise shape_error(
            f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified"
            " dimension size -1 can be any value and is ambiguous"
        )
    if known != count or (unknown >= 0 and not known and sizes[unknown] == -1):
        raise shape_error(
            f"{name}(): {count} elements cannot have the shape {tuple(sizes)}",
            text=f"shape '{written}' is invalid for input of size {count}",
        )
    return tuple(sizes)


def _view_array(self: Any, size: tuple[int, ...]) -> Any:
    try:
        return self.reshape(size, copy=False)
    except ValueError:
        raise shape_error(
            f"view(): a tensor of shape {tuple(self.shape)} and strides"
            f" {tuple(stride // self.itemsize for stride in self.strides)} cannot show its elements"
            f" as {size} without copying",
            text="view size is not compatible with input tensor's size and stride (at least one"
            " dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
            help="use reshape()",
        ) from None


def _back_to_sizes(grad: Any, self_sizes: tuple[int, ...]) -> Any:
    return reshape(grad, self_sizes)


view: Op = op("view", _view_array, view=True, self=_back_to_sizes, raises=BY_KINDS)

# What reshape() gives where a tensor that is not in row order can be viewed without a copy.
reshape_alias: Op = op(
    "_reshape_alias", _view_array, view=True, self=_back_to_sizes, raises=BY_KINDS
)

# A view of a temporary value: PyTorch does not record it as a view, so it is its own base.
unsafe_view: Op = op(
    "_unsafe_view",
    lambda self, size: _view_array(self, size) if self.ndim else self.reshape(size),
    keeps_layout=True,
    self=_back_to_sizes,
    raises=BY_KINDS,
)


def reshape(value: Any, size: tuple[int, ...]) -> Any:
    """A view where there can be one, a copy otherwise: what rules call, on arrays or tensors."""
    if type(value) is not Tensor:
        return value.reshape(size)
    array = value.array
    if isinstance(array, np.generic) or array.flags.c_contiguous:
        return view.apply(value, size)
    try:
        array.reshape(size, copy=False)
    except ValueError:
        return unsafe_view.apply(row_order.apply(value), size)
    return reshape_alias.apply(value, size)


@function("reshape", method=True, numpy="{head}.reshape({1})")
def reshape_function(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The elements in another shape, one -1 inferred: a view where there can be one, else a copy.
    Raises E301 where the number of elements differs.

    Example: torch.reshape(tensor([[2., 1.], [1., 3.]]), (4,))
    """
    wanted = sizes_of("reshape", one_by_one("reshape", "shape", sizes, shape))
    return reshape(input, inferred_sizes("reshape", wanted, input.array.size))


@method("reshape_as")
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in another tensor's shape; see `reshape`.

    Example: tensor([0.5, 1., 2.]).reshape_as(tensor([2., 1., 3.]))
    """
    return reshape_function(self, other.array.shape)


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
            raise dtype_error(
                f"view(): elements of {tensor.dtype} have {old} bytes and those of {dtype} {new}:"
                f" {problem}"
            )
    result.array = array.view(dtype.numpy_dtype)
    return result


@method("view")
def view_function(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape, one -1 inferred; or in another dtype. Raises E301 where
    that needs a copy.

    Example: tensor([[2., 1.], [1., 3.]]).view(4)
    """
    if dtype is not None or (len(sizes) == 1 and isinstance(sizes[0], DType)):
        return bits_as(self, checked_dtype("view", dtype or sizes[0], self.dtype))
    if not sizes and size is None:
        raise GradcliError("E201", "view() needs the sizes of the view")
    wanted = sizes_of("view", one_by_one("view", "size", sizes, size))
    return view.apply(self, inferred_sizes("view", wanted, self.array.size))


@method("view_as")
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory in another tensor's shape; see `view`.

    Example: tensor([0.5, 1., 2.]).view_as(tensor([2., 1., 3.]))
    """
    return view_function(self, other.array.shape)


# --- squeeze and unsqueeze ----------------------------------------------------------------------


def _unsqueezed(self: Any, dim: int) -> Any:
    shape = self.shape
    if type(self) is np.ndarray and len(shape) == 1 != shape[0] and self.flags.c_contiguous:
        return self.reshape((1, -1) if dim in (0, -2) else (-1, 1))  # which sets PyTorch's strides
    return with_strides(self)[(*(slice(None),) * (dim % (self.ndim + 1)), None, ...)]


unsqueeze: Op = op(
    "unsqueeze",
    lambda self, dim: _unsqueezed(self, dim),
    view=True,
    self=lambda grad, dim: squeeze_dim(grad, dim),
    numpy="expand_dims",
    raises=BY_KINDS,
    written={},
)


def restore_dims(value: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """A reduced value with the reduced dimensions put back, of size 1."""
    if keepdim or not dims:
        return value
    for dim in sorted(dims):
        value = unsqueeze(value, dim)
    return value


def _singles(self_sizes: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(dim for dim in dims if dim < len(self_sizes) and self_sizes[dim] == 1)


def _squeeze_array(self: Any, dims: Sequence[int]) -> Any:
    return with_strides(self).squeeze(_singles(self.shape, dims))


def _squeeze(node_name: str, is_view: bool) -> Op:
    """An entry that drops those of the dimensions that have size 1."""
    return op(
        "squeeze",
        lambda self, dim: _squeeze_array(self, (dim,)),
        node=node_name,
        view=is_view,
        keeps_layout=True,
        self=lambda grad, self_sizes, dim: restore_dims(grad, _singles(self_sizes, (dim,)), False),
        raises=BY_KINDS,
    )


def _squeeze_several(node_name: str, is_view: bool) -> Op:
    return op(
        "squeeze",
        _squeeze_array,
        node=node_name,
        view=is_view,
        keeps_layout=True,
        self=lambda grad, self_sizes, dims: restore_dims(grad, _singles(self_sizes, dims), False),
        raises=BY_KINDS,
    )


squeeze_all: Op = _squeeze_several("SqueezeBackward0", True)
squeeze_dim: Op = _squeeze("SqueezeBackward1", True)
squeeze_dims: Op = _squeeze_several("SqueezeBackward2", True)
# The in-place forms, which are no views; matmul uses the second on its own result.
squeeze_all_in_place: Op = _squeeze_several("SqueezeBackward3", False)
squeeze_dim_in_place: Op = _squeeze("SqueezeBackward4", False)
squeeze_dims_in_place: Op = _squeeze_several("SqueezeBackward5", False)


def _squeezed(input: Tensor, dim: Dims, every: Op, one: Op, several: Op) -> Any:
    ndim = input.array.ndim
    if dim is None:
        return every.apply(input, tuple(range(ndim)))
    if isinstance(dim, (tuple, list)):
        return several.apply(input, normal_dims("squeeze", input, dim) if dim else ())
    return one.apply(input, normal_dim("squeeze", dim, ndim))


@function("squeeze", method=True)
def squeeze(input: Tensor, dim: Dims = None) -> Tensor:
    """The tensor without its dimensions of size 1, or without the given ones of size 1.

    Example: torch.squeeze(tensor([0.5, 1., 2.]))
    """
    return _squeezed(input, dim, squeeze_all, squeeze_dim, squeeze_dims)


@method("squeeze_")
def squeeze_in_place(self: Tensor, dim: Dims = None) -> Tensor:
    """Drop dimensions of size 1 from the tensor itself.

    Example: tensor([0.5, 1., 2.]).squeeze_()
    """
    check_write("squeeze_", check_graph, squeeze, self, *(() if dim is None else (dim,)))
    squeezed = _squeezed(
        self, dim, squeeze_all_in_place, squeeze_dim_in_place, squeeze_dims_in_place
    )
    return replace_layout(self, squeezed)


@function("unsqueeze", method=True)
def unsqueeze_function(input: Tensor, dim: int) -> Tensor:
    """The tensor with a dimension of size 1 put in at `dim`."""
    return unsqueeze.apply(input, normal_dim("unsqueeze", dim, input.array.ndim + 1))


@method("unsqueeze_")
def unsqueeze_in_place(self: Tensor, dim: int) -> Tensor:
    """Put a dimension of size 1 into the tensor itself.

    Example: tensor([0.5, 1., 2.]).unsqueeze_(0)
    """
    check_write("unsqueeze_", check_graph, unsqueeze_function, self, dim)
    dim = normal_dim("unsqueeze_", dim, self.array.ndim + 1)
    return replace_layout(self, unsqueeze.written.apply(self, dim))


# --- turned dimensions --------------------------------------------------------------------------

transpose: Op = op(
    "transpose",
    lambda self, dim0, dim1: with_strides(self).swapaxes(dim0, dim1) if self.ndim else self,
    view=True,
    linear=True,
    numpy=".swapaxes",
    raises=BY_KINDS,
    written={},
)

t: Op = op(
    "t",
    lambda self: with_strides(self).T,
    view=True,
    linear=True,
    numpy="{head}.T",
    raises=BY_KINDS,
    written={},
)

permute: Op = op(
    "permute",
    lambda self, dims: with_strides(self).transpose(dims),
    view=True,
    self=lambda grad, dims: permute(grad, inverse_permutation(dims)),
    numpy=".transpose",
    raises=BY_KINDS,
)


def inverse_permutation(dims: Sequence[int]) -> tuple[int, ...]:
    """The order of dimensions that undoes an order of dimensions."""
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim] = position
    return tuple(inverse)


@function("transpose", "swapaxes", "swapdims", method=True)
def transpose_function(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """The tensor with two of its dimensions swapped.

    Example: torch.transpose(tensor([[2., 1.], [1., 3.]]), 0, 1)
    """
    ndim = input.array.ndim
    return transpose.apply(
        input, normal_dim("transpose", dim0, ndim), normal_dim("transpose", dim1, ndim)
    )


def _transposes_in_place(name: str) -> Function:
    def swap(self: Tensor, dim0: int, dim1: int) -> Tensor:
        check_graph(name, self)
        ndim = self.array.ndim
        turned = transpose.written.apply(
            self, normal_dim(name, dim0, ndim), normal_dim(name, dim1, ndim)
        )
        return replace_layout(self, turned)

    describe(
        swap,
        "Swap two dimensions of the tensor itself.",
        f"tensor([[2., 1.], [1., 3.]]).{name}(0, 1)",
    )
    return method(name)(swap)


transpose_in_place, _, _ = map(_transposes_in_place, ("transpose_", "swapaxes_", "swapdims_"))


def _check_flat(name: str, tensor: Tensor) -> None:
    if tensor.array.ndim > 2:
        raise shape_error(
            f"{name}() expects a tensor with <= 2 dimensions, but self is {tensor.array.ndim}D",
            help="use transpose(dim0, dim1), permute() or .mT",
        )


@function("t", method=True)
def t_function(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector as it is. Raises E301 for more than two dimensions."""
    _check_flat("t", input)
    return t.apply(input)


@method("t_")
def transpose_matrix_in_place(self: Tensor) -> Tensor:
    """Transpose the matrix itself."""
    _check_flat("t_", self)
    check_graph("t_", self)
    return replace_layout(self, t.written.apply(self))


@function("permute", method=True)
def permute_function(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The dimensions in another order. Raises E301 unless each is named once.

    Example: torch.permute(tensor([[2., 1.], [1., 3.]]), 0, 1)
    """
    order_of_dims = sizes_of("permute", one_by_one("permute", "dims", order, dims))
    ndim = input.array.ndim
    if len(order_of_dims) != ndim:
        raise shape_error(
            f"permute(): {len(order_of_dims)} dimensions named, of {ndim}",
            text="permute(sparse_coo): number of dimensions in the tensor input does not match the"
            f" length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal"
            f" to len(dims) = {len(order_of_dims)}",
        )
    turned = tuple(normal_dim("permute", dim, ndim) for dim in order_of_dims)
    if sorted(turned) != list(range(ndim)):
        raise shape_error(
            f"permute(): {order_of_dims} does not name each of the {ndim} dimensions once",
            text="permute(): duplicate dims are not allowed.",
        )
    return permute.apply(input, turned)
