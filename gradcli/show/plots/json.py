"""A plot as JSON of the schema `gradcli.plot/1`."""

from __future__ import annotations

from typing import Any

from gradcli.arrays.files.json import spelled
from gradcli.language.drawing import Mark, Panel, Plot, bounds
from gradcli.show.result_json import number

SCHEMA = "gradcli.plot/1"


def plot_document(plot: Plot) -> dict[str, Any]:
    """A figure as an object: its panels, each with what is drawn in it."""
    return {
        "schema": SCHEMA,
        "title": plot.title,
        "width": plot.width,
        "height": plot.height,
        "panels": [_panel(each) for each in plot.panels],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    axes = [
        {
            "label": panel.labels[axis],
            "limits": list(map(float, bounds(panel, axis))),
            "scale": "log" if panel.logarithmic[axis] else "linear",
        }
        for axis in (0, 1)
    ]
    return {
        "cell": list(panel.cell),
        "title": panel.title,
        "x": axes[0],
        "y": axes[1],
        "marks": [_mark(each) for each in panel.marks],
    }


def _mark(mark: Mark) -> dict[str, Any]:
    style = {
        name: spelled(value) if isinstance(value, float) else value
        for name, value in mark.style.items()
        if value is not None
    }
    numbers = {name: number(array) for name, array in mark.numbers.items()}
    return {
        "kind": mark.kind,
        "label": mark.label,
        "color": mark.color,
        "style": style,
        **numbers,
    }
