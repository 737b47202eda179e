"""What a page that steps shows, as one JSON object: program, nodes, steps.

The steps of the backward pass are the rows of the ledger (`gradcli.ledger/1`), without what stands
at the nodes, and with shape and norm of large arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from gradcli.autograd.graph import GraphNode
from gradcli.ops.definition.op import Op
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.recorded.ledger import Row, Visit
from gradcli.recorded.result import Result
from gradcli.recorded.saved import saved_arrays
from gradcli.recorded.symbols.tree import Call, Choice, Constant, Name, Operation, Symbol
from gradcli.show.graph.labels import norm_text
from gradcli.show.graph.nodes import source_text
from gradcli.show.ledger_json import ledger_document
from gradcli.show.pictures.picture import Picture
from gradcli.show.result_json import number

LARGEST = 24
"""An array of more elements is shown by its shape and norm: a page stays small."""


def page_document(
    result: Result,
    rows: Sequence[Row],
    annotated: AnnotatedGraph,
    picture: Picture,
    moves: bool,
) -> dict[str, Any]:
    """The page of a backward pass; `moves` if another value of a leaf takes the same way.

    `steps` are those of the forward pass, in the order in which the nodes were made, and then those
    of the backward pass: the numbers of the ledger's rows that belong to each.
    """
    ledger = ledger_document(result, rows, write=_number)
    nodes = sorted(annotated.graph.nodes, key=lambda node: node.node.sequence_nr)
    leaves = [node for node in nodes if node.leaf is not None]
    others = [node for node in nodes if node.leaf is None]
    formulas = _formulas(rows)
    return {
        "title": picture.title,
        "moves": moves,
        "program": _program(nodes),
        "nodes": {node.id: _node(node, annotated) | formulas.get(node.id, {}) for node in nodes},
        "boxes": [list(box.nodes) for box in picture.boxes],
        "arrows": [list(arrow.edges) for arrow in picture.arrows],
        "forward": [node.id for node in (*leaves, *others)],
        "backward": _steps(ledger["rows"]),
        "seed": ledger["seed"],
        "rows": [_row(row) for row in ledger["rows"]],
    }


def _program(nodes: Sequence[GraphNode]) -> dict[str, Any]:
    """The text that most nodes come from, and its name."""
    sources = [node.place.source for node in nodes if node.place is not None]
    if not sources:
        return {"name": "", "lines": []}
    source = max(sources, key=sources.count)
    return {"name": source.name, "lines": source.text.rstrip("\n").split("\n")}


def _node(node: GraphNode, annotated: AnnotatedGraph) -> dict[str, Any]:
    shape, dtype = node.outputs[0]
    place = node.place
    value, gradient = annotated.value(node), annotated.gradient(node)
    entry: dict[str, Any] = {
        "name": node.name,
        "variable": node.variable,
        "source": source_text(node),
        "shape": list(shape),
        "dtype": dtype.name,
        "leaf": node.leaf is not None,
        "value": None if value is None else _number(value),
        "gradient": None if gradient is None else _number(gradient),
    }
    if place is not None:
        entry["line"] = place.line
    if node.module is not None:
        entry["module"] = node.module
    saved = {name: _number(array) for name, array in saved_arrays(node)}
    if saved:
        entry["saved"] = saved
    op: Op | None = getattr(node.node, "op", None)
    called = annotated.arguments(node)
    if op is not None and op.pointwise and not shape and called is not None:
        arguments = {
            k: each for k, each in called.items() if k not in op.inputs and each is not None
        }
        if all(map(_is_plain, arguments.values())):
            entry["op"] = op.name
            entry["inputs"] = list(op.inputs)
            entry["operands"] = [_operand(node, number) for number in range(len(node.edges))]
            entry["arguments"] = arguments
    return entry


def _operand(node: GraphNode, position: int) -> dict[str, Any]:
    """Where an operand's value comes from: a node, or a number."""
    edge = node.edges[position]
    if edge.node is not None:
        return {"node": edge.node.id}
    array = getattr(edge.constant, "array", edge.constant)
    value = array.item() if getattr(array, "ndim", 1) == 0 else array
    return {"value": value if _is_plain(value) else None}


def _is_plain(value: Any) -> bool:
    """Whether JavaScript computes with a value as it stands: JSON has no infinities and no NaN."""
    return isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value))


def _formulas(rows: Sequence[Row]) -> dict[int, dict[str, Any]]:
    """For each node the rule of each edge, to be computed anew: `None` where it cannot be."""
    rules_by_node: dict[int, dict[str, Any]] = {}
    for row in rows:
        if isinstance(row, Visit):
            rules = {share.number: _rule(share.formula) for share in row.shares}
            rules_by_node[row.node.id] = {"rules": rules}
    return rules_by_node


def _rule(symbol: Symbol | None) -> Any:
    """A formula as nested lists: a number, a name, or an operator or function and its operands."""
    if isinstance(symbol, Constant):
        return symbol.value if _is_plain(symbol.value) else None
    if isinstance(symbol, Name):
        return symbol.name
    if isinstance(symbol, Choice):
        parts: Sequence[Symbol] = (symbol.condition, symbol.then, symbol.otherwise)
        head = "if"
    elif isinstance(symbol, Operation):
        parts, head = symbol.operands, symbol.operator
    elif isinstance(symbol, Call):
        parts, head = symbol.arguments, symbol.function.removeprefix("torch.")
    else:
        return None
    operands = [_rule(part) for part in parts]
    return None if None in operands else [head, *operands]


def _steps(rows: Sequence[dict[str, Any]]) -> list[list[int]]:
    """The rows of each step: a node with its edges, or a sum."""
    steps: list[list[int]] = []
    for place, row in enumerate(rows):
        if row["kind"] in ("node", "meet", "leaf"):
            steps.append([])
        steps[-1].append(place)
    return steps


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what stands at its node."""
    return {key: value for key, value in row.items() if key not in _AT_NODE}


_AT_NODE = frozenset({"name", "variable", "source", "file", "line", "column"})


def _number(array: Any) -> Any:
    """An array as in the ledger, or its shape and norm where it is large."""
    if array.size > LARGEST:
        return {"shape": list(array.shape), "norm": norm_text(array)}
    return number(array)
