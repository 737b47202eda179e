"""Compiled backward: passes that run again and again, as straight-line Python.

A statement in a loop mostly differentiates the same graph in every iteration: nodes of the same
classes with the same edges, made in the same order. Once it has done so often enough, a function is
generated from the trace of the pass: it does what the engine does for that graph, without heap,
counts and buffers. Its guards check that a graph has this form, and that no hook and no recorder is
attached to it. Where a guard fails, nothing has been changed yet and the engine, which handles
every graph, runs the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.autograd.engine.accumulate import computed
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import Tensor
from gradcli.errors import Span
from gradcli.state import State

Targets = Sequence[tuple[Node, int]] | None
"""The nodes whose gradients are asked for, and the numbers of their outputs."""

Pass = Callable[[Node, Any, bool, bool, Targets, State, list[Tensor]], list[Any] | None]
"""Takes the root, its gradient, whether to keep saved values, whether to record, the targets, the
state, and a list for the leaves whose gradients are left lazy. Returns the targets' gradients,
None if the graph was not the one that the pass is for.
"""

_AFTER = 64
"""Passes of a statement after which its pass is compiled: compiling costs about what that many
compiled passes save.
"""

_SITES = 256
"""Statements whose passes are counted."""


class _Site:
    """A statement that runs backward passes."""

    __slots__ = ("compiled", "due", "place", "wait")

    def __init__(self, place: Span) -> None:
        self.place = place
        self.due = self.wait = _AFTER
        self.compiled: Pass | None = None


_sites: dict[int, _Site] = {}
"""The sites, by the identity of their spans."""


def run_compiled(
    root: Node, gradient: Any, keep: bool, recorded: bool, targets: Targets, state: State
) -> list[Any] | None:
    """Run the compiled pass from one root; None, with nothing changed, where there is none."""
    if not state.compiles:
        return None
    place = state.place
    site = _sites.get(id(place))
    if site is None:
        if place is None:
            return None
        if len(_sites) == _SITES:
            _sites.clear()
        site = _sites[id(place)] = _Site(place)
    if site.compiled is None:
        site.due -= 1
        if site.due:
            return None
        site.compiled = _compiled(root, recorded, targets)
        if site.compiled is None:
            return None
    left_lazy: list[Tensor] = []
    gradients = site.compiled(root, gradient, keep, recorded, targets, state, left_lazy)
    if gradients is not None:
        return computed(left_lazy, gradients)
    site.compiled = None  # another graph; it is compiled once it has come up often enough
    site.wait = site.due = 2 * site.wait
    return None


def _compiled(root: Node, recorded: bool, targets: Targets) -> Pass | None:
    """The pass over the graph of a root; None where a trace cannot express it."""
    from gradcli.autograd.engine.pass_trace import trace_of  # lazy: start-up: few get here

    trace = trace_of(root, recorded, None if targets is None else [node for node, _ in targets])
    return None if trace is None else trace.compiled()
