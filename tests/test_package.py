"""The package's metadata, and the command from outside."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import gradcli
from tests.machine import PATIENCE

ROOT = Path(__file__).parent.parent

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _run(*arguments: str, stdin: str = "", folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradcli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=PATIENCE,
    )


def test_every_room_is_packed() -> None:
    """The build finds folders by their `__init__`: one without is missing from the wheel only."""
    rooms = {file.parent for file in (ROOT / "gradcli").rglob("*.py")}
    assert [room for room in rooms if not (room / "__init__.py").exists()] == []


def test_a_start_in_a_checkout_imports_no_finder_of_modules() -> None:
    """An editable installation leads to its folder by a path, which costs a start nothing."""
    leading = [
        file
        for each in metadata.distributions(name="gradcli")
        for file in each.files or ()
        if file.name.startswith("__editable__") or file.suffix == ".pth"
    ]
    if not leading:
        pytest.skip("gradcli is not installed from a checkout")
    assert [Path(Path(file.locate()).read_text().strip()) for file in leading] == [ROOT]


def test_what_a_marker_leaves_out_is_run_by_the_checks() -> None:
    options = PROJECT["tool"]["pytest"]["ini_options"]
    marked = " or ".join(line.split(":")[0] for line in options["markers"])
    assert f"not ({marked})" in options["addopts"]
    checks = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    asked = re.findall(r'marked="([a-z $]+)"|tests -m (\w+)', checks)
    found = {x for each in asked for x in "".join(each).split(" or ")}
    assert set(marked.split(" or ")) == found - {"$marked"}


def test_the_licence_is_named() -> None:
    (name,) = PROJECT["project"]["license-files"]
    assert (ROOT / name).read_text(encoding="utf-8").startswith("MIT License\n")


@pytest.mark.skipif(shutil.which("git") is None, reason="git tells what belongs to the tree")
def test_top_level_holds_what_it_should() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    built = {"build", "gradcli.egg-info"}  # in a copy without a repository, which tells nothing
    names = [line.split("/")[0] for line in listed.splitlines()] or os.listdir(ROOT)
    found = {name for name in names if name[0] != "."} - built
    allowed = {"README.md", "examples", "gradcli", "grammar", "pyproject.toml", "tests"}
    assert found <= allowed


def test_version() -> None:
    assert _run("--version").stdout.split()[-1] == gradcli.__version__


def test_modules_of_the_current_folder_are_not_gradclis(tmp_path: Path) -> None:
    for name in ("numpy", "random", "click"):
        (tmp_path / f"{name}.py").write_text(f"print('run: {name}')")
    finished = _run("print(ones(2) + 1)", folder=tmp_path)
    assert (finished.stderr, finished.stdout) == ("", "tensor([2., 2.])\n")


def test_piped_program() -> None:
    program = "a = tensor(2., requires_grad=True)\n(a*a).backward()\nprint(a.grad)\n"
    finished = _run(stdin=program)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "tensor(4.)\n", "")


def test_stream_prints_as_it_reads() -> None:
    """The first statement's output arrives before the last statement is sent."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gradcli", "run", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write("print('first')\nx = 1\n")
        process.stdin.flush()
        assert process.stdout.readline() == "first\n"
        for number in range(2000):
            process.stdin.write(f"x = x + {number}\n")
        process.stdin.write("print(x)\n")
        process.stdin.close()
        assert process.stdout.read() == f"{1 + 2000 * 1999 // 2}\n"
        assert process.wait(timeout=PATIENCE) == 0


def test_closed_pipe_ends_quietly() -> None:
    finished = subprocess.run(
        f"'{sys.executable}' -m gradcli -e 'for i in range(100000): print(i)' | head -n 1",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (finished.stdout, finished.stderr) == ("0\n", "")
