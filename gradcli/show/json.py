"""Results as JSON, schema `gradcli.result/1`, and the ledger of the chain rule, schema
`gradcli.ledger/1`.

Numbers are never shortened; those that JSON has no number for are the strings "NaN", "Infinity" and
"-Infinity", and a complex number is an object of `real` and `imag`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.arrays.files.json import spelled
from gradcli.autograd.graph import Edge, Graph, GraphNode
from gradcli.autograd.recording.recorder import Accumulation, Arrival, Event
from gradcli.autograd.tensor import Tensor
from gradcli.errors import GradcliError, Span
from gradcli.recorded.ledger import Row, Share, Visit, worked_element
from gradcli.recorded.result import Gradient, Result
from gradcli.show.diagnostics import human
from gradcli.show.diagnostics.json import error_object
from gradcli.show.style import escaped

if TYPE_CHECKING:
    from gradcli.recorded.annotated_graph import AnnotatedGraph

SCHEMA = "gradcli.result/1"


def document(
    result: Result | None,
    printed: str = "",
    *,
    steps: bool = False,
    values: AnnotatedGraph | None = None,
) -> dict[str, Any]:
    """A run as a JSON object.

    Args:
        printed: what the program printed.
        steps: whether the steps of the backward pass are listed.
        values: the graph's numbers: each node has its value and its gradient.
    """
    run_object: dict[str, Any] = {"schema": SCHEMA}
    if printed:
        run_object["printed"] = printed
    if result is None:
        return {**run_object, "outputs": [], "gradients": [], "nodes": []}
    run_object["outputs"] = [output_object(result)]
    if result.seed is not None:
        run_object["seed"] = number(result.seed.array)
    run_object["gradients"] = [_gradient(gradient) for gradient in result.gradients]
    run_object["nodes"] = [_node(node) for node in result.graph.nodes]
    if values is not None:
        for node, each in zip(result.graph.nodes, run_object["nodes"], strict=True):
            value, gradient = values.value(node), values.gradient(node)
            each["value"] = None if value is None else number(value)
            each["gradient"] = None if gradient is None else number(gradient)
    if steps:
        run_object["steps"] = [_event(event, result.graph) for event in result.events]
    return run_object


def failed(error: GradcliError) -> dict[str, Any]:
    """A run that an error ended as a JSON object."""
    return {"schema": SCHEMA, "error": error_object(error)}


def marked(run_object: dict[str, Any], record: int) -> dict[str, Any]:
    """A run's object with the number of the record that it belongs to."""
    return {"schema": SCHEMA, "record": record, **run_object}


def text(value: dict[str, Any], *, compact: bool = False) -> str:
    """A JSON object as text with a line end, on one line if `compact`."""
    indent = None if compact else 2
    spelled_out = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"
    if spelled_out.isascii() or spelled_out == escaped(spelled_out):
        return spelled_out
    # A lone surrogate, or what a terminal would obey: JSON spells those out itself.
    return json.dumps(value, allow_nan=False, indent=indent) + "\n"


def number(array: Any) -> Any:
    """An array as nested lists of numbers, a 0-dim one as a number."""
    return spelled(array.tolist()) if array.dtype.kind in "fcV" else array.tolist()


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {
        "value": number(tensor.array),
        "shape": list(tensor.array.shape),
        "dtype": tensor.dtype.name,
    }


def output_object(result: Result) -> dict[str, Any]:
    """The output of a run as a JSON object."""
    root = result.graph.root
    return {
        "name": result.name,
        **_tensor(result.output),
        "requires_grad": result.output.requires_grad,
        "node": None if root is None else root.id,
        "output_nr": result.graph.output_nr,
    }


def _gradient(gradient: Gradient) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": gradient.name, "kind": gradient.kind, "node": gradient.node}
    if gradient.tensor.grad is None:
        entry["value"] = None
    else:
        entry.update(_tensor(gradient.tensor.grad))
    if gradient.reason:
        entry["reason"] = gradient.reason
    return entry


def _node(node: GraphNode) -> dict[str, Any]:
    outputs = [{"shape": list(shape), "dtype": dtype.name} for shape, dtype in node.outputs]
    entry: dict[str, Any] = {
        "id": node.id,
        "name": node.name,
        "variable": node.variable,
        **({} if node.module is None else {"module": node.module}),
        **span_object(node.place),
        **outputs[0],
    }
    if len(outputs) > 1:
        entry["outputs"] = outputs
    if node.leaf is not None:
        entry["value"] = number(node.leaf.array)
    entry["next"] = [_edge(edge) for edge in node.edges]
    return entry


