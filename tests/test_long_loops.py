"""The asking commands on long loops: only the first and the last iterations are recorded, and
others where an answer needs them; the answer is what it is where all are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradcli.language import rounds
from gradcli.language.compiler.base import Running
from gradcli.language.long_loops import LongLoops, Rounds
from gradcli.questions import answer
from gradcli.questions.blame import command as blame_command
from gradcli.questions.why import command as why_command
from gradcli.questions.why import trial
from gradcli.running import rerun
from tests.command_line import CommandLine
from tests.rows import each_row

_FIT = """\
torch.manual_seed(0)
x = torch.randn(20, 3)
y = x.sum(1)
w = torch.zeros(3, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
opt = torch.optim.SGD([w, b], lr=RATE)
for step in range(110):
    opt.zero_grad()
    z = x @ w
    CHANGE
    loss = ((z - y) ** 2).sum()
    loss.backward()
    opt.step()
"""

_STOPPED = """\
w = torch.tensor(5., requires_grad=True)
i = 0
while True:
    i += 1
    w.grad = None
    loss = w ** 2
    loss.backward()
    if i == 110:
        break
"""

_NESTED = """\
from torch.utils.data import DataLoader
w = torch.tensor([1., 2.], requires_grad=True)
opt = torch.optim.Adam([w], lr=0.01)
rows = torch.randn(40, 2)
for epoch in range(12):
    for batch in DataLoader(rows, batch_size=4):
        loss = (batch @ w).exp().mean()
        if epoch == 9:
            loss = loss * (w - w).norm()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def _fit(change: str = "pass", rate: float = 0.01) -> str:
    return _FIT.replace("CHANGE", change).replace("RATE", str(rate))


PROGRAMS = {
    "fits": _fit(),
    "diverges": _fit(rate=0.05),
    "has a root at 0": _fit("z = (z - z).sqrt() if step == 90 else z"),
    "reaches another tensor once": _fit("z = z + b.sum() if step == 80 else z"),
    "masks": _fit("z = torch.where(z > 0, z, torch.full_like(z, -torch.inf).exp())"),
    "fails": _fit("assert step < 100"),
    "stops": _STOPPED,
    "is nested": _NESTED,
    "is asked of what follows": _fit() + "final = ((x @ w - y) ** 2).mean()\n",
    "differentiates once in the middle": _fit(
        "kept = (w ** 2).sum() if step == 80 else None\n    if kept is not None: kept.backward()"
    ),
    "keeps a tensor from the middle": _fit("kept = z if step == 80 else w")
    + "final = kept.sum()\n",
    "goes backward twice": _fit("(z * 0.5).sum().backward(retain_graph=True)"),
    "keeps a running average": _fit("late = z.detach() * 0.1 + (late * 0.9 if step else 0)")
    + "final = (w * late[:3]).sum()\n",
    "decides by its input": """\
w = torch.tensor([0.5, 0.25], requires_grad=True)
v = w.detach().clone()
for step in range(110):
    v = v * 0.99 if v[0] > 0.1 else v
final = (w * v).sum()
""",
    "writes to its input before the last rounds": """\
w = torch.tensor([0.5, 0.25], requires_grad=True)
for step in range(110):
    with torch.no_grad():
        w.mul_(0.99)
    if step == 50:
        late = (w * w).sum()
final = (w ** 3).sum()
""",
}


QUESTIONS = ["blame", "why w.grad", "why b.grad", "explain --flow", "derive"]

ASKED = [(name, question) for question in QUESTIONS for name in PROGRAMS]
"""Each question of every program: these are odd in number, so that every fourth row has
each program, and each question.
"""


@each_row(("name", "question"), ASKED, size=3, every=4)
def test_the_answer_is_that_of_a_whole_recording(
    name: str,
    question: str,
    gradcli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    here: Path,
) -> None:
    (here / "loop.py").write_text(f"import torch\n{PROGRAMS[name]}")
    words = question.split()
    unheard: list[LongLoops] = []
    heard = rounds.record_rounds

    def counted(interpreter: Running, wanted: frozenset[Rounds] | None) -> None:
        heard(interpreter, wanted)
        loops = interpreter.long_loops
        assert loops is not None
        unheard.append(loops)

    for module, constant in (
        (blame_command, "_SECONDS"),
        (blame_command, "_SECONDS_OF_LONG"),
        (why_command, "_LONGEST"),
        (trial, "_SECONDS"),
    ):
        monkeypatch.setattr(module, constant, 60.0)  # what is tried does not depend on the machine
    monkeypatch.setattr(answer, "record_rounds", counted)
    quick = gradcli(*words, "loop.py")
    assert any(each.unheard for each in unheard)
    for module in (answer, rerun, why_command):
        monkeypatch.setattr(
            module, "record_rounds", lambda interpreter, wanted: heard(interpreter, None)
        )
    whole = gradcli(*words, "loop.py")
    assert (quick.code, quick.out, quick.err) == (whole.code, whole.out, whole.err)


_BATCHES = """\
for epoch in range(120):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):"""

_OF_A_MODEL = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(32, 3)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
LOOPS
        loss = ((model(a) - b) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    ("question", "loops"),
    [
        ("blame", "for a, b in [(x, y)]:\n    for step in range(180):"),
        ("blame", "for epoch in range(4):\n    for a, b in zip(x.split(1) * 3, y.split(1) * 3):"),
        ("explain --flow", _BATCHES),
    ],
)
def test_iterations_of_a_model_that_are_not_recorded_are_compiled(
    question: str, loops: str, gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    (here / "model.py").write_text(_OF_A_MODEL.replace("LOOPS", loops))
    interpreters: list[Any] = []
    heard = rounds.record_rounds

    def kept(interpreter: Running, wanted: frozenset[Rounds] | None) -> None:
        heard(interpreter, wanted)
        interpreters.append(interpreter)

    monkeypatch.setattr(answer, "record_rounds", kept)
    assert gradcli(*question.split(), "model.py").code == 0
    loops_run = interpreters[0].hot_loops.values()
    assert sum(each.compiled_count for each in loops_run) > 120, loops_run


_AT_1400 = """\
import torch
x = torch.linspace(0.1, 1.0, 8)
w = torch.tensor([0.5, 0.0], requires_grad=True)
b = torch.tensor(0.0, requires_grad=True)
opt = torch.optim.SGD([w, b], lr=0.1)
for step in range(2000):
    y = w[0] * x + w[1]
    CHANGE
    loss = ((y - 3 * x - 1) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("question", "change", "told"),
    [
        (
            ["blame"],
            "y = y + (w[0] * float(step - 1399)).log() * 0 if step == 1399 else y",
            "in round 1400 of the loop at",
        ),
        (
            ["blame", "--json"],
            "peak = torch.nan_to_num(torch.tensor(1.0) / (1400 - step), posinf=1.0)",
            '"number": 1401',
        ),
        (["why", "b.grad"], "y = y + b if step != 0 else y", "b.grad = tensor("),
        (["why", "b.grad"], "y = y + b if step == 0 else y", "b.grad = None"),
        (["explain", "--flow"], "pass", "the last of 2000 backward passes"),
        (
            ["explain", "--flow"],
            "y.sum().backward(retain_graph=True)",
            "the last of 4000 backward passes",
        ),
    ],
)
def test_the_answer_lies_in_the_middle_of_a_long_loop(
    question: list[str], change: str, told: str, gradcli: CommandLine, here: Path
) -> None:
    (here / "loop.py").write_text(_AT_1400.replace("CHANGE", change))
    shown = gradcli(*question, "loop.py")
    assert told in " ".join(shown.out.split()), shown.out


def test_passes_that_add_up_are_not_counted(gradcli: CommandLine) -> None:
    program = _fit().replace("opt.zero_grad()", "pass").replace("0.01", "1e-4")
    shown = gradcli("why", "w.grad", program)
    assert "the backward passes of many rounds were added up" in " ".join(shown.out.split())
    assert "this adds to it, in each round" in shown.out
    assert "help: clear it in between" in shown.out


_LEFT_EARLY = """\
w = torch.tensor([0.5, 0.2], requires_grad=True)
opt = torch.optim.SGD([w], lr=0.01)
for step in range(60):
    z, k = w, 0
    while True:
        former, z, k = z, torch.cos(z), k + 1
        if (z - former).abs().max() < 0.001:
            break
    loss = (z - w).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("outer", ["for step in range(60):", "while (w[0] - 0.7).abs() > 0.001:"])
def test_loops_that_are_left_early_are_not_recorded_whole(
    outer: str, gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, heard = [], rounds.record_rounds

    def kept(interpreter: Running, wanted: frozenset[Rounds] | None) -> None:
        heard(interpreter, wanted)
        asked.append(wanted)

    monkeypatch.setattr(answer, "record_rounds", kept)
    program = _LEFT_EARLY.replace("for step in range(60):", outer)
    assert "w.trains = True" in gradcli("why", "w", program).out
    assert len(asked) > 1
    assert None not in asked


def test_what_a_round_made_is_looked_at_once(gradcli: CommandLine) -> None:
    """Each round's tensors are parts of all that came of them: a walk that met them again and again
    would take twice as long with every round.
    """
    program = """
u = torch.ones(3, requires_grad=True)
for i in range(150):
    l = (u ** 2).sum()
    l.backward()
    with torch.no_grad():
        u -= 0.001 * u.grad
    u.grad.zero_()
"""
    shown = gradcli("why", "u.grad", program)
    assert "was set to 0 afterwards" in shown.out
