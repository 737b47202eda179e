"""What an error says in a program is PyTorch's text, or CPython's, as it was recorded."""

from __future__ import annotations

import sys

import pytest

from tests.differential.comparing import outcome_here
from tests.error_texts import KNOWN_MISFITS, read_programs, read_recorded, whole
from tests.rows import each_row

PROGRAMS = read_programs()
RECORDED = read_recorded()
MISFITS = read_programs(KNOWN_MISFITS)

RECORDED_UNDER = (3, 11)
"""The Python whose own texts were recorded: another words some of them in another way."""


@each_row("program", PROGRAMS, every=2)
def test_text(program: str) -> None:
    if program not in RECORDED:
        pytest.fail("a new program: run `python -m tests.error_texts --oracle PYTHON --record`")
    here, there = outcome_here(whole(program)).text(), RECORDED[program]
    recorded_here = sys.version_info[:2] == RECORDED_UNDER
    if program in MISFITS:
        assert here != there or not recorded_here, f"matches now: see {KNOWN_MISFITS.name}"
        return
    if not recorded_here:
        here, there = here.partition("\n")[0], there.partition("\n")[0]
    assert here == there


def test_tables_agree() -> None:
    assert set(MISFITS) < set(PROGRAMS) == set(RECORDED)
    assert len(set(PROGRAMS)) == len(PROGRAMS)
    assert all(RECORDED.values())
