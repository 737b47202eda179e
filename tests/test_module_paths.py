"""Programs with modules: parameters and nodes are told by their path, whatever is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import CommandLine

_NET = """\
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(4, 2)
    def forward(self, x):
        h = torch.relu(self.a(x))
        return self.b(h)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Block()
        self.unused = nn.Linear(2, 2)
        self.seq = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    def forward(self, x):
        return self.seq(self.body(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)
loss = (net(x)**2).mean()
loss.backward()
"""

_TRAINER = """\
class Trainer:
    def __init__(self, model):
        self.model = model
trainer = Trainer(nn.Linear(2, 1))
models = [nn.Linear(2, 2), nn.Linear(2, 2)]
y = trainer.model(models[1](torch.ones(3, 2))).sum()
"""

_LOCAL = """\
def main():
    net = nn.Sequential(nn.Linear(2, 1))
    y = net(torch.ones(3, 2)).sum()
    trace(y)
main()
"""


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(_NET)
    return str(path)


def test_nodes_carry_the_path_of_the_call(gradcli: CommandLine, net: str) -> None:
    shown = gradcli("run", net, "--trace").out
    assert "TanhBackward0" in shown
    assert "net.seq.1: self.seq(self.body(x))" in shown
    assert "net.body: h = torch.relu(self.a(x))" in shown
    assert "net.seq.2.bias  tensor of shape (1,)" in shown
    nodes = json.loads(gradcli("run", net, "--json").out)["nodes"]
    assert [each["module"] for each in nodes if each["name"] == "TanhBackward0"] == ["net.seq.1"]


def test_the_ledger_names_calls_and_weights(gradcli: CommandLine, net: str) -> None:
    shown = gradcli("explain", "--file", net).out
    assert "= grad @ net.seq.2.weight" in shown
    assert "= t(net.seq.1(…)) @ grad" in shown
    assert "∂h/∂(net.body.a(…))" in shown
    assert "#" not in shown


def test_every_parameter_is_told_those_without_gradient_first(
    gradcli: CommandLine, net: str
) -> None:
    found = json.loads(gradcli("run", net, "--json").out)["gradients"]
    assert [each["name"] for each in found[:2]] == ["net.unused.weight", "net.unused.bias"]
    assert all(each["kind"] == "none" and each["reason"] for each in found[:2])
    assert len(found) == 10
    lines = gradcli("run", "-", stdin=f"{_NET}.grads\n").out.splitlines()
    assert lines[0].startswith("net.unused.weight.grad = None  (")


def test_modules_and_parameters_are_described(gradcli: CommandLine) -> None:
    shown = gradcli("run", "-", stdin=f"{_NET}net?\nnet.body.a.weight?\n.vars\n").out
    assert "Net, 45 parameters" in shown
    assert "net.seq.0   Linear  weight [3, 2], bias [3]  9      yes" in shown
    assert "net.body.a.weight\n  type           tensor\n  shape          [4, 3]" in shown


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (_TRAINER, ["trainer.model.weight", "models[1].weight", "models[1]: models[1](torch"]),
        (_LOCAL, ["net.0.weight"]),
        ("net = nn.Linear(2, 1)\nw = net.weight\ny = (w * 2).sum()\n", ["AccumulateGrad      w"]),
        (
            "cell = nn.RNNCell(2, 2)\nh = torch.zeros(1, 2)\nfor t in range(2):\n"
            "    h = cell(torch.ones(1, 2), h)\ny = h.sum()",
            ["cell, call 1", "cell, call 2"],
        ),
    ],
)
def test_paths_begin_at_what_the_program_names(
    program: str, said: list[str], gradcli: CommandLine
) -> None:
    shown = gradcli("-e", f"from torch import nn\n{program}", "--trace")
    assert shown.code == 0, shown.err
    for text in said:
        assert text in shown.out


def test_errors_name_parameters_and_layers(gradcli: CommandLine) -> None:
    head = (
        "from torch import nn\nnet = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(4, 1))\n"
    )
    shown = gradcli("-e", f"{head}net(torch.ones(5, 2))")
    assert "note: in net.2, Linear(in_features=4, out_features=1, bias=True)" in shown.err
    assert "whose weight is (1, 4)" in shown.err
    assert "its input is (5, 3): the last dimension is 3, and in_features is 4" in shown.err
    assert "net.1, Tanh, gives that" in shown.err
    shown = gradcli("-e", f"{head}net[0].weight += 1")
    assert "`net.0.weight` is a leaf" in shown.err
    shown = gradcli("-e", "net = torch.nn.Conv2d(3, 8, 3)\nnet(torch.ones(2, 4, 5, 5))")
    assert "dimension 1 is 4, and in_channels is 3" in shown.err


_OLD = """\
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net = nn.Linear(2, 1)
net(torch.ones(3, 2)).sum().backward()
opt.step()
"""

_PART = """\
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
opt = torch.optim.SGD(net[0].parameters(), lr={rate})
net(torch.ones(3, 2)).sum().backward()
{step}
"""


@pytest.mark.parametrize(
    ("question", "program", "said"),
    [
        ("net.unused.weight.grad", _NET, ["no forward() that ran has called it"]),
        ("net.body.a.weight.grad", _NET, ["the gradient flows from loss", "net.body.a: self.a(x)"]),
        ("net.body.a.weight", f"{_NET}opt.step()", ["trains = True"]),
        ("net.weight", _OLD, ["a former model", "from here on `net` is another model"]),
        (
            "net.1.weight.trains",
            _PART.format(rate=0.1, step="opt.step()"),
            ["no optimizer holds it", "add_param_group({'params': [net[1].weight]})"],
        ),
        ("net.0.weight", _PART.format(rate=0.1, step=""), ["step() is never called"]),
        ("net.0.weight", _PART.format(rate=0.0, step="opt.step()"), ["has lr=0 for it"]),
        (
            "net.weight.grad",
            "net = nn.Linear(2, 1)\nnet.requires_grad_(False)\ny = net(torch.ones(2))",
            ["net.weight is frozen", "net.requires_grad_(False)"],
        ),
    ],
)
def test_why_of_paths(question: str, program: str, said: list[str], gradcli: CommandLine) -> None:
    shown = gradcli("why", question, f"from torch import nn\n{program}")
    assert shown.code == 0, shown.err
    for text in said:
        assert text in " ".join(shown.out.split()) or text in shown.out, shown.out


def test_a_path_that_is_not_there_names_the_nearest(gradcli: CommandLine) -> None:
    shown = gradcli("why", "net.body.a.wait.grad", _NET)
    assert shown.code == 2
    assert "did you mean `net.body.a.weight`?" in shown.err


# --- what goes wrong in programs with modules ---------------------------------------------------

_FAULTY = Path(__file__).parent / "faulty"


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        (
            "cnn",
            ["run"],
            [
                "in net.head.1, Linear(in_features=100",
                "its input is (2, 64)",
                "net.head.0, Flatten",
            ],
        ),
        ("rnn", ["run"], ["begin a round with `h = h.detach()`", "freed here"]),
        (
            "transformer",
            ["blame", "--file"],
            [
                "in model.blocks.0, Block",
                "in round 2 of the loop",
                "batch = 1",
                "in forward(), called",
            ],
        ),
        (
            "gan",
            ["run"],
            [
                "`disc.2.weight`",
                "opt_d.step()\n   | ------------ modified here",
                "the last backward()",
            ],
        ),
        (
            "trainer",
            ["why", "net.0.weight", "--file"],
            ["`opt` holds the parameters of a former model", "from here on `net` is another model"],
        ),
        (
            "deep",
            ["explain", "--flow", "--file"],
            ["net.rnn.weight_hh_l0", "gradients explode: that of net.rnn.", "clip_grad_norm_()"],
        ),
        (
            "backbone",
            ["why", "net.head.weight.grad", "--file"],
            ["the only way from net.head.weight to loss", "this runs under no_grad()"],
        ),
        (
            "backbone",
            ["why", "net.backbone.0.weight", "--file"],
            ["net.backbone.0.weight is frozen", "p.requires_grad = False"],
        ),
        (
            "backbone",
            ["explain", "--flow", "--file"],
            ["net.head.weight", "None: no recorded operation", "4 of 5 parameters get no gradient"],
        ),
    ],
)
def test_faults_are_told_by_path(
    name: str, words: list[str], said: list[str], gradcli: CommandLine
) -> None:
    shown = gradcli(*words, str(_FAULTY / f"{name}.grad"))
    told = shown.out + shown.err
    for text in said:
        assert text in " ".join(told.split()) or text in told, told


def test_flow_finds_gradients_that_vanish(gradcli: CommandLine) -> None:
    program = (
        "from torch import nn\ntorch.manual_seed(0)\n"
        "deep = [m for _ in range(6) for m in (nn.Linear(4, 4), nn.Sigmoid())]\n"
        "net = nn.Sequential(*deep, nn.Linear(4, 1))\nloss = net(torch.ones(3, 4)).sum()\n"
    )
    assert "gradients vanish: that of net.0." in gradcli("explain", "--flow", program).out
    found = json.loads(gradcli("explain", "--flow", "--json", program).out)
    assert found["schema"] == "gradcli.flow/1"
    gains = {each["name"]: each["gain"] for each in found["parameters"]}
    assert gains["net.0.weight"] is None
    assert 0 < gains["net.2.weight"] < 1
    healthy = "net = torch.nn.Linear(2, 1)\nloss = net(torch.ones(3, 2)).sum()"
    assert "vanish" not in gradcli("explain", "--flow", healthy).out
    # Queries and keys of an attention that looks everywhere alike have next to no gradients.
    attention = (
        "from torch import nn\ntorch.manual_seed(0)\nclass Block(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)\n"
        "        self.value = nn.Linear(8, 8)\n        for each in (self.query, self.key):\n"
        "            nn.init.normal_(each.weight, std=1e-5)\n"
        "            nn.init.zeros_(each.bias)\n"
        "    def forward(self, x):\n        scores = self.query(x) @ self.key(x).mT\n"
        "        return x + F.softmax(scores, -1) @ self.value(x)\n"
        "net = nn.Sequential(Block(), Block())\nloss = (net(torch.randn(5, 8)) ** 2).sum()\n"
    )
    assert "vanish" not in gradcli("explain", "--flow", attention).out


def test_a_gain_is_the_norm_of_the_weight_where_the_layer_only_scales(
    gradcli: CommandLine,
) -> None:
    program = (
        "net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))\n"
        "torch.nn.init.constant_(net[1].weight, 3.)\nloss = net(torch.ones(1)).sum()"
    )
    rows = json.loads(gradcli("explain", "--flow", "--json", program).out)["parameters"]
    assert {each["name"]: each["gain"] for each in rows}["net.1.weight"] == pytest.approx(3)


@pytest.mark.parametrize(
    ("program", "names", "said"),
    [
        (
            "W = [torch.ones(2, 2, requires_grad=True) for i in range(2)]\n"
            "x = torch.ones(1, 2)\nfor w in W:\n    x = torch.tanh(x @ w)\nloss = x.sum()",
            ["W[0]", "W[1]"],
            "",
        ),
        (
            "net = nn.Linear(2, 1)\nx = torch.ones(3, 2)\nloss = net(x).sum()\nloss.backward()\n"
            "loss2 = (net(x) ** 2).sum()\nloss2.backward()",
            ["net.weight", "net.bias"],
            "shown is the last of 2 backward passes",
        ),
        (
            "for seed in range(2):\n    net = nn.Linear(2, 1)\n"
            "    loss = (net(torch.ones(3, 2)) ** 2).sum()\n    loss.backward()",
            ["net.weight", "net.bias"],
            "",
        ),
    ],
)
def test_flow_has_the_leaves_of_the_last_pass(
    gradcli: CommandLine, program: str, names: list[str], said: str
) -> None:
    """Leaves in a list; of several passes the last; no model that another one replaced."""
    found = json.loads(gradcli("explain", "--flow", "--json", program).out)
    assert [row["name"] for row in found["parameters"]] == names
    assert all(row["norm"] is not None for row in found["parameters"])
    text = gradcli("explain", "--flow", program).out
    assert said in text
    assert said or "shown is" not in text
