"""`torch.gradient`: the slope of values at points, from the values beside each."""

from __future__ import annotations

from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.ops.arguments import check_tensors
from gradcli.ops.arithmetic import add, div, div_number, mul
from gradcli.ops.catalogue import function
from gradcli.ops.dimensions import normal_dims
from gradcli.ops.joining import cat
from gradcli.ops.shape import view
from gradcli.ops.slicing import narrow, slice_


def _wrong(message: str) -> GradcliError:
    return GradcliError("E204", f"gradient(): {message}", raises="RuntimeError")


def _first(input: Tensor, dim: int, count: int) -> list[Tensor]:
    return [narrow(input, dim, i, 1) for i in range(count)]


def _last(input: Tensor, dim: int, count: int) -> list[Tensor]:
    size = input.array.shape[dim]
    return [narrow(input, dim, size - 1 - i, 1) for i in range(count)]


def _at_equal_distance(input: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """The slopes where the points are `spacing` apart."""
    # In PyTorch's order: the middle first, and of two terms the second.
    size = input.array.shape[dim]
    earlier = slice_.apply(input, dim, 0, size - 2, 1)
    inner = div_number.apply(slice_.apply(input, dim, 2, size, 1) - earlier, spacing)
    if edge_order == 1:
        x0 = narrow(input, dim, 0, 1)
        front = div_number.apply(narrow(input, dim, 1, 1) - x0, spacing)
        y1 = narrow(input, dim, size - 2, 1)
        back = div_number.apply(narrow(input, dim, size - 1, 1) - y1, spacing)
    else:
        x2 = narrow(input, dim, 2, 1) * 0.5
        x1 = narrow(input, dim, 1, 1) * 2
        front = div_number.apply(narrow(input, dim, 0, 1) * -1.5 + x1 - x2, spacing)
        y0 = narrow(input, dim, size - 1, 1) * 1.5
        y1 = narrow(input, dim, size - 2, 1) * 2
        back = div_number.apply(narrow(input, dim, size - 3, 1) * 0.5 - y1 + y0, spacing)
    result: Tensor = cat.apply((front, div_number.apply(inner, 2), back), dim)
    return result


def _at_points(input: Tensor, dim: int, points: Tensor, edge_order: int) -> Tensor:
    """The slopes where the points stand in a vector."""
    size = input.array.shape[dim]
    if points.array.shape != (size,):
        raise _wrong(f"dimension {dim} has {size} elements, and there are points of another number")
    shape = [1] * input.array.ndim
    shape[dim] = -1

    def along(vector: Tensor) -> Tensor:
        sizes = tuple(vector.array.size if n == -1 else 1 for n in shape)
        result: Tensor = view.apply(vector, sizes)
        return result

    steps = slice_.apply(points, 0, 1, size, 1) - slice_.apply(points, 0, 0, size - 1, 1)
    count = size - 1
    before = along(slice_.apply(steps, 0, 0, count - 1, 1))
    after = along(slice_.apply(steps, 0, 1, count, 1))
    rise = [slice_.apply(input, dim, i, size - 2 + i, 1) for i in range(3)]
    both = before + after
    weights = (-(after / (before * both)), (after - before) / (before * after),
               before / (after * both))  # fmt: skip
    middle = _sum_of([mul.apply(w, x) for w, x in zip(weights, rise, strict=True)])
    if edge_order == 1:
        x0, x1 = _first(input, dim, 2)
        y0, y1 = _last(input, dim, 2)
        front = div.apply(x1 - x0, along(_first(steps, 0, 1)[0]))
        back = div.apply(y0 - y1, along(_last(steps, 0, 1)[0]))
    else:
        front = _one_sided(_first(input, dim, 3), [along(s) for s in _first(steps, 0, 2)])
        back = -_one_sided(_last(input, dim, 3), [along(s) for s in _last(steps, 0, 2)])
    result: Tensor = cat.apply((front, middle, back), dim)
    return result


def _one_sided(values: list[Tensor], steps: list[Tensor]) -> Tensor:
    """The slope at the first of three points, `steps` apart."""
    near, far = steps
    both = near + far
    weights = (-((near * 2 + far) / (near * both)), both / (near * far), -(near / (far * both)))
    return _sum_of([mul.apply(w, x) for w, x in zip(weights, values, strict=True)])


def _sum_of(tensors: list[Tensor]) -> Tensor:
    """The sum of tensors, from the first on."""
    total = tensors[0]
    for tensor in tensors[1:]:
        total = add.apply(total, tensor)
    return total


@function("gradient")
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slopes along each dimension: half the difference of the values on both sides of a point,
    at the ends a difference of two points (`edge_order` 1) or of three (2).

    Args:
        spacing: the distance of the points, one number or one for each dimension, or a vector of
            the points for each.
        dim: the dimensions, all by default.

    Raises E204 for too few elements, or too few or many distances.
    """
    check_tensors("gradient", input=input)
    if edge_order not in (1, 2):
        raise _wrong(f"edge_order is 1 or 2, not {edge_order}")
    dims = normal_dims("gradient", input, dim)
    given = spacing if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if isinstance(spacing, Tensor):
        given = [spacing]
    if len(given) != len(dims):
        raise _wrong(f"{len(given)} distances were given for {len(dims)} dimensions")
    slopes = []
    for d, distance in zip(dims, given, strict=True):
        if input.array.shape[d] < edge_order + 1:
            raise _wrong(f"dimension {d} has fewer than {edge_order + 1} elements")
        if isinstance(distance, Tensor) and distance.array.ndim:
            slopes.append(_at_points(input, d, distance, edge_order))
        else:
            number = 1 if distance is None else distance
            number = number.item() if isinstance(number, Tensor) else number
            slopes.append(_at_equal_distance(input, d, number, edge_order))
    return tuple(slopes)
