"""`gradcli blame`: the token where a NaN or infinity is born, and a rewrite that is finite and
right.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from tests.command_line import CommandLine


class Case:
    """A program whose output or gradient is not finite.

    Attributes:
        name: what the test is called.
        program: the program.
        inputs: its arguments.
        token: the source text that is to blame.
        kind: what is wrong there.
        output: what the output should be.
        gradients: what the gradients of the inputs should be; at a point without slope the
            convention that the rewrite takes.
    """

    def __init__(
        self,
        name: str,
        program: str,
        inputs: dict[str, Any],
        token: str,
        kind: str,
        output: Any,
        **gradients: Any,
    ) -> None:
        self.name = name
        self.program = program
        self.inputs = inputs
        self.token = token
        self.kind = kind
        self.output = output
        self.gradients = gradients

    def words(self) -> list[str]:
        """The words behind the command."""
        return [self.program, *(f"{name}={value}" for name, value in self.inputs.items())]


_CASES = [
    Case(
        "masked sqrt",
        "y = torch.where(x > 0, torch.sqrt(x), 0).sum()",
        {"x": "[1, 0, 4]"},
        "torch.sqrt(x)",
        "0*inf",
        3.0,
        x=[0.5, 0, 0.25],
    ),
    Case(
        "masked log",
        "y = torch.where(x > 0, x.log(), 0.).sum()",
        {"x": "[1, 0, 2]"},
        "x.log()",
        "0*inf",
        math.log(2),
        x=[1, 0, 0.5],
    ),
    Case(
        "masked log in the other branch",
        "y = torch.where(x <= 0, 0., x.log()).sum()",
        {"x": "[1, 0, 2]"},
        "x.log()",
        "0*inf",
        math.log(2),
        x=[1, 0, 0.5],
    ),
    Case(
        "masked division",
        "y = torch.where(x != 0, 1 / x, 0.).sum()",
        {"x": "[1, 0, 2]"},
        "1 / x",
        "0*inf",
        1.5,
        x=[-1, 0, -0.25],
    ),
    Case(
        "masked on a line of its own",
        "r = torch.sqrt(x)\ny = torch.where(x > 0, r, 0).sum()",
        {"x": "[1, 0, 4]"},
        "torch.sqrt(x)",
        "0*inf",
        3.0,
        x=[0.5, 0, 0.25],
    ),
    Case(
        "masked_fill of a log",
        "y = x.log().masked_fill(x == 0, 0.).sum()",
        {"x": "[1, 0, 2]"},
        "x.log()",
        "0*inf",
        math.log(2),
        x=[1, 0, 0.5],
    ),
    Case(
        "norm at zero",
        "y = torch.sqrt((x ** 2).sum())",
        {"x": "[0, 0]"},
        "torch.sqrt((x ** 2).sum())",
        "infinite slope",
        0.0,
        x=[0, 0],
    ),
    Case(
        "norm along a dimension, as a power",
        "y = ((x * x).sum(1) ** 0.5).sum()",
        {"x": "[[3, 4], [0, 0]]"},
        "(x * x).sum(1) ** 0.5",
        "infinite slope",
        5.0,
        x=[[0.6, 0.8], [0, 0]],
    ),
    Case(
        "root of a square",
        "y = (x ** 2).sqrt().sum()",
        {"x": "[0, -3]"},
        "(x ** 2).sqrt()",
        "infinite slope",
        3.0,
        x=[0, -1],
    ),
    Case(
        "normalised vector",
        "y = (x / x.norm() * w).sum()",
        {"x": "[0, 0]", "w": "[1, 2]"},
        "x / x.norm()",
        "0/0",
        0.0,
        w=[0, 0],
    ),
    Case(
        "log-sum-exp by hand",
        "y = torch.log(torch.exp(x).sum())",
        {"x": "[1000, 999]"},
        "torch.exp(x)",
        "overflow",
        1000.3132617,
        x=[0.7310586, 0.2689414],
    ),
    Case(
        "log-sum-exp by hand along a dimension",
        "y = x.exp().sum(dim=1).log().sum()",
        {"x": "[[1000, 999], [0, 0]]"},
        "x.exp()",
        "overflow",
        1001.0064088,
        x=[[0.7310586, 0.2689414], [0.5, 0.5]],
    ),
    Case(
        "softmax by hand",
        "y = (torch.exp(x) / torch.exp(x).sum() * w).sum()",
        {"x": "[1000, 999]", "w": "[1, 2]"},
        "torch.exp(x)",
        "overflow",
        1.2689414,
        x=[-0.1966119, 0.1966119],
        w=[0.7310586, 0.2689414],
    ),
    Case(
        "softmax by hand on two lines",
        "e = torch.exp(x)\ny = (e / e.sum() * w).sum()",
        {"x": "[1000, 999]", "w": "[1, 2]"},
        "torch.exp(x)",
        "overflow",
        1.2689414,
        x=[-0.1966119, 0.1966119],
        w=[0.7310586, 0.2689414],
    ),
    Case(
        "softmax by hand over rows",
        "e = torch.exp(x)\ny = (e / e.sum(1, keepdim=True) * torch.tensor([1., 2., 3.])).sum()",
        {"x": "[[1000, 999, 0], [1, 2, 3]]"},
        "torch.exp(x)",
        "overflow",
        1.2689414 + 2.5752104,
        x=[[-0.1966119, 0.1966119, 0], [-0.1418171, -0.1407703, 0.2825874]],
    ),
    Case(
        "both logarithms of a binary cross-entropy",
        "p = torch.sigmoid(x)\ny = -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).sum()",
        {"x": "[200, -200]", "t:const": "tensor([0., 1.])"},
        "torch.log(p)",
        "log of zero",
        400.0,
        x=[1, -1],
    ),
    Case(
        "logarithm of a product",
        "y = torch.log(torch.prod(p))",
        {"p": "[1e-25, 1e-25, 0.5]"},
        "torch.log(torch.prod(p))",
        "log of zero",
        -115.8221,
        p=[1e25, 1e25, 2],
    ),
    Case(
        "distances of points to each other",
        "y = ((x[:, None] - x[None, :]) ** 2).sum(-1).sqrt().sum()",
        {"x": "[[0, 0], [3, 4]]"},
        "((x[:, None] - x[None, :]) ** 2).sum(-1).sqrt()",
        "infinite slope",
        10.0,
        x=[[-1.2, -1.6], [1.2, 1.6]],
    ),
    Case(
        "a dead row that is normalised",
        "y = (x / x.norm(dim=1, keepdim=True) * torch.tensor([1., 2.])).sum()",
        {"x": "[[0, 0], [3, 4]]"},
        "x / x.norm(dim=1, keepdim=True)",
        "0/0",
        2.2,
        x=[[1, 2], [-0.064, 0.048]],
    ),
    Case(
        "a row that is masked whole",
        "m = torch.tensor([[True, False], [False, False]])\n"
        "y = (torch.softmax(s.masked_fill(~m, -math.inf), -1) * torch.tensor([1., 2.])).sum()",
        {"s": "[[1, 2], [3, 4]]"},
        "torch.softmax(s.masked_fill(~m, -math.inf), -1)",
        "inf - inf",
        2.7310586,
        s=[[0, 0], [-0.1966119, 0.1966119]],
    ),
    Case(
        "a small constant in half precision",
        "x = torch.tensor([0., 1.], dtype=torch.float16, requires_grad=True)\n"
        "y = (1 / (x + 1e-8)).sum()",
        {},
        "1 / (x + 1e-8)",
        "division by zero",
        1e8,
        x=[-1e16, -1],
    ),
    Case(
        "a module in half precision",
        "net = torch.nn.Linear(2, 1, bias=False).half()\n"
        "torch.nn.init.constant_(net.weight, 300)\n"
        "y = net(torch.tensor([[300., 1.]]).half()).sum()",
        {},
        "net(torch.tensor([[300., 1.]]).half())",
        "overflow",
        90300,
    ),
    Case(
        "a power that a factor masks",
        "y = (x.pow(0.5) * (x > 0)).sum()",
        {"x": "[0, 4]"},
        "x.pow(0.5)",
        "0*inf",
        2.0,
        x=[0, 0.25],
    ),
    Case(
        "a square that rounds to 0",
        "y = (x / (x ** 2).sqrt()).sum()",
        {"x": "[1e-30, 1]"},
        "x / (x ** 2).sqrt()",
        "division by zero",
        2.0,
        x=[0, 0],
    ),
    Case(
        "root of a negative that is masked",
        "y = torch.where(x < 0, 0, torch.sqrt(x)).sum()",
        {"x": "[-1, 4]"},
        "torch.sqrt(x)",
        "sqrt of a negative",
        2.0,
        x=[0, 0.25],
    ),
    Case(
        "logistic function by hand",
        "y = (1 / (1 + torch.exp(-x))).sum()",
        {"x": "[-200, 0]"},
        "torch.exp(-x)",
        "0*inf",
        0.5,
        x=[0, 0.25],
    ),
    Case(
        "softplus by hand",
        "y = torch.log(1 + torch.exp(x)).sum()",
        {"x": "[200, 0]"},
        "torch.exp(x)",
        "overflow",
        200.6931472,
        x=[1, 0.5],
    ),
    Case(
        "tanh by hand",
        "y = ((torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))).sum()",
        {"x": "[200, 0]"},
        "torch.exp(x)",
        "overflow",
        1.0,
        x=[0, 1],
    ),
    Case(
        "log of sigmoid",
        "y = torch.log(torch.sigmoid(x)).sum()",
        {"x": "[-200, 0]"},
        "torch.log(torch.sigmoid(x))",
        "log of zero",
        -200.6931472,
        x=[1, 0.5],
    ),
    Case(
        "log of softmax",
        "y = torch.log(torch.softmax(x, 0))[0]",
        {"x": "[-200, 0]"},
        "torch.log(torch.softmax(x, 0))",
        "log of zero",
        -200.0,
        x=[1, -1],
    ),
    Case(
        "0/0",
        "y = (a / b).sum()",
        {"a": "[0, 1]", "b": "[0, 2]"},
        "a / b",
        "0/0",
        0.5,
        b=[0, -0.25],
    ),
    Case(
        "log(0) * 0",
        "y = -(p * torch.log(p)).sum()",
        {"p": "[0, 0.5, 0.5]"},
        "torch.log(p)",
        "log of zero",
        0.6931472,
        p=[0, -0.3068528, -0.3068528],
    ),
    Case(
        "log of zero",
        "y = (w * x.log()).sum()",
        {"x": "[0, 2]", "w": "[0, 1]"},
        "x.log()",
        "log of zero",
        0.6931472,
        x=[0, 0.5],
    ),
    Case(
        "binary cross-entropy by hand",
        "p = torch.sigmoid(x)\ny = -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).sum()",
        {"x": "[200, -200]", "t:const": "tensor([1., 0.])"},
        "torch.log(p)",
        "log of zero",
        0.0,
        x=[0, 0],
    ),
    Case(
        "half power at zero",
        "y = (x ** 0.5).sum()",
        {"x": "[0, 4]"},
        "x ** 0.5",
        "infinite slope",
        2.0,
        x=[0, 0.25],
    ),
    Case(
        "acos at one",
        "y = torch.acos(x).sum()",
        {"x": "[1, 0.5]"},
        "torch.acos(x)",
        "infinite slope",
        1.0471976,
        x=[0, -1.1547005],
    ),
    Case(
        "standard deviation of constants by hand",
        "y = ((x - x.mean()) ** 2).mean().sqrt()",
        {"x": "[2, 2, 2]"},
        "((x - x.mean()) ** 2).mean().sqrt()",
        "infinite slope",
        0.0,
        x=[0, 0, 0],
    ),
    Case(
        "cross-entropy by hand, where float64 has no value either",
        "p = torch.sigmoid(z)\ny = -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()",
        {"z": "[100, -120, 1]", "t:const": "tensor([1., 0., 1.])"},
        "torch.log(p)",
        "log of zero",
        0.1044206,
        z=[0, 0, -0.0896471],
    ),
    Case(
        "softmax of nothing but -inf",
        "m = torch.tensor([[0., -math.inf], [-math.inf, -math.inf]])\n"
        "y = (torch.softmax(x + m, -1)[:, 0] * w).sum()",
        {"x": "[[1, 2], [3, 3]]", "w": "[1, 2]"},
        "torch.softmax(x + m, -1)",
        "inf - inf",
        2.0,
        w=[1, 0.5],
    ),
    Case(
        "NaN in the data",
        "y = (x * w).sum()",
        {"x:const": "tensor([1., math.nan, 3.])", "w": "[1, 1, 2]"},
        "x * w",
        "from the data",
        7.0,
        w=[1, 0, 3],
    ),
    Case(
        "exp overflow",
        "y = torch.exp(x).sum()",
        {"x": "[100, 0]"},
        "torch.exp(x)",
        "overflow",
        math.exp(100) + 1,
        x=[math.exp(100), 1],
    ),
    Case(
        "float16 overflow",
        "y = (x * x).sum()",
        {"x": "tensor([300., 2.], dtype=float16)"},
        "x * x",
        "overflow",
        90004.0,
        x=[600, 4],
    ),
]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_the_token_and_its_cure(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    command = CommandLine(capsys)
    shown = command("blame", *case.words(), "--json")
    assert shown.code == 1, shown.err
    found = json.loads(shown.out)
    assert found["schema"] == "gradcli.blame/1"
    blamed = found["blamed"]
    assert (blamed["source"], blamed["kind"]) == (case.token, case.kind)
    cure = blamed["cure"]
    assert cure is not None
    dtype = [] if cure["dtype"] is None else ["--dtype", cure["dtype"]]
    again = command(cure["program"], *case.words()[1:], "--json", *dtype)
    result = json.loads(again.out)
    assert np.allclose(result["outputs"][0]["value"], case.output, rtol=1e-4, atol=1e-5)
    gradients = {each["name"]: each["value"] for each in result["gradients"]}
    for name, expected in case.gradients.items():
        assert np.allclose(gradients[name], expected, rtol=1e-4, atol=1e-5), name


@pytest.mark.parametrize(
    ("program", "words", "token", "said"),
    [
        ("y = (a / b).sum()", ["a=[1, 1]", "b=[0, 2]"], "a / b", "the value is infinite"),
        ("y = x.log().sum()", ["x=[0, 2]"], "x.log()", "the value is -inf"),
        (
            "y = torch.log(1 - torch.tanh(x) ** 2).sum()",
            ["x=[100, 1]"],
            "torch.log(1 - torch.tanh(x) ** 2)",
            "0 by itself or by",
        ),
        ("y = x.log().sum()", ["x=[-3, 2]"], "x.log()", "must not be negative"),
        ("y = torch.sqrt(x - 1).sum()", ["x=[0, 2]"], "torch.sqrt(x - 1)", "must not be negative"),
        (
            "y = torch.exp(x).sum()",
            ["x=[1000, 2]"],
            "torch.exp(x)",
            "too large for float64 too",
        ),
        (
            "y = torch.exp(x).sum()",
            ["x=[1000, 2]", "--dtype", "float64"],
            "torch.exp(x)",
            "too large for float64",
        ),
    ],
)
def test_what_a_finite_number_would_not_be_right_for(
    program: str,
    words: list[str],
    token: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = CommandLine(capsys)
    ending = command("blame", program, *words).out.split("\n\n")[-1]
    assert ending.startswith("no cure: ")
    assert said in ending
    blamed = json.loads(command("blame", program, *words, "--json").out)["blamed"]
    assert blamed["source"] == token
    assert blamed["cure"] is None


_TRAINED = """\
x = torch.tensor([[1.], [-30.]])
for i in range({rounds}):
    loss = (x * w - 3).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("program", "token", "said"),
    [
        (
            "w = torch.ones(1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=1e30)\n"
            "loss = (w * 1e20).sum()\nloss.backward()\nopt.step()",
            "opt.step()",
            "overflow in a step, where w is changed: w was finite, and a step made it -inf: this"
            " step is too large",
        ),
        (
            "w = torch.tensor([1., 2.], requires_grad=True)\n"
            "opt = torch.optim.Adam([w], lr=0.1, eps=0.)\nloss = w[0] * 2\nloss.backward()\n"
            "opt.step()",
            "opt.step()",
            "undefined in a step, where w is changed: of a gradient that is finite",
        ),
        (
            "w = torch.ones(1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
            + _TRAINED.format(rounds=11),
            "(x * w - 3).pow(2)",
            "no cure of the formula: the training diverges: over the steps of `w`: a smaller"
            " learning rate",
        ),
        (
            "w = torch.ones(1, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
            + _TRAINED.format(rounds=100),
            "x * w",
            "the training diverges: over the steps of `w`",
        ),
        (
            "w = torch.ones(1, requires_grad=True)\n"
            "opt = torch.optim.SGD([w], lr=0.001, momentum=1.5)\n" + _TRAINED.format(rounds=400),
            "(x * w - 3).pow(2)",
            "the training diverges: over the steps of `w`",
        ),
    ],
    ids=[
        "its last step overflows",
        "its last step divides 0 by 0",
        "diverged at its end",
        "long",
        "momentum",
    ],
)
def test_what_steps_come_to(
    program: str, token: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = CommandLine(capsys)
    told = " ".join(command("blame", program).out.split())
    assert [each for each in said.split(": ") if each not in told] == [], told
    assert json.loads(command("blame", program, "--json").out)["blamed"]["source"] == token


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("y = torch.sqrt(x).sum()", ["x=[1, 4]"]),
        ("y = torch.linalg.vector_norm(x)", ["x=[0, 0]"]),
        ("y = torch.where(x > 0, x, torch.exp(1000 * x.detach().abs())).sum()", ["x=[1, 4]"]),
        ("y = torch.softmax(x.masked_fill(x > 2, -math.inf), 0)[0]", ["x=[1, 2, 3]"]),
    ],
)
def test_nothing_to_blame(
    program: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)("blame", program, *words)
    assert shown.code == 0, shown.err
    assert shown.out.startswith("nothing to blame")


