"""`einsum`: products summed over the dimensions that an equation names.

Every operand is permuted so that its dimensions are in one common order, the output's first and the
summed ones after them, with size 1 where it has none. Operands are then contracted from left to
right, each pair as one batched product of matrices. The views in between are PyTorch's, so that a
graph shows the same nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, shape_error, type_error, value_error
from gradcli.ops.arithmetic.arithmetic import mul
from gradcli.ops.binding.catalogue import function
from gradcli.ops.codegen.runtime import listed
from gradcli.ops.linalg.products.matrix_products import bmm
from gradcli.ops.reduction.sum import sum_dims
from gradcli.ops.shape.reshaping import movedim
from gradcli.ops.shape.slicing import diagonal
from gradcli.ops.shape.views import inverse_permutation, permute, reshape, unsqueeze, view

_ELLIPSIS = "..."
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SUBLIST_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Subscripts = list[str]
"""The subscripts of one operand or of the output: letters, and at most one ellipsis."""

# --- the equation -------------------------------------------------------------------------------


def _wrong(message: str, text: str | None = None) -> GradcliError:
    shown = None if text is None else f"einsum(): {text}"
    return shape_error(f"einsum(): {message}", text=shown)


def _subscripts(term: str) -> Subscripts:
    """The subscripts of one term of the equation."""
    subscripts: Subscripts = []
    position = 0
    while position < len(term):
        letter = term[position]
        position += 1
        if letter == " ":
            continue
        if letter == ".":
            if term[position : position + 2] != ".." or _ELLIPSIS in subscripts:
                raise _wrong(f"`.` in {term!r} is no part of one ellipsis `...`")
            subscripts.append(_ELLIPSIS)
            position += 2
        elif letter in _LETTERS:
            subscripts.append(letter)
        else:
            raise _wrong(f"{letter!r} is no subscript, which is a letter from a to z or A to Z")
    return subscripts


def _output(term: str, inputs: Sequence[Subscripts]) -> Subscripts:
    """The subscripts that an explicit output names; each must stand in an input, and once."""
    subscripts = _subscripts(term)
    for subscript in subscripts:
        if subscript == _ELLIPSIS:
            continue
        if subscripts.count(subscript) > 1:
            raise _wrong(f"the output {term.strip()!r} names {subscript!r} twice")
        if not any(subscript in others for others in inputs):
            raise _wrong(
                f"output subscript {subscript} does not appear in the equation for any input"
                " operand"
            )
    return subscripts


def _implied_output(inputs: Sequence[Subscripts]) -> Subscripts:
    """The output of an equation without `->`: an ellipsis, then what appears once, in order."""
    every = [s for subscripts in inputs for s in subscripts if s != _ELLIPSIS]
    return [_ELLIPSIS, *sorted(s for s in set(every) if every.count(s) == 1)]


# --- operands in one order of dimensions --------------------------------------------------------


class _Order:
    """The common order of dimensions: the output's, then the summed ones.

    Attributes:
        position: where each subscript's dimension stands; the first one of the ellipsis.
        covered: how many dimensions an ellipsis stands for.
        kept: how many dimensions the output has.
        count: how many there are in all.
    """

    __slots__ = ("count", "covered", "kept", "position")

    def __init__(self, output: Subscripts, inputs: Sequence[Subscripts], covered: int) -> None:
        self.covered = covered
        self.position: dict[str, int] = {}
        self.count = 0
        for subscript in output:
            self._place(subscript)
        self.kept = self.count
        self._place(_ELLIPSIS)
        for subscript in sorted({s for subscripts in inputs for s in subscripts}):
            self._place(subscript)

    def _place(self, subscript: str) -> None:
        if subscript not in self.position:
            self.position[subscript] = self.count
            self.count += self.covered if subscript == _ELLIPSIS else 1


def _turned(operand: Tensor, subscripts: Subscripts, order: _Order) -> Tensor:
    """The operand with its dimensions in the common order; a repeated subscript is its diagonal."""
    missing = order.covered - (operand.array.ndim - len(subscripts) + 1)
    dims = [-1] * order.count  # for each position in the order, the operand's dimension
    own: dict[str, int] = {}
    dim = 0
    for subscript in subscripts:
        if subscript == _ELLIPSIS:
            for k in range(missing, order.covered):
                dims[order.position[subscript] + k] = dim
                dim += 1
        elif subscript in own:
            first = own[subscript]
            sizes = operand.array.shape
            if sizes[first] != sizes[dim]:
                raise _wrong(
                    f"{subscript!r} stands for sizes {sizes[first]} and {sizes[dim]} of one operand"
                )
            operand = movedim(diagonal.apply(operand, 0, first, dim), -1, first)
        else:
            own[subscript] = dim
            dims[order.position[subscript]] = dim
            dim += 1
    for i, taken in enumerate(dims):
        if taken < 0:
            operand = unsqueeze.apply(operand, dim)
            dims[i] = dim
            dim += 1
    return permute.apply(operand, tuple(dims))


def _check_sizes(operands: Sequence[Tensor], letters: dict[int, str]) -> None:
    """Raise E301 where a dimension has two sizes, neither of them 1; `letters` are the subscripts
    of the dimensions.
    """
    for dim in range(operands[0].array.ndim):
        seen = 1
        for number, operand in enumerate(operands):
            size = operand.array.shape[dim]
            if size != 1 and seen not in (1, size):
                raise _wrong(
                    f"one subscript stands for the sizes {sorted((seen, size))}",
                    f"subscript {letters.get(dim, '...')} has size {size} for operand {number}"
                    f" which does not broadcast with previously seen size {seen}",
                )
            seen = max(seen, size)


# --- the contraction of two operands ------------------------------------------------------------


def _contracted(left: Tensor, right: Tensor, summed: Sequence[int]) -> Tensor:
    """The product summed over dimensions that both operands have, which stay with size 1.

    The dimensions of the others are in both operands, only in the left one, or only in the right
    one: batch, rows and columns of a product of stacks of matrices.
    """
    if not summed:
        return mul.apply(left, right)
    sizes, others = left.array.shape, right.array.shape
    both, rows, columns = [], [], []
    for dim in range(len(sizes)):
        if dim in summed:
            continue
        if sizes[dim] != 1 and others[dim] != 1:
            both.append(dim)
        elif sizes[dim] != 1:
            rows.append(dim)
        else:
            columns.append(dim)
    if rows and columns and columns[-1] < rows[0]:  # then the product needs no permutation
        left, right, rows, columns, sizes, others = right, left, columns, rows, others, sizes
    batch = prod(sizes[dim] for dim in both)
    height = prod(sizes[dim] for dim in rows)
    width = prod(others[dim] for dim in columns)
    depth = prod(sizes[dim] for dim in summed)
    stack = permute.apply(left, (*both, *rows, *summed, *columns))
    other = permute.apply(right, (*both, *summed, *columns, *rows))
    product = bmm.apply(
        reshape(stack, (batch, height, depth)), reshape(other, (batch, depth, width))
    )
    shape = [sizes[dim] for dim in (*both, *rows)]
    shape += [1] * len(summed) + [others[dim] for dim in columns]
    return permute.apply(
        view.apply(product, tuple(shape)), inverse_permutation((*both, *rows, *summed, *columns))
    )


def _pair(left: Tensor, right: Tensor, kept: int, uses: list[int]) -> Tensor:
    """Contract two operands: sum over what no later operand has. `uses` counts the operands that
    have each dimension, and is brought up to date.
    """
    both: list[int] = []
    alone: tuple[list[int], list[int]] = ([], [])
    sizes, others = left.array.shape, right.array.shape
    for dim in range(kept, len(uses)):
        if sizes[dim] != 1 and others[dim] != 1:
            uses[dim] -= 1
            if uses[dim] == 1:
                both.append(dim)
                uses[dim] = 0
        elif uses[dim] == 1 and (sizes[dim] != 1 or others[dim] != 1):
            alone[sizes[dim] == 1].append(dim)
            uses[dim] = 0
    if alone[0]:
        left = sum_dims.apply(left, tuple(alone[0]), True)
    if alone[1]:
        right = sum_dims.apply(right, tuple(alone[1]), True)
    return _contracted(left, right, both)


# --- what programs write ------------------------------------------------------------------------


def _sublist(subscripts: Any) -> str:
    """The term of a sublist, whose subscripts are numbers and `...`."""
    letters = []
    for subscript in subscripts:
        if subscript is Ellipsis:
            letters.append(_ELLIPSIS)
        elif type(subscript) is int and 0 <= subscript < len(_SUBLIST_LETTERS):
            letters.append(_SUBLIST_LETTERS[subscript])
        else:
            raise value_error(
                f"einsum(): {subscript!r} is no subscript of a sublist: an integer from 0 to 51, or"
                " `...`"
            )
    return "".join(letters)


def _of_sublists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and operands of `einsum(x, [0, 1], y, [1, 2], [0, 2])`."""
    if len(args) < 2:
        raise value_error("einsum(): an operand needs its list of subscripts")
    equation = ",".join(_sublist(subscripts) for subscripts in args[1::2])
    if len(args) % 2:
        equation += "->" + _sublist(args[-1])
        return equation, args[:-1:2]
    return equation, args[::2]


