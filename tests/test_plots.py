"""Plots: the document that programs draw, its text, its SVG, its JSON; and `gradcli plot`."""

from __future__ import annotations

import json
import math
import re
import struct
import sys
import xml.etree.ElementTree as ET
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.errors import GradcliError
from gradcli.language.drawing import Mark, Plot, bounds, panel
from gradcli.language.events import Plotted, Sparkline
from gradcli.questions.plot.curve import plot_document
from gradcli.session import Session
from gradcli.show.plots.scales import Scale, heights, segments, ticks_of
from gradcli.show.plots.svg import png, svg
from gradcli.show.plots.text import DOTS, kind_of, plot_text, sparkline
from gradcli.show.style import Style
from tests.running import invoke

TUTORIALS = sorted((Path(__file__).parent / "programs" / "plots").glob("*.grad"))

HEAD = "import matplotlib.pyplot as plt\nimport torch\nimport numpy as np\n"


def drawn(text: str, **settings: Any) -> list[Plot]:
    """The plots that a program shows or saves."""
    found: list[Plot] = []

    def emit(event: Any) -> None:
        if isinstance(event, Plotted):
            found.append(event.plot)

    for _ in Session(emit, **settings).run(f"{HEAD}{text}", "program"):
        pass
    return found


def mark_of(text: str) -> Mark:
    """The first thing that a program draws."""
    return drawn(f"{text}\nplt.show()")[0].panels[0].marks[0]


# --- the document ---------------------------------------------------------------------------------

MARKS: dict[str, tuple[str, dict[str, Any]]] = {
    "plt.plot([1, 4, 9])": ("line", {"x": [0, 1, 2], "y": [1, 4, 9]}),
    "plt.plot([0, 1], [2., 3.], 'r--o')": ("line", {"x": [0, 1], "y": [2, 3]}),
    "plt.plot(torch.arange(3), np.array([1, 2, 3]))": ("line", {"x": [0, 1, 2], "y": [1, 2, 3]}),
    "plt.plot([[1, 2], [3, 4]])": ("line", {"x": [0, 1], "y": [1, 3]}),
    "plt.plot(5, 6, 'ko')": ("line", {"x": [5], "y": [6]}),
    "plt.semilogy([1, 10])": ("line", {"y": [1, 10]}),
    "plt.step([0, 1, 2], [5, 6, 7])": ("line", {"x": [0, 0, 1, 1, 2], "y": [5, 6, 6, 7, 7]}),
    "plt.vlines([1, 2], 0, 3)": ("line", {"x": [1, 1, 1, 2, 2, 2]}),
    "plt.scatter([1, 2], [3, 4], s=9, c=[5, 6])": ("points", {"x": [1, 2], "value": [5, 6]}),
    "plt.bar(['a', 'b'], [3, 4])": (
        "bars", {"x0": [-0.4, 0.6], "x1": [0.4, 1.4], "y0": [0, 0], "y1": [3, 4]},
    ),
    "plt.barh([0, 1], [3, 4], left=1)": ("bars", {"x0": [1, 1], "x1": [4, 5]}),
    "plt.hist([0, 0, 1, 3], bins=3)": ("bars", {"y1": [2, 1, 1], "x0": [0, 1, 2]}),
    "plt.fill_between([0, 1], [1, 2], 0)": ("area", {"low": [1, 2], "high": [0, 0]}),
    "plt.axvline(2)": ("rule", {"at": [2]}),
    "plt.imshow([[1, 2], [3, 4]])": ("image", {"values": [[1, 2], [3, 4]], "x0": [-0.5]}),
    "plt.imshow(torch.zeros(2, 2, 3))": ("image", {"values": np.zeros((2, 2, 3)).tolist()}),
    "plt.pcolormesh([0, 1, 2], [0, 1], [[5, 6]])": ("image", {"x0": [0], "x1": [2]}),
    "plt.contour([[0, 1], [1, 2]], levels=[1])": ("contour", {"levels": [1], "x": [0, 1]}),
    "X, Y = torch.meshgrid(torch.arange(3.), torch.arange(2.))\nplt.contourf(X, Y, X + 10 * Y)": (
        "contour", {"x": [0, 1, 2], "y": [0, 1], "z": [[0, 1, 2], [10, 11, 12]]},
    ),
    "plt.text(1, 2, 'here')": ("text", {"x": [1], "y": [2]}),
    "plt.annotate('p', xy=(1, 2), xytext=(3, 4))": ("text", {"x": [3], "y": [4]}),
    "plt.errorbar([1, 2], [3, 4], yerr=0.5)": ("line", {"y": [3, 4]}),
    "fig, ax = plt.subplots()\nline, = ax.plot([1])\nline.set_ydata([7])": ("line", {"y": [7]}),
    "plt.subplots(2, 2)[1][0, 1].plot([3])\nplt.gcf().axes[0].plot([8])": ("line", {"y": [8]}),
}  # fmt: skip


