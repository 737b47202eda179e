"""The ledger of the chain rule as JSON, schema `gradcli.ledger/1`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.recorded.ledger import Row, Share, Visit, worked_element
from gradcli.recorded.result import Result
from gradcli.show.result_json import number, output_object, span_object

SCHEMA = "gradcli.ledger/1"

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
        "schema": SCHEMA,
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
