"""`gradcli mcp`, driven by the client of the official SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT, process
from tests.machine import PATIENCE

mcp = pytest.importorskip("mcp")

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


def test_a_whole_exchange() -> None:
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
            assert data == json.loads(process(*words, "--json").out)
            assert "a.grad = tensor(4.)" in text
        else:
            shown = process(*words)
            assert (text, data.pop("passed")) == (shown.out, shown.code == 0)
            assert data == json.loads(process(*words, "--json").out)
    for answer, (given, part) in zip(failures, FAILURES, strict=True):
        assert answer.is_error, given
        assert part in answer.content[0].text
        assert "Traceback" not in answer.content[0].text


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
            await asyncio.wait_for(client.call_tool("run", {"program": "while True: pass"}), 1.5)
        end = time.monotonic() + PATIENCE
        while set(_below(os.getpid())) - before and time.monotonic() < end:
            await asyncio.sleep(0.05)
        return set(_below(os.getpid())) - before

    assert conversation(talk, "--timeout", "60") == set()


def test_tools_of_one_client_run_at_once() -> None:
    async def talk(client: Any) -> Any:
        given = {"program": "while True: pass"}
        began = time.monotonic()
        slow = [asyncio.ensure_future(client.call_tool("run", given)) for _ in range(4)]
        quick = await client.call_tool("run", {"program": "1 + 1"})
        return quick.is_error, [each.done() for each in slow], began, await asyncio.gather(*slow)

    failed, done, _, slow = conversation(talk, "--timeout", "5")
    assert (failed, done) == (False, [False] * 4)
    assert all("E607" in each.content[0].text for each in slow)
