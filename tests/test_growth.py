"""A round costs the same however many ran before it: nothing that a run keeps grows."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from gradcli.session import Session
from tests.rows import sampled

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(12, 3)
y = x.sum(1)
w = torch.zeros(3, requires_grad=True)
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.2), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 50)
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
each = torch.func.vmap(torch.func.grad(lambda w, row, y: (row @ w - y) ** 2), (None, 0, 0))
v, average, last = torch.zeros(3), 0.0, None
"""

ROUNDS = {
    "a compiled loop": """
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        w.grad = None
    average = average * 0.9 + loss.item() * 0.1
""",
    "batches, an optimizer, a schedule": """
    for xb, yb in loader:
        optimizer.zero_grad()
        F.mse_loss(model(xb)[:, 0], yb).backward()
        optimizer.step()
    scheduler.step()
""",
    "rows drawn anew": """
    at = torch.randint(0, 12, (5,))
    loss = F.cross_entropy(x[at] * w, at % 3)
    w.grad = None
    loss.backward()
    w.data += -0.01 * w.grad
""",
    "gradients of each sample": """
    v = v - 0.01 * each(v, x, y).mean(0)
""",
    "a loop that is not compiled": """
    kept = {"graph": (w * float(n % 7)).sum(), "before": None if last is None else last.item()}
    last = torch.autograd.grad(kept["graph"], w, create_graph=True)[0].norm()
    assert isinstance(last, torch.Tensor)
""",
    "hooks, custom functions, errors that are caught": """
    handle = w.register_hook(lambda grad: grad * 2)
    (w * w).sum().backward()
    handle.remove()
    w.grad = None
    try:
        x @ x
    except RuntimeError as error:
        last = str(error)
""",
}
"""What a round does, each time the same."""


@pytest.mark.parametrize("name", sampled(ROUNDS, 2))
def test_nothing_grows(name: str) -> None:
    session = Session(lambda event: None)

    def run(text: str) -> int:
        for _ in session.run(text, "program"):
            pass
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    def rounds(count: int) -> str:
        return f"for n in range({count}):{ROUNDS[name]}"

    tracemalloc.start()
    try:
        run(SETUP + rounds(70))
        # A session keeps what it compiled of a statement, and flat programs after 96 rounds of it.
        few = -run(rounds(200)) + run(rounds(200))
        many = -run(rounds(200)) + run(rounds(400))
        assert many - few < 10_000
    finally:
        tracemalloc.stop()


REFUSED = [
    "x @ x", "torch.arange(3) @ torch.ones(3)", "model(torch.zeros(3, 5))", "each(v, x @ x, y)",
    "w + x[:, :2]", "x.view(5, 5)", "torch.cat([x, y])", "(w * 2).backward()", "x[20]", "[][3]",
    "torch.linalg.inv(torch.zeros(2, 2))", "torch.exp('a')", "x.sum(5)", "int('a')", "1 / 0",
]  # fmt: skip


@pytest.mark.parametrize("expression", sampled(REFUSED, 5))
def test_an_error_that_was_caught_is_gone_at_once(expression: str) -> None:
    """What only the collector of cycles frees, which runs seldom, adds up to many megabytes."""
    session = Session(lambda event: None)
    text = (
        f"    try:\n        {expression}\n    except Exception as error:\n        last = 'caught'\n"
    )

    def run(text: str) -> None:
        for _ in session.run(text, "program"):
            pass

    run(f"{SETUP}for n in range(10):\n{text}assert last == 'caught'\n")
    gc.collect()
    gc.disable()
    try:
        run(f"for n in range(40):\n{text}")
        assert gc.collect() < 40
    finally:
        gc.enable()


_COLLECTOR_AFTER = """
import gc
from gradcli.cli.main import run
code = run(["run", "long.grad"])
print(code, gc.isenabled(), gc.get_freeze_count() > 0)
"""


@pytest.mark.parametrize(("last", "code"), [("print(v0)", 0), ("v1 = = 2", 3)])
def test_the_collector_passes_over_a_long_program(tmp_path: Path, last: str, code: int) -> None:
    lines = [f"v{n} = (v{n - 1} * 2 + {n}.5) / 3" for n in range(1, 2000)]
    program = "\n".join(["v0 = 1", *lines, last, ""])
    (tmp_path / "long.grad").write_text(program, encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-c", _COLLECTOR_AFTER],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines()[-1] == f"{code} True True"
