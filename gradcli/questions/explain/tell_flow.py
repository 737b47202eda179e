"""The flow of gradients through a model as text, and as JSON, schema `gradcli.flow/1`; and the
gradients that parameters have.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.arrays.files.json import spelled
from gradcli.questions.explain.flow import Flow
from gradcli.show.diagnostics.human import wrapped

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


_WIDTH = 20

_COLUMNS = ("gradient", "norm", "min", "max", "zeros", "NaN, inf")


def gradients_table(gradients: Sequence[tuple[str, Any]], ascii: bool = False) -> str:
    """A line for each named array, the bar as long as its norm beside the largest."""
    rows = [(name, *_numbers(np.asarray(array))) for name, array in gradients]
    largest = max((row[1] for row in rows if np.isfinite(row[1])), default=0.0)
    table = [_COLUMNS, *((row[0], *(f"{n:.4g}" for n in row[1:4]), *row[4:]) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_COLUMNS))]
    bars = ["", *(_bar(row[1] / largest if largest else 0.0, ascii) for row in rows)]
    lines = []
    for line, bar in zip(table, bars, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        lines.append("  ".join([*cells, bar]).rstrip())
    return "\n".join(lines) + "\n"


def _numbers(array: Any) -> tuple[float, float, float, str, str]:
    """Norm, smallest and largest element, the shares of zeros and of what is not finite."""
    values = np.abs(array) if array.dtype.kind == "c" else array
    values = values.astype(np.float64).ravel()
    if not values.size:
        return 0.0, float("nan"), float("nan"), "", ""
    zeros, rest = (values == 0).mean(), (~np.isfinite(values)).mean()
    norm = float(np.linalg.norm(values))
    least, most = float(values.min()), float(values.max())
    return norm, least, most, share_text(float(zeros)), share_text(float(rest))


def _bar(share: float, ascii: bool) -> str:
    if not np.isfinite(share):
        return ""
    eighths = round(share * _WIDTH * 8)
    if ascii:
        return "#" * max(eighths // 8, share > 0)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
