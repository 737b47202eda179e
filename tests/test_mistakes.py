"""`gradcli help mistakes`: what is said of each mistake, and that it helps."""

from __future__ import annotations

import re

import pytest

from gradcli.show.help.mistakes import MISTAKES, Mistake, mistakes_page, said
from tests.command_line import CommandLine


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_each_is_named_by_its_code(mistake: Mistake) -> None:
    codes = re.findall(r"^(?:error|warning)\[(\w+)\]", said(mistake), re.MULTILINE)
    assert codes == ([mistake.code] if mistake.code else [])


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_each_says_what_to_do(mistake: Mistake) -> None:
    """In the help, a remark, or, of a dimension, in the message: `(there are -2 to 1)`."""
    assert " = help: " in said(mistake) or mistake.remark or "there are" in said(mistake)


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    shown = CommandLine(capsys)("help", "mistakes")
    assert (shown.code, shown.err, shown.out) == (0, "", mistakes_page())
    assert len(MISTAKES) == 20
    for mistake in MISTAKES:
        for line in mistake.program.split("\n"):
            assert f"\n    {line}\n" in shown.out
        assert said(mistake) in shown.out
