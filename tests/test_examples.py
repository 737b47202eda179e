"""The programs of `examples/` run from there, and print what is recorded for them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.running import invoke

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
    finished = invoke(*_command(path))
    assert (finished.code, finished.stderr) == (0, "")
    assert finished.stdout == (OUTPUTS / f"{path.stem}.out").read_text(encoding="utf-8")
