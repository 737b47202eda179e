"""Labels each operand of a failed operation with its source text, shape and dtype, and says why
two shapes do not fit.

Imported only when an operation failed: a program that runs pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gradcli.arrays.backend import shape_of
from gradcli.autograd.tensor import Tensor
from gradcli.errors import BY_OPERANDS, GradcliError, Label
from gradcli.language.objects.attributes import Method
from gradcli.language.objects.types import type_name
from gradcli.language.tree import syntax as tree
from gradcli.ops.definition.op import registry
from gradcli.record import Record

_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**", "@"})

_LONGEST = 24
_MOST = 6


def label_operands(
    error: GradcliError, operands: Iterable[tuple[tree.Expression, Any]], operation: str
) -> None:
    """Label the operands of the operation that raised an error, and say how shapes can be made to
    fit.
    """
    met = list(_flat(operands))
    shown = [
        (node, value)
        for node, value in met
        if type(value) is Tensor
        or (error.code in BY_OPERANDS and not isinstance(node, tree.Constant))
    ]
    error.labels = tuple(
        Label(node.span, f"{_subject(node)} is {description(value)}")
        for node, value in shown[:_MOST]
    )
    error.help = error.help or _habit(error, met, operation)
    if error.code == "E401" and operation.endswith("grad"):
        error.help = "pass a seed of the output's shape: `grad_outputs=…`"
    if error.code == "E301":
        tensors = [
            Operand(_primary(node), tuple(value.array.shape))
            for node, value in met
            if type(value) is Tensor
        ]
        if len(tensors) == 2:
            first, second = tensors
            if "broadcast" in error.message:
                note = broadcast_note(first, second)
                error.notes = error.notes if note is None else (*error.notes, note)
            error.help = error.help or shape_fix(first, second, operation)


def description(value: Any) -> str:
    """What a value is, in few words: `(2, 3) float32`, `None`, `a str`."""
    if type(value) is Tensor:
        return f"{shape_of(value.array)} {str(value.dtype).removeprefix('torch.')}"
    if value is None:
        return "None"
    kind = type_name(value)
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _habit(
    error: GradcliError, met: list[tuple[tree.Expression, Any]], operation: str
) -> str | None:
    """What to write where the operands show a habit of another language or tool."""
    values = [value for _, value in met]
    if operation in ("^", "^="):
        return "a power is written `**`"
    if any(
        value is None and isinstance(node, tree.Attribute) and node.name == "grad"
        for node, value in met
    ):
        return (
            "a .grad is None until a backward pass reaches its tensor, which has to be a leaf that"
            " requires grad, or to call retain_grad()"
        )
    if operation == "+" and any(isinstance(value, str) for value in values):
        return "turn the other value into text first: `str(x)`, or use an f-string"
    if operation in _ARITHMETIC and any(isinstance(value, (list, tuple)) for value in values):
        return "arithmetic is for numbers and tensors: `tensor(…)` makes one of a list"
    module, _, name = operation.rpartition(".")
    if module == "math" and Tensor in map(type, values):
        return f"math is for single numbers; `torch.{name}` works on tensors"
    if error.code == "E202" and any(type(value) is Method for value in values):
        return "this is a method: call it, with parentheses behind its name"
    return None


def _flat(
    operands: Iterable[tuple[tree.Expression, Any]],
) -> Iterator[tuple[tree.Expression, Any]]:
    """The operands, with the elements of a list or tuple display in its place."""
    for node, value in operands:
        if isinstance(node, (tree.List, tree.Tuple)) and isinstance(value, (list, tuple)):
            elements = node.elements
            if len(elements) == len(value) and any(type(each) is Tensor for each in value):
                yield from zip(elements, value, strict=True)
                continue
        yield node, value


def _subject(node: tree.Expression) -> str:
    """The operand's source text, where it is short enough to be read twice."""
    text = node.span.text
    return f"`{text}`" if len(text) <= _LONGEST and "\n" not in text else "this"


def _primary(node: tree.Expression) -> str:
    """The text of an operand as a `.name` or `[index]` can follow it: in parentheses if need be."""
    kinds = (tree.Name, tree.Attribute, tree.Call, tree.Subscript)
    return node.span.text if isinstance(node, kinds) else f"({node.span.text})"


# --- shapes that do not fit -----------------------------------------------------------------------


Shape = tuple[int, ...]

_PRODUCTS = ("@", "@=", "matmul", "mm", "bmm", "mv", "dot")
"""The operators and functions that multiply matrices."""

_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=")
"""The operators that broadcast their operands, as the pointwise ops do."""

_JOINS = ("cat", "concat", "concatenate")
"""The functions that join tensors along a dimension."""

_LONGEST_OPERAND = 40


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
    if len(first.text) > _LONGEST_OPERAND or len(second.text) > _LONGEST_OPERAND:
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
