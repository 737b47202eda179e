"""Recordings of programs in the shapes that training takes: models of other libraries, their
trainers, checkpointing, mixed precision, custom functions, several optimizers.

Those that need more than PyTorch run where the Python of GRADCLI_TORCH_PYTHON has it.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from gradcli.arrays.files.recording import Recording
from tests.command_line import CommandLine, process
from tests.test_record import torch_python

pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parent / "recordings" / "models"

NEEDS = {
    "bert": "transformers",
    "gpt2": "transformers",
    "lightning_trainer": "lightning",
    "resnet18": "torchvision",
    "transformers_trainer": "transformers",
}

OPAQUE = {"custom": ["Split", "Swish"], "dropouts": ["F.rrelu"]}
"""The operations of a program that are not computed again; none of all others."""

STEPLESS = {"custom", "dropouts", "functional", "lbfgs", "packed"}


@cache
def has(python: str, package: str) -> bool:
    """Whether a Python has a package; torchvision's kernels need not belong to its PyTorch."""
    words = [python, "-c", f"import importlib.util as u; assert u.find_spec({package!r})"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.fixture(name="python")
def _python() -> str:
    found = torch_python()
    if found is None:
        pytest.skip("no Python with PyTorch is here: GRADCLI_TORCH_PYTHON names one")
    return found


def recorded(python: str, name: str, folder: Path) -> str:
    """What `gradcli record` makes of a program."""
    path = str(folder / f"{name}.gradrun")
    made = process("record", "--python", python, "-o", path, str(FOLDER / f"{name}.py"))
    assert made.code == 0, made.err
    return path


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_model_is_computed_again(
    gradcli: CommandLine, python: str, tmp_path: Path, name: str
) -> None:
    package = NEEDS.get(name)
    if package is not None and not has(python, package):
        pytest.skip(f"{package} is not in the environment of {python}")
    path = recorded(python, name, tmp_path)
    assert sorted(set(Recording(path).unwritten)) == OPAQUE.get(name, [])
    shown = gradcli("run", "--strict", path)
    assert shown.code == 0, shown.err
    assert re.search(r"\d+ operations, equal to .*, gradients to ", shown.err)
    assert ("the optimizer's step to " in shown.err) == (name not in STEPLESS)
