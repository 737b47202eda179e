"""Every public name of PyTorch is there, or is left out for a reason that is said, and the page of
help has them all.
"""

from __future__ import annotations

import pytest

from gradcli.errors import RECORDED
from gradcli.language.hints.unsupported import RULES, pytorch_names, reason_unsupported
from gradcli.session import Session
from gradcli.show.help.ops import left_out, started
from gradcli.show.help.pages import topic
from tests.rows import each_row
from tests.running import run

HOMES = sorted(pytorch_names())


@pytest.fixture(scope="module")
def session() -> Session:
    return started()


@each_row("home", HOMES)
def test_names_are_there_or_left_out_for_a_reason(session: Session, home: str) -> None:
    for name, error in left_out(session, home):
        parts = [*home.split("."), name]
        around = [(".".join(parts[:count]), parts[count]) for count in range(1, len(parts))]
        expected = [
            f"`{outer}.{inner}` is left out: {reason_unsupported(outer, inner)}"
            for outer, inner in around
            if reason_unsupported(outer, inner)
        ]
        assert (error.code, error.raises) == ("E205", "AttributeError"), name
        assert error.message in expected


def test_each_rule_is_the_first_for_some_name() -> None:
    given = {reason_unsupported(home, name) for home in HOMES for name in pytorch_names()[home]}
    assert [reason for reason, _ in RULES if reason not in given] == []


def test_an_import_says_why() -> None:
    for statement in ("from torch import fx\nfx.Graph", "import torch.fx as fx\nfx.Graph"):
        error = run(statement).error
        assert error is not None
        reason = reason_unsupported("torch", "fx")
        assert (error.code, error.help) == ("E103", f"{reason}; {RECORDED}")


@pytest.mark.parametrize(
    ("program", "code", "ways"),
    [
        ("import pandas\npandas.x", "E103", ("a `pandas.py` of yours beside", RECORDED)),
        ("import nobody\nnobody.x", "E103", ("a `nobody.py` of yours beside", RECORDED)),
        ("from heapq import zqx\nzqx()", "E103", ("a `heapq.py` of yours beside", RECORDED)),
        ("from numpy import zqxw\nzqxw()", "E103", (RECORDED,)),
        ("import numpy as np\nnp.einsum_path", "E205", (RECORDED,)),
        ("torch.frombuffer", "E205", (RECORDED,)),
        ("bytearray(b'a')", "E101", (RECORDED,)),
        ("memoryview(b'a')", "E101", (RECORDED,)),
        ("torch.optim.SGD([ones(2)], differentiable=True)", "E205", (RECORDED,)),
        ("import numpy as np\nnp.nothing_at_all", "E102", ()),
        ("torch.nothing_at_all", "E102", ()),
        ("nothing_at_all", "E101", ()),
    ],
)
def test_the_ways_out(program: str, code: str, ways: tuple[str, ...]) -> None:
    error = run(program).error
    assert error is not None
    assert error.code == code
    assert [each for each in ways if each not in (error.help or "")] == [], error.help
    assert ways or "record" not in (error.help or "")


def test_the_page_has_them(session: Session) -> None:
    page = topic("left-out")
    assert page is not None
    for name, _ in left_out(session, "torch"):
        assert f"torch.{name}" in page
