"""Pictures of networks: as few modules are folded as it takes to read the whole."""

from __future__ import annotations

import re

import pytest

from gradcli.recorded.annotated_graph import AnnotatedGraph
from gradcli.running import picture
from gradcli.running.arguments.options import Options
from gradcli.running.picture import drawn
from gradcli.session import Session
from gradcli.show.pictures.picture import picture_of
from gradcli.show.pictures.svg import READABLE, laid_out
from tests.running import invoke

NETS = {
    "transformer": """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.query, self.key, self.value = (torch.nn.Linear(8, 8) for _ in range(3))
        layers = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8)
        self.mlp = torch.nn.Sequential(*layers)

    def forward(self, x):
        y = self.norm(x)
        q, k, v = self.query(y), self.key(y), self.value(y)
        x = x + (q @ k.transpose(-2, -1) / 8 ** 0.5).softmax(-1) @ v
        return x + self.mlp(self.norm(x))

block = Block()
loss = block(torch.randn(2, 4, 8)).pow(2).mean()
""",
    "recurrent": """
cell, readout = torch.nn.RNNCell(3, 8), torch.nn.Linear(8, 1)
h = torch.zeros(4, 8)
loss = 0
for t in range(50):
    h = cell(torch.randn(4, 3), h)
    loss = loss + (readout(h) - t / 50).pow(2).mean()
""",
    "residual": """
class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = (torch.nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))
        self.bn1, self.bn2 = (torch.nn.BatchNorm2d(4) for _ in range(2))

    def forward(self, x):
        return (x + self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))).relu()

net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), *[Residual() for _ in range(4)])
loss = net(torch.randn(2, 3, 6, 6)).pow(2).mean()
""",
}
SHOWN = {
    # a parameter that is found by its path
    "transformer": "block",  # folded, with the norm of its parameters' gradients
    "recurrent": "cell.weight_hh",
    "residual": "net.2.bn1.weight",
}


def _graph(text: str) -> tuple[Session, AnnotatedGraph]:
    """A session, and the graph of its last tensor after a recorded backward pass."""
    session = Session(record="all", manual_seed=0)
    for _ in session.run(f"import torch\n{text}", "program"):
        pass
    found = session.last_tensor()
    assert found is not None
    session.backward(found[1])
    recorder = session.recorder
    return session, AnnotatedGraph(session.graph(found[1]), recorder.events, recorder.call_of)


@pytest.mark.parametrize("name", NETS)
def test_a_network_can_be_read_as_a_whole(name: str) -> None:
    session, graph = _graph(NETS[name])
    with session.running():
        _check_folding(name, graph)


def _check_folding(name: str, graph: AnnotatedGraph) -> None:
    """The whole fits, a parameter stands in it with its gradient, nothing is folded in vain."""
    found = drawn(graph, Options())
    assert found.places.width <= READABLE[0]
    assert found.places.height <= READABLE[1]
    path = SHOWN[name]
    boxes = [
        ["".join(text for _, text in row.pieces) for row in box.rows] for box in found.picture.boxes
    ]
    lines = [line for box in boxes for line in (box if box[0] == path else [])]
    lines += [line for box in boxes for line in box if line != path and path in line]
    assert any("grad " in line for line in lines)
    folded = [
        tuple(box.rows[0].text.split(".")) for box in found.picture.boxes if box.kind == "module"
    ]
    for path_open in folded:
        others = frozenset(each for each in folded if each != path_open)
        assert not laid_out(picture_of(graph, others)).fits


def test_what_is_small_enough_is_not_folded() -> None:
    _, graph = _graph("net = torch.nn.Linear(2, 1); y = net(torch.ones(2)).sum()")
    assert {box.kind for box in drawn(graph, Options()).picture.boxes} == {
        "leaf",
        "node",
        "constant",
    }
    asked = drawn(graph, Options(fold=["net"])).picture.boxes
    assert [box.rows[0].text for box in asked if box.kind == "module"] == ["net"]


BLOCKS = """\
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return x + self.inner(x.relu())

net = torch.nn.Sequential(torch.nn.Linear(2, 4), *[Block() for _ in range(5)])
y = net(torch.ones(3, 2)).sum()
"""

