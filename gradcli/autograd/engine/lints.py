"""Lints of backward passes: one that begins at a leaf, one whose gradients keep their graph."""

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


_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter"
    " and its gradient which can cause a memory leak."
)
_TEXT = (
    f"{_CYCLE} We recommend using autograd.grad when creating the graph to avoid this. If you have"
    " to use this function, make sure to reset the .grad fields of your parameters to None after"
    " use to break the cycle and avoid the leak."
)
"""PyTorch's text."""


def warn_of_cycle() -> None:
    """Warn (W028), once in a session, of a pass that leaves gradients with a graph in `.grad`."""
    state = active.state
    if ("W028",) in state.warned:
        return
    state.warned.add(("W028",))
    state.warn(
        "W028",
        _CYCLE,
        text=_TEXT,
        help="torch.autograd.grad() returns such gradients without a cycle; `.grad = None` after"
        " use ends it",
    )
