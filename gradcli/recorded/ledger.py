"""The ledger of a backward pass: what each edge of the graph multiplied and passed on, and the
share of each path from the output to a leaf in the leaf's gradient.

The numbers are those that the engine recorded, and the formulas are the rules themselves, read with
symbols; no gradient is computed a second time.

One element of a gradient is worked out as a sum of products of numbers.

Values have names in explanations: by variable, by source text, or by number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.fusion.lazy import forced
from gradcli.autograd.engine import accumulate
from gradcli.autograd.engine.backward import grad as gradient_of
from gradcli.autograd.graph import Edge, Graph, GraphNode
from gradcli.autograd.node import FREED, Node
from gradcli.autograd.recording.recorder import Arrival, Event, Step
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, RuleSpan
from gradcli.ops.definition.op import Op
from gradcli.record import Record
from gradcli.recorded.symbols.reading import derivative_formulas
from gradcli.recorded.symbols.tree import (
    Call,
    Constant,
    Fragment,
    Name,
    Opaque,
    Symbol,
    number_text,
    public,
    substituted,
)
from gradcli.recorded.written_instructions import opened
from gradcli.state import active

# --- names ----------------------------------------------------------------------------------------


_LONGEST = 32
"""Longer source text is not repeated: its op stands for it."""


class Operands:
    """The names of the values of one graph, no two of them alike."""

    def __init__(self, graph: Graph) -> None:
        self._shared: Counter[str] = Counter()
        self._modules: dict[str, set[str | None]] = {}
        for node in graph.nodes:
            if _stands_for(node) is not None:
                continue
            text = _called(node)
            self._shared[text] += 1
            self._modules.setdefault(text, set()).add(node.module)

    def text(self, node: GraphNode, output_nr: int = 0) -> str:
        """What a node's output is called: `h`, `a + b`, `x.unbind()[1]`, `net.0(…)`; by its module
        or its number too where several are called so.
        """
        outside = _stands_for(node)
        if outside is not None and outside.node is not None:
            return self.text(outside.node, outside.output_nr)
        text = _called(node)
        if self._shared[text] > 1:
            apart = len(self._modules[text]) == self._shared[text]
            if node.variable is not None and node.module and apart:
                text = f"{node.module}.{text}"
            else:
                text = f"{_atom(text)}#{node.id}"
        if len(node.node.metadata) > 1:
            text = f"{_atom(text)}[{output_nr}]"
        return text

    def symbol(self, node: GraphNode, output_nr: int = 0) -> Symbol:
        """The same as a part of a formula."""
        text = self.text(node, output_nr)
        leaf = _transposed_leaf(node)
        if leaf is not None and text == f"t({leaf})":
            return Call("t", (Name(leaf),))
        return Name(text) if is_atom(text) else Fragment(text)

    def of_rules(self, node: GraphNode) -> dict[str, Symbol]:
        """What the parameters of a node's rules are called, numbers by their value."""
        op: Op = node.node.op
        names: dict[str, Symbol] = {}
        for name in op.tensors:
            if name in op.inputs:
                edge = node.edges[op.inputs.index(name)]
                if edge.node is not None:
                    names[name] = self.symbol(edge.node, edge.output_nr)
                    continue
                value = edge.constant
            else:
                value = getattr(node.node, f"saved_{name}", None)
            if value is None or value is FREED:
                value = getattr(node.node, f"saved_{name}", None)
            constant = _constant(value)
            if constant is not None:
                names[name] = constant
        for number, output in enumerate(op.outputs):
            if output != "*":
                names[output] = self.symbol(node, number)
        return names


def arguments_of(node: Any) -> dict[str, Any]:
    """The arguments that an operation's rules know, by parameter."""
    slots = [slot for slot in type(node).__slots__ if slot.startswith("argument_")]
    values = {slot.removeprefix("argument_"): getattr(node, slot, None) for slot in slots}
    for name in node.op.tensors:
        # An optional operand that was not given.
        if name not in node.op.inputs and getattr(node, f"saved_{name}", FREED) is None:
            values[name] = None
    return {name: value for name, value in values.items() if value is not FREED}


def is_atom(text: str) -> bool:
    """Whether a text holds together by itself: a name, or a call or an index of one."""
    depth = 0
    for number, character in enumerate(text):
        if character in "([{":
            if (
                not depth
                and number
                and not (text[number - 1].isalnum() or text[number - 1] in "_])")
            ):
                return False
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif not depth and not (character.isalnum() or character in "_.#…"):
            return False
    return bool(text) and text[0] not in "(["


