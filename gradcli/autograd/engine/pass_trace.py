"""The trace of a backward pass: what the engine does for one graph, as instructions.

The values are nodes and gradients. First the nodes are loaded from the root, edge by edge; guards
check that the graph has the form that was traced, and that no hook is attached to it. Then each
node runs, and each of its gradients is summed to the size of its input and added to the gradients
that are there already. A gradient may be None in one pass and an array in the next, so an
instruction skips None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli.arrays.fusion.lazy import LAZY
from gradcli.arrays.gpu.array import ARRAYS
from gradcli.autograd.engine import accumulate
from gradcli.autograd.engine.accumulate import (
    WORTH_STEALING,
    accumulate_array,
    is_fresh,
    sum_to_size,
)
from gradcli.autograd.node import SCALAR_METADATA, Node, miscounted, reachable
from gradcli.autograd.tensor import AccumulateGrad, meta_of
from gradcli.trace.codegen import Code
from gradcli.trace.ir import Effect, Effects, Guard, Inline, Instruction, Kind, Trace, Value
from gradcli.trace.passes import FREE

_LARGEST = 60
"""Nodes of the largest graph that is compiled: larger ones gain a seventh or nothing, and Python's
parser takes 75 KB for each.
"""


class PassTrace:
    """Records a backward pass as a trace.

    Args:
        nodes: the nodes of the graph without leaves, in the order in which they run.
        recorded: whether a graph of the gradients is recorded.
        targets: the nodes whose gradients are returned, None where leaves accumulate them.

    Attributes:
        reached: the nodes that run, and the leaves whose gradients are wanted.
    """

    def __init__(self, nodes: list[Node], recorded: bool, targets: list[Node] | None) -> None:
        self.trace = Trace()
        self.nodes = nodes
        self.recorded = recorded
        self.targets = targets
        successors = dict.fromkeys([to for node in nodes for to in node.next_nodes if to])
        self.leaves = [node for node in successors if node not in set(nodes)]
        self.reached = set(self.leaves if targets is None else targets)
        for node in reversed(nodes):
            if not self.reached.isdisjoint(node.next_nodes):
                self.reached.add(node)
        # For each node: the edges to it from nodes that run, and how many of those have run so far.
        self._edges: dict[Node, int] = {}
        for node in self.reached:
            for to in self._successors(node):
                self._edges[to] = self._edges.get(to, 0) + 1
        self._arrived = dict.fromkeys([*nodes, *self.leaves], 0)
        self._values: dict[Node, Value] = {}
        self._gradients: dict[Node, Value] = {}
        self._shared: list[tuple[Value, Value]] = []
        self._former: Value | None = None

    def reaches_targets(self) -> bool:
        """Whether there is a leaf, and each target is one."""
        wanted = self.leaves if self.targets is None else self.targets
        return self.nodes[0] in self.reached and set(wanted) <= set(self.leaves)

    def _successors(self, node: Node) -> Iterator[Node]:
        """The nodes that the gradients of a node flow to."""
        for target in node.next_nodes:
            if target in self.reached:
                yield target

    def record(self) -> None:
        root = self.nodes[0]
        self._values[root] = self.trace.value(None, "node")
        self._gradients[root] = self._gradient_of(root)
        self.trace.inputs = [self._values[root], self._gradients[root]]
        self._guard(Kind.MODE, "recorded", self.recorded)
        self._guard(Kind.VALUE, "targets is None", self.targets is None)
        if self.targets is not None:
            self._guard(Kind.VALUE, "len(targets)", len(self.targets))
        for node in self.nodes:
            self._load_edges(node)
        self._guard_order()
        place = self._add(Inline("state.place", "place"), [], [self.trace.value(None, "span")])
        for node in self.nodes:
            if node in self.reached:
                self._run(node, place.results[0])
        self.trace.outputs = [self._gradients[target] for target in self.targets or ()]

    def _add(
        self,
        op: Inline,
        inputs: Sequence[Any],
        outputs: Sequence[Value | None] = (),
        node: Node | None = None,
        effects: Effects | None = None,
    ) -> Instruction:
        span = None if node is None else node.place
        return self.trace.add(Instruction(op, inputs, outputs, span=span, effects=effects))

    def _gradient_of(self, node: Node) -> Value:
        shape, dtype = node.metadata[0]
        return self.trace.value(tuple(shape), dtype)

    # --- guards ---------------------------------------------------------------------------------

    def _guard(self, kind: Kind, text: str, expected: Any, *inputs: Value) -> None:
        self.trace.guards.append(Guard(kind, Inline(text), expected, inputs=inputs))

    def _load_edges(self, node: Node) -> None:
        """Load the nodes that a node's edges lead to, and guard them."""
        value = self._values[node]
        self._guard(Kind.IDENTITY, "{0}.__class__", type(node), value)
        self._guard(Kind.IDENTITY, "{0}.extra", None, value)
        if node.op.lists:
            self._guard(Kind.VALUE, "len({0}.next_nodes)", len(node.next_nodes), value)
        edges, new = [], []
        for target in node.next_nodes:
            edge = self.trace.value(None, "node")
            edges.append(edge)
            if target is None or target in self._values:
                self._guard(Kind.IDENTITY, "{0}", self._values.get(target), edge)  # type: ignore[arg-type]
            else:
                self._values[target] = edge
                new.append(target)
        names = "".join([f"{{out{number}}}, " for number in range(len(edges))])
        self._add(Inline(f"{names}= {{0}}.next_nodes", "edges"), [value], edges)
        for leaf in new:
            if leaf in self.leaves:
                self._guard_leaf(self._values[leaf])

    def _guard_leaf(self, leaf: Value) -> None:
        self._guard(Kind.IDENTITY, "{0}.__class__", AccumulateGrad, leaf)
        self._guard(Kind.IDENTITY, "{0}.extra", None, leaf)
        meta = self.trace.value(None, "meta")
        load = Inline("{0}.variable.meta or meta_of({0}.variable)", "meta")
        self._add(load, [leaf], [meta])
        self._guard(Kind.VALUE, "{0}.hooks or {0}.accumulated_hooks", False, meta)

    def _guard_order(self) -> None:
        """Guard that nodes are distinct and run in this order, with the same targets."""
        nodes = [self._values[node] for node in self.nodes]
        if len(nodes) > 1:
            order = " > ".join([f"{{{n}}}.sequence_nr" for n in range(len(nodes))])
            self._guard(Kind.VALUE, order, True, *nodes)
        for number, target in enumerate(self.targets or ()):
            self._guard(Kind.IDENTITY, f"targets[{number}][0]", self._values[target])
        leaves = [self._values[leaf] for leaf in self.leaves]
        if len(leaves) > 1:
            distinct = ", ".join([f"{{{n}}}" for n in range(len(leaves))])
            self._guard(Kind.VALUE, f"len({{{{{distinct}}}}})", len(leaves), *leaves)

    # --- steps ----------------------------------------------------------------------------------

    def _run(self, node: Node, place: Value) -> None:
        """Record a node's step and the arrival of its gradients; where no gradient reached the
        node, its edges count as delivered all the same.
        """
        value, grad = self._values[node], self._gradients[node]
        gradients = self.trace.value(None, "gradients")
        if self._former is not None:  # a node's gradients live no longer than its step
            self._shared.append((gradients, self._former))
        self._former = gradients
        parts = [self._gradient_of(to) if to in self.reached else None for to in node.next_nodes]
        run = self._step(node, len(parts))
        self._add(run, [value, grad, place], [gradients, *parts], node)
        for part, target in zip(parts, node.next_nodes, strict=True):
            if part is not None and target is not None:
                self._arrive(node, part, target)
        if self.targets is None:  # the gradients of targets are returned
            for leaf in dict.fromkeys(self._successors(node)):
                if leaf in self.leaves and self._arrived[leaf] == self._edges[leaf]:
                    total = self._gradients[leaf]
                    inputs = [self._values[leaf], total, grad, gradients]
                    self._add(_ACCUMULATE, inputs, (), None, {Effect.GRAD: (self._values[leaf],)})
                    self._add(FREE, [total])
        self._add(FREE, [grad])

    def _step(self, node: Node, count: int) -> Inline:
        """The code that runs a node, given the node, its gradient and the span of the pass."""
        run = "run_recorded" if self.recorded else "run"
        parts = "".join([f"{{out{number + 1}}}, " for number in range(count)])
        at = "{0}.place and {0}.place.of_rule" if self.recorded else "{0}.place"
        lines = [
            f"state.place = {at}",
            f"{{out0}} = {{0}}.{run}({{1}}, keep)",
            "{0}.ran_at = {2}",
        ]
        if node.op.lists or node.op.joint is not None:
            lines += [
                f"if len({{out0}}) != {count}:",
                "    raise miscounted({0}, len({out0}))",
            ]
        lines.append(f"{parts}= {{out0}}")
        if node is not self.nodes[0]:
            nothing = "".join([f"{{out{number + 1}}} = " for number in range(count)])
            lines = [
                "if {1} is not None:",
                *[f"    {line}" for line in lines],
                "else:",
                f"    {{0}}.pass_over([None], {self.recorded}, keep)",
                "    {out0} = ()",
                f"    {nothing}None",
            ]
        return Inline("\n".join(lines), "run")

    def _arrive(self, node: Node, part: Value, target: Node) -> None:
        """Record that a gradient arrives at the node that it flows to."""
        self._arrived[target] += 1
        lines = ["if {1} is not None:", *[f"    {line}" for line in self._sum_to_size(target)]]
        inputs = [self._values[node], part, self._values[target]]
        total = self._gradient_of(target)
        earlier = self._gradients.get(target)
        if earlier is None:
            lines.append("{out0} = {1}")
            self._shared.append((total, part))
        else:
            inputs.append(earlier)
            lines = [
                "{out0} = {3}",
                *lines,
                "    {out0} = {1} if {3} is None else add({3}, {1})",
                "    {1} = None",
            ]
            self._shared.append((total, earlier))
        self._gradients[target] = total
        self._add(Inline("\n".join(lines), "arrive"), inputs, [total])

    def _sum_to_size(self, target: Node) -> list[str]:
        """The code that sums a gradient to the size of its input and casts it."""
        array = "{1}.array" if self.recorded else "{1}"
        lines = [
            "(shape, dtype), = {2}.metadata",
            f"if {array}.shape != shape or {array}.dtype is not dtype:",
            f"    {{1}} = sum_to_size({{0}}, {{1}}, {array}, shape, dtype)",
        ]
        if not (self.recorded or target.reads_lazy):
            lines += ["if type({1}) in LAZY:", "    {1} = {1}.force()"]
        if self.recorded or target.metadata is not SCALAR_METADATA.get(target.metadata[0][1].type):
            return lines
        quick = "if {2}.metadata is not scalar_metadata({1}.__class__):"
        return [quick, *[f"    {line}" for line in lines]]

    # --- as a function --------------------------------------------------------------------------

    def compiled(self) -> Callable[..., Any]:
        """The pass as a function, which returns None, with nothing changed, where a guard fails."""
        code = Code(self.trace)
        code.namespace |= _NAMES | {
            "add": accumulate.add if self.recorded else accumulate.add_arrays
        }
        for value, other in self._shared:
            code.share(value, other)
        parameters = ", ".join(map(code.name, self.trace.inputs))
        returned = ", ".join(map(code.name, self.trace.outputs))
        return code.function(
            f"run({parameters}, keep, recorded, targets, state, left_lazy)",
            [*code.guarded(self.trace.inputs, "return None"), f"return [{returned}]"],
            "compiled backward",
        )