@function("einsum")
def einsum(*args: Any) -> Tensor:
    """The sum of products that an equation describes: `einsum("ij,jk->ik", a, b)`.

    A subscript of several operands is one dimension, one that the output lacks is summed over, one
    that an operand repeats takes its diagonal, and `...` stands for the dimensions that no
    subscript names. Subscripts may be numbers: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Raises E204 without operands, E301 where the equation is wrong or does not fit the operands.

    Example: torch.einsum('ij,jk->ik', tensor([[2., 1.], [1., 3.]]), tensor([[1., 0.], [2., 1.]]))
    """
    if len(args) < 2:
        raise value_error("einsum() needs an equation and one operand at least")
    equation, operands = args[0], args[1:]
    if type(equation) is Tensor:
        equation, operands = _of_sublists(args)
    elif type(equation) is not str:
        raise type_error("einsum(): the equation must be a string")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    tensors = listed("einsum", operands)
    left, arrow, right = equation.partition("->")
    inputs = [_subscripts(term) for term in left.split(",")]
    if len(inputs) != len(tensors):
        which = "fewer" if len(tensors) < len(inputs) else "more"
        raise _wrong(f"{which} operands were provided than specified in the equation")
    covered = 0
    for number, (subscripts, tensor) in enumerate(zip(inputs, tensors, strict=True)):
        ndim, ellipsis = tensor.array.ndim, _ELLIPSIS in subscripts
        rest = ndim - len(subscripts) + ellipsis
        if rest < 0 or (rest and not ellipsis):
            raise _wrong(
                f"an operand of {ndim} dimensions has {len(subscripts) - ellipsis} subscripts",
                f"the number of subscripts in the equation ({len(subscripts) - ellipsis}) "
                + (
                    "is more than the number of dimensions"
                    if ellipsis
                    else "does not match the number of dimensions"
                )
                + f" ({ndim}) for operand {number}"
                + ("" if ellipsis else " and no ellipsis was given"),
            )
        covered = max(covered, rest)
    output = _output(right, inputs) if arrow else _implied_output(inputs)
    order = _Order(output, inputs, covered)
    turned = [
        _turned(tensor, subscripts, order)
        for subscripts, tensor in zip(inputs, tensors, strict=True)
    ]
    _check_sizes(turned, {dim: letter for letter, dim in order.position.items()})
    result = turned[0]
    if len(turned) == 1:
        summed = tuple(range(order.kept, order.count))
        return sum_dims.apply(result, summed, False) if summed else result
    uses = [sum(operand.array.shape[dim] != 1 for operand in turned) for dim in range(order.count)]
    for operand in turned[1:]:
        result = _pair(result, operand, order.kept, uses)
    if order.count == order.kept:
        return result
    return view.apply(result, result.array.shape[: order.kept])