def _atom(text: str) -> str:
    return text if is_atom(text) else f"({text})"


def _stands_for(node: GraphNode) -> Edge | None:
    """Where a tensor outside a transform of `torch.func` stands, of the node for it inside."""
    return (
        next((e for e in node.edges if e.node is not None), None) if node.node.is_hidden else None
    )


def _called(node: GraphNode) -> str:
    """A node's variable, its module's call, its source text if that is short, or its op."""
    if node.variable is not None:
        return node.variable
    if node.part == "result":
        return f"{_path(node)}(…)"
    if node.part == "inner":
        leaf = _transposed_leaf(node)
        return f"t({leaf})" if leaf is not None else f"{_path(node)}.{_op_name(node)}"
    text = "" if node.place is None else " ".join(node.place.text.split())
    text = f"gradient of {text}" if type(node.place) is RuleSpan else text
    return text if text and len(text) <= _LONGEST else _op_name(node)


def _path(node: GraphNode) -> str:
    return (node.module or "").partition(",")[0]


def _op_name(node: GraphNode) -> str:
    """The function that made a node: `add` of AddBackward0."""
    op = getattr(node.node, "op", None)
    stem = node.name.rstrip("0123456789").removesuffix("Backward").lower()
    return stem if op is None else str(op.name).partition(".")[0].strip("_")


def _transposed_leaf(node: GraphNode) -> str | None:
    """The leaf that a node transposes, such as a layer's weight."""
    target = node.edges[0].node if node.name == "TBackward0" and node.edges else None
    return None if target is None or target.leaf is None else target.variable


def _constant(value: Any) -> Symbol | None:
    """A value without history by its name, or a number as it is."""
    if isinstance(value, Tensor):
        if value.name:
            return Name(value.name)
        if value.array.ndim == 0 and value.array.dtype.kind in "biuf":
            return Constant(value.array.item())
        return None
    if isinstance(value, (bool, int, float)):
        return Constant(value)
    return None


def factor_text(symbol: Symbol) -> str:
    """A local derivative as text; a whole floating number as the integer that it is."""
    if isinstance(symbol, Constant) and isinstance(symbol.value, float):
        if symbol.value.is_integer() and abs(symbol.value) < 1e6:
            return str(int(symbol.value))
        return number_text(symbol.value)
    return repr(symbol)


# --- ledger ---------------------------------------------------------------------------------------


class Share(Record):
    """One edge: what a node passed on to the operand behind it.

    Attributes:
        formula: the rule in the catalogue's names, None where there is nothing to read.
        named: the rule in the program's names; for an elementwise op without its factor `grad`: the
            local derivative.
        left: the elementwise local derivative's name, `∂e/∂d`; "" for other ops.
        local: the local derivative's value, None for ops that are not elementwise.
        passed: the same as it was passed on: summed to the operand's shape, cast to its dtype.
    """

    number: int
    edge: Edge
    operand: str
    product: Any
    passed: Any
    formula: Symbol | None = None
    named: Symbol | None = None
    left: str = ""
    local: Any = None

    @property
    def is_summed(self) -> bool:
        """Whether the operand was broadcast, so that its gradient is a sum."""
        return bool(self.passed is not None and self.product.shape != self.passed.shape)

    @property
    def is_cast(self) -> bool:
        """Whether the operand has another dtype than the result."""
        return bool(self.passed is not None and self.product.dtype != self.passed.dtype)


class Visit(Record):
    """A node that ran: the gradients of its outputs, and the share of each operand."""

    node: GraphNode
    name: str
    grads: Sequence[Any]
    shares: Sequence[Share]


class Sum(Record):
    """Gradients that met: `old + incoming = new`; `old` is None for the first one at a leaf.

    Attributes:
        arrived: whether the sum is a leaf's `.grad`; gradients also meet before they arrive there.
    """

    node: GraphNode
    name: str
    arrived: bool
    old: Any
    incoming: Any
    new: Any


Row = Visit | Sum


