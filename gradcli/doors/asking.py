"""Questions that a process of its own answers: what a server may hand any program to.

Limits of time and memory hold in a process, and it ends with the question, answered or taken back.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

_PATIENCE = 5.0
"""Seconds beyond the limit of time that a process has to say so itself."""

_MOST_BYTES = 8_000_000
"""The longest answer that is passed on."""


async def answer_to(
    name: str, program: str, inputs: dict[str, Any], named: dict[str, Any]
) -> dict[str, Any]:
    """The answer to a question: `text`, `data` where there is some, `error` where it failed.

    Args:
        name: one of the questions of `gradcli.doors.child`.
        named: its settings, a `timeout` in seconds among them.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gradcli.doors.child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    request = {"ask": name, "program": program, "inputs": inputs, "named": named}
    try:
        asked = process.communicate(json.dumps(request).encode())
        out, _ = await asyncio.wait_for(asked, named["timeout"] + _PATIENCE)
    except TimeoutError:
        return _failed(f"the program ran for more than {named['timeout']:g} s")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if len(out) > _MOST_BYTES:
        return _failed(f"the answer has {len(out):,} bytes, which is too long")
    try:
        found: dict[str, Any] = json.loads(out)
    except ValueError:
        return _failed("the process ended before its work was done")
    return found


def _failed(text: str) -> dict[str, Any]:
    return {"text": text, "error": "E608"}
