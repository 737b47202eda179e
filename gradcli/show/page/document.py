"""What a page that steps shows, as one JSON object: program, nodes, steps.

The steps of the backward pass are the rows of the ledger (`gradcli.ledger/1`), without what stands
at the nodes, and with shape and norm of large arrays.

It has how long the modules of a graph took, forward and backward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

from gradcli.autograd.graph import Graph, GraphNode
from gradcli.autograd.naming import ModuleCall
from gradcli.autograd.node import Node
from gradcli.autograd.recording.stopwatch import Stopwatch
from gradcli.record import Record
from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.recorded.ledger import Row, Visit
from gradcli.recorded.result import Result
from gradcli.recorded.saved import saved_arrays
from gradcli.recorded.symbols.tree import Call, Choice, Constant, Name, Operation, Symbol
from gradcli.show.graph.labels import norm_text
from gradcli.show.graph.nodes import source_text
from gradcli.show.ledger_json import ledger_document
from gradcli.show.page.computing import COARSE, MOST_COMPUTED, is_plain, recipe
from gradcli.show.pictures.picture import Arrow, Box, Path, Picture, module_name, own_parts
from gradcli.show.result_json import number
from gradcli.show.style import escaped

# --- times of modules ---------------------------------------------------------------------------


class Forward(Record):
    """A call of a module that made nodes of a graph.

    Attributes:
        path: the module's.
        around: those of the modules whose calls it was made in.
    """

    path: str
    around: Sequence[str]
    seconds: float


class Times(Record):
    """What a stopwatch measured of a graph.

    Attributes:
        backward: for each node the seconds of its steps in the last pass that ran it.
    """

    forward: Sequence[Forward] = ()
    backward: Mapping[Node, float] = MappingProxyType({})


def times_of(
    graph: Graph, watch: Stopwatch, calls: Mapping[Node, ModuleCall], paths: Mapping[int, str]
) -> Times:
    """The times of a graph.

    Args:
        calls: the innermost call of a module in which a node was made.
        paths: the paths of modules by their `id`.
    """
    nodes = [each.node for each in graph.nodes]
    forward: dict[ModuleCall, Forward] = {}
    for node in nodes:
        call = calls.get(node)
        while call is not None and call in watch.calls and call not in forward:
            chain = _chain(watch, call)
            own, *around = [paths.get(id(each.module), "") for each in chain]
            forward[call] = Forward(own, around, watch.calls[call].seconds)
            call = watch.calls[call].outer
    backward = {node: seconds for node in nodes if (seconds := watch.seconds(node)) is not None}
    return Times([*forward.values()], backward)


def _chain(watch: Stopwatch, call: ModuleCall | None) -> list[ModuleCall]:
    """A call and those that it was made in."""
    chain: list[ModuleCall] = []
    while call is not None:
        chain.append(call)
        call = watch.calls[call].outer if call in watch.calls else None
    return chain


# --- the document -------------------------------------------------------------------------------


LARGEST = 24
"""An array of more elements is shown by its shape and norm: a page stays small."""


def page_document(
    result: Result,
    rows: Sequence[Row],
    annotated: AnnotatedGraph,
    picture: Picture,
    unmoved: Mapping[int, str],
    times: Times,
    closed: Sequence[str] = (),
    expand: bool = False,
) -> dict[str, Any]:
    """The page of a backward pass.

    `forward` has the nodes in the order in which they were made, each leaf before the first that
    reads it; `backward` the steps of the backward pass: the numbers of the ledger's rows that
    belong to each.

    Args:
        unmoved: why other values of leaves cannot be tried, by the ids of their nodes; of 0, why
            none can.
        times: how long modules took.
        closed: the paths of modules that are to be closed.
        expand: whether all modules are to be open.
    """
    ledger = ledger_document(result, rows, write=_number)
    nodes = sorted(annotated.graph.nodes, key=lambda node: node.node.sequence_nr)
    order: dict[int, None] = {}
    for node in nodes:
        if node.leaf is None:
            read = [edge.node for edge in node.edges if edge.node is not None]
            order.update(dict.fromkeys(each.id for each in read if each.leaf is not None))
            order[node.id] = None
    order.update(dict.fromkeys(node.id for node in nodes))
    formulas = _formulas(rows)
    why = unmoved.get(0, "")
    return {
        "title": picture.title,
        "unmoved": why,
        "staying": {} if why else {**unmoved},
        "program": _program(nodes),
        "nodes": {
            node.id: _node(node, annotated)
            | ({} if why else _computed(node, annotated) | formulas.get(node.id, {}))
            for node in nodes
        },
        "boxes": [_box(box) for box in picture.boxes],
        "arrows": [_arrow(arrow) for arrow in picture.arrows],
        "modules": _modules(picture, annotated, times),
        "closed": list(closed),
        "expand": expand,
        "root": None if annotated.graph.root is None else annotated.graph.root.id,
        "output": annotated.graph.output_nr,
        "forward": [*order],
        "backward": _steps(ledger["rows"]),
        "seed": ledger["seed"],
        "rows": [_row(row) for row in ledger["rows"]],
    }


def _modules(picture: Picture, annotated: AnnotatedGraph, times: Times) -> dict[str, Any]:
    """Modules and groups of equal ones by their keys: title, path, and how long they took.

    The time of what has others inside is that of the calls into it: those made in them count once.
    """
    tree = picture.modules
    modules: dict[str, dict[str, Any]] = {
        _key(path): {"title": title, "path": module_name(path)}
        for path, title in tree.titles.items()
    }

    def keys(path: Path) -> dict[str, None]:
        every = [_key(path[:depth]) for depth in range(1, len(path) + 1)]
        return dict.fromkeys(each for each in every if each in modules)

    def add(key: str, **parts: float) -> None:
        for name, part in parts.items():
            modules[key][name] = modules[key].get(name, 0) + part

    for call in times.forward:
        around = [keys(tree.grouped(tuple(each.split(".")))) for each in call.around]
        for key in keys(tree.grouped(tuple(call.path.split(".")))):
            if not any(key in each for each in around):
                add(key, forward=call.seconds, calls=1)
    nodes = {each.id: each.node for each in annotated.graph.nodes}
    for box in picture.boxes:
        measured = [times.backward[nodes[id]] for id in box.nodes if nodes[id] in times.backward]
        for key in keys(box.module) if measured else ():
            add(key, backward=sum(measured))
    return modules


def _key(path: Path) -> str:
    """A path as the page's script knows it: what a page spells out is spelled out here too."""
    return escaped("/".join(own_parts(path)))


