"""Loops of few iterations that take long: when they are compiled, and that nothing else shows."""

from __future__ import annotations

import sys

import pytest

from gradcli.language.compiler.statements import blocks, short_loops
from gradcli.language.compiler.statements.short_loops import may_pay, pays
from gradcli.session import Session
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


def test_what_is_heard_is_not_timed() -> None:
    session = Session(lambda event: None)
    with session.running():
        assert may_pay(session.interpreter, 20)
        session.state.recorder = object()
        assert not may_pay(session.interpreter, 20)
