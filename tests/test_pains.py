"""The pains of autograd's users (`tests/pains`): one command answers each, and its cure is right.

The answer names the variable, the place and the cure; the cure, applied to the program, makes it
right, and changes nothing where it was right before.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.blocks import MANUAL
from tests.command_line import CommandLine
from tests.pains import KINDS, Pain, changed, pains, table_of
from tests.running import Outcome, run

PAINS = pains()


@pytest.fixture
def gradcli(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(capsys)


def asked(pain: Pain, program: str, gradcli: CommandLine) -> tuple[int, str]:
    """The exit code of a pain's command about a program, and all that it says."""
    Path("pain.py").write_text(program, encoding="utf-8")
    shown = gradcli(*pain.words)
    return shown.code, shown.out + shown.err


def after(program: str, *lines: str) -> Outcome:
    """How a program ends with lines behind it."""
    return run("\n".join([program, *lines]))


def misses(told: str, parts: list[str]) -> list[str]:
    """What an answer should say and does not; line ends of a paragraph count as blanks."""
    flat = " ".join(told.split())
    return [each for each in parts if each.replace("\\n", "\n") not in told and each not in flat]


@pytest.mark.parametrize("pain", PAINS, ids=lambda pain: pain.title)
def test_answer(pain: Pain, gradcli: CommandLine) -> None:
    _, told = asked(pain, pain.program, gradcli)
    assert misses(told, pain.says) == [], told
    assert misses(told, re.findall("`([^`]+)`", pain.answer)) == [], told


@pytest.mark.parametrize("pain", PAINS, ids=lambda pain: pain.title)
def test_cure(pain: Pain, gradcli: CommandLine) -> None:
    asserts = [f"assert {each}" for each in pain.right]
    assert after(pain.program, *asserts).error is not None, "it is right without the cure"
    assert after(pain.cured, *asserts).error is None
    code, told = asked(pain, pain.cured, gradcli)
    assert code == 0, told
    if pain.same:
        shows = f"print({', '.join(pain.same)})"
        before, behind = [
            after(changed(each, pain.elsewhere), shows) for each in (pain.program, pain.cured)
        ]
        assert before.error is None
        assert before.stdout == behind.stdout


def test_titles_differ() -> None:
    assert len({pain.title for pain in PAINS}) == len(PAINS) >= 47


def test_the_page_has_every_pain() -> None:
    """`gradcli help pains` shows the tables that the records make."""
    page = (MANUAL / "pains.md").read_text(encoding="utf-8")
    for kind in KINDS:
        assert table_of(kind) in page
