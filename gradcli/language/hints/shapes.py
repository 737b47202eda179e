"""Says why two shapes do not fit, and which small change to one of them would make them fit."""

from __future__ import annotations

from gradcli.ops.definition.op import registry
from gradcli.record import Record

Shape = tuple[int, ...]

_PRODUCTS = ("@", "@=", "matmul", "mm", "bmm", "mv", "dot")
"""The operators and functions that multiply matrices."""

_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=")
"""The operators that broadcast their operands, as the pointwise ops do."""

_JOINS = ("cat", "concat", "concatenate")
"""The functions that join tensors along a dimension."""

_LONGEST = 40


class Operand(Record):
    """An operand of the failed operation.

    Attributes:
        text: its source text, in parentheses where a `.name` could not follow it otherwise.
        shape: its shape.
    """

    text: str
    shape: Shape


def broadcast_note(first: Operand, second: Operand) -> str | None:
    """Which dimension keeps two shapes from being broadcast, None if none does."""
    for number in range(1, min(len(first.shape), len(second.shape)) + 1):
        sizes = first.shape[-number], second.shape[-number]
        if sizes[0] != sizes[1] and 1 not in sizes:
            return (
                f"lined up from the right, dimension -{number} is {sizes[0]} in one and {sizes[1]}"
                " in the other; sizes fit if they are equal or one is 1"
            )
    return None


def shape_fix(first: Operand, second: Operand, operation: str) -> str | None:
    """A change to one operand that makes the shapes fit, None where no small one does."""
    if len(first.text) > _LONGEST or len(second.text) > _LONGEST:
        return None
    name = operation.rpartition(".")[2]
    if name in _PRODUCTS:
        return _product_fix(first, second)
    if name == "linear":
        fits = len(second.shape) == 2 and first.shape[-1:] == second.shape[:1]
        return f"linear() takes weights of shape (out, in): `{second.text}.T`" if fits else None
    if name in _JOINS and len(first.shape) == len(second.shape):
        return _join_fix(first.shape, second.shape)
    op = registry.get(name)
    is_pointwise = name in _OPERATORS or (op is not None and op.pointwise)
    if not is_pointwise or broadcast_note(first, second) is None:
        return None
    for one, other in ((second, first), (first, second)):
        turned = one.shape[::-1]
        if len(turned) == 2 and _fit(turned, other.shape):
            return f"`{one.text}.T` has the shape {turned}, which fits"
        column = (*one.shape, 1)
        if len(one.shape) == 1 and len(other.shape) == 2 and _fit(column, other.shape):
            return f"`{one.text}[:, None]` has the shape {column}, which fits"
    if len(first.shape) == len(second.shape) == 1:
        pairs = (*first.shape, *second.shape)
        return f"for every pair, of shape {pairs}, write `{first.text}[:, None]` for the first"
    return None


def _product_fix(first: Operand, second: Operand) -> str | None:
    left, right = first.shape, second.shape
    if len(right) == 2 and len(left) >= 1 and left[-1] == right[1]:
        return f"`{second.text}.T` has the shape {right[::-1]}, which fits"
    if len(left) == 2 and len(right) >= 1 and left[0] == right[-2:][0]:
        return f"`{first.text}.T` has the shape {left[::-1]}, which fits"
    if left == right:
        return "`*` multiplies element by element"
    return None


def _join_fix(first: Shape, second: Shape) -> str | None:
    sizes = zip(first, second, strict=True)
    differing = [dim for dim, (one, other) in enumerate(sizes) if one != other]
    if len(differing) != 1:
        return None
    return f"they can be joined along the dimension in which they differ: `dim={differing[0]}`"


def _fit(first: Shape, second: Shape) -> bool:
    """Whether two shapes can be broadcast."""
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(one == other or 1 in (one, other) for one, other in pairs)
