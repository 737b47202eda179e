"""What the trace styles have in common: how a node, a leaf and a value are written."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.arrays.fusion.lazy import forced
from gradcli.arrays.printing import format_tensor
from gradcli.autograd.graph import Edge, GraphNode
from gradcli.autograd.tensor import Tensor
from gradcli.errors import RuleSpan, Span
from gradcli.show.style import Style, one_line
from gradcli.state import active


def source_of(node: GraphNode) -> str:
    """The source text of a node, of its assignment or else of its expression, behind the path of
    the module in whose call it was made.
    """
    text = source_text(node)
    if node.module is None:
        return text
    return f"{node.module}: {text}" if text else node.module


def source_text(node: GraphNode) -> str:
    """The source text of a node: of its assignment or else of its expression."""
    span = node.place
    if span is None:
        return ""
    text = one_line(span.text)
    if type(span) is RuleSpan:
        return f"gradient of {text}"
    if node.variable is None:
        return text
    return f"{node.variable} = {text}" if _is_assigned(span, node.variable) else text


def _is_assigned(span: Span, variable: str) -> bool:
    """Whether `variable =` stands right before a span, brackets aside."""
    text = span.source.text
    line_start = text.rfind("\n", 0, span.start) + 1
    # A line may be long, and the target of an assignment is short.
    before = text[max(line_start, span.start - 200) : span.start].rstrip(" \t(")
    return before.endswith("=") and before[:-1].rstrip().endswith(variable)


def parts_of(nodes: Sequence[GraphNode]) -> dict[int, Hashable]:
    """For each node that has a place, by its id, what it has in common with the nodes that the same
    place makes in other rounds of a loop: the place, the module, and its own place in the graph of
    what stands there, which may be several nodes, as a call of a module is.
    """
    users: dict[int, list[tuple[GraphNode, int]]] = {}
    kinds: dict[int, Hashable] = {}
    for node in nodes:
        for number, edge in enumerate(node.edges):
            if edge.node is not None:
                users.setdefault(edge.node.id, []).append((node, number))
        if node.leaf is None and node.place is not None:
            module = None if node.module is None else node.module.partition(",")[0]
            kinds[node.id] = module, _stretch(node), node.name
    parts: dict[int, Hashable] = {}
    for node in nodes:
        if node.id in kinds:
            # From the node up to the one that the whole expression ends with.
            way: dict[Hashable, int] = {kinds[node.id]: -1}
            at = node
            while len(users.get(at.id, ())) == 1:
                user, number = users[at.id][0]
                same = user.module == node.module and _stretch(user) == _stretch(node)
                if not same or kinds[user.id] in way:
                    break
                way[kinds[user.id]] = number
                at = user
            parts[node.id] = tuple(way.items())
    return parts


def _stretch(node: GraphNode) -> Hashable:
    place = node.place
    return None if place is None else (place.source.name, place.start, place.end)


def title(node: GraphNode, style: Style) -> str:
    """A node's variable and name: `e  MulBackward0`."""
    name = style.paint(node.name, "node")
    if node.variable is None or node.leaf is not None:
        return name
    return f"{style.paint(node.variable, 'variable')}  {name}"


def target(edge: Edge) -> str:
    """What an edge leads to, in a few words: `AccumulateGrad  a`, `t  AddBackward0`."""
    node = edge.node
    if node is None:
        return "None"
    if node.leaf is not None:
        return f"{node.name}  {node.variable}" if node.variable else node.name
    named = f"{node.variable}  {node.name}" if node.variable else node.name
    return named + output_of(node, edge.output_nr)


def output_of(node: GraphNode, output_nr: int) -> str:
    """`, output 1` for a node of several outputs."""
    return f", output {output_nr}" if len(node.node.metadata) > 1 else ""


def leaf_text(tensor: Tensor, name: str | None, style: Style, column: int) -> str:
    """A leaf on one line, at a column: its name and its value, or its shape where that is long."""
    named = "" if name is None else f"{style.paint(name, 'variable')}  "
    used = column + (0 if name is None else len(name) + 2)
    return named + value_text(tensor, style, used)


def value_text(value: Any, style: Style, column: int) -> str:
    """An operand on one line at a column: a number, a tensor's value, or its shape."""
    if not isinstance(value, Tensor):
        return repr(value)
    text = repr(value)
    if "\n" not in text and (style.width is None or column + len(text) <= style.width):
        return text
    shape = tuple(value.array.shape)
    text = f"tensor of shape {shape}, {value.dtype}"
    fits = style.width is None or column + len(text) <= style.width
    return text if fits else f"{shape} {value.dtype.name}"


_SMALL, _LINES = 12, 3
"""Elements and lines of a gradient that is shown by its numbers."""


def is_printed_whole() -> bool:
    """Whether tensors are printed whole, as `--full` asks for."""
    return active.state.print_options.threshold == float("inf")


def gradient_text(array: Any) -> str:
    """A gradient in a backward pass; `None` for an undefined one, and of a large one its shape and
    norm, unless tensors are printed whole.
    """
    if array is None:
        return "None"
    lines = array.size // array.shape[-1] if array.size and array.ndim else 1
    if (array.size <= _SMALL and lines <= _LINES) or is_printed_whole():
        return format_tensor(array)
    norm = float(np.linalg.norm(np.abs(to_host(forced(array))).astype(np.float64)))
    return f"tensor of shape {tuple(array.shape)}, norm {norm:.4g}"
