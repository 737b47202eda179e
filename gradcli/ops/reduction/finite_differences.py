"""`torch.gradient`: derivatives estimated by finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, runtime_error
from gradcli.ops.arithmetic.arithmetic import add, div, div_number, mul
from gradcli.ops.binding.arguments import normal_dims
from gradcli.ops.binding.catalogue import function
from gradcli.ops.definition.dtype_support import check_dtype, dtype_names
from gradcli.ops.shape.joining import cat
from gradcli.ops.shape.slicing import narrow, select, slice_op
from gradcli.ops.shape.views import view


def _wrong(message: str) -> GradcliError:
    return runtime_error(f"gradient(): {message}")


def _at_equal_distance(input: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """The slopes where the points are `spacing` apart."""
    # In PyTorch's order: the middle first, and of two terms the second.
    size = input.array.shape[dim]
    earlier = slice_op.apply(input, dim, 0, size - 2, 1)
    inner = div_number.apply(slice_op.apply(input, dim, 2, size, 1) - earlier, spacing)
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
    return cat.apply((front, div_number.apply(inner, 2), back), dim)


def _at_points(input: Tensor, dim: int, points: Tensor, edge_order: int) -> Tensor:
    """The slopes where the points stand in a vector."""
    size = input.array.shape[dim]
    if points.array.shape != (size,):
        raise _wrong(f"dimension {dim} has {size} elements, and there are points of another number")
    shape = [1] * input.array.ndim
    shape[dim] = -1

    def along(vector: Tensor) -> Tensor:
        sizes = tuple(vector.array.size if n == -1 else 1 for n in shape)
        return view.apply(vector, sizes)

    earlier = slice_op.apply(points, 0, 0, size - 1, 1)
    steps = slice_op.apply(points, 0, 1, size, 1) - earlier
    count = size - 1
    before, after = slice_op.apply(steps, 0, 0, count - 1, 1), slice_op.apply(steps, 0, 1, count, 1)
    weights = [along(weight) for weight in _weights_between(before, after)]
    rise = [partial(slice_op.apply, input, dim, i, size - 2 + i, 1) for i in range(3)]
    middle = _weighted(weights, rise)
    front = _at_end(input, dim, steps, (0, 1, 2), edge_order)
    back = _at_end(input, dim, steps, (size - 1, size - 2, size - 3), edge_order)
    return cat.apply((front, middle, back), dim)


# In all that follows PyTorch computes the right operand of an operator before the left one, which
# the order of the backward pass shows.


def _weights_between(before: Tensor, after: Tensor) -> Iterator[Tensor]:
    """The weights of the values at three points, the first `before` and the last `after` the second
    one, whose slope they give.
    """
    divisor = before * (before + after)
    yield -after / divisor
    divisor = before * after
    yield (after - before) / divisor
    divisor = after * (before + after)
    yield before / divisor


def _at_end(
    input: Tensor, dim: int, steps: Tensor, positions: tuple[int, ...], edge_order: int
) -> Tensor:
    """The slope at the first of three points, the outermost, from two or three of them."""
    at_front = positions[0] == 0
    near, far = (0, 1) if at_front else (steps.array.size - 1, steps.array.size - 2)

    def step(position: int) -> Tensor:
        return select.apply(steps, 0, position)

    def both() -> Tensor:
        farther = step(far)
        return step(near) + farther

    def signed(weight: Tensor, minus: bool) -> Tensor:
        return -weight if minus else weight

    if edge_order == 1:
        distance = step(near)
        low, high = sorted(positions[:2])
        lower = narrow(input, dim, low, 1)
        return div.apply(narrow(input, dim, high, 1) - lower, distance)

    def outermost() -> Tensor:
        sum_of_steps = both()
        divisor = step(near) * sum_of_steps
        farther = step(far)
        return signed(step(near) * 2 + farther, at_front) / divisor

    def second() -> Tensor:
        farther = step(far)
        divisor = step(near) * farther
        return signed(both(), not at_front) / divisor

    def third() -> Tensor:
        sum_of_steps = both()
        divisor = step(far) * sum_of_steps
        return signed(step(near), at_front) / divisor

    makers = (outermost, second, third) if at_front else (third, second, outermost)
    weights = [make() for make in makers]
    return _weighted(
        weights, [partial(narrow, input, dim, position, 1) for position in sorted(positions)]
    )


def _weighted(weights: Sequence[Tensor], values: Sequence[Callable[[], Tensor]]) -> Tensor:
    """The sum of three values times their weights."""
    third, second, first = [
        mul.apply(weight, value())
        for weight, value in zip(reversed(weights), reversed(values), strict=True)
    ]
    return add.apply(add.apply(first, second), third)


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

    Example: torch.gradient(tensor([0.5, 1., 2.5]))
    """
    if edge_order not in (1, 2):
        raise _wrong(f"edge_order is 1 or 2, not {edge_order}")
    check_dtype("gradient", input.dtype, dtype_names("uint8", raises="RuntimeError"))
    dims = normal_dims("gradient", input, dim)
    spacings = spacing if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if isinstance(spacing, Tensor):
        spacings = [spacing]
    if len(spacings) != len(dims):
        rest = (
            f", or a list of length equal to 'self.dim() = {input.ndim}', since dim argument was"
            f" not given, but got a list of length {len(spacings)}"
            if dim is None
            else " or it's spacing and dim arguments to have the same length, but got a spacing"
            f" argument of length {len(spacings)} and a dim argument of length {len(dims)}."
        )
        raise runtime_error(
            f"gradient(): {len(spacings)} distances were given for {len(dims)} dimensions",
            text=f"torch.gradient expected spacing to be unspecified, a scalar{rest}",
        )
    slopes = []
    for d, distance in zip(dims, spacings, strict=True):
        if input.array.shape[d] < edge_order + 1:
            raise _wrong(f"dimension {d} has fewer than {edge_order + 1} elements")
        if isinstance(distance, Tensor) and distance.array.ndim:
            slopes.append(_at_points(input, d, distance, edge_order))
        else:
            number = 1 if distance is None else distance
            number = number.item() if isinstance(number, Tensor) else number
            slopes.append(_at_equal_distance(input, d, number, edge_order))
    return tuple(slopes)
