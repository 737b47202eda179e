"""The backward graph of a tensor as data: every node once, numbered, with its edges, and in which
module's call it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from gradcli.arrays.dtypes import DTYPES
from gradcli.autograd.node import Node
from gradcli.autograd.tensor import AccumulateGrad, Tensor, gradient_edge
from gradcli.record import Record
from gradcli.state import active

if TYPE_CHECKING:
    from gradcli.arrays.dtypes import DType
    from gradcli.errors import Span


class ModuleCall:
    """One call of a module that a recorder heard.

    Attributes:
        result: the node that made what it returned, None for no tensor with a history.
    """

    __slots__ = ("module", "result")

    def __init__(self, module: Any) -> None:
        self.module = module
        self.result: ref[Node] | None = None


class Edge(Record):
    """Where the gradient of one input of an operation flows.

    Attributes:
        constant: the operand where there is no node, if a recorder kept it; None otherwise.
    """

    node: GraphNode | None
    output_nr: int
    constant: Any = None


class GraphNode:
    """A node of a graph.

    Attributes:
        id: its number in the graph, from 1, in depth-first order along the edges.
        module: the path of the module whose call made it, None outside of modules, or where calls
            were not recorded.
        part: "result" for the node that made what that call returned, "inner" for another one that
            has no source text but the call's, "" for all others.
    """

    __slots__ = ("edges", "id", "module", "node", "part")

    def __init__(self, id: int, node: Node) -> None:
        self.id = id
        self.node = node
        self.edges: list[Edge] = []
        self.module: str | None = None
        self.part = ""

    @property
    def name(self) -> str:
        """The node's name, such as MulBackward0."""
        return self.node.node_name

    @property
    def leaf(self) -> Tensor | None:
        """The leaf whose gradient arrives here, None for a node of an operation."""
        return self.node.variable if isinstance(self.node, AccumulateGrad) else None

    @property
    def variable(self) -> str | None:
        """The variable that the value was assigned to first."""
        return self.node.assigned if self.leaf is None else self.leaf.name

    @property
    def place(self) -> Span | None:
        """The source text of the operation."""
        return self.node.place

    @property
    def outputs(self) -> list[tuple[tuple[int, ...], DType]]:
        """The shape and dtype of each output of the operation."""
        return [(shape, DTYPES[dtype.name]) for shape, dtype in self.node.metadata]


def _leave_names(leaves: Collection[Tensor]) -> None:
    """What stands for `Graph.name_leaves` until that is installed."""


class Graph:
    """The graph of a tensor: the nodes that it was computed by.

    Attributes:
        nodes: all nodes, by their numbers.
        module_paths: every living module by its `id`, with its path, `net.layers.2`; installed by
            gradcli.library.
        name_leaves: gives leaves that no variable holds the paths for names by which the program's
            lists, dicts and objects hold them, `params['w']`; installed by gradcli.library.
    """

    module_paths: ClassVar[Callable[[], dict[int, tuple[str, Any]]]] = dict
    name_leaves: ClassVar[Callable[[Collection[Tensor]], None]] = _leave_names

    __slots__ = ("_by_node", "nodes", "output_nr", "root", "tensor")

    def __init__(self, tensor: Tensor, constants: Mapping[Node, dict[int, Any]] | None = None):
        first, self.output_nr = gradient_edge(tensor)
        self.tensor = tensor
        self._by_node: dict[Node, GraphNode] = {}
        self.nodes: list[GraphNode] = []
        stack = [] if first is None else [first]
        while stack:
            node = stack.pop()
            if node not in self._by_node:
                graph_node = self._by_node[node] = GraphNode(len(self.nodes) + 1, node)
                self.nodes.append(graph_node)
                stack += [n for n in reversed(node.next_nodes) if n is not None]
        for graph_node in self.nodes:
            node = graph_node.node
            operands = (constants or {}).get(node, {})
            for number, following in enumerate(node.next_nodes):
                target = None if following is None else self._by_node[following]
                constant = operands.get(number) if target is None else None
                graph_node.edges.append(Edge(target, node.input_nrs[number], constant))
        self.root = self.nodes[0] if self.nodes else None
        Graph.name_leaves([each.leaf for each in self.nodes if each.leaf is not None])
        self._place_in_modules()

    def _place_in_modules(self) -> None:
        """Say of each node in which module's call it was made."""
        recorder = active.state.recorder
        calls = {} if recorder is None or recorder.recorder is None else recorder.recorder.modules
        called = [(each, calls[each.node]) for each in self.nodes if each.node in calls]
        called.sort(key=lambda pair: pair[0].node.sequence_nr)
        paths = Graph.module_paths() if called else {}
        numbers: dict[Any, list[Any]] = {}
        for _, call in called:
            known = numbers.setdefault(call.module, [])
            if call not in known:
                known.append(call)
        for each, call in called:
            path, _ = paths.get(id(call.module), (type(call.module).__name__, None))
            known = numbers[call.module]
            each.module = path if len(known) == 1 else f"{path}, call {known.index(call) + 1}"
            result = None if call.result is None else call.result()
            if result is not None and result is each.node:
                each.part = "result"
            elif result is not None and result.place is each.place:
                each.part = "inner"

    def find(self, node: Node) -> GraphNode | None:
        """The GraphNode of a node, None if it is not in the graph."""
        return self._by_node.get(node)