@pytest.mark.parametrize("text", MARKS, ids=range(len(MARKS)))
def test_what_is_drawn_is_numbers(text: str) -> None:
    kind, numbers = MARKS[text]
    mark = mark_of(text)
    assert mark.kind == kind
    assert {name: mark.numbers[name].tolist() for name in numbers} == numbers


STYLES: dict[str, dict[str, Any]] = {
    "plt.plot([1], 'r--o', lw=3)": {"color": "C3", "dash": "dashed", "marker": "o", "width": 3.0},
    "plt.plot([1], color='#abc', ls=':')": {"color": "#aabbcc", "dash": "dotted"},
    "plt.plot([1], '.')": {"color": "C0", "dash": "none", "marker": "."},
    "plt.plot([1], c='k', alpha=0.5, label='$x^2$')": {"color": "ink", "alpha": 0.5, "label": "x²"},
    "plt.plot([1], 'C3-', marker='s', ms=4)": {"color": "C3", "marker": "s", "size": 4.0},
    "plt.scatter([1], [1], c='tab:green', marker='^')": {"color": "C2", "marker": "^"},
    "plt.scatter([1], [1], color=(1, 0, 0))": {"color": "#ff0000"},
    "plt.bar([1], [2], color='0.5')": {"color": "#808080"},
    "plt.imshow([[1]], cmap=plt.cm.gray, vmin=0, vmax=2)": {"map": "gray", "low": 0.0, "high": 2.0},
}


@pytest.mark.parametrize("text", STYLES, ids=range(len(STYLES)))
def test_how_it_looks(text: str) -> None:
    mark = mark_of(text)
    found = {"color": mark.color, "label": mark.label, **mark.style}
    assert {name: found[name] for name in STYLES[text]} == STYLES[text]


def test_titles_limits_and_ticks() -> None:
    plot = drawn(
        "fig, (a, b) = plt.subplots(1, 2, figsize=(8, 3))\n"
        "a.set(title='T', xlabel='X', ylim=(0, 5))\n"
        "a.plot([1, 2], label='one')\na.legend(['two'])\n"
        "b.set_xscale('log')\nb.set_xlim(1, 100)\nb.set_xticks([1, 10], ['one', 'ten'])\n"
        "b.axis('off')\nb.invert_yaxis()\nfig.suptitle('S')\nplt.show()"
    )[0]
    left, right = plot.panels
    assert (plot.title, plot.width, plot.height, plot.grid) == ("S", 800.0, 300.0, (1, 2))
    assert (left.title, left.labels[0], bounds(left, 1), left.legend) == (
        "T",
        "X",
        (0.0, 5.0),
        True,
    )
    assert left.marks[0].label == "two"
    assert (right.logarithmic, right.hidden, bounds(right, 1)) == ([True, False], True, (1.0, 0.0))
    assert right.ticks[0] == [(1.0, "one"), (10.0, "ten")]


