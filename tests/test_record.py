"""Recordings: opened without PyTorch, damaged and hostile ones, and those that PyTorch makes.

`tests/recordings/` has programs and what `gradcli record` made of them under PyTorch 2.13.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gradcli.arrays.files.recording import MAGIC, VERSION, Recording
from gradcli.autograd.tensor import Tensor
from gradcli.doors.torch.command import known_functions
from gradcli.running.arguments.files import program_in
from gradcli.running.arguments.options import Options
from gradcli.running.process.terminal import Terminal
from gradcli.running.recordings import replay
from gradcli.running.recordings.focus import focus_on, near
from gradcli.running.recordings.replay import Replay, difference, digest
from gradcli.running.rerun import Rerun
from gradcli.running.run import Run
from tests.command_line import CommandLine, process
from tests.rows import sampled

FOLDER = Path(__file__).parent / "recordings"

NAMES = sorted(path.stem for path in FOLDER.glob("*.gradrun"))


def recording(name: str) -> str:
    return str(FOLDER / f"{name}.gradrun")


# --- without PyTorch ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_is_equal_to_the_run(gradcli: CommandLine, name: str) -> None:
    shown = gradcli("run", "--strict", recording(name))
    assert shown.code == 0, shown.err
    assert " operations, equal to " in shown.err


def test_why_names_the_users_place(gradcli: CommandLine) -> None:
    shown = gradcli("why", "net.fc1.weight.grad", recording("mlp"))
    assert "h  ReluBackward0" in shown.out
    assert "mlp.py:17 in forward (" in shown.out
    shown = gradcli("why", "net.unused.weight", recording("mlp"))
    assert "net.unused.weight.trains = False" in shown.out
    assert "no forward() that ran has called it" in shown.out
    shown = gradcli("why", "net.fc1.weight", recording("mlp"))
    assert "net.fc1.weight.trains = True" in shown.out
    told = " ".join(shown.out.split())
    assert "what the script writes to it behind this step is not in the recording" in told


@pytest.mark.parametrize(
    ("name", "question", "suffices"),
    [
        ("mlp", "net.unused.weight", True),
        ("mlp", "net.unused.weight.grad", True),
        ("mlp", "net.fc1.weight", True),
        ("mlp", "net.fc1.weight.requires_grad", True),
        ("mlp", "net.fc1.weight.grad", False),
        ("opaque", "lin.weight", True),
        ("row", "att.query.weight", True),
    ],
)
def test_why_runs_the_graph_alone_where_it_suffices(
    gradcli: CommandLine, name: str, question: str, suffices: bool
) -> None:
    shown = gradcli("why", question, recording(name))
    assert shown.code == 0, shown.err
    assert ("of which the graph alone was made again" in shown.err) is suffices


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_alone_is_the_graph(
    fresh_state: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(replay, "SMALL", 1)  # no array is kept

    def graph(alone: bool) -> list[tuple[str, list[int | None]]]:
        options = Options()
        text = program_in(recording(name), options)
        options.graph_alone = alone
        run = Run(Terminal(), options, "all")
        with run.limited():
            value = run.execute(run.session.parse(text, recording(name)), [])
            found = run.result(value)
        assert found is not None
        return [
            (node.name, [None if edge.node is None else edge.node.id for edge in node.edges])
            for node in found.graph.nodes
        ]

    assert graph(True) == graph(False)


@pytest.mark.parametrize("name", NAMES)
def test_what_shares_memory_is_known_without_numbers(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with_numbers = gradcli("explain", "--saved", recording(name)).out.partition("saved for")[2]
    monkeypatch.setattr(replay, "SMALL", 1)  # nothing keeps its own memory
    monkeypatch.setattr("gradcli.arrays.files.recording.MOST_DRAWN", 0)
    shown = gradcli("explain", "--saved", recording(name))
    assert "of which the graph alone was made again" in shown.err
    assert shown.out.partition("saved for")[2] == with_numbers


def test_results_are_let_go_once_they_are_read(
    fresh_state: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "SMALL", 0)
    options = Options()
    text = program_in(recording("mlp"), options)
    run = Run(Terminal(), options, "graph")
    assert run.replay is not None
    run.replay.let_go()
    run.replay.leave_out_steps()
    with run.limited():
        run.execute(run.session.parse(text, recording("mlp")), [])
    assert "h" not in run.session.values
    assert {"net", "loss"} <= {*run.session.values}
    assert run.replay.first is None
    assert {*run.replay.worst} == {"value", "gradient"}


def test_json_has_the_users_place(gradcli: CommandLine) -> None:
    path = json.loads(gradcli("why", "net.fc1.weight", recording("mlp"), "--json").out)["path"]
    (relu,) = [each for each in path if each["name"] == "ReluBackward0"]
    assert relu["file"] == recording("mlp")
    assert relu["origin"] == "mlp.py:17 in forward"


def test_check_says_what_it_takes(gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.questions.check.find._SECONDS", 1e-6)
    shown = gradcli("check", recording("mlp"))
    assert "all 4 inputs are moved at once, along 1 random direction, in about" in shown.err
    assert shown.code == 0, shown.out


def test_check_runs_a_recording_as_often_as_it_has_to(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradcli.questions.check.find._SECONDS", 1e-6)
    runs, execute = [], Rerun._execute

    def counted(rerun: Rerun, *rest: Any) -> Any:
        runs.append(rest[3])
        return execute(rerun, *rest)

    monkeypatch.setattr(Rerun, "_execute", counted)
    assert gradcli("check", recording("mlp")).code == 0
    # Its gradients, twice to measure, with its values, and moved to compare what these give; at
    # last in its own dtype, for what is not finite there.
    assert runs == ["ends", "graph", "graph", "kept", "graph", "ends"]


def test_blame_finds_the_row_that_is_masked_whole(gradcli: CommandLine) -> None:
    shown = gradcli("blame", recording("row"))
    assert shown.code == 1
    for part in ("row.py:19 in forward", "in att, Attention", "[1, 2, 0]", "scores  -inf"):
        assert part in shown.out


def test_a_parameter_that_an_earlier_step_ruined(gradcli: CommandLine) -> None:
    told = " ".join(gradcli("blame", recording("ruined")).out.split())
    assert "net.weight holds nan" in told
    assert "no cure in this step: the parameter was so before it" in told
    assert "`gradcli record --at first-nonfinite` records the step" in told


@pytest.mark.parametrize("lines", [3, 100])
@pytest.mark.parametrize("name", ["row", "slope"])
def test_of_a_large_recording_what_leads_to_the_first_number_is_run(
    gradcli: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str, lines: int
) -> None:
    """`slope` has its first one in the backward pass, behind a -inf that a softmax makes 0 of."""
    monkeypatch.setattr("gradcli.running.recordings.focus.NEAR", lines)
    monkeypatch.setattr("gradcli.running.recordings.focus.BIG", 12)
    whole = json.loads(gradcli("blame", recording(name), "--json").out)["blamed"]
    monkeypatch.setattr("gradcli.arrays.files.recording.MOST_DRAWN", 0)
    text = gradcli("blame", recording(name))
    assert "what leads to it was run with this" in text.out
    part = json.loads(gradcli("blame", recording(name), "--json").out)["blamed"]
    same = ("spoilt", "kind", "op", "line", "origin", "module", "element", "operands")
    for key in (*same, "phase", "gradient_in", "masked_by"):
        assert part.get(key) == whole.get(key), key
    assert whole["cure"] is None or part["cure"]["changes"] == whole["cure"]["changes"]


_LINES = """net = Net()
net.weight = nn.Parameter(recorded('net.weight'))
net.other = nn.Parameter(recorded('net.other'))
x = recorded('x')
y = recorded('y')
h = x @ net.weight
with torch.no_grad(): mean_1 = h.mean()
h.mul_(y)
q_0, q_1 = h.split(2)
s = torch.log(q_0)
t = F.relu(s)
u = x @ net.other
out = u * t
loss = out.sum()
loss.backward()
opt.step()
"""


@pytest.mark.parametrize(
    ("program", "line", "lines"),
    [
        (_LINES, 10, {1, 2, 4, 5, 6, 8, 9, 10}),
        (_LINES, 12, {1, 2, 3, 4, 5, 6, 8, 12}),  # a write in place may be to anything
        (_LINES, 7, None),  # the loss does not depend on it
        (_LINES.replace("F.relu(s)", "torch.where(m, s, 0)"), 10, None),
        (_LINES.replace("u = x @ net.other", "x.sum().backward()"), 13, None),
        (_LINES.replace("s = torch.log(q_0)", "q_0.log_()"), 10, None),
    ],
)
def test_the_lines_that_an_operation_needs(program: str, line: int, lines: set[int] | None) -> None:
    focus = focus_on(program, line, "loss")
    assert (None if focus is None else set(focus.lines)) == lines


_NAMES_ANEW = """net = Net()
net.weight = nn.Parameter(recorded('net.weight'))
x = recorded('x')
h = x @ net.weight
h = h + x
g = h * h
h = torch.log(g)
loss = h.sum()
loss.backward()
"""


@pytest.mark.parametrize(
    ("size", "lines", "given"),
    [
        (1.0, [1, 6, 7], ["h"]),  # what `h` held when it was read, not what it holds in the end
        (1e9, [1, 2, 3, 4, 5, 6, 7], []),  # it may have grown further ahead
    ],
)
def test_near_an_operation(
    fresh_state: Any, size: float, lines: list[int], given: list[str]
) -> None:
    import numpy as np

    focus = focus_on(_NAMES_ANEW, 7, "loss")
    assert focus is not None
    h, g = (Tensor(np.full(2, number)) for number in (size, size**2))
    found = near(_NAMES_ANEW, focus, [(6, {"h": h}), (7, {"g": g})])
    assert (sorted(found.lines), list(found.operands)) == (lines, given)
    if given:
        assert found.operands["h"][0] is h.array


def test_a_session_on_a_recording(gradcli: CommandLine) -> None:
    shown = gradcli("repl", recording("mlp"), stdin=".why net.unused.weight\n.why net.fc1.weight\n")
    assert "no forward() that ran has called it" in shown.out
    assert "the gradient flows from loss to net.fc1.weight" in shown.out


def test_flow_lists_parameters_without_a_gradient(gradcli: CommandLine) -> None:
    out = gradcli("explain", "--flow", recording("mlp")).out
    assert "2 of 6 parameters get no gradient" in out


@pytest.mark.parametrize("words", [["explain"], ["explain", "--saved"], ["explain", "--ir"]])
def test_explain(gradcli: CommandLine, words: list[str]) -> None:
    shown = gradcli(*words, recording("penalty"))
    assert shown.code == 0, shown.err
    assert "penalty" in shown.out


def test_check_moves_the_parameters_of_the_recording(gradcli: CommandLine) -> None:
    shown = gradcli("check", recording("mlp"))
    assert "wrong" not in shown.out
    assert "net.fc1.weight.grad" in shown.out


def test_an_input_that_is_changed_changes_what_is_behind_it(gradcli: CommandLine) -> None:
    path = recording("mlp")
    before = gradcli("run", "--trace=tree", path)
    shown = gradcli("run", "--trace=tree", path, "data=2 * torch.ones(16, 4)")
    assert "data replaced: nothing is compared with the run" in shown.err
    for each in before.out, shown.out:
        assert each.startswith("loss = tensor(")
    assert before.out.split("\n")[0] != shown.out.split("\n")[0]
    gradient = "net.fc1.weight.grad"
    assert before.out.partition(gradient)[2] != shown.out.partition(gradient)[2]


def test_opaque_operations_are_named_and_refuse_what_is_not_known(gradcli: CommandLine) -> None:
    path = recording("opaque")
    assert "1 read from the recording: Square" in gradcli("run", path).err
    for words in (["run", path, "x=torch.ones(6, 4)"], ["check", path]):
        shown = gradcli(*words)
        assert shown.code == 3
        assert "Square was computed by PyTorch" in shown.err
    shown = gradcli("check", path, "--wrt", "nothing")
    assert (shown.code, "`--wrt nothing` names no input" in shown.err) == (3, True), shown.err
    shown = gradcli("run", path, "--seed", "2.", "--of", "loss")
    assert shown.code == 3
    assert "the derivative of Square is known from the recording alone" in shown.err


def test_info_says_what_is_in_it(gradcli: CommandLine) -> None:
    out = gradcli("info", recording("opaque")).out
    for part in ("made by ", "torch 2.13", "script ", "opaque.py", "opaque ", "Square"):
        assert part in out


def test_a_recording_in_the_sandbox(gradcli: CommandLine) -> None:
    shown = gradcli("why", "lin.weight.grad", "--file", recording("opaque"), "--sandbox")
    assert shown.code == 0, shown.err


# --- differences ----------------------------------------------------------------------------------


def changed(name: str, to: Path, change: Callable[[dict[str, Any], bytearray], Any]) -> str:
    """A copy of a recording with another index, or other arrays."""
    content = (FOLDER / f"{name}.gradrun").read_bytes()
    magic, version, zero, packed, _, _ = struct.unpack("<8sIIQQQ", content[:40])
    index = json.loads(zlib.decompress(content[40 : 40 + packed]))
    arrays = bytearray(content[-(-(40 + packed) // 64) * 64 :])
    change(index, arrays)
    text = json.dumps(index).encode()
    squeezed = zlib.compress(text)
    start = -(-(40 + len(squeezed)) // 64) * 64
    head = struct.pack(
        "<8sIIQQQ", magic, version, zero, len(squeezed), len(text), start + len(arrays)
    )
    path = to / "changed.gradrun"
    path.write_bytes((head + squeezed).ljust(start, b"\0") + arrays)
    return str(path)


def test_the_first_operation_that_differs_is_named(gradcli: CommandLine, tmp_path: Path) -> None:
    def other(index: dict[str, Any], arrays: bytearray) -> None:
        index["program"] = index["program"].replace("F.relu(", "F.gelu(")

    path = changed("mlp", tmp_path, other)
    shown = gradcli("why", "net.fc1.weight.grad", "--file", path, "--strict")
    assert "warning[W027]: operation 2 of 5 differs from the run: h has " in shown.err
    assert "mlp.py:17 in forward (" in shown.err
    assert shown.code == 1


@pytest.mark.parametrize(
    ("text", "other", "said"),
    [
        ("loss.backward()", "loss.backward(torch.tensor(2.0))", "the backward pass"),
        ("lr=0.01", "lr=9.0", "the optimizer's step"),
    ],
)
def test_what_differs_behind_the_operations_is_named(
    gradcli: CommandLine, tmp_path: Path, text: str, other: str, said: str
) -> None:
    def change(index: dict[str, Any], arrays: bytearray) -> None:
        assert text in index["program"]
        index["program"] = index["program"].replace(text, other)

    shown = gradcli("run", changed("mlp", tmp_path, change))
    assert f"warning[W027]: {said} differs from the run: " in shown.err


def test_the_step_of_an_optimizer_is_no_operation(gradcli: CommandLine) -> None:
    for words in (["run"], ["why", "net.fc1.weight"], ["blame"]):
        assert "note: 5 operations, " in gradcli(*words, recording("mlp")).err


def test_digests() -> None:
    import numpy as np

    x = np.random.default_rng(0).standard_normal((50, 40)).astype(np.float32)
    assert len(digest(x)) == 64
    assert difference(digest(x), digest(x), x.size) == (0.0, 0)
    y = x.copy()
    y[17, 23] += 1.0  # no sample: a sum of a block shows it
    assert difference(digest(y), digest(x), x.size)[0] > 1e-3
    x[3, 3] = y[3, 3] = np.nan
    y[17, 23] = x[17, 23]
    assert difference(digest(y), digest(x), x.size) == (0.0, 0)


# --- damaged and hostile --------------------------------------------------------------------------


def test_cut_off_anywhere(gradcli: CommandLine, tmp_path: Path) -> None:
    content = (FOLDER / "opaque.gradrun").read_bytes()
    path = tmp_path / "cut.gradrun"
    for size in [*range(0, 64, 7), *range(64, len(content), 211), len(content) - 1]:
        path.write_bytes(content[:size])
        shown = gradcli("run", str(path))
        assert shown.code == 4, (size, shown.err)
        assert "error[E504]" in shown.err


def test_any_byte_of_the_index_may_be_damaged(gradcli: CommandLine, tmp_path: Path) -> None:
    content = (FOLDER / "opaque.gradrun").read_bytes()
    path = tmp_path / "damaged.gradrun"
    packed = struct.unpack("<Q", content[16:24])[0]
    for at in range(0, 40 + packed, 53):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        shown = gradcli("run", str(path))
        assert shown.code in (0, 3, 4), (at, shown.err)
        assert "E901" not in shown.err


def _row(index: dict[str, Any], name: str) -> Any:
    return next(row for row in index["arrays"] if row[0] == name)


HOSTILE: dict[str, Callable[[dict[str, Any], bytearray], Any]] = {
    "an array beyond the file": lambda i, a: _row(i, "x").__setitem__(3, 1 << 40),
    "an array of another size": lambda i, a: _row(i, "x").__setitem__(2, [1 << 20, 1 << 20]),
    "a negative size": lambda i, a: _row(i, "x").__setitem__(2, [-1, 4]),
    "a size that is a text": lambda i, a: _row(i, "x").__setitem__(2, ["6", "4"]),
    "an offset that is not aligned": lambda i, a: _row(i, "x").__setitem__(3, 3),
    "a foreign dtype": lambda i, a: _row(i, "x").__setitem__(1, "object"),
    "a dimension too many": lambda i, a: _row(i, "x").__setitem__(2, [1] * 100),
    "a check outside of its array": lambda i, a: i["checks"][0].__setitem__(5, 1 << 30),
    "a check of another size": lambda i, a: i["checks"][0].__setitem__(6, 5),
    "a line without a place": lambda i, a: i["lines"].pop(),
    "a place that is not there": lambda i, a: i["lines"].__setitem__(0, [99, -1]),
    "a call inside itself": lambda i, a: i["calls"].__setitem__(0, ["lin", 0]),
    "no program": lambda i, a: i.pop("program"),
    "a program that is a list": lambda i, a: i.__setitem__("program", ["x = 1"]),
    "an index that is nested": lambda i, a: i.__setitem__("notes", [[[[[[[[]]]]]]]]),
    "an opaque operation that is missing": lambda i, a: i["opaque"].clear(),
    "no gradients of an opaque operation": lambda i, a: i["opaque"][0].__setitem__("passes", []),
    "a result that is missing": lambda i, a: i["opaque"][0]["results"].__setitem__(0, ["q", True]),
    "an array that is missing": lambda i, a: i["arrays"].remove(_row(i, "x")),
    "two arrays of one name": lambda i, a: i["arrays"].append(["x", "float32", [1], 0]),
    "two arrays at one place": lambda i, a: _row(i, "x").__setitem__(3, 0),
    "an array that begins in another one": lambda i, a: _row(i, "x").__setitem__(2, [1000]),
    "more parts than are read": lambda i, a: i.__setitem__("notes", [{}] * 4_000_001),
}


def _written(to: Path, text: bytes, squeezed: bytes | None = None, size: int | None = None) -> str:
    """A recording of a text as its index, which may be squeezed, and said to be, otherwise."""
    squeezed = zlib.compress(text) if squeezed is None else squeezed
    head = struct.pack(
        "<8sIIQQQ", MAGIC, VERSION, 0, len(squeezed), len(text) if size is None else size,
        40 + len(squeezed),
    )  # fmt: skip
    path = to / "written.gradrun"
    path.write_bytes(head + squeezed)
    return str(path)


@cache
def _bomb() -> bytes:
    """Less than a megabyte that becomes 500."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1_000_000)) for _ in range(500)) + packer.flush()