def _box(box: Box) -> dict[str, Any]:
    rows = [[[role, text] for role, text in row.pieces] for row in box.rows]
    return {
        "kind": box.kind,
        "rows": rows,
        "within": [_key(box.module[:depth]) for depth in range(1, len(box.module) + 1)],
        "nodes": list(box.nodes),
    }


def _arrow(arrow: Arrow) -> dict[str, Any]:
    return {
        "source": arrow.source,
        "target": arrow.target,
        "gradient": arrow.gradient,
        "kind": arrow.kind,
        "edges": list(arrow.edges),
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
    if len(node.outputs) > 1:
        entry["shapes"] = [list(shape) for shape, _ in node.outputs]
    if node.module is not None:
        entry["module"] = node.module
    saved = {name: _number(array) for name, array in saved_arrays(node)}
    if saved:
        entry["saved"] = saved
    return entry


def _computed(node: GraphNode, annotated: AnnotatedGraph) -> dict[str, Any]:
    """What a node is computed from; of a leaf its elements, where the page shows only a norm."""
    if node.leaf is None:
        return recipe(node, annotated)
    array = node.leaf.array
    elements = array.tolist() if array.dtype.kind == "f" else None
    return {"data": elements} if array.size > LARGEST and is_plain(elements) else {}


def too_much(nodes: Sequence[GraphNode]) -> str:
    """Why a page does not compute these nodes anew, "" where it does."""
    outputs = [output for node in nodes for output in node.outputs]
    count = sum(prod(shape) for shape, _ in outputs)
    if count > MOST_COMPUTED:
        elements = f"the tensors of the graph have {count:,} elements"
        return f"{elements}, and the page computes {MOST_COMPUTED:,}"
    other = next((dtype.name for _, dtype in outputs if dtype.name in COARSE), None)
    return f"a browser does not round to {other}" if other else ""


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
        return symbol.value if is_plain(symbol.value) else None
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
