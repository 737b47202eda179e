"""Warnings: what is noticed, what is not, and where it goes.

`tests/programs/warnings/` has a program with its exact output for each code, and `silent.grad` with
what must not be warned of.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradcli.errors import WARNINGS, Warned
from gradcli.session import Session
from tests.blocks import example_of
from tests.command_line import CommandLine

EXAMPLES = {code: example_of(code) for code in WARNINGS if example_of(code)}


def warnings_of(program: str) -> list[Warned]:
    """The warnings of a program that runs to its end."""
    seen: list[Warned] = []
    session = Session(lambda event: seen.append(event) if isinstance(event, Warned) else None)
    list(session.run(program, "test"))
    return seen


def codes_of(program: str) -> list[str]:
    return [warned.code for warned in warnings_of(program)]


def test_every_code_has_a_program() -> None:
    folder = Path(__file__).parent / "programs" / "warnings"
    of_recordings = {"W027"}  # `tests/test_record.py`
    assert {path.stem for path in folder.glob("W*.grad")} | of_recordings == set(WARNINGS)


@pytest.mark.parametrize("code", EXAMPLES)
def test_examples_of_help(code: str) -> None:
    assert codes_of(EXAMPLES[code]) == [code]


@pytest.mark.parametrize("code", WARNINGS)
def test_help_of_codes(gradcli: CommandLine, code: str) -> None:
    shown = gradcli("help", code)
    assert shown.out.startswith(f"{code}: {WARNINGS[code].title}\n")
    assert f"  {code}  {WARNINGS[code].title}" in gradcli("help", "codes").out


# --- a column and a vector ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "warned"),
    [
        ((3, 1), (3,), True),
        ((3,), (3, 1), True),
        ((5, 3, 1), (3,), True),
        ((3, 1), (4,), False),  # an outer product: nobody takes these for pairs
        ((3, 1), (3, 1), False),
        ((3, 1), (1, 3), False),
        ((3, 3), (3,), False),
        ((1, 1), (1,), False),
        ((3, 1), (), False),
    ],
)
def test_columns_and_vectors(first: tuple[int, ...], second: tuple[int, ...], warned: bool) -> None:
    program = f"a = ones({first}, requires_grad=True)\nb = randn({second})\nc = a * b"
    assert codes_of(program) == ["W001"] * warned


def test_shapes_are_named() -> None:
    (warned,) = warnings_of(EXAMPLES["W001"])
    assert "(3, 1) and (3,) make (3, 3)" in warned.message
    assert warned.span is not None
    assert warned.span.text == "pred - y"


# --- leaves in loops ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "codes"),
    [
        ("w = w - 0.1 * w.grad", ["W002"]),
        ("w = w - w.grad", ["W002"]),
        ("w = w.detach() - 0.1 * w.grad", ["W002"]),
        ("with no_grad(): w = w - 0.1 * w.grad", ["W002"]),
        ("with no_grad(): w -= 0.1 * w.grad", []),
        ("w.data = w.data - 0.1 * w.grad", []),
        ("w.data -= 0.1 * w.grad", []),
        ("w = (w - 0.1 * w.grad).detach().requires_grad_()", []),
        ("with no_grad(): w = w - 0.1 * w.grad\n    w.requires_grad_()", []),
        ("w = w - 0.1 * w.grad\n    w = w.detach().requires_grad_()", []),
        ("w = w - 0.1 * w.grad\n    w = tensor(w.tolist(), requires_grad=True)", []),
        ("v = w - 0.1 * w.grad", []),
    ],
)
def test_leaves_in_loops(step: str, codes: list[str]) -> None:
    program = "w = ones(2, requires_grad=True)\nfor i in range(1):\n    (w * w).sum().backward()\n"
    assert codes_of(f"{program}    {step}") == codes


def test_outside_a_loop_a_step_is_silent() -> None:
    assert codes_of("w = ones(1, requires_grad=True)\n(w * 2).backward()\nw = w - w.grad") == []


# --- gradients of non-leaves --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ("y.grad", ["W003"]),
        ("y.retain_grad()\ny.grad", []),
        ("y.retain_grad()\ny.sum().backward()\ny.grad", []),
        ("x.grad", []),
        ("y.detach().grad", []),
    ],
)
def test_gradients_of_non_leaves(lines: str, codes: list[str]) -> None:
    assert codes_of(f"x = ones(2, requires_grad=True)\ny = x * 3\n{lines}") == codes


# --- where they go ------------------------------------------------------------------------------

LOOP = "x = ones(2, requires_grad=True)\ny = x * 3\nfor i in range(5): print(y.grad)\ny.grad"


def test_a_place_is_named_once() -> None:
    assert codes_of(LOOP) == ["W003", "W003"]


def test_standard_output_stays(gradcli: CommandLine) -> None:
    shown = gradcli(f"{LOOP[:-7]}")
    assert shown.out.startswith("None\n" * 5)
    assert shown.err.count("warning[W003]") == 1


def test_quiet_and_strict(gradcli: CommandLine) -> None:
    program = "F.softmax(ones(2, 3))"
    assert gradcli(program).code == 0
    assert "warning" not in gradcli(program, "-q").err
    strict = gradcli(program, "--strict")
    assert (strict.code, strict.out) == (1, gradcli(program).out)
    assert "--strict" in strict.err
    assert gradcli(program, "--strict", "-q").code == 1
    assert gradcli("ones(2)", "--strict").code == 0
    assert gradcli(f"{program}\n1 / 0", "--strict").code == 3


def test_strict_files(gradcli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "p.grad"
    path.write_text("print(F.softmax(ones(2, 3)))\n")
    assert gradcli("run", str(path)).code == 0
    assert gradcli("run", str(path), "--strict").code == 1


def test_forms(gradcli: CommandLine) -> None:
    program = "x = ones(2)\nF.softmax(x)"
    short = gradcli(program, "--error-format", "short").err.splitlines()
    assert short[0] == "program:2:1: warning[W006]: softmax(): no dim is given, and 0 is taken"
    found = json.loads(gradcli(program, "--error-format=json").err.splitlines()[0])
    assert (found["level"], found["code"]) == ("warning", "W006")
    assert found["spans"][0]["text"] == "F.softmax(x)"


# --- what a program hears ------------------------------------------------------------------------

HEARD = [
    (
        "F.mse_loss(ones(2, 1), ones(2))",
        "UserWarning: Using a target size (torch.Size([2])) that is different to the input size"
        " (torch.Size([2, 1])). This will likely lead to incorrect results due to broadcasting."
        " Please ensure they have the same size.",
    ),
    (
        "torch.tensor(x)",
        "UserWarning: To copy construct from a tensor, it is recommended to use"
        " sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True),"
        " rather than torch.tensor(sourceTensor).",
    ),
    (
        "F.log_softmax(ones(2, 2))",
        "UserWarning: Implicit dimension choice for log_softmax has been deprecated. Change the"
        " call to include dim=X as an argument.",
    ),
    (
        "float(x.sum())",
        "UserWarning: Converting a tensor with requires_grad=True to a scalar may lead to"
        " unexpected behavior.\nConsider using tensor.detach() first.",
    ),
    (
        "torch.std(ones(1))",
        "UserWarning: std(): degrees of freedom is <= 0. Correction should be strictly less than"
        " the reduction factor (input numel divided by output numel).",
    ),
    (
        "nn.init.xavier_normal(torch.ones(2, 2))",
        "FutureWarning: `nn.init.xavier_normal` is now deprecated in favor of"
        " `nn.init.xavier_normal_`.",
    ),
    ("np.log(np.zeros(1))", "RuntimeWarning: divide by zero encountered in log"),
]
"""Programs with what PyTorch 2.13 warns of, but for the place in its own source."""


@pytest.mark.parametrize(("program", "said"), HEARD)
def test_a_program_hears_what_pytorch_warns_of(program: str, said: str) -> None:
    setting = f"import warnings\nx = ones(2, requires_grad=True)\nf = lambda: {program}\n"
    lines = [
        "with warnings.catch_warnings(record=True) as w:",
        "    warnings.simplefilter('always')",
        "    f()",
        "heard = f'{w[0].category.__name__}: {w[0].message}', len(w)",
        "with warnings.catch_warnings():",
        "    warnings.simplefilter('error')",
        "    try: f()",
        "    except Warning as e: raised = f'{type(e).__name__}: {e}'",
        "    warnings.simplefilter('ignore')",
        "    f()",
    ]
    shown: list[Warned] = []
    session = Session(lambda event: shown.append(event) if isinstance(event, Warned) else None)
    list(session.run(setting + "\n".join(lines) + "\n", "test"))
    assert session.values["heard"] == (said, 1)
    assert session.values["raised"] == said
    assert shown == []


# --- training loops -----------------------------------------------------------------------------

_TRAINER = """\
class Trainer:
    def __init__(self):
        self.model = nn.Linear(2, 1)
    {decorator}
    def evaluate(self, batches):
        self.model.eval()
        return [out for out in self.each(batches)]
    def each(self, batches):
        found = []
        for batch in batches:
            found.append(self.model(batch))
        return found
