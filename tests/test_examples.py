"""The programs of `examples/` run from there, and print what is recorded for them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.running import hide, invoke

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.grad"))

OUTPUTS = Path(__file__).parent / "programs" / "examples"


def _command(path: Path) -> list[str]:
    """The words after `gradcli`; an example that needs values says in a comment how it is run."""
    said = re.search(r"^# +gradcli (run .*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return shlex.split(said[1]) if said else ["run", path.name]


def test_there_are_enough() -> None:
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    hide("scipy", monkeypatch)
    finished = invoke(*_command(path))
    assert (finished.code, finished.stderr) == (0, "")
    assert finished.stdout == (OUTPUTS / f"{path.stem}.out").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["chain.svg", "chain.html"])
def test_the_picture_of_the_front_page_is_made_anew(name: str, tmp_path: Path) -> None:
    made = tmp_path / name
    words = ["e = (a + b) * d", "a=2", "b=3", "d=4", "-q", "-o", str(made)]
    assert invoke(*words).code == 0
    assert made.read_text("utf-8") == (EXAMPLES[0].parent / name).read_text("utf-8")
