"""Recording: what a run did, kept as data for traces and explanations.

A session's `state.recorder` is None until somebody asks. Then the generated code of the ops reports
every call, also those that leave the graph, and the engine every step of a backward pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from gradcli.arrays.storage import own
from gradcli.autograd.tensor import Tensor
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.autograd.node import AccumulateGrad, Node
    from gradcli.errors import Span


class Operation:
    """One call of an op.

    Attributes:
        op: the entry of the catalogue.
        given: its operands and arguments by parameter, as the program gave them.
        output: the tensor that came out, or the tuple of them.
        place: the source text of the call, None outside a program.
        stack: the functions of the program that were open, outermost first.
    """

    __slots__ = ("given", "op", "output", "place", "stack")

    def __init__(
        self,
        op: Any,
        given: dict[str, Any],
        output: Any,
        place: Span | None,
        stack: tuple[tuple[str, Span | None], ...],
    ) -> None:
        self.op = op
        self.given = given
        self.output = output
        self.place = place
        self.stack = stack


class Step:
    """One node that a backward pass ran.

    Attributes:
        node: the node.
        grads: the gradient of each output, None where none arrived.
        gradients: what the rules gave for each input, None where no gradient is wanted or defined.
        fitted: the same after they were summed to the inputs' shapes and cast to their dtypes.
    """

    __slots__ = ("fitted", "gradients", "grads", "node")

    def __init__(
        self, node: Node, grads: list[Any], gradients: list[Any], fitted: list[Any]
    ) -> None:
        self.node = node
        self.grads = grads
        self.gradients = gradients
        self.fitted = fitted


class Accumulation:
    """Two gradients that met at a node before it ran: `old + incoming = total`, as arrays."""

    __slots__ = ("incoming", "node", "old", "total")

    def __init__(self, node: Node, old: Any, incoming: Any, total: Any) -> None:
        self.node = node
        self.old = old
        self.incoming = incoming
        self.total = total


class Arrival:
    """A gradient that reached a leaf: `old + incoming = new`, as arrays; `old` is None for the
    first.
    """

    __slots__ = ("incoming", "new", "node", "old")

    def __init__(self, node: AccumulateGrad, old: Any, incoming: Any, new: Any) -> None:
        self.node = node
        self.old = old
        self.incoming = incoming
        self.new = new


Event = Step | Accumulation | Arrival


class Recorder:
    """Receives what runs.

    It always keeps what the picture of a graph needs, which holds next to nothing alive that the
    graph does not: the nodes that a backward pass ran, and the operands that have no edge.

    Attributes:
        operations: every call of an op, in order; None to keep none.
        events: every event of the backward passes, in order; None to keep none.
        ran: the nodes that a backward pass ran.
        constants: for a node, the operands that gradients do not flow to, by the number of the
            edge: numbers as they are, tensors too.
    """

    __slots__ = ("constants", "events", "operations", "ran")

    def __init__(self, *, operations: bool = True, events: bool = True) -> None:
        self.operations: list[Operation] | None = [] if operations else None
        self.events: list[Event] | None = [] if events else None
        self.ran: WeakSet[Node] = WeakSet()
        self.constants: WeakKeyDictionary[Node, dict[int, Any]] = WeakKeyDictionary()

    def operation(self, op: Any, given: dict[str, Any], out: Any) -> None:
        """A call of an op; `out` is its output, or the tuple of several."""
        first = out[0] if type(out) is tuple and out else out
        node = first.grad_fn if type(first) is Tensor else None
        if node is not None and None in node.next_nodes:
            operands = given[op.lists[0]] if op.lists else [given[name] for name in op.inputs]
            self.constants[node] = {
                number: operand
                for number, operand in enumerate(operands)
                if number < len(node.next_nodes) and node.next_nodes[number] is None
            }
        if self.operations is not None:
            state = active.state
            self.operations.append(Operation(op, given, out, state.place, tuple(state.stack)))

    def step(self, node: Node, grads: Any, gradients: Any, fitted: Any) -> None:
        """A node that ran: its gradient(s) in, what its rules gave, and what was passed on."""
        self.ran.add(node)
        if self.events is not None:
            arrived = grads if isinstance(grads, list) else [grads]
            self.events.append(Step(node, _kept(arrived), _kept(gradients), _kept(fitted)))

    def accumulation(self, node: Node, old: Any, incoming: Any, total: Any) -> None:
        """A gradient that was added to another one waiting at its node."""
        if self.events is not None:
            self.events.append(Accumulation(node, *_kept([old, incoming, total])))

    def leaf(self, node: AccumulateGrad, old: Any, incoming: Any, new: Any) -> None:
        """A gradient that was added to a leaf's `.grad`."""
        if self.events is not None:
            self.events.append(Arrival(node, *_kept([old, incoming, new])))


def _kept(gradients: Any) -> list[Any]:
    """Gradients as arrays that nobody writes to any more."""
    arrays = [g.array if type(g) is Tensor else g for g in gradients]
    return [None if array is None else own(array) for array in arrays]
