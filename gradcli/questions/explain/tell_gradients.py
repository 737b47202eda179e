"""Gradients beside each other: norm, range, zeros and what is not finite, and a bar each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.questions.explain.tell_flow import share_text

_WIDTH = 20

_HEAD = ("gradient", "norm", "min", "max", "zeros", "NaN, inf")


def gradients_table(gradients: Sequence[tuple[str, Any]], ascii: bool = False) -> str:
    """A line for each named array, the bar as long as its norm beside the largest."""
    rows = [(name, *_numbers(np.asarray(array))) for name, array in gradients]
    largest = max((row[1] for row in rows if np.isfinite(row[1])), default=0.0)
    table = [_HEAD, *((row[0], *(f"{n:.4g}" for n in row[1:4]), *row[4:]) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEAD))]
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
