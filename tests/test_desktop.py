"""`.show`: a picture opens at a terminal on a desktop, and nowhere else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from gradcli.limits import Limits
from gradcli.repl.dispatch import HANDLERS
from gradcli.repl.repl import run_entry
from gradcli.running import picture
from gradcli.running.arguments.options import Options
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import Run
from gradcli.show.style import Style
from tests.running import invoke

ENTRY = "x = tensor(2., requires_grad=True); y = x * x"


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desktop whose opener notes in a file what it was given."""
    noted = tmp_path / "noted"
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" >> {noted}\n')
    opener.chmod(0o755)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return noted


def _shown(width: int | None, text: str, files: bool = True) -> None:
    terminal = Terminal("never")
    terminal.style = Style(False, width)
    run = Run(terminal, Options(limits=Limits(files=files)), "graph", HANDLERS)
    run.shows_values = True
    run_entry(run, ENTRY, "entry 1")
    run_entry(run, text, "entry 2")


def test_a_session_on_a_desktop_opens_the_page(
    desktop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _shown(80, ".show")
    (page,) = desktop.read_text().splitlines()
    assert "<!doctype html>" in Path(page).read_text("utf-8")
    assert Path(page).stat().st_mode & 0o77 == 0
    assert f"note: {page} opens in the browser" in capsys.readouterr().err


CLOSED = [
    # (width of the terminal, whether files are allowed, the environment without this)
    (None, True, ""),  # a pipe
    (80, False, ""),  # a sandbox
    (80, True, "DISPLAY"),
    (80, True, "PATH"),  # no opener
]


@pytest.mark.parametrize(("width", "files", "missing"), CLOSED)
def test_nothing_opens_elsewhere(
    width: int | None,
    files: bool,
    missing: str,
    desktop: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if missing:
        monkeypatch.setenv(missing, "")
    file = desktop.parent / "y.svg"
    _shown(width, f".show y '{file}'", files)
    assert not desktop.exists()
    assert file.exists() == files
    assert (f"note: {file} is written" if files else "E606") in capsys.readouterr().err


def test_a_script_opens_nothing(desktop: Path) -> None:
    found = invoke("-e", ENTRY, "-e", ".show")
    assert found.code == 0
    assert "is written" in found.stderr
    assert not desktop.exists()
    assert len([*desktop.parent.glob("*.html")]) == 1


def test_what_cannot_be_drawn_leaves_no_file(
    desktop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture, "MOST_BOXES", 1)
    found = invoke("-e", ENTRY, "-e", ".show")
    assert found.code == 5
    assert not [*desktop.parent.glob("*.html")]