def test_figures_are_kept_until_they_are_shown_or_closed() -> None:
    assert len(drawn("plt.figure()\nplt.figure()\nplt.show()\nplt.show()")) == 2
    assert drawn("plt.figure()\nplt.figure()\nplt.close('all')\nplt.show()") == []
    plots = drawn("for i in range(80):\n    plt.plot([i])\nplt.show()")  # a loop that is compiled
    assert [mark.numbers["y"].tolist() for mark in plots[0].panels[0].marks] == [
        [number] for number in range(80)
    ]


ERRORS = {
    "plt.plot([1, 2], [1, 2, 3])": "x and y must have same first dimension",
    "plt.plot([1], 'qq')": "not a valid format string",
    "plt.plot([1], color='nocolor')": "not a valid value for color",
    "plt.plot(torch.ones(2, requires_grad=True))": "requires grad",
    "plt.plot(plt)": "not module",
    "plt.scatter([1, 2], [1, 2], s=[1, 2, 3])": "same size as x and y",
    "plt.imshow([1, 2])": "Invalid shape (2,) for image data",
    "plt.hist([1], bins=10**9)": "bins",
    "plt.subplot(2, 2, 5)": "1 <= num <= 4",
    "plt.subplots(0)": "positive",
    "plt.subplots(10**5, 10**5)": "too many",
    "plt.figure(figsize=(-1, 2))": "positive",
    "plt.contour([[1, 2]])": "do not fit",
    "plt.savefig(3)": "name of a file",
    "plt.xscale('foo')": "not a valid value for scale",
    "plt.get_cmap('foo')": "cmap",
    "plt.plot.__globals__": "__globals__",
    "plot()": "takes values",
    "plot([1], kind='pie')": "kind of plot",
    "plot('text')": "convert string",
    "sparkline({})": "takes numbers",
}


@pytest.mark.parametrize("text", ERRORS, ids=range(len(ERRORS)))
def test_what_cannot_be_drawn_is_said(text: str) -> None:
    if not ERRORS[text]:
        drawn(text)
        return
    with pytest.raises(GradcliError) as caught:
        drawn(text)
    assert caught.value.code not in ("E209", "E901")
    assert ERRORS[text] in caught.value.message


def test_drawing_is_charged() -> None:
    from gradcli.limits import Limits

    with pytest.raises(GradcliError, match="more than 10,000"):
        drawn("x = torch.zeros(10**6)\nwhile True:\n    plt.plot(x)", limits=Limits(steps=10_000))


# --- scales and contours ------------------------------------------------------------------------

