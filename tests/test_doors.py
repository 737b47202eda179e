"""What README says of the doors that need packages of their own is run as it stands there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT, process
from tests.machine import PATIENCE

pytestmark = pytest.mark.filterwarnings("default")


CLUSTER = [
    *("y = (a * w).sum()", "w=3", "--inputs", "cases.jsonl"),
    *("--cluster", "local:2"),
]
KERNEL = ["setup", "kernel", "install", "--user"]
LSP = ["setup", "lsp"]
MCP = ["setup", "mcp"]


@pytest.mark.cluster
def test_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "cases.jsonl").write_text('{"a": [1, 2]}\n{"a": 3}\n')
    shown = process(*CLUSTER, cwd=tmp_path)
    alone = process(*CLUSTER[: CLUSTER.index("--cluster")], cwd=tmp_path)
    assert (shown.code, shown.out, shown.err) == (0, alone.out, "")


@pytest.mark.jupyter
def test_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    assert process(*KERNEL, env={"HOME": str(tmp_path), "JUPYTER_DATA_DIR": ""}).code == 0
    (spec,) = tmp_path.rglob("kernels/gradcli/kernel.json")
    assert json.loads(spec.read_text())["language"] == "gradcli"


def test_a_language_server() -> None:
    pytest.importorskip("pygls")
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient

    async def talk() -> Any:
        client = LanguageClient("test", "1")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        await client.start_io(sys.executable, "-m", "gradcli", *LSP, env=environment)
        asked = types.InitializeParams(types.ClientCapabilities())
        found = await asyncio.wait_for(client.initialize_async(asked), PATIENCE)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        return found

    assert asyncio.run(talk()).capabilities.hover_provider


def test_tools_of_agents() -> None:
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import StdioServerParameters

    async def talk() -> Any:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = ["-m", "gradcli", *MCP]
        server = StdioServerParameters(command=sys.executable, args=words, env=environment)
        async with mcp.Client(server) as client:
            given = {"question": "x.grad", "program": "y = x.detach() * 2", "inputs": {"x": 1}}
            return await asyncio.wait_for(client.call_tool("why", given), PATIENCE)

    assert asyncio.run(talk()).content[0].text.startswith("x.grad = None\n")
