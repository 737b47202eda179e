"""`check`: compares gradients with central differences, and gradients made by hand with both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from gradcli.errors import GradcliError
from gradcli.questions.check.diagnosis import Clues, diagnose
from gradcli.record import Record

Values = Mapping[str, Any]
"""The arrays of the inputs, by name."""

FINE = "fine"
ROUNDING = "rounding"
SYMMETRIC = "symmetric"
KINK = "kink"
JUMP = "jump"
NOT_FINITE = "not finite"
OUTSIDE = "outside the domain"
WRONG = "wrong"

_ORDER = (WRONG, NOT_FINITE, JUMP, KINK, OUTSIDE, SYMMETRIC, ROUNDING, FINE)
"""The verdicts, the worst first."""

_STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

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
    """

    def __init__(
        self, name: str, elements: Sequence[Element], size: int, along: bool = False
    ) -> None:
        self.name = name
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
