"""The page that steps: its numbers are the ledger's, its controls work, nothing breaks out."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from gradcli.autograd.recording import stopwatch
from gradcli.autograd.recording.recorder import Listener
from gradcli.autograd.recording.stopwatch import Stopwatch
from gradcli.session import Session
from gradcli.show.pictures.picture import module_title
from tests.running import invoke
from tests.test_folding import BLOCKS

PROGRAMS = {
    "scalars": ["e = (a + b) * d", "a=2", "b=3", "d=4"],
    "reused": ["y = x * x + x.exp() / x", "x=1.5"],
    "vectors": ["y = (x.sigmoid() @ w).tanh().sum()", "x=[[1,2],[3,4]]", "w=[[0.5,1],[-1,2]]"],
    "infinite": ["y = x * float('inf') + (x / 0).clamp(max=float('inf'))", "x=2"],
    "large": ["y = (x ** 2).sum()", "x=" + str([*range(100)])],
}


class _Script(HTMLParser):
    """The text of the element `data`, and what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.data = ""
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.loads += [str(named[each]) for each in ("src", "href", "data") if each in named]
        self._inside = named.get("id") == "data"

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data += data


def _document(html: str) -> dict[str, Any]:
    parser = _Script()
    parser.feed(html)
    assert parser.loads == []
    found: dict[str, Any] = json.loads(parser.data, parse_constant=pytest.fail)
    return found


@pytest.mark.parametrize("words", PROGRAMS.values(), ids=PROGRAMS)
def test_its_numbers_are_those_of_the_ledger(words: list[str]) -> None:
    html = invoke("explain", *words, "--format", "html").stdout
    ledger = json.loads(invoke("explain", *words, "--json").stdout)["rows"]
    rows = _document(html)["rows"]
    for row, known in zip(rows, ledger, strict=True):
        for key in known.keys() - {"name", "variable", "source", "file", "line", "column"}:
            assert row[key] == known[key] or "norm" in str(row[key])
    assert len(html) < 120_000


