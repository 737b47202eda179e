"""`gradcli mcp`, driven by the client of the official SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli.doors.bounded import Shortened, cut, slices_of
from tests.command_line import ROOT, CommandLine, start
from tests.machine import PATIENCE

mcp = pytest.importorskip("mcp")

from gradcli.doors.agents.server import MOST_ASKED, refusal, without_halves  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


def conversation(talk: Callable[[Any], Awaitable[Any]], *words: str) -> Any:
    """What a talk with a server of its own gives."""

    async def talked() -> Any:
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "gradcli", "mcp", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        async with mcp.Client(server) as client:
            return await asyncio.wait_for(talk(client), PATIENCE)

    return asyncio.run(talked())


CALLS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("run", {"program": "e = (a + b) * d", "inputs": {"a": 2, "b": 3, "d": 4}},
     ["e = (a + b) * d", "a=2", "b=3", "d=4"]),
    ("explain", {"program": "y = (x * x).sum()", "inputs": {"x": [1, 2]}},
     ["explain", "y = (x * x).sum()", "x=[1,2]"]),
    ("derive", {"program": "y = tanh(x)", "inputs": {"x": 1}}, ["derive", "y = tanh(x)", "x=1"]),
    ("why", {"question": "x.grad", "program": "y = (x.detach() * w).sum()",
             "inputs": {"x": [1, 2], "w": [3, 4]}},
     ["why", "x.grad", "y = (x.detach() * w).sum()", "x=[1,2]", "w=[3,4]"]),
    ("blame", {"program": "y = x / 0", "inputs": {"x": 0}}, ["blame", "y = x / 0", "x=0"]),
    ("check", {"program": "y = x * x", "inputs": {"x": 3}, "equals": {"x": "x"}},
     ["check", "y = x * x", "x=3", "--equals", "x=x"]),
]  # fmt: skip

FAILURES: list[tuple[dict[str, Any], str]] = [
    ({"program": "y = x @"}, "error[E001]"),
    ({"program": "y = load('x.npy')"}, "error[E606]"),
    ({"program": "x * 2", "inputs": {"x": "@/etc/passwd"}}, "error[E606]"),
    ({"program": "while True: pass"}, "error[E607]"),
    ({"program": "x = [zeros(10**6) for i in range(1000)]"}, "error[E602]"),
    ({"program": "x * x", "inputs": {"x y": 1}}, "no NAME"),
    ({"program": "x * x", "inputs": {"x": 2}, "of": "z"}, "the program has no `z`"),
]


def test_a_whole_exchange(gradcli: CommandLine) -> None:
    async def talk(client: Any) -> Any:
        tools = (await client.list_tools()).tools
        answers = [await client.call_tool(name, given) for name, given, _ in CALLS]
        failures = [await client.call_tool("run", given) for given, _ in FAILURES]
        return tools, answers, failures, client.server_info

    limits = ("--timeout", "2", "--max-memory", "200MB")
    tools, answers, failures, server = conversation(talk, *limits)
    assert server.name == "gradcli"
    assert [tool.name for tool in tools] == [name for name, _, _ in CALLS]
    assert all(tool.description for tool in tools)
    for answer, (name, _, words) in zip(answers, CALLS, strict=True):
        assert not answer.is_error, name
        text, data = answer.content[0].text, answer.structured_content
        if name == "run":
            assert data == json.loads(gradcli(*words, "--json").out)
            assert "a.grad = tensor(4.)" in text
        else:
            shown = gradcli(*words)
            assert (text, data.pop("passed")) == (shown.out, shown.code == 0)
            assert data == json.loads(gradcli(*words, "--json").out)
    for answer, (given, part) in zip(failures, FAILURES, strict=True):
        assert answer.is_error, given
        assert part in answer.content[0].text
        assert "Traceback" not in answer.content[0].text


SLEEPING = {"program": "import time\ntime.sleep(60)"}
"""A call that is at work, and takes the processor from nobody."""


def _below(parent: int) -> list[int]:
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found += [int(name), *_below(int(name))]
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="/proc tells of processes")
def test_a_call_that_is_taken_back_leaves_no_process() -> None:
    async def talk(client: Any) -> Any:
        before = set(_below(os.getpid()))
        with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(client.call_tool("run", SLEEPING), 1.5)
        end = time.monotonic() + PATIENCE
        while set(_below(os.getpid())) - before and time.monotonic() < end:
            await asyncio.sleep(0.05)
        return set(_below(os.getpid())) - before

    assert conversation(talk, "--timeout", "60") == set()


def test_tools_of_one_client_run_at_once() -> None:
    async def talk(client: Any) -> Any:
        began = time.monotonic()
        slow = [asyncio.ensure_future(client.call_tool("run", SLEEPING)) for _ in range(4)]
        quick = await client.call_tool("run", {"program": "1 + 1"})
        return quick.is_error, [each.done() for each in slow], began, await asyncio.gather(*slow)

    failed, done, _, slow = conversation(talk, "--timeout", "5")
    assert (failed, done) == (False, [False] * 4)
    assert all("E607" in each.content[0].text for each in slow)


# --- bounds -------------------------------------------------------------------------------------

LARGE: list[tuple[str, str, dict[str, Any]]] = [
    ("a tensor", "run",
     {"program": "x = arange(250000.).reshape(500, 500).requires_grad_()\n(x * x).sum()"}),
    ("a chain", "run",
     {"program": "x = tensor(1., requires_grad=True)\nfor i in range(3000): x = x * 1.1\nx"}),
    ("printed", "run", {"program": "for i in range(9000): print('line', i)\n1"}),
    ("printed whole", "run", {"program": "print('x' * 10**6)"}),
    ("many names", "run",
     {"program": "y = sum([randn(3, requires_grad=True).sum() for i in range(2000)])"}),
    ("an error's text", "run", {"program": "raise ValueError('é' * 10**5)"}),
    ("a long program", "run",
     {"program": "y = " + " + ".join(["x * x"] * 400), "inputs": {"x": 1.5}}),
    ("steps", "explain",
     {"program": "x = randn(300, requires_grad=True)\nfor i in range(200): x = x.sin()\nx.sum()"}),
]  # fmt: skip


def test_answers_are_bounded() -> None:
    async def talk(client: Any) -> Any:
        return [await client.call_tool(tool, given) for _, tool, given in LARGE]

    for answer, (name, _, _) in zip(conversation(talk), LARGE, strict=True):
        text = answer.content[0].text
        assert len(text.encode()) <= 20_000, name
        data = json.dumps(answer.structured_content, ensure_ascii=False)
        assert len(data.encode()) <= 20_000, name
        assert "left out" in text or answer.structured_content["left_out"], name


def test_a_large_array_is_its_figures_and_a_slice() -> None:
    async def talk(client: Any) -> Any:
        given = {"program": LARGE[0][2]["program"], "elements": "0, 1:3"}
        return [
            await client.call_tool("run", given),
            await client.call_tool("run", {**given, "elements": "0, 1, 2"}),
            await client.call_tool("run", {**given, "elements": "a"}),
        ]

    answer, deeper, wrong = conversation(talk)
    (gradient,) = answer.structured_content["gradients"]
    assert gradient["value"] == {
        "shape": [500, 500],
        "min": 0.0,
        "max": 499998.0,
        "norm": pytest.approx(1.4433e8, rel=1e-3),
        "elements": [2.0, 4.0],
    }
    assert "gradients[0].value: 250,000 numbers" in answer.structured_content["left_out"]
    assert "too many indices" in deeper.structured_content["gradients"][0]["value"]["elements"]
    assert wrong.is_error
    assert "elements is a slice such as '0:3, 5'" in wrong.content[0].text


VALUES: list[tuple[Any, Any]] = [
    ([1, 2, 3], [1, 2, 3]),
    ([[1.0, "NaN"], ["Infinity", -4]],
     {"shape": [2, 2], "min": -4.0, "max": 1.0, "norm": 17**0.5, "not_finite": 2,
      "elements": [1.0, "NaN"]}),
    ([{"real": 3, "imag": 4}] * 4,
     {"shape": [4], "min": 5.0, "max": 5.0, "norm": 10.0, "elements": {"real": 3.0, "imag": 4.0}}),
    ([1e200] * 4, {"shape": [4], "min": 1e200, "max": 1e200, "norm": 2e200, "elements": 1e200}),
    ([[1, 2], [3]], [[1, 2], [3]]),
    ([], []),
    ([{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}], [{"a": 1}, {"a": 4}]),
    ("\ud800", "\\ud800"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "left"), VALUES)
def test_what_is_left_of_a_value(value: Any, left: Any) -> None:
    shortened = Shortened(3, slices_of("0"))
    assert shortened.value("v", value) == left
    assert bool(shortened.left_out) == (left != value and value != "\ud800")


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("0:3, 5", (slice(0, 3), 5)),
        ("[-1, ::2]", (-1, slice(None, None, 2))),
        (":", (slice(None),)),
    ],
)
def test_slices(text: str, index: Any) -> None:
    assert slices_of(text) == index


@pytest.mark.parametrize("text", ["", "a", "0,,1", "1:2:3:4", "1.5", "None"])
def test_no_slices(text: str) -> None:
    with pytest.raises(ValueError, match="elements is a slice"):
        slices_of(text)


def test_a_text_is_cut_in_its_middle() -> None:
    assert cut("short", 10) == "short"
    found = cut("ü" * 3000 + "ende", 1000)
    assert len(found.encode()) <= 1000
    assert "bytes and more are left out here" in found
    assert (found[0], found[-4:]) == ("ü", "ende")


# --- arguments ----------------------------------------------------------------------------------

ARGUMENTS: list[tuple[str, dict[str, Any], str, bool]] = [
    ("run", {"program": "x * 2", "inputs": {"x": [1, 2]}, "seed": [1, 10]},
     "x.grad = tensor([ 2., 20.])", False),
    ("run", {"program": "x * 2", "inputs": {"x": [1, 2]}},
     "help: give the gradient to start from: seed='ones(2)'", True),
    ("run", {"program": "print(zeros(1).dtype)", "dtype": "float64"}, "torch.float64", False),
    ("run", {"program": "while True: pass", "timeout": 0.5}, "E607", True),
    ("run", {"program": "while True: pass", "timeout": 0.5}, "`timeout=5` gives it more time",
     True),
    ("run", {"program": "while True: pass", "max_steps": 100},
     "`max_steps=1000` raises the limit", True),
    ("run", {"program": "zeros(10**9)"}, "`gradcli mcp --max-elements ", True),
    ("blame", {"program": "1", "timeout": 99}, "timeout is at most 10 here", True),
    ("why",
     {"question": "x.grad", "program": "y = x * x\nz = x + 1", "inputs": {"x": 1},
             "of": "y"}, "from y to x", False),
    ("run", {"program": "y = timeout * sandbox", "inputs": {"timeout": 2, "sandbox": 3}},
     "timeout.grad = tensor(3.)", False),
    ("run", {"program": "print(chr(0xd800)); 1"}, "\\ud800", False),
    ("run", {"program": "raise ValueError(chr(0xd800))"}, "\\ud800", True),
    ("run", {"program": "1", "inputs": {"x": "y" * 9_000_000}}, "more than 4,000,000 bytes", True),
    ("run", {"program": "row.gradrun"}, "`gradcli mcp --recordings DIR`", True),
]  # fmt: skip


def test_settings_are_arguments_and_helps_name_them() -> None:
    async def talk(client: Any) -> Any:
        tools = (await client.list_tools()).tools
        return tools, [await client.call_tool(tool, given) for tool, given, _, _ in ARGUMENTS]

    tools, answers = conversation(talk)
    for tool in tools:
        taken = set(tool.input_schema["properties"])
        assert taken >= {"program", "inputs", "of", "seed", "dtype", "timeout", "max_steps"}
        assert set(tool.input_schema["required"]) <= {"program", "question"}
    for answer, (_, given, part, fails) in zip(answers, ARGUMENTS, strict=True):
        assert part in answer.content[0].text, given
        assert answer.is_error == fails, given


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        ('{"a": "\\ud800"}', '{"a": "\ufffd"}'),
        ('{"a": "\\udc00-\\ud83d\\ude00"}', '{"a": "\ufffd-\U0001f600"}'),
        ('{"a": "\\\\ud800"}', '{"a": "\\\\ud800"}'),
        ('{"a": "é"}', '{"a": "é"}'),
        ("no JSON: \\ud800", "no JSON: \\ud800"),
    ],
)
def test_halves_of_surrogate_pairs_are_replaced(sent: str, received: str) -> None:
    assert without_halves(sent.encode() + b"\n").decode() == received + "\n"


def test_a_request_with_half_of_a_surrogate_pair_is_answered() -> None:
    hello = {"protocolVersion": "2025-03-26", "capabilities": {},
             "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
    call = {"name": "run", "arguments": {"program": "print('\ud800')"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with start("mcp", stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for message in messages:
            running.stdin.write(json.dumps(message).encode() + b"\n")
        running.stdin.flush()
        answers = [json.loads(running.stdout.readline()) for _ in range(2)]
        running.stdin.close()
        assert running.wait(PATIENCE) == 0
    assert answers[1]["result"]["content"][0]["text"].startswith("\ufffd")


def test_recordings_are_those_of_a_folder(tmp_path: Path) -> None:
    recorded = ROOT / "tests" / "recordings" / "row.gradrun"
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "own.gradrun").write_bytes(recorded.read_bytes())
    (folder / "away.gradrun").symlink_to(recorded)
    (tmp_path / "beside.gradrun").write_bytes(recorded.read_bytes())
    (tmp_path / "link").symlink_to(folder)

    async def talk(client: Any) -> Any:
        names = ["own.gradrun", "away.gradrun", "../beside.gradrun", str(recorded), "no.gradrun"]
        asked = [await client.call_tool("explain", {"program": name}) for name in names]
        return client.instructions, asked

    instructions, (own, *others) = conversation(talk, "--recordings", str(tmp_path / "link"))
    assert "there are away.gradrun, own.gradrun" in instructions
    assert not own.is_error
    assert "Backward0" in own.content[0].text
    for answer in others:
        assert answer.is_error
        assert "there is no recording" in answer.content[0].text


@pytest.mark.parametrize(
    ("start", "end", "number"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"x": [1', b"1]}}", b"7"),
        (b'{"id":"a\\"b","params":{', b"1]}}\n", b'"a\\"b"'),
        (
            b'{"method":"tools/call","params":{"id":3,"x":[',
            b'1]},"jsonrpc":"2.0","id":-4}\n',
            b"-4",
        ),
        (b'{"params":{"x":[1,', b'2],"id":5}}\n', None),
        (b"[" * 9, b"[" * 9, None),
    ],
)
def test_a_message_that_is_too_long_is_refused_by_its_number(
    start: bytes, end: bytes, number: bytes | None
) -> None:
    """Its rest is thrown away as it arrives."""
    found = refusal(start, end)
    assert (found == b"") == (number is None)
    assert number is None or json.loads(found)["id"] == json.loads(number)
    assert len(start) < MOST_ASKED
