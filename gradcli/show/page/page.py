"""The page that steps, in one file: its document, picture, style and script.

The document is one JSON object: program, nodes, steps. The steps of the backward pass are the rows
of the ledger (`gradcli.ledger/1`), without what stands at the nodes, and with shape and norm of
large arrays. It has how long the modules of a graph took, forward and backward; and what is needed
to compute a node anew for other values of the leaves (`compute.js`): the operation, where its
operands come from, and its arguments.

An operation that only moves elements needs no formula there: run on the numbers of the elements, it
says itself where each of its own comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from math import isfinite, prod
from types import MappingProxyType
from typing import Any

import numpy as np

from gradcli.autograd.graph import Graph, GraphNode, ModuleCall
from gradcli.autograd.node import Node
from gradcli.autograd.recording.stopwatch import Stopwatch
from gradcli.autograd.recording.trace_recorder import Call as RecordedCall
from gradcli.autograd.tensor import Tensor
from gradcli.ops.definition.op import Op
from gradcli.record import Record
from gradcli.recorded.annotated_graph import AnnotatedGraph, saved_arrays
from gradcli.recorded.ledger import Row, Visit
from gradcli.recorded.result import Result
from gradcli.recorded.symbols.tree import Call, Choice, Constant, Name, Operation, Symbol
from gradcli.show.graph.labels import norm_text
from gradcli.show.graph.nodes import source_text
from gradcli.show.json import ledger_document, number
from gradcli.show.pictures.picture import Arrow, Box, Path, Picture, module_name, own_parts
from gradcli.show.pictures.svg import STYLE
from gradcli.show.style import escaped

# --- computing a node anew ------------------------------------------------------------------------


MOST_COMPUTED = 20_000
"""Of nodes with more elements in all the page does not compute anew: it would not keep up."""

COARSE = ("float16", "bfloat16")
"""The dtypes whose rounding not every browser knows."""

MOVING = {
    *("alias", "diagonal", "expand", "permute", "select", "slice", "split", "split_with_sizes"),
    *("squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view", "_reshape_alias"),
    *("_unsafe_view", "reshape", "flatten", "clone", "contiguous", "_to_copy", "cat", "stack"),
    *("embedding", "index", "index_select", "gather", "take", "flip", "roll", "tril", "triu"),
    *("repeat", "constant_pad_nd"),
}
"""The operations each of whose elements is an element of an operand, or zero."""


COMPARING = {
    "gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!=",
    "logical_and": "&", "logical_or": "|", "logical_not": "~",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_not": "~",
}  # fmt: skip
"""The operations that make conditions, with the operators that the page computes them by."""

CHOOSING = ("where", "masked_fill")
"""The operations in which a condition may be one that the page computes anew."""


def comparisons(calls: Iterable[RecordedCall]) -> dict[int, RecordedCall]:
    """The calls among these that made a condition, by the `id` of what came out."""
    return {id(each.output): each for each in calls if each.op.name.partition(".")[0] in COMPARING}


def recipe(node: GraphNode, annotated: AnnotatedGraph) -> dict[str, Any]:
    """How a node is computed from its operands; empty where the page cannot be told.

    `op` is the operation, `inputs` what its rules call the operands, `operands` where these come
    from, `order` the names of all that it was called with, in its order, `arguments` those that
    are no operands, tensors among them as `{"tensor": …}` and conditions that leaves decide as
    `{"compare": …}`; `places` of a moving operation has for
    each output the number of the operands' element behind each of its own, from 1, and 0 for a
    zero.
    """
    op: Op | None = getattr(node.node, "op", None)
    arguments = annotated.arguments(node)
    if op is None or arguments is None:
        return {}
    known = {
        "op": op.name.partition(".")[0],
        "inputs": [*op.inputs],
        "order": [name for name, value in arguments.items() if value is not None],
        "operands": [_operand(node, number, arguments) for number in range(len(node.edges))],
    }
    if known["op"] in MOVING:
        places = _places(node, op, arguments)
        return {} if places is None else {**known, "arguments": {}, "places": places}
    own = {
        name: _condition(value, annotated) or _argument(value)
        for name, value in arguments.items()
        if name not in (*op.inputs, *op.lists) and value is not None
    }
    return {**known, "arguments": own} if all(map(is_plain, own.values())) else {}


def _operand(node: GraphNode, position: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Where an operand's value comes from: an output of a node, or numbers; empty for one that is
    not given.
    """
    edge, op = node.edges[position], node.node.op
    if not op.lists and arguments.get(op.inputs[position]) is None:
        return {}
    if edge.node is not None:
        return {"node": edge.node.id, "output": edge.output_nr}
    value = _argument(edge.constant)
    return {"value": value if is_plain(value) else None}


