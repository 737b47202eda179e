"""A short run of the fuzz tests, and that they find what they are there to find."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.fuzz import running, worker
from tests.fuzz.commands import COMMANDS
from tests.fuzz.inputs import KINDS, Input, input_of


@pytest.mark.parametrize("count", [100, pytest.param(600, marks=pytest.mark.sweep)])
def test_a_short_run(count: int) -> None:
    outcome = running.fuzz(seed=1, first=0, count=count, seconds=None)
    assert [str(failure) for failure in outcome.failures] == []
    assert sum(outcome.counts.values()) == count


def test_inputs_follow_from_seed_and_number() -> None:
    assert str(input_of(3, 17)) == str(input_of(3, 17))
    assert len({str(input_of(3, number)) for number in range(50)}) > 45
    kinds = {input_of(1, number).kind for number in range(2000)}
    assert len(kinds) == len(KINDS) - 1 + len(COMMANDS)
    assert kinds > set(COMMANDS)


@pytest.mark.parametrize(
    ("failing", "found"),
    [
        (KeyError("broken"), "internal error"),
        (SystemExit(3), "exception"),
    ],
)
def test_bad_answers_are_found(
    failing: BaseException, found: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*args: object) -> None:
        raise failing

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gradcli.running.run.Run.execute", fail)
    wrong = worker.answer(Input("one-shot", ["e = a", "a=2"])).wrong
    assert wrong is not None
    assert wrong.startswith(found)


@pytest.mark.parametrize(
    ("last_words", "found"),
    [
        ("import time; time.sleep(60)", "hang"),
        (f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})", "the process ended with -11"),
    ],
)
def test_workers_that_hang_or_die_are_found(
    last_words: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LONGEST", 0.5)
    monkeypatch.setattr(running, "STARTING", 0)
    monkeypatch.setattr(
        running, "WORKER", ["-c", f"print('[0, \"grammar\"]', flush=True); {last_words}"]
    )
    outcome = running.fuzz(seed=1, first=0, count=1, seconds=None)
    assert [failure.what.startswith(found) for failure in outcome.failures] == [True]
