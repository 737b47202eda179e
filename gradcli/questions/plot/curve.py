"""The curve of a function of one number, its derivative, and the tangent at a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.errors import GradcliError, type_error
from gradcli.language.drawing import Mark, Panel, Plot, panel
from gradcli.record import Record
from gradcli.running.arguments.files import write_text
from gradcli.running.arguments.words import UsageError
from gradcli.running.plots import text_of
from gradcli.running.process.progress import watched
from gradcli.running.rerun import Executed, Rerun
from gradcli.show.plots.json import plot_document
from gradcli.show.plots.svg import svg
from gradcli.show.result_json import text

if TYPE_CHECKING:
    from gradcli.running.source import Asked

POINTS = 201
"""Places at which a function is computed unless another number is given."""

MOST_POINTS = 10_000

_POLE = 5.0
"""Values this many times further out than most are those of a pole."""


class Range(Record):
    """A range of an input: `x=-2:2`, or with a number of places, `x=-2:2:50`."""

    name: str
    low: float
    high: float
    points: int


class Point(Record):
    """A function at a place: its value and its derivative."""

    x: float
    y: float
    slope: float


def read_range(word: str) -> Range | None:
    """A word as a range, None if it is none; raises a usage error for a range that is empty."""
    name, equals, value = word.partition("=")
    parts = value.split(":")
    if not equals or not name.isidentifier() or len(parts) not in (2, 3):
        return None
    try:
        low, high = float(parts[0]), float(parts[1])
        points = int(parts[2]) if len(parts) == 3 else POINTS
    except ValueError:
        return None
    if not low < high or not np.isfinite([low, high]).all():
        raise UsageError(f"{word}: a range runs from a number to a larger one")
    if not 2 <= points <= MOST_POINTS:
        raise UsageError(f"{word}: a range has 2 to {MOST_POINTS:,} places")
    return Range(name, low, high, points)


def read_height(word: str) -> tuple[float, float]:
    """The lowest and the highest value to be shown, `-5:5`."""
    low, _, high = word.partition(":")
    try:
        limits = float(low), float(high)
    except ValueError:
        raise UsageError(f"--ylim {word}: two numbers are needed, as in --ylim=-5:5") from None
    if not limits[0] < limits[1] or not np.isfinite(limits).all():
        raise UsageError(f"--ylim {word}: it runs from a number to a larger one")
    return limits


def show_curve(
    asked: Asked, wanted: Range, at: Sequence[float], height: tuple[float, float] | None = None
) -> int:
    """Run a program at each place of a range and show what it computes; the exit code.

    Args:
        height: the lowest and the highest value that is shown, None for what the curve asks for.
    """
    name, program = asked.program.name, asked.program.text()
    rerun = Rerun(asked.terminal, program, name, asked.arguments, asked.options)
    points: list[Point] = []
    tangents: list[Point] = []
    called = ""
    places = np.linspace(wanted.low, wanted.high, wanted.points).tolist()
    try:
        with watched(asked.terminal, lambda: f"{rerun.runs} of {len(places) + len(at)} places"):
            for number, x in enumerate([*places, *at]):
                executed = rerun.execute(values={wanted.name: np.float64(x)}, dtype=_dtype(asked))
                called = executed.name or called
                found = points if number < len(places) else tangents
                found.append(_point(executed, wanted.name, x))
    except GradcliError as error:
        asked.terminal.error(error)
        return error.exit_code
    drawn = _drawn(points, tangents, wanted.name, called or "f")
    drawn.limits[1] = height or drawn.limits[1]
    plot = Plot(720.0, 440.0, [drawn])
    _show(asked, plot, tangents, (wanted.name, called or "f"))
    return 0


def _dtype(asked: Asked) -> str:
    """Differences of close values need the digits, unless others are asked for."""
    return asked.options.dtype or "float64"


def _point(executed: Executed, name: str, x: float) -> Point:
    """The value and the slope that a run found; raises E202 for an output of several elements."""
    output = executed.output
    if output is None or output.array.size != 1:
        shape = "no tensor" if output is None else f"a tensor of shape {tuple(output.array.shape)}"
        raise type_error(
            f"a curve has one number for each {name}, and the program computes {shape}",
            help="choose one: --of NAME, or `y.sum()`",
        )
    slope = float("nan")
    if output.requires_grad:
        found = executed.gradients(np.ones_like(output.array))
        slope = float(found[name].item()) if name in found else 0.0
    return Point(x, float(np.real(output.array.item())), slope)


def _drawn(points: Sequence[Point], tangents: Sequence[Point], x: str, y: str) -> Panel:
    """The panel with the curve, its derivative and the tangents."""
    made = panel()
    made.labels[0] = x
    made.legend = made.grid = True
    xs = np.array([each.x for each in points])
    ys = np.array([each.y for each in points])
    slopes = np.array([each.slope for each in points])
    whole = {"alpha": 1.0, "marker": "", "size": 6.0}
    curve = whole | {"width": 1.8, "dash": "solid"}
    made.marks.append(Mark("line", {"x": xs, "y": ys}, "C0", curve, y))
    dashed = whole | {"width": 1.3, "dash": "dashed"}
    made.marks.append(Mark("line", {"x": xs, "y": slopes}, "C1", dashed, f"d{y}/d{x}"))
    for each in tangents:
        ends = np.array([xs[0], xs[-1]])
        line = {"x": ends, "y": each.y + each.slope * (ends - each.x)}
        style = whole | {"width": 1.2, "dash": "solid"}
        made.marks.append(Mark("line", line, "C2", style, f"tangent at {each.x:g}"))
        place = {"x": np.array([each.x]), "y": np.array([each.y])}
        made.marks.append(Mark("points", place, "C2", {"marker": "o", "alpha": 1.0, "size": 36.0}))
    values = _clipped(np.concatenate([ys, slopes]))
    # Neither a steep tangent nor a pole may flatten the curve.
    if tangents or values.size < np.isfinite([*ys, *slopes]).sum():
        made.limits[1] = _limits(values)
    return made


def _clipped(values: Any) -> Any:
    """The finite values without those near a pole, which lie many times further out than most."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return finite
    low, middle, high = np.quantile(finite, [0.1, 0.5, 0.9])
    room = _POLE * max(high - low, 1e-300)
    near = finite[np.abs(finite - middle) <= room]
    # Few values may lie far out without a pole, as those of a polynomial do at its ends.
    return near if np.ptp(finite) > _POLE * np.ptp(near) else finite


def _limits(values: Any) -> tuple[float, float] | None:
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() == finite.max():
        return None
    room = 0.08 * float(finite.max() - finite.min())
    return float(finite.min()) - room, float(finite.max()) + room


def _show(asked: Asked, plot: Plot, tangents: Sequence[Point], names: tuple[str, str]) -> None:
    """Print the plot, or write it to the file that was asked for."""
    x, y = names
    options = asked.options
    if options.output is not None:
        as_json = options.output.endswith(".json")
        write_text(options.output, text(plot_document(plot)) if as_json else svg(plot))
    if options.json:
        asked.terminal.write(text(plot_document(plot)))
    elif options.output is None:
        asked.terminal.write(text_of(plot, asked.terminal.style))
    if not options.json:
        for each in tangents:
            value = f"{y} = {each.y:.6g}, d{y}/d{x} = {each.slope:.6g}"
            asked.terminal.write(f"at {x} = {each.x:g}: {value}\n")
