"""Copies with rearranged elements: `flip roll repeat tile rot90 tril triu diag`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import module_of
from gradcli.arrays.layout.strides import copied_in_order, laid_out_like
from gradcli.autograd.inplace.writes import check_graph
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, index_error, runtime_error, shape_error
from gradcli.ops.binding.arguments import (
    check_tensors,
    normal_dim,
    normal_dims,
    one_by_one,
    plain_integer,
    sizes_of,
)
from gradcli.ops.binding.catalogue import function, method
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.definition.doc import BY_KINDS, describe
from gradcli.ops.definition.op import Op, op
from gradcli.ops.definition.refs import sum_dims
from gradcli.ops.shape.slicing import diagonal, diagonal_backward, diagonal_dims, diagonal_of
from gradcli.ops.shape.views import reshape, view

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


def _check_dims(name: str, tensor: Tensor, least: int) -> None:
    if tensor.array.ndim < least:
        raise shape_error(
            f"{name}(): a tensor of {tensor.array.ndim} dimensions has too few, it takes {least}",
            text=f"{name}: input tensor must have at least {least} dimensions",
        )


@function("fliplr", method=True)
def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order."""
    _check_dims("fliplr", input, 2)
    return flip.apply(input, (1,))


@function("flipud", method=True)
def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order."""
    _check_dims("flipud", input, 1)
    return flip.apply(input, (0,))


roll: Op = op(
    "roll",
    lambda self, shifts, dims: laid_out_like(self, np.roll(self, shifts, dims)),
    keeps_layout=True,
    self=lambda grad, shifts, dims: roll(grad, _opposite(shifts), dims),
    numpy="roll",
    raises=BY_KINDS,
)


def _opposite(shifts: Any) -> Any:
    return tuple(-shift for shift in shifts) if isinstance(shifts, tuple) else -shifts


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

    @function(name, method=True, inplace=True, check=check_graph)
    def triangle(input: Tensor, diagonal: int = 0) -> Tensor:
        _check_dims(name, input, 2)
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


@function("diag_embed", method=True)
def diag_embed_function(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension as the diagonal of two new ones, `offset` above the main one.

    Example: torch.diag_embed(tensor([0.5, 1., 2.]))
    """
    _check_dims("diag_embed", input, 1)
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