MOVES = {
    # (program, why its inputs cannot be moved: "" where they can)
    "y = x * x + 2": "",
    "y = x * torch.tensor(2.)": "",
    "print(x); y = x.exp()": "",
    "y = x.exp(); y.backward(); print(y.item(), x.grad.item())": "",
    "h = x * 1.; h += 2; y = h * h": "",
    "w = torch.tensor([1., 2.]); t = w > 1; y = (x * w)[t].sum()": "",
    "m = torch.nn.Linear(1, 1); y = m(x.reshape(1)).sum()": "",
    "y = torch.where(x > 0, x, -x)": "",
    "m = (x > 0) & ~(x * 2 > 1); y = torch.where(m, x, -x)": "",
    "y = x.masked_fill(x > 1, 0.)": "",
    "m = x > 1; y = torch.where(m, x, m)": "no gradient, line 1: x > 1",
    "m = x.reshape(1) > 1; m[0] = True; y = torch.where(m, x, -x)": "no gradient, line 1",
    "y = x * (x > 1)": "no gradient, line 1: x > 1",
    "m = x > 1; y = torch.where(m, x, -x) * m": "no gradient, line 1: x > 1",
    "m = x.detach() > 1; y = torch.where(m, x, -x)": "no gradient, line 1: x.detach()",
    "h = x * 2; m = h > 1; h += 1; y = torch.where(m, h, x)": "no gradient, line 1: h > 1",
    "y = torch.where(x > 0, x, -x) if x > 1 else x": "taken out of a tensor, line 1: x > 1",
    "y = x[x > 1].sum()": "no gradient, line 1: x > 1",
    "m = x > 1; h = x * 2; y = (h[m] * h).sum()": "no gradient, line 1: x > 1",
    "y = x.reshape(1)[torch.nonzero(x > 1, as_tuple=True)].sum()": "taken out of a tensor, line 1",
    "m = x.reshape(1, 1).max(1); y = x.reshape(1).take(m.indices).sum()": "line 1: x.resh",
    "m = x.reshape(1).sort(); y = x.reshape(1)[m.indices].sum() * m.values": "line 1: x.resh",
    "i = torch.tensor([0]); y = x.reshape(1)[i].sum()": "",
    "y = x if torch.equal(x, x * 2) else -x": "a number is taken out of a tensor",
    "y = x if torch.allclose(x, x * 2) else -x": "a number is taken out of a tensor",
    "y = x * x.tolist()": "a number is taken out of a tensor, line 1: x.tolist()",
    "y = x * x.detach().numpy().sum()": "a number is taken out of a tensor, line 1",
    "y = x * torch.tensor([x, x * 2])[1]": "a number is taken out of a tensor, line 1",
    "y = x * torch.tensor(x)": "a number is taken out of a tensor, line 1",
    "y = x * torch.unique(x).numel()": "a number is taken out of a tensor, line 1",
    "y = x * len(torch.nonzero(x > 1))": "a number is taken out of a tensor, line 1",
    "y = x * torch.histc(x, 3)[0]": "a number is taken out of a tensor, line 1",
    "y = x * torch.isin(x, 2)": "a number is taken out of a tensor, line 1",
    "y = x * torch.bincount(x.long().reshape(1)).sum()": "number is taken out",
    "b = torch.tensor([1., 2.]); y = x * torch.bucketize(x, b)": "number is taken out",
    "y = x * torch.linalg.matrix_rank(x.reshape(1, 1))": "number is taken out",
    "w = torch.tensor([1., 2.]); y = x * len(torch.nonzero(w > 1))": "",
    "print(x.detach()); m = x.detach().exp(); y = x * 2": "",
    "y = x.detach() * x": "has no gradient, line 1: x.detach() * x",
    "y = x.data.exp() * x": "has no gradient, line 1: x.data.exp()",
    "y = x * x.detach()": "has no gradient, line 1: x * ",
    "m = x.detach(); y = x * m": "has no gradient, line 1: x * ",
    "y = x * x.item()": "a number is taken out of a tensor, line 1: x.item()",
    "y = x if x > 0 else -x\ny = y * 1": "is taken out of a tensor, line 1: x > 0",
    "with torch.no_grad():\n    m = x * 2\ny = x * m": "no gradient, line 2: x * 2",
    "z = x * 3; m = z.detach(); y = x * m": "has no gradient, line 1: x * m",
    "h = x * 2\nwith torch.no_grad():\n    h.mul_(2)\ny = h * h": "no gradient, line 3: h.mul_(2)",
    "h = x * 2; h.register_hook(lambda g: g * 3); y = h * h": "a hook may change gradients",
    "y = x * len(str(x))": "a constant of MulBackward0 is another, line 1: x * len(str(x))",
    "y = x * len(repr([x]))": "a constant of MulBackward0 is another, line 1",
    "t = F.one_hot(x.long(), 9)\ny = (x * t).sum()": "MulBackward0 is another, line 2: x * t",
    "import numpy as np; y = x * float(np.exp(x.detach()))": "of MulBackward0 is another",
    "y = x * torch.linspace(0, x, 3).sum()": "of MulBackward0 is another, line 1",
    "t = torch.zeros(2); t[0] = x.detach(); y = x * t.sum()": "MulBackward0 is another, line 1",
    "y = x * x.detach().clone().requires_grad_()": "no gradient, line 1: x.detach().clone()",
    "y = x * x.detach().requires_grad_()": "the program sets the value of a leaf itself",
    "y = x * torch.eye(2)[len(str(x)) % 2, 0]": "a constant of MulBackward0 is another",
    "y = x * 2 if '5' in str(x) else x.exp()": "an operation is another, line 1: x * 2",
    "y = x * 2; assert '1.5000' in str(x)": "at other values the program ends: AssertionError",
    "y = x * torch.rand(()) + torch.randn(())": "",
    "y = F.dropout(x * 1, 0.5) + torch.randn_like(x)": "",
    "y = torch.normal(x.detach(), 1.) * x": "no gradient, line 1: torch.normal(x.detach(), 1.)",
    "y = x * hash(x)": "does not compute the same when it is run again",
    "w = torch.ones(()).requires_grad_()\ny = x * w * w.item()": "",
    "w = torch.ones(()).requires_grad_()\ny = x * w * x.item()": "taken out of a tensor, line 2",
    "w = torch.ones(()).requires_grad_()\nfor step in range(2):\n    y = x * w\n    y.backward()"
    "\n    with torch.no_grad():\n        w -= w.grad\ny = x * w": "no gradient, line 4",
    "y = x.half() * 2": "a browser does not round to float16",
    "y = (x * torch.ones(30_000)).sum()": "graph have 30,002 elements",
}


