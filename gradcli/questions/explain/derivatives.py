"""Tables of derivatives: the Jacobian of an output, the gradients of its rows, the Hessian;
as text, and as JSON, schema `gradcli.derivatives/1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.arrays.backend import to_host
from gradcli.autograd.engine.backward import grad
from gradcli.autograd.tensor import Tensor
from gradcli.errors import value_error
from gradcli.record import Record
from gradcli.show.result_json import number

JACOBIAN, ROWS, HESSIAN = "jacobian", "rows", "hessian"

KINDS = (JACOBIAN, ROWS, HESSIAN)


class Table(Record):
    """The derivatives of what rows name by what columns name.

    Attributes:
        of, by: what is differentiated, and the input that it is differentiated by.
        values: of shape (rows, columns).
        after: the input that it was differentiated by before, for second derivatives.
    """

    of: str
    by: str
    rows: list[str]
    columns: list[str]
    values: Any
    after: str = ""

    def turned(self) -> Table:
        """The table with a row for each element of the input: denominator layout."""
        return Table(self.of, self.by, self.columns, self.rows, self.values.T, self.after)


def tables(kind: str, output: Tensor, name: str, leaves: Mapping[str, Tensor]) -> list[Table]:
    """The tables of one of `KINDS`, one for each input, for a Hessian one for each pair of them.

    Args:
        name: what the output is called.

    Raises:
        GradcliError: E204 for a Hessian of an output of several elements, and for rows of one
            without dimensions.
    """
    if kind == HESSIAN:
        return _hessian(output, name, leaves)
    shape = tuple(output.array.shape)
    if kind == ROWS and not shape:
        raise value_error(
            f"{name} is one number, and has no rows",
            help="ask for what its sum or mean is taken of: `--of NAME`",
        )
    if kind == ROWS:
        seeds = [_row(output.array, row) for row in range(shape[0])]
        rows = [f"{name}[{row}]" for row in range(shape[0])]
    else:
        seeds, rows = _unit_seeds(output.array), labels(name, shape)
    gradients = _gradients(output, list(leaves.values()), seeds)
    return [
        Table(name, by, rows, labels(by, tuple(leaf.array.shape)), values)
        for (by, leaf), values in zip(leaves.items(), gradients, strict=True)
    ]


def _hessian(output: Tensor, name: str, leaves: Mapping[str, Tensor]) -> list[Table]:
    if output.array.size != 1:
        raise value_error(
            f"a Hessian is that of one number, and {name} has the shape"
            f" {tuple(output.array.shape)}",
            help="take the sum of it, or one element: `y[0]`",
        )
    inputs = list(leaves.values())
    seed = Tensor(np.ones_like(to_host(output.array)))
    firsts = grad(output, inputs, seed, create_graph=True, allow_unused=True)
    computed = []
    for (of, leaf), first in zip(leaves.items(), firsts, strict=True):
        size = leaf.array.size
        seconds = [np.zeros((size, other.array.size), leaf.array.dtype) for other in inputs]
        if first is not None and first.requires_grad:
            seconds = _gradients(first, inputs, _unit_seeds(first.array))
        rows = labels(of, tuple(leaf.array.shape))
        for (by, other), values in zip(leaves.items(), seconds, strict=True):
            columns = labels(by, tuple(other.array.shape))
            computed.append(Table(name, by, rows, columns, values, of))
    return computed


def labels(name: str, shape: tuple[int, ...]) -> list[str]:
    """The elements of a tensor by name and index: `w[1,2]`; the name alone of one number."""
    if not shape:
        return [name]
    return [f"{name}[{','.join(map(str, index))}]" for index in np.ndindex(shape)]


def _unit_seeds(array: Any) -> list[Any]:
    seeds = np.eye(array.size, dtype=array.dtype)
    return [seed.reshape(array.shape)[()] for seed in seeds]


def _row(array: Any, row: int) -> Any:
    seed = np.zeros_like(to_host(array))
    seed[row] = 1
    return seed


def _gradients(output: Tensor, inputs: list[Tensor], seeds: list[Any]) -> list[Any]:
    """For each input the gradients from all seeds, each as a row; zeros where none arrives."""
    rows = [np.zeros((len(seeds), leaf.array.size), leaf.array.dtype) for leaf in inputs]
    for place, seed in enumerate(seeds):
        gradients = grad(output, inputs, Tensor(seed), retain_graph=True, allow_unused=True)
        for values, gradient in zip(rows, gradients, strict=True):
            if gradient is not None:
                values[place] = np.asarray(to_host(gradient.array)).reshape(-1)
    return rows


# --- told -----------------------------------------------------------------------------------------


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
