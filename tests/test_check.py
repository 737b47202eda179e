"""`gradcli check`: verdicts of central differences, and the slips of gradients made by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.running.arguments.options import Options
from gradcli.running.process.terminal import Terminal
from gradcli.running.rerun import Moment, Rerun, at_moments
from gradcli.running.run import Run
from tests.command_line import CommandLine

_WRONG_FUNCTION = """\
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return {gradient}
y = (Square.apply(x) * w).sum()
"""

_HOOK = "h = x * w\nh.register_hook(lambda g: g * 2)\ny = h.sum()"

_SAME = "y = (tanh(x) * w).sum()"

_INPUTS = ["x=[0.5, -1, 2]", "w=[1, 2, 3]"]


@pytest.mark.parametrize(
    ("program", "words", "verdict"),
    [
        (_SAME, _INPUTS, "fine"),
        ("y = (x @ w).exp()", ["x=[[0.5, -1], [1, 2]]", "w=[[1, 2, 3], [0.5, 1, -1]]"], "fine"),
        ("x = torch.tensor([1., 2.], requires_grad=True)\ny = (x ** 3).sum()", [], "fine"),
        ("y = (x ** 3).sum()\ny.backward()", ["x=[1, 2]"], "fine"),
        ("y = x.relu().sum()", ["x=[0, 1]"], "kink"),
        ("y = (x.abs() + x).sum()", ["x=[0, -1]"], "kink"),
        ("y = torch.maximum(a, b).sum()", ["a=[1, 2]", "b=[1, 3]"], "kink"),
        ("y = torch.sign(x).sum()", ["x=[0, 1]"], "jump"),
        ("y = (x.float() * 3).exp().sum()", ["x=[0.3, 0.1]"], "fine"),
        ("y = ((x.half() + 1e9 - 1e9) ** 3).sum()", ["x=[0.3, 0.1]"], "rounding"),
        (  # a dtype that the program names is float64 too
            "w = torch.ones(2, dtype=torch.float16)\nassert x.dtype == torch.float32\n"
            "y = (x @ w).type(torch.FloatTensor).cos().sum()",
            ["x=[0.3, 0.1]"],
            "fine",
        ),
        (
            "net = torch.nn.Linear(2, 1).bfloat16()\nt = torch.tensor([1, 2]).half()\n"
            "y = net(x.bfloat16() * torch.from_numpy(np.ones(2).astype('float32')).to(t)).exp()",
            ["x=[0.3, 0.1]"],
            "fine",
        ),
        (  # by any name of its module, and by its own
            "import torch as th\nimport numpy as onp\nfrom torch import float32, half as narrow\n"
            "w = th.ones(2, dtype=th.half)\nassert w.dtype == float32 == narrow == x.dtype\n"
            "v = th.from_numpy(onp.ones(2, dtype=onp.float16))\n"
            "y = (x.to(float32) * w * v).cos().sum()",
            ["x=[0.3, 0.1]"],
            "fine",
        ),
        ("y = x.sqrt().sum()", ["x=[0, 1]"], "not finite"),
        ("y = x.log().sum()", ["x=[1e-6, 1]"], "fine"),
        (  # whose graph the program freed in part
            "h = x.exp()\na = h.sin().sum()\ny = h.cos().sum()\ntorch.autograd.grad(a, x)",
            ["x=[1, 2]"],
            "fine",
        ),
        ("y = (x ** 1.5).sum()", ["x=[0, 1]"], "outside the domain"),
        ("assert x[0] <= 1, 'too large'\ny = (x ** 2).sum()", ["x=[1, 2]"], "outside the domain"),
        (_WRONG_FUNCTION.format(gradient="2 * x * grad"), _INPUTS, "fine"),
        (_WRONG_FUNCTION.format(gradient="x * grad"), _INPUTS, "wrong"),
        (_WRONG_FUNCTION.format(gradient="1.999 * x * grad"), _INPUTS, "wrong"),
        (_HOOK, _INPUTS, "wrong"),
        ("y = (x.detach() * x).sum()", ["x=[0.5, 2]"], "wrong"),
    ],
)
def test_verdicts(
    program: str, words: list[str], verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)("check", program, *words, "--json")
    found = json.loads(shown.out)
    assert found["schema"] == "gradcli.check/1"
    assert found["verdict"] == verdict
    assert shown.code == int(verdict in ("wrong", "not finite"))


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("y = (x ** 3 * w).sum()", 0),
        ("y = (x * x.detach() ** 2 * w).sum()", 1),
        ("y = torch.softmax(x * w, 0)", 0),
    ],
)
def test_the_second_derivative(program: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("check", program, *_INPUTS, "--order", "2")
    assert shown.code == code, shown.out + shown.err


def test_worst_element_first(capsys: pytest.CaptureFixture[str]) -> None:
    program = _WRONG_FUNCTION.format(gradient="torch.where(x > 1, 3 * x, 2.1 * x) * grad")
    shown = CommandLine(capsys)("check", program, *_INPUTS, "--json")
    wrong = next(each for each in json.loads(shown.out)["inputs"] if each["name"] == "x")
    assert [element["index"] for element in wrong["elements"]] == [[2], [1], [0]]


def test_large_inputs_are_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("check", "y = (x * x).sum()", "x=arange(50.)", "--elements", "4")
    assert "4 of 50 elements" in shown.out


class Slip:
    """A gradient made by hand that is wrong, and what is said of it."""

    def __init__(self, name: str, program: str, words: list[str], equals: str, said: str) -> None:
        self.name = name
        self.program = program
        self.words = words
        self.equals = equals
        self.said = said


_MATRICES = ["x=[[1, 2], [3, 4]]", "w=[[0.5, 1], [2, -1]]"]

_SLIPS = [
    Slip("sign", "y = (x * w).sum()", _INPUTS, "x=-w", "its sign is wrong"),
    Slip("factor", "y = (x ** 2).sum()", ["x=[1, 3]"], "x", "a factor 2 is missing"),
    Slip("mean for a sum", "y = (x ** 2).mean()", ["x=[1, 3, 4]"], "2 * x", "3 times too large"),
    Slip(
        "sum for a mean",
        "y = (x ** 2).sum()",
        ["x=[1, 3, 4]"],
        "2 * x / 3",
        "the number of elements: a mean for a sum",
    ),
    Slip("zero_grad", "y = (x * w).sum()", _INPUTS, "x=2 * w", "zero_grad()"),
    Slip(
        "transpose",
        "y = (x @ w).sum()",
        _MATRICES,
        "x=(torch.ones(2, 2) @ w.T).T",
        "must not be transposed here",
    ),
    Slip(
        "missing sum",
        "y = (x + b).sum()",
        ["x=[[1, 2], [3, 4], [5, 6]]", "b=[1, 2]"],
        "b=torch.ones(3, 2)",
        "a sum is missing",
    ),
    Slip("order", "y = (x * w).sum()", _INPUTS, "x=w[[1, 2, 0]]", "in another order"),
    Slip("reversed", "y = (x * w).sum()", _INPUTS, "x=w.flip(0)", "runs backwards"),
    Slip(
        "chain factor",
        "y = (tanh(x) ** 2).sum()",
        ["x=[0.5, 1]"],
        "2 * tanh(x)",
        "a factor of the chain rule is missing: times the slope of `tanh(x)`",
    ),
    Slip(
        "factor of a variable",
        "y = (torch.sin(x) * w).sum()",
        _INPUTS,
        "x=torch.cos(x)",
        "a factor of the chain rule is missing: times `w`",
    ),
    Slip("one element", "y = (x * w).sum()", _INPUTS, "x=[1, 2, 4]", "1 element is wrong"),
    Slip("zero", "y = (x * w).sum()", _INPUTS, "x=0", "it is 0"),
    Slip(
        "a factor without its transpose, whose shape does not fit",
        "y = (x @ w).sum()",
        ["x=[[1, 2, 3], [3, 4, 5]]", "w=[[0.5, 1], [2, -1], [1, 1]]"],
        "x=torch.ones(2, 2) @ w",
        "`w` has to be transposed: `torch.ones(2, 2) @ w.T` is right",
    ),
    Slip(
        "a quadratic form as if its matrix were symmetric",
        "y = x @ A @ x / 2",
        ["x=[1, 2]", "A=[[1, 2], [3, 4]]"],
        "x=A @ x",
        "`A` is not symmetric",
    ),
    Slip(
        "a sum along the wrong dimension",
        "y = (x.sum(0) * v).sum()",
        ["x=[[1, 2], [3, 4]]", "v=[1, 2]"],
        "v=x.sum(1)",
        "wrong dimension, 1: `x.sum(0)` is right",
    ),
    Slip(
        "a Jacobian that is transposed",
        "y = ((J @ x) * g).sum()",
        ["J=[[1, 2], [3, 4]]", "x=[1, 2]", "g=[1, 3]"],
        "x=J @ g",
        "`J.T @ g` is right",
    ),
    Slip(
        "a constant factor of the chain rule",
        "y = torch.sin(3 * x).sum()",
        ["x=[1, 2]"],
        "torch.cos(3 * x)",
        "the slope of `3 * x` in the chain rule",
    ),
    Slip(
        "the size of the batch",
        "y = ((x @ w - t) ** 2).mean()",
        ["x:const=tensor([[1., 2.], [3., 4.], [5., 6.]])", "w=[1, 2]", "t:const=tensor([1.])"],
        "2 * x.T @ (x @ w - t)",
        "is a mean over 3 numbers",
    ),
]


def test_a_factor_is_no_mean_for_the_number_of_elements(capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("check", "y = (x ** 3).sum()", "x=[1, 2, 3]", "--equals", "x**2")
    assert "a factor 3 is missing" in shown.out
    assert "mean" not in shown.out


@pytest.mark.parametrize("slip", _SLIPS, ids=lambda slip: slip.name)
def test_slips_are_named(slip: Slip, capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)(
        "check", slip.program, *slip.words, "--equals", slip.equals, "--json"
    )
    assert shown.code == 1, shown.err
    assert slip.said in json.loads(shown.out)["inputs"][0]["slip"]


@pytest.mark.parametrize(
    ("program", "words", "equals"),
    [
        ("y = (x ** 2).sum()", ["x=[1, 3]"], "2 * x"),
        ("y = (x * w).sum()", _INPUTS, "w=x"),
        ("y = 3 * x.sum()", ["x=[1, 3]"], "x=3"),
    ],
)
def test_right_gradients_are_fine(
    program: str, words: list[str], equals: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)("check", program, *words, "--equals", equals)
    assert shown.code == 0, shown.out
    assert "fine" in shown.out


@pytest.mark.parametrize("keys", [("x", "w"), ("x.grad", "w.grad")])
def test_gradients_of_a_file(
    keys: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right: dict[str, Any] = {keys[0]: np.array([1.0, 2, 3]), keys[1]: np.array([0.5, -1, -2])}
    path = tmp_path / "grads.npz"
    np.savez(path, **right)
    shown = CommandLine(capsys)(
        "check", "y = (x * w).sum()", *_INPUTS, "--against", str(path), "--json"
    )
    assert shown.code == 1
    verdicts = {each["name"]: each["verdict"] for each in json.loads(shown.out)["inputs"]}
    assert verdicts == {"x": "fine", "w": "wrong"}


@pytest.mark.parametrize(
    ("arrays", "said"),
    [({"z": 1.0}, "holds z, and none of the inputs"), (1.0, "one array, and there are several")],
)
def test_a_file_that_holds_other_gradients(
    arrays: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("grads.npz" if isinstance(arrays, dict) else "grads.npy")
    if isinstance(arrays, dict):
        np.savez(path, **arrays)
    else:
        np.save(path, arrays)
    shown = CommandLine(capsys)("check", "y = (x * w).sum()", *_INPUTS, "--against", str(path))
    assert (shown.code, shown.out) == (2, "")
    assert said in shown.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["y = 2 * 3"], 3, "computes nothing"),
        (["y = x * w", "x=2", "w=3", "--equals", "3"], 2, "say of which input"),
        (["y = x * w", "x=2", "w=3", "--equals", "v=3"], 2, "no input `v`"),
        (["y = x * w", "x=2"], 3, "w"),
    ],
)
def test_what_cannot_be_checked(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CommandLine(capsys)("check", *words)
    assert shown.code == code
    assert said in shown.err


def test_what_would_take_long_is_checked_along_random_directions(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gradcli.questions.check import find

    monkeypatch.setattr(find, "_SECONDS", 1e-9)
    words = ["y = (tanh(x @ w) ** 2).sum()", "x=ones(8, 8) / 9", "w=ones(8, 8) / 7"]
    shown = gradcli("check", *words)
    assert "x.grad  fine  64 elements along 1 random direction\n" in shown.out
    assert "--elements N checks N of each" in shown.err
    hook = ["h = x @ w\nh.register_hook(lambda g: g * 1.01)\ny = (h * h).sum()", *words[1:]]
    wrong = gradcli("check", *hook)
    assert wrong.code == 1
    assert "direction  gradient" in wrong.out
    assert "64 elements" in gradcli("check", *words, "--elements", "64").out


def test_the_limit_of_time_is_for_the_whole_check(gradcli: CommandLine) -> None:
    # A program that takes a number out of its input runs anew for each element.
    program = "for n in range(4000):\n    n * n\nx.sum().item()\ny = (x ** 2).sum()"
    words = ["check", program, "x=ones(4000)", "--elements", "4000", "--timeout", "2"]
    shown = gradcli(*words)
    assert shown.code == 0, shown.err
    assert "of 4000 elements" in shown.out
    assert "there was no time for the others" in shown.err


@pytest.mark.parametrize(
    ("program", "most", "verdict"),
    [
        ("for _ in range(3):\n    v = v * 2\ny = (x * v).sum()", 6, "fine"),
        ("h = x * 2\nh.tanh_()\ny = (h * h.detach()).sum()", 9, "wrong"),
        ("y = (torch.dropout(x, 0.5, True) ** 2).sum()", 6, "fine"),
        ("h = x * 2\nh[0] = 0.\ny = (h * h).sum()", 300, "fine"),
        ("h = x * 2\nx.sum().item()\ny = (h * x.sum().item()).sum()", 300, "wrong"),
        ("y = (x if x.sum() > 0 else x * 3).sum()", 9, "fine"),
        ("y = (x if x[4] > 0.899999 else x * 3).sum()", 300, "rounding"),
        ("while x.norm() < 4:\n    x = x * 1.5\ny = x.sum()", 9, "fine"),
    ],
    ids=["loop", "detached", "draw", "part", "number", "branch", "other branch", "while"],
)
def test_only_what_depends_on_the_inputs_is_computed_again(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch, program: str, most: int, verdict: str
) -> None:
    """A program that takes numbers out of tensors runs anew, one that writes to parts, and one that
    goes another way with the elements moved.
    """
    runs, executed = [], Rerun._executed

    def counted(rerun: Rerun, *rest: Any) -> Any:
        runs.append(rest)
        return executed(rerun, *rest)

    monkeypatch.setattr(Rerun, "_executed", counted)
    shown = gradcli("check", program, "x=[0.5, -0.3, 0.7, 0.2, 0.9, 0.4, 0.8]", "v:const=1")
    assert f"x.grad  {verdict}" in shown.out
    assert (len(runs) > 9) == (most == 300)
    assert len(runs) <= most


def test_values_that_a_lazy_layer_draws_over_are_no_wrong_gradient(gradcli: CommandLine) -> None:
    program = "net = nn.LazyLinear(3)\np = net.weight\ny = (net(ones(2, 4)) * x).sum()"
    shown = gradcli("check", program, "x=ones(3)")
    assert shown.code == 0, shown.out
    assert "p.grad" not in shown.out
    assert "`p` cannot be moved from outside, and is not checked" in shown.err


def test_a_norm_that_is_missing_is_named(gradcli: CommandLine) -> None:
    shown = gradcli("check", "y = x.norm()", "x=[1, 2, 3]", "--equals", "x")
    assert "a division by the norm of `x` is missing" in shown.out


def test_what_is_not_finite_is_said_once(gradcli: CommandLine) -> None:
    shown = gradcli("check", "y = (a.sqrt() + b.sqrt()).sum()", "a=zeros(9)", "b=zeros(9)")
    assert shown.code == 1
    assert shown.out.count("see `gradcli blame`") == 1
    assert len(shown.out.splitlines()) == 10


def test_a_parametrized_module_is_right(gradcli: CommandLine) -> None:
    program = (
        "import torch.nn.utils.parametrize as P\nclass Sym(nn.Module):\n"
        "    def forward(self, w): return w.triu() + w.triu(1).T\nlin = nn.Linear(3, 3)\n"
        "P.register_parametrization(lin, 'weight', Sym())\n"
        "y = lin(torch.ones(2, 3)).pow(2).sum()"
    )
    shown = gradcli("check", f"from torch import nn\n{program}")
    assert shown.code == 0
    assert "lin.parametrizations.weight.original.grad  fine  9 elements" in shown.out


_NET = "net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))\n"

_LEAF = "w = torch.ones(2, requires_grad=True)\n"


@pytest.mark.parametrize(
    "program",
    [
        # Each parameter shows the vector's memory, which no version counts.
        f"{_NET}nn.utils.vector_to_parameters(torch.tensor([0.1] * 17), net.parameters())\n"
        "y = net(torch.ones(2, 2)).pow(2).sum()",
        f"{_NET}v = torch.arange(17) / 9\nnn.utils.vector_to_parameters(v, net.parameters())\n"
        "v.mul_(0.5)\ny = net(torch.ones(2, 2)).pow(2).sum()",
        f"{_NET}for p in net.parameters():\n    p.data.fill_(0.2)\n"
        "y = net(torch.eye(2)).pow(2).sum()",
        f"{_LEAF}a = (w * 3).sum()\nw.data = torch.tensor([5., 7.])\ny = w.pow(2).prod()",
        f"{_LEAF}w.detach().numpy()[:] = 0.3\ny = w.pow(2).prod()",
        # What is written is what was there.
        f"{_LEAF}w.data.fill_(1.)\ny = w.pow(2).prod()",
        "net = nn.utils.parametrizations.orthogonal(nn.Linear(2, 2))\n"
        "net.weight = torch.tensor([[0., 1.], [1., 0.]])\ny = net(torch.ones(2, 2)).pow(3).sum()",
    ],
)
def test_leaves_are_moved_behind_what_writes_to_them(program: str, gradcli: CommandLine) -> None:
    shown = gradcli("check", program)
    assert (shown.code, "wrong" in shown.out) == (0, False), shown.out
    assert "fine" in shown.out


_OF_TWO = """\
w = torch.ones(2, requires_grad=True)
first = w.pow(2).sum()
first.backward()
second = w.pow(3).sum()
"""


def test_the_answer_says_of_which_output_it_is(gradcli: CommandLine) -> None:
    shown = gradcli("check", _OF_TWO)
    assert shown.out.startswith("gradient of second against central differences in float64\n")
    assert "backward() was called on `first` too, of which nothing is checked" in shown.err
    assert "`--of first` chooses" in shown.err
    shown = gradcli("check", _OF_TWO, "--of", "first", "--json")
    assert (json.loads(shown.out)["output"], shown.err) == ("first", "")
    shown = gradcli("explain", "--flow", _OF_TWO)
    assert "shown is a backward pass from second that the program does not run" in " ".join(
        shown.out.split()
    )


def test_a_function_without_a_second_derivative_is_named(gradcli: CommandLine) -> None:
    program = _WRONG_FUNCTION.format(gradient="2 * x.detach() * grad")
    shown = gradcli("check", program, *_INPUTS, "--order", "2")
    assert shown.code == 1
    assert "the second derivative is that of `Square`'s backward()" in shown.out


def test_a_whole_factor_may_be_a_norm(gradcli: CommandLine) -> None:
    shown = gradcli("check", "y = (x ** 2).sum().sqrt()", "x=[3,4]", "--equals", "x")
    assert "it is 5 times too large: a factor, such as the norm of `x`," in shown.out


_OWN_BACKWARD = """class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return {backward}
loss = (Op.apply(x) * c).sum()"""


@pytest.mark.parametrize(
    ("forward", "backward", "said"),
    [
        ("x.norm()", "g * x", "a division by the norm of `x` is missing"),
        ("(x ** 2 + 1).sqrt()", "g * x / (x ** 2 + 1)", "the root of `x ** 2 + 1` is meant"),
        ("x - x.mean(1, keepdim=True)", "g - g.mean(0, keepdim=True)", "the wrong dimension, 0"),
        ("x - x.mean(1, keepdim=True)", "g", "the share through the mean is missing"),
        ("x ** 2 + x.sin()", "g * 2 * x", "the term `+ g * x.cos()` is missing"),
        ("x.softmax(1)", "x.softmax(1) * (1 - x.softmax(1)) * g", "only the diagonal"),
        ("x ** 2", "g * 2 * x * x", "the factor `x` is one too many"),
        ("(x - 2.2).relu()", "g * (x < 2.2)", "`x < 2.2` is the wrong way round"),
        ("x.exp()", "g * x", "`x` stands where `x.exp()` is meant"),
        ("x.sigmoid()", "g * x * (1 - x)", "`x` stands where `x.sigmoid()` is meant"),
    ],
)
def test_slips_in_a_backward_are_named_by_the_change_that_mends_them(
    gradcli: CommandLine, forward: str, backward: str, said: str
) -> None:
    """Each change that is shown was run, and gave the slopes that differences have."""
    program = _OWN_BACKWARD.format(forward=forward, backward=backward)
    numbers = "[[1.,2.,3.],[3.,1.,1.]]" if "norm" not in forward else "2."
    words = ["x=[[1.,2.,3.],[4.,5.5,6.]]", f"c:const=tensor({numbers})"]
    found = gradcli("check", program, *words)
    assert found.code == 1
    assert said in " ".join(found.out.split()), found.out
    edited = re.findall(r": `([^`]*)` is right", " ".join(found.out.split()))
    assert len(edited) == 1
    mended = _OWN_BACKWARD.format(forward=forward, backward=edited[0])
    assert gradcli("check", mended, *words).code == 0


_SEVERAL = """\
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return {square}
class Line(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return {line}
class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * {mask}
    @staticmethod
    def backward(ctx, g):
        return g
y = (Masked.apply(Line.apply(Square.apply(x), w)) * c{detached}).sum()
"""

_RIGHT = {
    "square": "2 * g * ctx.saved_tensors[0]", "line": "g @ w, g.t() @ x", "mask": "1.",
    "detached": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"square": "-2 * ctx.saved_tensors[0] * g", "line": "g @ w, -(g.t() @ x)"},
            ["sign is wrong: `2 * ctx.saved_tensors[0] * g`", "sign is wrong: `(g.t() @ x)`"],
        ),
        (
            {"square": "ctx.saved_tensors[0] * g", "line": "g @ w / 3, g.t() @ x * 2"},
            [
                "the factor `2` is missing",
                "the divisor `3` is one too many: `g @ w`",
                "the factor `2` is one too many: `g.t() @ x`",
            ],
        ),
        (  # none that was tried is right
            {"square": "ctx.saved_tensors[0].sinh() * g"},
            ["`Square` has a backward() of its own, and this is not the slope of its forward()"],
        ),
        (  # what is right is none of it
            {"detached": " * x.detach().sum()"},
            ["`.detach()` gives the values outside the graph"],
        ),
        (  # of a function that draws it is not known
            {"mask": "torch.rand(2)"},
            ["`Masked` has a backward() of its own, and this is what it returns"],
        ),
    ],
)
def test_of_several_functions_each_wrong_one_is_named(
    wrong: dict[str, str], said: list[str], gradcli: CommandLine
) -> None:
    words = ["x=[[0.5,-1.,2.],[1.,0.3,0.2]]", "w=[[0.3,1.,2.],[0.4,0.5,0.6]]", "c:const=tensor(2.)"]
    found = gradcli("check", _SEVERAL.format(**{**_RIGHT, **wrong}), *words)
    told = " ".join(found.out.split())
    assert found.code == 1
    assert [each for each in said if each not in told] == [], told
    owners = {"Square": "square", "Line": "line", "Masked": "mask"}
    assert {n for n, part in owners.items() if f"`{n}`" in told} == {
        n for n, part in owners.items() if part in wrong
    }
    assert gradcli("check", _SEVERAL.format(**_RIGHT), *words).code == 0


def test_bfloat16_moves_by_steps_that_it_holds(gradcli: CommandLine) -> None:
    shown = gradcli(
        "check", "x = tensor([1., 2.], dtype=bfloat16, requires_grad=True); y = (x * x).sum()"
    )
    assert (shown.code, "wrong" in shown.out) == (0, False), shown.out


@pytest.mark.parametrize(
    "draw", ["Gamma(a, 1.).rsample((3,))", "Beta(a, 2.).rsample()", "Chi2(a).rsample()"]
)
def test_implicit_gradients_of_draws_are_not_compared(draw: str, gradcli: CommandLine) -> None:
    head = "a = tensor(2., requires_grad=True); b = tensor(3., requires_grad=True)\n"
    shown = gradcli("check", f"{head}y = (torch.distributions.{draw} * b).sum()")
    assert "`a` is not checked: numbers are drawn by rejection with it" in shown.err
    assert (shown.code, shown.out.count("fine")) == (0, 1)
    assert gradcli("check", f"{head}y = torch.distributions.{draw}.sum()").code == 3


def test_an_output_that_is_a_leaf_is_refused(gradcli: CommandLine) -> None:
    shown = gradcli("check", "x = tensor(1., requires_grad=True)\nwith no_grad(): x -= 0.5")
    assert (shown.code, "the output is a leaf" in shown.err) == (3, True)


def test_a_leaf_that_is_not_there_gets_no_value() -> None:
    run = Run(Terminal(), Options(), "graph")
    at_moments(run, {"w": Moment(0, (7, "weight"))}, {"w": np.zeros(2)})
    run.execute(run.session.parse("w = ones(2)\ny = w.sum()", "program"), [])
    assert run.session.values["y"].array == 2


def test_a_program_that_refuses_an_element_moved_is_named_with_its_reason(
    gradcli: CommandLine,
) -> None:
    shown = gradcli("check", "assert x[0] <= 1, 'too large'\ny = (x ** 2).sum()", "x=[1, 2]")
    assert "moved a little, the program fails: AssertionError: too large" in shown.out
    assert shown.code == 0


_OF_FLOAT32 = "assert x.element_size() == 4\ny = x.sum()"


def test_a_program_that_does_not_run_in_float64_says_so(gradcli: CommandLine) -> None:
    shown = gradcli("check", _OF_FLOAT32, "x=[1, 2]")
    assert "[E413]" in shown.err
    assert (
        "differences need float64, and the program does not run in it: AssertionError" in shown.err
    )
    assert gradcli("check", _OF_FLOAT32, "x=[1, 2]", "--equals", "[1, 1]").code == 0
    assert gradcli("check", _OF_FLOAT32, "x=[1, 2]", "--equals", "[1, 2]").code == 1


def test_a_pass_inside_backward_of_a_custom_function_is_none_of_the_program(
    gradcli: CommandLine,
) -> None:
    program = (
        "class Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        return x * x\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        x = ctx.saved_tensors[0].detach()\n"
        "        x.requires_grad_()\n        with torch.enable_grad():\n            out = x * x\n"
        "        torch.autograd.backward(out, grad)\n        return x.grad\n"
        "y = Twice.apply(x).sum()\ny.backward()"
    )
    shown = gradcli("check", program, "x=[1, 2]")
    assert "fine" in shown.out
    assert "backward() was called on" not in shown.err


_LEAVES = "def leaf(*values):\n    return torch.tensor(values, requires_grad=True)\n"

_HELD_LEAVES = [
    (
        "model = nn.Linear(2, 1)\nparams = {'weight': torch.ones(1, 2, requires_grad=True),"
        " 'bias': torch.ones(1, requires_grad=True)}\n"
        "y = torch.func.functional_call(model, params, (torch.eye(2),)).pow(2).sum()",
        ["params['bias']", "params['weight']"],
    ),
    (
        f"{_LEAVES}p = {{'w': leaf(1., 2.), 'rest': [leaf(3.), (leaf(4.),)]}}\n"
        "y = (p['w'] * p['rest'][0] + p['rest'][1][0]).pow(2).sum()",
        ["p['w']", "p['rest'][0]", "p['rest'][1][0]"],
    ),
    (
        f"{_LEAVES}class Net:\n    def __init__(self):\n"
        "        self.layers = [leaf(1.), leaf(2.)]\n    def __call__(self, h):\n"
        "        for each in self.layers:\n            h = (h * each).tanh()\n        return h\n"
        "net = Net()\ny = net(torch.tensor(0.5)).sum()",
        ["net.layers[0]", "net.layers[1]"],
    ),
    (
        f"from dataclasses import dataclass\n{_LEAVES}@dataclass\nclass P:\n    w: torch.Tensor\n"
        "p = P(leaf(1., 2.))\nwith torch.no_grad():\n    p.w += 0.5\ny = p.w.pow(3).sum()",
        ["p.w"],
    ),
    (
        f"from collections import namedtuple\n{_LEAVES}P = namedtuple('P', 'w b')\n"
        "p = P(leaf(1., 2.), leaf(3.))\ny = (p.w.pow(2) * p.b).sum()",
        ["p.w", "p.b"],
    ),
    (  # a loop's variables hold all of them in turn
        f"{_LEAVES}params = [(leaf(1.), leaf(2.)), (leaf(3.), leaf(4.))]\nh = torch.tensor(0.1)\n"
        "for w, b in params:\n    h = h * w + b\ny = h.pow(2)",
        ["params[0][0]", "params[0][1]", "params[1][0]", "params[1][1]"],
    ),
    (  # which has a name of its own behind its last use
        f"{_LEAVES}p = {{'w': leaf(1., 2.), 'v': leaf(3., 4.)}}\ny = (p['w'] ** 2 * p['v']).sum()\n"
        "y.backward()\nw = p['w']",
        ["p['v']", "w"],
    ),
    (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.held = {'g': torch.ones(2, requires_grad=True)}\n"
        "    def forward(self, x):\n        return (x * self.held['g']).exp()\n"
        "net = Net()\ny = net(torch.ones(2)).sum()",
        ["net.held['g']"],
    ),
]


@pytest.mark.parametrize(("program", "names"), _HELD_LEAVES)
def test_leaves_that_only_containers_hold_are_checked(
    program: str, names: list[str], gradcli: CommandLine
) -> None:
    shown = gradcli("check", program, "--json")
    inputs = json.loads(shown.out)["inputs"]
    assert {each["name"]: each["verdict"] for each in inputs} == dict.fromkeys(names, "fine")
    explained = gradcli("explain", program).out
    assert [each for each in names if f"{each}.grad = " not in explained] == []


def test_leaves_that_nothing_leads_to_are_told(gradcli: CommandLine) -> None:
    program = (
        f"{_LEAVES}params = [leaf(1.), leaf(2.)]\nfor step in range(2):\n"
        "    loss = (params[0] * params[1].exp()).sum()\n"
        "    params = [(p * 0.9).detach().requires_grad_() for p in params]\n"
    )
    shown = gradcli("check", program)
    assert "1 leaf of loss cannot be reached by a name of its own" in shown.err


@pytest.mark.parametrize(
    "program",
    [
        "w = torch.randn(3)\ny = w * 2\nw.requires_grad_()\nloss = (w * y).sum()",
        "w = torch.randn(3)\nscale = w.abs().max().item()\nw.requires_grad_()\n"
        "loss = (w * scale).pow(2).sum()",
    ],
)
def test_what_was_computed_before_a_leaf_required_grad_is_named(
    program: str, gradcli: CommandLine
) -> None:
    shown = gradcli("check", program)
    assert shown.code == 1
    assert "did not require grad yet: differences see this way" in " ".join(shown.out.split())
    assert "--> program:2:" in shown.out


_CUBE = """\
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
class Cube(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x ** 3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * {back} * x ** 2
    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * {ahead} * x ** 2
def f(x):
    return (Cube.apply(x) * torch.tensor([0.3, -1.2])).sum()
X = torch.tensor([[0.4, 2.], [1.5, -0.7]])
"""

_OF_BACKWARD = [
    ("d = grad(f)(X[0])", "grad(f) by x", 2),
    ("d = vmap(grad(f))(X)", "grad(f) by x", 4),
    ("d = vmap(vmap(grad(f)))(X[None])", "grad(f) by x", 4),
    ("o, back = vjp(f, X)", "vjp(f) by x", 4),
    ("d = jacrev(Cube.apply)(X)", "jacrev(apply) by X", 4),
    ("d = jacrev(grad(f))(X[0])", "grad(f) by x", 2),
    ("d = vmap(hessian(f))(X)", "jacrev(f) by x", 4),
]


@pytest.mark.parametrize(("call", "label", "size"), _OF_BACKWARD)
def test_what_a_transform_returns(call: str, label: str, size: int, gradcli: CommandLine) -> None:
    right = gradcli("check", _CUBE.format(back=3, ahead=3) + call, "--json")
    found = json.loads(right.out)
    assert (right.code, found["verdict"]) == (0, "fine"), right.out
    assert (label, size) in [(each["name"], each["checked"]) for each in found["inputs"]]
    wrong = gradcli("check", _CUBE.format(back=2, ahead=3) + call)
    assert wrong.code == 1
    assert f"{label}  wrong" in wrong.out
    assert "`Cube` has a backward() of its own" in wrong.out
    assert ("is right" in wrong.out) == ("vmap" not in call)


def test_what_a_transform_returns_in_forward_mode(gradcli: CommandLine) -> None:
    for call, label in (
        ("jvp(f, (X,), (X,))", "jvp(f) by x"),
        ("jacfwd(f)(X)", "jacfwd(f) by x"),
        ("vmap(jacfwd(f))(X)", "jacfwd(f) by x"),
    ):
        assert gradcli("check", f"{_CUBE.format(back=3, ahead=3)}d = {call}").code == 0
        wrong = gradcli("check", f"{_CUBE.format(back=3, ahead=2)}d = {call}")
        assert (wrong.code, f"{label}  wrong" in wrong.out) == (1, True)


def test_transforms_beside_a_backward_pass(gradcli: CommandLine) -> None:
    program = _CUBE.format(back=2, ahead=3) + (
        "w = torch.tensor([0.5, 2.], requires_grad=True)\nloss = (w * grad(f)(X[0])).sum()\n"
        "n = grad(lambda v: (v * torch.rand(2)).sum())(X[0])\nloss.backward()"
    )
    shown = gradcli("check", program)
    assert "gradient of loss and derivatives of torch.func against central" in shown.out
    assert "w.grad  fine" in shown.out
    assert "grad(f) by x  wrong" in shown.out
    assert "`grad(<lambda>)` is not checked: its function draws random numbers" in shown.err
    assert shown.code == 1


def test_a_state_that_carries_the_graph_is_named(gradcli: CommandLine) -> None:
    program = (
        "rnn = nn.RNN(3, 4)\nh = torch.zeros(1, 4)\nfor step in range(3):\n"
        "    out, h = rnn(torch.randn(5, 3), h)\n    loss = out.pow(2).mean()\n    loss.backward()"
    )
    shown = gradcli("check", program)
    assert shown.code == 3
    assert "begin a round with `h = h.detach()`" in shown.err
    cured = gradcli("check", program.replace("    out", "    h = h.detach()\n    out"))
    assert "rnn.weight_ih_l0.grad" in cured.out


def test_a_write_ahead_of_what_the_graph_reads_is_no_suspect(gradcli: CommandLine) -> None:
    head = "w = torch.tensor([1., 2.], requires_grad=True)\n"
    early = gradcli("check", f"{head}w.data = w.data * 2\nh = w.data.exp()\ny = (h * w).sum()")
    assert (early.code, "a write through" in early.out) == (1, False), early.out
    assert "3 | h = w.data.exp()" in early.out
    late = gradcli("check", f"{head}h = w * w\nw.data.mul_(2)\ny = (h * w).sum()")
    assert (late.code, "what the graph saved of `w` before is changed" in late.out) == (1, True)
