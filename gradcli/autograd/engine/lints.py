"""A lint of backward passes that begin at a leaf."""

from __future__ import annotations

import re

from gradcli.autograd.tensor import Tensor
from gradcli.errors import Label, Span
from gradcli.state import active

_COMPARES = re.compile(r"[<>]|[=!]=")


def check_root(output: Tensor) -> None:
    """Warn (W024) of backward() from a leaf that a comparison made: `requires_grad_()` gives it no
    history.
    """
    place, name = active.state.place, output.name
    if place is None or not name:
        return
    assigned = re.compile(rf"^[ \t]*({re.escape(name)} *=(?!=)(.*))$", re.MULTILINE)
    assignments = list(assigned.finditer(place.source.text, 0, place.start))
    if not assignments or _COMPARES.search(assignments[-1][2]) is None:
        return
    last = assignments[-1]
    active.state.warn(
        "W024",
        f"`{name}` comes from a comparison, which has no gradient: the pass reaches nothing but"
        f" `{name}` itself",
        help="compare by a smooth loss: `binary_cross_entropy_with_logits`, or `sigmoid` for the"
        " comparison",
        labels=(Label(Span(place.source, last.start(1), last.end(1)), "compared here"),),
    )
