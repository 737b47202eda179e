"""`plot(losses)` and `sparkline(losses)`: a picture in the terminal in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.errors import type_error, value_error
from gradcli.language.drawing import Plot, panel
from gradcli.language.events import Plotted, Sparkline
from gradcli.language.objects.repr import display
from gradcli.language.objects.types import type_name
from gradcli.library.drawing.arguments import numbers, words_of
from gradcli.library.drawing.axes import Axes
from gradcli.state import active

_KINDS: dict[str, Callable[..., Any]] = {
    "line": Axes.plot,
    "points": Axes.scatter,
    "bars": Axes.bar,
    "histogram": Axes.hist,
    "image": Axes.imshow,
}


def plot(
    values: tuple[Any, ...], named: dict[str, Any], title: str, kind: str, file: str | None
) -> None:
    """Draw values: along their numbers, or the second along the first; named ones with a legend.

    Raises E202, E204 for what cannot be drawn.
    """
    if kind not in _KINDS:
        raise value_error(f"there is no kind of plot {display(kind)}", help=", ".join(_KINDS))
    if file is not None and not isinstance(file, str):
        raise type_error(f"plot() takes the name of a file, not {type_name(file)}")
    if not values and not named:
        raise type_error("plot() takes values: a list of numbers, or a tensor")
    if len(values) == 1 and isinstance(values[0], dict):
        named = {words_of(name): each for name, each in values[0].items()}
        values = ()
    drawn = Plot(720.0, 400.0, [panel()])
    axes = Axes(None, drawn.panels[0])
    with _values_alone():
        if values:
            _draw(axes, values, kind)
        for name, each in named.items():
            _draw(axes, (each,), kind, label=name)
    axes.panel.legend = bool(named)
    axes.panel.title = words_of(title)
    active.state.emit(Plotted(drawn, file, asked=True))


@contextmanager
def _values_alone() -> Iterator[None]:
    """A value is drawn, whatever its graph."""
    state = active.state
    before, state.grad_enabled = state.grad_enabled, False
    try:
        yield
    finally:
        state.grad_enabled = before


def _draw(axes: Axes, values: tuple[Any, ...], kind: str, **looks: Any) -> None:
    """Draw one set of values; points and bars have numbers for their places."""
    if kind in ("points", "bars") and len(values) == 1:
        values = (list(range(numbers(values[0], "plot()").size)), *values)
    _KINDS[kind](axes, *values, **({} if kind == "image" else looks))


def sparkline(values: Any) -> None:
    """Print a line of bars with the first and the last of the values."""
    with _values_alone():
        bars = numbers(values, "sparkline()").ravel()
    active.state.emit(Sparkline(bars))
