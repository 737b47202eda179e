"""The contract of exactness, as the comparison of what a program printed with what was recorded.

Text, names, layout, shapes, integers and booleans are the same, character by character. A floating
point number may differ by rounding, if the run rounded at all:

    |found - recorded| <= tolerance = (unit + unit) / 2 + 2 sqrt(N) eps scale

- `unit` is 1 in the last printed digit of either number: printing is off by half of it. What
  `repr` writes, as `item()` and `tolist()` show numbers, is not rounded: its unit is 0, as is that
  of `2.`.
- `N` counts what the run rounded: 1 for a function of single elements, and as many as an operand
  has elements for whatever sums. Roundings err by up to half an `eps` each and to either side, so
  N of them leave about sqrt(N) / 2, and two results stay within four times that of one another. For
  one elementwise function that is 2 ulp: each side is within 1 ulp of the truth.
- `eps` is that of the coarsest dtype in which the run rounded.
- `scale` is the number itself where the run only computed elementwise. Where it added up, numbers
  of one tensor are sums of the same terms, and the largest of them counts. Where terms cancel,
  nothing but noise may be left: two numbers agree that are both within 2 sqrt(N) eps of 0, relative
  to the largest term.

`N`, `eps` and the largest term are measured: where texts differ, the program is run again, and
every operation and every step of a backward pass is looked at. What IEEE 754 defines (`+ - * /
sqrt`, casts), random draws, and whatever only picks numbers out of its operands count nothing: a
program of these is compared exactly. Columns of numbers may shift where a number's width changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.recording.recorder import Recorder
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError
from gradcli.session import Session


class Work(NamedTuple):
    """What a run rounded.

    Attributes:
        roundings: how many roundings, N above.
        eps: of the coarsest dtype that was rounded to.
        largest: the largest term that was added up; 0 where everything was elementwise.
        digits: to how many digits behind the point the program itself rounds what it prints.
    """

    roundings: float = 0
    eps: float = 0
    largest: float = 0
    digits: frozenset[int] = frozenset()

    @property
    def noise(self) -> Decimal:
        """By how much of its scale a number may be off."""
        return Decimal(2 * math.sqrt(self.roundings) * self.eps)


UNMEASURED = Work(100, 2.0**-23, 1, frozenset({4}))
"""What a command of a few lines rounds, where it cannot be run again to look."""


def difference(found: str, recorded: str, work: Callable[[], Work]) -> str | None:
    """How a text differs from the recorded one; None where it is what was recorded.

    `work` is asked only where the texts differ.
    """
    if found == recorded:
        return None
    mine, theirs = list(_parts(found)), list(_parts(recorded))
    if len(mine) != len(theirs):
        return _shown(found, recorded)
    differing = [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]]
    if any(_skeleton(one) != _skeleton(other) for one, other in differing):
        return _shown(found, recorded)
    measured = work()
    for one, other in differing:
        wrong = _wrong_number(one, other, measured)
        if wrong is not None:
            return f"{wrong}\n{_shown(one, other)}"
    return None


def _shown(found: str, recorded: str) -> str:
    return f"printed\n{found}\nrecorded is\n{recorded}"


# --- the parts of a text --------------------------------------------------------------------------

_NUMBER = re.compile(r"(?:(?<=[\d.])[+-]|(?<![\w.])[+-]?)(?<![A-Za-z_])\d+(?:\.\d*)?(?:e[+-]?\d+)?")

_OPENING = re.compile(r"tensor\(|\[")

_CLOSING = {"(": ")", "[": "]"}


def _parts(text: str) -> Iterator[str]:
    """A text in parts: printed tensors, lists, and what stands between."""
    done = 0
    while opening := _OPENING.search(text, done):
        end = _end_of_bracket(text, opening.end() - 1)
        yield text[done : opening.start()]
        yield text[opening.start() : end]
        done = end
    yield text[done:]


def _end_of_bracket(text: str, start: int) -> int:
    """Where the bracket that opens at a position ends, or the text, if it stays open."""
    closing = _CLOSING[text[start]]
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == text[start]) - (text[place] == closing)
        if not depth:
            return place + 1
    return len(text)


def _is_float(number: str) -> bool:
    return "." in number or "e" in number


def _skeleton(part: str) -> str:
    """A part without its floating point numbers and without spaces."""
    text = _NUMBER.sub(lambda found: "#" if _is_float(found[0]) else found[0], part)
    return "".join(text.split())


# --- numbers --------------------------------------------------------------------------------------


def _wrong_number(mine: str, theirs: str, work: Work) -> str | None:
    """The first number of two parts of one skeleton that differs by more than the tolerance."""
    pairs = list(zip(_floats(mine), _floats(theirs), strict=True))
    if all(len(one) == len(other) for one, other in pairs) and _spaces(mine) != _spaces(theirs):
        return "spaces differ"
    bracketed = _OPENING.match(theirs) is not None
    scale = max((abs(Decimal(other)) for _, other in pairs), default=Decimal(0))
    for one, other in pairs:
        if one != other and not _agree(
            one, other, work, scale if bracketed and work.largest else None, theirs
        ):
            return f"{one} is not {other}"
    return None


def _floats(part: str) -> list[str]:
    return [number for number in _NUMBER.findall(part) if _is_float(number)]


def _spaces(part: str) -> str:
    """A part with its numbers masked, character by character."""
    return _NUMBER.sub(lambda found: "#" * len(found[0]) if _is_float(found[0]) else found[0], part)


def _agree(one: str, other: str, work: Work, scale: Decimal | None, part: str) -> bool:
    if not work.roundings:
        return False
    mine, theirs = Decimal(one), Decimal(other)
    units = (_unit(one, part, work) + _unit(other, part, work)) / 2
    if mine == theirs == units == 0:
        return False  # one is -0.
    if scale is None:
        scale = max(abs(mine), abs(theirs))
    rest = units + work.noise * Decimal(work.largest)
    if abs(mine) <= rest and abs(theirs) <= rest:
        return True
    return abs(mine - theirs) <= units + work.noise * scale


def _unit(number: str, part: str, work: Work) -> Decimal:
    """1 in the last printed digit of a number that was rounded to be printed, else 0."""
    digits, _, power = number.partition("e")
    behind = len(digits.partition(".")[2])
    exponent = int(power or 0)
    if part.startswith("tensor("):
        return Decimal(1).scaleb(exponent - behind) if behind else Decimal(0)
    rounded = [count for count in work.digits if count >= behind]
    return Decimal(1).scaleb(exponent - min(rounded)) if rounded and behind else Decimal(0)


# --- what a run rounded ---------------------------------------------------------------------------

EXACT = frozenset({
    "add", "sub", "rsub", "mul", "div", "reciprocal", "neg", "sqrt", "abs",  # IEEE 754
    "remainder", "fmod", "floor", "ceil", "trunc", "round",
    "_to_copy", "copy", "fill", "zero",  # casts
    "normal", "normal_", "uniform", "bernoulli",  # draws
})  # fmt: skip
"""Operations on real numbers whose results the contract says are exact."""

_LESS = frozenset({"add", "sub", "rsub"})
"""Those that bring out what their operands are off by, where these cancel."""


class _Measure(Recorder):
    """Counts what rounds while a program runs."""

    def __init__(self) -> None:
        super().__init__(events=False)
        self.roundings = 0
        self.eps = 0.0
        self.largest = 0.0

    def operation(self, op: Any, operands: dict[str, Any], output: Any) -> None:
        """Count what a call rounds."""
        super().operation(op, operands, output)
        self._count(op, list(_numbers(list(operands.values()))), list(_numbers(output)))

    def step(self, node: Any, grads: Any, gradients: Any, fitted: Any) -> None:
        """Count what a node's rules round, and the sums that fit gradients to their inputs."""
        super().step(node, grads, gradients, fitted)
        made = list(_numbers(gradients))
        self._count(getattr(node, "op", None), list(_numbers(grads)), made)
        for gradient, sum_of in zip(made, _numbers(fitted), strict=False):
            if gradient.size != sum_of.size:
                self._rounded(gradient.size, [gradient], [sum_of])

    def _count(self, op: Any, operands: list[Any], results: list[Any]) -> None:
        rounded = [result for result in results if result.dtype.kind in "fcV"]
        if not rounded:
            return
        if getattr(op, "name", "") in EXACT and not any(x.dtype.kind == "c" for x in rounded):
            if op.name in _LESS and self.roundings:
                self.largest = max(self.largest, *map(_magnitude, operands))
        elif not _are_picked(rounded, operands):
            single = getattr(op, "pointwise", False)
            terms = 1 if single else max((array.size for array in operands + rounded), default=1)
            self._rounded(terms, operands + rounded, rounded)

    def _rounded(self, terms: int, summed: list[Any], results: list[Any]) -> None:
        self.roundings += terms
        self.eps = max(self.eps, *[_eps(result) for result in results])
        if terms > 1:
            self.largest = max(self.largest, *map(_magnitude, summed))


