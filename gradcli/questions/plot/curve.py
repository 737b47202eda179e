"""The curve of a function of one number, its derivative, and the tangent at a point; also as JSON
of the schema `gradcli.plot/1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.arrays.files.json import spelled
from gradcli.errors import GradcliError, Source, type_error
from gradcli.language.drawing import Mark, Panel, Plot, bounds, panel
from gradcli.language.parser.parser import parse_program
from gradcli.record import Record
from gradcli.recorded.ledger import bracketed
from gradcli.running.arguments.files import write_text
from gradcli.running.arguments.words import UsageError
from gradcli.running.lookup import missing_inputs
from gradcli.running.plots import text_of
from gradcli.running.process.progress import watched
from gradcli.running.rerun import Executed, Rerun
from gradcli.show.json import number, text
from gradcli.show.plots.svg import svg

if TYPE_CHECKING:
    from gradcli.running.source import Asked


POINTS = 201
"""Places at which a function is computed unless another number is given."""

MOST_POINTS = 10_000

_POLE = 5.0
"""Values this many times further out than most are those of a pole."""

_NEAR = 1.5
"""How far out values are shown where there is a pole, in ranges of most of them."""

_DEFAULT = (-5.0, 5.0)
"""The range of the one input that has no value."""


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


def is_program(word: str) -> bool:
    """Whether a word behind the program is another one, `z = cos(x)` or `cos(x)`, rather than a
    value that was typed with blanks, `a = 3`.
    """
    name, equals, value = word.partition("=")
    if not equals or not name.replace(":const", "").isidentifier():
        computed = value if name.strip().isidentifier() else word
        return any(each.isalpha() for each in computed)
    return False


class Curve(Record):
    """A function that is drawn: a program, and the output that it is the values of.

    Attributes:
        of: the name of the output, None for the tensor assigned last.
        label: what it is called where its output has no name.
    """

    text: str
    of: str | None
    label: str
    points: list[Point]
    tangents: list[Point]
    name: str = ""


def curves_of(asked: Asked, further: Sequence[str]) -> list[Curve]:
    """The curves that are asked for: one for each program, which may read what those before it
    assign, or for each name of `--of`.
    """
    texts = [asked.program.text(), *further]
    whole = "\n".join(texts)
    if asked.options.of is not None:
        return [Curve(whole, name.strip(), "f", [], []) for name in asked.options.of.split(",")]
    several = len(texts) > 1
    return [
        Curve("\n".join(texts[: at + 1]), None, text.strip() if several else "f", [], [])
        for at, text in enumerate(texts)
    ]


def missing_range(asked: Asked, curves: Sequence[Curve]) -> Range:
    """The range of the one input that nothing gives a value.

    Raises:
        UsageError: there is none, or more than one.
        GradcliError: E001 for a program that cannot be read.
    """
    statements = parse_program(Source(asked.program.name, curves[-1].text))
    names = [*missing_inputs(statements, [each.name for each in asked.arguments])]
    if len(names) == 1:
        return Range(names[0], *_DEFAULT, POINTS)
    without = f"; without a value are {', '.join(names)}" if names else ""
    raise UsageError(f"`gradcli plot` needs one input with a range, such as x=-2:2{without}")


def show_curves(
    asked: Asked,
    curves: Sequence[Curve],
    wanted: Range,
    at: Sequence[float],
    height: tuple[float, float] | None = None,
) -> int:
    """Run programs at each place of a range and show what they compute; the exit code.

    Args:
        height: the lowest and the highest value that is shown, None for what the curves ask for.
    """
    places = np.linspace(wanted.low, wanted.high, wanted.points).tolist()
    reruns = [_rerun(asked, curve) for curve in curves]
    count = (len(places) + len(at)) * len(curves)
    try:
        with watched(
            asked.terminal, lambda: f"{sum(each.runs for each in reruns)} of {count} places"
        ):
            for curve, rerun in zip(curves, reruns, strict=True):
                _compute(asked, curve, rerun, wanted.name, places, at)
    except GradcliError as error:
        asked.terminal.error(error)
        return error.exit_code
    drawn = _drawn(curves, wanted.name)
    drawn.limits[1] = height or drawn.limits[1]
    plot = Plot(720.0, 440.0, [drawn])
    _show(asked, plot, curves, wanted.name)
    return 0


def _rerun(asked: Asked, curve: Curve) -> Rerun:
    options = copy(asked.options)
    options.of = curve.of
    return Rerun(asked.terminal, curve.text, asked.program.name, asked.arguments, options)


def _compute(
    asked: Asked,
    curve: Curve,
    rerun: Rerun,
    name: str,
    places: Sequence[float],
    at: Sequence[float],
) -> None:
    """Find the values and slopes of a curve at the places of a range, and where it has tangents."""
    for points, values in ((places, curve.points), (at, curve.tangents)):
        for x in points:
            executed = rerun.execute(values={name: np.float64(x)}, dtype=_dtype(asked))
            curve.name = executed.name or curve.name
            values.append(_point(executed, name, x))
    curve.name = curve.name or curve.label


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


def _drawn(curves: Sequence[Curve], x: str) -> Panel:
    """The panel with the curves, their derivatives and tangents; of several curves each has a
    colour with what belongs to it.
    """
    drawn = panel()
    drawn.labels[0] = x
    drawn.legend = drawn.grid = True
    whole = {"alpha": 1.0, "marker": "", "size": 6.0}
    values = []
    for order, curve in enumerate(curves):
        own, slope, touching = ["C0", "C1", "C2"] if len(curves) == 1 else [f"C{order}"] * 3
        xs = np.array([each.x for each in curve.points])
        ys = np.array([each.y for each in curve.points])
        slopes = np.array([each.slope for each in curve.points])
        values += [ys, slopes]
        solid, dashed = whole | {"width": 1.8, "dash": "solid"}, {"width": 1.3, "dash": "dashed"}
        drawn.marks.append(Mark("line", {"x": xs, "y": ys}, own, solid, curve.name))
        name = f"d{bracketed(curve.name)}/d{x}"
        drawn.marks.append(Mark("line", {"x": xs, "y": slopes}, slope, whole | dashed, name))
        for each in curve.tangents:
            ends = np.array([xs[0], xs[-1]])
            line = {"x": ends, "y": each.y + each.slope * (ends - each.x)}
            style = whole | {"width": 1.2, "dash": "solid"}
            said = f"tangent at {each.x:g}"
            told = said if len(curves) == 1 else f"{curve.name}: {said}"
            drawn.marks.append(Mark("line", line, touching, style, told))
            place = {"x": np.array([each.x]), "y": np.array([each.y])}
            dot = {"marker": "o", "alpha": 1.0, "size": 36.0}
            drawn.marks.append(Mark("points", place, touching, dot))
    every = np.concatenate(values)
    shown = _clipped(every)
    # Neither a steep tangent nor a pole may flatten the curve.
    if curves[0].tangents or shown.size < np.isfinite(every).sum():
        drawn.limits[1] = _limits(shown)
    return drawn


def _clipped(values: Any) -> Any:
    """The finite values without those near a pole, which lie many times further out than most."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return finite
    low, middle, high = np.quantile(finite, [0.1, 0.5, 0.9])
    distance, most = np.abs(finite - middle), max(high - low, 1e-300)
    near = finite[distance <= _POLE * most]
    # Few values may lie far out without a pole, as those of a polynomial do at its ends.
    return finite[distance <= _NEAR * most] if np.ptp(finite) > _POLE * np.ptp(near) else finite


def _limits(values: Any) -> tuple[float, float] | None:
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() == finite.max():
        return None
    room = 0.08 * float(finite.max() - finite.min())
    return float(finite.min()) - room, float(finite.max()) + room


def _show(asked: Asked, plot: Plot, curves: Sequence[Curve], x: str) -> None:
    """Print the plot, or write it to the file that was asked for."""
    options = asked.options
    if options.output is not None:
        as_json = options.output.endswith(".json")
        write_text(options.output, text(plot_document(plot)) if as_json else svg(plot))
        asked.terminal.wrote(options.output, ", ".join(each.name for each in curves))
    if options.json:
        asked.terminal.write(text(plot_document(plot)))
    elif options.output is None:
        asked.terminal.write(text_of(plot, asked.terminal.style))
    for curve in () if options.json else curves:
        for each in curve.tangents:
            slope = f"d{bracketed(curve.name)}/d{x} = {each.slope:.6g}"
            asked.terminal.write(f"at {x} = {each.x:g}: {curve.name} = {each.y:.6g}, {slope}\n")


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
