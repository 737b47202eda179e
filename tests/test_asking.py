"""The asking commands on programs that `run` runs: those that work in functions, and a sample of
the sweep of `python -m tests.asking`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.asking import Sweep
from tests.command_line import CommandLine
from tests.rows import sampled
from tests.test_programs import CASES

_TRAINING = """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(2, 1)

    def forward(self, x):
        return self.c(x)

def main():
    torch.manual_seed(0)
    x, y = torch.rand(6, 2), torch.rand(6, 1)
    m = Net()
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    for step in range(3):
        loss = ((m(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

if __name__ == "__main__":
    main()
"""

_POWER = """\
def main():
    x = torch.tensor([1., 2.], requires_grad=True)
    w = torch.tensor([3., 4.], requires_grad=True)
    loss = (x * w).sum() ** 2
    loss.backward()

main()
"""

_TWO = """\
def main():
    x = torch.tensor(3., requires_grad=True)
    first = x * x
    first.backward()
    second = x ** 3
    second.backward()

main()
"""


def test_the_output_of_a_program_in_a_function_is_what_it_differentiated(
    gradcli: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(_TRAINING)
    document = json.loads(gradcli("run", str(path), "--json").out)
    assert [each["name"] for each in document["outputs"]] == ["loss"]
    names = sorted(each["name"] for each in document["gradients"])
    assert names == ["m.c.bias", "m.c.weight"]
    assert gradcli("run", str(path), "--trace").out.startswith("loss = tensor(0.")
    picture = tmp_path / "loss.svg"
    assert gradcli("run", str(path), "-o", str(picture)).code == 0
    assert "m.c" in picture.read_text()
    assert gradcli("check", str(path)).out.count("fine") == 2
    assert "m.c.weight.grad = tensor" in gradcli("why", "m.c.weight.grad", str(path)).out
    assert gradcli("run", str(path), "--json", "--of", "x").code == 0


def test_no_second_pass_is_run(gradcli: CommandLine) -> None:
    shown = gradcli(f"{_POWER}print('behind')", "--no-trace")
    assert shown.out == (
        "behind\nloss = tensor(121., grad_fn=<PowBackward0>)\n\n"
        "x.grad = tensor([66., 88.])\nw.grad = tensor([22., 44.])\n"
    )


def test_formulas_and_checks_move_what_a_function_made(gradcli: CommandLine) -> None:
    assert (
        gradcli("derive", _POWER).out.splitlines()[0].startswith("grad_x = 2 * w * (x * w).sum()")
    )
    assert gradcli("check", _POWER).out.count("fine") == 2
    wrong = gradcli("check", _POWER.replace("x * w", "x * x.detach()"))
    assert (wrong.code, "wrong" in wrong.out) == (1, True)


def test_several_losses_are_named_and_one_is_chosen(gradcli: CommandLine) -> None:
    shown = gradcli(_TWO, "--no-trace")
    assert shown.out.startswith("second = tensor(27.")
    assert "`first` in main() and `second` in main(); the answer is about the last" in shown.err
    assert "`--of first` chooses" in shown.err
    assert gradcli(_TWO, "--no-trace", "--of", "first").out.startswith("first = tensor(9.")


def test_a_tensor_at_the_top_level_stays_the_output(gradcli: CommandLine) -> None:
    program = f"{_POWER}a = torch.ones(2, requires_grad=True)\ny = (a * 2).sum()"
    shown = gradcli(program, "--no-trace")
    assert shown.out.startswith("y = tensor(4.")
    assert "backward() was called on `loss` in main(): `--of loss` chooses" in shown.err


def test_a_network_is_drawn_without_a_name(gradcli: CommandLine, tmp_path: Path) -> None:
    path = Path(__file__).parent.parent / "examples" / "network.grad"
    picture = tmp_path / "net.svg"
    shown = gradcli("run", str(path), "-o", str(picture))
    assert (shown.code, shown.err.count("\n")) == (0, 1)  # where it was written
    assert "BinaryCrossEntropyWithLogits" in picture.read_text()


@pytest.mark.parametrize(
    "program",
    [
        # The pass of the program began with another gradient than ones.
        "x = torch.tensor([1., 2.], requires_grad=True)\ny = x ** 3\ny.backward(tensor([3., 1.]))",
        # It began behind the output.
        "x = torch.tensor([1., 2.], requires_grad=True)\ny = x ** 3\n(y * y).sum().backward()",
        # It was one of `grad()`, and the leaf's gradient is that of something else.
        "x = torch.tensor([1., 2.], requires_grad=True)\n(x * 5).sum().backward()\n"
        "y = (x ** 3).sum()\ntorch.autograd.grad(y, x, retain_graph=True)",
        # The name stands for two leaves, one after the other.
        "x = torch.ones(2, requires_grad=True)\ny = (x * 2).sum()\n"
        "x = torch.ones(2, requires_grad=True)\ny = (x ** 3).sum()",
        # The leaf was written to before it required grad.
        "x = torch.ones(2)\nx[0] = 5\nx.requires_grad = True\ny = (x ** 3).sum()",
        # The output is a leaf that a training ends with.
        "w = torch.ones(2, requires_grad=True)\nfor step in range(3):\n"
        "    loss = (w ** 3).sum()\n    loss.backward()\n    with torch.no_grad():\n"
        "        w -= 0.1 * w.grad\n        w.grad = None\n",
    ],
)
def test_a_right_gradient_is_not_called_wrong(program: str, gradcli: CommandLine) -> None:
    shown = gradcli("check", program)
    assert (shown.code, "fine" in shown.out) == (0, True), shown.out + shown.err


@pytest.mark.parametrize(
    "case", sampled(CASES[::97], every=4), ids=lambda case: f"{case.parent.name}/{case.stem}"
)
def test_every_command_answers_or_refuses(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.parent)
    sweep = Sweep()
    sweep.ask(case)
    assert sweep.wrong == []


@pytest.mark.parametrize(
    "case",
    sampled(
        [
            "graph/inference_views",
            "around/lazy_layers",
            "functional/escaped_and_out",
            "functional/vmap_examples",
            "gradients/autograd_errors",
            "python/repr",
            "tensors/meta",
        ],
        4,
    ),
)
def test_what_a_program_handles_ends_no_question(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors that it catches, tensors without values or shape, lists that hold themselves."""
    path = next(each for each in CASES if f"{each.parent.name}/{each.stem}" == case)
    monkeypatch.chdir(path.parent)
    sweep = Sweep()
    sweep.ask(path)
    assert sweep.wrong == []
    assert set(sweep.outcomes["blame"]) == {"answer"}
    assert set(sweep.outcomes["why"]) <= {"answer", "usage"}


@pytest.mark.parametrize(
    ("program", "values", "said"),
    [
        ("y = F.elu(x, alpha=2).sum()", "x=[0,1]", "x[0] = 0 gets 2; another choice gives 1"),
        ("y = F.elu(x).sum()", "x=[0,1]", "no element is on a kink or a tie"),
        ("y = F.hardswish(x).sum()", "x=[3,1]", "x[0] = 3 gets 1; another choice gives 1.5"),
        ("y = F.hardsigmoid(x).sum()", "x=[-3,1]", "x[0] = -3 gets 0; another choice gives 0.16"),
        ("y = x.norm()", "x=[0,0]", "the slope of a norm at 0 is 0"),
        ("y = x.topk(1).values.sum()", "x=[2,2,1]", "x[1] = 2 gets 0; another choice gives 1"),
        (
            "y = F.max_pool1d(x, 2).sum()",
            "x=[[1,1]]",
            "[0, 0, 1] = 1 gets 0; another choice gives 1",
        ),
        ("y = F.max_pool1d(x, 2).sum()", "x=[[1,2]]", "no element is on a kink or a tie"),
        ("y = x.cummax(0).values.sum()", "x=[1,1]", "x[1] = 1 gets 1; another choice gives 0"),
        ("y = torch.cdist(x, x + 0).sum()", "x=[[1,1]]", "[0, 0] = 1 gets 0; another choice"),
        ("y = x.norm(1)", "x=[0,1]", "x[0] = 0 gets 0; another choice gives -1 or 1"),
        ("y = x.std()", "x=[1,1]", "the slopes to the two sides differ"),
        ("y = x.std()", "x=[1,2]", "no element is on a kink or a tie"),
        ("y = F.prelu(x, tensor([0.25])).sum()", "x=[0,1]", "x[0] = 0 gets 0.25; another choice"),
        (
            "y = F.multi_margin_loss(x, tensor([0]))",
            "x=[[1.,0.]]",
            "x[0, 1] = 0 gets 0; another choice gives 0.5",
        ),
        ("y = F.max_pool1d(x, 2).sum()", "x=ones(1,400)", "Backward0: not examined"),
    ],
)
def test_kinks_are_found_or_not_examined(
    program: str, values: str, said: str, gradcli: CommandLine
) -> None:
    assert said in gradcli("explain", program, values, "--ties").out
