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
        (["blame", _LOOP], 1, ["no cure: the result is too large for float64"]),
        (["blame", "y = (x / n).sum()", "x=[1, 2]", "n=[0, 0]"], 1, ["no cure"]),
        (["blame", "y = (1 / x).sum()", "x=[0, 2]"], 1, ["no cure"]),
        (["blame", "y = x.std()", "x=[2]"], 1, ["no cure: one number has no deviation"]),
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


_SECOND = {
    "h = torch.zeros(2)\nfor t in range(3):\n    h = torch.tanh(w + h)\n    h.sum().backward()":
        "begin a round with `h = h.detach()`",
    "p = torch.exp(w)\nfor t in range(3):\n    (p * t).sum().backward()":
        "`p` is computed once, before the loop",
    "total = 0\nfor t in range(3):\n    total += (w ** 2).sum()\n    total.backward()":
        "`total` keeps the graph of every round",
    "p = torch.exp(w)\np.sum().backward()\n(p ** 2).sum().backward()":
        "retain_graph=True to the first backward(), or add the losses up",
}  # fmt: skip


@pytest.mark.parametrize("program", _SECOND)
def test_a_second_pass_is_mended_by_its_cause(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)(f"w = torch.ones(2, requires_grad=True)\n{program}")
    assert shown.code == 3
    assert _SECOND[program] in " ".join(shown.err.split())


def test_nan_is_noted_and_fails_under_strict(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("y = torch.where(x > 0, x.sqrt(), 0).sum()", "x=0")
    shown = CommandLine(capsys)(*words)
    assert shown.code == 0
    assert "W016" in shown.err
    assert "x.grad is NaN" in shown.err
    assert CommandLine(capsys)(*words, "--strict").code == 1
    assert CommandLine(capsys)("y = x * 2", "x=0", "--strict").code == 0
    infinite = CommandLine(capsys)("y = (x.sqrt() * w).sum()", "x=[0,1]", "w=[1,nan]", "--strict")
    assert (infinite.code, "x.grad and y" in infinite.err) == (1, False)
    assert "y and x.grad hold NaN" in infinite.err
    infinite = CommandLine(capsys)("y = x.sqrt().sum()", "x=[0,1]", "--strict")
    assert (infinite.code, "x.grad holds infinity" in infinite.err) == (1, True)
    assert CommandLine(capsys)("y = -inf + x", "x=1", "--strict").code == 0  # a mask's is meant


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("h.register_hook(lambda g: g * 10)", "a hook was given         tensor(1.)"),
        ("x.register_hook(lambda g: g * 10)", "a hook was given: tensor(2.)"),
        ("h.grad_fn.register_hook(lambda i, o: (i[0] * 3, None))", "after the node's hook"),
        ("h.register_hook(lambda g: None)", ""),
    ],
)
def test_hooks_show_in_the_steps(hook: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)(f"h = x * 2\n{hook}\ny = h + 1\ntrace(y, 'steps')", "x=3")
    assert shown.code == 0, shown.err
    assert (said or "x.grad") in shown.out
    assert said or "hook" not in shown.out


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("y = F.cross_entropy(x, torch.tensor([0, 1]))", ["x=[[1, 2, 3], [3, 2, 1]]"]),
        ("y = torch.linalg.cholesky(x @ x.T + 3 * torch.eye(2)).sum()", ["x=[[1, 2], [3, 4]]"]),
        ("y = F.avg_pool2d(x, 2).sum()", ["x=ones(1, 1, 4, 4)"]),
        ("y = F.interpolate(x, scale_factor=2).sum()", ["x=ones(1, 1, 4)"]),
        ("y = torch.linalg.norm(x, ord=3)", ["x=[1, 2]"]),
        ("y = x.relu().expand(3, 30).sum()", ["x=randn(30)"]),
    ],
)
def test_explanations_name_nothing_of_ours(
    program: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)("explain", program, *words)
    assert shown.code == 0, shown.err
    for word in ("of_samples", "restore_dims", "turned", "object at", "norm_gradient", ": 0 = 0."):
        assert word not in shown.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["x", "x=2", "--no-trace"], 0, "x.grad = tensor(1.)"),
        (["check", "x", "x=2"], 0, "fine"),
        (["z", "x=2"], 2, "there is no command `z`"),
        (["explain", "-e", "y = x ** 2", "-e", "z = y * 2", "x=3"], 0, "∂y/∂x = 2 * x = 6."),
        (["why", "x.grad", "-e", "y = x ** 2", "x=3"], 0, "flows from y to x"),
        (["why", "x.grad", "-e", "y = x", "--file", "a.py"], 2, "exclude each other"),
        (["help", "MulBackward0"], 0, "torch.mul(input, other)"),
        (["help", "AccumulateGrad"], 0, "The node of a leaf that requires grad"),
        (["help", "requires_grad"], 0, "Whether gradients are wanted"),
        (["help", "hooks"], 0, "register_full_backward_hook"),
        (["help", "NoBackward0"], 2, "there is no topic or op `NoBackward0`"),
    ],
)
def test_what_is_asked_as_people_type_it(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)(*words)
    assert shown.code == code, shown.out + shown.err
    assert said in shown.out + shown.err