@pytest.mark.parametrize("size", sampled([100, 63_000_000, 64_000_001, 500_000_000, 1 << 63], 2))
def test_what_becomes_more_than_it_says_is_not_unpacked(
    gradcli: CommandLine, tmp_path: Path, size: int
) -> None:
    path = _written(tmp_path, b"", _bomb(), size)
    tracemalloc.start()
    shown = gradcli("run", path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (shown.code, "error[E504]" in shown.err) == (4, True), shown.err
    assert peak < 150_000_000


def test_two_parts_of_an_index_have_no_common_name(gradcli: CommandLine, tmp_path: Path) -> None:
    content = (FOLDER / "opaque.gradrun").read_bytes()
    packed = struct.unpack("<Q", content[16:24])[0]
    text = zlib.decompress(content[40 : 40 + packed])
    shown = gradcli("run", _written(tmp_path, text[:-1] + b',"program":"x = 1"}'))
    assert (shown.code, "two parts of it have the same name" in shown.err) == (4, True)


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(gradcli: CommandLine, tmp_path: Path, case: str) -> None:
    shown = gradcli("run", changed("opaque", tmp_path, HOSTILE[case]))
    assert shown.code in (3, 4), shown.err
    assert "E901" not in shown.err


_ANYTHING: list[Any] = [
    *(None, True, -1, 1 << 70, 1.5, "", "\x1b[31m\n", "../../etc/passwd", "\ud800", "a" * 5000),
    *(
        [],
        {},
        [[]],
        {"a": 1},
        [-5],
        [1 << 40] * 3,
        float("nan"),
        "torch.zeros(1 << 40)",
        "opaque(9)",
    ),
]

_QUESTIONS = (
    *(["run"], ["run", "--json"], ["run", "--format", "svg"], ["run", "--format", "html"]),
    *(["blame"], ["explain", "--flow"], ["explain", "--saved"], ["explain", "--ir"], ["check"]),
    *(["explain"], ["derive"], ["info"]),
)


def _spoil(random: Random, index: dict[str, Any]) -> None:
    """Put anything in the place of something in an index, or leave it out."""
    holder: Any = index
    key: Any = random.choice([each for each in index if index[each]])
    while isinstance(holder[key], (list, dict)) and holder[key] and random.random() < 0.85:
        holder = holder[key]
        key = (
            random.choice(list(holder))
            if isinstance(holder, dict)
            else random.randrange(len(holder))
        )
    if isinstance(holder[key], str) and random.random() < 0.5:
        at = random.randrange(len(holder[key]) + 1)
        text = random.choice([each for each in _ANYTHING if isinstance(each, str)])
        holder[key] = holder[key][:at] + text + holder[key][at + random.randrange(3) :]
    elif random.random() < 0.8:
        holder[key] = random.choice(_ANYTHING)
    else:
        del holder[key]


@pytest.mark.parametrize("seed", sampled(range(24), every=6))
def test_an_index_may_hold_anything(gradcli: CommandLine, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    for name in NAMES:
        path = changed(name, tmp_path, lambda index, arrays: _spoil(random, index))
        for words in random.sample(_QUESTIONS, 2):
            shown = gradcli(*words, path)
            assert shown.code in (0, 1, 2, 3, 4, 5), (words, shown.err)
            assert "E901" not in shown.err
            assert "\x1b" not in shown.out + shown.err, words


PROGRAMS = [
    "import os",
    "print('hello')",
    "x = open('/etc/passwd').read()",
    "x = torch.load('/etc/passwd')",
    "torch.save(1, 'written.pt')",
    "save(1, 'written.npy')",
    "torch.serialization.save(1, 'written.pt')",
    "while True: pass",
    "f = lambda: 1",
    "x = [y for y in torch.ones(3)]",
    "def f(): pass",
    "recorded = torch.ones",
    "x = f'{torch}'",
    "x = torch.__class__",
    "class A(nn.Module):\n    def forward(self): pass",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_no_recorder_writes(
    gradcli: CommandLine, here: Path, tmp_path: Path, program: str
) -> None:
    def other(index: dict[str, Any], arrays: bytearray) -> None:
        index["program"] = f"{program}\n"
        index["lines"] = [[-1, -1]] * index["program"].count("\n")
        index["checks"] = []

    shown = gradcli("run", changed("opaque", tmp_path, other))
    assert shown.code == 4
    assert "error[E504]: no recorder writes such a statement" in shown.err
    assert shown.out == ""
    assert [path.name for path in Path(here).iterdir() if path.suffix != ".gradrun"] == []


def test_a_huge_index_is_not_unpacked(gradcli: CommandLine, tmp_path: Path) -> None:
    squeezed = zlib.compress(b" " * 100_000_000)
    for said in (100_000_000, 1000):
        head = struct.pack(
            "<8sIIQQQ", b"\x89GRUN\r\n\x1a", 1, 0, len(squeezed), said, 40 + len(squeezed)
        )
        path = tmp_path / "huge.gradrun"
        path.write_bytes(head + squeezed)
        shown = gradcli("run", str(path))
        assert shown.code == 4
        assert "error[E504]" in shown.err


def test_arrays_are_nobody_elses(fresh_state: Any) -> None:
    found = Recording(recording("opaque"))
    first = found.array("x")
    first[:] = 0
    assert found.array("x").any()


def test_record_is_refused_in_the_sandbox(gradcli: CommandLine) -> None:
    shown = gradcli("record", "--sandbox", "train.py")
    assert shown.code == 5
    assert "E606" in shown.err


def test_record_needs_a_script(gradcli: CommandLine) -> None:
    assert gradcli("record").code == 2
    assert "none of backward:N" in gradcli("record", "--at", "dawn", __file__).err
    assert gradcli("record", "-o", "x.txt", "train.py").code == 2


def test_the_recorder_knows_what_gradcli_has() -> None:
    known = set(known_functions())
    assert {"F.relu", "torch.einsum", ".add_", "torch.linalg.norm", "nn.init.normal_"} <= known


def test_the_replay_compares_nothing_in_another_dtype(fresh_state: Any) -> None:
    from gradcli.session import Session

    assert not Replay(Recording(recording("mlp")), Session(), "float64", list).compares


# --- under PyTorch --------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_recorded_again(gradcli: CommandLine, python: str, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / f"{name}.gradrun")
    made = process("record", "--python", python, "-o", path, str(FOLDER / f"{name}.py"))
    assert made.code == 0, made.err
    assert os.stat(path).st_mode & 0o777 == 0o600
    shown = gradcli("run", "--strict", path)
    assert shown.code == 0, shown.err
    again, before = Recording(path).program, Recording(recording(name)).program
    default = ", allow_unused=False"  # which PyTorch 2.0 does not hand on
    assert again.replace(default, "") == before.replace(default, "")


@pytest.mark.torch
def test_a_script_is_what_it_is_under_python(python: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside\n"
        "import torch\n"
        "print(sys.argv[1:], __name__, __file__, beside.x, sys.modules['__main__'].__file__)\n"
        "print((torch.ones(2, requires_grad=True) * 2).sum().backward())\n"
        "if len(sys.argv) > 3: sys.exit(int(sys.argv[3]))\n"
        "def f(): raise ValueError('no')\n"
        "f()\n"
    )
    (tmp_path / "beside.py").write_text("x = 5\n")
    for words in (["--trace", "-o"], ["a", "b", "7"]):
        plain = subprocess.run(
            [python, str(script), *words], capture_output=True, text=True, check=False
        )
        made = process(
            "record", "--python", python, "-o", str(tmp_path / "x.gradrun"), str(script), *words
        )
        assert (made.code, made.out) == (plain.returncode, plain.stdout)
        said = [line for line in made.err.splitlines() if "gradrun" not in line]
        assert said == plain.stderr.splitlines()
    assert Recording(str(tmp_path / "x.gradrun")).output == "sum_1"


@pytest.mark.torch
@pytest.mark.parametrize("words", [[], ["--watch"]])
def test_warnings_and_tracebacks_are_those_of_the_script(
    python: str, tmp_path: Path, words: list[str]
) -> None:
    script, path = str(FOLDER / "warned.py"), str(tmp_path / "x.gradrun")
    for ending in ([], ["in softmax"]):
        plain = subprocess.run(
            [python, script, *ending], capture_output=True, text=True, check=False
        )
        made = process("record", *words, "--python", python, "-o", path, script, *ending)
        assert (made.code, made.out) == (plain.returncode, plain.stdout)
        said = [line for line in made.err.splitlines() if "gradrun" not in line]
        assert said == plain.stderr.splitlines()
        assert plain.stderr.count("Warning: ") > 50
        assert plain.stderr.count("Traceback ") > 10
        assert "; wrote " in made.err if words else "record: wrote " in made.err


@pytest.mark.torch
def test_record_and_ask_in_one(python: str, here: Path) -> None:
    shutil.copy(FOLDER / "row.py", "row.py")
    shown = process("blame", "--torch", "--python", python, "row.py")
    assert shown.code == 1, shown.err
    assert "at element [1, 2, 0]" in shown.out
    assert "wrote " in shown.err
    shown = process("blame", "--torch", "--python", python, "row.py", "--sandbox")
    assert shown.code == 2
    assert "--sandbox forbids that" in shown.err


@pytest.mark.torch
@pytest.mark.parametrize("moment", ["step:1", "step:3", "backward:2"])
def test_a_moment(gradcli: CommandLine, python: str, tmp_path: Path, moment: str) -> None:
    path = str(tmp_path / "x.gradrun")
    made = process("record", "--python", python, "-o", path, "--at", moment, str(FOLDER / "mlp.py"))
    assert made.code == 0
    shown = gradcli("run", "--strict", path)
    assert shown.code == 0, shown.err
    assert ("the optimizer's step to" in shown.err) == moment.startswith("step")
    missing = process(
        "record", "--python", python, "-o", path, "--at", "step:9", str(FOLDER / "mlp.py")
    )
    assert "nothing was recorded: there was no step 9" in missing.err


@pytest.mark.torch
def test_without_data(gradcli: CommandLine, python: str, tmp_path: Path) -> None:
    path = str(tmp_path / "x.gradrun")
    process("record", "--python", python, "-o", path, "--no-data", str(FOLDER / "mlp.py"), "secret")
    assert b"secret" not in zlib.decompress(Path(path).read_bytes()[40:], bufsize=1 << 16)
    out = gradcli("info", path).out
    assert "arrays              left out" in out
    for words in (["run"], ["blame"], ["explain"], ["explain", "--flow"], ["derive"], ["check"]):
        shown = gradcli(*words, path)
        assert shown.code == 4, words
        assert "were left out when it was recorded" in shown.err
    shown = gradcli("why", "net.fc1.weight.grad", path)
    assert "= a tensor of shape (8, 4), whose numbers were left out" in shown.out
    assert "h  ReluBackward0" in shown.out
    shown = gradcli("why", "net.unused.weight", path)
    assert "no forward() that ran has called it" in shown.out
    assert "saved for the backward pass" in gradcli("explain", "--saved", path).out
    shown = gradcli("run", path, "--format", "mermaid")
    assert "ReluBackward0<br/>(16, 8)" in shown.out
    assert "norm" not in shown.out
    picture = tmp_path / "x.svg"
    assert not gradcli("run", path, "-o", str(picture)).out
    assert "ReluBackward0" in picture.read_text()


_SECRETS = """\
import torch
from torch import nn
import torch.nn.functional as F
w = torch.ones(2, 2, requires_grad=True)
scale = torch.tensor(1234.5678).item()
loss = F.gelu(w * scale, approximate="tanh").clone(memory_format=torch.preserve_format)
loss = torch.einsum("ij,ij->", loss, loss) * (scale * 3 - 1)
loss.backward()
"""


@pytest.mark.torch
def test_numbers_and_texts_are_left_out(gradcli: CommandLine, python: str, tmp_path: Path) -> None:
    script, path = tmp_path / "sealed.py", str(tmp_path / "x.gradrun")
    script.write_text(_SECRETS)
    process("record", "--python", python, "-o", path, "--no-data", str(script))
    content = Recording(path)
    for secret in ("1234", "3702"):  # the number, and one that was computed of it
        assert secret not in content.program + str(content.numbers)
    assert content.program.count("recorded_number(math.nan, scale)") == 2
    assert "w * recorded_number(math.nan, scale)" in content.program
    assert "'tanh'" in content.program
    shown = gradcli("why", "w.grad", path)
    assert "the gradient flows from loss to w" in shown.out, shown.err


_BLOCK = """\
import torch, gradcli
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
x = torch.randn(5, 3)
with gradcli.torch.record(model) as run:
    loss = model(x).square().mean()
    loss.backward()
assert "the gradient flows from loss to model.0.weight" in str(run.why("model.0.weight.grad"))
assert run.blame().passed and run.check().passed
assert "model.2.weight" in str(run.flow())
assert run._repr_html_().startswith("<svg")
run.save("step.gradrun")
assert gradcli.torch.open("step.gradrun").why("x.grad")
print(torch.ones(2) + 1)
"""


@pytest.mark.torch
def test_a_block_of_a_program(python: str, here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent.parent)}
    extra = os.environ.get("GRADCLI_TORCH_PACKAGES")
    if extra:
        environment["PYTHONPATH"] += os.pathsep + extra
    packages = [python, "-c", "import gradcli, lark, click, numpy"]
    if subprocess.run(packages, env=environment, capture_output=True, check=False).returncode:
        pytest.skip("gradcli's packages are not beside PyTorch")
    shown = subprocess.run(
        [python, "-c", _BLOCK], env=environment, capture_output=True, text=True, check=False
    )
    assert (shown.returncode, shown.stdout) == (0, "tensor([2., 2.])\n"), shown.stderr


_THREADS = """\
import sys, threading, traceback
import torch
from torch import nn
def train(seed):
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(4):
        loss = net(torch.full((2, 4), float(seed))).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        met.wait()
class Training(threading.Thread):
    def run(self):
        train(3)
met = threading.Barrier(4)
threads = [threading.Thread(target=train, args=(seed,)) for seed in range(3)] + [Training()]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(set(vars(threads[0])) - set(vars(threading.Thread()))))
threading.excepthook = lambda args: traceback.print_tb(args.exc_traceback, file=sys.stdout)
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
"""


@pytest.mark.torch
def test_threads_that_train(gradcli: CommandLine, python: str, tmp_path: Path) -> None:
    script, path = tmp_path / "threads.py", str(tmp_path / "x.gradrun")
    script.write_text(_THREADS)
    plain = subprocess.run([python, str(script)], capture_output=True, text=True, check=False)
    made = process("record", "--python", python, "-o", path, str(script))
    assert (made.code, made.out) == (plain.returncode, plain.stdout), made.err
    shown = gradcli("run", "--strict", path)
    assert shown.code == 0, shown.err
    assert " operations, equal to " in shown.err
    assert "what other threads trained is not in the recording" in shown.err
    assert "net[0].weight" in Recording(path).program
    made = process("record", "--watch", "--python", python, "-o", path, str(script))
    assert "there was no backward pass in the main thread" in made.err


UNHEARD = {
    "numpy": (
        "x = torch.ones(2, 2)\nw = torch.ones(2, 2, requires_grad=True)\ny = x @ w\n"
        "x.numpy()[0, 0] = 5.0\nloss = (y + x @ w).sum()\nloss.backward()\n",
        "x was written to by something that was not recorded",
    ),
    "a hook": (
        "w = torch.ones(2, requires_grad=True)\ny = w * 2\ny.register_hook(lambda g: g * 3)\n"
        "loss = y.sum()\nloss.backward()\n",
        "what the hook of y returned is read from the recording",
    ),
    "a transform": (
        "from torch.func import grad, vmap\nw = torch.ones(2, requires_grad=True)\n"
        "g = vmap(grad(lambda x: (x * x).sum()))(torch.ones(3, 2))\nloss = (w * g).sum()\n"
        "loss.backward()\n",
        "1 read from the recording: torch.func.vmap",
    ),
    "an item": (
        "w = torch.ones(2, requires_grad=True)\nm = w.sum()\nloss = (w * m.item()).sum()\n"
        "loss.backward()\n",
        " operations, equal to ",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("case", UNHEARD)
def test_what_a_function_mode_cannot_see(
    gradcli: CommandLine, python: str, tmp_path: Path, case: str
) -> None:
    text, said = UNHEARD[case]
    script, path = tmp_path / "script.py", str(tmp_path / "x.gradrun")
    script.write_text(f"import torch\n{text}")
    assert process("record", "--python", python, "-o", path, str(script)).code == 0
    assert said in gradcli("run", path).err
    if case == "an item":
        shown = gradcli("run", path, "w=[2.,3.]")
        assert "as in the run stay the number 2.0, m.item()" in shown.err
