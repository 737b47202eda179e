"""`out=` against PyTorch, for every function that has it: `tests/writes/out.txt` has a row each."""

from __future__ import annotations

from gradcli.ops.binding.out import WITH_OUT
from tests.rows import each_row
from tests.running import run
from tests.writes.out import program, rows

ROWS = rows()


@each_row(("call", "facts"), ROWS, lambda row: row[0], every=2)
def test_out(call: str, facts: str) -> None:
    outcome = run(program(call))
    assert outcome.error is None
    assert " ".join(outcome.stdout.split()) == facts


def test_every_function_with_out_has_a_row() -> None:
    named = {call.partition("(")[0].rpartition(".")[2] for call, _ in ROWS}
    assert sorted(WITH_OUT - named) == []
