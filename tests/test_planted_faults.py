"""Each guard, check and undo of compiled loops is needed: without it, a program differs.

A row takes one of them away, and names a program that shows it: compiled as it stands, it does what
the interpreter does. What the comparison before compiled code serves refuses has no row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli.loops import compiled, finishing, guards, hot_loop, symbols
from gradcli.loops.capture import Capture
from gradcli.loops.walk import reading
from gradcli.trace import passes
from tests.late.loop import run

HEAD = """\
import torch
import torch.nn.functional as F
torch.manual_seed(0)
w = torch.tensor([1.5, -2.], requires_grad=True)
x = torch.tensor([1., 3.])
t, n, p = torch.zeros(2), 0, 0.1
"""


def nothing(*given: Any, **named: Any) -> None:
    """In place of what is taken away."""


def always(*given: Any) -> bool:
    return True


def never(*given: Any) -> bool:
    return False


def no_kinds(*given: Any) -> list[Any]:
    return []


def in_order(trace: Any) -> Any:
    return trace


def run_only(self: compiled.CompiledIteration) -> Any:
    return self.run()


Fault = tuple[Any, str, Callable[..., Any], str]

_DIVIDES = """
d = torch.tensor([1, 2])
left = torch.tensor([5, 100])
for i in range(120):
    left -= torch.tensor([0, 1])
    q = d // left
print(q)
"""

FAULTS: dict[str, Fault] = {
    "a number that reaches what does not record it": (
        reading.Reader,
        "_expect_value",
        nothing,
        """
for i in range(120):
    if i == 100: n = 1
    ((w * x).cumsum(0) * 2).roll(n).dot(x).backward()
print(w.grad)
""",
    ),
    "a number that no instruction takes": (
        Capture,
        "expect_untaken",
        nothing,
        """
for i in range(120):
    if i == 110: n = 1
    t += 1
    t //= n + 1
print(t)
""",
    ),
    "the type of a number": (
        symbols.IterationBuilder,
        "_check_type",
        nothing,
        """
for i in range(120):
    k = max(i - 60, 0.5)
    t = t + x * (1 if isinstance(k, int) else 2)
print(t)
""",
    ),
    "which way a test goes": (
        Capture,
        "_check",
        nothing,
        """
for i in range(120):
    t = t + x * (1 if i < 100 else 2)
print(t)
""",
    ),
    "the kind of what is called again": (
        symbols.OnTensors,
        "_kinds",
        no_kinds,
        """
parts = [x] * 100 + [torch.ones(1)] + [x] * 19
for i in range(120):
    q = parts[i]
    n += q.numel()
print(n)
""",
    ),
    "how many values an op finds": (
        symbols,
        "_kinds_in",
        no_kinds,
        """
values = [x] * 100 + [x * 0] * 20
for v in values:
    n += v.masked_select(v > 0).numel()
    t = t + v
print(n, t)
""",
    ),
    "the kind of an input": (
        guards.Input,
        "fits",
        always,
        """
for each in [x] * 100 + [torch.ones(1)] * 20:
    t = t + each
    n += each.numel()
print(t, n)
""",
    ),
    "one tensor in two places": (
        reading.Reader,
        "_give_again",
        nothing,
        """
for each in [x] * 100 + [x * 2] * 20:
    t = t + x
    t = t - each * 0.5
print(t)
""",
    ),
    "what stays as it is": (
        guards.Guard,
        "holds",
        always,
        """
scale = {"by": 1.}
def values():
    for i in range(120):
        if i == 100 and turn: scale["by"] = 2.
        yield i
for turn in range(2):
    for i in values():
        t = t + x * scale["by"]
print(t)
""",
    ),
    "code of the program between two iterations": (
        hot_loop.HotLoop,
        "_check",
        nothing,
        """
rate = 1.
def going():
    global rate
    if n == 100: rate = 2.
    return n < 120
while going():
    t = t + x * rate
    n += 1
print(t)
""",
    ),
    "an error of an op that nothing reads": (
        passes,
        "may_raise",
        never,
        """
d = torch.tensor([1, 2])
for i in range(120):
    q = d // torch.tensor([5, 100 - i])
print(q)
""",
    ),
    "errors ahead of effects": (
        passes,
        "raising_first",
        in_order,
        """
def step(i):
    (w * 1).sum().backward()
    return torch.randint(0, 101 - i, (2,))
for i in range(120):
    step(i)
""",
    ),
    "effects that are undone": (
        compiled.Undo,
        "run",
        nothing,
        _DIVIDES,
    ),
    "an effect behind which something may fail": (
        finishing,
        "raising_behind_effects",
        nothing,
        _DIVIDES,
    ),
    "random numbers that are drawn again": (
        compiled.CompiledIteration,
        "execute",
        run_only,
        """
for i in range(120):
    q = torch.rand(2)
    if q[0] > 0.9: n += 1
    t = t + q
print(t, n, torch.rand(1))
""",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, instead, program = FAULTS[name]
    interpreted = run(HEAD + program, compiles=False)
    right = run(HEAD + program)
    assert right.compiled > 20
    assert not list(right.differences(interpreted))
    if instead is in_order:  # and nobody looks whether it was done
        rest = [each for each in passes.PASSES if each is not passes.raising_first]
        monkeypatch.setattr(passes, "PASSES", tuple(rest))
        monkeypatch.setattr(finishing, "raising_behind_effects", nothing)
    monkeypatch.setattr(owner, attribute, instead)
    try:
        wrong = run(HEAD + program)
    except Exception:
        return  # a fault that breaks the compiler itself
    assert list(wrong.differences(interpreted)), "nothing shows the fault"
