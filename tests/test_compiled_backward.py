"""Passes that are compiled do what the engine does: to the last character, errors included."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli.autograd.engine import engine
from gradcli.autograd.engine.pass_trace import trace_of
from gradcli.session import Session
from gradcli.show.diagnostics.human import diagnostic
from gradcli.trace.ir import text_of
from tests.running import run

TENSORS = """
w = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
b = torch.tensor([0.5, -0.25, 1.], requires_grad=True)
s = torch.tensor(0.7, requires_grad=True)
x = torch.tensor([[1., -2.], [0.25, 3.], [2., 1.5]])
v = torch.tensor([0.75, -1.25, 0.5])
"""

# In each, a statement inside the loop differentiates; `n` counts the rounds.
PROGRAMS = {
    "a layer": """
for n in range(4):
    ((torch.tanh(x @ w + b) ** 2).mean() * s).backward()
print(w.grad, b.grad, s.grad)
""",
    "updates": """
for n in range(5):
    loss = (torch.relu(x @ w + b) * v).sum() / s
    loss.backward()
    with torch.no_grad():
        for p in [w, b, s]:
            p -= 0.1 * p.grad
            p.grad = None
print(w, b, s, loss)
""",
    "a tensor used twice": """
for n in range(4):
    y = b * s
    (y * y + y + torch.stack([y, y]).sum(0) * y.sum()).backward(v)
print(b.grad, s.grad)
""",
    "two that become one": """
for n in range(7):
    p = b * s
    q = b * s if n < 3 else p
    (torch.exp(p) * torch.exp(q)).sum().backward()
print(b.grad, s.grad)
""",
    "a leaf used twice": """
for n in range(4):
    (b * b * (s if n < 3 else b)).sum().backward()
print(b.grad, s.grad)
""",
    "views and indices": """
for n in range(4):
    y = w.t()[:2] * 2
    (y[0] * v[:2] + y[1, 1] + w.reshape(-1)[::3].sum()).sum().backward()
print(w.grad)
""",
    "dtypes": """
d = torch.tensor([1., 2., 3.], dtype=torch.float64, requires_grad=True)
h = torch.tensor([1., 2., 3.], dtype=torch.bfloat16, requires_grad=True)
for n in range(4):
    ((d * b).sum() * s + (h * 3).sum()).backward()
print(d.grad, b.grad, s.grad, h.grad)
""",
    "a graph of its own in each round": """
for n in range(9):
    y = b * s
    for k in range(n % 3):
        y = torch.sin(y) + s
    y.sum().backward()
print(b.grad, s.grad)
""",
    "a leaf that needs none any more": """
for n in range(5):
    y = (b * s).sum()
    if n == 3:
        b.requires_grad_(False)
    y.backward()
    b.requires_grad_()
print(b.grad, s.grad)
""",
    "hooks": """
seen = []
for n in range(6):
    y = b * s
    if n == 3:
        y.register_hook(lambda g: seen.append(g) or g * 2)
    if n == 4:
        y.grad_fn.register_prehook(lambda g: seen.append(g[0]))
    (y * v).sum().backward()
    if n == 4:
        b.register_hook(lambda g: seen.append(g))
print(b.grad, s.grad, seen)
""",
    "retained gradients": """
for n in range(5):
    y = b * s
    if n > 2:
        y.retain_grad()
    (y * v).sum().backward()
print(b.grad, y.grad)
""",
    "a function of one's own": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * 2
    @staticmethod
    def backward(ctx, g):
        print(g)
        return g * 2
for n in range(4):
    Double.apply(b * s).sum().backward()
print(b.grad)
""",
    "retain_graph": """
y = (b * s).exp().sum()
for n in range(5):
    y.backward(retain_graph=n < 4)
print(b.grad, s.grad)
""",
    "a second pass": """
y = (b * s).exp().sum()
for n in range(5):
    if n < 3:
        y = (b * s).exp().sum()
    y.backward()
""",
    "a write to what was saved": """
for n in range(5):
    y = torch.exp(b * s)
    z = y * y
    if n == 4:
        y.add_(1)
    z.sum().backward()
""",
    "two outputs of one operation": """
for n in range(4):
    values, places = torch.topk(b * s, 2)
    low, high = torch.aminmax(b * s)
    (values.sum() + low * high).backward()
print(b.grad, s.grad)
""",
    "lists": """
for n in range(5):
    parts = [b * k for k in range(2 if n < 3 else 3)]
    (torch.cat(parts) ** 2).sum().backward()
print(b.grad)
""",
    "a hessian": """
for n in range(2):
    f = ((torch.tanh(b * s) ** 3).sum() + (b * b).sum() ** 2) * w.sum()
    (g,) = torch.autograd.grad(f, b, create_graph=True)
    print(g)
    for i in range(3):
        print(torch.autograd.grad(g[i], b, retain_graph=True), s.grad)
""",
    "some of the leaves": """
for n in range(6):
    y = (torch.sin(b * s) @ w.t()).sum()
    inputs = [b, s] if n < 2 else [s, b, s] if n < 4 else [w]
    print(torch.autograd.grad(y * s.exp(), inputs))
""",
    "a leaf that is not in it": """
for n in range(4):
    y = (b * 2).sum() if n == 2 else (b * s).sum()
    print(torch.autograd.grad(y, [b, s], allow_unused=True))
""",
    "no leaf": """
for n in range(3):
    y = b * s
    print(torch.autograd.grad((y * y).sum(), [y, b]))
""",
    "accumulating, recording, collecting": """
for n in range(6):
    y = (b * s).exp().sum()
    if n % 3 == 2:
        y.backward(inputs=[s])
    else:
        y.backward(create_graph=n % 3 == 1)
print(b.grad, s.grad)
""",
    "nodes that ran": """
for n in range(4):
    y = b * s
    (y * v).sum().backward()
try:
    y.backward(v)
except RuntimeError as e:
    print(e)
print(y.grad_fn, y.grad_fn.next_functions)
""",
}


