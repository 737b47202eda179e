"""Functions composed of views: `flatten ravel unflatten movedim atleast_2d meshgrid`,
and the attributes `.T .mT .H .mH`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.arrays.layout.sizes import sizes_apart
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error, shape_error
from gradcli.ops.arithmetic.conjugate import conj
from gradcli.ops.binding.arguments import Dims, check_same_dtype, normal_dim, normal_dims, sizes_of
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.runtime import listed
from gradcli.ops.creation.copies import contiguous
from gradcli.ops.definition.op import Function
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
