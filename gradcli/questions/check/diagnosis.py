"""Diagnoses a wrong gradient made by hand by how it differs from the right one: by small changes to
its expression, each a slip that people make, of which one makes it right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.language.tree import syntax as tree
from gradcli.record import Record
from gradcli.recorded.patterns import applied, inner, operand

# --- small changes to an expression ---------------------------------------------------------------


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
    for rules in (_transposed, _symmetric, _along, _swapped, _added_up):
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


def _added_up(node: tree.Expression, _shapes: Shapes) -> Iterator[Change]:
    """A mean for a sum, or a sum for a mean."""
    if isinstance(node, tree.Call):
        called = inner(node.function)
        for wrong, right in (("mean", "sum"), ("sum", "mean")):
            if called.rpartition(".")[2] == wrong:
                text = called.removesuffix(wrong) + right
                yield node.function, text, f"a {wrong} for a {right}"


# --- diagnosis ------------------------------------------------------------------------------------


_CLOSE = 1e-4


class Clues(Record):
    """What a wrong gradient may come from.

    Attributes:
        factors: arrays that may have been forgotten, by what they are.
        means: how many numbers the program averages, each with the source text that does.
        divides: whether the expression for the gradient divides or averages itself.
        mend: an edit that makes the expression right, given what is right; None for none.
    """

    factors: Mapping[str, Any]
    means: Sequence[tuple[int, str]] = ()
    divides: bool = True
    mend: Callable[[Any], Edit | None] = lambda right: None


def diagnose(analytic: Any, right: Any, clues: Clues) -> str:
    """What is likely wrong, "" for nothing; `analytic` is None where it could not be computed."""
    if analytic is not None and analytic.shape == right.shape and is_close(analytic, right):
        return ""
    edit = None
    if analytic is None or analytic.shape != right.shape or not _constant(analytic, right, clues):
        edit = clues.mend(right)
    if edit is not None:
        return f"{edit.slip}: `{edit.text}` is right"
    if analytic is None:
        return "it cannot be computed"
    if not np.isfinite(analytic).all():
        return "it is not finite"
    if analytic.shape != right.shape:
        return _shapes(analytic, right)
    return (
        _constant(analytic, right, clues)
        or _moved(analytic, right)
        or _factor(analytic, right, clues.factors)
        or _partial(analytic, right)
        or "it differs, and by no factor or order that is known"
    )


def is_close(a: Any, b: Any) -> bool:
    """Whether two gradients are the same but for rounding."""
    scale = float(np.abs(b).max(initial=0.0))
    return bool(a.shape == b.shape and np.allclose(a, b, rtol=_CLOSE, atol=_CLOSE * scale + 1e-12))


def _shapes(analytic: Any, right: Any) -> str:
    if analytic.ndim == 2 and analytic.T.shape == right.shape and is_close(analytic.T, right):
        return (
            f"it is transposed: its shape is {analytic.shape}, and that of the input {right.shape}"
        )
    summed = _summed(analytic, right.shape)
    if summed is not None and is_close(summed, right):
        return (
            f"a sum is missing: the input of shape {right.shape} was broadcast, so the gradient of"
            f" shape {analytic.shape} has to be summed to it"
        )
    if analytic.size == right.size and is_close(analytic.reshape(right.shape), right):
        return f"it has the numbers in the shape {analytic.shape} in place of {right.shape}"
    return f"its shape is {analytic.shape}, and that of the input {right.shape}"


def _summed(array: Any, shape: tuple[int, ...]) -> Any:
    """An array summed to a shape that broadcasts to its own, None where that does not."""
    if array.ndim < len(shape):
        return None
    array = array.sum(tuple(range(array.ndim - len(shape))))
    for dim, size in enumerate(shape):
        if size != array.shape[dim]:
            if size != 1:
                return None
            array = array.sum(dim, keepdims=True)
    return array


def _constant(analytic: Any, right: Any, clues: Clues) -> str:
    """A sign, a multiple, a factor."""
    used = right != 0
    if not used.any() or (analytic[~used] != 0).any():
        return ""
    ratios = analytic[used] / right[used]
    ratio = float(ratios.flat[0])
    if not np.allclose(ratios, ratio, rtol=_CLOSE):
        return ""
    if ratio == 0:
        return "it is 0"
    if abs(ratio + 1) < _CLOSE:
        return "its sign is wrong"
    sign = "its sign is wrong, and " if ratio < 0 else ""
    size = abs(ratio)
    averaged = next((text for count, text in clues.means if abs(size - count) < _CLOSE), None)
    if averaged is not None and size > 1 + _CLOSE:
        return (
            f"{sign}it is {round(size)} times too large: `{averaged}` is a mean over {round(size)}"
            f" numbers, and the division by {round(size)} is missing"
        )
    if abs(size - round(size)) < _CLOSE and 1 < round(size) <= 10 and not sign:
        count = round(size)
        norms = [text for text, array in clues.factors.items() if _has_norm(array, size)]
        factor = f"a factor, such as the norm of {norms[0]}," if norms else "a factor,"
        return (
            f"it is {count} times too large: {factor} or {count} backward passes without"
            " zero_grad() in between"
        )
    return sign + _share(Fraction(size).limit_denominator(1000), size, right, clues)


def _share(share: Fraction, size: float, right: Any, clues: Clues) -> str:
    """A factor that is missing, or one that is no whole number."""
    exact = abs(float(share) - size) < 1e-6 * size and share.denominator <= _LARGEST_SHARE
    if not exact and share.numerator != 1:
        return _of_norm(size, right, clues) or f"it is {size:.6g} times the right one"
    if share.numerator != 1:
        return f"it is {share} times the right one"
    missing = share.denominator
    if missing == right.size and clues.divides:
        return f"a factor {missing} is missing, which is the number of elements: a mean for a sum"
    for text, array in clues.factors.items():
        if text.startswith("the slope") and np.allclose(array, missing, rtol=_CLOSE):
            return f"a factor {missing} is missing: {text} in the chain rule"
    return f"a factor {missing} is missing"


def _has_norm(array: Any, size: float) -> bool:
    """Whether several numbers have a norm."""
    values = np.asarray(array, float)
    return values.size > 1 and bool(abs(np.linalg.norm(values) - size) < _CLOSE * size)


_LARGEST_SHARE = 64
"""A fraction with a larger denominator is no number that somebody left out."""


def _of_norm(size: float, right: Any, clues: Clues) -> str:
    """A root or norm of a value that was left out, or put in once too often."""
    for text, array in clues.factors.items():
        values = np.asarray(array, float)
        norms = {
            "the norm of": np.linalg.norm(values),
            "the square of the norm of": (values**2).sum(),
        }
        norms["the root of"] = np.sqrt(values.item()) if values.size == 1 and values > 0 else 0.0
        for word, number in norms.items():
            if number and abs(size - number) < _CLOSE * number:
                return f"a division by {word} {text} is missing"
            if number and abs(size * number - 1) < _CLOSE:
                return f"a factor is missing: {word} {text}"
    for word, number in {"√": right.size**0.5, "": float(right.size)}.items():
        if right.size > 1 and abs(size - number) < _CLOSE * number:
            return f"a division by {word}{right.size} is missing, the number of elements"
    return ""


def _moved(analytic: Any, right: Any) -> str:
    """The right numbers at other places."""
    if (
        analytic.ndim == 2
        and analytic.shape[0] == analytic.shape[1]
        and is_close(analytic.T, right)
    ):
        return "it is transposed"
    for dim in range(analytic.ndim):
        if analytic.shape[dim] > 1 and is_close(np.flip(analytic, dim), right):
            return f"it runs backwards along dimension {dim}"
    if analytic.size > 1 and is_close(np.sort(analytic.ravel()), np.sort(right.ravel())):
        return "its elements are the right ones in another order"
    return ""


def _factor(analytic: Any, right: Any, factors: Mapping[str, Any]) -> str:
    """A factor of the chain rule that was left out, or put in once too often."""
    used = analytic != 0
    if not used.any() or (right[~used] != 0).any():
        return ""
    for text, array in factors.items():
        try:
            factor = np.broadcast_to(np.asarray(array, float), analytic.shape)
        except ValueError:
            continue
        if np.allclose(analytic * factor, right, rtol=_CLOSE, atol=1e-9):
            return f"a factor of the chain rule is missing: times {text}"
        if np.allclose(analytic, right * factor, rtol=_CLOSE, atol=1e-9):
            return f"a factor too many: {text}"
    return ""


def _partial(analytic: Any, right: Any) -> str:
    """Right in some elements only."""
    agree = np.isclose(analytic, right, rtol=_CLOSE, atol=1e-9)
    if agree.any():
        wrong = int((~agree).sum())
        first = tuple(int(n) for n in np.argwhere(~agree)[0])
        some = "1 element is" if wrong == 1 else f"{wrong} elements are"
        return f"{some} wrong, the first at {list(first)}; the other {agree.sum()} are right"
    return ""