def outcome(program: str, after: int, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """What a program prints and how it fails where a pass is written after so many."""
    monkeypatch.setattr(engine, "_AFTER", after)
    monkeypatch.setattr(engine, "_sites", {})
    result = run(TENSORS + program)
    return result.stdout, "" if result.error is None else diagnostic(result.error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_the_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_the_engine = outcome(PROGRAMS[name], 1_000_000, monkeypatch)
    assert outcome(PROGRAMS[name], 1, monkeypatch) == by_the_engine
    assert any(by_the_engine)


@pytest.mark.parametrize(
    ("name", "written", "run"),
    [
        ("a layer", 1, 4),
        ("updates", 1, 5),
        ("two that become one", 2, 5),
        ("hooks", 2, 3),
        ("a function of one's own", 0, 0),
        ("retain_graph", 1, 5),
        ("a hessian", 2, 8),
        ("some of the leaves", 2, 4),
        ("no leaf", 0, 0),
    ],
)
def test_how_many_are_written_and_run(
    name: str, written: int, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"written": 0, "run": 0}
    write = engine._compiled

    def counted(*given: Any) -> engine.Pass | None:
        made = write(*given)
        if made is None:
            return None
        counts["written"] += 1

        def run_it(*given: Any) -> list[Any] | None:
            found = made(*given)
            counts["run"] += found is not None
            return found

        return run_it

    monkeypatch.setattr(engine, "_compiled", counted)
    outcome(PROGRAMS[name], 1, monkeypatch)
    assert counts == {"written": written, "run": run}


def test_trace_of_a_pass() -> None:
    """What is compiled can be read."""
    session = Session()
    program = "b = tensor(0.5, requires_grad=True)\ny = (w * b + w).sum()"
    for _ in session.run(f"w = tensor([1.5, 2.], requires_grad=True)\n{program}", "program"):
        pass
    with session.running():
        found = trace_of(session.values["y"].grad_fn, False, None)
    assert found is not None
    assert text_of(found.trace) == TRACE.strip()


TRACE = """
inputs: %0: node, %1: f32[]
%2: node = edges(%0)
%3: node, %4: node = edges(%2)
%5: meta = meta(%4)
%6: node, %7: node = edges(%3)
%8: meta = meta(%7)
%9: span = place()
%10: gradients, %11: f32[2] = run(%0, %1, %9)   # (w * b + w).sum()  program:3
%12: f32[2] = arrive(%0, %11, %2)
free(%1)
%13: gradients, %14: f32[2], %15: f32[2] = run(%2, %12, %9)   # w * b + w  program:3
%16: f32[2] = arrive(%2, %14, %3)
%17: f32[2] = arrive(%2, %15, %4)
free(%12)
%18: gradients, %19: f32[2], %20: f32[] = run(%3, %16, %9)   # w * b  program:3
%21: f32[2] = arrive(%3, %19, %4, %17)
%22: f32[] = arrive(%3, %20, %7)
accumulate(%4, %21, %16, %18)   # grad(%4)
free(%21)
accumulate(%7, %22, %16, %18)   # grad(%7)
free(%22)
free(%16)
effects: grad(%4, %7)
guard: mode recorded == False
guard: value targets is None == True
guard: identity %0.__class__ is SumBackward0
guard: identity %0.extra is None
guard: identity %2.__class__ is AddBackward0
guard: identity %2.extra is None
guard: identity %4.__class__ is AccumulateGrad
guard: identity %4.extra is None
guard: value %5.hooks or %5.accumulated_hooks == False
guard: identity %3.__class__ is MulBackward0
guard: identity %3.extra is None
guard: identity %6 is %4
guard: identity %7.__class__ is AccumulateGrad
guard: identity %7.extra is None
guard: value %8.hooks or %8.accumulated_hooks == False
guard: value %0.sequence_nr > %2.sequence_nr > %3.sequence_nr == True
guard: value len({%4, %7}) == 2
"""
