"""Runs the program with each remedy that `why` would offer: it is shown if it helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.tensor import Tensor
from gradcli.questions.why.detachments import Detachment
from gradcli.questions.why.finding import Why

Output = tuple[str | None, Any]
"""The name of a program's output, and the tensor."""

Again = Callable[[str], tuple[Why, Output] | None]
"""The answer to the same question about another text, and the output there; None where it ends in
an error.
"""

UNTRIED = "untried: "
"""Stands before a remedy that could not be run."""

_SAME_VALUE = ("buffer", "constant", "cut", "dtype", "frozen", "non-leaf", "undefined")
"""Kinds of answers whose remedies leave the output as it is."""

_OF_GROUPS = ("no optimizer", "no parameter")
"""Kinds that may be behind another one: a layer is not registered, and not given either."""

_MOST = 8
"""Programs that are run at most for one answer."""


def keep_what_helps(answer: Why, output: Output, again: Again | None) -> None:
    """Leave out the remedies that do not help, and mark those that could not be run.

    Args:
        output: what the program came to.
        again: None where the program takes too long to be run again.
    """
    left = _MOST
    for each in answer.detachments:
        if each.help is None:
            continue
        tries = each.tries[:left] if again is not None else ()
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
    ran = [again(text) for text in tries]
    if any(_helps(answer, offered, output, each) for each in ran):
        return offered.help
    # What is cut twice is cut once after the first change; another reason is nearer to the end.
    nearer = [each[0] for each in ran if each is not None and each[0].kind in ("cut", *_OF_GROUPS)]
    for after in nearer[:1]:
        for second in after.detachments[:1]:
            if any(_helps(answer, second, output, again(text)) for text in second.tries[:2]):
                place = "" if second.place is None else f" in line {second.place.line}"
                return f"{offered.help}, and then{place}: {second.help}"
    return None


def _helps(
    before: Why, offered: Detachment, output: Output, ran: tuple[Why, Output] | None
) -> bool:
    """Whether an answer is what the one before lacked, and the output as it was."""
    if ran is None:
        return False
    after, there = ran
    if before.kind in _SAME_VALUE and not offered.alters and not _alike(output, there):
        return False
    if before.value is None or before.value is False:
        return after.value is not None and after.value is not False
    if before.kind in ("zero", "structural zero"):
        return after.kind not in ("zero", "structural zero") and after.value is not None
    # Of a gradient that is there the help says how to undo what is done to it.
    return after.value is not None and all(each.help is None for each in after.detachments)


def _alike(before: Output, after: Output) -> bool:
    (name, a), (same, b) = before, after
    if name != same:
        return True  # a number of Python's is a tensor now
    if type(a) is not Tensor or type(b) is not Tensor:
        return True
    first, second = (np.asarray(to_host(forced(each.array))) for each in (a, b))
    if first.dtype.kind not in "fc" or first.shape != second.shape:
        return first.dtype.kind not in "fc"
    return bool(np.allclose(first, second, rtol=1e-4, atol=1e-6, equal_nan=True))