TICKS = {
    (0.0, 10.0, False, 5): ["0", "2", "4", "6", "8", "10"],
    (-1.05, 1.05, False, 4): ["-1", "0", "1"],
    (0.0, 0.3, False, 6): ["0.00", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30"],
    (0.0, 3e7, False, 3): ["0", "1e7", "2e7", "3e7"],
    (0.0, 2e-6, False, 2): ["0", "1e-6", "2e-6"],
    (1e-4, 100.0, True, 8): ["1e-4", "0.001", "0.01", "0.1", "1", "10", "100"],
    (1.0, 30.0, True, 6): ["1", "2", "5", "10", "20"],
    (5.0, 1.0, False, 4): ["1", "2", "3", "4", "5"],
    (1e300, 1.0000001e300, False, 3): None,
}


@pytest.mark.parametrize("case", TICKS)
def test_ticks_are_round_numbers(case: tuple[float, float, bool, int]) -> None:
    low, high, logarithmic, most = case
    found = ticks_of(panel(), 0, Scale(low, high, logarithmic), most)
    assert all(-1e-6 <= share <= 1 + 1e-6 for share, _ in found)
    if TICKS[case] is not None:
        assert [text for _, text in found] == TICKS[case]


def test_contours_lie_where_the_heights_say() -> None:
    x, y = np.linspace(-2, 2, 41), np.linspace(-1.5, 1.5, 31)
    z = x[None, :] ** 2 + y[:, None] ** 2
    ends = segments(x, y, z, 1.0).reshape(-1, 2)
    assert len(ends) > 100
    assert np.abs(np.hypot(*ends.T) - 1).max() < 2e-3
    bilinear = 2 * x[None, :] + 3 * y[:, None] + x[None, :] * y[:, None]
    at_x, at_y = np.array([-1.93, 0.012]), np.array([0.77, 5.0])
    found = heights(x, y, bilinear, at_x, at_y)
    assert found[0] == pytest.approx(2 * at_x + 3 * 0.77 + at_x * 0.77)
    assert np.isnan(found[1]).all()


def test_a_saddle_is_cut_at_two_corners() -> None:
    ends = segments(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([[1.0, 0], [0, 1]]), 0.5)
    assert ends.shape == (2, 2, 2)


def test_pixels_become_a_png() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    data = png(pixels)
    assert data[16:24] == struct.pack(">II", 3, 2)
    length = struct.unpack(">I", data[33:37])[0]
    lines = zlib.decompress(data[41 : 41 + length])
    assert lines == b"\0" + pixels[0].tobytes() + b"\0" + pixels[1].tobytes()


# --- SVG ------------------------------------------------------------------------------------------


def checked_svg(text: str) -> ET.Element:
    """An SVG that is well formed, loads nothing, runs nothing, and holds no NaN."""
    root = ET.fromstring(text)
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        assert tag in {"svg", "title", "style", "rect", "path", "g", "clipPath", "text", "circle",
                       "image"}  # fmt: skip
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert not re.search(r"\b(nan|inf)\b", value)
            if name == "href":
                assert value.startswith("data:image/png;base64,")
                b64decode(value.partition(",")[2], validate=True)
    return root


def words(root: ET.Element) -> list[str]:
    return [each.text or "" for each in root.iter() if each.tag.endswith("}text")]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_leave_a_picture(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = path.read_text("utf-8").replace("plt.show()", "plt.savefig('out.svg')\nplt.show()")
    Path("tutorial.py").write_text(text, "utf-8")
    finished = invoke("run", "tutorial.py")
    assert finished.code == 0, finished.stderr
    root = checked_svg(Path("out.svg").read_text("utf-8"))
    said = words(root)
    for quoted in re.findall(r"(?:title|label)s?\(?=?\(?\"([^\"$]+)\"", text):
        assert quoted in said or quoted == "probability"
    assert sum(each.tag.endswith(("}path", "}circle", "}rect")) for each in root.iter()) > 30


def test_every_kind_of_mark_is_drawn_everywhere() -> None:
    for text in MARKS:
        for grid in ("", "plt.xscale('log')\nplt.yscale('log')\nplt.grid()\nplt.colorbar()\n"):
            plot = drawn(f"{text}\n{grid}plt.legend()\nplt.show()")[0]
            checked_svg(svg(plot))
            json.dumps(plot_document(plot), allow_nan=False)
            for kind in DOTS:
                for line in plot_text(plot, kind).splitlines():
                    assert len(line) <= 80
                    assert kind != "ascii" or line.isascii()


HOSTILE = ["</text><script>alert(1)</script>", "]]>", "&lt;", "\x1b[2J", "\u202e", "a\0b", "\ud800"]


def test_hostile_names_stay_text() -> None:
    for name in HOSTILE:
        shown = name.encode("unicode_escape").decode().replace('"', r"\"")
        if "\\ud800" in shown:
            continue  # the language has no lone surrogates
        plot = drawn(
            f'plt.plot([1], label="{shown}")\nplt.title("{shown}")\nplt.bar(["{shown}"], [1])\n'
            f'plt.text(0, 1, "{shown}")\nplt.legend()\nplt.show()'
        )[0]
        root = checked_svg(svg(plot))
        assert "script" not in {each.tag.rpartition("}")[2] for each in root.iter()}
        assert "\x1b" not in plot_text(plot)


EXTREMES = [
    "plt.plot([1e308, -1e308])", "plt.plot([float('nan'), float('inf')])", "plt.plot([])",
    "plt.plot([1, 1, 1])", "plt.plot([1e-320, 2e-320])", "plt.xlim(3, 3)\nplt.plot([1])",
    "plt.yscale('log')\nplt.plot([-1, 0])", "plt.hist([])", "plt.imshow([[float('nan')]])",
    "plt.contourf([[1, 1], [1, 1]])", "plt.contour([[float('nan')] * 3] * 3)", "plt.bar([], [])",
    "plt.scatter([1], [1], c=[float('nan')])", "plt.imshow(np.zeros((0, 3)))", "plt.text(9, 9, '')",
    "plt.axis([0, 0, 0, 0])\nplt.plot([1])", "plt.fill_between([], [])",
    "plt.figure(figsize=(0.1, 1))",

    "plt.plot(range(30000))", "plt.axhline(float('inf'))",
    "plt.imshow([[1]], vmin=float('nan'))", "plt.xticks([1e308])\nplt.plot([1])",
]  # fmt: skip


@pytest.mark.parametrize("text", EXTREMES, ids=range(len(EXTREMES)))
def test_extremes_are_drawn(text: str) -> None:
    for plot in drawn(f"{text}\nplt.show()"):
        checked_svg(svg(plot))
        json.dumps(plot_document(plot), allow_nan=False)
        for kind in DOTS:
            plot_text(plot, kind)


# --- text -----------------------------------------------------------------------------------------


def test_a_terminal_gets_what_it_can_show() -> None:
    assert [kind_of("utf-8"), kind_of("cp437"), kind_of("ascii"), kind_of(None)] == [
        "braille", "blocks", "ascii", "ascii",
    ]  # fmt: skip
    assert kind_of("utf-8", "linux") == "blocks"


def test_a_line_as_plain_characters() -> None:
    plot = drawn("plot(torch.arange(5.), title='steps')")[0]
    lines = plot_text(plot, "ascii", width=40).splitlines()
    assert lines[0].strip() == "steps"
    body = [line.partition("|")[2] or line.partition("+")[2] for line in lines[1:17]]
    columns = [body_line.index("*") for body_line in body if "*" in body_line]
    assert columns == sorted(columns, reverse=True)  # it rises
    assert len(columns) >= 14
    assert lines[17].strip().startswith("+-")


def test_a_square_image_is_square() -> None:
    plot = drawn("plt.imshow([[0, 1], [2, 3]])\nplt.show()")[0]
    lines = plot_text(plot, "ascii").splitlines()
    assert {len(re.split(r"[|+]", line)[1]) for line in lines[8:16]} == {32}


def test_colours_on_a_terminal_that_has_them() -> None:
    plot = drawn("plot(a=[1, 2], b=[2, 1])")[0]
    assert "\x1b[34m" in plot_text(plot, style=Style(color=True))
    assert re.search(r"── a a   ── b b", plot_text(plot))


def test_sparklines() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, math.nan, 0], "ascii") == "# _"
    assert sparkline([2, 2]) == "▅▅"
    assert len(sparkline(range(1000), width=60)) == 60
    assert sparkline([]) == ""
    found: list[Any] = []
    for _ in Session(found.append).run("sparkline([tensor(1., requires_grad=True), 3])", "p"):
        pass
    assert [each.values.tolist() for each in found if isinstance(each, Sparkline)] == [[1.0, 3.0]]


