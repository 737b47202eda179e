"""Names the values of a graph in explanations: by variable, by source text, or by number."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.node import FREED
from gradcli.autograd.tensor import Tensor
from gradcli.ops.definition.op import Op
from gradcli.recorded.symbols.tree import Call, Constant, Fragment, Name, Symbol, number_text

_LONGEST = 32
"""Longer source text is not repeated: its op stands for it."""


class Operands:
    """The names of the values of one graph, no two of them alike."""

    def __init__(self, graph: Graph) -> None:
        self._shared: Counter[str] = Counter()
        self._modules: dict[str, set[str | None]] = {}
        for node in graph.nodes:
            text = _called(node)
            self._shared[text] += 1
            self._modules.setdefault(text, set()).add(node.module)

    def text(self, node: GraphNode, output_nr: int = 0) -> str:
        """What a node's output is called: `h`, `a + b`, `x.unbind()[1]`, `net.0(…)`; by its module
        or its number too where several are called so.
        """
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