def _condition(value: Any, annotated: AnnotatedGraph) -> dict[str, Any] | None:
    """A condition that leaves decide, as the page computes it: its operator and its operands, like
    those of a node or conditions; None for what is none.
    """
    call = annotated.comparisons.get(id(value))
    if call is None or not _is_decided(value, annotated):
        return None
    operands = [_compared(each, annotated) for each in call.arguments.values()]
    return {"compare": COMPARING[call.op.name.partition(".")[0]], "operands": operands}


def _is_decided(value: Any, annotated: AnnotatedGraph) -> bool:
    """Whether a value is one with a gradient, or a condition that such values decide."""
    call = annotated.comparisons.get(id(value))
    if call is None:
        return type(value) is Tensor and value.requires_grad
    return any(_is_decided(each, annotated) for each in call.arguments.values())


def _compared(value: Any, annotated: AnnotatedGraph) -> dict[str, Any]:
    """An operand of a condition; `value` is None where the graph does not have it."""
    condition = _condition(value, annotated)
    if condition is not None or not _is_decided(value, annotated):
        known = _argument(value)
        return condition or {"value": known if is_plain(known) else None}
    for node in annotated.graph.nodes:
        if node.leaf is value or (value.grad_fn is not None and node.node is value.grad_fn):
            return {"node": node.id, "output": value.output_nr}
    return {"value": None}


def _argument(value: Any) -> Any:
    """An argument as JSON has it: a tensor with its shape, for it may be empty; a record by its
    fields.
    """
    array = _array(value)
    if getattr(array, "ndim", None) is not None:
        few = array.size <= MOST_COMPUTED and array.dtype.kind in "biuf"
        return {"tensor": np.asarray(array).tolist() if few else None, "shape": [*array.shape]}
    if isinstance(value, Record):
        fields = {name: _argument(getattr(value, name)) for name in value.fields}
        return {name: each for name, each in fields.items() if each is not None}
    return [*map(_argument, value)] if isinstance(value, (tuple, list)) else value