# --- the command ----------------------------------------------------------------------------------


def test_a_curve_has_its_derivative_and_tangent() -> None:
    finished = invoke("plot", "y = x**3 - 2*x", "x=-2:2:9", "--at", "1", "--json")
    document = json.loads(finished.stdout)
    assert document["schema"] == "gradcli.plot/1"
    curve, slope, tangent, point = document["panels"][0]["marks"]
    x = np.array(curve["x"])
    assert curve["y"] == pytest.approx(x**3 - 2 * x)
    assert slope["y"] == pytest.approx(3 * x**2 - 2)
    assert tangent["y"] == pytest.approx([-4, 0])
    assert (point["x"], point["y"]) == ([1.0], [-1.0])
    assert [mark["label"] for mark in (curve, slope, tangent)] == ["y", "dy/dx", "tangent at 1"]


@pytest.mark.parametrize(
    ("program", "slopes"),
    [
        ("y = a * x if x > 0 else -x", [-1, -1, 3]),
        ("y = x.detach() * 2", [None, None, None]),
        ("x * 1", [1, 1, 1]),
        ("def f(z):\n    return z.sum() ** 2\ny = f(x)", [-2, 0, 2]),
    ],
)
def test_the_program_runs_at_each_place(program: str, slopes: list[Any]) -> None:
    finished = invoke("plot", program, "x=-1:1:3", "a=3", "--json", "-q")
    assert finished.code == 0, finished.stderr
    found = json.loads(finished.stdout)["panels"][0]["marks"][1]["y"]
    assert [None if each == "NaN" else each for each in found] == slopes


