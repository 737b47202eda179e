"""Answers that do not mislead: what each command says of programs that once got a wrong answer."""

from __future__ import annotations

import pytest

from tests.command_line import CommandLine

_LOOP = """\
w = torch.tensor([1.0, 20.0], requires_grad=True)
for i in range(2):
    loss = torch.exp(w*10).sum()
    loss.backward()
    with torch.no_grad():
        w += w.grad
"""

_SESSION = "x = torch.tensor(2., requires_grad=True)\ny = x ** 2\n.backward y\n"

_ROUNDS = """\
x = torch.tensor(3., requires_grad=True)
for i in range(3):
    y = x ** 2 * i
    y.backward()
    {ask}
    with torch.no_grad():
        x -= 1
"""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        # The output is a leaf: its derivative by itself is the seed.
        (["check", "y = x", "x=[1, 2]"], 0, ["x.grad  fine  2 elements"]),
        (["check", "y = x * 2; z = x", "x=[1, 2]"], 0, ["x.grad  fine"]),
        (["check", "y = x * 2\ny.sum().backward()\nz = x", "x=[1, 2]"], 0, ["x.grad  fine"]),
        # What left torch left the graph: a backward pass is not what is missing.
        (
            ["why", "x.grad", "y = math.sin(x)", "x=1"],
            0,
            ["the only way from x to y leaves the graph", "^^^^^^^^^^^", "`torch.sin()`"],
        ),
        (["why", "x.grad", "y = x.item() * 2", "x=1"], 0, ["`.item()` makes a number"]),
        # No rewrite of these computes the same function.
        (["blame", _LOOP], 1, ["no cure: the result is too large"]),
        (["blame", "y = (x / n).sum()", "x=[1, 2]", "n=[0, 0]"], 1, ["no cure"]),
        (["blame", "y = (1 / x).sum()", "x=[0, 2]"], 1, ["no cure"]),
        (["blame", "y = x.std()", "x=[2]"], 1, ["no rewrite that was tried"]),
        # A cure says where it was compared.
        (
            ["blame", "y = torch.log(torch.exp(x).sum())", "x=[1000, 999]"],
            1,
            ["values and gradients of both", "inputs from -0.9 to -0.3"],
        ),
    ],
)
def test_answers(
    words: list[str], code: int, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)(*words)
    assert shown.code == code, shown.out + shown.err
    for text in said:
        assert text in " ".join(shown.out.split()) or text in shown.out, shown.out


@pytest.mark.parametrize(
    ("program", "said"),
    [
        # A leaf that is shown is not what is checked.
        ("x = torch.ones(2, requires_grad=True)\ny = (x ** 3).sum()\nx\n.check\n", ["fine"]),
        # The graph is freed: what ran is read from a second, recorded run.
        (_SESSION + "explain(y)\n", ["∂y/∂x = 2 * x = 4."]),
        (_SESSION + ".trace y steps\n", ["[0] → AccumulateGrad  x  tensor(4.)"]),
        (_SESSION + ".step y\nn\n", ["step 1 of 2", "x.grad = tensor(4.)"]),
        (_ROUNDS.format(ask="explain(y)"), ["2 * x = 6.", "2 * x = 4.", "2 * x = 2."]),
        (_ROUNDS.format(ask="trace(y, 'steps')"), ["tensor(0.) + tensor(4.) = tensor(4.)"]),
    ],
)
def test_sessions(program: str, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("run", "-", stdin=program)
    assert shown.code == 0, shown.err
    for text in said:
        assert text in shown.out
