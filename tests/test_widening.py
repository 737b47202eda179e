"""`explain --ties`, `--paths` and `--saved`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.command_line import CommandLine


def _explained(gradcli: CommandLine, flag: str, program: str, *words: str) -> Any:
    found = gradcli("explain", program, *words, *flag.split(), "--json")
    assert found.code == 0, found.err
    return json.loads(found.out)


# --- ties ---------------------------------------------------------------------------------------

TIES = [
    # program, x, and for each tie: element, what it gets, what it would get
    ("y = abs(x).sum()", "[0,1,-2]", [([0], 0, [-1, 1])]),
    ("y = (relu(x) * 3).sum()", "[0,1,0]", [([0], 0, [3]), ([2], 0, [3])]),
    ("y = x.clamp(0, 1).sum()", "[0,0.5,1,2]", [([0], 1, [0]), ([2], 1, [0])]),
    ("y = F.hardtanh(x).sum()", "[-1,0,1]", [([0], 0, [1]), ([2], 0, [1])]),
    ("y = F.leaky_relu(x, 0.5).sum()", "[0,1]", [([0], 0.5, [1])]),
    ("y = x.max()", "[2,1,2]", [([0], 0.5, [0, 1]), ([2], 0.5, [0, 1])]),
    ("y = x.amax(0)", "[2,1,2]", [([0], 0.5, [0, 1]), ([2], 0.5, [0, 1])]),
    ("y = x.max(0).values", "[2,1,2]", [([0], 1, [0, 0.5]), ([2], 0, [0.5, 1])]),
    ("y = maximum(x, tensor([1., 5.])).sum()", "[1,2]", [([0], 0.5, [0, 1])]),
    ("y = (x.sort()[0] * tensor([1., 2., 3.])).sum()", "[4,4,0]", [([0], 2, [3]), ([1], 3, [2])]),
    ("y = abs(x)", "0", [([], 0, [-1, 1])]),
    ("y = abs(x).sum()", "[1,2]", []),
    ("y = exp(x).sum()", "[0,0]", []),
]


@pytest.mark.parametrize(("program", "x", "expected"), TIES)
def test_ties(gradcli: CommandLine, program: str, x: str, expected: list[Any]) -> None:
    found = _explained(gradcli, "--ties", program, f"x={x}")["ties"]
    assert [(tie["index"], tie["used"], tie["others"]) for tie in found] == expected


def test_ties_in_words(gradcli: CommandLine) -> None:
    found = gradcli("explain", "y = abs(x).sum()", "x=[0,1]", "--ties")
    assert found.out.endswith(
        "abs(x)  AbsBackward0: the slope of abs at 0 is 0\n"
        "    x[0] = 0 gets 0; another choice gives -1 or 1\n"
    )
    found = gradcli("explain", "y = exp(x)", "x=0", "--ties")
    assert found.out.endswith("no element is on a kink or a tie\n")


# --- paths --------------------------------------------------------------------------------------

PATHS = [
    # program, words, and the share of each path
    ("y = x * x + x", ["x=3"], [3, 3, 1]),
    ("h = x * 2\ny = h * h", ["x=3"], [12, 12]),
    ("y = exp(a) + x.detach()", ["a=0", "x=1"], []),
    ("a, b = x\ny = a * b", ["x=[2,5]"], [[5, 0], [0, 2]]),
    ("y = (x + b).sum()", ["x=2", "b=[1,2]"], [2]),
    ("y = x", ["x=2"], []),
]


@pytest.mark.parametrize(("program", "words", "shares"), PATHS)
def test_paths(gradcli: CommandLine, program: str, words: list[str], shares: list[Any]) -> None:
    found = _explained(gradcli, "--paths x", program, *words)["paths"]
    assert [path["share"] for path in found["paths"]] == shares


def test_shares_add_up_and_cancellation_is_said(gradcli: CommandLine) -> None:
    found = gradcli("explain", "y = x * 10000 - x * 9999.5", "x=3", "--paths", "x")
    assert "2 paths lead to x:" in found.out
    assert "sum   0.5000, which is x.grad" in found.out
    assert "cancellation at the value: 10000 + -9999.5 leaves 0.5" in found.out


def test_paths_want_a_leaf_and_few_of_them(gradcli: CommandLine) -> None:
    assert gradcli("explain", "h = x * 2\ny = h * h", "x=3", "--paths", "h").code == 2
    many = "for i in range(9):\n    x = x + x"
    found = gradcli("explain", many, "x=3", "--paths", "x")
    assert (found.code, "512 paths" in found.err) == (5, True)


# --- saved values -------------------------------------------------------------------------------


def test_saved(gradcli: CommandLine) -> None:
    document = _explained(gradcli, "--saved", "h = x * w\ny = exp(h).sum()", "x=[1,2]", "w=[3,4]")
    saved = document["saved"]
    rows = [(each["name"], each["bytes"], each["held_by"]) for each in saved["values"]]
    assert rows == [("_saved_result", 8, None), ("_saved_self", 8, "x"), ("_saved_other", 8, "w")]
    assert [each["freed_after_step"] for each in saved["values"]] == [2, 3, 3]
    assert saved["peak_bytes"] == 8


def test_saved_memory_counts_once(gradcli: CommandLine) -> None:
    """tanh's result is what the product saves too."""
    document = _explained(gradcli, "--saved", "y = (tanh(x) * tanh(x).detach()).sum()", "x=[1,2]")
    assert document["saved"]["peak_bytes"] == 16
    text = gradcli("explain", "y = (exp(x) ** 2).sum()", "x=[1,2]", "--saved").out
    assert text.rstrip().endswith("peak: 8 B that only the graph keeps, when backward begins")
    assert "saved above already" in text
