"""Recorded random programs print what PyTorch printed; and the generator keeps its promises."""

from __future__ import annotations

import ast

import pytest

from tests.differential import KNOWN_MISFITS, aliasing, read_recorded
from tests.differential.comparing import Outcome, category, outcome_here
from tests.differential.generator import FAMILIES, one_of, program
from tests.differential.shrinking import shrunk
from tests.exactness import difference, work_of
from tests.rows import each_row

PROGRAMS = read_recorded()

MISFITS = {int(line) for line in KNOWN_MISFITS.read_text(encoding="utf-8").split()}


@each_row("number", range(len(PROGRAMS)), str, every=3)
def test_recorded(number: int) -> None:
    text, there = PROGRAMS[number]
    here = outcome_here(text)
    found = difference(here.text(), there.text(), lambda: work_of(text))
    if number not in MISFITS:
        assert found is None, text
    elif found is None:
        pytest.fail(f"matches now: take {number} out of {KNOWN_MISFITS.name}")
    else:
        pytest.xfail("a known misfit")


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 500
    assert max(MISFITS, default=0) < len(PROGRAMS)


def test_programs_follow_from_seed_and_number() -> None:
    assert program(3, 5) == program(3, 5)
    assert aliasing.program(3, 5) == aliasing.program(3, 5)
    assert len({program(3, number) for number in range(20)}) == 20


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_python(family: str) -> None:
    for row in FAMILIES[family]:
        text = one_of(row, 2, 0)
        ast.parse(text)
        assert "$" not in text, row.text


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        (Outcome("1.5\n", None), Outcome("1.5\n", None), "same"),
        (
            Outcome("tensor([1.5000, 2.])", None),
            Outcome("tensor([1.5001, 2.])", None),
            "rounding",
        ),
        (
            Outcome("tensor([1.0000e+00])", None),
            Outcome("tensor([9.9999e-01])", None),
            "rounding",
        ),
        (Outcome("1.5002", None), Outcome("1.5000", None), "printed"),
        (Outcome("3", None), Outcome("4", None), "printed"),
        (Outcome("<AddBackward0>", None), Outcome("<AddBackward1>", None), "printed"),
        (Outcome("", "ValueError at line 3"), Outcome("", "ValueError at line 4"), "error"),
        (Outcome("", "gradcli broke: KeyError: 1"), Outcome("", None), "broken"),
    ],
)
def test_category(here: Outcome, there: Outcome, found: str) -> None:
    assert category("print(torch.exp(torch.ones(2)).sum())", here, there) == found


def test_shrunk_keeps_what_the_difference_needs() -> None:
    text = "import torch\na = 1\nb = a + 1\nif b:\n    c = 2\nd = b\nprint(b)\n"

    def prints_two(shorter: str) -> bool:
        return outcome_here(shorter).stdout == "2\n"

    assert shrunk(text, prints_two) == "import torch\na = 1\nb = a + 1\nprint(b)\n"
