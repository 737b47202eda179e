"""What a formula of one branch, loop, element or draw holds for, in every form of `derive`."""

from __future__ import annotations

import json

import pytest

from tests.command_line import CommandLine

_BRANCH = "if x.sum() > 0:\n    y = (x ** 3).sum()\nelse:\n    y = x.sum()"


@pytest.mark.parametrize(
    ("program", "values", "said"),
    [
        (_BRANCH, "x=[1,2]", "for x.sum() > 0"),
        (_BRANCH, "x=[-1,-2]", "where x.sum() > 0 is false"),
        ("y = (x ** 2).sum() if x[0] > 0 else x.sum()", "x=[1,2]", "for x[0] > 0"),
        (
            "h = x\nwhile h.norm() < 20:\n    h = h * 2\ny = h.sum()",
            "x=[1,2]",
            "with 4 rounds of the loop `while h.norm() < 20`",
        ),
        ("y = x[x.argmax()] ** 2", "x=[1,3,2]", "for x.argmax() = 1"),
        ("i = x.argmax()\ny = x[i] ** 2", "x=[1,3,2]", "for i = 1"),
        (
            "n = int(x[0].item())\ny = sum([x[1] ** (i + 1) for i in range(n)])",
            "x=[2,3]",
            "for n = 2",
        ),
        (
            "def f(v):\n    if v.max() > 2:\n        return v * v\n    return v\ny = f(x).sum()",
            "x=[3,4]",
            "for v.max() > 2",
        ),
        ("y = F.dropout(x, 0.5).sum()", "x=[1,2,3]", "with what `F.dropout(x, 0.5)` drew"),
        ("y = (x * torch.randn(3)).sum()", "x=[1,2,3]", "with what `torch.randn(3)` drew"),
        (
            "(x ** 2).sum().backward()\nstep = 0.1 * x.grad.sign()\ny = ((x + step) ** 2).sum()",
            "x=[1,-2]",
            "where `0.1 * x.grad.sign()` (line 2) is what it is at these inputs",
        ),
        (
            "y = x[x > 0].sum()",
            "x=[3,-1,2]",
            "where `x > 0` (line 1) is what it is at these inputs",
        ),
        (
            "y = x[torch.arange(2), x.argmax(1)].sum()",
            "x=[[1,-2],[2,3]]",
            "where `x.argmax(1)` (line 1) is what it is at these inputs",
        ),
        (
            "s = float(round(x[0].item()))\ny = (x * s).sum() + (x * x).sum()",
            "x=[1,-2]",
            "near these inputs: what follows from `x[0].item()` (line 1) stands as numbers",
        ),
        (
            "n = len([each for each in x.tolist() if each > 0])\ny = (x * x).sum() * n",
            "x=[1,-2]",
            "where each > 0 is True, False in turn",
        ),
        ("y = max(x[0], x[1]) ** 2", "x=[1,3]", "where max(x[0], x[1]) is x[1]"),
        (
            "y = x.sum() * max(2.0, x[0].item())",
            "x=[1,3]",
            "where max(2.0, x[0].item()) is 2.0",
        ),
        (
            "y = sorted(x)[0] ** 2",
            "x=[3,1]",
            "where sorted(x) is in the order that it has at these inputs",
        ),
        ("y = x.prod()", "x=[1,2,3]", "where x ≠ 0"),
        ("y = x.cumprod(0).sum()", "x=[1,2,3]", "where x ≠ 0"),
    ],
)
def test_every_form_says_what_the_formulas_hold_for(
    program: str, values: str, said: str, gradcli: CommandLine
) -> None:
    assert f"# {said}\n" in gradcli("derive", program, values).out
    assert json.loads(gradcli("derive", program, values, "--json").out)["conditions"] == [said]
    for target in ("numpy", "torch"):
        assert gradcli("derive", program, values, "--to", target).out.count(said) == 2
    assert r"&\text{" in gradcli("derive", program, values, "--to", "latex").out


@pytest.mark.parametrize(
    "program",
    [
        "if x.shape[0] > 1:\n    y = (x ** 2).sum()",
        "for i in range(len(x)):\n    h = x * i\ny = (h ** 2).sum()",
        "k = 2\ny = (x ** 2).sum() if k > 1 else x.sum()",
        "y = (x / x.sum()).norm()",
        "eps = torch.randn(3)\ny = (x * eps).sum()",
        "loss = (x ** 2).sum()\nprint(loss.item())\ny = loss * 2",
        "m = (x > 1).float()\ny = (x * m).sum()",
        "s = x * x\ns.retain_grad()\ny = (s + s.exp()).sum()",
        "y = (sin(x) / (1 + cos(x))).sum()",
        "y = (x * x).sum()\ny.backward()\nif x.grad.norm() > 1:\n    print('large')",
        "y = (x * x).sum()\nif y.item() > 1:\n    print('large')",
        "(x ** 2).sum().backward()\ny = (x * x).sum() + x.grad.sign().sum()",
        "y = (x * (x.detach() / x.detach().norm())).sum()",
    ],
)
def test_what_the_inputs_do_not_decide_is_no_condition(program: str, gradcli: CommandLine) -> None:
    shown = gradcli("derive", program, "x=[1,2,3]", "--json")
    assert json.loads(shown.out)["conditions"] == []


def test_what_was_decided_by_values_of_parameters_before_a_step_is_no_condition(
    gradcli: CommandLine,
) -> None:
    shown = gradcli(
        "derive",
        """for i in range(2):
    loss = ((w * x).sum() - 1) ** 2
    if loss.item() < 0.1:
        break
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad = None
out = ((w * x).sum() - 1) ** 2""",
        "w=[1,-2]",
        "x:const=tensor([3., 4.])",
    )
    assert shown.out.startswith("grad_w = 2 * x * ")


def test_a_leaf_that_was_drawn_is_an_input_like_others(gradcli: CommandLine) -> None:
    shown = gradcli("derive", "x = torch.rand(3, requires_grad=True)\ny = (x * x).sum()")
    assert shown.out.startswith("grad_x = 2 * x")


def test_a_hessian_says_it_too(gradcli: CommandLine) -> None:
    shown = gradcli("derive", _BRANCH, "x=[1,2]", "--hessian")
    assert shown.out.startswith("# for x.sum() > 0\nhessian_x = 6 * diag(x)")
