"""Every block of README is run and compared; `tests/readme.py` says what the blocks mean."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exactness import UNMEASURED, difference, work_of
from tests.readme import LANGUAGES, README, Block, blocks, commands
from tests.running import run

BLOCKS = blocks()

ROOT = README.parent

MARK = "@@@ end of command @@@"


def _of(language: str) -> pytest.MarkDecorator:
    chosen = [block for block in BLOCKS if block.language == language]
    return pytest.mark.parametrize("block", chosen, ids=repr)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with the examples in it, and an environment in which `gradcli` is a command."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", folder / "examples")
    programs = folder / "bin"
    programs.mkdir()
    for name, words in {"gradcli": "-m gradcli", "python3": ""}.items():
        command = programs / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        command.chmod(0o755)
    environment = {
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TERM": "dumb",
    }
    return folder, environment


@_of("console")
def test_console(block: Block, shell: tuple[Path, dict[str, str]]) -> None:
    folder, environment = shell
    expected = commands(block)
    # The mark keeps `$?`, so that the next command can show it.
    script = f"exec 2>&1\nmark() {{ code=$?; printf '%s\\n' '{MARK}'; return $code; }}\n"
    script += "".join(f"{command}mark\n" for command, _ in expected)
    finished = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    printed = finished.stdout.split(f"{MARK}\n")
    assert len(printed) == len(expected) + 1, finished.stdout
    for (command, output), found in zip(expected, printed, strict=False):
        assert difference(found.rstrip(), output.rstrip(), lambda: UNMEASURED) is None, command


@_of("gradcli")
def test_program(block: Block) -> None:
    outcome = run(block.text)
    assert outcome.error is None
    if block.output is not None:
        assert difference(outcome.stdout, block.output, lambda: work_of(block.text)) is None


@_of("python")
def test_python(block: Block) -> None:
    compile(block.text, f"README line {block.line}", "exec")


def test_blocks_are_of_known_languages() -> None:
    assert [block for block in BLOCKS if block.language not in LANGUAGES] == []


def test_set_up_commands() -> None:
    """The first installs and prints the toy example, the second installs and runs the tests."""
    first, second = (block.text for block in BLOCKS if block.language == "sh")
    assert "gradcli 'e = (a + b) * d' a=2 b=3 d=4" in first
    assert "pytest" in second
