"""Every public name of PyTorch is there, or is left out for a reason that is said, and the manual's
page has them all.

`python -m tests.test_unsupported` writes the page anew.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

from gradcli.errors import GradcliError
from gradcli.language.hints.unsupported import RULES, pytorch_names, reason_unsupported
from gradcli.session import Session
from tests.command_line import ROOT
from tests.running import run

PAGE = ROOT / "gradcli/manual/left-out.md"

START = """import torch
Tensor = torch.ones(2, requires_grad=True)
Module = torch.nn.Module()
Optimizer = torch.optim.SGD([Tensor], lr=0.1)
"""

HOMES = sorted(pytorch_names())


def _session() -> Session:
    session = Session()
    for _ in session.run(START, "start"):
        pass
    return session


def _left_out(session: Session, home: str) -> Iterator[tuple[str, GradcliError]]:
    """The names of a module or class that a program cannot read, each with its error."""
    for name in sorted(pytorch_names()[home]):
        try:
            for _ in session.run(f"{home}.{name}\n", "name"):
                pass
        except GradcliError as error:
            if error.code not in ("E203", "E301"):  # this tensor has none, as in PyTorch
                yield name, error


@pytest.fixture(scope="module")
def session() -> Session:
    return _session()


@pytest.mark.parametrize("home", HOMES)
def test_names_are_there_or_left_out_for_a_reason(session: Session, home: str) -> None:
    for name, error in _left_out(session, home):
        parts = [*home.split("."), name]
        around = [(".".join(parts[:count]), parts[count]) for count in range(1, len(parts))]
        expected = [
            f"`{outer}.{inner}` is left out: {reason_unsupported(outer, inner)}"
            for outer, inner in around
            if reason_unsupported(outer, inner)
        ]
        assert (error.code, error.raises) == ("E205", "AttributeError"), name
        assert error.message in expected


@pytest.mark.parametrize(("reason", "pattern"), RULES)
def test_each_rule_is_the_first_for_some_name(reason: str, pattern: str) -> None:
    given = {reason_unsupported(home, name) for home in HOMES for name in pytorch_names()[home]}
    assert reason in given


def test_an_import_says_why() -> None:
    for statement in ("from torch import fx\nfx.Graph", "import torch.fx as fx\nfx.Graph"):
        error = run(statement).error
        assert error is not None
        assert (error.code, error.help) == ("E103", reason_unsupported("torch", "fx"))


def _there(session: Session, home: str) -> bool:
    try:
        for _ in session.run(f"{home}\n", "name"):
            pass
    except GradcliError:
        return False
    return True


def page() -> str:
    """The manual's page: the names by reason."""
    session, found = _session(), dict.fromkeys((reason for reason, _ in RULES), "")
    known = count = 0
    for home in HOMES:
        if reason_unsupported(*home.rpartition(".")[::2]) and not _there(session, home):
            continue  # its name stands for all in it
        known += len(pytorch_names()[home])
        for name, _ in _left_out(session, home):
            reason = reason_unsupported(home, name)
            assert reason is not None
            found[reason] = f"{found.get(reason, '')} {home}.{name}"
            count += 1
    parts = [
        "# What of PyTorch is left out\n",
        f"gradcli has {known - count:,} of the {known:,} public names that PyTorch 2.13 has in the"
        " modules that are there.\nThe others, by reason; a module's name stands for all in it. A"
        " program that uses one ends in\n[E205](codes/E205.md), and `gradcli port FILE` finds it"
        " without running the program.\n",
    ]
    for reason, names in found.items():
        if names:
            parts.append(f"{reason[0].upper()}{reason[1:]}:\n")
            parts.append(
                f"```text\n{textwrap.fill(names.strip(), 100, break_on_hyphens=False)}\n```\n"
            )
    return "\n".join(parts)


def test_the_page_has_them() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
