"""Functions composed of views: `flatten ravel unflatten movedim atleast_2d meshgrid`, and the
attributes `.T .mT .H .mH`; and copies with rearranged elements, `flip roll repeat tile rot90 tril
triu diag`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.sizes import sizes_apart
from gradcli.arrays.layout.strides import (
    copied_in_order,
    in_row_order,
    is_channels_last,
    laid_out_like,
)
from gradcli.autograd.inplace.writes import check_graph
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, index_error, runtime_error, shape_error
from gradcli.ops.arithmetic.arithmetic import conj
from gradcli.ops.binding.arguments import (
    Dims,
    check_same_dtype,
    check_tensors,
    normal_dim,
    normal_dims,
    one_by_one,
    plain_integer,
    sizes_of,
)
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.codegen.runtime import listed
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.op import ANY, Function, Op, TensorSpec, op
from gradcli.ops.definition.refs import sum_dims
from gradcli.ops.shape.slicing import diagonal, diagonal_backward, diagonal_dims, diagonal_of
from gradcli.ops.shape.views import (
    expand,
    inferred_sizes,
    permute,
    reshape,
    transpose,
    unsqueeze,
    view,
)


@function("flatten", method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one; the tensor itself if that is one.

    Example: torch.flatten(tensor([0.5, 1., 2.]))
    """
    shape = input.array.shape
    start = normal_dim("flatten", start_dim, len(shape))
    end = normal_dim("flatten", end_dim, len(shape))
    if start > end:
        raise runtime_error("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, (1,))
    if start == end:
        return input
    joined = int(np.prod(shape[start : end + 1]))
    return reshape(input, (*shape[:start], joined, *shape[end + 1 :]))


@function("ravel", method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension.

    Example: torch.ravel(tensor([0.5, 1., 2.]))
    """
    return view.apply(contiguous(input), (input.array.size,))


@function("unflatten", method=True)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension cut into several, one -1 inferred. Raises E301 where the sizes do not fit.

    Example: torch.unflatten(tensor([[2., 1.], [1., 3.]]), 0, (1, 2))
    """
    shape = input.array.shape
    at = normal_dim("unflatten", dim, len(shape))
    if not shape:
        raise shape_error("unflatten(): a 0-dim tensor has no dimension to cut")
    parts = sizes_of("unflatten", (sizes,))
    if not parts:
        raise shape_error("unflatten: sizes must be non-empty")
    try:
        wanted = inferred_sizes("unflatten", parts, shape[at])
    except GradcliError as error:
        if parts.count(-1) < 2:
            error.text = (
                f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {at}"
                f" ({shape[at]}) in the input tensor"
            )
        raise
    return view.apply(input, (*shape[:at], *wanted, *shape[at + 1 :]))


# --- turned dimensions --------------------------------------------------------------------------


@function("movedim", "moveaxis", method=True)
def movedim(input: Tensor, source: Dims, destination: Dims) -> Tensor:
    """Dimensions moved to other positions; the others keep their order.

    Example: torch.movedim(tensor([[2., 1.], [1., 3.]]), 0, 1)
    """
    sources = normal_dims("movedim", input, source)
    destinations = normal_dims("movedim", input, destination)
    if len(sources) != len(destinations):
        raise runtime_error(
            f"movedim(): {len(sources)} dimensions to {len(destinations)} positions"
        )
    staying = iter([dim for dim in range(input.array.ndim) if dim not in sources])
    moving = dict(zip(destinations, sources, strict=True))
    order = [moving[i] if i in moving else next(staying) for i in range(input.array.ndim)]
    return permute.apply(input, tuple(order))


def reversed_dims(tensor: Tensor) -> Tensor:
    """`x.T`: the dimensions in reverse order."""
    return permute.apply(tensor, tuple(range(tensor.array.ndim))[::-1])


def matrix_transpose(tensor: Tensor) -> Tensor:
    """`x.mT`: the last two dimensions swapped. Raises E301 for a vector."""
    return _of_matrices("mT", tensor)


def matrix_adjoint(tensor: Tensor) -> Tensor:
    """`x.mH`: the last two dimensions swapped, and conjugated. Raises E301 for a vector."""
    return conj(_of_matrices("mH", tensor))


def conjugate_transpose(tensor: Tensor) -> Tensor:
    """`x.H`: the adjoint of a matrix. Raises E301 for a tensor that is none."""
    if tensor.array.ndim > 2:
        raise shape_error(
            f"tensor.H is only supported on matrices (2-D tensors). Got {tensor.ndim}-D tensor. For"
            " batches of matrices, consider using tensor.mH"
        )
    return conj(_of_matrices("H", tensor, "matrices (2-D tensors)"))


@function("adjoint", method=True)
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions swapped, and conjugated. Raises E301 for a vector."""
    return conj(_of_matrices("adjoint", input))


def _of_matrices(
    name: str, tensor: Tensor, wanted: str = "matrices or batches of matrices"
) -> Tensor:
    ndim = tensor.array.ndim
    if ndim == 1:
        raise shape_error(
            f"{name}: a vector has no matrix transpose",
            text=f"tensor.{name}{'()' * (name == 'adjoint')} is only supported on {wanted}. Got 1-D"
            " tensor.",
        )
    return transpose.apply(tensor, ndim - 2, ndim - 1) if ndim else tensor


# --- a least number of dimensions ---------------------------------------------------------------


def _at_least(name: str, tensors: tuple[Any, ...], raised: Function) -> Any:
    """Tensors given one by one or as one list, each raised to a number of dimensions."""
    if len(tensors) == 1:
        if isinstance(tensors[0], Tensor):
            return raised(tensors[0])
        tensors = tensors[0]
    return tuple(raised(tensor) for tensor in listed(name, tensors))


def raised_1d(tensor: Tensor) -> Tensor:
    return tensor if tensor.array.ndim else view.apply(tensor, (1,))


def raised_2d(tensor: Tensor) -> Tensor:
    if not tensor.array.ndim:
        return view.apply(tensor, (1, 1))
    return tensor if tensor.array.ndim > 1 else unsqueeze.apply(tensor, 0)


def raised_3d(tensor: Tensor) -> Tensor:
    ndim = tensor.array.ndim
    if not ndim:
        return view.apply(tensor, (1, 1, 1))
    if ndim == 1:
        tensor = unsqueeze.apply(tensor, 0)
    return tensor if ndim > 2 else unsqueeze.apply(tensor, 2)


@function("atleast_1d")
def atleast_1d(*tensors: Any) -> Any:
    """A 0-dim tensor as a vector, any other itself; a tuple of them for several tensors.

    Example: torch.atleast_1d(tensor([0.5, 1., 2.]))
    """
    return _at_least("atleast_1d", tensors, raised_1d)


@function("atleast_2d")
def atleast_2d(*tensors: Any) -> Any:
    """A tensor with dimensions put in front until it has two; a tuple of them for several.

    Example: torch.atleast_2d(tensor([0.5, 1., 2.]))
    """
    return _at_least("atleast_2d", tensors, raised_2d)


@function("atleast_3d")
def atleast_3d(*tensors: Any) -> Any:
    """A tensor with dimensions put around it until it has three; a tuple of them for several.

    Example: torch.atleast_3d(tensor([0.5, 1., 2.]))
    """
    return _at_least("atleast_3d", tensors, raised_3d)


# --- broadcasting -------------------------------------------------------------------------------


def _several(name: str, tensors: tuple[Any, ...]) -> list[Tensor]:
    """Tensors given one by one or as one list."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return listed(name, tensors)


@function("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape. Raises E301 where there is none.

    Example: torch.broadcast_tensors(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    operands = _several("broadcast_tensors", tensors)
    shapes = [tensor.array.shape for tensor in operands]
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError:
        raise shape_error(
            f"broadcast_tensors(): the shapes {shapes} cannot be broadcast",
            text=sizes_apart(*shapes),
        ) from None
    return tuple(
        tensor if tensor.array.shape == common else expand.apply(tensor, common)
        for tensor in operands
    )


@function("meshgrid")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid, one tensor for each of its axes, given as vectors.

    Raises E301 for what is no vector, E204 for an `indexing` other than "ij" and "xy".

    Example: torch.meshgrid(tensor([0.5, 1., 2.]), tensor([2., 1., 3.]))
    """
    axes = _several("meshgrid", tensors)
    if not axes:
        raise runtime_error("meshgrid expects a non-empty TensorList")
    if any(axis.array.ndim > 1 for axis in axes):
        raise shape_error("meshgrid(): the axes must be vectors or 0-dim tensors")
    for axis in axes[1:]:
        text = "meshgrid expects all tensors to have the same dtype"
        check_same_dtype("meshgrid", axes[0], axis, text)
    if indexing not in ("ij", "xy"):
        raise runtime_error(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing
        )
    # Which dimension each axis runs along: "xy" puts the first one across.
    along = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        along[0], along[1] = 1, 0
    sizes = [1] * len(axes)
    for dim, axis in zip(along, axes, strict=True):
        sizes[dim] = axis.array.size
    grids = []
    for dim, axis in zip(along, axes, strict=True):
        alone = tuple(size if i == dim else 1 for i, size in enumerate(sizes))
        grids.append(expand.apply(view.apply(axis, alone), tuple(sizes)))
    return tuple(grids)


# --- copies with rearranged elements --------------------------------------------------------------


# --- flip, roll, rot90 --------------------------------------------------------------------------


def _flipped(self: Any, dims: tuple[int, ...]) -> Any:
    result = copied_in_order(self)
    if self.ndim:
        result[...] = np.flip(self, dims)
    return result


flip: Op = op(
    "flip",
    lambda self, dims: _flipped(self, dims),
    keeps_layout=True,
    linear=True,
    numpy="flip",
    raises=BY_KINDS,
)


@function("flip", method=True)
def flip_function(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The elements in reverse order along the given dimensions.

    Example: torch.flip(tensor([[2., 1.], [1., 3.]]), 0)
    """
    axes = one_by_one("flip", "dims", order, dims)
    if not axes:
        raise GradcliError("E201", "flip() needs the dimensions to flip")
    wanted = sizes_of("flip", axes)
    return flip.apply(input, normal_dims("flip", input, wanted) if wanted else ())


def _with_dims(
    least: int, text: str = "{name}: input tensor must have at least {least} dimensions"
) -> dict[str, TensorSpec]:
    """An input of so many dimensions or more."""
    plain = "{name}(): a tensor of {ndim} dimensions has too few, it takes {least}"
    return {"input": TensorSpec(least, ANY, text, plain)}


@function("fliplr", method=True, takes=_with_dims(2, "Input must be >= 2-d."))
def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order."""
    return flip.apply(input, (1,))


@function("flipud", method=True, takes=_with_dims(1, "Input must be >= 1-d."))
def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order."""
    return flip.apply(input, (0,))


def _rolled(self: Any, shifts: Any, dims: Any) -> Any:
    rolled = np.roll(self, shifts, dims)
    # PyTorch joins the two parts along each dimension, which keeps channels last alone.
    if dims is not None and self.ndim in (4, 5) and is_channels_last(self):
        pairs = zip(shifts, dims, strict=True)
        if all(shift % self.shape[dim] for shift, dim in pairs):
            return laid_out_like(self, rolled)
    return in_row_order(rolled)


roll: Op = op(
    "roll",
    _rolled,
    keeps_layout=True,
    self=lambda grad, shifts, dims: roll(
        grad, tuple(-shift for shift in shifts) if isinstance(shifts, tuple) else -shifts, dims
    ),
    numpy="roll",
    raises=BY_KINDS,
)


@function("roll", method=True)
def roll_function(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """The elements moved along dimensions, those that fall off the end put in at the front.

    Without `dims` the tensor is rolled as one vector. Raises E204 unless there is a shift for each
    dimension.

    Example: torch.roll(tensor([[2., 1.], [1., 3.]]), 1)
    """
    moves = sizes_of("roll", (shifts,))
    if not moves:
        raise runtime_error("roll(): no shift is given", text="`shifts` required")
    if dims is None or (type(dims) in (tuple, list) and not dims):
        if len(moves) == 1:
            return roll.apply(input, moves[0], None)
        dims = ()
    along = sizes_of("roll", (dims,))
    if len(moves) != len(along):
        raise runtime_error(
            f"roll(): {len(moves)} shifts for {len(along)} dimensions",
            text=f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(along)}",
        )
    if not input.array.size:  # PyTorch copies it, whatever the dimensions
        return roll.apply(input, 0, None)
    if not input.array.ndim:
        raise index_error(
            "roll(): a 0-dim tensor has no dimensions to roll along",
            text=f"Dimension specified as {along[0]} but tensor has no dimensions",
        )
    axes = tuple(normal_dim("roll", dim, input.array.ndim) for dim in along)
    return roll.apply(input, moves, axes)


def _turned(self: Any, k: int, dims: tuple[int, int]) -> Any:
    turned = np.rot90(self, k, dims)
    if not k % 2:
        return laid_out_like(self, turned.copy())
    # A quarter turn is a reversed copy with two dimensions swapped, also in memory.
    return laid_out_like(self, turned.swapaxes(*dims).copy()).swapaxes(*dims)


_rot90: Op = op(
    "rot90",
    lambda self, k, dims: _turned(self, k, dims),
    keeps_layout=True,
    self=lambda grad, k, dims: _rot90(grad, -k, dims),
    numpy="rot90",
    raises=BY_KINDS,
)


@function("rot90", method=True)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The plane of two dimensions turned `k` times by a right angle, from the first towards the
    second.
    """
    check_tensors("rot90", input=input)
    problem = ""
    if len(dims) != 2:
        problem = f"expected total rotation dims == 2, but got dims = {len(dims)}"
    elif input.array.ndim < 2:
        problem = f"expected total dims >= 2, but got total dims = {input.array.ndim}"
    elif dims[0] == dims[1] or abs(dims[0] - dims[1]) == input.array.ndim:
        problem = (
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    if problem:
        raise runtime_error(f"rot90(): {problem}", text=problem)
    return _rot90.apply(input, k, diagonal_dims("rot90", input.array.ndim, dims[0], dims[1]))


# --- repeat -------------------------------------------------------------------------------------


def _repeat_rule(grad: Any, self_sizes: tuple[int, ...], repeats: Sequence[int]) -> Any:
    leading = len(repeats) - len(self_sizes)
    for _ in range(leading):
        grad = sum_dims(grad, (0,), False)
    # The copies along a dimension become a dimension of their own, over which is summed.
    apart: list[int] = []
    copies = []
    for count, size in zip(repeats[leading:], self_sizes, strict=True):
        if count != 1:
            copies.append(len(apart))
            apart.append(count)
        apart.append(size)
    return sum_dims(reshape(grad, tuple(apart)), tuple(copies), False) if copies else grad


_repeat: Op = op(
    "repeat",
    lambda self, repeats: np.tile(self, repeats)[()],
    self=_repeat_rule,
    numpy="""\
def repeated(x, *counts):
    return np.tile(x, counts[0] if isinstance(counts[0], tuple) else counts)
""",
    raises=BY_KINDS,
)


@method("repeat")
def repeat(self: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """The tensor repeated so often along each dimension. Raises E301 unless there is a count for
    each, none negative.

    Example: tensor([0.5, 1., 2.]).repeat(2)
    """
    each = one_by_one("repeat", "repeats", counts, repeats)
    if not each:
        raise GradcliError("E201", "repeat() needs how often to repeat")
    return _repeated("repeat", self, sizes_of("repeat", each))


def _repeated(name: str, tensor: Tensor, counts: tuple[int, ...]) -> Tensor:
    if len(counts) < tensor.array.ndim or min(counts, default=0) < 0:
        raise shape_error(
            f"{name}(): a tensor of {tensor.array.ndim} dimensions cannot be repeated {counts}"
            " times",
            text="Number of dimensions of repeat dims can not be smaller than number of dimensions"
            " of tensor",
        )
    return _repeat.apply(tensor, counts)


@function("tile", method=True)
def tile(input: Tensor, *counts: Any, dims: Any = None) -> Tensor:
    """The tensor repeated so often along its last dimensions.

    Example: torch.tile(tensor([0.5, 1., 2.]), 2)
    """
    each = sizes_of("tile", one_by_one("tile", "dims", counts, dims))
    return _repeated("tile", input, (1,) * (input.array.ndim - len(each)) + each)


# --- triangles ----------------------------------------------------------------------------------


def _triangle(name: str, forward: Any) -> Op:
    entry: Op = op(
        name,
        forward,
        leading=True,
        self=lambda grad, diagonal: entry(grad, diagonal),
        numpy=name,
        raises=BY_KINDS,
    )

    @function(name, method=True, inplace=True, check=check_graph, takes=_with_dims(2))
    def triangle(input: Tensor, diagonal: int = 0) -> Tensor:
        return entry.apply(input, plain_integer(name, "diagonal", diagonal))

    side = "lower" if name == "tril" else "upper"
    describe(triangle, f"The {side} triangle up to a diagonal of the last two dimensions, else 0.")
    return entry


tril = _triangle("tril", lambda self, diagonal: np.tril(self, diagonal))
triu = _triangle("triu", lambda self, diagonal: np.triu(self, diagonal))

# --- diagonals ----------------------------------------------------------------------------------

diagonal_copy: Op = op(
    "diagonal_copy",
    lambda self, offset: np.diagonal(self, offset).copy(),
    node="DiagonalBackward0_copy",
    self=lambda grad, self_sizes, offset: diagonal_backward(grad, self_sizes, offset, 0, 1),
    raises=BY_KINDS,
)


def _embedded(self: Any, offset: int, dim1: int, dim2: int) -> Any:
    extent = self.shape[-1] + abs(offset)
    sizes = list(self.shape[:-1])
    for dim in sorted((dim1, dim2)):
        sizes.insert(dim, extent)
    whole = module_of(self).zeros(sizes, self.dtype)
    diagonal_of(whole, offset, dim1, dim2)[...] = self
    return whole


diag_embed: Op = op(
    "diag_embed",
    _embedded,
    self=diagonal,
    numpy="""\
def diag_embed(values, offset=0, axis1=-2, axis2=-1):
    i, size = np.arange(values.shape[-1]), values.shape[-1] + abs(offset)
    x = np.zeros((*values.shape[:-1], size, size), values.dtype)
    x[..., i + max(-offset, 0), i + max(offset, 0)] = values
    return np.moveaxis(x, (-2, -1), (axis1, axis2))
""",
    raises=BY_KINDS,
)


@function("diag_embed", method=True, takes=_with_dims(1))
def diag_embed_function(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension as the diagonal of two new ones, `offset` above the main one.

    Example: torch.diag_embed(tensor([0.5, 1., 2.]))
    """
    dims = diagonal_dims("diag_embed", input.array.ndim + 1, dim1, dim2)
    return diag_embed.apply(input, offset, *dims)


@function("diag", method=True, numpy="diag")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector as its diagonal, or the diagonal of a matrix, as a copy."""
    if input.array.ndim == 1:
        return diag_embed.apply(input, diagonal, 0, 1)
    if input.array.ndim != 2:
        raise shape_error(
            f"diag(): takes a vector or a matrix, not {input.array.ndim} dimensions",
            text=f"diag(): Supports 1D or 2D tensors. Got {input.array.ndim}D",
        )
    return diagonal_copy.apply(input, diagonal)


@function("diagflat", method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements as its diagonal.

    Example: torch.diagflat(tensor([0.5, 1., 2.]))
    """
    return diag_embed.apply(view.apply(contiguous(input), (input.array.size,)), offset, 0, 1)
