"""Loops of few iterations that take long: when they are compiled, and that nothing else shows."""

from __future__ import annotations

import sys
from itertools import count

import pytest

from gradcli.language.compiler.statements import blocks, short_loops
from gradcli.language.compiler.statements.short_loops import may_pay, pays
from gradcli.session import Session
from tests.command_line import CommandLine
from tests.late.loop import judged, run
from tests.late.tables import TABLES

PROGRAM = """
x = torch.ones(3)
{head}
    x = torch.tanh(x) + {number}
print(x, i)
"""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loop of few iterations is compiled, and none for their number."""
    monkeypatch.setattr(short_loops, "pays", lambda *_: True)
    monkeypatch.setattr(blocks, "_MANY", 1 << 60)


@pytest.mark.parametrize("number", range(0, 64, 8))
def test_compiled_as_interpreted(number: int, always: None) -> None:
    verdict = judged(TABLES["functions"].programs(number, 1)[0])
    assert not verdict.differs, verdict.late.program


@pytest.mark.parametrize(
    ("head", "compiled"),
    [
        ("for i in range(10):", 5),
        ("for i in range(9):", 0),
        ("for i in [*range(12)]:", 7),
        ("for i in (n for n in range(20)):", 0),  # nobody knows how many are left
    ],
)
def test_how_many_are_compiled(head: str, compiled: int, always: None) -> None:
    program = PROGRAM.format(head=head, number="0.5")
    found, interpreted = run(program), run(program, compiles=False)
    assert found.compiled == compiled
    assert found.printed == interpreted.printed


def test_a_loop_that_begins_again_is_hot(always: None) -> None:
    inner = PROGRAM.strip().format(head="for i in range(12):", number="k").replace("\n", "\n    ")
    program = f"def step(k):\n    {inner}\nfor k in [1., 2., 3.]:\n    step(k)\n"
    found, interpreted = run(program), run(program, compiles=False)
    assert found.compiled > 20
    assert found.printed == interpreted.printed


TEN_ROUNDS = """
def f(p):
    return (torch.sin(p) * torch.exp(p) * p.roll(1)).sum()
w = torch.linspace(0., 1., 5).requires_grad_()
for i in range(10):
    {body}
print(w)
"""

INNER = """
w = torch.eye(3, requires_grad=True)
for i in range({rounds}):
    h, total = torch.ones(3), 0.
    for t in range(20):
        {step}
    w.grad = None
print(i, h, total)
"""

OF_A_NETWORK = "h = torch.tanh(w @ h)"
DETACHED = "h = torch.tanh(w @ h).detach()"


@pytest.mark.parametrize(
    ("step", "rounds", "is_compiled"),
    [
        (OF_A_NETWORK, 40, False),  # a graph over all steps is the outer loop's
        (DETACHED, 10, False),  # few rounds are left
        (DETACHED, 40, True),
    ],
)
def test_a_loop_inside_a_loop(
    step: str, rounds: int, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits until it is known that compiling pays for the rounds that are left."""
    monkeypatch.setattr(short_loops, "pays", lambda *_: False)
    program = INNER.format(step=step, rounds=rounds)
    found, interpreted = run(program), run(program, compiles=False)
    assert (found.compiled > 20 * (rounds - 10)) is is_compiled
    assert found.compiled == 0 or is_compiled
    assert found.printed == interpreted.printed


@pytest.mark.parametrize(
    ("length", "seconds", "nodes", "transformed", "expected"),
    [
        (10, 5e-3, 100, True, True),  # a Hessian
        (10, 1e-3, 100, True, False),
        (40, 1e-3, 12, True, True),  # a Jacobian
        (64, 1e-4, 8, False, False),  # a small network: loading takes longer
        (64, 5e-2, 8, False, False),  # large products: the kernels take the time
        (64, 1e-2, 500, False, True),
        (20, 1e-2, 500, False, False),
    ],
)
def test_when_it_pays(
    length: int,
    seconds: float,
    nodes: int,
    transformed: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "gradcli.loops.hot_loop")
    assert pays(length - 2, seconds, nodes, transformed) is expected


@pytest.mark.parametrize(
    ("milliseconds", "body", "compiled", "told"),
    [
        (5, "h = torch.func.hessian(f)(w.detach() * i)", 5, "loop: 5 iterations of 10 compiled"),
        (0.5, "h = torch.func.hessian(f)(w.detach() * i)", 0, "[B12]"),
        (5, "f(w).backward(); w.grad = None", 0, "[B12]"),  # a capture takes longer
        (5, "i * 2", 0, "no loop ran often enough"),
    ],
)
def test_ten_rounds_by_a_clock(
    milliseconds: float,
    body: str,
    compiled: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A loop of ten rounds of so long each, however quick the machine is."""
    ticks = count()
    monkeypatch.setattr(short_loops, "perf_counter", lambda: next(ticks) * milliseconds * 1e-3)
    program = TEN_ROUNDS.format(body=body)
    assert run(program).compiled == compiled
    shown = CommandLine(capsys)("run", "--explain-loops", "-", stdin=program)
    assert told in shown.err


def test_what_is_heard_is_not_timed() -> None:
    session = Session(lambda event: None)
    with session.running():
        assert may_pay(session.interpreter, 20)
        session.state.recorder = object()
        assert not may_pay(session.interpreter, 20)