CURVES = [
    # (words, the labels of the lines, what they show at the right end)
    (["y = x ** 2", "z = y * x", "x=0:2:5"], ["y", "dy/dx", "z", "dz/dx"], [4, 4, 8, 12]),
    (["sin(x)", "cos(x)", "x=-1:0:5"], ["sin(x)", "d(sin(x))/dx", "cos(x)", "d(cos(x))/dx"],
     [0, 1, 1, 0]),
    (["y = x; z = 2 * x", "--of", "y, z", "x=0:1:3"], ["y", "dy/dx", "z", "dz/dx"], [1, 1, 2, 2]),
    (["y = x; z = 2 * x", "--of", "y", "--of=z", "x=0:1:3"], ["y", "dy/dx", "z", "dz/dx"],
     [1, 1, 2, 2]),
    (["y = a * x", "a=3"], ["y", "dy/dx"], [15, 3]),
    (["x = k * t", "k=2"], ["x", "dx/dt"], [10, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "labels", "ends"), CURVES)
def test_programs_and_outputs_are_curves(
    words: list[str], labels: list[str], ends: list[float]
) -> None:
    finished = invoke("plot", *words, "--json")
    assert finished.code == 0, finished.stderr
    marks = json.loads(finished.stdout)["panels"][0]["marks"]
    assert [mark["label"] for mark in marks] == labels
    assert [mark["y"][-1] for mark in marks] == pytest.approx(ends, abs=1e-9)
    assert len({mark["color"] for mark in marks}) == 2


def test_each_curve_has_its_tangent() -> None:
    told = invoke("plot", "y = x ** 2", "z = x ** 3", "x=0:2:5", "--at=1")
    assert told.stdout.endswith("at x = 1: y = 1, dy/dx = 2\nat x = 1: z = 1, dz/dx = 3\n")


def test_a_curve_in_a_file(tmp_path: Path) -> None:
    target = tmp_path / "curve.svg"
    finished = invoke("plot", "sin(x)", "x=0:3", "--at=1", "-o", str(target))
    assert finished.stdout == "at x = 1: f = 0.841471, df/dx = 0.540302\n"
    assert "tangent at 1" in words(checked_svg(target.read_text("utf-8")))


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["y = x", "x=1"], 2, "needs one input with a range"),
        (["y = x * z", "x=0:1", "z=0:1"], 2, "needs one input with a range"),
        (["y = a * x"], 2, "without a value are a, x"),
        (["y = a * x", "a = 3", "x=0:1"], 2, "did you mean `a=3`?"),
        (["y = x", "x=1:0"], 2, "from a number to a larger one"),
        (["y = x", "x=0:1:1"], 2, "2 to 10,000 places"),
        (["y = x", "x=0:1", "-o", "a.gif"], 2, "suffix"),
        (["y = x * ones(2)", "x=0:1"], 3, "shape (2,)"),
        (["print(1)", "x=0:1"], 3, "no tensor"),
        (["y = x +", "x=0:1"], 3, "E001"),
        (["y = q * x", "x=0:1"], 3, "`q`"),
        (["y = x", "x=0:1", "-o", "a.svg", "--sandbox"], 5, "E606"),
    ],
)
def test_what_is_no_curve_is_said(given: list[str], code: int, said: str) -> None:
    finished = invoke("plot", *given)
    assert (finished.code, finished.stdout) == (code, "")
    assert said in finished.stderr


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words_", "said"),
    [
        ("x.foo", [], "no format of pictures"),
        ("nowhere/x.svg", [], "no such file"),
        ("x.svg", ["--sandbox"], "E606"),
    ],
)
def test_savefig_goes_through_the_gate(
    name: str, words_: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text(f"{HEAD}plt.plot([1])\nplt.savefig({name!r})\n")
    finished = invoke("run", "p.py", *words_)
    assert finished.code in (3, 5)
    assert said in finished.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["p.py"]


@pytest.mark.parametrize("name", ["x.pdf", "x.jpg"])
def test_an_svg_stands_for_what_is_not_made_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    Path("p.py").write_text(f"{HEAD}plt.plot([1])\nplt.savefig('{name}')\n")
    finished = invoke("run", "p.py")
    assert finished.code == 0
    assert "so x.svg is written" in finished.stderr
    checked_svg(Path("x.svg").read_text("utf-8"))
    assert not Path(name).exists()


@pytest.mark.parametrize("name", ["x.png", "x"])
def test_a_png_without_its_package_says_what_installs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    Path("p.py").write_text(f"{HEAD}plt.plot([1])\nplt.savefig('{name}')\n")
    finished = invoke("run", "p.py")
    assert finished.code == 5
    assert "pip install 'gradcli[png]'" in finished.stderr
    assert not Path("x.png").exists()


def test_the_package_makes_the_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("resvg_py")
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text(f"{HEAD}plt.plot([1, 3, 2])\nplt.savefig('x.png')\n")
    finished = invoke("run", "p.py")
    if "no font" in finished.stderr:
        pytest.skip("the machine has no font")
    assert (finished.code, finished.stderr) == (0, "")
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(package, "svg_to_bytes", lambda **_: b"")
    finished = invoke("run", "p.py")
    assert finished.code == 5
    assert "no font" in finished.stderr


def test_a_converter_at_hand_makes_the_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    converter = tmp_path / "bin" / "rsvg-convert"
    converter.parent.mkdir()
    converter.write_text("#!/bin/sh\nprintf '\\211PNG'; grep -c '<svg'\n")
    converter.chmod(0o755)
    monkeypatch.setenv("PATH", f"{converter.parent}:/usr/bin:/bin")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    Path("p.py").write_text(f"{HEAD}plt.plot([1])\nplt.savefig('x.png')\n")
    finished = invoke("run", "p.py")
    assert (finished.code, finished.stderr) == (0, "")
    assert Path("x.png").read_bytes() == b"\x89PNG1\n"


def test_show_in_a_pipe_is_one_note() -> None:
    finished = invoke(
        "run", "-", stdin=f"{HEAD}for i in 1, 2:\n    plt.plot([i])\n    plt.show()\n".encode()
    )
    assert (finished.code, finished.stdout) == (0, "")
    assert finished.stderr.count("note:") == 1


HEIGHTS = [
    # (program, options, what the limits are)
    ("y = 1 / x", [], lambda low, high: -100 < low < -2 and 2 < high < 100),
    ("y = tan(2 * x)", [], lambda low, high: low > -25 and high < 50),
    ("y = x ** 3", ["--ylim=-1:1"], lambda low, high: (low, high) == (-1, 1)),
    ("y = x ** 5", ["--at", "1"], lambda low, high: low < -32 and high > 80),
]


@pytest.mark.parametrize(("program", "options", "holds"), HEIGHTS)
def test_a_pole_is_cut_and_the_height_can_be_chosen(
    program: str, options: list[str], holds: Callable[[float, float], bool]
) -> None:
    document = invoke("plot", program, "x=-2:2:100", *options, "--json").stdout
    low, high = json.loads(document)["panels"][0]["y"]["limits"]
    assert holds(low, high)


@pytest.mark.parametrize("ylim", ["3", "2:1", "a:b", "0:inf"])
def test_a_height_that_is_none_is_refused(ylim: str) -> None:
    refused = invoke("plot", "y = x", "x=-1:1", f"--ylim={ylim}")
    assert refused.code == 2
    assert "--ylim" in refused.stderr
