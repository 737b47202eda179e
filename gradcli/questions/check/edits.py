"""Small changes to an expression for a gradient, each a slip that people make: the one that makes
it right is what went wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradcli.language.tree import syntax as tree
from gradcli.record import Record
from gradcli.recorded.patterns import applied, inner, operand

_MOST_DIMS = 4

Shapes = Mapping[str, tuple[int, ...]]
"""The shapes of the tensors that the program has, by name."""


class Edit(Record):
    """A changed expression, and what was wrong with the former one."""

    text: str
    slip: str


def edits(expression: tree.Expression, shapes: Shapes) -> Iterator[Edit]:
    """The changes of one place of an expression, the likeliest first."""
    nodes = [each for each in tree.nodes_of(expression) if isinstance(each, tree.Expression)]
    for rules in (_transposed, _symmetric, _along, _swapped, _summed):
        for node in nodes:
            for old, new, slip in rules(node, shapes):
                yield Edit(_replaced(expression, old, new), slip)


def edits_of_backward(expression: tree.Expression, incoming: str) -> Iterator[Edit]:
    """The changes of what a custom function's backward() returns, the likeliest first: those of any
    expression, a root, a norm, a factor, a term, and all but the diagonal.

    Args:
        incoming: the name of the gradient that backward() is given.
    """
    yield from edits(expression, {})
    text = inner(expression)
    whole = operand(expression)
    nodes = [each for each in tree.nodes_of(expression) if isinstance(each, tree.Expression)]
    for node in nodes:
        for below in _divisors(node):
            new = f"{operand(below)}.sqrt()"
            yield Edit(_replaced(expression, below, new), f"the root of `{inner(below)}` is meant")
    called = {
        each.function.name
        for each in nodes
        if isinstance(each, tree.Call) and isinstance(each.function, tree.Name)
    }
    names = {each.name: None for each in nodes if isinstance(each, tree.Name)}
    values = [name for name in names if name not in called and name not in (incoming, "torch", "F")]
    for name in values:
        norm = f"{name}.norm()"
        yield Edit(f"{whole} / {norm}", f"a division by the norm of `{name}` is missing")
        yield Edit(f"{whole} * {norm}", f"a division by the norm of `{name}` is one too many")
    for factor in [form.format(name) for name in values for form in _FORMS]:
        yield Edit(f"{whole} * {factor}", f"the factor `{factor}` is missing")
        yield Edit(f"{whole} / {factor}", f"the factor `{factor}` is one too many")
    for node in nodes:
        call = applied(node)
        if call is not None and call.name == "softmax":
            yield from _off_diagonal(inner(node), incoming)
    for dim in range(2):
        mean = f"{whole}.mean({dim}, keepdim=True)"
        yield Edit(f"{text} - {mean}", "the share through the mean is missing")
    for term in [incoming, *(f"{incoming} * {f.format(name)}" for name in values for f in _FORMS)]:
        for sign in "+-":
            yield Edit(f"{text} {sign} {term}", f"the term `{sign} {term}` is missing")


_FORMS = (
    "{0}", "{0}.exp()", "{0}.sin()", "{0}.cos()", "{0}.sigmoid()", "{0}.tanh()", "{0}.log()",
    "{0} ** 2", "{0}.sqrt()", "({0} * {0}.exp())", "(1 - {0})", "2",
)  # fmt: skip
"""Factors that are left out, of a saved value."""


def _divisors(node: tree.Expression) -> list[tree.Expression]:
    """What an expression divides by."""
    rest = node.rest if isinstance(node, tree.Binary) else []
    return [part for sign, part in rest if sign == "/"]


def _off_diagonal(softmax: str, incoming: str) -> Iterator[Edit]:
    """The whole of a softmax's rule, for one that has the diagonal of its Jacobian only."""
    for dim in (-1, 0):
        total = f"({incoming} * {softmax}).sum({dim}, keepdim=True)"
        yield Edit(
            f"{softmax} * ({incoming} - {total})",
            "only the diagonal of the Jacobian is there: each element depends on its whole row",
        )