def _numbers(value: Any) -> Iterator[Any]:
    """The tensors, arrays and numbers in a value, as arrays."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, Tensor):
        yield np.asarray(forced(value.array))
    elif isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        yield np.asarray(value)
    elif value is not None and hasattr(value, "force"):
        yield np.asarray(forced(value))


def _are_picked(results: list[Any], operands: list[Any]) -> bool:
    """Whether every result is 0 or, but for its sign, one of the operands' numbers."""
    known = np.concatenate([np.zeros(1), *map(_parts_of_numbers, operands)])
    found = np.concatenate([*map(_parts_of_numbers, results)])
    return bool((np.isin(found, known) | np.isnan(found)).all())


def _parts_of_numbers(array: Any) -> Any:
    """The real numbers that an array is made of, without their signs, as a float64 vector."""
    parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    return np.abs(np.concatenate([part.ravel().astype(np.float64) for part in parts]))


def _magnitude(array: Any) -> float:
    """The largest finite number of an array, or 0."""
    values = np.abs(array).astype(np.float64)
    return float(np.max(values, initial=0, where=np.isfinite(values)))


def _eps(array: Any) -> float:
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":
        return 2.0**-7
    return float(np.finfo(array.dtype).eps)


_FORMATS = re.compile(r"\.(\d+)[fFeE%]|round\([^()]*(?:\([^()]*\))?[^()]*,\s*(\d+)\)")


def work_of(program: str, **settings: Any) -> Work:
    """What a program rounds, as far as it runs; the settings are those of its session."""
    session = Session(lambda event: None, **settings)
    measure = _Measure()
    session.interpreter.state.recorder = measure
    try:
        for _ in session.run(program, "program.grad"):
            pass
    except GradcliError as error:
        if error.code == "E901":
            raise
    digits = frozenset(int(one or other) for one, other in _FORMATS.findall(program))
    return Work(measure.roundings, measure.eps, measure.largest, digits)


class Printed(str):
    """What a program printed, equal to what the contract lets stand for it."""

    program: str

    def __new__(cls, text: str, program: str) -> Printed:
        """The text, and the program that printed it."""
        printed = super().__new__(cls, text)
        printed.program = program
        return printed

    def __eq__(self, recorded: object) -> bool:
        if not isinstance(recorded, str):
            return NotImplemented
        return difference(str(self), recorded, lambda: work_of(self.program)) is None

    def __ne__(self, recorded: object) -> bool:
        return not self == recorded

    __hash__ = str.__hash__
