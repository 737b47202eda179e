"""Every public name of PyTorch is there, or is said to be left out and why.

`tests/conformance/public_names.txt` lists the names of `torch`, tensors, `torch.nn`,
`torch.nn.functional`, `torch.linalg` and `torch.special` in PyTorch 2.13.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.errors import GradcliError
from gradcli.language.hints.unsupported import UNSUPPORTED
from gradcli.session import Session

NAMES = Path(__file__).parent.joinpath("conformance/public_names.txt").read_text().split()

HOMES = ("torch", "x", "F", "torch.linalg", "torch.special", "nn")

HOST = """
    AVG Argument Block Callable Code DType Gradient Graph Node Optional SUM TYPE_CHECKING Tag
    Type Use Value bit builtins classes common_args common_notes common_types cpp ctypes
    dataclasses export factory_kwargs functools futures fx glob hub importlib index inspect
    jit library masked math merge_type_from_type_comment modules monitor new np ops os
    overrides package parallel parameter platform profiler random range resize signal sys
    testing textwrap threading torch typename types version volatile warnings windows
"""
"""What PyTorch's modules hold beside its own names: other modules, and words of its build."""


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    start = "import torch\nx = torch.ones(2, requires_grad=True)\n"
    for _ in made.run(start, "start"):
        pass
    return made


def _known(session: Session, text: str) -> bool:
    try:
        for _ in session.run(text + "\n", "name"):
            pass
    except GradcliError as error:
        return error.code != "E102"
    return True


@pytest.mark.parametrize("first", sorted({name[0] for name in NAMES}))
def test_names_are_there_or_left_out(session: Session, first: str) -> None:
    host = HOST.split()
    names = [name for name in NAMES if name[0] == first and name not in host]
    unknown = [n for n in names if not any(_known(session, f"{home}.{n}") for home in HOMES)]
    assert unknown == []


def test_a_name_is_left_out_once_and_for_one_reason() -> None:
    names = [name for listed in UNSUPPORTED.values() for name in listed.split()]
    assert sorted(names) == sorted(set(names))
