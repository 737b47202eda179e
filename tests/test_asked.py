"""Questions asked in public (`tests/asked`): the answer is the verdict, here and in PyTorch, and
the cure that it offers is right in both.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.asked import Asked, questions
from tests.command_line import CommandLine
from tests.pains import pains
from tests.running import run
from tests.torch_python import torch_python

QUESTIONS = questions()

BY_PYTORCH = """\
import builtins, json, sys, warnings
import torch
warnings.simplefilter("ignore")
known = {name: getattr(torch, name) for name in dir(torch) if not hasattr(builtins, name)}
known |= {"F": torch.nn.functional, "nn": torch.nn, "inf": torch.inf, "nan": torch.nan}
def true_of(program, text):
    names = {**known, "torch": torch, "print": lambda *values: None, "__name__": "__main__"}
    try:
        exec(program, names)
        return bool(eval(text, names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
print(json.dumps([true_of(*each) for each in json.load(sys.stdin)]))
"""


def is_true(program: str, text: str) -> bool:
    """Whether a program runs, and an expression is true behind it."""
    return run(f"{program}\nassert {text}").error is None


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.title)
def test_answer(asked: Asked, gradcli: CommandLine, here: Path) -> None:
    (here / "asked.py").write_text(asked.program, encoding="utf-8")
    shown = gradcli(*asked.ask, "asked.py")
    told = " ".join((shown.out + shown.err).split())
    assert [each for each in asked.says if each not in told] == [], shown.out + shown.err
    assert "untried" not in told


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.title)
def test_cure(asked: Asked) -> None:
    assert is_true(asked.claim, asked.holds)
    if asked.cure:
        assert not is_true(asked.program, asked.right), "it is right without the cure"
        assert is_true(asked.cured, asked.right)


def test_titles_differ() -> None:
    assert len({each.title for each in QUESTIONS}) == len(QUESTIONS) >= 85
    assert all(each.thread.startswith("https://") for each in QUESTIONS)


@pytest.mark.torch
def test_pytorch_agrees() -> None:
    """What holds, and what a cure makes right, is so in PyTorch: of these and of `tests/pains`."""
    python = torch_python()
    if python is None:
        pytest.skip("no Python with PyTorch is here: GRADCLI_TORCH_PYTHON names one")
    claims = [(each.claim, each.holds, True, each.title) for each in QUESTIONS]
    for each in QUESTIONS:
        if each.cure:
            claims += [(each.program, each.right, False, each.title)]
            claims += [(each.cured, each.right, True, each.title)]
    for pain in pains():
        right = " and ".join(f"({each})" for each in pain.right)
        claims += [(pain.program, right, False, pain.title), (pain.cured, right, True, pain.title)]
    text = json.dumps([each[:2] for each in claims])
    found = subprocess.run(
        [python, "-c", BY_PYTORCH], input=text, capture_output=True, text=True, check=True
    )
    wrong = [
        f"{title}: {text}: {answer}"
        for (_, text, expected, title), answer in zip(claims, json.loads(found.stdout), strict=True)
        if (answer is True) is not expected
    ]
    assert wrong == []