Trainer().evaluate(ones(2, 3, 2))
"""


def test_evaluation_by_an_object() -> None:
    (warned,) = warnings_of(_TRAINER.format(decorator="x = 1"))
    assert warned.code == "W019"
    assert warned.message.startswith("`self.model` evaluates")
    assert codes_of(_TRAINER.format(decorator="@torch.no_grad()")) == []


_STEPS = (
    "w = ones(2, requires_grad=True)\nfor i in range(3):\n    (w * w).sum().backward()\n{step}\n"
)


@pytest.mark.parametrize(
    ("step", "codes"),
    [
        ("    with torch.no_grad():\n        w -= 0.1 * w.grad", ["W017"]),
        ("    w.data -= 0.1 * w.grad", ["W017"]),
        ("    with torch.no_grad():\n        w -= 0.1 * w.grad\n    w.grad = None", []),
        ("    with torch.no_grad():\n        w -= 0.1 * w.grad\n    w.grad.zero_()", []),
        ("    with torch.no_grad():\n        w -= 0.1 * w.grad\n        w.grad *= 0.9", []),
    ],
)
def test_gradients_of_loops_by_hand(step: str, codes: list[str]) -> None:
    assert codes_of(_STEPS.format(step=step)) == codes


_TRAINING = (
    "net = torch.nn.Linear(2, 1)\nw = torch.ones(2, 2)\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "def loss():\n    opt.zero_grad()\n    out = net(w).sum()\n    out.backward()\n    return out\n"
    "for i in range(3):\n    {rounds}\n"
)


@pytest.mark.parametrize(
    ("rounds", "warns"),
    [
        ("net(w).sum().backward(); opt.zero_grad(); opt.step()", True),
        ("net(w).sum().backward(); net.zero_grad(); opt.step()", True),
        ("net(w).sum().backward(); opt.zero_grad(set_to_none=False); opt.step()", True),
        ("opt.zero_grad(); opt.step(); net(w).sum().backward()", True),
        ("opt.zero_grad(); net(w).sum().backward(); opt.step()", False),
        ("net(w).sum().backward(); opt.step(); opt.zero_grad(set_to_none=False)", False),
        ("opt.zero_grad(False); (net(w) * 0).sum().backward(); opt.step()", False),
        ("opt.zero_grad(); net(w).sum().backward() if i != 1 else None; opt.step()", False),
        ("opt.zero_grad(); opt.step(loss)", False),
        ("opt.step(); opt.zero_grad()", False),
    ],
)
def test_gradients_that_are_cleared_before_the_step(rounds: str, warns: bool) -> None:
    codes = codes_of(_TRAINING.format(rounds=rounds.replace("; ", "\n    ")))
    assert codes == ["W023"] * warns


def test_the_optimizer_is_named_that_a_scaler_steps() -> None:
    for held, called in (("opt = ", "opt"), ("class T: pass\nt = T()\nt.opt = ", "t.opt")):
        (warned,) = warnings_of(
            f"net = nn.Linear(2, 1)\n{held}torch.optim.SGD(net.parameters(), lr=0.1)\n"
            "scaler = torch.amp.GradScaler('cpu')\n"
            f"scaler.scale(net(ones(1, 2)).sum()).backward()\n{called}.zero_grad()\n"
            f"scaler.step({called})\n"
        )
        assert (warned.code, warned.message.partition(" ")[0]) == ("W023", f"`{called}`")


_REPLACED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(2, 3), nn.Linear(3, 1)
    def forward(self, x):
        return self.fc(self.body(x))
net = Net()
opt = torch.optim.SGD({held}, lr=0.1)
{then}
for i in range(3):
    opt.zero_grad()
    net(torch.randn(4, 2)).sum().backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("held", "then", "warns"),
    [
        ("net.parameters()", "net.fc = nn.Linear(3, 2)", True),
        ("net.parameters()", "net.fc.weight = nn.Parameter(torch.randn(1, 3))", True),
        ("net.parameters()", "net.fc = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))", True),
        ("net.parameters()", "net.fc = nn.Sequential(nn.ReLU(), net.fc)", False),
        ("net.parameters()", "net.fc = nn.Linear(3, 2).requires_grad_(False)", False),
        (
            "net.parameters()",
            "net.fc = nn.Linear(3, 2)\nopt.add_param_group({'params': net.fc.parameters()})",
            False,
        ),
        (
            "net.parameters()",
            "net.fc = nn.Linear(3, 2)\nhead = torch.optim.SGD(net.fc.parameters(), lr=0.1)",
            False,
        ),
        ("net.body.parameters()", "net.fc = nn.Linear(3, 2)", False),
        ("net.parameters()", "net.fc = nn.Identity()", False),
        (
            "net.parameters()",
            "net.fc = nn.Linear(3, 2)\nopt.param_groups[0]['params'] = [*net.parameters()]",
            False,
        ),
    ],
)
def test_a_layer_that_is_replaced_behind_its_optimizer(held: str, then: str, warns: bool) -> None:
    assert codes_of(_REPLACED.format(held=held, then=then)) == ["W029"] * warns


@pytest.mark.parametrize(
    ("loss", "warns"),
    [
        ("F.nll_loss(F.log_softmax(z, dim=0), y)", True),
        ("F.nll_loss(nn.LogSoftmax(0)(z), y)", True),
        ("F.nll_loss(F.log_softmax(z[..., None], dim=2), y[:, None])", True),
        ("F.nll_loss(F.log_softmax(z, dim=-1), y)", False),
        ("F.nll_loss(F.log_softmax(z[0], dim=0), y[0])", False),
        ("F.nll_loss(F.log_softmax(z @ z.T, dim=0), torch.arange(4))", False),
        ("F.cross_entropy(z, y)", False),
    ],
)
def test_a_softmax_along_the_batch(loss: str, warns: bool) -> None:
    program = "z = torch.randn(4, 3, requires_grad=True)\ny = torch.tensor([0, 1, 2, 0])\n"
    assert codes_of(f"{program}{loss}.backward()") == ["W030"] * warns


def test_rules_pair_columns_with_rows_without_a_warning() -> None:
    program = (
        "W, x = (torch.randn(*s, requires_grad=True) for s in ((3, 3), (3,)))\n"
        "g, = torch.autograd.grad((W @ x).sum() ** 2, x, create_graph=True)\n"
        "(g ** 2).sum().backward()"
    )
    assert codes_of(program) == []
    hooked = (
        "W, b = torch.randn(3, 1, requires_grad=True), torch.randn(3)\n"
        "def hook(g):\n    return (g * b).sum(1, True)\n"
        "y = W * W\ny.register_hook(hook)\n"
        "torch.autograd.grad((y ** 2).sum(), W, create_graph=True)"
    )
    assert codes_of(hooked) == ["W001"]
