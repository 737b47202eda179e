"""A compiled loop is the loop, whatever happens in it late: samples of the tables of `tests/late`,
which `python -m tests.late` runs whole.
"""

from __future__ import annotations

import sys

import pytest

from gradcli.loops import hot_loop
from tests.late import __main__ as command
from tests.late.issue import HEAD, PROGRAMS
from tests.late.loop import Late, Verdict, judged, run, sample
from tests.late.tables import TABLES

COUNTS = {"ops": 8, "settings": 8, "failing": 10, "functions": 8, "reading": 8, "random": 8}
"""How many programs of each table run here; with `-m sweep`, eight times as many."""


def shown(verdicts: list[Verdict]) -> str:
    """The first of the programs that differ, and how."""
    return "\n".join(
        f"{each.late.name}\n{each.late.program}{chr(10).join(each.differs)}"
        for each in verdicts[:3]
    )


@pytest.mark.parametrize("times", [1, pytest.param(8, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", TABLES)
def test_compiled_as_interpreted(name: str, times: int) -> None:
    verdicts = [judged(late) for late in TABLES[name].programs(count=times * COUNTS[name])]
    differing = [each for each in verdicts if each.differs]
    if differing:
        pytest.fail(f"{len(differing)} of {len(verdicts)} differ\n{shown(differing)}")
    assert sum(each.compiled > 0 for each in verdicts) >= TABLES[name].floor * len(verdicts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name: str) -> None:
    program, expected = PROGRAMS[name]
    found = [run(HEAD + program, compiles=compiles) for compiles in (True, False)]
    assert [each.printed for each in found] == [expected, expected]


def test_loops_are_compiled_before_anything_happens() -> None:
    compiled = [run(HEAD + program).compiled for program, _ in PROGRAMS.values()]
    assert sum(count > 50 for count in compiled) >= 5


# --- the tables themselves ------------------------------------------------------------------------


def test_random_programs_are_the_same_every_time() -> None:
    one, other = (TABLES["random"].programs(3, 20) for _ in range(2))
    assert one == other
    assert len({late.program for late in one}) == 20


CHANGES = {
    "x = 1": "x = 2",
    "x = 1.0": "x = 1",
    "print(1)": "print(2)",
    "x = torch.ones(2)": "x = torch.ones(2, dtype=torch.float64)",
    "x = torch.ones(2); x.add_(0)": "x = torch.ones(2)",
    "x = [torch.ones(2)] * 2": "x = [torch.ones(2), torch.ones(2)]",
    "x = torch.ones(2); y = x[:1]": "x = torch.ones(2); y = x[:1].clone()",
    "x = ones(2, requires_grad=True); x.sum().backward()": "x = ones(2, requires_grad=True)",
    "x = nn.Linear(1, 1).eval()": "x = nn.Linear(1, 1)",
    "torch.rand(1)": "torch.rand(2)",
    "torch.set_grad_enabled(False)": "torch.set_grad_enabled(True)",
    "x = 1 / 0": "x = 2 / 0",
    "x = {'a': 1, 'b': 2}": "x = {'b': 2, 'a': 1}",
    "x = []; y = [x, x]": "x = []; y = [x, []]",
    "x = float('nan')": "x = 0.0",
    "x = 0.0": "x = -0.0",
}  # fmt: skip
"""Programs that leave, print or raise something else."""


@pytest.mark.parametrize("program", CHANGES)
def test_what_differs_is_seen(program: str) -> None:
    head = "from torch import nn\ntorch.manual_seed(0)\n"
    one, same, other = run(head + program), run(head + program), run(head + CHANGES[program])
    assert not list(one.differences(same))
    assert list(one.differences(other))


def test_a_sample_is_spread() -> None:
    assert sample(range(100), 4) == [0, 25, 50, 75]
    assert sample(range(100), 4, first=60) == [60, 85, 10, 35]
    assert sample(range(3), 4) == [0, 1, 2]


def test_the_command_tells_of_what_differs() -> None:
    counted = command.Counted()
    counted.add(Verdict(Late("one", "x = 1\n"), 90, ["x: int:1, interpreted int:2"]))
    counted.add(Verdict(Late("two", ""), 0, []))
    assert not command.report(TABLES["ops"], counted, 5, floor=True)
    assert (counted.programs, counted.compiled, len(counted.differing)) == (2, 1, 1)


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tests.late", "--table", "random", "--count", "2", "--seed", "1"]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(hot_loop, "FLAT_AFTER", hot_loop.FLAT_AFTER)  # the command sets it
    assert command.main() in (0, 1)
    assert capsys.readouterr().out.startswith("random: 2 loops, ")
