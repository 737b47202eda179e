"""What `blame` reports: a cause, the `where` that hides it, and a fix that was run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradcli.errors import Label, Span
from gradcli.questions.blame.causes import cause_of
from gradcli.questions.blame.nonfinite import FirstNonFinite
from gradcli.record import Record

if TYPE_CHECKING:
    from gradcli.autograd.tensor import Tensor


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