DRAWN = [
    # (options, texts of the picture, others that it has not)
    ([], ["net  Sequential", "net.0  Linear(2, 4)", "Block × 5", "net.1–5, 20 nodes", "through t"],
     ["TBackward0", "net.3  Block"]),
    (["--fold", "net.0"], ["Linear(2, 4)", "net.0, 2 nodes"], []),
    (["--fold", "net"], ["Sequential", "net, 22 nodes"], ["Block × 5"]),
    (["--expand"], ["net.3  Block", "net.3.inner  Linear(4, 4)", "TBackward0 (2, 4)"],
     ["Block × 5", "net.1–5, 20 nodes"]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "shown", "others"), DRAWN)
def test_modules_have_their_classes_and_equal_ones_are_one_box(
    options: list[str], shown: list[str], others: list[str]
) -> None:
    drawn = invoke(f"import torch\n{BLOCKS}", "--format", "svg", *options).stdout
    found = [text.replace("\u00a0", " ") for text in re.findall(r">([^<]+)</t(?:ext|span)>", drawn)]
    assert [each for each in shown if each not in found] == []
    assert [each for each in others if each in found] == []


REFUSED = [
    # (program, options, what the help says)
    ("y = x\nfor t in range(40):\n    y = y * x", ["--expand"], "leave out --expand"),
    ("\n".join(["y = x", *[f"y = y * x + {n}" for n in range(20)]]), [], "--of NAME"),
]


@pytest.mark.parametrize(("program", "options", "help"), REFUSED)
def test_too_many_boxes_are_refused_with_what_helps(
    program: str, options: list[str], help: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture, "MOST_BOXES", 30)
    found = invoke(program, "x=1", "--format", "svg", *options)
    assert found.code == 5
    assert "E602" in found.stderr
    assert help in found.stderr


UNKNOWN = [
    # (program, module, what the message says)
    ("y = x", "nt", "--fold nt: the graph has no modules"),
    (BLOCKS, "nte", "no module in the graph `nte`; did you mean `net`?"),
    (BLOCKS, "nt", "no module in the graph `nt`; there are net, net.0, net.1–5"),
    (BLOCKS, "*.attn", "no module in the graph `*.attn`; there are net, net.0, net.1–5"),
]


@pytest.mark.parametrize(("program", "module", "message"), UNKNOWN)
def test_a_module_that_is_none_is_refused_with_those_there_are(
    program: str, module: str, message: str
) -> None:
    words = [f"import torch\n{program}", "x=1", "--format", "svg", "--fold", module]
    for command in [], ["explain"]:
        found = invoke(*command, *words)
        assert found.code == 2
        assert message in found.stderr


SAVED = [
    # (program, input, what stands at its nodes)
    (
        "y = (x * w).exp()",
        ["x=2", "w=3"],
        ["saves self 2.", "saves other 3.", "saves result 403.4288"],
    ),
    ("y = x + w", ["x=2", "w=3"], []),
    ("y = x.sum() ** 2", ["x=" + str([1] * 30)], ["saves self 30."]),
    (
        "y = (x * x).sum()",
        ["x=" + str([1] * 30)],
        ["saves self (30,) norm 5.477", "saves other (30,) norm 5.477"],
    ),
]


@pytest.mark.parametrize(("program", "inputs", "saved"), SAVED)
def test_saved_values_stand_at_their_nodes(
    program: str, inputs: list[str], saved: list[str]
) -> None:
    svg = invoke(program, *inputs, "--format", "svg", "--saved").stdout
    assert svg.count("saves") == len(saved)
    assert [text for text in saved if f">{text}<" not in svg] == []
    assert "saves" not in invoke(program, *inputs, "--format", "svg").stdout
    explained = invoke("explain", program, *inputs, "--format", "svg", "--saved").stdout
    assert explained == svg


@pytest.mark.parametrize(
    "words",
    [
        ["y = x * x", "x=2", "--saved"],
        ["explain", "y = x * x", "x=2", "--fold", "net"],
        ["explain", "y = x * x", "x=2", "--expand"],
    ],
)
def test_what_is_for_pictures_is_refused_elsewhere(words: list[str]) -> None:
    found = invoke(*words)
    assert found.code == 2
    assert "for pictures" in found.stderr
