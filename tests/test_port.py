"""`gradcli port`: what gradcli would refuse in a program, found without running it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradcli.errors import Source
from gradcli.questions.port.refusals import refusals
from tests.command_line import CommandLine

ROWS = {
    "nothing": ("import torch\nx = torch.ones(2)\nprint(x.sum())", []),
    "an import that is not used": ("import sklearn", []),
    "a module that is used": ("import sklearn\nsklearn.fit()", ["1 E103 torch"]),
    "a name of a module": ("from sklearn import svm\nsvm.SVC()", ["1 E103 torch"]),
    "an alias": ("import pandas as pd\npd.read_csv('t')", ["1 E103 NAME=@"]),
    "a try": ("try:\n  import wandb\nexcept ImportError:\n  wandb = None\nprint(wandb)", []),
    "a name that torch has not": ("import torch\ntorch.no_such()", ["2 E102"]),
    "a name that is left out": ("import torch as t\nt.nn\nt.hub(1)", ["3 E205"]),
    "an alias of a module in a module": ("import torch.nn as n\nn.Nothing(2)", ["2 E102"]),
    "a name that is assigned": ("torch = make()\ntorch.no_such()", []),
    "functions of Python's": (
        "x = eval('1')\ndef f():\n  return input()",
        ["1 E101 text as code", "3 E101 NAME=VALUE"],
    ),
    "one's own function of that name": ("def open(x):\n  return x\nopen(1)", []),
    "inside a function": ("import os\ndef f():\n  os.system('ls')", ["3 E205"]),
    "statements outside the language": (
        "async def f():\n  pass\nclass A(*B):\n  pass",
        ["1 E007 async", "3 E007"],
    ),
    "text that cannot be read": ("x = = 2\ny = 1 +\nimport os\nos.system()", ["1", "2", "4 E205"]),
    "names that it gives to modules": (
        "from torch import nn\nimport torch.nn.functional as F\nnn.Block = 3\nnn.Block\nF.relu = 2",
        ["5 E102"],
    ),
    "endless loops do not run": ("while True:\n  print(1)", []),
}
"""Programs, and for each place its line, its code and words of what to write instead."""


@pytest.mark.parametrize("row", ROWS)
def test_places(row: str) -> None:
    text, expected = ROWS[row]
    found = refusals(Source("program.py", text))
    assert len(found) == len(expected), found
    for error, place in zip(found, expected, strict=True):
        line, _, rest = place.partition(" ")
        code, _, words = rest.partition(" ")
        assert error.span is not None
        assert error.span.line == int(line)
        assert error.code.startswith(code)
        assert words in (error.help or "")


def test_command(gradcli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text("value = 2\n")
    Path("good.py").write_text("from model import value\nprint(value)\n")
    Path("bad.py").write_text("import sklearn\nprint(1)\nsklearn.fit()\n")
    shown = gradcli("port", "good.py")
    assert (shown.code, shown.out) == (0, "good.py: nothing in it would be refused\n")
    shown = gradcli("port", "bad.py")
    assert shown.code == 1
    assert shown.out.startswith("bad.py:1:1: there is no module `sklearn` in the language [E103]\n")
    assert shown.out.endswith("bad.py: 1 place would be refused\n")
    shown = gradcli("port", "--json", "bad.py")
    found = json.loads(shown.out)
    assert (shown.code, found["schema"], found["file"]) == (1, "gradcli.port/1", "bad.py")
    assert [each["code"] for each in found["refused"]] == ["E103"]
    assert gradcli("port", "absent.py").code == 2


@pytest.mark.parametrize(
    ("program", "help", "not_help"),
    [
        ("y = e ** x", "math.e", "did you mean"),
        ("z = x * 1.0\ngrad(z ** 2, z)", "from torch.autograd import grad", "rand"),
        ("frozenset2([1])", "frozenset", "frozenset2="),
    ],
)
def test_what_to_write_instead(
    gradcli: CommandLine, program: str, help: str, not_help: str
) -> None:
    """The help of a refused name says what to write, and proposes nothing that fails as well."""
    shown = gradcli(program, "x=2")
    assert help in shown.err
    assert not_help not in shown.err


def test_what_ran_before_is_printed(gradcli: CommandLine) -> None:
    shown = gradcli("-q", "-e", "print('before')\nimport sklearn\nsklearn.fit()")
    assert (shown.code, shown.out) == (3, "before\n")
