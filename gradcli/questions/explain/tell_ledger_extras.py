"""What `explain` adds to the ledger when asked: kinks, paths, and saved values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.arrays.printing import format_elements
from gradcli.autograd.graph import GraphNode
from gradcli.questions.explain.kinks import Kink
from gradcli.questions.explain.paths import Paths
from gradcli.recorded.names import Operands
from gradcli.recorded.saved import Saved, SavedValues
from gradcli.show.result_json import number
from gradcli.show.style import block

WIDTH = 80


# --- kinks ----------------------------------------------------------------------------------------


def ties_text(kinks: Sequence[Kink], left_out: Sequence[GraphNode], operands: Operands) -> str:
    """Every element on a kink or a tie, under the words of the convention, and the nodes that are
    not examined.
    """
    lines: list[str] = []
    if not kinks:
        lines.append(f"no element{' of the other nodes' * bool(left_out)} is on a kink or a tie")
    heading = ""
    for tie in kinks:
        title = f"{operands.text(tie.node)}  {tie.node.name}: {tie.convention}"
        if title != heading:
            lines.append(title)
            heading = title
        others = " or ".join(map(_short, tie.others))
        choice = f"; another choice gives {others}" if others else ""
        place = _operand(tie, operands) + (
            f"[{', '.join(map(str, tie.index))}]" if tie.index else ""
        )
        lines.append(f"    {place} = {_short(tie.value)} gets {_short(tie.used)}{choice}")
    lines += [f"{operands.text(node)}  {node.name}: not examined" for node in left_out]
    return "\n".join(lines)


def _operand(tie: Kink, operands: Operands) -> str:
    inputs = tie.node.node.op.inputs
    edge = tie.node.edges[inputs.index(tie.parameter)]
    if edge.node is None:
        return tie.parameter
    text = operands.text(edge.node, edge.output_nr)
    return text if all(c.isalnum() or c in "_#" for c in text) else f"({text})"


def ties_document(kinks: Sequence[Kink]) -> list[dict[str, Any]]:
    """The kinks as JSON."""
    return [
        {
            "node": tie.node.id,
            "operand": tie.parameter,
            "index": list(tie.index),
            "value": tie.value,
            "convention": tie.convention,
            "used": tie.used,
            "others": list(tie.others),
        }
        for tie in kinks
    ]


# --- paths ----------------------------------------------------------------------------------------


def paths_text(paths: Paths, name: str, operands: Operands) -> str:
    """Each path with its share, and their sum."""
    count = len(paths.paths)
    if not count:
        return f"no path leads to {name}"
    lines = [f"{count} path{'s lead' if count > 1 else ' leads'} to {name}:"]
    for position, path in enumerate(paths.paths, 1):
        names = " → ".join(
            f"{operands.text(node)} [{edge}]"
            for node, edge in zip(path.nodes, path.edges, strict=False)
        )
        lines += _wrapped(f"{position}. ".rjust(5), [*names.split(" → "), name])
        lines.append(block("     share ", _value(path.share)))
    grad = paths.leaf.grad
    agrees = grad is not None and _close(paths.total, grad.array)
    same = f", which is {name}.grad" if agrees else ""
    lines.append(block("     sum   ", _value(paths.total)) + same)
    for index in paths.cancelled[:5]:
        place = f"[{', '.join(map(str, index))}]" if index else "the value"
        shares = " + ".join(_short(float(path.share[index])) for path in paths.paths[:4])
        more = " + …" if count > 4 else ""
        left = _short(float(paths.total[index]))
        lines.append(f"     cancellation at {place}: {shares}{more} leaves {left}")
    return "\n".join(lines)


def _wrapped(lead: str, words: Sequence[str]) -> list[str]:
    """A path on lines of 80 columns, if no word is longer."""
    lines = [lead + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines.append(" " * len(lead) + f"→ {word}")
        else:
            lines[-1] += f" → {word}"
    return lines


def paths_document(paths: Paths) -> dict[str, Any]:
    """The paths as JSON."""
    return {
        "paths": [
            {
                "nodes": [node.id for node in path.nodes],
                "edges": list(path.edges),
                "share": number(path.share),
            }
            for path in paths.paths
        ],
        "sum": number(paths.total),
        "cancelled": [list(index) for index in paths.cancelled],
    }


def _close(left: Any, right: Any) -> bool:
    import numpy as np

    return bool(np.allclose(left, right, rtol=1e-4, atol=1e-6, equal_nan=True))


# --- saved values ---------------------------------------------------------------------------------


def saved_text(saved: SavedValues, operands: Operands) -> str:
    """What each node saved, in the order in which backward frees it."""
    if not saved.values:
        return "no node saved anything"
    rows = [_saved_row(value, operands) for value in saved.values]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["saved for the backward pass, in the order in which it is freed:"]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(("    " + "  ".join(cells)).rstrip())
    if any(path for path, _ in saved.by_module):
        lines += ["", "by the module that saved it, what only the graph keeps:"]
        width = max(len(path or _OUTSIDE) for path, _ in saved.by_module)
        lines += [
            f"    {(path or _OUTSIDE).ljust(width)}  {_bytes(size).rjust(8)}"
            f"  {size / max(saved.peak, 1):4.0%}"
            for path, size in saved.by_module
        ]
    lines.append(f"peak: {_bytes(saved.peak)} that only the graph keeps, when backward begins")
    return "\n".join(lines)


_OUTSIDE = "outside of all"
"""Stands for a module where none saved a value."""


def _saved_row(value: Saved, operands: Operands) -> list[str]:
    shape = ", ".join(map(str, value.array.shape))
    if value.held_by:
        note = f"is {value.held_by}, which keeps it"
    elif value.shared:
        note = "saved above already"
    else:
        note = f"freed after step {value.step}" if value.step else "kept"
    return [
        operands.text(value.node),
        value.node.name,
        value.name,
        f"({shape}) {value.array.dtype.name}",
        _bytes(int(value.array.nbytes)),
        note,
    ]


def saved_document(saved: SavedValues) -> dict[str, Any]:
    """The saved values as JSON."""
    return {
        "values": [
            {
                "node": value.node.id,
                "name": value.name,
                "shape": list(value.array.shape),
                "dtype": value.array.dtype.name,
                "bytes": int(value.array.nbytes),
                "held_by": value.held_by,
                "shared": value.shared,
                "freed_after_step": value.step or None,
            }
            for value in saved.values
        ],
        "by_module": [{"module": path, "bytes": size} for path, size in saved.by_module],
        "peak_bytes": saved.peak,
    }


# --- numbers --------------------------------------------------------------------------------------


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB"):
        count_in_unit = count / 1000
        if count_in_unit < 1000 or unit == "GB":
            return f"{count_in_unit:.1f} {unit}"
        count = int(count_in_unit)
    raise AssertionError


def _short(value: float) -> str:
    return f"{value:.6g}"


def _value(array: Any) -> str:
    return format_elements(array) if array.size <= 24 else f"of shape {tuple(array.shape)}"
