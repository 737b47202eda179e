"""Runs the program with each remedy that `why` would offer: it is shown if it helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np

from gradcli.arrays.backend import has_values, to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.batched import unbatched
from gradcli.autograd.tensor import Tensor
from gradcli.questions.why.detachments import Detachment, Why
from gradcli.record import Record
from gradcli.recorded.result import STRUCTURAL_ZERO, ZERO

Output = tuple[str | None, Any]
"""The name of a program's output, and the tensor."""


class Ran(Record):
    """The answer to the same question about another text.

    Attributes:
        failed: whether the program ended in an error, and the answer is of what ran before.
    """

    answer: Why
    output: Output
    failed: bool


Again = Callable[[str], Ran | None]
"""Runs another text; None where there is no answer."""

UNTRIED = "untried: "
"""Stands before a remedy that could not be run."""

_SAME_VALUE = ("buffer", "constant", "cut", "dtype", "frozen", "non-leaf", "undefined")
"""Kinds of answers whose remedies leave the output as it is."""

_OF_GROUPS = ("no optimizer", "no parameter")
"""Kinds that may be behind another one: a layer is not registered, and not given either."""

_MOST = 8
"""Programs that are run at most for one answer."""

_SECONDS = 3.0
"""After so much processor time no further remedy is tried."""


def keep_what_helps(answer: Why, output: Output, again: Again | None) -> None:
    """Leave out the remedies that do not help, and mark those that could not be run.

    Args:
        output: what the program came to.
        again: None where the program takes too long to be run again.
    """
    left, ends = _MOST, process_time() + _SECONDS
    for each in answer.detachments:
        if each.help is None:
            continue
        tries = each.tries[:left] if again is not None and process_time() < ends else ()
        left -= len(tries)
        if not tries or again is None:
            each.help = UNTRIED + each.help
        else:
            each.help = _help_that_helps(answer, each, output, tries, again)


def _help_that_helps(
    answer: Why, offered: Detachment, output: Output, tries: Sequence[str], again: Again
) -> str | None:
    """What to do, and what then, where the graph is cut a second time; None where it does not
    help.
    """
    ran: list[Ran] = []
    for text in tries:
        one = _differentiated(text, output, again)
        if one is not None and _helps(answer, offered, output, one):
            return _shown(offered, text)
        bare, name = _without_late_request(text, output[0])
        other = again(bare) if name else None
        if other is not None and _helps(answer, offered, output, other):
            return f"{_shown(offered, text)}, and leave `{name}.requires_grad = True` out"
        ran += [each for each in (one, other) if each is not None]
    # What is cut twice is cut once after the first change; another reason is nearer to the end.
    nearer = [each.answer for each in ran if each.answer.kind in ("cut", *_OF_GROUPS)]
    for after in nearer[:1]:
        for second in after.detachments[:1]:
            for text in second.tries[:2]:
                one = again(text)
                if second.help and one is not None and _helps(answer, second, output, one):
                    return f"{offered.help}, and then{_where(second)}: {second.help}"
    return None


def _where(second: Detachment) -> str:
    """The line of a second change; in a recording the script's own."""
    place = second.place
    if place is None:
        return ""
    return f" in {place.origin}" if place.origin else f" in line {place.line}"


def _differentiated(text: str, output: Output, again: Again) -> Ran | None:
    """The answer about a text; where it calls no `backward()`, about it with one."""
    one = again(text)
    if one is None or one.answer.kind != "no backward" or output[0] is None:
        return one
    return again(f"{text.rstrip()}\n{output[0]}.sum().backward()\n")


def _shown(offered: Detachment, text: str) -> str:
    """What to do, with the line itself where it makes the program another one."""
    before = "" if offered.place is None else offered.place.source.text
    pairs = zip(before.split("\n"), text.split("\n"), strict=False)
    line = next((new.strip() for old, new in pairs if old != new), "")
    return f"{offered.help}: `{line}`" if offered.alters and line else str(offered.help)


def _without_late_request(text: str, name: str | None) -> tuple[str, str | None]:
    """A program without the line that asks for the gradient of its output, which hides that the
    output has no history; the name only if there is one.
    """
    line = rf"(?m)^([ \t]*){name}\.requires_grad(_\((True)?\)|[ \t]*=[ \t]*True)[ \t]*$"
    bare, count = re.subn(line, r"\1pass", text) if name else (text, 0)
    return bare, name if count else None


def _helps(before: Why, offered: Detachment, output: Output, ran: Ran) -> bool:
    """Whether an answer is what the one before lacked, and the output as it was."""
    after = ran.answer
    if ran.failed:
        return False
    same = before.kind in _SAME_VALUE and not offered.alters and not before.stepped
    if same and not _alike(output, ran.output):
        return False
    if before.kind == "exhausted":
        return after.kind != "exhausted"
    if before.value is None or before.value is False:
        is_there = after.value is not None and after.value is not False
        return is_there and after.kind != STRUCTURAL_ZERO
    if before.kind in (ZERO, STRUCTURAL_ZERO):
        return after.kind not in (ZERO, STRUCTURAL_ZERO) and after.value is not None
    # Of a gradient that is there the help says how to undo what is done to it.
    return after.value is not None and all(each.help is None for each in after.detachments)


def _alike(before: Output, after: Output) -> bool:
    (name, a), (same, b) = before, after
    if name != same:
        return True  # a number of Python's is a tensor now
    if type(a) is not Tensor or type(b) is not Tensor:
        return True
    arrays = [forced(unbatched(each.array)) for each in (a, b)]
    if not all(map(has_values, arrays)):
        return True
    first, second = (np.asarray(to_host(each)) for each in arrays)
    if first.dtype.kind not in "fc" or first.shape != second.shape:
        return first.dtype.kind not in "fc"
    return bool(np.allclose(first, second, rtol=1e-4, atol=1e-6, equal_nan=True))