def _reason(program: str) -> str:
    """Why the leaf `x` of a program cannot be moved on its page, "" where it can."""
    html = invoke("explain", "--of", "y", program, "x=1.5", "--format", "html").stdout
    document = _document(html)
    leaf = next(id for id, each in document["nodes"].items() if each["variable"] == "x")
    found: str = document["unmoved"] or document["staying"].get(leaf, "")
    return found


@pytest.mark.parametrize("program", MOVES)
def test_inputs_move_where_other_values_take_the_same_way(program: str) -> None:
    found = _reason(program)
    assert MOVES[program] in found
    assert bool(MOVES[program]) == bool(found)


LATER = {
    "w = torch.ones(()).requires_grad_()\ny = x * w\ny.backward()\nw.data -= w.grad": "`w` itself",
    "m = torch.nn.Linear(1, 1)\no = torch.optim.SGD(m.parameters(), 0.1)\n"
    "y = m(x.reshape(1)).sum()\ny.backward()\no.step()": (
        "`m.bias` itself, as a step of an optimizer does"
    ),
}


@pytest.mark.parametrize("program", LATER)
def test_a_leaf_that_is_written_to_after_it_was_read_stays(program: str) -> None:
    html = invoke("explain", "--of", "y", program, "x=1.5", "--format", "html").stdout
    found = {*_document(html)["staying"].values()}
    assert f"the program sets the value of {LATER[program]}" in found


def test_forward_steps_come_before_backward_ones() -> None:
    html = invoke(*PROGRAMS["scalars"], "--format", "html").stdout
    found = _document(html)
    names = [found["nodes"][str(node)]["name"] for node in found["forward"]]
    leaf = "AccumulateGrad"
    assert names == [leaf, leaf, "AddBackward0", leaf, "MulBackward0"]
    kinds = [[found["rows"][place]["kind"] for place in step] for step in found["backward"]]
    assert kinds[0] == ["node", "edge", "edge"]
    assert kinds.count(["leaf"]) == 3


def test_a_program_text_cannot_break_out() -> None:
    text = 'y = x * len("</script><script>alert(1)</script><!-- \\" <img src=x onerror=alert(1)>")'
    html = invoke(text, "x=2", "--format", "html").stdout
    assert html.count("<script") == 2
    assert "<img" not in html
    assert text in _document(html)["program"]["lines"]


def test_a_file_holds_the_page(tmp_path: Path) -> None:
    file = tmp_path / "e.html"
    assert invoke(*PROGRAMS["scalars"], "-o", str(file), "-q").code == 0
    assert file.read_text("utf-8") == invoke(*PROGRAMS["scalars"], "--format", "html").stdout


def test_modules_are_titled_by_class_and_arguments_and_equal_ones_are_one_box() -> None:
    document = _document(invoke(f"import torch\n{BLOCKS}", "--format", "html").stdout)
    titles = {each["path"]: each["title"] for each in document["modules"].values()}
    assert titles["net"] == "Sequential"
    assert titles["net.0"] == "Linear(2, 4)"
    assert titles["net.1–5"] == "Block × 5"
    assert titles["net.3"] == "Block"
    assert titles["net.3.inner"] == "Linear(4, 4)"
    within = {tuple(box["within"]) for box in document["boxes"] if box["kind"] == "leaf"}
    assert ("net", "net/1–5", "net/3", "net/3/inner") in within


def test_the_times_of_modules_add_up() -> None:
    words = [f"import torch\nfor epoch in range(3):\n{indent(BLOCKS, '    ')}", "--format", "html"]
    modules = _document(invoke(*words).stdout)["modules"]
    assert [each["path"] for each in modules.values() if "backward" not in each] == []
    blocks = [modules[f"net/{number}"] for number in range(1, 6)]
    # Of the last round alone, whose graph it is.
    assert {each["calls"] for each in [modules["net"], *blocks]} == {1}
    group = modules["net/1–5"]
    assert group["calls"] == 5
    for both in "forward", "backward":
        assert group[both] == pytest.approx(sum(each[both] for each in blocks))
    inner = [modules["net/0"], group]
    assert modules["net"]["backward"] == pytest.approx(sum(each["backward"] for each in inner))
    assert modules["net"]["forward"] >= sum(each["forward"] for each in inner) > 0
    for number, block in enumerate(blocks, 1):
        assert block["forward"] >= modules[f"net/{number}/inner"]["forward"]


