"""Gradients of iterations that stop by a tolerance, as those of implicit differentiation are: they
and the differences are as exact as the iteration. The program is run with a smaller tolerance, and
where the two agree then, what they differ by is the tolerance's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.errors import GradcliError
from gradcli.language.tree import syntax as tree
from gradcli.questions.check.check import TOLERANCE, WRONG, Checked, Element
from gradcli.questions.why.suspects import Suspect
from gradcli.running.rerun import Rerun, moments_of

if TYPE_CHECKING:
    from gradcli.language.tree.syntax import Statement

_LARGEST = 0.1
"""A larger number that a loop compares with is no tolerance."""

_SMALLER, _LEAST = 1e-8, 1e-12
"""How much smaller the tolerance is then, and what double precision reaches."""

_NEAR = 0.02
"""Beside the largest slope of an input a larger difference is none of a tolerance."""

_CLOSER = 20.0
"""How many times as close the two are with a smaller tolerance."""

_MOST, _STEP, _SECONDS = 2, 1e-4, 30.0
"""Elements of an input that are looked at, how far they are moved, and for how long."""


def stops(statements: Sequence[Statement]) -> list[tree.Constant]:
    """The numbers by which loops stop: small ones in the tests of a `while`, or of an `if` with a
    `break`, and those that a name in such a test stands for.
    """
    tests = [*_tests(statements)]
    found = [each for test in tests for each in tree.nodes_of(test)]
    compared = {each.name for each in found if isinstance(each, (tree.Name, tree.Attribute))}
    for each in tree.nodes_of(list(statements)):
        value: Any = None
        names: list[str | None] = []
        if isinstance(each, tree.Parameter):
            value, names = each.default, [each.name]
        elif isinstance(each, tree.Argument):
            value, names = each.value, [each.name]
        elif isinstance(each, tree.Assign):
            value = each.value
            names = [
                target.name
                for target in each.targets
                if isinstance(target, (tree.Name, tree.Attribute))
            ]
        if isinstance(value, tree.Constant) and not compared.isdisjoint(names):
            found.append(value)
    small = {
        each.span.start: each
        for each in found
        if isinstance(each, tree.Constant)
        and type(each.value) is float
        and 0 < each.value < _LARGEST
    }
    return [small[start] for start in sorted(small)]


def _tests(statements: Sequence[Statement]) -> Iterator[tree.Expression]:
    """What decides whether loops go on."""
    for loop in tree.nodes_of(list(statements)):
        if isinstance(loop, tree.While):
            yield loop.test
        if isinstance(loop, (tree.While, tree.For)):
            for each in tree.nodes_of(loop.body):
                for test, body in each.branches if isinstance(each, tree.If) else ():
                    if any(isinstance(part, tree.Break) for part in body):
                        yield test


def by_tolerance(
    rerun: Rerun, checked: Sequence[Checked], seed: Any
) -> tuple[list[Checked], list[Suspect]]:
    """What was checked, and the tolerances that it differs by: where that is all, no gradient is
    wrong.
    """
    wrong = [each for each in checked if each.verdict == WRONG]
    numbers = [each for each in stops(rerun.statements) if each.span.source.text == rerun.text]
    if not numbers or not all(_is_near(each) for each in wrong):
        return [*checked], []
    text = rerun.text
    for each in reversed(numbers):
        tolerance: Any = each.value
        smaller = max(tolerance * _SMALLER, _LEAST)
        text = text[: each.span.start] + f"{smaller:g}" + text[each.span.end :]
    again = Rerun(rerun.terminal, text, rerun.name, rerun.arguments, rerun.options)
    again.widens, again.until = rerun.widens, perf_counter() + min(_SECONDS, rerun.left())
    try:
        if not _agree(again, wrong, seed):
            return [*checked], []
    except GradcliError:
        return [*checked], []
    shown = " and ".join(dict.fromkeys(f"`{each.span.text}`" for each in numbers))
    said = (
        f"an iteration stops by {shown} here: this leaves the difference, and with a smaller one"
        " gradients and differences agree"
    )
    places = [Suspect(numbers[0].span, said, "a smaller tolerance gives more exact gradients")]
    return [_of_tolerance(each) if each in wrong else each for each in checked], places


def _is_near(checked: Checked) -> bool:
    """Whether a gradient is as close to the differences as a tolerance may leave it."""
    largest = max(abs(each.numeric) for each in checked.elements)
    errors = [each.error for each in checked.elements if each.verdict == WRONG]
    return not checked.along and max(errors) <= _NEAR * largest


def _agree(rerun: Rerun, wrong: Sequence[Checked], seed: Any) -> bool:
    """Whether the gradients of a program with smaller tolerances agree with its differences, in the
    elements where they do so least.
    """
    here = rerun.execute(dtype="float64", record="ends")
    assert here.output is not None
    gradients = here.gradients(seed)
    inputs: dict[str, Any] = {n: np.array(leaf.array, float) for n, leaf in here.leaves.items()}
    inputs.update(rerun.beginnings(here))
    rerun.moments, current = moments_of(rerun, here)
    inputs.update(current)

    def number(values: Mapping[str, Any]) -> float:
        output = rerun.execute(values=values, dtype="float64").output
        return np.nan if output is None else float((np.asarray(output.array) * seed).sum())

    for checked in wrong:
        for each in [e for e in checked.elements if e.verdict == WRONG][:_MOST]:
            ends = []
            for step in (_STEP, -_STEP):
                moved = inputs[checked.name].copy()
                moved[each.index] += step
                ends.append(number({**inputs, checked.name: moved}))
            slope = (ends[0] - ends[1]) / (2 * _STEP)
            if not abs(float(gradients[checked.name][each.index]) - slope) * _CLOSER <= each.error:
                return False
    return True


def _of_tolerance(checked: Checked) -> Checked:
    elements = [
        Element(e.index, e.analytic, e.numeric, e.uncertain, e.step, TOLERANCE)
        if e.verdict == WRONG
        else e
        for e in checked.elements
    ]
    return Checked(checked.name, elements, checked.size)
