"""`gradcli why`: the path that carries a gradient, or every place where it was cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradcli.repl.dispatch import HANDLERS
from gradcli.repl.repl import run_entry
from gradcli.running.arguments.options import Options
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run
from tests.asked import questions
from tests.command_line import CommandLine
from tests.pains import pains


class Case:
    """A program, a question, and the proof that is expected.

    Attributes:
        name: what the test is called.
        question: what is asked.
        program: the program, run as a file is.
        kind: the kind of the answer.
        places: the source text of each cut, with the number of its line.
    """

    def __init__(
        self, name: str, question: str, program: str, kind: str, *places: tuple[int, str]
    ) -> None:
        self.name = name
        self.question = question
        self.program = program
        self.kind = kind
        self.places = list(places)


_HEAD = """\
import torch
x = torch.tensor([1.5, -2.0], requires_grad=True)
w = torch.tensor([0.5, 3.0], requires_grad=True)
"""

_CASES = [
    Case(
        "cleared in place",
        "x.grad",
        "(x * w).sum().backward()\nx.grad.zero_()",
        "cleared",
        (5, "x.grad.zero_()"),
    ),
    Case(
        "detach",
        "x.grad",
        "h = x.detach() * 2\n(h * w).sum().backward()",
        "cut",
        (4, "x.detach()"),
    ),
    Case("data", "x.grad", "h = x.data * 2\n(h * w).sum().backward()", "cut", (4, "x.data")),
    Case(
        "no_grad block",
        "x.grad",
        "with torch.no_grad():\n    h = torch.exp(x)\n(h * w).sum().backward()",
        "cut",
        (5, "torch.exp(x)"),
    ),
    Case(
        "view made in a no_grad block",
        "v.grad",
        "with torch.no_grad():\n    v = x.view(-1)\n(v * w).sum().backward()",
        "cut",
        (6, "v * w"),
    ),
    Case(
        "no_grad decorator",
        "x.grad",
        "@torch.no_grad()\ndef f(a):\n    return a * 2\n(f(x) * w).sum().backward()",
        "cut",
        (6, "a * 2"),
    ),
    Case(
        "inference of a function called in the block",
        "x.grad",
        "def f(a):\n    return a * 2\nwith torch.no_grad():\n    h = f(x)\n"
        "(h * w).sum().backward()",
        "cut",
        (5, "a * 2"),
    ),
    Case(
        "item",
        "x.grad",
        "v = x.sum().item()\nscale = v * 2 + 1\n(scale * w).sum().backward()",
        "cut",
        (4, "x.sum().item()"),
    ),
    Case(
        "float",
        "x.grad",
        "v = float(x[0])\n(w * v).sum().backward()",
        "cut",
        (4, "float(x[0])"),
    ),
    Case(
        "tolist and tensor",
        "x.grad",
        "h = torch.tensor(x.tolist())\n(h * w).sum().backward()",
        "cut",
        (4, "x.tolist()"),
    ),
    Case(
        "torch.tensor of a tensor",
        "x.grad",
        "h = torch.tensor(x * 2)\n(h * w).sum().backward()",
        "cut",
        (4, "torch.tensor(x * 2)"),
    ),
    Case(
        "argmax",
        "x.grad",
        "k = x.argmax()\n(k * w).sum().backward()",
        "cut",
        (4, "x.argmax()"),
    ),
    Case(
        "index",
        "x.grad",
        "k = x.argmax()\nw[k].backward()",
        "cut",
        (4, "x.argmax()"),
    ),
    Case(
        "comparison", "x.grad", "m = (x > 0).float()\n(m * w).sum().backward()", "cut", (4, "x > 0")
    ),
    Case("integer", "x.grad", "n = x.long()\n(n * w).sum().backward()", "cut", (4, "x.long()")),
    Case(
        "condition of where",
        "x.grad",
        "h = torch.where(x > 0, w, -w)\nh.sum().backward()",
        "cut",
        (4, "x > 0"),
    ),
    Case(
        "two cuts",
        "x.grad",
        "a = x.detach()\nb = x.sum().item()\n(a * w * b).sum().backward()",
        "cut",
        (4, "x.detach()"),
        (5, "x.sum().item()"),
    ),
    Case(
        "second cut of a chain is not blamed",
        "x.grad",
        "a = x.detach()\nb = a.data\n(b * w).sum().backward()",
        "cut",
        (4, "x.detach()"),
    ),
    Case(
        "required too late",
        "u.grad",
        "u = torch.tensor([1., 2.])\nh = u * 2\nu.requires_grad_()\n(h * w).sum().backward()",
        "cut",
        (5, "u * 2"),
    ),
    Case("unused", "x.grad", "h = x * 2\nw.sum().backward()", "unused", (4, "x * 2")),
    Case(
        "rebound in a step",
        "w.grad",
        "(w * w).sum().backward()\nw = w - 0.1 * w.grad",
        "rebound",
        (5, "w = w - 0.1 * w.grad"),
    ),
    Case(
        "rebound to a new leaf",
        "w.grad",
        "(w * x).sum().backward()\nw = torch.ones(2, requires_grad=True)",
        "rebound",
        (5, "w = torch.ones(2, requires_grad=True)"),
    ),
    Case(
        "backward never called",
        "x.grad",
        "h = (x * w).sum()",
        "no backward",
        (4, "h = (x * w).sum()"),
    ),
    Case(
        "torch.autograd.grad",
        "x.grad",
        "h = (x * w).sum()\ng = torch.autograd.grad(h, x)",
        "returned",
        (5, "torch.autograd.grad(h, x)"),
    ),
    Case("non-leaf", "h.grad", "h = x * w\nh.sum().backward()", "non-leaf", (4, "x * w")),
    Case(
        "non-leaf on its device",
        "u.grad",
        "u = torch.ones(2, requires_grad=True).double()\nu.sum().backward()",
        "non-leaf",
        (4, "torch.ones(2, requires_grad=True).double()"),
    ),
    Case(
        "cleared",
        "x.grad",
        "(x * w).sum().backward()\nx.grad = None",
        "cleared",
        (5, "x.grad = None"),
    ),
    Case(
        "cleared by an optimizer",
        "x.grad",
        "o = torch.optim.SGD([x], lr=0.1)\n(x * w).sum().backward()\no.zero_grad()",
        "cleared",
        (6, "o.zero_grad()"),
    ),
    Case(
        "a constant",
        "c.grad",
        "c = torch.tensor([1., 2.])\n(c * w).sum().backward()",
        "constant",
        (4, "torch.tensor([1., 2.])"),
    ),
    Case(
        "integers",
        "n.grad",
        "n = torch.tensor([1, 2])\n(n * w).sum().backward()",
        "dtype",
        (4, "torch.tensor([1, 2])"),
    ),
    Case(
        "left out by inputs=",
        "x.grad",
        "(x * w).sum().backward(inputs=[w])",
        "left out",
        (4, "(x * w).sum().backward(inputs=[w])"),
    ),
    Case(
        "a custom function returns None",
        "x.grad",
        "class F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, a, b):\n        return a * b\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return None, g\n"
        "F.apply(x, w).sum().backward()",
        "undefined",
        (11, "F.apply(x, w)"),
    ),
    Case(
        "requires_grad is lost",
        "h.requires_grad",
        "h = (x.detach() + 1).exp()",
        "cut",
        (4, "x.detach()"),
    ),
    Case(
        "requires_grad of constants",
        "h.requires_grad",
        "c = torch.ones(2)\nh = c * 2",
        "constant",
        (5, "c * 2"),
    ),
    Case("a leaf by detach", "h.is_leaf", "h = x.detach()", "cut", (4, "x.detach()")),
    Case("no leaf", "h.is_leaf", "h = x + w", "recorded", (4, "x + w")),
    Case(
        "rounding",
        "x.grad",
        "(x.round() * w).sum().backward()",
        "structural zero",
        (4, "x.round()"),
    ),
    Case(
        "dead relu",
        "x.grad",
        "torch.relu(x - 9).sum().backward()",
        "zero",
        (4, "torch.relu(x - 9)"),
    ),
]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_each_cut_is_found_at_its_place(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.grad"
    path.write_text(f"{_HEAD}{case.program}\n")
    shown = CommandLine(capsys)("why", case.question, "--file", str(path), "--json")
    assert shown.code == 0, shown.err
    found = json.loads(shown.out)
    assert found["schema"] == "gradcli.why/1"
    assert found["kind"] == case.kind
    assert [(cut["line"], cut["source"]) for cut in found["cuts"]] == case.places


def test_the_path_of_a_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("why", "a.grad", "e = (a + b) * d", "a=2", "b=3", "d=4")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "a.grad = tensor(4.)",
        "because the gradient flows from e to a",
        "",
        "e  MulBackward0    e = (a + b) * d  program:1:5",
        "AddBackward0       a + b            program:1:6",
        "AccumulateGrad     a  tensor(2., requires_grad=True)",
    ]


def test_carets_point_at_the_cut_and_at_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    program = "with torch.no_grad():\n    h = x * 2\ny = h * w"
    shown = CommandLine(capsys)("why", "x.grad", program, "x=3", "w=1")
    assert "1 | with torch.no_grad():\n  |      --------------- gradients are off" in shown.out
    assert "2 |     h = x * 2\n  |         ^^^^^\n" in shown.out


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("x.gard", "did you mean `x.grad`?"),
        ("3x", "is no question"),
        ("hidde.grad", "did you mean `hidden`?"),
    ],
)
def test_slips_in_a_question(question: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("why", question, "hidden = x * 2", "x=3")
    assert shown.code == 2
    assert said in shown.err


def test_a_missing_gradient_shows_the_cut(capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("y = x.detach() * w", "x=2", "w=3")
    assert shown.code == 0
    assert "note: x.grad is None: the only way from x to y leaves the graph\n" in shown.err
    assert "  program:1:5: `.detach()` gives the values outside the graph\n" in shown.err


def test_an_unused_input_needs_no_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert CommandLine(capsys)("z = x * 2\ny = w * 2", "x=2", "w=3").err == ""


@pytest.mark.parametrize("asking", ['why("x.grad")', ".why x.grad"])
def test_a_program_asks_about_itself(asking: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = f"x = ones(2, requires_grad=True)\ny = x.detach().sum()\n{asking}\nprint(1)\n"
    shown = CommandLine(capsys)(stdin=program)
    assert "`.detach()` gives the values outside the graph" in shown.out
    assert "\n2 | y = x.detach().sum()\n  |     ^^^^^^^^^^\n" in shown.out
    assert shown.out.endswith("1\n")


@pytest.mark.parametrize(
    ("asking", "said"),
    [("blame()", "infinite slope"), (".blame", "infinite slope"), (".check", "not finite")],
)
def test_other_questions_of_a_program(
    asking: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = f"x = zeros(2, requires_grad=True)\ny = x.sqrt().sum()\ny.backward()\n{asking}\n"
    assert said in CommandLine(capsys)(stdin=program).out


def test_an_answer_though_the_program_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.grad"
    path.write_text(f"{_HEAD}loss = (w * float(x[0])).sum()\nloss.backward()\nprint(x.grad * 2)\n")
    shown = CommandLine(capsys)("why", "x.grad", "--file", str(path))
    assert shown.code == 3
    assert "error[E202]" in shown.err
    assert "`float()` makes a number of Python's" in shown.out


def test_long_paths_are_shown_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    program = "y = x\nfor i in range(100):\n    y = y * 2"
    shown = CommandLine(capsys)("why", "x.grad", program, "x=1.", "--dtype", "float64")
    assert "… 81 more nodes" in shown.out


def test_errors_of_a_session_carry_the_proof(capsys: pytest.CaptureFixture[str]) -> None:
    session = Run(Terminal(), Options(), "graph", HANDLERS)
    entries = ["x = ones(2, requires_grad=True)", "y = x.detach().sum()", "y.backward()"]
    for number, entry in enumerate(entries, 1):
        run_entry(session, entry, f"entry {number}")
    said = capsys.readouterr().err
    assert "2 | y = x.detach().sum()\n  |     ---------- `.detach()` gives" in said
    assert "note: every way to y from x leaves the graph" in said


_LINEAR = "torch.manual_seed(0)\nlin = torch.nn.Linear(2, 3)\n"
_NET = (
    "torch.manual_seed(0)\n"
    "net = torch.nn.Sequential(torch.nn.Linear(2, 3), {}torch.nn.Linear(3, 1))\n"
)

_ZEROS: list[tuple[str, str, str, str, str]] = [
    # The cause, the question, the program, what is said of the cause, the line that set it.
    ("softmax cancels", "x.grad", "torch.softmax(x, 0).sum().backward()", "add up to 1", ""),
    (
        "rows cancel",
        "w.grad",
        "a = torch.tensor([[1., 2.], [-1., -2.]])\n(a @ w).sum().backward()",
        "contributions of its elements, and they cancel",
        "",
    ),
    ("uses cancel", "x.grad", "(x - x.mean()).sum().backward()", "add up to 0: 1 - 1", ""),
    (
        "normalised numbers",
        "x.grad",
        "torch.nn.functional.layer_norm(x, (2,)).sum().backward()",
        "normalised numbers have mean 0",
        "",
    ),
    (
        "a bias in front of batch_norm",
        "lin.bias.grad",
        f"{_LINEAR}bn = torch.nn.BatchNorm1d(3)\n"
        "(bn(lin(torch.randn(8, 2))) ** 3).sum().backward()",
        "its contributions add up to 0",
        "",
    ),
    ("an empty slice", "x.grad", "x[0:0].sum().backward()", "taken of no elements", ""),
    ("an empty mask", "x.grad", "x[x > 9].sum().backward()", "taken of no elements", ""),
    (
        "slope",
        "v.grad",
        "v = torch.zeros(2, requires_grad=True)\n(v ** 2).sum().backward()",
        "slope of pow at 0 is 0",
        "",
    ),
    (
        "a parameter that is zero, after steps",
        "net.0.weight.grad",
        "torch.manual_seed(0)\n"
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))\n"
        "net[2].weight.data.fill_(0)\nopt = torch.optim.SGD(net[0].parameters(), lr=0.1)\n"
        "for _ in range(2):\n    opt.zero_grad()\n"
        "    net(torch.ones(1, 2)).sum().backward()\n    opt.step()",
        "multiplies the gradient by net.2.weight, and that is 0",
        "net[2].weight.data.fill_(0)",
    ),
    (
        "a factor that a step has moved since",
        "x.grad",
        "g = torch.zeros(1, requires_grad=True)\nopt = torch.optim.SGD([g], lr=0.1)\n"
        "(g * x).sum().backward()\nopt.step()",
        "multiplies the gradient by g, and that is 0",
        "g = torch.zeros(1, requires_grad=True)",
    ),
    (
        "a deviation of equal numbers",
        "v.grad",
        "v = torch.ones(2, requires_grad=True)\nv.std().backward()",
        "all numbers are equal: their deviation is 0",
        "",
    ),
    (
        "a loss that is reached",
        "v.grad",
        "v = torch.ones(2, requires_grad=True)\n"
        "torch.nn.functional.mse_loss(v, torch.ones(2)).backward()",
        "input and target are equal",
        "",
    ),
    ("saturation", "x.grad", "torch.sigmoid(x * 200).sum().backward()", "saturated", ""),
    (
        "a softmax over one number",
        "x.grad",
        "(torch.softmax(x[:, None], 1) * w[:, None]).sum().backward()",
        "over one number alone",
        "",
    ),
    (
        "elements that no gradient reaches",
        "w.grad",
        "y = x.detach().clone()\ny[0] = w[0] * 2\n(y * torch.tensor([0., 1.])).sum().backward()",
        "arrives only at elements that do not come of it",
        "",
    ),
    (
        "a recurrence of one step",
        "lstm.weight_hh_l0.grad",
        "lstm = torch.nn.LSTM(2, 3)\nlstm(torch.ones(1, 1, 2))[0].sum().backward()",
        "each contribution of MkldnnRnnLayer to it is 0",
        "",
    ),
    (
        "a dropout that leaves nothing",
        "x.grad",
        "torch.nn.functional.dropout(x, p=0.9999).sum().backward()",
        "dropout() set all of it to 0",
        "",
    ),
    ("dead units", "x.grad", "torch.relu(x - 9).sum().backward()", "the units are dead", ""),
    (
        "a factor of zeros",
        "w.grad",
        "a = torch.zeros(2)\n(a * w).sum().backward()",
        "by a, and that is 0",
        "a = torch.zeros(2)",
    ),
    (
        "a mask of False",
        "w.grad",
        "mask = torch.tensor([False, False])\n(w * mask).sum().backward()",
        "by mask, and that is 0",
        "mask = torch.tensor([False, False])",
    ),
    (
        "a weight of 0",
        "w.grad",
        "alpha = 0.0\n(alpha * w.sum()).backward()",
        "by the number, and that is 0",
        "alpha = 0.0",
    ),
    (
        "zeros as initialisation",
        "net.0.weight.grad",
        _NET.format("") + "for p in net.parameters():\n    torch.nn.init.zeros_(p)\n"
        "(net(torch.ones(1, 2)) - 1).pow(2).sum().backward()",
        "by net.1.weight, and that is 0",
        "    torch.nn.init.zeros_(p)",
    ),
    (
        "a dropout of everything",
        "net.0.weight.grad",
        _NET.format("torch.nn.Dropout(p=1.0), ")
        + "(net(torch.ones(1, 2)) - 1).pow(2).sum().backward()",
        "Dropout with p=1 sets everything to 0",
        _NET.format("torch.nn.Dropout(p=1.0), ").split("\n")[1],
    ),
    (
        "an underflow",
        "x.grad",
        "z = x - 61\n(torch.exp(z) * torch.exp(z)).sum().backward()",
        "underflows: it is below 1.4e-45, the least number of float32",
        "",
    ),
    (
        "passes that add up to 0",
        "x.grad",
        "(x * 3).sum().backward()\n(-x * 3).sum().backward()",
        "2 backward passes were added up, and what they brought adds up to 0",
        "(-x * 3).sum().backward()",
    ),
    (
        "a hinge that is satisfied",
        "x.grad",
        "torch.clamp(1 - x * x, min=0).sum().backward()",
        "what goes in is below the bound",
        "",
    ),
    (
        "a layer norm over one number",
        "x.grad",
        "(torch.nn.functional.layer_norm(x[:, None], (1,)) - 1).pow(2).sum().backward()",
        "the layer norm is taken over one number alone",
        "",
    ),
    (
        "no target that counts",
        "x.grad",
        "t = torch.tensor(-100)\n"
        "torch.nn.functional.cross_entropy(x, t, reduction='sum').backward()",
        "no target at which a gradient arrives counts",
        "",
    ),
    (
        "a dropout of the program's own",
        "net.0.weight.grad",
        "class Dropout(torch.nn.Module):\n    def forward(self, x):\n        return x * 0\n"
        + _NET.format("Dropout(), ")
        + "net(torch.ones(1, 2)).sum().backward()",
        "multiplies the gradient by the number, and that is 0",
        "        return x * 0",
    ),
    (
        "a custom function that returns zeros",
        "x.grad",
        "class Zero(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return torch.zeros_like(g)\n"
        "Zero.apply(x).sum().backward()",
        "ZeroBackward passes nothing on",
        "        return torch.zeros_like(g)",
    ),
]


@pytest.mark.parametrize(
    ("question", "program", "said", "line"),
    [each[1:] for each in _ZEROS],
    ids=[each[0] for each in _ZEROS],
)
def test_why_a_gradient_is_zero(
    question: str,
    program: str,
    said: str,
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "program.grad"
    path.write_text(f"{_HEAD}{program}\n")
    shown = CommandLine(capsys)("why", question, "--file", str(path))
    assert shown.code == 0, shown.err
    assert said in " ".join(shown.out.split()), shown.out
    assert f"| {line}" in shown.out, shown.out


def test_a_small_gradient_is_no_cancellation(capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("why", "x.grad", "y = (x ** 2).sum() * 1e-3", "x=[1e-6, 2e-6]")
    assert "because the gradient flows from y to x" in shown.out


_LIN = "torch.manual_seed(0)\nnet = torch.nn.Linear(2, 1)\n"
_SGD = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
_STEP = "net(torch.ones(1, 2)).sum().backward()\nopt.step()"

_ANSWERS: list[tuple[str, str, str, str, str | None, str, str | None]] = [
    # The cause, the question, the program, the kind, the place, what is said of it, the remedy.
    (
        "the pass that left it out, not the last one",
        "x.grad",
        "(x * w).sum().backward(inputs=[w])\n(w * 2).sum().backward()",
        "left out",
        "(x * w).sum().backward(inputs=[w])",
        "writes to the tensors in `inputs=`",
        "add `x` to `inputs`, or leave `inputs` out",
    ),
    (
        "the step of an inner optimizer",
        "x.grad",
        f"{_LIN}{_SGD}loss = net(x * w).sum()\n"
        "g = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)\n"
        "for p, q in zip(net.parameters(), g):\n    p.grad = q\n"
        "opt.step()\nnet(torch.ones(1, 2)).sum().backward()",
        "cut",
        "opt.step()",
        "the step of an optimizer runs under no_grad()",
        "untried: compute them as an expression, `w = w - lr * g`",
    ),
    (
        "a parametrized weight",
        "net.weight.grad",
        f"{_LIN}torch.nn.utils.parametrizations.weight_norm(net)\n"
        "net(torch.ones(1, 2)).sum().backward()",
        "parametrized",
        None,
        "computed of `net.parametrizations.weight.original0`",
        None,
    ),
    (
        "a parameter that was replaced",
        "net.weight",
        f"{_LIN}{_SGD}net.weight = torch.nn.Parameter(torch.zeros(1, 2))\n{_STEP}",
        "replaced",
        "net.weight = torch.nn.Parameter(torch.zeros(1, 2))",
        "from here on `net.weight` is another one",
        "make `opt` after this",
    ),
    (
        "an iterator that was gone through",
        "net.weight",
        f"{_LIN}params = net.parameters()\nn = sum(p.numel() for p in params)\n"
        "opt = torch.optim.SGD([{'params': list(params)}, {'params': [w]}], lr=0.1)\n"
        f"{_STEP}",
        "exhausted",
        "params = net.parameters()",
        "`params` is an iterator",
        "params = list(net.parameters())",
    ),
    (
        "an iterator that left the optimizer nothing",
        "net.weight",
        f"{_LIN}params = net.parameters()\nn = sum(p.numel() for p in params)\n"
        "opt = torch.optim.SGD(params, lr=0.1)",
        "exhausted",
        "params = net.parameters()",
        "`params` is an iterator",
        "params = list(net.parameters())",
    ),
    (
        "a weight that a parametrization makes",
        "net.weight",
        "net = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2))\n"
        f"{_SGD}net(torch.ones(1, 2)).sum().backward()\nopt.step()",
        "parametrized",
        None,
        "it is computed of `net.parametrizations.weight.original` at each use",
        None,
    ),
    (
        "a step between the last pass and what set its size",
        "scale.grad",
        f"{_LIN}{_SGD}scale = torch.ones(1, requires_grad=True)\n"
        "for _ in range(2):\n    (scale * net(torch.ones(1, 2))).sum().backward()\n"
        "    opt.step()\nscale.grad = None\n(net(torch.ones(1, 2)) ** 2).sum().backward()",
        "cut",
        "opt.step()",
        "leaves the graph; what an earlier pass had brought was cleared before",
        "with create_graph=True for g",
    ),
    (
        "a clearing by another optimizer",
        "x.grad",
        "one, two = torch.optim.SGD([x], lr=0.1), torch.optim.SGD([w], lr=0.1)\n"
        "(x * w).sum().backward()\none.zero_grad()\ntwo.zero_grad()",
        "cleared",
        "one.zero_grad()",
        "a gradient arrived, and was cleared afterwards",
        "read it before",
    ),
    (
        "micro-batches of several sizes",
        "w.grad",
        "data = torch.arange(10.).reshape(5, 2)\n"
        "for part in (data[:3], data[3:]):\n    ((part @ w).mean() / 2).backward()",
        "carried",
        "((part @ w).mean() / 2).backward()",
        "if each is weighed by its share of the elements",
        None,
    ),
    (
        "a parameter of another layer",
        "net.1.weight",
        "torch.manual_seed(0)\n"
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))\n"
        f"opt = torch.optim.SGD(net[0].parameters(), lr=0.1)\n{_STEP}",
        "no optimizer",
        "opt = torch.optim.SGD(net[0].parameters(), lr=0.1)",
        "is not among the parameters",
        "opt.add_param_group({'params': [net[1].weight]})",
    ),
    (
        "a tensor that is no parameter",
        "net.alpha",
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.lin = torch.nn.Linear(2, 1)\n"
        "        self.alpha = torch.tensor(2., requires_grad=True)\n"
        "    def forward(self, x):\n        return self.lin(x) * self.alpha\n"
        f"torch.manual_seed(0)\nnet = Net()\n{_SGD}{_STEP}",
        "no parameter",
        "self.alpha = torch.tensor(2., requires_grad=True)",
        "a tensor and no parameter",
        "self.alpha = nn.Parameter(…)",
    ),
    (
        "the line that froze it, and no other",
        "net.0.weight",
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))\n"
        "net[0].requires_grad_(False)\nnet[1].requires_grad_(True)\n"
        "net(torch.ones(1, 2)).sum().backward()",
        "frozen",
        "net[0].requires_grad_(False)",
        "says which parameters require grad",
        "unfreeze it",
    ),
    (
        "a custom function that returns None",
        "x.grad",
        "class F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, a, b):\n        return a * b\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return None, g\n"
        "F.apply(x, w).sum().backward()",
        "undefined",
        "F.apply(x, w)",
        "return None, g",
        None,
    ),
    (
        "a linear function's second derivative",
        "v.grad",
        f"{_LIN}v = torch.ones(1, 2, requires_grad=True)\n"
        "g, = torch.autograd.grad(net(v).sum(), v, create_graph=True)\ng.sum().backward()",
        "linear",
        "torch.autograd.grad(net(v).sum(), v, create_graph=True)",
        "the second derivative is 0",
        None,
    ),
    (
        "a gradient of a gradient that has no graph",
        "g.grad",
        "g, = torch.autograd.grad((x ** 3).sum(), x)",
        "cut",
        "torch.autograd.grad((x ** 3).sum(), x)",
        "g is a gradient itself, which grad() returned",
        None,
    ),
    (
        "means of unequal batches",
        "w.grad",
        "data = torch.arange(10.).reshape(5, 2)\n"
        "for part in (data[:3], data[3:]):\n    (part @ w).mean().backward()",
        "carried",
        "(part @ w).mean().backward()",
        "a mean of its own, of 3 and 2 elements",
        "clear it in between",
    ),
    (
        "hooks that forward() skips",
        "net.weight.grad",
        f"{_LIN}net.register_forward_hook(lambda m, i, o: None)\n"
        "net.forward(torch.ones(1, 2)).sum().backward()",
        "carried",
        "net.forward(torch.ones(1, 2))",
        "runs no hooks",
        "call `net(…)`",
    ),
    (
        "an output that is asked for a gradient too late",
        "w.grad",
        "loss = torch.tensor([w[0] * 2, w[1]]).sum()\nloss.requires_grad = True\nloss.backward()",
        "cut",
        "torch.tensor([w[0] * 2, w[1]])",
        "the copy has no history",
        "`torch.stack()`, or use the tensor itself, and leave `loss.requires_grad = True` out",
    ),
    (
        "numbers that are written into elements",
        "x.grad",
        "y = torch.zeros(2)\nfor i in range(2):\n    y[i] = float(x[i]) ** 2\n"
        "(y * w).sum().backward()",
        "cut",
        "float(x[i])",
        "`float()` makes a number of Python's",
        "compute on with the tensor itself",
    ),
    (
        "an embedding that is frozen as it is made",
        "emb.weight",
        "emb = torch.nn.Embedding.from_pretrained(torch.ones(3, 2))\n"
        "(emb(torch.tensor([1])) * w).sum().backward()",
        "frozen",
        "torch.nn.Embedding.from_pretrained(torch.ones(3, 2))",
        "from_pretrained() freezes",
        "freeze=False",
    ),
    (
        "a draw of a distribution",
        "x.grad",
        "d = torch.distributions.Categorical(torch.softmax(x, 0))\n"
        "a = d.sample()\n(a * w).sum().backward()",
        "cut",
        "d.sample()",
        "`log_prob()` of what was drawn",
        None,
    ),
    (
        "a normal draw, whose slopes are 0",
        "x.grad",
        "z = torch.normal(x, 1.)\n(z * w).sum().backward()",
        "structural zero",
        "torch.normal(x, 1.)",
        "its slopes are 0 by definition",
        "mu + sigma * torch.randn_like(mu)",
    ),
    (
        "a comparison that chooses",
        "x.grad",
        "y = torch.where(x > 0, w, -w)\ny.sum().backward()",
        "cut",
        "x > 0",
        "a comparison gives booleans",
        "y = (torch.sigmoid((x) - (0)) * (w) + (1 - torch.sigmoid((x) - (0))) * (-w))",
    ),
    (
        "a cast to bytes",
        "x.grad",
        "y = (x * 255).to(torch.uint8).float()\n(y * w).sum().backward()",
        "cut",
        "(x * 255).to(torch.uint8)",
        "torch.uint8, and integers",
        "keep it floating: `y = (x * 255).float()`",
    ),
    (
        "a bound that PPO means",
        "r.grad",
        "r = torch.tensor([3., 4.], requires_grad=True)\n"
        "torch.min(r * 2, torch.clamp(r, 0.8, 1.2) * 2).sum().backward()",
        "zero",
        "torch.min(r * 2, torch.clamp(r, 0.8, 1.2) * 2)",
        "what goes in is outside the bounds, where the slope is 0",
        None,
    ),
    (
        "a pruned weight",
        "net.weight.grad",
        f"{_LIN}torch.nn.utils.prune.l1_unstructured(net, 'weight', amount=1)\n"
        "net(torch.ones(1, 2)).sum().backward()",
        "parametrized",
        None,
        "computed of `net.weight_orig`",
        None,
    ),
    (
        "a step that rounding loses",
        "p.trains",
        "p = torch.tensor([1000.], requires_grad=True)\nopt = torch.optim.SGD([p], lr=1e-9)\n"
        "for i in range(3):\n    opt.zero_grad()\n    p.sum().backward()\n    opt.step()",
        "rounded away",
        "opt.step()",
        "numbers of torch.float32 as large as 1000 are 6.1e-05 apart",
        None,
    ),
    (
        "a schedule that stays at 0",
        "net.weight.trains",
        f"{_LIN}{_SGD}s = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: e // 9)\n"
        "for i in range(3):\n    net(torch.ones(1, 2)).sum().backward()\n"
        "    opt.step()\n    s.step()",
        "no rate at step",
        "s = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: e // 9)",
        "`opt` has lr=0 for it at each step()",
        None,
    ),
    (
        "a penalty of gradients that have no graph",
        "w.grad",
        "g, = torch.autograd.grad((w ** 3).sum(), w)\n(g ** 2).sum().backward()",
        "cut",
        "torch.autograd.grad((w ** 3).sum(), w)",
        "`torch.autograd.grad()` gives the gradient without its history",
        "create_graph=True",
    ),
    (
        "a weight of the loss that is 0",
        "w.grad",
        "epoch = 0\nalpha = min(1., epoch / 10)\nscale = w.norm().item()\n"
        "loss = alpha * (w * x).sum() / scale\nloss.backward()",
        "zero",
        "alpha * (w * x).sum()",
        "MulBackward0 multiplies the gradient by `alpha`, and that is 0",
        None,
    ),
    (
        "a generator of parameters that were counted",
        "net.weight.trains",
        f"{_LIN}head = torch.nn.Linear(1, 1)\nparams = (p for m in [net] for p in m.parameters())\n"
        "n = sum(p.numel() for p in params)\n"
        "opt = torch.optim.SGD([{'params': head.parameters()}, {'params': list(params)}], lr=0.1)\n"
        "head(net(torch.ones(1, 2))).sum().backward()\nopt.step()",
        "exhausted",
        "params = (p for m in [net] for p in m.parameters())",
        "`params` has no parameters left when the optimizer is given it",
        "`params = list(",
    ),
    (
        "a generator that leaves a parameter out",
        "net.bias.trains",
        f"{_LIN}params = (p for n, p in net.named_parameters() if n == 'weight')\n"
        "opt = torch.optim.SGD(params, lr=0.1)\nnet(torch.ones(1, 2)).sum().backward()\nopt.step()",
        "no optimizer",
        "opt = torch.optim.SGD(params, lr=0.1)",
        "no optimizer holds it",
        "opt.add_param_group",
    ),
    (
        "the other optimizer clears",
        "net.weight.grad",
        f"{_LIN}{_SGD}other = torch.optim.SGD([w], lr=0.1)\nfor i in range(3):\n"
        "    other.zero_grad()\n    net(torch.ones(1, 2)).sum().backward()\n    opt.step()",
        "carried",
        "net(torch.ones(1, 2)).sum().backward()",
        "`other` does not hold it, so `other.zero_grad()` does not clear it",
        "`net.zero_grad()` does",
    ),
    (
        "gradients clipped to 0",
        "net.weight.trains",
        f"{_LIN}{_SGD}net(torch.ones(1, 2)).sum().backward()\n"
        "torch.nn.utils.clip_grad_norm_(net.parameters(), 0.)\nopt.step()",
        "cleared",
        "torch.nn.utils.clip_grad_norm_(net.parameters(), 0.)",
        "this sets it to 0",
        None,
    ),
    (
        "a step behind which the next pass fails",
        "net.weight.grad",
        f"{_LIN}{_SGD}h = torch.zeros(1)\nfor i in range(2):\n"
        "    h = torch.tanh(net(torch.ones(2)) + h)\n    opt.zero_grad()\n    h.sum().backward()\n"
        "    opt.step()",
        "failed",
        "h.sum().backward()",
        "the backward pass ended in error E403 before it reached net.weight",
        None,
    ),
    (
        "a generator's step through detach()",
        "net.weight.trains",
        f"{_LIN}{_SGD}net2 = torch.nn.Linear(1, 1)\nfor i in range(3):\n    opt.zero_grad()\n"
        "    loss = net2(net(torch.ones(3, 2)).detach()).pow(2).mean()\n    loss.backward()\n"
        "    opt.step()",
        "cut",
        "net(torch.ones(3, 2)).detach()",
        "`.detach()` gives the values outside the graph",
        "leave `.detach()` out here",
    ),
    (
        "a buffer that is written over",
        "w.grad",
        "b = torch.zeros(2)\nb[0] = w[0] ** 2\nb[:] = x\nb.sum().backward()",
        "structural zero",
        "b[:]",
        "this writes over all of it: what it held before has no gradient",
        None,
    ),
    (
        "detach_() between two layers",
        "net.weight.grad",
        f"{_LIN}h = net(torch.ones(3, 2))\nh.detach_()\ntorch.nn.Linear(1, 1)(h).sum().backward()",
        "cut",
        "h.detach_()",
        "`.detach_()` cuts it off from the graph that made it",
        "leave it out",
    ),
    (
        "parts of a batch that are not divided",
        "net.weight.grad",
        f"{_LIN}{_SGD}for i in range(4):\n    net(torch.ones(3, 2)).mean().backward()\nopt.step()",
        "carried",
        "net(torch.ones(3, 2)).mean().backward()",
        "4 backward passes were added up",
        "where these are 4 parts of one batch, divide each loss by 4",
    ),
    (
        "a mask by another name",
        "w.grad",
        "mask = (w > 9).float()[None]\n(w * mask).sum().backward()",
        "zero",
        "w * mask",
        "MulBackward0 multiplies the gradient by mask, and that is 0",
        None,
    ),
    (
        "a long loop each of whose steps rounding loses",
        "p.trains",
        "p = torch.tensor([1000.], requires_grad=True)\nopt = torch.optim.SGD([p], lr=1e-9)\n"
        "for i in range(200):\n    opt.zero_grad()\n    p.sum().backward()\n    opt.step()",
        "rounded away",
        "opt.step()",
        "numbers of torch.float32 as large as 1000 are 6.1e-05 apart",
        None,
    ),
    (
        "a long loop that puts NaN back",
        "p.trains",
        "p = torch.tensor([math.nan, 1.], requires_grad=True)\nopt = torch.optim.SGD([p], lr=1.)\n"
        "start = p.detach().clone()\nfor i in range(200):\n    opt.zero_grad()\n"
        "    p.sum().backward()\n    opt.step()\n    p.data.copy_(start)",
        "put back",
        "p.data.copy_(start)",
        "put back after each step() to what it was ahead of the first",
        "leave it out",
    ),
    (
        "a gradient that LBFGS takes for none",
        "net.weight.trains",
        f"{_LIN}opt = torch.optim.LBFGS(net.parameters())\ndef closure():\n    opt.zero_grad()\n"
        "    loss = 1e-9 * net(torch.ones(1, 2)).sum()\n    loss.backward()\n    return loss\n"
        "for i in range(3):\n    opt.step(closure)",
        "converged",
        "opt.step(closure)",
        "no number of any gradient is above tolerance_grad, which is 1e-07",
        None,
    ),
    (
        "a state that each round loads",
        "net.weight.trains",
        f"{_LIN}{_SGD}start = {{n: p.clone() for n, p in net.state_dict().items()}}\n"
        "for i in range(3):\n    net.load_state_dict(start)\n"
        "    net(torch.ones(1, 2)).sum().backward()\n    opt.step()",
        "put back",
        "net.load_state_dict(start)",
        "put back after each step() to what it was ahead of the first",
        "leave it out",
    ),
    (
        "gradients that are set to 0 ahead of the step",
        "net.weight.trains",
        f"{_LIN}{_SGD}for i in range(2):\n    net(torch.ones(1, 2)).sum().backward()\n"
        "    net.weight.grad.mul_(torch.zeros(1))\n    opt.step()\n"
        "net(torch.ones(1, 2)).sum().backward()",
        "no gradient at step",
        "opt.step()",
        "none of 2 step()s of `opt` changes it",
        None,
    ),
    (
        "a step that is never reached",
        "net.weight.trains",
        f"{_LIN}{_SGD}net(torch.ones(1, 2)).sum().backward()\n"
        "if not net.weight.grad.isfinite().all():\n    opt.step()",
        "no step",
        "opt.step()",
        "the program never comes to this call",
        None,
    ),
    (
        "a pass that failed behind one that brought 0",
        "w.grad",
        "h = torch.exp(w)\nfor i in range(2):\n    (h * i).sum().backward()",
        "zero",
        "h * i",
        "multiplies the gradient by the number, and that is 0",
        None,
    ),
    (
        "a gradient that holds its graph",
        "x.grad",
        "(x ** 3).sum().backward(create_graph=True)",
        "carried",
        "(x ** 3).sum().backward(create_graph=True)",
        "keeps the graph alive",
        None,
    ),
]


@pytest.mark.parametrize(
    ("question", "program", "kind", "place", "said", "help"),
    [each[1:] for each in _ANSWERS],
    ids=[each[0] for each in _ANSWERS],
)
def test_the_cause_its_line_and_its_remedy(
    question: str,
    program: str,
    kind: str,
    place: str | None,
    said: str,
    help: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "program.grad"
    path.write_text(f"{_HEAD}{program}\n")
    command = CommandLine(capsys)
    found = json.loads(command("why", question, "--file", str(path), "--json").out)
    assert found["kind"] == kind
    assert found["cuts"][0].get("source") == place
    assert said in " ".join(command("why", question, "--file", str(path)).out.split())
    shown = found["cuts"][0]["help"]
    assert (shown is None) if help is None else (help in shown)


def test_what_is_not_finite_is_said_of_what_trains(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        f"{_LIN}{_SGD}net(torch.tensor([[math.nan, 1.]])).sum().backward()\nopt.step()\n"
        "opt.zero_grad()\nnet(torch.ones(1, 2)).sum().backward()"
    )
    for question in ("net.weight", "net.weight.grad", "net.bias"):
        said = "not finite, and `gradcli blame` finds" in " ".join(
            CommandLine(capsys)("why", question, program).out.split()
        )
        assert said == (question == "net.weight"), question


def test_a_rate_that_came_to_next_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        f"{_LIN}{_SGD}s = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=1e-30)\n"
        "for i in range(3):\n    net(torch.ones(1, 2)).sum().backward()\n    opt.step()\n"
        "    s.step()"
    )
    shown = " ".join(CommandLine(capsys)("why", "net.weight", program).out.split())
    assert "trains = True" in shown
    assert "by now `opt` has lr=1e-91 for it" in shown


def test_a_value_that_comes_back_by_itself_trains(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "p = torch.tensor([1.], requires_grad=True)\nopt = torch.optim.SGD([p], lr=1.)\n"
        "for i in range(4):\n    opt.zero_grad()\n    (p ** 2).sum().backward()\n    opt.step()"
    )
    assert "p.trains = True" in CommandLine(capsys)("why", "p.trains", program).out


def test_weight_decay_moves_what_has_no_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "w = torch.tensor([1., 2.], requires_grad=True)\n"
        "b = torch.tensor([0.5], requires_grad=True)\n"
        "opt = torch.optim.AdamW([w, b], lr=0.1)\n"
        "(w.sum() + 0 * b.sum()).backward()\nopt.step()\n"
    )
    shown = CommandLine(capsys)("why", "b", program)
    assert "b.trains = True\nbecause the weight decay of `opt` moves it" in shown.out


def test_a_second_cut_behind_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    program = "h = x.detach() * 2\ny = (h.data * w).sum()"
    shown = CommandLine(capsys)("why", "x.grad", program, "x=3", "w=1").out
    assert "leave `.detach()` out here, and then in line 2: leave `.data` out here" in shown


def test_a_remedy_that_does_not_help_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The number is rounded, and a rounded tensor has no slope."""
    program = "y = w * int(x)"
    shown = CommandLine(capsys)("why", "x.grad", program, "x=2.5", "w=1").out
    assert "`int()` makes a number of Python's" in shown
    assert "= help" not in shown


def test_few_remedies_are_untried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = CommandLine(capsys)
    asked = [(each.question, _HEAD + each.program) for each in _CASES]
    asked += [(each[1], _HEAD + each[2]) for each in _ANSWERS]
    asked += [(each[1], _HEAD + each[2]) for each in _ZEROS]
    asked += [(each.ask[1], each.program) for each in pains() if each.ask[0] == "why"]
    asked += [(each.ask[1], each.program) for each in questions() if each.ask[0] == "why"]
    shown: list[str] = []
    for number, (question, program) in enumerate(asked):
        path = tmp_path / f"{number}.grad"
        path.write_text(f"{program}\n")
        found = json.loads(command("why", question, "--file", str(path), "--json").out)
        shown += [each["help"] for each in found["cuts"] if each["help"] is not None]
    untried = sorted({each for each in shown if each.startswith("untried: ")})
    assert [each[:20] for each in untried] == ["untried: compute the"]
    assert len(shown) >= 60
    assert sum(each in untried for each in shown) * 20 <= len(shown)