def test_a_module_that_is_called_often_has_its_calls_together() -> None:
    program = "cell = torch.nn.RNNCell(2, 2)\nh = None\nfor t in range(4):\n    h = cell(x, h)\n"
    words = [f"{program}y = h.sum()", "x=[[1,2]]", "--format", "html"]
    assert _document(invoke(*words).stdout)["modules"]["cell"]["calls"] == 4


def test_what_is_called_apart_from_its_parent_counts_for_it_too() -> None:
    program = (
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2))\nfor t in range(3):\n    x = net[0](x)\n"
    )
    words = [f"{program}y = net(x).sum()", "x=[[1,2]]", "--format", "html"]
    modules = _document(invoke(*words).stdout)["modules"]
    assert (modules["net"]["calls"], modules["net/0"]["calls"]) == (4, 4)
    assert modules["net"]["forward"] >= modules["net/0"]["forward"]


def test_a_page_for_all_times_has_no_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    pages = [invoke(f"import torch\n{BLOCKS}", "--format", "html").stdout for _ in range(2)]
    assert pages[0] == pages[1]
    for module in _document(pages[0])["modules"].values():
        assert module.keys() == {"title", "path"}


@pytest.mark.parametrize("format", ["text", "json", "svg", "mermaid"])
def test_only_a_page_is_timed(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopwatch, "__init__", None)
    assert invoke(f"import torch\n{BLOCKS}", "--format", format).code == 0


class _Slow(Listener):
    """A recorder that takes 1000 seconds for each event."""

    def operation(self, *_: Any) -> None:
        _clock[0] += 1000

    step = leaf = backward = operation


_clock = [0.0]

CLOCKED = """
class Slow(torch.nn.Module):
    def forward(self, x):
        tick(3)
        return x.exp()
net = torch.nn.Sequential(Slow(), Slow())
x = torch.ones(2, requires_grad=True)
y = net(x)
y.register_hook(lambda g: tick(7))
y.sum().backward()
"""


def test_the_time_that_recording_takes_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: _clock[0])
    session = Session()
    watch = Stopwatch()
    watch.former = _Slow()

    def tick(seconds: float) -> None:
        _clock[0] += seconds

    session.interpreter.values["tick"] = tick
    session.state.recorder = watch
    for _ in session.run(f"import torch\n{CLOCKED}", "program"):
        pass
    assert [round(each.seconds) for each in watch.calls.values()] == [3, 3, 6]
    last = session.values["y"].grad_fn
    assert watch.seconds(last) == pytest.approx(7, abs=0.1)
    assert watch.seconds(last.next_nodes[0]) == pytest.approx(0, abs=0.1)


TITLES = {
    "torch.nn.Conv2d(1, 4, 3)": "Conv2d(1, 4, 3)",
    "torch.nn.Conv2d(1, 4, (3, 2), stride=2)": "Conv2d(1, 4, (3, 2), stride=2)",
    "torch.nn.BatchNorm2d(4)": "BatchNorm2d(4)",
    "torch.nn.Linear(4, 4, bias=False)": "Linear(4, 4, bias=False)",
    "torch.nn.LayerNorm(8)": "LayerNorm(8)",
    "torch.nn.ReLU()": "ReLU",
    "torch.nn.GELU()": "GELU",
    "torch.nn.GELU('tanh')": "GELU(approximate='tanh')",
}


@pytest.mark.parametrize("module", TITLES)
def test_a_title_has_no_defaults(module: str) -> None:
    session = Session()
    for _ in session.run(f"import torch\nm = {module}", "program"):
        pass
    with session.running():
        assert module_title(session.state.names()["m"]) == TITLES[module]


def test_a_view_stands_in_the_box_of_what_reads_it() -> None:
    document = _document(
        invoke("y = (x.T @ w).sum()", "x=[[1,2]]", "w=[[3,4]]", "--format", "html").stdout
    )
    names = [
        [document["nodes"][str(id)]["name"] for id in box["nodes"]] for box in document["boxes"]
    ]
    assert ["TBackward0", "MmBackward0"] in names or ["PermuteBackward0", "MmBackward0"] in names
    named = _document(
        invoke("t = x.T\ny = (t @ w).sum()", "x=[[1,2]]", "w=[[3,4]]", "--format", "html").stdout
    )
    assert max(len(box["nodes"]) for box in named["boxes"]) == 1
