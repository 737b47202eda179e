"""`check`: compares gradients with central differences, and gradients made by hand with both. A
wrong gradient made by hand is diagnosed by how it differs from the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from gradcli.errors import GradcliError
from gradcli.language.tree import syntax as tree
from gradcli.record import Record
from gradcli.recorded.patterns import applied, inner, operand

# --- what a wrong gradient tells ------------------------------------------------------------------


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
    first = expression
    if isinstance(expression, tree.Binary) and expression.rest[0][0] in "*/":
        first = expression.first
    is_negative = isinstance(first, tree.Unary) and first.operator == "-"
    yield Edit(text[1:].lstrip() if is_negative else f"-{whole}", "its sign is wrong")
    nodes = [each for each in tree.nodes_of(expression) if isinstance(each, tree.Expression)]
    for node in nodes:
        yield from _turned_round(expression, node)
        for below in _divisors(node):
            new = f"{operand(below)}.sqrt()"
            yield Edit(_replaced(expression, below, new), f"the root of `{inner(below)}` is meant")
        for part, rest in _without_factors(node):
            yield Edit(_replaced(expression, node, rest), f"the {part} is one too many")
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
    for name in values:
        yield from _of_result(expression, name)
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


def _turned_round(whole: tree.Expression, node: tree.Expression) -> Iterator[Edit]:
    """The same with a comparison the other way round."""
    if isinstance(node, tree.Comparison) and len(node.rest) == 1 and node.rest[0][0] in _TURNED:
        operator, second = node.rest[0]
        turned = f"{inner(node.first)} {_TURNED[operator]} {inner(second)}"
        yield Edit(_replaced(whole, node, turned), f"`{inner(node)}` is the wrong way round")


_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _of_result(whole: tree.Expression, name: str) -> Iterator[Edit]:
    """The same with what forward() made of a value, where backward() reads the value itself: the
    one was saved in place of the other.
    """
    text, start = whole.span.source.text, whole.span.start
    uses = [n.span for n in tree.nodes_of(whole) if isinstance(n, tree.Name) and n.name == name]
    for form in ("exp", "sigmoid", "tanh", "sqrt"):
        made = f"{name}.{form}()"
        new, at = "", start
        for use in sorted(uses, key=lambda span: span.start):
            new, at = f"{new}{text[at : use.start]}{made}", use.end
        yield Edit(new + text[at : whole.span.end], f"`{name}` stands where `{made}` is meant")


def _without_factors(node: tree.Expression) -> Iterator[tuple[str, str]]:
    """The factors and divisors of a product, in words, each with the text of the rest."""
    if not isinstance(node, tree.Binary) or node.rest[0][0] not in "*/@":
        return
    text, (sign, second), ends = node.span.source.text, node.rest[0], node.first.span.end
    if sign == "*":
        yield f"factor `{inner(node.first)}`", text[second.span.start : node.span.end]
    for sign, part in node.rest:
        if sign in "*/":
            word = "factor" if sign == "*" else "divisor"
            rest = text[node.span.start : ends] + text[part.span.end : node.span.end]
            yield f"{word} `{inner(part)}`", rest
        ends = part.span.end


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


_ALIKE = 1e-4


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
    return bool(a.shape == b.shape and np.allclose(a, b, rtol=_ALIKE, atol=_ALIKE * scale + 1e-12))


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
    if not np.allclose(ratios, ratio, rtol=_ALIKE):
        return ""
    if ratio == 0:
        return "it is 0"
    if abs(ratio + 1) < _ALIKE:
        return "its sign is wrong"
    sign = "its sign is wrong, and " if ratio < 0 else ""
    size = abs(ratio)
    averaged = next((text for count, text in clues.means if abs(size - count) < _ALIKE), None)
    if averaged is not None and size > 1 + _ALIKE:
        return (
            f"{sign}it is {round(size)} times too large: `{averaged}` is a mean over {round(size)}"
            f" numbers, and the division by {round(size)} is missing"
        )
    if abs(size - round(size)) < _ALIKE and 1 < round(size) <= 10 and not sign:
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
        if text.startswith("the slope") and np.allclose(array, missing, rtol=_ALIKE):
            return f"a factor {missing} is missing: {text} in the chain rule"
    return f"a factor {missing} is missing"


def _has_norm(array: Any, size: float) -> bool:
    """Whether several numbers have a norm."""
    values = np.asarray(array, float)
    return values.size > 1 and bool(abs(np.linalg.norm(values) - size) < _ALIKE * size)


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
            if number and abs(size - number) < _ALIKE * number:
                return f"a division by {word} {text} is missing"
            if number and abs(size * number - 1) < _ALIKE:
                return f"a factor is missing: {word} {text}"
    for word, number in {"√": right.size**0.5, "": float(right.size)}.items():
        if right.size > 1 and abs(size - number) < _ALIKE * number:
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
        if np.allclose(analytic * factor, right, rtol=_ALIKE, atol=1e-9):
            return f"a factor of the chain rule is missing: times {text}"
        if np.allclose(analytic, right * factor, rtol=_ALIKE, atol=1e-9):
            return f"a factor too many: {text}"
    return ""


def _partial(analytic: Any, right: Any) -> str:
    """Right in some elements only."""
    agree = np.isclose(analytic, right, rtol=_ALIKE, atol=1e-9)
    if agree.any():
        wrong = int((~agree).sum())
        first = tuple(int(n) for n in np.argwhere(~agree)[0])
        some = "1 element is" if wrong == 1 else f"{wrong} elements are"
        return f"{some} wrong, the first at {list(first)}; the other {agree.sum()} are right"
    return ""


# --- the comparison -------------------------------------------------------------------------------


Values = Mapping[str, Any]
"""The arrays of the inputs, by name."""

FINE = "fine"
ROUNDING = "rounding"
SYMMETRIC = "symmetric"
KINK = "kink"
JUMP = "jump"
NOT_FINITE = "not finite"
OUTSIDE = "outside the domain"
TOLERANCE = "tolerance"
WRONG = "wrong"

_ORDER = (WRONG, NOT_FINITE, JUMP, KINK, OUTSIDE, SYMMETRIC, TOLERANCE, ROUNDING, FINE)
"""The verdicts, the worst first."""

_STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

SWEEP = 1 + len(_STEPS)
"""How many times as often the function is called where one step does not tell the slope."""

_STEP = 1e-5
"""How far an element is moved first, on each side."""

_NEARER = 100.0
"""Many elements that move together move less, so that the function stays straight between them: by
the root of their number, and at most so many times.
"""

_CLOSE = 1e-6

_FEWEST = 4
"""So many steps in the domain at least tell a slope."""


class Element(Record):
    """The derivative by one element of an input.

    Attributes:
        analytic: the derivative of the backward pass.
        numeric: the quotient of differences, at the step where it is steadiest.
        uncertain: how far neighbouring steps differ there.
        sides: the slopes to the left and to the right, where there is a kink.
        reason: why the program cannot be run with the element moved.
    """

    index: tuple[int, ...]
    analytic: float
    numeric: float
    uncertain: float
    step: float
    verdict: str
    sides: tuple[float, float] | None = None
    reason: str = ""

    @property
    def error(self) -> float:
        """How far the two are apart."""
        return abs(self.analytic - self.numeric)


class Checked:
    """The gradient of one input.

    Attributes:
        elements: those that were checked, the worst first; or the directions.
        along: whether all elements were moved together, along random directions.
        label: how it is called in an answer.
        by_transform: whether it is a derivative that `torch.func` returned.
    """

    def __init__(
        self, name: str, elements: Sequence[Element], size: int, along: bool = False
    ) -> None:
        self.name = name
        self.label = f"{name}.grad"
        self.by_transform = False
        self.along = along
        self.elements = sorted(elements, key=_badness)
        self.size = size

    @property
    def verdict(self) -> str:
        """The worst verdict of its elements."""
        return self.elements[0].verdict if self.elements else FINE

    @property
    def slip(self) -> str:
        """What the gradient differs by, "" where it is right or that cannot be said."""
        whole = len(self.elements) == self.size and not self.along
        if self.verdict != WRONG or not whole or self.size < 2:
            return ""
        ordered = sorted(self.elements, key=lambda each: each.index)
        analytic, right = (
            np.array([getattr(e, n) for e in ordered]) for n in ("analytic", "numeric")
        )
        said = diagnose(analytic, right, Clues({}, divides=False)).partition(":")[0]
        return "" if said.startswith(("it differs", "it cannot", "its elements")) else said


def _badness(element: Element) -> tuple[int, float]:
    relative = element.error / (1 + abs(element.numeric))
    return _ORDER.index(element.verdict), -relative if relative == relative else 0.0


def check(
    function: Callable[[Values], float],
    gradients: Values,
    inputs: Values,
    most: int,
    precision: float,
    *,
    one_triangle: bool = False,
    time: Time | None = None,
) -> list[Checked]:
    """Compare gradients with central differences, as far as there is time.

    Args:
        function: the number that is differentiated, in float64, for values of the inputs.
        most: how many elements of an input are checked; larger ones are checked at elements
            chosen at random.
        precision: the relative rounding error of the coarsest dtype that the function computes in.
        one_triangle: whether it takes a matrix for symmetric, and reads one triangle of it.
    """
    here = function(inputs)
    checked = []
    for number, (name, array) in enumerate(inputs.items(), 1):
        indices = list(np.ndindex(array.shape))
        if len(indices) > most:
            picked = np.random.default_rng(0).choice(len(indices), most, replace=False)
            indices = [indices[number] for number in sorted(picked)]
        differences = _Differences(function, inputs, name, here, precision * abs(here))
        elements: list[Element] = []
        for index in indices:
            if time is not None and time.is_up(number / len(inputs), bool(elements)):
                break
            with stopping():
                elements.append(differences.element(index, float(gradients[name][index])))
        if one_triangle and array.ndim > 1 and len(elements) == array.size:
            elements = _both_triangles(elements)
        checked.append(Checked(name, elements, array.size))
    return checked


def check_along(
    function: Callable[[Values], float],
    gradients: Values,
    inputs: Values,
    count: int,
    precision: float,
    time: Time,
) -> list[Checked]:
    """The same with all elements of an input moved together, along so many random directions."""
    here = function(inputs)
    generator = np.random.default_rng(0)
    checked = []
    for number, (name, array) in enumerate(inputs.items(), 1):
        elements: list[Element] = []
        for each in range(count):
            signs = generator.choice((-1.0, 1.0), array.shape)
            direction = signs * generator.uniform(0.5, 1.5, array.shape)

            def moved(values: Values, name: str = name, direction: Any = direction) -> float:
                return function({**inputs, name: inputs[name] + values[""] * direction})

            if time.is_up(number / len(inputs), bool(elements)):
                break
            differences = _Differences(
                moved, {"": np.zeros(())}, "", here, precision * abs(here),
                step=_STEP / min(_NEARER, max(1.0, array.size**0.5)),
            )  # fmt: skip
            with stopping():
                element = differences.element((), float((gradients[name] * direction).sum()))
                element.index = (each,)
                elements.append(element)
        checked.append(Checked(name, elements, array.size, along=True))
    return checked


class Time(Record):
    """The seconds that there are for differences, the most that one of each input may take
    together, and the moment from which they count.
    """

    seconds: float
    most: float
    began: float

    def is_up(self, share: float, has_one: bool) -> bool:
        """Whether a share of the time is over for an input; it `has_one` element checked."""
        spent = perf_counter() - self.began
        return spent > (self.seconds * share if has_one else self.most)


@contextmanager
def stopping() -> Iterator[None]:
    """Leave out what takes longer than the command may."""
    try:
        yield
    except GradcliError as error:
        if error.code != "E607":
            raise


def _both_triangles(elements: Sequence[Element]) -> list[Element]:
    """The elements of a matrix, where two that mirror each other agree as the halves of one."""
    known = {each.index: each for each in elements}
    both = []
    for each in elements:
        *batch, row, column = each.index
        other = known.get((*batch, column, row))
        if each.verdict == WRONG and other is not None:
            half = (each.numeric + other.numeric) / 2
            if _is_close(each.analytic, half) and _is_close(other.analytic, half):
                each = Element(
                    each.index, each.analytic, each.numeric, each.uncertain, each.step, SYMMETRIC
                )
        both.append(each)
    return both


class _Differences(Record):
    """The differences along one input."""

    function: Callable[[Values], float]
    inputs: Values
    name: str
    here: float
    noise: float
    refused: str = ""
    step: float = _STEP

    def _at(self, index: tuple[int, ...], step: float) -> float:
        moved = self.inputs[self.name].copy()
        moved[index] += step
        return self.function({**self.inputs, self.name: moved})

    def element(self, index: tuple[int, ...], analytic: float) -> Element:
        """The derivative by one element."""
        scale = max(1.0, abs(float(self.inputs[self.name][index])))
        if not np.isfinite(analytic) or not np.isfinite(self.here):
            return Element(index, analytic, np.nan, np.nan, 0.0, NOT_FINITE)
        step = self.step * scale
        ahead, behind = self._pair(index, step)
        numeric = (ahead - behind) / (2 * step)
        slopes = (self.here - behind) / step, (ahead - self.here) / step
        if _is_close(analytic, numeric) and _is_close(*slopes, _CLOSE * 1e3):
            return Element(index, analytic, numeric, 0.0, step, FINE)
        swept = self._swept(index, analytic, scale)
        own = abs(float(self.inputs[self.name][index]))
        if swept.verdict == OUTSIDE and 0 < own < scale:
            swept = self._swept(index, analytic, own)
        return swept

    def _pair(self, index: tuple[int, ...], step: float) -> tuple[float, float]:
        """The function with an element moved on and back, NaN where the program refuses it."""
        values = []
        for moved in (step, -step):
            try:
                values.append(self._at(index, moved))
            except GradcliError as error:
                if error.code == "E607":
                    raise
                self.refused = f"{error.raises}: {error.message}".rstrip(": ")
                values.append(np.nan)
        return values[0], values[1]

    def _swept(self, index: tuple[int, ...], analytic: float, scale: float) -> Element:
        """The same over a sweep of steps, without those that lead out of the domain."""
        tried = [(each * scale, self._pair(index, each * scale)) for each in _STEPS]
        inside = [(step, pair) for step, pair in tried if np.isfinite(pair).all()]
        if len(inside) < _FEWEST:
            return Element(
                index, analytic, np.nan, np.nan, tried[-1][0], OUTSIDE, reason=self.refused
            )
        steps, pairs = map(list, zip(*inside, strict=True))
        central = [(a - b) / (2 * h) for (a, b), h in zip(pairs, steps, strict=True)]
        apart = [
            abs(a - b) + 2 * self.noise / step
            for (a, b), step in zip(pairwise(central), steps[1:], strict=True)
        ]
        best = int(np.argmin(apart))
        numeric, uncertain, step = central[best + 1], apart[best], steps[best + 1]
        sides = self._sides(pairs, steps)
        verdict = _verdict(analytic, numeric, uncertain, sides, pairs)
        return Element(
            index, analytic, numeric, uncertain, step, verdict, sides if verdict == KINK else None
        )

    def _sides(
        self, pairs: list[tuple[float, float]], steps: list[float]
    ) -> tuple[float, float] | None:
        """The slopes on both sides, if they differ for good: at all of the smaller steps."""
        slopes = [
            ((self.here - b) / h, (a - self.here) / h)
            for (a, b), h in zip(pairs[-4:-1], steps[-4:-1], strict=True)
        ]
        left, right = slopes[1]
        gap = abs(right - left)
        if all(
            abs(right_slope - left_slope) > max(gap / 2, 1e-3 * (1 + abs(left)))
            for left_slope, right_slope in slopes
        ):
            return left, right
        return None


def _verdict(
    analytic: float,
    numeric: float,
    uncertain: float,
    sides: tuple[float, float] | None,
    pairs: list[tuple[float, float]],
) -> str:
    ahead, behind = pairs[-1]
    if abs(ahead - behind) > 1e-2 * max(abs(pairs[0][0] - pairs[0][1]), 1e-9):
        return JUMP
    if sides is not None:
        low, high = min(sides), max(sides)
        slack = 1e-3 * (1 + abs(low) + abs(high))
        return KINK if low - slack <= analytic <= high + slack else WRONG
    if _is_close(analytic, numeric):
        return FINE
    return ROUNDING if abs(analytic - numeric) <= 10 * uncertain else WRONG


def _is_close(a: float, b: float, close: float = _CLOSE) -> bool:
    return abs(a - b) <= close * (1 + max(abs(a), abs(b)))


def worst(checked: Sequence[Checked]) -> str:
    """The worst verdict of several inputs."""
    verdicts = [each.verdict for each in checked]
    return min(verdicts, key=_ORDER.index, default=FINE)


def fails(verdict: str) -> bool:
    """Whether a verdict is a mismatch."""
    return verdict in (WRONG, NOT_FINITE)


# --- gradients made by hand ---------------------------------------------------------------------


class Comparison:
    """A gradient made by hand beside the one of the backward pass.

    Attributes:
        given, right: the two gradients; `given` is None where its expression has no value.
        element: where they differ most, None where their shapes differ.
        diagnosis: what is likely wrong, "" where they agree.
    """

    def __init__(self, name: str, analytic: Any, right: Any, clues: Clues) -> None:
        self.name = name
        self.given = None if analytic is None else np.asarray(analytic, float)
        self.right = np.asarray(right, float)
        self.diagnosis = diagnose(self.given, self.right, clues)
        self.element: tuple[int, ...] | None = None
        if self.given is not None and self.given.shape == self.right.shape and self.given.size:
            apart = np.nan_to_num(np.abs(self.given - self.right), nan=np.inf)
            at = np.unravel_index(int(np.argmax(apart)), apart.shape)
            self.element = tuple(int(n) for n in at)

    @property
    def verdict(self) -> str:
        """Whether the two agree."""
        return WRONG if self.diagnosis else FINE
