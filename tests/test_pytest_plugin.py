"""The plugin of pytest, in runs of pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.machine import PATIENCE

FILES = {
    "right.grad": "x = tensor(3., requires_grad=True)\n(x * x).backward()\nprint(x.grad)\n",
    "right.out": "tensor(6.)\n",
    "rounded.grad": "print(f'{torch.tensor(2.).sqrt().item():.6f} of 3')\n",
    "rounded.out": "1.414215 of 3\n",
    "wrong.grad": "print('loss', 0.5)\nprint('step', 7)\n",
    "wrong.out": "loss 0.5\nstep 8\n",
    "longer.grad": "print(1)\nprint(2)\n",
    "longer.out": "1\n",
    "failing.grad": "print(0)\n1 / 0\n",
    "failing.out": "0\n",
    "failing.err": "error[E206]: ZeroDivisionError: division by zero\n"
    " --> failing.grad:2:1\n  |\n2 | 1 / 0\n  | ^^^^^\n",
    "crashed.grad": "print(undefined)\n",
    "crashed.out": "",
    "survived.grad": "print(1)\n",
    "survived.err": "error\n",
    "given.grad": "print((a * a).item())\n",
    "given.args": "a=4 -q\n",
    "given.out": "16.0\n",
    "unrecorded.grad": "print('new')\n",
    "plain.txt": "no program\n",
}

PASS = {"right", "rounded", "failing", "given"}

FAIL = {
    "wrong": "line 2 of standard output\n  expected  step 8\n  found     step 7",
    "longer": "line 2 of standard output\n  expected  \n  found     2",
    "crashed": "the program ended with exit code 3\nerror[E101]",
    "survived": "the program was to fail, and did not",
    "unrecorded": "unrecorded.out is missing: --gradcli-record writes",
}

CHECKS = """
import numpy as np
import pytest

x = np.array([0.5, 1.0])
PROGRAM = "y = (tanh(x) ** 2).sum()"

def test_right(check_gradients):
    check_gradients(PROGRAM, {"x": 2 * np.tanh(x) * (1 - np.tanh(x) ** 2)}, x=x)

def test_right_as_text(check_gradients):
    check_gradients(PROGRAM, {"x": "2 * tanh(x) * (1 - tanh(x) ** 2)"}, x=x)

def test_differences(check_gradients):
    check_gradients(PROGRAM, x=x)

def test_wrong(check_gradients):
    check_gradients(PROGRAM, {"x": 2 * np.tanh(x)}, x=x)

def test_wrong_as_text(check_gradients):
    check_gradients(PROGRAM, {"x": "2 * tanh(x)"}, x=x)

def test_broken(check_gradients):
    check_gradients("y = x @", {"x": x}, x=x)

def test_no_input(check_gradients):
    check_gradients(PROGRAM, {"z": x}, x=x)

def test_no_mapping(check_gradients):
    check_gradients(PROGRAM, "2 * x", x=x)

def test_no_name(check_gradients):
    check_gradients(PROGRAM, x=x, sandbx=x)
"""


def _pytest(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code and the output of a run of pytest in a folder."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    plugin = ["-p", "gradcli.cli.pytest_plugin", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", *plugin, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return ended.returncode, ended.stdout


def _outcomes(out: str) -> dict[str, str]:
    """Each test's outcome by its last name."""
    return dict(
        reversed(each)
        for each in re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\w+)", out, re.MULTILINE)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_programs_are_tests_where_the_settings_say_so(folder: Path) -> None:
    assert _pytest(folder)[0] == 5  # nothing was collected
    (folder / "pytest.ini").write_text("[pytest]\ngradcli_files = *.grad\n")
    code, out = _pytest(folder)
    expected = {**dict.fromkeys(PASS, "PASSED"), **dict.fromkeys(FAIL, "FAILED")}
    assert (code, _outcomes(out)) == (1, expected)
    for name, part in FAIL.items():
        assert f"{name}.grad: {part}" in out or part in out, out
    assert "Traceback" not in out
    assert "pytest_plugin.py" not in out


def test_a_program_that_is_named_is_a_test_and_outputs_are_recorded(folder: Path) -> None:
    names = [f"{name}.grad" for name in FAIL]
    code, out = _pytest(folder, *names, "--gradcli-record")
    assert (code, len(_outcomes(out))) == (0, len(FAIL)), out
    assert (folder / "wrong.out").read_text() == "loss 0.5\nstep 7\n"
    assert "E101" in (folder / "crashed.err").read_text()
    assert not (folder / "survived.err").exists()
    assert _pytest(folder, *names)[0] == 0


def test_gradients_made_by_hand(tmp_path: Path) -> None:
    (tmp_path / "test_gradients.py").write_text(CHECKS)
    code, out = _pytest(tmp_path)
    passed = {"test_right", "test_right_as_text", "test_differences"}
    failed = {"test_wrong", "test_wrong_as_text", "test_broken", "test_no_input"}
    failed |= {"test_no_mapping", "test_no_name"}
    expected = {**dict.fromkeys(passed, "PASSED"), **dict.fromkeys(failed, "FAILED")}
    assert (code, _outcomes(out)) == (1, expected), out
    assert "x.grad  wrong" in out
    assert "a factor of the chain rule is missing" in out
    assert "error[E001]" in out
    assert "Failed: against: the program has no input `z`" in out
    assert "Failed: the program does not use `sandbx`; did you mean `sandbox`?" in out
    assert "questions.py" not in out


def test_the_plugin_costs_a_run_of_pytest_nothing() -> None:
    program = "import sys, pytest\nbefore = set(sys.modules)\nimport gradcli.cli.pytest_plugin\n"
    program += "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert set(ended.stdout.split()) <= {"gradcli"}