def span_object(span: Span | None) -> dict[str, Any]:
    """Source text and its position, as entries of a JSON object."""
    entries = human.span_object(span)
    if span is None:
        del entries["file"]
    return entries


def _edge(edge: Edge) -> dict[str, Any]:
    if edge.node is not None:
        return {"node": edge.node.id, "output_nr": edge.output_nr}
    entry: dict[str, Any] = {"node": None, "output_nr": edge.output_nr}
    if isinstance(edge.constant, Tensor):
        entry["constant"] = number(edge.constant.array)
    elif isinstance(edge.constant, (int, float, complex)):
        entry["constant"] = spelled(edge.constant)
    return entry


def _event(event: Event, graph: Graph) -> dict[str, Any]:
    node = graph.find(event.node)
    head = {"node": None if node is None else node.id, "name": event.node.node_name}
    if isinstance(event, (Accumulation, Arrival)):
        return {
            "kind": "accumulate" if isinstance(event, Accumulation) else "leaf",
            **head,
            "old": None if event.old is None else number(event.old),
            "incoming": number(event.incoming),
            "new": number(event.new),
        }
    return {
        "kind": "node",
        **head,
        "gradients_in": [None if g is None else number(g) for g in event.grads],
        "gradients_out": [None if g is None else number(g) for g in event.fitted],
    }


LEDGER_SCHEMA = "gradcli.ledger/1"

Write = Callable[[Any], Any]
"""What writes an array as JSON."""


def ledger_document(
    result: Result,
    rows: Sequence[Row],
    element: tuple[int, ...] | None = None,
    write: Write = number,
) -> dict[str, Any]:
    """The ledger as a JSON object: its rows in the order in which the pass ran.

    A row is of a `kind`: `node` (a node ran), `edge` (a share of it), `sum_to` (a share summed to
    the operand's shape), `cast` (to its dtype), `meet` (gradients added where they met), `leaf` (a
    gradient that reached a leaf).

    Args:
        element: the element of every share to work out besides.
        write: how arrays are written: whole by default.
    """

    def written(array: Any) -> Any:
        return None if array is None else write(array)

    row_objects: list[dict[str, Any]] = []
    for row in rows:
        if isinstance(row, Visit):
            row_objects += _visit(row, element, written)
        else:
            row_objects.append(
                {
                    "kind": "leaf" if row.arrived else "meet",
                    "node": row.node.id,
                    "variable": row.node.variable,
                    "old": written(row.old),
                    "incoming": written(row.incoming),
                    "new": written(row.new),
                }
            )
    return {
        "schema": LEDGER_SCHEMA,
        "output": output_object(result),
        "seed": None if result.seed is None else write(result.seed.array),
        "rows": row_objects,
    }


def _visit(visit: Visit, element: tuple[int, ...] | None, write: Write) -> list[dict[str, Any]]:
    node = visit.node
    rows: list[dict[str, Any]] = [
        {
            "kind": "node",
            "node": node.id,
            "name": node.name,
            "variable": node.variable,
            **span_object(node.place),
            "gradients_in": [write(grad) for grad in visit.grads],
        }
    ]
    for share in visit.shares:
        rows += _share(visit, share, element, write)
    return rows


def _share(
    visit: Visit, share: Share, element: tuple[int, ...] | None, write: Write
) -> list[dict[str, Any]]:
    assert share.edge.node is not None
    head = {"node": visit.node.id, "edge": share.number, "to": share.edge.node.id}
    row: dict[str, Any] = {
        "kind": "edge",
        **head,
        "output_nr": share.edge.output_nr,
        "operand": share.operand,
        "formula": None if share.formula is None else repr(share.formula),
        "named": None if share.named is None else repr(share.named),
        "derivative": share.left or None,
        "local": write(share.local),
        "product": write(share.product),
    }
    if element is not None and share.product is not None:
        worked = worked_element(visit, share, element)
        if worked is not None:
            row["element"] = {
                "index": list(worked.index),
                "terms": [[write(grad), write(factor)] for grad, factor in worked.terms],
                "left_out": worked.left_out,
                "value": write(worked.value),
            }
    rows = [row]
    if share.is_summed:
        shapes = {"from": list(share.product.shape), "shape": list(share.passed.shape)}
        rows.append({"kind": "sum_to", **head, **shapes, "value": write(share.passed)})
    if share.is_cast:
        names = {"from": share.product.dtype.name, "dtype": share.passed.dtype.name}
        rows.append({"kind": "cast", **head, **names, "value": write(share.passed)})
    return rows
