"""Values that nobody writes on purpose: each ends in an error with a place, none in E901."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.running import run as run_program

HUGE = "10**400"

COMMANDS = {
    "a binding": (["y = x*2", f"x={HUGE}"], 4, "E501"),
    "a seed": (["y = x*2", "x=2", "--seed", HUGE], 4, "E501"),
    "no time": (["y = x*2", "x=2", "--timeout", "nan"], 2, "nan is no number of seconds"),
    "all memory": (["y = x*2", "x=2", "--max-memory", "99999999999TB"], 0, ""),
    "a text for a gradient": (["check", "y = x*2", "x=2", "--equals", '"a"'], 3, "E202"),
    "a huge gradient": (["check", "y = x*2", "x=2", "--equals", HUGE], 3, "E202"),
    "a text in a file": (["check", "y = x*2", "x=2", "--against", "text.json"], 4, "E505"),
    "uneven lists in a file": (["check", "y = x*2", "x=2", "--against", "uneven.json"], 4, "E505"),
    "half a file": (["check", "y = x*2", "x=2", "--against", "half.npz"], 4, "E504"),
    "a file in the sandbox": (
        ["check", "y = x*2", "x=2", "--against", "text.json", "--sandbox"], 5, "E606",
    ),
    "a record": (["y = x*2", "--inputs", "records.jsonl"], 4, "E501"),
    "infinity for an integer": (["run", "count.grad", "n=inf"], 4, "E501"),
    "nan for an integer": (["run", "count.grad", "n=nan"], 4, "E501"),
    "an integer for a float": (["run", "rate.grad", f"rate={HUGE}"], 4, "E501"),
}  # fmt: skip

FILES = {
    "text.json": '"abc"',
    "uneven.json": '{"x": [[1, 2], [3]]}',
    "half.npz": "PK\x03\x04 and no more",
    "records.jsonl": '{"x": 1' + "0" * 400 + "}\n",
    "count.grad": "n = 3\nprint(n)\n",
    "rate.grad": "rate = 0.5\nprint(rate)\n",
}


@pytest.mark.parametrize("case", COMMANDS)
def test_command_line(
    case: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words, code, text = COMMANDS[case]
    finished = CommandLine(capsys)(*words)
    assert finished.code == code, finished.err
    assert text in finished.err + finished.out


PROGRAMS = {
    "nn.Linear(1, 1).get_submodule(1)": "AttributeError",
    "A().p": "TypeError",
    "O().step()": "AttributeError",
    "O().state_dict()": "AttributeError",
    "ones(1)[(None,) * 100]": "IndexError",
    "torch.sum(ones(3)[10**5000])": "ValueError",
}
"""What a program asks for that no check refuses, and the class that it can catch."""

BEFORE = """
class A:
    p = property(1)

class O(torch.optim.Optimizer):
    def __init__(self):
        pass

"""


@pytest.mark.parametrize("expression", PROGRAMS)
def test_what_escapes_can_be_caught(expression: str) -> None:
    outcome = run_program(
        f"{BEFORE}try:\n    {expression}\nexcept {PROGRAMS[expression]} as error:\n"
        "    print('caught', len(str(error)) > 0)\n"
    )
    assert outcome.error is None
    assert outcome.stdout == "caught True\n"
    failed = run_program(BEFORE + expression).error
    assert failed is not None
    assert failed.code != "E901"
    assert failed.span is not None
