"""What `blame` reports: a cause, as one word and a sentence, the
`where` that hides it, and a fix that was run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.dtypes import of_numpy
from gradcli.arrays.scalars import finfo
from gradcli.errors import Label, Span
from gradcli.ops.definition.doc import NO_HAZARD, Hazard
from gradcli.questions.blame.nonfinite import BACKWARD, DATA, MET, SEED, FirstNonFinite
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor


# --- causes ---------------------------------------------------------------------------------------


def cause_of(nonfinite: FirstNonFinite) -> tuple[str, str]:
    """The cause of a first NaN or infinity: a word for machines, and a sentence."""
    if nonfinite.phase == DATA:
        return _entered(nonfinite)
    if nonfinite.phase == SEED:
        return "from the seed", f"the backward pass starts from {number_text(nonfinite.value)}"
    return _backward(nonfinite) if nonfinite.phase == BACKWARD else _forward(nonfinite)


def _entered(nonfinite: FirstNonFinite) -> tuple[str, str]:
    called, value = nonfinite.called, number_text(nonfinite.value)
    tensor = nonfinite.output
    if nonfinite.stepped:
        return "overflow", f"{called} was finite, and a step made it {value}"
    if tensor is None:
        return "from a constant", f"{value} goes in here"
    if tensor.requires_grad and tensor.meta is not None and tensor.meta.is_parameter:
        return "from a parameter", f"{called} holds {value}"
    return "from the data", f"{called} holds {value}"


def name_of(nonfinite: FirstNonFinite) -> str:
    """The name of the operation that gave a first NaN or infinity."""
    name = nonfinite.called if nonfinite.op is None else nonfinite.op.name
    return str(name).partition(".")[0].strip("_")


# --- forward ------------------------------------------------------------------------------------


def _forward(nonfinite: FirstNonFinite) -> tuple[str, str]:
    name, hazard = name_of(nonfinite), _hazard_of(nonfinite)
    cause = hazard.of_value(_values(nonfinite))
    if cause is not None:
        return cause
    if not _all_finite(nonfinite):
        return hazard.infinities or ("undefined", f"{name} of an infinity has no value")
    if np.isnan(nonfinite.value):
        return (
            ("0/0", hazard.nothing)
            if hazard.nothing
            else ("undefined", f"{name} is not defined there")
        )
    if hazard.singular:
        return "singular", hazard.singular
    return "overflow", f"the result of {name} is beyond {_largest(nonfinite)}"


def _largest(nonfinite: FirstNonFinite) -> str:
    """The largest number of the dtype that overflowed, in words."""
    largest = finfo(of_numpy(nonfinite.dtype)).max
    return f"{number_text(largest)}, the largest {nonfinite.dtype}"


# --- backward -----------------------------------------------------------------------------------


def _backward(nonfinite: FirstNonFinite) -> tuple[str, str]:
    name, hazard = name_of(nonfinite), _hazard_of(nonfinite)
    if nonfinite.called == MET:
        named = getattr(nonfinite.output, "name", None)
        at = f"`{named}`" if named else "this result"
        return "overflow", f"the gradients of {at} add up beyond {_largest(nonfinite)}"
    if nonfinite.op is not None and not hasattr(nonfinite.op, "hazard"):
        value = number_text(nonfinite.value)
        return "undefined", f"backward() of {name} returned {value} for a finite gradient"
    singular = _singular(nonfinite)
    nothing = nonfinite.incoming is not None and nonfinite.incoming == 0
    if singular:
        if nothing:
            return "0*inf", f"the gradient that arrives is 0, and {singular}: 0 · inf is NaN"
        if np.isnan(nonfinite.value) and hazard.undefined:
            return "0/0", f"{singular}: its formula divides 0 by 0"
        return "infinite slope", singular
    if nothing and np.isnan(nonfinite.value) and (hazard.steep or not _all_finite(nonfinite)):
        text = f"the gradient that arrives is 0, and {name} overflowed: 0 · inf is NaN"
        return "0*inf", text
    if np.isinf(nonfinite.value):
        if nonfinite.place is not None and re.match(r"\w+\.scale\(", nonfinite.place.text):
            factor = number_text(_values(nonfinite).get("other", np.nan))
            text = f"the GradScaler multiplies the gradient by {factor}, which {nonfinite.dtype}"
            return "scale too large", f"{text} does not hold"
        return "overflow", f"the gradient of {name} is beyond the largest {nonfinite.dtype}"
    wrong = hazard.of_value(_values(nonfinite))
    if wrong is not None and nothing:
        return wrong[0], f"{wrong[1]}, and has no slope there: 0 · NaN is NaN"
    return "undefined", f"the gradient of {name} has no value there"


def _singular(nonfinite: FirstNonFinite) -> str:
    """Why the slope is not finite at the operands, "" if it is."""
    hazard, first = _hazard_of(nonfinite), nonfinite.operands[:1]
    if first and first[0].value is None and first[0].low == first[0].high == 0:
        return hazard.zeros
    return hazard.of_slope(_values(nonfinite))


# --- the operands ---------------------------------------------------------------------------------


def _hazard_of(nonfinite: FirstNonFinite) -> Hazard:
    """Where the op is not finite; a custom function does not say."""
    hazard: Hazard = getattr(nonfinite.op, "hazard", NO_HAZARD)
    return hazard


def _values(nonfinite: FirstNonFinite) -> dict[str, Any]:
    """The operands' numbers at the element, by parameter."""
    return {operand.parameter: operand.value for operand in nonfinite.operands}