Change = tuple[tree.Expression, str, str]


def _replaced(whole: tree.Expression, part: tree.Expression, new: str) -> str:
    text, start = whole.span.source.text, whole.span.start
    return text[start : part.span.start] + new + text[part.span.end : whole.span.end]


def _transposed(node: tree.Expression, shapes: Shapes) -> Iterator[Change]:
    """A factor of a product without its `.T`, or with one too many."""
    if isinstance(node, tree.Attribute) and node.name in ("T", "mT"):
        yield node, inner(node.value), f"`{inner(node.value)}` must not be transposed here"
        return
    call = applied(node)
    if call is not None and call.name in ("t", "transpose") and call.operands:
        whole = inner(call.operands[0])
        yield node, whole, f"`{whole}` must not be transposed here"
        return
    for factor in _factors(node):
        if len(shapes.get(inner(factor), (0, 0))) == 2 and not _is_transposed(factor):
            yield factor, f"{operand(factor)}.T", f"`{inner(factor)}` has to be transposed"


def _is_transposed(node: tree.Expression) -> bool:
    return isinstance(node, tree.Attribute) and node.name in ("T", "mT")


def _factors(node: tree.Expression) -> list[tree.Expression]:
    """The factors of a matrix product."""
    if isinstance(node, tree.Binary):
        parts = [node.first, *(part for _, part in node.rest)]
        signs = [sign for sign, _ in node.rest]
        return [
            part
            for number, part in enumerate(parts)
            if "@" in signs[max(number - 1, 0) : number + 1]
        ]
    call = applied(node)
    if call is not None and call.name in ("matmul", "mm", "mv", "bmm"):
        return call.operands
    return []


def _symmetric(node: tree.Expression, shapes: Shapes) -> Iterator[Change]:
    """The gradient of a quadratic form, as if its matrix were symmetric."""
    shape = shapes.get(inner(node), ())
    if isinstance(node, tree.Name) and len(shape) == 2 and shape[0] == shape[1]:
        name = node.name
        why = f"`{name}` is not symmetric: both `{name}` and `{name}.T` have a share"
        yield node, f"({name} + {name}.T)", why
        yield node, f"(({name} + {name}.T) / 2)", why


def _along(node: tree.Expression, _shapes: Shapes) -> Iterator[Change]:
    """A sum, a mean or a softmax along another dimension."""
    if not isinstance(node, tree.Call):
        return
    for argument in node.arguments:
        value = argument.value
        number = value.value if isinstance(value, tree.Constant) else None
        if type(number) is not int or argument.name not in (None, "", "dim", "axis"):
            continue
        called = inner(node.function).rpartition(".")[2]
        for dim in range(_MOST_DIMS):
            if dim != number:
                yield value, str(dim), f"`{called}` goes along the wrong dimension, {number}"


def _swapped(node: tree.Expression, _shapes: Shapes) -> Iterator[Change]:
    """The factors of a matrix product in the other order, or the product transposed."""
    if isinstance(node, tree.Binary) and [sign for sign, _ in node.rest] == ["@"]:
        a, b = operand(node.first), operand(node.rest[0][1])
        yield node, f"({b} @ {a})", f"the factors of `{inner(node)}` stand in the wrong order"
        yield node, f"({b}.T @ {a}.T)", f"`{inner(node)}` is the transpose of what is needed"
        yield node, f"({b}.T @ {a})", f"the factors of `{inner(node)}` stand in the wrong order"
        yield node, f"({b} @ {a}.T)", f"the factors of `{inner(node)}` stand in the wrong order"


def _summed(node: tree.Expression, _shapes: Shapes) -> Iterator[Change]:
    """A mean for a sum, or a sum for a mean."""
    if isinstance(node, tree.Call):
        called = inner(node.function)
        for wrong, right in (("mean", "sum"), ("sum", "mean")):
            if called.rpartition(".")[2] == wrong:
                text = called.removesuffix(wrong) + right
                yield node.function, text, f"a {wrong} for a {right}"
