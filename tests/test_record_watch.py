"""`gradcli record --watch`: what it finds under PyTorch, and its files, opened without it.

`tests/watched/` has programs and what was written of two of them under PyTorch 2.13.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli.doors.torch.command import RECORDER
from gradcli.recorded.watched import Watched
from tests.command_line import CommandLine, process

FOLDER = Path(__file__).parent / "watched"


def watched(name: str) -> str:
    return str(FOLDER / f"{name}.gradrun")


# --- without PyTorch ------------------------------------------------------------------------------


def test_blame_has_the_operation_its_element_and_a_cure(gradcli: CommandLine) -> None:
    shown = gradcli("blame", watched("row"))
    assert shown.code == 1, shown.err
    for part in (
        "step 21 of 30: the loss, ",
        "inf - inf, in the\nforward pass of softmax",
        "row.py:18:1",
        "in net.blocks[0].att, Attention",
        "at element [2, 0, 0]\n  self    -inf\n  result  nan",
        "the infinity that went in is a constant\n  --> row.py:17:1",
        "self.masked_fill(self.isneginf().all(-1, keepdim=True), 0.0)",
        "= proof: run on the operands of this step: 400 of 400 results are finite",
    ):
        assert part in shown.out


def test_blame_has_the_place_in_the_data(gradcli: CommandLine) -> None:
    out = gradcli("blame", watched("data")).out
    assert "batch holds nan" in out
    assert "at element [13, 3]" in out
    assert "31 of 32 rows are finite" in out


def test_blame_as_json(gradcli: CommandLine) -> None:
    found = json.loads(gradcli("blame", "--json", watched("row")).out)
    assert found["schema"] == "gradcli.blame/1"
    assert (found["step"], found["run_again"]) == (21, True)
    blamed = found["blamed"]
    assert blamed["op"] == "aten._softmax"
    assert (blamed["module"], blamed["file"], blamed["line"]) == ("net.blocks[0].att", "row.py", 18)
    assert (blamed["element"], blamed["value"]) == ([2, 0, 0], "NaN")
    assert blamed["operands"] == [{"name": "self", "value": "-Infinity"}]
    assert blamed["infinity_from"]["kind"] == "constant"
    assert blamed["cure"]["proof"].startswith("run on the operands")


def test_flow_shows_the_steps(gradcli: CommandLine) -> None:
    out = gradcli("explain", "--flow", watched("row")).out
    assert out.startswith("30 steps of AdamW, loss ")
    assert "net.head.weight               [50, 16]  " in out
    assert "net.unused.weight             [4, 4]    None: its Linear was not called" in out
    assert "no step ever reached 2 of 17 parameters: net.unused.weight, net.unused.bias" in out
    assert "step 21 is not finite: `gradcli blame`" in out


def test_flow_as_json(gradcli: CommandLine) -> None:
    found = json.loads(gradcli("explain", "--flow", "--json", watched("row")).out)
    assert found["schema"] == "gradcli.watch/1"
    assert found["unreached"] == ["net.unused.weight", "net.unused.bias"]
    assert found["nonfinite_step"] == 21
    by_name = {each["name"]: each for each in found["parameters"]}
    head, unused = by_name["net.head.weight"], by_name["net.unused.weight"]
    assert len(head["norms"]) == len(head["zeros"]) == len(head["updates"]) == 30
    assert all(each > 0 for each in head["norms"][:20])
    assert head["norms"][20] == "NaN"
    assert unused["norms"] == [None] * 30
    assert unused["none"] == [{"reason": "its Linear was not called", "first": 1, "last": 30}]


def test_info(gradcli: CommandLine) -> None:
    out = gradcli("info", watched("row")).out
    for part in ("torch 2.13", "steps       30", "AdamW", "17, 2 never reached", "step 21"):
        assert part in out


@pytest.mark.parametrize("words", [["run"], ["why", "net.head.weight"], ["explain"], ["check"]])
def test_what_needs_a_program_is_refused(gradcli: CommandLine, words: list[str]) -> None:
    shown = gradcli(*words, watched("row"))
    assert shown.code == 4
    assert "error[E506]" in shown.err
    assert "`gradcli blame` and `gradcli explain --flow` answer from it" in shown.err


def test_in_the_sandbox(gradcli: CommandLine) -> None:
    assert gradcli("blame", "--file", watched("row"), "--sandbox").code == 1
    shown = gradcli("record", "--watch", "--sandbox", "train.py")
    assert shown.code == 5
    assert "E606" in shown.err


@pytest.mark.parametrize("words", [["--at", "step:3"], ["--no-data"], []])
def test_usage(gradcli: CommandLine, words: list[str]) -> None:
    assert gradcli("record", "--watch", *words, *(["x.py"] if words else [])).code == 2


# --- damaged and hostile --------------------------------------------------------------------------


def changed(to: Path, change: Callable[[dict[str, Any]], Any]) -> str:
    """A copy of a file with another index."""
    content = Path(watched("row")).read_bytes()
    magic, version, zero, packed, _, _ = struct.unpack("<8sIIQQQ", content[:40])
    index = json.loads(zlib.decompress(content[40 : 40 + packed]))
    arrays = content[-(-(40 + packed) // 64) * 64 :]
    change(index)
    text = json.dumps(index).encode()
    squeezed = zlib.compress(text)
    start = -(-(40 + len(squeezed)) // 64) * 64
    size = start + len(arrays)
    head = struct.pack("<8sIIQQQ", magic, version, zero, len(squeezed), len(text), size)
    path = to / "changed.gradrun"
    path.write_bytes((head + squeezed).ljust(start, b"\0") + arrays)
    return str(path)


def _found(index: dict[str, Any]) -> Any:
    return index["nonfinite"]


HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another kind": lambda i: i.__setitem__("kind", "program"),
    "a kind that is a list": lambda i: i.__setitem__("kind", ["watch"]),
    "no tables": lambda i: i.pop("tables"),
    "a table without figures": lambda i: i["arrays"].pop(0),
    "figures of another shape": lambda i: i["arrays"][0].__setitem__(2, [30, 2, 3]),
    "figures beyond the file": lambda i: i["arrays"][0].__setitem__(2, [1 << 40, 17, 3]),
    "figures of another dtype": lambda i: i["arrays"][0].__setitem__(1, "int32"),
    "a parameter that is not there": lambda i: i["tables"][0]["parameters"].__setitem__(0, 99),
    "a parameter with a text as its shape": lambda i: i["parameters"][0].__setitem__(1, "ab"),
    "a reason of a foreign parameter": lambda i: i["tables"][0]["none"][0].__setitem__(0, -1),
    "a negative step": lambda i: _found(i).__setitem__("step", -1),
    "a value that is a text": lambda i: _found(i).__setitem__("value", "1e9999999 or so"),
    "a dtype that is none": lambda i: _found(i).__setitem__("dtype", "object"),
    "a place of two": lambda i: _found(i).__setitem__("place", ["a.py", 3]),
    "a phase that is none": lambda i: _found(i).__setitem__("phase", "sideways"),
    "an element of many": lambda i: _found(i).__setitem__("element", [0] * 1000),
    "an operand that is a number": lambda i: _found(i).__setitem__("operands", [5]),
    "a chain without end": lambda i: _found(i).__setitem__("chain", [["a", None, None]] * 20_000),
    "a report that is a list": lambda i: i.__setitem__("nonfinite", [1, 2]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(gradcli: CommandLine, tmp_path: Path, case: str) -> None:
    path = changed(tmp_path, HOSTILE[case])
    for words in (["blame"], ["explain", "--flow"], ["info"]):
        shown = gradcli(*words, path)
        assert shown.code == 4, (shown.out, shown.err)
        assert "error[E504]" in shown.err


def test_texts_of_a_stranger_are_harmless(gradcli: CommandLine, tmp_path: Path) -> None:
    def hostile(index: dict[str, Any]) -> None:
        index["parameters"][0][0] = "a\x1b[31m\nb"
        _found(index)["cure"]["text"] = "\x1b]0;title\x07"
        _found(index)["place"][3] = "\x1b[2J\nx"
        _found(index)["chain"][0][0] = "\x1b[2J\n"
        _found(index)["module"][0] = "\x1b[2J\n"
        _found(index)["operands"][0]["parameter"] = "\x1b[2J\n"

    path = changed(tmp_path, hostile)
    for words in (["blame"], ["explain", "--flow"]):
        out = gradcli(*words, path).out
        assert "\x1b" not in out
        assert "\x07" not in out


def test_cut_off_anywhere(gradcli: CommandLine, tmp_path: Path) -> None:
    content = Path(watched("row")).read_bytes()
    path = tmp_path / "cut.gradrun"
    for size in [*range(0, 64, 9), *range(64, len(content), 397), len(content) - 1]:
        path.write_bytes(content[:size])
        shown = gradcli("blame", str(path))
        assert shown.code == 4, (size, shown.err)
        assert "error[E504]" in shown.err


# --- under PyTorch --------------------------------------------------------------------------------


SHOWN = {
    "late": (900, "infinite slope, in the backward pass of sqrt", [0], "late.py:18:1"),
    "row": (21, "forward pass of softmax", [2, 0, 0], "row.py:18:1"),
    "half": (21, "the result of pow is beyond 65504, the largest float16", [5, 0], "half.py:15:1"),
    "data": (3, "batch holds nan", [13, 3], "data.py:14:1"),
    "norms": (3, "x holds nan", [1, 0, 3, 3], "norms.py:17:1"),
    "joined": (2, "F.log_softmax(x, dim=1)", [0, 0], "joined.py:12:1"),
    "squared": (3, "what is handed on grows 1.62-fold", [0, 0], "squared.py:25:1"),
    "rnn": (4, "no cure of the formula: what is handed on grows", [6, 1], "rnn.py:18:1"),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", SHOWN)
def test_the_first_step_that_is_not_finite(
    gradcli: CommandLine, python: str, tmp_path: Path, name: str
) -> None:
    step, said, element, place = SHOWN[name]
    path = str(tmp_path / "x.gradrun")
    run = process("record", "--watch", "--python", python, "-o", path, str(FOLDER / f"{name}.py"))
    if "AutocastCPU only support Bfloat16" in run.err:
        pytest.skip("this PyTorch has no float16 on the CPU")
    assert run.code == 0, run.err
    assert run.out == ("trained\n" if name == "late" else "")
    assert f"step {step:,} is not finite: " in run.err
    assert os.stat(path).st_mode & 0o777 == 0o600
    shown = gradcli("blame", path)
    assert shown.code == 1
    for part in (f"step {step:,} of ", said, f"at element {element}", place):
        assert part in shown.out
    found = Watched(path).nonfinite
    assert found is not None
    assert found.again, found.reason


@pytest.mark.torch
def test_a_head_that_is_replaced_behind_the_optimizer(
    gradcli: CommandLine, python: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "x.gradrun")
    process("record", "--watch", "--python", python, "-o", path, str(FOLDER / "head.py"))
    out = " ".join(gradcli("explain", "--flow", path).out.split())
    folder = os.path.relpath(FOLDER)
    for part in (
        f"no optimizer holds net.fc.weight, net.fc.bias: made at {folder}/head.py:10, behind the"
        f" AdamW of {folder}/head.py:9, which took its parameters before",
        f"no module that ran has it: it was the weight of a Linear made at {folder}/head.py:8",
    ):
        assert part in out


@pytest.mark.torch
def test_programs_of_many_kinds(python: str) -> None:
    """Two optimizers, accumulation, closures, checkpoints, a GradScaler, a step that cannot be run
    again, and why gradients are none.
    """
    shown = subprocess.run(
        [python, str(FOLDER / "several.py"), str(RECORDER.parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (shown.returncode, shown.stdout) == (0, "as expected\n"), shown.stderr


@pytest.mark.torch
def test_a_script_is_what_it_is_under_python(python: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport torch\nfrom torch import nn\n"
        "print(sys.argv[1:], __name__, __file__)\n"
        "torch.manual_seed(0)\n"
        "net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Linear(2, 1))\n"
        "opt = torch.optim.Adam(net.parameters())\n"
        "for _ in range(3):\n"
        "    loss = net(torch.randn(4, 2)).square().mean()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
        "    print(loss.item())\n"
        "if len(sys.argv) > 2: sys.exit(int(sys.argv[2]))\n"
        "net(torch.ones(3))\n"
    )
    for words in (["a"], ["a", "7"]):
        plain = subprocess.run(
            [python, str(script), *words], capture_output=True, text=True, check=False
        )
        path = str(tmp_path / "x.gradrun")
        run = process("record", "--watch", "--python", python, "-o", path, str(script), *words)
        assert (run.code, run.out) == (plain.returncode, plain.stdout)
        said = [line for line in run.err.splitlines() if "gradrun" not in line]
        assert said == plain.stderr.splitlines()
        assert "3 steps, all finite; wrote " in run.err


@pytest.mark.torch
def test_a_closure_that_runs_no_pass(python: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nnet = torch.nn.Linear(3, 1)\n"
        "opt = torch.optim.Adam(net.parameters())\n"
        "for _ in range(3):\n"
        "    opt.zero_grad()\n    net(torch.randn(4, 3)).square().mean().backward()\n"
        "    opt.step(lambda: None)\n"
    )
    path = str(tmp_path / "x.gradrun")
    run = process("record", "--watch", "--python", python, "-o", path, str(script))
    assert "3 steps, all finite; wrote " in run.err


@pytest.mark.torch
def test_nothing_to_watch(python: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint(torch.ones(2))\n")
    path = tmp_path / "x.gradrun"
    run = process("record", "--watch", "--python", python, "-o", str(path), str(script))
    assert (run.code, run.out) == (0, "tensor([1., 1.])\n")
    assert "nothing was recorded: there was no backward pass" in run.err
    assert not path.exists()