def nodes_in_order(root: Node) -> list[Node] | None:
    """The nodes of a graph without leaves, in the order in which they run; None for a graph that is
    too large, and where a node is not that of an op with a single output: others may call the
    program's functions.
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


def trace_of(root: Node, recorded: bool, targets: list[Node] | None) -> PassTrace | None:
    """The trace of the pass from a root; None where instructions cannot express it."""
    nodes = nodes_in_order(root)
    if nodes is None:
        return None
    trace = PassTrace(nodes, recorded, targets)
    if not trace.reaches_targets():
        return None
    trace.record()
    return trace


_ACCUMULATE = Inline(
    "if {1} is not None:\n"
    "    accumulate_array({0}, {1}, (type({1}) in ARRAYS and {1}.nbytes >= WORTH_STEALING"
    " and is_fresh({1}, {2}, {3}, {0}, True)), left_lazy)",
    "accumulate",
)
"""Adds the gradient that arrived to a leaf's `.grad`."""

_NAMES: dict[str, Any] = {
    "ARRAYS": ARRAYS,
    "LAZY": LAZY,
    "WORTH_STEALING": WORTH_STEALING,
    "sum_to_size": sum_to_size,
    "is_fresh": is_fresh,
    "meta_of": meta_of,
    "miscounted": miscounted,
    "scalar_metadata": SCALAR_METADATA.get,
    "accumulate_array": accumulate_array,
}
"""The names in the code above that are no parameters of the function."""