def is_plain(value: Any) -> bool:
    """Whether JavaScript computes with a value as it stands: JSON has no infinities and no NaN."""
    if isinstance(value, (list, dict)):
        return all(map(is_plain, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (bool, int, str)) or (isinstance(value, float) and isfinite(value))


def _places(node: GraphNode, op: Op, arguments: Mapping[str, Any]) -> list[list[int]] | None:
    """For each output of an operation that moves elements the numbers of those that it takes; None
    where it does anything else.
    """
    if op.name == "embedding" and (arguments["padding_idx"] or -1) >= 0:
        return None  # its rows get no gradient
    if op.name == "constant_pad_nd" and arguments["value"]:
        return None
    numbered: list[Any] = []
    count = 0
    for edge in node.edges:
        shape = (
            edge.node.outputs[edge.output_nr][0] if edge.node else np.shape(_array(edge.constant))
        )
        size = prod(shape)
        numbered.append(np.arange(count + 1, count + size + 1, dtype=np.float64).reshape(shape))
        count += size
    if op.name == "_to_copy":
        return [[*range(1, count + 1)]]  # another dtype need not have the numbers
    operands: list[Any] = [
        numbered
        if name in op.lists
        else numbered[op.inputs.index(name)]
        if name in op.inputs
        else _plain_arrays(arguments[name])
        for name in op.parameters
    ]
    outputs = op.forward(*operands)
    parts = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return [np.asarray(part).astype(np.int64).ravel().tolist() for part in parts]


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value


def _plain_arrays(value: Any) -> Any:
    """An argument with arrays for its tensors, as a forward function takes it."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain_arrays, value))
    return _array(value)


# --- the page -------------------------------------------------------------------------------------


# --- the document ---------------------------------------------------------------------------------


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


# --- the page -------------------------------------------------------------------------------------


_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{title}</h1>
<p>made by gradcli; ← → step, Home and End leap, space plays, / finds, + − 0 zoom, a click opens \
a module</p></header>
<nav aria-label="Steps">
<div class="keys">
<button id="first" type="button" aria-label="First step">{first}</button>
<button id="back" type="button" aria-label="Step back">{back}</button>
<button id="play" type="button">Play</button>
<button id="forward" type="button" aria-label="Step forward">{forward}</button>
<button id="last" type="button" aria-label="Last step">{last}</button>
</div>
<label class="speed">Speed <select id="speed"><option value="0.5">½</option>\
<option value="1" selected>1</option><option value="3">3</option><option value="10">10</option>\
<option value="30">30</option></select> / s</label>
<div class="rail"><input id="step" type="range" min="0" value="0" aria-label="Step"></div>
<span id="count" role="status"></span>
</nav>
<main>
<div class="panel">
<section class="card first" aria-label="Program"><h2>Program</h2>
<pre id="program" tabindex="0" aria-label="Lines of the program"></pre></section>
<section class="card now" aria-label="This step"><h2>This step</h2>
<ul id="rows" class="rows mono" aria-live="polite"></ul></section>
<section id="inputs" class="card inputs" aria-label="Inputs"><h2>Inputs</h2>
<p class="hint">Drag or type a number: both passes are computed anew.</p></section>
<section class="card detail" aria-label="Details"><h2 id="what">Details</h2>
<div id="node" aria-live="polite"><p class="hint">Point at a box, an arrow or a name of the \
program, or move there with Tab.</p></div></section>
</div>
<figure class="card" aria-label="Graph">
<div class="canvas" tabindex="0" aria-label="Graph, which can be scrolled">
<svg id="picture" role="group" aria-label="Backward graph of {name}"></svg></div>
<figcaption><span><i></i>value, forward</span><span><i class="up"></i>gradient, back</span>
<span><i class="leaf"></i>leaf</span>
<input id="find" type="search" placeholder="Find a name" aria-label="Find a name in the graph">
<span class="zoom"><button id="open" type="button">Open all</button>
<button id="close" type="button">Close all</button>
<button id="out" type="button" aria-label="Smaller">−</button>
<button id="fit" type="button">Fit</button>
<button id="in" type="button" aria-label="Larger">+</button></span></figcaption>
</figure>
</main>
<section class="sheet"><h2>All steps</h2><ol id="sheet" class="rows mono"></ol></section>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""

_SCRIPTS = ("layout.js", "drawing.js", "tensors.js", "linear.js", "compute.js", "page.js")
"""The parts of the script, each of which uses those before it."""

_ICONS = {
    "first": "M2 2h2v12H2zM14 2v12L5 8z",
    "back": "M12 2v12L3 8z",
    "forward": "M4 2l9 6-9 6z",
    "last": "M12 2h2v12h-2zM2 2l9 6-9 6z",
}


def page(document: dict[str, Any]) -> str:
    """The page of what `page_document` gives, as HTML."""
    # Inside a script element only `<` could end it.
    data = json.dumps(_spelled(document), allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    return _TEMPLATE.format(
        title=escape(escaped(f"Backward pass of {document['title']}")),
        name=escape(escaped(document["title"])),
        style=f"{STYLE}{_part('page.css')}",
        script="".join(map(_part, _SCRIPTS)),
        data=data,
        **{
            name: f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{d}"/></svg>'
            for name, d in _ICONS.items()
        },
    )


def _spelled(value: Any) -> Any:
    """A document whose texts cannot turn the direction of what stands around them."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {key: _spelled(each) for key, each in value.items()}
    return [*map(_spelled, value)] if isinstance(value, list) else value


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
