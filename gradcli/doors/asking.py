"""Questions that a process of its own answers: what a server may hand any program to.

Limits of time and memory hold in a process, and it ends with the question, answered or taken back.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Any

_PATIENCE = 5.0
"""Seconds beyond the limit of time that a process has to say so itself."""

_MOST_BYTES = 8_000_000
"""The longest question that is asked, and the longest answer that is read."""


async def answer_to(
    name: str,
    program: str,
    inputs: dict[str, Any],
    named: dict[str, Any],
    within: dict[str, Any] | None = None,
    file: str | None = None,
) -> dict[str, Any]:
    """The answer to a question: `text`, `data` where there is some, `error` where it failed.

    Args:
        name: one of the questions of `gradcli.doors.child`.
        named: its settings, a `timeout` in seconds among them.
        within: bounds the answer, as `gradcli.doors.bounded` does: `elements` of large arrays,
            and `recording` for the path of one in the program's place.
        file: where the program stands: its files are those of that folder.
    """
    request = {
        "ask": name, "program": program, "inputs": inputs, "named": named, "within": within,
        "file": file,
    }  # fmt: skip
    text = json.dumps(request).encode()
    if len(text) > _MOST_BYTES:
        return _failed(f"the question has {len(text):,} bytes: the limit is {_MOST_BYTES:,}")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gradcli.doors.child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out = await asyncio.wait_for(_exchange(process, text), named["timeout"] + _PATIENCE)
    except TimeoutError:
        return _failed(f"the program ran for more than {named['timeout']:g} s")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if len(out) > _MOST_BYTES:
        return _failed(f"the answer is too long: the limit is {_MOST_BYTES:,} bytes")
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        return _failed("the process ended before its work was done")
    return answer


async def _exchange(process: Process, request: bytes) -> bytes:
    """What a process says to a request, read no further than an answer may be long."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(ConnectionError):  # it has ended, and `out` is empty
        process.stdin.write(request)
        await process.stdin.drain()
        process.stdin.close()
    out = bytearray()
    while len(out) <= _MOST_BYTES and (part := await process.stdout.read(1 << 16)):
        out += part
    return bytes(out)


def _failed(text: str) -> dict[str, Any]:
    return {"text": text, "error": "E608"}