def _all_finite(nonfinite: FirstNonFinite) -> bool:
    return all(_finite(each) for each in _values(nonfinite).values() if each is not None)


def _finite(value: Any) -> bool:
    return bool(np.isfinite(value))


def number_text(value: Any) -> str:
    """A number in few digits, which no other number than an integer rounds to one."""
    number = float(value)
    text = f"{number:.6g}"
    is_near = float(text) != number and float(text).is_integer() and abs(number) < _NEAR
    return f"{number:.9g}" if is_near else text


_NEAR = 1e6
"""Below this a number of single precision is told from the next integer in nine digits."""


# --- findings -------------------------------------------------------------------------------------


class Rewrite:
    """A change of a program's text.

    Attributes:
        dtype: the dtype that the program is run in, None for its own.
        guards: whether it keeps arguments away from a point where the value is infinite, which is
            right only where the program goes on to take nothing times that value.
        chooses: whether it may choose a value of the output where that has none, as for 0/0; a
            number divided by 0 has none that is right.
    """

    def __init__(self, span: Span, text: str, reason: str, dtype: str | None = None) -> None:
        self.span = span
        self.text = text
        self.reason = reason
        self.dtype = dtype
        self.guards = False
        self.chooses = True
        self.also: list[Rewrite] = []

    def program(self) -> str:
        """The whole text with the change."""
        text = self.span.source.text
        for each in sorted([self, *self.also], key=lambda change: -change.span.start):
            text = text[: each.span.start] + each.text + text[each.span.end :]
        return text

    def lines(self) -> list[tuple[int, str]]:
        """The changed lines, with their numbers."""
        changes = sorted([self, *self.also], key=lambda change: change.span.start)
        text = self.program()
        shift = 0
        changed: dict[int, str] = {}
        for each in changes:
            at = each.span.start + shift
            shift += len(each.text) - (each.span.end - each.span.start)
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at + len(each.text))
            changed[each.span.line] = text[start : len(text) if end < 0 else end]
        return sorted(changed.items())


class Fix(Record):
    """A rewrite that was run.

    Attributes:
        agree: how many numbers agree with those that were finite before, or are in double
            precision.
        chosen: how many have no other run to compare with: there the rewrite chooses.
        points: where both programs were run, and are alike in value and gradients as far as the
            former is finite; in words.
        choices: these numbers, with what it takes, in words.
        chooses: whether mathematics has no value there; otherwise float64 does not hold it.
    """

    rewrite: Rewrite
    agree: int
    chosen: int
    points: Sequence[str]
    choices: Sequence[str] = ()
    chooses: bool = False


class Mask(Record):
    """A `where` that hides what is not finite from the value, and not from the gradient."""

    place: Span


class Blamed:
    """A NaN or infinity that reaches the output or a gradient.

    Attributes:
        spoilt: what is not finite because of it: `x.grad`, `y`.
        diverges: the leaves that grew, step by step, until they overflowed.
        computed: whether the zero that it stumbles over was computed, and may be one by rounding.
        grows: how much what a recurrence hands on grows from round to round, in words, "" where it
            does not overflow by that.
        returned: where the `backward()` of a custom function returned it.
        made: where the tensor was made that holds it, of one that entered so.
        too_large: whether it was run in float64, and is not finite there either.
        in_part: whether no more of the program was run for it than leads to the operation.
        untried: why nothing was run that may cure it, "" where it was.
    """

    def __init__(self, nonfinite: FirstNonFinite, mask: Mask | None, spoilt: Sequence[str]) -> None:
        self.nonfinite = nonfinite
        self.cause, self.text = cause_of(nonfinite)
        self.mask = mask
        self.spoilt = spoilt
        self.diverges: Sequence[Tensor] = ()
        self.fix: Fix | None = None
        self.untried = ""
        self.in_part = False
        self.computed = False
        self.grows = ""
        self.made: Span | None = None
        self.returned: tuple[Label, ...] = ()
        self.too_large = False


class Blame(Record):
    """What was found.

    Attributes:
        others: those after it, and those that reach neither output nor gradient.
        failed: whether the program ended in an error, and has neither.
    """

    first: Blamed | None
    others: Sequence[Blamed]
    failed: bool = False
