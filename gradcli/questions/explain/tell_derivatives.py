"""Tables of derivatives as text, and as JSON, schema `gradcli.derivatives/1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.questions.explain.derivatives import Table
from gradcli.show.result_json import number

SCHEMA = "gradcli.derivatives/1"


def tables_text(tables: Sequence[Table]) -> str:
    """The tables, one below the other, with the elements that they are of in their margins."""
    return "\n".join(map(_text, tables))


def _text(table: Table) -> str:
    corner = f"∂{table.of}/∂{table.by}"
    if table.after:
        corner = f"∂²{table.of}/∂{table.after}∂{table.by}"
    cells = [[f"{value:.6g}" for value in row] for row in table.values.tolist()]
    grid = [
        [corner, *table.columns],
        *([label, *row] for label, row in zip(table.rows, cells, strict=True)),
    ]
    widths = [max(len(line[place]) for line in grid) for place in range(len(grid[0]))]
    lines = []
    for head, *rest in grid:
        shown = (text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))
        lines.append("  ".join([head.ljust(widths[0]), *shown]).rstrip())
    return "\n".join(lines) + "\n"


def tables_document(kind: str, layout: str, tables: Sequence[Table]) -> dict[str, Any]:
    """The tables as a JSON object."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "layout": layout,
        "tables": [
            {
                "of": table.of,
                "by": [table.after, table.by] if table.after else table.by,
                "rows": table.rows,
                "columns": table.columns,
                "values": number(table.values),
            }
            for table in tables
        ],
    }
