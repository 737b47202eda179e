"""Pictures: nothing overlaps, nothing breaks out, repeats and modules are one box."""

from __future__ import annotations

import random
import re
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gradcli.show.pictures.layout import Link, Placed, Sizes, layered, placed
from gradcli.show.pictures.picture import Arrow, Box, Picture, Row
from tests.running import invoke

SVG = "{http://www.w3.org/2000/svg}"

Rectangle = tuple[float, float, float, float]


def _apart(one: Rectangle, other: Rectangle) -> bool:
    return (
        one[0] + one[2] <= other[0] + 1e-6
        or other[0] + other[2] <= one[0] + 1e-6
        or one[1] + one[3] <= other[1] + 1e-6
        or other[1] + other[3] <= one[1] + 1e-6
    )


def _picture(seed: int, boxes: int, modules: int) -> tuple[Picture, Sizes]:
    """A random graph without cycles, each box in the module of its number."""
    chance = random.Random(seed)
    # Boxes of one module follow each other, as what one call ran does.
    path = [("net", str(number * modules // boxes)) if modules else () for number in range(boxes)]
    arrows = [
        Arrow(source, target, chance.choice(["", "1."]), "flow")
        for target in range(1, boxes)
        for source in sorted({chance.randrange(target) for _ in range(chance.randrange(1, 4))})
    ]
    picture = Picture("y", [Box("node", [Row("name", "x")], path[n]) for n in range(boxes)], arrows)
    sizes = [(chance.uniform(20, 200), chance.uniform(20, 90)) for _ in range(boxes)]
    labels = [(30.0, 16.0) if arrow.gradient else (0.0, 0.0) for arrow in arrows]
    return picture, Sizes(sizes, labels)


def _rectangles(places: Placed, sizes: Sizes) -> list[Rectangle]:
    boxes = [(*places.corners[n], *size) for n, size in enumerate(sizes.boxes)]
    labels = [
        (x - sizes.labels[n][0] / 2, y - sizes.labels[n][1] / 2, *sizes.labels[n])
        for n, (x, y) in places.labels.items()
    ]
    return boxes + labels


@pytest.mark.parametrize("tallest", [None, 900.0])
@pytest.mark.parametrize("modules", [0, 4])
@pytest.mark.parametrize("seed", range(7))
def test_nothing_overlaps(seed: int, modules: int, tallest: float | None) -> None:
    picture, sizes = _picture(seed, 30, modules)
    places = placed(picture, sizes, tallest=tallest)
    rectangles = _rectangles(places, sizes)
    assert all(_apart(one, other) for one, other in combinations(rectangles, 2))
    for x, y, width, height in rectangles:
        assert x >= -1e-6
        assert x + width <= places.width + 1e-6
        assert y >= -1e-6
        assert y + height <= places.height + 1e-6
    for frame in places.frames:
        inside = [
            _within(rectangle, frame.x, frame.y, frame.width, frame.height)
            for rectangle, box in zip(rectangles, picture.boxes, strict=False)
            if box.module[: len(frame.module)] == frame.module
        ]
        assert inside
        assert all(inside)


def _within(rectangle: Rectangle, x: float, y: float, width: float, height: float) -> bool:
    left, top, wide, high = rectangle
    return left >= x and top >= y and left + wide <= x + width and top + high <= y + height


@pytest.mark.parametrize("seed", range(6))
def test_edges_pass_no_box(seed: int) -> None:
    """Edges run straight inside ranks; between ranks there are no boxes."""
    picture, sizes = _picture(seed, 30, 0)
    places = placed(picture, sizes)
    boxes = [(*places.corners[n], *size) for n, size in enumerate(sizes.boxes)]
    for number, arrow in enumerate(picture.arrows):
        (path,) = places.paths[number]
        assert path[0][1] == pytest.approx(boxes[arrow.source][1] + boxes[arrow.source][3])
        assert path[-1][1] == pytest.approx(boxes[arrow.target][1])
        for (x, top), (to_x, bottom) in pairwise(path):
            assert top <= bottom + 1e-6
            left, right = min(x, to_x), max(x, to_x)
            piece = (left, top, right - left, bottom - top)
            others = [box for n, box in enumerate(boxes) if n not in (arrow.source, arrow.target)]
            assert all(_apart(piece, box) for box in others)


@pytest.mark.parametrize("seed", range(6))
def test_in_columns_it_is_less_high_and_edges_pass_no_box(seed: int) -> None:
    """An edge goes on in the next column below the one, up between both and above the other."""
    picture, sizes = _picture(seed, 30, 0)
    places = placed(picture, sizes, tallest=500.0)
    assert places.height < placed(picture, sizes).height
    boxes = [(*places.corners[n], *size) for n, size in enumerate(sizes.boxes)]
    for number, arrow in enumerate(picture.arrows):
        (path,) = places.paths[number]
        assert path[0][1] == pytest.approx(boxes[arrow.source][1] + boxes[arrow.source][3])
        assert path[-1][1] == pytest.approx(boxes[arrow.target][1])
        for (x, y), (to_x, to_y) in pairwise(path):
            piece = (min(x, to_x), min(y, to_y), abs(to_x - x), abs(to_y - y))
            others = [box for n, box in enumerate(boxes) if n not in (arrow.source, arrow.target)]
            assert all(_apart(piece, box) for box in others)
            assert 0 <= piece[0] <= piece[0] + piece[2] <= places.width + 1e-6
            assert 0 <= piece[1] <= piece[1] + piece[3] <= places.height + 1e-6


@pytest.mark.parametrize("tallest", [None, 900.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_pieces_of_an_arrow_follow_each_other(seed: int, tallest: float | None) -> None:
    """From its source through the frames, each entered where the one before was left."""
    picture, sizes = _picture(seed, 30, 4)
    places = placed(picture, sizes, tallest=tallest)
    for number, arrow in enumerate(picture.arrows):
        pieces = places.paths[number]
        for end, box in ((pieces[0][0], arrow.source), (pieces[-1][-1], arrow.target)):
            (x, y), (width, height) = places.corners[box], sizes.boxes[box]
            assert x <= end[0] <= x + width
            assert min(abs(end[1] - y), abs(end[1] - y - height)) < 1e-6
        for one, other in pairwise(pieces):
            assert one[-1] == pytest.approx(other[0])


def test_a_chain_is_straight_and_a_tree_has_no_crossing() -> None:
    chain = layered([(50.0, 20.0)] * 5, [Link(n, n + 1) for n in range(4)])
    assert len({x for x, _ in chain.corners}) == 1
    tree = layered([(50.0, 20.0)] * 7, [Link(n, (n - 1) // 2) for n in range(1, 7)])
    leaves = sorted((tree.corners[n][0], (n - 1) // 2) for n in range(3, 7))
    parents = [parent for _, parent in leaves]
    assert parents in ([1, 1, 2, 2], [2, 2, 1, 1])


def test_a_cycle_runs_up_once() -> None:
    links = [Link(0, 1), Link(1, 2), Link(2, 0, upward=True)]
    layout = layered([(40.0, 20.0)] * 3, links)
    assert [y for _, y in layout.corners] == sorted(y for _, y in layout.corners)
    assert layout.paths[2][0][1] > layout.paths[2][-1][1]


def _texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_values_and_gradients_stand_at_the_boxes() -> None:
    svg = invoke("e = (a + b) * d", "a=2", "b=3", "d=4", "--format", "svg").stdout
    texts = _texts(svg)
    assert [*"abd"] == [text for text in texts if text in "abd"]
    assert {"e = (a + b) * d", "MulBackward0", "value 20.", "grad 5.", "a + b"} <= {*texts}


LOOP = """
w = tensor(0.5, requires_grad=True)
h = tensor(1.)
for t in range(12):
    h = tanh(w * h + t)
h.backward()
"""


def test_a_loop_is_drawn_once(tmp_path: Path) -> None:
    program = tmp_path / "loop.grad"
    program.write_text(LOOP)
    folded = _texts(invoke("run", str(program), "--format", "svg").stdout)
    assert folded.count("× 12") >= 3
    assert folded.count("TanhBackward0") == 1
    expanded = _texts(invoke("run", str(program), "--format", "svg", "--expand").stdout)
    assert expanded.count("TanhBackward0") == 12


def test_a_file_holds_the_picture_of_the_format(tmp_path: Path) -> None:
    words = ["y = x.exp() * x", "x=2"]
    printed = invoke(*words, "--format", "svg").stdout
    file = tmp_path / "y.svg"
    assert invoke(*words, "-o", str(file)).code == 0
    assert file.read_text() == printed


def test_a_program_draws(tmp_path: Path) -> None:
    file = tmp_path / "y.svg"
    text = f"x = tensor(2., requires_grad=True); y = x.exp() * x; show(y, {str(file)!r})"
    refused = invoke("--sandbox", text)
    assert refused.code == 5
    assert "E606" in refused.stderr
    assert not file.exists()
    assert invoke(text).code == 0
    assert "grad 22.1672" in _texts(file.read_text())


@pytest.mark.parametrize(
    "text",
    [
        'y = x * len("</text><script>alert(1)</script>")',
        'y = x * len("]]> -- & \\" <")',
        'y = x * len("\\x1b[31m\\u202e東京\\ud800")',
        "y = x * len('" + "w" * 4000 + "')",
    ],
)
def test_no_text_breaks_out(text: str) -> None:
    svg = invoke(text, "x=2", "--format", "svg").stdout
    root = ElementTree.fromstring(svg)  # well-formed
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "title", "style", "rect", "g", "path", "polygon", "text",
    }  # fmt: skip
    assert not re.search(r"<[^>]* on\w+=", svg)


@pytest.mark.parametrize("text", ["y = 3", "y = tensor(2.) * 3"])
@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_there_is_no_picture_of_nothing(text: str, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"y.{suffix}"
    found = invoke(text, "-o", str(file))
    assert found.code == 3
    assert "E402" in found.stderr
    assert not file.exists()


ASPECTS = ["16:9", "4:3", "1:1", "9:16"]


@pytest.mark.parametrize("aspect", ASPECTS)
@pytest.mark.parametrize("program", ["y = x * x", "\n".join(["y = x"] + ["y = (y * x).exp()"] * 9)])
def test_a_picture_has_the_aspect_that_is_asked_for(program: str, aspect: str) -> None:
    """Nothing leaves the canvas, which one side of the picture fills."""
    drawn = invoke(program, "x=1", "--format", "svg", "--aspect", aspect).stdout
    numbers = re.search(r'viewBox="0 0 (\d+) (\d+)".*?translate\((\d+) (\d+)\)', drawn, re.DOTALL)
    assert numbers is not None
    width, height, left, top = map(int, numbers.groups())
    one, other = map(int, aspect.split(":"))
    assert width / height == pytest.approx(one / other, rel=0.01)
    assert min(left, top) == 16
    corner = r'<g id="box\d+"[^>]*translate\(([\d.]+) ([\d.]+)\)">'
    size = r'<rect[^>]*?width="([\d.]+)" height="([\d.]+)"'
    found = re.findall(corner + size, drawn.replace(">\n<", "><"))
    boxes = [[*map(float, each)] for each in found]
    assert len(boxes) > 1
    assert max(left + x + own for x, _, own, _ in boxes) <= width - 15
    assert max(top + y + own for _, y, _, own in boxes) <= height - 15


def test_an_aspect_in_columns_is_a_larger_picture() -> None:
    """A long chain on a slide goes on in further columns, or it would be too small to be read."""
    program = "\n".join(["y = x"] + ["y = (y * x).exp()"] * 9)
    tall, wide = (
        invoke(program, "x=1", "--format", "svg", "--expand", *options).stdout
        for options in ([], ["--aspect", "16:9"])
    )
    heights = [int(re.findall(r'height="(\d+)"', each)[0]) for each in (tall, wide)]
    assert heights[1] < 0.8 * heights[0]


@pytest.mark.parametrize("aspect", ["16", "16:0", "a:b", "100:1", "-1:2", "1.5:1"])
def test_an_aspect_that_is_none_is_refused(aspect: str) -> None:
    found = invoke("y = x * x", "x=1", "--format", "svg", f"--aspect={aspect}")
    assert found.code == 2
    assert "--aspect" in found.stderr


@pytest.mark.parametrize("words", [[], ["-o", "y.html"], ["--format", "dot"], ["-o", "y.npz"]])
def test_an_aspect_without_a_picture_is_refused(words: list[str]) -> None:
    found = invoke("y = x * x", "x=1", "--aspect", "16:9", *words)
    assert (found.code, "--aspect is for pictures" in found.stderr) == (2, True)