def test_an_infinite_seed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("blame", "y = x * 2", "x=[1, 2]", "--seed", "[1, math.inf]")
    assert shown.code == 1
    assert "from the seed" in shown.out


def test_text_shows_operands_mask_cure_and_proof(capsys: pytest.CaptureFixture[str]) -> None:
    program = "y = torch.where(x > 0, x.sqrt(), 0).sum()"
    shown = CommandLine(capsys)("blame", program, "x=[1, 0, 4]")
    assert "x.grad is not finite: 0*inf, in the backward pass of sqrt" in shown.out
    assert "at element [1]\n  x             0\n  gradient in   0\n" in shown.out
    assert "this hides it from the value, not the gradient" in shown.out
    assert "1 | y = torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0).sum()" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80


def test_all_of_them_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    program = "a = torch.log(x)\nb = torch.exp(1000 * x)\ny = (a + b).sum()"
    shown = CommandLine(capsys)("blame", program, "x=[0, 1]", "--all")
    assert shown.code == 1
    assert shown.out.index("torch.log(x)") < shown.out.index("torch.exp(1000 * x)")


_MASKED = "x = torch.tensor([0., 1.], requires_grad=True)\ny = torch.where(x > 0, x.sqrt(), 0)\n"


@pytest.mark.parametrize(
    "program",
    [
        f"{_MASKED}g, = torch.autograd.grad(y.sum(), x)",
        f"{_MASKED}g, = torch.autograd.grad(y.sum(), x)\nassert g.isfinite().all()",
        f"{_MASKED}y.sum().backward()\nassert x.grad.isfinite().all()",
        f"{_MASKED}y = y * 2",
    ],
    ids=["grad()", "a failed check of grad()", "a failed check of .grad", "several outputs"],
)
def test_gradients_wherever_they_go(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("blame", program, "--json")
    assert json.loads(shown.out)["blamed"]["source"] == "x.sqrt()"
    assert shown.code


def test_loops_of_generators_are_run(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "def draw(n):\n    for i in range(n):\n        yield x * i\n"
        "for each in draw(3):\n    y = torch.log(each)\n"
    )
    shown = CommandLine(capsys)("blame", program, "x=0")
    assert shown.code == 1, shown.err
    assert "in round 3 of the loop at program:4:1" in shown.out


_TRAINED = """\
w = torch.tensor([1., 1.], requires_grad=True)
opt = torch.optim.SGD([w], lr={rate})
for step in range({rounds}):
    loss = {loss}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("loss", "rate", "rounds", "found"),
    [
        # Finite for many rounds: the step of the one before spoils the parameter.
        ("(w ** 2).sum()", 1.5, 200, ("overflow", ["w"], 128)),
        # The formula itself overflows, in the first round.
        ("torch.exp(w * 100).sum()", 0.1, 3, ("overflow", [], 1)),
        # A NaN of a formula, which the step carries into the parameter.
        ("torch.where(w > 2, w, w - w.detach()).sqrt().sum()", 0.1, 3, ("infinite slope", [], 1)),
    ],
)
def test_the_round_that_spoils_a_parameter(
    loss: str, rate: float, rounds: int, found: tuple[Any, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    program = _TRAINED.format(loss=loss, rate=rate, rounds=rounds)
    blamed = json.loads(CommandLine(capsys)("blame", program, "--json").out)["blamed"]
    assert (blamed["kind"], blamed["diverges"], blamed["rounds"][-1]["number"]) == found


_INFINITE = "x = torch.tensor([math.inf, 1.])\nw = torch.tensor([1., 2.], requires_grad=True)\n"

_TRAINED_ON = """\
torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [torch.randn(4, 2) for _ in range(5)]
data[2][1, 0] = math.inf
for x in data:
    loss = (net(x) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

_HALF = "w = torch.ones(2, dtype=torch.float16, requires_grad=True)\n"

_NAN_BACKWARD = """\
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * math.nan
x = torch.tensor([1., 2.], requires_grad=True)
y = F.apply(x).sum()
y.backward()
"""


@pytest.mark.parametrize(
    ("program", "kind", "token", "said"),
    [
        (f"{_INFINITE}y = (x * w).sum()\ny.backward()", "from the data", "x * w", "x holds inf"),
        (
            "w = torch.tensor([1., math.inf], requires_grad=True)\ny = (w * 2).sum()",
            "from the data",
            "w * 2",
            "w holds inf",
        ),
        (
            f"{_INFINITE}y = (w + math.inf - math.inf).sum()",
            "from a constant",
            "w + math.inf",
            "inf goes in here",
        ),
        (_TRAINED_ON, "from the data", "net(x)", "in round 3 of the loop"),
        (_NAN_BACKWARD, "undefined", "F.apply(x)", "backward() of F returned nan"),
        # An infinity beside the one that entered is the operation's own.
        (
            f"{_INFINITE}y = torch.exp(x * w * torch.tensor([1., 50.])).sum()",
            "overflow",
            "torch.exp(x * w * torch.tensor([1., 50.]))",
            "at element [1]",
        ),
        (
            "w = torch.tensor([1., 2.], dtype=torch.float16, requires_grad=True)\n"
            "scaler = torch.amp.GradScaler('cpu', init_scale=65536.)\n"
            "scaler.scale((w * w).sum()).backward()",
            "scale too large",
            "scaler.scale((w * w).sum())",
            "multiplies the gradient by 65536",
        ),
        # What a softmax makes 0 of spoils nothing behind it.
        (
            "w = torch.ones(2, 3, requires_grad=True)\nbias = torch.tensor([1., 0., 1.]).log()\n"
            "p = torch.softmax(w + bias, dim=-1).sum(-1)\ny = (p / (p - p.detach())).mean()",
            "division by zero",
            "p / (p - p.detach())",
            "p 1 other 0",
        ),
        # What is written into a tensor is no operation of those that read it.
        (
            "w = torch.ones(2, requires_grad=True)\nh = w * 2\nh[1] = w[0] / torch.zeros(1)[0]\n"
            "y = (h * 0).sum()",
            "division by zero",
            "w[0] / torch.zeros(1)[0]",
            "self 1",
        ),
        (
            f"{_HALF}h = w * 1\n(h * 40000. - h * -40000.).float().sum().backward()",
            "overflow",
            "w * 1",
            "of `h` add up beyond 65504, the largest float16",
        ),
        (
            f"{_HALF}for _ in range(2): (w * 40000.).float().sum().backward()",
            "overflow",
            None,
            "of `w` add up beyond 65504, the largest float16",
        ),
    ],
    ids=[
        *("data", "leaf", "constant", "batch", "custom", "beside", "scaler"),
        *("absorbed", "written", "gradients met", "gradients of two passes"),
    ],
)
def test_where_an_infinity_entered(
    program: str, kind: str, token: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = CommandLine(capsys)
    blamed = json.loads(command("blame", program, "--json").out)["blamed"]
    assert (blamed["kind"], blamed["source"]) == (kind, token)
    assert said in " ".join(command("blame", program).out.split())


_RNN = """\
torch.manual_seed(0)
rnn = torch.nn.RNN(2, 4, nonlinearity="relu")
with torch.no_grad():
    rnn.weight_hh_l0.mul_(8)
out, h = rnn(torch.randn(200, 1, 2))
loss = out.pow(2).mean()
"""


@pytest.mark.parametrize(
    ("program", "cause", "said"),
    [
        ("y = torch.logdet(tensor([[1., 2.], [2., 4.]]) * x)", "is singular", "eye(n)"),
        ("y = torch.logdet(tensor([[1., 2.], [2., 1.]]) * x)", "negative, -3", "slogdet"),
        (
            "w, V = torch.linalg.eigh(torch.eye(3) * x)\ny = (V * arange(3.)).sum()",
            "the eigenvalues 1 and 1 are equal",
            "such as the sum of the eigenvalues",
        ),
        (
            "U, S, V = torch.linalg.svd(torch.eye(3) * x)\ny = (U * arange(3.)).sum()",
            "the singular values 1 and 1 are equal",
            "such as the sum of the singular values",
        ),
        (
            "y = torch.nn.functional.cross_entropy(torch.ones(2, 3) * x, tensor([-100, -100]))",
            "the mean over no targets divides 0 by 0",
            "no cure: a mean over no targets",
        ),
        ("y = (torch.ones(1) * x).std()", "divides by 0", "`correction=0`"),
        (
            "m = tensor([1., 0.])\ny = (((1 - m) * -float('inf') + x).softmax(0) * x).sum()",
            "0 times an infinity has no value",
            "put the infinity in by `masked_fill()`",
        ),
        (_RNN, "beyond 3.40282e+38", "grows 3.1-fold each time"),
        (
            "h, w = torch.ones(4), (torch.ones(4, 4) * x)\nfor t in range(50): h = w @ h\n"
            "y = (h ** 2).sum()",
            "the result of pow is beyond",
            "grows 4-fold each time",
        ),
    ],
    ids=[
        "singular",
        "negative determinant",
        "eigenvalues",
        "singular values",
        "targets",
        "std",
        "a mask times -inf",
        "RNN",
        "behind a loop",
    ],
)
def test_what_has_no_cure_says_why(
    program: str, cause: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["x=1"] if "x" in program.split("* ")[-1] or "* x)" in program else []
    told = " ".join(CommandLine(capsys)("blame", program, *words).out.split())
    assert cause in told
    assert "no cure" in told or "no rewrite" in told
    assert said in told


def test_a_step_that_makes_nan_of_finite_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "w = torch.zeros(2, requires_grad=True)\nopt = torch.optim.Adam([w], lr=0.1, eps=0)\n"
        "for step in range(3):\n    opt.zero_grad()\n    loss = (w[0] - 1) ** 2\n"
        "    loss.backward()\n    opt.step()"
    )
    told = " ".join(CommandLine(capsys)("blame", program).out.split())
    assert told.startswith("w is not finite: undefined in a step")
    assert "`eps=0` does so where a gradient has been 0" in told


def test_growth_is_said_only_of_what_grew(capsys: pytest.CaptureFixture[str]) -> None:
    """A probability that rounds to 0 in a later round is no learning rate that is too large."""
    program = (
        "torch.manual_seed(0)\n"
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softmax(dim=1))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=100.)\n"
        "x, t = torch.randn(4, 2), torch.tensor([0, 1, 0, 1])\n"
        "for i in range(20):\n"
        "    loss = -torch.log(net(x)[range(4), t]).mean()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    )
    told = CommandLine(capsys)("blame", program).out
    assert "the gradient of log is beyond the largest float32" in told
    assert "grew" not in told
    assert "7 of 7 are those of the" in told


def test_a_graph_that_the_program_freed(capsys: pytest.CaptureFixture[str]) -> None:
    program = "y = x.exp()\ny.sum().backward()\nz = y * 2\n"
    shown = CommandLine(capsys)("blame", program, "x=[1, 2]")
    assert shown.code == 0, shown.err


def test_a_view_that_a_write_made_unusable(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "w = torch.ones(2, 2, requires_grad=True)\nwith torch.no_grad(): row = w[0]\n"
        "with torch.no_grad(): row.fill_(0)\nz = (w * 0).sum()\ny = z / z"
    )
    shown = CommandLine(capsys)("blame", program)
    assert "0 / 0 has no value" in shown.out, shown.err
    assert shown.code == 1


_HALVED = """\
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)).half()
loss = (net(torch.full((2, 4), 1000.).half()).exp() * 5e4).sum()
loss.backward()
"""


def test_a_module_in_half_precision(capsys: pytest.CaptureFixture[str]) -> None:
    """It is compared with the weights that it has, which float64 would draw otherwise."""
    told = " ".join(CommandLine(capsys)("blame", _HALVED).out.split())
    assert "cure: float32 has room for the results" in told
    assert "torch.nn.LayerNorm(4)).float()" in told
    assert "29 of 29 are those of the former run" in told


def test_the_largest_bfloat16(capsys: pytest.CaptureFixture[str]) -> None:
    program = "y = (x.bfloat16() * 3e38).sum()"
    told = CommandLine(capsys)("blame", program, "x=[1, 4]").out
    assert "beyond 3.38953e+38, the largest bfloat16" in told


_MADE_ANEW = """\
w = torch.tensor([0., 1.], requires_grad=True)
for step in range(5):
    (g,) = torch.autograd.grad({loss}.sum(), w)
    w = (w - .01 * g).detach().requires_grad_()
"""


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("torch.where(w > 0, w.sqrt(), torch.zeros(2))", ["these inputs in float64"]),
        ("((w * 0).log())", None),
    ],
)
def test_an_output_that_is_an_input(
    loss: str, said: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has whatever values it is given, which says nothing of a rewrite."""
    found = json.loads(CommandLine(capsys)("blame", _MADE_ANEW.format(loss=loss), "--json").out)
    cure = found["blamed"]["cure"]
    assert (None if cure is None else cure["compared_at"]) == said


def test_what_a_custom_backward_returned(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "class F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * math.nan\n"
        "y = F.apply(x).sum()"
    )
    told = CommandLine(capsys)("blame", program, "x=[1, 2]").out
    assert "return g * math.nan\n  |         ------------------- this returns it" in told


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("y = x.log().sum()\ntorch.ones(2) @ torch.ones(3)", "no cure: the value is -inf"),
        ("y = x / x\ntorch.ones(2) @ torch.ones(3)", "no rewrite was tried: the program ended"),
        ("h = [x.log()]\ntorch.ones(2) @ torch.ones(3)", "not finite before the program failed:"),
    ],
)
def test_a_program_that_fails(program: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("blame", program, "x=[0, 2]")
    assert shown.code == 3
    assert said in " ".join(shown.out.split())
