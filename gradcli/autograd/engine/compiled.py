"""Backward passes written out as straight-line Python.

A statement that runs again and again mostly differentiates the same graph again: nodes of the same
classes with the same edges, made in the same order. Once it has done so often enough, a function is
generated that is the engine's pass over that graph, without a heap, counts and buffers. It first
checks that the graph at hand is such a one, and that nobody listens to it; if not, nothing has
happened and the engine, which knows everything, takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli.arrays.fusion.lazy import DEFERRED
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.autograd.engine import accumulate
from gradcli.autograd.engine.accumulate import WORTH_STEALING, computed, fit, is_fresh, settle
from gradcli.autograd.node import AccumulateGrad, Node, miscounted, reachable
from gradcli.autograd.tensor import Tensor, meta_of
from gradcli.errors import Span
from gradcli.state import State

Targets = Sequence[tuple[Node, int]] | None
"""The nodes whose gradients are asked for, and the numbers of their outputs."""

Pass = Callable[[Node, Any, bool, bool, Targets, State, list[Tensor]], list[Any] | None]
"""Takes the root, its gradient, whether to keep saved values, whether to record, the targets, the
state, and a list for the leaves whose gradients are left deferred. Returns the targets' gradients,
None if the graph was not the one that the pass is for.
"""

_AFTER = 64
"""Passes of a statement after which one is written: writing costs as much as it then saves."""

_LARGEST = 256
"""Nodes of the largest graph that is written out."""

_SITES = 256
"""Statements that are remembered."""


class _Site:
    """A statement that runs backward passes."""

    __slots__ = ("due", "place", "unrolled", "wait")

    def __init__(self, place: Span) -> None:
        self.place = place
        self.due = self.wait = _AFTER
        self.unrolled: Pass | None = None


_sites: dict[int, _Site] = {}
"""By the identity of their place in the source."""


def run_unrolled(
    root: Node, gradient: Any, keep: bool, recorded: bool, targets: Targets, state: State
) -> list[Any] | None:
    """Run a pass from one root in its written form: either one that gives leaves their gradients
    and records nothing, or one that collects those of the targets.

    Returns:
        The gradients of the targets; None where no pass is written for this graph, and nothing has
        happened.
    """
    place = state.place
    site = _sites.get(id(place))
    if site is None:
        if place is None:
            return None
        if len(_sites) == _SITES:
            _sites.clear()
        site = _sites[id(place)] = _Site(place)
    if site.unrolled is None:
        site.due -= 1
        if site.due:
            return None
        site.unrolled = _written(root, recorded, targets)
        if site.unrolled is None:
            return None
    left_deferred: list[Tensor] = []
    found = site.unrolled(root, gradient, keep, recorded, targets, state, left_deferred)
    if found is not None:
        return computed(left_deferred, found)
    site.unrolled = None  # another graph; if that is the rule now, it gets its turn
    site.wait = site.due = 2 * site.wait
    return None


# --- the text -----------------------------------------------------------------------------------


def _written(root: Node, recorded: bool, targets: Targets) -> Pass | None:
    """The pass over the graph of a root; None where it takes more than the text can say."""
    nodes = _in_order(root)
    if nodes is None:
        return None
    writer = _Writer(nodes, recorded, None if targets is None else [node for node, _ in targets])
    if not writer.reaches_targets():
        return None
    plus = accumulate.add if recorded else accumulate.plus
    namespace: dict[str, Any] = dict(_FIXED, plus=plus)
    namespace |= {f"class_{number}": type(node) for number, node in enumerate(nodes)}
    exec(compile("\n".join(writer.text()), "<unrolled backward>", "exec"), namespace)
    unrolled: Pass = namespace["run"]
    return unrolled


def _in_order(root: Node) -> list[Node] | None:
    """The nodes of a graph, leaves apart, as they run; None if that is not known beforehand, or if
    one is not made by an entry for a single output: some call what the program defines.
    """
    nodes = []
    for node in reachable([root]):
        if type(node) is AccumulateGrad:
            continue
        if not hasattr(type(node), "op") or node.multiple or node.refuses:
            return None
        nodes.append(node)
        if len(nodes) > _LARGEST:
            return None
    nodes.sort(key=lambda node: -node.sequence_nr)
    return nodes if nodes and nodes[0] is root else None


class _Writer:
    """Writes a pass over some nodes, which are given as they run.

    Of each node `node_N` is the node and `grad_N` its gradient, of each leaf `leaf_N` and `sum_N`.

    Attributes:
        edges: how many lead to a node from nodes that run.
        settled: how many of them are settled by what is written so far.
        reached: the nodes that run, and the leaves whose gradients are wanted.
    """

    def __init__(self, nodes: list[Node], recorded: bool, targets: list[Node] | None) -> None:
        self.nodes = nodes
        self.recorded = recorded
        self.targets = targets
        self.names: dict[Node, str] = {}
        self.grads: dict[Node, str] = {}
        self.edges: dict[Node, int] = {}
        for number, node in enumerate(nodes):
            self.names[node], self.grads[node] = f"node_{number}", f"grad_{number}"
        for node in nodes:
            for following in node.next_nodes:
                if following is not None and following not in self.names:
                    number = len(self.names)
                    self.names[following], self.grads[following] = f"leaf_{number}", f"sum_{number}"
        self.leaves = list(self.names)[len(nodes) :]
        self.reached = set(self.leaves if targets is None else targets)
        for node in reversed(nodes):
            if not self.reached.isdisjoint(node.next_nodes):
                self.reached.add(node)
        for node in self.reached:
            for following in self._followed(node):
                self.edges[following] = self.edges.get(following, 0) + 1
        self.settled = dict.fromkeys(self.names, 0)

    def reaches_targets(self) -> bool:
        """Whether there is a leaf, and each target is one."""
        wanted = self.leaves if self.targets is None else self.targets
        return self.nodes[0] in self.reached and set(wanted) <= set(self.leaves)

    def _followed(self, node: Node) -> Iterator[Node]:
        """What the gradients of a node flow to."""
        for following in node.next_nodes:
            if following in self.reached:
                yield following

    def text(self) -> Iterator[str]:
        yield "def run(node_0, grad_0, keep, recorded, targets, state, left_deferred):"
        for line in self._check():
            yield f"    {line}"
        yield "    place = state.place"
        for number, node in enumerate(self.nodes):
            if node in self.reached:
                for line in self._step(number, node):
                    yield f"    {line}"
        yield f"    return [{', '.join([self.grads[target] for target in self.targets or ()])}]"

    # --- is it this graph? ----------------------------------------------------------------------

    def _check(self) -> Iterator[str]:
        yield f"if {'not recorded' if self.recorded else 'recorded'}:"
        yield "    return None"
        if self.targets is None:
            yield "if targets is not None:"
        else:
            yield f"if targets is None or len(targets) != {len(self.targets)}:"
        yield "    return None"
        known = {self.nodes[0]}
        for number, node in enumerate(self.nodes):
            name = self.names[node]
            yield f"if {name}.__class__ is not class_{number} or {name}.extra is not None:"
            yield "    return None"
            if node.op.lists:
                yield f"if len({name}.next_nodes) != {len(node.next_nodes)}:"
                yield "    return None"
            targets, others = [], []
            for place, following in enumerate(node.next_nodes):
                fresh = following is not None and following not in known
                if following is not None and fresh:
                    known.add(following)
                    targets.append(self.names[following])
                else:
                    wanted = "None" if following is None else self.names[following]
                    targets.append(f"edge_{place}")
                    others.append(f"edge_{place} is not {wanted}")
            yield f"{', '.join(targets)}, = {name}.next_nodes"
            if others:
                yield f"if {' or '.join(others)}:"
                yield "    return None"
        if len(self.nodes) > 1:
            # That none of them is another as well, and that they run in this order.
            order = " > ".join([f"{self.names[node]}.sequence_nr" for node in self.nodes])
            yield f"if not {order}:"
            yield "    return None"
        for leaf in self.leaves:
            name = self.names[leaf]
            yield f"if {name}.__class__ is not AccumulateGrad or {name}.extra is not None:"
            yield "    return None"
            yield f"meta = {name}.variable.meta or meta_of({name}.variable)"
            yield "if meta.hooks or meta.accumulated_hooks:"
            yield "    return None"
        for number, target in enumerate(self.targets or ()):
            yield f"if targets[{number}][0] is not {self.names[target]}:"
            yield "    return None"
        if len(self.leaves) > 1:
            distinct = ", ".join([self.names[leaf] for leaf in self.leaves])
            yield f"if len({{{distinct}}}) < {len(self.leaves)}:"
            yield "    return None"

    # --- then run it ----------------------------------------------------------------------------

    def _step(self, number: int, node: Node) -> Iterator[str]:
        """A node's own step; where no gradient reached it, its edges are settled nevertheless."""
        name, grad = self.names[node], self.grads[node]
        first = [each for each in dict.fromkeys(self._followed(node)) if not self.settled[each]]
        indent = ""
        if number:
            yield f"if {grad} is not None:"
            indent = "    "
        yield f"{indent}state.place = {name}.place"
        run = "run_recorded" if self.recorded else "run"
        yield f"{indent}gradients = {name}.{run}({grad}, keep)"
        yield f"{indent}{name}.ran_at = place"
        parts, seen = [], set()
        for place, following in enumerate(node.next_nodes):
            if following not in self.reached:
                parts.append("_")
            elif following in first and following not in seen:
                parts.append(self.grads[following])
                seen.add(following)
            else:
                parts.append(f"part_{place}")
        if node.op.lists or node.op.joint is not None:
            yield f"{indent}if len(gradients) != {len(parts)}:"
            yield f"{indent}    raise miscounted({name}, len(gradients))"
        yield f"{indent}{', '.join(parts)}, = gradients"
        for part, following in zip(parts, node.next_nodes, strict=True):
            if following is not None and following in self.reached:
                for line in self._edge(name, part, following):
                    yield indent + line
                self.settled[following] += 1
        leaves = [
            each
            for each in dict.fromkeys(self._followed(node))
            if each in self.leaves and self.settled[each] == self.edges[each]
        ]
        if self.targets is not None:
            leaves = []  # what they get is returned
        for leaf in leaves:
            total = self.grads[leaf]
            yield f"{indent}if {total} is not None:"
            yield (
                f"{indent}    settle({self.names[leaf]}, {total}, ("
                + (
                    f"type({total}) in ARRAYS and {total}.nbytes >= WORTH_STEALING"
                    f" and is_fresh({total}, {grad}, gradients, {self.names[leaf]}, True)"
                )
                + "), left_deferred)"
            )
            yield f"{indent}    {total} = None"
        yield f"{indent}{grad} = None"
        if number:
            skipped = [f"{name}.pass_over([None], {self.recorded}, keep)"]
            skipped += [f"{self.grads[each]} = None" for each in first]
            for leaf in leaves:
                if leaf not in first:
                    total = self.grads[leaf]
                    skipped.append(f"if {total} is not None:")
                    skipped.append(f"    settle({self.names[leaf]}, {total}, False, left_deferred)")
            yield "else:"
            for line in skipped:
                yield f"    {line}"

    def _edge(self, name: str, part: str, following: Node) -> Iterator[str]:
        """What happens to one of a node's gradients on its way to the following node."""
        total = self.grads[following]
        yield f"if {part} is not None:"
        yield f"    (shape, dtype), = {self.names[following]}.metadata"
        array = f"{part}.array" if self.recorded else part
        yield f"    if {array}.shape != shape or {array}.dtype is not dtype:"
        yield f"        {part} = fit({name}, {part}, {array}, shape, dtype)"
        if not (self.recorded or following.deferrable):
            yield f"    if type({part}) in DEFERRED:"
            yield f"        {part} = {part}.force()"
        if part != total:
            yield f"    {total} = {part} if {total} is None else plus({total}, {part})"
            yield f"    {part} = None"


_FIXED: dict[str, Any] = {
    "ARRAYS": ARRAYS,
    "AccumulateGrad": AccumulateGrad,
    "DEFERRED": DEFERRED,
    "WORTH_STEALING": WORTH_STEALING,
    "fit": fit,
    "is_fresh": is_fresh,
    "meta_of": meta_of,
    "miscounted": miscounted,
    "settle": settle,
}
