"""The training loops that people write are compiled, or break where it is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.loops.kinds import KINDS
from tests.loops.measure import outcome_of
from tests.loops.states import STATES
from tests.rows import sampled

BREAKS = {
    "LBFGS with a closure": "optimizer.step(closure)",
}
"""The kinds with a loop that is interpreted, and the source text where recording ends."""

WHOLE = {"permuted minibatches": 90}
"""The kinds of which the outer loop is compiled with the inner one in it, and its iterations."""


@pytest.mark.parametrize("name", sampled(KINDS, 2))
def test_kinds(name: str) -> None:
    compiled = outcome_of(KINDS[name], compiled=True)
    interpreted = outcome_of(KINDS[name], compiled=False)
    assert compiled.stdout == interpreted.stdout
    loops = list(compiled.session.interpreter.hot_loops.values())
    assert sum(loop.compiled_count for loop in loops) > WHOLE.get(name, 200)
    if name in BREAKS:
        (broken,) = [loop.broken for loop in loops if not loop.compiled_count]
        assert broken is not None
        assert broken.span is not None
        assert broken.span.text.startswith(BREAKS[name])
        assert broken.reason


@pytest.mark.parametrize("name", sampled(STATES, 2))
def test_states(name: str) -> None:
    program, is_compiled = STATES[name]
    compiled = outcome_of(program, compiled=True)
    assert compiled.stdout == outcome_of(program, compiled=False).stdout
    (loop,) = compiled.session.interpreter.hot_loops.values()
    assert (loop.compiled_count > 0) is is_compiled
    assert is_compiled or loop.broken is not None


PROGRAM = """\
import torch
w = torch.tensor([1., 2.], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
losses = []

def closure():
    optimizer.zero_grad()
    loss = (w * w).sum()
    loss.backward()
    return loss

for step in range(200):
    closure()
    optimizer.step()
    if step == 150:
        print(step)
for step in range(120):
    losses.append(closure())
for step in range(7):
    w.data.mul_(1)
"""

EXPLAINED = """\
loop: 191 iterations of 200 compiled
  --> train.py:12:1
   |
12 | for step in range(200):
   | ^^^^^^^^^^^^^^^^^^^^^^^
   |
   = note: 9 guards, 1 check with a side exit, taken 1 time
loop: 120 iterations interpreted
  --> train.py:18:5
   |
17 | for step in range(120):
   | ----------------------- in this loop
18 |     losses.append(closure())
   |     ^^^^^^^^^^^^^^^^^^^^^^^^ a tensor is kept with its graph, which grows from iteration to iteration [B06]
   |
   = help: keep `loss.item()` or `loss.detach()`
"""  # noqa: E501


def test_explain_loops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    shown = CommandLine(capsys)("run", "--explain-loops", "train.py")
    assert shown.out == "150\n"
    assert shown.err == EXPLAINED


def test_explain_loops_of_many_short_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "def f(xs):\n    n = 0\n    for x in xs:\n        with open_(): n += x\n    return n\n"
        "class open_:\n    def __enter__(self): return 1\n    def __exit__(self, *a): return None\n"
        "print(sum(f([1, 2, 3]) for _ in range(300)))\n"
    )
    shown = CommandLine(capsys)("run", "--explain-loops", "-", stdin=program)
    assert shown.out == "1800\n"
    assert shown.err.startswith("loop: 837 iterations interpreted\n")  # of 900, the first 63 alone


def test_explain_loops_of_standard_input(capsys: pytest.CaptureFixture[str]) -> None:
    program = "w = tensor(1., requires_grad=True)\nfor n in range(9):\n    y = w * 2\nprint(y)\n"
    shown = CommandLine(capsys)("run", "--explain-loops", "-", stdin=program)
    assert shown.out == "tensor(2., grad_fn=<MulBackward0>)\n"
    assert shown.err == "no loop ran often enough to be compiled\n"
