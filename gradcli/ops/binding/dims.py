"""Dimension arguments: `dim=-1`, `dim=(0, 2)`, `size=(2, -1)`, checked and normalised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, index_error, type_error

Dims = int | Sequence[int] | None


class FromTheEnd(int):
    """A dimension, or a position in one, that a program counted from the end: counted from the
    front.

    Attributes:
        written: the negative number that the program wrote.
    """

    written: int

    def __new__(cls, written: int, extent: int) -> FromTheEnd:
        dim = super().__new__(cls, written + extent)
        dim.written = written
        return dim

    def shown(self) -> int:
        """As `grad_fn._saved_dim` shows it: PyTorch reads the negative number as unsigned."""
        return self.written + (1 << 64)


def normal_dim(name: str, dim: Any, ndim: int) -> int:
    """A dimension counted from the front.

    Raises E302 where there is no such dimension; a 0-dim tensor has 0 and -1. Raises E202 for what
    is no integer.
    """
    if isinstance(dim, Tensor):
        dim = dim.__index__()
    if type(dim) is not int and type(dim) is not FromTheEnd:
        raise type_error(
            f"{name}(): dim must be an integer, not {type(dim).__name__}",
            text=f"{name}(): argument 'dim' must be int, not {type(dim).__name__}",
        )
    extent = max(ndim, 1)
    if not -extent <= dim < extent:
        raise index_error(
            f"{name}(): dimension {dim} does not exist in a tensor of {ndim} dimensions"
            f" (there are {-extent} to {extent - 1})",
            text=out_of_range(dim, ndim),
        )
    return dim if dim >= 0 else FromTheEnd(dim, extent)


def out_of_range(dim: int, ndim: int) -> str:
    """PyTorch's text for a dimension that a tensor does not have."""
    extent = max(ndim, 1)
    return (
        f"Dimension out of range (expected to be in range of [{-extent}, {extent - 1}], but got"
        f" {dim})"
    )


def normal_dims(name: str, tensor: Tensor, dim: Dims) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front; all for None or an empty sequence.

    A 0-dim tensor has none. Raises E302 for a dimension that does not exist, or stands twice.
    """
    ndim = tensor.array.ndim
    if dim is None:
        return tuple(range(ndim))
    several = dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple(normal_dim(name, d, ndim) for d in several) or tuple(range(ndim))
    if len(set(dims)) != len(dims):
        twice = next(each for number, each in enumerate(dims) if each in dims[:number])
        raise index_error(
            f"{name}(): a dimension appears twice in {tuple(several)}",
            text=f"dim {twice} appears multiple times in the list of dims",
            raises="RuntimeError",
        )
    return dims if ndim else ()


def one_by_one(name: str, keyword: str, values: Sequence[Any], keyword_value: Any) -> Sequence[Any]:
    """Values passed one by one, `permute(1, 0)`, or by the keyword, `permute(dims=(1, 0))`.

    Raises E201 where both were, or neither.
    """
    if keyword_value is None:
        if not values:
            raise GradcliError("E201", f"{name}(): `{keyword}` is missing")
        return values
    if values:
        raise GradcliError("E201", f"{name}(): `{keyword}` was given twice")
    return (keyword_value,)


def sizes_of(name: str, sizes: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence: `view(2, 3)`, `view((2, 3))`, `zeros(x.shape)`."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    if all(type(size) is int for size in sizes):
        return tuple(sizes)
    plain = []
    for number, size in enumerate(sizes):
        if isinstance(size, Tensor):
            size = size.__index__()
        if type(size) is not int:
            kind = type(size).__name__
            text = f"{name}(): argument 'size' (position 1) must be tuple of ints, not {kind}"
            if number:
                text = (
                    f"{name}(): argument 'size' failed to unpack the object at pos {number + 1}"
                    f' with error "type must be tuple of ints,but got {kind}"'
                )
            raise type_error(f"{name}(): a size must be an integer, not {kind}", text=text)
        plain.append(size)
    return tuple(plain)
