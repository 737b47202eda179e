"""The flow of gradients through a model as text, and as JSON, schema `gradcli.flow/1`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcli.arrays.files.json import spelled
from gradcli.questions.explain.flow import Flow
from gradcli.show.diagnostics.findings import wrapped

SCHEMA = "gradcli.flow/1"

_HEAD = ("parameter", "shape", "norm", "gain", "zeros", "NaN, inf")


_MOST_LOST = 4
"""So many parameters of a model that all get no gradient have a line each."""


def flow_text(rows: Sequence[Flow], said: str) -> str:
    """A table with a line for each parameter, or one for a model of which none gets a gradient, and
    what is wrong with the flow.
    """
    if not rows:
        return "the program has no module with parameters\n"
    table: list[tuple[str, ...]] = [_HEAD]
    for model, group in itertools.groupby(rows, lambda row: row.name.partition(".")[0]):
        parameters = list(group)
        reasons = {row.reason for row in parameters}
        if len(parameters) > _MOST_LOST and len(reasons) == 1 and parameters[0].norm is None:
            none = f"None: {parameters[0].reason}"
            table.append((model, f"all {len(parameters)}", none))
        else:
            table += [_cells(row) for row in parameters]
    widths = [max(len(line[n]) for line in table if len(line) == len(_HEAD)) for n in range(6)]
    widths[:2] = [max(len(line[n]) for line in table) for n in range(2)]
    lines = []
    for line in table:
        shown = "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=False))
        lines.append(shown.rstrip())
    return "\n".join([*lines, *(["", wrapped(said)] if said else [])]) + "\n"


def _cells(row: Flow) -> tuple[str, ...]:
    shape = f"[{', '.join(map(str, row.shape))}]"
    if row.norm is None:
        return row.name, shape, f"None: {row.reason}"
    gain = "" if row.gain is None else f"× {row.gain:.3g}"
    return (
        row.name,
        shape,
        f"{row.norm:.4g}",
        gain,
        share_text(row.zeros),
        share_text(row.nonfinite),
    )


def share_text(share: float) -> str:
    """A share in per cent, "" for none."""
    return "" if not share else f"{100 * share:.3g}%"


def flow_document(rows: Sequence[Flow], said: str) -> dict[str, Any]:
    """The rows as a JSON object."""
    return {
        "schema": SCHEMA,
        "finding": said or None,
        "parameters": [
            {
                "name": row.name,
                "shape": list(row.shape),
                "norm": None if row.norm is None else spelled(row.norm),
                "gain": None if row.gain is None else spelled(row.gain),
                "zeros": row.zeros,
                "nonfinite": row.nonfinite,
                "reason": row.reason or None,
            }
            for row in rows
        ],
    }