def ledger(graph: Graph, events: Sequence[Event]) -> list[Row]:
    """The rows of a backward pass, in the order in which it ran.

    Args:
        events: the events of the pass, or of all passes of a program: the last one from the output
            is taken.
    """
    operands = Operands(graph)
    rows: list[Row] = []
    for event in last_pass(graph, events):
        node = graph.find(event.node)
        if node is None or (node.node.is_hidden and isinstance(event, Step)):
            continue
        if isinstance(event, Step):
            rows.append(
                Visit(node, operands.text(node), event.grads, _shares(node, event, operands))
            )
        else:
            arrived, numbers = isinstance(event, Arrival), (event.old, event.incoming, event.new)
            rows.append(Sum(node, operands.text(node), arrived, *numbers))
    return rows


def last_pass(graph: Graph, events: Sequence[Event]) -> Sequence[Event]:
    """The events of the last backward pass that started at a graph's root."""
    root = None if graph.root is None else graph.root.node
    for number in reversed(range(len(events))):
        event = events[number]
        if event.node is root and isinstance(event, (Step, Arrival)):
            return [each for each in events[number:] if each.during == event.during]
    return ()


def _shares(node: GraphNode, step: Step, operands: Operands) -> list[Share]:
    shares = []
    for number, edge in enumerate(node.edges):
        if edge.node is not None:
            operand = operands.text(edge.node, edge.output_nr)
            product, passed = forced(step.gradients[number]), forced(step.fitted[number])
            shares.append(Share(number, edge, operand, product, passed))
    op: Op | None = getattr(node.node, "op", None)
    if op is not None:
        _add_formulas(node, op, step, shares, operands)
    return shares


def _add_formulas(
    node: GraphNode, op: Op, step: Step, shares: Sequence[Share], operands: Operands
) -> None:
    arguments = arguments_of(node.node)
    names = operands.of_rules(node)
    formulas = derivative_formulas(op, arguments)
    local_values = _local_values(node.node, step) if op.pointwise else None
    for share in shares:
        parameter = op.inputs[share.number] if not op.lists else op.lists[0]
        formula = formulas.get(parameter)
        if formula is None or isinstance(formula, Opaque):
            continue
        if share.product is not None:
            formula = opened(formula, share.product.shape, share.product.dtype.name)
        formula = public(formula)
        if formula is None:
            continue
        share.formula = formula
        if op.pointwise and local_values is not None:
            share.named = substituted(formula, {**names, "grad": Constant(1)})
            share.local = local_values[share.number]
            share.left = f"∂{bracketed(operands.text(node))}/∂{bracketed(share.operand)}"
        else:
            share.named = substituted(formula, names)


def _local_values(node: Node, step: Step) -> Sequence[Any] | None:
    """The factors of the gradient, which a rule of an elementwise op gives for a gradient of 1."""
    (grad,) = step.grads
    if grad is None or grad.dtype.kind == "c":
        return None  # a rule may conjugate a complex gradient, which no factor does
    ones = np.ones_like(forced(grad))
    try:
        return [forced(each) for each in node.run(ones if ones.ndim else ones[()], True)]
    except GradcliError:
        return None  # the program wrote over a saved value since, as an optimizer does


def bracketed(text: str) -> str:
    """A text in brackets unless it is one word."""
    return text if all(c.isalnum() or c in "_#" for c in text) else f"({text})"


# --- one element, worked out ----------------------------------------------------------------------


_MOST_TERMS = 3


class Worked(Record):
    """An element of what a node passed on: the sum over the terms of `gradient in * factor`.

    Attributes:
        terms: the largest terms: an element of the gradient that came in, and its factor.
        left_out: how many more terms there are.
    """

    index: tuple[int, ...]
    terms: list[tuple[Any, Any]]
    left_out: int
    value: Any


def worked_element(visit: Visit, share: Share, element: tuple[int, ...] | None) -> Worked | None:
    """An element of a share worked out.

    A rule is linear in the gradient that it is given, so the derivative of one element of its
    answer with respect to that gradient is the row of factors. None for a node whose rule does not
    read tensors, that has several outputs, or whose gradients are complex: a rule conjugates those.

    Args:
        element: which element; the first where None, or where the gradient has no such element.
    """
    product = share.product
    if len(visit.grads) != 1 or visit.grads[0] is None or not product.size:
        return None
    if product.dtype.kind == "c" or visit.grads[0].dtype.kind == "c":
        return None
    index = (
        element if element is not None and _fits(element, product.shape) else (0,) * product.ndim
    )
    incoming = Tensor(visit.grads[0], True)
    state = active.state
    before = state.grad_enabled, state.recorder
    state.grad_enabled, state.recorder = True, None
    try:
        answer = visit.node.node.run_recorded(incoming, True)[share.number]
        one = np.zeros_like(forced(answer.array))
        one[index] = 1
        (factors,) = gradient_of(answer, incoming, Tensor(one if one.ndim else one[()]), True)
    except GradcliError:
        return None
    finally:
        state.grad_enabled, state.recorder = before
    if factors is None:
        return None
    row, grad = forced(factors.array).reshape(-1), visit.grads[0].reshape(-1)
    wanted = np.flatnonzero(row)
    order = wanted[np.argsort(-np.abs(row[wanted] * grad[wanted]), kind="stable")]
    shown = np.sort(order[:_MOST_TERMS])
    terms = [(grad[i], row[i]) for i in shown]
    return Worked(index, terms, len(wanted) - len(shown), product[index])


def _fits(index: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(index) == len(shape) and all(
        -size <= i < size for i, size in zip(index, shape, strict=True)
    )


# --- paths ----------------------------------------------------------------------------------------


_MOST_PATHS = 100

_CANCELLED = 1e-3
"""Shares cancel where their sum is smaller than this part of the sum of their sizes."""


class Path(Record):
    """One path from the output to a leaf.

    Attributes:
        edges: the numbers of the edges that lead from one to the next.
        share: what it contributes to the leaf's gradient.
    """

    nodes: Sequence[GraphNode]
    edges: Sequence[int]
    share: Any


class Paths:
    """All paths to a leaf, depth first, the sum of their shares, and where they cancel."""

    def __init__(self, leaf: Tensor, paths: Sequence[Path]) -> None:
        self.leaf = leaf
        self.paths = paths
        shares = [path.share for path in paths]
        self.total = sum(shares[1:], shares[0]) if shares else np.zeros_like(leaf.array)
        sizes = sum((np.abs(share) for share in shares), np.zeros_like(leaf.array))
        lost = (np.abs(self.total) < _CANCELLED * sizes) & (sizes > 0)
        self.cancelled = [tuple(map(int, index)) for index in np.argwhere(lost)]


def paths_to(graph: Graph, events: Sequence[Event], leaf: Tensor) -> Paths:
    """Every path from the output to a leaf, with its share.

    A rule is linear in its gradient, so what flows along one path alone is what the rules on it
    give for what flows into them along it.

    Raises:
        GradcliError: E602 for more than a hundred paths.
    """
    target = next((node for node in graph.nodes if node.leaf is leaf), None)
    first = next((e for e in last_pass(graph, events) if isinstance(e, Step)), None)
    if target is None or graph.root is None or first is None:
        return Paths(leaf, ())
    counts = _counts(graph, target)
    if counts[graph.root.id] > _MOST_PATHS:
        raise GradcliError(
            "E602",
            f"{counts[graph.root.id]:,} paths lead to the leaf, and up to {_MOST_PATHS} are shown",
            help="ask for the paths to a value nearer to the output, or in a smaller program",
        )
    paths: list[Path] = []
    stack: list[tuple[list[GraphNode], list[int], Any]] = [([graph.root], [], first.grads)]
    while stack:
        nodes, edges, grads = stack.pop()
        node = nodes[-1]
        if node is target:
            paths.append(Path(nodes, edges, grads[0]))
            continue
        incoming = grads if node.node.multiple else grads[0]
        gradients = node.node.run(incoming, True)
        for number in reversed(range(len(node.edges))):
            edge, gradient = node.edges[number], gradients[number]
            if edge.node is None or gradient is None or not counts[edge.node.id]:
                continue
            metadata = edge.node.node.metadata
            passed: list[Any] = [None] * len(metadata)
            values = forced(gradient)
            passed[edge.output_nr] = accumulate.sum_to_size(
                node.node, values, values, *metadata[edge.output_nr]
            )
            stack.append(([*nodes, edge.node], [*edges, number], passed))
    return Paths(leaf, paths)


def _counts(graph: Graph, target: GraphNode) -> dict[int, int]:
    """How many paths lead from each node to the target."""
    counts: dict[int, int] = {}
    stack = [(graph.nodes[0], False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            counts[node.id] = int(node is target) + sum(
                counts[edge.node.id] for edge in node.edges if edge.node is not None
            )
        elif node.id not in counts:
            stack.append((node, True))
            stack += [(edge.node, False) for edge in node.edges if edge.node is not None]
    return counts
